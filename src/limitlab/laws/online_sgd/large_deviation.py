"""Large deviations of SGD from its gradient flow in fixed dimension.

Setting.  x <- x - delta grad L(x, Y) on a quadratic loss: x_{k+1} = (1 - delta) x_k + delta xi_k from x_0 = 0, with centred noise
          of variance 1, Gaussian or a sign. The flow stays at 0.
Limit.    delta -> 0 at a fixed time T. Then P(max_{delta k <= T} |x_k| >= eps) = exp(-(I(eps) + o(1)) / delta).
Result.   I = sup_p { p eps - int_0^T Lambda(p e^-s) ds }, Lambda the log-moment generating function of the noise
          (docs/theory/sgd_steps.md, eq. 4). I depends on the whole distribution of the noise, not only on its variance.
Status.   Theorem (Freidlin and Wentzell). The size of an experiment is 1/delta. Experiments use weighted draws, because counting cannot
          estimate probabilities of 1e-20.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from limitlab._core.cost import Cost
from limitlab.laws import Draw, Experiment, Headline, Law, Values, observable, parameter

__all__ = ["SgdLargeDeviation"]

Array = NDArray[np.float64]
NoiseLaw = Literal["gaussian", "sign"]

NODES = 60
"""Number of nodes of the Gauss-Legendre rule for the integral over time."""
SOLVED = 1e-12
FARTHEST = 1e15
"""At tilts above this value all signs are equal, so that the noise is constant."""


def log_moment(noise_law: NoiseLaw) -> Callable[[Array], Array]:
    """Return Lambda(p) = log E e^{p xi} as a function of p.

    >>> log_moment("gaussian")(np.array(2.0)).item(), round(log_moment("sign")(np.array(2.0)).item(), 6)
    (2.0, 1.325003)
    """
    if noise_law == "gaussian":
        return lambda p: np.asarray(p * p / 2)
    return lambda p: np.asarray(np.logaddexp(p, -p) - math.log(2))


def tilted_mean(noise_law: NoiseLaw) -> Callable[[Array], Array]:
    """Return Lambda'(p) as a function of p, the mean of the noise under its distribution tilted by p."""
    return (lambda p: np.asarray(p)) if noise_law == "gaussian" else (lambda p: np.asarray(np.tanh(p)))


def tilt(deviation: float, time: float, noise_law: NoiseLaw) -> float:
    """Return the p at which the supremum is attained, the root of int_0^T Lambda'(p e^-s) e^-s ds = eps.

    The result is inf if no sequence of noise values leads to a distance eps.

    >>> round(tilt(0.5, 1.0, "gaussian"), 6), tilt(0.7, 1.0, "sign")
    (1.156518, inf)
    """
    if noise_law == "gaussian":
        return 2 * deviation / -math.expm1(-2 * time) if time > 0 else math.inf
    if deviation >= -math.expm1(-time):
        return math.inf
    from scipy.optimize import brentq

    decay, weights = _rule(time)

    def gap(p: float) -> float:
        return float(weights @ (np.tanh(p * decay) * decay)) - deviation

    high = 1.0
    while gap(high) < 0:
        high *= 2
        if high > FARTHEST:  # eps is the largest possible distance, up to rounding
            return math.inf
    return float(brentq(gap, 0.0, high, xtol=1e-14, rtol=1e-14))


def rate(deviation: float, time: float, noise_law: NoiseLaw) -> float:
    """Return I(eps) at one time.

    >>> round(rate(0.5, 1.0, "gaussian"), 9), round(rate(0.5, 1.0, "sign"), 9)
    (0.289129411, 0.341140413)
    """
    p = tilt(deviation, time, noise_law)
    if math.isinf(p):
        edge = noise_law == "sign" and math.isclose(deviation, -math.expm1(-time), rel_tol=1e-12)
        return time * math.log(2) if edge else math.inf  # at the largest distance all signs are equal
    decay, weights = _rule(time)
    return p * deviation - float(weights @ log_moment(noise_law)(p * decay))


def _rule(time: float) -> tuple[Array, Array]:
    """Return e^-s at the nodes of a rule on [0, T] and its weights, with panels of length at most 1."""
    panels = max(1, math.ceil(time))
    x, w = np.polynomial.legendre.leggauss(NODES)
    starts, half = np.arange(panels) * time / panels, time / panels / 2
    s = (starts[:, None] + half * (x + 1)).ravel()
    return np.exp(-s), np.tile(half * w, panels)


