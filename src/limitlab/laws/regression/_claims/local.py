"""Claims about nearest neighbours (J3) and about the smoother that interpolates (J4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.check import SIGMAS, Check, largest, sigmas, standard_error
from limitlab.lab.claims import claim
from limitlab.laws.regression import singular_kernel
from limitlab.laws.regression._smoothers import SingularKernelRegressor, measured_risk, octave_samples
from limitlab.laws.regression.nearest_neighbours import NearestNeighbours
from limitlab.laws.regression.singular_kernel import SingularKernelSmoother

Array = NDArray[np.float64]

AREA = "Implicit bias, interpolation, spectra"

EXACT_SLOPE = 0.005
"""Allowed distance of the local slope of the exact law from its limit at the largest sample sizes."""

MEASURED_SLOPE = 0.03
"""Allowed distance of the estimator's slope over the last octave from its limit, in addition to three standard errors."""

NEIGHBOUR_LAWS = (
    NearestNeighbours(samples=60, neighbours=1, dimension=2, amplitude=1.5, noise=0.6, labels="drawn"),
    NearestNeighbours(samples=60, neighbours=8, dimension=2, amplitude=1.5, noise=0.6, labels="drawn"),
    NearestNeighbours(samples=40, neighbours=40, dimension=3, smoothness=0.5, noise=1.0, labels="drawn"),
)


@claim("J3", AREA, NearestNeighbours, figure="nearest-neighbours-risk", items=("J-5",))
def neighbours(check: Check) -> None:
    """The test error of k nearest neighbours is tau^2 + E bias^2 + tau^2/k. One neighbour interpolates, and its test error tends to
    2 tau^2. With the best k the excess risk has the rate n^{-2 beta/(2 beta + d)}.

    The check compares the theory with estimators on drawn points and noisy labels, and then evaluates the two limits of the formula.
    """
    sets, seeds = (150, 12) if check.quick else (1000, 40)
    runs = [law.simulate_batch(sets, range(seeds)) for law in NEIGHBOUR_LAWS]
    z = [
        sigmas(run[name].values, law.theory()[name].values)
        for law, run in zip(NEIGHBOUR_LAWS, runs, strict=True)
        for name in law.observables
    ]
    check.below("largest z of every observable, 3 estimators", largest(z), SIGMAS)
    scaled = runs[1]["variance"].values * NEIGHBOUR_LAWS[1].neighbours / NEIGHBOUR_LAWS[1].noise ** 2
    allowed = SIGMAS * standard_error(scaled)
    check.near("variance times k/tau^2 at k = 8", float(scaled.mean()), 1, allowed)
    check.below(f"{SIGMAS:g} standard errors of the variance times k/tau^2", allowed, 0.5)
    nearest = NearestNeighbours(samples=10**12, neighbours=1, dimension=2, noise=0.6).theory()
    check.near("test error of one neighbour over tau^2 at n = 10^12", float(nearest.test_error) / 0.6**2, 2, 1e-6)
    slopes = neighbour_slopes(dimension=2, smoothness=1.0, decades=range(2, 8))
    check.near("slope of the best excess risk at n = 10^6..10^7, d = 2", float(slopes[-1]), -0.5, EXACT_SLOPE)
    check.show("training sets", sets * seeds)
    check.show("slope of the best excess risk at n = 10^2..10^3, d = 2", float(slopes[0]))
    check.note(
        "The estimator averages noisy labels of neighbours. An average of noiseless labels would have no term tau^2/k."
    )


def neighbour_slopes(dimension: int, smoothness: float, decades: range) -> Array:
    """Return the local slopes of the excess risk at the best k, one per decade."""
    risks = []
    for decade in decades:
        law = NearestNeighbours(samples=10**decade, neighbours=1, dimension=dimension, smoothness=smoothness, noise=1.0)
        risks.append(float(law.replace(neighbours=law.best_neighbours()).theory().excess_risk))
    return np.diff(np.log10(risks))


RATE_CASES = ((1, 1.0, 0.4), (2, 1.0, 0.6), (2, 0.5, 0.6), (3, 1.0, 1.2), (5, 1.0, 2.0))
"""Dimension, smoothness and singularity (all below d/2) at which the rate of the exact law is checked."""

TORUS_CASES = ((1, 0.5, 0.3, 4), (1, 0.75, 0.3, 4), (2, 0.5, 0.6, 4))
"""Dimension, smoothness, singularity and number of octaves of the measured rate."""


