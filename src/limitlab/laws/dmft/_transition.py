"""The interpolation threshold, the plateau below it and the relaxation above it, measured from trajectories.

The measurements do not use the aging ansatz and therefore test its closed forms (docs/theory/interpolation.md). A trajectory ends at a
finite time. Every number is therefore the limit of a sequence over octaves of time, with an uncertainty for the distance to this limit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import ConvergenceError, Refused
from limitlab.laws.dmft.interpolation import InterpolationTransition

Floats = NDArray[np.float64]


AGING_EXPONENT = 2 / 3
"""Exponent of the approach to the plateau in the pure spherical models. For the systems here it is a hypothesis, used as a cross-check."""

WIDEST = (0.7, 1.4)
"""Range in which a threshold is searched, in units of the closed form."""

ROUNDING = 1e-13
"""Train errors below this share of the label variance count as rounding errors."""


@dataclass(frozen=True)
class Decay:
    """The train error at times that double from one to the next.

    Attributes
    ----------
    times, values
        Times at distances of one octave, in increasing order, and the train errors there.
    errors
        Estimated numerical errors of the values (step doubling).
    """

    times: Floats
    values: Floats
    errors: Floats

    @property
    def slopes(self) -> Floats:
        """Slopes of log train error against log time, one per octave.

        >>> Decay(np.array([1.0, 2.0, 4.0]), np.array([1.0, 0.5, 0.25]), np.zeros(3)).slopes
        array([-1., -1.])
        """
        return np.asarray(np.diff(np.log(self.values)) / np.log(2))


def follow_decay(law: InterpolationTransition, gamma: float, end: float, steps: int, octaves: int = 4) -> Decay:
    """Return the train error with second layer gamma, at the time `end` and at `octaves` earlier times, each half of the next."""
    from limitlab.numerics.two_time import extrapolate

    dynamics = law.replace(second_layer=gamma).dynamics(times=end, solver_steps=steps)
    times = np.asarray(end * 2.0 ** -np.arange(octaves, -1, -1), dtype=np.float64)
    result = extrapolate(dynamics.march, steps, times, 3, ("train_error",))
    values, errors = result.values["train_error"], result.errors["train_error"]
    if np.any(values <= np.maximum(errors, ROUNDING * law.noise**2)):
        raise ConvergenceError(
            f"the train error at gamma = {gamma:g} falls below the accuracy of the grid before {end:g}: use an earlier end",
            estimate=values,
        )
    return Decay(times, values, errors)


def late_residual(decay: Decay) -> Limit:
    """Return the limit e of the train error as t -> infinity for a decay like e + b t^-x with unknown x.

    The train errors at three successive times, each twice the time before, determine e, b and x. The estimates of e from successive
    triples drift, and `value` is their limit. A second sequence of estimates assumes x = 2/3. `error` is the largest of the error of
    the first limit, the distance between the two limits and the numerical error of the last train error.

    Examples
    --------
    >>> times = 2.0 ** np.arange(8)
    >>> limit = late_residual(Decay(times, 0.3 + times**-0.6 + times**-1.2, np.zeros(8)))
    >>> round(limit.value, 3), round(limit.error, 3)
    (0.299, 0.006)
    """
    if decay.values.size < 6:
        raise Refused(f"decay has {decay.values.size - 1} octaves, which is not allowed: must be at least 5")
    free = settled(aitken(decay.values))
    fixed = settled(decay.values[1:] + np.diff(decay.values) / (2**AGING_EXPONENT - 1))
    return Limit(free.value, max(free.error, abs(free.value - fixed.value), float(decay.errors[-1])))


@dataclass(frozen=True)
class Located:
    """A threshold located from trajectories.

    Attributes
    ----------
    value, error
        The limit of the effective thresholds, and its distance from the last of them. If the changes between successive thresholds do
        not decrease, the value is the last threshold, and the error is three times the last change.
    by_octave
        Effective thresholds of successive pairs of octaves, earliest first.
    slopes
        The log-log slopes from which the threshold follows, by gamma.
    """

    value: float
    error: float
    by_octave: tuple[float, ...]
    slopes: dict[float, tuple[float, ...]]


def locate_threshold(
    law: InterpolationTransition,
    end: float = 160.0,
    steps: int = 640,
    shares: tuple[float, ...] = (0.98, 1.01, 1.04, 1.07),
    octaves: int = 5,
) -> Located:
    """Locate gamma_GF from the two-time equations alone.

    Below gamma_GF a plot of log train error against log time flattens with time. Above gamma_GF it steepens. The change of slope
    between two successive octaves vanishes at an effective threshold. For every pair of octaves the effective threshold is interpolated
    between a few gamma. The effective thresholds drift from pair to pair, and the returned value is their limit by Aitken's formula.
    They are 3 to 4 % above the closed form at time 40 and fall with time, so that longer trajectories need smaller `shares`.

    Parameters
    ----------
    law
        Ratio, noise and kernel. Its second layer is not used.
    end, steps
        Last time and steps of the finest of three grids.
    shares
        Values of gamma with a trajectory, in units of the closed form, which sets only the range of the search. More are added above
        or below if these do not enclose the threshold.
    octaves
        Octaves of time before `end` that are used.
    """
    seen: dict[float, Floats] = {}

    def trend(share: float) -> Floats:
        """Return the change of slope between the last octaves, two numbers that are positive below the threshold, negative above."""
        if share not in seen:
            seen[share] = follow_decay(law, share * law.threshold(), end, steps, octaves).slopes
        return np.diff(seen[share][-3:])

    for share in shares:
        trend(share)
    while np.any(trend(max(seen)) > 0) and max(seen) < WIDEST[1]:
        trend(max(seen) + 0.03)
    while np.any(trend(min(seen)) < 0) and min(seen) > WIDEST[0]:
        trend(min(seen) - 0.03)
    gammas = np.array(sorted(seen)) * law.threshold()
    slopes = np.array([seen[share] for share in sorted(seen)])
    roots = [_zero(gammas, change) for change in np.diff(slopes, axis=1).T]
    thresholds = [root for root in roots if root is not None]
    if roots[-1] is None or roots[-2] is None:
        raise ConvergenceError(
            f"the differences of successive slopes do not change sign between gamma = {gammas[0]:g} and {gammas[-1]:g}: use a later end",
            estimate=slopes,
        )
    limit = settled(thresholds)
    slopes_by_gamma = {float(gamma): tuple(float(x) for x in row) for gamma, row in zip(gammas, slopes, strict=True)}
    return Located(limit.value, limit.error, tuple(thresholds), slopes_by_gamma)


def _zero(x: Floats, y: Floats) -> float | None:
    """Return the zero of the polynomial through the four points around the last sign change, or None without a sign change."""
    crossings = np.flatnonzero(np.sign(y[:-1]) * np.sign(y[1:]) < 0)
    if crossings.size == 0:
        return None
    from scipy.interpolate import BarycentricInterpolator
    from scipy.optimize import brentq

    first = int(crossings[-1])
    near = slice(max(first - 1, 0), first + 3)
    return float(brentq(BarycentricInterpolator(x[near], y[near]), x[first], x[first + 1]))


def relaxation_rate(law: InterpolationTransition, gamma: float, end: float, steps: int) -> tuple[float, float]:
    """Return the late exponential rate of the train error above threshold, and its drift over the last two eighths of the time."""
    from limitlab.numerics.two_time import extrapolate

    dynamics = law.replace(second_layer=gamma).dynamics(times=end, solver_steps=steps)
    times = end * np.array([0.5, 0.625, 0.75])
    result = extrapolate(dynamics.march, steps, times, 2, ("train_error",))
    errors = result.values["train_error"]
    if np.any(errors <= np.maximum(result.errors["train_error"], ROUNDING * law.noise**2)):
        raise ConvergenceError(
            f"the train error at gamma = {gamma:g} falls below the accuracy of the grid before {end:g}: use an earlier end",
            estimate=errors,
        )
    rates = -np.diff(np.log(errors)) / np.diff(times)
    return float(rates[1]), float(abs(rates[1] - rates[0]))


def asymptotic_rate(law: InterpolationTransition, gamma: float, end: float, steps: int) -> Limit:
    """Return the rate r of a train error that decays like e^(-r t) t^-b above threshold, with unknown b.

    The rate and b follow from the train errors at 1/2, 3/4 and 1 of the time. The error of r is the distance to the result at 1/4, 1/2 and
    3/4 of the time.
    """
    from limitlab.numerics.two_time import extrapolate

    dynamics = law.replace(second_layer=gamma).dynamics(times=end, solver_steps=steps)
    times = end * np.array([0.25, 0.5, 0.75, 1.0])
    result = extrapolate(dynamics.march, steps, times, 2, ("train_error",))
    errors = result.values["train_error"]
    if np.any(errors <= np.maximum(result.errors["train_error"], ROUNDING * law.noise**2)):
        raise ConvergenceError(
            f"the train error at gamma = {gamma:g} falls below the accuracy of the grid before {end:g}: use an earlier end",
            estimate=errors,
        )
    late, early = (
        -float(np.linalg.solve(np.stack([np.ones(3), times[part], np.log(times[part])], axis=1), np.log(errors[part]))[1])
        for part in (slice(1, 4), slice(0, 3))
    )
    return Limit(late, abs(late - early))


@dataclass(frozen=True)
class PowerLaw:
    """The fit rate = amplitude (x - threshold)^exponent, with the standard error of the threshold and the fit's sum of squares."""

    amplitude: float
    threshold: float
    exponent: float
    error: float
    misfit: float


