"""What a visitor sees, as plain data: the address that restores it, and the Python lines that reproduce it.

A state is checked when it is made: what an address gets wrong is replaced by the law's own value, and said.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args
from urllib.parse import parse_qsl, urlencode

from pydantic_core import ValidationError

from limitlab._core.draws import plain_parameters
from limitlab._core.law import Law
from limitlab._core.parameters import plain
from limitlab._core.registry import law_id
from limitlab.lab.grid import one_line
from limitlab.show.explorer._declared import Control, axes_of, controls_of, curves_of, spaced

Mode = Literal["curve", "phase", "compare", "plan", "forecast"]
Theme = Literal["light", "dark"]
Scale = Literal["auto", "linear", "log"]

FIRST = "Ridge"
"""The law that is shown when none is asked for."""
PREFIX = "p."
"""Marks a parameter of the law in an address: `p.ratio=2`."""
MOST_SEQUENCE = 1000
"""Entries of a list in an address or a field."""
MOST_SIZE, MOST_DRAWS, MOST_GRID = 5000, 500, 80
"""Caps of an experiment's size, of its draws at every point, and of the points along one side of a phase diagram."""


@dataclass(frozen=True)
class Axis:
    """A parameter and the interval that is looked at."""

    name: str
    low: float
    high: float
    log: bool = False

    def text(self) -> str:
        """As it stands in an address.

        >>> Axis("ratio", 0.1, 10, True).text()
        'ratio:0.1:10:log'
        """
        return f"{self.name}:{_digits(self.low)}:{_digits(self.high)}" + (":log" if self.log else "")


def _digits(number: float) -> str:
    """A number that reads back as it was, without an idle fraction."""
    return f"{number:g}" if float(f"{number:g}") == number else repr(number)


@dataclass(frozen=True)
class State:
    """Everything that a view depends on.

    Attributes
    ----------
    law, parameters
        Name of the law and the parameters that differ from its defaults, as JSON holds them.
    mode
        "curve", "phase", "compare", "plan" or "forecast".
    x, y
        The parameter along which a curve runs, and the second one of a phase diagram.
    observables
        What is drawn; a phase diagram and a plan look at the first.
    scale
        Of the vertical axis; "auto" is logarithmic where the values span decades.
    size, draws
        Of an experiment.
    target
        Of a plan: the value wanted of the first observable; the parameter solved for is `x`.
    grid
        Points along each side of a phase diagram.
    theme
        "light" or "dark".
    """

    law: str
    x: Axis
    y: Axis | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    mode: Mode = "curve"
    observables: tuple[str, ...] = ()
    scale: Scale = "auto"
    size: int = 100
    draws: int = 20
    target: float | None = None
    grid: int = 40
    theme: Theme = "light"

    def address(self) -> str:
        """The part of an address after the question mark."""
        pairs: dict[str, Any] = {"law": self.law, "mode": self.mode, "x": self.x.text()}
        if self.y is not None:
            pairs["y"] = self.y.text()
        pairs |= {"show": ",".join(self.observables), "size": self.size, "draws": self.draws}
        if self.scale != "auto":
            pairs["scale"] = self.scale
        if self.target is not None:
            pairs["target"] = _digits(self.target)
        if self.mode == "phase":
            pairs["grid"] = self.grid
        if self.theme != "light":
            pairs["theme"] = self.theme
        pairs |= {PREFIX + name: json.dumps(value) for name, value in self.parameters.items()}
        return urlencode(pairs, safe=":,.[]")


