"""Claims about local averages: nearest neighbours (J3) and the smoother that interpolates (J4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limitlab.ledger.claims import Claim, Number, Outcome
from limitlab.laws.regression import singular_kernel
from limitlab.laws.regression.nearest_neighbours import NearestNeighbours
from limitlab.laws.regression.rough_torus import measured_risk, octave_samples

Array = NDArray[np.float64]

AREA = "Implicit bias, interpolation, spectra"
SIGMAS = 5.0
"""Standard errors within which a simulated mean has to agree with an exact law."""
EXACT_SLOPE = 0.005
"""Distance from its limit that the local slope of the exact law may keep at the largest sample sizes."""
MEASURED_SLOPE = 0.05
"""The same for the slope of the estimator over the last octave, on top of five standard errors."""


# -- J3: k nearest neighbours ------------------------------------------------------------------------------------------

NEIGHBOUR_LAWS = (
    NearestNeighbours(samples=60, neighbours=1, dimension=2, amplitude=1.5, noise=0.6, labels="drawn"),
    NearestNeighbours(samples=60, neighbours=8, dimension=2, amplitude=1.5, noise=0.6, labels="drawn"),
    NearestNeighbours(samples=40, neighbours=40, dimension=3, smoothness=0.5, noise=1.0, labels="drawn"),
)


def check_neighbours(quick: bool) -> Outcome:
    """Theory against estimators that see only points and noisy labels; then the two limits of the formula."""
    sets, seeds = (150, 12) if quick else (1000, 40)
    worst, variance_ratio, ratio_error = 0.0, 0.0, 0.0
    for law in NEIGHBOUR_LAWS:
        theory, runs = law.theory(), law.simulate_batch(sets, range(seeds))
        for name in law.observables:
            error = float(runs[name].std("seed", ddof=1)) / np.sqrt(seeds)
            worst = max(worst, abs(float(runs[name].mean() - theory[name])) / float(error))
        if law.neighbours == 8:
            scale = law.noise**2 / law.neighbours
            variance_ratio = float(runs["variance"].mean()) / scale
            ratio_error = float(runs["variance"].std("seed", ddof=1)) / np.sqrt(seeds) / scale
    one = NearestNeighbours(samples=10**12, neighbours=1, dimension=2, noise=0.6).theory()
    interpolating = float(one.test_error) / 0.6**2
    slopes = neighbour_slopes(dimension=2, smoothness=1.0, decades=range(2, 8))
    passed = (
        worst < SIGMAS
        and abs(variance_ratio - 1) < SIGMAS * ratio_error < 0.5
        and abs(interpolating - 2) < 1e-6
        and abs(slopes[-1] + 0.5) < EXACT_SLOPE
    )
    return Outcome(
        passed=bool(passed),
        criterion=(
            f"every observable within {SIGMAS:g} standard errors; variance k/tau^2 = 1 and not 0; test error of one "
            f"neighbour -> 2 tau^2; slope of the best excess risk (d = 2) within {EXACT_SLOPE} of -1/2 at n = 10^6..10^7"
        ),
        measured=dict(
            largest_z=worst,
            training_sets=sets * seeds,
            variance_times_k_over_noise=variance_ratio,
            variance_standard_error=ratio_error,
            one_neighbour_test_error_over_noise=interpolating,
            first_slope=float(slopes[0]),
            last_slope=float(slopes[-1]),
        ),
        note="The estimator averages the neighbours' noisy labels; averaging the target itself would leave no tau^2/k.",
    )


def neighbour_slopes(dimension: int, smoothness: float, decades: range) -> Array:
    """Local slopes of the excess risk at the best k, decade by decade."""
    risks = []
    for decade in decades:
        law = NearestNeighbours(samples=10**decade, neighbours=1, dimension=dimension, smoothness=smoothness, noise=1.0)
        risks.append(float(law.replace(neighbours=law.best_neighbours()).theory().excess_risk))
    return np.diff(np.log10(risks))


# -- J4: the interpolating smoother ------------------------------------------------------------------------------------

RATE_CASES = ((1, 1.0, 0.4), (2, 1.0, 0.6), (2, 0.5, 0.6), (3, 1.0, 1.2), (5, 1.0, 2.0))
"""Dimension, smoothness and singularity (all below d/2) at which the exact law's rate is followed."""
TORUS_CASES = ((1, 0.5, 0.3, 4), (1, 0.75, 0.3, 4), (2, 0.5, 0.6, 4))
"""Dimension, smoothness, singularity and number of octaves of the measured rate."""


