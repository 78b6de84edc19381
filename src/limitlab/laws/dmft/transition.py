"""The interpolation threshold and the relaxation above it, measured from trajectories of the two-time equations (claims D3, D4).

Nothing here uses the aging ansatz: these are the numbers that its closed forms (docs/theory/interpolation.md) are held against.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from limitlab.errors import ConvergenceError
from limitlab.laws.dmft.interpolation import InterpolationTransition


@dataclass(frozen=True)
class Located:
    """A threshold located from trajectories.

    Attributes
    ----------
    value, error
        Effective threshold of the last octave, and an uncertainty that allows for three more octaves of the same drift.
    by_octave
        The effective thresholds of the last two pairs of octaves; they drift downwards.
    slopes
        The log-log slopes that decided, by gamma.
    """

    value: float
    error: float
    by_octave: tuple[float, ...]
    slopes: dict[float, tuple[float, ...]]


def octave_slopes(law: InterpolationTransition, gamma: float, end: float, steps: int) -> tuple[float, ...]:
    """Slopes of log train error against log time over [end/16, end/8], [end/8, end/4], [end/4, end/2], [end/2, end]."""
    dynamics = law.replace(second_layer=gamma).dynamics(times=end, steps=steps)
    times = end / np.array([16.0, 8.0, 4.0, 2.0, 1.0])
    from limitlab.numerics.two_time import extrapolate

    errors = extrapolate(dynamics.march, steps, times, 2, ("train_error",)).values["train_error"]
    errors = np.maximum(
        errors, 1e-12 * law.noise**2
    )  # far above the threshold the error falls below the accuracy of any grid
    return tuple(float(x) for x in np.diff(np.log(errors)) / np.log(2))


def locate_threshold(
    law: InterpolationTransition,
    end: float = 80.0,
    steps: int = 640,
    bracket: tuple[float, float] = (0.85, 1.15),
    tolerance: float = 0.005,
) -> Located:
    """gamma_GF from the two-time equations alone: below it log train error against log time flattens, above it steepens.

    The change of slope between two successive octaves vanishes at an effective threshold, found by bisection for the last two. It
    still drifts down from octave to octave (by about 1 % per octave at time 80), without a known law to extrapolate: the value is
    an upper estimate, and the stated error is three times the last drift plus the width of the last bracket.

    Parameters
    ----------
    law
        Ratio, noise and kernel; its own second layer is not used.
    end, steps
        Last time and steps of the finer of two grids.
    bracket
        Where to look, in units of the closed form.
    tolerance
        Relative width at which to stop.
    """
    guess, seen = law.threshold(), {}

    def change(gamma: float, octave: int) -> float:
        if gamma not in seen:
            seen[gamma] = octave_slopes(law, gamma, end, steps)
        return seen[gamma][octave] - seen[gamma][octave - 1]

    low, high = (share * guess for share in bracket)
    if change(low, -1) < 0 or change(high, -1) > 0:
        raise ConvergenceError(f"the slopes do not change sign between gamma = {low:g} and {high:g}: {seen}")
    while high - low > tolerance * guess:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if change(middle, -1) > 0 else (low, middle)
    points = np.array(sorted(seen))
    by_octave = tuple(float(np.interp(0.0, [-change(x, octave) for x in points], points)) for octave in (-2, -1))
    drift = abs(by_octave[1] - by_octave[0])
    return Located(by_octave[1], 3 * drift + high - low, by_octave, dict(sorted(seen.items())))


def relaxation_rate(law: InterpolationTransition, gamma: float, end: float, steps: int) -> tuple[float, float]:
    """Late exponential rate of the train error above threshold, and its drift over the last two eighths of the time."""
    from limitlab.numerics.two_time import extrapolate

    dynamics = law.replace(second_layer=gamma).dynamics(times=end, steps=steps)
    times = end * np.array([0.5, 0.625, 0.75])
    errors = extrapolate(dynamics.march, steps, times, 2, ("train_error",)).values["train_error"]
    if np.any(errors <= 0):
        raise ConvergenceError(
            f"the train error at gamma = {gamma:g} falls below the accuracy of the grid before {end:g}: use an earlier end"
        )
    rates = -np.diff(np.log(errors)) / np.diff(times)
    return float(rates[1]), float(abs(rates[1] - rates[0]))
