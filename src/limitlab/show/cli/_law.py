"""A law on the command line: its name, its parameters as options, and the names that the Tab key offers.

An option that gets several values is swept over; one value sets the parameter. What counts as one value is decided by the
parameter's type: `--eigenvalues 1,4` is one tuple, `--ridge 0,0.1` are two numbers. Several tuples are separated by `;`.
The names for the Tab key come from the index, so that no law is imported. `limitlab --install-completion` installs them for the shell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from typer.core import CompletionItem, TyperCommand  # type: ignore[attr-defined]

from limitlab._core.listing import index
from limitlab.errors import did_you_mean
from limitlab.lab.ranges import parse_range
from limitlab.show._describe import kebab
from limitlab.show.cli._app import app

if TYPE_CHECKING:
    from limitlab._core.about import Kind
    from limitlab._core.law import Law


def law_names(incomplete: str = "") -> list[str]:
    """Laws whose name starts like this, spelt as on the command line.

    >>> law_names("marchenko"), law_names("Ridge")
    (['marchenko-pastur'], ['Ridge', 'RidgeScaling'])
    """
    listed = list(index()["laws"])
    spelt = listed if incomplete[:1].isupper() else [dashed(name) for name in listed]
    return [name for name in spelt if name.startswith(incomplete)]


def claim_ids(incomplete: str = "") -> list[str]:
    """Claims whose id starts like this.

    >>> "J5" in claim_ids("j")
    True
    """
    return [one for one in index()["claims"] if one.lower().startswith(incomplete.lower())]


def figure_ids(incomplete: str = "") -> list[str]:
    """Figures whose id starts like this.

    >>> figure_ids("ridge-double")
    ['ridge-double-descent']
    """
    return [name for name in index()["figures"] if name.startswith(incomplete)]


def parameter_options(law: str, incomplete: str = "--") -> list[tuple[str, str]]:
    """Options of a law's parameters that start like this, with what they mean; nothing for what is not a law.

    >>> parameter_options("ridge", "--no")
    [('--noise', 'standard deviation of the label noise')]
    """
    from limitlab._core.registry import find_law

    try:
        metas = find_law(law).parameters()
    except ValueError:
        return []
    options = [(f"--{kebab(name)}", meta.words) for name, meta in metas.items()]
    return [(option, words) for option, words in options if option.startswith(incomplete)]


def dashed(name: str) -> str:
    """The name of a class as it is spelt on the command line.

    >>> dashed("MarchenkoPastur")
    'marchenko-pastur'
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()


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
            new = law.former_name(_field(option))
            hint = f"it is called --{kebab(new)} now" if new else did_you_mean(kebab(_field(option)), known)
            raise ValueError(f"{law.__name__} has no parameter {option}: {hint}")
    given: dict[str, list[Any]] = {}
    for option, text in split_options(extras):
        name = _field(option)
        if name in given:
            raise ValueError(f"{option} is given twice: give several values as a list, {option} 1,2")
        given[name] = read_values(law, name, text)
    first = law(**{name: values[0] for name, values in given.items()})
    return Asked(first, {name: _checked_values(first, name, values) for name, values in given.items() if len(values) > 1})


def _checked_values(law: Law, name: str, values: list[Any]) -> list[Any]:
    """The values of a swept parameter as the law holds them; a value that the law refuses raises an error.

    Numbers within the bounds of the declaration are not validated one by one: the sweep validates its corners.
    """
    meta = type(law).parameters()[name]
    if type(law).model_fields[name].annotation is float and all(isinstance(v, float) and meta.allows(v) for v in values):
        return values
    return [getattr(law.replace(**{name: value}), name) for value in values]


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


LawArgument = Annotated[
    str, typer.Argument(metavar="LAW", help="Name of a law, as `limitlab laws` lists them.", autocompletion=law_names)
]


def _load(places: list[Path] | None) -> list[Path] | None:
    """Load the files and folders of `--laws`."""
    if places:
        from limitlab._core.registry import load_laws

        for place in places:
            load_laws(place)
    return places


LawsOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--laws",
        metavar="FILE-or-FOLDER",
        help="A Python file or a folder with laws, claims and figures of your own; its laws are named module:Class.",
        callback=_load,
        is_eager=True,
    ),
]
"""The option that loads laws of the user's own. It is read before the other options, so that their help can show the laws."""


def laws_named(text: str) -> list[type[Law]]:
    """The laws of a comma list of names, of files and of folders; files and folders are loaded.

    >>> [law.__name__ for law in laws_named("ridge, early-stopping")]
    ['Ridge', 'EarlyStopping']
    """
    from limitlab._core.registry import find_law, load_laws

    laws: list[type[Law]] = []
    for item in filter(None, (item.strip() for item in text.split(","))):
        laws += load_laws(item).values() if item.endswith(".py") or Path(item).is_dir() else [find_law(item)]
    return laws


class LawCommand(TyperCommand):
    """A command whose help, asked for with a law (`limitlab predict ridge --help`), lists that law's options too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Remember the law before the options are read: the option for help ends the reading."""
        ctx.meta["limitlab.law"] = next((arg for arg in args[:1] if not arg.startswith("-")), None)
        places = [Path(value) for option, value in pairwise(args) if option == "--laws"]
        if "--help" in args and not ctx.resilient_parsing:
            _load(places)  # the help of a law in a file needs the file, also if --help stands before --laws
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """What Tab offers: the options of the command, and those of the law that was named."""
        offered = super().shell_complete(ctx, incomplete)
        law = ctx.params.get("law_name") or ctx.meta.get("limitlab.law")
        if law is None or not incomplete.startswith("-"):
            return offered
        kind = type(offered[0]) if offered else CompletionItem
        return [*offered, *(kind(option, help=words) for option, words in parameter_options(law, incomplete))]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The command's help, then the law's parameters."""
        super().format_help(ctx, formatter)
        name = ctx.meta.get("limitlab.law")
        if name is not None:
            from limitlab._core.registry import find_law
            from limitlab.show.cli._output import parameter_table

            typer.echo(f"\nOptions for the parameters of {find_law(name).__name__}:")
            parameter_table(find_law(name))


def law_command(example: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a command that takes a law: what the command does not know is a parameter of the law."""
    takes_parameters = {"ignore_unknown_options": True, "allow_extra_args": True}
    return app.command(cls=LawCommand, context_settings=takes_parameters, epilog=f"Example: limitlab {example}")


def asked_law(ctx: typer.Context, name: str) -> Asked:
    """The law that a command names, with the parameters that the rest of the command line gives it."""
    from limitlab._core.registry import find_law

    if name.startswith("-"):
        raise ValueError(f"name the law before its parameters: limitlab {ctx.info_name} LAW {name} ...")
    own = [option for param in ctx.command.params for option in param.opts if option.startswith("--")]
    return read_law(find_law(name), ctx.args, own)


def single(asked: Asked, command: str) -> Asked:
    """Refuse swept parameters where a command wants one law."""
    for name, values in asked.over.items():
        raise ValueError(
            f"--{kebab(name)} has {len(values)} values: `limitlab {command}` takes one, `limitlab predict` sweeps"
        )
    return asked
