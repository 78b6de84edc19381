"""Claims about ridge regression on random features: its limit (T4), double descent (T5), the best ridge (T6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from limitlab.ledger.claims import Claim, Number, Outcome
from limitlab.lab.compare import compare
from limitlab.laws.regression.random_features import RandomFeaturesRidge, risk
from limitlab.laws.regression.random_features_tuning import best_ridge, ridgeless_width, snr_threshold
from limitlab.models.activations import moments

Array = NDArray[np.float64]

AREA = "Random features and margins"
SIGMAS = 5.0
"""Standard errors by which a measured difference has to stand out, or within which it has to vanish."""
RATE_BAND = 0.3
"""Distance from 1 that a fitted exponent of the finite-size gap may have: terms of order 1/d^2 bend it at small d."""
RATE_ERROR = 0.1
"""Standard error that such an exponent may have at most, so that 1/2 is told from 1."""
ACTIVATIONS = ("relu", "tanh", "erf")


# -- T4: theory against simulation -----------------------------------------------------------------------------------------

CASES = (
    RandomFeaturesRidge(activation="relu", width_ratio=4.0, sample_ratio=2.0, ridge=1e-3, noise=0.5),
    RandomFeaturesRidge(activation="tanh", width_ratio=2.0, sample_ratio=2.0, ridge=1e-3, noise=0.5),
    RandomFeaturesRidge(activation="erf", width_ratio=0.8, sample_ratio=2.0, ridge=1e-2, noise=0.5),
    RandomFeaturesRidge(activation="tanh", width_ratio=1.5, sample_ratio=2.0, ridge=1e-2, nonlinear_signal=1.0, noise=0.5),
)
"""Three activations on both sides of the threshold and at it, and a target with a quadratic part."""


def check_limit(quick: bool) -> Outcome:
    """Every observable against simulation at growing d, and the rate at which the gaps close."""
    sizes, seeds = ((30, 60, 120), 12) if quick else ((100, 200, 400), 12)
    measured: dict[str, Number] = {}
    agreed, gaps, errors = 0, [], []
    for law in CASES:
        comparison = compare(law, sizes, seeds)
        agreed += comparison.passed
        gap, error = relative_gaps(comparison.dataset, ("bias", "variance", "train_error", "coefficient_norm"))
        gaps.append(gap)
        errors.append(error)
        label = f"{law.activation.name} ({law.width_ratio:g}, {law.sample_ratio:g})"
        row = next(row for row in comparison.rows if row.observable == "excess_risk")
        measured |= {f"{label}: excess risk in theory": row.theory, f"{label}: simulated": row.simulation}
        measured[f"{label}: largest relative gap at d = {sizes[-1]}"] = float(np.abs(gap[-1]).max())
    rate, rate_error = common_rate(sizes, np.hstack(gaps), np.hstack(errors))
    measured.update(
        comparisons_that_agree=agreed, comparisons=len(CASES), rate_of_the_gaps=rate, rate_standard_error=rate_error
    )
    return Outcome(
        passed=bool(agreed == len(CASES) and abs(rate - 1) < RATE_BAND and rate_error < RATE_ERROR),
        criterion=(
            f"all seven observables agree with the limit for {', '.join(ACTIVATIONS)} and a quadratic target at d = "
            f"{sizes}; gaps close like d^-r with r within {RATE_BAND:g} of 1, standard error below {RATE_ERROR:g}"
        ),
        measured=measured,
        note="The excess risk contains F*^2 on top of F1^2 B + (tau^2 + F*^2) V: a quadratic target checks it.",
    )


def relative_gaps(data: xr.Dataset, names: Sequence[str]) -> tuple[Array, Array]:
    """Simulation over theory minus 1, and its standard error, shape (sizes, names), from the dataset of a comparison."""
    theory, mean, error = (
        np.stack([data[f"{kind}_{name}"].values for name in names], axis=1) for kind in ("theory", "mean", "error")
    )
    return mean / theory - 1, error / theory


def common_rate(sizes: Sequence[int], gaps: Array, errors: Array) -> tuple[float, float]:
    """The exponent r of gaps b_k d^-r with their own b_k and one r: least squares, with its standard error.

    Parameters
    ----------
    sizes
        The dimensions d.
    gaps, errors
        Gaps and their standard errors, shape (sizes, number of gaps).

    Examples
    --------
    >>> d = np.array([10, 20, 40])
    >>> rate, error = common_rate(d, np.array([2.0, -1.0]) / d[:, None], np.full((3, 2), 1e-3))
    >>> round(rate, 3), error < 0.02
    (1.0, True)
    """
    rates = np.linspace(-1, 4, 5001)
    powers = (np.asarray(sizes, dtype=float) / sizes[0])[:, None, None] ** -rates  # (sizes, 1, rates)
    weight = errors[..., None] ** -2
    amplitude = (weight * powers * gaps[..., None]).sum(axis=0) / (weight * powers**2).sum(axis=0)
    misfit = (weight * (gaps[..., None] - amplitude * powers) ** 2).sum(axis=(0, 1))
    best = int(np.argmin(misfit))
    inside = rates[misfit <= misfit[best] + 1]
    return float(rates[best]), float(inside[-1] - inside[0]) / 2


# -- T5: double descent ------------------------------------------------------------------------------------------------------

LOW_SNR = RandomFeaturesRidge(width_ratio=30.0, sample_ratio=3.0, ridge=0.01, signal=1.0, noise=5**0.5)
"""The counter-example: at a fixed ridge and rho = 0.2, very wide is worse than predicting zero."""


def check_double_descent(quick: bool) -> Outcome:
    """The peak, the second descent without a ridge and at the best one, and a ridge at which wide is not best."""
    peaks, exponent = peak_positions()
    descending, curves = ridgeless_curves()
    falling, tuned = tuned_curves(quick)
    at_peak, ratio = simulated_peak(quick)
    null = LOW_SNR.signal**2
    wide = float(LOW_SNR.replace(width_ratio=np.inf).theory().excess_risk)
    size, seeds = (60, 8) if quick else (100, 20)
    runs = LOW_SNR.simulate_batch(size, range(seeds))["excess_risk"].values
    simulated, error = float(runs.mean()), float(runs.std(ddof=1)) / np.sqrt(seeds)
    best = LOW_SNR.replace(width_ratio=np.inf)
    tuned_wide = float(best.replace(ridge=best.optimal_ridge()).theory().excess_risk)
    passed = (
        abs(peaks[-1] - 1) < 1e-3
        and abs(exponent + 0.5) < 1e-3
        and at_peak
        and descending == curves
        and falling == tuned
        and wide > null
        and (simulated - null) > SIGMAS * error
        and tuned_wide < null
    )
    return Outcome(
        passed=bool(passed),
        criterion=(
            "the largest risk moves to N = n as lambda falls, where it grows like lambda^-1/2, and is infinite at 0; simulated risks "
            "peak there too; the ridgeless risk falls with width beyond N = n, and the risk at the best ridge with every width, on "
            f"all curves; at lambda = 0.01, rho = 0.2 the wide risk exceeds that of predicting zero by {SIGMAS:g} standard errors"
        ),
        measured={
            "N/n of the peak at lambda = 1e-3, 1e-4, 1e-6, 1e-8": ", ".join(f"{peak:.4f}" for peak in peaks),
            "exponent of the peak in lambda": exponent,
            "simulated risk at N = n over its neighbours'": ratio,
            "ridgeless curves that fall beyond N = n": descending,
            "ridgeless curves": curves,
            "tuned curves that fall with width": falling,
            "tuned curves": tuned,
            "counter-example: risk of predicting zero": null,
            "counter-example: wide risk at lambda = 0.01": wide,
            "counter-example: risk at N/d = 30": float(LOW_SNR.theory().excess_risk),
            f"counter-example: simulated at N/d = 30, d = {size}": simulated,
            "counter-example: standard error": error,
            "counter-example: wide risk at the best lambda": tuned_wide,
        },
        note=(
            "Corrected: the minimum at N/n -> infinity holds without a ridge beyond the threshold and at the best ridge, but not for "
            "every fixed ridge. With a ReLU, n/d = 3, lambda = 0.01 and rho = 0.2, infinite width gives 1.480 and no model at all 1."
        ),
    )


def peak_positions() -> tuple[Array, float]:
    """N/n of the largest risk for falling ridges, and the exponent in lambda of the risk at N = n (ReLU, n/d = 3)."""
    mu = moments("relu")
    share = 1 + np.linspace(-0.6, 0.6, 24001)
    ridges = np.array([1e-3, 1e-4, 1e-6, 1e-8])
    curves = risk(3 * share, 3.0, ridges[:, None], mu.linear, mu.nonlinear, noise=0.5)["excess_risk"]
    top = risk(3.0, 3.0, [1e-12, 1e-10, 0.0], mu.linear, mu.nonlinear, noise=0.5)["excess_risk"]
    exponent = float(np.log(top[0] / top[1]) / np.log(1e-2)) if np.isinf(top[2]) else 0.0
    return share[np.argmax(curves, axis=1)], exponent


def ridgeless_curves() -> tuple[int, int]:
    """How many ridgeless risks fall with width beyond N = n: four activations, five sample ratios, five noise levels."""
    mu = np.array([(m.linear, m.nonlinear) for m in map(moments, ("relu", "tanh", "erf", "gelu"))])
    samples, noise = np.array([0.3, 1.0, 3.0, 10.0, 100.0]), np.array([0.0, 0.1, 0.5, 1.0, 3.0])
    linear, nonlinear = mu.T[:, :, None, None, None]
    psi2 = samples[:, None, None]
    widths = psi2 * np.geomspace(1.02, 1e5, 400)
    curves = risk(widths, psi2, 0.0, linear, nonlinear, noise=noise[:, None])["excess_risk"]
    falls = (np.diff(curves, axis=-1) < 0).all(axis=-1)
    return int(falls.sum()), falls.size


def tuned_curves(quick: bool) -> tuple[int, int]:
    """How many risks at the best ridge never rise with width: three activations, five sample ratios, four SNRs, 24 widths."""
    mu = np.array([(m.linear, m.nonlinear) for m in map(moments, ACTIVATIONS)])
    samples, rho = np.array([0.3, 1.0, 3.0, 10.0, 100.0]), np.array([0.2, 1.0, 5.0, 100.0])
    linear, nonlinear = mu.T[:, :, None, None, None]
    psi2, snr = samples[:, None, None], rho[:, None]
    widths = psi2 * np.geomspace(1e-2, 1e4, 24 if quick else 100)
    ridge = best_ridge(widths, psi2, linear, nonlinear, snr)
    curves = risk(widths, psi2, ridge, linear, nonlinear, signal=np.sqrt(snr), noise=1.0)["excess_risk"]
    falls = (np.diff(curves, axis=-1) <= 1e-12 * curves[..., 1:]).all(axis=-1)
    return int(falls.sum()), falls.size


def simulated_peak(quick: bool) -> tuple[bool, float]:
    """Whether simulated risks at a small ridge are largest at N = n, and by which factor over the next largest."""
    size, seeds = (40, 8) if quick else (100, 20)
    shares = (0.3, 0.6, 0.8, 1.0, 1.25, 1.7, 3.0)
    law = RandomFeaturesRidge(activation="tanh", sample_ratio=2.0, ridge=1e-6, noise=0.5)
    means = [
        float(law.replace(width_ratio=2.0 * share).simulate_batch(size, range(seeds))["excess_risk"].mean())
        for share in shares
    ]
    middle = shares.index(1.0)
    others = max(mean for i, mean in enumerate(means) if i != middle)
    return means[middle] > others, means[middle] / others


# -- T6: the best ridge ------------------------------------------------------------------------------------------------------


def check_best_ridge(quick: bool) -> Outcome:
    """The threshold in SNR of the wide limit, the width below which a ridge always helps, and both in simulation."""
    mu1, mus = np.array([(m.linear, m.nonlinear) for m in map(moments, ACTIVATIONS)]).T[:, :, None]
    samples = np.array([0.4, 1.0, 3.0, 30.0, 300.0])
    zeta2 = (mu1 / mus) ** 2 + 0 * samples
    above, below = (best_ridge(np.inf, samples, mu1, mus, factor * zeta2) for factor in (1.001, 0.999))
    closed = (mu1**2 / (0.999 * zeta2) - mus**2) / samples
    closed_error = float(np.abs(below / closed - 1).max())
    threshold_error = float(np.abs(snr_threshold(np.inf, samples, mu1, mus) / zeta2 - 1).max())
    relu = moments("relu").linear, moments("relu").nonlinear
    widths = ridgeless_width([1.5, 3.0, 10.0], *relu)
    narrow = best_ridge(0.99 * widths, [1.5, 3.0, 10.0], *relu, np.inf)
    broad = best_ridge(1.01 * widths, [1.5, 3.0, 10.0], *relu, np.inf)
    rho = float(snr_threshold(100.0, 3.0, *relu))
    finite = [float(best_ridge(100.0, 3.0, *relu, factor * rho)) for factor in (1.001, 0.999)]
    cost, cost_error, best = cost_of_no_ridge(quick)
    harm, harm_error = cost_of_a_ridge(quick)
    passed = (
        (above == 0).all()
        and closed_error < 1e-8
        and threshold_error < 1e-10
        and (narrow > 0).all()
        and (broad == 0).all()
        and finite[0] == 0 < finite[1]
        and cost > SIGMAS * cost_error
        and harm > SIGMAS * harm_error
    )
    return Outcome(
        passed=bool(passed),
        criterion=(
            "wide limit: no ridge is best at 1.001 zeta^2, and (mu1^2/rho - mu*^2)/psi2 at 0.999 zeta^2, for three activations and five "
            "sample ratios; without any noise a ridge helps just below the ridgeless width and not just above it; in simulations it "
            f"helps at N/d = 4 and hurts at N/d = 30 (n/d = 3, no noise) by {SIGMAS:g} standard errors"
        ),
        measured={
            "error of the threshold zeta^2": threshold_error,
            "error of the wide optimum": closed_error,
            "ridgeless widths at n/d = 1.5, 3, 10 (ReLU)": ", ".join(f"{width:.4f}" for width in widths),
            "SNR threshold at N/d = 100, n/d = 3 (ReLU)": rho,
            "zeta^2 (ReLU)": float(zeta2[0, 0]),
            "best ridge at N/d = 4, no noise": best,
            "simulated risk at N/d = 4 without a ridge over that with it, minus 1": cost,
            "its standard error": cost_error,
            "simulated risk at N/d = 30 with the same ridge over that without, minus 1": harm,
            "its standard error (N/d = 30)": harm_error,
        },
        note=(
            "Corrected: 'high SNR: minimum at lambda = 0+' holds in the wide limit, with threshold zeta^2 = mu1^2/mu*^2 at every sample "
            "size. At N/d = 4, n/d = 3 (ReLU) it fails at every SNR: B itself falls when a ridge is added."
        ),
    )


def cost_of_no_ridge(quick: bool) -> tuple[float, float, float]:
    """Relative rise of the risk when the best ridge is left out at N/d = 4 without noise, its error, and that ridge."""
    law = RandomFeaturesRidge(width_ratio=4.0, sample_ratio=3.0, noise=0.0)
    best = law.optimal_ridge()
    return (*_relative_change(law, [best, 0.0], quick), best)


def cost_of_a_ridge(quick: bool) -> tuple[float, float]:
    """Relative rise of the risk at N/d = 30 without noise when the ridge that was best at N/d = 4 is added."""
    best = RandomFeaturesRidge(width_ratio=4.0, sample_ratio=3.0, noise=0.0).optimal_ridge()
    return _relative_change(RandomFeaturesRidge(width_ratio=30.0, sample_ratio=3.0, noise=0.0), [0.0, best], quick)


def _relative_change(law: RandomFeaturesRidge, ridges: list[float], quick: bool) -> tuple[float, float]:
    """Mean and standard error, over draws, of (risk at the second ridge / risk at the first - 1), ridges on the same draw."""
    size, seeds = (30, 16) if quick else (100, 20)
    pairs = np.array([law.experiment(size, seed, ridge=np.array(ridges))["excess_risk"] for seed in range(seeds)])
    change = pairs[:, 1] / pairs[:, 0] - 1
    return float(change.mean()), float(change.std(ddof=1)) / np.sqrt(seeds)


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="T4",
        area=AREA,
        statement=(
            "The test error of ridge regression on random features tends to F1^2 B + (tau^2 + F*^2) V + F*^2 + tau^2 with explicit B "
            "and V, which see the activation through two moments; train error, norm and objective have limits from the same unknown."
        ),
        laws=("RandomFeaturesRidge",),
        check=check_limit,
        figure="random-features-double-descent",
    ),
    Claim(
        id="T5",
        area=AREA,
        statement=(
            "The risk peaks at N = n as lambda falls to 0 and falls again with width; at the best lambda it falls at every width. At a "
            "fixed lambda and a low signal-to-noise ratio the widest model need not be the best."
        ),
        laws=("RandomFeaturesRidge",),
        check=check_double_descent,
        figure="random-features-double-descent",
    ),
    Claim(
        id="T6",
        area=AREA,
        statement=(
            "In the wide limit no ridge is best exactly if F1^2/(tau^2 + F*^2) >= mu1^2/mu*^2, and a positive one otherwise; below a "
            "certain width a positive ridge is best at every signal-to-noise ratio."
        ),
        laws=("RandomFeaturesRidge",),
        check=check_best_ridge,
        figure="random-features-ridge",
    ),
)
