"""The prediction of a law along a parameter as a line, and the mean over its draws as points with error bars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from limitlab._core.arguments import explained
from limitlab._core.draws import mean_and_error
from limitlab._core.law import Law
from limitlab._core.results import own_dimensions
from limitlab.errors import Refused, did_you_mean
from limitlab.plotting.panels import drawable, geometric
from limitlab.plotting.style import simulation_points, theory_line

__all__ = ["along"]

Array = NDArray[np.float64]
Setting = str | Callable[[Array], Mapping[str, Any]]
"""The name of a parameter, "size", or a function from the values on the axis to the parameters that change with them."""
Size = int | Callable[[float], int]
"""The size of every experiment, or a function from the value on the axis to the size there."""


@explained
def along(
    axes: Axes | Sequence[Axes],
    law: Law | Mapping[str, Law],
    parameter: Setting,
    observables: str | Sequence[str] | Mapping[str, str],
    line: ArrayLike = (),
    points: ArrayLike = (),
    *,
    size: Size | None = None,
    seeds: int | Sequence[int] = 0,
    index: int = 0,
    label: str | None = None,
    transform: Callable[[Array], Array] | None = None,
    **options: Any,
) -> None:
    r"""Draw predictions as lines and means over draws as points with their standard errors, along a parameter.

    The prediction is evaluated once for all values of a parameter that it takes as an array. A draw is made once per seed for all
    values that it serves, and once for all observables. The labels of the axes come from the declarations of the law, and the axis is
    logarithmic if the values are spaced by a factor. `finish` can change both.

    Parameters
    ----------
    axes
        A panel, or one panel per observable.
    law
        A law, or several laws by their labels. The law sets all parameters that do not change along the axis.
    parameter
        The name of the parameter on the axis, or "size" for the size of the experiments. It can also be a function that returns the
        parameters of the law for an array of values on the axis, for example `lambda samples: {"ratio": 1 / samples}`.
    observables
        The name of an observable, several names, or names with their labels.
    line, points
        The values on the axis at which predictions and draws are made. Without values there is no line or there are no points.
    size
        The size of every experiment, or a function that returns it for a value on the axis. A draw then serves a single value.
    seeds
        The number of draws for every point, or their seeds.
    index
        The number of the first colour. Several laws get successive colours, and so do several observables on one panel.
    label
        The label of a single law with a single observable per panel.
    transform
        A function of the predicted and of the measured values that gives the values to draw.
    options
        Properties of the lines, such as `linestyle="--"`.

    Examples
    --------
    >>> from limitlab.laws import Ridge
    >>> from limitlab.plotting import finish, new_figure
    >>> figure, (axes,) = new_figure()
    >>> grid, few = np.geomspace(0.01, 10, 50), [0.01, 0.1, 1.0]
    >>> along(axes, Ridge(ratio=2.0), "ridge", ("bias", "variance"), grid, few, size=50, seeds=4)
    >>> finish(axes, y_label="squared error")
    >>> axes.get_xlabel(), axes.get_xscale(), [text.get_text() for text in axes.get_legend().get_texts()]
    ('ridge penalty $\\lambda$', 'log', ['bias', 'variance'])
    """
    names = [observables] if isinstance(observables, str) else list(observables)
    panels = [axes] * len(names) if isinstance(axes, Axes) else list(axes)
    laws = {"": law} if isinstance(law, Law) else dict(law)
    fine, few = np.asarray(line, dtype=float), np.asarray(points, dtype=float)
    size = int if parameter == "size" else size
    _check(laws, parameter, names, panels, fine, few, size, seeds)
    change = transform or np.asarray
    shared = len(names) > 1 and isinstance(axes, Axes)
    colour = index
    for law_label, each in laws.items():
        predictions = predictions_along(each, parameter, fine) if fine.size else {}
        draws = draws_along(each, parameter, few, size, seeds) if few.size and size is not None else {}
        for panel, name in zip(panels, names, strict=True):
            if name not in predictions and name not in draws:
                known = did_you_mean(name, {**predictions, **draws})
                raise Refused(
                    f"observables = {name!r} is not allowed: {type(each).__name__} does not return it at these parameters: {known}"
                )
            words = (observables[name] if isinstance(observables, Mapping) else name.replace("_", " ")) if shared else ""
            text = ", ".join(filter(None, (law_label, words))) or label
            if name in predictions:
                theory_line(panel, fine, change(np.asarray(predictions[name])), colour, text, **options)
            if name in draws:
                table = change(draws[name])
                mean, error = mean_and_error(table) if len(table) > 1 else (table[0], None)
                simulation_points(panel, few, mean, error, colour, None if name in predictions else text)
            colour += shared
        colour += not shared
    for panel, name in dict(zip(panels, names, strict=True)).items():
        _label(panel, type(next(iter(laws.values()))), parameter, None if shared else name)
        if geometric(fine if fine.size else few):
            panel.set_xscale("log")


def predictions_along(law: Law, parameter: Setting, values: ArrayLike) -> dict[str, Array]:
    """Return the predictions of a law along a parameter, by observable. The values are the first axis of every array.

    >>> from limitlab.laws import Ridge
    >>> predictions_along(Ridge(ridge=0.0, noise=0.7), "ratio", [0.5, 2.0])["test_error"].round(6).tolist()
    [0.98, 1.48]
    """
    at = np.asarray(values, dtype=float)
    changes = _changes(parameter, at)
    coordinate = _coordinate(law, changes)
    if coordinate is not None:
        return _coordinate_first(law.replace(**{coordinate: changes[coordinate].tolist()}).evaluate(), law, coordinate)
    if set(changes) <= set(law.array_parameters()):
        return {name: array for name, array in law.evaluate(**changes).items() if name != "accuracy"}
    return _stacked(each.evaluate() for each in _laws_at(law, changes, at.size))


def draws_along(
    law: Law, parameter: Setting, values: ArrayLike, size: Size = int, seeds: int | Sequence[int] = 1
) -> dict[str, Array]:
    """Return draws of a law along a parameter, by observable. The draws are the first axis of every array, the values the second.

    >>> from limitlab.laws import Ridge
    >>> draws_along(Ridge(), "ratio", [0.5, 2.0], lambda ratio: round(40 * ratio), seeds=3)["test_error"].shape
    (3, 2)
    """
    at = np.asarray(values, dtype=float)
    changes = _changes(parameter, at)
    coordinate = _coordinate(law, changes)
    numbers = range(seeds) if isinstance(seeds, int) else seeds
    if coordinate is not None and not callable(size):
        line = law.replace(**{coordinate: changes[coordinate].tolist()})
        return _stacked(_coordinate_first(line.experiment(size, seed), line, coordinate) for seed in numbers)
    if set(changes) <= set(law.path_parameters()) and not callable(size):
        return _stacked(law.experiment(size, seed, **changes) for seed in numbers)
    laws = _laws_at(law, changes, at.size)
    sizes = [size(float(value)) if callable(size) else size for value in at]
    return _stacked(
        _stacked(each.experiment(number, seed) for each, number in zip(laws, sizes, strict=True)) for seed in numbers
    )


def _changes(parameter: Setting, values: Array) -> dict[str, Array]:
    """Return the parameters that change along the axis, as arrays of their values on the axis."""
    if isinstance(parameter, str):
        return {} if parameter == "size" else {parameter: values}
    return {name: np.broadcast_to(np.asarray(array), values.shape) for name, array in parameter(values).items()}


def _coordinate(law: Law, changes: Mapping[str, Array]) -> str | None:
    """Return the only changing parameter if it is a coordinate of the law, such as its times."""
    metas = type(law).parameters()
    names = [name for name in changes if name in metas and metas[name].kind == "coordinate"]
    return names[0] if names and len(changes) == 1 else None


def _coordinate_first(values: Mapping[str, Any], law: Law, coordinate: str) -> dict[str, Array]:
    """Return results of a law whose first axis is a coordinate.

    Observables that do not depend on it are omitted.
    """
    dimension = type(law).parameters()[coordinate].dimension
    lines = [name for name, line in law.coordinates().items() if np.ndim(line)]
    if dimension not in lines:
        lines.append(dimension)
    arrays = {}
    for name, value in values.items():
        meta = type(law).outputs().get(name)
        dims = (
            lines
            if meta is None or meta.dims is None
            else list(own_dimensions(meta.dims, {**law.coordinates(), dimension: [0.0]}))
        )
        if name != "accuracy" and dimension in dims and np.ndim(value):
            arrays[name] = np.moveaxis(np.asarray(value), dims.index(dimension), 0)
    return arrays


def _laws_at(law: Law, changes: Mapping[str, Array], count: int) -> list[Law]:
    """Return the law at every value on the axis."""
    if not changes:
        return [law] * count
    columns = {name: array.tolist() for name, array in changes.items()}
    return [law.replace(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]


def _stacked(results: Iterable[Mapping[str, Any]]) -> dict[str, Array]:
    """Return results with the same observables as arrays along a new first axis."""
    rows = list(results)
    return {name: np.array([row[name] for row in rows], dtype=float) for name in rows[0] if name != "accuracy"}


def _label(axes: Axes, law: type[Law], parameter: Setting, observable: str | None) -> None:
    """Set the labels of the axes from the declarations of the law."""
    if isinstance(parameter, str) and parameter != "size":
        meta = law.parameters()[parameter]
        axes.set_xlabel(
            f"{meta.dimension if meta.kind == 'coordinate' else meta.description} {drawable(meta.symbol)}".rstrip()
        )
    if observable is not None:
        symbol = law.outputs()[observable].symbol if observable in law.outputs() else ""
        axes.set_ylabel(f"{observable.replace('_', ' ')} {drawable(symbol)}".rstrip())


def _check(
    laws: Mapping[str, Law],
    parameter: Setting,
    observables: Sequence[str],
    panels: Sequence[Axes],
    line: Array,
    points: Array,
    size: Size | None,
    seeds: int | Sequence[int],
) -> None:
    """Raise ValueError if an argument of `along` is not allowed."""
    if not laws or not observables:
        raise Refused(
            f"laws = {list(laws)}, observables = {list(observables)} is not allowed: give at least one law and one observable"
        )
    if len(panels) != len(observables):
        raise Refused(
            f"axes = {len(panels)} panels is not allowed: must be one panel, or one for each of {', '.join(observables)}"
        )
    for law in laws.values():
        known = type(law)
        if isinstance(parameter, str) and parameter != "size" and parameter not in known.parameters():
            raise Refused(
                f"parameter = {parameter!r} is not allowed: {known.__name__} has no such parameter: {known.hint(parameter)}"
            )
    for name, values in (("line", line), ("points", points)):
        if values.ndim != 1:
            raise Refused(f"{name} with {values.ndim} dimensions is not allowed: must be a sequence of numbers")
    if not line.size and not points.size:
        raise Refused("line = () and points = () is not allowed: give values on the axis for a line, for points or for both")
    if points.size and (size is None or not (seeds if isinstance(seeds, int) else len(seeds))):
        raise Refused(f"size = {size!r}, seeds = {seeds!r} is not allowed with points: give a size and at least 1 seed")
