"""The interpolation threshold, the plateau below it and the relaxation above it, measured from trajectories.

Nothing here uses the aging ansatz: these are the numbers that its closed forms (docs/theory/interpolation.md) are held against. A
trajectory is known up to some time, so every number is a limit of a sequence over octaves of time, with an uncertainty that says how
far the sequence still has to go.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import ConvergenceError, Refused
from limitlab.laws.dmft._sequences import Limit, aitken, settled
from limitlab.laws.dmft.interpolation import InterpolationTransition

Floats = NDArray[np.float64]

AGING_EXPONENT = 2 / 3
"""Exponent of the approach to the plateau in the pure spherical models; for the systems here it is a hypothesis, used as a cross-check."""

WIDEST = (0.7, 1.4)
"""Where a threshold is looked for, in units of the closed form."""

ROUNDING = 1e-13
"""Train errors below this share of the label variance are rounding."""


@dataclass(frozen=True)
class Decay:
    """The train error at times that double.

    Attributes
    ----------
    times, values
        Octaves of time, the last one first seen, and the train errors there.
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
    """The train error with second layer gamma at end / 2^octaves, ..., end / 2, end."""
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
    """The limit of the train error as t -> infinity, from a decay like e + b t^-x with an exponent that the data choose.

    Three successive octaves give an estimate of e without knowing x, and these estimates drift; their own limit is the value. A second
    sequence assumes x = 2/3. The error is the larger of the first one's own and the distance between the two limits.

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
        The limit of the effective thresholds and its distance to the last of them. Where their drift does not shrink yet, the last
        of them and three times its drift beyond their range.
    by_octave
        Effective thresholds of successive pairs of octaves, earliest first.
    slopes
        The log-log slopes that decided, by gamma.
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
    """gamma_GF from the two-time equations alone: below it log train error against log time flattens, above it steepens.

    The change of slope between two successive octaves vanishes at an effective threshold. It is found for every pair of octaves, by
    interpolation between a few gamma, and drifts from pair to pair; the limit of the drift (Aitken) is the value. Effective
    thresholds are 3 to 4 % above the closed form at time 40 and fall, so long times need smaller `shares`.

    Parameters
    ----------
    law
        Ratio, noise and kernel; its own second layer is not used.
    end, steps
        Last time and steps of the finest of three grids.
    shares
        Where to compute trajectories, in units of the closed form (which only says where to look); more are added above or below
        where these do not enclose the threshold.
    octaves
        Octaves of time before `end` that are used.
    """
    seen: dict[float, Floats] = {}

    def trend(share: float) -> Floats:
        """Change of slope between the last octaves, two numbers: positive below the threshold, negative above."""
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
    found = [root for root in roots if root is not None]
    if roots[-1] is None or roots[-2] is None:
        raise ConvergenceError(
            f"the slopes do not change their trend between gamma = {gammas[0]:g} and {gammas[-1]:g}: use a later end",
            estimate=slopes,
        )
    limit = settled(found)
    decided = {float(gamma): tuple(float(x) for x in row) for gamma, row in zip(gammas, slopes, strict=True)}
    return Located(limit.value, limit.error, tuple(found), decided)


def _zero(x: Floats, y: Floats) -> float | None:
    """Where the polynomial through the four points around it changes sign; None when it does not."""
    crossings = np.flatnonzero(np.sign(y[:-1]) * np.sign(y[1:]) < 0)
    if crossings.size == 0:
        return None
    from scipy.interpolate import BarycentricInterpolator
    from scipy.optimize import brentq

    first = int(crossings[-1])
    near = slice(max(first - 1, 0), first + 3)
    return float(brentq(BarycentricInterpolator(x[near], y[near]), x[first], x[first + 1]))


def relaxation_rate(law: InterpolationTransition, gamma: float, end: float, steps: int) -> tuple[float, float]:
    """Late exponential rate of the train error above threshold, and its drift over the last two eighths of the time."""
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
