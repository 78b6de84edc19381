"""Claims about learning and overfitting of two-layer networks (D6 to D8, D17, D20, D21)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from limitlab._core.draws import mean_and_error
from limitlab.lab.check import Check, largest, log_slope, smallest, words
from limitlab.lab.claims import claim
from limitlab.laws.dmft.examples import SINGLE_INDEX, single_index, steep_tanh, tanh_network
from limitlab.laws.dmft.population import MeanFieldSingleIndex, PopulationFlow
from limitlab.laws.dmft.two_layer import TwoLayerDynamics
from limitlab.models.activations import Activation

Array = NDArray[np.float64]

AREA = "Two-layer dynamics"


class Best(NamedTuple):
    """State of a trajectory at its least test error, and the test error at the end."""

    time: float
    test_error: float
    overlap: float
    final_test_error: float


def least_test_error(law: TwoLayerDynamics, end: float) -> Best:
    """Return the state at the least test error up to a time, on a grid that resolves the fastest mode."""
    steps = max(law.solver_steps, int(np.ceil(8 * end * max(1.0, law.fastest_rate()))))
    times = np.concatenate([[0.0], np.geomspace(8 * end / steps, end, 400)])
    path = law.replace(times=tuple(times), solver_steps=steps).theory()
    best = int(np.argmin(path.test_error.values))
    return Best(times[best], float(path.test_error[best]), float(path.overlap[best]), float(path.test_error[-1]))


def half_time(law: TwoLayerDynamics, scale: float) -> float:
    """Return the time at which the train error has fallen to half of its start, for a second layer of a large scale."""
    times = np.geomspace(0.01, 4, 200) * law.width / scale**2
    steps = max(law.solver_steps, int(np.ceil(8 * times[-1] * law.replace(start_second_layer=scale).fastest_rate())))
    track = (
        law.replace(start_second_layer=scale, times=(0.0, *map(float, times)), solver_steps=steps)
        .theory()
        .train_error.values
    )
    share = np.log(track[1:] / track[0])
    below = int(np.argmax(share < np.log(0.5)))
    part = (np.log(0.5) - share[below - 1]) / (share[below] - share[below - 1])
    return float(np.exp(np.log(times[below - 1]) + part * np.log(times[below] / times[below - 1])))


EARLY = (10, 20, 40, 80, 160)
"""Widths at which test and train error are compared at t = 2."""


@claim("D6", AREA, TwoLayerDynamics, figure="two-layer-timeline", items=("L-15", "L-20", "D-20", "D-25", "D-26"))
def timeline(check: Check) -> None:
    """If the target depends on a single direction, the network learns this direction at t = O(1), with equal test and train error.
    At t = O(m) it overfits, and the overlap v of the weights falls again and vanishes like m^-1/2. The overlap a v of the output with
    the direction does not vanish.

    Measured: learning at t = O(1), where the inner product of two neurons is that of their projections on the direction up to order
    1/m, and overfitting and unlearning at t = O(m). The local exponents of v(4m) in m are extrapolated to
    m -> infinity. At a fixed width v does not vanish as t grows.
    """
    widths = (10, 20) if check.quick else (10, 20, 40)
    best = [least_test_error(single_index(m, solver_steps=320), end=20.0) for m in widths]
    late = [
        single_index(m, times=(2.0, float(m), 4.0 * m), solver_steps=16 * m + 240).theory()
        for m in (*widths, 2 * widths[-1])
    ]
    check_unlearning(check, [*widths, 2 * widths[-1]], late)
    late = late[: len(widths)]
    at_m = [float(path.train_error[1]) for path in late]
    early = [single_index(m, times=2.0, solver_steps=160).theory() for m in EARLY]
    apart = [float(path.test_error - path.train_error) for path in early]
    local = np.diff(np.log(apart)) / np.log(2)
    exponent = float(2 * local[-1] - local[-2])  # local exponents approach their limit like 1/m
    check.near("exponent in m of test minus train error at t = 2, extrapolated to m -> infinity", exponent, -1, 0.02)
    check.show("change of the extrapolated exponent", float(exponent - 2 * local[-2] + local[-3]))
    check_products(check, early, late)
    train, test, overlap = ([float(path[name][2]) for path in late] for name in ("train_error", "test_error", "overlap"))
    for k, m in enumerate(widths):
        check.show(f"m = {m}: time of the least test error", best[k].time)
        check.show(f"m = {m}: least test error", best[k].test_error)
        check.show(f"m = {m}: overlap there", best[k].overlap)
        check.show(f"m = {m}: overlap at t = 4m", overlap[k])
        check.show(f"m = {m}: train error at t = m", at_m[k])
        check.show(f"m = {m}: train error at t = 4m", train[k])
        check.show(f"m = {m}: test error at t = 4m", test[k])
    for m, gap in zip(EARLY, apart, strict=True):
        check.show(f"m = {m}: test minus train error at t = 2", gap)
    unlearned = [end / there.overlap for end, there in zip(overlap, best, strict=True)]
    overfit = [end / there.test_error for end, there in zip(test, best, strict=True)]
    check.above(
        "smallest overlap at the least test error, from 0.1 at the start", smallest(there.overlap for there in best), 0.4
    )
    check.below("latest time of the least test error", largest(there.time for there in best), 10)
    check.below("largest overlap at t = 4m over that at the least test error", largest(unlearned), 0.95)
    check.below("largest train error at t = 4m", largest(train), 0.02)
    check.above("smallest test error at t = 4m over its least value", smallest(overfit), 1.05)
    check.below("largest over smallest train error at t = m", largest(at_m) / smallest(at_m), 1.1)


def check_products(check: Check, early: Sequence[xr.Dataset], late: Sequence[xr.Dataset]) -> None:
    """Check that the inner product of two neurons is that of their projections on the direction at t = 2, and not at t = 4m."""
    apart = [abs(float(path.correlation - path.overlap**2)) for path in early]
    local = np.diff(np.log(apart)) / np.log(2)
    last, before = (2 * local[k] - local[k - 1] for k in (-1, -2))  # local exponents approach their limit like 1/m
    exponent = float((4 * last - before) / 3)  # and their next term like 1/m^2
    check.near("exponent in m of <w_i, w_j> - <v_i, v_j> at t = 2, extrapolated to m -> infinity", exponent, -1, 0.05)
    ratios = [float(path.overlap[2] ** 2 / path.correlation[2]) for path in late]
    for m, gap in zip(EARLY, apart, strict=True):
        check.show(f"m = {m}: distance of <w_i, w_j> from <v_i, v_j> at t = 2", gap)
    for m, ratio in zip((10, 20, 40), ratios, strict=False):
        check.show(f"m = {m}: <v_i, v_j> over <w_i, w_j> at t = 4m", ratio)


def check_unlearning(check: Check, widths: Sequence[int], late: Sequence[xr.Dataset]) -> None:
    """Check how the overlap at t = 4m depends on the width m, and the overlap at t = 16m for ten neurons."""
    overlap, second = (np.array([float(path[name][2]) for path in late]) for name in ("overlap", "second_layer"))
    local, product = np.diff(np.log(overlap)) / np.log(2), overlap * second
    check.below("unlearning: largest change of the local exponent of v(4m) in m", largest(np.diff(local)), 0)
    check.below("unlearning: last local exponent of v(4m) in m", float(local[-1]), -0.3 if check.quick else -0.4)
    check.near("unlearning: exponent of v(4m), extrapolated to m -> infinity", float(2 * local[-1] - local[-2]), -0.5, 0.06)
    share = 0.1 if check.quick else 0.05
    check.near_relative(
        "unlearning: a v at t = 4m at the last width over that at half of it", product[-1] / product[-2], 1, share
    )
    longer = single_index(10, times=(40.0, 160.0), solver_steps=1200).theory().overlap.values
    check.above("ten neurons: overlap at t = 16m over that at t = 4m", float(longer[1] / longer[0]), 0.9)
    for m, v, both in zip(widths, overlap, product, strict=True):
        check.show(f"m = {m}: a v at t = 4m", float(both))
        check.show(f"m = {m}: v at t = 4m", float(v))
    for m, exponent in zip(widths, local, strict=False):
        check.show(f"local exponent of v(4m) from m = {m}", float(exponent))


@claim("D7", AREA, TwoLayerDynamics, figure="two-layer-networks", items=("D-21", "D-25"))
def networks(check: Check) -> None:
    """The dynamical mean-field curves match gradient descent and SGD of real two-layer networks.

    Compared with real tanh networks that are trained by gradient flow and by stochastic descent, until the neurons have become similar and
    begin to differ again. The full check also trains ten neurons on few samples up to t = 16m, when they overfit and unlearn. Their test
    error and second layer agree with the equations. Their overlap falls too, but it remains above that of the Gaussian model.
    """
    size, seeds = (120, 12) if check.quick else (400, 12)
    law = tanh_network(times=(1.0, 3.0, 10.0), solver_steps=200)
    theory = law.theory()
    for model, how in (("network", "gradient flow"), ("sgd", "stochastic descent")):
        runs, beyond = law.replace(experiment_model=model).simulate_batch(size, range(seeds)), []
        for name in ("train_error", "test_error", "second_layer", "overlap", "correlation"):
            error = runs[name].std("seed", ddof=1) / np.sqrt(seeds) / np.abs(theory[name])
            gap = (runs[name].mean("seed") - theory[name]) / np.abs(theory[name])
            check.show(f"{how}: relative gap of the {words(name)}", float(gap[np.argmax(np.abs(gap.values))]))
            beyond.append(float((np.abs(gap) - 4 * error).max()))
        check.below(f"{how}: largest relative gap beyond 4 standard errors, m = 8", largest(beyond), 0.02)
        if not check.quick:
            late_networks(check, model, how)
    check.note(
        "The equations are those of the Gaussian model. The gap of a real network does not vanish with d, but shrinks with the width."
    )


def late_networks(check: Check, model: str, how: str) -> None:
    """Compare ten tanh neurons in 100 dimensions with the equations at t = m/2, 4m and 16m, when they overfit and unlearn."""
    law = tanh_network(width=10, sample_ratio=5, times=(5.0, 40.0, 160.0), solver_steps=1200)
    theory, draws = law.theory(), 8
    runs = law.replace(experiment_model=model).simulate_batch(100, range(draws))
    beyond = []
    for name in ("test_error", "second_layer", "overlap"):
        mean, error = mean_and_error(runs[name].values)
        gap = np.abs(mean / theory[name].values - 1)
        check.show(f"{how}, ten neurons: relative gap of the {words(name)} at t = 16m", float(gap[2]))
        if name != "overlap":
            beyond.append(float((gap - 4 * error / theory[name].values).max()))
    check.below(
        f"{how}, ten neurons up to t = 16m: largest relative gap of test error and second layer beyond 4 standard errors",
        largest(beyond),
        0.02,
    )
    for name, rises in (("test_error", True), ("overlap", False)):
        ratio = (runs[name][:, 2] / runs[name][:, 1 if rises else 0]).values
        middle, spread = (float(part) for part in mean_and_error(ratio))
        case = f"{how}, ten neurons: {words(name)} at t = 16m over that at t = {'4m' if rises else 'm/2'}"
        if rises:
            check.above(f"{case}, minus 4 standard errors", middle - 4 * spread, 1)
        else:
            check.below(f"{case}, plus 4 standard errors", middle + 4 * spread, 0.85)
        check.show(case, middle)


@claim("D8", AREA, TwoLayerDynamics, figure="two-layer-stopping", items=("L-15", "D-1", "D-2"))
def scale_of_the_start(check: Check) -> None:
    """A start with a second layer of order one and early stopping has the smallest test error. A network with a large second layer at
    the start (lazy training) overfits.

    Measured: early stopping from small and large second layers. A lazy network moves along its tangent kernel, whose rates are proportional
    to the square of the scale. The check measures this exponent at large scales, in the time in which the train error halves.
    """
    m = 10 if check.quick else 20
    scales = (0.5, 1.0, 2.0, 4.0)
    # a march as short as in the quick check needs no thinning
    start = single_index(m, solver_steps=640, memory_points=0 if check.quick else None)
    trajectories = [least_test_error(start.replace(start_second_layer=scale), 3.0 * m) for scale in scales]
    best = [state.test_error for state in trajectories]
    for scale, state in zip(scales, trajectories, strict=True):
        check.show(f"scale {scale:g}: least test error", state.test_error)
        check.show(f"scale {scale:g}: time of the least test error", state.time)
        check.show(f"scale {scale:g}: test error at t = {3 * m}", state.final_test_error)
    cost = [state.final_test_error / state.test_error for state in trajectories[:2]]
    large = (32.0, 64.0, 128.0)
    local = np.diff(np.log([half_time(start, scale) for scale in large])) / np.log(2)
    check.near(
        "lazy: exponent in the scale of the time in which the train error halves, extrapolated",
        float(2 * local[1] - local[0]),
        -2,
        0.01,
    )
    check.show("lazy: the same exponent from scale 64 to 128", float(local[1]))
    feature, lazy = (centred_networks(scale, 4 if check.quick else 12) for scale in (1.0, LAZY))
    check.above(f"tanh networks, lazy (scale {LAZY:g}): last over least test error", lazy[-1] / lazy.min(), 1.08)
    check.below(f"tanh networks: least test error of scale 1 over that of scale {LAZY:g}", feature.min() / lazy.min(), 0.95)
    check.below("least test error of scales 1/2 and 1 over that of scale 4", smallest(best[:2]) / best[3], 0.9)
    check.above("least test error of scale 2 over that of scale 1", best[2] / best[1], 1)
    check.above("least test error of scale 4 over that of scale 2", best[3] / best[2], 1)
    check.above("smallest cost of training on from scales 1/2 and 1, test errors' ratio", smallest(cost), 1.03)
    check.show("networks without their start's output, scale 1: least test error", float(feature.min()))
    check.show(f"networks without their start's output, scale {LAZY:g}: least test error", float(lazy.min()))
    check.show(f"networks without their start's output, scale {LAZY:g}: last test error", float(lazy[-1]))
    check.note(
        "A large second layer also starts with a large random output, which alone would increase the error. This output is therefore "
        "added to the labels of the networks, so that only the effect of laziness remains."
    )


LAZY = 10.0
"""Second layer at the start of a lazy network."""


def centred_networks(scale: float, draws: int) -> Array:
    """Return the mean test error over growing times of ten tanh neurons without the output at the start (d = 60, n = 5 d, noise 1/2)."""
    from limitlab.laws.dmft._finite import training
    from limitlab.laws.dmft._finite import training as samples

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


@claim("D17", AREA, TwoLayerDynamics, items=("L-15",))
def tangent_kernel(check: Check) -> None:
    """A network with a large second layer is kernel regression with its tangent kernel. A network that starts with a second layer of
    order one is not equal to kernel regression at t = O(m) and n proportional to m d, although its kernel keeps its shape.

    Measured for tanh networks in 45 dimensions, on new inputs: the distance of the outputs from gradient flow with the tangent kernel of an
    earlier time, over their change since that time. From a large second layer a (and without the output at the start) this distance falls
    like 1/a. Between t = m and 4m it does not fall with m. There the kernel grows like a^2, with an almost constant shape, and the weights
    continue to turn: by the two-time equations C_d(4m, m) falls with m.
    """
    scales, draws = (8.0, 16.0, 32.0), 2 if check.quick else 6
    lazy = [
        np.mean([tangent_distances(10, seed, 0.0, 10 / scale**2, scale) for seed in range(draws)], axis=0)
        for scale in scales
    ]
    check.near(
        "large second layer: exponent in its size of the distance from kernel regression",
        log_slope(scales, [row[0] for row in lazy]).value,
        -1,
        0.05,
    )
    widths = (5, 10, 20) if check.quick else (5, 10, 20, 40)
    late = [np.mean([tangent_distances(m, seed, m, 4.0 * m, 1.0) for seed in range(3)], axis=0) for m in widths]
    check.above("t = m to 4m: smallest distance from kernel regression", smallest(row[0] for row in late), 0.2)
    check.above("t = m to 4m: exponent in m of this distance", log_slope(widths, [row[0] for row in late]).value, 0)
    check.below("t = m to 4m: largest change of the shape of the kernel", largest(row[1] for row in late), 0.06)
    check.above("t = m to 4m: smallest growth of the kernel", smallest(row[2] for row in late), 1.4)
    turned = [
        float(single_index(m, times=4.0 * m, earlier=float(m), solver_steps=16 * m + 240).theory().same_neuron_correlation)
        for m in ((10, 20) if check.quick else (10, 20, 40))
    ]
    check.below("largest change of C_d(4m, m) when m is doubled", largest(np.diff(turned)), -0.02)
    for scale, row in zip(scales, lazy, strict=True):
        check.show(f"second layer {scale:g}: distance from kernel regression", float(row[0]))
    for m, row in zip(widths, late, strict=True):
        check.show(f"m = {m}: distance from kernel regression", float(row[0]))
        check.show(f"m = {m}: change of the shape of the kernel", float(row[1]))
        check.show(f"m = {m}: growth of the kernel", float(row[2]))
    for m, value in zip((10, 20, 40), turned, strict=False):
        check.show(f"m = {m}: C_d(4m, m)", value)
    check.note(
        "The lecture calls the regime t = O(m) tangent-kernel learning. With n proportional to m d this holds for the shape of the kernel "
        "and not for the outputs: fitting m d / 2 noisy labels with m d weights of size one turns every neuron by an angle of order one."
    )


def tangent_distances(width: int, seed: int, first: float, last: float, scale: float) -> tuple[float, float, float]:
    """Return how a tanh network on n = m d / 2 samples differs from kernel regression with its tangent kernel at a first time.

    The numbers are the distance of the outputs on new inputs at the last time, over their change since the first time, one minus the cosine
    of the kernels of both times, and the ratio of their norms. From the time 0 the output of the start is added to the labels.
    """
    from limitlab.laws.dmft._finite import training

    d = 45
    rng = np.random.default_rng([seed, width])
    functions = training.network_functions(Activation("tanh"), Activation(steep_tanh))
    w, direction = training.exchangeable_weights(rng, d, width, 0.1, 0.01)
    a = np.full(width, scale)
    x, new = rng.standard_normal((width * d // 2, d)), rng.standard_normal((400, d))
    labels = steep_tanh(x @ direction) + 0.5 * rng.standard_normal(len(x))
    if first == 0:
        labels += training.tangent_features(functions, w, a, x)[0]
    data = training.network_on(functions, x, labels)
    track = training.gradient_flow(data, w, a, np.array([first, last]), 0.25 / max(1.0, scale**2 / 4))
    (output, features), (_, later) = (
        training.tangent_features(functions, *state, x) for state in zip(track.w, track.a, strict=True)
    )
    (start, test_features), (end, _) = (
        training.tangent_features(functions, *state, new) for state in zip(track.w, track.a, strict=True)
    )
    kernel, moved = features @ features.T, later @ later.T
    rates, modes = np.linalg.eigh(kernel)
    rates = np.maximum(rates, 1e-12 * rates[-1])
    weights = modes @ (-np.expm1(-rates * (last - first) / d) / rates * (modes.T @ (labels - output)))
    regression = start + test_features @ (features.T @ weights)
    norms = np.linalg.norm(kernel), np.linalg.norm(moved)
    return (
        float(np.linalg.norm(end - regression) / np.linalg.norm(end - start)),
        float(1 - np.sum(kernel * moved) / norms[0] / norms[1]),
        float(norms[1] / norms[0]),
    )


REALISABLE: dict[str, Any] = dict(
    kernel=(0, 0.5, 0.3, 0.2),
    target=(0, 0.5, 0.3, 0.2),
    target_norm=1.0,
    start_second_layer=1.0,
    start_overlap=0.1,
    noise=0.5,
)
"""A target that equals one neuron, so that the least test error of the class is the Bayes error tau^2."""


@claim("D20", AREA, TwoLayerDynamics, PopulationFlow, items=("L-14",))
def bayes_error(check: Check) -> None:
    """Feature learning converges to the Bayes error without overfitting as n/d grows, and learns the latent direction.

    The target is a neuron of the class. Measured along gradient flow, at the time of the least test error: the excess of the test error
    over tau^2, the overlap with the direction, and the distance of test and train error. The excess must fall like d/n, and the population
    flow must reach tau^2. Trained tanh networks follow.
    """
    ratios = (40, 160, 640) if check.quick else (40, 160, 640, 2560)
    stops = [best_stop(ratio, 400 if check.quick else 800) for ratio in ratios]
    excess = [stop.test_error - REALISABLE["noise"] ** 2 for stop in stops]
    check.near(
        "exponent in n/d of the least excess test error, last pair", log_slope(ratios[-2:], excess[-2:]).value, -1, 0.06
    )
    check.below("excess at the last n/d over that at the first", excess[-1] / excess[0], 0.1)
    check.above("overlap with the direction at the last n/d", stops[-1].overlap, 0.95)
    misses = [1 - stop.overlap for stop in stops]
    check.near("exponent in n/d of 1 - overlap, last pair", log_slope(ratios[-2:], misses[-2:]).value, -0.5, 0.04)
    times = (20.0, 80.0, 320.0)
    flow = PopulationFlow(width=10, times=times, **REALISABLE).theory()
    left = flow.test_error.values - REALISABLE["noise"] ** 2
    check.near("population flow: exponent in time of the excess, last pair", log_slope(times[1:], left[1:]).value, -2, 0.1)
    check.above("population flow: overlap at the last time", float(flow.overlap[-1]), 0.99)
    least = [drawn_excess(ratio, 3 if check.quick else 10) for ratio in (10, 40, 160)]
    for ratio, (value, error) in zip((10, 40, 160), least, strict=True):
        check.show(f"trained tanh networks, n/d = {ratio}: least excess test error", value)
        check.show(f"trained tanh networks, n/d = {ratio}: standard error", error)
    check.below(
        "trained tanh networks: least excess at n/d = 160 over that at n/d = 10, plus 4 standard errors",
        (least[2][0] + 4 * least[2][1]) / least[0][0], 0.25,
    )  # fmt: skip
    for ratio, stop, value in zip(ratios, stops, excess, strict=True):
        check.show(f"n/d = {ratio}: least excess test error", value)
        check.show(f"n/d = {ratio}: overlap there", stop.overlap)


def best_stop(ratio: float, steps: int) -> Best:
    """Return the least test error of ten neurons on n = `ratio` d samples of the realisable target, its time and overlap."""
    times = np.linspace(0.0, 2.2 * math.sqrt(ratio) * 10 / ratio, 261)  # the best population time grows like sqrt(n/d)
    law = TwoLayerDynamics(**REALISABLE, width=10, sample_ratio=ratio, times=tuple(times), solver_steps=steps)
    result = law.theory()
    at = int(np.argmin(result.test_error.values))
    error, overlap = result.test_error.values, result.overlap.values
    return Best(float(times[at]), float(error[at]), float(overlap[at]), float(error[-1]))


def drawn_excess(ratio: int, draws: int) -> tuple[float, float]:
    """Return mean and standard error of the least excess test error of four tanh neurons that learn tanh(u), d = 20."""
    times = np.linspace(0.0, 3.0 * math.sqrt(ratio) * 4 / ratio, 16)[1:]
    law = tanh_network(width=4, sample_ratio=ratio, target_function="tanh", times=tuple(times))
    runs = law.simulate_batch(20, range(draws)).test_error.values.min(axis=1) - law.noise**2
    mean, error = mean_and_error(runs)
    return float(mean), float(error)


@claim("D21", AREA, TwoLayerDynamics, MeanFieldSingleIndex, items=("D-4",))
def width_and_iterations(check: Check) -> None:
    """The test error depends on width m and time t through t alone at times of order 1, and through t/m at times of order m.

    Measured for three ratios alpha = n/(m d) and two targets: the distance of the test error at t = 2 from mean field, of order 1/m. The
    least test error over time falls with the width, at a time that stays bounded. The test error at t = 2m is higher and has a limit.
    """
    widths = (10, 20, 40) if check.quick else (10, 20, 40, 80)
    targets: dict[str, dict[str, Any]] = {
        "quadratic target": {},
        "target with a larger square": dict(target=(0, 0.3, 0.5), target_norm=1.2),
    }
    for name, target in targets.items():
        for alpha in (0.5,) if check.quick else (0.25, 0.5, 1.0):
            case = f"{name}, alpha = {alpha:g}"
            law = [single_index(m, sample_ratio=alpha * m, solver_steps=320, **target) for m in widths]
            limit = MeanFieldSingleIndex(**{**SINGLE_INDEX, **target, "times": 2.0 * alpha}).theory()
            gaps = [abs(float(one.replace(times=2.0).theory().test_error - limit.test_error)) for one in law]
            local = np.diff(np.log(gaps)) / np.log(2)
            check.near(
                f"{case}: exponent in m of the distance from mean field at t = 2, extrapolated",
                2 * float(local[-1]) - float(local[-2]), -1, 0.1,
            )  # fmt: skip
            best = [least_test_error(one, end=20.0 / alpha) for one in law]
            check.below(
                f"{case}: largest change of the least test error with the width",
                largest(np.diff([b.test_error for b in best])),
                0,
            )
            check.below(f"{case}: latest time of the least test error", largest(b.time for b in best), 8 / alpha)
            late = [
                float(one.replace(times=2.0 * m, solver_steps=24 * m + 240).theory().test_error)
                for one, m in zip(law, widths, strict=True)
            ]
            check.above(f"{case}: test error at t = 2m over the least one, last width", late[-1] / best[-1].test_error, 1.1)
            check.below(
                f"{case}: change of the test error at t = 2m at the last doubling of m", abs(late[-1] / late[-2] - 1), 0.08
            )
            check.show(f"{case}: test error at t = 2m, last width", late[-1])
            check.show(f"{case}: least test error, last width", best[-1].test_error)
