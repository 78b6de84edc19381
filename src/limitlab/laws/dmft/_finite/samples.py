"""What gradient descent sees of a two-layer system: labels and responses of a real network on Gaussian inputs, and where it starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import Refused
from limitlab.laws.dmft._finite.kernels import Kernels
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
        raise Refused(f"size = {dimension} is not allowed: must be at least width + 1 = {width + 1}")
    frame, _ = np.linalg.qr(rng.standard_normal((dimension, width + 1)))
    frame = frame.T * rng.choice([-1.0, 1.0], size=(width + 1, 1))
    gram = np.full((width, width), correlation - overlap**2) + (1 - correlation) * np.eye(width)
    values, vectors = np.linalg.eigh(gram)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return overlap * frame[:1] + root @ frame[1:], frame[0]


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
