"""The mean-field flow may stop above the minimum of the risk unless the start has full support.

Setting.  ReLU neurons a relu(<w, x>), f = (1/N) sum_i a_i relu(<w_i, x>), inputs t_j = 2 pi j / n on the circle, labels
          y = relu(cos t) - relu(cos(t - angle)), R = mean (y - f)^2; (a_i, w_i)' = -N grad_i R. The flow conserves a_i^2 - |w_i|^2.
Limit.    N -> infinity and the time -> infinity.
Result.   If a_i > |w_i| at the start for all i, no a_i changes its sign, and f stays in the cone of non-negative combinations of neurons:

              R -> min over measures mu >= 0 on directions of mean (y - int relu(<u, x>) mu(du))^2,                      (6)

          a convex problem (docs/theory/landscapes.md), whose value is above the minimum 0. With both signs R -> 0.
Status.   Derived. The minimum in (6) is proved to be a lower bound of the risk at every time, eq. (5). In experiments the flow attains
          it. For both signs, every limit of the flow is a minimum by a theorem (Chizat and Bach 2018); experiments show that it converges.
"""

from __future__ import annotations

import copy
import functools
import math
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from limitlab._core.cost import Cost
from limitlab.errors import Refused
from limitlab.laws import Draw, Experiment, Headline, Law, Values, observable, parameter, shared
from limitlab.models.one_variable import OneVariable

__all__ = ["ConeFlow"]

Array = NDArray[np.float64]

LONG = 200.0
"""Time at which an experiment measures the risk."""
STEP = 0.4
"""Number of neurons times the step of an experiment.

Longer steps make descent oscillate where the best direction is orthogonal to an input, because the risk has a kink there.
"""
HEAD = 2.0  # ratio of the second-layer weight to the length of the first-layer weight at the start
ROUNDING = 1e-9
SLOW = 0.01
"""Largest share of the labels in harmonics that descent learns slowly, for starts of both signs."""


@functools.lru_cache(maxsize=64)
def cone_risk(angle: float, inputs: int, directions: int, target: OneVariable | None = None) -> float:
    """Return the minimum in (6) over measures on the circle, by non-negative least squares.

    Between two neighbouring directions that are orthogonal to an input, relu(<u, x>) is linear in u on all inputs. So every measure can be
    moved to these directions without a change of the function, and they alone give the exact minimum. The directions
    2 pi k / `directions` are added to them.

    >>> round(cone_risk(2.0, 200, 2000), 7)
    0.2278816
    """
    from scipy.optimize import nnls

    x, y = _unit(inputs), _target(angle, inputs, target)
    missing = [u for u in _kinks(x) if not _on_grid(u, directions)]
    features = np.maximum(x @ np.concatenate([_unit(directions), *([missing] if missing else [])]).T, 0)
    scale = math.sqrt(inputs)
    return float(nnls(features / scale, y / scale, maxiter=100 * directions)[1]) ** 2


@functools.lru_cache(maxsize=64)
def signed_risk(angle: float, inputs: int, target: OneVariable | None = None) -> float:
    """Return the least risk over signed measures on the circle, by least squares over the directions orthogonal to an input.

    It is 0 for the difference of two neurons. For an even number of inputs it is the mean square of the odd part of the labels without
    its linear part, because relu(z) - relu(-z) = z.

    >>> round(signed_risk(2.0, 40, OneVariable(lambda t: np.cos(2 * t) + np.cos(3 * t))), 9)
    0.5
    """
    x, y = _unit(inputs), _target(angle, inputs, target)
    features = np.maximum(x @ _kinks(x).T, 0)
    residual = y - features @ np.linalg.lstsq(features, y, rcond=1e-12)[0]
    return float(np.mean(residual**2))


