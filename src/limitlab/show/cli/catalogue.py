"""`laws`, `show`, `cite`: what there is, and what it says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table

from limitlab.show.cli.app import app
from limitlab.show.cli.output import JsonOption, print_json, stdout
from limitlab.show.tables import number, plain_symbol

if TYPE_CHECKING:
    from limitlab.laws.base import Law


@app.command(epilog="Example: limitlab laws")
def laws(as_json: JsonOption = False) -> None:
    """List every law: the question it answers, its status and the claims it stands for."""
    from limitlab.lab.registry import all_laws

    if as_json:
        print_json([describe_law(law) for law in all_laws().values()])
        return
    table = Table("law", "question", "status", "claims")
    for name, law in all_laws().items():
        table.add_row(name, law.title(), law.status, " ".join(law.claims))
    stdout().print(table, markup=False)


@app.command(epilog="Example: limitlab show ridge")
def show(
    law_name: str = typer.Argument(metavar="LAW", help="Name of a law, as `limitlab laws` lists them."),
    as_json: JsonOption = False,
) -> None:
    """What a law says: its regime, assumptions, parameters and observables."""
    from limitlab.lab.registry import find_law

    law = find_law(law_name)
    if as_json:
        print_json(describe_law(law))
        return
    console = stdout()
    console.print(f"[bold]{law.__name__}[/bold]")
    for line in (
        law.title(),
        "",
        f"Status       {STATUS_WORDS[law.status]}",
        f"Regime       {law.regime or 'see the theory page'}",
    ):
        console.print(line, markup=False)
    for position, assumption in enumerate(law.assumptions):
        console.print(f"{'Assumptions' if position == 0 else '':<12} {assumption}", markup=False)
    console.print(f"Observables  {', '.join(law.observables)}", markup=False)
    console.print(f"Size         {law.size_meaning} (of an experiment)", markup=False)
    console.print(f"Claims       {', '.join(law.claims) or 'none'}\n", markup=False)
    parameter_table(law)
    console.print(f"\nExample: {example(law)}", markup=False)


STATUS_WORDS = {
    "theorem": "theorem",
    "derived": "derived (not proved in full; checked by simulation)",
    "conjecture": "conjecture: its numbers are not proved",
}


@app.command(epilog="Example: limitlab cite ridge >> references.bib")
def cite(
    law_name: str = typer.Argument(metavar="LAW", help="Name of a law, as `limitlab laws` lists them."),
    as_json: JsonOption = False,
) -> None:
    """BibTeX of the sources of a law."""
    import inspect

    from limitlab.lab.registry import find_law

    law = find_law(law_name)
    references = [inspect.cleandoc(reference) for reference in law.references]
    if as_json:
        print_json({"law": law.__name__, "references": references})
    elif references:
        typer.echo("\n\n".join(references))
    else:
        raise ValueError(f"{law.__name__} names no references")


def parameter_table(law: type[Law]) -> None:
    """Print a law's parameters as the options they are."""
    from limitlab.show.cli.options import kebab

    table = Table("option", "symbol", "default", "allowed", "description")
    for name, meta in law.parameters().items():
        unit = f" [{meta.unit}]" if meta.unit else ""
        table.add_row(
            f"--{kebab(name)}", plain_symbol(meta.symbol), number(meta.default), allowed(law, name), meta.description + unit
        )
    stdout().print(table, markup=False)


def allowed(law: type[Law], name: str) -> str:
    """What a parameter may be, in words: the choices of a name, the range of a number.

    >>> from limitlab.laws import Ridge
    >>> allowed(Ridge, "ratio")
    'above 0'
    """
    import typing

    from limitlab.show.cli.options import kind_of

    annotation = law.model_fields[name].annotation
    if typing.get_origin(annotation) is typing.Literal:
        return " or ".join(map(str, typing.get_args(annotation)))
    kind = kind_of(annotation)
    words = law.parameters()[name].allowed
    if kind in ("name", "truth"):
        return {"name": "a name", "truth": "yes or no"}[kind]
    prefix = {"number": "", "whole": "whole, ", "series": "one or several, ", "sequence": "a list, each "}[kind]
    return prefix + words


def example(law: type[Law]) -> str:
    """A prediction of this law that sweeps its first array parameter.

    >>> from limitlab.laws import Ridge
    >>> example(Ridge)
    'limitlab predict Ridge --ratio 0.1:10:50log'
    """
    from limitlab.show.cli.options import kebab, kind_of

    metas = law.parameters()
    numbers = [name for name in metas if kind_of(law.model_fields[name].annotation) in ("number", "whole", "series")]
    for name in sorted(numbers, key=lambda name: name not in law.array_parameters):
        low, high, kind = span(metas[name].default, metas[name].scale)
        if metas[name].allows(low) and metas[name].allows(high):
            return f"limitlab predict {law.__name__} --{kebab(name)} {low:g}:{high:g}:50{kind}"
    return f"limitlab predict {law.__name__}"


def span(default: Any, scale: str) -> tuple[float, float, str]:
    """An interval around a default value worth looking at, and how to space it."""
    from limitlab.laws.parameters import numbers_in

    value = next((abs(item) for item in numbers_in(default) if item), 1.0)
    if scale == "log":
        centre = 10.0 ** round(math_log10(value))
        return centre / 10, centre * 10, "log"
    return 0.0, 2 * value, ""


def math_log10(value: float) -> float:
    """Decimal logarithm of a finite positive number, 0 for anything else."""
    import math

    return math.log10(value) if 0 < value < math.inf else 0.0


def describe_law(law: type[Law]) -> dict[str, Any]:
    """A law as a plain structure, for JSON."""
    return {
        "name": law.__name__,
        "title": law.title(),
        "status": law.status,
        "regime": law.regime,
        "assumptions": law.assumptions,
        "claims": law.claims,
        "observables": law.observables,
        "size_meaning": law.size_meaning,
        "parameters": [
            {
                "name": name,
                "symbol": meta.symbol,
                "default": meta.default,
                "allowed": allowed(law, name),
                "description": meta.description,
                "unit": meta.unit,
                "scale": meta.scale,
            }
            for name, meta in law.parameters().items()
        ],
        "example": example(law),
    }
