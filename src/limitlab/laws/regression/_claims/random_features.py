"""Claims about random features (T4 to T6) and their equivalence to noisy linear features (T7)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from limitlab.lab.check import SIGMAS, Check, common_rate, standard_error, words
from limitlab.lab.claims import claim
from limitlab.laws.classification.margin_equivalence import MarginEquivalence
from limitlab.laws.regression._random_features_point import best_ridge, ridgeless_width, snr_threshold
from limitlab.laws.regression.gaussian_equivalence import COMPARED, GaussianEquivalence
from limitlab.laws.regression.random_features import RandomFeaturesRidge, risk
from limitlab.models.activations import moments
from limitlab.models.random_features import FeatureRidge, linear_features, nonlinear_features

Array = NDArray[np.float64]

AREA = "Random features and margins"

RATE_BAND = 0.3
"""Allowed distance from 1 of a fitted exponent of the finite-size gap, because terms of order 1/d^2 change it at small d."""

RATE_ERROR = 0.1
"""Largest allowed standard error of such an exponent, so that 1/2 and 1 can be distinguished."""

ACTIVATIONS = ("relu", "tanh", "erf")

CASES = (
    RandomFeaturesRidge(activation="relu", width_ratio=4.0, sample_ratio=2.0, ridge=1e-3, noise=0.5),
    RandomFeaturesRidge(activation="tanh", width_ratio=2.0, sample_ratio=2.0, ridge=1e-3, noise=0.5),
    RandomFeaturesRidge(activation="erf", width_ratio=0.8, sample_ratio=2.0, ridge=1e-2, noise=0.5),
    RandomFeaturesRidge(activation="tanh", width_ratio=1.5, sample_ratio=2.0, ridge=1e-2, nonlinear_signal=1.0, noise=0.5),
)
"""Laws with three activations, widths below, at and above the threshold, and a target with a quadratic part."""


@claim("T4", AREA, RandomFeaturesRidge, figure="random-features-double-descent", items=("L-17", "M-18", "T-5"))
def limiting_risk(check: Check) -> None:
    """The test error of ridge regression on random features tends to F1^2 B + (tau^2 + F*^2) V + F*^2 + tau^2 with explicit
    B and V, which depend on the activation through two moments. The limits of train error, norm and objective follow from the same
    unknown.

    The check compares every observable with simulation at growing d, and fits the rate of the gaps.
    """
    sizes, seeds = ((30, 60, 120), 24) if check.quick else ((100, 200, 400), 12)
    agreed, gaps, errors = 0, [], []
    for law in CASES:
        comparison = check.compare(law, sizes, seeds)
        agreed += comparison.passed
        gap, error = relative_gaps(comparison.dataset, ("bias", "variance", "train_error", "coefficient_norm"))
        gaps.append(gap)
        errors.append(error)
        label = f"{law.activation.name} ({law.width_ratio:g}, {law.sample_ratio:g})"
        row = next(row for row in comparison.rows if row.observable == "excess_risk")
        check.show(f"{label}: excess risk in theory", row.theory)
        check.show(f"{label}: simulated", row.simulation)
        check.show(f"{label}: largest relative gap at d = {sizes[-1]}", float(np.abs(gap[-1]).max()))
    check.equal(
        f"comparisons of all observables that agree at d = {sizes}, of {len(CASES)} ({', '.join(ACTIVATIONS)}, quadratic target)",
        agreed,
        len(CASES),
    )
    rate, rate_error = common_rate(sizes, np.hstack(gaps), np.hstack(errors))
    check.near("exponent in 1/d of the gaps", rate, 1, RATE_BAND)
    check.below("standard error of the exponent of the gaps", rate_error, RATE_ERROR)
    check.note("The excess risk is F1^2 B + (tau^2 + F*^2) V + F*^2. The quadratic target checks the last term.")


def relative_gaps(data: xr.Dataset, names: Sequence[str]) -> tuple[Array, Array]:
    """Return simulation over theory minus 1, and its standard error, of shape (sizes, names), from the data of a comparison."""
    theory, mean, error = (
        np.stack([data[f"{kind}_{name}"].values for name in names], axis=1) for kind in ("theory", "mean", "error")
    )
    return mean / theory - 1, error / theory


LOW_SNR = RandomFeaturesRidge(width_ratio=30.0, sample_ratio=3.0, ridge=0.01, signal=1.0, noise=5**0.5)
"""Counter-example in which, at a fixed ridge and rho = 0.2, a very wide model is worse than predicting zero."""


@claim("T5", AREA, RandomFeaturesRidge, figure="random-features-double-descent", items=("L-18", "M-19"))
def double_descent(check: Check) -> None:
    """As lambda falls to 0, the risk has a peak at N = n and falls again with width. With the best lambda it falls at every width.
    At a fixed lambda and a low signal-to-noise ratio the widest model is not always the best.

    The check covers the peak, the second descent without a ridge and at the best ridge, and a fixed ridge at which the widest model is
    not the best.
    """
    peaks, top = peak_positions()
    check.near("N/n of the largest risk at lambda = 1e-8", float(peaks[-1]), 1, 1e-3)
    exponent = float(np.log(top[0] / top[1]) / np.log(1e-2))
    check.near("exponent in lambda of the risk at N = n", exponent, -0.5, 1e-3)
    check.true("the risk at N = n is infinite without a ridge", bool(np.isinf(top[2])))
    check.above("simulated risk at N = n over the next largest", simulated_peak(check.quick), 1)
    descending, curves = ridgeless_curves()
    check.equal(f"ridgeless curves that fall beyond N = n, of {curves}", descending, curves)
    falling, tuned = tuned_curves(check.quick)
    check.equal(f"curves at the best ridge that never rise with width, of {tuned}", falling, tuned)
    null = LOW_SNR.signal**2
    best = LOW_SNR.replace(width_ratio=np.inf)
    check.above("counter-example: wide risk at lambda = 0.01 (1: predicting 0)", float(best.theory().excess_risk), null)
    size, seeds = (60, 8) if check.quick else (100, 20)
    runs = LOW_SNR.simulate_batch(size, range(seeds))["excess_risk"].values
    simulated, error = float(runs.mean()), standard_error(runs)
    check.above(
        f"counter-example: simulated risk at N/d = 30, d = {size} minus that of predicting 0, in standard errors",
        (simulated - null) / error,
        SIGMAS,
    )
    tuned_wide = float(best.replace(ridge=best.optimal_ridge()).theory().excess_risk)
    check.below("counter-example: wide risk at the best lambda (1: predicting 0)", tuned_wide, null)
    check.show("N/n of the largest risk at lambda = 1e-3, 1e-4, 1e-6", ", ".join(f"{peak:.4f}" for peak in peaks[:-1]))
    check.show("counter-example: risk at N/d = 30", float(LOW_SNR.theory().excess_risk))
    check.show("counter-example: simulated risk", simulated)
    check.show("counter-example: standard error of the simulated risk", error)
    check.note(
        "Corrected: the minimum at N/n -> infinity holds without a ridge beyond the threshold and at the best ridge, but not for "
        "every fixed ridge. With a ReLU, n/d = 3, ridge 0.01 and signal-to-noise ratio 0.2, the risk is 1.480 at infinite width "
        "and 1 for the prediction 0."
    )


def peak_positions() -> tuple[Array, Array]:
    """Return the ratio N/n of the largest risk for falling ridges, and the risk at N = n for ridges 1e-12, 1e-10 and 0.

    The activation is a ReLU, and n/d = 3.
    """
    mu = moments("relu")
    share = 1 + np.linspace(-0.6, 0.6, 24001)
    ridges = np.array([1e-3, 1e-4, 1e-6, 1e-8])
    curves = risk(3 * share, 3.0, ridges[:, None], mu.linear, mu.nonlinear, noise=0.5)["excess_risk"]
    top = risk(3.0, 3.0, [1e-12, 1e-10, 0.0], mu.linear, mu.nonlinear, noise=0.5)["excess_risk"]
    return share[np.argmax(curves, axis=1)], top


def ridgeless_curves() -> tuple[int, int]:
    """Return how many risks without a ridge fall with width beyond N = n, and their total number.

    The cases are four activations, five sample ratios and five noise levels.
    """
    mu = np.array([(m.linear, m.nonlinear) for m in map(moments, ("relu", "tanh", "erf", "gelu"))])
    samples, noise = np.array([0.3, 1.0, 3.0, 10.0, 100.0]), np.array([0.0, 0.1, 0.5, 1.0, 3.0])
    linear, nonlinear = mu.T[:, :, None, None, None]
    psi2 = samples[:, None, None]
    widths = psi2 * np.geomspace(1.02, 1e5, 400)
    curves = risk(widths, psi2, 0.0, linear, nonlinear, noise=noise[:, None])["excess_risk"]
    falls = (np.diff(curves, axis=-1) < 0).all(axis=-1)
    return int(falls.sum()), falls.size


def tuned_curves(quick: bool) -> tuple[int, int]:
    """Return how many risks at the best ridge never rise with width, and their total number.

    The cases are three activations, five sample ratios and four signal-to-noise ratios, at 24 (quick) or 100 widths.
    """
    mu = np.array([(m.linear, m.nonlinear) for m in map(moments, ACTIVATIONS)])
    samples, rho = np.array([0.3, 1.0, 3.0, 10.0, 100.0]), np.array([0.2, 1.0, 5.0, 100.0])
    linear, nonlinear = mu.T[:, :, None, None, None]
    psi2, snr = samples[:, None, None], rho[:, None]
    widths = psi2 * np.geomspace(1e-2, 1e4, 24 if quick else 100)
    ridge = best_ridge(widths, psi2, linear, nonlinear, snr)
    curves = risk(widths, psi2, ridge, linear, nonlinear, signal=np.sqrt(snr), noise=1.0)["excess_risk"]
    falls = (np.diff(curves, axis=-1) <= 1e-12 * curves[..., 1:]).all(axis=-1)
    return int(falls.sum()), falls.size


def simulated_peak(quick: bool) -> float:
    """Return the simulated risk at N = n and a small ridge over the largest risk at six other widths."""
    size, seeds = (40, 8) if quick else (100, 20)
    law = RandomFeaturesRidge(activation="tanh", sample_ratio=2.0, ridge=1e-6, noise=0.5)
    means = {
        share: float(law.replace(width_ratio=2.0 * share).simulate_batch(size, range(seeds))["excess_risk"].mean())
        for share in (0.3, 0.6, 0.8, 1.0, 1.25, 1.7, 3.0)
    }
    return means.pop(1.0) / max(means.values())


@claim("T6", AREA, RandomFeaturesRidge, figure="random-features-ridge", items=("M-19", "T-4"))
def optimal_ridge(check: Check) -> None:
    """In the wide limit the best ridge is 0 exactly if F1^2/(tau^2 + F*^2) >= mu1^2/mu*^2, and positive otherwise. Below
    a certain width a positive ridge is best at every signal-to-noise ratio.

    The check covers the threshold in SNR of the wide limit and the width below which a ridge always helps, in theory and simulation.
    """
    mu1, mus = np.array([(m.linear, m.nonlinear) for m in map(moments, ACTIVATIONS)]).T[:, :, None]
    samples = np.array([0.4, 1.0, 3.0, 30.0, 300.0])
    zeta2 = (mu1 / mus) ** 2 + 0 * samples
    strong, weak = (best_ridge(np.inf, samples, mu1, mus, factor * zeta2) for factor in (1.001, 0.999))
    check.equal("wide limit: largest best ridge at 1.001 zeta^2, 15 cases", float(np.abs(strong).max()), 0.0)
    closed = (mu1**2 / (0.999 * zeta2) - mus**2) / samples
    check.below(
        "wide limit: relative error of (mu1^2/rho - mu*^2)/psi2 as the best ridge at 0.999 zeta^2",
        float(np.abs(weak / closed - 1).max()),
        1e-8,
    )
    threshold_error = float(np.abs(snr_threshold(np.inf, samples, mu1, mus) / zeta2 - 1).max())
    check.below("wide limit: relative error of zeta^2 as the threshold", threshold_error, 1e-10)
    relu = moments("relu").linear, moments("relu").nonlinear
    widths = ridgeless_width([1.5, 3.0, 10.0], *relu)
    narrow, broad = (best_ridge(factor * widths, [1.5, 3.0, 10.0], *relu, np.inf) for factor in (0.99, 1.01))
    check.above("no noise: smallest best ridge 1% below the ridgeless widths", float(narrow.min()), 0)
    check.equal("no noise: largest best ridge 1% above the ridgeless widths", float(np.abs(broad).max()), 0.0)
    rho = float(snr_threshold(100.0, 3.0, *relu))
    finite = [float(best_ridge(100.0, 3.0, *relu, factor * rho)) for factor in (1.001, 0.999)]
    check.equal("N/d = 100: best ridge at 1.001 times the threshold", finite[0], 0.0)
    check.above("N/d = 100: best ridge at 0.999 times the threshold", finite[1], 0)
    best = RandomFeaturesRidge(width_ratio=4.0, sample_ratio=3.0, noise=0.0).optimal_ridge()
    cost, cost_error = relative_change(4.0, [best, 0.0], check.quick)
    check.above("simulated cost of leaving out the best ridge at N/d = 4, in standard errors", cost / cost_error, SIGMAS)
    harm, harm_error = relative_change(30.0, [0.0, best], check.quick)
    check.above("simulated harm of the same ridge at N/d = 30, in standard errors", harm / harm_error, SIGMAS)
    check.show("ridgeless widths at n/d = 1.5, 3, 10 (ReLU)", ", ".join(f"{width:.4f}" for width in widths))
    check.show("SNR threshold at N/d = 100, n/d = 3 (ReLU)", rho)
    check.show("zeta^2 (ReLU)", float(zeta2[0, 0]))
    check.show("best ridge at N/d = 4, n/d = 3, no noise", best)
    check.show("simulated risk at N/d = 4 without a ridge over that with it, minus 1", cost)
    check.show("simulated risk at N/d = 30 with the same ridge over that without, minus 1", harm)
    check.note(
        "Corrected: 'high SNR: minimum at lambda = 0+' holds in the wide limit, with threshold zeta^2 = mu1^2/mu*^2 at every sample "
        "size. At N/d = 4, n/d = 3 (ReLU) it fails at every SNR, because the bias falls when a ridge is added."
    )


def relative_change(width: float, ridges: list[float], quick: bool) -> tuple[float, float]:
    """Return the mean, over draws, of the relative change of the risk from the first ridge to the second, and its standard error.

    The law has n/d = 3 and no noise. Each draw is used with both ridges.
    """
    size, seeds = (30, 16) if quick else (100, 20)
    law = RandomFeaturesRidge(width_ratio=width, sample_ratio=3.0, noise=0.0)
    pairs = np.array([law.experiment(size, seed, ridge=np.array(ridges))["excess_risk"] for seed in range(seeds)])
    change = pairs[:, 1] / pairs[:, 0] - 1
    return float(change.mean()), standard_error(change)


# -- equivalence -----------------------------------------------------------------------------------------------------

EQUIVALENT = (
    GaussianEquivalence(activation="relu", width_ratio=4.0, sample_ratio=2.0, ridge=1e-3, noise=0.5),
    GaussianEquivalence(activation="tanh", width_ratio=2.0, sample_ratio=2.0, ridge=1e-3, noise=0.5),
)


@claim(
    "T7", AREA, GaussianEquivalence, MarginEquivalence, RandomFeaturesRidge, figure="gaussian-equivalence", items=("T-6",)
)
def equivalence(check: Check) -> None:
    """Ridge regression has the same limiting errors on nonlinear random features and on noisy linear features mu0 + mu1 <w, x> + mu* z,
    if n and N are of the order of d. The gap falls like 1/d. For the largest margin the equality is a conjecture.

    The check compares both kinds of features with the limit and with each other, and then at n and N of order d^2, where they differ.
    """
    sizes, seeds = ((25, 50, 100), 40) if check.quick else ((80, 160, 320), 20)
    gaps, errors = [], []
    for law in EQUIVALENT:
        name = f"the limit of ridge regression on {law.activation.name} and on linear features"
        (comparison,) = check.agree(name, law, sizes=sizes, seeds=seeds)
        for observable in COMPARED:
            scale = comparison.dataset[f"theory_{observable}"].values
            gaps.append(comparison.dataset[f"mean_{observable}_gap"].values / scale)
            errors.append(comparison.dataset[f"error_{observable}_gap"].values / scale)
        for size, gap in zip(sizes, np.abs(gaps[-len(COMPARED) :]).max(axis=0), strict=True):
            check.show(f"{law.activation.name}: largest relative gap at d = {size}", float(gap))
    rate, rate_error = common_rate(sizes, np.stack(gaps, axis=1), np.stack(errors, axis=1))
    check.near("exponent in 1/d of the gaps between both kinds", rate, 1, RATE_BAND)
    check.below("standard error of the exponent of the gaps", rate_error, RATE_ERROR)
    sizes, seeds = ((20, 40, 80), 60) if check.quick else ((50, 100, 200), 40)
    name = "the limit of the largest margin on nonlinear and on linear features"
    (margins,) = check.agree(name, MarginEquivalence(), sizes=sizes, seeds=seeds)
    for row in margins.rows:
        if row.observable.endswith("gap"):
            check.show(f"max-margin: {words(row.observable)}", row.simulation)
            check.show(f"max-margin: {words(row.observable)}, standard error", row.standard_error)
    nonlinear, linear = beyond_the_regime()
    check.below("share of a quadratic target that nonlinear features do not learn at n of order d^2", nonlinear, 0.5)
    check.above("share of the same target that linear features do not learn", linear, 0.9)
    check.note(
        "The linear features keep the mean mu0 of the activation, because without it they could not represent a constant. The "
        "equivalence is a theorem for ridge regression and a conjecture for the largest margin."
    )


def beyond_the_regime() -> tuple[float, float]:
    """Return the excess risks of nonlinear and of noisy linear features on a quadratic target, with n, N of order d^2."""
    size = 14
    law = RandomFeaturesRidge(width_ratio=6.0 * size, sample_ratio=3.0 * size, signal=0.0, nonlinear_signal=1.0, noise=0.1)
    draw = law.draw(size, 0)
    weights, X, X_new = law.inputs(draw)
    tables = (
        [nonlinear_features(inputs, weights, law.activation) for inputs in (X, X_new)],
        [linear_features(draw.rng, inputs, weights, law.moments()) for inputs in (X, X_new)],
    )
    values = {name: np.asarray(getattr(law, name)) for name in law.path_parameters()}
    risks = [law.regression(FeatureRidge(Z, X, Z_new, X_new), draw.rng, **values)["excess_risk"] for Z, Z_new in tables]
    return float(risks[0]), float(risks[1])
