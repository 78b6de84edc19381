"""The state of a page, the address that restores it, the controls of the parameters of a law, and Python code for the result.

`State` is a pydantic dataclass. `read` makes it from an address, and `changed_state` from the changes of a visitor. Both replace values
that are not allowed, and return a sentence about each. No function in this module draws.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import json
import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import parse_qsl, urlencode

from pydantic import Field, FiniteFloat, TypeAdapter, ValidationInfo, field_validator
from pydantic.dataclasses import dataclass
from pydantic_core import ValidationError

from limitlab._core.about import allowed, kind_of
from limitlab._core.checks import numbers_in
from limitlab._core.declaration import Parameter, plain
from limitlab._core.draws import is_builtin, plain_parameters
from limitlab._core.headline import headline_of
from limitlab._core.law import FAILURES, Law, is_intended, replacement
from limitlab._core.page import plain_symbol
from limitlab._core.registry import all_laws, law_id, package_of, subject_of
from limitlab.errors import Refused

Mode = Literal["headline", "curve", "phase", "compare", "plan", "forecast"]
Theme = Literal["light", "dark"]
Scale = Literal["auto", "linear", "log"]

FIRST = "Ridge"
"""The default law of the page."""
PREFIX = "p."
"""Prefix of a parameter of the law in an address, as in `p.ratio=2`."""
MOST_SEQUENCE = 1000
"""Largest number of entries of a list in an address or a field."""
LONGEST = 16 * MOST_SEQUENCE
"""Largest number of characters of a value in an address or a field."""
MOST_SIZE, MOST_DRAWS, MOST_GRID = 5000, 500, 80
"""Largest size of an experiment, number of draws at every point, and number of points along a side of a phase diagram."""


# -- controls from the declaration of a law ------------------------------------------------------------------------------------

Made = TypeVar("Made")
Form = Literal["slider", "choice", "switch", "text"]
Group = Literal["physics", "experiment", "advanced"]

DECADES = 2
"""Powers of ten on each side of the default value of a logarithmic slider."""
POINTS = 161
"""Number of points of a curve that the law computes in a single call."""
FEW_POINTS = 33
"""Number of points of a curve if every point needs a separate solution of the equations."""


@dataclasses.dataclass(frozen=True)
class Control:
    """The control of a parameter.

    Attributes
    ----------
    name, label, help
        The parameter, its label and its help text.
    form
        "slider" (with a field for numbers outside its range), "choice", "switch" or "text".
    group
        "physics", "experiment", or "advanced" for options of the solver.
    value
        Initial value.
    low, high, log, whole
        Ends of a slider, whether it is logarithmic, and whether it accepts whole numbers only.
    choices
        Values of a choice.
    many
        Whether a text is a list, even if it has a single entry.
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
    """Return a control for every parameter, from the declaration of the law.

    >>> from limitlab.laws import Ridge
    >>> controls = controls_of(Ridge)
    >>> controls["ratio"].form, controls["ratio"].log, controls["eigenvalues"].form
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
    """Return the initial value of a control, which is the default.

    For a coordinate such as `times` it is the last value, because a slider has a single value.
    """
    if meta.kind == "coordinate" and isinstance(meta.default, (tuple, list)) and meta.default:
        return meta.default[-1]
    return meta.default


def slider_range(meta: Parameter, value: float, whole: bool = False) -> tuple[float, float, bool]:
    """Return the ends of a slider around a value, within the declared range, and whether it is logarithmic.

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
    ):  # the default values of a coordinate define its range
        low, high = min(own) if log or floor is None else floor, max(own)
    elif log:
        centre = 10.0 ** round(math.log10(finite))
        low, high = centre / 10**DECADES, centre * 10**DECADES
        low, high = max(low, floor if floor else low), min(high, ceiling if ceiling else high)
    else:
        reach = 4 * abs(finite) or 2.0  # a bound that is much further away is not used as an end of the slider
        low = floor if floor is not None and abs(floor) <= 10 * reach else -reach
        high = ceiling if ceiling is not None and abs(ceiling) <= 10 * reach else max(reach, low + reach)
    if whole:
        low, high = math.ceil(max(low, 1.0) if log else low), math.floor(high)
    low, high = _inside(meta, low, high, log, whole)
    return low, max(high, low + 1.0) if high <= low else high, log


