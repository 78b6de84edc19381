"""Effective dynamics of online SGD for any loss and any summary statistics (docs/theory/effective_dynamics.md).

Setting.  x <- x - delta grad L(x, Y) with a fresh sample per step, delta = c / N; statistics u(x); time t = delta * steps.
Result.   As N -> infinity du = (-f + g) dt + Sigma^{1/2} dB, with the population drift f, the corrector g and the volatility Sigma

              f_i = E <grad L, grad u_i>,   g_i = (delta/2) E <H, (Hess u_i) H>,   Sigma_ij = delta E <H, grad u_i> <H, grad u_j>,    (1)

          with H = grad L - E grad L, provided that f, g and Sigma are functions of u. In this case u is said to close.
Method.   This module estimates (1) at a point x by Monte Carlo, with automatic derivatives (JAX) and standard errors. Estimates at
          several points with equal statistics test whether u closes.
Status.   Theorem under regularity (Ben Arous, Gheissari, Jagannath 2022).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.draws import mean_and_error
from limitlab.errors import Refused
from limitlab.models.optimisers import double_precision_jax

__all__ = ["EffectiveDynamics"]

Array = NDArray[np.float64]

CLOSED = 5.0
"""Largest difference of drifts at points with equal statistics, in standard errors, that is accepted."""
EQUAL = 1e-3
"""Relative differences of statistics below this value count as zero."""


@dataclass(frozen=True)
class Coefficients:
    """The coefficients (1) at one point, each with its standard error."""

    statistics: Array
    population_drift: Array
    population_drift_error: Array
    corrector: Array
    corrector_error: Array
    volatility: Array
    volatility_error: Array

    @property
    def drift(self) -> Array:
        """The drift -f + g."""
        return self.corrector - self.population_drift

    @property
    def drift_error(self) -> Array:
        """The standard error of the drift."""
        return np.hypot(self.corrector_error, self.population_drift_error)


@dataclass(frozen=True)
class Closure:
    """Result of the test whether the drift is a function of the statistics.

    `largest_z` is the largest difference of drifts between points, in standard errors.
    """

    largest_z: float
    drifts: Array
    closes: bool


class EffectiveDynamics:
    """The limiting ODE or SDE of a user's loss and statistics, estimated with standard errors.

    Parameters
    ----------
    loss
        Function (x, sample) -> number, written with `jax.numpy`.
    statistics
        Function x -> array of the summary statistics u, written with `jax.numpy`.
    sampler
        Function (key, count, dimension) -> samples along a first axis (an array, or a tuple of arrays).
    step
        Constant c of the step size c / N.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> linear = EffectiveDynamics(  # labels <a, e_1>; the overlap's drift is 2 (1 - m)
    ...     loss=lambda x, a: (a[0] - a @ x) ** 2,
    ...     statistics=lambda x: jnp.array([x[0]]),
    ...     sampler=lambda key, count, dimension: jax.random.normal(key, (count, dimension)),
    ...     step=0.1,
    ... )
    >>> estimate = linear.at(np.eye(50)[1] * 0.5, samples=4000)
    >>> bool(abs(estimate.drift[0] - 2.0) < 5 * estimate.drift_error[0] < 0.5)
    True
    """

    def __init__(
        self,
        loss: Callable[[Any, Any], Any],
        statistics: Callable[[Any], Any],
        sampler: Callable[[Any, int, int], Any],
        step: float,
    ):
        if not (step > 0 and math.isfinite(step)):
            raise Refused(f"step = {step!r} is not allowed: must be a positive number (the c of a step c / N)")
        self.loss, self.statistics, self.sampler, self.step = loss, statistics, sampler, float(step)

    def at(self, x: ArrayLike, samples: int = 2000, seed: int = 0) -> Coefficients:
        """Return the coefficients (1) at a point, estimated from new samples.

        Parameters
        ----------
        x
            The weights.
        samples
            Number of samples. Errors decrease like its inverse square root.
        seed
            Seed of the samples.
        """
        jax = double_precision_jax()

        if samples < 2:
            raise Refused(f"samples = {samples} is not allowed: must be at least 2, to separate the noise from the mean")
        point = jax.numpy.asarray(x, dtype=float)
        delta = self.step / point.size
        drawn = self.sampler(jax.random.key(seed), samples, point.size)
        measured = self._compiled(point, drawn)
        forces, bend = (np.asarray(part, dtype=float) for part in measured)
        # NumPy arrays from here on. Because the sample mean is subtracted, variances are divided by samples - 1.
        noise = forces - forces.mean(axis=0)
        unbiased = samples / (samples - 1)
        curved = delta / 2 * unbiased * bend
        squares = delta * unbiased * noise[:, :, None] * noise[:, None, :]
        parts = [part for values in (forces, curved, squares) for part in mean_and_error(values)]
        return Coefficients(np.asarray(self.statistics(point), dtype=float), *parts)

    @cached_property
    def _compiled(self) -> Callable[[Any, Any], Any]:
        """The compiled function (x, samples) -> <grad L, grad u_i> and <H, (Hess u_i) H> for every sample."""
        jax = double_precision_jax()
        jacobian = jax.jacobian(self.statistics)

        def measure(point: Any, drawn: Any) -> Any:
            gradients = jax.vmap(jax.grad(self.loss), (None, 0))(point, drawn)
            centred = gradients - gradients.mean(axis=0)
            bend = jax.vmap(lambda h: jax.jvp(jacobian, (point,), (h,))[1] @ h)(centred)
            return gradients @ jacobian(point).T, bend

        return jax.jit(measure)

    def closure(self, points: Sequence[ArrayLike], samples: int = 2000, seed: int = 0) -> Closure:
        """Compare the drift at points that have the same statistics but differ otherwise.

        Equal drifts do not prove that the statistics close. Different drifts prove that the statistics do not close.
        """
        estimates = [self.at(point, samples, seed + i) for i, point in enumerate(points)]
        if len(estimates) < 2:
            raise Refused("fewer than two points are not allowed: give at least two with the same statistics")
        first = estimates[0]
        for other in estimates[1:]:
            if np.any(np.abs(other.statistics - first.statistics) > EQUAL * (1 + np.abs(first.statistics))):
                raise Refused(
                    f"points with statistics {first.statistics} and {other.statistics} are not allowed: they must agree"
                )
        z = [
            np.abs(estimate.drift - other.drift) / np.hypot(estimate.drift_error, other.drift_error)
            for i, estimate in enumerate(estimates)
            for other in estimates[:i]
        ]
        largest = float(np.max(z))
        return Closure(largest, np.array([estimate.drift for estimate in estimates]), largest < CLOSED)

    def flow(
        self,
        place: Callable[[Array], ArrayLike],
        start: ArrayLike,
        times: Sequence[float],
        samples: int = 1000,
        substeps: int = 4,
        diffusion: bool = False,
        seed: int = 0,
    ) -> Array:
        """Solve du = (-f + g) dt (+ Sigma^{1/2} dB if `diffusion`) from `start`, and return one row per time.

        Parameters
        ----------
        place
            Function u -> x that returns a point x with these statistics.
        start, times
            Statistics at time 0 and the times to report, increasing.
        samples, substeps
            Samples per evaluation, and midpoint steps (Euler-Maruyama steps if `diffusion`) between two reported times.
        seed
            Seed of samples and noise. All evaluations use the same samples, so that the right side is a smooth function.
        """
        rng = np.random.default_rng(seed)
        u, now, rows = np.asarray(start, dtype=float), 0.0, []
        for time in times:
            h = (time - now) / substeps
            for _ in range(substeps):
                here = self.at(place(u), samples, seed)
                if diffusion:
                    values, vectors = np.linalg.eigh(here.volatility)
                    kick = vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(u.size))
                    u = u + h * here.drift + math.sqrt(h) * kick
                else:
                    u = u + h * self.at(place(u + h / 2 * here.drift), samples, seed).drift
            now = time
            rows.append(u)
        return np.array(rows)
