"""When can gradient flow fit pure noise?

Setting.  Labels are noise of standard deviation tau; m neurons, second layer a_j = gamma sqrt(m), frozen; n = alpha m d samples.
Limit.    n, d, then m -> infinity at fixed alpha. One system without m remains: the equations of `limitlab.laws.dmft._equations` for
          one neuron, a = gamma, n/d = alpha and the kernel without constant and linear parts.
Result.   The train error goes to zero if and only if gamma > gamma_GF(alpha), eq. (2) of docs/theory/interpolation.md.
Status.   The two-time equations are derived. The threshold is a conjecture, because it rests on an ansatz about aging. `locate_threshold`
          of `limitlab.laws.dmft._transition` measures the threshold from the two-time equations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab._core.cost import Cost, latest
from limitlab.errors import Refused
from limitlab.laws import Draw, Experiment, Values, observable, parameter, shared
from limitlab.laws.dmft._aging import Plateau, PureNoise, plateau, threshold
from limitlab.laws.dmft._finite.gaussian_model import monomials
from limitlab.laws.dmft._parameters import check_degree
from limitlab.laws.dmft.two_layer import STEPS, TwoLayerDynamics

__all__ = ["InterpolationTransition"]

Floats = NDArray[np.float64]


class InterpolationTransition(PureNoise):
    """How large must the second layer be for gradient flow to fit pure noise?

    Examples
    --------
    >>> law = InterpolationTransition(samples_per_weight=0.3, kernel=(0, 0, 1.0))
    >>> round(float(law.theory().threshold), 6)
    0.420084
    >>> round(law.residual(0.6 * 0.420084), 5)
    0.14479
    """

    regime = "n, d -> infinity, then m -> infinity, at fixed n / (m d); then t -> infinity for the threshold"
    page = "interpolation"
    assumptions = (
        "pure noise, frozen second layer gamma sqrt(m), centred activation",
        "threshold and residual: one effective temperature for the slow part of the dynamics (unproved). Against trajectories the "
        "threshold is right within 1 % up to 0.3 samples per weight and too low beyond (2 to 3 % at 0.5, 5 to 9 % at 0.7). The "
        "residual is too low near the threshold",
        "near samples_per_weight = 1 the aging equations have further roots, and ratios above 0.9 were not checked",
    )
    observables = {
        **shared("train_error"),
        "threshold": observable("threshold of interpolation", r"\gamma_{GF}", scalar=True, compared=False),
    }
    simulation = Experiment(sizes=(30, 60, 120), draws=150)

    # A kernel with several degrees, noise below 1, times before and after the fit slows down
    points = (dict(samples_per_weight=0.5, noise=0.7, kernel=(0.0, 0.4, 0.6), second_layer=0.8, times=(0.5, 1.0, 2.0, 4.0)),)

    second_layer: float = parameter(0.5, note="frozen, over the square root of the width", symbol=r"\gamma", least=0)
    times: float | tuple[float, ...] = parameter(
        (0.0, 1.0, 2.0, 4.0), note="on the scale on which the weights move", kind="coordinate", least=0
    )
    solver_steps: int = parameter(
        240,
        note="time steps of the finest of the three grids that are extrapolated",
        symbol="N",
        kind="solver",
        least=8,
        finer=2,
    )

    def dynamics(self, **changes: Any) -> TwoLayerDynamics:
        """Return the system of the large-width limit, with one neuron, no constant and linear parts of h, and frozen second layer."""
        coefficients = (0.0, 0.0, *self.coefficients()[2:])
        parameters: dict[str, Any] = dict(
            width=1,
            sample_ratio=self.samples_per_weight,
            noise=self.noise,
            kernel=coefficients,
            target=(),
            start_second_layer=self.second_layer,
            start_overlap=0.0,
            frozen=True,
            times=self.times,
            solver_steps=self.solver_steps,
        )
        return TwoLayerDynamics(**{**parameters, **changes})

    def finite_width(self, width: int, **changes: Any) -> TwoLayerDynamics:
        """Return the same problem for m neurons with n/d = alpha m and a = gamma sqrt(m), whose limit for large m is this law.

        >>> wide = InterpolationTransition(kernel=(0, 0.5, 0.5), times=2.0)
        >>> gap = wide.theory().train_error - wide.finite_width(40).theory().train_error
        >>> bool(0 < gap < 0.05)
        True
        """
        parameters: dict[str, Any] = dict(
            width=width,
            sample_ratio=self.samples_per_weight * width,
            kernel=self.coefficients(),
            start_second_layer=self.second_layer * float(np.sqrt(width)),
        )
        return self.dynamics(**{**parameters, **changes})

    def threshold(self) -> float:
        """Return gamma_GF in closed form, or inf for samples_per_weight >= 1, where equations outnumber parameters."""
        reduced = self.reduced()
        return float(threshold(self.samples_per_weight, self.noise, reduced.h0, reduced.h1, reduced.h2))

    def plateau(self, gamma: float) -> Plateau:
        """Return the long-time state at second layer gamma."""
        if self.samples_per_weight >= 1:
            raise Refused(
                f"samples_per_weight = {self.samples_per_weight:g} is not allowed for the long-time limit: must be below 1; "
                "use theory().train_error at late times"
            )
        if gamma < 0:
            raise Refused(f"gamma = {gamma:g} is not allowed: must be at least 0")
        return plateau(gamma, self.samples_per_weight, self.noise, self.reduced())

    def residual(self, gamma: float) -> float:
        """Return the limit of the train error as t -> infinity at second layer gamma, which is 0 from the threshold on."""
        return self.plateau(gamma).residual

    def predicted(self, times: Floats) -> Values:
        """Return the train error at the times of the law from the two-time equations, and the closed-form threshold."""
        values = self.dynamics().evaluate()
        error = values["accuracy"]["train_error"]
        return {
            "train_error": values["train_error"],
            "threshold": self.threshold(),
            "accuracy": {"train_error": error},
        }

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of Gaussian tensors of all degrees of the kernel for every equation."""
        check_degree(
            type(self).__name__, self.activation, self.coefficients(), "use a polynomial, such as 'h2', or a kernel"
        )
        entries = self.count("samples_per_weight", size) * monomials(self.dynamics().kernels(), size)
        return Cost(1e5 + 1.1 * entries, 1e7 + 40.0 * entries * max(latest(self), 1.0))

    def measured(self, draw: Draw, times: Floats) -> Values:
        """Run gradient flow on alpha d random Gaussian equations for one unit vector."""
        from limitlab.laws.dmft._finite import gaussian_model, training

        rng, limit = draw.rng, self.dynamics()
        w, direction = training.exchangeable_weights(rng, draw.size, 1, 0.0, 0.0)
        count = draw.count("samples_per_weight")
        data = gaussian_model.gaussian_samples(rng, limit.kernels(), count, direction, 1.0)
        data = training.with_label_norm(data, self.noise)
        step = STEPS["gaussian"] / max(1.0, limit.fastest_rate())
        track = training.gradient_flow(data, w, np.array([self.second_layer]), times, step, 0.0)
        return {"train_error": track.train_error(data)}
