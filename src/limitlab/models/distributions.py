"""Distributions of one number, from a mixture of Gaussians, a density or a sampler, usable as the type of a law's parameter.

>>> two = Distribution([(0.5, -1.0, 0.3), (0.5, 2.0, 0.3)])
>>> two.quantile([0.25, 0.75]).round(6).tolist()
[-1.0, 2.0]
"""

from __future__ import annotations

import inspect
import math
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

COARSEST, RESOLVED = 128, 2048
"""Least and largest number of points for the Fourier coefficients of a density on the circle."""

UNRESOLVED = 1e-11
"""Error above which the Fourier coefficients of a density count as unresolved."""

NEGLIGIBLE = 1e-15
"""Size of Fourier coefficients that are omitted."""

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

    INTERVAL = (-REACH, REACH)
    KIND = "distribution"
    MUST_BE = "triples (share, mean, standard deviation), a density of arrays, or a sampler (rng, count)"

    def __init__(self, given: Any):
        if isinstance(given, str):
            raise self.refusal(given)
        if isinstance(given, type(self)):
            self.__dict__.update(given.__dict__)
            return
        given = given.given if isinstance(given, Distribution) else given
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
        return type(self), (self.given,)

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
        edges = np.linspace(*self.INTERVAL, CELLS + 1)
        nodes, weights = np.polynomial.legendre.leggauss(ORDER)
        half = (edges[1] - edges[0]) / 2
        masses = self._density((edges[:-1, None] + half * (1 + nodes)).ravel()).reshape(CELLS, ORDER) @ weights
        if not masses.sum() > 0:
            raise self.refusal(self.function, "a density must not be 0 everywhere")
        masses /= masses.sum()
        self._check_ends(masses)
        below = np.concatenate([[0.0], np.cumsum(masses)])
        above = np.concatenate([np.cumsum(masses[::-1])[::-1], [0.0]])
        return edges, below, above

    def _density(self, points: Array) -> Array:
        """Return the values of a density, which is not normalised."""
        assert self.function is not None
        try:
            with np.errstate(all="ignore"):
                density = np.asarray(self.function(points), dtype=float)
        except Exception as error:
            raise self.refusal(self.function, f"it raised {type(error).__name__}: {error}{user_line(error)}") from error
        if density.shape != points.shape or not np.all(np.isfinite(density)) or density.min() < 0:
            raise self.refusal(self.function, "a density must return one finite number of at least 0 for each number")
        return density

    def _check_ends(self, masses: Array) -> None:
        """Raise `FunctionError` if a density is not negligible at the ends of its interval."""
        if masses[: CELLS // 60].sum() + masses[-CELLS // 60 :].sum() > OUTSIDE:
            raise self.refusal(self.function, f"its tails beyond {REACH:g} are not negligible; scale it, or give a sampler")


class CircleDistribution(Distribution):
    """A distribution of an angle, with the Fourier coefficients of its density.

    Parameters
    ----------
    given
        Triples (share, mean, standard deviation) of a mixture of Gaussians that are wrapped around the circle; a density, which is a
        function of an array of angles with period 2 pi and need not be normalised; or a sampler of angles, which is a function
        (rng, count) of a NumPy generator.

    Examples
    --------
    >>> pairs, error = CircleDistribution(lambda t: np.exp(np.cos(t))).fourier()
    >>> round(pairs[0][0], 9), bool(error < 1e-12)         # 2 I_1(1) / I_0(1)
    (0.892779932, True)
    """

    INTERVAL = (0.0, 2 * math.pi)
    MUST_BE = "triples (share, mean, standard deviation), a density of angles with period 2 pi, or a sampler (rng, count)"

    def fourier(self) -> tuple[tuple[tuple[float, float], ...], float]:
        """Return pairs (a_k, b_k) of 2 pi rho = 1 + sum_k a_k cos(k theta) + b_k sin(k theta), and their largest error.

        The error is infinite if 2048 points do not resolve the density, or for a sampler.
        """
        if self.sampled:
            return (), math.inf
        if self.mixture is not None:
            shares, means, spreads = np.array(self.mixture).T
            k = np.arange(1, RESOLVED // 3 + 1)[:, None]
            waves = 2 * (np.exp(-((k * spreads) ** 2) / 2 + 1j * k * means) @ shares)
            return _pairs(waves), 0.0 if np.abs(waves[-4:]).max() < NEGLIGIBLE else math.inf
        size = COARSEST
        while True:
            waves = np.fft.rfft(self._density(2 * np.pi * np.arange(size) / size)) / size
            mass = max(float(waves[0].real), 1e-300)
            error = max(float(np.abs(waves[size // 3 :]).max()) / mass, abs(mass / self._mean_density - 1))
            if error < UNRESOLVED or size == RESOLVED:
                return _pairs(2 * waves[1 : size // 3].conj() / mass), error if error < UNRESOLVED else math.inf
            size *= 2

    @cached_property
    def _mean_density(self) -> float:
        """The mean of a density over the circle, by the rule of the table of its quantiles."""
        nodes, weights = np.polynomial.legendre.leggauss(ORDER)
        points = np.pi / CELLS * (2 * np.arange(CELLS)[:, None] + 1 + nodes)
        return float((self._density(points.ravel()).reshape(CELLS, ORDER) @ weights).mean()) / 2

    def _check_ends(self, masses: Array) -> None:
        """Raise `FunctionError` if a density does not have the period 2 pi."""
        angles = np.linspace(0.1, 6.2, 62)
        here, before = self._density(angles), self._density(angles - 2 * np.pi)
        if np.abs(here - before).max() > 1e-9 * max(here.max(), before.max()):
            raise self.refusal(
                self.function,
                "a density on the circle must have the period 2 pi; use cos and sin of the angle, or give triples",
            )


def _pairs(waves: Any) -> tuple[tuple[float, float], ...]:
    """Return the cosine and sine coefficients up to the last one that is not negligible."""
    last = np.flatnonzero(np.abs(waves) > NEGLIGIBLE)
    return tuple((float(wave.real), float(wave.imag)) for wave in waves[: last[-1] + 1 if last.size else 0])


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
