"""The spectrum of one's own network: outliers of Hessian and gradients' second moment by layer, and the weights' alignment with them.

For every array of parameters w (a "block") the Hessian E[d^2 L / dw^2] and the second moment E[dL/dw dL/dw^T] of the gradients are
known only through their products with vectors, two passes of automatic differentiation over batches of the data. The top
eigenpairs come from restarted Lanczos, the density from stochastic Lanczos quadrature; no matrix is ever formed, and memory is a few
dozen vectors of the block's size plus one batch (docs/theory/alignment.md says what to expect in two models).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from limitlab.errors import did_you_mean
from limitlab.models.autodiff import double_precision_jax
from limitlab.numerics.lanczos import SpectralMeasure, spectral_measure, top_eigenpairs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["spectrum", "spectrum_along"]

Array = NDArray[np.float64]
Matrix = Literal["hessian", "gradient"]
MATRICES: tuple[Matrix, Matrix] = ("hessian", "gradient")
FLOOR = 1e-4
"""Densities below this are not drawn."""


@dataclass(frozen=True)
class BlockReport:
    """The spectrum of one block.

    Attributes
    ----------
    name, matrix, size
        Where it stands among the parameters, "hessian" or "gradient", number of its parameters.
    values, vectors
        Largest eigenvalues and unit eigenvectors (columns).
    weights
        The parameters themselves, flat.
    measure
        The whole spectrum, approximately; None if it was not asked for.
    """

    name: str
    matrix: Matrix
    size: int
    values: Array
    vectors: Array
    weights: Array
    measure: SpectralMeasure | None

    def alignment(self, count: int | None = None) -> float:
        """Length of the weights' projection to the first `count` eigenvectors (default: all that were computed), relative to their own."""
        length = float(np.linalg.norm(self.weights))
        chosen = self.vectors[:, : self.values.size if count is None else count]
        return float(np.linalg.norm(chosen.T @ self.weights)) / length if length > 0 else 0.0

    def outliers(self) -> int:
        """Eigenvalues before the widest gap (in ratio) among the positive ones: how many stand apart, where a few do."""
        positive = self.values[self.values > 0]
        if positive.size < 2:
            return int(positive.size)
        return int(np.argmax(positive[:-1] / positive[1:])) + 1


@dataclass(frozen=True)
class NetworkSpectrum:
    """Blocks by (name, matrix). Prints as a table; `block` picks one, `plot` draws all."""

    blocks: Mapping[tuple[str, Matrix], BlockReport]

    def block(self, name: str, matrix: Matrix = "hessian") -> BlockReport:
        """One block by the name of its parameters."""
        if (name, matrix) not in self.blocks:
            known = [known for known, kind in self.blocks if kind == matrix]
            raise ValueError(f"there is no block {name!r} of the {matrix}: {did_you_mean(name, known)}")
        return self.blocks[name, matrix]

    @property
    def names(self) -> list[str]:
        """Names of the parameters, in order."""
        return list(dict.fromkeys(name for name, _ in self.blocks))

    def __str__(self) -> str:
        head = f"{'block':<20} {'matrix':<9} {'size':>8} {'alignment':>9}  largest eigenvalues"
        rows = [
            f"{one.name:<20} {one.matrix:<9} {one.size:>8} {one.alignment():>9.4f}  "
            + " ".join(f"{value:.4g}" for value in one.values[:6])
            for one in self.blocks.values()
        ]
        return "\n".join([head, *rows])

    def plot(self) -> Figure:
        """A panel per block: density of the spectrum (if it was computed) and the largest eigenvalues as ticks."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5 * len(self.names), 3.4 * 2), layout="constrained")
        panels = figure.subplots(2, len(self.names), squeeze=False)
        for row, matrix in enumerate(MATRICES):
            for axes, name in zip(panels[row], self.names, strict=True):
                axes.set(title=f"{name}, {matrix}", xlabel="eigenvalue", ylabel="density")
                if (name, matrix) not in self.blocks:
                    axes.set_axis_off()
                    continue
                one = self.blocks[name, matrix]
                axes.plot(one.values, np.full(one.values.size, FLOOR), "|", color="#D55E00", markersize=16, label="largest")
                if one.measure is not None:
                    low, high = float(one.measure.nodes.min()), max(float(one.values[0]), float(one.measure.nodes.max()))
                    points, width = np.linspace(low, high, 400), max(high - low, 1e-12) / 100
                    axes.semilogy(points, np.maximum(one.measure.density(points, width), FLOOR), color="#0072B2")
                axes.legend(frameon=False)
        return figure


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
    """Top eigenpairs of Hessian and gradients' second moment of every block of parameters of a JAX model.

    Parameters
    ----------
    loss
        `loss(params, *batch)`: the mean loss over a batch, a function of JAX arrays. Per-sample gradients are those of batches of one.
    params
        Any tree of arrays of floats; every array is a block. Computations are in double precision.
    data
        An array, or a tuple of arrays, whose first axes count the samples.
    count
        Eigenpairs per block (all of them in smaller blocks).
    matrices
        "hessian", "gradient" or both.
    blocks
        Names of the blocks that are wanted, as the result prints them (default: all).
    density
        Whether to compute the whole spectrum too, by stochastic Lanczos quadrature with `probes` random vectors and `steps` steps.
    batch
        Samples per pass: memory against speed.
    tolerance
        Relative accuracy of the eigenvalues.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((200, 5)) * [3, 1, 1, 1, 1]
    >>> def loss(params, x, y):
    ...     return ((x @ params["w"] - y) ** 2).mean() / 2
    >>> found = spectrum(loss, {"w": np.ones(5)}, (X, X[:, 0]), count=2)
    >>> exact = np.linalg.eigvalsh(X.T @ X / 200)[::-1][:2]
    >>> bool(np.allclose(found.block("w").values, exact))
    True
    """
    jax = double_precision_jax()
    if count < 1:
        raise ValueError(f"count = {count} is not allowed: must be at least 1")
    unknown = [name for name in matrices if name not in MATRICES]
    if unknown:
        raise ValueError(f"matrices = {unknown} is not allowed: must be 'hessian' or 'gradient'")
    parts = list(_batches(data, batch))
    leaves, tree = jax.tree_util.tree_flatten_with_path(params)
    arrays = [jax.numpy.asarray(leaf, dtype=float) for _, leaf in leaves]
    names = [".".join(_step(key) for key in path) or "params" for path, _ in leaves]
    for wanted in blocks or ():
        if wanted not in names:
            raise ValueError(f"there is no block {wanted!r}: {did_you_mean(wanted, names)}")
    found: dict[tuple[str, Matrix], BlockReport] = {}
    for place, name in enumerate(names):
        if blocks is not None and name not in blocks:
            continue
        size = arrays[place].size
        for matrix in matrices:
            product = _product(jax, loss, arrays, tree, place, parts, matrix)
            pairs = top_eigenpairs(product, size, min(count, size), tolerance)
            measure = spectral_measure(product, size, steps, probes) if density else None
            weights = np.asarray(arrays[place], dtype=float).ravel()
            found[name, matrix] = BlockReport(name, matrix, size, pairs.values, pairs.vectors, weights, measure)
    return NetworkSpectrum(found)


def spectrum_along(
    loss: Callable[..., Any], checkpoints: Sequence[Any], data: Any, labels: Sequence[float] | None = None, **options: Any
) -> xr.Dataset:
    """Alignment and largest eigenvalues of every block at several moments of a training.

    Parameters
    ----------
    loss, data, **options
        As for `spectrum`.
    checkpoints
        Parameters at those moments.
    labels
        Times of the checkpoints (default 0, 1, 2, ...).

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
        raise ValueError("checkpoints = [] is not allowed: give at least one set of parameters")
    names, kinds = reports[0].names, list(dict.fromkeys(matrix for _, matrix in reports[0].blocks))

    def table(value: Callable[[BlockReport], float]) -> Array:
        return np.array([[[value(one.blocks[name, kind]) for one in reports] for name in names] for kind in kinds])

    dims = ("matrix", "block", "checkpoint")
    times = list(range(len(reports))) if labels is None else list(labels)
    return xr.Dataset(
        {
            "alignment": (
                dims,
                table(lambda one: one.alignment()),
                {"long_name": "alignment of the weights with the top of the block"},
            ),
            "largest_eigenvalue": (dims, table(lambda one: float(one.values[0])), {"long_name": "largest eigenvalue"}),
            "outliers": (dims, table(lambda one: one.outliers()), {"long_name": "eigenvalues before the widest gap"}),
        },
        {"matrix": kinds, "block": names, "checkpoint": times},
    )


