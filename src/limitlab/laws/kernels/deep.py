"""NNGP and tangent kernel of a deep fully connected network of infinite width.

Setting.  h^1 = w W^0 x / sqrt(d) + b B^0,  h^(k+1) = w W^k s(h^k) / sqrt(m) + b B^k, output f = h^L; all entries of W, B are independent
          N(0, 1) and all are trained (`weight_std` w, `bias_std` b, L = `layers` weight matrices).
Limit.    Width m -> infinity, L fixed.
Result.   docs/theory/tangent_kernels.md, equations (1)-(2): with T and T' the duals of s and s',

              Sigma^1 = w^2 x.x'/d + b^2,   Sigma^(k+1) = w^2 T(Sigma^k) + b^2,
              Theta^1 = Sigma^1,            Theta^(k+1) = w^2 Theta^k T'(Sigma^k) + Sigma^(k+1).

Status.   Theorem (Neal 1996; Lee et al. 2018; Jacot, Gabriel and Hongler 2018).

The kernels are computed in blocks of rows. If both tables are equal, only the lower half is computed. The memory is that of the result
and of one block.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from limitlab._core.checks import whole
from limitlab._core.cost import single_threaded
from limitlab.errors import Refused
from limitlab.laws.kernels.duals import dual_matrix, own_duals
from limitlab.models.activations import Activation

__all__ = ["nngp", "ntk"]

Array = NDArray[Any]

ROWS = 128  # rows of a block
ENTRIES = 1 << 18  # entries of the temporary arrays of activations other than relu
LARGEST_SCALE = 1e150  # so that its square does not overflow


def nngp(
    X: ArrayLike,
    Y: ArrayLike | None = None,
    layers: int = 3,
    activation: Any = "relu",
    weight_std: float = 1.0,
    bias_std: float = 0.0,
    *,
    dtype: DTypeLike = np.float64,
    threads: int | None = None,
) -> Any:
    """Return the covariance of the outputs of an infinitely wide network at its start, between the rows of X and of Y (or of X).

    Parameters
    ----------
    X, Y
        Tables of inputs, one row each. Y = None compares X with itself. Two single rows (1-d arrays) give a number.
    layers
        Number L of weight matrices, one more than hidden layers.
    activation
        A name, a function of arrays or an `Activation`.
    weight_std, bias_std
        Standard deviations of the weights, before the division by the root of the number of inputs, and of the biases.
    dtype
        Type of the result. float32 needs half the memory and has about seven digits.
    threads
        Number of threads (default: numba's `NUMBA_NUM_THREADS`).

    Returns
    -------
    ndarray
        Shape (rows of X, rows of Y).

    Examples
    --------
    >>> nngp([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0]], layers=2).round(9).tolist()
    [[0.166666667, 0.112924595], [0.112924595, 0.166666667]]
    """
    return _kernel(X, Y, layers, activation, weight_std, bias_std, dtype, threads, tangent=False)


def ntk(
    X: ArrayLike,
    Y: ArrayLike | None = None,
    layers: int = 3,
    activation: Any = "relu",
    weight_std: float = 1.0,
    bias_std: float = 0.0,
    *,
    dtype: DTypeLike = np.float64,
    threads: int | None = None,
) -> Any:
    """Return the tangent kernel of an infinitely wide network, between the rows of X and those of Y; arguments as in `nngp`.

    Examples
    --------
    >>> ntk([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0]], layers=2).round(9).tolist()
    [[0.333333333, 0.183407871], [0.183407871, 0.333333333]]

    The function is also a kernel for scikit-learn, on two rows at a time or on whole tables:

    >>> ntk(np.array([1.0, 0.0, 0.0]), np.array([0.6, 0.8, 0.0]), layers=2).round(9)
    np.float64(0.183407871)
    """
    Activation(activation).check_derivatives()
    return _kernel(X, Y, layers, activation, weight_std, bias_std, dtype, threads, tangent=True)


# -- the variances of all layers ----------------------------------------------------------------------------------------


def own_variances(gram: Array, layers: int, activation: Activation, weight: float, bias: float) -> Array:
    """Return variances of every row in the layers 1, ..., L - 1, shape (L - 1, rows), from those of the first layer.

    They have a separate recursion, because rounding a correlation of 1 by 1e-16 would lose half of the digits.

    >>> own_variances(np.array([1.0]), 3, Activation("relu"), 2.0, 0.5).tolist()
    [[1.0], [1.5]]
    """
    rows = [gram]
    for _ in range(layers - 2):
        rows.append(weight * own_duals(activation, rows[-1]).value + bias)
    return np.array(rows[: layers - 1]).reshape(layers - 1, gram.size)


def _kernel(
    X: ArrayLike,
    Y: ArrayLike | None,
    layers: int,
    activation: Any,
    weight_std: float,
    bias_std: float,
    dtype: DTypeLike,
    threads: int | None,
    tangent: bool,
) -> Any:
    kind = np.dtype(dtype)
    depth, weight, bias = (
        checked_depth(layers),
        checked_scale("weight_std", weight_std) ** 2,
        checked_scale("bias_std", bias_std) ** 2,
    )
    s = Activation(activation)
    first = checked_table("X", X, kind)
    second = first if Y is None or Y is X else checked_table("Y", Y, kind)
    if second.shape[1] != first.shape[1]:
        raise Refused(f"Y has {second.shape[1]} columns and X has {first.shape[1]}: both must have the same")
    scale = weight / first.shape[1]
    rows, columns = (own_variances(_squares(table) * scale + bias, depth, s, weight, bias) for table in (first, second))
    job = _Blocks(first, second, rows, columns, scale, weight, bias, s, tangent, kind)
    kernel = job.run(_threads(threads))
    return kernel[0, 0] if np.ndim(X) == 1 and Y is not None and np.ndim(Y) == 1 else kernel


class _Blocks:
    """The kernel of two tables, computed in blocks of rows. A block is stored after its last layer only."""

    def __init__(
        self, X: Array, Y: Array, rows: Array, columns: Array, scale: float, weight: float, bias: float, s: Activation,
        tangent: bool, dtype: np.dtype[Any],
    ):  # fmt: skip
        self.X, self.Y, self.rows, self.columns = X, Y, rows, columns
        self.scale, self.weight, self.bias, self.activation, self.tangent = scale, weight, bias, s, tangent
        self.same = X is Y
        self.out = np.empty((len(X), len(Y)), dtype=dtype)
        if s.name == "relu":
            roots = np.sqrt(rows), np.sqrt(columns)
            self.roots = tuple(np.ascontiguousarray(root, dtype=dtype) for root in roots)
            self.inverses = tuple(_inverse(root).astype(dtype) for root in roots)

    def run(self, threads: int) -> Array:
        starts = range(0, len(self.X), ROWS)
        if len(starts) == 1:
            self.block(0)
            return self.out
        # without BLAS threads inside those of the pool, which would block one another (four times slower on two cores)
        with single_threaded(), ThreadPoolExecutor(threads) as pool:
            list(pool.map(self.block, reversed(starts)))  # the long rows of the lower half first
        return self.out

    def block(self, start: int) -> None:
        """Compute one block of rows, and its mirror image."""
        end = min(start + ROWS, len(self.X))
        stop = end if self.same else len(self.Y)
        products = self.X[start:end] @ self.Y[:stop].T
        compute = self.relu if self.activation.name == "relu" else self.general
        rows = compute(products, start, end, stop)
        if self.same:
            lower = np.tril(rows[:, start:end], -1)
            rows[:, start:end] = lower + lower.T + np.diag(self.diagonal(start, end).astype(rows.dtype))
            self.out[:start, start:end] = rows[:, :start].T
        self.out[start:end, :stop] = rows

    def relu(self, gram: Array, start: int, end: int, stop: int) -> Array:
        from limitlab.laws.kernels._fused import relu_pass

        tangent = np.empty_like(gram) if self.tangent else np.empty((0, 0), dtype=gram.dtype)
        (roots1, roots2), (inverse1, inverse2) = self.roots, self.inverses
        # contiguous copies, because only then can the compiler compute neighbours in a row together
        sides = ((roots1, slice(start, end)), (roots2, slice(stop)), (inverse1, slice(start, end)), (inverse2, slice(stop)))
        relu_pass(
            gram, tangent, *(np.ascontiguousarray(part[:, cut]) for part, cut in sides), self.scale, self.weight, self.bias
        )
        return tangent if self.tangent else gram

    def general(self, gram: Array, start: int, end: int, stop: int) -> Array:
        """Return the kernel for any activation, in pieces that fit into a cache."""
        step = max(1, ENTRIES // max(stop, 1))
        for low in range(start, end, step):
            high = min(low + step, end)
            part = gram[low - start : high - start].astype(float) * self.scale + self.bias
            slope_product = part.copy()
            for q1, q2 in zip(self.rows, self.columns, strict=True):
                value, slope = dual_matrix(self.activation, q1[low:high], q2[:stop], part)
                part = self.weight * value + self.bias
                slope_product = self.weight * slope_product * slope + part
            gram[low - start : high - start] = slope_product if self.tangent else part
        return gram

    def diagonal(self, start: int, end: int) -> Array:
        """Return the kernel of rows with themselves, from their variances alone."""
        if not len(self.rows):
            return self._first(start, end)
        value = tangent = self.rows[0, start:end]
        for q in self.rows[:, start:end]:
            duals = own_duals(self.activation, q)
            value = self.weight * duals.value + self.bias
            tangent = self.weight * tangent * duals.slope + value
        return tangent if self.tangent else value

    def _first(self, start: int, end: int) -> Array:
        return _squares(self.X[start:end]) * self.scale + self.bias


def _squares(table: Array) -> Array:
    """Return squared norms of the rows, in double precision."""
    return np.einsum("ij,ij->i", table, table, dtype=np.float64)


def _inverse(root: Array) -> Array:
    return np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)


# -- input --------------------------------------------------------------------------------------------------------------


def checked_table(name: str, values: ArrayLike, dtype: Any = np.float64) -> Array:
    """Return a table of finite numbers with at least one column, or raise `Refused`; a 1-d array is one row."""
    table = np.atleast_2d(np.asarray(values, dtype=dtype))
    if table.ndim != 2 or table.shape[1] == 0:
        raise Refused(f"{name} of shape {np.shape(values)} is not allowed: must be a table with one input in every row")
    if not np.isfinite(table).all():
        row = int(np.argwhere(~np.isfinite(table))[0, 0])
        raise Refused(f"{name} is not allowed: row {row} has an entry that is not a finite number")
    return np.ascontiguousarray(table)


def checked_depth(layers: int) -> int:
    """Return a checked number of weight matrices."""
    whole("layers", layers, least=1)
    return int(layers)


def checked_scale(name: str, value: float) -> float:
    """Return a standard deviation whose square does not overflow, or raise `Refused`."""
    if not 0 <= value <= LARGEST_SCALE:
        raise Refused(
            f"{name} = {value!r} is not allowed: must be at least 0 and at most {LARGEST_SCALE:g} (a standard deviation)"
        )
    return float(value)


def _threads(threads: int | None) -> int:
    if threads is None:
        import numba

        return int(numba.config.NUMBA_NUM_THREADS)
    whole("threads", threads, least=1)
    return int(threads)
