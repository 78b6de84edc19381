"""A claim: one statement of the theory, with a check that can fail."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

Number = float | int | str | bool
ClaimStatus = Literal["pass", "fail", "not implemented"]


@dataclass(frozen=True)
class Outcome:
    """What a check measured.

    Attributes
    ----------
    passed
        Whether the criterion holds.
    criterion
        The criterion in words, with its numbers.
    measured
        The numbers that decided, by name.
    note
        Anything the reader must know: a correction of the source, a caveat.
    seconds
        Time the check took; filled in by `Claim.run`.
    """

    passed: bool
    criterion: str
    measured: Mapping[str, Number]
    note: str = ""
    seconds: float = 0.0


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

    def run(self, quick: bool = True) -> Outcome:
        """Run the check and time it."""
        if self.check is None:
            raise NotImplementedError(f"claim {self.id} is not implemented yet")
        start = time.perf_counter()
        outcome = self.check(quick)
        return replace(outcome, seconds=time.perf_counter() - start)
