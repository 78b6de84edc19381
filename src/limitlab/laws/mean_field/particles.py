"""The mean-field flow, and the fluctuation and bias of a network of N neurons around it.

Setting.  Neurons sigma(theta_i x) of one weight, f = (1/N) sum_i sigma(theta_i x), x ~ N(0, 1), target phi(theta* x), R = E (y - f)^2;
          independent theta_i ~ N(m0, s0^2) at the start, then theta_i' = -N grad_i R.
Limit.    N -> infinity on bounded times. R_N(t) -> R(rho_t), with d_t rho = div(rho grad dR/drho) (docs/theory/mean_field.md, eq. 1).
Result.   A network of N neurons follows the same flow from its empirical distribution of weights, so that R_N(t) is a functional of
          that distribution. To second order in the difference of the two distributions (eqs. 16-17)

              N Var R_N -> Var_theta g(theta),     N (E R_N - R) -> 1/2 E_theta k(theta, theta),

          where g and k are the first and second derivative of R(t) with respect to the distribution at the start, in the direction of a
          point mass at theta.
Status.   Theorem for the limit (Mei, Montanari, Nguyen 2018) and for Gaussian fluctuations (Sirignano and Spiliopoulos 2020).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab._core.cost import Cost, latest
from limitlab.errors import Refused
from limitlab.laws import Draw, Experiment, Headline, Law, Values, observable, parameter, shared
from limitlab.laws.mean_field.potentials import neuron_interaction
from limitlab.models.activations import NAMES, Activation
from limitlab.models.distributions import Distribution
from limitlab.numerics.ode import states_at

__all__ = ["MeanFieldParticles"]

Array = NDArray[np.float64]

THIRD = 1e-4  # step of the difference that gives the third derivative of an activation


class Response(NamedTuple):
    """Arrays over times of the risk and of the limits of N Var R_N and N (E R_N - R)."""

    risk: Array
    fluctuation: Array
    bias: Array


@dataclass(frozen=True)
class ScalarFlow:
    """The flow of neurons sigma(theta x) of one weight, with its first two derivatives in the distribution at the start.

    The nodes theta_j of a discrete distribution with shares w_j move by theta_j' = 2 E (y - f) x sigma'(theta_j x), where
    f = sum_j w_j sigma(theta_j x). If a share e of the distribution at the start moves to node k, the nodes change by
    e theta^1 + e^2 theta^2 / 2 and the output by e f^1 + e^2 f^2 / 2. These coefficients solve linear equations along the flow, eqs. (18)
    and (19), which are integrated for all k together. `inputs` and `weights` are a quadrature rule for x, with the targets `labels`.
    """

    activation: Activation
    inputs: Array
    weights: Array
    labels: Array

    def slopes(self, theta: Array) -> tuple[Array, Array, Array, Array]:
        """Return sigma and its derivatives in theta, x sigma', x^2 sigma'' and x^3 sigma''', for every node at every input."""
        z, x = theta[:, None] * self.inputs, self.inputs
        second = self.activation.second_derivative
        third = (second(z + THIRD) - second(z - THIRD)) / (2 * THIRD)
        return self.activation(z), x * self.activation.derivative(z), x**2 * second(z), x**3 * third

    def velocity(self, theta: Array, shares: Array) -> Array:
        """Return 2 E (y - f) x sigma'(theta_j x), eq. (1)."""
        z = theta[:, None] * self.inputs
        pull = 2 * self.weights * (self.labels - shares @ self.activation(z))
        return np.asarray((self.inputs * self.activation.derivative(z)) @ pull)

    def changes(self, theta: Array, first: Array, second: Array, shares: Array) -> tuple[Array, Array, Array, Array]:
        """Return the velocities of theta^1 (`first`) and theta^2 (`second`), one row per k, and the first two derivatives of the risk."""
        value, slope, curve, jerk = self.slopes(theta)
        residual = self.weights * (self.labels - shares @ value)
        weighted = shares[:, None] * slope
        f1 = value - shares @ value + first @ weighted  # eq. (18)
        moved = np.diagonal(first)[:, None] * slope - first @ weighted
        f2 = 2 * moved + first**2 @ (shares[:, None] * curve) + second @ weighted  # eq. (19)
        stiffness, bend = 2 * curve @ residual, 2 * jerk @ residual
        v1 = first * stiffness - 2 * (f1 * self.weights) @ slope.T
        v2 = second * stiffness + first**2 * bend - 4 * first * ((f1 * self.weights) @ curve.T)
        v2 -= 2 * (f2 * self.weights) @ slope.T
        return v1, v2, -2 * f1 @ residual, 2 * f1**2 @ self.weights - 2 * f2 @ residual

    def risk(self, theta: Array, shares: Array) -> float:
        """Return the mean squared error."""
        return float(self.weights @ (self.labels - shares @ self.activation(theta[:, None] * self.inputs)) ** 2)

    def response(self, nodes: Array, shares: Array, times: Array, tolerance: float = 1e-8) -> Response:
        """Return the risk of the flow and the variance and bias that it implies for finite networks, eqs. (16-17).

        >>> from limitlab.numerics.gaussian import hermite_rule
        >>> x, w = hermite_rule(20)
        >>> run = ScalarFlow(Activation("identity"), x, w, 2 * x).response(x, w, np.array([0.0, 1.0]))  # theta ~ N(0, 1), target 2 x
        >>> (run.risk / 4).round(8).tolist(), (run.fluctuation / 16).round(8).tolist(), run.bias.round(8).tolist()
        ([1.0, 0.01831564], [1.0, 0.00033546], [1.0, 0.01831564])
        """
        count = nodes.size

        def velocity(time: float, flat: Array) -> Array:
            theta, (first, second) = flat[:count], flat[count:].reshape(2, count, count)
            v1, v2, *_ = self.changes(theta, first, second, shares)
            return np.concatenate([self.velocity(theta, shares), v1.ravel(), v2.ravel()])

        start = np.concatenate([nodes, np.zeros(2 * count**2)])
        rows = []
        for state in states_at(velocity, start, times, tolerance):
            theta, (first, second) = state[:count], state[count:].reshape(2, count, count)
            *_, r1, r2 = self.changes(theta, first, second, shares)
            rows.append((self.risk(theta, shares), shares @ (r1 - shares @ r1) ** 2, shares @ r2 / 2))
        return Response(*np.array(rows).T)


