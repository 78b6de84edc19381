"""The grid of a sweep, with the swept parameters, their values, and the tasks that serve all points.

A user may type the values as a range, such as `0.1:100:60log`, `0:1:11` or `1,2,5` (`parse_range`).

A swept parameter is handled in one of three ways:

- *array axis*: the law takes all its values at once as an array (`array_parameters` for the limit, `path_parameters` for a draw);
- *coordinate axis*: the law has a coordinate of that name (such as `times`), which gets all the values and becomes a dimension;
- *loop axis*: one task per value.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import ValidationError

from limitlab._core.declaration import plain
from limitlab._core.law import Law
from limitlab.errors import Refused
from limitlab.lab.tasks import LawTask, coordinates_of

Point = dict[str, Any]


@dataclass(frozen=True)
class Axis:
    """One swept parameter, with its validated values and the labels that a Dataset can contain."""

    name: str
    values: tuple[Any, ...]
    labels: NDArray[Any]

    @property
    def numeric(self) -> bool:
        """Whether the values are numbers, so that a law can take them as an array."""
        return self.labels.dtype.kind in "iuf"


@dataclass(frozen=True)
class Grid:
    """The swept parameters of a law, divided into array axes and loop axes."""

    law: Law
    axes: tuple[Axis, ...]
    array_axes: tuple[Axis, ...]
    loop_axes: tuple[Axis, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the swept parameters in the order of the user. They are the leading dimensions of the result."""
        return tuple(axis.name for axis in self.axes)

    def points(self) -> Iterator[tuple[tuple[int, ...], Point, Law]]:
        """Yield the index, the parameters and the law of every point of the loops.

        The law is validated at the corners of the array axes.
        """
        first = {axis.name: axis.values[0] for axis in self.array_axes}
        for place in itertools.product(*(range(len(axis.values)) for axis in self.loop_axes)):
            point = {axis.name: axis.values[i] for axis, i in zip(self.loop_axes, place, strict=True)}
            law = law_at(self.law, {**first, **point})
            for corner in _corners(self.array_axes):
                if corner != first:
                    law_at(law, corner)
            yield place, point, law

    def with_arrays(self, together: Sequence[str]) -> Grid:
        """Return the same grid for a call of the law that takes these parameters as arrays."""
        array_axes = tuple(axis for axis in self.axes if axis.name in together and axis.numeric)
        return Grid(self.law, self.axes, array_axes, tuple(axis for axis in self.axes if axis not in array_axes))


def read_grid(law: Law, over: Mapping[str, Any], together: Sequence[str]) -> Grid:
    """Return the grid of a sweep, with validated values.

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
    >>> [axis.name for axis in grid.array_axes], [axis.name for axis in grid.loop_axes]
    (['ridge'], ['ratio'])
    """
    _check_names(law, over)
    metas = type(law).parameters()
    coordinates = [name for name in over if metas[name].kind == "coordinate"]
    for name in coordinates:  # all values of a coordinate such as `times` become its dimension `time`
        law = _with_coordinate(law, name, over[name])
    axes = tuple(read_axis(law, name, values) for name, values in over.items() if name not in coordinates)
    return Grid(law, axes, (), axes).with_arrays(together)


def read_axis(law: Law, name: str, values: Any) -> Axis:
    """Return the values of one swept parameter, validated by the law.

    The error for a bad value names the value.
    """
    listed = _listed_values(name, values)
    checked = _plain_numbers(law, name, listed) or tuple(_checked_value(law, name, value) for value in listed)
    if not checked:
        raise Refused(f"over {name!r}: the list of values is empty; give at least one value")
    labels = _labels(checked)
    unique, counts = np.unique(labels, return_counts=True)
    if unique.size < labels.size:
        raise Refused(f"over {name!r}: the value {unique[counts > 1][0]!s} is listed twice")
    return Axis(name, checked, labels)


def _listed_values(name: str, values: Any) -> list[Any]:
    if isinstance(values, str):
        try:
            values = parse_range(values)
        except ValueError as error:
            raise Refused(f"over {name!r}: {error}") from None
    listed = plain(values)
    if isinstance(listed, (str, Mapping)) or not hasattr(listed, "__iter__"):
        raise Refused(f"over {name!r}: {listed!r} is one value; give a list of values, or set it on the law itself")
    return list(listed)


