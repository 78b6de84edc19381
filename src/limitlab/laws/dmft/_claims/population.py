"""Claims about two-layer networks with infinitely many samples (D10, D11, D18)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.check import Check, largest, log_slope, smallest
from limitlab.lab.claims import claim
from limitlab.laws.dmft._finite.multi_index import network_risk, one_pass_sgd, population_flow, random_weights
from limitlab.laws.dmft.examples import SINGLE_INDEX, single_index, tanh_network
from limitlab.laws.dmft.multi_index import MultiIndexFlow
from limitlab.laws.dmft.population import MeanFieldSingleIndex, PopulationFlow
from limitlab.laws.dmft.two_layer import TwoLayerDynamics

Array = NDArray[np.float64]

AREA = "Two-layer dynamics"

AREA_DMFT = "Two-layer dynamics (DMFT)"


@claim("D10", AREA, MeanFieldSingleIndex, PopulationFlow, items=("D-20",))
def mean_field_equations(check: Check) -> None:
    """From a symmetric start a network follows mean-field equations for two numbers, with an error of at most
    max(1/m, 1/d, d/n)^(1/2).

    Compared: the two-dimensional mean-field equations with finite widths, for finitely and for infinitely many samples.
    """
    widths = (10, 20, 40, 80, 160) if check.quick else (10, 20, 40, 80, 160, 320)
    mean_field = float(MeanFieldSingleIndex(times=2.0, **SINGLE_INDEX).theory().overlap)
    finite = [abs(float(single_index(m, times=4.0, solver_steps=160).theory().overlap) - mean_field) for m in widths]
    population = [
        abs(float(PopulationFlow(width=m, times=2.0, **SINGLE_INDEX).theory().overlap) - mean_field) for m in (40, 80, 160)
    ]
    local = -np.diff(np.log(finite)) / np.log(2)
    check.above("n = m d / 2: local exponent of the gap from m = 10 to 20", float(local[0]), 0.5)
    check.above("n = m d / 2: smallest rise of the local exponents with m", smallest(np.diff(local)), 0)
    limit = float(2 * local[-1] - local[-2])  # local exponents approach their limit like 1/m
    check.near("n = m d / 2: local exponent extrapolated to m -> infinity", limit, 1, 0.03)
    check.near("population flow: exponent of the gap in 1/m", -log_slope((40, 80, 160), population).value, 1, 0.1)
    ratios = (20.0, 40.0, 80.0, 160.0)
    truth = float(PopulationFlow(width=10, times=2.0, **SINGLE_INDEX).theory().overlap)
    sampled = [
        abs(float(single_index(10, sample_ratio=r, times=20.0 / r, solver_steps=160).theory().overlap) - truth)
        for r in ratios
    ]
    check.near("m = 10: exponent in n/d of the gap to the population flow", log_slope(ratios, sampled).value, -1, 0.1)
    check.agree(
        "one-pass descent of growing networks, m and d together:",
        MeanFieldSingleIndex,
        seeds=10 if check.quick else 40,
        together=True,
    )
    for m, gap in zip(widths, finite, strict=True):
        check.show(f"gap at m = {m}", gap)
    for m, x in zip(widths[1:], local[1:], strict=False):
        check.show(f"local exponent from m = {m}", float(x))
    check.show("change of the extrapolated exponent", float(limit - 2 * local[-2] + local[-3]))
    for r, gap in zip(ratios, sampled, strict=True):
        check.show(f"m = 10: gap to the population flow at n/d = {r:g}", gap)


@claim("D18", AREA, MeanFieldSingleIndex, TwoLayerDynamics, items=("D-24",))
def feature_learning_time_scale(check: Check) -> None:
    """Up to times that grow like a power of log m and log(n/d), second layer and overlaps differ from the mean-field equations by at most
    order max(1/m, 1/d, d/n)^(1/2).

    Measured: the largest sum of both distances over all times up to T, for T fixed and for T = 2 log(m/2)^(1/3), with n = m d / 2. The
    largest distance falls like 1/m. Trained tanh networks follow with m, d and n/d that grow together.
    """
    widths = (20, 40, 80, 160) if check.quick else (20, 40, 80, 160, 320)
    for end in (1.0, 4.0, None):
        gaps = [mean_field_gap(m, 2 * math.log(m / 2) ** (1 / 3) if end is None else end) for m in widths]
        local = -np.diff(np.log(gaps)) / np.log(2)
        span = "T = 2 log(m/2)^(1/3)" if end is None else f"T = {end:g}"
        check.above(f"largest distance up to {span}: least local exponent in 1/m", smallest(local), 0.5)
        if end is not None:
            last, before = (2 * local[k] - local[k - 1] for k in (-1, -2))  # local exponents approach their limit like 1/m
            check.near(
                f"largest distance up to {span}: exponent in 1/m, extrapolated", float((4 * last - before) / 3), 1, 0.06
            )
        check.show(f"largest distance up to {span}, m = {widths[-1]}", gaps[-1])
    sizes, draws = ((8, 16), 4) if check.quick else ((6, 12, 24, 48), 6)
    rows = np.array([[network_distance(m, seed) for seed in range(draws)] for m in sizes])
    means, errors = rows.mean(axis=1), rows.std(axis=1, ddof=1) / math.sqrt(draws)
    exponent = -log_slope(sizes, means).value
    error = math.sqrt(float(np.sum((errors / means) ** 2))) / math.log(sizes[-1] / sizes[0])
    check.above(
        "tanh networks, n/d = m, d = 2m: exponent of the largest distance, plus 4 standard errors", exponent + 4 * error, 0.5
    )
    check.below("tanh networks: largest distance at the last m", float(means[-1]), 0.25 if check.quick else 0.1)
    check.show("tanh networks: exponent of the largest distance", exponent)
    for m, mean in zip(sizes, means, strict=True):
        check.show(f"tanh networks: largest distance at m = {m}", float(mean))


def mean_field_gap(width: int, end: float) -> float:
    """Return the largest distance |a - a_mf| + |v - v_mf| up to the population time `end` for n = m d / 2."""
    times = np.linspace(0, end, 41)
    finite = single_index(width, times=tuple(2 * times), solver_steps=240).theory()
    limit = MeanFieldSingleIndex(times=tuple(times), **SINGLE_INDEX).theory()
    distance = np.abs(finite.second_layer.values - limit.second_layer.values) + np.abs(
        finite.overlap.values - limit.overlap.values
    )
    return float(distance.max())


def network_distance(width: int, seed: int) -> float:
    """Return the largest mean distance of the neurons (a_i, v_i) of a tanh network from the mean-field path, n/d = m, d = 2m."""
    from limitlab.laws.dmft._finite import training

    times = np.linspace(0, 2 * math.log(width) ** (1 / 3), 9)[1:]
    law = tanh_network(width=width, sample_ratio=width, times=tuple(times))
    data, direction, w, a = law.training_set(law.draw(2 * width, seed))
    track = training.gradient_flow(data, w, a, times, law.step)
    shared = dict(start_second_layer=law.start_second_layer, start_overlap=law.start_overlap, noise=law.noise)
    limit = MeanFieldSingleIndex(
        activation="tanh", target_function=law.target_function, times=tuple(times), **shared
    ).theory()
    distances = [
        np.mean(np.abs(track.a[k] - limit.second_layer.values[k]) + np.abs(track.w[k] @ direction - limit.overlap.values[k]))
        for k in range(len(times))
    ]
    return float(max(distances))


STAIRS = (((1, 0), 1.0), ((1, 1), 1.0))
"""The target u_1 + u_1 u_2, whose second direction can be learned only after the first."""


HERMITE = (0.0, 0.7, 0.5, 0.3)


@claim("D11", AREA_DMFT, MultiIndexFlow, figure="multi-index", items=("D-9",))
def several_directions(check: Check) -> None:
    """For targets of k directions wide networks follow mean-field particles with overlaps in R^k, with a gap that falls with the width.

    Compared for k = 2: particles with the exact population flow of networks with as many neurons as dimensions, and with one-pass SGD.
    """
    sizes = (20, 40, 80, 160) if check.quick else (20, 80, 160, 320)
    gaps = {size: particle_gap(size, size) for size in sizes}
    check.below("mean gap of a and v at time 8, 80 neurons in 80 dimensions", gaps[80], 0.08)
    check.above(
        "exponent with which the gap falls, as many neurons as dimensions", -log_slope(sizes, list(gaps.values())).value, 0.7
    )
    law, start = started(40)
    times = (1.0, 2.0, 4.0)
    seen = law.replace(times=times)
    a, w = start(np.random.default_rng(1), 100)
    flow, sgd = sgd_risks(a, w, times, 0.3)
    check.below(
        "largest gap of the test error between one-pass SGD and the flow of the same network",
        largest(np.abs(sgd - flow)),
        0.04,
    )
    limit = seen.theory().test_error.values
    check.below(
        "largest gap of the test error between the flow and the particles, 40 neurons", largest(np.abs(flow - limit)), 0.03
    )
    staircase = law.replace(times=(1.0, 2.0)).theory().overlap.mean("particle").values
    check.above(
        "mean overlap with the second direction at time 2 minus that at time 1",
        float(staircase[1, 1] - staircase[0, 1]),
        0.05,
    )
    still = MultiIndexFlow(second_layer=(1.0,), overlaps=((0.0, 0.0),), target=STAIRS[1:], hermite=HERMITE, times=(4.0,))
    check.below(
        "overlaps at time 4 with the target u_1 u_2 from overlap 0: a saddle",
        float(np.abs(still.theory().overlap).max()),
        1e-12,
    )
    if not check.quick:
        check.below("mean gap of a and v at time 8, 320 neurons in 320 dimensions", gaps[320], 0.02)
    for size, gap in gaps.items():
        check.show(f"mean gap at m = d = {size}", gap)


def started(neurons: int) -> tuple[MultiIndexFlow, Callable[[np.random.Generator, int], tuple[Array, Array]]]:
    """Return particles with a = 1 + 0.2 g, v = (0.3, 0) + 0.1 g, and a function that draws networks with this start."""
    rng = np.random.default_rng(neurons)
    a, v = 1 + 0.2 * rng.standard_normal(neurons), np.array([0.3, 0.0]) + 0.1 * rng.standard_normal((neurons, 2))
    law = MultiIndexFlow(
        hermite=HERMITE,
        target=STAIRS,
        second_layer=tuple(map(float, a)),
        overlaps=tuple((float(x), float(y)) for x, y in v),
        times=(8.0,),
    )
    return law, lambda draw, dimension: (a, random_weights(draw, v, dimension))


def particle_gap(neurons: int, dimension: int) -> float:
    """Return the mean over neurons of |a - a_mf| + |v - v_mf| at time 8.

    The pair (a, v) follows the population flow of a network, and (a_mf, v_mf) the particles of the mean-field limit.
    """
    law, start = started(neurons)
    a, w = population_flow(HERMITE, STAIRS, *start(np.random.default_rng(0), dimension), times=[8.0], step=0.1)[0]
    limit = law.theory()
    apart = np.linalg.norm(w[:, :2] - limit.overlap.values[0], axis=1)
    return float(np.mean(np.abs(a - limit.second_layer.values[0]) + apart))


def sgd_risks(a: Array, w: Array, times: tuple[float, ...], noise: float) -> tuple[Array, Array]:
    """Return the test errors (without noise) of the population flow and of one-pass SGD from the same start."""
    flow = population_flow(HERMITE, STAIRS, a, w, times)
    sgd = one_pass_sgd(np.random.default_rng(2), HERMITE, STAIRS, a, w, noise, times, 5e-4, 8)
    return tuple(np.array([network_risk(HERMITE, STAIRS, *state) for state in track]) for track in (flow, sgd))  # type: ignore[return-value]
