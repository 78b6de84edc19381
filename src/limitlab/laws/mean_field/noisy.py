"""Noisy training of a wide network, whose free energy decreases to its unique minimum.

Setting.  f(x) = (1/N) sum_i sigma(<theta_i, x>), x ~ N(0, I_D), y = sigma(<theta*, x>), R = E (y - f)^2, independent Gaussian theta_i at
          the start, d theta_i = -(N grad_i R + 2 lambda theta_i) dt + sqrt(2/beta) dW_i.
Limit.    N -> infinity. The distribution of the weights solves d_t rho = div(rho grad Psi) + (1/beta) Lap rho
          (docs/theory/mean_field.md, eq. 11). This equation is the gradient flow of

              F = R + lambda int |theta|^2 rho + (1/beta) int rho log rho,                                               (12)

          F decreases to its unique minimum, rho ~ exp(-beta Psi(.; rho)), as the time tends to infinity.
Result.   Linear neurons stay Gaussian and have the closed form (14). Erf neurons (D = 1) are solved by extrapolated finite volumes.
Status.   Theorem (Mei, Montanari, Nguyen 2018). At rest the regularised risk of linear neurons exceeds its minimum by D/(2 beta),
          for every N.
"""

from __future__ import annotations

import math
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab.errors import Refused
from limitlab.laws import CLOSED_FORM, Draw, Experiment, Headline, Law, Values, observable, parameter, shared
from limitlab.laws.mean_field.potentials import neuron_interaction

__all__ = ["NoisyMeanField"]

Array = NDArray[np.float64]

SETTLED = 5.0  # times 1 / penalty: time after which an experiment counts as at rest (e^(-2 * 5) of the start is left)
WINDOW = 6.0  # times 1 / penalty: length of the time window over which the excess at rest is averaged
SPACING = 0.5  # time between two measurements in this window
STABLE = 0.25  # longest step of an experiment, times 1 + penalty


def linear_path(
    beta: float, penalty: float, teacher: float, mean: float, variance: float, dimension: int, times: ArrayLike
) -> dict[str, Array]:
    """Return the closed form (14) for linear neurons.

    The weights are Gaussian with mean m along the teacher and variance s in every direction.

    >>> path = linear_path(4.0, 0.3, 1.5, 0.0, 1.0, 1, [1.0, np.inf])
    >>> path["risk"].round(12).tolist(), path["free_energy"].round(12).tolist()
    ([0.186497988483, 0.119822485207], [0.41720741876, 0.398929728099])
    """
    t, rest = np.asarray(times, dtype=float), teacher / (1 + penalty)
    m = rest + (mean - rest) * np.exp(-2 * (1 + penalty) * t)
    s_rest = 1 / (2 * penalty * beta)
    s = s_rest + (variance - s_rest) * np.exp(-4 * penalty * t)
    risk, square = (m - teacher) ** 2, m**2 + dimension * s
    entropy = dimension / 2 * np.log(2 * math.pi * math.e * s)
    return dict(risk=risk, free_energy=risk + penalty * square - entropy / beta, mean=m, second_moment=square)