def check_interpolating_smoother(quick: bool) -> Outcome:
    """Slopes of the exact law, slopes of the estimator on a rough function, and the training error of the latter."""
    measured: dict[str, Number] = {}
    passed = True
    for dimension, smoothness, singularity in RATE_CASES:
        slopes, target = exact_slopes(dimension, smoothness, singularity, range(2, 17))
        label = f"d{dimension}_beta{smoothness:g}"
        measured[f"exact_{label}_target"] = -target
        measured[f"exact_{label}_slope_1e2_1e3"] = float(slopes[0])
        measured[f"exact_{label}_slope_1e15_1e16"] = float(slopes[-1])
        passed &= bool(abs(slopes[-1] + target) < EXACT_SLOPE)
    gap = 0.0
    for dimension, smoothness, singularity, octaves in TORUS_CASES[: 1 if quick else None]:
        slopes, errors, training_gap = torus_slopes(dimension, smoothness, singularity, octaves, seeds=6 if quick else 16)
        target = 2 * smoothness / (2 * smoothness + dimension)
        label = f"d{dimension}_beta{smoothness:g}"
        measured[f"measured_{label}_target"] = -target
        measured[f"measured_{label}_slope_first_octave"] = float(slopes[0])
        measured[f"measured_{label}_slope_last_octave"] = float(slopes[-1])
        measured[f"measured_{label}_slope_error"] = float(errors[-1])
        passed &= bool(abs(slopes[-1] + target) < MEASURED_SLOPE + SIGMAS * errors[-1] and errors[-1] < 0.02)
        gap = max(gap, training_gap)
    hoeffding, chernoff, tail = small_window_terms(samples=10**6, dimension=2, smoothness=1.0)
    measured.update(largest_training_gap=gap, hoeffding_term=hoeffding, chernoff_term=chernoff, exact_tail=tail)
    passed &= gap == 0.0 and hoeffding > 1 > chernoff >= 10**6 * tail
    return Outcome(
        passed=passed,
        criterion=(
            f"slope of the exact law within {EXACT_SLOPE} of -2 beta/(2 beta + d) at n = 10^15..10^16; slope of the "
            f"estimator over the last octave within {MEASURED_SLOPE} + {SIGMAS:g} standard errors; training error exactly 0; "
            "the multiplicative tail bound vanishes where the additive one does not"
        ),
        measured=measured,
        note=(
            "The rate needs n exp(-c n h^d) -> 0 (multiplicative Chernoff bound). Hoeffding's inequality would give "
            "n exp(-c n h^{2d}), which does not vanish at h = n^{-1/(2 beta + d)} once d >= 2 beta."
        ),
    )


def exact_slopes(dimension: int, smoothness: float, singularity: float, decades: range) -> tuple[Array, float]:
    """Local slopes of the exact excess risk at h = n^{-1/(2 beta + d)}, decade by decade, and the exponent they tend to."""
    n = 10.0 ** np.array(decades)
    h = n ** (-1 / (2 * smoothness + dimension))
    risks = singular_kernel.risk(n, h, singularity, dimension, smoothness, amplitude=1.0, noise=1.0)["excess_risk"]
    target = float(singular_kernel.rate_exponent(singularity, dimension, smoothness))
    return np.diff(np.log10(risks)), target


def torus_slopes(
    dimension: int, smoothness: float, singularity: float, octaves: int, seeds: int
) -> tuple[Array, Array, float]:
    """Slopes of the measured risk from octave to octave, their standard errors, and the largest training gap."""
    samples = octave_samples(500, octaves, dimension, smoothness)
    runs = [[measured_risk(n, seed, dimension, smoothness, singularity) for seed in range(seeds)] for n in samples]
    risks = np.array([[run["excess_risk"] for run in row] for row in runs])
    mean, error = risks.mean(axis=1), risks.std(axis=1, ddof=1) / np.sqrt(seeds)
    steps = np.diff(np.log(samples))
    slopes = np.diff(np.log(mean)) / steps
    errors = np.hypot(error[1:] / mean[1:], error[:-1] / mean[:-1]) / steps
    return slopes, errors, max(run["training_gap"] for row in runs for run in row)


def small_window_terms(samples: int, dimension: int, smoothness: float) -> tuple[float, float, float]:
    """What windows with less than half their expected samples add to the bound, n P(Bin(n, p) <= n p/2), p = h^d.

    Returned: n exp(-n p^2/2) from Hoeffding's inequality, n exp(-n p/8) from Chernoff's, and the probability itself.
    """
    from scipy.special import bdtr

    p = samples ** (-dimension / (2 * smoothness + dimension))
    tail = float(bdtr(np.floor(samples * p / 2), samples, p))
    return samples * float(np.exp(-samples * p**2 / 2)), samples * float(np.exp(-samples * p / 8)), tail


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="J3",
        area=AREA,
        statement=(
            "The test error of k nearest neighbours is tau^2 + E bias^2 + tau^2/k; one neighbour interpolates, yet its test "
            "error tends to 2 tau^2 only, and the best k gives the rate n^{-2 beta/(2 beta + d)}."
        ),
        laws=("NearestNeighbours",),
        check=check_neighbours,
        figure="nearest-neighbours-risk",
    ),
    Claim(
        id="J4",
        area=AREA,
        statement=(
            "A kernel smoother with a singularity |x|^-a, 0 < a < d/2, passes through every noisy label and still attains "
            "the optimal rate n^{-2 beta/(2 beta + d)} at h = n^{-1/(2 beta + d)}."
        ),
        laws=("SingularKernelSmoother",),
        check=check_interpolating_smoother,
        figure="interpolating-smoother-rate",
    ),
)
