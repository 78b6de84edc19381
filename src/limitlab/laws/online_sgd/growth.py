"""Growth exponents of the moments in the limit theorems of online SGD (docs/theory/sgd_steps.md, eqs. 1-3).

For a loss L(x, Y) in dimension N, let H = grad L - E grad L be its noise and u summary statistics. The statistics u have an effective
dynamics at steps delta = N^-s (such steps are called localizable) if, for every statistic,

    |Hess u| <= delta^-1/2,  E |H|^8 <= delta^-4,  E <H, grad u>^4 <= delta^-2,  E <Hess u, H H' - E H H'>^2 = o(delta^-3),

up to constants. This module fits the slopes of the logarithms of these moments against log N. The largest slopes over the points that a
user gives determine the smallest s at which steps N^-s are localizable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import Refused
from limitlab.models.optimisers import double_precision_jax

__all__ = ["growth_exponents"]

Array = NDArray[np.float64]

SIZES = (50, 100, 200, 400, 800)
TOLERANCE = 0.15
"""Amount by which a slope fitted at these sizes may exceed its bound."""
GROUPS = 5
"""Number of parts of the samples. The slopes of the parts give the standard error of a slope."""
ALLOWED: dict[str, float] = {"hessian_norm": 0.5, "norm_eighth": 4.0, "directional_fourth": 2.0, "curvature_variance": 3.0}
"""Largest exponent of each moment, in units of s, at which steps N^-s are localizable."""


class Point(NamedTuple):
    """Gradient noise at one point, one sample per row, with gradients (u, N) and Hessians (u, N, N) of the statistics."""

    noise: Array
    gradients: Array
    hessians: Array


@dataclass(frozen=True)
class GrowthExponents:
    """Exponents of the moments in the dimension, with standard errors.

    Attributes
    ----------
    exponents
        `directional_second` (E <H, grad u_1>^2) and `norm_fifth` (E |H|^5), which should not exceed 0 and 2.5 (eq. 1), then `hessian_norm`,
        `norm_eighth`, `directional_fourth`, `curvature_variance`, whose bounds depend on the step (eq. 2). The value -inf means that the
        moment is 0.
    errors
        Standard errors of the exponents, from five parts of the samples.
    """

    exponents: Mapping[str, float]
    errors: Mapping[str, float]

    def __getattr__(self, name: str) -> float:
        try:
            return float(self.__dict__["exponents"][name])
        except KeyError:
            raise AttributeError(name) from None

    @property
    def largest_step_exponent(self) -> float:
        """Exponent -s of the largest localizable step N^-s. The value -1 means that steps of order 1/N are the longest ones."""
        return -max(self.exponents[name] / per_s for name, per_s in ALLOWED.items())

    def localizable(self, step_exponent: float) -> bool:
        """Return whether steps N^step_exponent are localizable, with a tolerance of 0.15 on every slope."""
        return all(self.exponents[name] <= -step_exponent * per_s + TOLERANCE for name, per_s in ALLOWED.items())

    @property
    def regular(self) -> bool:
        """Whether E <H, grad u_1>^2 = O(1) and E |H|^5 = O(N^5/2) hold as measured (within 0.15)."""
        return self.exponents["directional_second"] <= TOLERANCE and self.exponents["norm_fifth"] <= 2.5 + TOLERANCE

    @property
    def reliable(self) -> bool:
        """Whether every slope has a standard error of at most 0.15. Samples with heavy tails give larger errors."""
        return max(self.errors.values()) <= TOLERANCE


def growth_exponents(
    loss: Callable[[Any, Any], Any],
    statistics: Callable[[Any], Any],
    sampler: Callable[[Any, int, int], Any],
    points: Callable[[int], Sequence[ArrayLike]],
    sizes: Sequence[int] = SIZES,
    samples: int = 4000,
    seed: int = 0,
) -> GrowthExponents:
    """Return growth exponents for your own loss and statistics, written with `jax.numpy` as for `EffectiveDynamics`.

    Parameters
    ----------
    loss, statistics
        Functions (x, sample) -> number and x -> array. The second moment is taken along the gradient of the first statistic.
    sampler
        Function (key, count, dimension) -> samples along a first axis.
    points
        Function dimension -> weights at which the moments are taken. The largest moment over these weights is used.
    sizes, samples, seed
        Dimensions of the fit, samples per dimension, and their seed.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> growth = growth_exponents(
    ...     lambda x, a: (a[0] - a @ x) ** 2, lambda x: jnp.array([x[0], x @ x]),
    ...     lambda key, count, dimension: jax.random.normal(key, (count, dimension)),
    ...     lambda dimension: [0.5 * np.eye(dimension)[1]], sizes=(20, 40, 80))
    >>> -1.5 < growth.largest_step_exponent < -0.7, growth.localizable(-1.5), growth.localizable(-0.5)
    (True, True, False)
    """
    jax = double_precision_jax()
    gradient, slopes, curves = jax.vmap(jax.grad(loss), (None, 0)), jax.jacobian(statistics), jax.hessian(statistics)

    def at(dimension: int) -> Iterator[Point]:
        drawn = sampler(jax.random.key(seed), samples, dimension)
        for weights in points(dimension):
            x = jax.numpy.asarray(weights, dtype=float)
            forces = np.asarray(gradient(x, drawn), dtype=float)
            yield Point(forces - forces.mean(axis=0), np.asarray(slopes(x)), np.asarray(curves(x)))

    return fitted(at, sizes)


def fitted(at: Callable[[int], Iterator[Point]], sizes: Sequence[int]) -> GrowthExponents:
    """Return the slopes in the dimension of the moments at the points that `at` yields for every dimension."""
    if len(sizes) < 2:
        raise Refused(f"sizes = {tuple(sizes)} is not allowed: a slope needs at least two dimensions")
    tables = [_worst(at(size)) for size in sizes]
    log_n = np.log(np.asarray(sizes, dtype=float))
    exponents, errors = {}, {}
    for name in tables[0]:
        values = np.array([table[name] for table in tables])  # (sizes, 1 + groups)
        if (values <= 0).any():
            exponents[name], errors[name] = -math.inf, 0.0
            continue
        lines = np.polyfit(log_n, np.log(values), 1)[0]
        exponents[name], errors[name] = float(lines[0]), float(np.std(lines[1:], ddof=1) / math.sqrt(GROUPS))
    return GrowthExponents(exponents, errors)


def _worst(points: Iterator[Point]) -> dict[str, Array]:
    """Return the largest value of every moment over points and statistics, from all samples and from each part."""
    tables = [moments(point) for point in points]
    return {name: np.max([table[name] for table in tables], axis=0) for name in tables[0]}


def moments(point: Point) -> dict[str, Array]:
    """Return the moments at one point, from all samples and from each of `GROUPS` parts."""
    length = np.sum(point.noise**2, axis=1)
    along = point.noise @ point.gradients.T
    bend = np.stack([np.einsum("si,si->s", point.noise @ hessian, point.noise) for hessian in point.hessians], axis=1)
    norm = max(float(np.abs(np.linalg.eigvalsh(hessian)).max()) for hessian in point.hessians)
    return {
        "directional_second": _means(along[:, 0] ** 2),
        "norm_fifth": _means(length**2.5),
        "hessian_norm": np.full(1 + GROUPS, norm),
        "norm_eighth": _means(length**4),
        "directional_fourth": _means(along**4),
        "curvature_variance": _means((bend - bend.mean(axis=0)) ** 2),
    }


def _means(values: Array) -> Array:
    """Return the means over all samples and over each part, the largest over the statistics."""
    parts = [values, *np.array_split(values, GROUPS)]
    return np.array([np.max(part.mean(axis=0)) for part in parts])
