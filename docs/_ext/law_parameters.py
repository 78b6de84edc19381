"""A law's page of the reference lists its parameters from the metadata that also make its options and error messages."""

from __future__ import annotations

import inspect
import re
from typing import Any

from limitlab._core.about import allowed, equations
from limitlab._core.declaration import own_docstring
from limitlab._core.law import Law
from plain_docstrings import blocks, protect

LONGEST = 200
TABLE = re.compile(r"= ?\(\([^=]{200,}\)\)")


def short(default: Any) -> str:
    """A default as code; a table of numbers by its size."""
    text = repr(default)
    return text if len(text) < LONGEST else f"a table of {len(default)} rows"


def parameter_list(law: type[Law]) -> list[str]:
    """The parameters as a table in reStructuredText, and what the law says of itself."""
    facts = {
        "Status": law.status,
        "Regime": law.regime,
        "Assumptions": "; ".join(law.assumptions),
        "Size": law.simulation.size_meaning,
    }
    lines = ["", *(f":{name}: {protect(fact)}" for name, fact in facts.items() if fact), ""]
    if not law.parameters():  # an ability that laws share
        return [*lines, ""]
    lines += [".. list-table:: Parameters", "   :header-rows: 1", ""]
    lines += ["   * - name", "     - symbol", "     - default", "     - allowed", "     - meaning"]
    for name, meta in law.parameters().items():
        symbol = f":math:`{meta.symbol}`" if meta.symbol else ""
        kind = "" if meta.kind == "physics" else f" [{meta.kind}]"
        cells = [f"``{name}``", symbol, f"``{short(meta.default)}``", allowed(law, name), protect(meta.words + kind)]
        lines += [f"   {'*' if index == 0 else ' '} - {cell}" for index, cell in enumerate(cells)]
    if not law.outputs():  # what several laws share, not a law
        return [*lines, ""]
    lines += ["", ".. list-table:: Observables", "   :header-rows: 1", "", "   * - name", "     - symbol", "     - meaning"]
    for name, output in law.outputs().items():
        symbol = f":math:`{output.symbol}`" if output.symbol else ""
        cells = [f"``{name}``", symbol, protect(output.long_name)]
        lines += [f"   {'*' if index == 0 else ' '} - {cell}" for index, cell in enumerate(cells)]
    return [*lines, ""]


def process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Insert the table after the first paragraph of a law's docstring, and append the setting and equations of its module."""
    if what == "class" and inspect.isclass(obj) and issubclass(obj, Law) and obj is not Law:
        first = lines.index("") if "" in lines else len(lines)
        lines[first:first] = parameter_list(obj)
        stated = equations(obj).splitlines()
        if stated:
            lines += ["", ".. rubric:: Setting and equations", "", *blocks(stated)]


def as_written(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """The docstring as it stands in the law's file: the rest of what `Ridge?` shows is laid out below."""
    if what == "class" and inspect.isclass(obj) and issubclass(obj, Law):
        lines[:] = [*own_docstring(obj).splitlines(), ""]


def signature(app: Any, what: str, name: str, obj: Any, options: Any, given: str | None, returned: str | None) -> Any:
    """A law's signature without tables of numbers."""
    if what == "class" and given and len(given) > LONGEST and issubclass(obj, Law):
        return TABLE.sub("=...", given), returned
    return None


def setup(app: Any) -> dict[str, bool]:
    """Run after napoleon has read the sections (its priority is 500), so that it leaves the table alone."""
    app.connect("autodoc-process-docstring", as_written, priority=300)
    app.connect("autodoc-process-docstring", process, priority=600)
    app.connect("autodoc-process-signature", signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
