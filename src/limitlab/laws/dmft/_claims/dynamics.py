"""Claims about two-layer networks: their equations, their growth, their time line (D2, D5 to D10; D1, D3 and D4 have own files)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.lab import compare
from limitlab.lab.claims import Outcome, claim
from limitlab.lab.criteria import Criterion, Number, above, agrees, at_most, below, between, near
from limitlab.lab.measures import effort, largest, log_slope, smallest, words
from limitlab.laws.dmft._bounds import bound_diagnostics
from limitlab.laws.dmft.examples import SINGLE_INDEX, single_index, steep_tanh, tanh_network
from limitlab.laws.dmft.growth import AdiabaticGrowth, width_extrapolation
from limitlab.laws.dmft.population import MeanFieldSingleIndex, PopulationFlow
from limitlab.laws.dmft.two_layer import TwoLayerDynamics
from limitlab.models.activations import Activation

Array = NDArray[np.float64]

AREA = "Two-layer dynamics"


def gaussian_model(degree: int) -> TwoLayerDynamics:
    """Two examples that few draws of the Gaussian model decide: linear neurons, and neurons of degree two."""
    if degree == 1:
        start: dict[str, Any] = dict(sample_ratio=2.0, kernel=(0, 1.0), target=(0, 0.6), target_norm=1.0, times=(1.0, 3.0))
    else:
        start = dict(sample_ratio=4.0, kernel=(0, 0.5, 0.5), target=(0, 0.5, 0.3), noise=0.2, times=(0.5, 1.0, 2.0))
    return TwoLayerDynamics(start_overlap=0.3, solver_steps=120, **start)


@claim(
    "D2",
    AREA,
    "Closed two-time equations describe the Gaussian model from a symmetric start.",
    laws=("TwoLayerDynamics",),
    figure="two-layer-networks",
)
def two_time_equations(quick: bool) -> Outcome:
    """Order of the solver, and the Gaussian model at growing d."""
    law = single_index(3, sample_ratio=2.0, times=4.0)
    truth = law.solve(("train_error",), levels=3).values["train_error"][0]
    steps = (50, 100, 200)
    errors = [abs(float(law.march(count).paths["train_error"][-1]) - truth) for count in steps]
    criteria: list[Criterion] = [
        between(f"error with {steps[k]} steps over that with {steps[k + 1]}", errors[k] / errors[k + 1], 3.6, 4.4)
        for k in (0, 1)
    ]
    measured: dict[str, Number] = {}
    runs = {1: ((50, 100, 200), 50), 2: ((10, 20, 40), 120)} if quick else {1: ((200, 400, 800), 40), 2: ((30, 60, 120), 40)}
    for degree, (sizes, seeds) in runs.items():
        result = compare(
            gaussian_model(degree),
            sizes,
            seeds,
            observables=["train_error", "test_error", "second_layer", "overlap"],
            **effort(quick),
        )
        criteria.append(agrees(f"the solution for the Gaussian model of degree {degree}", result))
        measured |= {f"z of the {words(row.observable)}, degree {degree}": row.z for row in result.rows}
    return Outcome(
        tuple(criteria),
        measured,
        note="the sign of the residual covariance, the multiplier nu and the split of the instantaneous response are ours: see the "
        "theory page",
    )


@claim(
    "D5",
    AREA,
    "Pure noise, second layer free: a = sqrt(m) gamma(t/m), linear at first, saturating at gamma_GF along an adiabatic curve.",
    laws=("AdiabaticGrowth", "TwoLayerDynamics"),
    figure="adiabatic-growth",
)
def growing_second_layer(quick: bool) -> Outcome:
    """a = sqrt(m) gamma(t / m) for several m and two starts against the adiabatic curve; widths extrapolated to infinity."""
    widths, last = ((10, 20, 40), 2.0) if quick else ((10, 20, 40, 80, 160), 4.0)
    law = AdiabaticGrowth(samples_per_weight=0.5, kernel=(0, 0.5, 0, 0.5))
    slow = tuple(s for s in (0.5, 1.0, 2.0, 4.0) if s <= last)
    curve = dict(zip(slow, law.replace(times=slow).theory().second_layer.values, strict=True))
    measured: dict[str, Number] = {"slope at the start": law.initial_slope(), "saturation": law.saturation()}
    wide, beyond, accuracy = [], [], []
    for start in (1.0, 0.5):
        found: dict[float, list[float]] = {s: [] for s in slow}
        for m in widths:
            reached = tuple(s for s in slow if s * m <= 320)  # the widest are followed to s = 2
            finite = law.replace(times=reached, start_second_layer=start).finite_width(m).theory()
            accuracy.append(float(finite.attrs["accuracy"]))
            for s, value in zip(reached, finite.second_layer.values / np.sqrt(m), strict=True):
                found[s].append(float(value))
        for s, values in found.items():
            limit, spread = width_extrapolation(widths[: len(values)], values)
            gaps = np.array(values) / curve[s] - 1
            case = f"a_0 = {start:g}, s = {s:g}"
            measured |= {f"gap at m = {m}, {case}": float(gap) for m, gap in zip(widths, gaps, strict=False)}
            measured |= {f"limit, {case}": limit / curve[s] - 1, f"spread of the limit, {case}": spread / curve[s]}
            if np.all(gaps > 0):
                measured |= _exponent(case, widths[: len(values)], gaps)
            if s >= 1:
                wide.append(abs(float(gaps[-1])))
            beyond.append((abs(limit - curve[s]) - 3 * spread) / curve[s])
    return Outcome(
        (
            below(
                "largest gap of a / sqrt(m) to the adiabatic curve at the largest m, s >= 1, both starts",
                largest(wide),
                0.1 if quick else 0.06,
            ),
            below("largest gap of the limit m -> infinity to the curve beyond 3 times its spread", largest(beyond), 0.01),
            below("numerical accuracy", largest(accuracy), 2e-3),
        ),
        measured,
        note="gaps and limits relative to the curve; the spread is that of several extrapolations. The adiabatic law is a conjecture: "
        "from a_0 = 1 widths approach from above and cross the curve, from a_0 = 1/2 they come from below; no single power of m "
        "describes the approach",
        decisive=not quick,
    )


def _exponent(case: str, widths: Sequence[int], gaps: Array) -> dict[str, Number]:
    """Exponent of gap ~ m^-x by least squares, with the standard error of the fit, and the last local exponent."""
    fit = log_slope(widths, gaps)
    return {
        f"exponent in 1/m, {case}": -fit.value,
        f"standard error of the exponent, {case}": fit.error,
        f"last local exponent, {case}": -log_slope(widths[-2:], gaps[-2:]).value,
    }


class Best(NamedTuple):
    """The state of a trajectory where its test error is least, and the test error at the end."""

    time: float
    test_error: float
    overlap: float
    final_test_error: float


def least_test_error(law: TwoLayerDynamics, end: float) -> Best:
    """Where the test error is least up to a time, on a grid that resolves the fastest mode."""
    steps = max(law.solver_steps, int(np.ceil(8 * end * max(1.0, law.fastest_rate()))))
    times = np.concatenate([[0.0], np.geomspace(8 * end / steps, end, 400)])
    path = law.replace(times=tuple(times), solver_steps=steps).theory()
    best = int(np.argmin(path.test_error.values))
    return Best(times[best], float(path.test_error[best]), float(path.overlap[best]), float(path.test_error[-1]))


EARLY = (10, 20, 40)
"""Widths at which test and train error are compared at t = 2."""


@claim(
    "D6",
    AREA,
    "Single index: at t = O(1) the direction is learned and test equals train error; at t = O(m) the network overfits and unlearns.",
    laws=("TwoLayerDynamics",),
    figure="two-layer-timeline",
)
def timeline(quick: bool) -> Outcome:
    """Learning at t = O(1), overfitting and unlearning at t = O(m)."""
    widths = (10, 20) if quick else (10, 20, 40)
    best = [least_test_error(single_index(m, solver_steps=320), end=20.0) for m in widths]
    late = [single_index(m, times=(2.0, float(m), 4.0 * m), solver_steps=16 * m + 240).theory() for m in widths]
    at_m = [float(path.train_error[1]) for path in late]
    early = [single_index(m, times=2.0, solver_steps=160).theory() for m in EARLY]
    apart = [float(path.test_error - path.train_error) for path in early]
    train, test, overlap = ([float(path[name][2]) for path in late] for name in ("train_error", "test_error", "overlap"))
    measured: dict[str, Number] = {}
    for k, m in enumerate(widths):
        measured |= {
            f"m = {m}: time of the least test error": best[k].time,
            f"m = {m}: least test error": best[k].test_error,
            f"m = {m}: overlap there": best[k].overlap,
            f"m = {m}: overlap at t = 4m": overlap[k],
            f"m = {m}: train error at t = m": at_m[k],
            f"m = {m}: train error at t = 4m": train[k],
            f"m = {m}: test error at t = 4m": test[k],
        }
    measured |= {f"m = {m}: test minus train error at t = 2": gap for m, gap in zip(EARLY, apart, strict=True)}
    unlearned = [end / there.overlap for end, there in zip(overlap, best, strict=True)]
    overfit = [end / there.test_error for end, there in zip(test, best, strict=True)]
    return Outcome(
        (
            near("exponent in m of test minus train error at t = 2", log_slope(EARLY, apart).value, -1, 0.15),
            above(
                "smallest overlap at the least test error, from 0.1 at the start",
                smallest(there.overlap for there in best),
                0.4,
            ),
            below("latest time of the least test error", largest(there.time for there in best), 10),
            below("largest overlap at t = 4m over that at the least test error", largest(unlearned), 0.95),
            below("largest train error at t = 4m", largest(train), 0.02),
            above("smallest test error at t = 4m over its least value", smallest(overfit), 1.05),
            below("largest over smallest train error at t = m", largest(at_m) / smallest(at_m), 1.1),
        ),
        measured,
    )


@claim(
    "D7",
    AREA,
    "The dynamical mean-field curves match gradient descent and SGD of real two-layer networks.",
    laws=("TwoLayerDynamics",),
    figure="two-layer-networks",
)
def networks(quick: bool) -> Outcome:
    """Real tanh networks, by gradient flow and by stochastic descent."""
    size, seeds = (120, 6) if quick else (400, 12)
    law = tanh_network(times=(1.0, 3.0), solver_steps=120)
    theory = law.theory()
    criteria: list[Criterion] = []
    measured: dict[str, Number] = {}
    for model, how in (("network", "gradient flow"), ("sgd", "stochastic descent")):
        runs, beyond = law.replace(experiment_model=model).simulate_batch(size, range(seeds)), []
        for name in ("train_error", "test_error", "second_layer", "overlap"):
            error = runs[name].std("seed", ddof=1) / np.sqrt(seeds) / np.abs(theory[name])
            gap = (runs[name].mean("seed") - theory[name]) / np.abs(theory[name])
            measured[f"{how}: relative gap of the {words(name)}"] = float(gap[np.argmax(np.abs(gap.values))])
            beyond.append(float((np.abs(gap) - 4 * error).max()))
        criteria.append(below(f"{how}: largest relative gap beyond 4 standard errors, m = 8", largest(beyond), 0.02))
    return Outcome(
        tuple(criteria),
        measured,
        note="the equations are those of the Gaussian model; the gap of a real network does not vanish with d, it shrinks with the width",
    )


@claim(
    "D8",
    AREA,
    "A mean-field start with early stopping generalises best; a lazy start overfits.",
    laws=("TwoLayerDynamics",),
    figure="two-layer-stopping",
)
def scale_of_the_start(quick: bool) -> Outcome:
    """Early stopping from small and large second layers."""
    m = 10 if quick else 20
    scales = (0.5, 1.0, 2.0, 4.0)
    start = single_index(m, solver_steps=640, memory_points=0 if quick else None)  # a march this short need not be thinned
    found = [least_test_error(start.replace(start_second_layer=scale), 3.0 * m) for scale in scales]
    best = [there.test_error for there in found]
    measured: dict[str, Number] = {}
    for scale, there in zip(scales, found, strict=True):
        measured |= {
            f"scale {scale:g}: least test error": there.test_error,
            f"scale {scale:g}: time of the least test error": there.time,
            f"scale {scale:g}: test error at t = {3 * m}": there.final_test_error,
        }
    cost = [there.final_test_error / there.test_error for there in found[:2]]
    feature, lazy = (centred_networks(scale, 4 if quick else 12) for scale in (1.0, LAZY))
    measured |= {
        "networks without their start's output, scale 1: least test error": float(feature.min()),
        f"networks without their start's output, scale {LAZY:g}: least test error": float(lazy.min()),
        f"networks without their start's output, scale {LAZY:g}: last test error": float(lazy[-1]),
    }
    return Outcome(
        (
            above(f"tanh networks, lazy (scale {LAZY:g}): last over least test error", lazy[-1] / lazy.min(), 1.08),
            below(
                f"tanh networks: least test error of scale 1 over that of scale {LAZY:g}", feature.min() / lazy.min(), 0.95
            ),
            below("least test error of scales 1/2 and 1 over that of scale 4", smallest(best[:2]) / best[3], 0.9),
            above("least test error of scale 2 over that of scale 1", best[2] / best[1], 1),
            above("least test error of scale 4 over that of scale 2", best[3] / best[2], 1),
            above("smallest cost of training on from scales 1/2 and 1, test errors' ratio", smallest(cost), 1.03),
        ),
        measured,
        note="A large second layer also starts with a large random output, which alone would make it worse; the networks train on labels "
        "to which it is added, so that only the laziness is left.",
    )


LAZY = 10.0
"""Second layer at the start of a lazy network."""


def centred_networks(scale: float, draws: int) -> Array:
    """Mean test error over growing times of ten tanh neurons whose start's output is subtracted (d = 60, n = 5 d, noise 1/2)."""
    from limitlab.laws.dmft._finite import samples, training

    d, m, times = 60, 10, np.geomspace(1, 128, 8) / scale**2
    functions = samples.network_functions(Activation("tanh"), Activation(steep_tanh))
    errors = []
    for seed in range(draws):
        rng = np.random.default_rng([seed, 8])
        w, direction = samples.exchangeable_weights(rng, d, m, 0.1, 0.01)
        data = samples.network_samples(rng, functions, 5 * d, direction, 0.5)
        a = np.full(m, scale)
        data = replace(data, labels=data.labels + data.responses(w)[0] @ a / m)
        track = training.gradient_flow(data, w, a, times, 1 / max(1.0, scale**2 / 4))
        x = rng.standard_normal((4000, d))
        outputs = [np.tanh(x @ first.T) @ second / m for first, second in zip([w, *track.w], [a, *track.a], strict=True)]
        errors.append([np.mean((steep_tanh(x @ direction) - output + outputs[0]) ** 2) + 0.25 for output in outputs[1:]])
    return np.asarray(np.mean(errors, axis=0))


