"""Training of a two-layer system by gradient flow, by stochastic descent on a training set, or in one pass over fresh samples.

Time is that of docs/theory/two_layer_dynamics.md, theta' = -(n/d) grad R_hat with R_hat = (1/2n) sum (y - f)^2, tangentially to the
sphere for the first layer. For one pass it is the time of the population.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import Refused
from limitlab.laws.dmft._finite.kernels import Kernels
from limitlab.models.activations import Activation
from limitlab.numerics.ode import euler, follow, runge_kutta

Floats = NDArray[np.float64]


# -- labels and responses of a real network on Gaussian inputs ------------------------------------------------------

Function = Callable[[Floats], Floats]
Functions = tuple[Function, Function, Function]
Responses = Callable[[Floats], tuple[Floats, Callable[[Floats], Floats]]]


@dataclass(frozen=True)
class Samples:
    """The labels and the responses of a training set, which are all that training uses.

    For weights W (m x d), `responses(W)` returns the n x m matrix of responses g_i(w_j) and a function that maps an n x m matrix B to
    sum_i B_ij grad g_i(w_j).
    """

    labels: Floats
    responses: Responses
    dimension: int


def exchangeable_weights(
    rng: np.random.Generator, dimension: int, width: int, overlap: float, correlation: float
) -> tuple[Floats, Floats]:
    """Return unit vectors w_1..w_m with these exact inner products and the target direction w_*, rotated at random.

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
    """Draw a real network on Gaussian inputs, g_i(w) = sigma(<w, x_i>) and y_i = phi(<w_*, x_i>) + noise.

    `functions` are sigma, sigma' and phi.
    """
    x = rng.standard_normal((samples, target_direction.size))
    labels = noise * rng.standard_normal(samples) + functions[2](x @ target_direction)
    return network_on(functions, x, labels)


