"""What the declaration of a law says about its controls: for every parameter a slider, a choice, a switch or a text, and its range.

Nothing here draws: `controls` makes widgets of it, `state` checks addresses with it.
"""

from __future__ import annotations

import math
import typing
from dataclasses import dataclass
from typing import Any, Literal

from limitlab._core.about import allowed, kind_of
from limitlab._core.law import Law
from limitlab._core.parameters import Parameter, numbers_in
from limitlab._core.tables import plain_symbol

Form = Literal["slider", "choice", "switch", "text"]
Group = Literal["physics", "experiment", "advanced"]

DECADES = 2
"""A logarithmic slider goes so many powers of ten to either side of the default."""
POINTS = 161
"""Points of a curve that one call of the law serves."""
FEW_POINTS = 33
"""Points of a curve whose every point is a solve."""


@dataclass(frozen=True)
class Control:
    """How one parameter is set.

    Attributes
    ----------
    name, label, help
        The parameter, the few words beside its control, and the sentence behind it.
    form
        "slider" (with a field for numbers outside its range), "choice", "switch" or "text".
    group
        "physics", "experiment", or "advanced" for options of the solver.
    value
        Where it starts.
    low, high, log, whole
        Of a slider: its ends, whether it is logarithmic, whether it takes whole numbers only.
    choices
        Of a choice.
    many
        Of a text: whether it is a list, also where it has one entry.
    """

    name: str
    label: str
    help: str
    form: Form
    group: Group
    value: Any
    low: float = 0.0
    high: float = 1.0
    log: bool = False
    whole: bool = False
    choices: tuple[Any, ...] = ()
    many: bool = False


def controls_of(law: type[Law]) -> dict[str, Control]:
    """One control per parameter, from the declaration alone.

    >>> from limitlab.laws import Ridge
    >>> found = controls_of(Ridge)
    >>> found["ratio"].form, found["ratio"].log, found["eigenvalues"].form
    ('slider', True, 'text')
    """
    return {name: _control(law, name, meta) for name, meta in law.parameters().items()}


def _control(law: type[Law], name: str, meta: Parameter) -> Control:
    annotation, symbol = law.model_fields[name].annotation, plain_symbol(meta.symbol)
    label = f"{name.replace('_', ' ')} {symbol}".strip() if "\\" not in symbol else name.replace("_", " ")
    about = f"{meta.words}: {allowed(law, name)}"
    group: Group = "advanced" if meta.kind == "solver" else "experiment" if meta.kind == "experiment" else "physics"
    kind, value = kind_of(annotation), start_value(meta)
    if choices := _choices(annotation):
        return Control(name, label, about, "choice", group, value, choices=choices)
    if kind == "truth":
        return Control(name, label, about, "switch", group, value)
    if kind in ("number", "whole", "series") and _is_number(value):
        whole = kind == "whole" or (kind == "series" and (isinstance(value, int) or meta.dimension == "iteration"))
        low, high, log = slider_range(meta, value, whole)
        return Control(name, label, about, "slider", group, value, low, high, log, whole)
    return Control(name, label, about, "text", group, value, many=kind == "sequence")


def start_value(meta: Parameter) -> Any:
    """Where a control starts: the default; of a coordinate such as `times` its last value, because a slider holds one."""
    if meta.kind == "coordinate" and isinstance(meta.default, (tuple, list)) and meta.default:
        return meta.default[-1]
    return meta.default


