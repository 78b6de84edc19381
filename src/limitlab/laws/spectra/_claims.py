"""Claims about spectra of sample covariances, and about the inequalities of the proofs (J5 to J7, J46, M13)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.check import SIGMAS, Check, largest, log_slope, sigmas, smallest, standard_error
from limitlab.lab.claims import claim
from limitlab.laws import MarchenkoPastur, SampleCovariance
from limitlab.laws.spectra._measurements import extreme_eigenvalues, sample_eigenvalues
from limitlab.laws.spectra.square_matrix import SquareMatrixEdge, mean_inverse_trace
from limitlab.models.designs import Entries, white

# -- spectra ------------------------------------------------------------------------------------------------------

Array = NDArray[np.float64]

AREA = "Implicit bias, interpolation, spectra"

RATIOS = (0.4, 2.0)

EXPECTED_DISTANCE = np.sqrt(2) / np.pi
"""Approximate sup distance of eigenvalue counts over log(rank), from the maximum of a log-correlated field."""

TRACY_WIDOM_AT_ZERO = 0.8319080662
"""Tracy-Widom distribution function F for real matrices at 0. An eigenvalue exceeds its edge with probability 1 - F(0)."""


def sup_distance(eigenvalues: Array, law: MarchenkoPastur) -> float:
    """Return the Kolmogorov-Smirnov distance between the empirical distribution function and that of the law.

    >>> round(sup_distance(np.array([0.5, 1.0]), MarchenkoPastur(ratio=0.25)), 4)
    0.4466
    """
    ordered = np.sort(eigenvalues)
    ordered = ordered[
        np.searchsorted(ordered, 0.0, side="right") :
    ]  # exact zeros belong to the atom, which is compared separately
    count = len(eigenvalues)
    limit = law.cdf(ordered)
    after = (np.arange(count - ordered.size, count) + 1) / count
    jumps = np.maximum(np.abs(limit - after), np.abs(limit - after + 1 / count))
    return float(max(jumps.max(initial=0.0), abs(law.atom() - (count - ordered.size) / count)))


@claim("J5", AREA, MarchenkoPastur, SampleCovariance, figure="marchenko-pastur", items=("J-10",))
def law_of_eigenvalues(check: Check) -> None:
    """The eigenvalues of X'X/n, with independent entries of variance 1 and p/n -> gamma, follow the Marchenko-Pastur law of
    ratio gamma. Its transform solves 1 + zS = S/(1 + gamma S), and inversion of the transform gives the law.

    The check measures distances of drawn spectra to the law at growing sizes, and tests the equation, the integral and the inversion of the
    transform.
    """
    sizes, seeds = ((100, 200, 400), 8) if check.quick else ((100, 200, 400, 800, 1600), 12)
    for ratio in RATIOS:
        law = MarchenkoPastur(ratio=ratio, entries="sign")
        swapped = MarchenkoPastur(ratio=1 / ratio)  # samples over dimension, the ratio in one statement of the source
        draws = {size: [law.sample_eigenvalues(law.draw(size, seed)) for seed in range(seeds)] for size in sizes}
        distance = [float(np.mean([sup_distance(x, law.realised(size)) for x in draws[size]])) for size in sizes]
        rank = min(sizes[-1], law.count("ratio", sizes[-1]))
        constant = sizes[-1] * distance[-1] / np.log(rank) / EXPECTED_DISTANCE
        check.between(
            f"exponent in p of the mean sup distance, ratio {ratio:g}", log_slope(sizes, distance).value, -1.1, -0.6
        )
        check.between(
            f"p times the mean sup distance over sqrt(2) log(rank) / pi at p = {sizes[-1]}, ratio {ratio:g}",
            constant,
            0.6,
            1.6,
        )
        check.show(f"mean sup distance at p = {sizes[-1]}, ratio {ratio:g}", distance[-1])
        check.show(f"sup distance to the law of ratio {1 / ratio:g}", sup_distance(draws[sizes[-1]][0], swapped))
    mixed = SampleCovariance(ratio=0.4, eigenvalues=(1.0, 3.0), weights=(0.7, 0.3), entries="sign")
    check.agree("a population of two groups, by Silverstein's equation:", mixed, seeds=100 if check.quick else 800)
    exact, printed = _self_consistency()
    check.below("residual of the self-consistency equation", exact, 1e-13)
    integral, inversion, inversion_rate = _inversion()
    check.below("transform against direct integration", integral, 1e-12)
    check.below("inversion error at height 1e-4", inversion, 1e-3)
    check.between("exponent of the inversion error in the height", inversion_rate, 0.7, 1.2)
    check.show("residual of the equation with 1/ratio instead", printed)
    check.note(
        "The entries are random signs, and the ratio is dimension over samples. If the law is stated with samples over dimension, or "
        "with 1/ratio in the self-consistency equation, it describes a different matrix. Its distances to the drawn spectra are shown."
    )


def _self_consistency() -> tuple[float, float]:
    """Return the largest residual of 1 + z m = m / (1 + ratio m), and the smallest residual with 1/ratio instead."""
    x, y = np.meshgrid(np.linspace(-3, 8, 45), np.concatenate([-np.geomspace(1e-6, 3, 12), np.geomspace(1e-6, 3, 12)]))
    z = x + 1j * y
    exact, printed = [], []
    for ratio in RATIOS:
        m = MarchenkoPastur(ratio=ratio).stieltjes(z)
        scale = 1 + np.abs(z * m)
        exact.append(np.max(np.abs(1 + z * m - m / (1 + ratio * m)) / scale))
        printed.append(np.median(np.abs(1 + z * m - m / (1 + m / ratio)) / scale))
    return largest(exact), smallest(printed)


def _inversion() -> tuple[float, float, float]:
    """Return errors of the transform by direct integration and of the mass of an interval by inversion, and its rate."""
    from scipy.integrate import quad

    from limitlab.numerics.spectra.marchenko_pastur import quadrature

    low, high = 0.3, 1.7
    heights = (1e-2, 1e-3, 1e-4)
    gaps, errors = [], np.zeros(len(heights))
    for ratio in RATIOS:
        law = MarchenkoPastur(ratio=ratio)
        nodes, weights = quadrature(ratio, count=256)
        z = np.array([1 + 1j, -0.5 + 0.2j, 3 - 1j, -2.0 + 0j])
        direct = (weights / (nodes - z[:, None])).sum(axis=1) - law.atom() / z
        gaps.append(np.max(np.abs(direct - law.stieltjes(z))))
        mass = float(law.cdf(high) - law.cdf(low))
        smooth = [
            quad(lambda x, up=height, law=law: law.stieltjes(complex(x, up)).imag / np.pi, low, high, epsabs=1e-10)[0]
            for height in heights
        ]
        errors = np.maximum(errors, np.abs(np.array(smooth) - mass))
    return largest(gaps), float(errors[-1]), log_slope(heights, errors).value


@claim("J6", AREA, MarchenkoPastur, figure="spectral-distance", items=("J-11", "J-12"))
def concentration(check: Check) -> None:
    """Deviations of the transform S_N(z) exceed t with probability at most C exp(-c N (Im z)^2 t^2), and quadratic forms
    (X'AX - tr A)/N with bounded A vanish at rate N^(-1/2).

    The check measures the spread of the transform over sizes and heights, and the variance and rate of quadratic forms.
    """
    sizes, draws = ((40, 80, 160), 200) if check.quick else ((50, 100, 200, 400), 400)
    heights, ratio = (1.0, 0.3, 0.1, 0.03), 0.5
    law = MarchenkoPastur(ratio=ratio)
    spread = np.array([_transform_spread(law, size, draws, heights) for size in sizes])
    check.between("exponent in N of the standard deviation of S_N(1 + i)", log_slope(sizes, spread[:, 0]).value, -1.2, -0.8)
    bound = 2 / (np.asarray(heights) * np.sqrt(ratio * np.asarray(sizes)[:, None]))  # from M increments of at most 2/(N v)
    check.below("largest standard deviation of S_N(1 + iv) over 2 / (v sqrt(ratio N))", float(np.max(spread / bound)), 1)
    growth = spread[:, -1] / spread[:, 0]
    check.above("smallest growth of the standard deviation from v = 1 to v = 0.03", float(growth.min()), 5)
    forms = {
        entries: _form_spread(entries, (50, 200, 800), 1000 if check.quick else 20_000) for entries in ("gaussian", "sign")
    }
    deviations = [float(np.max(np.abs(ratios - 1) / error)) for ratios, error, _ in forms.values()]
    pooled = {
        entries: (ratios.mean(), np.sqrt((error**2).sum()) / len(error)) for entries, (ratios, error, _) in forms.items()
    }
    for entries, (mean, error) in pooled.items():
        name = f"variance of (X'AX - tr A)/N over its exact value, mean over N, {entries} entries"
        check.near(name, float(mean), 1.0, 4 * float(error))
    check.below("largest z of the variance of (X'AX - tr A)/N against its exact value", largest(deviations), SIGMAS)
    for entries, (_, _, rate) in forms.items():
        check.between(f"exponent in N of quadratic forms, {entries} entries", rate, -0.56, -0.44)
    check_tails(check, law, heights)
    check.show("N times the standard deviation at v = 1", float(sizes[-1] * spread[-1, 0]))
    check.show("N times the standard deviation at v = 0.03", float(sizes[-1] * spread[-1, -1]))
    check.note(
        "Correction: the tail is exp(-c N v^2 t^2), because the increments of the martingale are at most 2/(vN). A tail "
        "exp(-c N t^2 / v) would become sharper as v tends to 0, but the measured spread grows. The off-diagonal part of a quadratic form "
        "in a symmetric A has variance 2 sum A_ij^2, not sum A_ij^2."
    )


def check_tails(check: Check, law: MarchenkoPastur, heights: Sequence[float]) -> None:
    """Check the tail of the transform for Gaussian rows, and its order for rows that are zero or large with equal probability."""
    size, draws = (30, 1500) if check.quick else (60, 10_000)
    spectra = np.array([law.sample_eigenvalues(law.draw(size, seed)) for seed in range(draws)])
    constants, beyond = [], []
    for v in heights:
        transforms = np.mean(1 / (spectra - (1 + 1j * v)), axis=1)
        deviations = np.abs(transforms - transforms.mean())
        for t in np.quantile(deviations, [0.8, 0.95, 0.99]):
            constants.append(tail_constant(float(np.mean(deviations > t)), size, v, float(t)))
        beyond.append(np.mean(np.abs(transforms.real - transforms.real.mean()) > 3 * transforms.real.std()))
    check.above(
        "smallest -log(P/4) / (N v^2 t^2) over heights and tails of 20, 5 and 1 %", smallest(constants), law.ratio / 16
    )
    gaussian = 0.0027
    error = math.sqrt(gaussian / draws)
    check.below(
        "largest share of draws with a real part beyond 3 standard deviations", largest(beyond), 2 * gaussian + 4 * error
    )
    at = (100_000, 1.0, 0.024)
    rows = {"N": ((1.0, 4.0), 0, 1.0), "v": ((1.0, 2.0), 1, 2.0), "t": ((1.0, 2.0), 2, 2.0)}
    for name, (factors, index, power) in rows.items():
        values = []
        for factor in factors:
            place = [factor * part if k == index else part for k, part in enumerate(at)]
            values.append(-log_tail_of_coins(round(place[0]), place[1], place[2]))
        check.near(
            f"zero or large rows: exponent in {name} of -log(P/2)", log_slope(factors, values).value, power, 0.005 * power
        )


def tail_constant(share: float, size: int, height: float, t: float) -> float:
    """Return c with P = 4 exp(-c N v^2 t^2). The inequality of Azuma and the increments 2/(vN) give c >= N / (16 M)."""
    return -math.log(share / 4) / (size * height**2 * t**2)


def log_tail_of_coins(size: int, height: float, t: float) -> float:
    """Return log P(|S_N(iv) - E S_N(iv)| > t) if row k is 0 or a large multiple of the basis vector e_k, with equal probability.

    Every eigenvalue is 0 or infinite, so that S_N(iv) is i/v times the share of rows that are 0. The prefactor 2 / (z sqrt(2 pi)) of the
    tail of a Gaussian variable beyond z = 2 v t sqrt(N) is left out.
    """
    from scipy import stats

    z = 2 * height * t * math.sqrt(size)
    return float(stats.binom.logsf(math.floor(size * (0.5 + t * height)), size, 0.5)) + math.log(z * math.sqrt(2 * math.pi))


def _transform_spread(law: MarchenkoPastur, size: int, draws: int, heights: Sequence[float]) -> Array:
    """Return the standard deviation of S_N(1 + iv) over independent matrices, for every height v."""
    z = 1 + 1j * np.asarray(heights)
    spectra = np.array([law.sample_eigenvalues(law.draw(size, seed)) for seed in range(draws)])
    transforms = np.array([np.mean(1 / (spectra - point), axis=1) for point in z])
    return np.asarray(np.sqrt(np.mean(np.abs(transforms - transforms.mean(axis=1, keepdims=True)) ** 2, axis=1)))


def _form_spread(entries: str, sizes: Sequence[int], draws: int) -> tuple[Array, Array, float]:
    """Return the variance of (X'AX - tr A)/N over its exact value, its standard error, and the rate of the deviation in N.

    A is the resolvent (W + 1)^-1 of an independent sample covariance matrix W. The exact value is (2 |A|_F^2 + kappa_4 sum A_ii^2) / N^2
    with fourth cumulant 0 for Gaussian entries and -2 for signs.
    """
    ratios, errors, deviations = [], [], []
    for size in sizes:
        rng = np.random.default_rng(np.random.SeedSequence([7, size]))
        table = rng.standard_normal((2 * size, size))
        resolvent = np.linalg.inv(table.T @ table / (2 * size) + np.eye(size))
        shape = (draws, size)
        vectors = 2.0 * rng.integers(0, 2, shape) - 1 if entries == "sign" else rng.standard_normal(shape)
        form = (np.sum((vectors @ resolvent) * vectors, axis=1) - np.trace(resolvent)) / size
        cumulant = -2.0 if entries == "sign" else 0.0
        exact = (2 * np.sum(resolvent**2) + cumulant * np.sum(np.diag(resolvent) ** 2)) / size**2
        ratios.append(np.mean(form**2) / exact)
        errors.append(np.std(form**2) / exact / np.sqrt(draws))
        deviations.append(np.mean(np.abs(form)))  # the L1 norm in which the lemma is stated
    return np.array(ratios), np.array(errors), log_slope(sizes, deviations).value


@claim("J7", AREA, MarchenkoPastur, figure="spectral-edges", items=("J-9", "J-14"))
def edges(check: Check) -> None:
    """The extreme non-zero eigenvalues tend to the edges (1 -+ sqrt(gamma))^2, at distances of order p^(-2/3). The smallest
    is above every constant that is smaller than the edge once p is large enough, but it is below the edge with probability 0.168.

    The check measures the rates of both extremes and how often the smallest is below the edge or clearly below it. It also tests the
    model that draws the extremes. Entries are Gaussian there. For signs and for Student variables with five degrees of freedom, the check
    measures the rate of the smallest eigenvalue and how often it is clearly below the edge.
    """
    sizes, draws = ((50, 200, 800), 300) if check.quick else ((50, 200, 800, 3200), 2000)
    limit = 1 - TRACY_WIDOM_AT_ZERO
    error = float(np.sqrt(limit * (1 - limit) / draws))
    for ratio in (0.25, 4.0):
        law = MarchenkoPastur(ratio=ratio)
        ((low, high),) = law.support()
        ends = np.array([_extremes(law, size, draws) for size in sizes])  # (sizes, draws, 2)
        gap = (ends - np.array([low, high])).mean(axis=1)
        under = np.mean(ends[..., 0] < low, axis=1)
        far_under = float(np.mean(ends[-1, :, 0] < 0.9 * low))
        for i, name in enumerate(("smallest", "largest")):
            check.between(
                f"exponent of the mean gap of the {name}, ratio {ratio:g}", log_slope(sizes, gap[:, i]).value, -0.82, -0.55
            )
        check.near(f"P(smallest < edge) at size {sizes[-1]}, ratio {ratio:g}", under[-1], limit, 3.5 * error + 0.02)
        check.above(f"least P(smallest < edge) over the sizes, ratio {ratio:g}", under.min(), 0.05)
        check.equal(f"share of {draws} draws with smallest < 0.9 edge, ratio {ratio:g}", far_under, 0.0)
        check.show(f"mean gap of the smallest at size {sizes[-1]}, ratio {ratio:g}", float(gap[-1, 0]))
        check.show(f"mean gap of the largest at size {sizes[-1]}, ratio {ratio:g}", float(gap[-1, 1]))
        check.show(
            f"P(smallest < edge) at sizes {sizes[:-1]}, ratio {ratio:g}", ", ".join(f"{share:.3f}" for share in under[:-1])
        )
    check.below("largest z of the mean extremes, drawn tables against the bidiagonal model", _mismatch(check.quick), SIGMAS)
    few, count = ((40, 80, 160), 60) if check.quick else ((50, 100, 200, 400), 150)
    kinds: tuple[Entries, ...] = ("sign", "student")
    for entries in kinds:
        drawn = [smallest_of_tables(entries, size, count) for size in few]
        edge = 0.25  # (1 - sqrt(1/4))^2
        gaps, errors = [values.mean() - edge for values in drawn], [standard_error(values) for values in drawn]
        fit = log_slope(few, gaps, errors)
        check.near(
            f"exponent of the mean gap of the smallest, {entries} entries", fit.value, -2 / 3, 0.1 + SIGMAS * fit.error
        )
        check.near_relative(
            f"smallest eigenvalue over the edge at size {few[-1]}, {entries} entries",
            float(drawn[-1].mean()) / edge,
            1,
            0.05,
        )
        check.equal(
            f"share of {count} draws with smallest < 0.9 edge, {entries} entries",
            float(np.mean(drawn[-1] < 0.9 * edge)),
            0.0,
        )
        check.show(
            f"mean gap of the smallest over the edge, {entries} entries", ", ".join(f"{gap / edge:.4f}" for gap in gaps)
        )
    check.note(
        "Gaps decrease with exponent -2/3. Correction: the smallest eigenvalue is eventually above every constant smaller than the "
        "edge. At every large size it is below the edge with the Tracy-Widom probability 0.168."
    )


def smallest_of_tables(entries: Entries, size: int, draws: int) -> Array:
    """Return the smallest eigenvalues of X'X/n for tables with `size` columns and n = 4 `size` rows."""
    rng = np.random.default_rng([size, len(entries)])
    return np.array([sample_eigenvalues(white(rng, (4 * size, size), entries))[0] for _ in range(draws)])


def _extremes(law: MarchenkoPastur, size: int, draws: int) -> Array:
    """Return extreme eigenvalues of Gaussian matrices whose smaller side is `size`, shape (draws, 2)."""
    dimension = size if law.ratio <= 1 else round(size * law.ratio)
    draw = law.draw(dimension, 0)
    return np.array([extreme_eigenvalues(draw.rng, dimension, draw.count("ratio")) for _ in range(draws)])


def _mismatch(quick: bool) -> float:
    """Return the largest difference of mean extremes between drawn tables and the bidiagonal model, in standard errors."""
    law, size, draws = MarchenkoPastur(ratio=0.25), 40, 200 if quick else 2000
    rng = law.draw(size, 1).rng
    drawn = np.array([sample_eigenvalues(rng.standard_normal((4 * size, size)))[[0, -1]] for _ in range(draws)])
    model = _extremes(law, size, draws)
    z = np.abs(drawn.mean(axis=0) - model.mean(axis=0)) / np.sqrt((drawn.var(axis=0) + model.var(axis=0)) / draws)
    return float(z.max())


# -- conditioning -------------------------------------------------------------------------------------------------

_AREA = "Kernels and lazy training"


@claim("M13", _AREA, SquareMatrixEdge, MarchenkoPastur, figure="square-matrix", quick_decides=False, items=("M-17",))
def conditioning(check: Check) -> None:
    """At n = d the condition number of the design is of order n, and for n/d different from 1 it is bounded.

    The check applies Kolmogorov-Smirnov tests to Edelman's laws, and measures the mean trace of the inverse and condition numbers away from
    n = d.
    """
    from scipy.stats import kstest

    rng, law, draws = np.random.default_rng(0), SquareMatrixEdge(), 1000 if check.quick else 3000
    singular = np.linalg.svd(rng.standard_normal((draws, 50, 50)), compute_uv=False)
    smallest = 50 * singular[:, -1] ** 2
    chance = float(kstest(smallest, law.smallest_cdf).pvalue)
    check.above("p value of Edelman's law of n lambda_min at n = 50", chance, 1e-3)
    wrong = float(kstest(smallest, lambda x: -np.expm1(-np.sqrt(x))).pvalue)  # the law without x/2
    check.below("p value of the same law without its term x/2", wrong, 1e-3)
    check.show("p value of the law of n lambda_min, n = 50", chance)
    check.show("median condition number over n", float(np.median(singular[:, 0] / singular[:, -1])) / 50)
    for n, d in ((40, 36), (40, 44)) if check.quick else ((40, 36), (40, 44), (200, 190)):
        traces = [inverse_trace(rng.standard_normal((n, d))) for _ in range(200 if check.quick else 1000)]
        check.below(
            f"mean trace of the pseudo-inverse at n = {n}, d = {d} in standard errors",
            sigmas(traces, mean_inverse_trace(n, d)),
            4.0,
        )
    size = 200 if check.quick else 400
    for ratio in (0.25, 0.5):
        low, high = MarchenkoPastur(ratio=ratio).support()[0]
        shape = (6 if check.quick else 20, round(size / ratio), size)
        values = np.linalg.svd(rng.standard_normal(shape), compute_uv=False)
        relative = float(np.mean(values[:, 0] / values[:, -1])) / math.sqrt(high / low)
        check.between(f"condition number at d/n = {ratio:g} over its limit, d = {size}", relative, 0.92, 1.0)
    square = np.linalg.svd(rng.standard_normal((200, 20, 20)), compute_uv=False)
    medians = [float(np.median(relative[:, 0] / relative[:, -1])) for relative in (square, singular)]
    check.between("exponent in n of the median condition number", log_slope((20, 50), medians).value, 0.7, 1.3)
    check.agree("the two means of Edelman's laws", law, seeds=100 if check.quick else 220)
    check.note("At n = d the mean of the trace is infinite. Medians are reported there.")


def inverse_trace(X: Array) -> float:
    """Return the trace of the pseudo-inverse of X'X."""
    return float((np.linalg.svd(X, compute_uv=False) ** -2.0).sum())


# -- inequalities ---------------------------------------------------------------------------------------------------


@claim("J46", AREA, items=("J-8",))
def inequalities_of_the_proofs(check: Check) -> None:
    """The inequalities and identities that the proofs quote hold with the stated constants.

    The check covers the inequalities of Hoeffding, Azuma, Burkholder, Hoffman and Wielandt, and Gronwall, and the identities of Sherman and
    Morrison and of Sylvester. Probabilities are exact sums over binomial laws, walks or all signs. Controls leave out an assumption or use
    the printed formula.
    """
    from scipy import stats

    ratios = []
    for n, p, t in ((10, 0.5, 0.3), (100, 0.1, 0.08), (1000, 0.3, 0.05), (10**6, 0.5, 0.0125)):
        tail = stats.binom.sf(np.ceil(n * (p + t)) - 1, n, p) + stats.binom.cdf(np.floor(n * (p - t)), n, p)
        ratios.append(math.log(tail / 2) / hoeffding_exponent(n, 3.0 * t, -1.0, 2.0))
    check.at_least("Hoeffding: least ratio of the logarithm of the exact tail and its bound", smallest(ratios), 1.0)
    sharp = 1 + math.log(25 * math.sqrt(2 * math.pi)) / (25**2 / 2)  # the tail of a Gaussian variable beyond 25
    check.near("Hoeffding: this ratio for a fair coin, 25 standard deviations out", ratios[-1], sharp, 0.002)
    azuma = [walk_tail(12_000, 4000.0), walk_tail(800, 500.0), stopped_walk_tail(400, 60.0)]
    check.at_least("Azuma: least ratio of the logarithm of the exact tail and its bound", smallest(azuma), 1.0)
    z, fourth = 4000 / math.sqrt(30_000), 2 * 6000 * (1 + 16) / 30_000**2  # the fourth cumulant of the steps is -2 c^4
    sharp = 1 + (math.log(z * math.sqrt(2 * math.pi)) + fourth * z**4 / 24) / (z**2 / 2)
    check.near("Azuma: this ratio for a walk, 23 standard deviations out", azuma[0], sharp, 0.002)
    check_burkholder(check)
    check_matrices(check)


def hoeffding_exponent(n: int, t: float, low: float, high: float) -> float:
    """Return log(bound / 2) for P(|mean - mu| > t) <= 2 exp(-2 n t^2 / (b - a)^2)."""
    return -2 * n * t**2 / (high - low) ** 2


def azuma_exponent(t: float, squares: float) -> float:
    """Return log(bound / 2) for P(|sum D_k| >= t) <= 2 exp(-t^2 / (2 sum c_k^2))."""
    return -(t**2) / (2 * squares)


def walk_tail(steps: int, t: float) -> float:
    """Return the ratio of log(P/2) and the bound of Azuma, for a walk with fair steps that alternate between +-1 and +-2."""
    from scipy import stats

    half = steps // 2
    counts = np.arange(half + 1)
    sums = 2 * counts - half
    weights = stats.binom.pmf(counts, half, 0.5)
    reached = stats.binom.sf(np.ceil((t - sums) / 2 / 2 + half / 2) - 1, half, 0.5)  # steps of +-2 from `sums` to at least t
    return math.log(float(weights @ reached)) / azuma_exponent(t, 5.0 * half)


def stopped_walk_tail(steps: int, t: float) -> float:
    """Return the same ratio for a fair walk that stops at +-t. Its steps depend on the past."""
    width = math.ceil(t)
    law = np.zeros(2 * width + 1)
    law[width] = 1.0
    for _ in range(steps):
        inner = law[1:-1]
        after = np.zeros_like(law)
        after[0], after[-1] = law[0], law[-1]
        after[2:] += inner / 2
        after[:-2] += inner / 2
        law = after
    return math.log(law[-1]) / azuma_exponent(t, float(steps))


def check_burkholder(check: Check) -> None:
    """Check the bounds between the norms of a martingale and of its quadratic variation, by averages over all signs."""
    steps = 10 if check.quick else 14
    signs = 2.0 * ((np.arange(2**steps)[:, None] >> np.arange(steps)) & 1) - 1
    worst, equal = [], []
    for seed in range(5 if check.quick else 20):
        rng = np.random.default_rng([46, seed])
        increments = np.empty_like(signs)
        for k in range(steps):  # the size of step k depends on the signs before it
            sizes = np.exp(1.5 * rng.standard_normal(2**k))
            past = np.arange(2**steps) % 2**k
            increments[:, k] = sizes[past] * signs[:, k]
        ends, variation = np.abs(increments.sum(axis=1)), np.sqrt((increments**2).sum(axis=1))
        for p in (1.25, 1.5, 3.0, 4.0):
            constant = max(p, p / (p - 1)) - 1
            ratio = np.mean(ends**p) ** (1 / p) / np.mean(variation**p) ** (1 / p)
            worst.append(max(ratio, 1 / ratio) / constant)
        equal.append(abs(float(np.mean(ends**2) / np.mean(variation**2)) - 1))
    check.at_most("Burkholder: largest ratio of norms over max(p, p/(p-1)) - 1, p = 1.25 to 4", largest(worst), 1.0)
    check.below("Burkholder at p = 2: largest distance of the ratio of both second moments from 1", largest(equal), 1e-9)
    growth = [doubling_variation(n, 1.0) for n in (10, 40, 160)]
    check.near(
        "Burkholder at p = 1, doubled stakes: exponent in n of E sqrt(Q_n) / E|X_n|",
        log_slope((40, 160), growth[1:]).value,
        1,
        0.05,
    )
    check.below("the same at p = 1.5: ratio of norms at n = 160", doubling_variation(160, 1.5), 2.0)


def doubling_variation(steps: int, p: float) -> float:
    """Return |sqrt(Q_n)|_p / |X_n|_p for X_k = 2^k while every toss is heads, and 0 after the first tails."""
    k = np.arange(1, steps + 1)
    # After tails at toss k: increments 1, 1, 2, ..., 2^(k-2), and -2^(k-1), so that Q = 1 + (4^(k-1) - 1) / 3 + 4^(k-1)
    until = 1 + (4.0 ** (k - 1) - 1) / 3
    moments = np.sum(0.5**k * (until + 4.0 ** (k - 1)) ** (p / 2)) + 0.5**steps * (1 + (4.0**steps - 1) / 3) ** (p / 2)
    return float((moments / (0.5**steps * 2.0 ** (steps * p))) ** (1 / p))


def check_matrices(check: Check) -> None:
    """Check the inequality of Hoffman and Wielandt, both identities of matrices, and Gronwall's inequality."""
    from scipy.integrate import solve_ivp

    rng = np.random.default_rng(46)
    ratios = [hoffman_wielandt(*normal_matrices(rng, 5, together)) for together in (False,) * 20 + (True,)]
    check.at_most("Hoffman-Wielandt: largest ratio of both sides, pairs of normal matrices", largest(ratios), 1 + 1e-9)
    check.near("Hoffman-Wielandt: ratio for close normal matrices that commute", ratios[-1], 1.0, 1e-9)
    block = np.array([[0.0, 1.0], [0.0, 0.0]])
    moved = np.array([[0.0, 1.0], [0.01, 0.0]])
    check.above("Hoffman-Wielandt: ratio for matrices that are not normal", hoffman_wielandt(block, moved), 100)
    gaps, printed, determinants = [], [], []
    for _ in range(20):
        a, v, t = rng.standard_normal((6, 6)) + 3 * np.eye(6), rng.standard_normal(6), float(rng.uniform(0.2, 2))
        inverse, direct = np.linalg.inv(a), np.linalg.solve(a + t * np.outer(v, v), v)
        gaps.append(float(np.max(np.abs(direct - inverse @ v / (1 + t * v @ inverse @ v)))))
        printed.append(float(np.max(np.abs(direct - inverse @ v / (1 + t * v @ a @ v)))))
        b, c = rng.standard_normal((4, 7)), rng.standard_normal((7, 4))
        determinants.append(abs(np.linalg.det(np.eye(4) + b @ c) / np.linalg.det(np.eye(7) + c @ b) - 1))
    check.below("Sherman-Morrison: largest error", largest(gaps), 1e-9)
    check.above("Sherman-Morrison: least error of the printed formula", smallest(printed), 1e-3)
    check.below("Sylvester: largest relative difference of both determinants", largest(determinants), 1e-9)
    times = np.linspace(0, 4, 41)
    bound = np.exp(np.sin(2 * times) / 2 + 0.3 * times)
    options = dict(t_eval=times, rtol=1e-11, atol=1e-12)
    equal = solve_ivp(lambda t, u: (np.cos(2 * t) + 0.3) * u, (0, 4), [1.0], **options).y[0]
    less = solve_ivp(lambda t, u: (np.cos(2 * t) + 0.3) * np.sin(u) - u**3 / 5, (0, 4), [1.0], **options).y[0]
    check.near("Gronwall: largest ratio to the bound if u' = beta u", float(np.max(equal / bound)), 1.0, 1e-8)
    check.at_most("Gronwall: largest ratio to the bound after t = 0 if u' < beta u", float(np.max((less / bound)[1:])), 1.0)


def normal_matrices(rng: np.random.Generator, size: int, commute: bool) -> tuple[Any, Any]:
    """Return two random normal matrices, which commute and are close to each other on demand."""
    bases = [np.linalg.qr(rng.standard_normal((size, size)) + 1j * rng.standard_normal((size, size)))[0] for _ in range(2)]
    values = rng.standard_normal((2, size)) + 1j * rng.standard_normal((2, size))
    if commute:
        bases[1], values[1] = bases[0], values[0] + 0.01 * values[1]
    first, second = ((basis * row) @ basis.conj().T for basis, row in zip(bases, values, strict=True))
    return first, second


def hoffman_wielandt(a: Any, b: Any) -> float:
    """Return the least sum of squared distances of paired eigenvalues over |A - B|_F^2, which is at most 1 for normal matrices."""
    from scipy.optimize import linear_sum_assignment

    distances = np.abs(np.linalg.eigvals(a)[:, None] - np.linalg.eigvals(b)) ** 2
    return float(distances[linear_sum_assignment(distances)].sum() / np.sum(np.abs(a - b) ** 2))
