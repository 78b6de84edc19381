"""Gaussian equivalence of random features for the largest margin.

Setting.  The classifier of `RandomFeaturesMargin` is computed twice with the same weights w_j, inputs x_i and labels, once on the features
          s(<w_j, x_i>) and once on the noisy linear features mu0 + mu1 <w_j, x_i> + mu* z_ij with independent normal z_ij.
Limit.    n, N, d -> infinity with N/d -> psi1 (`width_ratio`) and n/d -> psi2 (`sample_ratio`).
Result.   Margin and classification error have the same limits for both (docs/theory/random_features.md, section 6). For the linear
          features these are the limits of the margin equations.
Status.   Conjecture (Montanari, Ruan, Sohn and Yan 2019). The largest margin is not a smooth function of the features, and the
          proofs for smooth losses do not apply to it. The experiments here support the conjecture.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from limitlab.laws import Cost, Draw, Experiment, Headline, Values, observable, parameter, shared
from limitlab.laws.classification.max_margin import NO_CLASSIFIER
from limitlab.laws.classification.populations import LabelledLaw
from limitlab.laws.classification.random_features_margin import LabelledFeatures, RandomFeaturesMargin
from limitlab.models.activations import Activation
from limitlab.models.random_features import side_by_side, warn_beyond_proportional
from limitlab.numerics.margin import hard_margin

__all__ = ["MarginEquivalence"]

COMPARED = ("margin", "classification_error")
"""Observables that are measured on both kinds of features."""


class MarginEquivalence(LabelledLaw):
    """Do nonlinear random features have the same largest margin as linear features with noise?

    Observables without prefix belong to the nonlinear features. `linear_...` belongs to the noisy linear features, and `..._gap` is the
    difference.

    Examples
    --------
    >>> law = MarginEquivalence(width_ratio=4.0, sample_ratio=2.0)
    >>> prediction = law.theory()
    >>> round(float(prediction.margin), 6), round(float(prediction.linear_margin), 6), float(prediction.margin_gap)
    (0.649048, 0.649048, 0.0)
    """

    status = "conjecture"
    regime = "n, N, d -> infinity with N/d and n/d fixed; it fails when n or N is of order d^2"
    assumptions = RandomFeaturesMargin.assumptions
    references = ("montanari2019generalization",)
    page = "random_features"
    observables = {
        **shared(*COMPARED),
        **{f"linear_{name}": observable(f"{meta.long_name}, linear features") for name, meta in shared(*COMPARED).items()},
        **{f"{name}_gap": observable(f"{meta.long_name}, difference") for name, meta in shared(*COMPARED).items()},
    }
    simulation = Experiment(sizes=(25, 50, 100), draws=30)
    revision = 3
    # Noisy labels, and more features than samples
    points = (dict(width_ratio=3.0, sample_ratio=1.5, activation="relu", link="probit", link_strength=2.0),)
    headline = Headline(
        "ReLU features classify like noisy linear ones",
        x="width_ratio",
        over=(0.8, 10.0, 41),
        scale="log",
        show=("classification_error", "linear_classification_error"),
        size=100,
        draws=12,
        places=(1.0, 1.5, 2.0, 3.0, 4.0, 7.0, 10.0),
        sliders=("sample_ratio", "activation"),
    )

    width_ratio: float = parameter(4.0, above=0, scale="log", count="size * value")
    sample_ratio: float = parameter(2.0, above=0, scale="log", count="size * value")
    activation: Activation = parameter("relu")

    @model_validator(mode="after")
    def _both_sides_exist(self) -> Self:
        self.side("linear")
        return self

    def side(self, features: Literal["nonlinear", "linear"]) -> RandomFeaturesMargin:
        """Return the law of one of the two classifiers.

        >>> MarginEquivalence().side("linear").features
        'linear'
        """
        return RandomFeaturesMargin(
            width_ratio=self.width_ratio,
            sample_ratio=self.sample_ratio,
            activation=self.activation,
            link=self.link,
            link_strength=self.link_strength,
            features=features,
        )

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of both kinds of features and of the quadratic program's working memory."""
        return self.matrix_cost(size, matrices=35.0)

    def predicted(self) -> Values:
        """Return the common limit of both classifiers, with gaps of 0."""
        limit = self.side("linear").evaluate()
        return {**side_by_side(limit, limit, COMPARED), "accuracy": limit["accuracy"]}

    def measured(self, draw: Draw) -> Values:
        """Return the observables of both classifiers on the same weights, inputs and labels.

        A warning is issued if the size is outside the proportional regime.
        """
        warn_beyond_proportional(draw.size, draw.count("width_ratio"), draw.count("sample_ratio"))
        nonlinear = LabelledFeatures(self.side("nonlinear"), draw)
        linear = nonlinear.with_features_of(self.side("linear"))
        return side_by_side(margin_and_error(nonlinear), margin_and_error(linear), COMPARED)


def margin_and_error(data: LabelledFeatures) -> dict[str, float]:
    """Return margin and error of the max-margin classifier of one draw."""
    solution = hard_margin(data.y[:, None] * data.features)
    error = data.error(solution.direction) if solution.separable else NO_CLASSIFIER
    return dict(margin=solution.margin, classification_error=error)
