"""Claims about training dynamics: dynamical mean-field theory of gradient descent and of two-layer networks (D1 to D10)."""

from __future__ import annotations

from typing import Any

import numpy as np

from limitlab.lab.claims.core import Claim, Number, Outcome
from limitlab.lab.claims.first_order import check_general_dmft
from limitlab.lab.claims.interpolation import check_interpolation_threshold, check_relaxation
from limitlab.lab.compare import compare
from limitlab.laws.dmft.growth import AdiabaticGrowth
from limitlab.laws.dmft.population import MeanFieldSingleIndex, PopulationFlow
from limitlab.laws.dmft.stopping import bound_diagnostics, plan_stopping, stopping_table
from limitlab.laws.dmft.two_layer import TwoLayerDynamics

AREA = "Two-layer dynamics"

SINGLE_INDEX: dict[str, Any] = dict(
    kernel=(0, 0.5, 0.3, 0.2), target=(0, 0.5, 0.3), target_norm=1.0, start_second_layer=1.0, start_overlap=0.1, noise=0.5
)
"""The running example: h = 0.5 q + 0.3 q^2 + 0.2 q^3, phihat = 0.5 v + 0.3 v^2."""


def single_index(width: int, **changes: Any) -> TwoLayerDynamics:
    """The running example with n = m d / 2 samples."""
    return TwoLayerDynamics(**{**SINGLE_INDEX, "width": width, "sample_ratio": 0.5 * width, **changes})


def check_two_time_equations(quick: bool) -> Outcome:
    """D2: order of the solver, and the Gaussian model at growing d."""
    law = single_index(3, sample_ratio=2.0, times=4.0)
    truth = law.solve(("train_error",), levels=3).values["train_error"][0]
    errors = [abs(law.march(steps).paths["train_error"][-1] - truth) for steps in (50, 100, 200)]
    ratios = [float(errors[0] / errors[1]), float(errors[1] / errors[2])]
    sizes, seeds = ((15, 30, 60), 24) if quick else ((40, 80, 160), 40)
    model = TwoLayerDynamics(times=(1.0, 3.0), steps=120)
    result = compare(model, sizes, seeds, observables=["train_error", "test_error", "second_layer", "overlap"])
    measured: dict[str, Number] = {"order_ratio_1": ratios[0], "order_ratio_2": ratios[1], "verdict": result.verdict}
    measured |= {f"z_{row.observable}": row.z for row in result.rows}
    good = all(3.6 < ratio < 4.4 for ratio in ratios)
    return Outcome(
        good and result.verdict != "disagree",
        "halving the step divides the error by 4 within 10 %; the Gaussian model is not in disagreement with the equations",
        measured,
        "the sign of the residual covariance, the multiplier nu and the split of the instantaneous response are ours: see the theory page",
    )


def check_growing_second_layer(quick: bool) -> Outcome:
    """D5: a = sqrt(m) gamma(t / m) for several m against the adiabatic curve."""
    widths, slow = ((5, 10, 20) if quick else (10, 20, 40)), (1.0, 2.0)
    adiabatic = AdiabaticGrowth(ratio=0.5, kernel=(0, 0.5, 0, 0.5), times=slow)
    curve = adiabatic.theory().second_layer.values
    gaps = []
    for m in widths:
        law = TwoLayerDynamics(
            width=m,
            sample_ratio=0.5 * m,
            noise=1.0,
            kernel=(0, 0.5, 0, 0.5),
            start_overlap=0.0,
            times=tuple(s * m for s in slow),
            steps=max(160, 16 * m),
        )
        gaps.append(law.theory().second_layer.values / np.sqrt(m) / curve - 1)
    measured: dict[str, Number] = {
        f"gap_m{m}_s{s:g}": float(gap) for m, row in zip(widths, gaps, strict=True) for s, gap in zip(slow, row, strict=True)
    }
    measured |= {"slope_at_start": adiabatic.initial_slope(), "saturation": adiabatic.saturation()}
    shrinks = bool(np.all(np.diff(np.abs(gaps), axis=0) < 0))
    return Outcome(
        shrinks and bool(np.all(np.abs(gaps[-1]) < 0.1)),
        "a / sqrt(m) against t / m approaches the adiabatic curve as m grows, and is within 10 % of it at the largest m",
        measured,
        "the adiabatic law is a conjecture, supported as a trend in m",
    )


