"""Tangent kernel and linearisation of any finite network, given as a JAX function of (parameters, inputs) or a PyTorch module.

    K_ab(x, x') = sum over parameters of (d f_a(x)/d theta)(d f_b(x')/d theta), no prefactor (docs/theory/tangent_kernels.md, eq. 15).

There are three methods. The first uses Jacobians, one array of parameters at a time, in blocks of inputs. The second works by layers, as
products of two Gram matrices for every matrix of weights that acts once; its memory is of the order of the width. The third works column by
column, by a product with J' and then one with J, and needs no memory beyond that of the network. Large networks use the second method if
it applies to all their large arrays, and otherwise the third.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from limitlab._core.checks import one_of
from limitlab.models.optimisers import double_precision_jax, is_torch_module

__all__ = ["empirical_ntk", "linearize"]

Array = NDArray[Any]


Function = Callable[[Any, Any], Any]
Method = Literal["auto", "jacobian", "layers", "columns"]

METHODS = get_args(Method)
LARGEST_JACOBIAN = 30_000_000
"""Largest number of entries of a Jacobian (inputs x outputs x parameters of one array) that is formed."""


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
    """Return the tangent kernel of a finite network between all inputs of X and of Y (or of X).

    Parameters
    ----------
    f
        A function of (parameters, inputs) written with JAX. Its result has one entry per input, or one row per input and one column
        per output. f may also be a `torch.nn.Module`. Then `parameters` is None, and the parameters of the module are used.
    parameters
        The parameters of f, as arrays in lists, tuples and dictionaries.
    X, Y
        Inputs, along the first axis.
    full
        Whether to return all pairs of outputs, shape (n, outputs, m, outputs). Otherwise the result is their trace over the number of
        outputs, shape (n, m).
    method
        "jacobian" (fast if it fits into memory), "layers" (fast for wide layers), "columns" (least memory), or "auto". "layers" computes
        the part of a weight matrix that is used once as a product of two Gram matrices. PyTorch modules use "jacobian".
    batch
        Number of inputs whose derivatives are in memory at a time (default: all).

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
    """Return the network linearised in its parameters, (theta, x) -> f(theta_0, x) + J(x) (theta - theta_0).

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
        result = f(at, x)
        return result.reshape(len(x), -1)

    count = int(jax.eval_shape(outputs, theta, first).shape[1])
    leaves, structure = jax.tree_util.tree_flatten(theta)
    one_of("method", method, METHODS)
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
    """Return the sum over arrays of parameters outside `done` of J J', with the Jacobian of one array in memory at a time."""
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
    """Return J_X (J_Y' e) for all unit vectors e."""

    @jax.jit
    def column(unit: Any) -> Any:
        _, back = jax.vjp(lambda at: outputs(at, Y), theta)
        return jax.jvp(lambda at: outputs(at, X), (theta,), (back(unit)[0],))[1]

    units = np.eye(len(Y) * count).reshape(-1, len(Y), count)
    columns = np.stack([np.asarray(column(jax.numpy.asarray(unit))) for unit in units], axis=-1)
    return columns.reshape(len(X), count, len(Y), count)


# -- PyTorch, if it is installed --------------------------------------------------------------------------------------------


def _torch_kernel(module: Any, X: Any, Y: Any, batch: int | None) -> Array:
    """Return the same sum for a `torch.nn.Module`, one array of parameters at a time, in the precision of the module."""
    torch = importlib.import_module("torch")
    names = dict(module.named_parameters())
    fixed = {name: value.detach() for name, value in (*names.items(), *module.named_buffers())}
    like = next(iter(fixed.values()))
    first, second = (torch.as_tensor(table, dtype=like.dtype, device=like.device) for table in (X, Y))

    def jacobian(name: str, x: Any) -> Any:
        def single(value: Any, row: Any) -> Any:
            return torch.func.functional_call(module, {**fixed, name: value}, (row[None],)).reshape(-1)

        jacobians = torch.func.vmap(torch.func.jacrev(single), (None, 0))(fixed[name], x)
        return jacobians.reshape(*jacobians.shape[:2], -1)

    size = batch or max(len(first), len(second))
    rows = []
    for a in _blocks(len(first), size):
        row = []
        for b in _blocks(len(second), size):
            total: Any = 0.0
            for name in names:
                derivatives = jacobian(name, first[a])
                other_derivatives = derivatives if Y is X and a == b else jacobian(name, second[b])
                total = total + torch.einsum("iap,jbp->iajb", derivatives, other_derivatives)
            row.append(np.asarray(total.detach().cpu().numpy(), dtype=float))
        rows.append(np.concatenate(row, axis=2))
    return np.concatenate(rows)


# -- the tangent kernel of any JAX function by layers, without its Jacobian (docs/theory/tangent_kernels.md, eq. 16) -

Path = tuple[int, ...]

