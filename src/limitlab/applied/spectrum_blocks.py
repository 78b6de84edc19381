"""Spectra of the Hessian and of the second moment of the gradients of your own network, for each layer.

A "block" is one array w of parameters. Its matrices are the Hessian E[d^2 L / dw^2] and the second moment E[dL/dw dL/dw^T] of the
gradients. The code computes only their products with vectors, by two passes of automatic differentiation (JAX or PyTorch) over batches of
the data. The top eigenpairs come from restarted Lanczos, and the density from stochastic Lanczos quadrature. No matrix is formed. The
memory is that of a few dozen vectors of the size of the block, plus one batch. docs/theory/alignment.md describes the spectra of two
models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from limitlab.applied._spectrum_products import MATRICES, Matrix, in_batches, jax_blocks, torch_blocks
from limitlab.errors import Refused, did_you_mean
from limitlab.models.optimisers import is_torch_module
from limitlab.numerics.lanczos import SpectralMeasure, spectral_measure, top_eigenpairs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["spectrum", "spectrum_along"]

Array = NDArray[np.float64]
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
