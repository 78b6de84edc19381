"""The whole trajectory of a two-layer network that is trained on noisy single-index data, in the large-dimension limit.

Setting.  x ~ N(0, I_d), y = phi(<w_*, x>) + tau * noise; f(x) = (1/m) sum_j a_j sigma(<w_j, x>) with m neurons, |w_j| = 1; all
          neurons start with the same a_j = a0, <w_j, w_*> = v0 and mutual inner products; gradient flow on the mean squared
          error of n samples, in a time in which t = O(1) moves the weights.
Limit.    n, d -> infinity with n/d -> `sample_ratio`, fixed width m and time.
Result.   Closed equations for the correlations and responses of the weights at two times, solved causally
          (docs/theory/two_layer_dynamics.md, eqs. 1 to 9).
Status.   Derived, and exact, for the Gaussian model, in which the responses of the neurons to a sample are replaced by Gaussian
          processes with the same covariance. For a real network the result is an approximation whose error shrinks with the width.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pydantic import model_validator

from limitlab._core.cost import Cost, latest
from limitlab.errors import ConvergenceError, Refused
from limitlab.laws import Draw, Experiment, Headline, Mark, Values, observable, parameter, shared
from limitlab.laws.dmft._finite.gaussian_model import monomials
from limitlab.laws.dmft._parameters import TwoLayerStart, check_correlation, check_degree

if TYPE_CHECKING:
    from limitlab.laws.dmft._equations import ExchangeableNeurons
    from limitlab.laws.dmft._finite.training import Samples
    from limitlab.numerics.two_time import Extrapolated, Progress, Solution

__all__ = ["TwoLayerDynamics"]

Floats = NDArray[np.float64]

DENSE_STEPS = 1200
"""Largest number of steps with the whole history in memory. With more steps the multi-resolution memory is faster."""

POINTS = 10
"""Points per octave of the multi-resolution memory. At m = 40, t = 10 m it changes the second layer by 2e-4 of its value."""

STEPS = {"gaussian": 0.25, "network": 0.1, "sgd": 0.02}
"""Time steps of the simulations, multiplied by the fastest rate at the start. Single samples of a network can relax much faster."""

SURFACE = ("time", "earlier")
"""Dimensions of the correlations of the weights at two times."""

CORRELATIONS = ("same_neuron_correlation", "other_neuron_correlation")

CAVEAT = "exact for the Gaussian model; for a real network the error does not vanish with d, but shrinks with the width"

NETWORK_CAVEAT = (
    "the equations are exact for the Gaussian model only; the gap of a real network does not vanish with d, it shrinks with the width "
    "and is large for strongly non-Gaussian neurons (experiment_model='gaussian' is the exact check)"
)


class TwoLayerDynamics(TwoLayerStart):
    """How do train and test error and the weights of a two-layer network evolve under gradient flow?

    Examples
    --------
    >>> law = TwoLayerDynamics(width=3, sample_ratio=2, kernel=(0, 0.5, 0.3, 0.2), target=(0, 0.5, 0.3), target_norm=1.0,
    ...                        start_second_layer=1.0, times=(0, 1, 2, 4), solver_steps=200)
    >>> law.theory().train_error.values.round(4)
    array([1.4807, 0.4998, 0.2614, 0.112 ])
    """

    status = "derived"
    regime = "n, d -> infinity at fixed n/d, number of neurons and time"
    assumptions = (
        "Gaussian inputs, unit first-layer weights, exchangeable start",
        "Gaussian model: the neurons' responses to a sample are a Gaussian process; real networks agree better the wider they are, "
        "and strongly non-Gaussian activations at small width disagree at any dimension",
        "activation smooth enough for h''(1) to be finite",
    )
    references = ("montanari2025dynamical",)
    page = "two_layer_dynamics"
    observables = {
        **shared("train_error", "test_error", "second_layer", "overlap", "correlation", dims=("time",)),
        "same_neuron_correlation": observable(
            "correlation of a neuron with itself at the earlier time", "C_d(t,s)", dims=SURFACE
        ),
        "other_neuron_correlation": observable(
            "correlation of a neuron with another one at the earlier time", "C_o(t,s)", dims=SURFACE
        ),
    }
    simulation = Experiment(sizes=(10, 20, 40), draws=100)
    revision = 2
    # A kernel and a target of degree two, neurons that are correlated at the start, noise; second layer free and frozen
    points = (
        dict(
            kernel=(0.2, 0.5, 0.3),
            target=(0.1, 0.6, 0.2),
            target_norm=1.0,
            start_second_layer=0.8,
            start_overlap=0.4,
            start_correlation=0.4,
            width=2,
            sample_ratio=2.0,
            noise=0.5,
            times=(0.5, 1.0, 2.0),
            earlier=(0.0, 1.0),
        ),
        dict(
            kernel=(0.0, 0.4, 0.6),
            target=(0.0, 0.5, 0.4),
            target_norm=1.1,
            start_second_layer=1.2,
            start_overlap=0.5,
            start_correlation=0.5,
            width=3,
            sample_ratio=1.5,
            noise=0.4,
            frozen=True,
            times=(0.5, 1.0, 2.0),
            earlier=0.5,
        ),
    )
    headline = Headline(
        "Learning comes first, overfitting later",
        x="times",
        over=(0.05, 60.0, 61),
        scale="log",
        show=("train_error", "test_error"),
        at=dict(activation="tanh", target_function="tanh", width=4, sample_ratio=4.0, noise=0.5, experiment_model="network"),
        size=20,
        draws=4,
        places=(0.1, 0.5, 1.0, 3.0, 10.0, 30.0, 60.0),
        sliders=("sample_ratio", "noise"),
        marks=(Mark("y", lambda law: law.noise**2, "noise floor"),),
    )

    width: int = parameter(2, symbol="m", least=1)
    sample_ratio: float = parameter(1.5, symbol=r"\bar\alpha = n/d", above=0, scale="log", count="size * value")
    noise: float = parameter(0.5, least=0)
    start_correlation: float | None = parameter(None, note="None: the square of start_overlap", least=-1, most=1)
    frozen: bool = parameter(False, "whether the second layer is fixed at its start")
    earlier: float | tuple[float, ...] = parameter(
        0.0,
        "earlier times",
        note="second times of the correlations of the weights",
        symbol="s",
        kind="coordinate",
        least=0,
    )
    solver_steps: int = parameter(
        400,
        note="time steps of the finest of the three grids that are extrapolated",
        symbol="N",
        kind="solver",
        least=8,
        finer=2,
    )
    memory_points: int | None = parameter(
        None,
        "points per octave of the stored history",
        note="0: all of it, None: all of it up to 1200 steps, else 10",
        kind="solver",
        least=0,
        finer=2,
    )
    experiment_model: Literal["gaussian", "network", "sgd"] = parameter(
        "gaussian", note="the Gaussian model, a network by gradient flow, a network by stochastic descent", kind="experiment"
    )

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of Gaussian tensors of all degrees of the kernel for every sample, or of features of a network."""
        if self.experiment_model == "gaussian":
            remedy = "use experiment_model = 'network', or a polynomial, such as 'h2'"
            check_degree(type(self).__name__, self.activation, self.kernels().kernel, remedy)
        each = monomials(self.kernels(), size) if self.experiment_model == "gaussian" else 10.0 * size
        entries = self.count("sample_ratio", size) * each
        return Cost(1e5 + 1.1 * entries, 1e7 + 40.0 * entries * max(latest(self), 1.0))

    def limit_cost(self) -> Cost:
        """Return the cost of storing and computing functions of two times."""
        return Cost(1e6 + 5.0 * self.solver_steps**2, 1e8 + 2e6 * self.solver_steps + 2e3 * self.solver_steps**2)

    @model_validator(mode="after")
    def _possible_start(self) -> Self:
        check_correlation(self.width, self.overlap_at_start, self.correlation_at_start)
        if self.experiment_model != "gaussian" and self.activation is None:
            raise Refused(
                f"experiment_model = {self.experiment_model!r} is not allowed without activation: a kernel does not determine a network"
            )
        return self

    @model_validator(mode="after")
    def _whole_history(self) -> Self:
        if self.memory_points and np.any(self.earlier):
            raise Refused(
                f"memory_points = {self.memory_points} is not allowed with earlier = {self.earlier}: correlations with a time after "
                "the start need the whole history; use memory_points = None or 0"
            )
        return self

    def natural_scale(self, observable: str) -> float:
        """Return the norm of a neuron as the scale of the correlation with another neuron, which may be near zero."""
        return 1.0 if observable == "other_neuron_correlation" else 0.0

    @property
    def correlation_at_start(self) -> float:
        """The inner product of two neurons at the start."""
        return self.overlap_at_start**2 if self.start_correlation is None else self.start_correlation

    def system(self) -> ExchangeableNeurons:
        """Return the two-time equations of this law."""
        from limitlab.laws.dmft._equations import ExchangeableNeurons

        return ExchangeableNeurons(
            self.kernels(),
            self.width,
            self.sample_ratio,
            self.noise,
            self.start_second_layer,
            self.overlap_at_start,
            self.correlation_at_start,
            self.frozen,
        )

    def march(
        self, steps: int, *, end: float | None = None, progress: Callable[[Progress], None] | None = None, **options: Any
    ) -> Solution:
        """Return the solution on one grid with all its two-time functions; options as in `limitlab.numerics.two_time.march`.

        >>> solution = TwoLayerDynamics(times=2.0).march(50)
        >>> float(solution.paths["second_layer"][0])
        1.0
        """
        from limitlab.numerics.two_time import march

        last = max(float(np.max(self.times)), float(np.max(self.earlier))) if end is None else end
        return march(self.system(), last or 1.0, steps, per_octave=self._points(steps) or None, progress=progress, **options)

    def _points(self, steps: int) -> int:
        """Return the points per octave that a march with `steps` steps stores, where 0 means all of them."""
        if np.any(self.earlier):
            return 0
        return self.memory_points if self.memory_points is not None else (POINTS if steps > DENSE_STEPS else 0)

    def solve(self, names: tuple[str, ...] | None = None, levels: int = 3) -> Extrapolated:
        """Return functions of time (by default the observables), extrapolated over `levels` grids, with error estimates.

        If the history is thinned, the error estimates include the change of the result with twice as many stored points.

        `names` may also contain "multiplier" (nu), "residual_response" (the integral of R_A) and "same_neuron_response" (R_d(t, 0)).
        Correlations of the weights have a second axis of the earlier times, unless `earlier` is a single number.
        """
        from limitlab.numerics.two_time import extrapolate

        times = np.atleast_1d(np.asarray(self.times, dtype=float))
        result = extrapolate(self.march, self.solver_steps, times, levels, names or tuple(self.observables), self._read)
        if points := self._points(self.solver_steps):
            coarse = max(self.solver_steps // 2 ** (levels - 1), 8)
            few, many = (self.replace(memory_points=p).march(coarse) for p in (points, 2 * points))
            for name, error in result.errors.items():  # thinning changes the finest grid more, by less than a factor 2
                error += 2 * np.abs(self._read(few, name, times) - self._read(many, name, times))
        return result

    def _read(self, solution: Solution, name: str, times: Floats) -> Floats:
        """Return a function of a solution at the times, or a correlation of the weights at the times and the earlier times."""
        from limitlab.numerics.two_time import at_times, interpolate

        earlier = np.atleast_1d(np.asarray(self.earlier, dtype=float))
        if name not in CORRELATIONS or not np.any(earlier):
            values = at_times(solution, name, times)  # the recorded correlations are those with the start
            return values[:, None] if name in CORRELATIONS and np.ndim(self.earlier) else values
        m, plus = self.width, solution.two_time("C+")
        minus = solution.two_time("C-") if m > 1 else plus
        lower = (plus + (m - 1) * minus) / m if name == "same_neuron_correlation" else (plus - minus) / m
        along = interpolate(solution.times, lower + np.tril(lower, -1).T, times)
        surface = interpolate(solution.times, along.T, earlier).T
        return surface if np.ndim(self.earlier) else surface[:, 0]

    def predicted(self, times: Floats, earlier: Floats) -> Values:
        """Return the limit at the times and the earlier times of the law, with the error estimates of the extrapolation over grids.

        The notes give the product of step and fastest local rate, and whether a train error below zero was clipped.
        """
        solved = _solved(self)
        surfaces = {name: np.reshape(solved.values[name], (times.size, earlier.size)) for name in CORRELATIONS}
        return {
            **solved.values,
            **surfaces,
            "notes": dict(step_times_rate=solved.stiffness, train_error_clipped=int(solved.clipped)),
        }

    def caveat(self) -> str:
        """Return the caveat that names the model for which the equations are exact."""
        return CAVEAT if self.experiment_model == "gaussian" else NETWORK_CAVEAT

    def two_time(self, steps: int = 100) -> xr.Dataset:
        """Return the correlations and responses of the weights and the response of the residual, on one grid (not extrapolated).

        >>> functions = TwoLayerDynamics(times=1.0).two_time(20)
        >>> float(functions.C_d[5, 5])
        1.0
        """
        m, solution = self.width, self.march(steps)
        data = {"r": solution.two_time("r")}
        for kind in ("C", "R"):
            plus = solution.two_time(kind + "+")
            minus = solution.two_time(kind + "-") if m > 1 else plus
            data[kind + "_d"] = (plus + (m - 1) * minus) / m
            data[kind + "_o"] = (plus - minus) / m
        coords = {"time": solution.times, "earlier": solution.times}
        return xr.Dataset({name: (("time", "earlier"), array) for name, array in data.items()}, coords)

    def measured(self, draw: Draw, times: Floats, earlier: Floats) -> Values:
        """Train a random start on random samples, by gradient flow or by stochastic descent."""
        from limitlab.laws.dmft._finite import training

        data, direction, w, a = self.training_set(draw)
        times, earlier = times.ravel(), earlier.ravel()
        visited = np.union1d(times, earlier[earlier > 0])
        if self.experiment_model == "sgd":
            batch = max(1, draw.count("sample_ratio") // 10)
            whole = training.stochastic_descent(data, w, a, visited, self.step, self.speed, batch, draw.rng)
        else:
            whole = training.gradient_flow(data, w, a, visited, self.step, self.speed)
        track = whole.at(np.searchsorted(visited, times))
        first = [w if s == 0 else whole.w[np.searchsorted(visited, s)] for s in earlier]
        same, other = training.two_time_correlations(track.w, first)
        return {
            "train_error": track.train_error(data),
            **training.observables(track, self.kernels(), direction, self.noise),
            "same_neuron_correlation": same,
            "other_neuron_correlation": other,
        }

    def training_set(self, draw: Draw) -> tuple[Samples, Floats, Floats, Floats]:
        """Return random samples, the direction of the target, and the first and second layer at the start."""
        from limitlab.laws.dmft._finite import gaussian_model, training

        rng, kernels, n = draw.rng, self.kernels(), draw.count("sample_ratio")
        w, direction = training.exchangeable_weights(
            rng, draw.size, self.width, self.overlap_at_start, self.correlation_at_start
        )
        if self.experiment_model == "gaussian":
            data = gaussian_model.gaussian_samples(rng, kernels, n, direction, self.noise)
        else:
            assert self.activation is not None
            functions = training.network_functions(self.activation, self.target_function)
            data = training.network_samples(rng, functions, n, direction, self.noise)
        return data, direction, w, np.full(self.width, self.start_second_layer)

    @property
    def step(self) -> float:
        """The time step of the experiment."""
        return STEPS[self.experiment_model] / max(1.0, self.fastest_rate())

    @property
    def speed(self) -> float:
        """The factor of the speed of the second layer, which is 0 if that layer is frozen."""
        return 0.0 if self.frozen else 1.0

    def fastest_rate(self) -> float:
        """Return the rate of the mean neuron at the start, eq. (6) of docs/theory/two_layer_dynamics.md."""
        slope = self.kernels().h([1.0, self.correlation_at_start], order=1)
        return float(
            self.sample_ratio / self.width**2 * self.start_second_layer**2 * (slope[0] + (self.width - 1) * abs(slope[1]))
        )


class _Solved(NamedTuple):
    """Observables with their accuracy, step times fastest rate, and whether a train error below zero was clipped."""

    values: dict[str, Any]
    stiffness: float
    clipped: bool


@functools.lru_cache(maxsize=64)
def _solved(law: TwoLayerDynamics) -> _Solved:
    result = law.solve()
    scale = {name: max(float(np.max(np.abs(value))), 1e-6) for name, value in result.values.items()}
    scale["other_neuron_correlation"] = 1.0  # that of unit vectors, because the correlation may vanish
    accuracy = max(float(np.max(result.errors[name])) / scale[name] for name in result.values)
    finest = result.finest
    stiffness = float(np.max(finest.paths["fastest_rate"]) * finest.times[1])
    if accuracy > 0.05:
        raise ConvergenceError(
            f"solver_steps = {law.solver_steps} is not enough: the estimated relative error is {accuracy:.1%} (step times fastest rate = "
            f"{stiffness:.2g}); use more solver_steps or earlier times",
            estimate=dict(result.values),
            accuracy=accuracy,
        )
    if stiffness > 1 and accuracy > 1e-3:  # the scheme is stable there, and if the fast mode matters, the accuracy is poor
        warnings.warn(
            f"step times fastest rate = {stiffness:.2g} with solver_steps = {law.solver_steps}: above 1 the fastest mode is not "
            "resolved",
            stacklevel=4,
        )
    values: dict[str, Any] = dict(result.values)
    clipped = bool(np.min(values["train_error"]) < 0)
    values["train_error"] = np.maximum(values["train_error"], 0.0)
    values["accuracy"] = {name: float(np.max(error)) for name, error in result.errors.items()}
    return _Solved(values, stiffness, clipped)