def fit_power_law(x: ArrayLike, rates: ArrayLike) -> PowerLaw:
    """Return the least-squares fit of log rate = log A + nu log |x - g|, with g outside the range of x at its nearer end.

    The rates must rise with x (then g is below x) or fall with x (then g is above x). `error` follows from the scatter about the fit.

    >>> x = np.array([1.1, 1.2, 1.4, 1.8])
    >>> fit = fit_power_law(x, 3 * (x - 0.98) ** 2.1)
    >>> round(fit.threshold, 6), round(fit.exponent, 6)
    (0.98, 2.1)
    """
    from scipy.optimize import least_squares

    at, y = np.asarray(x, dtype=float), np.log(np.asarray(rates, dtype=float))
    order = np.argsort(y)
    at, y = at[order], y[order]
    sign = 1.0 if at[-1] > at[0] else -1.0
    # the distance of g from the slowest x is positive, so its logarithm is fitted
    room = abs(at[-1] - at[0])

    def residual(p: Floats) -> Floats:
        return np.asarray(p[0] + p[1] * np.log(np.abs(at - at[0]) + room * np.exp(p[2])) - y)

    fit = least_squares(residual, [float(y[-1]), 2.0, -2.0], xtol=1e-14, ftol=1e-14, gtol=1e-14)
    freedom = max(at.size - 3, 1)
    covariance = np.linalg.pinv(fit.jac.T @ fit.jac) * 2 * fit.cost / freedom
    distance = room * float(np.exp(fit.x[2]))
    return PowerLaw(
        float(np.exp(fit.x[0])),
        float(at[0] - sign * distance),
        float(fit.x[1]),
        distance * float(np.sqrt(covariance[2, 2])),
        2 * float(fit.cost),
    )


