"""Tangent kernels of graph and recurrent networks (docs/theory/tangent_kernels.md, eqs. 17 and 18).

Setting.  Graph network: node features H_0 = X / sqrt(d), pre-activations Z_l = A s(Z_(l-1)) W_l / sqrt(m) with Z_1 = A H_0 W_1 and a
          propagation matrix A, output f = sum over the nodes of s(Z_L) v / sqrt(m).
          Recurrent network: z_t = U x_t / sqrt(d) + g W s(z_(t-1)) / sqrt(m) with the same U and W at all times and z_0 = 0, output
          f = <v, s(z_T)> / sqrt(m). All entries of the weights are standard Gaussian, and all are trained.
Limit.    Width m -> infinity at fixed numbers of layers, nodes and times.
Result.   `graph_kernel` and `recurrent_kernel`.
Status.   Derived. Finite networks agree (claim M19).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.laws.kernels.duals import dual
from limitlab.models.optimisers import double_precision_jax

Array = NDArray[np.float64]


def graph_kernel(activation: Any, layers: int, features: list[Array], propagation: list[Array]) -> Array:
    """Return the tangent kernel of graphs with node features (nodes, d) and propagation matrices (nodes, nodes), eq. (17).

    >>> one = np.array([[1.0, 2.0]])
    >>> graph_kernel("identity", 1, [one], [np.eye(1)]).tolist()  # a single node: a linear network with one hidden layer
    [[5.0]]
    """
    blocks = [len(part) for part in features]
    X, A = np.concatenate(features), _block_diagonal(propagation)
    covariance = A @ (X @ X.T / X.shape[1]) @ A.T
    tangent = covariance.copy()
    for _ in range(layers - 1):
        values, slopes = _duals(activation, covariance)
        covariance = A @ values @ A.T
        tangent = covariance + A @ (tangent * slopes) @ A.T
    values, slopes = _duals(activation, covariance)
    starts = np.cumsum([0, *blocks[:-1]])
    return np.asarray(np.add.reduceat(np.add.reduceat(values + tangent * slopes, starts, axis=0), starts, axis=1))


def recurrent_kernel(activation: Any, gain: float, sequences: Array) -> Array:
    """Return the tangent kernel of sequences (count, T, d), eq. (18).

    >>> recurrent_kernel("identity", 1.0, np.array([[[1.0, 2.0]]])).tolist()
    [[5.0]]
    """
    count, length, d = sequences.shape
    covariance = np.zeros((length + 1, length + 1, count, count))  # of z_t and z_s
    values = np.zeros_like(covariance)
    products = np.einsum("itk,jsk->tsij", sequences, sequences) / d
    variances = np.zeros((length + 1, count))
    for t in range(1, length + 1):
        own = np.zeros(count) if t == 1 else np.diagonal(values[t - 1, t - 1])
        variances[t] = np.diagonal(products[t - 1, t - 1]) + gain**2 * own
        for s in range(1, t + 1):
            covariance[t, s] = products[t - 1, s - 1] + gain**2 * values[t - 1, s - 1]
            values[t, s] = dual(activation, variances[t][:, None], variances[s], covariance[t, s]).value
            values[s, t] = values[t, s].T
    tangent = np.zeros((count, count))
    for t in range(1, length + 1):
        before = np.zeros((count, count))
        if t > 1:
            slopes = dual(activation, variances[t - 1][:, None], variances[t - 1], covariance[t - 1, t - 1]).slope
            before = gain**2 * slopes * tangent
        tangent = covariance[t, t] + before
    last = dual(activation, variances[length][:, None], variances[length], covariance[length, length])
    return np.asarray(last.value + last.slope * tangent)


def graph_kernels_of_networks(
    activation: str, layers: int, features: list[Array], propagation: list[Array], width: int, draws: int, seed: int
) -> Array:
    """Return tangent kernels (draws, graphs, graphs) of random graph networks, by automatic differentiation."""
    jax = double_precision_jax()
    jnp, s = jax.numpy, _functions(activation)
    d = features[0].shape[1]

    def output(weights: Any, X: Any, A: Any) -> Any:
        h = X / jnp.sqrt(d)
        for index, W in enumerate(weights[:-1]):
            h = s(A @ h @ W / (1.0 if index == 0 else jnp.sqrt(width)))
        return (h @ weights[-1]).sum() / jnp.sqrt(width)

    shapes: list[tuple[int, ...]] = [(d, width), *[(width, width)] * (layers - 1), (width,)]
    return _kernels(output, shapes, list(zip(features, propagation, strict=True)), draws, seed)


def recurrent_kernels_of_networks(
    activation: str, gain: float, sequences: Array, width: int, draws: int, seed: int
) -> Array:
    """Return tangent kernels (draws, sequences, sequences) of random recurrent networks, by automatic differentiation."""
    jax = double_precision_jax()
    jnp, s = jax.numpy, _functions(activation)
    d = sequences.shape[2]

    def output(weights: Any, x: Any) -> Any:
        U, W, v = weights
        state = jnp.zeros(width)
        for row in x:
            state = s(U @ row / jnp.sqrt(d) + gain * W @ state / jnp.sqrt(width))
        return v @ state / jnp.sqrt(width)

    return _kernels(output, [(width, d), (width, width), (width,)], [(row,) for row in sequences], draws, seed)


def _functions(activation: str) -> Any:
    """Return an activation as a function of JAX arrays."""
    jax = double_precision_jax()
    return {"relu": jax.nn.relu, "erf": jax.scipy.special.erf}[activation]


def _kernels(output: Any, shapes: list[tuple[int, ...]], inputs: list[tuple[Any, ...]], draws: int, seed: int) -> Array:
    """Return the inner products of the gradients of an output in its weights, for random weights."""
    jax = double_precision_jax()
    gradient, rng, rows = jax.jit(jax.grad(output)), np.random.default_rng(seed), []
    for _ in range(draws):
        weights = [rng.standard_normal(shape) for shape in shapes]
        flat = np.array([np.concatenate([np.ravel(part) for part in gradient(weights, *each)]) for each in inputs])
        rows.append(flat @ flat.T)
    return np.array(rows)


def _duals(activation: Any, covariance: Array) -> Any:
    """Return the duals of all pairs of nodes."""
    variances = np.diagonal(covariance)
    return dual(activation, variances[:, None], variances, covariance)


def _block_diagonal(blocks: list[Array]) -> Array:
    """Return the matrix with these blocks on its diagonal."""
    from scipy.linalg import block_diag

    return np.asarray(block_diag(*blocks), dtype=float)
