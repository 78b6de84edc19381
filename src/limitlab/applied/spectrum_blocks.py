"""Spectra of the Hessian and of the second moment of the gradients of your own network, for each layer.

A "block" is one array w of parameters. Its matrices are the Hessian E[d^2 L / dw^2] and the second moment E[dL/dw dL/dw^T] of the
gradients. The code computes only their products with vectors, by two passes of automatic differentiation over batches of the data. With
l_i the loss of sample i, the Hessian maps v to the derivative of the mean gradient along v. The second moment of the gradients maps v to
J^T (J v) / n, where J contains the derivatives of all l_i. There is one implementation with JAX and one with PyTorch.

The top eigenpairs come from restarted Lanczos, and the density from stochastic Lanczos quadrature. No matrix is formed. The memory is that
of a few dozen vectors of the size of the block, plus one batch. docs/theory/alignment.md describes the spectra of two models.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from limitlab._core.arguments import explained
from limitlab.errors import Refused, did_you_mean
from limitlab.models.optimisers import double_precision_jax, is_torch_module
from limitlab.numerics.lanczos import SpectralMeasure, spectral_measure, top_eigenpairs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["spectrum", "spectrum_along"]

Array = NDArray[np.float64]
Matrix = Literal["hessian", "gradient"]
MATRICES: tuple[Matrix, Matrix] = ("hessian", "gradient")
Loss = Callable[..., Any]
Product = Callable[[Array], Array]


# -- products with vectors ----------------------------------------------------------------------------------------------


class Block(NamedTuple):
    """The parameters of a block as a vector, and the product of each of its matrices with a vector."""

    weights: Array
    product: Callable[[Matrix], Product]


def in_batches(data: Any, batch: int) -> Iterator[tuple[Any, ...]]:
    """The data in pieces of at most `batch` samples.

    >>> [len(part) for (part,) in in_batches(np.arange(5), 2)]
    [2, 2, 1]
    """
    arrays = data if isinstance(data, (tuple, list)) else (data,)
    lengths = {len(array) for array in arrays}
    if len(lengths) != 1 or 0 in lengths:
        raise Refused(
            f"data with {sorted(lengths)} samples is not allowed: all arrays must have the same length, at least 1"
        )
    if batch < 1:
        raise Refused(f"batch = {batch} is not allowed: must be at least 1")
    (length,) = lengths
    for start in range(0, length, batch):
        yield tuple(array[start : start + batch] for array in arrays)


def averaged(step: Callable[[Array, tuple[Any, ...]], Any], parts: list[tuple[Any, ...]]) -> Product:
    """The mean of step(v, batch) over all samples, as a function of v.

    >>> parts = [(np.arange(3.0),), (np.array([9.0]),)]
    >>> averaged(lambda v, part: v * part[0].mean(), parts)(np.ones(1)).tolist()
    [3.0]
    """
    samples = sum(len(part[0]) for part in parts)

    def product(v: Array) -> Array:
        total: Any = 0.0
        for part in parts:
            total = total + len(part[0]) / samples * step(v, part)
        return np.asarray(total, dtype=float).ravel()

    return product


# -- JAX ---------------------------------------------------------------------------------------------------------------


def jax_blocks(loss: Loss, params: Any, parts: list[tuple[Any, ...]]) -> dict[str, Block]:
    """Return the blocks of a tree of JAX parameters, by their names in the tree.

    >>> list(jax_blocks(lambda p, x: 0.0, {"a": [np.ones(2), np.ones(1)]}, []))
    ['a.0', 'a.1']
    """
    jax = double_precision_jax()
    leaves, tree = jax.tree_util.tree_flatten_with_path(params)
    arrays = [jax.numpy.asarray(leaf, dtype=float) for _, leaf in leaves]
    names = [".".join(_step(key) for key in path) or "params" for path, _ in leaves]

    def block(place: int) -> Block:
        weights = np.asarray(arrays[place], dtype=float).ravel()
        return Block(weights, lambda matrix: _jax_product(jax, loss, arrays, tree, place, parts, matrix))

    return {name: block(place) for place, name in enumerate(names)}


def _jax_product(
    jax: Any, loss: Loss, arrays: list[Any], tree: Any, place: int, parts: list[tuple[Any, ...]], matrix: Matrix
) -> Product:
    """Return the function v -> A v for the block with index `place`."""

    def with_block(block: Any, others: list[Any]) -> Any:
        return jax.tree_util.tree_unflatten(tree, [block if i == place else other for i, other in enumerate(others)])

    def curved(block: Any, others: list[Any], v: Any, part: tuple[Any, ...]) -> Any:
        slope = jax.grad(lambda w: loss(with_block(w, others), *part))
        return jax.jvp(slope, (block,), (v,))[1]

    def outer(block: Any, others: list[Any], v: Any, part: tuple[Any, ...]) -> Any:
        def each(w: Any) -> Any:
            return jax.vmap(lambda *sample: loss(with_block(w, others), *(array[None] for array in sample)))(*part)

        along = jax.jvp(each, (block,), (v,))[1]
        return jax.vjp(each, block)[1](along / len(along))[0]

    step, block = jax.jit(curved if matrix == "hessian" else outer), arrays[place]
    return averaged(lambda v, part: step(block, arrays, jax.numpy.asarray(v.reshape(block.shape), dtype=float), part), parts)


def _step(key: Any) -> str:
    """Return the key, index or attribute name that leads from a node of the tree to its child."""
    return str(next(getattr(key, name) for name in ("key", "idx", "name") if hasattr(key, name)))


# -- PyTorch, if it is installed ---------------------------------------------------------------------------------------


def torch_blocks(loss: Loss, module: Any, parts: list[tuple[Any, ...]]) -> dict[str, Block]:
    """Return the blocks of a `torch.nn.Module`, by the names of its parameters."""
    torch = importlib.import_module("torch")
    twin = copy.deepcopy(module).double().eval()
    fixed = {name: value.detach() for name, value in twin.named_parameters()}
    home = next(iter(fixed.values())).device

    def tensor(array: Any) -> Any:
        converted = torch.as_tensor(array, device=home)
        return converted.double() if converted.is_floating_point() else converted

    tensors = [tuple(tensor(array) for array in part) for part in parts]

    def block(name: str) -> Block:
        weights = np.asarray(fixed[name].cpu().numpy(), dtype=float).ravel()
        return Block(weights, lambda matrix: _torch_product(torch, loss, twin, name, fixed[name], tensors, matrix))

    return {name: block(name) for name in fixed}


def _torch_product(
    torch: Any, loss: Loss, module: Any, name: str, block: Any, parts: list[tuple[Any, ...]], matrix: Matrix
) -> Product:
    """Return the function v -> A v for the parameters called `name`."""
    func = torch.func

    def at(w: Any) -> Callable[..., Any]:
        return lambda *inputs: func.functional_call(module, {name: w}, inputs)

    def curved(v: Any, part: tuple[Any, ...]) -> Any:
        slope = func.grad(lambda w: loss(at(w), *part))
        return func.jvp(slope, (block,), (v,))[1]

    def outer(v: Any, part: tuple[Any, ...]) -> Any:
        def each(w: Any) -> Any:
            return func.vmap(lambda *sample: loss(at(w), *(array[None] for array in sample)))(*part)

        along = func.jvp(each, (block,), (v,))[1]
        return func.vjp(each, block)[1](along / len(along))[0]

    step = curved if matrix == "hessian" else outer

    def on_arrays(v: Array, part: tuple[Any, ...]) -> Array:
        direction = torch.as_tensor(v.reshape(block.shape), dtype=block.dtype, device=block.device)
        return np.asarray(step(direction, part).detach().cpu().numpy())

    return averaged(on_arrays, parts)


# -- spectra ---------------------------------------------------------------------------------------------------------


FLOOR = 1e-4
"""Densities below this are not drawn."""


@dataclass(frozen=True)
class BlockReport:
    """The spectrum of one block.

    Attributes
    ----------
    name, matrix, size
        Name of the block, "hessian" or "gradient", and number of parameters.
    values, vectors
        Largest eigenvalues and unit eigenvectors (columns).
    weights
        The parameters as a vector.
    measure
        Approximation of the whole spectrum; None if `density` is False.
    """

    name: str
    matrix: Matrix
    size: int
    values: Array
    vectors: Array
    weights: Array
    measure: SpectralMeasure | None

    def alignment(self, count: int | None = None) -> float:
        """Return the norm of the projection of the weights onto the first `count` eigenvectors, relative to the norm of the weights.

        By default the projection uses all computed eigenvectors.
        """
        length = float(np.linalg.norm(self.weights))
        top = self.vectors[:, : self.values.size if count is None else count]
        return float(np.linalg.norm(top.T @ self.weights)) / length if length > 0 else 0.0

    def outliers(self) -> int:
        """Return the number of eigenvalues above the largest gap (in ratio) between positive eigenvalues.

        This is the number of outliers if there are a few.
        """
        positive = self.values[self.values > 0]
        if positive.size < 2:
            return int(positive.size)
        return int(np.argmax(positive[:-1] / positive[1:])) + 1


@dataclass(frozen=True)
class NetworkSpectrum:
    """The spectra of all blocks, by (name, matrix). `block` returns a single spectrum, and `plot` draws all."""

    blocks: Mapping[tuple[str, Matrix], BlockReport]

    def block(self, name: str, matrix: Matrix = "hessian") -> BlockReport:
        """Return the spectrum of a block by the name of its parameters."""
        if (name, matrix) not in self.blocks:
            known = [known for known, kind in self.blocks if kind == matrix]
            raise Refused(f"there is no block {name!r} of the {matrix}: {did_you_mean(name, known)}")
        return self.blocks[name, matrix]

    @property
    def names(self) -> list[str]:
        """Names of the parameters, in order."""
        return list(dict.fromkeys(name for name, _ in self.blocks))

    def __str__(self) -> str:
        head = f"{'block':<20} {'matrix':<9} {'size':>8} {'alignment':>9}  largest eigenvalues"
        rows = [
            f"{block.name:<20} {block.matrix:<9} {block.size:>8} {block.alignment():>9.4f}  "
            + " ".join(f"{value:.4g}" for value in block.values[:6])
            for block in self.blocks.values()
        ]
        return "\n".join([head, *rows])

    def plot(self) -> Figure:
        """Draw one panel per block, with the density of the spectrum (if it was computed) and the largest eigenvalues as ticks."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5 * len(self.names), 3.4 * 2), layout="constrained")
        panels = figure.subplots(2, len(self.names), squeeze=False)
        for row, matrix in enumerate(MATRICES):
            for axes, name in zip(panels[row], self.names, strict=True):
                axes.set(title=f"{name}, {matrix}", xlabel="eigenvalue", ylabel="density")
                if (name, matrix) not in self.blocks:
                    axes.set_axis_off()
                    continue
                values, measure = self.blocks[name, matrix].values, self.blocks[name, matrix].measure
                axes.plot(values, np.full(values.size, FLOOR), "|", color="#D55E00", markersize=16, label="largest")
                if measure is not None:
                    low, high = float(measure.nodes.min()), max(float(values[0]), float(measure.nodes.max()))
                    points, width = np.linspace(low, high, 400), max(high - low, 1e-12) / 100
                    axes.semilogy(points, np.maximum(measure.density(points, width), FLOOR), color="#0072B2")
                axes.legend(frameon=False)
        return figure


