"""Claims, which are statements of the theory with checks that can fail.

`claim` makes a claim of a check. `find_claims` finds claims by their ids. `verify` runs the checks on any engine and returns one
record per claim.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import ModuleType
from typing import Any, Literal

import numpy as np

from limitlab._core.arguments import explained
from limitlab._core.law import Law
from limitlab._core.lazy import index
from limitlab._core.page import Code, Described, Page, Table, Verdict, Words
from limitlab._core.registry import know_package, law_id, library_digest, packages
from limitlab.errors import Refused, did_you_mean
from limitlab.lab.check import Check, Criterion, Number
from limitlab.lab.engines import Engine
from limitlab.lab.progress import ProgressOption
from limitlab.lab.store import FORMAT, Cell, Cells, caching
from limitlab.lab.tasks import RunResult, run_tasks

__all__ = ["Claim", "Outcome", "Record", "all_claims", "claim", "claims_of", "find_claims", "verify"]

ClaimStatus = Literal["pass", "consistent", "fail", "not implemented"]
"""The status of a claim. "consistent" means that the quick check passed, but could also pass if the statement were slightly wrong.
Then only the full check decides."""


@dataclass(frozen=True)
class Outcome(Described):
    """The result of a check.

    Attributes
    ----------
    criteria
        The conditions, each with the measured value and whether it holds.
    measured
        Further numbers, by name. They do not decide the claim.
    note
        Sentences that the reader must know, such as a correction of the source or a restriction.
    decisive
        Whether passing settles the claim. False for a quick check that the negation of the claim could also pass.
    seconds
        Time that the check took.
    """

    criteria: tuple[Criterion, ...]
    measured: Mapping[str, Number] = field(default_factory=dict)
    note: str = ""
    decisive: bool = True
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether every criterion holds."""
        return bool(self.criteria) and all(criterion.holds for criterion in self.criteria)

    @property
    def status(self) -> ClaimStatus:
        """The status, which is "pass", "consistent" or "fail"."""
        if not self.passed:
            return "fail"
        return "pass" if self.decisive else "consistent"

    def page(self) -> Page:
        """Return the plain description, with every criterion and its number, the note, the status and the time."""
        rows = [
            {
                "criterion": Words(criterion),
                "value": criterion.value,
                "holds": Verdict("pass" if criterion.holds else "fail"),
            }
            for criterion in self.criteria
        ]
        sentences = [f"{self.seconds:.1f} s", *([self.note] if self.note else [])]
        return Page(tables=[Table(rows)], sentences=sentences, verdict=self.status)

    @property
    def criterion(self) -> str:
        """All criteria in words, with their numbers."""
        return "; ".join(map(str, self.criteria))

    @property
    def numbers(self) -> dict[str, Number]:
        """The values of the criteria by name, then the further numbers."""
        return {**{criterion.name: criterion.value for criterion in self.criteria}, **self.measured}


@dataclass(frozen=True)
class Claim(Described):
    """A statement of the theory with a check that can fail.

    Attributes
    ----------
    id
        Short id such as "J5".
    area
        The heading under which the claim is listed.
    statement
        The statement, corrected where the source was wrong.
    laws
        Ids of the laws that the check exercises.
    check
        The function that measures and writes the criteria into the `Check` that it receives; None if the claim has no check yet.
    figure
        Id of the figure that shows the claim (`limitlab figure ID`), if any.
    package
        Name of the package of another author that states the claim; empty for a claim of limitlab.
    quick_decides
        Whether the quick check decides the claim. If it does not, a quick check that passes has the status "consistent".
    items
        Ids of the items of the lecture notes that the claim covers, such as "J-48" (`limitlab notes`).
    """

    id: str
    area: str
    statement: str
    laws: tuple[str, ...] = ()
    check: Callable[[Check], None] | None = field(default=None, compare=False)
    figure: str | None = None
    package: str = ""
    quick_decides: bool = True
    items: tuple[str, ...] = ()

    @property
    def implemented(self) -> bool:
        """Whether the claim has a check."""
        return self.check is not None

    def page(self) -> Page:
        """Return the plain description, with the statement, its laws and figure, and the command that checks it."""
        facts = {
            "area": self.area,
            "laws": ", ".join(self.laws),
            "figure": Code(f"ll.figure({self.figure!r})" if self.figure else ""),
            "items": ", ".join(self.items),
            "check": Code(f"limitlab verify {self.id}") if self.implemented else Verdict("not implemented"),
        }
        return Page(Words(f"{self.id}: {self.statement}"), facts)

    def run(self, quick: bool = True) -> Outcome:
        """Run the check and return its outcome with the time that it took."""
        if self.check is None:
            raise NotImplementedError(f"claim {self.id} is not implemented yet")
        check, start = Check(quick), time.perf_counter()
        self.check(check)
        seconds = time.perf_counter() - start
        return Outcome(tuple(check.criteria), check.measured, check.text, self.quick_decides or not quick, seconds)


