"""The mean-field flow need not reach the minimum of the risk; a start with full support repairs it.

Setting.  ReLU neurons a relu(<w, x>), f = (1/N) sum_i a_i relu(<w_i, x>), inputs t_j = 2 pi j / n on the circle, labels
          y = relu(cos t) - relu(cos(t - angle)), R = mean (y - f)^2; (a_i, w_i)' = -N grad_i R. The flow conserves a_i^2 - |w_i|^2.
Limit.    N and the time -> infinity.
Result.   If a_i > |w_i| at the start for all i, no a_i changes its sign, and f stays in the cone of non-negative combinations of neurons:

              R -> min over measures mu >= 0 on directions of mean (y - int relu(<u, x>) mu(du))^2,                      (6)

          a convex problem (docs/theory/landscapes.md), above the minimum 0. With both signs R -> 0.
Status.   Derived: (6) bounds the risk from below at every time, and that it is reached is measured; for both signs a theorem
          says that a limit of the flow is a minimum (Chizat and Bach 2018), and convergence itself is measured.
"""

from __future__ import annotations

import copy
import functools
import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from limitlab._core.cost import Cost
from limitlab.laws import Draw, Experiment, Law, Values, observable, parameter, shared

__all__ = ["ConeFlow"]

Array = NDArray[np.float64]

LONG = 200.0
"""Time after which an experiment looks at the risk."""
STEP = 0.4
"""Step of an experiment times its number of neurons: descent chatters where the best direction is a kink, orthogonal to an input."""
HEAD = 2.0  # second-layer weight over the length of the first at the start
ROUNDING = 1e-9


@functools.lru_cache(maxsize=64)
def cone_risk(angle: float, inputs: int, directions: int) -> float:
    """The value (6) with directions 2 pi k / `directions`, by non-negative least squares.

    >>> round(cone_risk(2.0, 200, 2000), 7)
    0.2278816
    """
    from scipy.optimize import nnls

    x, y = _unit(inputs), _target(angle, inputs)
    features = np.maximum(x @ _unit(directions).T, 0)
    scale = math.sqrt(inputs)
    return float(nnls(features / scale, y / scale, maxiter=100 * directions)[1]) ** 2


def _unit(count: int) -> Array:
    angle = 2 * np.pi * np.arange(count) / count
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _target(angle: float, inputs: int) -> Array:
    t = 2 * np.pi * np.arange(inputs) / inputs
    return np.maximum(np.cos(t), 0) - np.maximum(np.cos(t - angle), 0)


class ConeFlow(Law):
    """Does gradient descent on a wide ReLU network reach the least risk, whatever the signs of its second layer at the start?

    Examples
    --------
    >>> found = ConeFlow(angle=2.0).theory()
    >>> round(float(found.risk), 6), round(float(found.lower_bound), 6)
    (0.227882, 0.215469)
    >>> float(ConeFlow(angle=2.0, signs="both").theory().risk)
    0.0
    """

    status = "derived"
    regime = "N -> infinity, then t -> infinity (an experiment stops at t = 200)"
    assumptions = (
        "inputs on a grid of the circle, no bias",
        "positive start: every second-layer weight is twice the length of the first",
    )
    references = ("chizat2018global",)
    page = "landscapes"
    observables = {
        **shared("risk"),
        "zero_risk": observable("risk of the network 0", r"\mathbb{E}\,y^2"),
        "lower_bound": observable("mean square of the negative labels", r"\mathbb{E}\,\min(y,0)^2"),
    }
    simulation = Experiment("number of neurons N", sizes=(10, 20, 40), draws=10, rate=1.0)
    # Two angles, neither of them symmetric, with positive second layers: with both signs the limit is 0
    points = (
        dict(angle=1.2, inputs=80, directions=800),
        dict(angle=2.0, inputs=70, directions=700),
    )

    angle: float = parameter(2.0, "angle between the two neurons behind the labels", symbol=r"\theta", above=0, most=math.pi)
    inputs: int = parameter(200, note="their number on the circle", symbol="n", least=8, most=2000)
    signs: Literal["positive", "both"] = parameter("positive", "signs of the second layer at the start")
    directions: int = parameter(
        2000, "directions of the convex problem", note="on the circle", kind="solver", least=16, most=20_000, finer=2
    )

    def draw_cost(self, size: int) -> Cost:
        """Neurons on all inputs."""
        return Cost(1e5 + 3.0 * self.inputs * size, 750.0 * self.inputs * float(size) ** 2)

    def predicted(self) -> Values:
        """The convex problem, and bounds of it; accuracy: the change from half as many directions."""
        y = _target(self.angle, self.inputs)
        risk, error = 0.0, ROUNDING
        if self.signs == "positive":
            risk = cone_risk(self.angle, self.inputs, self.directions)
            error += abs(risk - cone_risk(self.angle, self.inputs, self.directions // 2))
        bounds = dict(zero_risk=float(np.mean(y**2)), lower_bound=float(np.mean(np.minimum(y, 0) ** 2)))
        return {"risk": risk, **bounds, "accuracy": dict(risk=error, zero_risk=ROUNDING, lower_bound=ROUNDING)}

    def measured(self, draw: Draw) -> Values:
        """Gradient descent with `size` neurons; the bounds from the same labels."""
        from limitlab.laws.mean_field._cone_network import circle, labels

        y = labels(circle(self.inputs), self.angle)
        bounds = dict(zero_risk=float(y @ y), lower_bound=float(np.minimum(y, 0) @ np.minimum(y, 0)))
        return {"risk": self.risk_at(draw), **{name: value / self.inputs for name, value in bounds.items()}}

    def risk_at(self, draw: Draw, time: float = LONG) -> float:
        """Risk of one descent at a time."""
        from limitlab.laws.mean_field._cone_network import circle, labels, outputs

        x = circle(self.inputs)
        return float(np.mean((labels(x, self.angle) - outputs(*self.trained(draw, time), x)) ** 2))

    def trained(self, draw: Draw, time: float = LONG) -> tuple[Array, Array]:
        """Both layers at a time: a_i = 2 |w_i| at the start, half of them negative where `signs` says both."""
        from limitlab.laws.mean_field._cone_network import circle, labels, relu_descent

        x, rng = circle(self.inputs), copy.deepcopy(draw.rng)  # the same start at every time
        w = rng.standard_normal((draw.size, 2))
        a = HEAD * np.linalg.norm(w, axis=1)
        if self.signs == "both":
            a[::2] *= -1
        return relu_descent(a, w, x, labels(x, self.angle), STEP / draw.size, time)
