"""The path of summary statistics of a user under online SGD, with error bars, as a law.

Setting.  x <- x - (c/N) grad L(x, Y) with a fresh sample Y per step; statistics u(x) of the user; time t = (c/N) * steps.
Limit.    N -> infinity at fixed t. The statistics follow du = (-f + g) dt with the population drift f and the corrector g of
          docs/theory/effective_dynamics.md, eq. (1), if they close and if their volatility vanishes.
Result.   The coefficients are estimated at points with given statistics, from new samples. The path is the mean of paths with independent
          samples, and its accuracy contains their statistical error, the error of the time step and the error of the finite dimension.
Status.   Theorem under regularity (Ben Arous, Gheissari, Jagannath 2022), provided that the statistics close. The comparison with the
          experiment tests this.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab._core.checks import user_line
from limitlab._core.cost import Cost, latest
from limitlab.errors import FailedFunction, Refused
from limitlab.laws import Draw, Experiment, Headline, Law, Values, observable, parameter
from limitlab.laws.online_sgd._effective import EffectiveDynamics
from limitlab.models.functions import FunctionParameter, code_record

__all__ = ["EffectiveFlow", "OnlineProblem"]

Array = NDArray[np.float64]

REPLICATES = 6
"""Independent paths whose spread gives the statistical error."""

SAME = 1e-6
"""Largest relative difference of the statistics of a placed point from the statistics that were asked for."""

BATCH = 256
"""Samples that are drawn at once in an experiment."""


class OnlineProblem(FunctionParameter):
    """A loss with its samples and summary statistics, usable as the type of a law's parameter.

    Parameters
    ----------
    loss
        Function (x, sample) -> number, written with `jax.numpy`.
    statistics
        Function x -> array of the summary statistics u, written with `jax.numpy`.
    sampler
        Function (key, count, dimension) -> samples along a first axis, an array or a tuple of arrays.
    place
        Function (u, dimension) -> a point x with these statistics. Directions that the statistics do not describe are arbitrary.

    Examples
    --------
    >>> OnlineProblem("linear").name
    'linear'
    >>> OnlineProblem(loss=lambda x, a: x[0] ** 2, statistics=lambda x: x[:1], sampler=lambda key, n, d: np.zeros((n, d)),
    ...               place=lambda u, d: np.concatenate([u, np.zeros(d - 1)])).name.split("#")[0].split(":")[1]
    '<lambda>'
    """

    KIND = "problem"
    MUST_BE = "a name, or OnlineProblem(loss=..., statistics=..., sampler=..., place=...)"

    def __init__(
        self,
        given: Any = None,
        *,
        loss: Callable[[Any, Any], Any] | None = None,
        statistics: Callable[[Any], Any] | None = None,
        sampler: Callable[[Any, int, int], Any] | None = None,
        place: Callable[[Array, int], ArrayLike] | None = None,
    ):
        if isinstance(given, OnlineProblem):
            self.__dict__.update(given.__dict__)
            return
        parts = (loss, statistics, sampler, place)
        if isinstance(given, str):
            self.name = self.checked_name(given)
            parts = PROBLEMS[self.name]
        elif given is not None or not all(callable(part) for part in parts):
            raise self.refusal(given)
        else:
            self.name = code_record(*(part for part in parts if part is not None))
        self.parts: Any = parts
        self._key = (self.name, *parts)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the problems that are included."""
        return tuple(PROBLEMS)

    def __reduce__(self) -> tuple[Any, ...]:
        return (OnlineProblem, (self.name,)) if self.name in PROBLEMS else (_rebuilt, self.parts)

    def dynamics(self, step: float) -> EffectiveDynamics:
        """Return the estimator of the coefficients for steps c / N."""
        return _dynamics(self, float(step))

    def point(self, u: Array, dimension: int) -> Array:
        """Return a point with given statistics, and raise an error if its statistics differ."""
        _, statistics, _, place = self.parts
        try:
            x = np.asarray(place(np.asarray(u, dtype=float), dimension), dtype=float)
            reached = np.asarray(statistics(x), dtype=float)
        except Exception as error:
            raise FailedFunction(
                f"the problem raised {type(error).__name__}: {error}{user_line(error)}, at statistics {u}"
            ) from error
        if x.shape != (dimension,) or reached.shape != np.shape(u):
            raise Refused(
                f"place and statistics are not allowed: place(u, {dimension}) has shape {x.shape} and must have ({dimension},); its "
                f"statistics have shape {reached.shape} and must have that of u, {np.shape(u)}"
            )
        if not np.all(np.abs(reached - u) <= SAME * (1 + np.abs(u))):
            raise Refused(f"place is not allowed: statistics(place(u)) = {reached} differs from u = {u}")
        return x


