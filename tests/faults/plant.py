"""Planted faults: change one line at a time in a copy of the package, and record which checks fail.

    python tests/faults/plant.py                      every fault: `compare`, then tests and quick claims for faults that it does not catch
    python tests/faults/plant.py ridge D2             only faults whose name, file, laws or negated claim match one of these words
    python tests/faults/plant.py --ask quick,full     every fault that negates a claim: the quick check and the full check of this claim
    python tests/faults/plant.py --ask all            every check for every fault
    python tests/faults/plant.py --tenth              a tenth of all faults, chosen by the commit, each until the first check that fails
    python tests/faults/plant.py --keep answers.jsonl store every answer when it is known; the same command asks only what is missing
    python tests/faults/plant.py --page answers.jsonl --out docs/trust_faults.md      write the page from stored answers

A fault is an entry of `tests/faults/*.toml`. In `file` (below src/limitlab) the text `old`, which occurs once, becomes `new`. The fault is
planted in a copy of the package, so the source is never changed. These checks can be asked:

- `compare` at the check points of its `laws`. The verdict "disagree" and an error count as caught.
- its `tests`.
- the quick checks of its `claims`.
- `quick` and `full`: the checks of the claim that the fault `negates`. Such a fault makes the statement of the claim false. Its `strength`
  is "negation" for the opposite statement, or a share such as "5 %" for a constant of the statement that is wrong by this share.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PACKAGE = ROOT / "src" / "limitlab"
PLACES = ("theory", "experiment", "shared", "statement")
KINDS = ("factor", "sign", "lost term", "exponent", "off by one", "swapped", "other setting")
STRENGTH = re.compile(r"negation|\d+ %")
CHECKS = ("compare", "tests", "claims", "quick", "full")
SECONDS = 1500.0
"""A check that runs longer than this is stopped and counts as missed."""

COMPARE = """
import json, sys, warnings
warnings.simplefilter("ignore")
from limitlab.lab import compare
from limitlab._core.registry import find_law
verdicts = []
for point in [point for name in sys.argv[2:] for point in find_law(name).check_points()]:
    try:
        verdicts.append(compare(point, budget=float(sys.argv[1]), progress=False).verdict)
    except Exception:
        verdicts.append("error")
    if verdicts[-1] in ("disagree", "error"):  # the fault is caught; further comparisons add nothing
        break
print(json.dumps(verdicts))
"""


@dataclass(frozen=True)
class Fault:
    """One entry of a list of faults."""

    family: str
    number: int
    file: str
    old: str
    new: str
    place: str
    kind: str
    laws: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    negates: str = ""
    strength: str = ""
    note: str = ""

    @property
    def name(self) -> str:
        """Family and number, as in ridge-3."""
        return f"{self.family}-{self.number}"

    @property
    def key(self) -> str:
        """The identity of the fault, under which answers are stored."""
        return json.dumps([self.file, self.old, self.new])

    @property
    def words(self) -> str:
        """The text in which words of the command line are searched."""
        return " ".join([self.name, self.file, *self.laws]).lower()

    def planted(self, text: str) -> str:
        """The text of the file with the fault in it."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.old!r} occurs {text.count(self.old)} times in {self.file}, not once")
        return text.replace(self.old, self.new)


@dataclass
class Fate:
    """The answers of the checks for one fault. An answer is "caught", or says how the check passed."""

    fault: Fault
    answers: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def caught(self) -> bool:
        """Whether a check failed."""
        return "caught" in self.answers.values()

    def answer(self, check: str) -> str:
        """The answer of a check, or an empty text if the check was not asked."""
        return self.answers.get(check, "")


def faults(words: Sequence[str] = ()) -> Iterator[Fault]:
    """The faults of all lists, or those that match one of the words. A word that is the id of a claim selects the faults that negate it."""
    for path in sorted(HERE.glob("*.toml")):
        for number, entry in enumerate(tomllib.loads(path.read_text(encoding="utf-8"))["fault"], 1):
            lists = {key: tuple(entry.pop(key, ())) for key in ("laws", "tests", "claims")}
            fault = Fault(path.stem, number, **lists, **entry)
            if not words or any(word.lower() in fault.words or word.upper() == fault.negates for word in words):
                yield fault


# -- policies: which check comes next, given the answers so far ---------------------------------------------------------------


def _possible(fault: Fault) -> list[str]:
    """The checks that can be asked about a fault."""
    available = {
        "compare": fault.laws,
        "tests": fault.tests,
        "claims": fault.claims,
        "quick": fault.negates,
        "full": fault.negates,
    }
    return [check for check in CHECKS if available[check]]


