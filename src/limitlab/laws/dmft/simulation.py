"""Finite two-layer systems under gradient flow: the Gaussian model, for which the theory is exact, and real networks.

Both start from the same exchangeable weights. Time is that of docs/theory/two_layer_dynamics.md: theta' = -(n/d) grad R_hat
with R_hat = (1/2n) sum (y - f)^2, tangentially to the sphere for the first layer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain, combinations_with_replacement, pairwise
from math import comb, factorial

import numpy as np
from numpy.typing import NDArray

from limitlab.laws.dmft.kernels import Kernels
from limitlab.models.activations import Activation

Floats = NDArray[np.float64]
Function = Callable[[Floats], Floats]
Functions = tuple[Function, Function, Function]
Responses = Callable[[Floats], tuple[Floats, Callable[[Floats], Floats]]]


@dataclass(frozen=True)
class Samples:
    """What gradient descent sees: labels, and for weights W (m x d) the responses g_i(w_j) with their pullback.

    `responses(W)` returns the n x m matrix of responses and a function that maps an n x m matrix B to sum_i B_ij grad g_i(w_j).
    """

    labels: Floats
    responses: Responses
    dimension: int


def exchangeable_weights(
    rng: np.random.Generator, dimension: int, width: int, overlap: float, correlation: float
) -> tuple[Floats, Floats]:
    """Unit vectors w_1..w_m with these exact inner products, and the target direction w_*, turned at random.

    >>> w, target = exchangeable_weights(np.random.default_rng(0), 5, 3, 0.2, 0.1)
    >>> np.round(w @ w.T, 12)[0], np.round(w @ target, 12)
    (array([1. , 0.1, 0.1]), array([0.2, 0.2, 0.2]))
    """
    if dimension < width + 1:
        raise ValueError(f"size = {dimension} is not allowed: must be at least width + 1 = {width + 1}")
    frame, _ = np.linalg.qr(rng.standard_normal((dimension, width + 1)))
    frame = frame.T * rng.choice([-1.0, 1.0], size=(width + 1, 1))
    gram = np.full((width, width), correlation - overlap**2) + (1 - correlation) * np.eye(width)
    values, vectors = np.linalg.eigh(gram)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return overlap * frame[:1] + root @ frame[1:], frame[0]


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


def gaussian_samples(
    rng: np.random.Generator, kernels: Kernels, samples: int, target_direction: Floats, noise: float
) -> Samples:
    """The Gaussian model, eq. (12): g_i(w) = z_i . u(w) with Gaussian vectors z_i, since u(w) . u(w') = h(w . w').

    A symmetric Gaussian tensor has one free entry per monomial: n C(d+k-1, k) numbers are stored for degree k, not n d^k.
    """
    d, kernel = target_direction.size, np.array(kernels.kernel)
    degrees = np.flatnonzero(kernel)
    size = samples * sum(comb(d + int(k) - 1, int(k)) for k in degrees)
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


def network_samples(
    rng: np.random.Generator, functions: Functions, samples: int, target_direction: Floats, noise: float
) -> Samples:
    """A real network on Gaussian inputs: g_i(w) = sigma(<w, x_i>), y_i = phi(<w_*, x_i>) + noise; functions: sigma, sigma', phi."""
    sigma, slope, phi = functions
    x = rng.standard_normal((samples, target_direction.size))
    labels = noise * rng.standard_normal(samples) + phi(x @ target_direction)

    def responses(w: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
        inner = x @ w.T
        return sigma(inner), lambda weights: (weights * slope(inner)).T @ x

    return Samples(labels, responses, target_direction.size)


def network_functions(activation: Activation, target_function: Activation | None) -> Functions:
    """sigma, its derivative and phi (0 if there is no target)."""
    return activation, activation.derivative, target_function if target_function is not None else np.zeros_like


def with_label_norm(samples: Samples, noise: float) -> Samples:
    """Pure-noise labels rescaled to the norm noise * sqrt(n) that they have in the limit: most of the fluctuations are in their norm.

    >>> samples = with_label_norm(Samples(np.array([1.0, 2.0]), lambda w: (w, lambda b: b), 3), 0.5)
    >>> round(float(samples.labels @ samples.labels), 12)
    0.5
    """
    scale = noise * np.sqrt(samples.labels.size) / max(float(np.linalg.norm(samples.labels)), 1e-300)
    return replace(samples, labels=scale * samples.labels)


@dataclass(frozen=True)
class Track:
    """Weights at the requested times."""

    w: list[Floats]
    a: list[Floats]
    train_error: list[float]


def gradient_flow(samples: Samples, w: Floats, a: Floats, times: Floats, step: float, speed: float = 1.0) -> Track:
    """Runge-Kutta of order 4 with steps of at most `step`; rows of W are put back on the sphere after every step.

    `speed` multiplies the velocity of the second layer: 0 freezes it.
    """
    track, now = Track([], [], []), 0.0
    for end in times:
        pieces = max(1, int(np.ceil((end - now) / step - 1e-9))) if end > now else 0
        for _ in range(pieces):
            w, a = _runge_kutta(samples, w, a, (end - now) / pieces, speed)
        now = float(end)
        _note(samples, w, a, track)
    return track


def stochastic_descent(
    samples: Samples, w: Floats, a: Floats, times: Floats, step: float, speed: float, batch: int, rng: np.random.Generator
) -> Track:
    """Minibatch gradient descent with time step `step`: every update uses a fresh random `batch` of the training set."""
    n = samples.labels.size
    track, now = Track([], [], []), 0.0
    for end in times:
        pieces = max(1, int(np.ceil((end - now) / step - 1e-9))) if end > now else 0
        for _ in range(pieces):
            mask = np.zeros(n)
            mask[rng.permutation(n)[:batch]] = n / batch
            dw, da = _velocity(samples, w, a, speed, mask)
            h = (end - now) / pieces
            w, a = _on_sphere(w + h * dw), a + h * da
        now = float(end)
        _note(samples, w, a, track)
    return track


def _velocity(samples: Samples, w: Floats, a: Floats, speed: float, mask: Floats | None = None) -> tuple[Floats, Floats]:
    """-(n/d) grad R_hat, with the part along w_j removed."""
    m, d = a.size, samples.dimension
    values, pullback = samples.responses(w)
    error = samples.labels - values @ a / m
    if mask is not None:
        error = error * mask
    dw = pullback(error[:, None] * a / (m * d))
    dw -= np.sum(dw * w, axis=1, keepdims=True) * w
    return dw, speed / (m * d) * (values.T @ error)


def _runge_kutta(samples: Samples, w: Floats, a: Floats, h: float, speed: float) -> tuple[Floats, Floats]:
    w1, a1 = _velocity(samples, w, a, speed)
    w2, a2 = _velocity(samples, w + 0.5 * h * w1, a + 0.5 * h * a1, speed)
    w3, a3 = _velocity(samples, w + 0.5 * h * w2, a + 0.5 * h * a2, speed)
    w4, a4 = _velocity(samples, w + h * w3, a + h * a3, speed)
    return _on_sphere(w + h / 6 * (w1 + 2 * w2 + 2 * w3 + w4)), a + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)


