"""The transition from mean field to the tangent kernel as a wide network's output scale grows.

Setting.  fhat = (alpha/N) sum_j a_j tanh(<w_j, x> + b), centred at its start, on n fixed points; theta_j' = -(N/(2 alpha^2)) grad_j R
          with R the mean squared residual; independent neurons at the start, with second layers around 1, or of both signs.
Limit.    N -> infinity at fixed alpha. The distribution of the neurons solves d_t rho = (1/alpha) div(rho grad Psi), and its kernel
          determines the residuals, u' = -(1/n) H_rho u (docs/theory/mean_field.md, eqs. 20-22).
Result.   Weights move by order 1/alpha. The change of the kernel and the distance to the linearised network are of order 1/alpha.
          They are of order 1/alpha^2 if the start is symmetric under a -> -a, because the first order then vanishes (eq. 24).
Status.   Theorem for the limits (Mei, Misiakiewicz, Montanari 2019; Chizat, Oyallon, Bach 2019). The orders follow from eq. (24).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab._core.cost import Cost
from limitlab.errors import Refused
from limitlab.laws import Draw, Experiment, Headline, Law, Values, observable, parameter, shared

__all__ = ["OutputScale"]

Array = NDArray[np.float64]

TOLERANCE = 1e-8  # of the integration
STEP = 0.25  # longest time step of an experiment
SECOND_LAYER_NODES = 8
REACH = 6.0  # largest node of a weight, in standard deviations
SYMMETRIC = 1e-9  # first-order changes below this share of the kernel are rounding errors


class LazyLimit(NamedTuple):
    """The leading order in 1/alpha at one time.

    Attributes
    ----------
    displacement
        Limit of alpha times the displacement.
    kernel_change
        Limit of alpha times the relative change of the kernel. It is 0 if the start is symmetric.
    slope
        Exponent of the kernel's change and of the distance to the linearised residuals: -1, or -2 with the symmetry.
    """

    displacement: float
    kernel_change: float
    slope: int


class Neurons(NamedTuple):
    """A weighted set of neurons with second layers a, scores z at the points (columns), and shares that add up to 1."""

    a: Array
    z: Array
    shares: Array


def kernel(neurons: Neurons, gram: Array) -> Array:
    """Return H on the points for a weighted set of neurons, eq. (21)."""
    value = np.tanh(neurons.z)
    slope = neurons.a[:, None] * (1 - value**2)
    weighted = neurons.shares[:, None]
    return np.asarray((weighted * value).T @ value + gram * ((weighted * slope).T @ slope))


class OutputScale(Law):
    """When does a wide network learn features, and when does it behave like its tangent kernel?

    Examples
    --------
    >>> generic, paired = OutputScale(scale=16.0, times=2.0), OutputScale(scale=16.0, times=2.0, initialisation="paired")
    >>> [f"{float(law.theory().kernel_change):.4f}" for law in (generic, paired)]
    ['0.0062', '0.0001']
    >>> generic.lazy_limit().slope, paired.lazy_limit().slope
    (-1, -2)
    """

    status = "theorem"
    regime = "N -> infinity at fixed output scale alpha; tangent kernel as alpha grows"
    assumptions = (
        "gradient flow on n fixed points, x_ik = sin(0.4 + 1.7 i (k + 1)) and y_i = cos(2 i), i and k from 0",
        "an output that is centred at the start, independent neurons (or independent pairs)",
    )
    references = ("chizat2019lazy", "mei2019mean")
    page = "mean_field"
    observables = {
        **shared("risk"),
        "kernel_change": observable("relative change of the tangent kernel", r"|H_t - H_0|/|H_0|", least=0),
        "weight_displacement": observable(
            "root mean square distance of a neuron from its start", r"|\theta_t-\theta_0|", least=0
        ),
        "linearisation_distance": observable(
            "distance of the residuals from those of the linearised network, relative to the labels",
            r"|u-u_{\rm lin}|/|y|",
            least=0,
        ),
    }
    simulation = Experiment("number of neurons N", sizes=(200, 400, 800), draws=320)
    # A generic start, pairs, and independent signs, at scales at which the network learns features
    points = (
        dict(scale=1.5, second_layer_spread=0.5, start_std=0.8, score_shift=0.4, times=(1.0, 4.0)),
        dict(scale=0.7, initialisation="paired", start_std=0.7, times=(1.0, 4.0)),
        dict(scale=1.0, initialisation="signs", start_std=0.6, score_shift=-0.5, samples=4, times=(1.0, 4.0)),
    )
    headline = Headline(
        "Larger output scale, lazier network",
        x="scale",
        over=(0.2, 200.0, 61),
        scale="log",
        y_scale="log",
        show=("kernel_change", "weight_displacement"),
        at=dict(times=(2.0,)),
        size=200,
        draws=2,
        places=(0.3, 1.0, 3.0, 10.0, 30.0, 100.0),
        sliders=("initialisation", "samples"),
    )

    scale: float = parameter(4.0, above=0, most=1e6, scale="log")
    initialisation: Literal["generic", "paired", "signs"] = parameter(
        "generic",
        "second layer at the start",
        note="generic: around 1; paired: a and -a with the same first layer; signs: around 1 or -1",
    )
    second_layer_spread: float = parameter(
        0.3, "standard deviation of the second layer's size at the start", note="around 1", symbol="s_a", least=0, most=2
    )
    start_std: float = parameter(1.0, symbol="s_w", above=0, most=3, scale="log")
    score_shift: float = parameter(0.7, "number added to every neuron's score", symbol="b", least=-10, most=10)
    samples: int = parameter(6, least=1, most=100)
    times: float | tuple[float, ...] = parameter(
        (0.5, 2.0), note="in the unit in which residuals decay at the rates of the kernel", kind="coordinate", least=0
    )
    solver_steps: int = parameter(30, note="per weight of the first layer", kind="solver", least=6, most=80, finer=1.5)

    def limit_cost(self) -> Cost:
        """Return the cost of a grid of neurons in the plane."""
        return Cost(8e3 * self.solver_steps**2, 5e5 * self.solver_steps**2)

    def predicted(self, times: Array) -> Values:
        """Integrate neurons and residuals together, eqs. (20) and (22); the error is the change from two thirds of the nodes."""
        fine, coarse = (self._followed(times, count) for count in (self.solver_steps, 2 * self.solver_steps // 3))
        floor = 100 * TOLERANCE
        accuracy = {
            name: np.abs(fine[name] - coarse[name]).max() + floor * (1e-3 + np.abs(fine[name]).max()) for name in fine
        }
        return {**fine, "accuracy": accuracy}

    def measured(self, draw: Draw, times: Array) -> Values:
        """Train both layers of one network of `size` neurons."""
        from limitlab.laws.mean_field.output_scale_flow import output_scale_flow

        x, y = self.data()
        weights, second_layer = self.start(draw.rng, draw.size)
        run = output_scale_flow(x, y, weights, second_layer, self.scale, times, self.score_shift, step=STEP)
        distance = np.sqrt(np.mean((run.residual - run.linearised_residual) ** 2, axis=1) / np.mean(y**2))
        return dict(
            risk=run.risk,
            kernel_change=run.kernel_change,
            weight_displacement=run.displacement,
            linearisation_distance=distance,
        )

    def data(self) -> tuple[Array, Array]:
        """Return the points in the plane, one per row, and their labels.

        >>> x, y = OutputScale(samples=3).data()
        >>> x.shape, y.round(4).tolist()
        ((3, 2), [1.0, -0.4161, -0.6536])
        """
        i = np.arange(self.samples)
        return np.sin(0.4 + 1.7 * i[:, None] * np.array([1, 2])), np.cos(2.0 * i)

    def start(self, rng: np.random.Generator, width: int) -> tuple[Array, Array]:
        """Return first and second layer of a network of `width` neurons at the start.

        >>> weights, second_layer = OutputScale(initialisation="paired").start(np.random.default_rng(0), 6)
        >>> bool(np.all(weights[:3] == weights[3:]) and np.all(second_layer[:3] == -second_layer[3:]))
        True
        """
        paired = self.initialisation == "paired"
        if paired and width % 2:
            raise Refused(f"size = {width} is not allowed: must be even, because neurons come in pairs")
        free = width // 2 if paired else width
        weights = self.start_std * rng.standard_normal((free, 2))
        second_layer = 1 + self.second_layer_spread * rng.standard_normal(free)
        if self.initialisation == "signs":
            second_layer = second_layer * (2 * rng.integers(0, 2, free) - 1)
        if paired:
            return np.concatenate([weights, weights]), np.concatenate([second_layer, -second_layer])
        return weights, second_layer

    def lazy_limit(self, time: float | None = None) -> LazyLimit:
        """Return the leading order in 1/`scale` at a time, by default the last of `times`, eq. (24).

        >>> limit, law = OutputScale().lazy_limit(2.0), OutputScale(scale=1e4, times=2.0)
        >>> bool(abs(limit.kernel_change / (1e4 * float(law.theory().kernel_change)) - 1) < 1e-3)
        True
        """
        t = float(np.max(self.times)) if time is None else float(time)
        (x, y), neurons = self.data(), self._neurons(self.solver_steps)
        value, slope, bend = np.tanh(neurons.z), *_tanh_slopes(neurons.z)
        first = kernel(neurons, x @ x.T)
        rates, modes = np.linalg.eigh(first / y.size)
        positive = np.maximum(rates, 1e-300)
        work = modes @ (-np.expm1(-positive * t) / positive * (y @ modes)) / y.size  # (1/n) int_0^t u
        a1 = value @ work
        w1 = neurons.a[:, None] * (slope * work) @ x
        z1 = w1 @ x.T
        size, change = neurons.shares[:, None], a1[:, None] * slope + neurons.a[:, None] * bend * z1
        half = (size * value).T @ (slope * z1) + x @ x.T * ((size * neurons.a[:, None] * slope).T @ change)
        moved = float(np.linalg.norm(half + half.T) / np.linalg.norm(first))
        lengths = float(np.sqrt(neurons.shares @ (a1**2 + np.sum(w1**2, axis=1))))
        symmetric = moved < SYMMETRIC
        return LazyLimit(lengths, 0.0 if symmetric else moved, -2 if symmetric else -1)

    def _neurons(self, count: int) -> Neurons:
        """Return a quadrature rule for the neurons at the start.

        Its nodes are evenly spaced in both weights, and Gauss-Hermite nodes in the size of the second layer.
        """
        from limitlab.numerics.gaussian import hermite_rule
        from limitlab.numerics.quadrature import even_gaussian_rule

        (g, g_shares), (s, s_shares) = even_gaussian_rule(2 * REACH / count, REACH), hermite_rule(SECOND_LAYER_NODES)
        sizes, signs = 1 + self.second_layer_spread * s, [1.0] if self.initialisation == "generic" else [1.0, -1.0]
        w1, w2, size, sign = (grid.ravel() for grid in np.meshgrid(g, g, sizes, signs, indexing="ij"))
        shares = np.einsum("i,j,k,l->ijkl", g_shares, g_shares, s_shares, np.full(len(signs), 1 / len(signs))).ravel()
        scores = self.start_std * np.stack([w1, w2], axis=1) @ self.data()[0].T + self.score_shift
        return Neurons(sign * size, scores, shares)

    def _followed(self, times: Array, count: int) -> dict[str, Array]:
        """Integrate the equations of scores, second layers and residuals, and return the observables over time.

        z' = (1/(alpha n)) G (u a tanh'(z)), a' = (1/(alpha n)) <u, tanh z>, u' = -(1/n) H u.
        """
        from limitlab.numerics.ode import states_at

        (x, y), neurons = self.data(), self._neurons(count)
        gram, points, nodes = x @ x.T, y.size, neurons.a.size
        rate = 1 / (self.scale * points)

        def parts(flat: Array) -> tuple[Array, Neurons]:
            u, a, z = flat[:points], flat[points : points + nodes], flat[points + nodes :].reshape(nodes, points)
            return u, Neurons(a, z, neurons.shares)

        def velocity(_: float, flat: Array) -> Array:
            u, now = parts(flat)
            value = np.tanh(now.z)
            pull = now.a[:, None] * (1 - value**2) * u
            return np.concatenate([-kernel(now, gram) @ u / points, rate * (value @ u), rate * (pull @ gram).ravel()])

        start = np.concatenate([y, neurons.a, neurons.z.ravel()])
        states = [parts(state) for state in states_at(velocity, start, times, TOLERANCE)]
        first, back = kernel(neurons, gram), np.linalg.pinv(x)
        rates, modes = np.linalg.eigh(first / points)
        linear = (np.exp(-rates * times[:, None]) * (y @ modes)) @ modes.T
        moves = [(now.a - neurons.a) ** 2 + np.sum(((now.z - neurons.z) @ back.T) ** 2, axis=1) for _, now in states]
        return dict(
            risk=np.array([np.mean(u**2) for u, _ in states]),
            kernel_change=np.array([np.linalg.norm(kernel(now, gram) - first) for _, now in states]) / np.linalg.norm(first),
            weight_displacement=np.sqrt([neurons.shares @ move for move in moves]),
            linearisation_distance=np.array(
                [np.linalg.norm(u - line) for (u, _), line in zip(states, linear, strict=True)]
            ) / np.linalg.norm(y),
        )  # fmt: skip


def _tanh_slopes(z: Array) -> tuple[Array, Array]:
    """Return the first and second derivative of tanh."""
    value = np.tanh(z)
    return 1 - value**2, -2 * value * (1 - value**2)
