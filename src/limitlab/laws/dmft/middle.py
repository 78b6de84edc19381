"""Middle regime of training on pure noise, in which the second layer grows as the energy of a spherical spin model rises.

Setting.  Labels are noise of standard deviation tau; m neurons that are orthogonal at the start, a_j(0) = a_0 of order 1; n = alpha m d
          samples.
Limit.    n, d, then m -> infinity at fixed x = tau sqrt(alpha/m) t: times of order sqrt(m), after the mean neuron has relaxed (times of
          order 1) and before the network overfits (times of order m, `AdiabaticGrowth`).
Result.   With h~(q) = h(q) - h'(0) q every neuron follows the gradient flow of the spherical spin model with covariance d h~, in a
          separate time s (the clock), and its energy e(s) drives the second layer (docs/theory/interpolation.md, eqs. 7-10):

              ds/dx = a,   da/dx = e(s),   so that a^2 = a_0^2 + 2 int_0^s e,   C_d(t, 0) = C(s, 0).

          Late e tends to the threshold energy E_th of the spin model, and then a ~ tau sqrt(alpha) E_th t / sqrt(m), which is the
          beginning of `AdiabaticGrowth`.
Status.   Derived from the two-time equations of m neurons, and checked against them (the gap halves for every factor 4 in m) and against
          Gaussian tensors. The limit E_th of e is a known result of physics and is checked to a per cent.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.cost import Cost
from limitlab.errors import Refused
from limitlab.laws import Draw, Experiment, Headline, Values, observable, parameter, shared
from limitlab.laws.dmft._aging import PureNoise
from limitlab.laws.dmft._equations import power_series
from limitlab.laws.dmft._parameters import check_degree
from limitlab.laws.dmft.two_layer import TwoLayerDynamics
from limitlab.numerics.two_time import Flow, History, extrapolate, march

__all__ = ["MiddleRegime"]

Floats = NDArray[np.float64]


class SpinFlow(NamedTuple):
    """Energy per dimension of the spin model and its correlation with the start, at times of the spin model."""

    energy: Floats
    correlation: Floats


@dataclass(frozen=True)
class SpinModel:
    """Zero-temperature flow of the spherical spin model with covariance d h~ (eqs. 8 and 9), at the speed of the second layer.

    Times of the march are x. With a frozen second layer of 1, x equals the clock s.
    """

    coefficients: tuple[float, ...]
    second_layer: float
    frozen: bool = False

    correlations = ("C",)
    responses = ("R",)
    auxiliaries = ()
    functions = ("second_layer", "clock")
    observed = ("energy", "correlation_with_start")

    def start(self) -> Mapping[str, float]:
        """Return the values of unit weights at time 0."""
        return {"second_layer": self.second_layer, "clock": 0.0, "C": 1.0}

    def constrain(self, history: History) -> None:
        """Set C(t, t) = 1."""
        history.row("C")[-1] = 1.0

    def flow(self, history: History) -> Flow:
        """Return the right sides of (8) and (9), with memory integrals over the clock, ds = a dx."""
        correlation, response, a = history.row("C"), history.row("R"), history.path("second_layer")
        _, slope, curve = power_series(np.array(self.coefficients), correlation)
        memory, drive = a * curve * response, a * slope
        response_force, drive_force = history.both(memory, drive, "R")
        force = history.whole(memory, "C") + drive_force
        speed, multiplier, energy = float(a[-1]), float(force[-1]), history.total(drive * response)
        return Flow(
            rates={"C": speed * multiplier, "R": speed * multiplier, "second_layer": 0.0, "clock": 0.0},
            forcings={
                "C": speed * force,
                "R": speed * response_force,
                "second_layer": 0.0 if self.frozen else energy,
                "clock": speed,
            },
            observed={"energy": energy, "correlation_with_start": float(correlation[0])},
        )


@functools.lru_cache(maxsize=32)
def _solved(model: SpinModel, times: tuple[float, ...], steps: int) -> tuple[dict[str, Floats], dict[str, float]]:
    """Return the values at the times, and their errors."""
    at = np.array(times)
    names = (*model.functions, *model.observed)
    if at.max(initial=0.0) == 0:
        first = {"second_layer": model.second_layer, "clock": 0.0, "energy": 0.0, "correlation_with_start": 1.0}
        return {name: np.full(at.size, first[name]) for name in names}, dict.fromkeys(names, 1e-12)
    solution = extrapolate(lambda n: march(model, float(at.max()), n), steps, at, names=names)
    return dict(solution.values), {name: float(solution.errors[name].max()) + 1e-9 for name in names}


class MiddleRegime(PureNoise):
    """How does the second layer of a wide network grow on pure noise before the network can overfit?

    Examples
    --------
    >>> law = MiddleRegime(kernel=(0, 0.5, 0, 0.5), x=(0.5, 1.0, 2.0))
    >>> law.theory().second_layer.values.round(3)
    array([1.165, 1.528, 2.453])
    >>> round(law.threshold_energy(), 5), law.spin_flow([1.0, 4.0]).energy.round(3)
    (1.1547, array([0.783, 1.015]))
    """

    status = "derived"
    page = "interpolation"
    regime = "n, d, then m -> infinity at fixed n / (m d), in times of order sqrt(m): x = tau sqrt(alpha / m) t"
    assumptions = ("pure noise, centred activation, a_j(0) = a_0", "neurons that are orthogonal at the start")
    observables = {
        **shared("second_layer"),
        "correlation_with_start": observable("correlation of a neuron with its start", "C_d(t,0)", least=-1, most=1),
        "clock": observable("time of the spin model", "s"),
    }
    simulation = Experiment(
        "dimension d of the Gaussian tensors",
        sizes=(20, 40, 80),
        draws=40,
        rate=1.0,  # measured: the gap of a at x = 1.5 falls from 0.060 to 0.011 between d = 20 and 80
    )
    # Degrees two and three, a start that is not 1
    points = (dict(kernel=(0.0, 0.5, 0.3, 0.2), start_second_layer=0.8, x=(0.5, 1.5)),)
    headline = Headline(
        "Neurons turn away while outputs grow",
        x="x",
        over=(0.0, 4.0, 41),
        show=("second_layer", "correlation_with_start"),
        panels=True,
        size=40,
        draws=4,
        places=(0.5, 1.0, 2.0, 3.0, 4.0),
        sliders=("start_second_layer", "kernel"),
    )

    samples_per_weight: float = parameter(0.5, note="changes only the unit of x", above=0, scale="log")
    kernel: tuple[float, ...] | None = parameter(None, note="None: of the activation, or q^2 if that is None too")
    start_second_layer: float = parameter(1.0, note="of every neuron", above=0)
    x: float | tuple[float, ...] = parameter(
        (0.5, 1.0, 2.0),
        "times of order sqrt(m)",
        note="tau sqrt(alpha/m) t",
        symbol="x",
        kind="coordinate",
        least=0,
        most=50,
    )
    solver_steps: int = parameter(40, note="steps per unit of the clock", kind="solver", least=8, most=1000, finer=2)

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of a random polynomial with its tensors and gradients."""
        check_degree(
            type(self).__name__, self.activation, self.coefficients(), "use a polynomial, such as 'h2', or a kernel"
        )
        return Cost(
            1e5 + 8.0 * float(size) ** max(len(self.coefficients()) - 1, 1),
            250.0 * float(size) ** max(len(self.coefficients()) - 1, 1),
        )

    def reduced_coefficients(self) -> tuple[float, ...]:
        """Return the coefficients of the kernel h without its constant and its linear term."""
        return (0.0, 0.0, *self.coefficients()[2:])

    def threshold_energy(self) -> float:
        """Return E_th, the limit of the energy of the spin model at late times.

        The growth at times of order m begins with the slope gamma_* = tau sqrt(alpha) E_th."""
        return float(self.reduced().threshold_energy)

    def spin_flow(self, s: ArrayLike) -> SpinFlow:
        """Return energy and correlation with the start of the spin model, at times of this model."""
        at = np.atleast_1d(np.asarray(s, dtype=float))
        order = tuple(float(value) for value in np.unique(at))
        steps = max(40, int(np.ceil(self.solver_steps * max(order))))
        values, _ = _solved(SpinModel(self.reduced_coefficients(), 1.0, frozen=True), order, steps)
        place = np.searchsorted(order, at)
        curves = (values[name][place].reshape(np.shape(s)) for name in ("energy", "correlation_with_start"))
        return SpinFlow(*curves)

    def predicted(self, x: Floats) -> Values:
        """Return the solution of (7) to (9), extrapolated from three grids."""
        end = float(np.max(x))
        units = max(
            1.0, end * (self.start_second_layer + end * self.threshold_energy() / 2)
        )  # an upper bound of the clock at the end
        values, errors = _solved(
            SpinModel(self.reduced_coefficients(), self.start_second_layer),
            tuple(float(value) for value in np.ravel(x)),
            max(40, int(np.ceil(self.solver_steps * units))),
        )
        names = tuple(type(self).observables)
        return {**{name: values[name] for name in names}, "accuracy": {name: errors[name] for name in names}}

    def measured(self, draw: Draw, x: Floats) -> Values:
        """Run gradient ascent of one neuron on a random polynomial in `size` dimensions, with a second layer that the energy drives."""
        from limitlab.laws.dmft._spin_ascent import ascent

        means = ascent(draw.rng, self.reduced_coefficients(), draw.size, self.start_second_layer, True, x)
        return {name: means[name] for name in type(self).observables}

    def finite_width(self, width: int, **changes: Any) -> TwoLayerDynamics:
        """Return the two-time equations of m = `width` neurons at the times of the law, without sampling noise.

        >>> law = MiddleRegime(kernel=(0, 0.5, 0, 0.5), x=1.0)
        >>> finite = law.finite_width(20).theory()
        >>> round(float(finite.second_layer), 3), round(float(law.theory().second_layer), 3)
        (1.31, 1.528)
        """
        if self.noise == 0:
            raise Refused("noise = 0 is not allowed here: must be above 0, because the times are proportional to 1 / noise")
        scaled = np.asarray(self.x, dtype=float) * np.sqrt(width / self.samples_per_weight) / self.noise
        parameters: dict[str, Any] = dict(
            width=width,
            sample_ratio=self.samples_per_weight * width,
            noise=self.noise,
            kernel=self.coefficients(),
            target=(),
            start_second_layer=self.start_second_layer,
            start_overlap=0.0,
            start_correlation=0.0,
            times=float(scaled) if scaled.ndim == 0 else tuple(float(t) for t in scaled),
            solver_steps=max(100, int(np.ceil(8 * np.max(scaled)))),
        )
        return TwoLayerDynamics(**{**parameters, **changes})
