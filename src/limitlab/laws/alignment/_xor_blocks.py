"""Test blocks of a two-layer ReLU network on the XOR mixture: Hessian and gradients' second moment, layer by layer.

With h = W Y, g = relu(h), f = <v, g> and e = y - sigma(f) the blocks are means over test samples,

    H_WiWi = E[sigma'(f) v_i^2 1{h_i > 0} Y Y^T],   G_WiWi = E[e^2 v_i^2 1{h_i > 0} Y Y^T],
    H_vv = E[sigma'(f) g g^T],                      G_vv = E[e^2 g g^T].

The Hessian is the one that exists almost everywhere: the kink of the ReLU adds nothing to it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limitlab.laws.alignment._softmax_sgd import block_eigenpairs
from limitlab.numerics.lanczos import Eigenpairs

Array = NDArray[np.float64]


def draw_xor(rng: np.random.Generator, dimension: int, spread: float, count: int) -> tuple[Array, Array]:
    """Samples (count, N) around +-mu (label 1) and +-nu (label 0), the first two axes, and their labels.

    >>> samples, labels = draw_xor(np.random.default_rng(0), 5, 0.0, 3)
    >>> np.abs(samples).sum(axis=1).tolist()
    [1.0, 1.0, 1.0]
    """
    clusters = rng.integers(0, 4, size=count)
    samples = spread * rng.standard_normal((count, dimension))
    samples[np.arange(count), clusters // 2] += 1.0 - 2.0 * (clusters & 1)
    return samples, (clusters < 2).astype(float)


def weights_in_space(a: Array, b: Array, gram: Array, dimension: int) -> Array:
    """First-layer weights (K, N) with the given overlaps and Gram matrix: what the chain of statistics stands for, up to a rotation.

    >>> weights_in_space(np.ones(1), np.zeros(1), 4 * np.eye(1), 4).tolist()
    [[1.0, 0.0, 2.0, 0.0]]
    """
    values, vectors = np.linalg.eigh(gram)
    factor = vectors * np.sqrt(np.maximum(values, 0.0))
    w = np.zeros((a.size, dimension))
    w[:, 0], w[:, 1], w[:, 2 : 2 + a.size] = a, b, factor
    return w


def sample_weights(samples: Array, labels: Array, v: Array, w: Array) -> tuple[Array, Array, Array]:
    """Preactivations h (M, K), and the weights of a sample in the Hessian, sigma'(f), and in the gradients' second moment, e^2.

    >>> h, hessian, gradient = sample_weights(np.eye(2), np.ones(2), np.zeros(1), np.ones((1, 2)))
    >>> hessian.tolist(), gradient.tolist()
    ([0.25, 0.25], [0.25, 0.25])
    """
    from scipy.special import expit

    h = samples @ w.T
    f = np.maximum(h, 0.0) @ v
    return h, expit(f) * expit(-f), (labels - expit(f)) ** 2


def second_layer_block(h: Array, weights: Array) -> Eigenpairs:
    """All eigenpairs of E[weight g g^T], g = relu(h).

    >>> second_layer_block(np.array([[2.0, -1.0]]), np.ones(1)).values.tolist()
    [4.0, 0.0]
    """
    g = np.maximum(h, 0.0)
    values, vectors = np.linalg.eigh(g.T @ (g * (weights / len(h))[:, None]))
    return Eigenpairs(values[::-1], vectors[:, ::-1])


def first_layer_block(samples: Array, h: Array, weights: Array, neuron: int, count: int = 2) -> Eigenpairs:
    """The top of E[weight 1{h_i > 0} Y Y^T] of neuron i, per squared second-layer weight.

    >>> samples = np.vstack([np.eye(2, 10), np.eye(2, 10)])
    >>> first_layer_block(samples, np.ones((4, 1)), np.array([1.0, 2.0, 1.0, 2.0]), 0).values.round(6).tolist()
    [1.0, 0.5]
    """
    return block_eigenpairs(samples, weights * (h[:, neuron] > 0), count, tolerance=1e-6)


def alignment(vector: Array, pairs: Eigenpairs, count: int) -> float:
    """Length of a vector's projection to the first eigenvectors, relative to its own.

    >>> alignment(np.array([3.0, 4.0]), Eigenpairs(np.ones(2), np.eye(2)), 1)
    0.6
    """
    return float(np.linalg.norm(pairs.vectors[:, :count].T @ vector) / np.linalg.norm(vector))
