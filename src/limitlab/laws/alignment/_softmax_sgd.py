"""Online SGD of softmax regression on a Gaussian mixture with full vectors, and the blocks of its test matrices.

A sample of class a is Y = mu_a + spread * N(0, I); the loss is -<x^a, Y> + log sum_c exp <x^c, Y>; a step is
x <- x - delta (grad L + penalty x). A block of a test matrix is (1/M) sum_l w_l Y_l Y_l^T. Only the weights w change with x, so the samples
are drawn once. In more than `FORMED` dimensions no block is formed as a matrix.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from limitlab.numerics.lanczos import Eigenpairs, top_eigenpairs

Array = NDArray[np.float64]


FORMED = 450
"""Largest dimension in which a block is formed and diagonalised, which is quicker there than products with vectors."""
CACHED = 250_000
"""Number of single-precision values that fit into a processor's cache."""
BESIDE = 4
"""Number of largest eigenvalues of the noise block whose spread measures the spacing of eigenvalues at the edge."""


@numba.njit(cache=True, nogil=True)
def sgd_path(
    rng: Any,
    start: Array,
    means: Array,
    shares: Array,
    spread: float,
    penalty: float,
    delta: float,
    counts: NDArray[np.int64],
) -> Array:
    """Return the weights (times, k, d) after the given numbers of steps.

    >>> rng, means = np.random.default_rng(0), np.eye(3, 20)
    >>> path = sgd_path(rng, np.zeros((3, 20)), means, np.ones(3) / 3, 0.2, 0.01, 0.05, np.array([0, 400]))
    >>> path.shape, bool(path[1, 0, 0] > path[1, 0, 1])
    ((2, 3, 20), True)
    """
    classes, size = start.shape
    x, y = start.copy(), np.empty(size)
    path, logits, done = np.empty((counts.size, classes, size)), np.empty(classes), 0
    keep = 1 - delta * penalty
    for i in range(counts.size):
        while done < counts[i]:
            u, label = rng.random(), 0
            while label < classes - 1 and u > shares[label]:
                u -= shares[label]
                label += 1
            for j in range(size):
                y[j] = means[label, j] + spread * rng.standard_normal()
            top = -np.inf
            for c in range(classes):
                logits[c] = np.dot(x[c], y)
                top = max(top, logits[c])
            total = 0.0
            for c in range(classes):
                logits[c] = math.exp(logits[c] - top)
                total += logits[c]
            for c in range(classes):
                push = delta * ((1.0 if c == label else 0.0) - logits[c] / total)
                for j in range(size):
                    x[c, j] = keep * x[c, j] + push * y[j]
            done += 1
        for c in range(classes):
            for j in range(size):
                path[i, c, j] = x[c, j]
    return path


def draw_mixture(
    rng: np.random.Generator, means: Array, shares: Array, spread: float, count: int, single: bool = False
) -> tuple[Array, NDArray[np.int64]]:
    """Draw samples (count, d) and their labels; `single` selects single precision, which needs half the memory.

    >>> samples, labels = draw_mixture(np.random.default_rng(0), np.eye(2, 5), np.ones(2) / 2, 0.0, 4)
    >>> bool(np.all(samples.argmax(axis=1) == labels))
    True
    """
    labels = rng.choice(len(shares), size=count, p=shares)
    samples: Any = rng.standard_normal((count, means.shape[1]), dtype=np.float32 if single else np.float64)
    samples *= spread
    for c, mean in enumerate(means.astype(samples.dtype)):
        samples[labels == c] += mean
    return samples, labels


def weights_of(matrix: Literal["hessian", "gradient"], samples: Array, labels: NDArray[np.int64], x: Array, c: int) -> Array:
    """Return the weights of the block cc, pi_c (1 - pi_c) for the Hessian and (y_c - pi_c)^2 for the gradients' second moment.

    >>> samples, labels = np.eye(2, 4), np.array([0, 1])
    >>> weights_of("gradient", samples, labels, np.zeros((2, 4)), 0).tolist()
    [0.25, 0.25]
    """
    logits = samples @ x.T.astype(samples.dtype)
    power = np.exp(logits - logits.max(axis=1, keepdims=True))
    pi = power[:, c] / power.sum(axis=1)
    return np.asarray(pi * (1 - pi) if matrix == "hessian" else ((labels == c) - pi) ** 2)


