"""Least squares by one-pass SGD with batches, schedules, momentum and averages (docs/theory/streaming_least_squares.md).

Setting.  Rows x = Sigma^{1/2} z in dimension d, y = <x, beta> + noise. A step is theta <- theta - (eta/B) sum x (<x, theta> - y), where
          the sum runs over a fresh batch of B rows, from theta = 0. Sigma has eigenvalue s_k in a share w_k of the directions. The
          part of beta in these directions has squared norm b_k.
Limit.    With `dimension` = d the law is exact and needs no limit. Without it d -> infinity at fixed step * d and steps / d.
Result.   The energies a_i = E(theta - beta)_i^2 in the eigenbasis satisfy a closed recursion, with R = sum s_i a_i and kappa4 the excess
          kurtosis of z:

              a_i <- ((1 - eta s_i)^2 + eta^2 s_i^2 (1 + kappa4)/B) a_i + (eta^2/B) s_i (R + tau^2),                        (1)

          The map is symmetric, diagonal plus rank one, so that one eigendecomposition gives the result for every number of steps.
Status.   (1) is an identity for the mean. By a theorem, the error of a single run tends to this mean as d -> infinity (Paquette et al.
          2021; Collins-Woodfin and Paquette 2023).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab._core.cost import Cost, latest
from limitlab.errors import Refused, UnreachableTarget
from limitlab.laws import CLOSED_FORM, Draw, Experiment, Headline, Values, observable, parameter, shared
from limitlab.laws.online_sgd import second_moments
from limitlab.laws.online_sgd.second_moments import Modes
from limitlab.laws.regression.linear_model import GroupedSignal
from limitlab.models.functions import FunctionParameter, record, values_of
from limitlab.models.streams import least_squares_runs

__all__ = ["StreamingLeastSquares"]

Array = NDArray[np.float64]


KURTOSIS = {"gaussian": 0.0, "sign": -2.0}
SCAN_POINTS = 60  # trial steps in the search for the best step, geometric below the largest step


# -- the schedule of the step ------------------------------------------------------------------------------------------


class StepSchedule(FunctionParameter):
    """The factor of the step at step number k = 0, 1, ....

    It is "constant" or a function of an array of step numbers.

    Examples
    --------
    >>> StepSchedule("constant")([0, 10]).tolist()
    [1.0, 1.0]
    >>> StepSchedule(lambda k: 1 / (1 + k))([0, 1, 3]).tolist()
    [1.0, 0.5, 0.25]
    """

    KIND = "schedule"
    MUST_BE = '"constant" or a function of an array of step numbers'

    def __init__(self, given: StepSchedule | str | Callable[[Any], Any]):
        self._function: Callable[[Any], Any] | None = None
        if isinstance(given, StepSchedule):
            self._function, self.name = given._function, given.name
        elif isinstance(given, str):
            self.name = self.checked_name(given)
        elif callable(given):
            self._function = given
            self.name = record(given, values_of(type(self), given, np.r_[np.arange(16.0), np.geomspace(16, 1e6, 48)]))
        else:
            raise self.refusal(given)
        self._key = self.name

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the schedules that have a name. There is only one."""
        return ("constant",)

    @property
    def given(self) -> Any:
        """The argument from which the schedule can be constructed again."""
        return self.name if self._function is None else self._function

    def __call__(self, steps: ArrayLike) -> Array:
        """Return the factors at the step numbers."""
        k = np.asarray(steps, dtype=float)
        return np.ones(k.shape) if self._function is None else np.asarray(self._function(k), dtype=float)


# -- the law ------------------------------------------------------------------------------------------------------------


