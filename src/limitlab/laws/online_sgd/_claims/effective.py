"""Claims about effective dynamics of summary statistics (J18 to J20, J34)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.check import SIGMAS, Check, largest, log_slope, slope, smallest
from limitlab.lab.claims import claim
from limitlab.laws.online_sgd._effective import EffectiveDynamics
from limitlab.laws.online_sgd.effective_flow import EffectiveFlow
from limitlab.laws.online_sgd.spiked_tensor import SpikedTensor, SpikedTensorDiffusion, velocity

Array = NDArray[np.float64]

AREA = "Online SGD"


PLACES = ((0.7, 0.6), (0.3, 0.9), (0.0, 0.7), (-0.5, 0.4), (0.6, 0.3))
"""Overlap m and residual q of the places at which coefficients are estimated."""


MATRIX_SNR, MATRIX_STEP, PHASE_STEP = 1.7, 0.8, 0.02


def statistics(x: Any) -> Any:
    """Return overlap and residual of weights, for JAX."""
    import jax.numpy as jnp

    return jnp.array([x[0], x @ x - x[0] ** 2])


def matrix_dynamics(of: Any = statistics) -> EffectiveDynamics:
    """Return the effective dynamics of the spiked matrix, from its loss."""
    import jax

    def loss(x: Any, noise: Any) -> Any:
        return (x @ x) ** 2 - 2 * (MATRIX_SNR * x[0] ** 2 + x @ noise @ x)

    def matrices(key: Any, count: int, n: int) -> Any:
        return jax.random.normal(key, (count, n, n))

    return EffectiveDynamics(loss, of, matrices, MATRIX_STEP)


def phase_dynamics() -> EffectiveDynamics:
    """Return the effective dynamics of phase retrieval, from its loss."""
    import jax

    def loss(x: Any, a: Any) -> Any:
        return (a[0] ** 2 - (a @ x) ** 2) ** 2

    def vectors(key: Any, count: int, n: int) -> Any:
        return jax.random.normal(key, (count, n))

    return EffectiveDynamics(loss, statistics, vectors, PHASE_STEP)


def placed(u: Any, size: int) -> Array:
    """Return weights with the given overlap and squared orthogonal length."""
    x = np.zeros(size)
    x[:2] = u[0], math.sqrt(u[1])
    return x


def matrix_coefficients(m: float, q: float) -> tuple[Array, Array]:
    """Return population drift and corrector of the spiked matrix, -f and g, whose sum is the right side of the flow."""
    total, flow = (np.array(velocity(2, MATRIX_SNR, step, m, q), dtype=float) for step in (MATRIX_STEP, 0.0))
    return flow, total - flow


def phase_coefficients(m: float, q: float) -> tuple[Array, Array]:
    """Return population drift and corrector of phase retrieval."""
    square = m * m + q
    sixth = 3 * square + 12 * m**2 - 6 * square**2 - 24 * m**2 * square + 15 * square**3  # E w^2 (w^2 - z^2)^2
    return np.array([12 * m * (1 - square), 8 * q * (1 - 3 * square)]), np.array([0.0, 16 * PHASE_STEP * sixth])


def at_infinity(sizes: Sequence[int], values: Array, errors: Array) -> tuple[Array, Array]:
    """Return the limits A of fits A + B/N to values with standard errors (one row per size), and their standard errors.

    >>> limit, error = at_infinity((10, 20), np.array([[1.2], [1.1]]), np.array([[0.1], [0.1]]))
    >>> limit.round(9).tolist(), error.round(3).tolist()
    ([1.0], [0.224])
    """
    floor = np.maximum(errors, 1e-12)
    weight, x = floor**-2, 1 / np.asarray(sizes, dtype=float)[:, None]
    total, first, second = weight.sum(axis=0), (weight * x).sum(axis=0), (weight * x**2).sum(axis=0)
    determinant = total * second - first**2
    limit = (second * (weight * values).sum(axis=0) - first * (weight * x * values).sum(axis=0)) / determinant
    return limit, np.sqrt(second / determinant)


def coefficient_gaps(dynamics: EffectiveDynamics, exact: Any, counts: dict[int, int], places: int) -> tuple[Array, Array]:
    """Return distances of estimated population drifts and correctors from the limits, in standard errors, and relative correctors.

    The population drift does not depend on N, so it is averaged over the sizes. The corrector is extrapolated in 1/N.
    """
    z, ratios = [], []
    for place in PLACES[:places]:
        flow, corrector = exact(*place)
        parts = [dynamics.at(placed(place, size), samples, seed=size) for size, samples in counts.items()]
        drifts, errors = (np.array([getattr(part, name) for part in parts]) for name in DRIFT)
        weight = errors**-2.0
        mean = (weight * drifts).sum(axis=0) / weight.sum(axis=0)
        z.append(float(np.max(np.abs(-mean - flow) * np.sqrt(weight.sum(axis=0)))))
        values, errors = (np.array([getattr(part, name)[1:] for part in parts]) for name in CORRECTOR)
        limit, error = at_infinity(list(counts), values, errors)
        z.append(float(abs(limit[0] - corrector[1]) / error[0]))
        ratios.append((float(limit[0] / corrector[1]), float(error[0] / corrector[1])))
    return np.array(z), np.array(ratios)


DRIFT, CORRECTOR = ("population_drift", "population_drift_error"), ("corrector", "corrector_error")


def pooled(ratios: Array) -> tuple[float, float]:
    """Return the weighted mean of ratios (rows of value and standard error), and its standard error."""
    weight = ratios[:, 1] ** -2.0
    return float(weight @ ratios[:, 0] / weight.sum()), float(weight.sum() ** -0.5)


def phase_paths(rng: np.random.Generator, size: int, start: Array, times: Array, runs: int) -> Array:
    """Return overlap and squared orthogonal length of SGD on phase retrieval with full vectors, shape (runs, times, 2)."""
    x = np.tile(placed(start, size), (runs, 1))
    rows, done = [], 0
    for mark in np.round(times * size / PHASE_STEP).astype(int):
        while done < mark:
            a = rng.standard_normal((runs, size))
            w = (a * x).sum(axis=1)
            x -= (PHASE_STEP / size * 4 * (w**2 - a[:, 0] ** 2) * w)[:, None] * a
            done += 1
        rows.append(np.stack([x[:, 0], (x**2).sum(axis=1) - x[:, 0] ** 2], axis=1))
    return np.stack(rows, axis=1)


@claim("J18", AREA, SpikedTensor, EffectiveFlow, quick_decides=False, items=("J-38", "J-39"))
def effective_dynamics(check: Check) -> None:
    """Summary statistics of online SGD follow an ODE or SDE with population drift, corrector and volatility.

    The check estimates the coefficients of the spiked matrix and of phase retrieval at several places and dimensions, extrapolates the
    corrector in 1/N, and compares with the closed forms. Paths of SGD on phase retrieval are compared with the equation that the
    construction integrates. The overlap alone does not close.
    """
    matrix, phase = matrix_dynamics(), phase_dynamics()
    matrix_counts = {20: 1000, 80: 300} if check.quick else {25: 20_000, 100: 1000, 400: 100}
    phase_counts = {20: 3000, 80: 3000} if check.quick else {25: 200_000, 100: 100_000, 400: 40_000}
    places = 2 if check.quick else 5
    for name, dynamics, exact, counts in (
        ("spiked matrix", matrix, matrix_coefficients, matrix_counts),
        ("phase retrieval", phase, phase_coefficients, phase_counts),
    ):
        z, ratios = coefficient_gaps(dynamics, exact, counts, places)
        check.below(f"{name}: largest z of population drift and corrector over {places} places", largest(z), 4.0)
        mean, error = pooled(ratios)
        check.near(f"{name}: corrector over its closed form, mean over the places", mean, 1.0, 4 * error)
        check.show(f"{name}: standard error of this ratio", error)
    flow = EffectiveFlow(
        problem="linear", step=0.1, start_statistics=(0.2, 0.5), times=(0.5, 1.0), samples=500 if check.quick else 4000
    )
    path, exact_overlap = flow.theory().statistics, 1 - 0.8 * np.exp(-2 * np.array([0.5, 1.0]))
    gap = float(np.abs(path.values[:, 0] - exact_overlap).max())
    check.below(
        "gap of the path of the linear loss to 1 - (1 - m) exp(-2 t), over its stated error", gap / path.numerical_error, 1.0
    )
    check.below("stated error of this path", float(path.numerical_error), 0.1)
    ends = list(matrix_counts)[:2]
    orders = [float(matrix.at(placed((0.7, 0.6), n), matrix_counts[n]).volatility.max()) for n in ends]
    check.near("exponent in N of the volatility of statistics of order 1", log_slope(ends, orders).value, -1.0, 0.15)
    size, samples = (40, 600) if check.quick else (100, 4000)
    rescaled = matrix_dynamics(lambda x: math.sqrt(size) * x[:1]).at(placed((0.0, 0.6), size), samples)
    spread = float(rescaled.volatility[0, 0])
    z_spread = abs(spread - 8 * MATRIX_STEP * 0.6) / float(rescaled.volatility_error[0, 0])
    check.below("z of the volatility 8 c q of sqrt(N) m at m = 0", z_spread, 4.0)
    check.above("that volatility in its own standard errors", spread / float(rescaled.volatility_error[0, 0]), 10)
    verdict = matrix_dynamics(lambda x: x[:1]).closure([placed((0.7, 0.6), size), placed((0.7, 1.4), size)], samples)
    check.true("the overlap alone is flagged as not closed", not verdict.closes)
    if not check.quick:
        check_phase_paths(check, phase)
    check.show("volatility of sqrt(N) m at m = 0", spread)
    check.show("largest z between drifts at one overlap", verdict.largest_z)


def check_phase_paths(check: Check, phase: EffectiveDynamics) -> None:
    """Compare mean paths of SGD with the integrated construction at the same dimension, and extrapolate the gap in 1/N."""
    start, times = np.array([0.5, 0.3]), np.array([0.05, 0.1, 0.2])
    gaps, errors = [], []
    counts = {50: 600, 100: 300, 200: 150}
    for size, runs in counts.items():
        paths = phase_paths(np.random.default_rng([18, size]), size, start, times, runs)
        flows = np.array(
            [phase.flow(partial(placed, size=size), start, tuple(times), 8000, 2, seed=seed) for seed in range(6)]
        )
        gaps.append((paths.mean(axis=0) - flows.mean(axis=0)).ravel())
        errors.append(
            np.hypot(paths.std(axis=0, ddof=1) / math.sqrt(runs), flows.std(axis=0, ddof=1) / math.sqrt(6)).ravel()
        )
    limit, error = at_infinity(list(counts), np.array(gaps), np.array(errors))
    check.below(
        "phase retrieval: largest z of the path of SGD against the integrated construction",
        largest(np.abs(limit) / error),
        4.0,
    )
    moved = np.abs(paths[:, -1].mean(axis=0) - start)
    check.below(
        "phase retrieval: largest standard error of this gap over the distance that the path moves",
        largest(error[-2:] / moved),
        0.1,
    )
    check.show(
        "phase retrieval: overlap and residual of SGD at the end", ", ".join(f"{x:.4f}" for x in paths[:, -1].mean(axis=0))
    )


@claim("J19", AREA, SpikedTensor, figure="spiked-matrix-phases", quick_decides=False, items=("J-38", "J-39", "J-41"))
def spiked_flow(check: Check) -> None:
    """Spiked tensor PCA at the critical step follows an ODE whose fixed points depend on the signal strength.

    The check compares trajectories at N = 2000 with the flow, and tests the fixed points and their stability.
    """
    size, runs = 2000, 10 if check.quick else 60
    times, z = np.array([0.2, 0.6, 1.2]), []
    for snr in (0.5, 1.0, 2.0):
        law = SpikedTensor(order=2, snr=snr, start_overlap=0.5, times=tuple(times))
        tracks = np.stack([law.run(law.draw(size, seed), times) for seed in range(runs)])
        theory = np.stack([law.theory().overlap.values, law.theory().residual.values], axis=1)
        error = tracks.std(axis=0, ddof=1) / math.sqrt(runs)
        z.append(float(np.max(np.abs(tracks.mean(axis=0) - theory) / (error + 3 / size))))
        check.show(f"mean overlap at lambda = {snr:g}, t = 1.2", float(tracks[:, -1, 0].mean()))
    check.below("largest z of mean overlap and residual at N = 2000 (standard errors plus 3/N)", largest(z), SIGMAS)
    tensor = SpikedTensor(order=3, snr=6.0, step=0.5, times=(0.75,), start_residual=0.5)
    low, high = (point.overlap for point in tensor.fixed_points() if point.overlap > 0)
    ends = []  # at t = 0.5 one run in four has not converged yet; after t = 1 noise increases the lower overlaps
    for factor in (0.5, 2.0):
        start = tensor.replace(start_overlap=factor * low)
        ends.append(float(start.run(start.draw(8000, 1), np.array([0.75]))[-1, 0]))
    kinds = [" ".join(point.kind for point in SpikedTensor(order=2, snr=snr).fixed_points()) for snr in (0.5, 1.0, 2.0)]
    check.equal("points of rest at lambda = 0.5, 1, 2", ", ".join(kinds), "stable, critical, unstable stable stable")
    check.near("order 3: overlap at the end from below the unstable point", ends[0], 0, 0.2)
    check.near("order 3: overlap at the end from above the unstable point", ends[1], high, 0.1)


TRANSITION_POINTS = ((0.5, 1.0), (1.0, 1.0), (1.3, 1.0), (0.8, 0.5), (1.3, 0.5))
"""Signal strength lambda and step c of the check."""


@claim(
    "J20",
    AREA,
    SpikedTensorDiffusion,
    figure="spiked-matrix-transition",
    quick_decides=False,
    items=("J-38", "J-39", "J-42"),
)
def spiked_transition(check: Check) -> None:
    """The rescaled overlap of spiked matrix PCA is an Ornstein-Uhlenbeck process, unstable exactly above lambda = 1.

    The check tests that sqrt(N) m is Gaussian with the variance of this process, on both sides of lambda = 1. Variances at several
    dimensions are extrapolated in 1/N.
    """
    from scipy import stats

    sizes, runs, time = ((250, 1000), 1500, 0.4) if check.quick else ((1000, 4000, 16_000), 10_000, 0.4)
    z, p_values, ratios = [], [], []
    for snr, step in TRANSITION_POINTS:
        law = SpikedTensorDiffusion(snr=snr, step=step, start_residual=step, times=(time,), replicas=runs)
        variance = float(law.theory().overlap_variance[0])
        u = [math.sqrt(size) * law.runs(law.draw(size, 0), np.array([time]))[:, 0, 0] for size in sizes]
        squares = np.array([float(np.mean(part**2)) / variance for part in u])
        ratio, error = at_infinity(sizes, squares[:, None], np.full((len(sizes), 1), math.sqrt(2 / runs)))
        ratios.append((float(ratio[0]), float(error[0])))
        z.append(abs(float(ratio[0]) - 1) / float(error[0]))
        p_values.append(float(stats.kstest(u[-1] / math.sqrt(variance), "norm").pvalue))
        check.show(f"variance at lambda = {snr:g}, c = {step:g}, extrapolated", float(ratio[0]) * variance)
        check.show(f"variance at lambda = {snr:g}, c = {step:g} in theory", variance)
    names = "lambda = 0.5, 1, 1.3 (c = 1) and 0.8, 1.3 (c = 1/2)"
    check.below(f"largest z of the extrapolated variance at {names}", largest(z), 4.0)
    average, spread = pooled(np.array(ratios))
    check.near("extrapolated variance over that of the process, mean over these points", average, 1.0, 4 * spread)
    check.show("standard error of this mean", spread)
    check.above(f"smallest Kolmogorov-Smirnov p-value of the normal law, N = {sizes[-1]}", smallest(p_values), 1e-4)
    below, above = (SpikedTensorDiffusion(snr=snr, step=1.0, times=(20.0,)) for snr in (0.99, 1.01))
    grown = float(above.theory().overlap_variance[0])
    check.below(
        "variance of the process after a long time at lambda = 0.99", float(below.theory().overlap_variance[0]), 101.0
    )
    check.above("variance of the process after a long time at lambda = 1.01, where it grows without limit", grown, 101.0)
    half = SpikedTensorDiffusion(snr=0.8, step=0.5, times=(time,), replicas=200)
    residual = float(half.runs(half.draw(4000, 0), np.array([time]))[:, 0, 1].mean())
    check.near("q(0.4) at c = 1/2 (with q^2 - c: 0.714)", residual, 0.5561, 0.01)
    check.note(
        "Correction of the source: the squared orthogonal length q follows dq = -8 q (q - c) dt. With q^2 - c its fixed point would be "
        "sqrt(c) instead of c."
    )


@claim("J34", AREA, SpikedTensor, figure="subcritical-steps", items=("J-25", "J-39"))
def short_steps(check: Check) -> None:
    """Steps far below 1/N give the flow of the population loss, the limit c -> 0 of the critical equations, with a gap of
    order step times dimension.

    The check compares the gap between the exact chain at steps N^-b and the population flow with N^(1-b), and tests the equations at small
    c and at c = 0.
    """
    runs, sizes = (60, (100, 400, 1600)) if check.quick else (400, (100, 400, 1600, 6400))
    population = subcritical(0.0).theory()
    distances = []
    for power in (1.0, 1.25, 1.5):
        gaps, errors = [], []
        for size in sizes:
            law = subcritical(size ** (1 - power))
            batch = law.simulate_batch(size, range(runs if size < 6400 else runs // 10))
            residual, error = float(batch.residual.mean()), float(batch.residual.std(ddof=1)) / np.sqrt(batch.sizes["seed"])
            gaps.append(residual - float(population.residual))
            errors.append(error)
            distances.append(abs(residual - float(law.theory().residual)) - 5 * error - 1.5 / size)
            check.show(f"residual at N = {size}, step N^-{power:g}", residual)
        exponent = log_slope(sizes, gaps, np.maximum(errors, 1e-9))
        check.near(f"exponent in N of the residual's gap at steps N^-{power:g}", exponent.value, 1 - power, 0.05)
    check.below(
        "largest gap of the chain to the equation with c = step N, beyond 5 standard errors and 1.5/N",
        largest(distances),
        0.0,
    )
    constants = np.array([0.01, 0.02, 0.05])
    flows = [subcritical(float(c)).theory() for c in constants]
    slopes = [
        slope([0, *constants], [float(flow[name]) for flow in (population, *flows)]).value
        for name in ("residual", "overlap")
    ]
    check.near("growth of the residual with c at time 0.6", slopes[0], 0.998, 0.01)
    check.near("growth of the overlap with c at time 0.6", slopes[1], -0.361, 0.01)
    check.agree("chain with steps N^-2 against the population flow", subcritical(0.0).replace(times=(0.1, 0.3)))
    check.note(
        "At b = 1 the gap does not decrease, because the critical step has a different limit. Longer steps are not covered."
    )


def subcritical(step: float) -> SpikedTensor:
    """Return the spiked matrix of the check at one value of step times dimension."""
    return SpikedTensor(order=2, snr=2.0, step=step, start_overlap=0.3, start_residual=0.7, times=0.6)