def survivors(fate: Fate) -> list[str]:
    """`compare` for every fault, and for a fault that it does not catch one check after the other until one fails."""
    return [] if fate.caught else _possible(fate.fault)


def only(checks: Sequence[str]) -> Callable[[Fate], list[str]]:
    """The named checks. If the quick check of a claim fails, its full check is not asked unless all checks are."""

    def policy(fate: Fate) -> list[str]:
        asked = [check for check in _possible(fate.fault) if check in checks]
        return [
            check for check in asked if check != "full" or fate.answer("quick") != "caught" or set(checks) == set(CHECKS)
        ]

    return policy


# -- planting -----------------------------------------------------------------------------------------------------------------


class Copy:
    """A copy of the package in which one fault at a time is planted."""

    def __init__(self, folder: Path):
        self.folder = folder
        shutil.copytree(PACKAGE, folder / "limitlab")  # with the compiled code in __pycache__

    def ask(self, fate: Fate, policy: Callable[[Fate], list[str]], budget: float) -> Fate:
        """Plant the fault, ask the checks of the policy, and remove the fault."""
        path = self.folder / "limitlab" / fate.fault.file
        sound, stamp = path.read_text(encoding="utf-8"), path.stat()
        path.write_text(fate.fault.planted(sound), encoding="utf-8")
        try:
            with tempfile.TemporaryDirectory() as compiled:
                # cached compiled code does not depend on functions of other files, so such faults are compiled from nothing
                fresh = {"NUMBA_CACHE_DIR": compiled} if "numba" in sound else {}
                while missing := [check for check in policy(fate) if check not in fate.answers]:
                    start = time.monotonic()
                    try:
                        fate.answers[missing[0]] = self._answer(missing[0], fate.fault, budget, fresh)
                    except subprocess.TimeoutExpired:
                        fate.answers[missing[0]] = "time limit"
                    fate.seconds[missing[0]] = round(time.monotonic() - start, 1)
        finally:
            path.write_text(sound, encoding="utf-8")
            os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        return fate

    def _answer(self, check: str, fault: Fault, budget: float, extra: dict[str, str]) -> str:
        if check == "compare":
            return self._compare(fault, budget, extra)
        if check == "tests":
            return self._tests(fault, extra)
        if check == "claims":
            return self._claims(fault.claims, [], extra)
        return self._claims((fault.negates,), ["--full"] if check == "full" else [], extra)

    def _compare(self, fault: Fault, budget: float, extra: dict[str, str]) -> str:
        process = self._run(["-c", COMPARE, str(budget), *fault.laws], extra)
        try:
            verdicts = set(json.loads(process.stdout.splitlines()[-1]))
        except (IndexError, ValueError):  # the program ended without verdicts
            self._require_interpreter()
            return "caught"
        return "caught" if verdicts & {"disagree", "error"} else ", ".join(sorted(verdicts))

    def _tests(self, fault: Fault, extra: dict[str, str]) -> str:
        options = ["-x", "-q", "-p", "no:cacheprovider", "--no-header", "-m", "not slow"]
        process = self._run(["-m", "pytest", *options, *(str(ROOT / test) for test in fault.tests)], extra)
        return {0: "missed", 1: "caught"}.get(process.returncode, f"exit code {process.returncode}")

    def _claims(self, ids: Sequence[str], options: Sequence[str], extra: dict[str, str]) -> str:
        """The status of the claims with the fault in place."""
        process = self._run(["-m", "limitlab", "verify", *ids, *options, "--json"], extra)
        if process.returncode != 0:
            self._require_interpreter()
            return "caught"
        return ", ".join(sorted({record["status"] for record in json.loads(process.stdout)}))

    def _require_interpreter(self) -> None:
        """Raise an error if Python does not start or lacks a package, because every fault would then count as caught."""
        process = self._run(["-c", "import numpy, scipy, xarray, pydantic, typer, pytest"], {})
        if process.returncode != 0:
            raise RuntimeError(f"{sys.executable} does not start with the packages of limitlab: {process.stderr[-300:]}")

    def _run(self, arguments: list[str], extra: dict[str, str]) -> subprocess.CompletedProcess[str]:
        threads = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")}
        environment = {**os.environ, **threads, **extra, "PYTHONPATH": str(self.folder), "MPLBACKEND": "Agg"}
        return subprocess.run(
            [sys.executable, *arguments], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS
        )