def _inside(meta: Parameter, low: float, high: float, log: bool, whole: bool) -> tuple[float, float]:
    """Return the ends of a slider without open bounds, which are replaced by values next to them."""
    step = 1.0 if whole else (high - low) / 100
    if meta.above is not None and low <= meta.above:
        low = low * 1.01 if log and not whole and low > 0 else meta.above + step
    if meta.below is not None and high >= meta.below:
        high = high / 1.01 if log and not whole else meta.below - step
    return float(low), float(high)


def axes_of(law: type[Law]) -> list[str]:
    """Return the parameters that can be the axis of a curve, in order of preference.

    Coordinates such as time come first, then array parameters of the law, then parameters with a logarithmic range.
    """
    metas, controls = law.parameters(), controls_of(law)
    numbers = [name for name, control in controls.items() if control.form == "slider" and control.group == "physics"]
    served = law.array_parameters()
    return sorted(numbers, key=lambda name: (metas[name].kind != "coordinate", name not in served, not controls[name].log))


def curves_of(law: Law) -> list[str]:
    """Return the observables that can be drawn as a curve, which are numbers or functions of the coordinate of the law."""
    metas, lines = type(law).outputs(), set(law.coordinates())
    names = [
        name
        for name in law.observed()
        if name != "phase" and (metas[name].dims is None or lines & set(metas[name].dims or ()))
    ]
    return sorted(names, key=lambda name: name not in ("test_error", "classification_error"))


def live(law: type[Law], along: str) -> bool:
    """Return whether a single call of the law computes a whole curve along this parameter."""
    return along in law.array_parameters() or law.parameters()[along].kind == "coordinate"


def dimension(law: type[Law], along: str) -> str:
    """Return the dimension of a result for a swept parameter. For example, the dimension of `times` is `time`."""
    meta = law.parameters()[along]
    return meta.dimension if meta.kind == "coordinate" else along


