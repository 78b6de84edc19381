"""The largest margin of a classifier on random features.

Setting.  x ~ N(0, 1_d); labels P(y = +1 | x) = f(<beta, x>), |beta| = 1; features u_j = sigma(<w_j, x>), j <= N, with w_j uniform on the
          unit sphere; kappa = max_{|a| <= 1} min_i y_i <a, u_i> over n samples, without an intercept.
Limit.    n, N, d -> infinity with N/d -> psi1 (`width_ratio`) and n/d -> psi2 (`sample_ratio`).
Result.   The features act like mu1 <w_j, x> + mu* z_j with independent noise z, which are Gaussian features of covariance
          Sigma = mu1^2 W W' + mu*^2. The margin equations hold with its spectral averages (docs/theory/margins.md, eqs. 3-7).
          Below the separability threshold `separable` and `margin` are 0, and the other two observables are infinite.
Status.   Theorem for the Gaussian features. It is a conjecture that nonlinear features have the same largest margin (Montanari, Ruan,
          Sohn and Yan 2019). The experiments here support it.
"""

from __future__ import annotations

import copy
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from limitlab.errors import Refused
from limitlab.laws import Cost, Draw, Experiment, Headline, Mark, Values, observable, parameter, shared
from limitlab.laws.classification.beside_best import Best, HasBayesError, best_classifier
from limitlab.laws.classification.margin_system import separability_threshold, solve_margin
from limitlab.laws.classification.max_margin import NO_CLASSIFIER, limits, mistakes, of_data_set, test_rows
from limitlab.laws.classification.populations import LabelledLaw, RandomFeatures
from limitlab.models.activations import Activation, Moments, moments
from limitlab.models.random_features import draw_weights, linear_features, nonlinear_features
from limitlab.numerics.margin import hard_margin
from limitlab.numerics.roots import bracketed_root

__all__ = ["RandomFeaturesMargin"]

Array = NDArray[np.float64]

CENTRED = 1e-12  # an activation with a smaller relative mean counts as centred


class FeatureClassifier(LabelledLaw, HasBayesError):
    """Base class of laws of classification on random features, with common parameters, checks and draws."""

    width_ratio: float = parameter(2.0, above=0, scale="log", count="size * value")
    sample_ratio: float = parameter(2.0, above=0, scale="log", count="size * value")
    activation: Activation = parameter("relu")
    features: Literal["nonlinear", "linear"] = parameter(
        "nonlinear", "features, nonlinear or their Gaussian equivalent (linear plus noise)", kind="experiment"
    )

    @model_validator(mode="after")
    def _usable_features(self) -> Self:
        mu = self.moments
        if mu.linear == 0 and mu.nonlinear == 0:
            raise Refused(f"activation = {self.activation!r} is not allowed: it is constant and has no features")
        if abs(mu.mean) > CENTRED * max(abs(mu.linear), mu.nonlinear) and not self.labels.symmetric:
            raise Refused(
                f"link = {self.link.name!r} is not allowed with an activation of mean {mu.mean:.6g}: the mean acts as a free "
                "intercept, which this law covers only for f(-t) = 1 - f(t); use such a link or a centred activation (tanh)"
            )
        return self

    @property
    def moments(self) -> Moments:
        """The moments mu0, mu1, mu* of the activation."""
        return moments(self.activation)

    @property
    def population(self) -> RandomFeatures:
        """The covariance of the Gaussian equivalent."""
        mu = self.moments
        return RandomFeatures(self.width_ratio, self.sample_ratio, abs(mu.linear), mu.nonlinear)

    def best_possible(self) -> Best:
        """Return the best classifier with access to the inputs."""
        return best_classifier(self, 1 / self.sample_ratio, self.labels)


class LabelledFeatures:
    """Data of one experiment, with neurons, features of the training samples, labels, and tests of a classifier."""

    def __init__(self, law: FeatureClassifier, draw: Draw):
        self.law, self.rng = law, draw.rng
        self.weights = draw_weights(self.rng, draw.count("width_ratio"), draw.size)
        self.X = self.rng.standard_normal((draw.count("sample_ratio"), draw.size))
        self.features = self._features(self.X)
        self.y = law.labels.draw(self.rng, self.X[:, 0])  # by symmetry the direction is the first axis

    def with_features_of(self, law: FeatureClassifier) -> Self:
        """Return the same neurons, inputs and labels with the features of another law and fresh noise of the features."""
        other = copy.copy(self)
        other.law = law
        other.features = other._features(self.X)
        return other

    def _features(self, X: Array) -> Array:
        if self.law.features == "linear":
            return linear_features(self.rng, X, self.weights, self.law.moments)
        return nonlinear_features(X, self.weights, self.law.activation)

    def error(self, a: Array) -> float:
        """Return P(y <a, u> <= 0) on fresh inputs, averaged over their labels."""
        X = self.rng.standard_normal((test_rows(len(self.y)), self.weights.shape[1]))
        return mistakes(self.law.labels, X[:, 0], self._scores(X, a))

    def _scores(self, X: Array, a: Array) -> Array:
        """Return <a, u> at new inputs.

        The noise of linear features is one normal number per input, of standard deviation mu* |a|.
        """
        if self.law.features == "nonlinear":
            return np.asarray(self._features(X) @ a)
        mu, noise = self.law.moments, self.rng.standard_normal(len(X))
        return np.asarray(
            mu.mean * a.sum() + mu.linear * (X @ (self.weights.T @ a)) + mu.nonlinear * np.linalg.norm(a) * noise
        )

    def latent_correlation(self) -> float:
        """Return the correlation of the best linear function of these features with the score (equation 3 before the limit)."""
        mu = self.law.moments
        s, vectors = np.linalg.eigh(self.weights.T @ self.weights)
        signal = mu.linear**2 * np.maximum(s, 0.0)
        total = signal + mu.nonlinear**2
        share = np.divide(signal, total, out=np.zeros_like(s), where=total > 1e-12 * total.max())
        return float(np.sqrt(share @ vectors[0] ** 2))