def slider_range(meta: Parameter, value: float, whole: bool = False) -> tuple[float, float, bool]:
    """Ends of a slider around a value, within what is declared, and whether it is logarithmic.

    >>> slider_range(Parameter("ratio", "features per sample", 1.0, above=0, scale="log"), 1.0)
    (0.01, 100.0, True)
    >>> slider_range(Parameter("share", "probability", 0.5, least=0, most=1), 0.5)
    (0.0, 1.0, False)
    """
    finite = value if math.isfinite(value) else 1.0
    own = list(numbers_in(meta.default)) if meta.kind == "coordinate" else []
    floor = meta.least if meta.least is not None else meta.above
    ceiling = meta.most if meta.most is not None else meta.below
    log = meta.scale == "log" and finite > 0
    log = log and not (len(own) > 1 and min(own) <= 0)
    if len(own) > 1 and (
        floor is None or ceiling is None or ceiling > 10 * max(own)
    ):  # the law says which stretch of a coordinate to look at
        low, high = min(own) if log or floor is None else floor, max(own)
    elif log:
        centre = 10.0 ** round(math.log10(finite))
        low, high = centre / 10**DECADES, centre * 10**DECADES
        low, high = max(low, floor if floor else low), min(high, ceiling if ceiling else high)
    else:
        reach = 4 * abs(finite) or 2.0  # a bound that is much further away is no end of a slider
        low = floor if floor is not None and abs(floor) <= 10 * reach else -reach
        high = ceiling if ceiling is not None and abs(ceiling) <= 10 * reach else max(reach, low + reach)
    if whole:
        low, high = math.ceil(max(low, 1.0) if log else low), math.floor(high)
    low, high = _inside(meta, low, high, log, whole)
    return low, max(high, low + 1.0) if high <= low else high, log


def _inside(meta: Parameter, low: float, high: float, log: bool, whole: bool) -> tuple[float, float]:
    """Open ends are left out, by one step of the slider or a hundredth of it."""
    step = 1.0 if whole else (high - low) / 100
    if meta.above is not None and low <= meta.above:
        low = low * 1.01 if log and not whole and low > 0 else meta.above + step
    if meta.below is not None and high >= meta.below:
        high = high / 1.01 if log and not whole else meta.below - step
    return float(low), float(high)


def axes_of(law: type[Law]) -> list[str]:
    """Parameters that a curve can run along, the most natural first: the law's time, what one call serves, what spans decades."""
    metas, controls = law.parameters(), controls_of(law)
    numbers = [name for name, control in controls.items() if control.form == "slider" and control.group == "physics"]
    served = law.array_parameters()
    return sorted(numbers, key=lambda name: (metas[name].kind != "coordinate", name not in served, not controls[name].log))


def curves_of(law: Law) -> list[str]:
    """Observables that can be drawn as a curve: numbers without axes of their own, or with the law's coordinate among them."""
    metas, lines = type(law).outputs(), set(law.coordinates())
    names = [
        name
        for name in law.observed()
        if name != "phase" and (metas[name].dims is None or lines & set(metas[name].dims or ()))
    ]
    return sorted(names, key=lambda name: name not in ("test_error", "classification_error"))


def live(law: type[Law], along: str) -> bool:
    """Whether one call of the law gives a whole curve along this parameter."""
    return along in law.array_parameters() or law.parameters()[along].kind == "coordinate"


def dimension(law: type[Law], along: str) -> str:
    """The dimension of a result that a swept parameter becomes: `times` are values of `time`."""
    meta = law.parameters()[along]
    return meta.dimension if meta.kind == "coordinate" else along


def spaced(law: type[Law], along: str, low: float, high: float, log: bool, points: int | None = None) -> list[float]:
    """The values of a curve along a parameter: evenly or geometrically spaced, whole where the parameter is.

    >>> from limitlab.laws import NearestNeighbours
    >>> spaced(NearestNeighbours, "neighbours", 1, 4, False)
    [1.0, 2.0, 3.0, 4.0]
    """
    import numpy as np

    count = points or (POINTS if live(law, along) else FEW_POINTS)
    values = np.geomspace(low, high, count) if log else np.linspace(low, high, count)
    if controls_of(law)[along].whole:
        return [float(value) for value in np.unique(np.round(values))]
    return [float(value) for value in values]


def _choices(annotation: Any) -> tuple[Any, ...]:
    return typing.get_args(annotation) if typing.get_origin(annotation) is typing.Literal else ()


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and not any(map(math.isnan, numbers_in(value)))
