"""From `--width-ratio 0.1:100:60log` to parameters and sweeps: a law's metadata are its command-line options.

An option that gets several values is swept over; one value sets the parameter. What counts as one value is decided by the
parameter's type: `--eigenvalues 1,4` is one tuple, `--ridge 0,0.1` are two numbers. Several tuples are separated by `;`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from limitlab.errors import did_you_mean
from limitlab.lab.ranges import parse_range
from limitlab.show._describe import kebab

if TYPE_CHECKING:
    from limitlab._core.about import Kind
    from limitlab._core.law import Law


@dataclass(frozen=True)
class Asked:
    """What the command line asks of a law: the law itself and the values of every swept parameter, in order."""

    law: Law
    over: dict[str, list[Any]]


def read_law(law: type[Law], extras: Sequence[str], command_options: Iterable[str] = ()) -> Asked:
    """The law with the parameters that the remaining arguments of a command give.

    Parameters
    ----------
    law
        The law that the options belong to.
    extras
        What the command did not use itself: `["--ratio", "0.5,2", "--ridge=0.1"]`.
    command_options
        Options of the command, for the hint at a misspelt name.

    Examples
    --------
    >>> from limitlab.laws import Ridge
    >>> asked = read_law(Ridge, ["--ratio", "0.5,2", "--ridge=0.1"])
    >>> asked.law.ridge, asked.over
    (0.1, {'ratio': [0.5, 2.0]})
    """
    for token in extras:  # first of all, so that a misspelt flag is not asked for its value
        option = token.partition("=")[0]
        if option.startswith("--") and _field(option) not in law.model_fields:
            known = [kebab(known) for known in law.model_fields] + [known.removeprefix("--") for known in command_options]
            new = law.former_names.get(_field(option))
            hint = f"it is called --{kebab(new)} now" if new else did_you_mean(kebab(_field(option)), known)
            raise ValueError(f"{law.__name__} has no parameter {option}: {hint}")
    given: dict[str, list[Any]] = {}
    for option, text in split_options(extras):
        name = _field(option)
        if name in given:
            raise ValueError(f"{option} is given twice: give several values as a list, {option} 1,2")
        given[name] = read_values(law, name, text)
    first = law(**{name: values[0] for name, values in given.items()})
    over = {
        name: [getattr(first.replace(**{name: value}), name) for value in values]  # each is a point of the grid: checked
        for name, values in given.items()
        if len(values) > 1
    }
    return Asked(first, over)


def split_options(extras: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of option and text, from `--name value` and `--name=value`.

    >>> split_options(["--ratio", "2", "--ridge=-0.1"])
    [('--ratio', '2'), ('--ridge', '-0.1')]
    """
    pairs = []
    queue = list(extras)
    while queue:
        token = queue.pop(0)
        if not token.startswith("--") or token == "--":
            raise ValueError(f"unexpected argument {token!r}: parameters are given as --name value, such as --ratio 2")
        option, equals, text = token.partition("=")
        if not equals:
            if not queue or queue[0].startswith("--"):
                raise ValueError(f"{option} needs a value, such as {option} 2 or {option} 0.1:10:50log")
            text = queue.pop(0)
        pairs.append((option, text))
    return pairs


def read_values(law: type[Law], name: str, text: str) -> list[Any]:
    """The values that an option's text stands for; the law checks them afterwards.

    >>> from limitlab.laws import Ridge
    >>> read_values(Ridge, "ridge", "0,0.1")
    [0.0, 0.1]
    >>> read_values(Ridge, "eigenvalues", "1,4")
    [(1.0, 4.0)]
    >>> read_values(Ridge, "eigenvalues", "1,4;1,9")
    [(1.0, 4.0), (1.0, 9.0)]
    """
    from limitlab._core.about import kind_of

    if not text.strip():
        raise ValueError(f"--{kebab(name)} needs a value, such as --{kebab(name)} 2")
    if text.lstrip().startswith(("[", "{")):
        return [_read_json(name, text)]
    kind = kind_of(law.model_fields[name].annotation)
    if kind in ("series", "sequence"):
        return [_one_sequence(name, part, kind) for part in text.split(";")]
    if kind == "truth":
        return [TRUTHS.get(part.strip().lower(), part) for part in text.split(",")]
    if kind == "name":
        return [part.strip() for part in text.split(",")]
    return read_whole(name, text) if kind == "whole" else read_numbers(name, text)


TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def read_numbers(name: str, text: str) -> list[Any]:
    """Numbers of a comma list whose entries may be ranges; an entry that is no number stays text, for the law to refuse.

    >>> read_numbers("ratio", "0.5,1:3:3")
    [0.5, 1.0, 2.0, 3.0]
    """
    values: list[Any] = []
    for part in text.split(","):
        if ":" in part:
            values.extend(np.asarray(_range(name, part), dtype=float).tolist())
        else:
            values.append(_number(part))
    return values


def read_whole(name: str, text: str) -> list[Any]:
    """As `read_numbers`, for whole numbers: a range is rounded to them, each once.

    >>> read_whole("samples", "5,10:100:4log")
    [5, 10, 22, 46, 100]
    """
    values: list[Any] = []
    for part in text.split(","):
        numbers = read_numbers(name, part)
        values.extend(dict.fromkeys(round(number) for number in numbers) if ":" in part else map(_whole, numbers))
    return values


def read_sizes(name: str, text: str) -> list[int]:
    """Whole numbers of an option of a command, such as `--size 50,100,200`.

    >>> read_sizes("size", "50,1e2")
    [50, 100]
    """
    values = read_whole(name, text)
    for value in values:
        if not isinstance(value, int):
            raise ValueError(f"--{kebab(name)} {text} is not allowed: {value!r} is not a whole number")
    return values


def _field(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


def _range(name: str, text: str) -> Any:
    try:
        return parse_range(text)
    except ValueError as error:
        raise ValueError(f"--{kebab(name)} {text}: {error}") from None


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text.strip()


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _one_sequence(name: str, text: str, kind: Kind) -> Any:
    values = read_numbers(name, text)
    return values[0] if kind == "series" and len(values) == 1 else tuple(values)


def _read_json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"--{kebab(name)} {text}: not valid JSON ({error.msg} at character {error.pos + 1})") from None
