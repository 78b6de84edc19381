"""Two-layer networks with unlimited samples, by population gradient flow and by its mean-field limit.

Setting.  As in `limitlab.laws.dmft.two_layer`, with n/d -> infinity. Time is the population time t_hat = n t / (m d).
Limit.    Finite width m: three equations for a, v and the mutual correlation c of the neurons (`PopulationFlow`). Infinite width:
          c = v^2 and two equations remain (`MeanFieldSingleIndex`). Neurons that differ, or targets of k directions: particles
          (a_i, v_i) with v_i in R^k, eq. 12 (`particle_flow`).
Result.   Equations 10 to 12 of docs/theory/two_layer_dynamics.md. The test error never increases.
Status.   Theorem for the mean-field limit, at finite times and with rates (Mei, Montanari, Nguyen 2018; Montanari, Urbani 2025).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab._core.cost import Cost, latest
from limitlab.laws import Draw, Experiment, Headline, Values, parameter
from limitlab.laws.dmft._finite.kernels import Kernels
from limitlab.laws.dmft._parameters import TwoLayerStart, check_correlation
from limitlab.numerics.ode import Trajectory, integrate

__all__ = ["MeanFieldSingleIndex", "PopulationFlow"]

Floats = NDArray[np.float64]


def population_velocity(kernels: Kernels, width: int, a: float, v: float, c: float) -> tuple[float, float, float]:
    """Return the right sides of (10), the exact population flow of m exchangeable neurons.

    >>> kernels = Kernels((0.0, 0.5), (0.0, 0.5), 0.5)
    >>> population_velocity(kernels, 3, 1.0, 1.0, 1.0)  # neurons equal to the target do not move
    (0.0, 0.0, 0.0)
    """
    m = width
    (h_one, h_pair), (d_one, d_pair) = kernels.h([1.0, c]), kernels.h([1.0, c], order=1)
    phi, slope = float(kernels.phihat(v)), float(kernels.phihat(v, order=1))
    radial = a * (slope * v - a / m * (d_one + (m - 1) * d_pair * c))
    da = phi - a / m * (h_one + (m - 1) * h_pair)
    dv = a * (slope - a / m * (d_one + (m - 1) * d_pair) * v) - radial * v
    dc = 2 * (a * (slope * v - a / m * (d_one * c + d_pair * (1 + (m - 2) * c))) - radial * c)
    return float(da), float(dv), float(dc)


def mean_field_velocity(kernels: Kernels, a: float, v: float) -> tuple[float, float]:
    """Return the right sides of (11), the limit of (10) for infinitely many neurons, in which c = v^2."""
    phi, slope = float(kernels.phihat(v)), float(kernels.phihat(v, order=1))
    q = v * v
    return phi - a * float(kernels.h(q)), a * (1 - q) * (slope - a * float(kernels.h(q, order=1)) * v)


def population_error(kernels: Kernels, noise: float, a: ArrayLike, v: ArrayLike, pair: ArrayLike) -> Floats:
    """Return the test error, where `pair` is the average of h(<w_i, w_j>) over all i, j."""
    a = np.asarray(a)
    return np.asarray(noise**2 + kernels.target_norm - 2 * a * kernels.phihat(v) + a**2 * np.asarray(pair))


def particle_flow(
    kernels: Kernels,
    phihat: Callable[[Floats], Floats],
    phihat_gradient: Callable[[Floats], Floats],
    a: Floats,
    v: Floats,
    times: Floats,
) -> tuple[Floats, Floats]:
    """Integrate the mean-field particles (a_i, v_i) with v_i in R^k for a target that depends on k directions.

    Parameters
    ----------
    kernels
        Gives h. Its phihat is not used.
    phihat, phihat_gradient
        E sigma(<w, x>) phi(x) as a function of the projections v (array of shape (m, k)), and its gradient in v.
    a, v
        Start: arrays of shape (m,) and (m, k), rows of v inside the unit ball.
    times
        Population times, increasing.

    Returns
    -------
    tuple of arrays
        a and v, of shapes (times, m) and (times, m, k).

    Examples
    --------
    >>> kernels = Kernels((0.0, 0.5), (), 0.0)
    >>> _, v = particle_flow(kernels, lambda v: v @ [0.3, 0.4], lambda v: np.tile([0.3, 0.4], (len(v), 1)),
    ...                      np.ones(4), np.full((4, 2), 0.1), np.array([50.0]))
    >>> (v[-1, 0] / np.linalg.norm(v[-1, 0])).round(3)  # the neurons turn to the direction (0.6, 0.8)
    array([0.6, 0.8])
    """
    m, k = v.shape
    states = particle_states(kernels, phihat, phihat_gradient, a, v, times, tolerance=1e-9).states
    return states[:, :m], states[:, m:].reshape(-1, m, k)


def particle_states(
    kernels: Kernels,
    phihat: Callable[[Floats], Floats],
    phihat_gradient: Callable[[Floats], Floats],
    a: Floats,
    v: Floats,
    times: Floats,
    tolerance: float,
) -> Trajectory:
    """Return the states (a, v) of `particle_flow` as flat rows, with their errors."""
    m, k = v.shape

    def velocity(_: float, state: Floats) -> Floats:
        a, v = state[:m], state[m:].reshape(m, k)
        gram = v @ v.T
        pull = phihat_gradient(v) - (kernels.h(gram, order=1) * a) @ v / m
        dv = a[:, None] * (pull - np.sum(pull * v, axis=1, keepdims=True) * v)
        return np.concatenate([phihat(v) - kernels.h(gram) @ a / m, dv.ravel()])

    return integrate(velocity, np.concatenate([a, v.ravel()]), times, tolerance)


class _Population(TwoLayerStart):
    """Parameters and experiment of the two population laws. The experiment draws d fresh samples at every step."""

    status = "theorem"
    references = ("montanari2025dynamical", "mei2018mean")
    simulation = Experiment("dimension d of the inputs", sizes=(10, 20, 40), draws=10)

    noise: float = parameter(0.5, least=0)
    times: float | tuple[float, ...] = parameter(
        (0.0, 0.5, 1.0, 2.0, 4.0),
        note="of the population, n/(md) times that of training",
        symbol=r"\hat t",
        kind="coordinate",
        least=0,
    )
    tolerance: float = parameter(1e-11, kind="solver", above=0, most=1e-3, scale="log", finer=0.1)

    def _with_errors(self, path: Trajectory, error: Callable[[Floats, Floats], Floats], values: dict[str, Floats]) -> Values:
        """Return the observables with their numerical errors.

        The accuracy of the test error is its change when the state moves by its own numerical error.
        """
        shifted = [error(*(path.states + side * path.errors).T[:2]) for side in (-1, 1)]
        spread = float(np.abs(shifted[1] - shifted[0]).max())
        errors = dict(zip(("second_layer", "overlap", "correlation"), path.errors, strict=False))
        return {**values, "accuracy": {"test_error": spread} | {name: errors[name] for name in values if name in errors}}

    def _descend(self, draw: Draw, dimension: int, width: int, correlation: float, times: Floats, step: float) -> Values:
        """Run one-pass stochastic descent of a network with these kernels, with d fresh samples per step."""
        from limitlab.laws.dmft._finite import training

        kernels = self.kernels()
        w, direction = training.exchangeable_weights(draw.rng, dimension, width, self.overlap_at_start, correlation)
        functions = training.hermite_functions(kernels)
        if self.activation is not None:
            functions = training.network_functions(self.activation, self.target_function)
        a = np.full(width, self.start_second_layer)
        track = training.one_pass_descent(draw.rng, functions, w, a, direction, self.noise, times, step)
        values = training.observables(track, kernels, direction, self.noise)
        return {name: values[name] for name in self.observables}


class PopulationFlow(_Population):
    """How does gradient flow on infinitely many samples change a two-layer network of m neurons?

    Examples
    --------
    >>> flow = PopulationFlow(width=3, kernel=(0, 0.5, 0.3, 0.2), target=(0, 0.5, 0.3), target_norm=1.0, times=(0, 1, 2, 4))
    >>> flow.theory().overlap.values.round(6)
    array([0.1     , 0.559813, 0.788591, 0.870693])
    """

    regime = "n/d -> infinity at fixed width, in population time (n / m d) t"
    page = "two_layer_dynamics"
    assumptions = ("Gaussian inputs, unit first-layer weights, exchangeable start", "unlimited samples")
    observables = ("test_error", "second_layer", "overlap", "correlation")
    # A kernel and a target of degree two with constants, neurons that are correlated at the start, noise
    points = (
        dict(
            kernel=(0.2, 0.5, 0.3),
            target=(0.1, 0.6, 0.2),
            target_norm=1.0,
            start_second_layer=0.8,
            start_overlap=0.4,
            start_correlation=0.3,
            noise=0.5,
            width=3,
            times=(0.5, 1.0, 2.0),
        ),
    )
    headline = Headline(
        "More neurons learn the direction sooner",
        x="times",
        over=(0.0, 10.0, 101),
        show=("test_error",),
        curves=("width", (1, 3, 10)),
        at=dict(start_overlap=0.1),
        size=20,
        draws=4,
        places=(0.5, 1.0, 2.0, 4.0, 7.0, 10.0),
        sliders=("start_overlap", "start_correlation"),
    )

    width: int = parameter(3, symbol="m", least=1)
    start_correlation: float | None = parameter(None, note="None: the square of start_overlap", least=-1, most=1)

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of a draw with d fresh samples per step."""
        return Cost(1e5 + 10.0 * self.width * size, 3e3 * self.width * size**2 * max(latest(self), 1.0))

    @model_validator(mode="after")
    def _possible_start(self) -> Self:
        check_correlation(self.width, self.overlap_at_start, self.correlation_at_start)
        return self

    @property
    def correlation_at_start(self) -> float:
        """The inner product of two neurons at the start."""
        return self.overlap_at_start**2 if self.start_correlation is None else self.start_correlation

    def predicted(self, times: Floats) -> Values:
        """Integrate equation (10). For one neuron the correlation is 0 by convention."""
        kernels, m = self.kernels(), self.width
        start = [self.start_second_layer, self.overlap_at_start, self.correlation_at_start if m > 1 else 0.0]
        path = integrate(lambda _, x: population_velocity(kernels, m, *x), start, times, self.tolerance)
        a, v, c = path.states.T

        def error(a: Floats, v: Floats) -> Floats:
            pair = (kernels.h(1.0) + (m - 1) * kernels.h(c)) / m
            return population_error(kernels, self.noise, a, v, pair)

        correlation = c if m > 1 else np.zeros_like(c)
        return self._with_errors(
            path, error, dict(test_error=error(a, v), second_layer=a, overlap=v, correlation=correlation)
        )

    def measured(self, draw: Draw, times: Floats) -> Values:
        """Run one-pass stochastic descent with m neurons."""
        return self._descend(draw, draw.size, self.width, self.correlation_at_start, times, 0.25 / draw.size)


