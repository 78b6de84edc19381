"""Online SGD of a student neuron on the labels of a teacher neuron (docs/theory/online_sgd.md, section 2).

Setting.  Gaussian inputs, labels f(<a, v0>) + noise of standard deviation tau, student g(<a, x>), squared loss, spherical SGD.
Limit.    N -> infinity at a fixed step; s = step * samples / N.
Result.   The overlap follows dm/ds = -phi'(m) (1 - m^2) - (delta/2) m G(m), with the averages of `limitlab.laws.online_sgd._spherical`.
          The recovery time from a random start is of order N, N log N, N^(k-1) for information exponents k = 1, 2, >= 3.
Status.   Derived for a fixed step. Theorem as the step tends to 0.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from pydantic import model_validator

from limitlab._core.declaration import parameter
from limitlab.errors import ConvergenceError, Refused
from limitlab.laws import Headline
from limitlab.laws.online_sgd._spherical import (
    Array,
    InformationExponent,
    PairAverages,
    SphericalSGD,
    pair_averages,
    teacher_student_exponent,
)
from limitlab.models.activations import Activation
from limitlab.models.channels import OutputChannel
from limitlab.numerics.gaussian import norm, panel_rule

__all__ = ["OnlineSingleIndex"]


class OnlineSingleIndex(SphericalSGD):
    """How many new samples does a neuron need to find its teacher's direction, and which overlap does it attain?

    Examples
    --------
    >>> law = OnlineSingleIndex(teacher="identity", student="identity", noise=0.5, step=0.5, start_overlap=0.0, times=(0.25, 0.5))
    >>> law.theory().overlap.values.round(6).tolist()
    [0.382415, 0.600309]
    >>> round(law.stable_overlap(), 6), round(law.recovery_time(0.5), 6)
    (0.888889, 0.367413)
    >>> OnlineSingleIndex(teacher="square", student="square").information_exponent().order
    2
    """

    page = "online_sgd"
    # Label noise and a step at which the second term of the drift matters; then a student that differs from its teacher
    points = (
        dict(teacher="relu", student="relu", noise=0.5, step=0.4, start_overlap=0.25, times=(0.3, 0.8, 2.0)),
        dict(teacher="relu", student="tanh", noise=0.3, step=0.6, start_overlap=-0.3, times=(0.5, 1.0)),
    )
    headline = Headline(
        "A weak start means a long search",
        x="times",
        over=(0.0, 1.2, 121),
        show=("overlap",),
        curves=("start_overlap", (0.01, 0.05, 0.3)),
        at=dict(teacher="h2", student="h2", step=0.01),
        size=2000,
        draws=3,
        places=(0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.9, 1.2),
        sliders=("step", "teacher"),
    )

    teacher: Activation = parameter("relu", symbol="f")
    student: Activation = parameter("relu", "function of the student neuron", symbol="g")
    noise: float = parameter(0.0, least=0)
    channel: OutputChannel | None = parameter(None, note="replaces teacher and noise", added=True)

    @model_validator(mode="after")
    def _square_integrable(self) -> Self:
        if self.channel is not None:
            if self.channel.function is None:
                raise Refused(
                    f"channel = {self.channel!r} is not allowed: this law has labels f(score) + Gaussian noise of constant variance; use "
                    "OutputChannel.from_link(f, noise)"
                )
            fields = type(self).parameters()
            for name in ("teacher", "noise"):
                if getattr(self, name) != type(getattr(self, name))(fields[name].default):
                    raise Refused(
                        f"{name} = {getattr(self, name)!r} is not allowed together with channel, which replaces it; leave {name} out"
                    )
        for name, function in (("teacher", self.label_function), ("student", self.student)):
            _check_square_integrable(name, function)
        self.student.check_derivatives(parameter="student")
        z, weight = panel_rule(self.student.kinks)
        gain = np.broadcast_to(np.asarray(self.student.derivative(z)), z.shape)
        if weight @ gain**2 < 1e-12:
            raise Refused(
                f"student = {self.student.name!r} is not allowed: its derivative vanishes, so that gradients are 0; choose another function"
            )
        return self

    @property
    def label_function(self) -> Activation:
        """The function of the score that makes the labels, without noise."""
        return self.teacher if self.channel is None else _activation(self.channel)

    @property
    def label_noise(self) -> float:
        """The standard deviation of the label noise."""
        return self.noise if self.channel is None or self.channel.noise is None else self.channel.noise

    def averages(self) -> PairAverages:
        """Return the Gaussian averages of teacher and student as functions of the overlap."""
        return pair_averages(self.label_function, self.student)

    def population_loss(self, m: ArrayLike) -> Array:
        """Return phi(m), the mean loss at overlap m, eq. (2) of docs/theory/online_sgd.md.

        >>> float(OnlineSingleIndex(teacher="square", student="square").population_loss(0.4).round(10))
        3.36
        """
        averages = self.averages()
        return np.asarray(averages.squares[0] + averages.squares[1] + self.label_noise**2 - 2 * averages.kernel(m))

    def population_slope(self, m: ArrayLike) -> Array:
        """Return phi'(m), the derivative of the mean loss with respect to the overlap, eq. (3) of docs/theory/online_sgd.md."""
        return -2 * self.averages().slope(m)

    def gradient_noise(self, m: ArrayLike) -> Array:
        """Return G(m), the mean squared length of a gradient divided by the dimension, eq. (5) of docs/theory/online_sgd.md."""
        averages = self.averages()
        return np.asarray(4 * (averages.mismatch(m) + self.label_noise**2 * averages.squares[2]))

    def search_noise(self) -> float:
        """Return V_0, the variance of the component of a gradient along the hidden direction at overlap 0, eq. (6)."""
        return self.averages().search_noise(self.label_noise)

    def information_exponent(self) -> InformationExponent:
        """Return the information exponent from the Hermite coefficients of teacher and student, eq. (4)."""
        return teacher_student_exponent(self.label_function, self.student)

    def interpolation_step(self) -> float:
        """Return the step below which the overlap 1 is stable. It is 0 if teacher and student differ or noise is present.

        >>> round(OnlineSingleIndex(teacher="identity", student="identity").interpolation_step(), 6)
        1.0
        """
        if self.label_function != self.student or self.label_noise:
            return 0.0
        # along m = 1 - e the drift is e (2 |phi'(1)| - (step / 2) |G'(1)|)
        small = 1e-6
        return 4 * abs(float(self.population_slope(1.0))) * small / float(self.gradient_noise(1.0 - small))

    def model(self) -> Any:
        """Return the model of the simulations."""
        from limitlab.models.online import TeacherStudent

        return TeacherStudent(self.label_function, self.student, self.label_noise)

    def drift_error(self) -> float:
        """Return the relative error of the Gaussian averages."""
        return self.averages().accuracy


@lru_cache(maxsize=32)
def _activation(channel: OutputChannel) -> Activation:
    """Return the link of a channel as an activation, with its derivative and kinks."""
    assert channel.function is not None
    return Activation(channel.function)


def _check_square_integrable(name: str, activation: Activation) -> None:
    """Raise `Refused` if the Gaussian norm of an activation is infinite, 0 or cannot be computed."""
    try:
        with np.errstate(all="ignore"):
            size = float(norm(activation, kinks=activation.kinks or None, tolerance=1e-6))
    except (ConvergenceError, ValueError) as error:
        raise Refused(
            f"{name} = {activation.name!r} is not allowed: the Gaussian average of its square cannot be computed ({error})"
        ) from None
    if not math.isfinite(size) or size == 0:
        raise Refused(f"{name} = {activation.name!r} is not allowed: its Gaussian norm is {size:g}")
