"""Fits of the loss against model size and data, with intervals, the compute-optimal size and tests of the fit.

Intervals are profile intervals. For each value of a parameter the cost is minimised over all other parameters. The interval ends where this
cost has risen by a fixed amount. Equation numbers refer to docs/theory/scaling_fit.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import Refused
from limitlab.numerics import additive_powers as form
from limitlab.numerics.additive_powers import Best, Runs

__all__ = ["ScalingFit", "scaling_fit"]

Array = NDArray[np.float64]

LEAST_ROWS, LEAST_SIZES = 8, 3
RAY = 0.01  # decades; runs closer to a rising line in log N, log D cannot separate the two terms


def checked_runs(N: ArrayLike, D: ArrayLike | None, loss: ArrayLike, compute: ArrayLike | None, flops: float) -> Runs:
    """Return the table of runs, or raise `ValueError` if a column is not allowed."""
    n = np.ravel(np.asarray(N, dtype=float))
    if D is None:
        if compute is None:
            raise Refused("D is missing: give D or compute")
        D = np.ravel(np.asarray(compute, dtype=float)) / (flops * n)
    columns = dict(N=n, D=np.ravel(np.asarray(D, dtype=float)), loss=np.ravel(np.asarray(loss, dtype=float)))
    lengths = {name: column.size for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise Refused(f"columns of different lengths are not allowed: {lengths}")
    if n.size < LEAST_ROWS:
        raise Refused(f"{n.size} runs are not allowed: five parameters need at least {LEAST_ROWS}")
    for name, column in columns.items():
        if not (np.isfinite(column).all() and (column > 0).all()):
            row = int(np.flatnonzero(~(np.isfinite(column) & (column > 0)))[0])
            raise Refused(f"{name} = {column[row]:g} in row {row + 1} is not allowed: must be above 0 and finite")
        if name != "loss" and np.unique(column.round(12)).size < LEAST_SIZES:
            raise Refused(
                f"{np.unique(column).size} values of {name} are not allowed: give runs at {LEAST_SIZES} or more values"
            )
    return form.centred(columns["N"], columns["D"], columns["loss"])


def on_a_ray(runs: Runs) -> bool:
    """Return whether log D is a rising straight line in log N, up to a hundredth of a decade.

    This test depends on the design of the table only and not on the fit.
    """
    slope = float(runs.n @ runs.d / (runs.n @ runs.n))
    spread = float(np.sqrt(np.mean((runs.d - slope * runs.n) ** 2))) / math.log(10)
    return slope > 0 and spread < RAY


def positive(name: str, value: float) -> float:
    """Return a number, or raise `ValueError` unless it is above 0 and finite."""
    if not (math.isfinite(value) and value > 0):
        raise Refused(f"{name} = {value:g} is not allowed: must be above 0 and finite")
    return float(value)


def minimised(runs: Runs, width: float, embed: Any, start: Array) -> tuple[float, Array]:
    """Return the smallest cost and the free parameters there, by damped Gauss-Newton steps.

    `embed` returns all parameters and their derivatives for given free parameters.
    """

    def measured(free: Array) -> tuple[float, Array, Array]:
        theta, inner = embed(free)
        legal = (
            theta[0] >= 0
            and min(theta[3:5]) >= form.LOWEST
            and max(theta[3:5]) <= form.HIGHEST
            and np.abs(theta[1:3]).max() < 300
        )
        if not legal:
            return math.inf, free, np.empty((0, 0))
        log_loss, slope = form.model(theta, runs)
        left = log_loss - runs.log_loss
        size = np.abs(left)
        cost = float(np.sum(np.where(size <= width, left**2, 2 * width * size - width**2 if np.isfinite(width) else 0.0)))
        weight = np.where(size <= width, 1.0, width / np.maximum(size, 1e-300)) if np.isfinite(width) else np.ones_like(left)
        return cost, left * weight, slope @ inner

    free, damping = np.array(start), 1e-3
    cost, pull, slope = measured(free)
    if math.isinf(cost):
        return math.inf, free
    for _ in range(200):
        gram, gradient = slope.T @ slope, slope.T @ pull
        movable = np.ones(free.size, bool)
        # E stays at its bound 0 if the gradient points below it
        bound = embed(free)[0][0] <= 0 and free[0] == 0
        if bound and gradient[0] > 0:
            movable[0] = False
        moved = np.zeros(free.size)
        system = gram[np.ix_(movable, movable)]
        moved[movable] = -np.linalg.solve(system + damping * np.diag(np.diag(system) + 1e-300), gradient[movable])
        trial = free + moved
        if embed(trial)[0][0] < 0 and movable[0]:
            trial[0] = 0.0
        new = measured(trial)
        if new[0] <= cost:
            done = cost - new[0] <= 1e-13 * cost + 1e-300
            free, (cost, pull, slope), damping = trial, new, max(damping / 5, 1e-12)
            if done:
                break
        else:
            damping *= 4
            if damping > 1e10:
                break
    return cost, free


Cost = Callable[[float, Array], tuple[float, Array]]

CLOSE = 1e-5  # accuracy of an end of an interval, relative to its distance
MOST_STEPS = 60


def profile_interval(
    cost: Cost, at: float, error: float, start: Array, rise: tuple[float, float, float], least: float, most: float
) -> tuple[float, float]:
    """Return the two values at which the profiled cost has risen by a given amount; infinite if the search meets a bound.

    Parameters
    ----------
    cost
        Function (value, start of the other parameters) -> (smallest cost over them, the parameters there).
    at, error
        The estimate and its standard error. The search starts from them.
    start
        The other parameters at the estimate.
    rise
        Smallest cost, unit of its rise, and rise in these units at the ends of the interval.
    least, most
        Bounds of the search.

    Examples
    --------
    >>> ends = profile_interval(lambda value, other: ((value - 2.0) ** 2, other), 2.0, 0.7, np.zeros(1), (0.0, 1.0, 4.0), -10, 10)
    >>> [round(end, 6) for end in ends]
    [0.0, 4.0]
    """
    base, unit, most_rise = rise
    if not (error > 0 and math.isfinite(error) and unit > 0):
        return at, at
    wanted = math.sqrt(most_rise)

    def root(value: float, guess: Array) -> tuple[float, Array]:
        """Return the square root of the rise, which is nearly linear in the distance, and the other parameters."""
        value_cost, where = cost(value, guess)
        return math.sqrt(max(value_cost - base, 0.0) / unit), where

    def end(side: float, bound: float) -> float:
        inner, inner_rise, guess = 0.0, 0.0, start
        limit = abs(bound - at)
        if limit == 0:
            return side * math.inf
        outer = min(wanted * error, limit)
        for _ in range(MOST_STEPS):  # outwards
            outer_rise, where = root(at + side * outer, guess)
            if outer_rise >= wanted:
                break
            if outer >= limit:
                return side * math.inf
            inner, inner_rise, guess = outer, outer_rise, where
            outer = min(outer * min(max(1.05 * wanted / max(outer_rise, 1e-3 * wanted), 1.1), 3.0), limit)
        else:
            return side * math.inf
        for _ in range(MOST_STEPS):  # inwards, by interpolation kept off the ends
            if outer - inner <= CLOSE * outer:
                break
            share = (wanted - inner_rise) / (outer_rise - inner_rise) if math.isfinite(outer_rise) else 0.5
            middle = inner + min(max(share, 0.02), 0.98) * (outer - inner)
            middle_rise, where = root(at + side * middle, guess)
            if abs(middle_rise - wanted) < CLOSE**2 * wanted:
                return at + side * middle
            if middle_rise >= wanted:
                outer, outer_rise = middle, middle_rise
            else:
                inner, inner_rise, guess = middle, middle_rise, where
        return at + side * (inner + (wanted - inner_rise) / (outer_rise - inner_rise) * (outer - inner))

    return end(-1.0, least), end(1.0, most)


NAMES = ("E", "A", "B", "a", "b")
HOPELESS, DOUBTFUL = (
    1e4,
    100.0,
)  # condition numbers above which the terms are not separated, and above which there is a warning
CURVE = 10  # with more values of D at one N, a warning says that they may be points of one run
SUSPICIOUS = 1e-3  # p-value of the test of the form
NOT_DETERMINED = "not determined by these data"


class Optimum(NamedTuple):
    """Size and data with the smallest loss for a compute budget."""

    N: float
    D: float


class LackOfFit(NamedTuple):
    """Test for structure that the form misses, with F statistic, p-value and the root mean square of the structure in log loss."""

    statistic: float
    p_value: float
    misfit: float


@dataclass(frozen=True)
class ScalingFit:
    """The result of `scaling_fit`. It prints as a table, and `interval(name)` and `optimum(compute)` return more.

    Attributes
    ----------
    E, A, B, a, b
        Parameters of L = E + A N^-a + B D^-b.
    residual_sd
        Standard deviation of the log losses around the fit.
    separable
        Whether the table separates the two terms. If not, a, b and the optimum are meaningless, but the fitted curve is still valid.
    condition
        Condition number of the fit. Above 100 the intervals are wide. Above 10^4 the two terms cannot be separated.
    warnings
        Warnings about the use of the numbers.
    """

    runs: Runs
    best: Best
    level: float
    flops: float
    separable: bool
    condition: float
    replicate_sd: float | None = None

    # -- parameters -----------------------------------------------------------------------------------------------------

    @property
    def E(self) -> float:
        """The loss that remains at infinite size and data."""
        return float(self.best.theta[0])

    @property
    def A(self) -> float:
        """Amplitude of the term in N."""
        return math.exp(self.best.theta[1] + self.a * self.runs.centre_n)

    @property
    def B(self) -> float:
        """Amplitude of the term in D."""
        return math.exp(self.best.theta[2] + self.b * self.runs.centre_d)

    @property
    def a(self) -> float:
        """Exponent of the size."""
        return float(self.best.theta[3])

    @property
    def b(self) -> float:
        """Exponent of the data."""
        return float(self.best.theta[4])

    @property
    def interaction(self) -> bool:
        """Whether a product term G N^-p D^-q was fitted too."""
        return self.best.theta.size > 5

    @property
    def residual_sd(self) -> float:
        """Standard deviation of the log losses around the fit. A robust fit uses residuals within Huber's width only."""
        return math.sqrt(form.noise_variance(self.best, self.runs)[0])

    def predict(self, N: ArrayLike, D: ArrayLike) -> Array:
        """Return the fitted loss."""
        n, d = (
            np.log(np.asarray(N, dtype=float)) - self.runs.centre_n,
            np.log(np.asarray(D, dtype=float)) - self.runs.centre_d,
        )
        n, d = np.broadcast_arrays(n, d)
        return np.exp(form.model(self.best.theta, Runs(n.ravel(), d.ravel(), n.ravel(), 0.0, 0.0))[0]).reshape(n.shape)

    # -- the optimum ----------------------------------------------------------------------------------------------------

    def optimum(self, compute: float) -> Optimum:
        """Return the size and data with the smallest fitted loss for compute = flops N D, equation (5).

        Raises
        ------
        ValueError
            If the table does not separate the two terms.
        """
        if not self.separable:
            raise Refused(
                f"this table does not determine the optimum for compute = {compute:g}, because {self._why_not()}; add runs with another D/N"
            )
        product = math.log(positive("compute", compute) / self.flops)
        if self.interaction:
            log_n = self._numerical_optimum(product)
        else:
            log_n = form.log_optimum(self.best.theta, self.runs, product)
        return Optimum(math.exp(log_n), math.exp(product - log_n))

    def _numerical_optimum(self, product: float) -> float:
        grid = np.linspace(-25, 25, 20001) + product / 2
        loss = self.predict(np.exp(grid), np.exp(product - grid))
        return float(grid[int(np.argmin(loss))])

    # -- intervals ------------------------------------------------------------------------------------------------------

    def interval(self, name: str, compute: float | None = None) -> tuple[float, float]:
        """Return the profile interval of E, A, B, a, b, or of the optimal "N" or "D" at a compute.

        An end that the table does not determine is infinite. For E the lower end is infinite if the table does not exclude E = 0.
        """
        if self.interaction:
            raise Refused("interval is not available with a product term: use bootstrap(), or fit with interaction=False")
        if name in ("N", "D"):
            if compute is None:
                raise Refused(f"interval({name!r}) needs a compute: interval({name!r}, compute=1e22)")
            low, high = self._optimal_log_n(float(compute))
            ends = (math.exp(low), math.exp(high) if high < 700 else math.inf)
            total = compute / self.flops
            return (
                ends
                if name == "N"
                else (total / ends[1] if ends[1] < math.inf else 0.0, total / ends[0] if ends[0] else math.inf)
            )
        if name not in NAMES:
            raise Refused(f"name = {name!r} is not allowed: must be one of {', '.join(NAMES)}, or N or D with a compute")
        if not self.separable and name != "E":
            return (0.0, math.inf) if name in ("A", "B") else (-math.inf, math.inf)
        return self._profiles(name)

    def _profiles(self, name: str) -> tuple[float, float]:
        runs, theta = self.runs, self.best.theta
        spread = np.sqrt(np.diag(form.covariance(theta, runs, form.noise_variance(self.best, runs)[1])))
        if name in ("A", "B"):  # in the original units, log A = u + a * centre
            column, exponent, centre = (1, 3, runs.centre_n) if name == "A" else (2, 4, runs.centre_d)

            def embed(value: float, free: Array) -> tuple[Array, Array]:
                whole = np.insert(free, column, 0.0)
                whole[column] = value - whole[exponent] * centre
                inner = np.delete(np.eye(5), column, axis=1)
                inner[column, exponent - (exponent > column)] = -centre
                return whole, inner

            gradient = np.zeros(5)
            gradient[column], gradient[exponent] = 1.0, centre
            error = self._error(gradient)
            start = theta[column] + theta[exponent] * centre
            low, high = profile_interval(self._cost(embed), start, error, np.delete(theta, column), self._rise(), -200, 200)
            return math.exp(low), math.exp(high) if high < 700 else math.inf
        index = {"E": 0, "a": 3, "b": 4}[name]
        least, most = (0.0, math.inf) if name == "E" else (form.LOWEST * 2, form.HIGHEST * 0.9)

        def fixed(value: float, free: Array) -> tuple[Array, Array]:
            return np.insert(free, index, value), np.delete(np.eye(5), index, axis=1)

        return profile_interval(
            self._cost(fixed), float(theta[index]), float(spread[index]), np.delete(theta, index), self._rise(), least, most
        )

    def profiled_rise(self, a: float, b: float) -> float:
        """Return the increase of the objective above its minimum for fixed exponents a and b, in units of s^2 of equation (3).

        A map of this function shows how well the table determines the exponents.
        """

        def embed(free: Array) -> tuple[Array, Array]:
            return np.r_[free, a, b], np.eye(5)[:, :3]

        cost, _ = minimised(self.runs, self.best.width, embed, form.with_exponents(self.runs, a, b)[1][:3])
        return max(cost - self.best.cost, 0.0) / form.noise_variance(self.best, self.runs)[0]

    def _optimal_log_n(self, compute: float) -> tuple[float, float]:
        """Return the profile interval of log N*, which replaces the amplitude of the first term by equation (6)."""
        runs, theta = self.runs, self.best.theta
        product = math.log(compute / self.flops)
        at = math.log(self.optimum(compute).N)

        def embed(value: float, free: Array) -> tuple[Array, Array]:  # free: E, v, a, b
            E, v, a, b = free
            n, d = value - runs.centre_n, product - value - runs.centre_d
            if min(a, b) < form.LOWEST:  # outside the bounds, so `minimised` rejects the step
                return np.array([E, v, v, a, b]), np.zeros((5, 4))
            whole = np.array([E, v + a * n - b * d + math.log(b / a), v, a, b])
            inner = np.zeros((5, 4))
            inner[0, 0] = inner[2, 1] = inner[3, 2] = inner[4, 3] = inner[1, 1] = 1.0
            inner[1, 2], inner[1, 3] = n - 1 / a, 1 / b - d
            return whole, inner

        a, b = theta[3:5]
        n, d = at - runs.centre_n, product - at - runs.centre_d
        gradient = np.array([0.0, 1.0, -1.0, 1 / a - n, d - 1 / b]) / (a + b)
        return profile_interval(
            self._cost(embed), at, self._error(gradient), theta[[0, 2, 3, 4]], self._rise(), at - 60, at + 60
        )

    def _cost(self, embed: Any) -> Any:
        """Return the function (value, start) -> (smallest cost for this value of the parameter, the other parameters)."""

        def cost(value: float, start: Array) -> tuple[float, Array]:
            return minimised(self.runs, self.best.width, lambda free: embed(value, free), start)

        return cost

    def _error(self, gradient: Array) -> float:
        spread = form.covariance(self.best.theta, self.runs, form.noise_variance(self.best, self.runs)[1])
        return math.sqrt(max(float(gradient @ spread @ gradient), 0.0))

    def _rise(self) -> tuple[float, float, float]:
        """Return the smallest cost, the unit of its rise, and the rise (in units) at the ends of the interval."""
        from scipy.stats import f

        freedom = self.runs.n.size - 5
        return self.best.cost, form.noise_variance(self.best, self.runs)[0], float(f.ppf(self.level, 1, freedom))

    def bootstrap(
        self, resamples: int = 200, seed: int = 0, compute: Sequence[float] = ()
    ) -> dict[str, tuple[float, float]]:
        """Return percentile intervals from resampled residuals.

        They are a check of the profile intervals and are slightly too narrow. The keys are the parameters, and for every compute a key such
        as "N at 1e+22".
        """
        if not self.separable:
            raise Refused(f"a bootstrap of this table is meaningless, because {self._why_not()}: add runs with another D/N")
        rng, left = np.random.default_rng(seed), form.residuals(self.best.theta, self.runs)
        left = (left - left.mean()) * math.sqrt(left.size / (left.size - self.best.theta.size))
        centre, estimates = form.model(self.best.theta, self.runs)[0], []
        for _ in range(resamples):
            runs = self.runs._replace(log_loss=centre + rng.choice(left, left.size))
            again = ScalingFit(
                runs, form.polished(runs, self.best.theta, self.best.width), self.level, self.flops, True, 0.0
            )
            estimates.append([getattr(again, name) for name in NAMES] + [again.optimum(total).N for total in compute])
        ends = np.quantile(estimates, [(1 - self.level) / 2, (1 + self.level) / 2], axis=0)
        names = [*NAMES, *(f"N at {total:g}" for total in compute)]
        return {name: (float(low), float(high)) for name, low, high in zip(names, *ends, strict=True)}

    # -- how far to trust it --------------------------------------------------------------------------------------------

    @cached_property
    def lack_of_fit(self) -> LackOfFit | None:
        """Return the F test for structure in the residuals that the fitted form cannot represent, or None if there are too few rows."""
        from scipy.stats import f

        n, d = self.runs.n, self.runs.d
        freedom = n.size - self.best.theta.size - 7
        if freedom < 3:
            return None
        shape = np.stack([n, d, n**2, d**2, n * d, n**2 * d, n * d**2], axis=1)
        slope = form.model(self.best.theta, self.runs)[1]
        left = form.residuals(self.best.theta, self.runs)
        known = np.linalg.qr(slope / np.linalg.norm(slope, axis=0))[0]
        beyond, sizes, _ = np.linalg.svd(shape - known @ (known.T @ shape), full_matrices=False)
        beyond = beyond[:, sizes > 1e-8 * sizes[0]]
        left = left - known @ (known.T @ left)
        explained = beyond @ (beyond.T @ left)
        rest = max(float(np.sum((left - explained) ** 2)), 1e-28 * n.size) / freedom
        statistic = float(np.sum(explained**2)) / beyond.shape[1] / rest
        misfit = math.sqrt(float(np.mean(explained**2)))
        return LackOfFit(statistic, float(f.sf(statistic, beyond.shape[1], freedom)), misfit)

    @cached_property
    def with_product(self) -> ScalingFit:
        """The fit of the same table with a product term G N^-p D^-q."""
        best = form.best_fit(self.runs, np.isfinite(self.best.width), interaction=True)
        return ScalingFit(self.runs, best, self.level, self.flops, self.separable, self.condition, self.replicate_sd)

    @property
    def largest_compute(self) -> float:
        """Largest compute of a run in the table."""
        return self.flops * math.exp(float(np.max(self.runs.n + self.runs.d)) + self.runs.centre_n + self.runs.centre_d)

    def form_error(self, compute: float | None = None) -> float:
        """Return the factor by which a product term changes the optimal N, by default at 100 times the largest compute."""
        total = 100 * self.largest_compute if compute is None else compute
        return self.with_product.optimum(total).N / self.optimum(total).N

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the use of the numbers."""
        warnings = []
        if not self.separable:
            warnings.append(f"a, b and the optimal size are {NOT_DETERMINED}: {self._why_not()}. Add runs with another D/N.")
        elif self.condition > DOUBTFUL:
            warnings.append(
                f"The table hardly separates the two terms (condition {self.condition:.0f}). Add runs with another D/N."
            )
        pairs = np.unique(np.column_stack([self.runs.n, self.runs.d]).round(9), axis=0)
        counts = np.unique(pairs[:, 0], return_counts=True)[1]
        if counts.max() > CURVE:
            warnings.append(
                f"One N has {counts.max()} values of D. If they are points of one training curve, their errors are correlated and "
                "the learning-rate schedule biases them. Use the ends of separate runs."
            )
        if 1e-6 * math.exp(float(self.runs.log_loss.min())) >= self.E:
            warnings.append("E is at its lowest value 0. The table does not show that the loss has a positive lower bound.")
        test = self.lack_of_fit
        if test is not None and test.p_value < SUSPICIOUS and test.misfit > 1e-6 and not self.interaction:
            size = f"The form misses structure of {100 * test.misfit:.2g} % of the loss (F = {test.statistic:.3g})"
            change = self.form_error() if self.separable else 1.0
            factor = f". A product term changes the optimal N at 100 times the largest compute by a factor {change:.3g}"
            warnings.append(
                size + (factor if abs(math.log(change)) > 0.005 else "") + ". Do not extrapolate the additive form."
            )
        if self.replicate_sd is not None and self.residual_sd > 2 * self.replicate_sd:
            warnings.append(
                f"Residuals ({self.residual_sd:.2g}) exceed the replicate noise ({self.replicate_sd:.2g}), so the form is not exact."
            )
        return tuple(warnings)

    def trust(self, compute: float) -> str:
        """Return the distance of a compute from the runs, in words."""
        beyond = compute / self.largest_compute
        if beyond <= 1:
            return "inside the runs"
        return f"{beyond:.3g} times beyond the largest run"

    def _why_not(self) -> str:
        if self.condition > HOPELESS:
            return f"the two terms are exchangeable (condition {self.condition:.1e})"
        return "N and D grow along one line, so that the two terms are exchangeable"

    def __str__(self) -> str:
        lines = [f"L = E + A N^-a + B D^-b, {self.runs.n.size} runs, residual sd of log L {self.residual_sd:.3g}"]
        for name in NAMES:
            if not self.separable and name != "E":
                lines.append(f"  {name}  {NOT_DETERMINED}")
                continue
            ends = "" if self.interaction else f"  {100 * self.level:g} % {_shown(self.interval(name))}"
            lines.append(f"  {name}  {getattr(self, name):.6g}{ends}")
        return "\n".join([*lines, *(f"  warning: {text}" for text in self.warnings)])


def scaling_fit(
    N: ArrayLike,
    D: ArrayLike | None,
    loss: ArrayLike,
    robust: bool = True,
    level: float = 0.95,
    flops: float = 6.0,
    *,
    compute: ArrayLike | None = None,
    interaction: bool = False,
    replicate_sd: float | None = None,
) -> ScalingFit:
    """Fit L = E + A N^-a + B D^-b to the end points of training runs, and test which parameters the runs determine.

    Parameters
    ----------
    N, D, loss
        Model size, data and final loss of every run. If D is None, it follows from `compute` as D = compute / (flops N).
    robust
        Whether to use Huber's cost of log losses, which reduces the influence of a few bad runs, or least squares.
    level
        Confidence level of the intervals.
    flops
        Compute per unit of N D, which is 6 for the training of transformers.
    compute
        Compute of every run, instead of D.
    interaction
        Also fit a product term G N^-p D^-q.
    replicate_sd
        Standard deviation of log loss between runs that differ in their seed only, if it is known.

    Returns
    -------
    ScalingFit
        `.E, .A, .B, .a, .b, .residual_sd, .separable, .interval(name), .optimum(compute), .warnings`.

    Examples
    --------
    >>> N, D = (grid.ravel() for grid in np.meshgrid(np.geomspace(1e7, 1e9, 5), np.geomspace(1e8, 1e11, 5)))
    >>> fit = scaling_fit(N, D, 1.8 + 400 * N**-0.35 + 2000 * D**-0.37)
    >>> round(fit.a, 6), round(fit.b, 6), fit.separable
    (0.35, 0.37, True)
    >>> scaling_fit(N, 20 * N, 1.8 + 400 * N**-0.35 + 2000 * (20 * N) ** -0.37).separable
    False
    """
    runs = checked_runs(N, D, loss, compute, positive("flops", flops))
    if not 0 < level < 1:
        raise Refused(f"level = {level:g} is not allowed: must be between 0 and 1")
    best = form.best_fit(runs, robust, interaction)
    number = form.condition(best.theta, runs)
    return ScalingFit(runs, best, level, flops, not on_a_ray(runs) and number < HOPELESS, number, replicate_sd)


def _shown(ends: tuple[float, float]) -> str:
    """Return an interval in words."""
    words = ["open" if math.isinf(end) else f"{end:.5g}" for end in ends]
    return NOT_DETERMINED if words == ["open", "open"] else f"[{words[0]}, {words[1]}]"