class MeanFieldSingleIndex(_Population):
    """What does mean-field theory predict for a very wide two-layer network that learns one direction?

    Examples
    --------
    >>> law = MeanFieldSingleIndex(kernel=(0, 0.5, 0.3, 0.2), target=(0, 0.5, 0.3), target_norm=1.0, times=(0, 1, 2, 4))
    >>> law.theory().second_layer.values.round(6)
    array([1.      , 1.128076, 1.244118, 1.319765])
    """

    regime = "m -> infinity and n/d -> infinity, in population time (n / m d) t"
    page = "two_layer_dynamics"
    assumptions = (
        "Gaussian inputs, unit first-layer weights",
        "all neurons start with the same overlap, otherwise at random",
    )
    observables = ("test_error", "second_layer", "overlap")
    simulation = replace(
        _Population.simulation, size_meaning="number of neurons m (the inputs have 4 m dimensions)", sizes=(8, 16, 32)
    )
    # A kernel and a target of degree two with constants, a start with overlap, noise
    points = (
        dict(
            kernel=(0.2, 0.5, 0.3),
            target=(0.1, 0.6, 0.2),
            target_norm=1.0,
            start_second_layer=0.8,
            start_overlap=0.3,
            noise=0.5,
            times=(0.5, 1.0, 2.0),
        ),
    )
    headline = Headline(
        "The error falls when the direction is found",
        x="times",
        over=(0.0, 10.0, 101),
        show=("test_error", "overlap"),
        panels=True,
        at=dict(start_overlap=0.1),
        size=32,
        draws=4,
        places=(0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0),
        sliders=("start_overlap", "noise"),
    )

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of a draw with `size` neurons in d = 4 `size` dimensions and d fresh samples per step."""
        return Cost(60.0 * size**2, 4e3 * size**3 * max(latest(self), 1.0))

    def predicted(self, times: Floats) -> Values:
        """Integrate equation (11)."""
        kernels = self.kernels()
        start = [self.start_second_layer, self.overlap_at_start]
        path = integrate(lambda _, x: mean_field_velocity(kernels, *x), start, times, self.tolerance)

        def error(a: Floats, v: Floats) -> Floats:
            return population_error(kernels, self.noise, a, v, kernels.h(v**2))

        a, v = path.states.T
        return self._with_errors(path, error, dict(test_error=error(a, v), second_layer=a, overlap=v))

    def measured(self, draw: Draw, times: Floats) -> Values:
        """Run one-pass stochastic descent with `size` neurons in 4 `size` dimensions."""
        return self._descend(draw, 4 * draw.size, draw.size, self.overlap_at_start**2, times, 0.1 / draw.size)
