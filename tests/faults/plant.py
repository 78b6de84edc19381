"""The standing suite of planted faults: break one line at a time, and see who notices.

    python tests/faults/plant.py                      every fault: the comparison, and the unit tests of those that survive it
    python tests/faults/plant.py ridge xor            the faults whose file or law matches one of these words
    python tests/faults/plant.py --tests all          ask the unit tests about every fault, not only about survivors
    python tests/faults/plant.py --out faults.md      the table as Markdown
    python tests/faults/plant.py --keep fates.jsonl   keep every fate as it becomes known; the same command goes on from there

A fault is an entry of `tests/faults/*.toml`: in `file` (below src/limitlab) the text `old`, which occurs once, becomes `new`. It is planted
in a copy of the package; nothing here touches the source. Then

- `compare` runs at the check points of its `laws`: "disagree" (or an error) is a catch;
- if that does not notice, the `tests` and the quick checks of its `claims` are asked.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PACKAGE = ROOT / "src" / "limitlab"
PLACES = ("theory", "experiment", "shared")
KINDS = ("factor", "sign", "lost term", "exponent", "off by one", "swapped")

COMPARE = """
import json, sys, warnings
warnings.simplefilter("ignore")
from limitlab.lab import compare
from limitlab._core.registry import find_law
found = {}
for name in sys.argv[2:]:
    for number, point in enumerate(find_law(name).check_points(), 1):
        try:
            result = compare(point, budget=float(sys.argv[1]), progress=False)
            found[f"{name} {number}"] = [result.verdict, result.widest_budget]
        except Exception as error:
            found[f"{name} {number}"] = ["error", f"{type(error).__name__}: {error}"[:120]]
        if found[f"{name} {number}"][0] in ("disagree", "error"):
            break
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Fault:
    """One entry of a list of faults."""

    family: str
    number: int
    file: str
    old: str
    new: str
    laws: tuple[str, ...]
    place: str
    kind: str
    tests: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    note: str = ""

    @property
    def name(self) -> str:
        """Family and number, as in ridge-3."""
        return f"{self.family}-{self.number}"

    def kept(self, fate: dict[str, object]) -> Fate:
        """The fate that was written down by an earlier run."""
        return Fate(self, **{name: fate[name] for name in ("compare", "tests", "claims", "seconds")})  # type: ignore[arg-type]

    def planted(self, text: str) -> str:
        """The text of the file with the fault in it."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.old!r} occurs {text.count(self.old)} times in {self.file}, not once")
        return text.replace(self.old, self.new)


@dataclass
class Fate:
    """Who noticed a fault."""

    fault: Fault
    compare: str = ""
    tests: str = ""
    claims: str = ""
    seconds: float = 0.0
    detail: dict[str, object] = field(default_factory=dict)

    @property
    def caught(self) -> bool:
        """Whether anything noticed."""
        return "caught" in (self.compare, self.tests, self.claims)


def faults(words: Sequence[str] = ()) -> Iterator[Fault]:
    """The faults of all lists, or those whose name, file or laws contain one of the words."""
    for path in sorted(HERE.glob("*.toml")):
        for number, entry in enumerate(tomllib.loads(path.read_text(encoding="utf-8"))["fault"], 1):
            lists = {key: tuple(entry.pop(key, ())) for key in ("laws", "tests", "claims")}
            fault = Fault(path.stem, number, **lists, **entry)
            told = " ".join([fault.name, fault.file, *fault.laws]).lower()
            if not words or any(word.lower() in told for word in words):
                yield fault


class Copy:
    """A copy of the package in which one fault at a time is planted."""

    def __init__(self, folder: Path):
        self.folder = folder
        shutil.copytree(PACKAGE, folder / "limitlab")

    def ask(self, fault: Fault, budget: float, ask_tests: str) -> Fate:
        """Plant the fault, see who notices, and take it out again."""
        path, fate, start = self.folder / "limitlab" / fault.file, Fate(fault), time.monotonic()
        sound, stamp = path.read_text(encoding="utf-8"), path.stat()
        path.write_text(fault.planted(sound), encoding="utf-8")
        try:
            with tempfile.TemporaryDirectory() as compiled:
                # compiled code does not notice that a function of another file changed: such faults start from nothing
                fresh = {"NUMBA_CACHE_DIR": compiled} if "numba" in sound else {}
                self._compare(fate, budget, fresh)
                if fate.fault.tests and (ask_tests == "all" or (ask_tests == "survivors" and not fate.caught)):
                    fate.tests = self._tests(fault, fresh)
                if fault.claims and (ask_tests == "all" or not fate.caught):
                    fate.claims = self._claims(fault, fresh)
        finally:
            path.write_text(sound, encoding="utf-8")
            os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        fate.seconds = time.monotonic() - start
        return fate

    def _compare(self, fate: Fate, budget: float, extra: dict[str, str]) -> None:
        if not fate.fault.laws:
            return
        done = self._run(["-c", COMPARE, str(budget), *fate.fault.laws], extra)
        try:
            fate.detail = json.loads(done.stdout.splitlines()[-1])
            verdicts = [str(verdict) for verdict, _ in fate.detail.values()]  # type: ignore[misc]
            fate.compare = "caught" if {"disagree", "error"} & set(verdicts) else ", ".join(sorted(set(verdicts)))
        except (IndexError, ValueError):
            fate.compare, fate.detail = "caught", {"crash": done.stderr[-200:]}

    def _tests(self, fault: Fault, extra: dict[str, str]) -> str:
        options = ["-x", "-q", "-p", "no:cacheprovider", "--no-header", "-m", "not slow"]
        done = self._run(["-m", "pytest", *options, *(str(ROOT / test) for test in fault.tests)], extra)
        return {0: "missed", 1: "caught"}.get(done.returncode, f"exit code {done.returncode}")

    def _claims(self, fault: Fault, extra: dict[str, str]) -> str:
        done = self._run(["-m", "limitlab", "verify", *fault.claims], extra)
        return "missed" if done.returncode == 0 else "caught"

    def _run(self, arguments: list[str], extra: dict[str, str]) -> subprocess.CompletedProcess[str]:
        threads = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")}
        environment = {**os.environ, **threads, **extra, "PYTHONPATH": str(self.folder), "MPLBACKEND": "Agg"}
        return subprocess.run([sys.executable, *arguments], env=environment, cwd=ROOT, capture_output=True, text=True)


def known_fates(path: Path | None, chosen: Sequence[Fault]) -> dict[str, Fate]:
    """The fates that a file of an earlier run has of these faults, as long as they are still the same."""
    if path is None or not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.endswith("}")]
    known = {(line["name"], line["old"], line["new"]): line for line in lines}
    found = {fault.name: known.get((fault.name, fault.old, fault.new)) for fault in chosen}
    return {fault.name: fault.kept(line) for fault in chosen if (line := found[fault.name]) is not None}


def write_down(path: Path, fate: Fate) -> None:
    """One line for one fate."""
    told = {name: getattr(fate, name) for name in ("compare", "tests", "claims", "seconds")}
    line = json.dumps({"name": fate.fault.name, "old": fate.fault.old, "new": fate.fault.new, **told})
    with path.open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def run(chosen: Sequence[Fault], jobs: int, budget: float, ask_tests: str) -> Iterator[Fate]:
    """The fate of every fault, as they become known."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        free: Queue[Copy] = Queue()
        for number in range(jobs):
            free.put(Copy(Path(folder) / str(number)))

        def one(fault: Fault) -> Fate:
            copy = free.get()
            try:
                return copy.ask(fault, budget, ask_tests)
            finally:
                free.put(copy)

        yield from pool.map(one, chosen)


