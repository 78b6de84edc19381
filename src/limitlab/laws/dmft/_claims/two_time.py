"""Claims about the two-time equations of two-layer networks (D2, D15)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab._core.draws import mean_and_error
from limitlab.lab.check import Check, log_slope, sigmas, standard_error, words
from limitlab.lab.claims import claim
from limitlab.laws.dmft.examples import single_index
from limitlab.laws.dmft.two_layer import TwoLayerDynamics
from limitlab.numerics.two_time import romberg_table

Array = NDArray[np.float64]

AREA = "Two-layer dynamics"


EXAMPLES: dict[str, dict[str, Any]] = {
    "linear neurons": dict(
        sample_ratio=2.0, kernel=(0, 1.0), target=(0, 0.6), target_norm=1.0, start_overlap=0.3, times=(1.0, 3.0)
    ),
    "degree 2": dict(
        sample_ratio=4.0, kernel=(0, 0.5, 0.5), target=(0, 0.5, 0.3), noise=0.2, start_overlap=0.3, times=(0.5, 1.0, 2.0)
    ),
    "degree 3, pure noise": dict(
        sample_ratio=3.0,
        kernel=(0, 0.3, 0, 0.7),
        target=(),
        noise=1.0,
        start_second_layer=2.0,
        frozen=True,
        start_overlap=0.0,
        start_correlation=0.0,
        times=(1.0, 3.0, 6.0),
    ),
    "degree 3 with a target": dict(
        sample_ratio=3.0,
        kernel=(0, 0.4, 0.2, 0.4),
        target=(0, 0.4, 0.2, 0.4),
        noise=0.5,
        start_second_layer=1.5,
        start_overlap=0.3,
        start_correlation=0.0,
        times=(1.0, 3.0, 6.0),
    ),
}
"""Examples of the Gaussian model, from linear neurons to degree 3.

