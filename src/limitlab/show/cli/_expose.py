"""Commands that are made from functions: options, types and defaults from the signature, help from the docstring."""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand
from typer.main import get_command_from_info
from typer.models import CommandInfo

from limitlab._core.page import Page
from limitlab.show._describe import kebab
from limitlab.show.cli._app import FAILED, app, working
from limitlab.show.cli._output import JsonOption, OutOption, PlotOption, check_paths, deliver, print_page, say

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

PLAIN = (int, float, str, Path, bool)
"""The types that a command line can give."""


@dataclass(frozen=True)
class Option:
    """How a parameter appears on the command line, where that does not follow from its function.

    Attributes
    ----------
    name
        The option, such as `--slope` (default: the name of the parameter), or the name of an argument, such as `DATA`.
    metavar
        The word for its value in the help.
    read
        A function that turns the text of the option into the value of the parameter.
    help
        The help text (default: the docstring of the function).
    """

    name: str = ""
    metavar: str | None = None
    read: Callable[[str], Any] | None = None
    help: str = ""


@dataclass(frozen=True)
class Shown:
    """What a command prints and saves.

    Attributes
    ----------
    page
        The plain description, for people and as JSON.
    data
        The numbers that `--out` saves: a dataset, or rows.
    figure
        Draws the figure of `--plot`.
    notes
        Remarks for people, on stderr.
    failed
        Whether the exit code is 1.
    """

    page: Page
    data: xr.Dataset | list[dict[str, Any]]
    figure: Callable[[], Figure]
    notes: list[str] = field(default_factory=list)
    failed: bool = False


def expose(
    path: str,
    name: str,
    example: str,
    doing: str,
    options: Mapping[str, Option] | None = None,
    leave_out: tuple[str, ...] = (),
    tables: bool = False,
) -> Callable[[Callable[..., Shown]], Callable[..., Shown]]:
    """Make a command of a function; the decorated function says how the result is shown, and its docstring is the help.

    Parameters
    ----------
    path
        The module and the name of the function, such as `limitlab.applied.sample_size`. It is imported when the command is named, so that
        `limitlab --help` needs no library. A parameter `progress` of the function is called with words about the work.
    name, example
        The command, and examples of its use.
    doing
        What the command does, in words, for the line that appears when it takes long.
    options
        The parameters whose option does not follow from the function.
    leave_out
        Parameters that the command does not have.
    tables
        Whether `--out` saves rows, as .csv only.
    """
    special, epilog = dict(options or {}), f"Example: limitlab {example}"

    def decorate(show: Callable[..., Shown]) -> Callable[..., Shown]:
        def real() -> TyperCommand:
            module, _, attribute = path.rpartition(".")
            function = getattr(import_module(module), attribute)
            command = _command(function, show, doing, special, leave_out, tables)
            info = CommandInfo(name, cls=TyperCommand, callback=command, epilog=epilog)
            return get_command_from_info(info, pretty_exceptions_short=True, rich_markup_mode=app.rich_markup_mode)  # type: ignore[return-value]

        class Exposed(TyperCommand):
            """The command as the list of commands shows it. The options are added when the command is named."""

            def make_context(self, *arguments: Any, **named: Any) -> Any:
                """Return the context of the command with its options."""
                return real().make_context(*arguments, **named)

        def listed() -> None:
            """Only the name and the help of the command."""

        listed.__doc__ = inspect.getdoc(show)
        app.command(name, cls=Exposed, epilog=epilog)(listed)
        return show

    return decorate


def _command(
    function: Callable[..., Any],
    show: Callable[..., Shown],
    doing: str,
    special: Mapping[str, Option],
    leave_out: tuple[str, ...],
    tables: bool,
) -> Callable[..., None]:
    """The function that a command calls, with the signature from which its options are made."""
    about, hints, parameters = (
        parameter_texts(function),
        typing.get_type_hints(function),
        inspect.signature(function).parameters,
    )
    signature = [
        _parameter(parameter, hints[key], about[key], special.get(key, Option()))
        for key, parameter in parameters.items()
        if key not in (*leave_out, "progress")
    ]
    for key, annotation, default in (("as_json", JsonOption, False), ("out", OutOption, None), ("plot", PlotOption, None)):
        signature.append(inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation))

    def command(as_json: bool, out: Path | None, plot: Path | None, **texts: Any) -> None:
        check_paths(out, plot, tables=tables)
        values = {key: _value(special.get(key, Option()), value) for key, value in texts.items()}
        with working(doing) as tell:
            result = show(function(**values, **({"progress": tell} if "progress" in parameters else {})))

        def show_page() -> None:
            for note in result.notes:
                say(note)
            print_page(result.page)

        deliver(result.data, as_json, out, plot, result.figure, show_page, lambda: result.page.data)
        if result.failed:
            raise typer.Exit(FAILED)

    command.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in signature}
    command.__doc__ = inspect.getdoc(show)
    return command


def parameter_texts(function: Callable[..., Any]) -> dict[str, str]:
    """The text of every parameter in a NumPy docstring.

    >>> parameter_texts(expose)["leave_out"]
    'Parameters that the command does not have.'
    """
    doc = inspect.getdoc(function) or ""
    section = doc.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
    texts: dict[str, str] = {}
    for names, text in re.findall(r"^(\S.*)\n((?:    .*\n?)+)", section, re.MULTILINE):
        texts |= dict.fromkeys(names.split(", "), " ".join(text.split()))
    return texts


def _parameter(parameter: inspect.Parameter, hint: Any, about: str, option: Option) -> inspect.Parameter:
    """The option or argument of a parameter. A parameter that is read from a text has that type on the command line."""
    key, default, text = parameter.name, parameter.default, option.read is not None
    kind = (str if hint is str or default is not None else str | None) if text else plain(hint)
    words = option.help or about
    if option.name.isupper():
        declared = typer.Argument(metavar=option.name, help=words, show_default=False)
    else:
        declared = typer.Option(option.name or _switch(key, default), metavar=option.metavar, help=words)
    return inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, declared])


def _switch(key: str, default: Any) -> str:
    """The option of a parameter; one that is on by default gets a second option that turns it off.

    >>> _switch("auc_loss", None), _switch("backtest", True)
    ('--auc-loss', '--backtest/--no-backtest')
    """
    return f"--{kebab(key)}/--no-{kebab(key)}" if default is True else f"--{kebab(key)}"


def plain(hint: Any) -> Any:
    """The type of an option: the first of a union that a command line can give.

    >>> plain(str | Path | None) == Path | None, plain(float), plain(list | int)
    (True, <class 'float'>, <class 'int'>)
    """
    parts = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    known = [part for part in parts if part in PLAIN or typing.get_origin(part) is typing.Literal]
    if not known:
        raise TypeError(f"a command line cannot give {hint}: add an Option with `read`")
    kind = Path if Path in known else known[0]
    return kind | None if type(None) in parts else kind


def _value(option: Option, value: Any) -> Any:
    """The value of a parameter for what was typed."""
    return option.read(value) if option.read is not None and value is not None else value