def claim(
    id: str,
    area: str,
    *laws: type[Law],
    figure: str | None = None,
    quick_decides: bool = True,
    items: tuple[str, ...] = (),
) -> Callable[[Callable[[Check], None]], Claim]:
    """Return a decorator that makes a claim of a check.

    The first paragraph of the docstring of the check is the statement. The rest of the docstring describes the measurement.

    Parameters
    ----------
    id, area
        A short id such as "J5", and the heading under which the claim is listed.
    *laws
        The classes of the laws that the check exercises.
    figure
        Id of the figure that shows the claim.
    quick_decides
        Set this to False if the quick check also passes when the statement is false by 5 %. Then a quick check that passes has the
        status "consistent", and only the full check decides.
    items
        Ids of the items of the lecture notes that the claim covers. `limitlab notes` lists the items.

    Examples
    --------
    >>> @claim("X1", "Arithmetic")
    ... def sums(check: Check) -> None:
    ...     "Two and two make four."
    ...     check.equal("2 + 2", 2 + 2, 4)
    >>> sums.id, sums.statement, sums.run().criterion
    ('X1', 'Two and two make four.', '2 + 2 equal to 4')
    """
    if strange := [law for law in laws if not isinstance(law, type)]:
        raise Refused(
            f"laws = {strange} of claim {id!r} is not allowed: must be classes of laws, such as `limitlab.laws.Ridge`"
        )
    if isinstance(items, str):
        raise Refused(f"items = {items!r} of claim {id!r} is not allowed: must be a tuple of ids, such as ('J-48',)")

    def make(check: Callable[[Check], None]) -> Claim:
        paragraph = (inspect.getdoc(check) or "").split("\n\n")[0]
        if not paragraph:
            raise Refused(
                f"the check {check.__name__!r} of claim {id!r} has no docstring: state the claim in its first paragraph"
            )
        names = tuple(_name(law, check.__module__) for law in laws)
        return Claim(id, area, " ".join(paragraph.split()), names, check, figure, "", quick_decides, tuple(items))

    return make


def _name(law: type[Law], home: str) -> str:
    """Return the name of a law in a claim of the module `home`.

    It is the class name for a law in the package of `home`, otherwise the id.
    """
    return law.__qualname__ if law.__module__.partition(".")[0] == home.partition(".")[0] else law_id(law)


# -- finding ------------------------------------------------------------------------------------------------------------


@explained
def all_claims() -> dict[str, Claim]:
    """Return every claim by id, in the order of letters and numbers.

    Claims of other packages, `package:id`, come last.

    >>> all_claims()["J5"].area
    'Implicit bias, interpolation, spectra'
    """
    return {**_builtin_claims(), **_foreign_claims()}


@functools.cache
def _builtin_claims() -> dict[str, Claim]:
    """Return the claims of limitlab, from the modules in the index."""
    return {claim_id: _builtin_claim(claim_id) for claim_id in index()["claims"]}


@functools.cache
def _builtin_claim(claim_id: str) -> Claim:
    module = importlib.import_module(index()["claims"][claim_id]["module"])
    return next(claim for claim in claims_in(module) if claim.id == claim_id)


def _foreign_claims() -> dict[str, Claim]:
    """Return the claims of packages and files of other authors.

    Their ids and the names of their laws begin with the name of the package.
    """
    claims: dict[str, Claim] = {}
    for package in packages().values():
        ids = {name: law_id(law) for name, law in package.laws.items()}
        for module in package.modules("_claims"):
            for claim in claims_in(module):
                full_id = f"{package.name}:{claim.id}"
                if full_id in claims:
                    if claims[full_id].check is claim.check:  # `_claims/__init__.py` may repeat the claims of its modules
                        continue
                    raise Refused(f"the claim {full_id} is stated twice: rename one of the two claims")
                figure = f"{package.name}:{claim.figure}" if claim.figure else None
                laws = tuple(ids.get(law, law) for law in claim.laws)
                claims[full_id] = replace(claim, id=full_id, laws=laws, figure=figure, package=package.name)
    return claims