class Block(NamedTuple):
    """Measured properties of a block.

    These are its largest eigenvalues, the edge of its noise, the number of eigenvalues outside that edge, and the alignment of a vector
    with the space of the first `count` eigenvectors.
    """

    values: Array
    edge: float
    outliers: int
    alignment: float


def block_measurement(samples: Array, weights: Array, special: Array, fresh: Array, vector: Array, count: int) -> Block:
    """Return the eigenvalues, outliers and alignment of one block (1/M) sum_l w_l Y_l Y_l^T.

    The edge is the largest eigenvalue of the block of modified samples. In these samples, independent noise (`fresh`, shape (M, p))
    replaces the components along the p directions of the means and the weights (the rows of `special`). An eigenvalue of the block is an
    outlier if it exceeds the edge by more than twice the difference between the first and the fourth eigenvalue of the modified block.

    >>> rng = np.random.default_rng(0)
    >>> samples = rng.standard_normal((4000, 30)) * 0.1
    >>> samples[:, 0] += 1
    >>> fresh = rng.standard_normal((4000, 1)) * 0.1
    >>> block = block_measurement(samples, np.ones(4000), np.eye(1, 30), fresh, np.eye(30)[0], 1)
    >>> block.outliers, bool(block.alignment > 0.99)
    (1, True)
    """
    rows, size = samples.shape
    basis, eigenvalue_count = np.linalg.qr(special.T)[0], min(count + 3, size)
    if size <= FORMED:
        from scipy.linalg import eigh

        scaled = samples * (weights / rows)[:, None]
        block = scaled.T @ samples
        values, vectors = eigh(block, subset_by_index=(size - eigenvalue_count, size - 1))
        pairs = Eigenpairs(values[::-1], vectors[:, ::-1])
        beside = basis @ (fresh.T @ scaled)  # products of the fresh components with the other components
        beside -= beside @ basis @ basis.T
        cross = basis @ (basis.T @ block)
        noise = block - cross - cross.T + cross @ basis @ basis.T + beside + beside.T
        noise += basis @ ((fresh.T * (weights / rows)) @ fresh) @ basis.T
        edges = eigh(noise, subset_by_index=(size - BESIDE, size - 1), eigvals_only=True)[::-1]
    else:
        pairs = block_eigenpairs(samples, weights, eigenvalue_count)
        renewed = samples + (fresh - samples @ basis) @ basis.T
        edges = block_eigenpairs(renewed, weights, BESIDE).values
    edge = float(edges[0])
    outside = int(np.sum(pairs.values > edge + 2 * (edge - float(edges[-1]))))
    return Block(pairs.values, edge, outside, alignment(vector, pairs, count))