def run(fates: Sequence[Fate], jobs: int, budget: float, policy: Callable[[Fate], list[str]]) -> Iterator[Fate]:
    """The fates with their new answers, as they become known."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        free: Queue[Copy] = Queue()
        for number in range(jobs):
            free.put(Copy(Path(folder) / str(number)))

        def ask(fate: Fate) -> Fate:
            copy = free.get()
            try:
                return copy.ask(fate, policy, budget)
            finally:
                free.put(copy)

        for task in as_completed([pool.submit(ask, fate) for fate in fates]):
            yield task.result()


def with_answers(path: Path | None, selected: Sequence[Fault]) -> list[Fate]:
    """The fates of faults, with the answers of a file of earlier runs as long as the faults are unchanged."""
    answers: dict[str, dict[str, str]] = {}
    if path is not None and path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.endswith("}"):
                entry = json.loads(line)
                answers.setdefault(entry["key"], {}).update(entry["answers"])
    return [Fate(fault, dict(answers.get(fault.key, {}))) for fault in selected]


def store(path: Path, fate: Fate) -> None:
    """Append the answers of a fate to a file, in one line."""
    with path.open("a", encoding="utf-8") as file:
        file.write(
            json.dumps({"key": fate.fault.key, "name": fate.fault.name, "answers": fate.answers, "seconds": fate.seconds})
            + "\n"
        )


def tenth() -> str:
    """The tenth of the faults that belongs to a commit, such as "3/10". The same commit always tests the same tenth."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return f"{int(commit, 16) % 10 + 1}/10"


def part_of(selected: Sequence[Fault], part: str) -> list[Fault]:
    """Part K of N of the faults, written K/N. It contains every N-th fault, so that each part has faults of all lists."""
    number, _, parts = part.partition("/")
    if not (number.isdigit() and parts.isdigit() and 1 <= int(number) <= int(parts)):
        raise ValueError(f"--part = {part!r} is not allowed: must be K/N with whole numbers 1 <= K <= N, such as 3/10")
    return list(selected[int(number) - 1 :: int(parts)])


# -- tables -------------------------------------------------------------------------------------------------------------------


def summary(fates: Sequence[Fate]) -> str:
    """The counts, in sentences."""
    asked = [fate for fate in fates if fate.answers]
    caught = sum(fate.caught for fate in asked)
    lines = [f"{len(asked)} faults, {caught} caught by some check ({caught / max(len(asked), 1):.1%})."]
    private = [fate for fate in asked if fate.fault.place != "shared" and fate.answer("compare")]
    if private:
        by_compare = sum(fate.answer("compare") == "caught" for fate in private)
        lines.append(
            f"Outside shared code `compare` alone catches {by_compare} of {len(private)} ({by_compare / len(private):.1%})."
        )
    for title, names, attribute in (("place", PLACES, "place"), ("kind", KINDS, "kind")):
        total = Counter(getattr(fate.fault, attribute) for fate in asked)
        seen = Counter(getattr(fate.fault, attribute) for fate in asked if fate.caught)
        lines.append(
            f"By {title}: " + ", ".join(f"{name} {seen[name]} of {total[name]}" for name in names if total[name]) + "."
        )
    strengths = {fate.fault.strength for fate in asked if fate.fault.strength}
    for strength in sorted(strengths, key=lambda text: (text != "negation", len(text), text)):
        some = [fate for fate in asked if fate.fault.strength == strength and (fate.answer("quick") or fate.answer("full"))]
        if some:
            quick = sum(fate.answer("quick") == "caught" for fate in some)
            both = sum("caught" in (fate.answer("quick"), fate.answer("full")) for fate in some)
            loud = sum(fate.answer("quick") == "pass" for fate in some)
            lines.append(
                f"Faults of strength {strength!r}: the quick check of the claim catches {quick} of {len(some)}, "
                f'the quick or the full check {both}. The quick check says "pass" for {loud}.'
            )
    return "\n".join(lines)


def _code(text: str) -> str:
    """The beginning of a text as code in a cell of a table."""
    first = " ".join(text.split())
    return "`" + (first if len(first) <= 70 else first[:67] + "...").replace("|", "\\|").replace("`", "'") + "`"