def summary(fates: Sequence[Fate]) -> str:
    """The counts that matter, in sentences."""
    own = [fate for fate in fates if fate.fault.place != "shared" and fate.fault.laws]
    seen = sum(fate.compare == "caught" for fate in own)
    lines = [
        f"{len(fates)} faults, {sum(fate.caught for fate in fates)} detected by at least one check "
        f"({sum(fate.caught for fate in fates) / max(len(fates), 1):.1%}).",
        f"Outside shared code {seen} of {len(own)} ({seen / max(len(own), 1):.1%}) are detected by `compare` at the check points alone.",
    ]
    for what, names in (("place", PLACES), ("kind", KINDS)):
        total, caught = Counter(), Counter()
        for fate in fates:
            total[getattr(fate.fault, what)] += 1
            caught[getattr(fate.fault, what)] += fate.caught
        lines.append(
            "By " + what + ": " + ", ".join(f"{name} {caught[name]} of {total[name]}" for name in names if total[name]) + "."
        )
    return "\n".join(lines)


def table(fates: Sequence[Fate]) -> str:
    """The fates as a Markdown table."""

    def code(text: str) -> str:
        first = " ".join(text.split())
        return "`" + (first if len(first) <= 70 else first[:67] + "...").replace("|", "\\|").replace("`", "'") + "`"

    rows = ["| fault | place, kind | code | changed to | compare | tests | claims |", "|---|---|---|---|---|---|---|"]
    for fate in fates:
        fault = fate.fault
        named = f"{fault.name} ({', '.join(fault.laws)})" if fault.laws else fault.name
        rows.append(
            f"| {named} | {fault.place}, {fault.kind} | {fault.file}: {code(fault.old)} | {code(fault.new)} "
            f"| {fate.compare} | {fate.tests} | {fate.claims} |"
        )
    return "\n".join(rows)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="part of a fault's name, file or law")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--budget", type=float, default=20.0, help="seconds that a comparison may spend on adding draws")
    parser.add_argument("--tests", choices=("none", "survivors", "all"), default="survivors")
    parser.add_argument("--out", type=Path, help="write the table here, as Markdown")
    parser.add_argument("--keep", type=Path, help="keep fates in this file, and do not ask again about those it has")
    options = parser.parse_args()
    chosen = list(faults(options.words))
    known = known_fates(options.keep, chosen)
    open_faults = [fault for fault in chosen if fault.name not in known]
    for fate in run(open_faults, options.jobs, options.budget, options.tests):
        known[fate.fault.name] = fate
        if options.keep:
            write_down(options.keep, fate)
        who = ", ".join(
            f"{name} {value}" for name, value in vars(fate).items() if name in ("compare", "tests", "claims") and value
        )
        print(f"{fate.fault.name:24s} {'caught ' if fate.caught else 'MISSED '} {who} ({fate.seconds:.0f} s)", flush=True)
    fates = [known[fault.name] for fault in chosen]
    print("\n" + summary(fates))
    if options.out:
        options.out.write_text(summary(fates).replace("\n", "\n\n") + "\n\n" + table(fates) + "\n", encoding="utf-8")
    return 0 if all(fate.caught for fate in fates) else 1


if __name__ == "__main__":
    raise SystemExit(main())