def law_at(law: Law, point: Mapping[str, Any]) -> Law:
    """Return the law at a point of the grid; raise ValueError that names the point if the law refuses it."""
    try:
        return law.replace(**point) if point else law
    except ValidationError as error:
        where = ", ".join(f"{name} = {value}" for name, value in point.items())
        raise Refused(f"the sweep reaches {where}, where {type(law).__name__} raises an error: {one_line(error)}") from None


def one_line(error: ValidationError) -> str:
    """Return the message of a pydantic error as one sentence."""
    return str(error.errors(include_url=False)[0]["msg"]).removeprefix("Value error, ")


def _check_names(law: Law, over: Mapping[str, Any]) -> None:
    if not isinstance(over, Mapping) or not over:
        raise Refused(
            f"over = {over!r} is not allowed: give a mapping from parameters to values, such as {{'ratio': [1, 2]}}"
        )
    for name in over:
        if name not in type(law).model_fields:
            raise Refused(f"cannot sweep over {name!r}: {type(law).__name__} has no such parameter; {law.hint(str(name))}")


def _plain_numbers(law: Law, name: str, values: Sequence[Any]) -> tuple[float, ...] | None:
    """Return the values of a parameter that is a number with bounds only, or None.

    For such a parameter no law has to be made for each value.
    """
    field = type(law).model_fields[name]
    validators = type(law).__pydantic_decorators__.field_validators.values()
    if field.annotation not in (float, int) or field.metadata or any(name in each.info.fields for each in validators):
        return None
    number: type[float] = float if field.annotation is float else int
    allows = type(law).parameters()[name].allows
    if all(type(value) in (int, number) and allows(value) for value in values):
        return tuple(number(value) for value in values)
    return None


def _checked_value(law: Law, name: str, value: Any) -> Any:
    """Return a value as the law validates it.

    A rule that involves several parameters is checked at the points of the grid.
    """
    try:
        return getattr(law.replace(**{name: value}), name)
    except ValidationError as error:
        if error.errors(include_url=False)[0]["loc"][:1] == (name,):
            raise Refused(f"over {name!r}: {one_line(error)}") from None
        bare = plain(value)
        return tuple(bare) if isinstance(bare, list) else bare


def _labels(values: tuple[Any, ...]) -> NDArray[Any]:
    """Return labels of values. Numbers and names stay unchanged, and any other value becomes a text."""
    if all(isinstance(value, bool) for value in values):
        return np.array(values, dtype=bool)
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        whole = all(isinstance(value, int) and abs(value) < 2**63 for value in values)
        return np.asarray(values, dtype=np.int64 if whole else np.float64)
    return np.array([_written(value) for value in values], dtype=np.str_)