def negation_table(fates: Sequence[Fate]) -> str:
    """The faults that negate a claim, by claim, as a Markdown table."""
    rows = [
        "| claim | fault | strength | what it makes false | quick | full | compare | tests |",
        "|---|---|---|---|---|---|---|---|",
    ]
    order = sorted(
        (fate for fate in fates if fate.fault.negates),
        key=lambda fate: (
            fate.fault.negates.rstrip("0123456789"),
            int(fate.fault.negates.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")),
            fate.fault.strength,
        ),
    )
    for fate in order:
        answers = " | ".join(fate.answer(check) for check in ("quick", "full", "compare", "tests"))
        rows.append(f"| {fate.fault.negates} | {fate.fault.name} | {fate.fault.strength} | {fate.fault.note} | {answers} |")
    return "\n".join(rows)


def table(fates: Sequence[Fate]) -> str:
    """The other faults as a Markdown table."""
    rows = ["| fault | place, kind | in | becomes | compare | tests | claims |", "|---|---|---|---|---|---|---|"]
    for fate in (fate for fate in fates if not fate.fault.negates):
        fault = fate.fault
        title = f"{fault.name} ({', '.join(fault.laws)})" if fault.laws else fault.name
        answers = " | ".join(fate.answer(check) for check in ("compare", "tests", "claims"))
        rows.append(
            f"| {title} | {fault.place}, {fault.kind} | {fault.file}: {_code(fault.old)} | {_code(fault.new)} | {answers} |"
        )
    return "\n".join(rows)


def page(fates: Sequence[Fate]) -> str:
    """The page of the documentation, in Markdown."""
    return f"""# Planted faults, one by one

Which checks fail if a line of the code is wrong, and which claims fail if their statement is false? This page is written by
`python tests/faults/plant.py --page FILE --out docs/trust_faults.md` from the answers of earlier runs. Each row is one change of one line
in a copy of the package. "caught" means that the check failed and thereby detected the fault. Another word is the result of a check that
did not detect the fault. An empty cell means that this check was not run, mostly because a faster check had already detected the fault.

{summary(fates).replace(chr(10), chr(10) * 2)}

## Claims whose statement was made false

A fault of strength "negation" makes the opposite of the statement true in the code. A fault of strength "5 %" changes a constant
of the statement by this share. A quick check that lets such a fault pass must say "consistent" and not "pass".

{negation_table(fates)}

## Other faults

{table(fates)}
"""


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="part of a fault's name, file or law, or the id of a negated claim")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--budget", type=float, default=20.0, help="seconds that a comparison may spend on adding draws")
    parser.add_argument("--ask", default="", help=f"all, or checks separated by commas: {', '.join(CHECKS)}")
    parser.add_argument("--tenth", action="store_true", help="only a tenth of the faults, chosen by the commit")
    parser.add_argument("--part", metavar="K/N", help="only part K of N of the faults, such as 3/10")
    parser.add_argument("--keep", type=Path, help="store answers in this file, and do not ask again what it contains")
    parser.add_argument("--page", type=Path, help="run nothing: write the page from the answers in this file")
    parser.add_argument("--out", type=Path, help="write the page here, as Markdown")
    options = parser.parse_args()
    fates = with_answers(options.page or options.keep, list(faults(options.words)))
    if not options.page:
        checks = CHECKS if options.ask == "all" else tuple(filter(None, options.ask.split(",")))
        if unknown := set(checks) - set(CHECKS):
            parser.error(f"--ask = {sorted(unknown)} is not allowed: must be among {', '.join(CHECKS)}")
        policy = only(checks) if checks else survivors
        if part := tenth() if options.tenth else options.part:
            names = {fault.name for fault in part_of([fate.fault for fate in fates], part)}
            fates = [fate for fate in fates if fate.fault.name in names]
        fates = [fate for fate in fates if policy(Fate(fate.fault))]
        missing = [fate for fate in fates if set(policy(fate)) - set(fate.answers)]
        for fate in run(missing, options.jobs, options.budget, policy):
            if options.keep:
                store(options.keep, fate)
            told = ", ".join(
                f"{check}: {answer} ({fate.seconds.get(check, 0.0):.0f} s)" for check, answer in fate.answers.items()
            )
            claim = f" [{fate.fault.negates}, {fate.fault.strength}]" if fate.fault.negates else ""
            print(f"{fate.fault.name:20s}{claim} {'caught' if fate.caught else 'MISSED'}  {told}", flush=True)
    print("\n" + summary(fates))
    if options.out:
        options.out.write_text(page(fates), encoding="utf-8")
    return 0 if all(fate.caught for fate in fates if fate.answers) else 1


if __name__ == "__main__":
    raise SystemExit(main())
