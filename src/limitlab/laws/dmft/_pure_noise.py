"""What the laws of training on pure noise share: a wide network with centred neurons and n = alpha m d samples.

Section "Pure noise" of docs/theory/interpolation.md.
"""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import model_validator

from limitlab._core.declaration import Status
from limitlab.errors import Refused
from limitlab.laws import Law, parameter
from limitlab.laws.dmft._aging import Reduced
from limitlab.laws.dmft._finite.kernels import kernels_of
from limitlab.models.activations import Activation


class PureNoise(Law):
    """Parameters of pure-noise training in the limit of large width."""

    status: ClassVar[Status] = "conjecture"
    references = ("montanari2025dynamical",)

    samples_per_weight: float = parameter(0.3, above=0, scale="log", count="size * value")
    noise: float = parameter(1.0, note="the labels are nothing else", least=0)
    kernel: tuple[float, ...] | None = parameter(None, note="None: of the activation, or q^2 if that is None too")
    activation: Activation | None = parameter(None, note="in place of a kernel")

    @model_validator(mode="after")
    def _nonlinear(self) -> Self:
        coefficients = self.coefficients()
        if not coefficients:
            raise Refused(
                "kernel = () is not allowed: give at least the coefficients of degree 0 to 2, such as (0, 0.5, 0.5)"
            )
        if min(coefficients) < 0:
            raise Refused(
                f"kernel = {coefficients} is not allowed: coefficients of h must be at least 0 (they are squares c_k^2)"
            )
        if coefficients[0] > 1e-12:
            raise Refused(
                f"kernel = {coefficients} is not allowed: h(0) must be 0, otherwise the output has a mean of order sqrt(m)"
            )
        if sum(coefficients[2:]) == 0:
            raise Refused(
                f"kernel = {coefficients} is not allowed: it must have a part of degree 2 or more, linear neurons have no transition"
            )
        return self

    def coefficients(self) -> tuple[float, ...]:
        """Coefficients of h, from whichever way they were given."""
        if self.kernel is not None and self.activation is not None:
            raise Refused("kernel is not allowed together with activation: give one of them")
        if self.activation is not None:
            return kernels_of(self.activation, None).kernel
        return (0.0, 0.0, 1.0) if self.kernel is None else self.kernel

    def reduced(self) -> Reduced:
        """What the long-time limit sees of the kernel."""
        return Reduced.of(self.coefficients())
