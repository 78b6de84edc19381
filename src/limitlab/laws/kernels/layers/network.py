"""A network of layers, with its kernels between tables of inputs in blocks, and the same network at finite width."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from limitlab._core.checks import whole
from limitlab.errors import Refused
from limitlab.laws.kernels.layers.layer import Array, Dense, Kernels, Layer, Nonlinear, Parameters, Serial, input_kernels

__all__ = ["Network", "fully_connected"]


class KernelPair(NamedTuple):
    """The pair of NNGP and tangent kernel."""

    nngp: Array
    ntk: Array


class Network:
    """A network made of layers, infinitely wide (`nngp`, `ntk`, `kernels`) or of finite width (`start`, `apply`).

    Parameters
    ----------
    layers
        Layers in the order in which they act: `Dense`, `Convolution`, `Nonlinear`, `Residual`, `Parallel`, `Serial`, `AveragePool`,
        `GlobalAverage`, `Flatten`, or any object with their three methods.

    Notes
    -----
    Inputs are tables (inputs, channels), lines (inputs, positions, channels) or images (inputs, height, width, channels). The
    network must end with one position: flatten or average before the last `Dense`.

    Examples
    --------
    >>> net = Network(Dense(bias_std=0.3), Nonlinear("relu"), Dense(bias_std=0.3))
    >>> X = np.array([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0]])
    >>> net.ntk(X).round(6).tolist() == net.ntk(X, batch=1).round(6).tolist()
    True

    The same network with 100 neurons per layer:

    >>> parameters = net.start(np.random.default_rng(0), X.shape[1:], width=100)
    >>> net.apply(parameters, X).shape
    (2, 100)
    """

    def __init__(self, *layers: Layer):
        self.layers = Serial(*layers)

    def kernels(self, X: ArrayLike, Y: ArrayLike | None = None, batch: int | None = None) -> KernelPair:
        """Return NNGP and tangent kernel between all inputs of X and of Y (or of X).

        Parameters
        ----------
        X, Y
            Inputs.
        batch
            Number of inputs of each table that are compared at a time. Fewer inputs need less memory and give the same numbers. None
            means a number for which temporary arrays have some hundred thousand entries and fit into the processor's cache.
        """
        first = checked_inputs("X", X)
        second = first if Y is None else checked_inputs("Y", Y)
        if first.shape[1:] != second.shape[1:]:
            raise Refused(f"Y has inputs of shape {second.shape[1:]} and X of {first.shape[1:]}: both must have the same")
        size = _batch(batch, first.shape)
        nngp, ntk = (np.empty((len(first), len(second))) for _ in range(2))
        for rows in _blocks(len(first), size):
            for columns in _blocks(len(second), size):
                if Y is None and columns.start > rows.start:
                    continue  # the upper half is the mirror image
                kernels = self._block(first[rows], second[columns])
                nngp[rows, columns], ntk[rows, columns] = kernels.nngp[..., 0, 0], kernels.ntk[..., 0, 0]
                if Y is None and columns.start < rows.start:
                    nngp[columns, rows], ntk[columns, rows] = nngp[rows, columns].T, ntk[rows, columns].T
        return KernelPair(nngp, ntk)

    def _block(self, X: Array, Y: Array) -> Kernels:
        kernels = self.layers.kernels(input_kernels(X, Y))
        if kernels.nngp.shape[-1] != 1:
            raise Refused(
                f"the network ends with {kernels.nngp.shape[-1]} positions: add Flatten or GlobalAverage before its end"
            )
        return kernels

    def nngp(self, X: ArrayLike, Y: ArrayLike | None = None, batch: int | None = None) -> Array:
        """Return the covariance of the outputs at the start; arguments as in `kernels`."""
        return self.kernels(X, Y, batch).nngp

    def ntk(self, X: ArrayLike, Y: ArrayLike | None = None, batch: int | None = None) -> Array:
        """Return the tangent kernel; arguments as in `kernels`."""
        kernel = self.kernels(X, Y, batch).ntk
        if np.isnan(kernel).any():
            raise Refused("the network has no tangent kernel: an activation jumps; use continuous activations")
        return kernel

    def start(self, rng: np.random.Generator, shape: tuple[int, ...], width: int) -> Parameters:
        """Return parameters at the start of a network of finite width for inputs of this shape."""
        return self.layers.start(rng, shape, width)[0]

    def apply(self, parameters: Parameters, x: Any) -> Any:
        """Return the outputs of the network of finite width (NumPy or JAX arrays)."""
        return self.layers.apply(parameters, x)


def fully_connected(
    layers: int = 3, activation: Any = "relu", weight_std: float = 1.0, bias_std: float = 0.0, outputs: int | None = 1
) -> Network:
    """Return the network whose kernels are `limitlab.laws.nngp` and `ntk`, as layers.

    >>> from limitlab.laws import ntk
    >>> X = np.eye(3)
    >>> bool(np.allclose(fully_connected(4, "erf").ntk(X), ntk(X, layers=4, activation="erf"), rtol=1e-12))
    True
    """
    parts: list[Layer] = [Dense(weight_std, bias_std)]
    for _ in range(layers - 1):
        parts += [Nonlinear(activation), Dense(weight_std, bias_std)]
    return Network(*parts[:-1], Dense(weight_std, bias_std, outputs))


def checked_inputs(name: str, values: ArrayLike) -> Array:
    """Return finite inputs with at least an axis for the inputs and an axis for channels, or raise `Refused`."""
    inputs = np.asarray(values, dtype=float)
    if inputs.ndim < 2 or 0 in inputs.shape:
        raise Refused(f"{name} of shape {inputs.shape} is not allowed: must be (inputs, ..., channels), none of them 0")
    if not np.isfinite(inputs).all():
        raise Refused(f"{name} is not allowed: input {int(np.argwhere(~np.isfinite(inputs))[0, 0])} is not finite")
    return inputs


def _batch(batch: int | None, shape: tuple[int, ...]) -> int:
    positions = int(np.prod(shape[1:-1], dtype=int))
    if batch is None:
        return max(1, int(np.sqrt(400_000) / positions))
    whole("batch", batch, least=1)
    return int(batch)


def _blocks(length: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, length)) for start in range(0, length, size))
