"""`laws`, `show`, `cite`: what there is, and what it says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer
from rich.table import Table

from limitlab.show._describe import describe_law, example
from limitlab.show.cli._app import app
from limitlab.show.cli._lawcommand import LawArgument, LawsOption
from limitlab.show.cli._output import JsonOption, parameter_table, print_facts, print_json, stdout

if TYPE_CHECKING:
    pass


@app.command(epilog="Example: limitlab laws")
def laws(as_json: JsonOption = False, laws: LawsOption = None) -> None:
    """List every law: the question it answers, its status and the claims it stands for."""
    from limitlab._core.registry import all_laws, law_id, laws_by_subject
    from limitlab.lab.claims import claims_of

    if as_json:
        print_json([describe_law(law) for law in all_laws().values()])
        return
    for subject, members in laws_by_subject().items():
        table = Table("law", "question", "status", "claims", title=subject, title_justify="left")
        for law in members:
            table.add_row(law_id(law), law.title(), law.status, " ".join(claims_of(law)))
        stdout().print(table, markup=False)


@app.command(epilog="Example: limitlab show ridge")
def show(law_name: LawArgument, as_json: JsonOption = False, laws: LawsOption = None) -> None:
    """What a law says: its regime, assumptions, parameters and observables."""
    from limitlab._core.registry import find_law
    from limitlab.lab.claims import claims_of

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
        "Observables": "\n".join(f"{name}: {meta.long_name}" for name, meta in law.outputs().items()),
        "Size": f"{law.simulation.size_meaning} (of an experiment)",
        "Claims": ", ".join(claims_of(law)),
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
def cite(law_name: LawArgument, as_json: JsonOption = False, laws: LawsOption = None) -> None:
    """BibTeX of the sources of a law."""
    from limitlab._core.references import bibtex
    from limitlab._core.registry import find_law

    law = find_law(law_name)
    references = bibtex(law.references, law)
    if as_json:
        print_json({"law": law.__name__, "references": references})
    elif references:
        typer.echo("\n\n".join(references))
    else:
        raise ValueError(f"{law.__name__} names no references")