# -- products with vectors ---------------------------------------------------------------------------------------------


def _batches(data: Any, batch: int) -> Iterator[tuple[Any, ...]]:
    """The data in pieces of at most `batch` samples."""
    arrays = data if isinstance(data, (tuple, list)) else (data,)
    lengths = {len(array) for array in arrays}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(
            f"data with {sorted(lengths)} samples is not allowed: all arrays must have the same length, at least 1"
        )
    if batch < 1:
        raise ValueError(f"batch = {batch} is not allowed: must be at least 1")
    (length,) = lengths
    for start in range(0, length, batch):
        yield tuple(array[start : start + batch] for array in arrays)


def _product(
    jax: Any,
    loss: Callable[..., Any],
    arrays: list[Any],
    tree: Any,
    place: int,
    parts: list[tuple[Any, ...]],
    matrix: Matrix,
) -> Callable[[Array], Array]:
    """v -> A v for the block at `place`, averaged over all samples."""
    samples = sum(len(part[0]) for part in parts)

    def with_block(block: Any, others: list[Any]) -> Any:
        return jax.tree_util.tree_unflatten(tree, [block if i == place else one for i, one in enumerate(others)])

    def curved(block: Any, others: list[Any], v: Any, part: tuple[Any, ...]) -> Any:
        slope = jax.grad(lambda w: loss(with_block(w, others), *part))
        return jax.jvp(slope, (block,), (v,))[1]

    def outer(block: Any, others: list[Any], v: Any, part: tuple[Any, ...]) -> Any:
        def each(w: Any) -> Any:
            return jax.vmap(lambda *one: loss(with_block(w, others), *(array[None] for array in one)))(*part)

        along = jax.jvp(each, (block,), (v,))[1]
        return jax.vjp(each, block)[1](along / len(along))[0]

    step = jax.jit(curved if matrix == "hessian" else outer)
    shape = arrays[place].shape

    def product(v: Array) -> Array:
        direction, total = jax.numpy.asarray(v.reshape(shape), dtype=float), 0.0
        for part in parts:
            total = total + len(part[0]) / samples * step(arrays[place], arrays, direction, part)
        return np.asarray(total, dtype=float).ravel()

    return product


def _step(key: Any) -> str:
    """One step of the path to a leaf: a key, an index or the name of an attribute."""
    return str(next(getattr(key, name) for name in ("key", "idx", "name") if hasattr(key, name)))
