"""The interface of a layer, and the layers, each with its map of kernels and its function at finite width.

A signal has positions (the pixels of an image, or one position for a plain vector). Between positions p of an input x and q of an input y,
`nngp` is the covariance of the signals at the start and `ntk` the tangent kernel, per channel (docs/theory/tangent_kernels.md, section 3).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import Refused
from limitlab.laws.kernels.duals import dual_matrix
from limitlab.models.activations import Activation

__all__ = ["AveragePool", "Convolution", "Dense", "Flatten", "GlobalAverage", "Nonlinear", "Parallel", "Residual", "Serial"]

Array = NDArray[Any]


Parameters = Any  # arrays in lists and tuples


@dataclass(frozen=True)
class Kernels:
    """Kernels between all inputs of two tables at all positions.

    Attributes
    ----------
    first, second
        Covariances within each input of the first and of the second table, shape (inputs, P, P).
    nngp, ntk
        Covariance and tangent kernel between them, shape (inputs, inputs, P, P).
    shape
        The arrangement of the P positions: () for one, (P,) on a line, (height, width) in an image.
    """

    first: Array
    second: Array
    nngp: Array
    ntk: Array
    shape: tuple[int, ...] = ()

    @property
    def covariances(self) -> tuple[Array, Array, Array]:
        """The three arrays that a linear layer maps in the same way."""
        return self.first, self.second, self.nngp


class Layer(Protocol):
    """One part of a network, with its kernels at infinite width and its parameters and function at finite width."""

    def kernels(self, inputs: Kernels) -> Kernels:
        """Return the kernels of the output from those of the input."""
        ...

    def start(self, rng: np.random.Generator, shape: tuple[int, ...], width: int) -> tuple[Parameters, tuple[int, ...]]:
        """Return parameters at the start for a signal of this shape (positions, then channels), and the shape of the output."""
        ...

    def apply(self, parameters: Parameters, x: Any) -> Any:
        """Return the output for inputs of shape (inputs, positions, channels), NumPy or JAX arrays."""
        ...


def input_kernels(X: Array, Y: Array) -> Kernels:
    """Return kernels of the inputs per channel, for tables (inputs, channels) or images (inputs, *positions, channels).

    >>> input_kernels(np.ones((1, 2)), np.ones((3, 2))).nngp.shape
    (1, 3, 1, 1)
    """
    shape, channels = X.shape[1:-1], X.shape[-1]
    first, second = (table.reshape(len(table), -1, channels) for table in (X, Y))
    within = [np.einsum("ipc,iqc->ipq", table, table) / channels for table in (first, second)]
    positions = first.shape[1]
    flat = (first.reshape(-1, channels) @ second.reshape(-1, channels).T).reshape(len(X), positions, len(Y), positions)
    nngp = np.ascontiguousarray(flat.transpose(0, 2, 1, 3)) / channels
    return Kernels(within[0], within[1], nngp, np.zeros_like(nngp), shape)


# -- a fully connected layer: Sigma -> w^2 Sigma + b^2, Theta -> w^2 Theta + the new Sigma (docs/theory/tangent_kernels.md, eq. 6)


@dataclass(frozen=True)
class Dense:
    """y = w W x / sqrt(channels) + b B at every position, with entries of W, B from N(0, 1).

    Parameters
    ----------
    weight_std, bias_std
        Standard deviations w of the weights and b of the biases.
    outputs
        Channels of the output of a finite network. None means its width.

    Examples
    --------
    >>> from limitlab.laws import Network
    >>> Network(Dense(weight_std=2.0)).ntk([[1.0, 1.0]]).tolist()   # a linear model
    [[4.0]]
    """

    weight_std: float = 1.0
    bias_std: float = 0.0
    outputs: int | None = None

    def kernels(self, inputs: Kernels) -> Kernels:
        """Return the kernels of the output."""
        w2, b2 = self.weight_std**2, self.bias_std**2
        first, second, nngp = (w2 * part + b2 for part in inputs.covariances)
        return replace(inputs, first=first, second=second, nngp=nngp, ntk=w2 * inputs.ntk + nngp)

    def start(self, rng: np.random.Generator, shape: tuple[int, ...], width: int) -> tuple[Parameters, tuple[int, ...]]:
        """Draw standard Gaussian weights (channels, outputs) and biases."""
        outputs = width if self.outputs is None else self.outputs
        return [rng.standard_normal((shape[-1], outputs)), rng.standard_normal(outputs)], (*shape[:-1], outputs)

    def apply(self, parameters: Parameters, x: Any) -> Any:
        """Return the signal times the weights, plus the biases."""
        weights, biases = parameters
        return self.weight_std / np.sqrt(x.shape[-1]) * (x @ weights) + self.bias_std * biases


# -- an activation: Sigma -> T(Sigma), Theta -> Theta T'(Sigma), entry by entry (docs/theory/tangent_kernels.md, eq. 6)


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
        """Return the kernels of the output."""
        s = Activation(self.activation)
        q1, q2 = (np.diagonal(within, axis1=1, axis2=2) for within in (inputs.first, inputs.second))
        n, m, positions, _ = inputs.nngp.shape
        pairs = inputs.nngp.transpose(0, 2, 1, 3).reshape(n * positions, m * positions)
        value, slope = (
            part.reshape(n, positions, m, positions).transpose(0, 2, 1, 3)
            for part in dual_matrix(s, q1.ravel(), q2.ravel(), pairs)
        )
        within = [self._own(s, q, table) for q, table in ((q1, inputs.first), (q2, inputs.second))]
        return replace(inputs, first=within[0], second=within[1], nngp=value, ntk=inputs.ntk * slope)

    @staticmethod
    def _own(s: Activation, q: Array, table: Array) -> Array:
        return np.array([dual_matrix(s, row, row, block).value for row, block in zip(q, table, strict=True)])

    def start(self, rng: np.random.Generator, shape: tuple[int, ...], width: int) -> tuple[Parameters, tuple[int, ...]]:
        """Return an empty tuple of parameters, and the unchanged shape."""
        return (), shape

    def apply(self, parameters: Parameters, x: Any) -> Any:
        """Return s(x)."""
        return Activation(self.activation)(x)


# -- layers that join positions: flattening, averaging all of them, averaging windows (docs/theory/tangent_kernels.md, eq. 8)


@dataclass(frozen=True)
class Flatten:
    """Layer that turns all positions into channels, whose kernels are means over equal positions.

    >>> from limitlab.laws import Dense, Network
    >>> Network(Flatten(), Dense()).ntk(np.ones((1, 4, 2))).tolist()
    [[1.0]]
    """

    def kernels(self, inputs: Kernels) -> Kernels:
        """Return the means of the diagonals."""
        return _one_position(inputs, lambda part: np.trace(part, axis1=-2, axis2=-1) / part.shape[-1])

    def start(self, rng: np.random.Generator, shape: tuple[int, ...], width: int) -> tuple[Parameters, tuple[int, ...]]:
        """Return an empty tuple of parameters, and the shape of one row."""
        return (), (math.prod(shape),)

    def apply(self, parameters: Parameters, x: Any) -> Any:
        """Return the signals with all positions joined to one row per input."""
        return x.reshape(len(x), -1)


@dataclass(frozen=True)
class GlobalAverage:
    """Layer that returns the mean over all positions, whose kernels are means over all pairs of positions.

    >>> from limitlab.laws import Dense, Network
    >>> Network(GlobalAverage(), Dense()).ntk(np.ones((1, 4, 2))).tolist()
    [[1.0]]
    """

    def kernels(self, inputs: Kernels) -> Kernels:
        """Return the means of all entries."""
        return _one_position(inputs, lambda part: part.mean(axis=(-2, -1)))

    def start(self, rng: np.random.Generator, shape: tuple[int, ...], width: int) -> tuple[Parameters, tuple[int, ...]]:
        """Return an empty tuple of parameters, and the number of channels."""
        return (), (shape[-1],)

    def apply(self, parameters: Parameters, x: Any) -> Any:
        """Return the mean signal."""
        return x.mean(axis=tuple(range(1, x.ndim - 1)))


@dataclass(frozen=True)
class AveragePool:
    """Layer that returns means over windows that do not overlap.

    Parameters
    ----------
    window
        Side of a window. It must divide every side of the signal.

    Examples
    --------
    >>> from limitlab.laws import Flatten, Network
    >>> Network(AveragePool(2), Flatten()).nngp(np.array([[[1.0], [3.0], [0.0], [2.0]]])).tolist()
    [[2.5]]
    """

    window: int = 2

    def kernels(self, inputs: Kernels) -> Kernels:
        """Return the means over pairs of windows."""
        shape = self._shape(inputs.shape)
        first, second, nngp, ntk = (self._pooled(part, inputs.shape) for part in (*inputs.covariances, inputs.ntk))
        return replace(inputs, first=first, second=second, nngp=nngp, ntk=ntk, shape=shape)

    def _shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        if any(side % self.window for side in shape):
            raise Refused(f"window = {self.window} is not allowed: must divide every side of the signal, here {shape}")
        return tuple(side // self.window for side in shape)

    def _pooled(self, table: Array, shape: tuple[int, ...]) -> Array:
        lead, positions = table.shape[:-2], math.prod(self._shape(shape))
        split = [size for side in shape + shape for size in (side // self.window, self.window)]
        windows = tuple(len(lead) + 1 + 2 * axis for axis in range(2 * len(shape)))
        return np.asarray(table.reshape(*lead, *split).mean(axis=windows)).reshape(*lead, positions, positions)

    def start(self, rng: np.random.Generator, shape: tuple[int, ...], width: int) -> tuple[Parameters, tuple[int, ...]]:
        """Return an empty tuple of parameters, and the shape after pooling."""
        return (), (*self._shape(shape[:-1]), shape[-1])

    def apply(self, parameters: Parameters, x: Any) -> Any:
        """Return the mean signal of every window."""
        split = [size for side in x.shape[1:-1] for size in (side // self.window, self.window)]
        windows = tuple(2 + 2 * axis for axis in range(x.ndim - 2))
        return x.reshape(len(x), *split, x.shape[-1]).mean(axis=windows)


def _one_position(inputs: Kernels, mean: Callable[[Array], Array]) -> Kernels:
    first, second, nngp, ntk = (mean(part)[..., None, None] for part in (*inputs.covariances, inputs.ntk))
    return Kernels(first, second, nngp, ntk, ())


# -- a convolution: kernels are averaged over the filter's offsets, the same for both positions (docs/theory/tangent_kernels.md, eq. 7)


@dataclass(frozen=True)
class Convolution:
    """y_p = w sum_o W_o x_(p+o) / sqrt(offsets x channels) + b B over a line or an image.

    Parameters
    ----------
    filter
        Side of the filter, an odd number.
    weight_std, bias_std
        Standard deviations w of the weights and b of the biases.
    padding
        "circular" (opposite edges are neighbours) or "zero".
    outputs
        Channels of the output of a finite network. None means its width.

    Examples
    --------
    >>> from limitlab.laws import Flatten, Network
    >>> Network(Convolution(3), Flatten()).nngp(np.ones((1, 5, 2))).tolist()
    [[1.0]]
    """

    filter: int = 3
    weight_std: float = 1.0
    bias_std: float = 0.0
    padding: Literal["circular", "zero"] = "circular"
    outputs: int | None = None

    def __post_init__(self) -> None:
        if self.filter < 1 or self.filter % 2 == 0:
            raise Refused(f"filter = {self.filter!r} is not allowed: must be an odd number of at least 1")
        if self.padding not in ("circular", "zero"):
            raise Refused(f"padding = {self.padding!r} is not allowed: must be 'circular' or 'zero'")

    def offsets(self, dimensions: int) -> list[tuple[int, ...]]:
        """Return all offsets of the filter."""
        if dimensions == 0:
            raise Refused("a convolution needs inputs with positions: give tables of shape (inputs, positions, channels)")
        half = self.filter // 2
        return list(product(range(-half, half + 1), repeat=dimensions))

    def kernels(self, inputs: Kernels) -> Kernels:
        """Return the kernels of the output."""
        w2, b2 = self.weight_std**2, self.bias_std**2
        first, second, nngp = (w2 * self._average(part, inputs.shape) + b2 for part in inputs.covariances)
        ntk = w2 * self._average(inputs.ntk, inputs.shape) + nngp if inputs.ntk.any() else nngp.copy()
        return replace(inputs, first=first, second=second, nngp=nngp, ntk=ntk)

    def _average(self, table: Array, shape: tuple[int, ...]) -> Array:
        """Return the mean over offsets o of the entries (p + o, q + o)."""
        from limitlab.laws.kernels.layers._compiled import diagonal_sums

        count = len(self.offsets(len(shape)))
        for axis, side in enumerate(shape):
            before, after = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
            pairs = np.ascontiguousarray(table).reshape(-1, *table.shape[-2:])
            table = diagonal_sums(pairs, before, side, after, self.filter // 2, self.padding == "circular").reshape(
                table.shape
            )
        return table / count

    def start(self, rng: np.random.Generator, shape: tuple[int, ...], width: int) -> tuple[Parameters, tuple[int, ...]]:
        """Draw standard Gaussian weights (offsets, channels, outputs) and biases."""
        outputs = width if self.outputs is None else self.outputs
        count = len(self.offsets(len(shape) - 1))
        return [rng.standard_normal((count, shape[-1], outputs)), rng.standard_normal(outputs)], (*shape[:-1], outputs)

    def apply(self, parameters: Parameters, x: Any) -> Any:
        """Return the sum over offsets of shifted signals times weights."""
        weights, biases = parameters
        numpy = x.__array_namespace__()
        axes = tuple(range(1, x.ndim - 1))
        moved = [shifted(x, axes, offset, self.padding, numpy) for offset in self.offsets(len(axes))]
        total = sum(part @ weights[k] for k, part in enumerate(moved))
        return self.weight_std / np.sqrt(len(moved) * x.shape[-1]) * total + self.bias_std * biases


def shifted(x: Any, axes: tuple[int, ...], offset: tuple[int, ...], padding: str, numpy: Any = np) -> Any:
    """Return x at p + offset for every position p, with circular continuation or zeros beyond the edge.

    >>> shifted(np.arange(4), (0,), (1,), "zero").tolist(), shifted(np.arange(4), (0,), (1,), "circular").tolist()
    ([1, 2, 3, 0], [1, 2, 3, 0])
    >>> shifted(np.arange(4), (0,), (-1,), "zero").tolist()
    [0, 0, 1, 2]
    """
    moved = numpy.roll(x, tuple(-step for step in offset), axes)
    if padding == "circular":
        return moved
    for axis, step in zip(axes, offset, strict=True):
        place = np.arange(x.shape[axis]) + step
        inside = ((place >= 0) & (place < x.shape[axis])).reshape([-1 if k == axis else 1 for k in range(x.ndim)])
        moved = moved * inside
    return moved


# -- layers in sequence and in parallel; a residual block adds a branch to the identity (docs/theory/tangent_kernels.md, eq. 9)


@dataclass(frozen=True, init=False)
class Serial:
    """A sequence of layers.

    >>> from limitlab.laws import Dense, Nonlinear
    >>> len(Serial(Dense(), Nonlinear("relu")).layers)
    2
    """

    layers: tuple[Layer, ...]

    def __init__(self, *layers: Layer):
        object.__setattr__(self, "layers", layers)

    def kernels(self, inputs: Kernels) -> Kernels:
        """Return the kernels after the last layer."""
        for layer in self.layers:
            inputs = layer.kernels(inputs)
        return inputs

    def start(self, rng: np.random.Generator, shape: tuple[int, ...], width: int) -> tuple[Parameters, tuple[int, ...]]:
        """Return the parameters of every layer, and the shape of the output."""
        parameters = []
        for layer in self.layers:
            parameters_of_layer, shape = layer.start(rng, shape, width)
            parameters.append(parameters_of_layer)
        return parameters, shape

    def apply(self, parameters: Parameters, x: Any) -> Any:
        """Return the output of the last layer."""
        for layer, parameters_of_layer in zip(self.layers, parameters, strict=True):
            x = layer.apply(parameters_of_layer, x)
        return x


@dataclass(frozen=True, init=False)
class Parallel:
    """The sum of branches with the same input.

    All branches except one must end in separate weights (`Dense` or `Convolution`). Then their outputs are uncorrelated, and the kernel of
    the sum is the sum of their kernels.

    Examples
    --------
    >>> from limitlab.laws import Dense, Network
    >>> Network(Parallel(Dense(), Dense())).nngp([[1.0, 1.0]]).tolist()
    [[2.0]]
    """

    branches: tuple[Layer, ...]

    def __init__(self, *branches: Layer):
        object.__setattr__(self, "branches", branches)
        bare = [branch for branch in branches if not ends_in_weights(branch)]
        if not branches or len(bare) > 1:
            raise Refused(
                f"branches = {bare} are not allowed: all branches but one must end in Dense or Convolution, or their outputs are correlated"
            )

    def kernels(self, inputs: Kernels) -> Kernels:
        """Return the sums of the branches' kernels."""
        kernels = [branch.kernels(inputs) for branch in self.branches]
        if len({part.nngp.shape for part in kernels}) > 1:
            raise Refused("branches are not allowed: their outputs have different positions and cannot be added")
        first, second, nngp, ntk = (
            np.sum([getattr(part, name) for part in kernels], axis=0) for name in ("first", "second", "nngp", "ntk")
        )
        return Kernels(first, second, nngp, ntk, kernels[0].shape)

    def start(self, rng: np.random.Generator, shape: tuple[int, ...], width: int) -> tuple[Parameters, tuple[int, ...]]:
        """Return the parameters of every branch, and the shape of the output."""
        made = [branch.start(rng, shape, width) for branch in self.branches]
        if len({end for _, end in made}) > 1:
            raise Refused(
                f"branches are not allowed: their outputs have shapes {[end for _, end in made]} and cannot be added"
            )
        return [parameters_of_branch for parameters_of_branch, _ in made], made[0][1]

    def apply(self, parameters: Parameters, x: Any) -> Any:
        """Return the sum of the outputs."""
        return sum(
            branch.apply(parameters_of_branch, x)
            for branch, parameters_of_branch in zip(self.branches, parameters, strict=True)
        )


class Residual(Parallel):
    """A layer that adds a branch to its input, y = x + branch(x).

    >>> from limitlab.laws import Dense, Network, Nonlinear
    >>> Network(Dense(), Residual(Nonlinear("relu"), Dense()), Dense()).nngp([[2.0, 0.0]]).tolist()
    [[3.0]]
    """

    def __init__(self, *branch: Layer):
        super().__init__(Serial(), Serial(*branch))


def ends_in_weights(layer: Layer) -> bool:
    """Return whether the last operation of a layer is a multiplication by its weights.

    >>> ends_in_weights(Serial()), ends_in_weights(Dense())
    (False, True)
    """
    if isinstance(layer, Serial):
        return bool(layer.layers) and ends_in_weights(layer.layers[-1])
    if isinstance(layer, Parallel):
        return all(map(ends_in_weights, layer.branches))
    return isinstance(layer, (Dense, Convolution))