def check_timeline(quick: bool) -> Outcome:
    """D6: learning at t = O(1), overfitting and unlearning at t = O(m)."""
    widths = (10, 20) if quick else (10, 20, 40)
    measured: dict[str, Number] = {}
    train, passed = [], True
    for m in widths:
        law = single_index(m, times=(2.0, float(m), 4.0 * m), steps=16 * m + 240)
        plan, late = plan_stopping(single_index(m, steps=320), end=20.0), law.theory()
        train.append(float(late.train_error[1]))
        measured |= {
            f"best_time_m{m}": plan.time,
            f"best_test_error_m{m}": plan.test_error,
            f"overlap_at_best_m{m}": plan.overlap,
            f"overlap_at_4m_m{m}": float(late.overlap[2]),
            f"train_error_at_m_m{m}": train[-1],
            f"train_error_at_4m_m{m}": float(late.train_error[2]),
            f"test_error_at_4m_m{m}": float(late.test_error[2]),
        }
        passed &= plan.time < 10 and float(late.overlap[2]) < 0.95 * plan.overlap
        passed &= float(late.train_error[2]) < 0.02 and float(late.test_error[2]) > 1.05 * plan.test_error
    measured["collapse_of_train_error_at_t_equals_m"] = max(train) / min(train) - 1
    return Outcome(
        passed and max(train) / min(train) < 1.1,
        "test error least at t < 10 for every m; at t = 4 m the train error is below 0.02, the test error above its minimum by 5 %, the "
        "overlap below its peak by 5 %; train errors at t = m agree within 10 %",
        measured,
    )


def check_networks(quick: bool) -> Outcome:
    """D7: real tanh networks, by gradient flow and by stochastic descent."""
    size, seeds = (120, 6) if quick else (400, 12)
    law = TwoLayerDynamics(
        width=8,
        sample_ratio=8,
        activation="tanh",
        target_function=_steep_tanh,
        experiment_model="network",
        times=(1.0, 3.0),
        steps=120,
    )
    theory, measured, passed = law.theory(), {}, True
    for model in ("network", "sgd"):
        runs = law.replace(experiment_model=model).simulate_batch(size, range(seeds))
        for name in ("train_error", "test_error", "second_layer", "overlap"):
            error = runs[name].std("seed", ddof=1) / np.sqrt(seeds)
            gap = (runs[name].mean("seed") - theory[name]) / np.abs(theory[name])
            measured[f"{model}_{name}"] = float(gap[np.argmax(np.abs(gap.values))])
            passed &= bool(np.all(np.abs(gap) < 0.02 + 4 * error / np.abs(theory[name])))
    return Outcome(
        passed,
        "relative gaps of m = 8 tanh networks below 2 % beyond 4 standard errors",
        dict(measured),
        "the equations are those of the Gaussian model; the gap of a real network does not vanish with d, it shrinks with the width",
    )


def _steep_tanh(x: Any) -> Any:
    return np.tanh(2 * x)


def check_scale_of_the_start(quick: bool) -> Outcome:
    """D8: early stopping from small and large second layers."""
    m = 10 if quick else 20
    scales = (0.5, 1.0, 2.0, 4.0)
    plans = stopping_table(single_index(m, steps=640), "start_second_layer", list(scales), end=3.0 * m)
    measured: dict[str, Number] = {}
    for scale, plan in zip(scales, plans, strict=True):
        measured |= {
            f"best_a{scale:g}": plan.test_error,
            f"final_a{scale:g}": plan.final_test_error,
            f"time_a{scale:g}": plan.time,
        }
    best = [plan.test_error for plan in plans]
    stops = all(plan.final_test_error > 1.03 * plan.test_error for plan in plans[:2])
    return Outcome(
        min(best[:2]) < 0.9 * best[-1] and stops and best[1] < best[2] < best[3],
        "best test error grows with the scale of the start beyond 1, by more than 10 % at scale 4, and training on costs more than 3 %",
        measured,
    )


def check_bounds(quick: bool) -> Outcome:
    """D9: linear growth of the second layer and the bound on the generalisation gap, with constants set to 1."""
    widths = (5, 10, 20) if quick else (10, 20, 40)
    growth, gaps = [], []
    for m in widths:
        bounds = bound_diagnostics(single_index(m, times=tuple(np.linspace(0, 10, 11)), steps=200))
        growth.append(float(bounds["growth_ratio"].max()))
        gaps.append(float(bounds["gap_ratio"].max()))
    measured: dict[str, Number] = {f"growth_ratio_m{m}": x for m, x in zip(widths, growth, strict=True)}
    measured |= {f"gap_ratio_m{m}": x for m, x in zip(widths, gaps, strict=True)}
    return Outcome(
        max(growth) <= 1 and gaps[-1] <= gaps[0],
        "a <= a0 + (tau + a0) that, and the ratio of the gap to (a0 + a1 that)^2 sqrt(d/n) does not grow with m",
        measured,
        "the theorem has unspecified constants and bounded activations; the observed gap falls like 1/m, faster than the bound",
    )


