"""Commands that take a law and its parameters: `limitlab predict ridge --ratio 2`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import CompletionItem, TyperCommand  # type: ignore[attr-defined]

from limitlab.show._describe import kebab
from limitlab.show.cli._app import app
from limitlab.show.cli._completion import law_names, parameter_options
from limitlab.show.cli._options import Asked, read_law

if TYPE_CHECKING:
    from limitlab._core.law import Law

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
