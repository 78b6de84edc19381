"""Tangent kernel and linearisation of any finite network: a JAX function of (parameters, inputs), or a PyTorch module.

    K_ab(x, x') = sum over parameters of (d f_a(x)/d theta)(d f_b(x')/d theta), no prefactor (docs/theory/tangent_kernels.md, eq. 15).

Three ways to it. With Jacobians, one array of parameters at a time, in blocks of inputs; by layers, as products of two Gram matrices
wherever a matrix of weights acts once, whose memory is of the order of the width (`limitlab.laws.kernels._layerwise`); or column by
column, a product with J' and then one with J, which needs no memory beyond the network's own. Large networks take the second where all
their large arrays allow it, else the third.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import Refused
from limitlab.laws.kernels._layerwise import LayerProducts, gram_products
from limitlab.models.optimisers import double_precision_jax, is_torch_module

__all__ = ["empirical_ntk", "linearize"]

Array = NDArray[Any]
Function = Callable[[Any, Any], Any]
Method = Literal["auto", "jacobian", "layers", "columns"]

METHODS = get_args(Method)
LARGEST_JACOBIAN = 30_000_000
"""Entries of a Jacobian (inputs x outputs x parameters of one array) beyond which it is not formed."""


def empirical_ntk(
    f: Function | Any,
    parameters: Any,
    X: Any,
    Y: Any = None,
    *,
    full: bool = False,
    method: Method = "auto",
    batch: int | None = None,
) -> Array:
    """The tangent kernel of a finite network between all inputs of X and of Y (or of X).

    Parameters
    ----------
    f
        A function of (parameters, inputs) written with JAX, whose result has one row per input, and one or more columns or none; or a
        `torch.nn.Module` (then `parameters` is None and the module's own are used).
    parameters
        Its parameters: arrays in lists, tuples and dictionaries.
    X, Y
        Inputs, along the first axis.
    full
        Whether to return all pairs of outputs, shape (n, outputs, m, outputs); otherwise their trace over the number of outputs, (n, m).
    method
        "jacobian" (fast where it fits), "layers" (products of two Gram matrices wherever a matrix of weights acts once, the Jacobian
        of other arrays), "columns" (least memory), or "auto". Modules of PyTorch use Jacobians.
    batch
        Inputs whose derivatives are in memory at a time (default: all).

    Examples
    --------
    >>> from limitlab.laws import fully_connected, ntk
    >>> net, X = fully_connected(2, "relu"), np.eye(3)
    >>> K = empirical_ntk(net.apply, net.start(np.random.default_rng(0), (3,), 20_000), X)
    >>> bool(np.abs(K - ntk(X, layers=2)).max() < 0.02)
    True
    """
    if is_torch_module(f):
        blocks = _torch_kernel(f, X, X if Y is None else Y, batch)
    else:
        blocks = _jax_kernel(f, parameters, X, X if Y is None else Y, method, batch)
    return blocks if full else np.trace(blocks, axis1=1, axis2=3) / blocks.shape[1]


def linearize(f: Function, parameters: Any) -> Function:
    """The network linearised in its parameters: (theta, x) -> f(theta_0, x) + J(x) (theta - theta_0).

    Parameters
    ----------
    f
        A function of (parameters, inputs) written with JAX.
    parameters
        theta_0.

    Examples
    --------
    >>> straight = linearize(lambda theta, x: theta**2 * x, 3.0)
    >>> float(straight(4.0, 1.0))
    15.0
    """
    jax = double_precision_jax()
    start = jax.tree_util.tree_map(jax.numpy.asarray, parameters)

    def straight(theta: Any, x: Any) -> Any:
        moved = jax.tree_util.tree_map(lambda a, b: jax.numpy.asarray(a, dtype=b.dtype) - b, theta, start)
        value, change = jax.jvp(lambda at: f(at, x), (start,), (moved,))
        return value + change

    return straight


# -- JAX ------------------------------------------------------------------------------------------------------------------


def _jax_kernel(f: Function, parameters: Any, X: Any, Y: Any, method: Method, batch: int | None) -> Array:
    jax = double_precision_jax()
    np_ = jax.numpy
    theta = jax.tree_util.tree_map(np_.asarray, parameters)
    first = np_.asarray(X)
    second = first if Y is X else np_.asarray(Y)

    def outputs(at: Any, x: Any) -> Any:
        found = f(at, x)
        return found.reshape(len(x), -1)

    count = int(jax.eval_shape(outputs, theta, first).shape[1])
    leaves, structure = jax.tree_util.tree_flatten(theta)
    if method not in METHODS:
        raise Refused(f"method = {method!r} is not allowed: must be one of {', '.join(map(repr, METHODS))}")
    size = batch or max(len(first), len(second))
    large = [place for place, leaf in enumerate(leaves) if size * count * leaf.size > LARGEST_JACOBIAN]
    products = None
    if method == "layers" or (method == "auto" and large):

        def single(parts: list[Any], x: Any) -> Any:
            return outputs(jax.tree_util.tree_unflatten(structure, parts), x[None])[0]

        products = LayerProducts(jax, single, leaves, first[0])
    if method == "columns" or (method == "auto" and products is not None and not set(large) <= set(products.uses)):
        return _columns(jax, outputs, theta, first, second, count)
    done = set(products.uses) if products is not None else set()
    total = np.zeros((len(first), count, len(second), count))
    for rows in _blocks(len(first), size):
        some = first[rows]
        signals = products.signals(some) if products is not None else {}
        for columns in _blocks(len(second), size):
            others = some if second is first and rows == columns else second[columns]
            here = total[rows, :, columns]
            here += _jacobians(jax, outputs, theta, some, others, done)
            if products is not None:
                seconds = signals if others is some else products.signals(others)
                for place in products.uses:
                    here += gram_products(signals[place], seconds[place])
    return total


def _blocks(length: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]


def _jacobians(jax: Any, outputs: Function, theta: Any, X: Any, Y: Any, done: Collection[int] = ()) -> Array:
    """The sum over arrays of parameters that are not done yet of J J', with the Jacobian of one array in memory at a time."""
    leaves, structure = jax.tree_util.tree_flatten(theta)
    total: Any = 0.0
    for place in (place for place in range(len(leaves)) if place not in done):

        def single(leaf: Any, x: Any, place: int = place) -> Any:
            parts = [*leaves[:place], leaf, *leaves[place + 1 :]]
            return outputs(jax.tree_util.tree_unflatten(structure, parts), x[None])[0]

        table = jax.vmap(jax.jacrev(single), (None, 0))
        first = table(leaves[place], X)
        first = first.reshape(*first.shape[:2], -1)
        second = first if Y is X else table(leaves[place], Y).reshape(len(Y), first.shape[1], -1)
        total = total + np.asarray(jax.numpy.einsum("iap,jbp->iajb", first, second))
    return np.asarray(total)


def _columns(jax: Any, outputs: Function, theta: Any, X: Any, Y: Any, count: int) -> Array:
    """J_X (J_Y' e) for all unit vectors e."""

    @jax.jit
    def column(unit: Any) -> Any:
        _, back = jax.vjp(lambda at: outputs(at, Y), theta)
        return jax.jvp(lambda at: outputs(at, X), (theta,), (back(unit)[0],))[1]

    units = np.eye(len(Y) * count).reshape(-1, len(Y), count)
    found = np.stack([np.asarray(column(jax.numpy.asarray(unit))) for unit in units], axis=-1)
    return found.reshape(len(X), count, len(Y), count)


# -- PyTorch, where it is installed -----------------------------------------------------------------------------------------


def _torch_kernel(module: Any, X: Any, Y: Any, batch: int | None) -> Array:
    """The same sum for a `torch.nn.Module`, one array of parameters at a time, in the precision of the module."""
    torch = importlib.import_module("torch")
    names = dict(module.named_parameters())
    fixed = {name: value.detach() for name, value in (*names.items(), *module.named_buffers())}
    like = next(iter(fixed.values()))
    first, second = (torch.as_tensor(table, dtype=like.dtype, device=like.device) for table in (X, Y))

    def jacobian(name: str, x: Any) -> Any:
        def single(value: Any, row: Any) -> Any:
            return torch.func.functional_call(module, {**fixed, name: value}, (row[None],)).reshape(-1)

        found = torch.func.vmap(torch.func.jacrev(single), (None, 0))(fixed[name], x)
        return found.reshape(*found.shape[:2], -1)

    size = batch or max(len(first), len(second))
    rows = []
    for a in _blocks(len(first), size):
        row = []
        for b in _blocks(len(second), size):
            total: Any = 0.0
            for name in names:
                one = jacobian(name, first[a])
                other = one if Y is X and a == b else jacobian(name, second[b])
                total = total + torch.einsum("iap,jbp->iajb", one, other)
            row.append(np.asarray(total.detach().cpu().numpy(), dtype=float))
        rows.append(np.concatenate(row, axis=2))
    return np.concatenate(rows)
