"""The claim that nonlinear random features behave like noisy linear ones (T7)."""

from __future__ import annotations

import numpy as np

from limitlab.lab.check import Check
from limitlab.lab.claims import claim
from limitlab.lab.measures import common_rate, words
from limitlab.laws.classification.margin_equivalence import MarginEquivalence
from limitlab.laws.regression._claims.random_features import AREA, RATE_BAND, RATE_ERROR
from limitlab.laws.regression.gaussian_equivalence import COMPARED, GaussianEquivalence
from limitlab.laws.regression.random_features import RandomFeaturesRidge
from limitlab.models.random_features import FeatureRidge, linear_features, nonlinear_features

EQUIVALENT = (
    GaussianEquivalence(activation="relu", width_ratio=4.0, sample_ratio=2.0, ridge=1e-3, noise=0.5),
    GaussianEquivalence(activation="tanh", width_ratio=2.0, sample_ratio=2.0, ridge=1e-3, noise=0.5),
)


@claim("T7", AREA, GaussianEquivalence, MarginEquivalence, RandomFeaturesRidge, figure="gaussian-equivalence")
def equivalence(check: Check) -> None:
    """Nonlinear random features and noisy linear ones, mu0 + mu1 <w, x> + mu* z, give the same errors when n and N are of
    the order of d; their gap closes like 1/d. The same is conjectured for the largest margin.

    Both kinds of features against the limit and against each other; then a size at which they part ways.
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
        "The linear features keep the mean mu0 of the activation; without it they could not carry a constant. For ridge regression "
        "the equivalence is a theorem, for the largest margin a conjecture."
    )


def beyond_the_regime() -> tuple[float, float]:
    """Excess risk on a quadratic target of unit size with n, N of order d^2, for nonlinear and for noisy linear features."""
    size = 14
    law = RandomFeaturesRidge(width_ratio=6.0 * size, sample_ratio=3.0 * size, signal=0.0, nonlinear_signal=1.0, noise=0.1)
    draw = law.draw(size, 0)
    weights, X, X_new = law.inputs(draw)
    tables = (
        [nonlinear_features(inputs, weights, law.activation) for inputs in (X, X_new)],
        [linear_features(draw.rng, inputs, weights, law.moments()) for inputs in (X, X_new)],
    )
    own = {name: np.asarray(getattr(law, name)) for name in law.path_parameters()}
    found = [law.regression(FeatureRidge(Z, X, Z_new, X_new), draw.rng, **own)["excess_risk"] for Z, Z_new in tables]
    return float(found[0]), float(found[1])
