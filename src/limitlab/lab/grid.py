"""The grid of a sweep: which parameters are swept, over which values, and which of them one call of the law serves.

A swept parameter is handled in one of three ways:

- *lane*: the law takes all its values at once as an array (`array_parameters` for the limit, `path_parameters` for a draw);
- *folded*: the law has a coordinate of that name (such as `time`), which is given all the values and becomes the dimension;
- *loop*: one task per value.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import ValidationError

from limitlab._core.law import Law
from limitlab._core.parameters import plain
from limitlab.lab.ranges import parse_range

Point = dict[str, Any]


@dataclass(frozen=True)
class Axis:
    """One swept parameter: its values as the law understands them, and the labels that a Dataset can hold."""

    name: str
    values: tuple[Any, ...]
    labels: NDArray[Any]

    @property
    def numeric(self) -> bool:
        """Whether the values are numbers, so that they can be given to a law as an array."""
        return self.labels.dtype.kind in "iuf"


@dataclass(frozen=True)
class Grid:
    """The swept parameters of a law, sorted into those that one call serves (`lanes`) and those that are looped over."""

    law: Law
    axes: tuple[Axis, ...]
    lanes: tuple[Axis, ...]
    loops: tuple[Axis, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the swept parameters, in the user's order: the leading dimensions of the result."""
        return tuple(axis.name for axis in self.axes)

    def points(self) -> Iterator[tuple[tuple[int, ...], Point, Law]]:
        """Every point of the loops: its index, its parameters, and the law there, validated over all lanes."""
        first = {axis.name: axis.values[0] for axis in self.lanes}
        for place in itertools.product(*(range(len(axis.values)) for axis in self.loops)):
            point = {axis.name: axis.values[i] for axis, i in zip(self.loops, place, strict=True)}
            law = law_at(self.law, {**first, **point})
            for corner in _corners(self.lanes):
                law_at(law, corner)
            yield place, point, law


def read_grid(law: Law, over: Mapping[str, Any], together: Sequence[str]) -> Grid:
    """Validate what to sweep over, and sort it.

    Parameters
    ----------
    law
        The law, which gives the other parameters.
    over
        Values of every swept parameter: a sequence, an array, or a range such as "0.1:100:60log".
    together
        Parameters that one call of the law takes as arrays.

    Examples
    --------
    >>> from limitlab.laws import Ridge
    >>> grid = read_grid(Ridge(), {"ratio": [0.5, 2.0], "ridge": "0.1:10:3log"}, together=("ridge",))
    >>> [axis.name for axis in grid.lanes], [axis.name for axis in grid.loops]
    (['ridge'], ['ratio'])
    """
    checked, metas = _checked_names(law, over), type(law).parameters()
    for name, values in checked.items():
        if metas[name].kind == "coordinate":  # such as `times`: all values at once, they become the dimension `time`
            law = _folded(law, name, values)
    axes = tuple(read_axis(law, name, values) for name, values in checked.items() if metas[name].kind != "coordinate")
    lanes = tuple(axis for axis in axes if axis.name in together and axis.numeric)
    return Grid(law, axes, lanes, tuple(axis for axis in axes if axis not in lanes))


def read_axis(law: Law, name: str, values: Any) -> Axis:
    """The values of one swept parameter, each of them checked by the law; a bad one is named."""
    given = _listed_values(name, values)
    checked = _plain_numbers(law, name, given) or tuple(_checked_value(law, name, value) for value in given)
    if not checked:
        raise ValueError(f"over {name!r}: the list of values is empty; give at least one")
    labels = _labels(checked)
    unique, counts = np.unique(labels, return_counts=True)
    if unique.size < labels.size:
        raise ValueError(f"over {name!r}: the value {unique[counts > 1][0]!s} is listed twice")
    return Axis(name, checked, labels)


def _listed_values(name: str, values: Any) -> list[Any]:
    if isinstance(values, str):
        try:
            values = parse_range(values)
        except ValueError as error:
            raise ValueError(f"over {name!r}: {error}") from None
    given = plain(values)
    if isinstance(given, (str, Mapping)) or not hasattr(given, "__iter__"):
        raise ValueError(f"over {name!r}: {given!r} is one value; give a list of values, or set it on the law itself")
    return list(given)