def spaced(law: type[Law], along: str, low: float, high: float, log: bool, points: int | None = None) -> list[float]:
    """Return the values of a parameter along a curve, with even or geometric spacing.

    The values of a whole-number parameter are rounded to whole numbers.

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
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):  # names, or an object that only Python can make
        annotation = next(
            (part for part in typing.get_args(annotation) if typing.get_origin(part) is typing.Literal), annotation
        )
    return typing.get_args(annotation) if typing.get_origin(annotation) is typing.Literal else ()


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and not any(map(math.isnan, numbers_in(value)))


# -- the list of laws ---------------------------------------------------------------------------------------------------------


def explorable() -> dict[str, type[Law]]:
    """Return the laws with a parameter for the axis of a curve and an observable for the curve.

    >>> "Ridge" in explorable()
    True
    """
    return {name: law for name, law in all_laws().items() if _is_explorable(law)}


@functools.cache
def _is_explorable(law: type[Law]) -> bool:
    return bool(axes_of(law) and curves_of(law()))


def matching(laws: Mapping[str, type[Law]], words: str) -> dict[str, list[str]]:
    """Return the laws whose description contains every word, by subject.

    The description consists of name, question, subject, regime, parameters and observables.

    >>> from limitlab.laws import OnlinePCA, Ridge
    >>> matching({"Ridge": Ridge, "OnlinePCA": OnlinePCA}, "ridge penal")
    {'Regression': ['Ridge']}
    """
    wanted = words.lower().split()
    by_subject: dict[str, list[str]] = {}
    for name, law in laws.items():
        if all(word in described(law) for word in wanted):
            by_subject.setdefault(subject_of(law), []).append(name)
    return dict(sorted(by_subject.items()))


def proposals(laws: Mapping[str, type[Law]], words: str) -> dict[str, list[str]]:
    """Return laws for a search without hits, by subject.

    They match one of the words, or a related word, or the beginning or a similar spelling of a word. If there is none, they are the
    first laws.

    >>> from limitlab.laws import EarlyStopping, OnlinePCA
    >>> proposals({"EarlyStopping": EarlyStopping, "OnlinePCA": OnlinePCA}, "overfitting")
    {'Regression': ['EarlyStopping']}
    """
    tried = [RELATED[word] for word in words.lower().split() if word in RELATED]
    tried += words.lower().split()
    tried += [word[:5] for word in words.lower().split() if len(word) > 5]
    known = sorted({word for law in laws.values() for word in described(law).split()})
    tried += [near for word in words.lower().split() for near in difflib.get_close_matches(word[:40], known, 1)]
    for word in tried:
        if len(word) > 2 and (found := matching(laws, word)):
            return found
    return matching({name: laws[name] for name in list(laws)[:MOST_PROPOSALS]}, "")


RELATED = {
    "overfitting": "stopping",
    "overfit": "stopping",
    "generalization": "test error",
    "generalisation": "test error",
    "attention": "tokens",
    "llm": "tokens",
    "gpt": "tokens",
    "neural": "network",
    "mlp": "network",
    "perceptrons": "perceptron",
    "regularization": "ridge",
    "regularisation": "ridge",
    "eigenvalue": "spectrum",
    "knn": "neighbours",
    "neighbors": "neighbours",
    "ntk": "tangent",
    "svm": "margin",
    "regression": "ridge",
}
"""Words of a search that no law contains, and words that laws contain."""
MOST_PROPOSALS = 8


def listed(by_subject: Mapping[str, list[str]], laws: Mapping[str, type[Law]]) -> tuple[dict[str, str], list[str]]:
    """Return the entries of a list with a heading per subject, and the headings, which cannot be selected.

    The entry of a law is its question and its name. The laws of a subject are in the order of their questions.

    >>> from limitlab.laws import OnlinePCA
    >>> entries, headings = listed({"Online SGD": ["OnlinePCA"]}, {"OnlinePCA": OnlinePCA})
    >>> list(entries.values()), list(entries)[1][-12:], headings
    (['# Online SGD', 'OnlinePCA'], ' (OnlinePCA)', ['# Online SGD'])
    """
    entries: dict[str, str] = {}
    for subject, names in by_subject.items():
        questions = {f"{plain_symbol(laws[name].title().replace('$', ''))} ({name})": name for name in names}
        entries |= {subject.upper(): f"# {subject}", **dict(sorted(questions.items()))}
    return entries, [value for value in entries.values() if value.startswith("# ")]


def described(law: type[Law]) -> str:
    """Return the words by which a search finds a law."""
    parameters = [f"{name} {meta.words}" for name, meta in law.parameters().items()]
    observables = [f"{name} {meta.long_name}" for name, meta in law.outputs().items()]
    return " ".join([law.__name__, law.title(), subject_of(law), law.regime, *parameters, *observables]).lower()


# -- the state ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Axis:
    """A parameter and its interval on an axis."""

    name: str
    low: FiniteFloat
    high: FiniteFloat
    log: bool = False

    def text(self) -> str:
        """Return the axis in the form of an address.

        >>> Axis("ratio", 0.1, 10, True).text()
        'ratio:0.1:10:log'
        """
        return f"{self.name}:{_digits(self.low)}:{_digits(self.high)}" + (":log" if self.log else "")


def _digits(number: float) -> str:
    """Return a short text that is read as the same number, with six digits if they suffice."""
    return f"{number:g}" if float(f"{number:g}") == number else repr(number)


@dataclass(frozen=True)
class State:
    """Everything that a view depends on.

    Attributes
    ----------
    law, parameters
        Name of the law and the parameters that differ from its defaults or that its headline view fixes, as JSON values.
    x, y
        The parameter on the horizontal axis, and the parameter on the vertical axis of a phase diagram.
    mode
        "headline" (the view that the law declares), "curve", "phase", "compare", "plan" or "forecast".
    observables
        Observables on the page. A phase diagram and a plan show the first.
    scale
        Scale of the vertical axis. "auto" is logarithmic if the values span decades.
    size, draws
        Size and number of draws of an experiment.
    target
        Target value of the first observable in a plan. The plan solves for `x`.
    grid
        Number of points along each side of a phase diagram.
    theme
        "light" or "dark".
    """

    law: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    x: Axis = field(kw_only=True)
    y: Axis | None = None
    mode: Mode = "curve"
    observables: tuple[str, ...] = ()
    scale: Scale = "auto"
    size: Annotated[int, Field(ge=2, le=MOST_SIZE)] = 100
    draws: Annotated[int, Field(ge=1, le=MOST_DRAWS)] = 20
    target: FiniteFloat | None = None
    grid: Annotated[int, Field(ge=2, le=MOST_GRID)] = 40
    theme: Theme = "light"

    @field_validator("x", "y", mode="before")
    @classmethod
    def _read_axis(cls, value: Any, info: ValidationInfo) -> Any:
        """Return an axis from its text. Raise `ValueError` if the parameter cannot be an axis."""
        law = _law_in(info)
        if law is None or value is None:
            return value
        if not isinstance(value, (str, Axis)):
            raise Refused(
                f"{info.field_name} = {str(value)[:40]!r} is not allowed: write a parameter, from and to, such as ratio:0.1:10"
            )
        name, *ends = value.split(":") if isinstance(value, str) else (value.name, value.low, value.high, value.log)
        if name not in axes_of(type(law)):
            raise Refused(f"{type(law).__name__} has no parameter {name[:40]!r} for an axis")
        if not ends:
            return axis(law, name)
        if len(ends) not in (2, 3):
            raise Refused(
                f"{info.field_name} = {str(value)[:40]!r} is not allowed: write {name}:from:to or {name}:from:to:log"
            )
        return checked_axis(law, name, *ends)

    @field_validator("observables", mode="before")
    @classmethod
    def _read_observables(cls, value: Any, info: ValidationInfo) -> Any:
        """Return names of curves from their text. Names in a state that the law does not have are removed."""
        law = _law_in(info)
        if law is None:
            return value
        known = curves_of(law)
        if not isinstance(value, (str, list, tuple)):
            raise Refused(f"{info.field_name} = {str(value)[:40]!r} is not allowed: give names of observables")
        if not isinstance(value, str):
            return tuple(name for name in value if name in known) or tuple(known[:1])
        names = tuple(dict.fromkeys(value.split(",")))
        for name in names:
            if name not in known:
                raise Refused(f"{type(law).__name__} has no curve {name[:40]!r}")
        return names

    def address(self) -> str:
        """Return the part of an address after the question mark."""
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
    """Return the initial state for a law, which is its headline view.

    A class gets the parameters of its headline view. An instance keeps its own parameters.

    >>> from limitlab.laws import Ridge
    >>> start(Ridge(noise=0.0)).parameters, start(Ridge).x.text()
    ({'noise': 0.0}, 'ratio:0.1:10:log')
    """
    kind = law if isinstance(law, type) else type(law)
    instance = law if isinstance(law, Law) else _at_headline(kind)
    names, curves = axes_of(kind), curves_of(instance)
    if not names or not curves:
        raise Refused(
            f"{kind.__name__} cannot be explored: the law has no numeric parameter for the horizontal axis, or no observable to draw"
        )
    view = headline_of(kind)
    x = _headline_axis(instance) or axis(instance, names[0])
    other = next((name for name in names if name != x.name), None)
    sizes = sorted(instance.simulation.sizes)
    return State(
        law_id(kind),
        {**fixed(instance), **changed(instance)},
        x=x,
        y=axis(instance, other) if other else None,
        mode="headline",
        observables=tuple(name for name in view.show if name in curves) or tuple(curves[:1]),
        size=min(max(view.size or sizes[len(sizes) // 2], 2), MOST_SIZE),
        draws=min(view.draws, MOST_DRAWS),
    )


def fixed(law: Law) -> dict[str, Any]:
    """Return the parameters that the headline view of a law fixes, at their values in the law, as JSON values.

    >>> from limitlab.laws import Ridge
    >>> fixed(Ridge(noise=2.0))
    {'noise': 2.0}
    """
    now = _single(type(law), plain_parameters(law))
    return {name: now[name] for name in headline_of(type(law)).at if name in now}


def _single(kind: type[Law], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with a single number for every slider, which is the last entry of a list."""
    controls = controls_of(kind)
    return {
        name: value[-1] if controls[name].form == "slider" and isinstance(value, list) else value
        for name, value in values.items()
    }