def block_eigenpairs(samples: NDArray[np.floating[Any]], weights: Array, count: int, tolerance: float = 1e-4) -> Eigenpairs:
    """Return the top eigenpairs of (1/M) sum_l w_l Y_l Y_l^T, computed from products with vectors in single precision.

    >>> samples = np.random.default_rng(0).standard_normal((300, 100))
    >>> pairs = block_eigenpairs(samples, np.ones(300), 2)
    >>> exact = np.linalg.eigvalsh(samples.T @ samples / 300)[::-1][:2]
    >>> bool(np.all(np.abs(pairs.values / exact - 1) < 1e-3))
    True
    """
    rows = samples.astype(np.float32, copy=False)
    scaled = (weights / len(weights)).astype(np.float32)

    length = max(1, CACHED // rows.shape[1])

    def product(v: Array) -> Array:
        direction, image = v.astype(np.float32), np.zeros(v.size, dtype=np.float32)
        for start in range(0, len(rows), length):  # a piece is read from memory once for both of its products
            piece = rows[start : start + length]
            image += (scaled[start : start + length] * (piece @ direction)) @ piece
        return image.astype(np.float64)

    return top_eigenpairs(product, rows.shape[1], count, tolerance)


# -- Test blocks of a two-layer ReLU network on the XOR mixture: Hessian and gradients' second moment, layer by layer


def draw_xor(rng: np.random.Generator, dimension: int, spread: float, count: int) -> tuple[Array, Array]:
    """Draw samples (count, N) around +-mu (label 1) and +-nu (label 0), the first two axes, and their labels.

    >>> samples, labels = draw_xor(np.random.default_rng(0), 5, 0.0, 3)
    >>> np.abs(samples).sum(axis=1).tolist()
    [1.0, 1.0, 1.0]
    """
    clusters = rng.integers(0, 4, size=count)
    samples = spread * rng.standard_normal((count, dimension))
    samples[np.arange(count), clusters // 2] += 1.0 - 2.0 * (clusters & 1)
    return samples, (clusters < 2).astype(float)


def weights_in_space(a: Array, b: Array, gram: Array, dimension: int) -> Array:
    """Return first-layer weights (K, N) with the given overlaps and Gram matrix.

    The chain of statistics determines these weights up to a rotation.

    >>> weights_in_space(np.ones(1), np.zeros(1), 4 * np.eye(1), 4).tolist()
    [[1.0, 0.0, 2.0, 0.0]]
    """
    values, vectors = np.linalg.eigh(gram)
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    w = np.zeros((a.size, dimension))
    w[:, 0], w[:, 1], w[:, 2 : 2 + a.size] = a, b, factor
    return w


def sample_weights(samples: Array, labels: Array, v: Array, w: Array) -> tuple[Array, Array, Array]:
    """Return preactivations h (M, K) and sample weights, sigma'(f) in the Hessian and e^2 in the gradients' second moment.

    >>> h, hessian, gradient = sample_weights(np.eye(2), np.ones(2), np.zeros(1), np.ones((1, 2)))
    >>> hessian.tolist(), gradient.tolist()
    ([0.25, 0.25], [0.25, 0.25])
    """
    from scipy.special import expit

    h = samples @ w.T
    f = np.maximum(h, 0.0) @ v
    return h, expit(f) * expit(-f), (labels - expit(f)) ** 2


def second_layer_block(h: Array, weights: Array) -> Eigenpairs:
    """Return all eigenpairs of E[weight g g^T] with g = relu(h).

    >>> second_layer_block(np.array([[2.0, -1.0]]), np.ones(1)).values.tolist()
    [4.0, 0.0]
    """
    g = np.maximum(h, 0.0)
    values, vectors = np.linalg.eigh(g.T @ (g * (weights / len(h))[:, None]))
    return Eigenpairs(values[::-1], vectors[:, ::-1])


def first_layer_block(
    samples: NDArray[np.floating[Any]], h: Array, weights: Array, neuron: int, count: int = 2
) -> Eigenpairs:
    """Return the top eigenpairs of E[weight 1{h_i > 0} Y Y^T] of neuron i, per squared second-layer weight.

    >>> samples = np.vstack([np.eye(2, 10), np.eye(2, 10)])
    >>> first_layer_block(samples, np.ones((4, 1)), np.array([1.0, 2.0, 1.0, 2.0]), 0).values.round(6).tolist()
    [1.0, 0.5]
    """
    return block_eigenpairs(samples, weights * (h[:, neuron] > 0), count, tolerance=1e-6)


def alignment(vector: Array, pairs: Eigenpairs, count: int) -> float:
    """Return the length of a vector's projection to the first `count` eigenvectors, divided by the vector's length.

    >>> alignment(np.array([3.0, 4.0]), Eigenpairs(np.ones(2), np.eye(2)), 1)
    0.6
    """
    return float(np.linalg.norm(pairs.vectors[:, :count].T @ vector) / np.linalg.norm(vector))
