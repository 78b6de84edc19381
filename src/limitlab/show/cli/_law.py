"""Names of laws and options for their parameters on the command line, with completion by the Tab key.

A single value of an option sets the parameter. Several values define a sweep. The type of the parameter determines how a text is split into
values. `--eigenvalues 1,4` is a single tuple, and `--ridge 0,0.1` contains two numbers. Several tuples are separated by `;`.
Completion uses the index, so that no law is imported. `limitlab --install-completion` installs it for the shell.
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

from limitlab._core.lazy import index
from limitlab.errors import Refused, did_you_mean
from limitlab.show.cli._app import app, say
from limitlab.show.cli._output import kebab, parameter_table

if TYPE_CHECKING:
    from limitlab._core.about import Kind
    from limitlab._core.law import Law


def law_names(incomplete: str = "") -> list[str]:
    """Return the names of laws that start with a text, in the spelling of the command line.

    >>> law_names("marchenko"), law_names("Ridge")
    (['marchenko-pastur'], ['Ridge', 'RidgeScaling'])
    """
    listed = list(index()["laws"])
    spelt = listed if incomplete[:1].isupper() else [dashed(name) for name in listed]
    return [name for name in spelt if name.startswith(incomplete)]


def claim_ids(incomplete: str = "") -> list[str]:
    """Return the ids of claims that start with a text.

    >>> "J5" in claim_ids("j")
    True
    """
    return [claim for claim in index()["claims"] if claim.lower().startswith(incomplete.lower())]


def figure_ids(incomplete: str = "") -> list[str]:
    """Return the ids of figures that start with a text.

    >>> figure_ids("ridge-double")
    ['ridge-double-descent']
    """
    return [name for name in index()["figures"] if name.startswith(incomplete)]


def note_names(incomplete: str = "") -> list[str]:
    """Return the keys of documents, the numbers of chapters and the ids of items that start with a text.

    >>> note_names("1"), note_names("j-7")
    (['11', '12', '13', '14'], ['J-7', 'J-70'])
    """
    from limitlab.lab.documents import documents

    listed = documents()
    numbers = [str(chapter.number) for chapter in listed.chapters if chapter.number]
    names = [*(document.key for document in listed), *numbers, *(item.id for item in listed.items)]
    return [name for name in names if name.lower().startswith(incomplete.lower())]


def parameter_options(law: str, incomplete: str = "--") -> list[tuple[str, str]]:
    """Return the options for the parameters of a law that start with a text, with their descriptions.

    The list is empty if there is no such law.

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
    """Return the name of a class in the spelling of the command line.

    >>> dashed("MarchenkoPastur")
    'marchenko-pastur'
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()


@dataclass(frozen=True)
class ParsedLaw:
    """A law from the command line, and the values of every swept parameter."""

    law: Law
    over: dict[str, list[Any]]


def read_law(law: type[Law], extras: Sequence[str], command_options: Iterable[str] = ()) -> ParsedLaw:
    """Return the law with the parameters in the remaining arguments of a command.

    Parameters
    ----------
    law
        The class of the law.
    extras
        Arguments that are not options of the command, such as `["--ratio", "0.5,2", "--ridge=0.1"]`.
    command_options
        Options of the command, for the hint about a misspelt name.

    Examples
    --------
    >>> from limitlab.laws import Ridge
    >>> parsed = read_law(Ridge, ["--ratio", "0.5,2", "--ridge=0.1"])
    >>> parsed.law.ridge, parsed.over
    (0.1, {'ratio': [0.5, 2.0]})
    """
    for token in extras:  # check names before values, so that a misspelt flag does not cause an error about a missing value
        option = token.partition("=")[0]
        if option.startswith("--") and _field(option) not in law.model_fields:
            known = [kebab(known) for known in law.model_fields] + [known.removeprefix("--") for known in command_options]
            new = law.former_name(_field(option))
            hint = f"it is called --{kebab(new)} now" if new else did_you_mean(kebab(_field(option)), known)
            raise Refused(f"{law.__name__} has no parameter {option}: {hint}")
    values_of: dict[str, list[Any]] = {}
    for option, text in split_options(extras):
        name = _field(option)
        if name in values_of:
            raise Refused(f"{option} is given twice: give several values as a list, {option} 1,2")
        values_of[name] = read_values(law, name, text)
    first = law(**{name: values[0] for name, values in values_of.items()})
    return ParsedLaw(
        first, {name: _checked_values(first, name, values) for name, values in values_of.items() if len(values) > 1}
    )


def _checked_values(law: Law, name: str, values: list[Any]) -> list[Any]:
    """Return the values of a swept parameter after validation by the law.

    Numbers within the declared bounds are not validated separately, because the sweep validates its corners.
    """
    meta = type(law).parameters()[name]
    if type(law).model_fields[name].annotation is float and all(isinstance(v, float) and meta.allows(v) for v in values):
        return values
    return [getattr(law.replace(**{name: value}), name) for value in values]


def split_options(extras: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs of option and text, from `--name value` and `--name=value`.

    >>> split_options(["--ratio", "2", "--ridge=-0.1"])
    [('--ratio', '2'), ('--ridge', '-0.1')]
    """
    pairs = []
    queue = list(extras)
    while queue:
        token = queue.pop(0)
        if not token.startswith("--") or token == "--":
            raise Refused(f"unexpected argument {token!r}: parameters are given as --name value, such as --ratio 2")
        option, equals, text = token.partition("=")
        if not equals:
            if not queue or queue[0].startswith("--"):
                raise Refused(f"{option} needs a value, such as {option} 2 or {option} 0.1:10:50log")
            text = queue.pop(0)
        pairs.append((option, text))
    return pairs