def check_mean_field(quick: bool) -> Outcome:
    """D10: the two-dimensional mean-field equations against finite widths, with and without finite samples."""
    widths = (10, 20, 40) if quick else (10, 20, 40, 80)
    mean_field = float(MeanFieldSingleIndex(times=2.0, **SINGLE_INDEX).theory().overlap)
    finite = [abs(float(single_index(m, times=4.0, steps=160).theory().overlap) - mean_field) for m in widths]
    population = [
        abs(float(PopulationFlow(width=m, times=2.0, **SINGLE_INDEX).theory().overlap) - mean_field) for m in (40, 80, 160)
    ]
    slope = float(np.polyfit(np.log(widths), np.log(finite), 1)[0])
    exact = float(np.polyfit(np.log([40, 80, 160]), np.log(population), 1)[0])
    run = compare(MeanFieldSingleIndex(times=(1.0, 2.0), **SINGLE_INDEX), (6, 12, 24), 8)
    measured: dict[str, Number] = {f"gap_m{m}": gap for m, gap in zip(widths, finite, strict=True)}
    measured |= {"exponent_at_fixed_alpha": slope, "exponent_of_the_population_flow": exact, "one_pass_descent": run.verdict}
    return Outcome(
        slope < -0.5 and abs(exact + 1) < 0.1 and run.verdict != "disagree",
        "gap at n = m d / 2 falls at least like m^(-1/2), that of the population flow like 1/m; one-pass descent does not disagree",
        measured,
    )


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "D1",
        AREA,
        "The general dynamical mean-field process describes gradient descent on a smooth loss as n, d grow at fixed n/d.",
        ("FirstOrderDynamics",),
        check_general_dmft,
    ),
    Claim(
        "D2",
        AREA,
        "Closed two-time equations describe the Gaussian model from a symmetric start.",
        ("TwoLayerDynamics",),
        check_two_time_equations,
        "two-layer-networks",
    ),
    Claim(
        "D3",
        AREA,
        "Pure noise, second layer frozen at gamma sqrt(m): the train error reaches zero if and only if gamma > gamma_GF(alpha).",
        ("InterpolationTransition",),
        check_interpolation_threshold,
        "interpolation-threshold",
    ),
    Claim(
        "D4",
        AREA,
        "The relaxation time diverges as a power law on the interpolating side of gamma_GF (exponent open).",
        ("InterpolationTransition",),
        check_relaxation,
        "interpolation-relaxation",
    ),
    Claim(
        "D5",
        AREA,
        "Pure noise, second layer free: a = sqrt(m) gamma(t/m), linear at first, saturating at gamma_GF along an adiabatic curve.",
        ("TwoLayerDynamics",),
        check_growing_second_layer,
        "adiabatic-growth",
    ),
    Claim(
        "D6",
        AREA,
        "Single index: at t = O(1) the direction is learned and test equals train error; at t = O(m) the network overfits and unlearns.",
        ("TwoLayerDynamics",),
        check_timeline,
        "two-layer-timeline",
    ),
    Claim(
        "D7",
        AREA,
        "The dynamical mean-field curves match gradient descent and SGD of real two-layer networks.",
        ("TwoLayerDynamics",),
        check_networks,
        "two-layer-networks",
    ),
    Claim(
        "D8",
        AREA,
        "A mean-field start with early stopping generalises best; a lazy start overfits.",
        ("TwoLayerDynamics",),
        check_scale_of_the_start,
    ),
    Claim(
        "D9",
        AREA,
        "The second layer grows at most linearly, and the generalisation gap at most like (a0 + a1 t)^2 sqrt(d/n).",
        ("TwoLayerDynamics",),
        check_bounds,
    ),
    Claim(
        "D10",
        AREA,
        "Mean-field equations, two-dimensional from a symmetric start, with an error of at most (1/m v 1/d v d/n)^(1/2).",
        ("MeanFieldSingleIndex", "PopulationFlow"),
        check_mean_field,
    ),
)