def law_at(law: Law, point: Mapping[str, Any]) -> Law:
    """The law at a point of the grid; a point that it refuses is named."""
    try:
        return law.replace(**point) if point else law
    except ValidationError as error:
        where = ", ".join(f"{name} = {value}" for name, value in point.items())
        raise ValueError(f"the sweep reaches {where}, where {type(law).__name__} says: {one_line(error)}") from None


def one_line(error: ValidationError) -> str:
    """The sentence of a pydantic error, without its frame."""
    return str(error.errors(include_url=False)[0]["msg"]).removeprefix("Value error, ")


def own_coordinates(law: Law) -> dict[str, NDArray[Any]]:
    """The law's coordinates as arrays."""
    return {name: np.asarray(axis) for name, axis in law.coordinates().items()}


def _checked_names(law: Law, over: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(over, Mapping) or not over:
        raise ValueError(
            f"over = {over!r} is not allowed: give a mapping from parameters to values, such as {{'ratio': [1, 2]}}"
        )
    for name in over:
        if name not in type(law).model_fields:
            raise ValueError(
                f"cannot sweep over {name!r}: {type(law).__name__} has no such parameter; {law.hint(str(name))}"
            )
    return over


def _plain_numbers(law: Law, name: str, given: Sequence[Any]) -> tuple[float, ...] | None:
    """All values at once where a parameter is a bare number with bounds: a law need not be made for each of them."""
    field = type(law).model_fields[name]
    validators = type(law).__pydantic_decorators__.field_validators.values()
    bare = field.annotation is float and not field.metadata and all(name not in each.info.fields for each in validators)
    allows = type(law).parameters()[name].allows
    if bare and all(type(value) in (int, float) and allows(value) for value in given):
        return tuple(float(value) for value in given)
    return None


def _checked_value(law: Law, name: str, value: Any) -> Any:
    """The value as the law validates it. What depends on other parameters too is checked where the whole point is known."""
    try:
        return getattr(law.replace(**{name: value}), name)
    except ValidationError as error:
        if error.errors(include_url=False)[0]["loc"][:1] == (name,):
            raise ValueError(f"over {name!r}: {one_line(error)}") from None
        bare = plain(value)
        return tuple(bare) if isinstance(bare, list) else bare


def _labels(values: tuple[Any, ...]) -> NDArray[Any]:
    """Numbers and names label themselves; anything else is written out."""
    if all(isinstance(value, bool) for value in values):
        return np.array(values, dtype=bool)
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        whole = all(isinstance(value, int) and abs(value) < 2**63 for value in values)
        return np.asarray(values, dtype=np.int64 if whole else np.float64)
    return np.array([_written(value) for value in values], dtype=np.str_)


def _written(value: Any) -> str:
    """A short text for a value that is neither a number nor a name.

    >>> _written((1.0, 4.0)), _written(np.tanh), _written("relu")
    ('(1, 4)', 'tanh', 'relu')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, (tuple, list)):
        return "(" + ", ".join(_written(item) for item in value) + ")"
    if isinstance(value, float):
        return f"{value:.17g}" if float(f"{value:.6g}") != value else f"{value:g}"
    return str(getattr(value, "name", getattr(value, "__name__", value)))


def _folded(law: Law, name: str, values: Any) -> Law:
    """The law with all values of a coordinate such as `times` at once."""
    listed = list(_listed_values(name, values))
    if any(isinstance(value, (tuple, list)) for value in listed):
        raise ValueError(
            f"over {name!r}: {values!r} holds lists; give single numbers, they become the dimension of the result"
        )
    try:
        return law.replace(**{name: tuple(listed)})
    except ValidationError as error:
        raise ValueError(f"over {name!r}: {one_line(error)}") from None


def _corners(lanes: tuple[Axis, ...]) -> Iterator[Point]:
    """The extreme points of the lanes. Each value was checked by itself; what couples parameters is checked here."""
    ends = [(axis.name, sorted({min(axis.values), max(axis.values)})) for axis in lanes]
    for values in itertools.product(*(pair for _, pair in ends)):
        yield {name: value for (name, _), value in zip(ends, values, strict=True)}
