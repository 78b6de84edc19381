"""The Gaussian model of a two-layer network, in which responses to a sample are a Gaussian process on the sphere of weights.

Its covariance is h(<w, w'>), as for a network. The theory of two-layer dynamics is exact for this model.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from limitlab.errors import Refused
from limitlab.laws.dmft._finite.kernels import Kernels
from limitlab.laws.dmft._finite.training import Samples

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Monomials:
    """Features u(w) with u(w) . u(w') = h(w . w'), which are all weighted monomials up to the degree of h.

    The monomials form a tree. Monomial 0 is the constant 1. Monomial e is w[factors[e]] times monomial parents[e], whose factors have
    indices of at most factors[e].

    Attributes
    ----------
    parents, factors, degrees
        Parent, last factor and number of factors of every monomial.
    weights
        The square root of the coefficient of that degree in h times the number of orders of the factors.

    Examples
    --------
    >>> u = Monomials.of((0.5, 0.0, 0.0, 1.0), 2)
    >>> x, y = u.weights * u.products(np.array([[0.6, 0.8], [1.0, 0.0]])).T
    >>> round(float(x @ y), 12), round(0.5 + 0.6**3, 12)
    (0.716, 0.716)
    """

    parents: Integers
    factors: Integers
    degrees: Integers
    weights: Floats

    @classmethod
    @functools.lru_cache(maxsize=8)
    def of(cls, kernel: tuple[float, ...], dimension: int) -> Monomials:
        """Return the monomials for the coefficients of h.

        A monomial is a product of coordinates in the order of their indices. It is computed from a monomial of one degree less.
        """
        numbers, factors, runs, orders = np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1), np.ones(1)
        levels = [(numbers, factors, np.sqrt(kernel[0] * orders))]
        for degree, coefficient in enumerate(kernel[1:], 1):
            counts = dimension - factors
            parents, last = np.repeat(numbers, counts), np.repeat(factors, counts)
            factors = last + np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            runs = np.where(factors == last, np.repeat(runs, counts) + 1, 1.0)  # how often the last factor occurs
            orders = np.repeat(orders, counts) * degree / runs
            numbers = numbers[-1] + 1 + np.arange(factors.size)
            levels.append((parents, factors, np.sqrt(coefficient * orders)))
        degrees = np.repeat(np.arange(len(levels)), [level[0].size for level in levels])
        parents, factors, weights = map(np.concatenate, zip(*levels, strict=True))
        return cls(parents, factors, degrees, weights)

    def products(self, w: Floats) -> Floats:
        """Return all monomials without their weights, one column for every row w_j of W."""
        products = np.empty((self.parents.size, w.shape[0]))
        _multiply(self.parents, self.factors, w.T.copy(), products)
        return products

    def pullback(self, w: Floats, products: Floats, cotangent: Floats) -> Floats:
        """Return sum_e cotangent_ej grad products_ej, one row for every row of W; the cotangent is overwritten."""
        gradient = np.zeros(w.T.shape)
        _differentiate(self.parents, self.factors, w.T.copy(), products, cotangent, gradient)
        return gradient.T


@numba.njit(cache=True)
def _multiply(parents: Any, factors: Any, columns: Any, products: Any) -> None:
    """Compute every monomial as its factor times its parent, from the root of the tree on."""
    for j in range(columns.shape[1]):
        products[0, j] = 1.0
    for e in range(1, parents.size):
        for j in range(columns.shape[1]):
            products[e, j] = columns[factors[e], j] * products[parents[e], j]


@numba.njit(cache=True)
def _differentiate(parents: Any, factors: Any, columns: Any, products: Any, cotangent: Any, gradient: Any) -> None:
    """Propagate the derivative with respect to every monomial to its factor and to its parent, from the leaves of the tree on."""
    for e in range(parents.size - 1, 0, -1):
        for j in range(columns.shape[1]):
            gradient[factors[e], j] += cotangent[e, j] * products[parents[e], j]
            cotangent[parents[e], j] += cotangent[e, j] * columns[factors[e], j]


def monomials(kernels: Kernels, dimension: int) -> float:
    """Return the number of free entries of the symmetric tensors, summed over the degrees with a nonzero coefficient in the kernel."""
    return float(sum(comb(dimension + int(k) - 1, int(k)) for k in np.flatnonzero(np.array(kernels.kernel))))


def gaussian_samples(
    rng: np.random.Generator, kernels: Kernels, samples: int, target_direction: Floats, noise: float
) -> Samples:
    """Draw the Gaussian model, eq. (1a), as g_i(w) = z_i . u(w) with Gaussian vectors z_i, since u(w) . u(w') = h(w . w').

    A symmetric Gaussian tensor has one free entry per monomial, so n C(d+k-1, k) numbers are stored for degree k, not n d^k.
    """
    d, kernel = target_direction.size, np.array(kernels.kernel)
    degrees = np.flatnonzero(kernel)
    size = samples * monomials(kernels, d)
    if size > 1.5e8:
        raise Refused(
            f"size = {d} is not allowed: the Gaussian model of degree {degrees[-1]} needs {size * 8e-9:.3g} GB, the limit is 1.2 GB; use a "
            "smaller size, a kernel of lower degree, or experiment_model = 'network' if the law has it"
        )
    u = Monomials.of(kernels.kernel, d)
    known = kernel[u.degrees] > 0
    z = np.zeros((samples, known.size))
    z[:, known] = rng.standard_normal((samples, int(known.sum())))
    z *= u.weights
    # phi = sum_k (s_k / h_k) (part of degree k of g at w_*) + a part independent of all responses
    scale = np.zeros(kernel.size)
    scale[degrees] = np.resize(np.array([*kernels.target, *np.zeros(kernel.size)]), kernel.size)[degrees] / kernel[degrees]
    labels = z @ (scale[u.degrees] * u.products(target_direction[None, :])[:, 0])
    rest = max(noise**2 + kernels.target_norm - float(scale**2 @ kernel), 0.0)
    labels += np.sqrt(rest) * rng.standard_normal(samples)

    def responses(w: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
        products = u.products(w)
        return z @ products, lambda weights: u.pullback(w, products, (weights.T @ z).T.copy())

    return Samples(labels, responses, d)