def read_values(law: type[Law], name: str, text: str) -> list[Any]:
    """Return the values in the text of an option. The law validates them later.

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
        raise Refused(f"--{kebab(name)} needs a value, such as --{kebab(name)} 2")
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
    """Return the numbers of a comma list whose entries may be ranges.

    An entry that is not a number remains a text, and the law raises an error for it.

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
    """Return the whole numbers of a comma list. Ranges are rounded, without repetitions.

    >>> read_whole("samples", "5,10:100:4log")
    [5, 10, 22, 46, 100]
    """
    values: list[Any] = []
    for part in text.split(","):
        numbers = read_numbers(name, part)
        values.extend(dict.fromkeys(round(number) for number in numbers) if ":" in part else map(_whole, numbers))
    return values


def read_sizes(name: str, text: str) -> list[int]:
    """Return the whole numbers of an option of a command, such as `--size 50,100,200`.

    >>> read_sizes("size", "50,1e2")
    [50, 100]
    """
    values = read_whole(name, text)
    for value in values:
        if not isinstance(value, int):
            raise Refused(f"--{kebab(name)} {text} is not allowed: {value!r} is not a whole number")
    return values


def _field(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


def _range(name: str, text: str) -> Any:
    from limitlab.lab.grid import parse_range  # grids import the base class of laws, which the help page does not need

    try:
        return parse_range(text)
    except ValueError as error:
        raise Refused(f"--{kebab(name)} {text}: {error}") from None


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
        raise Refused(f"--{kebab(name)} {text}: not valid JSON ({error.msg} at character {error.pos + 1})") from None


LawArgument = Annotated[
    str, typer.Argument(metavar="LAW", help="Name of a law; `limitlab laws` lists them.", autocompletion=law_names)
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
        help="A Python file or a folder with your own laws, claims and figures; its laws are named module:Class.",
        callback=_load,
        is_eager=True,
    ),
]
"""The option that loads laws of the user. It is read before the other options, so that their help can show these laws."""


def laws_named(text: str) -> list[type[Law]]:
    """Return the laws of a comma list of names, files and folders. Files and folders are loaded.

    >>> [law.__name__ for law in laws_named("ridge, early-stopping")]
    ['Ridge', 'EarlyStopping']
    """
    from limitlab._core.registry import find_law, load_laws

    laws: list[type[Law]] = []
    for item in filter(None, (item.strip() for item in text.split(","))):
        laws += load_laws(item).values() if item.endswith(".py") or Path(item).is_dir() else [find_law(item)]
    return laws


class LawCommand(TyperCommand):
    """A command whose help also lists the options of a law, as in `limitlab predict ridge --help`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Store the name of the law before the options are parsed, because the option for help ends the parsing."""
        ctx.meta["limitlab.law"] = next((arg for arg in args[:1] if not arg.startswith("-")), None)
        places = [Path(value) for option, value in pairwise(args) if option == "--laws"]
        if "--help" in args and not ctx.resilient_parsing:
            _load(places)  # help on a law in a file needs the file, even if --help precedes --laws
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Return completions, which are the options of the command and those of the law."""
        offered = super().shell_complete(ctx, incomplete)
        law = ctx.params.get("law_name") or ctx.meta.get("limitlab.law")
        if law is None or not incomplete.startswith("-"):
            return offered
        kind = type(offered[0]) if offered else CompletionItem
        return [*offered, *(kind(option, help=words) for option, words in parameter_options(law, incomplete))]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help of the command, and then the options for the parameters of the law."""
        super().format_help(ctx, formatter)
        name = ctx.meta.get("limitlab.law")
        if name is not None:
            from limitlab._core.registry import find_law

            say(f"\nOptions for the parameters of {find_law(name).__name__}:")
            parameter_table(find_law(name))


def law_command(example: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a command for laws. Unknown options of the command are parameters of the law."""
    takes_parameters = {"ignore_unknown_options": True, "allow_extra_args": True}
    return app.command(cls=LawCommand, context_settings=takes_parameters, epilog=f"Example: limitlab {example}")


def parse_law(ctx: typer.Context, name: str) -> ParsedLaw:
    """Return the law of a command, with the parameters from the rest of the command line."""
    from limitlab._core.registry import find_law

    if name.startswith("-"):
        raise Refused(f"name the law before its parameters: limitlab {ctx.info_name} LAW {name} ...")
    command_options = [option for param in ctx.command.params for option in param.opts if option.startswith("--")]
    return read_law(find_law(name), ctx.args, command_options)


def require_single_values(parsed: ParsedLaw, command: str) -> ParsedLaw:
    """Raise `ValueError` if a parameter has several values, for commands without a sweep."""
    for name, values in parsed.over.items():
        raise Refused(
            f"--{kebab(name)} has {len(values)} values, and `limitlab {command}` takes one: use `limitlab predict` for a sweep"
        )
    return parsed


def title_of(law: Law, swept: Iterable[str] = ()) -> str:
    """Return a law with its parameters, without the swept ones, as the title of a table."""
    from limitlab._core.about import titled

    return titled(law, swept)
