"""`laws`, `show`, `cite`: what there is, and what it says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich.table import Table

from limitlab.show.cli.app import app
from limitlab.show.cli.lawcommand import LawArgument
from limitlab.show.cli.output import JsonOption, print_facts, print_json, stdout
from limitlab.show.describe import allowed, describe_law, example, kebab
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
def show(law_name: LawArgument, as_json: JsonOption = False) -> None:
    """What a law says: its regime, assumptions, parameters and observables."""
    from limitlab.lab.registry import find_law

    law = find_law(law_name)
    if as_json:
        print_json(describe_law(law))
        return
    console = stdout()
    console.print(f"[bold]{law.__name__}[/bold]")
    console.print(law.title() + "\n", markup=False)
    facts = {
        "Status": STATUS_WORDS[law.status],
        "Regime": law.regime,
        "Assumptions": "\n".join(law.assumptions),
        "Observables": ", ".join(law.observables),
        "Size": f"{law.size_meaning} (of an experiment)",
        "Claims": ", ".join(law.claims),
    }
    print_facts({term: words for term, words in facts.items() if words})
    parameter_table(law)
    console.print(f"\nExample: {example(law)}", markup=False)


STATUS_WORDS = {
    "theorem": "theorem",
    "derived": "derived (not proved in full; checked by simulation)",
    "conjecture": "conjecture: its numbers are not proved",
}


@app.command(epilog="Example: limitlab cite ridge >> references.bib")
def cite(law_name: LawArgument, as_json: JsonOption = False) -> None:
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
    table = Table("option", "symbol", "default", "allowed", "description")
    for name, meta in law.parameters().items():
        unit = f" [{meta.unit}]" if meta.unit else ""
        table.add_row(
            f"--{kebab(name)}", plain_symbol(meta.symbol), number(meta.default), allowed(law, name), meta.description + unit
        )
    stdout().print(table, markup=False)
