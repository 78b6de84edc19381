"""The function `verify`, which runs the checks of claims on any engine and returns one record per claim."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from limitlab._core.page import Described, Page
from limitlab._core.registry import know_package, library_digest, packages
from limitlab.lab.check import Criterion
from limitlab.lab.claims import Claim, ClaimStatus, Outcome, find_claims
from limitlab.lab.engines import Engine
from limitlab.lab.progress import ProgressOption
from limitlab.lab.store import FORMAT, Cell, Cells, caching
from limitlab.lab.tasks import RunResult, run_tasks

__all__ = ["Record", "verify"]


UNUSED = ("_figures", "applied", "plotting", "show", "testing")
"""Modules and packages that cannot change the outcome of a claim."""


@dataclass(frozen=True)
class Record(Described):
    """The record of a claim that was run, with its status, and the outcome of the check or its error."""

    claim: Claim
    status: ClaimStatus
    outcome: Outcome | None = None
    error: str = ""

    def page(self) -> Page:
        """Return the plain description, with the claim, its status and the measured numbers."""
        outcome, error = self.outcome, [self.error] if self.error else []
        measured = outcome.page() if outcome else Page()
        data = {
            "id": self.claim.id,
            "area": self.claim.area,
            "statement": self.claim.statement,
            "laws": list(self.claim.laws),
            "figure": self.claim.figure,
            "status": self.status,
            "measured": outcome.numbers if outcome else {},
            "criterion": outcome.criterion if outcome else "",
            "note": outcome.note if outcome else "",
            "error": self.error,
            "seconds": outcome.seconds if outcome else 0.0,
        }
        sentences = [*measured.sentences, *error]
        return replace(self.claim.page(), verdict=self.status, tables=measured.tables, sentences=sentences, data=data)


@dataclass(frozen=True)
class ClaimTask:
    """A claim as a task.

    Its cell contains the outcome. Comparisons inside the check store their draws in the folder `cache`.
    """

    id: str
    quick: bool
    cache: str | None = None
    package: str = ""

    @property
    def content(self) -> dict[str, Any]:
        """Return the claim, its options, and the digest of the source that the check may use.

        This is the source of limitlab and of the claim's own package.
        """
        sources = [library_digest(*UNUSED), *([packages()[self.package].digest("_figures")] if self.package else [])]
        return {"format": FORMAT, "claim": self.id, "quick": self.quick, "source": sources}

    @property
    def where(self) -> str:
        """The description of the task for messages."""
        return f"claim {self.id}"

    def run(self) -> Cell:
        """Run the check."""
        if self.package:
            know_package(self.package)  # a worker process has not loaded the package yet
        (claim,) = find_claims([self.id])
        with caching(self.cache):
            return Cell({"outcome": np.array(to_json(claim.run(self.quick)))})


def verify(
    claims: Sequence[Claim | str] | Claim | str = (),
    quick: bool = True,
    engine: Engine = None,
    store: str | None = None,
    progress: ProgressOption = None,
) -> list[Record]:
    """Run claims and return a record for each. A check that raises an error counts as failed and does not stop the others.

    Parameters
    ----------
    claims
        The claims to run, or their ids (default: all claims).
    quick
        Whether to use small sizes, which take seconds, or the sizes that decide, which take minutes.
    engine, progress
        As in `limitlab.sweep`.
    store
        A folder for the outcomes and their draws. A second run with the same folder computes only results whose inputs changed.

    Examples
    --------
    >>> [record.status for record in verify("J3")]
    ['pass']
    """
    listed = [claims] if isinstance(claims, (Claim, str)) else list(claims)
    selected = [
        claim for item in listed for claim in ([item] if isinstance(item, Claim) else find_claims([item]))
    ] or find_claims()
    checked = [claim for claim in selected if claim.implemented]
    tasks = [ClaimTask(claim.id, quick, store, claim.package) for claim in checked]
    run = run_tasks(tasks, engine, Cells(store) if store else None, progress, "checking claims")
    if run.interrupted:
        raise KeyboardInterrupt(f"stopped after {run.done} of {len(tasks)} claims")
    records = dict(zip((claim.id for claim in checked), records_of(checked, run), strict=True))
    return [records.get(claim.id, Record(claim, "not implemented")) for claim in selected]


def records_of(claims: Sequence[Claim], run: RunResult) -> list[Record]:
    """Return the records of claims whose tasks have run, in the order of the claims."""
    records = []
    for position, (claim, cell) in enumerate(zip(claims, run.cells, strict=True)):
        if cell is None:
            records.append(Record(claim, "fail", error=run.failures[position].error))
        else:
            outcome = from_json(str(cell.values["outcome"]))
            records.append(Record(claim, outcome.status, outcome))
    return records


def to_json(outcome: Outcome) -> str:
    """Return an outcome as text, with all digits of its numbers."""
    return json.dumps({**asdict(outcome), "measured": dict(outcome.measured)}, default=_number)


def from_json(text: str) -> Outcome:
    """Return the outcome that `to_json` wrote.

    >>> from_json(to_json(Outcome((Criterion("z", 1.0, "below 5", True),)))).criterion
    'z below 5'
    """
    content = json.loads(text)
    return Outcome(**{**content, "criteria": tuple(Criterion(**criterion) for criterion in content["criteria"])})


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)