@explained
def spectrum(
    loss: Callable[..., Any],
    params: Any,
    data: Any,
    count: int = 10,
    matrices: Sequence[Matrix] = MATRICES,
    blocks: Sequence[str] | None = None,
    density: bool = False,
    batch: int = 512,
    tolerance: float = 1e-8,
    probes: int = 4,
    steps: int = 30,
) -> NetworkSpectrum:
    """Return the top eigenpairs of the Hessian and of the second moment of the gradients, for every block of a model.

    Parameters
    ----------
    loss
        A function `loss(params, *batch)` of JAX arrays that returns the mean loss over a batch. For a PyTorch module it is
        `loss(module, *batch)`, which calls the module on tensors, for example `cross_entropy(module(x), y)`. Per-sample gradients are
        computed with batches of one sample.
    params
        Any tree of arrays of floats, or a `torch.nn.Module` if PyTorch is installed. A copy of the module is evaluated in evaluation mode.
        Every array is a block. Computations are in double precision.
    data
        An array (or tensor), or a tuple of arrays. The first axis of each counts the samples.
    count
        Number of eigenpairs per block, or all if the block has fewer.
    matrices
        "hessian", "gradient" or both.
    blocks
        Names of the blocks to compute, as in the printed result (default: all).
    density
        Whether to approximate the whole spectrum too, by stochastic Lanczos quadrature with `probes` random vectors and `steps` steps.
    batch
        Samples per pass. Larger batches are faster and need more memory.
    tolerance
        Relative accuracy of the eigenvalues.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((200, 5)) * [3, 1, 1, 1, 1]
    >>> def loss(params, x, y):
    ...     return ((x @ params["w"] - y) ** 2).mean() / 2
    >>> result = spectrum(loss, {"w": np.ones(5)}, (X, X[:, 0]), count=2)
    >>> exact = np.linalg.eigvalsh(X.T @ X / 200)[::-1][:2]
    >>> bool(np.allclose(result.block("w").values, exact))
    True
    """
    if count < 1:
        raise Refused(f"count = {count} is not allowed: must be at least 1")
    unknown = [name for name in matrices if name not in MATRICES]
    if unknown:
        raise Refused(f"matrices = {unknown} is not allowed: must be 'hessian' or 'gradient'")
    parts = list(in_batches(data, batch))
    known = (torch_blocks if is_torch_module(params) else jax_blocks)(loss, params, parts)
    for wanted in blocks or ():
        if wanted not in known:
            raise Refused(f"there is no block {wanted!r}: {did_you_mean(wanted, list(known))}")
    reports: dict[tuple[str, Matrix], BlockReport] = {}
    for name, (weights, product_of) in known.items():
        if blocks is not None and name not in blocks:
            continue
        for matrix in matrices:
            product, size = product_of(matrix), weights.size
            pairs = top_eigenpairs(product, size, min(count, size), tolerance)
            measure = spectral_measure(product, size, steps, probes) if density else None
            reports[name, matrix] = BlockReport(name, matrix, size, pairs.values, pairs.vectors, weights, measure)
    return NetworkSpectrum(reports)


