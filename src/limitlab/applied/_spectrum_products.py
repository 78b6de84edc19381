"""Products of a network's Hessian and gradient blocks with vectors, by automatic differentiation over batches of the data.

A block is one array of parameters w. With l_i the loss of sample i, the Hessian maps v to the derivative of the mean gradient along v.
The second moment of the gradients maps v to J^T (J v) / n, where J contains the derivatives of all l_i. There is one implementation with
JAX and one with PyTorch.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import Refused
from limitlab.models.optimisers import double_precision_jax

Array = NDArray[np.float64]
Matrix = Literal["hessian", "gradient"]
MATRICES: tuple[Matrix, Matrix] = ("hessian", "gradient")
Loss = Callable[..., Any]
Product = Callable[[Array], Array]


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