def _at_headline(kind: type[Law]) -> Law:
    """Return the law with the parameters of its headline view, and the initial values of the other controls."""
    at = _single(kind, {name: plain(value) for name, value in headline_of(kind).at.items()})
    try:
        law = at_start(kind).replace(**at)
        changed(law)
    except (ValidationError, Refused):
        return at_start(kind)
    return law


def _headline_axis(law: Law) -> Axis | None:
    """Return the axis of the headline view, or None if it is not the axis of a curve of the explorer."""
    view = headline_of(type(law))
    if view.x not in axes_of(type(law)):
        return None
    try:
        found = checked_axis(law, view.x, *view.over[:2], view.scale)
        for end in (found.low, found.high):
            law.replace(**{view.x: end})
    except (Refused, ValidationError):
        return None
    return found


def changed(law: Law) -> dict[str, Any]:
    """Return the parameters of a law that differ from the initial values of its controls, as JSON values."""
    now, first = plain_parameters(law), plain_parameters(at_start(type(law)))
    if type(law)(**now) != law:
        raise Refused(f"{law!r} cannot be explored: a parameter is not a number, a text or a list of these")
    return _single(type(law), {name: value for name, value in now.items() if value != first[name]})


def at_start(kind: type[Law]) -> Law:
    """Return the law with the initial value of every control."""
    try:
        return kind(**{name: plain(control.value) for name, control in controls_of(kind).items()})
    except ValidationError:
        return kind()


