"""Functions of several Gaussian indices, with their coefficients in orthonormal Hermite polynomials.

>>> product = IndexFunction(lambda u, v: u + u * v)
>>> terms, norm = hermite_terms(product, 2)
>>> {degrees: round(value, 9) for degrees, value in terms if abs(value) > 1e-9}, round(norm, 9)
({(1, 0): 1.0, (1, 1): 1.0}, 2.0)
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab._core.checks import user_line
from limitlab.errors import FailedFunction
from limitlab.models.functions import FunctionParameter, record
from limitlab.numerics.gaussian import panel_rule

Array = NDArray[np.float64]
Terms = tuple[tuple[tuple[int, ...], float], ...]

PANELS = {1: 0.05, 2: 0.4}
"""Width of the panels of the quadrature per number of indices, with 12 nodes each."""

NODES = {3: 60, 4: 26}
"""Nodes of the Gauss-Hermite rule per index, for more indices."""

REACH = 8.0
"""End of the interval that the panels cover."""


class IndexFunction(FunctionParameter):
    """A function of one to four Gaussian indices, with one argument per index, usable as the type of a law's parameter.

    Parameters
    ----------
    given
        A function of one array per index, that works element by element.

    Examples
    --------
    >>> IndexFunction(lambda u, v: np.tanh(u) * v).index
    2
    >>> IndexFunction(lambda u: np.log(u))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    limitlab.models.functions.FunctionError: ... it must return one finite number for each point
    """

    KIND = "target function"
    MUST_BE = "a function with one array per index, for one to four indices"

    def __init__(self, given: Any):
        if isinstance(given, IndexFunction):
            self.__dict__.update(given.__dict__)
            return
        if not callable(given):
            raise self.refusal(given)
        self.function: Callable[..., Any] = given
        self.index = _arguments(given)
        if not 1 <= self.index <= 4:
            raise self.refusal(given)
        points = np.random.default_rng(7).standard_normal((self.index, 200))
        self.name = record(given, self._values(points, "construction"))
        self._key: Any = (given, self.name)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return no names, because functions of several indices have none."""
        return ()

    @property
    def given(self) -> Any:
        """The argument from which an equal instance can be constructed."""
        return self.function

    def __reduce__(self) -> tuple[Any, ...]:
        return IndexFunction, (self.function,)

    def __call__(self, points: Array) -> Array:
        """Return the values at points, of which every row is one index."""
        return self._values(np.asarray(points, dtype=float), "evaluation")

    def _values(self, points: Array, stage: str) -> Array:
        try:
            with np.errstate(all="ignore"):
                values = np.asarray(self.function(*points.copy()), dtype=float)
        except Exception as error:
            reason = f"it raised {type(error).__name__}: {error}{user_line(error)}"
            raise self.refusal(self.function, reason) if stage == "construction" else FailedFunction(reason) from error
        if values.shape != points.shape[1:] or not np.all(np.isfinite(values)):
            raise self.refusal(self.function, "it must return one finite number for each point")
        return values


def _arguments(function: Callable[..., Any]) -> int:
    """Return the number of required arguments of a function, or 0 if it is unknown."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return int(getattr(function, "nin", 0))
    return sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


@lru_cache(maxsize=64)
def hermite_terms(function: IndexFunction, degree: int, share: float = 1.0) -> tuple[Terms, float]:
    """Return the coefficients of total degree up to `degree`, and the mean square of a function, by quadrature.

    With `share` below 1 the quadrature has fewer nodes. The change of the result is an estimate of its error.
    """
    k = function.index
    if k in PANELS:
        nodes, weights = panel_rule((), order=12, width=PANELS[k] / share, reach=REACH)
    else:
        nodes, weights = np.polynomial.hermite_e.hermegauss(round(NODES[k] * share))
        weights = weights / weights.sum()
    points = np.stack([axis.ravel() for axis in np.meshgrid(*[nodes] * k, indexing="ij")])
    grid = function(points).reshape([nodes.size] * k)
    table, square = grid, grid**2
    waves = _polynomials(nodes, degree) * weights
    for _ in range(k):  # the first axis becomes the last one, with degrees in place of nodes
        table, square = np.tensordot(table, waves, axes=(0, 1)), np.tensordot(square, weights, axes=(0, 0))
    return _terms(table, degree), float(square)


def sampled_terms(function: IndexFunction, degree: int, points: Array) -> tuple[Terms, float]:
    """Return the coefficients and the mean square of a function, estimated from random points (rows are indices).

    >>> points = np.random.default_rng(0).standard_normal((1, 100_000))
    >>> terms, _ = sampled_terms(IndexFunction(lambda u: 2 * u), 1, points)
    >>> round(terms[1][1], 1)
    2.0
    """
    values = function(points)
    waves = [_polynomials(axis, degree) for axis in points]
    terms = []
    for degrees in _degrees(function.index, degree):
        product = values.copy()
        for wave, order in zip(waves, degrees, strict=True):
            if order:
                product *= wave[order]
        terms.append((degrees, float(product.mean())))
    return tuple(terms), float(np.mean(values**2))


def _degrees(index: int, degree: int) -> list[tuple[int, ...]]:
    return [degrees for degrees in itertools.product(range(degree + 1), repeat=index) if sum(degrees) <= degree]


def _terms(table: Array, degree: int) -> Terms:
    return tuple((degrees, float(table[degrees])) for degrees in _degrees(table.ndim, degree))


def _polynomials(x: Array, degree: int) -> Array:
    """Return the orthonormal Hermite polynomials of degree 0 to `degree`, one per row."""
    rows = [np.ones_like(x), x]
    for k in range(1, degree):
        rows.append((x * rows[k] - math.sqrt(k) * rows[k - 1]) / math.sqrt(k + 1))
    return np.stack(rows[: degree + 1])
