"""The Gaussian model of a two-layer network: responses to a sample that are a Gaussian process on the sphere of weights.

Its covariance is h(<w, w'>), as for a network; the theory of two-layer dynamics is exact for it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, combinations_with_replacement, pairwise
from math import comb, factorial

import numpy as np
from numpy.typing import NDArray

from limitlab.models.two_layer.kernels import Kernels
from limitlab.models.two_layer.samples import Samples

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Monomials:
    """Features u(w) with u(w) . u(w') = h(w . w'): all monomials that occur in h, suitably weighted.

    Attributes
    ----------
    slots
        One array of indices per factor: entry e is the product of (1, w)[slots[0][e]], (1, w)[slots[1][e]], ...; index 0 is the 1.
    weights
        The square root of the coefficient of that degree in h times the number of orders of the factors.

    Examples
    --------
    >>> u = Monomials.of((0.5, 0.0, 0.0, 1.0), 2)
    >>> x, y = u.values(np.array([[0.6, 0.8], [1.0, 0.0]]))
    >>> round(float(x @ y), 12), round(0.5 + 0.6**3, 12)
    (0.716, 0.716)
    """

    slots: tuple[NDArray[np.intp], ...]
    weights: Floats

    @classmethod
    @functools.lru_cache(maxsize=8)
    def of(cls, kernel: tuple[float, ...], dimension: int) -> Monomials:
        """From the coefficients of h: sorted index tuples of every degree, filled up with zeros."""
        blocks, weights = [], []
        for degree, coefficient in enumerate(kernel):
            if coefficient > 0:
                flat = chain.from_iterable(combinations_with_replacement(range(1, dimension + 1), degree))
                indices = np.fromiter(flat, np.intp).reshape(comb(dimension + degree - 1, degree), degree)
                blocks.append(np.pad(indices, ((0, 0), (0, len(kernel) - 1 - degree))))
                weights.append(np.sqrt(coefficient * _orders(indices)))
        table = np.concatenate(blocks) if blocks else np.zeros((0, 1), np.intp)
        return cls(tuple(table.T.copy()), np.concatenate(weights) if weights else np.zeros(0))

    def values(self, w: Floats) -> Floats:
        """u(w_j) for the rows of W."""
        return self._products(self.weights, self.slots, _with_one(w))

    def pullback(self, w: Floats, cotangent: Floats) -> Floats:
        """sum_e cotangent_je grad u_e(w_j), one row per neuron."""
        extended = _with_one(w)
        rows, weighted = np.arange(0, extended.size, extended.shape[1])[:, None], cotangent * self.weights
        result = np.zeros(extended.size)
        for k, slot in enumerate(self.slots):
            product = self._products(weighted, self.slots[:k] + self.slots[k + 1 :], extended)
            result += np.bincount((rows + slot).ravel(), product.ravel(), extended.size)
        return result.reshape(extended.shape)[:, 1:]

    @staticmethod
    def _products(start: Floats, slots: tuple[NDArray[np.intp], ...], extended: Floats) -> Floats:
        result = np.zeros((extended.shape[0], start.shape[-1])) + start
        for slot in slots:
            result *= np.take(extended, slot, axis=1)
        return result


def _with_one(w: Floats) -> Floats:
    return np.concatenate([np.ones((w.shape[0], 1)), w], axis=1)


def _orders(indices: NDArray[np.intp]) -> Floats:
    """In how many orders the entries of each sorted row can be written.

    >>> _orders(np.array([[1, 1, 1], [1, 1, 2], [1, 2, 3]]))
    array([1., 3., 6.])
    """
    rows, degree = indices.shape
    run, orders = np.ones(rows), np.full(rows, float(factorial(degree)))
    for left, right in pairwise(indices.T):
        run = np.where(left == right, run + 1, 1.0)
        orders /= run
    return orders


def monomials(kernels: Kernels, dimension: int) -> float:
    """Entries of the symmetric tensors of all degrees that a kernel has."""
    return float(sum(comb(dimension + int(k) - 1, int(k)) for k in np.flatnonzero(np.array(kernels.kernel))))


def gaussian_samples(
    rng: np.random.Generator, kernels: Kernels, samples: int, target_direction: Floats, noise: float
) -> Samples:
    """The Gaussian model, eq. (12): g_i(w) = z_i . u(w) with Gaussian vectors z_i, since u(w) . u(w') = h(w . w').

    A symmetric Gaussian tensor has one free entry per monomial: n C(d+k-1, k) numbers are stored for degree k, not n d^k.
    """
    d, kernel = target_direction.size, np.array(kernels.kernel)
    degrees = np.flatnonzero(kernel)
    size = samples * monomials(kernels, d)
    if size > 1.5e8:
        raise ValueError(
            f"size = {d} is not allowed: the Gaussian model of degree {degrees[-1]} needs {size * 8e-9:.3g} GB, the limit is 1.2 GB; use a "
            "smaller size, a kernel of lower degree, or a network"
        )
    u = Monomials.of(kernels.kernel, d)
    z = rng.standard_normal((samples, u.weights.size))
    # phi = sum_k (s_k / h_k) (part of degree k of g at w_*) + what the neurons cannot see
    scale = np.zeros(kernel.size)
    scale[degrees] = np.resize(np.array([*kernels.target, *np.zeros(kernel.size)]), kernel.size)[degrees] / kernel[degrees]
    degree = np.sum([slot > 0 for slot in u.slots], axis=0) if u.slots else np.zeros(u.weights.size, int)
    labels = z @ (scale[degree] * u.values(target_direction[None, :])[0])
    rest = max(noise**2 + kernels.target_norm - float(scale**2 @ kernel), 0.0)
    labels += np.sqrt(rest) * rng.standard_normal(samples)

    def responses(w: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
        return z @ u.values(w).T, lambda weights: u.pullback(w, weights.T @ z)

    return Samples(labels, responses, d)
