"""Claims about online SGD (J15 to J21, J32 to J34, S1, S2, S6)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.check import SIGMAS, Check, largest, log_slope, sigmas, slope, smallest
from limitlab.lab.claims import claim
from limitlab.laws.online_sgd._effective import EffectiveDynamics
from limitlab.laws.online_sgd._recovery import DiffusiveRecovery, LogarithmicRecovery
from limitlab.laws.online_sgd._spherical import SphericalSGD
from limitlab.laws.online_sgd.growth import GrowthExponents, Point, fitted
from limitlab.laws.online_sgd.large_deviation import SgdLargeDeviation
from limitlab.laws.online_sgd.mixture import OnlineMixture
from limitlab.laws.online_sgd.multi_pass import MultiPassLeastSquares
from limitlab.laws.online_sgd.pca import OnlinePCA
from limitlab.laws.online_sgd.single_index import OnlineSingleIndex
from limitlab.laws.online_sgd.spiked_tensor import SpikedTensor, SpikedTensorDiffusion, velocity
from limitlab.laws.online_sgd.streaming import StreamingLeastSquares
from limitlab.laws.online_sgd.xor import XorMixture, capture_level, fixed_components, success_probability
from limitlab.laws.online_sgd.xor_flow import XorDynamics
from limitlab.models.online import hitting_times, uniform_overlap

Array = NDArray[np.float64]

AREA = "Online SGD"

# -- single index, spiked tensors, XOR mixture -----------------------------------------------------------------------


def search_times(law: SphericalSGD, size: int, level: float, runs: int, two_sided: bool, step: float) -> Array:
    """Return the numbers of steps until the overlap exceeds a level, from uniform starts, by the exact chain."""
    model, times = law.model().compiled(), []
    for seed in range(runs):
        rng = np.random.default_rng([seed, size])
        start = uniform_overlap(rng, size)
        times.append(int(hitting_times(rng, model, start, size, step, np.array([level]), two_sided, 10**10)[0]))
    return np.array(times, dtype=float)


@claim("J15", AREA, OnlineSingleIndex, OnlinePCA, OnlineMixture, figure="online-sgd-losses")
def population_losses(check: Check) -> None:
    """The population loss of teacher-student, PCA and mixture models depends on the overlap alone.

    The check compares phi(m) with averages of the loss over samples, for three models and several overlaps.
    """
    count, z = 100_000 if check.quick else 2_000_000, []
    laws: tuple[SphericalSGD, ...] = (
        OnlineSingleIndex(teacher="relu", student="tanh", noise=0.3),
        OnlineSingleIndex(teacher="h3", student="h3"),
        OnlinePCA(snr=1.5),
        OnlineMixture(field=0.4),
    )
    for index, law in enumerate(laws):
        for m in (-0.4, 0.0, 0.7):
            rng = np.random.default_rng([index, int(100 * (m + 1))])
            along, across, extra = rng.standard_normal((3, count))
            along = law.model().first(along, extra)
            losses = sampled_loss(law, along, m * along + math.sqrt(1 - m * m) * across, extra)
            z.append(sigmas(losses, law.population_loss(m)))
    check.below("largest z of the mean loss, 4 models at 3 overlaps", largest(z), SIGMAS)
    check.show("samples", count)


def sampled_loss(law: Any, z: Array, w: Array, extra: Array) -> Array:
    """Return the loss of samples with components z along v0 and w along x."""
    if isinstance(law, OnlineSingleIndex):
        return np.asarray((law.teacher(z) + law.noise * extra - law.student(w)) ** 2)
    if isinstance(law, OnlinePCA):
        return -(w**2)
    return np.asarray(-(np.logaddexp(w + law.field, -w - law.field) - math.log(2)))


@claim("J16", AREA, OnlineSingleIndex, OnlinePCA, OnlineMixture, figure="online-sgd-recovery")
def sample_complexity(check: Check) -> None:
    """SGD with information exponent k = 1, 2, >= 3 needs samples of order N, N log N, N^(k-1).

    The check compares recovery times of exponents 1, 2 and 3 at growing dimension with N, N log N and N^2.
    """
    from scipy import stats

    first = OnlineSingleIndex(teacher="identity", student="identity", noise=0.5, step=0.5)
    sizes = [200, 800, 3200]
    exponent_one = log_slope(
        sizes, [np.median(search_times(first, n, 0.5, 30 if check.quick else 100, False, 0.5)) for n in sizes]
    )
    check.near("exponent of the median time for k = 1", exponent_one.value, 1, 0.1)

    second = OnlineSingleIndex(teacher="square", student="square", step=0.02)
    law = second.recovery(0.5)
    assert isinstance(law, LogarithmicRecovery)
    sizes, runs = [100, 1600] if check.quick else [100, 3200], 120 if check.quick else 1500
    times = [0.02 * search_times(second, n, 0.5, runs, True, 0.02) / n for n in sizes]
    z_two = [sigmas(part, law.mean(n)) for n, part in zip(sizes, times, strict=True)]
    check.below("largest z of the mean time for k = 2 against (log N)/(2 kappa) + constant", largest(z_two), SIGMAS)
    without_log = sigmas(times[1], float(np.mean(times[0])))  # under the hypothesis that the time is of order N
    check.above(f"z of a time of order N for k = 2, N = {sizes[0]} to {sizes[-1]}", without_log, 8)
    slope_two = slope(np.log(sizes), [np.mean(part) for part in times], np.full(len(sizes), law.std(1) / math.sqrt(runs)))
    ratio_two, ratio_two_error = 2 * law.kappa * slope_two.value, 2 * law.kappa * slope_two.error
    p_value = float(stats.kstest(times[-1], lambda t: law.cdf(t, sizes[-1])).pvalue)
    check.above(f"Kolmogorov-Smirnov p-value of the times for k = 2 at N = {sizes[-1]}", p_value, 1e-4)

    third = OnlineSingleIndex(teacher="h3", student="h3")
    blow_up = third.recovery(0.5)
    assert isinstance(blow_up, DiffusiveRecovery)
    third_sizes, runs = [25, 100] if check.quick else [25, 70, 200], 110 if check.quick else 150
    third_times = [search_times(third, n, 0.5, runs, False, 0.05 / math.sqrt(n)) for n in third_sizes]
    exponent_three = log_slope(third_sizes, [np.median(part) for part in third_times])
    exponent_three_error = median_slope_error(third_sizes, third_times)
    z_three = [sigmas(part / n**2, blow_up.mean(n, 0.05)) for n, part in zip(third_sizes, third_times, strict=True)]
    check.below("largest z of the mean time for k = 3", largest(z_three), SIGMAS)
    log_law = np.log(third_sizes[-1]) / np.log(third_sizes[0]) * third_sizes[-1] / third_sizes[0]
    as_second = sigmas(third_times[-1], float(np.mean(third_times[0])) * log_law)  # hypothesis: order N log N
    check.above(f"z of a time of order N log N for k = 3, N = {third_sizes[0]} to {third_sizes[-1]}", as_second, 5)
    if not check.quick:
        check.near("slope of the mean time in log N over 1/(2 kappa) for k = 2", ratio_two, 1, 0.05)
        check.near("exponent of the median time for k = 3", exponent_three.value, 2, 0.15)
    check.show("slope of the mean time in log N over 1/(2 kappa) for k = 2, measured", ratio_two)
    check.show("standard error of the slope for k = 2", ratio_two_error)
    check.show("exponent of the median time for k = 3, measured", exponent_three.value)
    check.show("standard error of the exponent for k = 3", exponent_three_error)
    check.note(
        "The times for k = 1 and 3 are medians. The full check tests the slopes; the quick check tests the distributions of the times."
    )


def median_slope_error(sizes: list[int], samples: list[Array]) -> float:
    """Return the bootstrap standard error of the log-log slope of medians."""
    rng = np.random.default_rng(0)
    resampled = [[np.median(rng.choice(part, part.size)) for part in samples] for _ in range(200)]
    return float(np.std([log_slope(sizes, medians).value for medians in resampled]))


@claim("J17", AREA, OnlineSingleIndex, figure="online-sgd-recovery")
def descent(check: Check) -> None:
    """For k >= 2 the search needs almost all samples, and the descent needs of order N over the step.

    For exponent 3 with steps of order N^(-1/2), the check measures a descent of order N / step, which is not of order N, and a search of
    order N^2.
    """
    sizes, runs, level = (400, 1600) if check.quick else (800, 3200, 12800), 6 if check.quick else 10, 0.3
    means, laws = [], []
    for size in sizes:
        law = OnlineSingleIndex(teacher="h3", student="h3", step=0.05 / math.sqrt(size))
        model, times = law.model().compiled(), []
        for seed in range(runs):
            rng = np.random.default_rng([seed, size])
            end = np.array([1 - level])
            times.append(hitting_times(rng, model, level, size, law.step, end, False, 10**9)[0])
        means.append(float(np.mean(times)))
        laws.append(size / law.step * law.descent_time(level))
    check.near(f"descent time over (N/step) int dm/h at N = {sizes[-1]}", means[-1] / laws[-1], 1, 0.1)
    exponent, expected = log_slope(sizes, means).value, log_slope(sizes, laws).value
    check.below("distance of the descent's exponent in N from its law's at these N", abs(exponent - expected), 0.1)
    check.above("exponent in N of the descent time (1 if it were of order N)", exponent, 1.25)
    blow_up = OnlineSingleIndex(teacher="h3", student="h3").recovery(level)
    assert isinstance(blow_up, DiffusiveRecovery)
    shares = [mean / (blow_up.mean(size, 0.05) * size**2) for size, mean in zip(sizes, means, strict=True)]
    check.below(f"share of the search that the descent takes at N = {sizes[-1]}, by the laws", shares[-1], 0.05)
    measured_shares = [
        measured_share(n, level, 12 if check.quick else 60) for n in ((25, 100) if check.quick else (25, 100, 200))
    ]
    check.below(
        "share of the samples that whole runs from random starts spend on the descent, N = 100", measured_shares[1], 0.5
    )
    check.below(
        "that share at N = 100 over that at N = 25 (1 if both grew alike)", measured_shares[1] / measured_shares[0], 0.75
    )
    check.show("exponent in N of the law", expected)
    check.show("measured share at N = 25", measured_shares[0])
    check.note(
        "Correction: a bound of order N for the descent would mean exponent 1. For steps of order N^(-1/2) the exponent tends to 3/2."
    )


def measured_share(size: int, level: float, runs: int) -> float:
    """Return the ratio of mean samples of descent and search in runs of exponent 3 with step 0.05 N^(-1/2)."""
    law = OnlineSingleIndex(teacher="h3", student="h3", step=0.05 / math.sqrt(size))
    model, times = law.model().compiled(), []
    for seed in range(runs):
        rng = np.random.default_rng([seed, size, 17])
        start = uniform_overlap(rng, size)
        times.append(hitting_times(rng, model, start, size, law.step, np.array([level, 1 - level]), False, 10**10))
    search, end = np.mean(np.array(times, dtype=float), axis=0)
    return float((end - search) / search)


@claim("J18", AREA, SpikedTensor)
def effective_dynamics(check: Check) -> None:
    """Summary statistics of online SGD follow an ODE or SDE with population drift, corrector and volatility.

    The check estimates the coefficients for the spiked matrix and for phase retrieval, and shows that the overlap alone does not close.
    """
    import jax
    import jax.numpy as jnp

    size, samples = (40, 600) if check.quick else (100, 4000)

    def statistics(x: Any) -> Any:
        return jnp.array([x[0], x @ x - x[0] ** 2])

    def matrix_loss(x: Any, noise: Any) -> Any:
        return (x @ x) ** 2 - 2 * (1.7 * x[0] ** 2 + x @ noise @ x)

    def phase_loss(x: Any, a: Any) -> Any:
        return (a[0] ** 2 - (a @ x) ** 2) ** 2

    def place(m: float, q: float) -> Array:
        x = np.zeros(size)
        x[:2] = m, math.sqrt(q)
        return x

    def matrices(key: Any, count: int, n: int) -> Any:
        return jax.random.normal(key, (count, n, n))

    def vectors(key: Any, count: int, n: int) -> Any:
        return jax.random.normal(key, (count, n))

    matrix = EffectiveDynamics(matrix_loss, statistics, matrices, 0.8).at(place(0.7, 0.6), samples)
    exact = np.array([float(part) for part in velocity(2, 1.7, 0.8, 0.7, 0.6)])
    z_matrix = float(np.max(np.abs(matrix.drift - exact) / (matrix.drift_error + np.abs(exact) / size)))
    check.below("largest z of the drift of the spiked matrix (standard errors plus 1/N)", z_matrix, SIGMAS)
    phase = EffectiveDynamics(phase_loss, statistics, vectors, 0.02).at(place(0.5, 0.3), 40 * samples)
    square = 0.55
    sixth = 3 * square + 3 - 6 * square**2 - 6 * square + 15 * square**3
    exact = np.array([6 * (1 - square), 2.4 * (1 - 3 * square) + 0.32 * sixth])
    z_phase = float(np.max(np.abs(phase.drift - exact) / (phase.drift_error + np.abs(exact) / size)))
    check.below("largest z of the drift of phase retrieval (standard errors plus 1/N)", z_phase, SIGMAS)
    rescaled = EffectiveDynamics(matrix_loss, lambda x: math.sqrt(size) * x[:1], matrices, 0.8).at(place(0.0, 0.6), samples)
    spread = float(rescaled.volatility[0, 0])
    z_spread = abs(spread - 8 * 0.8 * 0.6) / float(rescaled.volatility_error[0, 0])
    check.below("z of the volatility 8 c q of sqrt(N) m at m = 0", z_spread, SIGMAS)
    check.above("that volatility in its own standard errors", spread / float(rescaled.volatility_error[0, 0]), 10)
    quiet = float(matrix.volatility.max()) * size  # the volatility of statistics of order 1 vanishes like 1/N
    check.below("volatility of statistics of order 1, times N", quiet, 200)
    alone = EffectiveDynamics(matrix_loss, lambda x: x[:1], matrices, 0.8)
    verdict = alone.closure([place(0.7, 0.6), place(0.7, 1.4)], samples)
    check.true("the overlap alone is flagged as not closed", not verdict.closes)
    check.show("volatility of sqrt(N) m at m = 0", spread)
    check.show("largest z between drifts at one overlap", verdict.largest_z)
    check.show("dimension", size)


@claim("J19", AREA, SpikedTensor, figure="spiked-matrix-phases")
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


@claim("J20", AREA, SpikedTensorDiffusion, figure="spiked-matrix-transition")
def spiked_transition(check: Check) -> None:
    """The rescaled overlap of spiked matrix PCA is an Ornstein-Uhlenbeck process, unstable exactly above lambda = 1.

    The check tests that sqrt(N) m is Gaussian with the variance of this process, on both sides of lambda = 1.
    """
    from scipy import stats

    size, runs, time = 1000, 400 if check.quick else 4000, np.array([0.4])
    z, p_values = [], []
    for snr, step in ((0.5, 1.0), (1.0, 1.0), (1.3, 1.0), (0.8, 0.5), (1.3, 0.5)):
        law = SpikedTensorDiffusion(snr=snr, step=step, start_residual=step, times=(0.4,), replicas=runs)
        u = math.sqrt(size) * law.runs(law.draw(size, 0), time)[:, 0, 0]
        variance = float(law.theory().overlap_variance[0])
        z.append(abs(float(np.mean(u**2)) / variance - 1) / math.sqrt(2 / runs))
        p_values.append(float(stats.kstest(u / math.sqrt(variance), "norm").pvalue))
        check.show(f"variance at lambda = {snr:g}, c = {step:g} simulated", float(np.mean(u**2)))
        check.show(f"variance at lambda = {snr:g}, c = {step:g} in theory", variance)
    check.below("largest z of the variance at lambda = 0.5, 1, 1.3 (c = 1) and 0.8, 1.3 (c = 1/2)", largest(z), SIGMAS)
    check.above("smallest Kolmogorov-Smirnov p-value of the normal law", smallest(p_values), 1e-4)
    half = SpikedTensorDiffusion(snr=0.8, step=0.5, times=(0.4,), replicas=200)
    residual = float(half.runs(half.draw(4000, 0), time)[:, 0, 1].mean())
    check.near("q(0.4) at c = 1/2 (with q^2 - c: 0.714)", residual, 0.5561, 0.01)
    check.note(
        "Correction: dq = -8 q (q - c) dt. With q^2 - c the fixed point of the residual would be sqrt(c) instead of c."
    )


XOR_SIGMAS = 3.0
"""Largest distance of the share of successful networks from p_K, in standard errors."""


@claim("J21", AREA, XorMixture, XorDynamics, figure="xor-success")
def xor(check: Check) -> None:
    """The XOR mixture has critical regulariser 1/8, 39 components of fixed points at K = 4 and success probability p_K.

    The check counts the fixed points and tests the success probability, the sign rule, the final margins, and the ballistic ODE at finite
    noise.
    """
    counts = [len(fixed_components(width)) for width in (1, 2, 3, 4, 5, 8)]
    check.equal("components of fixed points at K = 1, 2, 3, 4, 5, 8", ", ".join(map(str, counts)), "5, 17, 35, 39, 16, 16")
    check.equal("p_4", float(success_probability(4)), 3 / 32)
    size, networks = (500, 200) if check.quick else (3000, 400)
    z = []
    for width in (4, 6):
        law = XorMixture(width=width, networks=networks)
        margins, announced = law.train(law.draw(size, 0))
        captured = margins > capture_level(margins)
        share, p = float(np.mean(captured.all(axis=1))), law.success_probability()
        z.append(abs(share - p) / math.sqrt(p * (1 - p) / networks))
        check.show(f"share of successes at K = {width}", share)
        check.show(f"p_K at K = {width}", p)
    check.below("largest z of the share of successes at K = 4, 6", largest(z), XOR_SIGMAS)
    agreement = float(np.mean(np.all(captured == announced, axis=1)))
    check.above("share of networks whose signs at the start predict the captured classes, K = 6", agreement, 0.9)
    check.near("median margin of captured classes at K = 6", float(np.median(margins[captured])), law.class_strength(), 0.1)
    strong = XorMixture(width=4, regularizer=0.15, networks=5)
    left = float(strong.train(strong.draw(200, 0))[0].max())
    check.below("largest margin above the critical regulariser, alpha = 0.15", left, 0.1)
    wide = {width: failures(width, size // 5, 400 if check.quick else 2000) for width in (8, 12)}
    for width, (share, _) in wide.items():
        check.show(f"share of failures at K = {width}", share)
        check.show(f"1 - p_K at K = {width}", 1 - float(success_probability(width)))
    check.below("largest z of the share of failures at K = 8, 12", largest(z for _, z in wide.values()), SIGMAS)
    check.below("share of failures at K = 12 over that at K = 8 (limit (3/4)^4 = 0.32)", wide[12][0] / wide[8][0], 0.5)
    check.agree(
        "the flow at finite noise of one neuron and of two, at several times:",
        XorDynamics,
        seeds=150 if check.quick else 600,
        together=True,
    )
    check.note("Correction: p_4 = 3/32, not 3/27.")


def failures(width: int, size: int, networks: int) -> tuple[float, float]:
    """Return the share of networks that miss a cluster, and its distance from 1 - p_K in standard errors.

    The distance allows for a bias of order 1/sqrt(N).
    """
    law = XorMixture(width=width, networks=networks)
    margins, _ = law.train(law.draw(size, 1))
    share = float(np.mean((margins <= capture_level(margins)).any(axis=1)))
    p = 1 - law.success_probability()
    return share, max(abs(share - p) - 0.5 * p / math.sqrt(size), 0.0) / math.sqrt(p * (1 - p) / networks)


# -- lengths of steps ------------------------------------------------------------------------------------------------


@claim("J32", AREA, SpikedTensor, OnlinePCA, figure="growth-exponents")
def growing_moments(check: Check) -> None:
    """The examples satisfy the moment conditions of the limit theorems, and steps of order 1/N are the largest localizable
    ones for the spiked matrix.

    The check compares fitted growth exponents with their bounds (by quadrature for phase retrieval). A heavy-tailed control must fail.
    """
    sizes, samples = ((100, 200, 400, 800), 1000) if check.quick else ((50, 100, 200, 400, 800), 4000)
    matrix = SpikedTensor(order=2).growth_exponents(sizes, samples)
    check.near("spiked matrix: exponent of E|H|^8", matrix.norm_eighth, 4.0, 0.15)
    check.near("spiked matrix: exponent of E<H, grad u>^4", matrix.directional_fourth, 0.0, 0.15)
    check.near("spiked matrix: exponent of the variance of <Hess u, H H'>", matrix.curvature_variance, 1.0, 0.15)
    check.near("spiked matrix: exponent of the largest localizable step", matrix.largest_step_exponent, -1.0, 0.05)
    check.true(
        "steps N^-1 and N^-1.5 are localizable, N^-0.8 is not",
        [matrix.localizable(s) for s in (-1, -1.5, -0.8)] == [True, True, False],
    )
    sizes = (50, 100, 200, 400) if check.quick else (50, 100, 200, 400, 800)
    pca = online_pca(sizes, 4000)
    check.near("online PCA: exponent of the second moment along the signal", pca.directional_second, 0.0, 0.15)
    check.near("online PCA: exponent of E|H|^5", pca.norm_fifth, 2.5, 0.15)
    retrieval = float(np.polyfit(np.log(sizes), [np.log(phase_retrieval_fifth(n)) for n in sizes], 1)[0])
    check.near("phase retrieval: exponent of E|H|^5, by quadrature", retrieval, 2.5, 0.05)
    heavy = [student_inputs(sizes, 4000, seed) for seed in range(3)]
    slopes = np.linspace(0.05, 0.95, 10)
    largest_slope = largest(float(OnlinePCA(snr=1.0).population_slope(m)) for m in slopes)
    check.below("online PCA: largest slope of the population loss on (0, 1)", largest_slope, 0.0)
    check.true(
        "Student inputs with 3 degrees of freedom are not regular, or not reliably so",
        not any(exponents.regular and exponents.reliable for exponents in heavy),
    )
    check.show(
        "Student inputs: exponents of the second moment",
        ", ".join(f"{exponents.directional_second:.2f}" for exponents in heavy),
    )
    check.show("Student inputs: exponents of E|H|^5", ", ".join(f"{exponents.norm_fifth:.2f}" for exponents in heavy))
    check.note(
        "Corrections of the source: the remark on the sign of the slope belongs to assumption B. Its Jensen inequality is a lower "
        "bound. Localizability needs the Hessian of the statistic, not of the loss."
    )


def online_pca(sizes: Sequence[int], samples: int) -> GrowthExponents:
    """Return growth exponents of the spherical gradients of -<y, x>^2, y = g v + z, at three overlaps with v."""

    def at(size: int) -> Iterator[Point]:
        rng = np.random.default_rng(size)
        for m in (0.0, 0.5, 0.9):
            x = np.zeros(size)
            x[:2] = m, np.sqrt(1 - m * m)
            y = rng.standard_normal((samples, size))
            y[:, 0] += rng.standard_normal(samples)
            yield spherical_noise(-2 * (y @ x)[:, None] * y, x)

    return fitted(at, sizes)


def student_inputs(sizes: Sequence[int], samples: int, seed: int) -> GrowthExponents:
    """Return growth exponents of the control, linear regression on inputs with infinite third moments."""

    def at(size: int) -> Iterator[Point]:
        rng = np.random.default_rng([seed, size])
        a = rng.standard_t(3, (samples, size)) / np.sqrt(3)
        x = np.eye(size)[1] * np.sqrt(0.75) + np.eye(size)[0] * 0.5
        yield spherical_noise(2 * (a @ x - a[:, 0])[:, None] * a, x)

    return fitted(at, sizes)


def spherical_noise(gradients: Array, x: Array) -> Point:
    """Return the noise of gradients projected to the tangent space of the sphere at x. The only statistic is the first coordinate."""
    forces = gradients - (gradients @ x)[:, None] * x
    return Point(forces - forces.mean(axis=0), np.eye(x.size)[:1], np.zeros((1, x.size, x.size)))


def phase_retrieval_fifth(size: int) -> float:
    """Return E |grad|^5 for the loss (<a, x>^2 - <a, v>^2)^2 on the sphere at overlap 0, by quadrature.

    Exponents from sampled values scatter by 0.3.

    The gradient is 4 (u^2 - b^2) u times a vector of squared length b^2 + chi^2 with size - 2 degrees of freedom.
    """
    from scipy.stats import chi2

    x, w = np.polynomial.hermite_e.hermegauss(60)
    w = w / w.sum()
    levels, shares = np.polynomial.legendre.leggauss(80)
    rest = chi2.ppf((levels + 1) / 2, size - 2)
    length = (x[:, None] ** 2 + rest) ** 2.5 @ (shares / 2)  # given b
    force = np.abs(4 * (x[:, None] ** 2 - x**2) * x[:, None]) ** 5  # rows u, columns b
    return float(w @ force @ (w * length))


@claim("J33", AREA, SgdLargeDeviation, figure="sgd-large-deviation")
def large_deviations(check: Check) -> None:
    """In fixed dimension SGD with a small step deviates from its flow with probability exp(-I(eps)/step), and I depends on
    the whole distribution of the noise.

    The check extrapolates -step log P (exact or from weighted draws) from steps down to 1/160 (full check: 1/320), and compares the result
    with the Legendre transform.
    """
    gaussian = SgdLargeDeviation(deviation=0.5, times=1.0, noise_law="gaussian")
    sign = gaussian.replace(noise_law="sign", paths=20_000 if check.quick else 200_000)
    sizes = (40, 80, 160) if check.quick else (80, 160, 320)
    exact = [gaussian.exact_probability(size) for size in sizes]
    curves = {
        "Gaussian": [-float(np.log(p)) / size for p, size in zip(exact, sizes, strict=True)],
        "sign": [float(sign.simulate(size, 0).rate) for size in sizes],
    }
    limits = {"Gaussian": float(gaussian.theory().rate), "sign": float(sign.theory().rate)}
    fitted = {name: extrapolated(sizes, curve) for name, curve in curves.items()}
    for name in fitted:
        check.near_relative(f"extrapolated rate of {name} noise", fitted[name], limits[name], 0.01)
    check.above("extrapolated rate of signs over that of Gaussian noise", fitted["sign"] / fitted["Gaussian"], 1.15)
    check.below("smallest probability in the table (Gaussian noise)", exact[-1], 1e-20)
    counted = -float(np.log(sign.exact_probability(20))) / 20
    drawn = [float(law.simulate(20, 1).rate) for law in (sign, gaussian)]
    check.near("weighted draws of signs against all 2^20 paths at step 1/20", drawn[0], counted, 1e-3)
    check.near(
        "weighted draws of Gaussian noise against the transfer operator at step 1/20",
        drawn[1],
        -float(np.log(gaussian.exact_probability(20))) / 20,
        2e-3,
    )
    for name, curve in curves.items():
        for size, value in zip(sizes, curve, strict=True):
            check.show(f"rate at step 1/{size}, {name} noise", value)
    check.note(
        "Counting would need more than 1e20 runs. Correction: the interpolated path of the source is X_k + (t/step - k)(X_{k+1} - X_k)."
    )


def extrapolated(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Return the limit I of a fit I + A delta + B delta log(1/delta) to three or more values at delta = 1/size.

    >>> round(extrapolated((10, 20, 40), [1 + 2 / n + 3 / n * np.log(n) for n in (10, 20, 40)]), 9)
    1.0
    """
    step = 1 / np.asarray(sizes, dtype=float)
    table = np.stack([np.ones_like(step), step, step * np.log(1 / step)], axis=1)
    return float(np.linalg.lstsq(table, np.asarray(values), rcond=None)[0][0])


