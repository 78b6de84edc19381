"""Claims about spectra of sample covariances (J5 to J7, M13)."""

from __future__ import annotations

import math
from collections.abc import Sequence

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
    check.show("N times the standard deviation at v = 1", float(sizes[-1] * spread[-1, 0]))
    check.show("N times the standard deviation at v = 0.03", float(sizes[-1] * spread[-1, -1]))
    check.note(
        "Correction: the tail is exp(-c N v^2 t^2), because the increments of the martingale are at most 2/(vN). A tail "
        "exp(-c N t^2 / v) would become sharper as v tends to 0, but the measured spread grows. The off-diagonal part of a quadratic form "
        "in a symmetric A has variance 2 sum A_ij^2, not sum A_ij^2."
    )


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
