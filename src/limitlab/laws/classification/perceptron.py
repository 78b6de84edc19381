"""Rosenblatt's perceptron, which makes at most (R/margin)^2 mistakes in any order of presentation.

Setting.  w <- w + y x whenever y <w, x> <= 0, from w = 0, sample after sample in a cycle, until a whole cycle has no mistake. R is the
          largest norm of an input, kappa the margin. Random data have x ~ N(0, 1_p) and labels by tossing coins, p/n -> `ratio` above 1/2.
Result.   mistakes <= (R/kappa)^2 for every separable data set (Novikoff). For random data R^2/p -> 1, so that the bound per dimension
          tends to 1/kappa^2 with (1 + kappa^2) Phi(kappa) + kappa phi(kappa) = p/n (docs/theory/margins.md, equations (12)-(13)).
Status.   Theorem. The law does not predict the number of mistakes. An experiment measures it (`mistakes`).
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator
from scipy.special import ndtr

from limitlab._core.checks import checked_table
from limitlab.errors import Refused
from limitlab.laws import Draw, Experiment, Headline, Law, Mark, Values, observable, parameter, shared
from limitlab.numerics.margin import HardMargin, hard_margin
from limitlab.numerics.roots import bracketed_root

__all__ = ["Perceptron", "random_label_margin"]

Array = NDArray[Any]

CYCLES = 10**6
DATA_SETS = 4  # number of data sets with random inputs in one draw


def random_label_margin(ratio: ArrayLike) -> Array:
    """Return the limit of the largest margin of standard Gaussian inputs with random labels, for p/n above 1/2.

    The labels are -1 or +1 with probability one half each (docs/theory/margins.md, eq. 13).

    >>> random_label_margin([0.8, 2.0, 5.0]).round(9).tolist()
    [0.310578448, 1.034314061, 2.001435584]
    """
    gamma = np.asarray(ratio, dtype=float)

    def gap(k: Array) -> Array:
        return np.asarray((1 + k**2) * ndtr(k) + k * np.exp(-(k**2) / 2) / math.sqrt(2 * math.pi) - gamma)

    return np.asarray(bracketed_root(gap, np.zeros_like(gamma), 1 + np.sqrt(gamma)))


def perceptron_mistakes(vectors: Array) -> int:
    """Return the number of updates until every product <v_i, w> is positive.

    The separable vectors v_i = y_i x_i are presented in a cycle.

    >>> perceptron_mistakes(np.array([[2.0, 1.0], [1.0, 3.0], [-1.0, 2.0], [3.0, -1.0]]))
    4
    """
    gram = vectors @ vectors.T
    products, mistakes = np.zeros(len(vectors)), 0
    place = 0  # index of the next sample
    for _ in range(CYCLES * len(vectors)):
        wrong = np.flatnonzero(products <= 0)
        if not wrong.size:
            return mistakes
        later = wrong[np.searchsorted(wrong, place) :]
        sample = int(later[0] if later.size else wrong[0])
        products = products + gram[sample]
        mistakes, place = mistakes + 1, sample + 1
    raise Refused("the data are not allowed: no direction separates them, so the perceptron does not stop")


class Perceptron(Law):
    """At most how many mistakes does the perceptron make before it separates its data?

    Use `from_data(X, y)` for your data. Otherwise inputs and labels are random, with `ratio` features per sample.

    Examples
    --------
    >>> law = Perceptron.from_data([[2, 1], [1, 3], [-1, 2], [3, -1]], [1, 1, 1, 1])
    >>> round(law.margin, 9), round(law.mistake_bound, 9), law.mistakes, law.support.tolist()
    (1.0, 10.0, 4, [2, 3])
    >>> round(float(Perceptron(ratio=2.0).theory().mistake_bound), 9)
    0.934749286
    """

    status = "theorem"
    regime = "any separable data; random inputs and labels: n, p -> infinity with p/n above 1/2"
    assumptions = (
        "the data can be separated through the origin",
        "random inputs: standard Gaussian, labels by tossing coins",
    )
    references = ("rosenblatt1958perceptron", "novikoff1962convergence", "gardner1988space")
    page = "margins"
    observables = {
        **shared("margin", "support_fraction"),
        # not compared, because R^2/p - 1 falls like sqrt(log(n)/p), too slowly for the sizes of an experiment
        "mistake_bound": observable(
            "bound on the mistakes, per dimension for random inputs", r"R^2/(\kappa^2 p)", compared=False, least=0
        ),
        "mistakes": observable("mistakes of the perceptron, per dimension for random inputs", r"k/p", compared=False),
        "largest_ratio": observable("largest number of mistakes over its bound", r"k\kappa^2/R^2", compared=False),
    }
    simulation = Experiment("number of features p", sizes=(60, 120, 240), draws=60)
    # Fewer and more samples than features, but not close to 1/2, where the bound has a heavy tail
    points = (
        dict(ratio=1.5),
        dict(ratio=4.0),
    )
    headline = Headline(
        "Two points per dimension can be separated",
        x="ratio",
        over=(0.5001, 8.0, 80),
        show=("margin",),
        size=120,
        draws=4,
        places=(0.6, 0.8, 1.0, 1.5, 2.0, 4.0, 8.0),
        marks=(Mark("x", 0.5, "two points per dimension"),),
    )

    ratio: float = parameter(2.0, symbol="p/n", above=0.5, scale="log", count="size / value")
    inputs: tuple[tuple[float, ...], ...] | None = parameter(None, note="rows of a data set, in place of random ones")
    targets: tuple[float, ...] | None = parameter(None, note="-1, +1")

    @model_validator(mode="after")
    def _consistent_data(self) -> Self:
        checked_table(self.inputs, self.targets)
        if self.targets is not None and not set(self.targets) <= {-1.0, 1.0}:
            raise Refused(f"targets = {sorted(set(self.targets))[:5]} are not allowed: labels must be -1 or +1")
        if self.inputs is not None and not self.hard_margin.separable:
            raise Refused("inputs are not allowed: no direction separates them, so the perceptron does not stop")
        return self

    @classmethod
    def from_data(cls, X: ArrayLike, y: ArrayLike) -> Self:
        """Return the law of a data set of inputs, one row per sample, and labels -1, +1."""
        table, labels = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
        return cls(inputs=tuple(map(tuple, table.tolist())), targets=tuple(labels.tolist()))

    # -- the data set ------------------------------------------------------------------------------------------------------

    @cached_property
    def vectors(self) -> Array:
        """The vectors y_i x_i of the data set."""
        if self.inputs is None or self.targets is None:
            raise Refused("this law has random inputs and no data set: create the law with from_data(X, y)")
        return np.asarray(self.targets)[:, None] * np.asarray(self.inputs)

    @cached_property
    def hard_margin(self) -> HardMargin:
        """The largest margin, with its certificate."""
        return hard_margin(self.vectors)

    @property
    def margin(self) -> float:
        """The largest margin of the data set, or its limit for random inputs."""
        return float(self.evaluate()["margin"])

    @property
    def radius(self) -> float:
        """The largest norm R of an input."""
        return float(np.linalg.norm(self.vectors, axis=1).max())

    @property
    def mistake_bound(self) -> float:
        """The bound (R/margin)^2, or its limit per dimension for random inputs."""
        return float(self.evaluate()["mistake_bound"])

    @property
    def mistakes(self) -> int:
        """Number of mistakes in cyclic order."""
        return perceptron_mistakes(self.vectors)

    @property
    def support(self) -> NDArray[np.int64]:
        """Indices of the support vectors."""
        return self.hard_margin.support

    # -- the law -----------------------------------------------------------------------------------------------------------

    def predicted(self, ratio: Array) -> Values:
        """Return margin and bound, of the data set or per dimension for random inputs."""
        if self.inputs is not None:
            solution = self.hard_margin
            accuracy = max((solution.upper - solution.lower) / solution.margin, 1e-15)
            bound = (self.radius / solution.margin) ** 2
            share = solution.support.size / len(self.vectors)
            return dict(margin=solution.margin, support_fraction=share, mistake_bound=bound, accuracy=2 * accuracy)
        margin = random_label_margin(ratio)
        return dict(margin=margin, support_fraction=ndtr(margin), mistake_bound=margin**-2, accuracy=1e-14)

    def measured(self, draw: Draw) -> Values:
        """Run the perceptron on a few fresh data sets, or on the law's data set (size and seed are then not used)."""
        if self.inputs is not None:
            return presented(self.vectors, 1)
        runs = [presented(self._separable(draw), draw.size) for _ in range(DATA_SETS)]
        means = {name: np.mean([run[name] for run in runs]) for name in runs[0]}
        return {**means, "largest_ratio": max(run["largest_ratio"] for run in runs)}

    def _separable(self, draw: Draw) -> Array:
        """Draw labelled inputs y_i x_i, which are Gaussian, and repeat the draw if it is inseparable by chance."""
        for _ in range(100):
            vectors = draw.rng.standard_normal((draw.count("ratio"), draw.size))
            if hard_margin(vectors).separable:
                return vectors
        raise Refused(
            f"size = {draw.size} is not allowed: no draw at ratio = {self.ratio:g} was separable; use a larger size"
        )

    def realised(self, size: int) -> Self:
        """Return the law with the ratio at `size` features; a law with a data set is unchanged."""
        return self if self.inputs is not None else super().realised(size)


def presented(vectors: Array, dimension: int) -> dict[str, float]:
    """Return the margin of one data set, bound and number of mistakes per dimension, and their ratio."""
    solution = hard_margin(vectors)
    bound, mistakes = float((vectors**2).sum(axis=1).max()) / solution.margin**2, perceptron_mistakes(vectors)
    return dict(
        margin=solution.margin,
        support_fraction=solution.support.size / len(vectors),
        mistake_bound=bound / dimension,
        mistakes=mistakes / dimension,
        largest_ratio=mistakes / bound,
    )