def axis(law: Law, name: str) -> Axis:
    """Return the interval of the slider of a parameter, shortened if another parameter forbids an end."""
    control, here = controls_of(type(law))[name], plain(getattr(law, name))
    if not isinstance(here, (int, float)) or not control.low < here < control.high:
        return Axis(name, control.low, control.high, control.log)
    low, high = (_reachable(law, control, float(here), end) for end in (control.low, control.high))
    return Axis(name, low, high, control.log) if low < high else Axis(name, control.low, control.high, control.log)


def _reachable(law: Law, control: Control, here: float, end: float) -> float:
    """Return the point closest to an end that the law accepts."""
    for share in (1.0, 0.9, 0.75, 0.5, 0.25, 0.1):
        value = here * (end / here) ** share if control.log else here + (end - here) * share
        value = float(round(value)) if control.whole else value
        try:
            law.replace(**{control.name: value})
        except ValidationError:
            continue
        return value
    return here


def usable(law: Law) -> Law:
    """Return a law, or raise an error if its observables cannot be determined at its parameters."""
    try:
        curves_of(law)
    except FAILURES as error:
        if (other := replacement(error, law)) is not None:
            raise other from error
        raise
    return law


def law_of(state: State, laws: Mapping[str, type[Law]]) -> Law:
    """Return the law at the parameters of a state."""
    return at_start(laws[state.law]).replace(**state.parameters)


# -- reading an address, or a change on the page ------------------------------------------------------------------------------


def read(address: str, laws: Mapping[str, type[Law]], first: str = FIRST) -> tuple[State, list[str]]:
    """Return the state of an address, and a sentence for every value that is not allowed and replaced by its default.

    >>> from limitlab.laws import Ridge
    >>> state, remarks = read("?law=Ridge&x=ridge:0.01:1:log&p.noise=-1", {"Ridge": Ridge})
    >>> state.x.name, state.parameters, len(remarks)
    ('ridge', {'noise': 0.5}, 1)
    """
    texts = dict(parse_qsl(address.removeprefix("?"), keep_blank_values=True))
    remarks: list[str] = []
    name = texts.pop("law", first)
    if name not in laws:
        remarks.append(f"there is no law {name[:40]!r}; the page shows {first} instead")
        name = first
    parameter_texts = {key.removeprefix(PREFIX): text for key, text in texts.items() if key.startswith(PREFIX)}
    parameters, refused = _read_parameters(laws[name], parameter_texts)
    fields = {key: text for key, text in texts.items() if text and key in ADDRESS}
    first_state = start(laws[name])
    if fields.keys() & {"x", "show", "scale"}:  # a headline view has its own axes
        fields.setdefault("mode", "curve")
    state, wrong = changed_state(replace(first_state, parameters={**first_state.parameters, **parameters}), laws, fields)
    if state.y is not None and state.y.name == state.x.name:
        law = law_of(state, laws)
        others = (axis(law, other) for other in axes_of(type(law)) if other != state.x.name)
        state = replace(state, y=next(others, None))
    return state, [*remarks, *refused, *wrong]