def network_on(functions: Functions, x: Floats, labels: Floats) -> Samples:
    """Return the samples of a network with given inputs and labels."""
    sigma, slope, _ = functions

    def responses(w: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
        inner = x @ w.T
        return sigma(inner), lambda weights: (weights * slope(inner)).T @ x

    return Samples(labels, responses, x.shape[1])


def tangent_features(functions: Functions, w: Floats, a: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Return the outputs of a network, and their derivatives along the sphere of every w_j and along a, one row per input.

    >>> output, features = tangent_features((np.tanh, np.ones_like, np.tanh), np.eye(2)[:1], np.ones(1), np.array([[0.0, 3.0]]))
    >>> output.tolist(), features.tolist()
    ([0.0], [[0.0, 3.0, 0.0]])
    """
    sigma, slope, _ = functions
    inner = x @ w.T
    along = (a * slope(inner) / a.size)[:, :, None] * (x[:, None, :] - inner[:, :, None] * w)
    return sigma(inner) @ a / a.size, np.concatenate([along.reshape(len(x), -1), sigma(inner) / a.size], axis=1)


def network_functions(activation: Activation, target_function: Activation | None) -> Functions:
    """Return sigma, its derivative and phi (0 if there is no target)."""
    return activation, activation.derivative, target_function if target_function is not None else np.zeros_like


def with_label_norm(samples: Samples, noise: float) -> Samples:
    """Rescale pure-noise labels to the norm noise * sqrt(n) of the limit, which removes most of the fluctuations.

    >>> samples = with_label_norm(Samples(np.array([1.0, 2.0]), lambda w: (w, lambda b: b), 3), 0.5)
    >>> round(float(samples.labels @ samples.labels), 12)
    0.5
    """
    scale = noise * np.sqrt(samples.labels.size) / max(float(np.linalg.norm(samples.labels)), 1e-300)
    return replace(samples, labels=scale * samples.labels)


def hermite_functions(kernels: Kernels) -> Functions:
    """Return an activation, its derivative and a target with these kernels.

    They are sigma = sum sqrt(h_k) h_k and phi = sum (s_k / sqrt(h_k)) h_k.

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


Weights = tuple[Floats, Floats]
"""First layer (m x d, unit rows) and second layer (m)."""


@dataclass(frozen=True)
class Track:
    """Weights at the requested times."""

    w: list[Floats]
    a: list[Floats]

    def at(self, indices: NDArray[np.int64]) -> Track:
        """Return the track at some of its times."""
        return Track([self.w[i] for i in indices], [self.a[i] for i in indices])

    def train_error(self, samples: Samples) -> Floats:
        """Return the mean squared residual on a training set at every time."""
        errors = []
        for w, a in zip(self.w, self.a, strict=True):
            values, _ = samples.responses(w)
            errors.append(np.mean((samples.labels - values @ a / a.size) ** 2))
        return np.array(errors)


def gradient_flow(samples: Samples, w: Floats, a: Floats, times: Floats, step: float, speed: float = 1.0) -> Track:
    """Integrate gradient flow by Runge-Kutta of order 4 with steps of at most `step`, with W projected to the sphere after each.

    `speed` multiplies the velocity of the second layer. With 0 the second layer is frozen.
    """
    advance = runge_kutta(lambda _, weights: _velocity(samples, weights, speed), _on_sphere)
    return _track(follow(advance, (w, a), times, step))


KICK = 1e-4
"""Length of the kick of a neuron with which responses are measured. The error of a symmetric difference is of the order of its square."""


def kicked_responses(
    rng: np.random.Generator,
    samples: Samples,
    w: Floats,
    a: Floats,
    lags: Floats,
    step: float,
    speed: float = 1.0,
    kicks: int = 1,
) -> tuple[Floats, Floats]:
    """Return estimates of R_d and R_o at times after a kick, from symmetric differences of gradient flow from w + kick and w - kick.

    Every neuron gets a kick along a random unit vector u_j of the tangent space of the sphere. For i = j the inner product of u_i with the
    change of w_i estimates R_d, and for i != j that of u_j with the change of w_i estimates R_o, with fluctuations of order d^-1/2. The
    estimates are averages over several independent `kicks`.

    >>> rng, w = np.random.default_rng(0), np.eye(3)[:1]
    >>> free = Samples(np.zeros(2), lambda w: (np.zeros((2, 1)), lambda b: 0 * w), 3)
    >>> same, other = kicked_responses(rng, free, w, np.ones(1), np.array([1.0]), 0.5)
    >>> same.round(6).tolist(), other.tolist()
    ([1.0], [0.0])
    """
    estimates = []
    for _ in range(kicks):
        kick = _tangent(rng.standard_normal(w.shape), w)
        kick /= np.linalg.norm(kick, axis=1, keepdims=True)
        ends = (gradient_flow(samples, *_on_sphere((w + sign * KICK * kick, a)), lags, step, speed).w for sign in (1, -1))
        changes = [(up - down) / (2 * KICK) for up, down in zip(*ends, strict=True)]
        estimates.append([part[:, 0] for part in two_time_correlations(changes, [kick])])
    same, other = np.mean(estimates, axis=0)
    return same, other


def stochastic_descent(
    samples: Samples, w: Floats, a: Floats, times: Floats, step: float, speed: float, batch: int, rng: np.random.Generator
) -> Track:
    """Run minibatch gradient descent with time step `step`, where every update uses a fresh random `batch` of the training set."""
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
    """Run stochastic descent on d fresh samples per step in population time; `functions` are sigma, sigma' and phi.

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
    """Return -(n/d) grad R_hat without the part along w_j."""
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


def two_time_correlations(later: Sequence[Floats], earlier: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Return C_d and C_o, the averages over neurons and over pairs of the inner products of weights at two times.

    >>> w = np.array([[1.0, 0.0], [0.6, 0.8]])
    >>> same, other = two_time_correlations([w, w[::-1]], [w])
    >>> same.round(6).tolist(), other.round(6).tolist()
    ([[1.0], [0.6]], [[0.6], [1.0]])
    """
    grams = np.array([[w @ v.T for v in earlier] for w in later])
    m, same = grams.shape[-1], np.trace(grams, axis1=-2, axis2=-1)
    pairs = (grams.sum(axis=(-2, -1)) - same) / (m * (m - 1)) if m > 1 else np.zeros_like(same)
    return same / m, pairs


def observables(track: Track, kernels: Kernels, target_direction: Floats, noise: float) -> dict[str, Floats]:
    """Return averages over neurons and pairs. The test error given the weights is exact, eq. (2) at equal times."""
    result: dict[str, list[float]] = {name: [] for name in ("test_error", "second_layer", "overlap", "correlation")}
    for w, a in zip(track.w, track.a, strict=True):
        m, v, gram = a.size, w @ target_direction, w @ w.T
        test = noise**2 + kernels.target_norm - 2 * np.mean(a * kernels.phihat(v)) + a @ kernels.h(gram) @ a / m**2
        pairs = (gram.sum() - m) / (m * (m - 1)) if m > 1 else 0.0
        for name, value in zip(result, (test, a.mean(), v.mean(), pairs), strict=True):
            result[name].append(float(value))
    return {name: np.array(values) for name, values in result.items()}