@claim(
    "D9",
    AREA,
    "The second layer grows at most linearly, and the generalisation gap at most like (a0 + a1 t)^2 sqrt(d/n).",
    laws=("TwoLayerDynamics",),
)
def growth_bounds(quick: bool) -> Outcome:
    """Linear growth of the second layer and the bound on the generalisation gap, with constants set to 1; the same for networks."""
    widths = (5, 10, 20) if quick else (10, 20, 40)
    laws = [single_index(m, times=tuple(np.linspace(0, 10, 11)), solver_steps=200) for m in widths]
    bounds = [bound_diagnostics(law) for law in laws]
    growth = [float(found["growth_ratio"].max()) for found in bounds]
    later = [float(found["growth_ratio"][1:].max()) for found in bounds]
    gaps = [float(found["gap_ratio"].max()) for found in bounds]
    measured: dict[str, Number] = {f"m = {m}: a over its bound, t > 0": x for m, x in zip(widths, later, strict=True)}
    measured |= {f"m = {m}: gap over its bound": x for m, x in zip(widths, gaps, strict=True)}
    drawn_growth, drawn_gap = drawn_bounds(6 if quick else 20)
    return Outcome(
        (
            at_most("largest a over a0 + (tau + a0) s at population time s, from 0 on", largest(growth), 1 + 1e-12),
            at_most(f"gap over (a0 + a1 s)^2 sqrt(d/n), m = {widths[-1]} against m = {widths[0]}", gaps[-1] / gaps[0], 1),
            at_most("tanh networks: largest a over its bound", drawn_growth, 1 + 1e-12),
            below("tanh networks: largest gap over its bound, plus 5 standard errors", drawn_gap, 1),
        ),
        measured,
        note="the theorem has unspecified constants and bounded activations; the observed gap falls like 1/m, faster than the bound",
    )