def changed_state(state: State, laws: Mapping[str, type[Law]], changes: Mapping[str, Any]) -> tuple[State, list[str]]:
    """Return a state with changes, and a sentence for every change that is not allowed and left out.

    Parameters
    ----------
    state
        The state before.
    laws
        The laws that can be shown, by name.
    changes
        New values of fields, by the names of the fields or of an address (where observables are called "show").

    Examples
    --------
    >>> from limitlab.laws import Ridge
    >>> state, remarks = changed_state(start(Ridge), {"Ridge": Ridge}, {"grid": 10**7, "x": "ridge:0.1:1"})
    >>> state.grid, state.x.high, remarks
    (40, 1.0, ['grid = 10000000 is not allowed: input should be less than or equal to 80'])
    """
    fields = {name: value for name, value in changes.items() if state.y is not None or name != "y"}
    before = {field.name: getattr(state, field.name) for field in dataclasses.fields(state)}

    def make(accepted: Mapping[str, Any]) -> State:
        named = {ADDRESS.get(name, name): value for name, value in accepted.items()}
        made: State = _STATES.validate_python({**before, **named}, context={"laws": laws})
        return made

    return _without_what_is_wrong(make, fields)


FAILED = (ArithmeticError, LookupError, TypeError, ValueError, RuntimeError, MemoryError)
"""Types of errors that a value from a visitor can cause. `ValidationError` is handled before, because it names the field."""

ADDRESS = {name: name for name in ("mode", "x", "y", "size", "draws", "scale", "target", "grid", "theme")} | {
    "show": "observables"
}
"""Keys of an address and the fields of `State` that they set."""

_STATES = TypeAdapter(State)


def _law_in(info: ValidationInfo) -> Law | None:
    """Return the law of a state during validation. None if limitlab made the state, which then needs no validation."""
    if info.context is None:
        return None
    if "law" not in info.context:  # make the law once for all fields
        kind = info.context["laws"][info.data["law"]]
        info.context["law"] = at_start(kind).replace(**info.data["parameters"])
    law: Law = info.context["law"]
    return law


