"""Which steps may online SGD take? Growth exponents of the moments that its limit theorems ask for (docs/theory/sgd_steps.md, eqs. 1-3).

For a loss L(x, Y) in dimension N, H = grad L - E grad L its noise and u summary statistics, steps delta = N^-s have an effective dynamics
of u ("localizable") when, for every statistic,

    |Hess u| <= delta^-1/2,  E |H|^8 <= delta^-4,  E <H, grad u>^4 <= delta^-2,  E <Hess u, H H' - E H H'>^2 = o(delta^-3),

up to constants. Slopes of the logarithms of these moments against log N, the worst over given points, tell from which s on that is so.
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
"""By how much a slope fitted at such sizes may exceed what is allowed."""
GROUPS = 5
"""Parts of the samples whose slopes tell how well a slope is known."""
ALLOWED: dict[str, float] = {"hessian_norm": 0.5, "norm_eighth": 4.0, "directional_fourth": 2.0, "curvature_variance": 3.0}
"""Largest exponent of each moment, in units of s, at which steps N^-s are localizable."""


class Point(NamedTuple):
    """Noise of the gradient at one point, a sample per row, with gradients (u, N) and Hessians (u, N, N) of the statistics there."""

    noise: Array
    gradients: Array
    hessians: Array


@dataclass(frozen=True)
class GrowthExponents:
    """Exponents of the moments in the dimension, with the spread of each over parts of the samples.

    Attributes
    ----------
    exponents
        `directional_second` (E <H, grad u_1>^2) and `norm_fifth` (E |H|^5), which should not exceed 0 and 2.5 (eq. 1), then `hessian_norm`,
        `norm_eighth`, `directional_fourth`, `curvature_variance`, whose bounds depend on the step (eq. 2). -inf: the moment is 0.
    errors
        Standard error of each, from five parts of the samples.
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
        """Exponent -s of the largest localizable step N^-s: -1 says that steps of order 1/N are as long as they may be."""
        return -max(self.exponents[name] / per_s for name, per_s in ALLOWED.items())

    def localizable(self, step_exponent: float) -> bool:
        """Whether steps N^step_exponent are localizable, with a tolerance of 0.15 on every slope."""
        return all(self.exponents[name] <= -step_exponent * per_s + TOLERANCE for name, per_s in ALLOWED.items())

    @property
    def regular(self) -> bool:
        """Whether E <H, grad u_1>^2 = O(1) and E |H|^5 = O(N^5/2) hold as measured (within 0.15)."""
        return self.exponents["directional_second"] <= TOLERANCE and self.exponents["norm_fifth"] <= 2.5 + TOLERANCE

    @property
    def reliable(self) -> bool:
        """Whether every slope is known to 0.15: samples with heavy tails do not have slopes, they scatter."""
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
    """Growth exponents of your own loss and statistics, written with `jax.numpy` as for `EffectiveDynamics`.

    Parameters
    ----------
    loss, statistics
        (x, sample) -> number and x -> array; along the gradient of the first statistic the second moment is looked at.
    sampler
        (key, count, dimension) -> samples along a first axis.
    points
        dimension -> weights at which the moments are taken; the worst of them counts.
    sizes, samples, seed
        Dimensions of the fit, samples per dimension, and their seed.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> found = growth_exponents(
    ...     lambda x, a: (a[0] - a @ x) ** 2, lambda x: jnp.array([x[0], x @ x]),
    ...     lambda key, count, dimension: jax.random.normal(key, (count, dimension)),
    ...     lambda dimension: [0.5 * np.eye(dimension)[1]], sizes=(20, 40, 80))
    >>> -1.5 < found.largest_step_exponent < -0.7, found.localizable(-1.5), found.localizable(-0.5)
    (True, True, False)
    """
    jax = double_precision_jax()
    gradient, slopes, curves = jax.vmap(jax.grad(loss), (None, 0)), jax.jacobian(statistics), jax.hessian(statistics)

    def at(dimension: int) -> Iterator[Point]:
        drawn = sampler(jax.random.key(seed), samples, dimension)
        for given in points(dimension):
            x = jax.numpy.asarray(given, dtype=float)
            forces = np.asarray(gradient(x, drawn), dtype=float)
            yield Point(forces - forces.mean(axis=0), np.asarray(slopes(x)), np.asarray(curves(x)))

    return fitted(at, sizes)


def fitted(at: Callable[[int], Iterator[Point]], sizes: Sequence[int]) -> GrowthExponents:
    """Slopes over the dimensions of the moments at the points that `at` gives for each of them."""
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
    """The largest value of every moment over points and statistics: from all samples, then from each part of them."""
    tables = [moments(point) for point in points]
    return {name: np.max([table[name] for table in tables], axis=0) for name in tables[0]}


def moments(point: Point) -> dict[str, Array]:
    """The moments at one point: from all samples, then from each of `GROUPS` parts."""
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
    """Mean over the samples, and over each part of them; of several statistics the largest."""
    parts = [values, *np.array_split(values, GROUPS)]
    return np.array([np.max(part.mean(axis=0)) for part in parts])