class RandomFeaturesMargin(FeatureClassifier):
    """Can N random neurons separate n labelled points, by what margin, and how well does the max-margin classifier predict?

    Examples
    --------
    >>> law = RandomFeaturesMargin(width_ratio=2.0, sample_ratio=2.0, activation="relu")
    >>> result = law.theory()
    >>> round(float(result.margin), 9), round(float(result.classification_error), 9)
    (0.348657899, 0.298199389)
    >>> round(law.separability_width(), 8)
    0.76843356
    >>> float(law.replace(width_ratio=0.5).theory().classification_error)       # no classifier separates the data
    inf
    """

    status = "conjecture"
    regime = "n, N, d -> infinity with N/d and n/d fixed"
    assumptions = (
        "inputs are standard Gaussian vectors, weights uniform on the unit sphere and not trained",
        "the label depends on the input through one direction",
        "no intercept; a link with f(-t) = 1 - f(t), unless the activation has mean 0",
        "nonlinear features behave like Gaussian ones of the same covariance",
    )
    references = ("montanari2019generalization", "candes2020phase")
    page = "margins"
    observables = {
        **shared("separable", "margin", "classification_error", "support_fraction"),
        "latent_correlation": observable("correlation of the features with the latent label", r"\rho", least=-1, most=1),
    }
    simulation = Experiment(sizes=(30, 60, 120), draws=40)
    revision = 3
    # Noisy labels on centred neurons, then linear features with a mean
    points = (
        dict(width_ratio=2.0, sample_ratio=1.5, activation="tanh", link="probit", link_strength=2.0),
        dict(width_ratio=3.0, sample_ratio=2.0, activation="relu", features="linear"),
    )
    headline = Headline(
        "Past separability, wider still predicts better",
        x="width_ratio",
        over=(0.1, 12.0, 41),
        scale="log",
        show=("margin", "classification_error"),
        panels=True,
        at=dict(sample_ratio=2.0, link="sign"),
        size=60,
        draws=8,
        places=(1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 12.0),
        sliders=("sample_ratio", "link"),
        marks=(Mark("x", lambda law: law.separability_width(), "separable"),),
    )

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of the features and of the quadratic program's working memory."""
        return self.matrix_cost(size, matrices=30.0)

    def predicted(self) -> Values:
        """Return the limit at the law's parameters."""
        population = self.population
        margin_limits = limits(solve_margin(self.labels.oriented(), population))
        return {**margin_limits, "latent_correlation": population.correlation}

    def measured(self, draw: Draw) -> Values:
        """Return the observables of one draw of neurons, inputs and labels."""
        data = LabelledFeatures(self, draw)
        solution = hard_margin(data.y[:, None] * data.features)
        error = data.error(solution.direction) if solution.separable else NO_CLASSIFIER
        return {**of_data_set(solution, error), "latent_correlation": data.latent_correlation()}

    def separability_width(self) -> float:
        """Return the least `width_ratio` at which the data can be separated; it is inf if no width suffices (linear neurons)."""
        labels, population = self.labels.oriented(), self.population

        def excess(width: float) -> float:
            there = RandomFeatures(width, population.samples, population.linear, population.nonlinear)
            return there.load * there.rank - separability_threshold(labels, there.correlation)

        # The excess increases with the width, because load and correlation increase. The upper end of the bracket is n/2 features, which
        # separate coin flips, the hardest labels. Linear neurons beyond the d-th do not help.
        high = population.samples / 2 if population.nonlinear > 0 else min(population.samples / 2, 1.0)
        if excess(high) < 0:
            return float("inf")
        correlation_at_high = RandomFeatures(high, population.samples, population.linear, population.nonlinear).correlation
        low = max(population.samples * separability_threshold(labels, correlation_at_high), 1e-6 * high)
        each = np.vectorize(lambda log_width: excess(float(np.exp(log_width))))
        return float(np.exp(bracketed_root(each, np.log(min(low, high)), np.log(high))))
