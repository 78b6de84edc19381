"""A claim: one statement of the theory, with a check that can fail. Claims are found in the files of this package."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from limitlab.errors import did_you_mean
from limitlab.lab.criteria import Criterion, Number

ClaimStatus = Literal["pass", "consistent", "fail", "not implemented"]
"""`consistent`: the quick check found nothing against the claim, but only the full one decides."""


@dataclass(frozen=True)
class Outcome:
    """What a check measured.

    Attributes
    ----------
    criteria
        The conditions, each with what was found and whether it holds.
    measured
        Further numbers worth reading.
    note
        Anything the reader must know: a correction of the source, a caveat.
    decisive
        Whether passing settles the claim; False for a quick check that its negation could pass too.
    seconds
        Time the check took; filled in by `Claim.run`.
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
        """The verdict in a word."""
        if not self.passed:
            return "fail"
        return "pass" if self.decisive else "consistent"

    def _repr_html_(self) -> str:
        """The outcome as a notebook shows it."""
        from limitlab._core.notebook import outcome_html

        return outcome_html(self)

    @property
    def criterion(self) -> str:
        """All criteria in words, with their numbers."""
        return "; ".join(map(str, self.criteria))

    @property
    def numbers(self) -> dict[str, Number]:
        """What decided, by name, then the further numbers."""
        return {**{criterion.name: criterion.value for criterion in self.criteria}, **self.measured}


@dataclass(frozen=True)
class Claim:
    """One row of the ledger.

    Attributes
    ----------
    id
        Short id such as "J5".
    area
        Heading it is listed under.
    statement
        The statement in our words, corrected where the source was wrong.
    laws
        Names of the laws it exercises.
    check
        `check(quick)` measures and judges; None where the claim is not implemented yet.
    figure
        Id of the figure that shows it (`limitlab figure ID`), if any.
    """

    id: str
    area: str
    statement: str
    laws: tuple[str, ...] = ()
    check: Callable[[bool], Outcome] | None = field(default=None, compare=False)
    figure: str | None = None

    @property
    def implemented(self) -> bool:
        """Whether the claim has a check."""
        return self.check is not None

    def _repr_html_(self) -> str:
        """The claim as a notebook shows it."""
        from limitlab._core.notebook import claim_html

        return claim_html(self)

    def run(self, quick: bool = True) -> Outcome:
        """Run the check and time it."""
        if self.check is None:
            raise NotImplementedError(f"claim {self.id} is not implemented yet")
        start = time.perf_counter()
        outcome = self.check(quick)
        return replace(outcome, seconds=time.perf_counter() - start)


def claim(
    id: str, area: str, statement: str, laws: Sequence[str] = (), figure: str | None = None
) -> Callable[[Callable[[bool], Outcome]], Claim]:
    """Make a claim of the check that follows.

    >>> @claim("X1", "Arithmetic", "Two and two make four.")
    ... def sums(quick):
    ...     from limitlab.lab.criteria import equal
    ...     return Outcome((equal("2 + 2", 2 + 2, 4),))
    >>> sums.id, sums.run().criterion
    ('X1', '2 + 2 equal to 4')
    """
    return lambda check: Claim(id, area, statement, tuple(laws), check, figure)


# -- finding ------------------------------------------------------------------------------------------------------------


@functools.cache
def all_claims() -> dict[str, Claim]:
    """Every claim by id: those of the files of this package, in the order of their letters and numbers.

    >>> all_claims()["J5"].area
    'Implicit bias, interpolation, spectra'
    """
    import limitlab.ledger

    found: dict[str, Claim] = {}
    for module in pkgutil.iter_modules(limitlab.ledger.__path__, "limitlab.ledger."):
        for one in _claims_of(vars(importlib.import_module(module.name)).values()):
            if one.id in found and found[one.id] is not one:
                raise ImportError(f"claim {one.id} is stated twice")
            found[one.id] = one
    return dict(sorted(found.items(), key=lambda item: _order(item[0])))


def _claims_of(values: object) -> list[Claim]:
    found: list[Claim] = []
    for value in values if isinstance(values, (tuple, list)) or hasattr(values, "__iter__") else ():
        if isinstance(value, Claim):
            found.append(value)
        elif isinstance(value, tuple) and value and all(isinstance(item, Claim) for item in value):
            found.extend(value)
    return found


def find_claims(ids: Sequence[str] = ()) -> list[Claim]:
    """The claims of these ids (upper or lower case), or all of them when none is given.

    >>> [claim.id for claim in find_claims(["j5"])]
    ['J5']
    """
    known = all_claims()
    spelt = {claim_id.upper(): one for claim_id, one in known.items()}
    for claim_id in ids:
        if claim_id.upper() not in spelt:
            raise ValueError(f"there is no claim {claim_id!r}: {did_you_mean(claim_id, known)}")
    return [spelt[claim_id.upper()] for claim_id in ids] if ids else list(known.values())


_DECORATOR = re.compile(r"^@claim\((.*?)^def ", re.MULTILINE | re.DOTALL)


@functools.cache
def laws_of_claims() -> dict[str, tuple[str, ...]]:
    """The laws that every checked claim names, read from the text of the files: nothing is imported for it."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        for match in _DECORATOR.finditer(path.read_text(encoding="utf-8")):
            claim_id, laws = re.search(r'"([^"]+)"', match[1]), re.search(r"laws=\((.*?)\)", match[1], re.DOTALL)
            if claim_id and path.stem != "claims":
                found[claim_id[1]] = tuple(re.findall(r'"(\w+)"', laws[1])) if laws else ()
    return dict(sorted(found.items(), key=lambda item: _order(item[0])))


def claims_of(law: str) -> list[str]:
    """Ids of the claims that exercise a law.

    >>> claims_of("MarchenkoPastur")
    ['J5', 'J6', 'J7', 'M13']
    """
    return [claim_id for claim_id, laws in laws_of_claims().items() if law in laws]


def _order(claim_id: str) -> tuple[str, int]:
    """J2 comes before J10."""
    letters, number = re.fullmatch(r"(\D*)(\d*)", claim_id).groups()  # type: ignore[union-attr]
    return letters, int(number or 0)