def _on_sphere(w: Floats) -> Floats:
    return w / np.linalg.norm(w, axis=1, keepdims=True)


def _note(samples: Samples, w: Floats, a: Floats, track: Track) -> None:
    values, _ = samples.responses(w)
    track.w.append(w)
    track.a.append(a)
    track.train_error.append(float(np.mean((samples.labels - values @ a / a.size) ** 2)))


def observables(track: Track, kernels: Kernels, target_direction: Floats, noise: float) -> dict[str, Floats]:
    """Averages over neurons and pairs; the test error given the weights is exact, eq. (2) at equal times."""
    result: dict[str, list[float]] = {name: [] for name in ("test_error", "second_layer", "overlap", "correlation")}
    for w, a in zip(track.w, track.a, strict=True):
        m, v, gram = a.size, w @ target_direction, w @ w.T
        test = noise**2 + kernels.target_norm - 2 * np.mean(a * kernels.phihat(v)) + a @ kernels.h(gram) @ a / m**2
        pairs = (gram.sum() - m) / (m * (m - 1)) if m > 1 else 0.0
        for name, value in zip(result, (test, a.mean(), v.mean(), pairs), strict=True):
            result[name].append(float(value))
    return {"train_error": np.array(track.train_error), **{name: np.array(values) for name, values in result.items()}}


def one_pass_descent(
    rng: np.random.Generator,
    functions: Functions,
    w: Floats,
    a: Floats,
    target_direction: Floats,
    noise: float,
    times: Floats,
    step: float,
) -> Track:
    """Stochastic descent on fresh samples, d of them per step; `functions` are sigma, sigma' and phi. Population time.

    Both the Euler error and the diffusion that the sampling noise adds are proportional to `step`.
    """
    sigma, slope, phi = functions
    m, d = w.shape
    track, now = Track([], [], []), 0.0
    for end in times:
        pieces = max(1, int(np.ceil((end - now) / step - 1e-9))) if end > now else 0
        for _ in range(pieces):
            x = rng.standard_normal((d, d))
            inner = x @ w.T
            values = sigma(inner)
            error = phi(x @ target_direction) + noise * rng.standard_normal(d) - values @ a / m
            dw = (error[:, None] * a * slope(inner)).T @ x / d
            dw -= np.sum(dw * w, axis=1, keepdims=True) * w
            h = (end - now) / pieces
            w, a = _on_sphere(w + h * dw), a + h * values.T @ error / d
        now = float(end)
        track.w.append(w)
        track.a.append(a)
        track.train_error.append(float("nan"))
    return track


def hermite_functions(kernels: Kernels) -> Functions:
    """An activation, its derivative and a target with these kernels: sigma = sum sqrt(h_k) h_k, phi = sum (s_k / sqrt(h_k)) h_k.

    >>> sigma, _, _ = hermite_functions(Kernels((0.0, 4.0), (), 0.0))
    >>> float(sigma(np.array(1.5)))
    3.0
    """
    c = np.sqrt(np.array(kernels.kernel))
    s = np.zeros(c.size)
    s[: len(kernels.target)] = kernels.target
    b = np.divide(s, c, out=np.zeros(c.size), where=c > 0)
    norms = np.sqrt(np.cumprod(np.maximum(np.arange(c.size, dtype=float), 1.0)))
    series = np.polynomial.HermiteE(c / norms)
    return series, series.deriv() if c.size > 1 else np.zeros_like, np.polynomial.HermiteE(b / norms)
