"""The tangent kernel of any JAX function by layers, without its Jacobian (docs/theory/tangent_kernels.md, eq. 16).

A weight matrix W that acts once, as z = a W in the forward pass of one input, has derivatives df/dW = a (x) df/dz. Their products
between two inputs are (a . a') (df/dz . df'/dz'): two Gram matrices of vectors of the layer's width m, instead of derivatives of
size m^2. Which arrays act like this is read from the function's own program (its jaxpr): a product with a signal, perhaps after a
transposition, a change of shape or a factor, anywhere inside nested jits. The program is run with a zero added to every such z, the
derivatives by these zeros are df/dz, and the signals a come out on the way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Path = tuple[int, ...]

TURNED = ("transpose", "reshape", "squeeze", "expand_dims", "copy", "convert_element_type")
"""Operations that keep all sums of products of an array's entries."""
NESTED = ("pjit", "jit", "closed_call")


@dataclass(frozen=True)
class Use:
    """Where an array of parameters acts: the path to the product in the nested program, which operand it is, and its factor there."""

    path: Path
    operand: int
    factor: float


@dataclass(frozen=True)
class Signals:
    """Of a batch of inputs, for one array: factor x a, shape (inputs, places, channels), and df/dz, (inputs, outputs, places, columns)."""

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
        """What goes in and what comes back, for every array that acts once."""
        jax = self.jax

        def one(x: Any) -> tuple[dict[int, Any], dict[int, Any]]:
            zeros = {leaf: jax.numpy.zeros(self._product(use.path).outvars[0].aval.shape) for leaf, use in self.uses.items()}

            def forward(added: dict[int, Any]) -> tuple[Any, dict[int, Any]]:
                seen: dict[int, Any] = {}
                (f,) = self._run(self.program.jaxpr, self.program.consts, [*self.leaves, x], added, seen, ())
                return f, seen

            f, pull, seen = jax.vjp(forward, zeros, has_aux=True)
            (back,) = jax.vmap(pull)(jax.numpy.eye(f.size, dtype=f.dtype))
            return seen, back

        inside, back = jax.jit(jax.vmap(one))(X)
        return {leaf: self._arranged(use, inside[leaf], back[leaf]) for leaf, use in self.uses.items()}

    def _product(self, path: Path) -> Any:
        program = self.program.jaxpr
        for step in path[:-1]:
            program = program.eqns[step].params["jaxpr"].jaxpr
        return program.eqns[path[-1]]

    def _arranged(self, use: Use, inside: Any, back: Any) -> Signals:
        """The other operand with its free axes (places) before its summed ones (channels), and the product's derivatives likewise."""
        contracting = self._product(use.path).params["dimension_numbers"][0][1 - use.operand]
        axes = [axis for axis in range(inside.ndim - 1) if axis not in contracting]
        sizes = [inside.shape[axis + 1] for axis in axes]
        inside = inside.transpose(0, *(axis + 1 for axis in axes), *(axis + 1 for axis in contracting))
        places, free = math.prod(sizes), len(axes)
        inside = inside.reshape(len(inside), places, -1)
        outputs = back.shape[:2]
        if use.operand == 1:  # signal times weights: the signal's free axes come first
            back = back.reshape(*outputs, places, -1)
        else:
            cut = back.ndim - free
            back = back.reshape(*outputs, math.prod(back.shape[2:cut]), places).swapaxes(2, 3)
        return Signals(use.factor * inside, back)

    def _run(self, program: Any, consts: Any, inputs: Any, added: Any, seen: dict[int, Any], path: Path) -> list[Any]:
        """The program, with something added to the products of interest; their other operands are noted in `seen`."""
        known: dict[Any, Any] = dict(zip((*program.constvars, *program.invars), (*consts, *inputs), strict=True))

        def read(atom: Any) -> Any:
            return atom.val if hasattr(atom, "val") else known[atom]

        for number, line in enumerate(program.eqns):
            here, values = (*path, number), [read(atom) for atom in line.invars]
            if line.primitive.name in NESTED and any(place[: len(here)] == here for place in self.places):
                inner = line.params["jaxpr"]
                found = self._run(inner.jaxpr, inner.consts, values, added, seen, here)
            else:
                found = evaluated(line, values)
            if here in self.places:
                leaf = self.places[here]
                seen[leaf] = values[1 - self.uses[leaf].operand]
                found = [found[0] + added[leaf].astype(found[0].dtype)]
            known.update(zip(line.outvars, found, strict=True))
        return [read(atom) for atom in program.outvars]


def evaluated(line: Any, values: list[Any]) -> list[Any]:
    """The results of one line of a program, as JAX's guide to interpreters of jaxprs says; older versions give inner functions apart."""
    given = line.primitive.get_bind_params(line.params)
    functions, options = given if isinstance(given, tuple) else ((), given)
    found = line.primitive.bind(*functions, *values, **options)
    return list(found) if line.primitive.multiple_results else [found]


def gram_products(first: Signals, second: Signals) -> Array:
    """Products of derivatives by one array between all inputs and outputs, shape (n, outputs, m, outputs)."""
    n, outputs, places, columns = first.back.shape
    channels, m = first.inside.shape[-1], len(second.inside)
    if places * places * n * m * outputs > (n + m) * channels * columns:  # many places: derivatives themselves are smaller
        whole = [np.einsum("isk,icsf->ickf", one.inside, one.back, optimize=True) for one in (first, second)]
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
    """The first `leaves` inputs of a program that act exactly once, as an operand of a matrix product with something else."""
    found: dict[int, list[Use | None]] = {leaf: [] for leaf in range(leaves)}
    origins = {variable: (leaf, 1.0) for leaf, variable in enumerate(program.invars[:leaves])}
    for leaf, use in _uses(program, origins, ()):
        found[leaf].append(use)
    return {leaf: uses[0] for leaf, uses in found.items() if len(uses) == 1 and uses[0] is not None}


def _uses(program: Any, origins: dict[Any, tuple[int, float]], path: Path) -> Iterator[tuple[int, Use | None]]:
    """Every use of the arrays, None where it is not such a product."""
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
    """The factor by which a line multiplies an array whose entries it otherwise only moves; None if it does something else."""
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
    """Whether a line multiplies exactly one of the arrays with something else, without axes that run along in both."""
    if line.primitive.name != "dot_general" or sum(mark is not None for mark in marked) != 1:
        return False
    first, second = line.params["dimension_numbers"][1]
    return not first and not second
