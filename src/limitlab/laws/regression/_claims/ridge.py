"""Claims about least squares in high dimension, with its resolvent (J8) and in the isotropic model (T9)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.check import SIGMAS, Check, largest, log_slope, slope, smallest
from limitlab.lab.claims import claim
from limitlab.laws.regression.early_stopping import EarlyStopping
from limitlab.laws.regression.linear_model import LinearModel
from limitlab.laws.regression.ridge import Ridge, exact_ridgeless
from limitlab.models.designs import draw_design
from limitlab.numerics.equivalents import effective_ridge, resolvent_ridge

Array = NDArray[np.float64]

GROUPS: dict[str, tuple[float, ...]] = dict(
    eigenvalues=(0.2, 1.0, 3.0), weights=(1.0, 1.0, 1.0), signal_energy=(0.5, 1.0, 0.2)
)

RATIOS = (0.2, 0.5, 0.8, 1.25, 2.0, 5.0)

POINTS = (-0.1, -1.0, 0.5 + 0.5j)
"""Arguments z at which the resolvent is compared, two negative ones (ridges) and one with real part in the bulk."""


@claim(
    "J8",
    "Implicit bias, interpolation, spectra",
    Ridge,
    EarlyStopping,
    figure="ridge-double-descent",
    items=("J-7", "J-13", "J-15", "M-17"),
)
def double_descent(check: Check) -> None:
    """Least-norm regression has bias 0 and variance tau^2 gamma/(1 - gamma) for gamma = p/n < 1, bias r^2 (1 - 1/gamma) and
    variance tau^2/(gamma - 1) beyond; with any covariance, the resolvent of S tends to (kappa/-z)(Sigma + kappa)^-1.

    The inputs need independent entries with more than four moments. The check compares theory and simulation over gamma, with and without
    correlated features, and for entries that are signs or Student variables with five degrees of freedom. Then it compares the resolvent.
    """
    sizes, seeds = ((40, 80, 160), 60) if check.quick else ((80, 160, 320), 40)
    agreed, laws = 0, double_descent_laws(RATIOS[1::3] if check.quick else RATIOS)
    for law in laws:
        comparison = check.compare(law, sizes, seeds, observables=["bias", "variance", "train_error"])
        agreed += comparison.passed
        if len(law.eigenvalues) == 1 and getattr(law, "entries", "gaussian") == "gaussian":
            for row in comparison.rows[:2]:
                check.show(f"{row.observable} at gamma = {law.ratio:g} in theory", row.theory)
                check.show(f"{row.observable} at gamma = {law.ratio:g} simulated", row.simulation)
    check.equal(
        f"comparisons of bias, variance and train error that agree, of {len(laws)} (isotropic, in groups, other entries, along a flow)",
        agreed,
        len(laws),
    )
    low, high, top, after, later = np.asarray(Ridge(ridge=0.0).evaluate(ratio=[0.9, 0.99, 1.0, 1.01, 1.1])["test_error"])
    check.true("the test error is infinite at gamma = 1", bool(np.isinf(top)))
    check.above("rise of the test error from gamma = 0.9 to 0.99", high - low, 0)
    check.above("fall of the test error from gamma = 1.01 to 1.1", after - later, 0)
    dimensions, draws = ((24, 51, 102, 201), 60) if check.quick else ((51, 102, 201, 402), 120)
    gaps = resolvent_gaps(dimensions, draws)
    trace_rate, form_rate = (log_slope(dimensions, gaps[kind]).value for kind in ("trace", "form"))
    error = slope_error(dimensions, draws)
    check.near("exponent in p of the relative gap of tr A (S - z)^-1 / p", trace_rate, -1, SIGMAS * error)
    check.near("exponent in p of the relative gap of theta' (S - z)^-1 theta", form_rate, -0.5, SIGMAS * error)
    check.below("standard error of both exponents", error, 0.08)
    check.show(f"relative gap of the trace at p = {dimensions[-1]}", gaps["trace"][-1])
    check.show(f"relative gap of the form at p = {dimensions[-1]}", gaps["form"][-1])
    check.note(
        "Below gamma = 1 the variance is tau^2 gamma / (1 - gamma). With the printed denominator gamma - 1 it would be "
        "negative. The limits with bias r^2 (1 - 1/gamma) hold for gamma > 1."
    )


def double_descent_laws(grouped: tuple[float, ...]) -> list[LinearModel]:
    """Return the laws that are compared with simulation, isotropic at all ratios, with groups or other entries at some, and a flow."""
    laws: list[LinearModel] = [Ridge(ratio=ratio, ridge=0.0, noise=0.5) for ratio in RATIOS]
    laws += [Ridge(ratio=ratio, ridge=0.0, noise=0.5, **GROUPS) for ratio in grouped]
    laws += [
        Ridge(ratio=0.5, ridge=0.0, noise=0.5, entries="student"),
        Ridge(ratio=2.0, ridge=0.0, noise=0.5, entries="sign"),
    ]
    laws += [Ridge(ratio=ratio, ridge=0.0, noise=0.5, entries="student") for ratio in grouped if ratio > 1]
    return [*laws, EarlyStopping(ratio=2.0, noise=0.5, times=(0.3, 3.0, 300.0), **GROUPS)]


def resolvent_gaps(dimensions: tuple[int, ...], draws: int, ratio: float = 1.5) -> dict[str, list[float]]:
    """Return the root mean square gaps, relative to the limit, of tr A (S - z)^-1 / p and theta' (S - z)^-1 theta, by dimension."""
    gaps: dict[str, list[float]] = {"trace": [], "form": []}
    for p in dimensions:
        counts, n = [p // 3] * 3, round(p / ratio)
        population = np.repeat(GROUPS["eigenvalues"], counts)
        ramp = np.arange(1, p + 1) / (p * (p + 1) / 2)  # A = diag(ramp) and theta = sqrt(ramp) do not depend on the groups
        limits = [ramp @ resolvent_limit(z, population, n) for z in POINTS]
        squares = np.zeros(2)
        for draw in range(draws):
            X = draw_design(np.random.default_rng([p, draw]), n, GROUPS["eigenvalues"], counts).X
            x, vectors = np.linalg.eigh(X.T @ X / n)
            for z, limit in zip(POINTS, limits, strict=True):
                trace, form = ramp @ vectors**2 @ (1 / (x - z)), (np.sqrt(ramp) @ vectors) ** 2 @ (1 / (x - z))
                squares += np.abs(np.array([trace, form]) / limit - 1) ** 2
        for kind, square in zip(gaps, squares, strict=True):
            gaps[kind].append(float(np.sqrt(square / (draws * len(POINTS)))))
    return gaps


def resolvent_limit(z: complex, population: Array, n: int) -> NDArray[np.complex128]:
    """Return the diagonal of (kappa / -z) (Sigma + kappa)^-1, the limit of (S - z)^-1."""
    load = np.full(len(population), 1 / n)
    kappa = resolvent_ridge(z, population, load) if np.imag(z) else effective_ridge(-np.real(z), population, load)
    return np.asarray(-kappa / z / (population + kappa), dtype=np.complex128)


def slope_error(sizes: tuple[int, ...], draws: int) -> float:
    """Return the standard error of an exponent that is fitted to root mean squares of `draws` Gaussian numbers each.

    >>> round(slope_error((10, 100), 50), 4)
    0.0614
    """
    relative = np.full(len(sizes), (2 * draws) ** -0.5)
    return slope(np.log(sizes), np.zeros(len(sizes)), relative).error


FINITE_CASES = ((60, 30), (60, 48), (60, 55), (60, 66), (60, 120), (60, 300))
"""Numbers of samples and features at which the exact finite-size mean is compared."""


@claim("T9", "Random features and margins", Ridge, figure="ridge-double-descent", items=("J-7", "M-17"))
def isotropic(check: Check) -> None:
    """In the isotropic linear model the variance of least squares diverges at n = d, and the bias is r^2 (1 - n/d)^+.

    The check compares bias and variance with the exact means at finite n and p, and fits the growth of the variance at n = d.
    """
    seeds = 80 if check.quick else 600
    gaps, misprint = [], []
    for n, p in FINITE_CASES:
        runs = Ridge(ratio=p / n, ridge=0.0, noise=1.0).simulate_batch(p, range(seeds))
        exact = exact_ridgeless(n, p, noise=1.0)
        for name in ("bias", "variance"):
            error = max(float(runs[name].std("seed", ddof=1)) / np.sqrt(seeds), 1e-12)
            gaps.append(abs(float(runs[name].mean()) - float(exact[name])) / error)
            if name == "variance" and p < n:  # the misprint tau^2 gamma / (gamma - 1)
                misprint.append(abs(float(runs[name].mean()) - p / (p - n)) / error)
    check.below("largest z of bias and variance against their exact means at six (n, d)", largest(gaps), SIGMAS)
    check.above("smallest z of a variance tau^2 gamma / (gamma - 1) below n = d", smallest(misprint), 10)
    sizes = (25, 50, 100, 200) if check.quick else (25, 50, 100, 200, 400)
    square = Ridge(ratio=1.0, ridge=0.0, noise=1.0)
    medians = [float(square.simulate_batch(p, range(seeds))["variance"].median()) for p in sizes]
    check.near("exponent in n of the median variance at n = d", log_slope(sizes, medians).value, 1, 0.3)
    limit = Ridge(ridge=0.0, noise=1.0).evaluate(ratio=1 - np.geomspace(1e-1, 1e-6, 6))["variance"]
    check.near("(1 - gamma) V / tau^2 at 1 - gamma = 1e-6", float(np.asarray(limit)[-1] * 1e-6), 1, 1e-5)
    check.show("draws", seeds)
    check.show(f"median variance at n = d = {sizes[0]}", medians[0])
    check.show(f"median variance at n = d = {sizes[-1]}", medians[-1])
    check.note("The variance for gamma < 1 is tau^2 gamma / (1 - gamma), with the sign corrected.")
