"""When can gradient flow fit pure noise?

Setting.  Labels are noise of standard deviation tau; m neurons, second layer a_j = gamma sqrt(m), frozen; n = alpha m d samples.
Limit.    n, d, then m -> infinity at fixed alpha. One system without m remains: the equations of `limitlab.laws.dmft._equations` for
          one neuron, a = gamma, n/d = alpha and the kernel without constant and linear parts.
Result.   The train error goes to zero if and only if gamma > gamma_GF(alpha), eq. (2) of docs/theory/interpolation.md.
Status.   The two-time equations are derived. The threshold is a conjecture, because it rests on an ansatz about aging. `locate_threshold`
          of `limitlab.laws.dmft._transition` measures the threshold from the two-time equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab._core.cost import Cost, latest
from limitlab.errors import Refused
from limitlab.laws import Draw, Experiment, Headline, Mark, Values, observable, parameter, shared
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
        "threshold": observable("threshold of interpolation", r"\gamma_{GF}", scalar=True, compared=False, least=0),
    }
    simulation = Experiment(sizes=(30, 60, 120), draws=150)

    # A kernel with several degrees, noise below 1, times before and after the fit slows down
    points = (dict(samples_per_weight=0.5, noise=0.7, kernel=(0.0, 0.4, 0.6), second_layer=0.8, times=(0.5, 1.0, 2.0, 4.0)),)
    headline = Headline(
        "A large second layer can fit pure noise",
        x="second_layer",
        over=(0.0, 1.0, 51),
        show=("final_train_error",),
        curves=("samples_per_weight", (0.2, 0.4, 0.6)),
        size=60,
        draws=4,
        places=(0.1, 0.2, 0.3, 0.4, 0.6, 0.8),
        sliders=("noise", "kernel"),
        marks=(Mark("x", lambda law: law.threshold(), "threshold", each=True),),
    )

    second_layer: float = parameter(0.5, note="frozen, over the square root of the width", symbol=r"\gamma", least=0)
    times: float | tuple[float, ...] = parameter(
        (0.0, 1.0, 2.0, 4.0), note="in the unit in which weights change by order 1", kind="coordinate", least=0
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
        """Return the system of the large-width limit, with one neuron, a kernel from degree 2 on, and frozen second layer."""
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
        """Return the same problem for a network of finite width, whose limit for large width is this law.

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

    def headline_line(self, values: Floats) -> dict[str, Floats]:
        """Return the limit of the train error at second layers, for the headline view."""
        return {"final_train_error": np.array([self.residual(float(gamma)) for gamma in values])}

    def headline_points(self, size: int, seeds: Sequence[int], places: Floats) -> dict[str, Floats]:
        """Return the train error of finite systems at the late time 20, for the headline view."""
        laws = [self.replace(second_layer=float(gamma), times=20.0) for gamma in places]
        rows = [[float(law.experiment(size, seed)["train_error"]) for law in laws] for seed in seeds]
        return {"final_train_error": np.array(rows)}

    def threshold(self) -> float:
        """Return gamma_GF, the second layer divided by sqrt(m) above which gradient flow fits pure noise.

        It is the closed form (2) of docs/theory/interpolation.md. It is inf for samples_per_weight >= 1, because there are then more
        samples than weights."""
        reduced = self.reduced()
        return float(threshold(self.samples_per_weight, self.noise, reduced.h0, reduced.h1, reduced.h2))

    def plateau(self, gamma: float) -> Plateau:
        """Return the state at late times if the second layer divided by sqrt(m) is frozen at gamma."""
        if self.samples_per_weight >= 1:
            raise Refused(
                f"samples_per_weight = {self.samples_per_weight:g} is not allowed for the long-time limit: must be below 1; "
                "use theory().train_error at late times"
            )
        if gamma < 0:
            raise Refused(f"gamma = {gamma:g} is not allowed: must be at least 0")
        return plateau(gamma, self.samples_per_weight, self.noise, self.reduced())

    def residual(self, gamma: float) -> float:
        """Return the train error after infinite time if the second layer is frozen at gamma sqrt(m). It is 0 from the threshold on."""
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
        """Run gradient flow of one unit vector of d weights on `samples_per_weight` * d random Gaussian equations."""
        from limitlab.laws.dmft._finite import gaussian_model, training

        rng, limit = draw.rng, self.dynamics()
        w, direction = training.exchangeable_weights(rng, draw.size, 1, 0.0, 0.0)
        count = draw.count("samples_per_weight")
        data = gaussian_model.gaussian_samples(rng, limit.kernels(), count, direction, 1.0)
        data = training.with_label_norm(data, self.noise)
        step = STEPS["gaussian"] / max(1.0, limit.fastest_rate())
        track = training.gradient_flow(data, w, np.array([self.second_layer]), times, step, 0.0)
        return {"train_error": track.train_error(data)}
