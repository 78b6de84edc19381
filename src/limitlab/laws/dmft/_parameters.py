"""Parameters that all laws of two-layer dynamics share, for the kernels and for the start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import field_validator, model_validator

from limitlab.errors import Refused
from limitlab.laws import Law, parameter
from limitlab.laws.dmft._finite.kernels import Kernels, checked_kernels, kernels_of
from limitlab.models.activations import Activation
from limitlab.models.distributions import Distribution

Floats = NDArray[np.float64]

DEFAULT_KERNEL = (0.0, 0.5, 0.5)
DEFAULT_TARGET = (0.0, 0.5, 0.3)


class TwoLayerStart(Law):
    """A two-layer network f(x) = (1/m) sum_j a_j sigma(<w_j, x>) with unit w_j, and its start."""

    kernel: tuple[float, ...] | None = parameter(
        None, note="None: of the activation, or 0.5 q + 0.5 q^2 if that is None too"
    )
    target: tuple[float, ...] | None = parameter(
        None,
        note="of the mean product of neuron and target as a power series in the overlap, from degree 0; None and a kernel: pure noise",
    )
    target_norm: float | None = parameter(
        None,
        "squared norm of the target",
        note="None: the least that its coefficients allow",
        symbol=r"\|\varphi\|^2",
        least=0,
    )
    activation: Activation | None = parameter(None, note="in place of a kernel")
    target_function: Activation | None = parameter(None, note="in place of coefficients")
    start_second_layer: float = parameter(1.0, note="of every neuron")
    start_overlap: float | None = parameter(
        None,
        note="of every neuron with the target direction; None: 0.1, and 0 where the labels are pure noise",
        symbol="v_0",
        least=-1,
        most=1,
    )
    times: float | tuple[float, ...] = parameter(
        (0.0, 0.5, 1.0, 2.0, 4.0), note="in the unit in which weights change by order 1", kind="coordinate", least=0
    )

    @field_validator("start_second_layer", mode="before")
    @classmethod
    def _neurons_start_alike(cls, value: Any) -> Any:
        """Raise `Refused` for second-layer weights that differ between neurons."""
        if (isinstance(value, (Sequence, np.ndarray, Distribution)) and not isinstance(value, str)) or callable(value):
            raise Refused(
                "start_second_layer is not allowed as a list or a distribution: the equations need neurons that start alike; give one "
                "number, or use MultiIndexFlow(second_layer=...), which has one weight per particle and unlimited samples"
            )
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.activation is not None and (
            self.kernel is not None or self.target is not None or self.target_norm is not None
        ):
            raise Refused(
                "activation is not allowed together with kernel, target or target_norm: give activation and target_function, or "
                "kernel, target and target_norm"
            )
        if self.activation is None and self.target_function is not None:
            raise Refused("target_function is not allowed without activation: give both functions, or kernel and target")
        if self.kernel is None and self.target is not None and self.activation is None:
            raise Refused("target is not allowed without kernel: give both")
        self.kernels()
        return self

    def kernels(self) -> Kernels:
        """Return h, phihat and the norm of the target, from the activations or from the coefficients.

        >>> from limitlab.laws.dmft.two_layer import TwoLayerDynamics
        >>> TwoLayerDynamics(kernel=(0, 0.4, 0.6)).kernels().target
        ()
        """
        if self.activation is not None:
            return kernels_of(self.activation, self.target_function)
        if self.kernel is None:
            return checked_kernels(DEFAULT_KERNEL, DEFAULT_TARGET, 1.0 if self.target_norm is None else self.target_norm)
        return checked_kernels(self.kernel, self.target or (), self.target_norm)

    @property
    def overlap_at_start(self) -> float:
        """The overlap v(0), which is `start_overlap` or by default 0.1, and 0 for pure-noise labels.

        >>> from limitlab.laws.dmft.two_layer import TwoLayerDynamics
        >>> TwoLayerDynamics().overlap_at_start, TwoLayerDynamics(kernel=(0, 0.4, 0.6)).overlap_at_start
        (0.1, 0.0)
        """
        if self.start_overlap is not None:
            return self.start_overlap
        return 0.1 if any(self.kernels().target) else 0.0


def check_correlation(width: int, overlap: float, correlation: float) -> None:
    """Raise `Refused` if unit vectors with this overlap and this inner product of two vectors do not exist."""
    if width == 1:
        return
    together = 1.0 + (width - 1) * correlation
    slack = 1e-12
    if correlation > 1 + slack or together < -slack or overlap**2 > together / width + slack:
        raise Refused(
            f"start_correlation = {correlation:g} is not allowed: {width} unit vectors with overlap start_overlap = {overlap:g} need "
            f"a common inner product between {max(-1 / (width - 1), (width * overlap**2 - 1) / (width - 1)):g} and 1"
        )


MOST_DEGREE = 8
"""Largest degree of an activation's kernel for which an experiment stores Gaussian tensors of all degrees."""


def check_degree(law: str, activation: Activation | None, kernel: Sequence[float], remedy: str) -> None:
    """Raise `Refused` if an experiment of the Gaussian model would need tensors of a high degree for an activation.

    >>> check_degree("TwoLayerDynamics", Activation("h2"), (0.0, 0.0, 1.0), "")
    """
    degree = max((k for k, value in enumerate(kernel) if value), default=0)
    if activation is not None and degree > MOST_DEGREE:
        raise Refused(
            f"activation = {activation.name!r} is not allowed for an experiment of {law} with the Gaussian model: its kernel has terms up "
            f"to degree {degree}, each of which needs size^degree numbers, and must have degree at most {MOST_DEGREE}; {remedy}"
        )