# -- limits of drifting sequences, extrapolated from a few of their entries with an uncertainty -----------------------


def aitken(sequence: ArrayLike) -> Floats:
    """Return the limits of the geometric sequences through three successive entries, x2 - (x2 - x1)^2 / (x2 - 2 x1 + x0).

    >>> aitken([1.5, 1.25, 1.125])
    array([1.])
    """
    x = np.asarray(sequence, dtype=float)
    last, before = x[2:] - x[1:-1], x[1:-1] - x[:-2]
    slowing = np.where(before == last, np.inf, before - last)  # infinity makes a constant sequence its own limit
    return np.asarray(x[2:] + last**2 / slowing)


@dataclass(frozen=True)
class Limit:
    """A limit measured from a sequence, with the uncertainty of the extrapolation."""

    value: float
    error: float


def settled(sequence: ArrayLike) -> Limit:
    """Return the Aitken limit of the last three entries of a drifting sequence, and its distance to the last of them.

    If the drift does not shrink yet, return the last entry and three times its drift beyond the range of the last three.

    >>> settled([1.5, 1.25, 1.125])
    Limit(value=1.0, error=0.125)
    """
    last = np.asarray(sequence, dtype=float)[-3:]
    drift = np.diff(last)
    if drift.size == 2 and drift[0] * drift[1] > 0 and abs(drift[1]) < 0.95 * abs(drift[0]):
        value = float(aitken(last)[-1])
        return Limit(value, max(abs(value - float(last[-1])), abs(float(drift[1]))))
    return Limit(float(last[-1]), float(np.ptp(last)) + 3 * abs(float(drift[-1])))