@lru_cache(maxsize=64)
def _dynamics(problem: OnlineProblem, step: float) -> EffectiveDynamics:
    """Return the estimator, which compiles its functions once for each number of samples and dimension."""
    loss, statistics, sampler, _ = problem.parts
    return EffectiveDynamics(loss, statistics, sampler, step)


def _rebuilt(loss: Any, statistics: Any, sampler: Any, place: Any) -> OnlineProblem:
    return OnlineProblem(loss=loss, statistics=statistics, sampler=sampler, place=place)


def _gaussians(key: Any, count: int, dimension: int) -> Any:
    import jax

    return jax.random.normal(key, (count, dimension))


def _overlap_and_rest(x: Any) -> Any:
    from jax import numpy as jnp

    return jnp.array([x[0], jnp.sum(x[1:] ** 2)])


def _spread(u: Array, dimension: int) -> Array:
    """Return a point with overlap u_0 and squared norm u_1 of the rest, which is spread over all other coordinates."""
    rest = np.sqrt(max(float(u[1]), 0.0) / (dimension - 1))
    return np.concatenate([[float(u[0])], np.full(dimension - 1, rest)])


def _linear_loss(x: Any, a: Any) -> Any:
    return (a[0] - a @ x) ** 2


def _phase_loss(x: Any, a: Any) -> Any:
    return ((a @ x) ** 2 - a[0] ** 2) ** 2


PROBLEMS: dict[str, tuple[Any, ...]] = {
    "linear": (_linear_loss, _overlap_and_rest, _gaussians, _spread),
    "phase retrieval": (_phase_loss, _overlap_and_rest, _gaussians, _spread),
}
"""Problems with names, whose statistics are the overlap with the truth and the squared norm of the rest."""


