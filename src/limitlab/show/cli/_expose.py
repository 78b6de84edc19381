"""Commands made from functions, with options from the signature and help from the docstring."""

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
from limitlab.show.cli._app import FAILED, app, status_line
from limitlab.show.cli._output import (
    JsonOption,
    OutOption,
    PlotOption,
    check_paths,
    kebab,
    print_note,
    print_page,
    write_outputs,
)

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

PLAIN = (int, float, str, Path, bool)
"""The types of options on the command line."""


@dataclass(frozen=True)
class Option:
    """The option of a parameter, where it does not follow from the signature.

    Attributes
    ----------
    name
        The option, such as `--slope` (default: the name of the parameter), or the name of an argument, such as `DATA`.
    metavar
        The word for the value in the help.
    read
        A function from the text of the option to the value of the parameter.
    help
        The help text (default: the docstring of the function).
    """

    name: str = ""
    metavar: str | None = None
    read: Callable[[str], Any] | None = None
    help: str = ""


@dataclass(frozen=True)
class Shown:
    """The output of a command.

    Attributes
    ----------
    page
        The plain description, which is printed or written as JSON.
    data
        The dataset or the rows that `--out` saves.
    figure
        Function that draws the figure of `--plot`.
    notes
        Notes that are printed on stderr.
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
    """Make a command from a function.

    The decorated function returns the output for a result, and its docstring is the help of the command.

    Parameters
    ----------
    path
        The module and the name of the function, such as `limitlab.applied.sample_size`. The function is imported when the command is used,
        so that `limitlab --help` imports no library. If the function has a parameter `progress`, it is called with words about the work.
    name, example
        The name of the command, and examples of its use.
    doing
        Text of the progress line of the command.
    options
        The options that do not follow from the signature.
    leave_out
        Parameters that the command does not have.
    tables
        Whether `--out` saves rows, which are written as .csv only.
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
            """The command in the list of commands. The options are added when the command is used."""

            def make_context(self, *arguments: Any, **named: Any) -> Any:
                """Return the context of the command with its options."""
                return real().make_context(*arguments, **named)

        def listed() -> None:
            """Provide the name and the help of the command."""

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
    """Return the function of a command, with the signature that determines its options."""
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
        with status_line(doing) as tell:
            result = show(function(**values, **({"progress": tell} if "progress" in parameters else {})))

        def show_page() -> None:
            print_page(result.page)
            for note in result.notes:
                print_note(note)

        write_outputs(result.data, as_json, out, plot, result.figure, show_page, lambda: result.page.data)
        if result.failed:
            raise typer.Exit(FAILED)

    command.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in signature}
    command.__doc__ = inspect.getdoc(show)
    return command


def parameter_texts(function: Callable[..., Any]) -> dict[str, str]:
    """Return the text of every parameter in a NumPy docstring.

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
    """Return the option or argument of a parameter. With `read`, its type on the command line is text."""
    key, default, text = parameter.name, parameter.default, option.read is not None
    kind = (str if hint is str or default is not None else str | None) if text else plain(hint)
    words = option.help or about
    if option.name.isupper():
        declared = typer.Argument(metavar=option.name, help=words, show_default=False)
    else:
        declared = typer.Option(option.name or _switch(key, default), metavar=option.metavar, help=words)
    return inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, declared])


def _switch(key: str, default: Any) -> str:
    """Return the option of a parameter. A switch that is on by default gets a second option that turns it off.

    >>> _switch("auc_loss", None), _switch("backtest", True)
    ('--auc-loss', '--backtest/--no-backtest')
    """
    return f"--{kebab(key)}/--no-{kebab(key)}" if default is True else f"--{kebab(key)}"


def plain(hint: Any) -> Any:
    """Return the type of an option, which is the first type of a union that a command line supports.

    >>> plain(str | Path | None) == Path | None, plain(float), plain(list | int)
    (True, <class 'float'>, <class 'int'>)
    """
    parts = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    supported = [part for part in parts if part in PLAIN or typing.get_origin(part) is typing.Literal]
    if not supported:
        raise TypeError(f"a command line does not support {hint}: add an Option with `read`")
    kind = Path if Path in supported else supported[0]
    return kind | None if type(None) in parts else kind


def _value(option: Option, value: Any) -> Any:
    """Return the value of a parameter from the value of its option."""
    return option.read(value) if option.read is not None and value is not None else value
