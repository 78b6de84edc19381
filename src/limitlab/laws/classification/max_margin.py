"""The largest margin of a linear classifier in high dimension.

Setting.  n samples x ~ N(0, 1_p) with labels P(y = +1 | x) = f(<beta, x>), |beta| = 1; kappa = max_{|a| <= 1} min_i y_i <a, x_i>,
          without an intercept.
Limit.    n, p -> infinity with p/n -> `ratio`.
Result.   The data can be separated exactly when p/n > min_c E(Z - c T)_+^2, T = y <beta, x>. Then margin, classification error and the
          share of support vectors follow from three equations (`margin_system`, docs/theory/margins.md, eqs. 5-7, with Sigma = 1).
          Below the threshold there is no classifier. There `separable` and `margin` are 0, and the other two observables are infinite.
Status.   Theorem (Gordon's inequality; Montanari, Ruan, Sohn and Yan 2019; for pure noise Gardner 1988, threshold Cover 1965).
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from limitlab.errors import Refused
from limitlab.laws import Draw, Experiment, Headline, Mark, Values, parameter
from limitlab.laws._population import HasSpectrum
from limitlab.laws.classification.beside_best import Best, HasBayesError, best_classifier, require_isotropic_signal
from limitlab.laws.classification.margin_system import MarginPoint, separability_threshold, solve_margin
from limitlab.laws.classification.populations import Groups, Isotropic, LabelledLaw
from limitlab.models.links import Labels
from limitlab.numerics.margin import HardMargin, hard_margin
from limitlab.numerics.spectra import Spectrum

__all__ = ["MaxMargin"]

Array = NDArray[np.float64]

NO_CLASSIFIER = 1.0
"""Error and support share of a draw that cannot be separated, whose maximiser a = 0 is wrong on every sample."""


TEST_ROWS, TEST_PER_SAMPLE = 2000, 10
"""Least number of fresh inputs of a test, and least number of fresh inputs per training sample."""


def test_rows(samples: int) -> int:
    """Return the number of fresh inputs on which a classifier of `samples` samples is tested."""
    return max(TEST_ROWS, TEST_PER_SAMPLE * samples)


def mistakes(labels: Labels, score: Array, output: Array) -> float:
    """Return the share of wrong outputs on inputs with these scores, averaged over their labels; an output of 0 is wrong."""
    p = labels.probability(score)
    return float(np.mean(p * (output <= 0) + (1 - p) * (output >= 0)))


def limits(point: MarginPoint) -> dict[str, float]:
    """Return the solution of the margin equations as a dictionary of observables."""
    return dict(
        separable=float(point.separable),
        margin=point.margin,
        classification_error=point.error,
        support_fraction=point.support,
        accuracy=point.accuracy,
    )


def of_data_set(solution: HardMargin, error: float) -> dict[str, float]:
    """Return the observables of one data set from its largest margin."""
    return dict(
        separable=float(solution.separable),
        margin=solution.margin,
        classification_error=error if solution.separable else NO_CLASSIFIER,
        support_fraction=solution.support.size / solution.weights.size if solution.separable else NO_CLASSIFIER,
    )


def _scored(spectrum: Spectrum) -> tuple[Array, Array, Array]:
    """Return eigenvalues, shares, and the share of the variance of the label's score in each group."""
    s, w = spectrum.eigenvalues, spectrum.weights
    variance = s * (w if spectrum.energy is None else spectrum.energy)
    return s, w, variance / variance.sum()