class MeanFieldParticles(Law):
    """How far is a network of N neurons from its mean-field limit?

    Examples
    --------
    >>> law = MeanFieldParticles(times=(0.0, 1.0))
    >>> limit = law.theory()
    >>> limit.risk.values.round(4).tolist(), limit.risk_bias.values.round(4).tolist()
    ([1.804, 0.6086], [0.0643, 0.1483])
    """

    status = "theorem"
    regime = "N -> infinity on bounded times"
    assumptions = ("the gradient of the population risk", "Gaussian inputs", "independent Gaussian weights at the start")
    references = ("mei2018mean", "sirignano2020mean")
    page = "mean_field"
    observables = {
        **shared("risk"),
        "risk_fluctuation": observable("variance of the risk times the number of neurons", r"N\,\mathrm{Var}\,R_N", least=0),
        "risk_bias": observable("mean of the risk minus its limit, times the number of neurons", r"N(\mathbb{E}R_N - R)"),
    }
    simulation = Experiment("number of neurons N", sizes=(8, 16, 32), draws=120)
    # First a target that the network cannot fit exactly and a start with the opposite sign; then an activation that is not odd
    points = (
        dict(
            activation="tanh",
            target_function="sin",
            teacher_weight=1.5,
            start_mean=-0.5,
            start_std=0.7,
            times=(0.2, 0.4),
        ),
        dict(
            activation="gelu",
            target_function="softplus",
            teacher_weight=-1.2,
            start_mean=0.8,
            start_std=0.5,
            times=(0.1, 0.3),
        ),
    )
    headline = Headline(
        "Sixteen neurons already follow the infinite network",
        x="times",
        over=(0.0, 4.0, 81),
        show=("risk",),
        curves=("start_mean", (-1, 0, 1)),
        size=16,
        draws=3,
        places=(0.0, 0.5, 1.0, 2.0, 3.0, 4.0),
        sliders=("start_std", "teacher_weight"),
    )

    activation: Activation = parameter("tanh", note="twice differentiable")
    target_function: Activation = parameter("tanh")
    teacher_weight: float = parameter(2.0, "factor of the input in the target", symbol=r"\theta_*", least=-10, most=10)
    start_mean: float = parameter(-1.0, symbol="m_0", least=-100, most=100)
    start_std: float = parameter(0.6, symbol="s_0", above=0, most=100, scale="log")
    start_distribution: Distribution | None = parameter(
        None,
        note="of the weights in place of start_mean and start_std; triples (share, mean, standard deviation), a density or a sampler",
    )
    times: float | tuple[float, ...] = parameter((0.5, 1.0, 2.0), note="of the flow -N grad R", kind="coordinate", least=0)
    solver_steps: int = parameter(40, note="weights at the start", kind="solver", least=16, most=400, finer=1.5)
    replicas: int = parameter(190, note="pairs of networks", kind="experiment", least=2)
    step: float = parameter(0.2, note="of a Runge-Kutta method", kind="experiment", above=0, most=0.5)

    @model_validator(mode="after")
    def _smooth(self) -> Self:
        if self.activation.name not in NAMES:  # potentials exist for named activations with a kink
            self.activation.check_derivatives(2)
        return self

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of all replicas of the particles."""
        return Cost(1e5 + 3.0 * self.replicas * size, 1e4 * self.replicas * size * max(latest(self), 1.0))

    def predicted(self, times: Array) -> Values:
        """Integrate the flow and its derivatives; the error is the change from two thirds of the nodes."""
        fine, coarse = (self._response(times, count) for count in (self.solver_steps, 2 * self.solver_steps // 3))
        accuracy = {name: np.abs(fine[name] - coarse[name]).max() + 1e-6 * np.abs(fine[name]).max() for name in fine}
        if (
            self.start_distribution is not None and self.start_distribution.mixture is None
        ):  # quantiles may change fast where the density is small
            accuracy = {name: 3 * error for name, error in accuracy.items()}
        if (
            self.start_distribution is not None and self.start_distribution.sampled
        ):  # the difference of both halves is twice the error of all draws
            one, other = (self._response(times, self.solver_steps, half) for half in (0, 1))
            accuracy = {name: accuracy[name] + 2 * np.abs(one[name] - other[name]).max() for name in fine}
        return {**fine, "accuracy": accuracy}

    def measured(self, draw: Draw, times: Array) -> Values:
        """Train `replicas` pairs of networks of `size` neurons, and one network of all neurons for every pair.

        The measurement of the bias does not need the limit. The mean risk of two networks minus the risk of the network of all their
        neurons is half the bias.
        """
        from limitlab.laws.mean_field._training import flow_risks

        rule = (self.activation, self.target_function, self.teacher_weight, times, self.step)
        shape = (self.replicas, 2, draw.size)
        if self.start_distribution is None:
            theta = self.start_mean + self.start_std * draw.rng.standard_normal(shape)
        else:
            theta = self.start_distribution.draw(draw.rng, shape)
        alone = flow_risks(theta.reshape(2 * self.replicas, draw.size), *rule)
        joined = flow_risks(theta.reshape(self.replicas, 2 * draw.size), *rule)
        pairs = alone.reshape(self.replicas, 2, times.size).mean(axis=1)
        return dict(
            risk=alone.mean(axis=0),
            risk_fluctuation=draw.size * alone.var(axis=0, ddof=1),
            risk_bias=2 * draw.size * (pairs - joined).mean(axis=0),
        )

    def interaction(self, a: ArrayLike, b: ArrayLike) -> Array:
        """Return the mean product of two neurons, eq. (3), in closed form for erf, identity and square, otherwise by quadrature."""
        first, second = np.asarray(a, dtype=float)[..., None], np.asarray(b, dtype=float)[..., None]
        return neuron_interaction(first, second, self.activation)

    def potential(self, theta: ArrayLike) -> Array:
        """Return minus the mean product of label and neuron, eq. (2).

        >>> law = MeanFieldParticles(activation="erf", target_function="erf", teacher_weight=1.5)
        >>> bool(abs(law.potential(0.5) + law.interaction(0.5, 1.5)) < 1e-12)
        True
        """
        weights = np.asarray(theta, dtype=float)[..., None]
        return -neuron_interaction(weights, np.array([self.teacher_weight]), self.activation, self.target_function)

    def rms_gap(self, size: ArrayLike, time: float) -> Array:
        """Return the predicted root mean square, at a width and a time, of the difference between the risk and its limit."""
        law = self.replace(times=float(time)).theory()
        n = np.asarray(size, dtype=float)
        return np.asarray(np.sqrt(float(law.risk_fluctuation) / n + (float(law.risk_bias) / n) ** 2))

    def _response(self, times: Array, count: int, half: int | None = None) -> dict[str, Array]:
        from limitlab.numerics.gaussian import panel_rule
        from limitlab.numerics.quadrature import gaussian_quantiles

        kinks = (0.0, *_kinks_of_target(self.target_function, self.teacher_weight))
        theta = np.array([self.start_mean - 3 * self.start_std, self.start_mean + 3 * self.start_std])
        if self.start_distribution is not None:
            theta = self.start_distribution.quantile([0.001, 0.999])

        def functions(x: Array) -> Array:
            label = np.asarray(self.target_function(self.teacher_weight * x), dtype=float)
            return np.stack([label, *self.activation(theta[:, None] * x)])

        rules = (panel_rule(kinks, order=12, width=width, reach=8.0) for width in (1.6, 0.8, 0.4, 0.2, 0.1))
        inputs, weights = accurate_rule(rules, functions, 1e-8, "target_function or activation")
        labels = np.asarray(self.target_function(self.teacher_weight * inputs))
        if self.start_distribution is None:
            z, shares = gaussian_quantiles(count)
            nodes = self.start_mean + self.start_std * z
        else:
            nodes, shares = self.start_distribution.rule(count, half)
        flow = ScalarFlow(self.activation, inputs, weights, labels)
        response = flow.response(nodes, shares, times)
        return dict(risk=response.risk, risk_fluctuation=response.fluctuation, risk_bias=response.bias)


def accurate_rule(
    rules: Iterable[tuple[Array, Array]], functions: Callable[[Array], Array], tolerance: float, names: str
) -> tuple[Array, Array]:
    """Return the first rule whose averages of all products of two functions agree with those of the next rule.

    >>> from limitlab.numerics.gaussian import panel_rule
    >>> x, weights = accurate_rule([panel_rule(width=w) for w in (2.0, 1.0)], lambda x: np.stack([x, x**3]), 1e-9, "f")
    >>> round(float(weights @ x**4), 9)
    3.0
    """
    previous: tuple[Array, Array, Array] | None = None
    for inputs, weights in rules:
        values = functions(inputs)
        products = (weights * values) @ values.T
        if previous is not None and np.all(np.abs(products - previous[2]) <= tolerance * np.abs(products).max()):
            return previous[0], previous[1]
        previous = inputs, weights, products
    raise Refused(f"{names} is not allowed: it changes too fast for averages over a Gaussian input with error {tolerance:g}")


def _kinks_of_target(target_function: Activation, teacher: float) -> tuple[float, ...]:
    """Return the inputs at which the target jumps or has a kink."""
    return tuple(kink / teacher for kink in target_function.kinks) if teacher else ()
