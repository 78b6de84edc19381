"""Training a two-layer system: gradient flow, stochastic descent on a training set, one pass over fresh samples.

Time is that of docs/theory/two_layer_dynamics.md: theta' = -(n/d) grad R_hat with R_hat = (1/2n) sum (y - f)^2, tangentially to the
sphere for the first layer; for one pass it is the population's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limitlab.laws.dmft._finite.kernels import Kernels
from limitlab.laws.dmft._finite.samples import Functions, Samples
from limitlab.numerics.ode import euler, follow, runge_kutta

Floats = NDArray[np.float64]
Weights = tuple[Floats, Floats]
"""First layer (m x d, unit rows) and second layer (m)."""


@dataclass(frozen=True)
class Track:
    """Weights at the requested times."""

    w: list[Floats]
    a: list[Floats]

    def train_error(self, samples: Samples) -> Floats:
        """Mean squared residual on a training set at every time."""
        errors = []
        for w, a in zip(self.w, self.a, strict=True):
            values, _ = samples.responses(w)
            errors.append(np.mean((samples.labels - values @ a / a.size) ** 2))
        return np.array(errors)


def gradient_flow(samples: Samples, w: Floats, a: Floats, times: Floats, step: float, speed: float = 1.0) -> Track:
    """Runge-Kutta of order 4 with steps of at most `step`; rows of W are put back on the sphere after every step.

    `speed` multiplies the velocity of the second layer: 0 freezes it.
    """
    advance = runge_kutta(lambda _, weights: _velocity(samples, weights, speed), _on_sphere)
    return _track(follow(advance, (w, a), times, step))


def stochastic_descent(
    samples: Samples, w: Floats, a: Floats, times: Floats, step: float, speed: float, batch: int, rng: np.random.Generator
) -> Track:
    """Minibatch gradient descent with time step `step`: every update uses a fresh random `batch` of the training set."""
    n = samples.labels.size

    def velocity(_: float, weights: Weights) -> Weights:
        mask = np.zeros(n)
        mask[rng.permutation(n)[:batch]] = n / batch
        return _velocity(samples, weights, speed, mask)

    return _track(follow(euler(velocity, _on_sphere), (w, a), times, step, rng=rng))


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

    def velocity(_: float, weights: Weights) -> Weights:
        w, a = weights
        x = rng.standard_normal((d, d))
        inner = x @ w.T
        values = sigma(inner)
        error = phi(x @ target_direction) + noise * rng.standard_normal(d) - values @ a / m
        return _tangent((error[:, None] * a * slope(inner)).T @ x / d, w), values.T @ error / d

    return _track(follow(euler(velocity, _on_sphere), (w, a), times, step, rng=rng))


def _velocity(samples: Samples, weights: Weights, speed: float, mask: Floats | None = None) -> Weights:
    """-(n/d) grad R_hat, with the part along w_j removed."""
    w, a = weights
    m, d = a.size, samples.dimension
    values, pullback = samples.responses(w)
    error = samples.labels - values @ a / m
    if mask is not None:
        error = error * mask
    return _tangent(pullback(error[:, None] * a / (m * d)), w), speed / (m * d) * (values.T @ error)


def _tangent(velocity: Floats, w: Floats) -> Floats:
    return velocity - np.sum(velocity * w, axis=1, keepdims=True) * w


def _on_sphere(weights: Weights) -> Weights:
    w, a = weights
    return w / np.linalg.norm(w, axis=1, keepdims=True), a


def _track(states: Iterable[Weights]) -> Track:
    w, a = zip(*states, strict=True)
    return Track(list(w), list(a))


def observables(track: Track, kernels: Kernels, target_direction: Floats, noise: float) -> dict[str, Floats]:
    """Averages over neurons and pairs; the test error given the weights is exact, eq. (2) at equal times."""
    result: dict[str, list[float]] = {name: [] for name in ("test_error", "second_layer", "overlap", "correlation")}
    for w, a in zip(track.w, track.a, strict=True):
        m, v, gram = a.size, w @ target_direction, w @ w.T
        test = noise**2 + kernels.target_norm - 2 * np.mean(a * kernels.phihat(v)) + a @ kernels.h(gram) @ a / m**2
        pairs = (gram.sum() - m) / (m * (m - 1)) if m > 1 else 0.0
        for name, value in zip(result, (test, a.mean(), v.mean(), pairs), strict=True):
            result[name].append(float(value))
    return {name: np.array(values) for name, values in result.items()}