TURNED = ("transpose", "reshape", "squeeze", "expand_dims", "copy", "convert_element_type")
"""Operations that leave all sums of products of an array's entries unchanged."""
NESTED = ("pjit", "jit", "closed_call")


@dataclass(frozen=True)
class Use:
    """The matrix product in which an array of parameters acts.

    `path` locates the product in the nested program, `operand` is the position of the array in it (0 or 1), and the array enters
    multiplied by `factor`.
    """

    path: Path
    operand: int
    factor: float


@dataclass(frozen=True)
class Signals:
    """The signals at one array of parameters for a batch of inputs.

    `inside` is factor x a, shape (inputs, places, channels), and `back` is df/dz, shape (inputs, outputs, places, columns).
    """

    inside: Any
    back: Any


class LayerProducts:
    """The part of a function's tangent kernel that is a sum of products of two Gram matrices.

    Parameters
    ----------
    jax
        The module.
    single
        A function of (list of arrays, one input) whose result is a vector.
    leaves
        The arrays.
    example
        One input.

    Examples
    --------
    >>> from limitlab.models.optimisers import double_precision_jax
    >>> jax = double_precision_jax()
    >>> arrays = [np.eye(3), np.ones((3, 1)), np.ones(1)]
    >>> parts = LayerProducts(jax, lambda w, x: jax.numpy.tanh(x @ w[0]) @ w[1] + w[2], arrays, np.ones(3))
    >>> sorted(parts.uses)  # the third array is added, not multiplied
    [0, 1]
    """

    def __init__(self, jax: Any, single: Callable[[list[Any], Any], Any], leaves: list[Any], example: Any):
        self.jax, self.leaves = jax, leaves
        self.program = jax.make_jaxpr(single)(leaves, example)
        self.uses = single_uses(self.program.jaxpr, len(leaves))
        self.places = {use.path: leaf for leaf, use in self.uses.items()}

    def signals(self, X: Any) -> dict[int, Signals]:
        """Return inputs and backpropagated derivatives for every array that acts once."""
        jax = self.jax

        def of_one_input(x: Any) -> tuple[dict[int, Any], dict[int, Any]]:
            zeros = {leaf: jax.numpy.zeros(self._product(use.path).outvars[0].aval.shape) for leaf, use in self.uses.items()}

            def forward(added: dict[int, Any]) -> tuple[Any, dict[int, Any]]:
                seen: dict[int, Any] = {}
                (f,) = self._run(self.program.jaxpr, self.program.consts, [*self.leaves, x], added, seen, ())
                return f, seen

            f, pull, seen = jax.vjp(forward, zeros, has_aux=True)
            (back,) = jax.vmap(pull)(jax.numpy.eye(f.size, dtype=f.dtype))
            return seen, back

        inside, back = jax.jit(jax.vmap(of_one_input))(X)
        return {leaf: self._arranged(use, inside[leaf], back[leaf]) for leaf, use in self.uses.items()}

    def _product(self, path: Path) -> Any:
        program = self.program.jaxpr
        for step in path[:-1]:
            program = program.eqns[step].params["jaxpr"].jaxpr
        return program.eqns[path[-1]]

    def _arranged(self, use: Use, inside: Any, back: Any) -> Signals:
        """Return the other operand with free axes (places) before summed ones (channels), and the derivatives in the same order."""
        contracting = self._product(use.path).params["dimension_numbers"][0][1 - use.operand]
        axes = [axis for axis in range(inside.ndim - 1) if axis not in contracting]
        sizes = [inside.shape[axis + 1] for axis in axes]
        inside = inside.transpose(0, *(axis + 1 for axis in axes), *(axis + 1 for axis in contracting))
        places, free = math.prod(sizes), len(axes)
        inside = inside.reshape(len(inside), places, -1)
        outputs = back.shape[:2]
        if use.operand == 1:  # in signal times weights, the signal's free axes come first
            back = back.reshape(*outputs, places, -1)
        else:
            cut = back.ndim - free
            back = back.reshape(*outputs, math.prod(back.shape[2:cut]), places).swapaxes(2, 3)
        return Signals(use.factor * inside, back)

    def _run(self, program: Any, consts: Any, inputs: Any, added: Any, seen: dict[int, Any], path: Path) -> list[Any]:
        """Run the program with `added` added to the products in `places`, and write the other operands of these products into `seen`."""
        known: dict[Any, Any] = dict(zip((*program.constvars, *program.invars), (*consts, *inputs), strict=True))

        def read(atom: Any) -> Any:
            return atom.val if hasattr(atom, "val") else known[atom]

        for number, line in enumerate(program.eqns):
            here, values = (*path, number), [read(atom) for atom in line.invars]
            if line.primitive.name in NESTED and any(place[: len(here)] == here for place in self.places):
                inner = line.params["jaxpr"]
                results = self._run(inner.jaxpr, inner.consts, values, added, seen, here)
            else:
                results = evaluated(line, values)
            if here in self.places:
                leaf = self.places[here]
                seen[leaf] = values[1 - self.uses[leaf].operand]
                results = [results[0] + added[leaf].astype(results[0].dtype)]
            known.update(zip(line.outvars, results, strict=True))
        return [read(atom) for atom in program.outvars]