@claim("J34", AREA, SpikedTensor, figure="subcritical-steps")
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


# -- least squares at scale ------------------------------------------------------------------------------------------

AREA_SCALING = "Scaling laws"


def stepwise(law: StreamingLeastSquares, steps: int) -> list[float]:
    """Return the mean excess risk after every step, by equation (1) for each direction."""
    assert law.dimension is not None
    s, a = np.asarray(law.eigenvalues), np.asarray(law.signal_energy)
    eta, risks = law.step / law.dimension, []
    for _ in range(steps + 1):
        risks.append(float(s @ a))
        spread = eta**2 / law.batch
        a = ((1 - eta * s) ** 2 + spread * (1 + law.kurtosis) * s**2) * a + spread * s * (risks[-1] + law.noise**2)
    return risks


def one_per_direction(eigenvalues: np.ndarray, **options: object) -> StreamingLeastSquares:
    """Return a law with one group for each direction and unit energies."""
    size = len(eigenvalues)
    flat = tuple(np.ones(size))
    return StreamingLeastSquares(
        **{"eigenvalues": tuple(eigenvalues), "weights": flat, "signal_energy": flat, "dimension": size, **options}
    )


@claim("S1", AREA_SCALING, StreamingLeastSquares, figure="streaming-least-squares")
def exact_at_every_dimension(check: Check) -> None:
    """The formula for the mean risk of one-pass SGD on least squares is exact in every dimension and for every number of steps.

    The check compares the closed form with the recursion, and runs of SGD (batches, momentum, signs, averages) with the law. It tests that
    the gap to the limit is of order 1/d.
    """
    steps = 2000 if check.quick else 20_000
    law = one_per_direction(1 / np.arange(1, 61.0), step=12.0, batch=2, noise=0.5, times=tuple(np.arange(steps + 1) / 60))
    gap = largest(np.abs(law.theory().excess_risk.values / stepwise(law, steps) - 1))
    check.below(f"largest relative gap between closed form and {steps} steps of the recursion", gap, 1e-11)
    check.agree("runs of SGD", StreamingLeastSquares, seeds=10 if check.quick else None)
    flat = StreamingLeastSquares(step=0.8, noise=0.5, times=(2.0,))
    limit = float(flat.theory().excess_risk[0])
    gaps = [d * (float(flat.replace(dimension=d).theory().excess_risk[0]) / limit - 1) for d in (50, 200, 800)]
    check.near("d times the relative gap to the limit at d = 50, over that at d = 800", gaps[0] / gaps[2], 1.0, 0.05)
    for d, scaled_gap in zip((50, 200, 800), gaps, strict=True):
        check.show(f"d times the gap at d = {d}", scaled_gap)