def slow_share(y: Array) -> float:
    """Return the share of the mean square of labels on a grid that descent learns slowly.

    These are the harmonics of even degree from 4. For an odd number of inputs they include those of odd degree from 3, which a network
    without bias can only fit because the grid is not symmetric.

    >>> t = 2 * np.pi * np.arange(40) / 40
    >>> round(slow_share(np.cos(2 * t) + np.cos(3 * t) + np.cos(4 * t)), 9)
    0.333333333
    """
    degree = np.arange(y.size // 2 + 1)
    energy = np.abs(np.fft.rfft(y)) ** 2 * np.where((degree == 0) | (2 * degree == y.size), 1.0, 2.0)
    slow = (degree >= 4) & (degree % 2 == 0) | (degree >= 3) & (degree % 2 == 1) & (y.size % 2 == 1)
    return float(energy[slow].sum() / energy.sum())


def _kinks(inputs: Array) -> Array:
    """Return the directions orthogonal to an input."""
    turned = np.stack([-inputs[:, 1], inputs[:, 0]], axis=1)
    return np.concatenate([turned, -turned])


def _on_grid(u: Array, count: int) -> bool:
    """Return whether a direction is one of `count` equally spaced directions."""
    place = float(np.arctan2(u[1], u[0])) * count / (2 * np.pi)
    return abs(place - round(place)) < 1e-9


def _unit(count: int) -> Array:
    angle = 2 * np.pi * np.arange(count) / count
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _target(angle: float, inputs: int, target: OneVariable | None = None) -> Array:
    t = 2 * np.pi * np.arange(inputs) / inputs
    if target is not None:
        return np.asarray(target(t), dtype=float)
    return np.maximum(np.cos(t), 0) - np.maximum(np.cos(t - angle), 0)


class ConeFlow(Law):
    """Does gradient descent on a wide ReLU network attain the least risk for all signs of the second layer at the start?

    Examples
    --------
    >>> limit = ConeFlow(angle=2.0).theory()
    >>> round(float(limit.risk), 6), round(float(limit.lower_bound), 6)
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
    revision = 2
    observables = {
        **shared("risk"),
        "zero_risk": observable("risk of the network 0", r"\mathbb{E}\,y^2", least=0),
        "lower_bound": observable("mean square of the negative labels", r"\mathbb{E}\,\min(y,0)^2", least=0),
    }
    simulation = Experiment("number of neurons N", sizes=(10, 20, 40), draws=10, rate=1.0)
    # Two angles without symmetry. The second layers are positive, because with both signs the limit is 0
    points = (
        dict(angle=1.2, inputs=80, directions=800),
        dict(angle=2.0, inputs=70, directions=700),
    )
    headline = Headline(
        "Signs at the start decide what is learnable",
        x="angle",
        over=(0.05, 3.14, 41),
        show=("risk",),
        curves=("signs", ("positive", "both")),
        size=20,
        draws=3,
        places=(0.5, 1.0, 1.5, 2.0, 2.5, 3.0),
    )

    angle: float = parameter(2.0, "angle between the two neurons behind the labels", symbol=r"\theta", above=0, most=math.pi)
    inputs: int = parameter(200, note="their number on the circle", symbol="n", least=8, most=2000)
    signs: Literal["positive", "both"] = parameter("positive", "signs of the second layer at the start")
    target_function: OneVariable | None = parameter(
        None,
        note="of the angle of the input, in place of the difference of two neurons; evaluated on [0, 2 pi)",
        added=True,
    )
    directions: int = parameter(
        2000, "directions of the convex problem", note="on the circle", kind="solver", least=16, most=20_000, finer=2
    )

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        if self.target_function is not None:
            default = type(self).model_fields["angle"].default
            if self.angle != default:
                raise Refused(f"angle = {self.angle:g} is not allowed together with target_function: omit one of them")
            if not np.any(_target(self.angle, self.inputs, self.target_function)):
                raise Refused(
                    "target_function = 0 at all inputs is not allowed: the labels would be 0; give another function"
                )
            share = slow_share(_target(self.angle, self.inputs, self.target_function))
            if self.signs == "both" and share > SLOW:
                raise Refused(
                    f"target_function is not allowed with signs = 'both': {share:.1%} of its mean square is in harmonics that "
                    f"descent has not learned by t = 200, and at most {SLOW:.0%} is allowed; use a smoother function, an even "
                    "number of inputs, or "
                    "signs = 'positive'"
                )
        return self

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of evaluating all neurons on all inputs."""
        return Cost(1e5 + 3.0 * self.inputs * size, 750.0 * self.inputs * float(size) ** 2)

    def predicted(self) -> Values:
        """Solve the convex problem and evaluate its bounds. The accuracy is the change from half as many directions."""
        y = _target(self.angle, self.inputs, self.target_function)
        risk, error = 0.0, ROUNDING
        if self.signs == "positive":
            risk = cone_risk(self.angle, self.inputs, self.directions, self.target_function)
            error += abs(risk - cone_risk(self.angle, self.inputs, self.directions // 2, self.target_function))
        elif self.target_function is not None:
            risk = signed_risk(self.angle, self.inputs, self.target_function)
            error += ROUNDING * float(np.mean(y**2))
        bounds = dict(zero_risk=float(np.mean(y**2)), lower_bound=float(np.mean(np.minimum(y, 0) ** 2)))
        return {"risk": risk, **bounds, "accuracy": dict(risk=error, zero_risk=ROUNDING, lower_bound=ROUNDING)}

    def measured(self, draw: Draw) -> Values:
        """Run gradient descent with `size` neurons, and compute the bounds from the same labels."""
        y = self._labels()
        bounds = dict(zero_risk=float(y @ y), lower_bound=float(np.minimum(y, 0) @ np.minimum(y, 0)))
        return {"risk": self.risk_at(draw), **{name: value / self.inputs for name, value in bounds.items()}}

    def risk_at(self, draw: Draw, time: float = LONG) -> float:
        """Return the risk of one gradient descent at the given time."""
        from limitlab.laws.mean_field._training import circle, outputs

        x = circle(self.inputs)
        return float(np.mean((self._labels() - outputs(*self.trained(draw, time), x)) ** 2))

    def trained(self, draw: Draw, time: float = LONG) -> tuple[Array, Array]:
        """Return both layers at a time. At the start |a_i| = 2 |w_i|; half of the a_i are negative if `signs` is "both"."""
        from limitlab.laws.mean_field._training import circle, relu_descent

        x, rng = circle(self.inputs), copy.deepcopy(draw.rng)  # the same start at every time
        w = rng.standard_normal((draw.size, 2))
        a = HEAD * np.linalg.norm(w, axis=1)
        if self.signs == "both":
            a[::2] *= -1
        return relu_descent(a, w, x, self._labels(), STEP / draw.size, time)

    def _labels(self) -> Array:
        """Return the labels of an experiment."""
        from limitlab.laws.mean_field._training import circle, labels

        if self.target_function is None:
            return labels(circle(self.inputs), self.angle)
        return _target(self.angle, self.inputs, self.target_function)