@claim("J4", AREA, SingularKernelSmoother, figure="interpolating-smoother-rate", items=("J-6",))
def interpolating_smoother(check: Check) -> None:
    """A kernel smoother with a singularity |x|^-a, 0 < a < d/2, tends to the noisy label at every sample and has the
    optimal rate n^{-2 beta/(2 beta + d)} at h = n^{-1/(2 beta + d)}.

    The check computes slopes of the exact law, and slopes and training errors of the estimator on a rough function.
    """
    for dimension, smoothness, singularity in RATE_CASES:
        slopes, target = exact_slopes(dimension, smoothness, singularity, range(2, 17))
        case = f"exact law, d = {dimension}, beta = {smoothness:g}"
        check.near(f"{case}: slope at n = 10^15..10^16", float(slopes[-1]), -target, EXACT_SLOPE)
        check.show(f"{case}: slope at n = 10^2..10^3", float(slopes[0]))
    gaps = []
    for dimension, smoothness, singularity, octaves in TORUS_CASES[: 1 if check.quick else None]:
        slopes, errors, gap = torus_slopes(dimension, smoothness, singularity, octaves, seeds=6 if check.quick else 16)
        target = 2 * smoothness / (2 * smoothness + dimension)
        case = f"estimator, d = {dimension}, beta = {smoothness:g}"
        allowed = MEASURED_SLOPE + 3 * float(errors[-1])
        check.near(f"{case}: slope over the last octave", float(slopes[-1]), -target, allowed)
        check.below(f"{case}: standard error of the slope", float(errors[-1]), 0.02)
        check.show(f"{case}: slope over the first octave", float(slopes[0]))
        gaps.append(gap)
    for dimension, _, singularity, _ in TORUS_CASES[: 1 if check.quick else None]:
        exponent, gap = approach_to_labels(dimension, singularity)
        case = f"d = {dimension}, a = {singularity:g}"
        check.near(
            f"exponent in the distance to a sample of the gap between fit and label, {case}", exponent, singularity, 0.02
        )
        check.show(f"gap between fit and label at distance 1e-13 of a sample, {case}", gap)
    check.show("largest training error", largest(gaps))
    hoeffding, chernoff, tail = small_window_terms(samples=10**6, dimension=2, smoothness=1.0)
    check.above("additive tail bound (Hoeffding) at n = 10^6", hoeffding, 1)
    check.below("multiplicative tail bound (Chernoff) at n = 10^6", chernoff, 1)
    check.at_most("n times the tail itself, against Chernoff's bound", 10**6 * tail, chernoff)
    check.note(
        "Slopes tend to -2 beta/(2 beta + d). The rate requires n exp(-c n h^d) -> 0 (multiplicative Chernoff bound). Hoeffding's "
        "inequality would give n exp(-c n h^{2d}), which does not vanish at h = n^{-1/(2 beta + d)} once d >= 2 beta."
    )


def exact_slopes(dimension: int, smoothness: float, singularity: float, decades: range) -> tuple[Array, float]:
    """Return the slopes of the exact excess risk at the best order of the bandwidth, one per decade, and their limit."""
    n = 10.0 ** np.array(decades)
    h = n ** (-1 / (2 * smoothness + dimension))
    risks = singular_kernel.risk(n, h, singularity, dimension, smoothness, amplitude=1.0, noise=1.0)["excess_risk"]
    target = float(singular_kernel.rate_exponent(singularity, dimension, smoothness))
    return np.diff(np.log10(risks)), target


def torus_slopes(
    dimension: int, smoothness: float, singularity: float, octaves: int, seeds: int
) -> tuple[Array, Array, float]:
    """Return the slopes of the measured risk between octaves, their standard errors, and the largest training gap."""
    samples = octave_samples(500, octaves, dimension, smoothness)
    runs = [[measured_risk(n, seed, dimension, smoothness, singularity) for seed in range(seeds)] for n in samples]
    risks = np.array([[run["excess_risk"] for run in row] for row in runs])
    mean, error = risks.mean(axis=1), risks.std(axis=1, ddof=1) / np.sqrt(seeds)
    steps = np.diff(np.log(samples))
    slopes = np.diff(np.log(mean)) / steps
    errors = np.hypot(error[1:] / mean[1:], error[:-1] / mean[:-1]) / steps
    return slopes, errors, max(run["training_gap"] for row in runs for run in row)


def approach_to_labels(dimension: int, singularity: float) -> tuple[float, float]:
    """Return the exponent of |f_n(X_i + e) - Y_i| in |e|, between |e| = 1e-10 and 1e-13, and the mean of this gap at 1e-13.

    The gap tends to 0 like |e|^a if the kernel has the singularity |x|^-a, and not at all for a bounded kernel.

    >>> exponent, gap = approach_to_labels(1, 0.3)
    >>> abs(exponent - 0.3) < 0.02  # at these distances the exponent still differs by a few per cent
    True
    """
    rng = np.random.default_rng(dimension)
    x = rng.random((400, dimension))
    labels = rng.standard_normal(400)
    model = SingularKernelRegressor(bandwidth=0.01 ** (1 / dimension), singularity=singularity).fit(x, labels)
    steps = (1e-10, 1e-13)
    gaps = [float(np.abs(model.predict(x + step / np.sqrt(dimension)) - labels).mean()) for step in steps]
    return float(np.log(gaps[0] / gaps[1]) / np.log(steps[0] / steps[1])), gaps[1]


def small_window_terms(samples: int, dimension: int, smoothness: float) -> tuple[float, float, float]:
    """Return two bounds of n P, and P, where P is the probability of a window with at most half its expected samples.

    P = P(Bin(n, p) <= n p/2) with p = h^d. The bounds are n exp(-n p^2/2) from Hoeffding's inequality and n exp(-n p/8) from Chernoff's.
    """
    from scipy.special import bdtr

    p = samples ** (-dimension / (2 * smoothness + dimension))
    tail = float(bdtr(np.floor(samples * p / 2), samples, p))
    return samples * float(np.exp(-samples * p**2 / 2)), samples * float(np.exp(-samples * p / 8)), tail
