"""Growth of a free second layer when a wide network is trained on pure noise.

Setting.  Labels are noise of standard deviation tau; m neurons, a_j(0) of order 1; n = alpha m d samples.
Limit.    n, d, then m -> infinity at fixed alpha and slow time s = t / m.
Result.   a = sqrt(m) gamma(s). gamma grows until gamma_GF, and the train error is always that of the plateau for a second layer that is
          frozen at gamma, eqs. (3) and (4) of docs/theory/interpolation.md.
Status.   Conjecture, because it assumes separate time scales and the aging ansatz. `AdiabaticGrowth.finite_width` gives the two-time
          equations of m neurons, which test both without sampling noise.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from limitlab._core.cost import Cost
from limitlab.errors import Refused
from limitlab.laws import Draw, Experiment, Headline, Mark, Values, parameter
from limitlab.laws.dmft._aging import PureNoise, Reduced, plateau, threshold
from limitlab.laws.dmft._finite.kernels import Kernels
from limitlab.laws.dmft._parameters import check_degree
from limitlab.laws.dmft.two_layer import TwoLayerDynamics
from limitlab.numerics.ode import states_at

__all__ = ["AdiabaticGrowth"]

Floats = NDArray[np.float64]

SOLVED = 1e-10
"""Accuracy of the plateau equations."""

CAVEAT = (
    "a conjecture; its corrections are not a single power of m, and at widths that can be simulated the error budget is mostly "
    "finite-size allowance"
)


class AdiabaticGrowth(PureNoise):
    """How fast does the second layer grow when a wide network is trained on pure noise?

    Times are s = t / m for m neurons, and gamma(s) is the second layer divided by sqrt(m). In the adiabatic approximation the train error
    at every time is the value at which training would end if the second layer were frozen at gamma(s). Growth stops at the threshold
    gamma_GF.

    Examples
    --------
    >>> law = AdiabaticGrowth(samples_per_weight=0.5, kernel=(0, 0.5, 0, 0.5), times=(0.5, 1.0, 2.0))
    >>> law.theory().second_layer.values.round(3)
    array([0.289, 0.443, 0.59 ])
    """

    regime = "n, d, then m -> infinity at fixed n / (m d), in the time s = t / m"
    page = "interpolation"
    assumptions = (
        "pure noise, centred activation, a_j(0) = O(1)",
        "the weights relax much faster than the second layer grows; ansatz of the aging equations",
        "finite widths approach the curve slowly and not like one power of m, so that a comparison at small widths tests only the trend",
        "above about 0.85 samples per weight the root of the plateau equations does not end at the threshold, and the end of the "
        "curve is unchecked",
    )
    observables = ("second_layer", "train_error")
    simulation = Experiment(
        "number of neurons m, in d = m + 40 dimensions",
        sizes=(24, 48, 96),
        rate=(1 / 2, 1.0),  # m^-1/2 from the start, an unknown power near 2/3 from unfinished ageing
    )
    # A mixed kernel and noise below 1, late enough that the start hardly matters. The experiment is the two-time equations, because
    # corrections fall slowly with the width, and sampling noise of networks would be larger than these corrections.
    points = (
        dict(
            samples_per_weight=0.3,
            noise=0.8,
            kernel=(0.0, 0.4, 0.6),
            times=(2.5, 4.0),
            start_second_layer=0.8,
            experiment_model="two-time",
        ),
    )
    headline = Headline(
        "More noisy labels, larger second layer",
        x="times",
        over=(0.0, 3.0, 61),
        show=("second_layer",),
        curves=("samples_per_weight", (0.2, 0.5, 0.8)),
        size=48,
        draws=4,
        places=(0.25, 0.5, 1.0, 1.5, 2.0, 3.0),
        sliders=("noise", "kernel"),
        marks=(Mark("y", lambda law: law.saturation(), "growth ends", each=True),),
    )

    samples_per_weight: float = parameter(0.5, above=0, below=1, scale="log", count="size * value")
    kernel: tuple[float, ...] | None = parameter(
        None, note="None: of the activation, or 0.5 q + 0.5 q^2 if that is None too"
    )
    times: float | tuple[float, ...] = parameter(
        (0.1, 0.3, 1.0, 2.0), note="training time over the width", symbol="s", kind="coordinate", least=0
    )
    start_second_layer: float = parameter(
        1.0, note="of a finite network; the limit does not depend on it", kind="experiment", above=0
    )
    solver_steps: int = parameter(
        40, note="degree of the polynomial for the speed", kind="solver", least=8, most=160, finer=2
    )
    experiment_model: Literal["equations", "network", "two-time"] = parameter(
        "equations",
        note="random Gaussian equations for one neuron (equations), a network of m neurons (network), or the two-time equations of m "
        "neurons, which are free of sampling noise (two-time)",
        kind="experiment",
    )

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of the two-time equations of `size` neurons."""
        if self.experiment_model == "equations":
            remedy = "use experiment_model = 'network' or 'two-time', or a polynomial, such as 'h2'"
            check_degree(type(self).__name__, self.activation, self.coefficients(), remedy)
        return Cost(1e6 + 10.0 * size**2, 800.0 * float(size) ** 3)

    def natural_scale(self, observable: str) -> float:
        """Return the variance of the noise as the scale of train errors, because late ones are nearly zero."""
        return self.noise**2 if observable == "train_error" else 0.0

    def coefficients(self) -> tuple[float, ...]:
        """Return the coefficients of the kernel, from the activation or from `kernel`."""
        return (0.0, 0.5, 0.5) if self.kernel is None and self.activation is None else super().coefficients()

    def initial_slope(self) -> float:
        """Return gamma_* = tau sqrt(alpha) E_th, the slope with which the second layer grows at first, gamma(s) = gamma_* s.

        E_th is the threshold energy, equation (10) of docs/theory/interpolation.md.

        >>> round(AdiabaticGrowth(samples_per_weight=0.5, kernel=(0, 0.5, 0, 0.5)).initial_slope(), 4)
        0.8165
        """
        return float(self.noise * np.sqrt(self.samples_per_weight) * self.reduced().threshold_energy)

    def saturation(self) -> float:
        """Return gamma_GF, the second layer divided by sqrt(m) at which its growth stops."""
        reduced = self.reduced()
        return float(threshold(self.samples_per_weight, self.noise, reduced.h0, reduced.h1, reduced.h2))

    def predicted(self, times: Floats) -> Values:
        """Return the second layer divided by sqrt(m) at the times, and the train error there.

        The accuracy is the change between two interpolants of the speed.
        """
        reduced, top, alpha = self.reduced(), self.saturation(), self.samples_per_weight
        coarse, fine = (
            _shares(tuple(times), alpha, reduced, degree) for degree in (self.solver_steps // 2, self.solver_steps)
        )
        unit_threshold = float(threshold(alpha, 1.0, reduced.h0, reduced.h1, reduced.h2))  # gamma_GF at tau = 1
        errors = [
            np.array([plateau(x * unit_threshold, alpha, 1.0, reduced).residual for x in shares])
            for shares in (coarse, fine)
        ]
        tau2 = self.noise**2
        return dict(
            second_layer=top * fine,
            train_error=tau2 * errors[1],
            accuracy=dict(
                second_layer=top * max(float(np.max(np.abs(fine - coarse))), SOLVED),
                train_error=tau2 * max(float(np.max(np.abs(errors[1] - errors[0]))), SOLVED),
            ),
        )

    def caveat(self) -> str:
        """Return the caveat that a comparison at small widths tests only the trend."""
        return CAVEAT

    def finite_width(self, width: int, **changes: Any) -> TwoLayerDynamics:
        """Return the two-time equations of m = `width` neurons at the times s m, which approach the limit without sampling noise.

        The default step of 1/8 gives a / sqrt(m) at s = 4 within 3e-4 for kernels of degree 3 (measured at m = 40, 80).

        >>> finite = AdiabaticGrowth(times=1.0).finite_width(10)
        >>> finite.times, finite.sample_ratio
        (10.0, 5.0)
        >>> round(float(finite.theory().second_layer) / 10**0.5, 3), round(float(AdiabaticGrowth(times=1.0).theory().second_layer), 3)
        (0.496, 0.433)
        """
        scaled = np.asarray(self.times, dtype=float) * width
        parameters: dict[str, Any] = dict(
            width=width,
            sample_ratio=self.samples_per_weight * width,
            noise=self.noise,
            kernel=self.coefficients(),
            target=(),
            start_second_layer=self.start_second_layer,
            start_overlap=0.0,
            times=float(scaled) if scaled.ndim == 0 else tuple(float(t) for t in scaled),
            solver_steps=max(80, int(np.ceil(8 * np.max(scaled)))),
        )
        return TwoLayerDynamics(**{**parameters, **changes})

    def unknowns(self, size: int) -> int:
        """Return the number of first-layer weights of an experiment, d for the equations of one neuron and m d for a network."""
        return _dimension(size) * (1 if self.experiment_model == "equations" else size)

    def count(self, parameter: str, size: int) -> int:
        """Return the number of samples, `samples_per_weight` for each first-layer weight."""
        return max(1, round(self.samples_per_weight * self.unknowns(size)))

    def realised(self, size: int) -> Self:
        """Return the law with the ratio of the whole numbers of samples and weights, or the same law for the two-time equations."""
        if self.experiment_model == "two-time":
            return self
        return self.replace(samples_per_weight=self.count("samples_per_weight", size) / self.unknowns(size))

    def measured(self, draw: Draw, times: Floats) -> Values:
        """Run gradient flow with both layers free, from equal second-layer weights, to the times of the law times `size`."""
        from limitlab.laws.dmft._finite import gaussian_model, training

        size, rng = draw.size, draw.rng
        if self.experiment_model == "two-time":
            return _finite_width(self, size, tuple(float(t) for t in times))
        neurons = 1 if self.experiment_model == "equations" else size  # "equations" has m only in scale and speed of a
        kernels = Kernels(self.coefficients(), (), 0.0)
        w, direction = training.exchangeable_weights(rng, _dimension(size), neurons, 0.0, 0.0)
        n = draw.count("samples_per_weight")
        if self.experiment_model == "equations":
            kernels = Kernels((0.0, 0.0, *kernels.kernel[2:]), (), 0.0)
            data = gaussian_model.gaussian_samples(rng, kernels, n, direction, 1.0)
        else:
            functions = training.hermite_functions(kernels)
            if self.activation is not None:
                functions = training.network_functions(self.activation, None)
            data = training.network_samples(rng, functions, n, direction, 1.0)
        data = training.with_label_norm(data, self.noise)  # gamma is proportional to tau
        scale = np.sqrt(size / neurons)
        start, step = np.full(neurons, self.start_second_layer / scale), 1.6 / self._fastest_rate(size)
        track = training.gradient_flow(data, w, start, times * size, step, neurons / size)
        second_layer = np.array([a.mean() for a in track.a]) * scale / np.sqrt(size)
        return {"second_layer": second_layer, "train_error": track.train_error(data)}

    def _fastest_rate(self, width: int) -> float:
        """Return the largest rate of the linearised flow, from L_+ of the mean neuron or the Marchenko-Pastur edge of the others."""
        gamma = max(self.saturation(), self.start_second_layer / np.sqrt(width))
        edge = self.reduced().h1 * (1 + np.sqrt(self.samples_per_weight)) ** 2
        linear = self.coefficients()[1] if self.experiment_model == "network" else 0.0
        return max(1.0, gamma**2 * (edge + linear * (self.samples_per_weight * width + 1)))


def width_extrapolation(widths: Sequence[int], values: Sequence[float]) -> tuple[float, float]:
    """Return the limit m -> infinity of a value at three or more widths, and half the range over four forms of the corrections.

    A start a_0 / sqrt(m) corrects gamma(s) at order m^-1/2. Ageing that is not finished after a time s m corrects it at order m^-x with an
    unknown exponent x. The forms are value + b m^-1/2 + c m^-x, x = 2/3, 3/4, 1, and value + b m^-1/3 + c m^-2/3, through the three
    largest widths.

    >>> limit, spread = width_extrapolation((40, 80, 160), [0.4 + m**-0.5 - m**-0.75 for m in (40, 80, 160)])
    >>> abs(limit - 0.4) < spread < 0.03
    True
    """
    if len(widths) < 3:
        raise Refused(f"widths = {tuple(widths)} is not allowed: give at least three")
    m, y = np.array(widths[-3:], dtype=float), np.array(values[-3:], dtype=float)
    limits = [
        float(np.linalg.solve(np.stack([np.ones(3), m**-p, m**-q], axis=1), y)[0])
        for p, q in ((1 / 2, 2 / 3), (1 / 2, 3 / 4), (1 / 2, 1.0), (1 / 3, 2 / 3))
    ]
    return (max(limits) + min(limits)) / 2, (max(limits) - min(limits)) / 2


@functools.lru_cache(maxsize=16)
def _finite_width(law: AdiabaticGrowth, width: int, times: tuple[float, ...]) -> dict[str, Floats]:
    """Return the observables of the two-time equations of `width` neurons, which are the same for every draw."""
    steps = max(80, int(np.ceil(2 * width * times[-1])))  # a step of 1/2 is within 1e-5 of 1/8 at m = 24, 48
    limits = law.replace(times=times).finite_width(width, solver_steps=steps).theory()
    return {"second_layer": limits.second_layer.values / np.sqrt(width), "train_error": limits.train_error.values}


def _dimension(width: int) -> int:
    """Return the dimension d of an experiment."""
    return 40 + width


@functools.lru_cache(maxsize=64)
def _shares(times: tuple[float, ...], ratio: float, reduced: Reduced, degree: int) -> Floats:
    """Return gamma(s) / gamma_GF from (3).

    The speed is a smooth function of gamma / gamma_GF and is interpolated by a polynomial. The result does not depend on the noise,
    because gamma is proportional to tau.
    """
    top = float(threshold(ratio, 1.0, reduced.h0, reduced.h1, reduced.h2))

    def speed(share: Floats) -> Floats:
        return np.array([plateau(float(x) * top, ratio, 1.0, reduced).growth / top for x in share])

    smooth = np.polynomial.Chebyshev.interpolate(speed, degree, domain=[0.0, 1.0])
    states = states_at(lambda _, share: smooth(np.minimum(share, 1.0)), [0.0], np.array(times))
    return np.minimum(states[:, 0], 1.0)
