"""An activation: Sigma -> T(Sigma), Theta -> Theta T'(Sigma), entry by entry (docs/theory/tangent_kernels.md, eqs. 3 and 6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from limitlab.laws.kernels.duals import dual_matrix
from limitlab.laws.kernels.layers.layer import Array, Kernels, Parameters
from limitlab.models.activations import Activation

__all__ = ["Nonlinear"]


@dataclass(frozen=True)
class Nonlinear:
    """y = s(x), element by element.

    Parameters
    ----------
    activation
        A name, a function of arrays, or an `Activation`.

    Examples
    --------
    >>> from limitlab.laws import Dense, Network
    >>> Network(Dense(), Nonlinear("relu"), Dense()).ntk([[1.0, 0.0, 0.0]]).round(9).tolist()
    [[0.333333333]]
    """

    activation: Any = "relu"

    def kernels(self, inputs: Kernels) -> Kernels:
        """The kernels of the output."""
        s = Activation(self.activation)
        q1, q2 = (np.diagonal(own, axis1=1, axis2=2) for own in (inputs.first, inputs.second))
        n, m, positions, _ = inputs.nngp.shape
        pairs = inputs.nngp.transpose(0, 2, 1, 3).reshape(n * positions, m * positions)
        value, slope = (
            part.reshape(n, positions, m, positions).transpose(0, 2, 1, 3)
            for part in dual_matrix(s, q1.ravel(), q2.ravel(), pairs)
        )
        own = [self._own(s, q, table) for q, table in ((q1, inputs.first), (q2, inputs.second))]
        return replace(inputs, first=own[0], second=own[1], nngp=value, ntk=inputs.ntk * slope)

    @staticmethod
    def _own(s: Activation, q: Array, table: Array) -> Array:
        return np.array([dual_matrix(s, row, row, block).value for row, block in zip(q, table, strict=True)])

    def start(self, rng: np.random.Generator, shape: tuple[int, ...], width: int) -> tuple[Parameters, tuple[int, ...]]:
        """There are no parameters."""
        return (), shape

    def apply(self, parameters: Parameters, x: Any) -> Any:
        """s(x)."""
        return Activation(self.activation)(x)