class StreamingLeastSquares(GroupedSignal):
    """What is the error of least squares after k steps of one-pass SGD, and how does it depend on step and batch?

    Examples
    --------
    >>> law = StreamingLeastSquares(eigenvalues=(2.0, 0.5), weights=(0.3, 0.7), signal_energy=(0.5, 0.5), step=0.6, batch=2, noise=0.4)
    >>> law.replace(times=(1.0, 4.0)).theory().excess_risk.values.round(6).tolist()
    [0.297619, 0.057412]
    >>> round(law.largest_step(), 4), round(law.replace(dimension=100).largest_step(), 4)
    (4.2105, 4.0245)
    """

    status = "theorem"
    regime = "exact in every dimension d (`dimension`); without it d -> infinity at fixed step * d and steps / d"
    assumptions = (
        "fresh rows x = Sigma^{1/2} z at every step, z independent of mean 0 and variance 1 in the eigenbasis",
        "labels are linear in x plus independent noise of constant variance",
    )
    references = ("paquette2021sgd", "collinswoodfin2023high", "lee2022trajectory")
    page = "streaming_least_squares"
    observables = {
        **shared("excess_risk", "test_error"),
        "average_excess_risk": observable(
            "mean squared error on a new noiseless label of the average iterate", r"\bar R", least=0
        ),
    }
    simulation = Experiment("dimension d", draws=40)
    # The limit with an average; the exact law with signs and momentum; the exact law with excess kurtosis and an average
    points = (
        dict(
            eigenvalues=(2.0, 0.5),
            weights=(0.3, 0.7),
            signal_energy=(0.5, 0.9),
            step=1.1,
            batch=2,
            noise=0.6,
            average_from=0.5,
            times=(1.0, 2.0, 4.0),
        ),
        dict(
            eigenvalues=(3.0, 1.0, 0.2),
            weights=(0.1, 0.4, 0.5),
            signal_energy=(0.4, 0.6, 1.5),
            step=0.5,
            batch=2,
            noise=0.7,
            momentum=0.6,
            entries="sign",
            dimension=50,
            times=(0.5, 1.5, 4.0),
        ),
        dict(
            eigenvalues=(1.5, 0.6),
            weights=(0.4, 0.6),
            signal_energy=(0.8, 0.7),
            step=0.7,
            batch=3,
            noise=0.8,
            excess_kurtosis=3.0,
            dimension=50,
            average_from=0.3,
            times=(1.0, 3.0),
        ),
    )
    headline = Headline(
        "Large steps learn fast and end badly",
        x="times",
        over=(0.02, 20.0, 81),
        scale="log",
        y_scale="log",
        show=("excess_risk",),
        curves=("step", (0.1, 0.3, 0.8)),
        size=100,
        draws=3,
        places=(0.1, 0.3, 1.0, 3.0, 10.0, 20.0),
        sliders=("batch", "noise"),
    )

    noise: float = parameter(0.5, least=0)
    entries: Literal["gaussian", "sign"] = parameter("gaussian")
    excess_kurtosis: float | None = parameter(
        None, "excess kurtosis of the entries of the inputs", note="None for that of `entries`", symbol=r"\kappa_4", least=-2
    )
    step: float = parameter(0.5, note="times the dimension", symbol=r"\eta d", above=0, scale="log")
    batch: int = parameter(1, least=1, scale="log")
    momentum: float = parameter(
        0.0, "momentum", note="factor of the previous update in the next one", symbol=r"\mu", least=0, below=1
    )
    schedule: StepSchedule = parameter(
        "constant", "factor of the step at each step number", note="a function of the step number", symbol=r"\eta_k/\eta"
    )
    average_from: float | None = parameter(
        None, "time from which iterates are averaged", note="None for no average", symbol="t_0", least=0
    )
    times: float | tuple[float, ...] = parameter(
        (0.5, 1.0, 2.0, 4.0), note="steps over the dimension", symbol="t = k/d", kind="coordinate", least=0, scale="log"
    )
    dimension: int | None = parameter(None, note="None for the limit; an experiment uses its size", least=1, scale="log")
    replicas: int = parameter(20, kind="experiment", least=1)

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of one batch per step in all replicas."""
        return Cost(
            1e5 + 10.0 * self.replicas * size * max(self.batch, 1),
            15.0 * self.replicas * self.batch * size**2 * max(latest(self), 1.0),
        )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        first, constant = np.min(self.times), self.schedule.name == "constant"
        if self.average_from is not None and self.momentum:
            raise Refused(
                f"average_from = {self.average_from:g} is not allowed with momentum: set momentum to 0, or leave it out"
            )
        if self.average_from is not None and not self.average_from < first:
            raise Refused(
                f"average_from = {self.average_from:g} is not allowed: must be below the first of the times, {first:g}"
            )
        if self.dimension is None and self.spectrum is not None and (self.spectrum.weights == 0).any():
            raise Refused(
                f"spectrum = {self.spectrum!r} is not allowed without a dimension: steps per dimension do not move along a single spike in "
                "the limit; set dimension"
            )
        if not constant and self.dimension is None:
            raise Refused(
                f"schedule = {self.schedule.name} is not allowed without a dimension, because its argument counts steps: set dimension"
            )
        if self.dimension is not None and self.spectrum is None and self.dimension < len(self.eigenvalues):
            raise Refused(
                f"dimension = {self.dimension} is not allowed: must be at least the number of groups, {len(self.eigenvalues)}"
            )
        if constant and not self.step < self.largest_step():
            raise Refused(
                f"step = {self.step:g} is not allowed: must be below {self.largest_step():.6g}, because the mean squared error "
                "of larger steps grows without bound (a larger batch allows a larger step)"
            )
        return self

    def observed(self) -> tuple[str, ...]:
        """Return all observables, without the average iterate if `average_from` is None."""
        names = tuple(type(self).observables)
        return names if self.average_from is not None else names[:2]

    def realised(self, size: int) -> Self:
        """Return the law with the groups of an experiment of this size, and with this dimension if the law is exact."""
        whole = super().realised(size)
        return whole if self.dimension is None else whole.replace(dimension=size)

    # -- the prediction -------------------------------------------------------------------------------------------------

    def predicted(self, times: Array, noise: Array) -> Values:
        """Evaluate the mean over runs at every time, over a grid of noise levels."""
        excess, average = self._exact(times, noise) if self.dimension else self._limit(times, noise)
        values: dict[str, Any] = dict(excess_risk=excess, test_error=excess + noise**2, accuracy=CLOSED_FORM)
        return values if average is None else {**values, "average_excess_risk": average}

    def modes(self) -> Modes:
        """Return the recursion in its eigenbasis, per step, or per unit of time in the limit (constant step, no momentum)."""
        if self.dimension is None:
            return second_moments.limit_modes(*self._groups, self._pace, self.batch)
        return second_moments.discrete_modes(*self._groups, self._pace, self.batch, self.kurtosis)

    def _exact(self, times: Array, noise: Array) -> tuple[Array, Array | None]:
        steps = self.steps(times)
        if not self.momentum and self.schedule.name == "constant" and self.average_from is None:
            return self.modes().excess(steps, noise), None
        marks = np.ravel(steps)
        pace = self._pace * self.schedule(np.arange(int(marks[-1])))
        first = int(marks[-1]) if self.average_from is None else int(self.steps(self.average_from))
        options = (float(self.batch), self.kurtosis, self.momentum)
        shape = (*noise.shape[:-1], marks.size)
        rows = [
            second_moments.recursion(*self._groups, pace, *options, float(tau) ** 2, first, marks) for tau in np.ravel(noise)
        ]
        last, average = (np.reshape([row[i] for row in rows], shape) for i in (0, 1))
        return last, None if self.average_from is None else average

    def _limit(self, times: Array, noise: Array) -> tuple[Array, Array | None]:
        excess = self.modes().excess_in_time(times, noise)
        if self.average_from is None:
            return excess, None
        options = (self._pace, float(self.batch))
        rows = [
            second_moments.limit_average(*self._groups, *options, float(tau) ** 2, self.average_from, times)
            for tau in np.ravel(noise)
        ]
        return excess, np.reshape(rows, np.broadcast_shapes(noise.shape, times.shape))

    # -- the experiment -------------------------------------------------------------------------------------------------

    def measured(self, draw: Draw, times: Array) -> Values:
        """Measure the mean over `replicas` runs of SGD on new rows, with theta - beta in the eigenbasis."""
        population, counts = self.population_at(draw.size)
        s = np.repeat(population.eigenvalues, counts)
        gap = -np.sqrt(np.repeat(np.divide(population.energy, counts), counts))
        steps = np.round(times * draw.size).astype(np.int64)
        pace = self.step / draw.size * self.schedule(np.arange(steps[-1]))
        first = None if self.average_from is None else round(self.average_from * draw.size)
        last, average = least_squares_runs(
            draw.rng, s, gap, self.noise, pace, self.batch, self.momentum, self.kurtosis, self.replicas, first, steps
        )
        values = dict(excess_risk=last, test_error=last + self.noise**2)
        return values if first is None else {**values, "average_excess_risk": average}

    # -- further results ------------------------------------------------------------------------------------------------

    @property
    def kurtosis(self) -> float:
        """The excess kurtosis of the white entries of the inputs."""
        return KURTOSIS[self.entries] if self.excess_kurtosis is None else self.excess_kurtosis

    def steps(self, times: ArrayLike) -> NDArray[np.int64]:
        """Return whole numbers of steps at the times, in the law's dimension."""
        assert self.dimension is not None
        return np.round(np.asarray(times) * self.dimension).astype(np.int64)

    @property
    def _groups(self) -> tuple[Array, Array, Array]:
        """The eigenvalues, counts (shares in the limit) and energies at the start."""
        if self.dimension is None:
            return self.population[:3]
        population, counts = self.population_at(self.dimension)
        return population.eigenvalues, np.asarray(counts, dtype=float), population.energy

    @property
    def _pace(self) -> float:
        """The step of the recursion. In the limit it is step times dimension, divided by 1 - momentum."""
        return self.step / (1 - self.momentum) if self.dimension is None else self.step / self.dimension

    def largest_step(self) -> float:
        """Return the step (times the dimension) from which the mean square diverges, where the gain (8) is 1.

        >>> spectrum = dict(eigenvalues=tuple(1 / j**2 for j in range(1, 61)), weights=(1,) * 60, signal_energy=(1,) * 60)
        >>> law = StreamingLeastSquares(dimension=60, **spectrum)
        >>> round(law.largest_step() / 60, 3), round(2 / sum(spectrum["eigenvalues"]), 3)  # and the approximation 2 / trace
        (0.612, 1.228)
        """
        s, counts, _ = self._groups
        if self.dimension is None:
            return float(2 * self.batch * (1 - self.momentum) / (counts @ s))
        return self.dimension * second_moments.largest_step(s, counts, self.batch, self.kurtosis, self.momentum)

    def stationary_risk(self) -> float:
        """Return the excess risk at rest with a constant step, tau^2 N / (1 - N) with the gain N of equation (8).

        >>> round(StreamingLeastSquares(step=0.5, noise=1.0).stationary_risk(), 6)  # N = 1/4
        0.333333
        """
        s, counts, _ = self._groups
        if self.dimension is None:
            share = self._pace * float(counts @ s) / (2 * self.batch)
        else:
            share = float(second_moments.gain(self._pace, s, counts, self.batch, self.kurtosis, self.momentum))
        return self.noise**2 * share / (1 - share)

    def critical_batch(self) -> float:
        """Return the trace of Sigma over its largest eigenvalue, which is infinite in the limit.

        Up to about this batch the largest step grows with the batch.

        >>> StreamingLeastSquares(dimension=40).critical_batch()
        40.0
        """
        s, counts, _ = self._groups
        return math.inf if self.dimension is None else float(counts @ s / s.max())

    def slowest_rate(self) -> float:
        """Return the decay rate of the slowest part of the excess risk per unit of `times` (constant step, no momentum)."""
        self._plain("slowest_rate")
        lowest = float(self.modes().rates[0])
        return lowest * (self.dimension or 1)

    def average_constant(self) -> float:
        """Return the limit of time times the excess risk of the average iterate, equation (9) (no momentum).

        It is about (tau^2 + R)/B, with R the excess risk at rest.

        >>> round(StreamingLeastSquares(step=0.5, noise=1.0, batch=4).average_constant(), 6)
        0.266667
        """
        self._plain("average_constant")
        s, counts, _ = self._groups
        rest = self.stationary_risk() + self.noise**2
        if self.dimension is None:
            return rest / self.batch
        eta, positive = self._pace, s > 0
        lost = 2 - eta * s * (1 + (1 + self.kurtosis) / self.batch)  # (1 - rho) / (eta s)
        return float((counts * (2 - eta * s) / lost)[positive].sum()) * rest / self.batch / self.dimension

    def steps_to(self, level: float) -> float:
        """Return the number of steps until the excess risk is at most a level (constant step, no momentum).

        The result is interpolated geometrically between whole steps. In the limit it is the time, steps over the dimension.

        >>> law = StreamingLeastSquares(dimension=100, step=0.5, noise=0.3)
        >>> steps = law.steps_to(0.2)
        >>> bool(law.modes().excess(np.floor(steps), 0.3) > 0.2 > law.modes().excess(np.ceil(steps), 0.3))
        True
        """
        self._plain("steps_to")
        modes, start = self.modes(), float(np.dot(self.population.eigenvalues, self.population.energy))
        if not level > 0:
            raise Refused(f"level = {level:g} is not allowed: must be above 0")
        if level >= start:
            return 0.0
        path = modes.excess if self.dimension else modes.excess_in_time
        grid = (
            np.r_[0.0, np.unique(np.round(np.geomspace(1, 1e12, 4000)))]
            if self.dimension
            else np.geomspace(1e-9, 1e12, 6000)
        )
        values = path(grid, self.noise)
        below = np.flatnonzero(values <= level)
        if not below.size:
            i = int(np.argmin(values))
            raise UnreachableTarget(
                f"level = {level:g} is not attainable: the excess risk stays above {values[i]:.6g}; use a shorter step or a larger batch",
                best=float(values[i]), at=float(grid[i]),
            )  # fmt: skip
        low, high = float(grid[below[0] - 1]), float(grid[below[0]])
        whole = 1.0 if self.dimension else 1e-12 * high
        while high - low > whole:
            middle = np.floor((low + high) / 2) if self.dimension else (low + high) / 2
            low, high = (low, middle) if float(path(middle, self.noise)) <= level else (middle, high)
        above, under = (math.log(float(path(end, self.noise))) for end in (low, high))
        return float(low + (high - low) * (above - math.log(level)) / (above - under))

    def best_step(self, time: float | None = None) -> float:
        """Return the constant step with the least excess risk at a time, by default the last of `times`.

        >>> round(StreamingLeastSquares(noise=0.5, times=(2.0,)).best_step(), 3)
        0.64
        """
        from scipy.optimize import minimize_scalar

        at = float(np.max(self.times)) if time is None else float(time)
        longest = self.replace(step=1e-9 * self.largest_step()).largest_step()

        def excess(log_step: float) -> float:
            return float(
                np.ravel(self.replace(step=math.exp(log_step), times=at, average_from=None).evaluate()["excess_risk"])[0]
            )

        grid = np.log(longest) + np.linspace(-12, -1e-6, SCAN_POINTS)
        i = int(np.argmin([excess(float(x)) for x in grid]))
        ends = float(grid[max(i - 1, 0)]), float(grid[min(i + 1, SCAN_POINTS - 1)])
        return math.exp(minimize_scalar(excess, bounds=ends, method="bounded", options={"xatol": 1e-9}).x)

    def _plain(self, method: str) -> None:
        """Raise `Refused` if the law has momentum or a schedule."""
        if self.momentum or self.schedule.name != "constant":
            raise Refused(
                f"{method} is not available with momentum or a schedule: set momentum to 0 and schedule to 'constant'"
            )

    @classmethod
    def from_data(cls, X: ArrayLike, y: ArrayLike, **options: Any) -> Self:
        """Return the law with the spectrum, the coefficients and the noise of a table, one group per eigenvector of X'X/n.

        The law assumes Gaussian rows with the second moments of the table. The table needs more rows than columns. The
        parameter `step` is the step size of SGD times the dimension.

        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((400, 3)) * [1.0, 2.0, 0.5]
        >>> law = StreamingLeastSquares.from_data(X, X @ [1.0, -1.0, 0.0] + 0.3 * rng.standard_normal(400), step=0.1)
        >>> law.dimension, round(law.noise, 2)
        (3, 0.3)
        """
        rows, labels = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
        if rows.ndim != 2 or labels.shape != rows.shape[:1] or not rows.shape[0] > rows.shape[1]:
            raise Refused(
                f"X of shape {rows.shape} and y of shape {labels.shape} are not allowed: give n x p with n > p, and n labels"
            )
        if not (np.isfinite(rows).all() and np.isfinite(labels).all()):
            raise Refused("X and y are not allowed: they must contain finite numbers only")
        n, p = rows.shape
        values, basis = np.linalg.eigh(rows.T @ rows / n)
        fitted, *_ = np.linalg.lstsq(rows, labels, rcond=None)
        residual = float(np.sum((labels - rows @ fitted) ** 2)) / (n - p)
        energies = (fitted @ basis) ** 2
        spectrum = dict(eigenvalues=np.maximum(values, 0.0), weights=np.ones(p), signal_energy=energies)
        return cls(**spectrum, noise=math.sqrt(residual), dimension=p, **options)
