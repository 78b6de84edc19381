"""Smallest eigenvalue and condition number of square Gaussian matrices.

Setting.  X is an n x n matrix with independent standard Gaussian entries, lambda_min the smallest eigenvalue of X'X, and kappa the
          condition number of X, the ratio of its extreme singular values.
Limit.    n -> infinity (the size).
Result.   The limits (docs/theory/spectra.md, equations 15 and 16) are

              P(n lambda_min <= x) -> 1 - exp(-x/2 - sqrt x),    P(kappa/n <= x) -> exp(-2/x - 2/x^2).

          If d/n tends to g != 1, the condition number of an n x d matrix tends to (1 + sqrt g)/|1 - sqrt g| (`MarchenkoPastur`).
Status.   Theorem (Edelman 1988).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from limitlab._core.cost import Cost
from limitlab.errors import Refused
from limitlab.laws import Draw, Experiment, Headline, Law, Values, observable, parameter

__all__ = ["SquareMatrixEdge", "mean_inverse_trace"]

Array = NDArray[Any]


def mean_inverse_trace(n: ArrayLike, d: ArrayLike) -> Array:
    """Return E tr (X'X)^+ for an n x d matrix with standard Gaussian entries, which is infinite for |n - d| <= 1.

    The result is exact at finite size (docs/theory/spectra.md, equation 17). Arguments broadcast.

    >>> mean_inverse_trace([40, 40, 40], [36, 44, 40]).round(6).tolist()
    [12.0, 13.333333, inf]
    """
    rows, columns = (np.asarray(count, dtype=float) for count in (n, d))
    for name, count in (("n", rows), ("d", columns)):
        if not (count >= 1).all():
            raise Refused(f"{name} = {count.min():g} is not allowed: must be at least 1")
    gap = np.abs(rows - columns) - 1
    with np.errstate(divide="ignore"):
        return np.where(gap > 0, np.minimum(rows, columns) / np.maximum(gap, 0.0), np.inf)


def mean_log_condition() -> float:
    """Return lim E log kappa - log n, the mean of log x under exp(-2/x - 2/x^2), by the trapezoidal rule in log x.

    >>> round(mean_log_condition(), 9)
    1.537089435
    """
    y, step = np.linspace(-6.0, 44.0, 2001, retstep=True)
    inverse = np.exp(-y)
    density = (2 * inverse + 4 * inverse**2) * np.exp(-2 * inverse - 2 * inverse**2)
    return float(step * (y @ density))


class SquareMatrixEdge(Law):
    """How badly conditioned is a square Gaussian matrix?

    Examples
    --------
    >>> law = SquareMatrixEdge()
    >>> law.smallest_quantile(0.5).round(6).tolist(), law.condition_cdf(2.0).round(6).tolist()
    (0.296767, 0.22313)
    >>> {name: round(float(value), 6) for name, value in law.theory().items()}
    {'smallest': 0.688641, 'condition_number': 1.537089}
    """

    status = "theorem"
    regime = "n = d -> infinity"
    assumptions = ("independent standard Gaussian entries (other entries with the same variance have the same limit)",)
    references = ("edelman1988eigenvalues",)
    page = "spectra"
    observables = {
        "smallest": observable("mean of n times the smallest eigenvalue", r"\mathbb{E}\,n\lambda_{\min}", least=0),
        "condition_number": observable(
            "mean logarithm of the condition number minus log n", r"\mathbb{E}\log\kappa-\log n", rate=2 / 3
        ),
    }
    simulation = Experiment("number of rows and columns n", sizes=(10, 20, 40), draws=220)
    # The law has no parameters
    points = ({},)
    headline = Headline(
        "Condition numbers have a heavy tail",
        x=r"condition number over $n$, $\kappa/n$",
        over=(0.2, 100.0, 200),
        scale="log",
        y_scale="log",
        show=("tail_probability",),
        size=40,
        draws=10,
        places=(0.3, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 60.0),
    )

    matrices: int = parameter(200, "matrices in one draw", kind="experiment", least=1)

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of all matrices of a draw."""
        return Cost(1.1 * self.matrices * size**2 + 1e5, 0.4 * self.matrices * size**3 + 1e7)

    def headline_line(self, values: Array) -> dict[str, Array]:
        """Return P(kappa/n > x), for the headline view."""
        return {"tail_probability": -np.expm1(-2 / values - 2 / values**2)}

    def headline_points(self, size: int, seeds: Sequence[int], places: Array) -> dict[str, Array]:
        """Return the share of drawn matrices with kappa/n above each place, for the headline view."""
        rows = []
        for seed in seeds:
            singular = np.linalg.svd(
                self.draw(size, seed).rng.standard_normal((self.matrices, size, size)), compute_uv=False
            )
            rows.append(((singular[:, 0] / singular[:, -1])[:, None] > size * places).mean(axis=0))
        return {"tail_probability": np.array(rows)}

    def smallest_cdf(self, x: ArrayLike) -> Array:
        """Return the limit of the probability that n times the smallest eigenvalue is at most x."""
        level = np.maximum(np.asarray(x, dtype=float), 0.0)
        return np.asarray(-np.expm1(-level / 2 - np.sqrt(level)))

    def smallest_quantile(self, p: ArrayLike) -> Array:
        """Return the inverse of `smallest_cdf`, sqrt x = -1 + sqrt(1 + 2 q) with q = -log(1 - p)."""
        share = np.asarray(p, dtype=float)
        if not ((share >= 0) & (share <= 1)).all():
            raise Refused(f"p = {p!r} is not allowed: must be between 0 and 1 (probabilities)")
        with np.errstate(divide="ignore", invalid="ignore"):
            q = -np.log1p(-share)
            return np.asarray(np.where(share < 1, (2 * q / (1 + np.sqrt(1 + 2 * q))) ** 2, np.inf))

    def condition_cdf(self, x: ArrayLike) -> Array:
        """Return the limit of the probability that the condition number divided by n is at most x."""
        level = np.asarray(x, dtype=float)
        with np.errstate(divide="ignore"):
            inverse = np.where(level > 0, 1 / np.maximum(level, 1e-150), np.inf)
        return np.asarray(np.exp(-2 * inverse - 2 * inverse**2))

    def predicted(self) -> Values:
        """Evaluate the moments of the two limiting distributions."""
        mean = 2 * (1 - math.sqrt(2 * math.pi * math.e) * ndtr(-1.0))
        return dict(smallest=mean, condition_number=mean_log_condition(), accuracy=1e-13)

    def measured(self, draw: Draw) -> Values:
        """Measure the singular values of `matrices` matrices."""
        n = draw.size
        singular = np.linalg.svd(draw.rng.standard_normal((self.matrices, n, n)), compute_uv=False)
        smallest = n * singular[:, -1] ** 2
        return dict(
            smallest=smallest.mean(),
            condition_number=np.log(singular[:, 0] / singular[:, -1]).mean() - math.log(n),
        )
