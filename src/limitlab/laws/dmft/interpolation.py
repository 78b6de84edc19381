"""When can gradient flow fit pure noise, and how does a growing second layer get there? (claims D3, D4, D5)

Setting.  Labels are noise of standard deviation tau; m neurons, second layer a_j = gamma sqrt(m), n = alpha m d samples.
Limit.    n, d, then m -> infinity at fixed alpha. With a frozen second layer one system without m remains: the equations of
          `limitlab.laws.dmft.equations` for one neuron, a = gamma, n/d = alpha and the kernel without constant and linear parts.
Result.   The train error goes to zero if and only if gamma > gamma_GF(alpha), eq. (14) of docs/theory/two_layer_dynamics.md. When the
          second layer is free, a = sqrt(m) gamma(t / m), and gamma grows along the plateaus of (13) until gamma_GF, eq. (15).
Status.   Conjecture: (13) to (15) rest on an ansatz about aging. `locate_threshold` measures gamma_GF from the two-time equations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pydantic import model_validator

from limitlab.errors import ConvergenceError
from limitlab.laws.base import Law
from limitlab.laws.dmft.aging import Plateau, Reduced, plateau, threshold
from limitlab.laws.dmft.kernels import kernels_of
from limitlab.laws.dmft.parameters import PAPER
from limitlab.laws.dmft.two_layer import TwoLayerDynamics
from limitlab.laws.parameters import parameter
from limitlab.laws.results import Values, package
from limitlab.models.activations import Activation

Floats = NDArray[np.float64]


class _PureNoise(Law):
    """Parameters of pure-noise training in the limit of large width."""

    status: ClassVar = "conjecture"
    references: ClassVar = (PAPER,)

    ratio: float = parameter(
        0.3, "samples per parameter of the first layer", symbol=r"\alpha = n/(md)", above=0, scale="log"
    )
    noise: float = parameter(1.0, "standard deviation of the labels", symbol=r"\tau", least=0)
    kernel: tuple[float, ...] | None = parameter(
        None, "coefficients of h(q) from degree 0; None: of the activation, or q^2 if that is None too", symbol="h"
    )
    activation: Activation | None = parameter(None, "activation of the neurons, in place of a kernel", symbol=r"\sigma")

    @model_validator(mode="after")
    def _nonlinear(self) -> Self:
        coefficients = self.coefficients()
        if min(coefficients) < 0:
            raise ValueError(
                f"kernel = {coefficients} is not allowed: coefficients of h must be at least 0 (they are squares c_k^2)"
            )
        if coefficients[0] > 1e-12:
            raise ValueError(
                f"kernel = {coefficients} is not allowed: h(0) must be 0, otherwise the output has a mean of order sqrt(m)"
            )
        if sum(coefficients[2:]) == 0:
            raise ValueError(
                f"kernel = {coefficients} is not allowed: it must have a part of degree 2 or more, linear neurons have no transition"
            )
        return self

    def coefficients(self) -> tuple[float, ...]:
        """Coefficients of h, from whichever way they were given."""
        if self.kernel is not None and self.activation is not None:
            raise ValueError("kernel is not allowed together with activation: give one of them")
        if self.activation is not None:
            return kernels_of(self.activation, None).kernel
        return (0.0, 0.0, 1.0) if self.kernel is None else self.kernel

    def reduced(self) -> Reduced:
        """What the long-time limit sees of the kernel."""
        return Reduced.of(self.coefficients())


class InterpolationTransition(_PureNoise):
    """How large must the second layer be for gradient flow to fit pure noise?

    Examples
    --------
    >>> law = InterpolationTransition(ratio=0.3, kernel=(0, 0, 1.0))
    >>> round(float(law.theory().threshold), 6)
    0.420084
    >>> round(law.residual(0.6 * 0.420084), 5)
    0.14479
    """

    regime: ClassVar = "n, d -> infinity, then m -> infinity, at fixed n / (m d); then t -> infinity for the threshold"
    assumptions: ClassVar = (
        "pure noise, frozen second layer gamma sqrt(m), centred activation",
        "threshold and residual: one effective temperature for the slow part of the dynamics (unproved; for kernels that mix powers it "
        "is only an approximation)",
        "near ratio = 1 the aging equations have further roots: ratio > 0.9 is beyond what was checked",
    )
    claims: ClassVar = ("D3", "D4")
    observables: ClassVar = ("train_error",)
    default_sizes: ClassVar = (20, 40, 80)
    default_seeds: ClassVar = 30

    second_layer: float = parameter(0.5, "scale of the frozen second layer, a / sqrt(m)", symbol=r"\gamma", least=0)
    times: float | tuple[float, ...] = parameter((0.0, 1.0, 2.0, 4.0), "times of the train error", symbol="t", least=0)
    steps: int = parameter(240, "time steps of the finest grid", symbol="N", least=8)

    def coordinates(self) -> dict[str, Any]:
        """The times."""
        return {"time": self.times}

    def dynamics(self, **changes: Any) -> TwoLayerDynamics:
        """The system of the large-width limit: one neuron, kernel without constant and linear parts, frozen second layer."""
        coefficients = (0.0, 0.0, *self.coefficients()[2:])
        given: dict[str, Any] = dict(
            width=1,
            sample_ratio=self.ratio,
            noise=self.noise,
            kernel=coefficients,
            target=(),
            start_second_layer=self.second_layer,
            start_overlap=0.0,
            frozen=True,
            times=self.times,
            steps=self.steps,
        )
        return TwoLayerDynamics(**{**given, **changes})

    def threshold(self) -> float:
        """gamma_GF in closed form; inf for ratio >= 1, where there are more equations than parameters."""
        reduced = self.reduced()
        return float(threshold(self.ratio, self.noise, reduced.h0, reduced.h1, reduced.h2))

    def plateau(self, gamma: float) -> Plateau:
        """The long-time state at second layer gamma."""
        if self.ratio >= 1:
            raise ValueError(
                f"ratio = {self.ratio:g} is not allowed for the long-time limit: must be below 1; use theory().train_error at late times"
            )
        if gamma < 0:
            raise ValueError(f"gamma = {gamma:g} is not allowed: must be at least 0")
        return plateau(gamma, self.ratio, self.noise, self.reduced())

    def residual(self, gamma: float) -> float:
        """The limit of the train error as t -> infinity at second layer gamma; 0 from the threshold on."""
        return self.plateau(gamma).residual

    def evaluate(self, **grid: Any) -> Values:
        """The train error at the times of the law, from the two-time equations."""
        values = self.dynamics().evaluate(**grid)
        return {"train_error": values["train_error"], "accuracy": values["accuracy"]}

    def theory(self) -> xr.Dataset:
        """Train error at the times, and the closed-form `threshold` beside it."""
        result = package(self, self.evaluate(), kind="theory")
        result["threshold"] = xr.Variable(
            (), self.threshold(), dict(long_name="threshold of interpolation", symbol=r"\gamma_{GF}")
        )
        return result

    def realised(self, size: int) -> Self:
        """n = round(ratio * size) equations in `size` dimensions."""
        return self.replace(ratio=max(1, round(self.ratio * size)) / size)

    def experiment(self, size: int, seed: int, **path: Any) -> Values:
        """Gradient flow on alpha d random Gaussian equations for one unit vector."""
        return {"train_error": self.dynamics().experiment(size, seed)["train_error"]}


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


class AdiabaticGrowth(_PureNoise):
    """How fast does the second layer grow when a wide network is trained on pure noise?

    Times are s = t / m. Adiabatic approximation: gamma follows the plateaus of the frozen problem and stops at the threshold.

    Examples
    --------
    >>> law = AdiabaticGrowth(ratio=0.5, kernel=(0, 0.5, 0, 0.5), times=(0.5, 1.0, 2.0))
    >>> law.theory().second_layer.values.round(3)
    array([0.289, 0.443, 0.59 ])
    """

    regime: ClassVar = "n, d, then m -> infinity at fixed n / (m d), in the time s = t / m"
    assumptions: ClassVar = (
        "pure noise, centred activation, a_j(0) = O(1)",
        "time scales separate; ansatz of the aging equations",
    )
    claims: ClassVar = ("D5",)
    observables: ClassVar = ("second_layer", "train_error")

    ratio: float = parameter(
        0.5, "samples per parameter of the first layer", symbol=r"\alpha = n/(md)", above=0, below=1, scale="log"
    )
    times: float | tuple[float, ...] = parameter((0.25, 0.5, 1.0, 2.0, 4.0), "slow times s = t / m", symbol="s", least=0)

    def coordinates(self) -> dict[str, Any]:
        """The slow times."""
        return {"time": self.times}

    def initial_slope(self) -> float:
        """gamma_* = tau sqrt(alpha) E_th: gamma(s) = gamma_* s at the start.

        >>> round(AdiabaticGrowth(ratio=0.5, kernel=(0, 0.5, 0, 0.5)).initial_slope(), 4)
        0.8165
        """
        return float(self.noise * np.sqrt(self.ratio) * self.reduced().threshold_energy)

    def saturation(self) -> float:
        """gamma_GF, where growth stops."""
        reduced = self.reduced()
        return float(threshold(self.ratio, self.noise, reduced.h0, reduced.h1, reduced.h2))

    def evaluate(self, **grid: Any) -> Values:
        """gamma(s) (in units of sqrt(m)) and the train error there."""
        from scipy.integrate import solve_ivp

        times = np.atleast_1d(np.asarray(self.times, dtype=float))
        reduced, top = self.reduced(), self.saturation()
        first = min(1e-3, 1e-3 * top)
        begin = first / self.initial_slope() if top > 0 else np.inf  # gamma is gamma_* s up to there

        def speed(_: float, gamma: Floats) -> list[float]:
            if gamma[0] >= top * (1 - 1e-7):
                return [0.0]
            return [plateau(max(float(gamma[0]), first), self.ratio, self.noise, reduced).growth]

        gamma = np.minimum(self.initial_slope() * times, top)
        late = times > begin
        if np.any(late):
            solution = solve_ivp(speed, (begin, times[-1]), [first], "RK45", times[late], rtol=1e-7, atol=1e-9)
            gamma[late] = np.minimum(solution.y[0], top)
        error = np.array([plateau(float(x), self.ratio, self.noise, reduced).residual for x in gamma])
        if np.ndim(self.times) == 0:
            return {"second_layer": float(gamma[0]), "train_error": float(error[0]), "accuracy": 1e-5}
        return {"second_layer": gamma, "train_error": error, "accuracy": 1e-5}
