"""The work behind the report as tasks: a claim to check, a law to compare, a figure to draw. They are independent of one another."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from limitlab.lab.cells import Cell, caching
from limitlab.lab.tasks import FORMAT
from limitlab.laws.draws import identity
from limitlab.ledger.run import source_digest
from limitlab.show.report.page import Section
from limitlab.show.report.sections import FIGURES, LAWS, broken, figure_section, law_section

if TYPE_CHECKING:
    from limitlab.lab.compare import Comparison
    from limitlab.laws.base import Law


@dataclass(frozen=True)
class PartTask:
    """A section of the page as a task: its cell holds the section; comparisons inside it keep their own cells in `cache`."""

    kind: Literal["law", "figure"]
    name: str
    quick: bool
    cache: str | None = None
    law: type[Law] | None = None
    caption: str = ""

    @property
    def content(self) -> dict[str, Any]:
        """What is shown, how, and the source of the package that shows it."""
        law = {} if self.law is None else {"law": identity(self.law), "revision": self.law.revision}
        about = {"part": self.kind, "name": self.name, "quick": self.quick, "caption": self.caption}
        return {"format": FORMAT, **about, **law, "source": source_digest()}

    @property
    def where(self) -> str:
        """The task in words."""
        return f"{self.kind} {self.name}"

    def run(self) -> Cell:
        """Make the section."""
        with caching(self.cache):
            if self.kind == "law":
                assert self.law is not None
                section = law_section(self.law, attempt(self.law, self.quick))
            else:
                section = figure_section(self.name, self.caption, self.quick)
        return Cell({"section": np.array(json.dumps(asdict(section)))})

    def section(self, cell: Cell | None, error: str = "") -> Section:
        """The section in a cell, or in its place what went wrong."""
        if cell is None:
            anchor, group = f"{self.kind}-{self.name.lower()}", LAWS if self.kind == "law" else FIGURES
            return broken(RuntimeError(error), anchor, self.name, group)
        return Section(**json.loads(str(cell.values["section"])))


EFFORT: dict[bool, dict[str, Any]] = {True: dict(budget=5.0, resolution=0.1), False: dict(budget=300.0, resolution=0.05)}
"""Of a quick and of a full report: seconds per law for adding draws, and the smallest gap worth noticing."""


def attempt(law: type[Law], quick: bool) -> Comparison | Exception:
    """The comparison of a law at its check points, or what went wrong."""
    from limitlab.lab.compare import compare

    try:
        return compare(law, progress=False, **EFFORT[quick])
    except Exception as error:  # shown in the law's section
        return error