def start(law: Law | type[Law]) -> State:
    """How a law is shown first: its own parameters, along the parameter that says most.

    >>> from limitlab.laws import Ridge
    >>> start(Ridge(ridge=0.5)).address()
    'law=Ridge&mode=curve&x=ratio:0.01:100:log&y=ridge:0.001:10:log&show=test_error&size=100&draws=20&p.ridge=0.5'
    """
    given = law if isinstance(law, Law) else law()
    kind = type(given)
    names, curves = axes_of(kind), curves_of(given)
    if not names or not curves:
        raise ValueError(f"{kind.__name__} cannot be explored: it has no number to draw along, or nothing to draw")
    parameters = {} if isinstance(law, type) else changed(given)
    x, *others = [axis(given, name) for name in names]
    return State(
        law_id(kind),
        x,
        others[0] if others else None,
        parameters,
        observables=tuple(curves[:1]),
        size=min(sorted(given.simulation.sizes)[len(given.simulation.sizes) // 2], MOST_SIZE),
        draws=min(given.simulation.draws, 20),
    )


def changed(law: Law) -> dict[str, Any]:
    """The parameters of a law that differ from where its controls start, as JSON holds them."""
    now, controls = plain_parameters(law), controls_of(type(law))
    first = plain_parameters(at_start(type(law)))
    different = {name: value for name, value in now.items() if value != first[name]}
    if type(law)(**now) != law:
        raise ValueError(f"{law!r} cannot be explored: a parameter is not a number, a text or a list of these")
    for name, value in list(different.items()):
        if controls[name].form == "slider" and isinstance(value, list):  # a slider holds one number
            different[name] = value[-1]
    return different


def at_start(kind: type[Law]) -> Law:
    """The law with every control where it starts."""
    try:
        return kind(**{name: plain(control.value) for name, control in controls_of(kind).items()})
    except ValidationError:
        return kind()


def axis(law: Law, name: str) -> Axis:
    """The interval of a parameter that its slider covers, drawn in where another parameter forbids an end."""
    control, here = controls_of(type(law))[name], plain(getattr(law, name))
    if not isinstance(here, (int, float)) or not control.low < here < control.high:
        return Axis(name, control.low, control.high, control.log)
    low, high = (_reachable(law, control, float(here), end) for end in (control.low, control.high))
    return Axis(name, low, high, control.log) if low < high else Axis(name, control.low, control.high, control.log)


def _reachable(law: Law, control: Control, here: float, end: float) -> float:
    """The furthest point towards an end that the law accepts."""
    for share in (1.0, 0.9, 0.75, 0.5, 0.25, 0.1):
        value = here * (end / here) ** share if control.log else here + (end - here) * share
        value = float(round(value)) if control.whole else value
        try:
            law.replace(**{control.name: value})
        except ValidationError:
            continue
        return value
    return here


def law_of(state: State, laws: Mapping[str, type[Law]]) -> Law:
    """The law at the parameters of a state."""
    return at_start(laws[state.law]).replace(**state.parameters)


# -- reading an address ---------------------------------------------------------------------------------------------------


def read(address: str, laws: Mapping[str, type[Law]], first: str = FIRST) -> tuple[State, list[str]]:
    """The state of an address, and what could not be used of it, in words.

    >>> from limitlab.laws import Ridge
    >>> state, remarks = read("?law=Ridge&x=ridge:0.01:1:log&p.noise=-1", {"Ridge": Ridge})
    >>> state.x.name, state.parameters, len(remarks)
    ('ridge', {}, 1)
    """
    given = dict(parse_qsl(address.removeprefix("?"), keep_blank_values=True))
    remarks: list[str] = []
    name = given.get("law", first)
    if name not in laws:
        remarks.append(f"there is no law {name[:40]!r}: this is {first}")
        name = first
    kind = laws[name]
    state = start(kind)
    state = replace(state, parameters=_parameters(kind, given, remarks))
    law = law_of(state, laws)
    state = replace(
        state,
        mode=_word(given, "mode", get_args(Mode), state.mode, remarks),
        theme=_word(given, "theme", get_args(Theme), state.theme, remarks),
        scale=_word(given, "scale", get_args(Scale), state.scale, remarks),
        x=_axis(law, given, "x", state.x, remarks) or state.x,
        y=_axis(law, given, "y", state.y, remarks) if state.y else None,
        size=_whole(given, "size", state.size, 2, MOST_SIZE, remarks),
        draws=_whole(given, "draws", state.draws, 1, MOST_DRAWS, remarks),
        grid=_whole(given, "grid", state.grid, 2, MOST_GRID, remarks),
        target=_number(given, "target", remarks),
        observables=_observables(law, given, state.observables, remarks),
    )
    if state.y is not None and state.y.name == state.x.name:
        state = replace(state, y=next((axis(law, other) for other in axes_of(kind) if other != state.x.name), None))
    return state, remarks


def _parameters(kind: type[Law], given: Mapping[str, str], remarks: list[str]) -> dict[str, Any]:
    """The parameters of an address that the law accepts; together if it can, else one after the other."""
    asked: dict[str, Any] = {}
    for key, text in given.items():
        name = key.removeprefix(PREFIX)
        if not key.startswith(PREFIX):
            continue
        if name not in kind.model_fields:
            remarks.append(f"{kind.__name__} has no parameter {name[:40]!r}")
            continue
        asked[name] = from_text(text)
    first = at_start(kind)
    try:
        return _kept(first.replace(**{name: short(name, value) for name, value in asked.items()}), asked)
    except ValueError:
        pass
    law, accepted = first, {}
    for name, value in asked.items():
        try:
            law = law.replace(**{name: short(name, value)})
            accepted[name] = value
        except ValidationError as error:
            remarks.append(one_line(error))
        except ValueError as error:
            remarks.append(str(error))
    return _kept(law, accepted)


def _kept(law: Law, names: Mapping[str, Any]) -> dict[str, Any]:
    now, first = plain_parameters(law), plain_parameters(at_start(type(law)))
    return {name: now[name] for name in names if now[name] != first[name]}


def from_text(text: str) -> Any:
    """What a field or an address holds: JSON, a list with commas, or a word.

    >>> from_text("2.5"), from_text("1, 4"), from_text("relu"), from_text("inf"), from_text("")
    (2.5, [1, 4], 'relu', 'inf', None)
    """
    text = text.strip()
    if not text:
        return None
    for form in (text, f"[{text}]"):
        try:
            return json.loads(form)
        except (ValueError, RecursionError):
            continue
    return text


def to_text(value: Any) -> str:
    """What a field shows of a parameter.

    >>> to_text(0.5), to_text((1.0, 4.0)), to_text("Infinity"), to_text(None)
    ('0.5', '1.0, 4.0', 'inf', '')
    """
    value = plain(value)
    if value is None:
        return ""
    if value in ("Infinity", "-Infinity", math.inf, -math.inf):
        return str(float(value))
    if isinstance(value, (tuple, list)):
        return json.dumps(value)[1:-1]
    return value if isinstance(value, str) else json.dumps(value)


def short(name: str, value: Any) -> Any:
    """The value, if it is not longer than the explorer takes."""
    if isinstance(value, (list, dict)) and len(json.dumps(value)) > 16 * MOST_SEQUENCE:
        raise ValueError(f"{name}: the list is too long for the explorer, which takes {MOST_SEQUENCE} entries")
    return value


def _word(given: Mapping[str, str], key: str, known: tuple[Any, ...], default: Any, remarks: list[str]) -> Any:
    if given.get(key, default) not in known:
        remarks.append(f"{key} = {given[key][:40]!r} is not one of {', '.join(known)}")
        return default
    return given.get(key, default)


def _number(given: Mapping[str, str], key: str, remarks: list[str]) -> float | None:
    if not given.get(key):
        return None
    try:
        value = float(given[key])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        remarks.append(f"{key} = {given[key][:40]!r} is not a number")
        return None
    return value


def _whole(given: Mapping[str, str], key: str, default: int, least: int, most: int, remarks: list[str]) -> int:
    value = _number(given, key, remarks)
    if value is None:
        return default
    inside = min(max(round(value), least), most)
    if inside != value:
        remarks.append(f"{key} = {given[key][:40]} is not allowed here: {least} to {most}")
    return inside


def _axis(law: Law, given: Mapping[str, str], key: str, default: Axis | None, remarks: list[str]) -> Axis | None:
    if key not in given:
        return default
    name, *rest = given[key].split(":")
    if name not in axes_of(type(law)):
        remarks.append(f"{type(law).__name__} cannot be drawn along {name[:40]!r}")
        return default
    try:
        return checked_axis(law, axis(law, name), *rest) if rest else axis(law, name)
    except ValueError as error:
        remarks.append(str(error))
        return axis(law, name)


def checked_axis(law: Law, fallback: Axis, low: Any, high: Any, log: Any = "") -> Axis:
    """An interval that the parameter allows, refused in words if it does not.

    >>> from limitlab.laws import Ridge
    >>> checked_axis(Ridge(), Axis("ratio", 0.1, 10), 0, 2)
    Traceback (most recent call last):
        ...
    ValueError: ratio from 0 to 2 is not allowed: above 0, inf allowed, and the first end below the second
    """
    name = fallback.name
    meta = type(law).parameters()[name]
    try:
        ends = float(low), float(high)
    except ValueError:
        raise ValueError(f"{name} from {str(low)[:40]} to {str(high)[:40]} is not allowed: give two numbers") from None
    geometric = log in ("log", True)
    if not all(map(math.isfinite, ends)) or not all(map(meta.allows, ends)) or ends[0] >= ends[1]:
        raise ValueError(
            f"{name} from {ends[0]:g} to {ends[1]:g} is not allowed: {meta.allowed}, and the first end below the second"
        )
    return Axis(name, *ends, log=geometric and ends[0] > 0)


def _observables(law: Law, given: Mapping[str, str], default: tuple[str, ...], remarks: list[str]) -> tuple[str, ...]:
    known = curves_of(law)
    default = tuple(name for name in default if name in known) or tuple(known[:1])
    if not given.get("show"):
        return default
    asked = given["show"].split(",")
    unknown = [name for name in asked if name not in known]
    if unknown:
        remarks.append(f"{type(law).__name__} has no curve {unknown[0][:40]!r}")
    return tuple(name for name in dict.fromkeys(asked) if name in known) or default


# -- what a state looks at ------------------------------------------------------------------------------------------------


def values_of(law: Law, along: Axis, points: int | None = None) -> list[float]:
    """The values of a parameter along an axis."""
    return spaced(type(law), along.name, along.low, along.high, along.log, points)