def _written(value: Any) -> str:
    """Return a short text for a value that is neither a number nor a name.

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


def _with_coordinate(law: Law, name: str, values: Any) -> Law:
    """Return the law with all values of a coordinate such as `times`."""
    listed = list(_listed_values(name, values))
    if any(isinstance(value, (tuple, list)) for value in listed):
        raise Refused(
            f"over {name!r}: {values!r} contains lists; give single numbers, which become the dimension of the result"
        )
    try:
        return law.replace(**{name: tuple(listed)})
    except ValidationError as error:
        raise Refused(f"over {name!r}: {one_line(error)}") from None


def _corners(axes: tuple[Axis, ...]) -> Iterator[Point]:
    """Yield the corner points of the array axes.

    They are checked because a validator may involve several parameters.
    """
    ends = [(axis.name, sorted({min(axis.values), max(axis.values)})) for axis in axes]
    for values in itertools.product(*(pair for _, pair in ends)):
        yield {name: value for (name, _), value in zip(ends, values, strict=True)}


# -- tasks --------------------------------------------------------------------------------------------------------------


def theory_tasks(grid: Grid) -> list[LawTask]:
    """Return one task per point of the loops. One call serves all values of the array axes."""
    arrays = _arrays(grid)
    return [LawTask(law, arrays, grid.names, place) for place, _, law in _checked_points(grid)]


def simulation_tasks(grid: Grid, sizes: Sequence[int], seeds: Sequence[int]) -> list[LawTask]:
    """Return one task per point of the loops, size and seed. One draw serves all values of the array axes."""
    arrays = _arrays(grid)
    return [
        LawTask(law, arrays, grid.names, (*place, i, j), size, seed)
        for place, _, law in _checked_points(grid)
        for i, size in enumerate(sizes)
        for j, seed in enumerate(seeds)
    ]


def _arrays(grid: Grid) -> tuple[tuple[str, tuple[float, ...]], ...]:
    return tuple((axis.name, axis.values) for axis in grid.array_axes)


def _checked_points(grid: Grid) -> Iterator[tuple[tuple[int, ...], Point, Law]]:
    """Yield the points of the grid.

    ValueError is raised if their coordinates (such as `time`), which label one dimension, differ.
    """
    common: dict[str, NDArray[Any]] | None = None
    for place, point, law in grid.points():
        here = coordinates_of(law)
        common = here if common is None else common
        for name in here.keys() | common.keys():
            if name not in here or name not in common or not np.array_equal(here[name], common[name]):
                raise Refused(
                    f"cannot sweep over {', '.join(point)}: the coordinate {name!r} of {type(law).__name__} changes from "
                    f"point to point; give the law one list of values for all points, which becomes the dimension {name!r}"
                )
        yield place, point, law


# -- ranges as text -----------------------------------------------------------------------------------------------------

MOST_POINTS = 1_000_000
"""Largest number of points of one range."""

_FORMS = "write start:stop:count (evenly spaced), start:stop:countlog (geometric), or values such as 1,2,5"
_COUNT = re.compile(r"(?P<count>[^a-z]*?)\s*(?P<spacing>log|lin|)\Z", re.IGNORECASE)


def parse_range(text: str) -> NDArray[np.float64]:
    """Return the numbers that a text describes; several pieces may be joined by commas.

    Parameters
    ----------
    text
        `start:stop:count` (evenly spaced, both ends included), `start:stop:countlog` (geometric), a number, or several
        of these separated by commas.

    Examples
    --------
    >>> parse_range("0:1:5")
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    >>> parse_range("0.1:100:4log")
    array([  0.1,   1. ,  10. , 100. ])
    >>> parse_range("0, 1:4:3log")
    array([0., 1., 2., 4.])
    """
    if not isinstance(text, str):
        raise Refused(f"range {text!r} is not a text: {_FORMS}")
    if not text.strip():
        raise Refused(f"the range is empty: {_FORMS}")
    return np.concatenate([_piece(piece.strip(), text) for piece in text.split(",")])


def _piece(piece: str, text: str) -> NDArray[np.float64]:
    parts = [part.strip() for part in piece.split(":")]
    if len(parts) == 1:
        return np.array([_number(parts[0], text)])
    if len(parts) != 3:
        raise Refused(f"range {text!r}: {piece!r} has {len(parts)} parts: {_FORMS}")
    start, stop = (_finite(part, text) for part in parts[:2])
    count, geometric = _count(parts[2], text)
    if not geometric:
        return np.linspace(start, stop, count)
    if start * stop <= 0:
        raise Refused(f"range {text!r}: a geometric range needs two ends of the same sign, and none of them may be 0")
    return np.geomspace(start, stop, count)


def _count(part: str, text: str) -> tuple[int, bool]:
    """Return the number of points that the third part of a range states, and whether they are geometric."""
    match = _COUNT.match(part)
    if match is None or not match["count"].strip().isdecimal():
        raise Refused(f"range {text!r}: {part!r} is not a number of points, such as 11 or 60log")
    count = int(match["count"])
    if not 2 <= count <= MOST_POINTS:
        raise Refused(f"range {text!r}: the number of points must be between 2 and {MOST_POINTS}, not {count}")
    return count, match["spacing"].lower() == "log"


def _finite(part: str, text: str) -> float:
    number = _number(part, text)
    if not math.isfinite(number):
        raise Refused(f"range {text!r}: the ends of a range must be finite (write infinity as a value: 1,2,inf)")
    return number


def _number(part: str, text: str) -> float:
    if not _is_number(part):
        raise Refused(f"range {text!r}: {part!r} is not a number: {_FORMS}")
    return float(part)


def _is_number(part: str) -> bool:
    try:
        return not math.isnan(float(part))
    except ValueError:
        return False