@claim("S2", AREA_SCALING, StreamingLeastSquares, figure="streaming-least-squares")
def shorter_than_the_trace_says(check: Check) -> None:
    """The largest stable step of one-pass SGD is shorter than 2B over the trace if the top eigenvalue is large.

    For s = j^-2 the check measures the growth of the decisive quadratic form in one step, below the threshold and between the threshold and
    the textbook value 2B over the trace.
    """
    s = np.arange(1, 61.0) ** -2
    limit, textbook = one_per_direction(s, step=1.0).largest_step() / 60, 2 / float(s.sum())
    check.near("largest step for s = j^-2, d = 60, B = 1", limit, 0.612, 0.001)
    check.above("textbook value over the truth", textbook / limit, 1.9)
    rng, runs = np.random.default_rng(0), 200_000 if check.quick else 2_000_000
    growth = {
        name: one_step_growth(rng, s, eta, runs) for name, eta in (("below", 0.8 * limit), ("between", 0.9 * textbook))
    }
    check.below("growth in one step at 0.8 of the largest step, plus 5 standard errors", sum(growth["below"]), 1.0)
    check.above(
        "growth in one step at 0.9 of the textbook value, less 5 standard errors",
        growth["between"][0] - growth["between"][1],
        1.0,
    )
    check.show("2B / trace", textbook)
    for name, (value, _) in growth.items():
        check.show(f"growth {name}", value)
    check.note(
        "Above the threshold a few runs soon dominate the mean over runs. Therefore growth is measured over one step."
    )