def claims_in(module: ModuleType) -> list[Claim]:
    """Return the claims that a module states, in their order in the module."""
    stated: list[Claim] = []
    for value in vars(module).values():
        if isinstance(value, Claim):
            stated.append(value)
        elif isinstance(value, tuple) and value and all(isinstance(item, Claim) for item in value):
            stated.extend(value)
    return list(dict.fromkeys(stated))


@explained
def find_claims(ids: Sequence[str] = ()) -> list[Claim]:
    """Return the claims of these ids (upper or lower case), or all claims without ids. Only their modules are imported.

    >>> [claim.id for claim in find_claims(["j5"])]
    ['J5']
    """
    if not ids:
        return list(all_claims().values())
    builtin = {claim_id.upper(): claim_id for claim_id in index()["claims"]}
    foreign = {claim_id.upper(): claim_id for claim_id in _foreign_claims()}
    claims = []
    for claim_id in ids:
        upper = claim_id.upper()
        if upper in builtin:
            claims.append(_builtin_claim(builtin[upper]))
        elif upper in foreign:
            claims.append(_foreign_claims()[foreign[upper]])
        elif same := [full_id for key, full_id in foreign.items() if key.partition(":")[2] == upper]:
            if len(same) > 1:
                raise Refused(f"claim {claim_id!r} is ambiguous: write one of {', '.join(sorted(same))}")
            claims.append(_foreign_claims()[same[0]])
        else:
            raise Refused(
                f"there is no claim {claim_id!r}: {did_you_mean(claim_id, [*index()['claims'], *foreign.values()])}"
            )
    return claims


def claims_of_package(name: str) -> list[Claim]:
    """Return the claims of a package or file of another author."""
    return [claim for claim in _foreign_claims().values() if claim.package == name]


def laws_of_claims() -> dict[str, tuple[str, ...]]:
    """Return the ids of the laws that every claim exercises.

    For built-in claims nothing is imported.
    """
    builtin = {claim_id: tuple(entry["laws"]) for claim_id, entry in index()["claims"].items()}
    return builtin | {claim_id: claim.laws for claim_id, claim in _foreign_claims().items()}


def items_of_claims() -> dict[str, tuple[str, ...]]:
    """Return the ids of the items of the lecture notes that every claim covers.

    For built-in claims nothing is imported.
    """
    builtin = {claim_id: tuple(entry["items"]) for claim_id, entry in index()["claims"].items()}
    return builtin | {claim_id: claim.items for claim_id, claim in _foreign_claims().items()}


@explained
def claims_of(law: type[Law] | str) -> list[str]:
    """Return the ids of the claims that exercise a law, which is given as its class or its id.

    >>> claims_of("MarchenkoPastur")
    ['J5', 'J6', 'J7', 'M13']
    """
    name = law if isinstance(law, str) else law_id(law)
    return [claim_id for claim_id, laws in laws_of_claims().items() if name in laws]


def claim_order(claim_id: str) -> tuple[str, int]:
    """Return the key by which ids are sorted, so that J2 comes before J10."""
    letters, number = re.fullmatch(r"(\D*)(\d*)", claim_id).groups()  # type: ignore[union-attr]
    return letters, int(number or 0)


# -- running ----------------------------------------------------------------------------------------------------------


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
            "items": list(self.claim.items),
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


@explained
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


def decided_words(records: Sequence[Record]) -> str:
    """Return one or two sentences that say how many claims the run decided, and which ones only a full check can decide.

    >>> decided_words(verify("J3"))
    'This run decides the only claim.'
    """
    undecided = [record.claim.id for record in records if record.status == "consistent"]
    checked = sum(record.status != "not implemented" for record in records)
    if not undecided:
        return f"This run decides {'the only claim' if checked == 1 else f'all {checked} claims'}."
    names = ", ".join(undecided)
    subject = "1 claim is" if len(undecided) == 1 else f"{len(undecided)} claims are"
    return (
        f"This run decides {checked - len(undecided)} of {checked} claims. {subject} consistent with it ({names}), but the quick check "
        f"would also pass if the statement were slightly wrong: `limitlab verify --full {' '.join(undecided)}` decides."
    )


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
