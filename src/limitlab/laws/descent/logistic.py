"""Limit direction of gradient descent on separable data, which is the direction of the largest margin, and the rate of approach.

Setting.  w follows gradient flow from 0 on (1/n) sum_i loss(y_i <w, x_i>), loss(m) = e^-m or log(1 + e^-m); the data can be
          separated. Gradient descent with a small step eta has nearly the same weights after k = t/eta steps.
Limit.    t -> infinity. For random inputs then n, p -> infinity with p/n -> `ratio`.
Result.   With w_hat the shortest vector of margins y_i <w, x_i> >= 1, and its multipliers alpha_i on the support vectors,

              w(t) = w_hat log t + r(t),   r(t) -> r_inf,   y_i <r_inf, x_i> = -log(n alpha_i) on the support vectors,        (1)
              |w/|w| - w_hat/|w_hat|| = C/log t + ...,   C = |part of r_inf across w_hat|/|w_hat|.                           (2)

          For random inputs the margin of w tends to the margin of the law `MaxMargin`.
Status.   Theorem (Soudry et al. 2018) for (1); equations and corrections: docs/theory/implicit_bias.md.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab._core.checks import checked_table
from limitlab._core.results import CLOSED_FORM
from limitlab.errors import Refused
from limitlab.laws import Draw, Experiment, Headline, Values, observable, parameter, shared
from limitlab.laws.classification.max_margin import MaxMargin
from limitlab.laws.classification.populations import LabelledLaw
from limitlab.laws.descent._separable_flow import SeparableFlow, Tail

__all__ = ["LogisticDescent"]

Array = NDArray[np.float64]

DRAWN = 1e-8
"""Tolerance of the integration of the flow on one of many random draws. It is far below the spread of the draws."""


class LogisticDescent(LabelledLaw):
    """To which classifier does gradient descent on separable data converge, and how slowly?

    Make the law from your data by `from_data(X, y)`, or with random inputs and `ratio` features per sample.

    Examples
    --------
    >>> X, y = [[1.0, 0.5], [0.4, 1.2], [2.0, 2.5], [-1.5, -0.3]], [1, 1, 1, -1]
    >>> law = LogisticDescent.from_data(X, y)
    >>> law.direction.round(9).tolist(), round(law.margin, 9), round(law.gap_constant, 9)
    ([0.7, 0.6], 1.084652289, 1.02996322)
    >>> round(float(law.direction_gap(50.0)), 6)
    0.02078
    """

    status = "theorem"
    regime = "log t -> infinity; for random inputs then n, p -> infinity with p/n fixed"
    assumptions = (
        "the data can be separated through the origin",
        "the support vectors are linearly independent and have positive multipliers (true for almost all data)",
        "gradient flow, or descent with a small step",
    )
    references = ("soudry2018implicit", "montanari2019generalization")
    page = "implicit_bias"
    observables = {
        **shared("margin"),
        "norm_growth": observable("norm of the weights over log t", r"|w|/\log t", least=0),
        "gap_product": observable("direction gap times log t over its constant", r"|w/|w| - \hat w/|\hat w||\,\log t/C"),
    }
    simulation = Experiment("number of features p", sizes=(24, 48, 96), draws=50)
    revision = 3
    # Both losses, noisy labels, more and fewer features than samples
    points = (
        dict(ratio=1.5, link="probit", link_strength=2.0, loss="exponential"),
        dict(ratio=2.0, link="flip", link_strength=0.1, loss="logistic"),
    )
    headline = Headline(
        "The norm grows like log t over margin",
        x="ratio",
        over=(0.2, 8.0, 41),
        scale="log",
        show=("norm_growth",),
        size=48,
        draws=4,
        places=(0.3, 0.5, 1.0, 2.0, 4.0, 8.0),
        sliders=("loss", "log_time"),
    )

    ratio: float = parameter(1.0, symbol="p/n", above=0, scale="log", count="size / value")
    loss: Tail = parameter("exponential", note="of the margin: exponential or logistic")
    log_time: float = parameter(
        1e6, "logarithm of the training time", symbol=r"\log t", kind="experiment", least=10, most=1e9, scale="log"
    )
    inputs: tuple[tuple[float, ...], ...] | None = parameter(None, note="rows of a data set, in place of random ones")
    targets: tuple[float, ...] | None = parameter(None, note="-1, +1")

    @model_validator(mode="after")
    def _consistent_data(self) -> Self:
        checked_table(self.inputs, self.targets)
        if self.targets is not None and not set(self.targets) <= {-1.0, 1.0}:
            raise Refused(f"targets = {sorted(set(self.targets))[:5]} are not allowed: labels must be -1 or +1")
        if self.inputs is None:
            threshold = MaxMargin(link=self.link, link_strength=self.link_strength).separability_ratio()
            if self.ratio <= threshold:
                raise Refused(
                    f"ratio = {self.ratio:g} is not allowed: must be above {threshold:.6g}, so that the data can be separated"
                )
        return self

    @classmethod
    def from_data(cls, X: ArrayLike, y: ArrayLike, **parameters: Any) -> Self:
        """Return the law of a data set with inputs X (one row per sample) and labels y (-1 or +1)."""
        table, labels = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
        return cls(inputs=tuple(map(tuple, table.tolist())), targets=tuple(labels.tolist()), **parameters)

    # -- the data set ------------------------------------------------------------------------------------------------------

    @cached_property
    def flow(self) -> SeparableFlow:
        """Gradient flow on the data set of the law."""
        if self.inputs is None or self.targets is None:
            raise Refused("this law has random inputs: use from_data(X, y) for the results of a data set")
        flow = SeparableFlow(np.asarray(self.targets)[:, None] * np.asarray(self.inputs), self.loss)
        if flow.excess.size:  # computing it raises Refused if the data cannot be separated or are degenerate
            return flow
        raise Refused("inputs = () is not allowed: give at least one sample")

    @property
    def direction(self) -> Array:
        """The shortest vector w_hat with all margins at least 1."""
        return self.flow.direction

    @property
    def margin(self) -> float:
        """The largest margin 1/|w_hat| of the data set, or its limit for random inputs."""
        return float(self.evaluate()["margin"])

    @property
    def correction(self) -> Array:
        """The limit w_tilde of w(t) - w_hat log t as t -> infinity, projected on the span of the support vectors."""
        return self.flow.correction

    @property
    def support(self) -> NDArray[np.int64]:
        """Indices of the support vectors.

        For almost every data set there are at most as many of them as features.
        """
        return self.flow.hard_margin.support

    @property
    def residual_rate(self) -> float:
        """The exponent of the residual in the span of the support vectors, which vanishes like t^-rate.

        It is given by eq. (2a) of docs/theory/implicit_bias.md.
        """
        return self.flow.rate

    def residual(self, log_time: ArrayLike) -> Array:
        """Return w(t) - w_hat log t - `correction` at one value of log t, or at several increasing values (one row each).

        The residual converges. In the span of the support vectors it tends to 0 like t^-`residual_rate`. Its part across that span tends
        to a constant.

        >>> law = LogisticDescent.from_data([[1.0, 0.5], [0.4, 1.2], [2.0, 2.5], [-1.5, -0.3]], [1, 1, 1, -1])
        >>> np.abs(law.residual([10.0, 40.0])).max(axis=1).round(6).tolist()
        [0.541271, 0.010937]
        """
        residuals = self.flow.remainders(np.atleast_1d(np.asarray(log_time, dtype=float))) - self.correction
        return residuals if np.ndim(log_time) else residuals[0]

    @property
    def gap_constant(self) -> float:
        """The constant C of equation (2), with which the distance of the direction from its limit falls like C / log t."""
        return self.flow.gap_constant

    def direction_gap(self, log_time: ArrayLike) -> Array:
        """Return the distance of the direction of w(t) from its limit at one value of log t, or at several increasing values."""
        return self.flow.direction_gap(log_time)

    # -- the law -----------------------------------------------------------------------------------------------------------

    def predicted(self) -> Values:
        """Return the limits for t -> infinity of the margin of w(t), of |w(t)|/log t, and of the direction gap times log t over C."""
        if self.inputs is not None:
            solution = self.flow.hard_margin
            certified = max((solution.upper - solution.lower) / solution.margin, CLOSED_FORM)
            return dict(margin=solution.margin, norm_growth=1 / solution.margin, gap_product=1.0, accuracy=certified)
        limit = MaxMargin(ratio=self.ratio, link=self.link, link_strength=self.link_strength).evaluate()
        margin, error = float(limit["margin"]), float(limit["accuracy"])
        # gap_product divides two results of one integration, so its error is the tolerance of the integration of a draw
        accuracy = dict(margin=error * margin, norm_growth=error / margin, gap_product=DRAWN)
        return dict(margin=margin, norm_growth=1 / margin, gap_product=1.0, accuracy=accuracy)

    def measured(self, draw: Draw) -> Values:
        """Integrate the gradient flow up to `log_time` on a fresh draw, or on the data set (size and seed are then not used)."""
        if self.inputs is not None:
            return at_late_times(self.flow, self.log_time)
        rng = draw.rng
        for _ in range(100):  # a small draw may be inseparable by chance, and the law is not defined for it
            X = rng.standard_normal((draw.count("ratio"), draw.size))
            flow = SeparableFlow(self.labels.draw(rng, X[:, 0])[:, None] * X, self.loss, DRAWN)
            try:
                return at_late_times(flow, self.log_time)
            except ValueError:
                continue
        raise Refused(
            f"size = {draw.size} is not allowed: no separable draw was found at ratio = {self.ratio:g}; use a larger size"
        )

    def realised(self, size: int) -> Self:
        """Return the law with the ratio that `size` features give. A law of a data set is returned unchanged."""
        return self if self.inputs is not None else super().realised(size)


def at_late_times(flow: SeparableFlow, log_time: float) -> dict[str, float]:
    """Return the observables of a flow as t -> infinity.

    Their error at time t is of order 1/log t, so they are extrapolated from the values at log t and at 2 log t.
    """
    times = sorted({flow.settled, log_time, 2 * log_time})
    remainder = dict(zip(times, flow.remainders(times), strict=True))
    constant = float(np.linalg.norm(flow.across(flow.completed(remainder[flow.settled]))) * flow.hard_margin.margin)
    once, twice = (_at(flow, tau, remainder[tau], constant) for tau in (log_time, 2 * log_time))
    return {name: 2 * twice[name] - once[name] for name in once}


def _at(flow: SeparableFlow, log_time: float, remainder: Array, constant: float) -> dict[str, float]:
    """Return the observables at one time."""
    w = remainder + log_time * flow.direction
    gap = float(flow.gap(np.asarray(log_time), remainder))
    return dict(
        margin=float((flow.vectors @ w).min() / np.linalg.norm(w)),
        norm_growth=float(np.linalg.norm(w) / log_time),
        gap_product=gap * log_time / constant if constant > 0 else 1.0,
    )
