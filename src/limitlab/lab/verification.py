"""Running the ledger: claims are tasks like any other, on any engine, resumable, one record per claim whatever happens to the others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

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
class Record:
    """What running a claim gave: its status, the outcome where the check ran, the error where it broke."""

    claim: Claim
    status: ClaimStatus
    outcome: Outcome | None = None
    error: str = ""

    def _repr_html_(self) -> str:
        """The record as a notebook shows it."""
        from limitlab.lab._notebook import claim_html

        return claim_html(self.claim, self)


@dataclass(frozen=True)
class ClaimTask:
    """One claim as a task. Its cell holds the outcome; comparisons inside it keep their own cells in `cache`."""

    id: str
    quick: bool
    cache: str | None = None
    package: str = ""

    @property
    def content(self) -> dict[str, Any]:
        """The claim, how it is checked, and the source that the check may use: that of limitlab and of the claim's own package."""
        sources = [library_digest(*UNUSED), *([packages()[self.package].digest("_figures")] if self.package else [])]
        return {"format": FORMAT, "claim": self.id, "quick": self.quick, "source": sources}

    @property
    def where(self) -> str:
        """The task in words."""
        return f"claim {self.id}"

    def run(self) -> Cell:
        """Run the check."""
        if self.package:
            know_package(self.package)  # a worker process has not loaded it yet
        (one,) = find_claims([self.id])
        with caching(self.cache):
            return Cell({"outcome": np.array(to_json(one.run(self.quick)))})


def verify(
    claims: Sequence[Claim | str] | Claim | str = (),
    quick: bool = True,
    engine: Engine = None,
    store: str | None = None,
    progress: ProgressOption = None,
) -> list[Record]:
    """Run claims; a check that breaks counts as failed and does not stop the rest.

    Parameters
    ----------
    claims
        Claims to run, or their ids; all claims when none is given.
    quick
        Small sizes (seconds) or the sizes that decide (minutes).
    engine, progress
        As in `limitlab.sweep`.
    store
        A folder in which outcomes and the draws behind them are kept: a second run computes only what changed.

    Examples
    --------
    >>> [record.status for record in verify("J3")]
    ['pass']
    """
    listed = [claims] if isinstance(claims, (Claim, str)) else list(claims)
    chosen = [
        found for one in listed for found in ([one] if isinstance(one, Claim) else find_claims([one]))
    ] or find_claims()
    checked = [one for one in chosen if one.implemented]
    tasks = [ClaimTask(one.id, quick, store, one.package) for one in checked]
    run = run_tasks(tasks, engine, Cells(store) if store else None, progress, "checking claims")
    if run.interrupted:
        raise KeyboardInterrupt(f"stopped after {run.done} of {len(tasks)} claims")
    found = dict(zip((one.id for one in checked), records_of(checked, run), strict=True))
    return [found.get(one.id, Record(one, "not implemented")) for one in chosen]


def records_of(claims: Sequence[Claim], run: RunResult) -> list[Record]:
    """What the tasks of claims gave, in their order."""
    records = []
    for position, (one, cell) in enumerate(zip(claims, run.cells, strict=True)):
        if cell is None:
            records.append(Record(one, "fail", error=run.failures[position].error))
        else:
            outcome = from_json(str(cell.values["outcome"]))
            records.append(Record(one, outcome.status, outcome))
    return records


def to_json(outcome: Outcome) -> str:
    """An outcome as text, numbers in full."""
    return json.dumps({**asdict(outcome), "measured": dict(outcome.measured)}, default=_number)


def from_json(text: str) -> Outcome:
    """The outcome that `to_json` wrote.

    >>> from_json(to_json(Outcome((Criterion("z", 1.0, "below 5", True),)))).criterion
    'z below 5'
    """
    content = json.loads(text)
    return Outcome(**{**content, "criteria": tuple(Criterion(**one) for one in content["criteria"])})


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)