def drawn_bounds(draws: int) -> tuple[float, float]:
    """The second layer and the generalisation gap of trained tanh networks over their bounds, largest over time."""
    law = tanh_network(times=(0.0, 1.0, 4.0, 16.0))
    bounds, runs = bound_diagnostics(law), law.simulate_batch(60, range(draws))
    gap = (runs.test_error - runs.train_error).values / bounds["gap_bound"]
    high = gap.mean(axis=0) + 5 * gap.std(axis=0, ddof=1) / np.sqrt(draws)
    return float((np.abs(runs.second_layer.values) / bounds["growth_bound"]).max()), float(high.max())


@claim(
    "D10",
    AREA,
    "Mean-field equations, two-dimensional from a symmetric start, with an error of at most max(1/m, 1/d, d/n)^(1/2).",
    laws=("MeanFieldSingleIndex", "PopulationFlow"),
)
def mean_field_equations(quick: bool) -> Outcome:
    """The two-dimensional mean-field equations against finite widths, with and without finite samples."""
    widths = (10, 20, 40, 80, 160) if quick else (10, 20, 40, 80, 160, 320)
    mean_field = float(MeanFieldSingleIndex(times=2.0, **SINGLE_INDEX).theory().overlap)
    finite = [abs(float(single_index(m, times=4.0, solver_steps=160).theory().overlap) - mean_field) for m in widths]
    population = [
        abs(float(PopulationFlow(width=m, times=2.0, **SINGLE_INDEX).theory().overlap) - mean_field) for m in (40, 80, 160)
    ]
    local = -np.diff(np.log(finite)) / np.log(2)
    limit = float(2 * local[-1] - local[-2])  # local exponents approach theirs like 1/m
    ratios = (20.0, 40.0, 80.0, 160.0)
    truth = float(PopulationFlow(width=10, times=2.0, **SINGLE_INDEX).theory().overlap)
    sampled = [
        abs(float(single_index(10, sample_ratio=r, times=20.0 / r, solver_steps=160).theory().overlap) - truth)
        for r in ratios
    ]
    measured: dict[str, Number] = {f"gap at m = {m}": gap for m, gap in zip(widths, finite, strict=True)}
    measured |= {f"local exponent from m = {m}": float(x) for m, x in zip(widths[1:], local[1:], strict=False)}
    measured |= {"change of the extrapolated exponent": float(limit - 2 * local[-2] + local[-3])}
    measured |= {f"m = 10: gap to the population flow at n/d = {r:g}": gap for r, gap in zip(ratios, sampled, strict=True)}
    return Outcome(
        (
            above("n = m d / 2: local exponent of the gap from m = 10 to 20", float(local[0]), 0.5),
            above("n = m d / 2: smallest rise of the local exponents with m", smallest(np.diff(local)), 0),
            near("n = m d / 2: local exponent extrapolated to m -> infinity", limit, 1, 0.03),
            near("population flow: exponent of the gap in 1/m", -log_slope((40, 80, 160), population).value, 1, 0.1),
            near("m = 10: exponent in n/d of the gap to the population flow", log_slope(ratios, sampled).value, -1, 0.1),
            agrees(
                "one-pass descent of growing networks, m and d together:",
                compare(MeanFieldSingleIndex, seeds=10 if quick else 40, **effort(quick)),
            ),
        ),
        measured,
    )