class NoisyMeanField(Law):
    """Which stationary state does noisy training with weight decay have, and how fast does the free energy decrease to it?

    Examples
    --------
    >>> law = NoisyMeanField(neuron="erf", inverse_temperature=20.0, penalty=0.1, times=(0.5, 5.0, float("inf")))
    >>> law.theory().free_energy.values.round(5).tolist()
    [1.03271, 0.14929, 0.14308]
    >>> float(NoisyMeanField(neuron="linear", dimension=3, inverse_temperature=5.0, penalty=0.2).theory().stationary_excess)
    0.3
    """

    status = "theorem"
    regime = "N -> infinity at fixed temperature and dimension, on bounded times and at rest"
    assumptions = (
        "the gradient of the population risk (no sampling noise), independent Gaussian noise in every weight",
        "labels made by one neuron of the same kind, Gaussian inputs",
    )
    references = ("mei2018mean", "hu2021mean")
    page = "mean_field"
    observables = {
        **shared("risk"),
        "free_energy": observable("free energy", "F"),
        "mean": observable("mean weight along the teacher", "m"),
        **shared("second_moment"),
        "stationary_excess": observable(
            "regularised risk at rest minus its minimum", r"R_\lambda - \min R_\lambda", rate=math.inf, scalar=True, least=0
        ),
    }
    simulation = Experiment("number of neurons N", sizes=(50, 100, 200), draws=80)
    # Both kinds of neurons (linear ones in two dimensions), starts on the opposite side of the teacher, and a time at rest
    points = (
        dict(
            neuron="linear",
            inverse_temperature=4.0,
            penalty=0.3,
            teacher=1.5,
            start_mean=-0.5,
            start_std=0.8,
            dimension=2,
            times=(0.2, 0.7, math.inf),
        ),
        dict(
            neuron="erf",
            inverse_temperature=8.0,
            penalty=0.4,
            teacher=2.0,
            start_mean=-0.8,
            start_std=0.6,
            times=(0.3, 1.0, math.inf),
        ),
    )
    headline = Headline(
        "Noise stops the descent at a higher plateau",
        x="times",
        over=(0.0, 5.0, 81),
        show=("risk",),
        curves=("inverse_temperature", (1, 5, 50)),
        at=dict(neuron="erf"),
        size=100,
        draws=4,
        places=(0.25, 0.5, 1.0, 2.0, 3.0, 5.0),
        sliders=("penalty", "start_std"),
    )

    neuron: Literal["linear", "erf"] = parameter("linear", "kind of neuron", symbol=r"\sigma")
    inverse_temperature: float = parameter(
        20.0, "inverse temperature of the noise", symbol=r"\beta", above=0, most=1e4, scale="log"
    )
    penalty: float = parameter(0.1, note="of every neuron", symbol=r"\lambda", above=0, most=100, scale="log")
    teacher: float | tuple[float, ...] = parameter(
        2.0, note="a neuron: its weight along the first axis, or all D weights", least=-100, most=100
    )
    start_mean: float = parameter(-1.0, least=-100, most=100)
    start_std: float = parameter(0.6, above=0, most=100, scale="log")
    dimension: int = parameter(1, note="of the inputs (erf neuron: 1 only)", symbol="D", least=1)
    times: float | tuple[float, ...] = parameter(
        (0.5, 2.0, 5.0), note="inf: at rest", kind="coordinate", least=0, infinite=True
    )
    solver_steps: int = parameter(200, note="cells", kind="solver", least=50, finer=2)
    step: float = parameter(0.1, note="of the stochastic differential equation", kind="experiment", above=0, most=0.5)

    @model_validator(mode="after")
    def _one_weight(self) -> Self:
        if self.neuron == "erf" and self.dimension != 1:
            raise Refused(f"dimension = {self.dimension} is not allowed: the erf neuron has one weight, dimension = 1")
        if self.neuron == "erf" and self.start_std < 0.05:
            raise Refused(
                f"start_std = {self.start_std:g} is not allowed: must be at least 0.05 for an erf neuron, so that cells resolve its density"
            )
        if isinstance(self.teacher, tuple) and len(self.teacher) != self.dimension:
            raise Refused(
                f"teacher = {self.teacher} is not allowed: must be one number or dimension = {self.dimension} of them"
            )
        return self

    def observed(self) -> tuple[str, ...]:
        """Return all observables for linear neurons, and all except the excess at rest for erf neurons."""
        names = tuple(type(self).observables)
        return names if self.neuron == "linear" else names[:-1]

    def predicted(self, times: Array) -> Values:
        """Evaluate the closed form (14), or solve (11) by extrapolated finite volumes."""
        beta, penalty = self.inverse_temperature, self.penalty
        if self.neuron == "linear":
            path = linear_path(beta, penalty, self._strength(), self.start_mean, self.start_std**2, self.dimension, times)
            return {**path, "stationary_excess": self.dimension / (2 * beta), "accuracy": CLOSED_FORM}
        from limitlab.laws.mean_field._free_energy import erf_path

        values, errors = erf_path(beta, penalty, self._strength(), self.start_mean, self.start_std, times, self.solver_steps)
        names = ("risk", "free_energy", "mean", "second_moment")
        return {**dict(zip(names, values.T, strict=True)), "accuracy": dict(zip(names, errors, strict=True))}

    def measured(self, draw: Draw, times: Array) -> Values:
        """Integrate `size` particles of (10), and estimate the entropy from the distances between neighbouring weights."""
        from limitlab.laws.mean_field._training import langevin

        network = self._network()
        start = self.start_std * draw.rng.standard_normal((draw.size, self.dimension))
        start[:, 0] += self.start_mean
        finite, at_rest = times[np.isfinite(times)], int(np.isinf(times).sum())
        late = self._times_at_rest(float(finite.max(initial=0.0)), at_rest > 0)
        states = list(
            langevin(
                draw.rng,
                start,
                lambda theta: network.velocity(theta) - 2 * self.penalty * theta,
                self.inverse_temperature,
                np.concatenate([finite, late]),
                min(self.step, STABLE / (1 + self.penalty)),
            )
        )
        rows = [self._measured_state(network, state) for state in states[: finite.size] + states[-1:] * at_rest]
        values: dict[str, Any] = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        if self.neuron == "linear":
            excess = [network.risk(state) + self.penalty * _mean_square(state) for state in states[finite.size :]]
            values["stationary_excess"] = np.mean(excess) - self.penalty * self._strength() ** 2 / (1 + self.penalty)
        return values

    def interaction(self, a: ArrayLike, b: ArrayLike) -> Array:
        """Return the mean product of two neurons sigma(a x) and sigma(b x) of one weight each, eqs. (3-4).

        >>> round(float(NoisyMeanField(neuron="erf").interaction(2.0, 2.0)), 13)
        0.6970439505474
        """
        name = "erf" if self.neuron == "erf" else "identity"
        return neuron_interaction(np.asarray(a, dtype=float)[..., None], np.asarray(b, dtype=float)[..., None], name)

    def sgd_excess(self, step: float, neurons: int) -> float:
        """Return the stationary excess of the regularised risk over its minimum under noisy one-pass SGD, eq. (15a).

        The network has N linear neurons. Every step uses one sample and adds independent Gaussian noise to every weight. The
        result is exact for every step at which the second moments converge. It tends to `stationary_excess` as the step goes to 0, for
        every N.

        >>> law = NoisyMeanField(neuron="linear", dimension=3, inverse_temperature=20.0, penalty=0.2, teacher=(1.0, -0.5, 0.5))
        >>> [round(law.sgd_excess(step, 20), 4) for step in (0.02, 0.005, 1e-9)]
        [0.0793, 0.076, 0.075]
        """
        if self.neuron != "linear":
            raise Refused(f"neuron = {self.neuron!r} is not allowed here: only linear neurons have a closed form")
        d, beta, lam = self.dimension, self.inverse_temperature, self.penalty
        longest = (1 + lam) / (d + 2 + 2 * lam + lam**2)
        if not 0 < step < longest or neurons < 1:
            raise Refused(
                f"step = {step:g}, neurons = {neurons} is not allowed: step must be above 0 and below {longest:.4g}, neurons at least 1"
            )
        offset = (lam * self._strength() / (1 + lam)) ** 2  # squared distance of the minimum from the teacher
        centre = (2 * step * (d + 1) * offset + d / (beta * neurons)) / (2 * (1 + lam) - 2 * step * (1 + lam) / longest)
        spread = d / beta * (1 - 1 / neurons) / (2 * lam * (1 - step * lam))
        return (1 + lam) * centre + lam * spread

    def density(self, theta: ArrayLike, time: float) -> Array:
        """Return the density of the weight along the teacher at one time, at the given points. The time `inf` means at rest.

        >>> law = NoisyMeanField(neuron="linear", inverse_temperature=4.0, penalty=0.3, teacher=1.5)
        >>> round(float(law.density(1.5 / 1.3, math.inf)), 6) == round((2 * math.pi / 2.4) ** -0.5, 6)
        True
        """
        from limitlab.laws.mean_field._free_energy import erf_density

        points, beta, penalty = np.asarray(theta, dtype=float), self.inverse_temperature, self.penalty
        if self.neuron == "linear":
            path = linear_path(beta, penalty, self._strength(), self.start_mean, self.start_std**2, 1, time)
            s = path["second_moment"] - path["mean"] ** 2
            return np.asarray(np.exp(-((points - path["mean"]) ** 2) / (2 * s)) / np.sqrt(2 * math.pi * s))
        return erf_density(beta, penalty, self._strength(), self.start_mean, self.start_std, time, points)

    def _strength(self) -> float:
        """Return the teacher's weight along its own axis."""
        if isinstance(self.teacher, tuple):
            return float(np.linalg.norm(self.teacher)) if self.dimension > 1 else self.teacher[0]
        return self.teacher

    def _network(self) -> Any:
        from limitlab.laws.mean_field._training import LinearNetwork, ScalarNetwork

        if self.neuron == "linear":
            return LinearNetwork(self._strength())
        return ScalarNetwork.of("erf", "erf", self._strength(), spacing=0.3)

    def _times_at_rest(self, last: float, asks_for_rest: bool) -> Array:
        """Return the times at which an experiment measures the state at rest.

        Linear neurons are measured over a window, to average their excess; erf neurons are measured once.
        """
        settled = max(last, SETTLED / self.penalty)
        if self.neuron == "linear":
            return settled + np.arange(0, WINDOW / self.penalty, SPACING) + SPACING
        return np.array([settled]) if asks_for_rest else np.empty(0)

    def _measured_state(self, network: Any, state: Array) -> dict[str, float]:
        """Return the observables of one state of the particles."""
        from limitlab.laws.mean_field._training import nearest_neighbour_entropy

        risk, square = network.risk(state), _mean_square(state)
        disorder = nearest_neighbour_entropy(state) / self.inverse_temperature
        return dict(
            risk=risk,
            free_energy=risk + self.penalty * square - disorder,
            mean=float(state[:, 0].mean()),
            second_moment=square,
        )


def _mean_square(state: Array) -> float:
    return float(np.mean(np.sum(state**2, axis=1)))
