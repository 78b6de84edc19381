"""The work behind the report: a claim to check, a law to compare, a figure to draw. Jobs are independent of one another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from limitlab.show.report.page import Section
from limitlab.show.report.sections import FIGURES, LAWS, broken, figure_section, law_section

if TYPE_CHECKING:
    from limitlab.ledger import Record
    from limitlab.lab.compare import Comparison
    from limitlab.laws.base import Law

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """Something to do for the report, small enough to send to a worker process."""

    kind: Literal["claim", "law", "figure"]
    name: str
    quick: bool
    law: type[Law] | None = None
    caption: str = ""

    @property
    def words(self) -> str:
        """What it does, for the terminal."""
        return {"claim": "checking claim", "law": "comparing with experiments:", "figure": "drawing"}[
            self.kind
        ] + f" {self.name}"


def do(job: Job) -> Any:
    """Do a job: the record of a claim without the claim (whose check need not travel), or a section of the page."""
    if job.kind == "claim":
        from limitlab.ledger import find_claims, verify

        (record,) = verify(find_claims([job.name]), job.quick)
        return record.status, record.outcome, record.error
    if job.kind == "law":
        assert job.law is not None
        return law_section(job.law, attempt(job.law, job.quick))
    return figure_section(job.name, job.caption, job.quick)


def attempt(law: type[Law], quick: bool) -> Comparison | Exception:
    """The comparison of a law at its default parameters, or what went wrong."""
    from limitlab.lab.compare import compare

    try:
        sizes = law.default_sizes if quick else tuple(2 * size for size in law.default_sizes)
        return compare(law(), sizes, law.default_seeds if quick else 2 * law.default_seeds)
    except Exception as error:  # shown in the law's section
        return error


def run_jobs(jobs: Sequence[Job], engine: Any, tell: Tell) -> list[Record | Section]:
    """Do the jobs, here or in worker processes; one that fails gives a failed record or section in its place."""
    from limitlab.lab.engines import completed

    results: list[Any] = [None] * len(jobs)
    if jobs:
        tell(jobs[0].words)
    for done, (position, result) in enumerate(completed(do, jobs, engine), start=1):
        results[position] = result
        tell(f"{done} of {len(jobs)} parts done" if engine else jobs[min(position + 1, len(jobs) - 1)].words)
    return [finished(job, result) for job, result in zip(jobs, results, strict=True)]


def finished(job: Job, result: Any) -> Record | Section:
    """What a job gave, or in its place what went wrong."""
    if job.kind == "claim":
        from limitlab.ledger import Record, find_claims

        (claim,) = find_claims([job.name])
        if isinstance(result, BaseException):
            return Record(claim, "fail", error=f"{type(result).__name__}: {result}")
        return Record(claim, *result)
    if isinstance(result, BaseException):
        return broken(result, f"{job.kind}-{job.name.lower()}", job.name, LAWS if job.kind == "law" else FIGURES)
    section: Section = result
    return section
