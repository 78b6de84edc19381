"""Distributions of one number, from a mixture of Gaussians, a density or a sampler, usable as the type of a law's parameter.

>>> two = Distribution([(0.5, -1.0, 0.3), (0.5, 2.0, 0.3)])
>>> two.quantile([0.25, 0.75]).round(6).tolist()
[-1.0, 2.0]
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.checks import user_line
from limitlab.errors import FailedFunction
from limitlab.models.functions import FunctionParameter, record

Array = NDArray[np.float64]

REACH, CELLS, ORDER = 60.0, 24000, 6
"""End of the interval on which a density is integrated, number of its cells, and nodes per cell."""

OUTSIDE = 1e-9
"""Largest share of a density at the ends of this interval."""

SAMPLED = 400_000
"""Number of draws that represent a sampler."""

LEAST_NODES = 12
"""Least number of nodes for a component of a mixture."""

HALVINGS = 90
"""Steps of the bisection that inverts the distribution function of a mixture."""


class Distribution(FunctionParameter):
    """A distribution of one number.

    Parameters
    ----------
    given
        Triples (share, mean, standard deviation) of a mixture of Gaussians; a density, which is a function of an array and need not be
        normalised, and which is negligible outside [-60, 60]; or a sampler, which is a function (rng, count) of a NumPy generator.

    Notes
    -----
    The quantiles of a sampler are those of 400,000 draws. Their statistical error is about 1e-3 standard deviations.

    Examples
    --------
    >>> Distribution(lambda x: np.exp(-np.abs(x))).quantile([0.1, 0.9]).round(5).tolist()
    [-1.60944, 1.60944]
    >>> Distribution([(0.5, 0.0, -1.0)])
    Traceback (most recent call last):
        ...
    limitlab.models.functions.FunctionError: distribution = [(0.5, 0.0, -1.0)] is not allowed: shares and deviations must be above 0
    """

    KIND = "distribution"
    MUST_BE = "triples (share, mean, standard deviation), a density of arrays, or a sampler (rng, count)"

    def __init__(self, given: Any):
        if isinstance(given, str):
            raise self.refusal(given)
        if isinstance(given, Distribution):
            self.__dict__.update(given.__dict__)
            return
        self.mixture: tuple[tuple[float, ...], ...] | None = None
        self.function: Callable[..., Any] | None = None
        self.sampled = False
        if callable(given):
            self.function = given
            self.sampled = _is_sampler(given)
            values = self._sample if self.sampled else self._table[1]
            self.name = record(given, values[:: max(1, values.size // 50)])
            self._key: Any = (given, self.name)
        else:
            self._from_mixture(given)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return no names, because distributions have none."""
        return ()

    def _from_mixture(self, given: Any) -> None:
        try:
            rows = np.asarray(given, dtype=float)
        except (TypeError, ValueError):
            raise self.refusal(given) from None
        if rows.ndim != 2 or rows.shape[1] != 3 or not len(rows) or not np.all(np.isfinite(rows)):
            raise self.refusal(given)
        if not ((rows[:, 0] > 0).all() and (rows[:, 2] > 0).all()):
            raise self.refusal(given, "shares and deviations must be above 0")
        rows[:, 0] /= rows[:, 0].sum()
        self.mixture = tuple(tuple(float(value) for value in row) for row in rows)
        self.name = str(self.mixture)
        self._key = self.mixture

    @property
    def given(self) -> Any:
        """The argument from which an equal instance can be constructed."""
        return self.function if self.mixture is None else self.mixture

    def __reduce__(self) -> tuple[Any, ...]:
        return Distribution, (self.given,)

    def _serialised(self, info: Any) -> Any:
        return self.mixture if self.mixture is not None else super()._serialised(info)

    def quantile(self, levels: ArrayLike, complements: ArrayLike | None = None, half: int | None = None) -> Array:
        """Return the numbers below which a share `levels` lies.

        Parameters
        ----------
        levels, complements
            Shares between 0 and 1, and one minus these shares without cancellation.
        half
            0 or 1 to use one half of the draws of a sampler.
        """
        below = np.asarray(levels, dtype=float)
        above = 1 - below if complements is None else np.asarray(complements, dtype=float)
        if self.sampled:
            draws = self._sample if half is None else self._sample[half::2]
            return np.asarray(np.quantile(np.sort(draws), below))
        if self.mixture is None:
            edges, cumulative, upper = self._table
            low = np.interp(below, cumulative, edges)
            high = -np.interp(above, upper[::-1], -edges[::-1])
            return np.where(below < 0.5, low, high)
        return _mixture_quantile(np.array(self.mixture), below, above)

    def rule(self, count: int, half: int | None = None) -> tuple[Array, Array]:
        """Return about `count` nodes and their weights, at quantiles of the distribution or of the components of a mixture.

        >>> nodes, weights = Distribution([(0.3, -1.0, 0.1), (0.7, 2.0, 0.5)]).rule(60)
        >>> round(float(weights @ nodes), 6), round(float(weights @ nodes**2), 3)
        (1.1, 3.278)
        """
        from limitlab.numerics.quadrature import gaussian_quantiles, quantile_rule

        if self.mixture is None:
            levels, complements, weights = quantile_rule(count)
            return self.quantile(levels, complements, half), weights
        each = max(LEAST_NODES, count // len(self.mixture))
        z, shares = gaussian_quantiles(each)
        parts = [(mean + spread * z, share * shares) for share, mean, spread in self.mixture]
        nodes, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
        return nodes, weights

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        """Return independent draws.

        >>> Distribution([(1.0, 2.0, 0.5)]).draw(np.random.default_rng(0), (2, 3)).shape
        (2, 3)
        """
        count = int(np.prod(shape))
        if self.sampled:
            return self._called(rng, count).reshape(shape)
        if self.mixture is not None:
            shares, means, spreads = np.array(self.mixture).T
            component = rng.choice(shares.size, size=count, p=shares)
            return np.asarray(means[component] + spreads[component] * rng.standard_normal(count)).reshape(shape)
        return self.quantile(rng.random(count)).reshape(shape)

    @cached_property
    def _sample(self) -> Array:
        """The draws that represent a sampler, those of even and of odd position independent."""
        return self._called(np.random.default_rng(20), SAMPLED)

    def _called(self, rng: np.random.Generator, count: int) -> Array:
        assert self.function is not None
        try:
            values = np.asarray(self.function(rng, count), dtype=float)
        except Exception as error:
            raise FailedFunction(f"the sampler raised {type(error).__name__}: {error}{user_line(error)}") from error
        if values.shape != (count,) or not np.all(np.isfinite(values)):
            raise self.refusal(
                self.function, f"a sampler must return {count} finite numbers for count = {count}, not shape {values.shape}"
            )
        return values

    @cached_property
    def _table(self) -> tuple[Array, Array, Array]:
        """Edges of cells, the share below and the share above every edge, for a density."""
        assert self.function is not None
        edges = np.linspace(-REACH, REACH, CELLS + 1)
        nodes, weights = np.polynomial.legendre.leggauss(ORDER)
        half = (edges[1] - edges[0]) / 2
        points = (edges[:-1, None] + half * (1 + nodes)).ravel()
        try:
            with np.errstate(all="ignore"):
                density = np.asarray(self.function(points), dtype=float)
        except Exception as error:
            raise self.refusal(self.function, f"it raised {type(error).__name__}: {error}{user_line(error)}") from error
        if density.shape != points.shape or not np.all(np.isfinite(density)) or density.min() < 0 or not density.max() > 0:
            raise self.refusal(
                self.function, "a density must return one finite number of at least 0 for each number, and not only 0"
            )
        masses = density.reshape(CELLS, ORDER) @ weights
        masses /= masses.sum()
        if masses[: CELLS // 60].sum() + masses[-CELLS // 60 :].sum() > OUTSIDE:
            raise self.refusal(self.function, f"its tails beyond {REACH:g} are not negligible; scale it, or give a sampler")
        below = np.concatenate([[0.0], np.cumsum(masses)])
        above = np.concatenate([np.cumsum(masses[::-1])[::-1], [0.0]])
        return edges, below, above


def _is_sampler(function: Callable[..., Any]) -> bool:
    """Return whether a function has two required arguments."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters) == 2


def _mixture_quantile(mixture: Array, below: Array, above: Array) -> Array:
    """Return quantiles of a mixture of Gaussians by bisection, with the smaller one of both tails."""
    from scipy.special import ndtr

    shares, means, spreads = mixture.T
    low = np.full(below.shape, float((means - 40 * spreads).min()))
    high = np.full(below.shape, float((means + 40 * spreads).max()))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        z = (middle[..., None] - means) / spreads
        right = np.where(below < 0.5, ndtr(z) @ shares < below, ndtr(-z) @ shares > above)
        low, high = np.where(right, middle, low), np.where(right, high, middle)
    return np.asarray((low + high) / 2)