def _read_parameters(kind: type[Law], texts: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Return the accepted parameters of an address that differ from the defaults, and a sentence for every rejected one."""
    first, remarks, asked = _at_headline(kind), [], {}
    for name, text in texts.items():
        if name not in kind.model_fields:
            remarks.append(f"{kind.__name__} has no parameter {name[:40]!r}")
        elif len(text) > LONGEST:
            remarks.append(too_long(name))
        else:
            asked[name] = from_text(text)
    law, refused = _without_what_is_wrong(lambda accepted: usable(first.replace(**accepted)), asked)
    now, before = plain_parameters(law), plain_parameters(at_start(kind))
    kept = headline_of(kind).at
    return {name: now[name] for name in asked if now[name] != before[name] or name in kept}, [*remarks, *refused]


def _without_what_is_wrong(make: Callable[[Mapping[str, Any]], Made], fields: Mapping[str, Any]) -> tuple[Made, list[str]]:
    """Return the result of `make` for the fields that it accepts, and a sentence for every rejected field."""
    accepted: dict[str, Any] = dict(fields)
    remarks: list[str] = []
    wrong: dict[str, str]
    while True:
        try:
            return make(accepted), remarks
        except ValidationError as error:
            wrong = {}
            for entry in error.errors(include_url=False):
                field_name = entry["loc"][0] if entry["loc"] else ""
                key = next((key for key in accepted if ADDRESS.get(key, key) == field_name), None)
                if key is not None:
                    wrong.setdefault(key, entry["msg"])
        except FAILED:  # a number that no validator expects can raise these errors
            wrong = {}
        if not wrong:
            break
        remarks += [_remark(key, accepted.pop(key), words) for key, words in wrong.items()]
    together: dict[str, Any] = {}  # if the error names no field, the fields are tried one after the other
    for key, value in accepted.items():
        try:
            make({**together, key: value})
        except ValidationError as error:
            remarks.append(_remark(key, value, error.errors(include_url=False)[0]["msg"]))
        except FAILED as error:
            words = str(error) if is_intended(error) else "Input cannot be used at these values of the other parameters"
            remarks.append(_remark(key, value, words))
        else:
            together[key] = value
    return make(together), remarks


def _remark(key: str, value: Any, words: str) -> str:
    """Return the sentence of an error. Sentences of pydantic get the name and the value in front."""
    words = words.removeprefix("Value error, ")
    if words.startswith(("Input ", "Unable ")):
        words = f"{key} = {str(value)[:40]} is not allowed: {words[:1].lower()}{words[1:]}"
    return words if len(words) < 400 else words[:400] + "..."


def checked_axis(law: Law, name: str, low: Any, high: Any, log: Any = "") -> Axis:
    """Return an interval of a parameter. Raise `ValueError` if the parameter does not allow it.

    >>> from limitlab.laws import Ridge
    >>> checked_axis(Ridge(), "ratio", 0, 2)
    Traceback (most recent call last):
        ...
    limitlab.errors.Refused: ratio from 0 to 2 is not allowed: above 0, inf allowed, and the first end below the second
    """
    meta = type(law).parameters()[name]
    try:
        ends = float(low), float(high)
    except ValueError:
        raise Refused(f"{name} from {str(low)[:40]} to {str(high)[:40]} is not allowed: give two numbers") from None
    geometric = log in ("log", True)
    if not all(map(math.isfinite, ends)) or not all(map(meta.allows, ends)) or ends[0] >= ends[1]:
        raise Refused(
            f"{name} from {ends[0]:g} to {ends[1]:g} is not allowed: {meta.allowed}, and the first end below the second"
        )
    return Axis(name, *ends, log=geometric and ends[0] > 0)


def values_of(law: Law, along: Axis, points: int | None = None) -> list[float]:
    """Return the values of a parameter along an axis."""
    return spaced(type(law), along.name, along.low, along.high, along.log, points)


# -- parameters as text -------------------------------------------------------------------------------------------------------


def from_text(text: str) -> Any:
    """Return the value in a field or an address, which is JSON, a list with commas, or a word.

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
    """Return the text of a parameter in a field.

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


def too_long(name: str) -> str:
    """Return the sentence about a text that is too long."""
    return f"{name}: the list is too long for the explorer; give at most {MOST_SEQUENCE} entries"


# -- the code of a page ----------------------------------------------------------------------------------------------


EXPERIMENT_POINTS = 9
"""Number of points of a curve with experiments."""


def snippet(state: State, law: Law, measured: bool = False) -> str:
    """Return the code for a state, with experiments if `measured` is true.

    >>> from limitlab.laws import Ridge
    >>> from limitlab.show.explorer._address import start
    >>> print(snippet(replace(start(Ridge), mode="curve"), Ridge()))
    import limitlab as ll
    import matplotlib.pyplot as plt
    import numpy as np
    <BLANKLINE>
    law = ll.laws.Ridge()
    limit = ll.sweep(law, over={"ratio": np.geomspace(0.1, 10.0, 161)})
    plt.plot(limit["ratio"], limit["test_error"], label="test_error")
    plt.xlabel("ratio"); plt.xscale("log"); plt.legend(); plt.show()
    <BLANKLINE>
    """
    body = {
        "headline": _headline,
        "curve": _curve,
        "phase": _phase,
        "compare": _compare,
        "plan": _plan,
        "forecast": _forecast,
    }[state.mode]
    lines = body(state, law, measured)
    if state.mode not in ("forecast", "headline"):
        lines = [made(law), *lines]
    text = "\n".join(lines)
    builtin = is_builtin(type(law))
    imports = ["import limitlab as ll"]
    imports += ["from limitlab.plotting.headline import headline_view"] if state.mode == "headline" else []
    imports += ["import matplotlib.pyplot as plt"] if "plt." in text else []
    imports += ["import numpy as np"] if "np." in text else []
    if not builtin:
        package = package_of(type(law))
        source = package.source if package is not None else ""
        imports += [f'll.load_laws("{source}")  # the path of your file or folder'] if source else []
        imports += [f"from {type(law).__module__} import {type(law).__name__}"]
    return "\n".join([*imports, "", text, ""])


def made(law: Law) -> str:
    """Return the line that makes a law, with the parameters that differ from the defaults.

    >>> from limitlab.laws import Ridge
    >>> made(Ridge(ratio=3.0, eigenvalues=(1, 4), weights=(0.5, 0.5), signal_energy=(1, 1)))
    'law = ll.laws.Ridge(ratio=3.0, eigenvalues=[1.0, 4.0], weights=[0.5, 0.5], signal_energy=[1.0, 1.0])'
    """
    now, default = plain_parameters(law), plain_parameters(type(law)())
    arguments = ", ".join(f"{name}={_literal(value)}" for name, value in now.items() if value != default[name])
    home = "ll.laws." if is_builtin(type(law)) else ""
    return f"law = {home}{type(law).__name__}({arguments})"


def range_text(law: Law, along: Axis, points: int | None = None) -> str:
    """Return the values of an axis as an expression."""
    count = points or (POINTS if live(type(law), along.name) else FEW_POINTS)
    text = f"np.{'geomspace' if along.log else 'linspace'}({along.low!r}, {along.high!r}, {count})"
    return f"np.unique(np.round({text}))" if controls_of(type(law))[along.name].whole else text


def headline_changes(state: State, law: Law) -> dict[str, Any]:
    """Return the parameters of the headline view at a state, which are those of the page without the parameter on the axis."""
    view, now = headline_of(type(law)), plain_parameters(law)
    at = {name: plain(value) for name, value in view.at.items() if isinstance(value, (list, tuple))}
    lists = {
        name for name, value in at.items() if len(value) and now[name] in (value[-1], [value[-1]])
    }  # the page has one number
    return {name: getattr(law, name) for name in state.parameters if name != view.x and name not in lists}


def _headline(state: State, law: Law, measured: bool) -> list[str]:
    home = "ll.laws." if is_builtin(type(law)) else ""
    now = plain_parameters(law)
    changes = "".join(f", {name}={_literal(now[name])}" for name in headline_changes(state, law))
    return [
        f"view = headline_view({home}{type(law).__name__}{changes})",
        f'view.figure().savefig("{law_id(type(law))}.png", dpi=150)',
    ]


def _curve(state: State, law: Law, measured: bool) -> list[str]:
    name, dim = state.x.name, dimension(type(law), state.x.name)
    lines = [f'limit = ll.sweep(law, over={{"{name}": {range_text(law, state.x)}}})']
    lines += [f'plt.plot(limit["{dim}"], limit["{shown}"], label="{shown}")' for shown in state.observables]
    if measured:
        few = range_text(law, state.x, EXPERIMENT_POINTS)
        lines.append(
            f'draws = ll.sweep(law, over={{"{name}": {few}}}, sizes={state.size}, seeds={state.draws}).squeeze("size")'
        )
        for shown in state.observables:
            error = f'draws["{shown}"].std("seed", ddof=1) / {state.draws}**0.5'
            bars = f', yerr={error}, fmt="o"' if state.draws > 1 else ', fmt="o"'
            lines.append(f'plt.errorbar(draws["{dim}"], draws["{shown}"].mean("seed"){bars})')
    log = ' plt.xscale("log");' if state.x.log else ""
    return [*lines, f'plt.xlabel("{dim}");{log} plt.legend(); plt.show()']


def _phase(state: State, law: Law, measured: bool) -> list[str]:
    if state.y is None:
        raise Refused(f"{state.law} has a single numerical parameter, and a phase diagram needs two: choose another law")
    over = ", ".join(f'"{along.name}": {range_text(law, along, state.grid)}' for along in (state.x, state.y))
    across, up = dimension(type(law), state.x.name), dimension(type(law), state.y.name)
    scales = "".join(f", {side}scale='log'" for side, along in (("x", state.x), ("y", state.y)) if along.log)
    return [
        f"limit = ll.sweep(law, over={{{over}}})",
        f'limit["{state.observables[0]}"].plot(x="{across}", y="{up}"{scales}); plt.show()',
    ]


def _compare(state: State, law: Law, measured: bool) -> list[str]:
    return ["result = ll.compare(law)", "print(result)"]


def _plan(state: State, law: Law, measured: bool) -> list[str]:
    target = f'{{"{state.observables[0]}": {state.target if state.target is not None else 0.5!r}}}'
    bounds = f"({state.x.low!r}, {state.x.high!r})"
    return [
        f'answer = ll.plan(law, target={target}, solve_for="{state.x.name}", bounds={bounds})',
        f'print(float(answer["{state.x.name}"]))',
    ]


def _forecast(state: State, law: Law, measured: bool) -> list[str]:
    return [
        "from limitlab.applied import forecast_study",
        'study = forecast_study("your.csv", "your_column")  # insert your file and its target; the explorer does not store uploads',
        'print("\\n".join([*study.sentences(), *study.warnings]))',
        "rows = len(study.table.X)",
        "print(study.curve.sel(n=rows))",
    ]


def _literal(value: Any) -> str:
    """Return a JSON value as Python code. Infinity is a text in JSON."""
    if value in ("Infinity", "-Infinity"):
        return f'float("{"-" if value.startswith("-") else ""}inf")'
    if isinstance(value, list):
        return "[" + ", ".join(map(_literal, value)) + "]"
    return repr(value)