class SgdLargeDeviation(Law):
    """How unlikely is it that SGD with a small step deviates from its gradient flow by a given distance?

    Examples
    --------
    >>> law = SgdLargeDeviation(deviation=0.5, times=1.0, noise_law="sign")
    >>> round(float(law.theory().rate), 6)
    0.34114
    >>> 1e-9 < SgdLargeDeviation(deviation=0.5, times=1.0, noise_law="gaussian").exact_probability(60) < 1e-7
    True
    """

    status = "theorem"
    regime = "step -> 0 at a fixed time and in fixed dimension"
    assumptions = ("quadratic loss in one dimension", "independent symmetric noise of variance 1")
    references = ("freidlin2012random",)
    page = "sgd_steps"
    observables = {"rate": observable("minus step times log probability of the deviation", "I", least=0)}
    simulation = Experiment(
        "1/step, steps per unit of time",
        sizes=(80, 160, 320),
        draws=20,
        rate=(
            0.3,
            1.0,
        ),  # the gap A delta + B delta log(1/delta) with A < 0 < B has local exponents 0.4 to 0.6 at these steps
    )
    # Both noise distributions, each at two times that are not 1
    points = (
        dict(deviation=0.4, noise_law="sign", times=(0.7, 1.5)),
        dict(deviation=0.6, noise_law="gaussian", times=(0.6, 1.4)),
    )
    headline = Headline(
        "Rare excursions cost their distance squared",
        x="deviation",
        over=(0.02, 0.6, 59),
        show=("rate",),
        curves=("noise_law", ("gaussian", "sign")),
        size=80,
        draws=2,
        places=(0.1, 0.2, 0.3, 0.5),
        sliders=("times",),
    )

    deviation: float = parameter(0.5, "distance from the gradient flow", symbol=r"\varepsilon", above=0, most=20)
    noise_law: NoiseLaw = parameter("gaussian", "distribution of the gradient's noise", note="of variance 1")
    times: float | tuple[float, ...] = parameter(
        1.0, note="step times steps", symbol="T", kind="coordinate", above=0, most=50
    )
    paths: int = parameter(
        4000, note="of an experiment, with noise that favours the deviation", kind="experiment", least=100
    )

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of all weighted paths."""
        return Cost(1e5 + 10.0 * self.paths + 10.0 * size, 40.0 * self.paths * size)

    def predicted(self, times: Array) -> Values:
        """Return the rate of the deviation, which is infinite if random signs cannot produce the deviation in the time."""
        values = np.array([rate(self.deviation, float(t), self.noise_law) for t in np.ravel(times)])
        finite = values[np.isfinite(values)]
        return {"rate": values, "accuracy": {"rate": SOLVED * float(finite.max(initial=1.0))}}

    def measured(self, draw: Draw, times: Array) -> Values:
        """Estimate minus the step times the log-probability from weighted paths, whose noise favours the most likely deviation."""
        values = [-self.log_probability(draw.rng, draw.size, float(t)) / draw.size for t in np.ravel(times)]
        return {"rate": np.array(values)}

    def log_probability(self, rng: np.random.Generator, size: int, time: float) -> float:
        """Return the log of the probability of the deviation at step 1/size by weighted draws, or -inf if it is impossible."""
        from limitlab.laws.online_sgd._exit_probability import tilted_exit_probability

        p, steps = tilt(self.deviation, time, self.noise_law), max(1, round(time * size))
        if math.isinf(p):
            return -math.inf
        tilts = np.asarray(p * (1 - 1 / size) ** np.arange(steps - 1, -1, -1), dtype=np.float64)
        draw_noise = _gaussian_noise if self.noise_law == "gaussian" else _sign_noise
        return tilted_exit_probability(
            rng, 1 / size, self.deviation, tilts, draw_noise, log_moment(self.noise_law), self.paths
        ).logarithm

    def exact_probability(self, size: int) -> float:
        """Return the probability of the deviation until the last of the times, at step 1/size, without sampling.

        For Gaussian noise the density of the paths is advanced by quadrature, at every size. For signs all paths are enumerated, for at
        most 22 steps.
        """
        from limitlab.laws.online_sgd._exit_probability import gaussian_exit_probability, sign_exit_probability

        steps = max(1, round(float(np.max(self.times)) * size))
        if self.noise_law == "gaussian":
            nodes = max(200, math.ceil(12 * self.deviation * size))  # six nodes per standard deviation of a step
            return gaussian_exit_probability(1 / size, self.deviation, steps, nodes)
        return sign_exit_probability(1 / size, self.deviation, steps)


def _gaussian_noise(rng: np.random.Generator, p: float, count: int) -> Array:
    return p + rng.standard_normal(count)


def _sign_noise(rng: np.random.Generator, p: float, count: int) -> Array:
    return np.where(rng.random(count) < 1 / (1 + math.exp(-2 * p)), 1.0, -1.0)