def one_step_growth(rng: np.random.Generator, s: np.ndarray, eta: float, runs: int) -> tuple[float, float]:
    """Return the factor by which a step of SGD multiplies the fastest growing quadratic form, and five standard errors."""
    spread = np.diag((1 - eta * s) ** 2 + eta**2 * s**2) + eta**2 * np.outer(s, s)
    form = np.abs(np.linalg.eigh(spread)[1][:, -1])
    forms = []
    for _ in range(20):
        error = np.sqrt(form) * (2.0 * rng.integers(0, 2, (runs // 20, len(s))) - 1)
        x = rng.standard_normal(error.shape) * np.sqrt(s)
        moved = error - eta * np.einsum("rd,rd->r", x, error)[:, None] * x
        forms.append(moved**2 @ form)
    values = np.concatenate(forms)
    return float(values.mean()), 5 * float(values.std()) / np.sqrt(values.size)


@claim("S6", AREA_SCALING, MultiPassLeastSquares, figure="multi-pass-least-squares")
def price_of_batches(check: Check) -> None:
    """On fixed data the noise of batches multiplies the late train error by 1/(1 - eta tr S / 2B) if n > p, and vanishes if n < p.

    The check compares the late train error with that of gradient descent on both sides of p = n, and SGD with the law at the check points.
    """
    tall = MultiPassLeastSquares(ratio=0.5, samples=200.0, step=0.01, times=(200.0,)).theory()
    wide = MultiPassLeastSquares(ratio=2.0, samples=150.0, step=0.006, times=(0.0, 60.0)).theory()
    price = float(tall.train_error[0] / tall.descent_train_error[0])
    check.near("late train error over that of gradient descent at half the threshold, n = 2p", price, 2.0, 0.05)
    check.below(
        "train error at time 60 over that at the start, p = 2n", float(wide.train_error[1] / wide.train_error[0]), 1e-3
    )
    if check.quick:
        check.agree("paths of SGD at check point 2", MultiPassLeastSquares.check_points()[1], seeds=500)
    else:
        check.agree("paths of SGD", MultiPassLeastSquares)
    check.show("price at half the threshold", price)
