"""When can gradient flow fit pure noise? (claims D3, D4)

Setting.  Labels are noise of standard deviation tau; m neurons, second layer a_j = gamma sqrt(m), frozen; n = alpha m d samples.
Limit.    n, d, then m -> infinity at fixed alpha. One system without m remains: the equations of `limitlab.laws.dmft.equations` for
          one neuron, a = gamma, n/d = alpha and the kernel without constant and linear parts.
Result.   The train error goes to zero if and only if gamma > gamma_GF(alpha), eq. (2) of docs/theory/interpolation.md.
Status.   The two-time equations are derived. The threshold is a conjecture: it rests on an ansatz about aging; `locate_threshold` of
          `limitlab.laws.dmft.transition` measures it from the two-time equations.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import xarray as xr

from limitlab.laws.dmft.aging import Plateau, plateau, threshold
from limitlab.laws.dmft.pure_noise import PureNoise
from limitlab.laws.dmft.two_layer import STEPS, TwoLayerDynamics
from limitlab.laws.parameters import parameter
from limitlab.laws.results import Values, package


class InterpolationTransition(PureNoise):
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
        "threshold and residual: one effective temperature for the slow part of the dynamics (unproved). Against trajectories the "
        "threshold is right within 1 % for ratio up to 0.3 and low beyond (2 to 3 % at 0.5, 5 to 9 % at 0.7), the residual low near it",
        "near ratio = 1 the aging equations have further roots: ratio > 0.9 is beyond what was checked",
    )
    claims: ClassVar = ("D3", "D4")
    observables: ClassVar = ("train_error",)
    default_sizes: ClassVar = (30, 60, 120)
    default_seeds: ClassVar = 150

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

    def finite_width(self, width: int, **changes: Any) -> TwoLayerDynamics:
        """The same problem for m neurons, n/d = alpha m and a = gamma sqrt(m): what the limit of large width is the limit of.

        >>> wide = InterpolationTransition(kernel=(0, 0.5, 0.5), times=2.0)
        >>> gap = wide.theory().train_error - wide.finite_width(40).theory().train_error
        >>> bool(0 < gap < 0.05)
        True
        """
        given: dict[str, Any] = dict(
            width=width,
            sample_ratio=self.ratio * width,
            kernel=self.coefficients(),
            start_second_layer=self.second_layer * float(np.sqrt(width)),
        )
        return self.dynamics(**{**given, **changes})

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
        return self.replace(ratio=self.samples(size) / size)

    def experiment(self, size: int, seed: int, **path: Any) -> Values:
        """Gradient flow on alpha d random Gaussian equations for one unit vector."""
        from limitlab.laws.dmft import simulation

        rng, limit = self.rng(size, seed), self.dynamics()
        w, direction = simulation.exchangeable_weights(rng, size, 1, 0.0, 0.0)
        samples = simulation.gaussian_samples(rng, limit.kernels(), self.samples(size), direction, 1.0)
        samples = simulation.with_label_norm(samples, self.noise)
        times = np.atleast_1d(np.asarray(self.times, dtype=float))
        step = STEPS["gaussian"] / max(1.0, limit.fastest_rate())
        track = simulation.gradient_flow(samples, w, np.array([self.second_layer]), times, step, 0.0)
        error = np.array(track.train_error)
        return {"train_error": error if np.ndim(self.times) else error[0]}