@explained
def spectrum_along(
    loss: Callable[..., Any], checkpoints: Sequence[Any], data: Any, labels: Sequence[float] | None = None, **options: Any
) -> xr.Dataset:
    """Return the alignment and the largest eigenvalue of every block at several times of a training.

    Parameters
    ----------
    loss, data, **options
        Arguments of `spectrum`.
    checkpoints
        Parameters at these times.
    labels
        The times (default 0, 1, 2, ...).

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((50, 4))
    >>> def loss(w, x):
    ...     return ((x @ w) ** 2).mean()
    >>> spectrum_along(loss, [np.ones(4), np.eye(4)[0]], X, count=1).alignment.dims
    ('matrix', 'block', 'checkpoint')
    """
    reports = [spectrum(loss, params, data, **options) for params in checkpoints]
    if not reports:
        raise Refused("checkpoints = [] is not allowed: give at least one set of parameters")
    names, kinds = reports[0].names, list(dict.fromkeys(matrix for _, matrix in reports[0].blocks))

    def table(value: Callable[[BlockReport], float]) -> Array:
        return np.array([[[value(report.blocks[name, kind]) for report in reports] for name in names] for kind in kinds])

    dims = ("matrix", "block", "checkpoint")
    times = list(range(len(reports))) if labels is None else list(labels)
    return xr.Dataset(
        {
            "alignment": (
                dims,
                table(lambda block: block.alignment()),
                {"long_name": "alignment of the weights with the top eigenvectors of the block"},
            ),
            "largest_eigenvalue": (dims, table(lambda block: float(block.values[0])), {"long_name": "largest eigenvalue"}),
            "outliers": (dims, table(lambda block: block.outliers()), {"long_name": "eigenvalues above the largest gap"}),
        },
        {"matrix": kinds, "block": names, "checkpoint": times},
    )
