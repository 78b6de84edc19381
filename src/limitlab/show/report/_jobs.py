"""The work behind the report as tasks: a claim to check, a law to compare, a figure to draw. They are independent of one another."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from limitlab._core.draws import identity
from limitlab._core.registry import know_package, library_digest, packages
from limitlab.lab.store import FORMAT, Cell, caching
from limitlab.show.report._laws import law_card
from limitlab.show.report._page import Card, Picture, drawn

if TYPE_CHECKING:
    from limitlab._core.law import Law
    from limitlab.lab import Comparison


@dataclass(frozen=True)
class PartTask:
    """A card of a law, or a figure, as a task: its cell holds what is shown; comparisons inside it keep their own cells in `cache`."""

    kind: Literal["law", "figure"]
    name: str
    quick: bool
    cache: str | None = None
    law: type[Law] | None = None
    caption: str = ""
    package: str = ""

    @property
    def content(self) -> dict[str, Any]:
        """What is shown, how, and the source of the package that shows it."""
        law = {} if self.law is None else {"law": identity(self.law), "revision": self.law.revision}
        about = {"part": self.kind, "name": self.name, "quick": self.quick, "caption": self.caption}
        sources = [
            library_digest("show/cli", "show/explorer"),
            *([packages()[self.package].digest()] if self.package else []),
        ]
        return {"format": FORMAT, **about, **law, "source": sources}

    @property
    def where(self) -> str:
        """The task in words."""
        return f"{self.kind} {self.name}"

    def run(self) -> Cell:
        """Make the card of the law, or draw the figure."""
        card: Card | None = None
        if self.package:
            know_package(self.package)  # a worker process has not loaded it yet
        with caching(self.cache):
            if self.law is not None:
                start = time.perf_counter()
                found = attempt(self.law, self.quick)
                card, picture = law_card(self.law, found, time.perf_counter() - start)
            else:
                from limitlab.lab.figures import figure

                picture = drawn(self.name, figure(self.name, self.quick), self.caption)
        made = {"card": asdict(card) if card else None, "picture": asdict(picture) if picture else None}
        return Cell({"made": np.array(json.dumps(made))})


def unpacked(cell: Cell) -> tuple[Card | None, Picture | None]:
    """What a task made."""
    made = json.loads(str(cell.values["made"]))
    return (Card(**made["card"]) if made["card"] else None, Picture(**made["picture"]) if made["picture"] else None)


EFFORT: dict[bool, dict[str, Any]] = {True: dict(budget=2.0, resolution=0.1), False: dict(budget=300.0, resolution=0.05)}
"""Of a quick and of a full report: seconds per law for adding draws, and the smallest gap worth noticing."""
FEWEST = 8
"""Draws per size that a quick report plans at least. It plans a quarter of a law's own, which are meant for half of its resolution,
makes do with a part of these where they agree, and adds more where all of them do not decide."""


def attempt(law: type[Law], quick: bool) -> Comparison | Exception:
    """The comparison of a law at its check points, in a quick report at the first of them; or what went wrong."""
    from limitlab.lab import compare

    seeds = min(law.default_seeds, max(FEWEST, law.default_seeds // 4)) if quick else None
    try:
        chosen = law.check_points()[0] if quick else law
        return compare(chosen, seeds=seeds, early=quick, progress=False, **EFFORT[quick])
    except Exception as error:  # shown in the law's card
        return error
