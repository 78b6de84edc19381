"""Kernels of wide networks as kernel objects of scikit-learn.

They can be used in `KernelRidge`, `SVC`, `GaussianProcessRegressor` and `Forecast`.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from limitlab.errors import Refused
from limitlab.laws.kernels.deep import nngp, ntk

__all__ = ["NetworkKernel"]

Array = NDArray[Any]


class NetworkKernel(Kernel):  # type: ignore[misc]
    """NNGP or tangent kernel of a fully connected network, as a kernel object of scikit-learn.

    Parameters
    ----------
    kind
        "ntk" or "nngp".
    layers, activation, weight_std, bias_std
        Parameters of `limitlab.laws.ntk`.

    Examples
    --------
    >>> from sklearn.kernel_ridge import KernelRidge
    >>> X, y = np.eye(4), np.array([1.0, 2.0, 3.0, 4.0])
    >>> KernelRidge(alpha=1e-9, kernel=NetworkKernel(layers=2)).fit(X, y).predict(X).round(4).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """

    def __init__(
        self,
        kind: Literal["ntk", "nngp"] = "ntk",
        layers: int = 3,
        activation: Any = "relu",
        weight_std: float = 1.0,
        bias_std: float = 0.0,
    ):
        self.kind, self.layers, self.activation = kind, layers, activation
        self.weight_std, self.bias_std = weight_std, bias_std

    def __call__(self, X: Array, Y: Array | None = None, eval_gradient: bool = False) -> Any:
        """Return the kernel between the rows of two tables.

        scikit-learn does not tune any parameter of this kernel, so its gradient is empty.
        """
        if self.kind not in ("ntk", "nngp"):
            raise Refused(f"kind = {self.kind!r} is not allowed: must be 'ntk' or 'nngp'")
        compare = ntk if self.kind == "ntk" else nngp
        matrix = compare(X, Y, self.layers, self.activation, self.weight_std, self.bias_std)
        return (matrix, np.empty((len(X), len(X), 0))) if eval_gradient else matrix

    def diag(self, X: Array) -> Array:
        """Return the kernel of every row with itself."""
        return np.array([self(row[None])[0, 0] for row in np.asarray(X)])

    def is_stationary(self) -> bool:
        """Return False, because the kernel does not depend on differences of rows only."""
        return False