In the third example the term C_A h'' R of (5) decides. Without this term the train error at t = 6 would be 0.249 and not 0.142.
"""


def gaussian_model(name: str) -> TwoLayerDynamics:
    """Return one of the `EXAMPLES`."""
    return TwoLayerDynamics(**{"solver_steps": 240, **EXAMPLES[name]})


@claim("D2", AREA, TwoLayerDynamics, figure="two-layer-networks", items=("L-19", "D-7", "D-11"))
def two_time_equations(check: Check) -> None:
    """Closed two-time equations describe the Gaussian model from a symmetric start.

    Checked: the order of the solver, the loss of energy along the solution, and the agreement with the Gaussian model at growing d. The
    energy of every gradient flow falls by the squared speed of the weights, which follows from C_d and a alone. The equations for C, R,
    a, v and the residual satisfy this identity only together, so that a wrong term of (2) to (9) violates it.
    """
    law = single_index(3, sample_ratio=2.0, times=4.0)
    truth = law.solve(("train_error",), levels=3).values["train_error"][0]
    steps = (50, 100, 200)
    errors = [abs(float(law.march(count).paths["train_error"][-1]) - truth) for count in steps]
    for k in (0, 1):
        check.between(f"error with {steps[k]} steps over that with {steps[k + 1]}", errors[k] / errors[k + 1], 3.6, 4.4)
    for name in EXAMPLES:
        check.below(
            f"{name}: largest relative gap of the energy from the work of the speed", energy_gap(gaussian_model(name)), 1e-3
        )
    for name, (sizes, seeds) in (QUICK_RUNS if check.quick else FULL_RUNS).items():
        model = gaussian_model(name)
        observables = [item for item in ("train_error", "test_error", "second_layer", "overlap") if _moves(model, item)]
        if name.startswith("degree 3"):  # its tensors allow small dimensions only
            result = check.compare(model, sizes, seeds, observables=observables, seconds=0.0)
            check.true(f"the solution for the Gaussian model, {name}, does not disagree", result.verdict != "disagree")
        else:
            (result,) = check.agree(
                f"the solution for the Gaussian model, {name},", model, sizes=sizes, seeds=seeds, observables=observables
            )
        for row in result.rows:
            check.show(f"z of the {words(row.observable)}, {name}", row.z)
            check.show(f"relative gap of the {words(row.observable)} that would be noticed, {name}", row.relative_half_width)
    noise = gaussian_model("degree 3, pure noise")
    limit = noise.theory()
    for t, value in zip((1, 3, 6), limit.train_error.values, strict=True):
        check.show(f"pure noise: train error at t = {t}", float(value))
    check.show("pure noise: test error at t = 6", float(limit.test_error[-1]))
    check.show(
        "pure noise: C_d(6, 0)", float(noise.solve(("same_neuron_correlation",)).values["same_neuron_correlation"][-1])
    )
    check.note(
        "Three parts of the equations are derived in limitlab: the sign of the residual covariance, the multiplier nu, and the part of "
        "the response without delay. The theory page explains them."
    )


QUICK_RUNS: dict[str, tuple[tuple[int, ...], int]] = {
    "linear neurons": ((50, 100, 200), 50),
    "degree 2": ((10, 20, 40), 120),
}


FULL_RUNS: dict[str, tuple[tuple[int, ...], int]] = {
    "linear neurons": ((100, 200, 400), 60),
    "degree 2": ((20, 40, 80), 100),
    "degree 3, pure noise": ((8, 16, 32), 24),
    "degree 3 with a target": ((8, 16, 32), 24),
}
"""Dimensions and numbers of draws of the Gaussian model, by example."""


def _moves(law: TwoLayerDynamics, name: str) -> bool:
    """Return whether an observable of this example differs from its start."""
    return not (name == "second_layer" and law.frozen) and not (
        name == "overlap" and not law.target and law.start_overlap == 0
    )


def energy_gap(law: TwoLayerDynamics, steps: int = 60) -> float:
    """Return the largest gap between the fall of the train error and the work of the weights' speed, over the train error at the start.

    Gradient flow (1) gives d(train error)/dt = -(2 m / ratio)(|w_j'|^2 + a'^2). On a grid of step h the squared speed of the weights at
    the middle of a step is 2 (1 - C_d(t + h, t)) / h^2. The error of C_d(t + h, t) is of order h^3, which makes that of the gap of order
    h. The terms of orders h, h^2 and h^3 are removed with four grids.
    """
    gaps = []
    for factor in (1, 2, 4, 8):
        solution, m = law.march(factor * steps), law.width
        plus, minus = (np.diagonal(solution.two_time(name), -1) for name in ("C+", "C-"))
        h = solution.times[1]
        speed = 2 * (1 - (plus + (m - 1) * minus) / m) / h**2 + (np.diff(solution.paths["second_layer"]) / h) ** 2
        train = solution.paths["train_error"]
        gap = (train[0] - train[1:] - 2 * m / law.sample_ratio * h * np.cumsum(speed)) / train[0]
        gaps.append(gap[factor - 1 :: factor])
    for order in (1, 2, 3):
        gaps = [(2**order * fine - coarse) / (2**order - 1) for coarse, fine in pairwise(gaps)]
    return float(np.abs(gaps[0]).max())


WEIGHTS = ("same_neuron_correlation", "other_neuron_correlation")


@claim("D15", AREA, TwoLayerDynamics, quick_decides=False, items=("D-7",))
def two_time_functions(check: Check) -> None:
    """Correlations of the weights at two times, their responses, overlaps and second layer converge to the solution of the two-time
    equations, uniformly on bounded times.

    Measured for neurons of degree 2 in the Gaussian model: C_d(t, s) and C_o(t, s) at three pairs of times, extrapolated from two
    dimensions, and the largest gap of these functions, of v and of a on a grid of times up to 2, with its exponent in d, which is -1/2.
    The responses R_d(t, s) and R_o(t, s) are measured by a kick of every neuron at the time s.
    """
    grid = np.linspace(0.25, 2.0, 8)
    law = gaussian_model("degree 2").replace(times=tuple(grid), earlier=(0.0, *grid[:-1]))
    sizes, draws = ((10, 20, 40), 100) if check.quick else ((20, 40, 80), 200)
    limit, batches = law.theory(), [law.simulate_batch(size, range(draws)) for size in sizes]
    for symbol, name in zip(("C_d", "C_o"), WEIGHTS, strict=True):
        for t, s in PAIRS:
            case, at = f"{symbol}({t:g}, {s:g})", dict(time=t, earlier=s)
            target = float(limit[name].sel(at))
            (_, _), (coarse, e), (fine, error) = (mean_and_error(runs[name].sel(at).values) for runs in batches)
            value, spread = float(2 * fine - coarse), float(np.hypot(2 * error, e))  # the gap falls like 1/d
            check.below(
                f"{case}: distance from the equations in standard errors, extrapolated", abs(value - target) / spread, 4
            )
            check.show(case, target)
            check.show(f"{case}, extrapolated from d = {sizes[1]} and {sizes[2]}", value)
            check.show(f"standard error of {case}", spread)
    for symbol, name in zip(("C_d", "C_o", "v", "a"), (*WEIGHTS, "overlap", "second_layer"), strict=True):
        gaps = [float(np.abs((runs[name] - limit[name]).values).reshape(draws, -1).max(axis=1).mean()) for runs in batches]
        low, high = (-0.75, -0.3) if check.quick else (-0.6, -0.4)
        check.between(f"exponent in d of the largest gap of {symbol} up to t = 2", log_slope(sizes, gaps).value, low, high)
        check.show(f"largest gap of {symbol} at d = {sizes[-1]}", gaps[-1])
    measured = drawn_responses(law, 40, 60 if check.quick else 300)
    for symbol, columns in zip(("R_d", "R_o"), measured, strict=True):
        for (t, s), values in zip(PAIRS, columns.T, strict=True):
            case, target = f"{symbol}({t:g}, {s:g})", response(law, symbol, t, s)
            check.below(f"{case}: distance from the equations in standard errors", sigmas(values, target), 4)
            check.show(case, target)
            check.show(f"{case} at d = 40", float(values.mean()))
            check.show(f"standard error of {case}", standard_error(values))


PAIRS = ((2.0, 0.0), (2.0, 1.0), (1.0, 0.0))
"""Pairs (t, s) of times."""


def drawn_responses(law: TwoLayerDynamics, size: int, draws: int) -> Array:
    """Return the responses of a neuron to itself and to another neuron in every draw, shape (2, draws, number of `PAIRS`)."""
    from limitlab.laws.dmft._finite.training import gradient_flow, kicked_responses

    rows = []
    for seed in range(draws):
        draw = law.draw(size, seed)
        data, _, w, a = law.training_set(draw)
        track = gradient_flow(data, w, a, np.array([1.0]), law.step, law.speed)
        early = kicked_responses(draw.rng, data, w, a, np.array([1.0, 2.0]), law.step, law.speed)
        late = kicked_responses(draw.rng, data, track.w[0], track.a[0], np.array([1.0]), law.step, law.speed)
        rows.append([[first[1], second[0], first[0]] for first, second in zip(early, late, strict=True)])
    return np.moveaxis(np.array(rows), 1, 0)


def response(law: TwoLayerDynamics, symbol: str, time: float, earlier: float) -> float:
    """Return the response of a neuron to itself or to another neuron at two times, extrapolated from three grids."""
    levels = []
    for steps in (50, 100, 200):
        functions = law.two_time(steps)
        step = float(functions.time[1])
        levels.append(functions[symbol].values[round(time / step), round(earlier / step)])
    return float(romberg_table(levels)[0])