def evaluated(line: Any, values: list[Any]) -> list[Any]:
    """Return the results of one line of a program, as in JAX's guide to interpreters.

    Older versions of JAX return inner functions and options separately.
    """
    bound = line.primitive.get_bind_params(line.params)
    functions, options = bound if isinstance(bound, tuple) else ((), bound)
    results = line.primitive.bind(*functions, *values, **options)
    return list(results) if line.primitive.multiple_results else [results]


def gram_products(first: Signals, second: Signals) -> Array:
    """Return products of derivatives by one array between all inputs and outputs, shape (n, outputs, m, outputs)."""
    n, outputs, places, columns = first.back.shape
    channels, m = first.inside.shape[-1], len(second.inside)
    # with many places the derivatives are smaller than the Gram matrices
    if places * places * n * m * outputs > (n + m) * channels * columns:
        whole = [np.einsum("isk,icsf->ickf", side.inside, side.back, optimize=True) for side in (first, second)]
        tables = [table.reshape(len(table) * outputs, -1) for table in whole]
        return np.asarray(tables[0] @ tables[1].T).reshape(n, outputs, m, outputs)
    forward = np.asarray(first.inside.reshape(n * places, -1) @ second.inside.reshape(m * places, -1).T)
    backward = np.asarray(first.back.reshape(n * outputs * places, -1) @ second.back.reshape(m * outputs * places, -1).T)
    if places == 1:
        return forward[:, None, :, None] * backward.reshape(n, outputs, m, outputs)
    shape = (n, outputs, places, m, outputs, places)
    return np.einsum("isjt,icsjdt->icjd", forward.reshape(n, places, m, places), backward.reshape(shape), optimize=True)


# -- reading the program --------------------------------------------------------------------------------------------------


def single_uses(program: Any, leaves: int) -> dict[int, Use]:
    """Return the inputs among the first `leaves` of a program that act exactly once, as an operand of a matrix product."""
    uses_of: dict[int, list[Use | None]] = {leaf: [] for leaf in range(leaves)}
    origins = {variable: (leaf, 1.0) for leaf, variable in enumerate(program.invars[:leaves])}
    for leaf, use in _uses(program, origins, ()):
        uses_of[leaf].append(use)
    return {leaf: uses[0] for leaf, uses in uses_of.items() if len(uses) == 1 and uses[0] is not None}


def _uses(program: Any, origins: dict[Any, tuple[int, float]], path: Path) -> Iterator[tuple[int, Use | None]]:
    """Yield every use of the arrays, with None for a use that is not such a product."""
    origins = dict(origins)
    for number, line in enumerate(program.eqns):
        marked = [None if hasattr(atom, "val") else origins.get(atom) for atom in line.invars]
        if not any(marked):
            continue
        name, here = line.primitive.name, (*path, number)
        if name in NESTED:
            inner = line.params["jaxpr"].jaxpr
            inside = {variable: mark for variable, mark in zip(inner.invars, marked, strict=True) if mark is not None}
            yield from _uses(inner, inside, here)
            continue
        factor = _factor(line, marked)
        if factor is not None:
            (leaf, before) = next(mark for mark in marked if mark is not None)
            origins[line.outvars[0]] = leaf, before * factor
            continue
        for operand, mark in enumerate(marked):
            if mark is not None:
                yield mark[0], Use(here, operand, mark[1]) if _is_product(line, marked) else None
    for atom in program.outvars:
        if not hasattr(atom, "val") and atom in origins:
            yield origins[atom][0], None


def _factor(line: Any, marked: list[Any]) -> float | None:
    """Return the factor by which a line multiplies an array whose entries it only moves otherwise, or None for other lines."""
    name = line.primitive.name
    if name in TURNED:
        return 1.0
    if name == "neg":
        return -1.0
    if name not in ("mul", "div") or sum(mark is not None for mark in marked) != 1 or (name == "div" and marked[0] is None):
        return None
    other = line.invars[1 if marked[0] is not None else 0]
    if not hasattr(other, "val") or np.ndim(other.val) > 0:
        return None
    return float(other.val) if name == "mul" else 1 / float(other.val)


def _is_product(line: Any, marked: list[Any]) -> bool:
    """Return whether a line multiplies exactly one of the arrays with something else, without batch axes in both."""
    if line.primitive.name != "dot_general" or sum(mark is not None for mark in marked) != 1:
        return False
    first, second = line.params["dimension_numbers"][1]
    return not first and not second
