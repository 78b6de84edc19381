"""Gaussian equivalence of random features.

Setting.  Two regressions of the kind of `RandomFeaturesRidge` with the same weights w_j, inputs x_i and labels. The first uses the
          features s(<w_j, x_i>). The second uses the noisy linear features mu0 + mu1 <w_j, x_i> + mu* z_ij, where the z_ij are
          independent and normal and are drawn again for new inputs.
Limit.    n, N, d -> infinity with N/d -> psi1 (`width_ratio`) and n/d -> psi2 (`sample_ratio`).
Result.   Both regressions have the limit of `random_features.risk`, and the gap between them vanishes like 1/d
          (docs/theory/random_features.md, section 6). The higher-order part of the activation acts as noise on the features.
Status.   Theorem for ridge regression (Mei and Montanari 2022), and for smooth convex losses with odd
          activations (Hu and Lu 2023). If n or N is of order d^2, nonlinear features learn the quadratic part of the target, and the
          two regressions differ. For the largest margin see `margin_equivalence`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limitlab.laws import CLOSED_FORM, Cost, Draw, Headline, Mark, Values, observable, shared
from limitlab.laws.regression._random_features_model import RandomFeaturesModel
from limitlab.laws.regression.random_features import limit_of
from limitlab.models.random_features import (
    FeatureRidge,
    linear_features,
    nonlinear_features,
    side_by_side,
    warn_beyond_proportional,
)

__all__ = ["GaussianEquivalence"]

Array = NDArray[np.float64]

COMPARED = ("bias", "variance", "train_error", "coefficient_norm")
"""Observables that are measured on both kinds of features."""


class GaussianEquivalence(RandomFeaturesModel):
    """Do nonlinear random features behave like linear features with noise?

    Observables without prefix belong to the nonlinear features. Observables `linear_...` belong to the noisy linear features, and
    `..._gap` is the difference of the two.

    Examples
    --------
    >>> law = GaussianEquivalence(activation="tanh", width_ratio=1.0, sample_ratio=2.0, ridge=0.1)
    >>> prediction = law.theory()
    >>> bool(prediction.bias == prediction.linear_bias), float(prediction.bias_gap)
    (True, 0.0)
    >>> run = law.simulate(size=100, seed=0)
    >>> abs(float(run.variance_gap)) < 0.05 * float(run.variance)
    True
    """

    status = "theorem"
    regime = "n, N, d -> infinity with N/d and n/d fixed; the equivalence fails when n or N is of order d^2"
    references = ("mei2022generalization", "hu2023universality")
    page = "random_features"
    observables = {
        **shared(*COMPARED),
        **{f"linear_{name}": observable(f"{meta.long_name}, linear features") for name, meta in shared(*COMPARED).items()},
        **{f"{name}_gap": observable(f"{meta.long_name}, difference") for name, meta in shared(*COMPARED).items()},
    }
    # A penalty, noise and every part of the target; more and fewer features than samples.
    points = (
        dict(
            width_ratio=3.0,
            sample_ratio=2.0,
            ridge=0.02,
            activation="relu",
            signal=1.2,
            nonlinear_signal=0.7,
            constant=0.3,
            noise=0.4,
        ),
        dict(width_ratio=0.6, sample_ratio=1.5, ridge=0.05, signal=0.8, nonlinear_signal=0.5, noise=0.6),
    )
    headline = Headline(
        "ReLU features regress like noisy linear ones",
        x="width_ratio",
        over=(0.1, 30.0, 81),
        scale="log",
        show=("variance", "linear_variance"),
        at=dict(ridge=0.001),
        size=80,
        draws=4,
        places=(0.3, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0),
        sliders=("activation", "ridge"),
        marks=(Mark("x", lambda law: law.sample_ratio, "one neuron per sample"),),
    )

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of two sets of features of training and fresh inputs."""
        return self.matrix_cost(size, matrices=16.0)

    def predicted(
        self,
        width_ratio: Array,
        sample_ratio: Array,
        ridge: Array,
        signal: Array,
        nonlinear_signal: Array,
        constant: Array,
        noise: Array,
    ) -> Values:
        """Return the common limit of both regressions, and gaps of 0."""
        limit = limit_of(self, width_ratio, sample_ratio, ridge, signal, nonlinear_signal, constant, noise)
        return {**side_by_side(limit, limit, COMPARED), "accuracy": CLOSED_FORM}

    def measured(
        self, draw: Draw, ridge: Array, signal: Array, nonlinear_signal: Array, constant: Array, noise: Array
    ) -> Values:
        """Measure both regressions on the same weights, inputs and labels, and warn outside the proportional regime."""
        warn_beyond_proportional(draw.size, draw.count("width_ratio"), draw.count("sample_ratio"))
        weights, X, X_new = self.inputs(draw)
        nonlinear = [nonlinear_features(inputs, weights, self.activation) for inputs in (X, X_new)]
        linear = [linear_features(draw.rng, inputs, weights, self.moments()) for inputs in (X, X_new)]
        labels = draw.rng.bit_generator.random_raw()  # both regressions use this seed for their labels
        runs = []
        for Z, Z_new in (nonlinear, linear):
            features, rng = FeatureRidge(Z, X, Z_new, X_new), np.random.default_rng(labels)
            runs.append(self.regression(features, rng, ridge, signal, nonlinear_signal, constant, noise))
        return side_by_side(runs[0], runs[1], COMPARED)