class MaxMargin(HasSpectrum, LabelledLaw, HasBayesError):
    """Can a linear classifier separate n labelled points in p dimensions, by what margin, and how well does it predict?

    Examples
    --------
    >>> result = MaxMargin(ratio=1.0, link="probit", link_strength=2.0).theory()
    >>> round(float(result.margin), 9), round(float(result.classification_error), 9)
    (0.701470518, 0.328987068)
    >>> round(MaxMargin(link="probit", link_strength=2.0).separability_ratio(), 9)
    0.241695144
    """

    status = "theorem"
    regime = "n, p -> infinity with p/n fixed"
    assumptions = (
        "inputs are Gaussian vectors, standard or with the given spectrum",
        "the label depends on the input through one direction, scaled to a score of variance 1",
        "no intercept",
    )
    references = ("montanari2019generalization", "gardner1988space", "candes2020phase")
    page = "margins"
    observables = ("separable", "margin", "classification_error", "support_fraction")
    simulation = Experiment("number of features p", sizes=(40, 80, 160), draws=40)
    revision = 3
    # Noisy labels of two kinds, and more and fewer features than samples
    points = (
        dict(ratio=1.5, link="probit", link_strength=2.0),
        dict(ratio=0.7, link="flip", link_strength=0.1),
    )
    headline = Headline(
        "Enough dimensions separate any noisy labels",
        x="ratio",
        over=(0.05, 3.0, 61),
        scale="log",
        show=("margin",),
        curves=("link_strength", (1, 3, 10)),
        at=dict(link="logit"),
        size=80,
        draws=4,
        places=(0.1, 0.2, 0.4, 0.7, 1.0, 2.0, 3.0),
        sliders=("link",),
        marks=(Mark("x", lambda law: law.separability_ratio(), "separable", each=True),),
    )

    ratio: float = parameter(1.0, symbol="p/n", above=0, scale="log", count="size / value")

    @model_validator(mode="after")
    def _every_direction_varies(self) -> Self:
        if self.spectrum is not None and not (self.spectrum.eigenvalues > 0).all():
            raise Refused(f"spectrum = {self.spectrum!r} is not allowed: every eigenvalue must be above 0")
        return self

    @classmethod
    def replaced_by_spectrum(cls) -> tuple[str, ...]:
        """Return no parameter, because the law has no groups of its own."""
        return ()

    def population(self) -> Isotropic | Groups:
        """Return the spectrum of the inputs and the share of the score's variance in each direction."""
        if self.spectrum is None:
            return Isotropic(self.ratio)
        s, w, variance = _scored(self.spectrum)
        return Groups(self.ratio, tuple(s.tolist()), tuple(w.tolist()), tuple(variance.tolist()))

    def predicted(self) -> Values:
        """Return the limit at the law's parameters."""
        return limits(solve_margin(self.labels.oriented(), self.population()))

    def measured(self, draw: Draw) -> Values:
        """Return the observables of one draw, whose classifier is tested on fresh inputs."""
        if self.spectrum is not None:
            return self._measured_with(self.spectrum.at(draw.size), draw)
        rng, n = draw.rng, draw.count("ratio")
        X = rng.standard_normal((n, draw.size))
        y = self.labels.draw(rng, X[:, 0])  # by symmetry the direction is the first axis
        solution = hard_margin(y[:, None] * X)
        fresh = rng.standard_normal((test_rows(n), draw.size))
        error = mistakes(self.labels, fresh[:, 0], fresh @ solution.direction) if solution.separable else NO_CLASSIFIER
        return of_data_set(solution, error)

    def _measured_with(self, spectrum: Spectrum, draw: Draw) -> Values:
        """Return the observables of one draw of inputs with this spectrum.

        By rotation inside a group of equal eigenvalues, one direction has all the energy of the group.
        """
        rng, n, counts = draw.rng, draw.count("ratio"), spectrum.counts(draw.size)
        s, _, variance = _scored(spectrum)
        direction = np.zeros(draw.size)
        direction[np.cumsum(counts) - counts] = np.sqrt(variance)  # coefficients of the whitened inputs
        deviation = np.sqrt(np.repeat(s, counts))
        Z = rng.standard_normal((n, draw.size))
        solution = hard_margin(self.labels.draw(rng, Z @ direction)[:, None] * Z * deviation)
        fresh = rng.standard_normal((test_rows(n), draw.size))
        output = (fresh * deviation) @ solution.direction if solution.separable else np.zeros(len(fresh))
        return of_data_set(solution, mistakes(self.labels, fresh @ direction, output))

    def best_possible(self) -> Best:
        """Return the best classifier on the same samples."""
        if self.spectrum is not None:
            _, w, variance = _scored(self.spectrum)
            with np.errstate(divide="ignore"):
                require_isotropic_signal(self, variance, w)
        return best_classifier(self, self.ratio, self.labels)

    def separability_ratio(self) -> float:
        """Return the least p/n at which the data can be separated; it is 0 if labels are a function of the score's sign.

        >>> MaxMargin(link="flip", link_strength=0.5).separability_ratio()       # labels by coin flips
        0.5
        """
        return separability_threshold(self.labels.oriented(), 1.0)