class EffectiveFlow(Law):
    """Which path do the summary statistics of my loss follow under online SGD with step c/N?

    Examples
    --------
    >>> law = EffectiveFlow(problem="linear", step=0.1, start_statistics=(0.2, 0.5), times=(0.5, 1.0), samples=2000)
    >>> theory = law.theory()
    >>> exact = 1 - 0.8 * np.exp(-2 * np.array([0.5, 1.0]))  # the overlap m has the drift 2 (1 - m)
    >>> bool(np.all(np.abs(theory.statistics.values[:, 0] - exact) < theory.statistics.attrs["numerical_error"]))
    True
    """

    status = "theorem"
    regime = "N -> infinity at fixed step * N and time"
    assumptions = (
        "a new sample for every step",
        "statistics that close, with a volatility that vanishes",
        "a differentiable loss",
    )
    references = ("benarous2022high",)
    page = "effective_dynamics"
    observables = {"statistics": observable("summary statistics", "u", dims=("time", "statistic"))}
    simulation = Experiment("dimension N", sizes=(50, 100, 200), draws=20)
    # Two problems, starts with a part outside the truth, steps at which the corrector matters
    points = (
        dict(
            problem="linear",
            step=0.15,
            start_statistics=(0.2, 0.6),
            times=(0.3, 0.8),
            samples=1000,
            dimension=60,
            substeps=4,
        ),
        dict(
            problem="phase retrieval",
            step=0.01,
            start_statistics=(0.7, 0.2),
            times=(0.05, 0.15),
            samples=1000,
            dimension=100,
            substeps=4,
        ),
    )

    headline = Headline(
        "The overlap grows while the rest decays",
        x="times",
        over=(0.0, 2.0, 41),
        show=("statistics",),
        at=dict(step=0.5, start_statistics=(0.1, 0.9), samples=300, dimension=60, substeps=40),
        size=200,
        draws=4,
        places=(0.25, 0.5, 1.0, 1.5, 2.0),
        sliders=("step",),
    )

    problem: OnlineProblem = parameter("linear", "loss, samples and summary statistics", note="a name or an OnlineProblem")
    step: float = parameter(0.1, note="the constant c of the step c / N", symbol="c", above=0, scale="log")
    start_statistics: tuple[float, ...] = parameter((0.2, 0.5), "summary statistics at the start", symbol="u(0)")
    times: float | tuple[float, ...] = parameter((0.5, 1.0), note="number of steps times c / N", kind="coordinate", least=0)
    dimension: int = parameter(
        200, note="of the points at which coefficients are estimated", kind="solver", least=20, finer=2
    )
    samples: int = parameter(
        2000, note="for every estimate of the coefficients", kind="solver", least=100, scale="log", finer=4
    )
    substeps: int = parameter(6, "midpoint steps between the start and the last time", kind="solver", least=2, finer=2)

    @model_validator(mode="after")
    def _placed(self) -> Self:
        u = np.array(self.start_statistics)
        self.problem.point(u, self.dimension)
        try:
            here = self.problem.dynamics(self.step).at(self.problem.point(u, 20), 16, 0)
        except (Refused, FailedFunction):
            raise
        except Exception as error:
            raise Refused(
                f"problem = {self.problem.name!r} is not allowed: its drift at the start raised {type(error).__name__}: "
                f"{str(error).splitlines()[0] if str(error) else ''}{user_line(error)}; write loss and statistics with jax.numpy"
            ) from error
        if not np.all(np.isfinite(here.drift)):
            raise Refused(
                f"problem = {self.problem.name!r} is not allowed: its drift at the start is {here.drift}, not finite"
            )
        return self

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of t N / c steps in N dimensions."""
        return Cost(1e6 + 10.0 * BATCH * size, 1e8 + 50.0 * latest(self) * size / self.step * size)

    def limit_cost(self) -> Cost:
        """Return the cost of estimates from all samples along the paths."""
        evaluations = 2 * self.substeps * (2 * REPLICATES + 1)
        return Cost(60.0 * self.samples * self.dimension, 100.0 * evaluations * self.samples * self.dimension)

    def predicted(self, times: Array) -> Values:
        """Integrate the estimated drift; the accuracy has a statistical part, a part of the time step and one of the dimension."""
        values, errors = _solved(self, tuple(np.ravel(times).tolist()))
        return {"statistics": values, "accuracy": {"statistics": float(errors.max())}}

    def path(self, times: tuple[float, ...], seed: int, dimension: int, substeps: int) -> Array:
        """Return the path with one set of samples, one row per time."""
        dynamics, last = self.problem.dynamics(self.step), max(times)
        rows, u, now = [], np.array(self.start_statistics), 0.0
        for time in times:
            count = max(1, round(substeps * (time - now) / last)) if last > 0 else 1
            if time > now:
                u = dynamics.flow(
                    lambda at: self.problem.point(at, dimension), u, [time - now], self.samples, count, seed=seed
                )[0]
            rows.append(u)
            now = time
        return np.array(rows)

    def measured(self, draw: Draw, times: Array) -> Values:
        """Run online SGD in `size` dimensions from a point with the statistics of the start."""
        jax = _jax()
        loss, statistics, sampler, _ = self.problem.parts
        size, delta = draw.size, self.step / draw.size
        x = jax.numpy.asarray(self.problem.point(np.array(self.start_statistics), size))
        counts = [round(float(time) / delta) for time in np.ravel(times)]
        key, done, rows = jax.random.key(int(draw.rng.integers(2**31))), 0, []
        run = _steps(loss)
        for count in counts:
            while done < count:
                key, use = jax.random.split(key)
                batch = sampler(use, BATCH, size)
                now = min(BATCH, count - done)
                x = run(x, batch, delta, now)
                done += now
            rows.append(np.asarray(statistics(x), dtype=float))
        return {"statistics": np.array(rows)}


def _jax() -> Any:
    from limitlab.models.optimisers import double_precision_jax

    return double_precision_jax()


@lru_cache(maxsize=32)
def _steps(loss: Any) -> Any:
    """Return the compiled function (x, samples, step, count) that makes `count` steps of SGD."""
    jax = _jax()
    gradient = jax.grad(loss)

    def run(x: Any, batch: Any, delta: Any, count: Any) -> Any:
        def one(x: Any, item: Any) -> Any:
            index, sample = item
            return jax.numpy.where(index < count, x - delta * gradient(x, sample), x), None

        return jax.lax.scan(one, x, (jax.numpy.arange(BATCH), batch))[0]

    return jax.jit(run)


@lru_cache(maxsize=32)
def _solved(law: EffectiveFlow, times: tuple[float, ...]) -> tuple[Array, Array]:
    """Return the path and its error."""
    full = np.array([law.path(times, seed, law.dimension, law.substeps) for seed in range(REPLICATES)])
    half = np.array([law.path(times, 100 + seed, law.dimension // 2, law.substeps) for seed in range(REPLICATES)])
    fewer = max(2, law.substeps // 2) if law.substeps > 2 else 1
    coarse = law.path(times, 0, law.dimension, fewer)
    mean = full.mean(axis=0)
    spread = np.sqrt(full.var(axis=0, ddof=1) / REPLICATES)
    # 4.03 is Student's 99 % quantile with five degrees of freedom; the error of the dimension N is the change from N / 2
    errors = 4.03 * spread + np.abs(coarse - full[0]) / ((law.substeps / fewer) ** 2 - 1) + np.abs(mean - half.mean(axis=0))
    if not np.all(np.isfinite(mean)):
        raise Refused(
            "step or times are not allowed: the path of the statistics diverges; use a smaller step or shorter times"
        )
    return mean, errors
