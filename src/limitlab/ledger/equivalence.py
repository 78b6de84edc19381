"""The claim that nonlinear random features behave like noisy linear ones (T7)."""

from __future__ import annotations

import numpy as np

from limitlab.ledger.claims import Claim, Number, Outcome
from limitlab.ledger.random_features import AREA, RATE_BAND, RATE_ERROR, common_rate
from limitlab.lab.compare import compare
from limitlab.laws.classification.margin_equivalence import MarginEquivalence
from limitlab.laws.regression.gaussian_equivalence import COMPARED, GaussianEquivalence
from limitlab.laws.regression.random_features import RandomFeaturesRidge
from limitlab.models.random_features import FeatureRidge, linear_features, nonlinear_features

EQUIVALENT = (
    GaussianEquivalence(activation="relu", width_ratio=4.0, sample_ratio=2.0, ridge=1e-3, noise=0.5),
    GaussianEquivalence(activation="tanh", width_ratio=2.0, sample_ratio=2.0, ridge=1e-3, noise=0.5),
)


def check_equivalence(quick: bool) -> Outcome:
    """Both kinds of features against the limit and against each other; then a size at which they part ways."""
    sizes, seeds = ((25, 50, 100), 20) if quick else ((80, 160, 320), 20)
    agreed, gaps, errors = 0, [], []
    measured: dict[str, Number] = {}
    for law in EQUIVALENT:
        comparison = compare(law, sizes, seeds)
        agreed += comparison.passed
        for name in COMPARED:
            scale = comparison.dataset[f"theory_{name}"].values
            gaps.append(comparison.dataset[f"mean_{name}_gap"].values / scale)
            errors.append(comparison.dataset[f"error_{name}_gap"].values / scale)
        for size, gap in zip(sizes, np.abs(gaps[-len(COMPARED) :]).max(axis=0), strict=True):
            measured[f"{law.activation.name}: largest relative gap at d = {size}"] = float(gap)
    rate, rate_error = common_rate(sizes, np.stack(gaps, axis=1), np.stack(errors, axis=1))
    margins = compare(MarginEquivalence(), (20, 40, 80) if quick else (50, 100, 200), 20 if quick else 40, resolution=0.2)
    agreed += margins.passed
    for row in margins.rows:
        if row.observable.endswith("gap"):
            measured[f"max-margin: {row.observable.replace('_', ' ')}"] = row.simulation
            measured[f"max-margin: {row.observable.replace('_', ' ')}, standard error"] = row.standard_error
    nonlinear, linear = beyond_the_regime()
    measured.update(
        comparisons_that_agree=agreed,
        comparisons=len(EQUIVALENT) + 1,
        rate_of_the_gaps=rate,
        rate_standard_error=rate_error,
        unlearned_quadratic_part_at_n_of_order_d_squared=nonlinear,
        the_same_for_linear_features=linear,
    )
    return Outcome(
        passed=bool(
            agreed == len(EQUIVALENT) + 1
            and abs(rate - 1) < RATE_BAND
            and rate_error < RATE_ERROR
            and nonlinear < 0.5 < 0.9 < linear
        ),
        criterion=(
            f"ridge: bias, variance, train error and norm agree with the limit on both kinds of features at d = {sizes}; their gaps "
            f"close like d^-r with r within {RATE_BAND:g} of 1; largest margin: margin and error agree with one limit on both; with n "
            "of order d^2 the equivalence fails: a quadratic target is learned by the nonlinear features only"
        ),
        measured=measured,
        note=(
            "The linear features keep the mean mu0 of the activation; without it they could not carry a constant. For ridge regression "
            "the equivalence is a theorem, for the largest margin a conjecture."
        ),
    )


def beyond_the_regime() -> tuple[float, float]:
    """Excess risk on a quadratic target of unit size with n, N of order d^2, for nonlinear and for noisy linear features."""
    size = 14
    law = RandomFeaturesRidge(width_ratio=6.0 * size, sample_ratio=3.0 * size, signal=0.0, nonlinear_signal=1.0, noise=0.1)
    rng, weights, X, X_new = law.draw(size, 0)
    tables = (
        [nonlinear_features(inputs, weights, law.activation) for inputs in (X, X_new)],
        [linear_features(rng, inputs, weights, law.moments()) for inputs in (X, X_new)],
    )
    found = [law.measure(FeatureRidge(Z, X, Z_new, X_new), rng, {})["excess_risk"] for Z, Z_new in tables]
    return float(found[0]), float(found[1])


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="T7",
        area=AREA,
        statement=(
            "Nonlinear random features and noisy linear ones, mu0 + mu1 <w, x> + mu* z, give the same errors when n and N are of the "
            "order of d; their gap closes like 1/d. The same is conjectured for the largest margin."
        ),
        laws=("GaussianEquivalence", "MarginEquivalence", "RandomFeaturesRidge"),
        check=check_equivalence,
        figure="gaussian-equivalence",
    ),
)
