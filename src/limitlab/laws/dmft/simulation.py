"""Finite two-layer systems under gradient flow: the Gaussian model, for which the theory is exact, and real networks.

Both start from the same exchangeable weights. Time is that of docs/theory/two_layer_dynamics.md: theta' = -(n/d) grad R_hat
with R_hat = (1/2n) sum (y - f)^2, tangentially to the sphere for the first layer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limitlab.laws.dmft.kernels import Kernels
from limitlab.models.activations import Activation

Floats = NDArray[np.float64]
Function = Callable[[Floats], Floats]
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


def gaussian_samples(
    rng: np.random.Generator, kernels: Kernels, samples: int, target_direction: Floats, noise: float
) -> Samples:
    """The Gaussian model: g_i(w) = sum_k c_k <G_i^(k), w^(x k)> with Gaussian tensors of degree at most 3, eq. (12)."""
    d, kernel = target_direction.size, np.array(kernels.kernel)
    degrees = np.flatnonzero(kernel)
    if degrees.size and degrees[-1] > 3:
        raise ValueError(
            f"kernel of degree {degrees[-1]} is not allowed in a simulation of the Gaussian model: at most 3 (it stores n d^degree numbers)"
        )
    size = sum(float(samples) * float(d) ** int(k) for k in degrees)
    if size > 1.5e8:
        raise ValueError(f"size = {d} is not allowed: the Gaussian model needs {size * 8e-9:.1f} GB, the limit is 1.2 GB")
    tensors: dict[int, Floats] = {}
    labels = np.zeros(samples)
    explained = 0.0
    for k in (int(degree) for degree in degrees):
        tensor = np.sqrt(kernel[k]) * rng.standard_normal((samples, *[d] * k))
        if k == 2:
            tensor = 0.5 * (tensor + tensor.swapaxes(1, 2))
        if k == 3:
            tensor = (
                sum(
                    tensor.transpose(0, *axes) for axes in ((1, 2, 3), (1, 3, 2), (2, 1, 3), (2, 3, 1), (3, 1, 2), (3, 2, 1))
                )
                / 6
            )
        tensors[k] = tensor
        coefficient = kernels.target[k] if k < len(kernels.target) else 0.0
        if coefficient:
            value = tensor
            for _ in range(k):
                value = value @ target_direction
            labels += coefficient / kernel[k] * value
            explained += coefficient**2 / kernel[k]
    rest = max(noise**2 + kernels.target_norm - explained, 0.0)
    labels += np.sqrt(rest) * rng.standard_normal(samples)

    def responses(w: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
        values = np.zeros((samples, w.shape[0]))
        slopes = np.zeros((samples, d, w.shape[0]))
        if 0 in tensors:
            values += tensors[0][:, None]
        if 1 in tensors:
            values += tensors[1] @ w.T
            slopes += tensors[1][:, :, None]
        if 2 in tensors:
            product = (tensors[2].reshape(samples * d, d) @ w.T).reshape(samples, d, -1)
            values += np.einsum("idj,jd->ij", product, w)
            slopes += 2 * product
        if 3 in tensors:
            once = (tensors[3].reshape(samples * d * d, d) @ w.T).reshape(samples, d, d, -1)
            twice = np.einsum("iabj,jb->iaj", once, w)
            values += np.einsum("iaj,ja->ij", twice, w)
            slopes += 3 * twice
        return values, lambda weights: np.einsum("ij,idj->jd", weights, slopes)

    return Samples(labels, responses, d)


def network_samples(
    rng: np.random.Generator,
    activation: Activation,
    target_function: Activation | None,
    samples: int,
    target_direction: Floats,
    noise: float,
) -> Samples:
    """A real network on Gaussian inputs: g_i(w) = sigma(<w, x_i>), y_i = phi(<w_*, x_i>) + noise."""
    x = rng.standard_normal((samples, target_direction.size))
    labels = noise * rng.standard_normal(samples)
    if target_function is not None:
        labels += target_function(x @ target_direction)

    def responses(w: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
        inner = x @ w.T
        return activation(inner), lambda weights: (weights * activation.derivative(inner)).T @ x

    return Samples(labels, responses, target_direction.size)


@dataclass(frozen=True)
class Track:
    """Weights at the requested times."""

    w: list[Floats]
    a: list[Floats]
    train_error: list[float]


def gradient_flow(samples: Samples, w: Floats, a: Floats, times: Floats, step: float, frozen: bool) -> Track:
    """Runge-Kutta of order 4 with steps of at most `step`; rows of W are put back on the sphere after every step."""
    track, now = Track([], [], []), 0.0
    for end in times:
        pieces = max(1, int(np.ceil((end - now) / step - 1e-9))) if end > now else 0
        for _ in range(pieces):
            w, a = _runge_kutta(samples, w, a, (end - now) / pieces, frozen)
        now = float(end)
        _note(samples, w, a, track)
    return track


def stochastic_descent(
    samples: Samples, w: Floats, a: Floats, times: Floats, step: float, frozen: bool, batch: int, rng: np.random.Generator
) -> Track:
    """Minibatch gradient descent with time step `step`: every update uses a fresh random `batch` of the training set."""
    n = samples.labels.size
    track, now = Track([], [], []), 0.0
    for end in times:
        pieces = max(1, int(np.ceil((end - now) / step - 1e-9))) if end > now else 0
        for _ in range(pieces):
            mask = np.zeros(n)
            mask[rng.permutation(n)[:batch]] = n / batch
            dw, da = _velocity(samples, w, a, frozen, mask)
            h = (end - now) / pieces
            w, a = _on_sphere(w + h * dw), a + h * da
        now = float(end)
        _note(samples, w, a, track)
    return track


def _velocity(samples: Samples, w: Floats, a: Floats, frozen: bool, mask: Floats | None = None) -> tuple[Floats, Floats]:
    """-(n/d) grad R_hat, with the part along w_j removed."""
    m, d = a.size, samples.dimension
    values, pullback = samples.responses(w)
    error = samples.labels - values @ a / m
    if mask is not None:
        error = error * mask
    dw = pullback(error[:, None] * a / (m * d))
    dw -= np.sum(dw * w, axis=1, keepdims=True) * w
    return dw, np.zeros(m) if frozen else values.T @ error / (m * d)


def _runge_kutta(samples: Samples, w: Floats, a: Floats, h: float, frozen: bool) -> tuple[Floats, Floats]:
    w1, a1 = _velocity(samples, w, a, frozen)
    w2, a2 = _velocity(samples, w + 0.5 * h * w1, a + 0.5 * h * a1, frozen)
    w3, a3 = _velocity(samples, w + 0.5 * h * w2, a + 0.5 * h * a2, frozen)
    w4, a4 = _velocity(samples, w + h * w3, a + h * a3, frozen)
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
    functions: tuple[Function, Function, Function],
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


def hermite_functions(kernels: Kernels) -> tuple[Function, Function, Function]:
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
