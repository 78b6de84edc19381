"""Standing fuzz: random calls of the library, of the command line and of damaged stores, in a worker with a watchdog and a limit of memory.

    python tests/fuzz/run.py --api 5000 --cli 2000 --stores 200 --seed 1     # counts, and what is wrong, call by call
    python tests/fuzz/run.py --only cli:123 --seed 1                         # one call again
    python tests/fuzz/run.py --seed today --budget 120 --keep tests/fuzz/found.json     # a new seed every day; failures become tests

A call is in order if it returns numbers (none of them NaN) or refuses in a sentence of ours. It is not if it ends in another error, prints
a traceback or a library's warning, takes longer than 20 s of processor time without a message, or needs more memory than the limit.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

PATIENCE = 20.0
"""Seconds of processor time that a call may take without a message."""
MEMORY = 6e9
"""Bytes of address space of a worker; the limit on what a call may hold by its estimate is 4 GB."""
GIVE_UP = 60.0
"""Seconds of processor time after which a worker that answers nothing is ended (it hangs where no signal reaches it)."""


DEFAULTS = {"api": 500, "cli": 200, "stores": 50, "odd": 500, "words": 500, "address": 100, "upload": 50, "kill": 5}
"""Kinds of calls and their default numbers."""


class OutOfTime(BaseException):
    """The watchdog barked."""


# -- in the worker ----------------------------------------------------------------------------------------------------------


def judged(kind: str, seed: int, number: int, folder: Path) -> dict[str, Any]:
    """Run one call and say how it ended."""
    sys.path.insert(0, str(Path(__file__).parent))
    import calls
    import odd

    heard: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: heard.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("limitlab").addHandler(handler)

    def bark(*_: Any) -> None:
        raise OutOfTime

    signal.signal(signal.SIGPROF, bark)
    began, words = time.process_time(), ""
    with warnings.catch_warnings(record=True) as noise:
        warnings.simplefilter("always")
        try:
            signal.setitimer(signal.ITIMER_PROF, PATIENCE)
            if kind in ("cli", "words"):
                words, arguments = calls.cli_call(seed, number, folder) if kind == "cli" else odd.words_call(seed, number)
                outcome = run_command(arguments)
            else:
                words, call = made(kind, seed, number, folder)
                outcome = "numbers" if not holds_nan(call()) else "WRONG: NaN in the result"
        except OutOfTime:
            outcome = "stopped: long, and it said so" if heard else f"WRONG: more than {PATIENCE:g} s without a message"
        except Exception as error:
            outcome = of_error(error)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            logging.getLogger("limitlab").removeHandler(handler)
    foreign = [
        f"{one.message} ({Path(one.filename).name}:{one.lineno})"
        for one in noise
        if issubclass(one.category, RuntimeWarning)
    ]
    return {
        "call": words,
        "outcome": outcome,
        "seconds": time.process_time() - began,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "noise": foreign[0] if foreign else "",
    }


def made(kind: str, seed: int, number: int, folder: Path) -> Any:
    """A call of a kind, in words and as a function."""
    import calls
    import odd

    makers = {"api": calls.api_call, "odd": odd.odd_call, "address": odd.address_call, "upload": odd.upload_call}
    if kind in makers:
        return makers[kind](seed, number)
    return {"stores": calls.store_call, "kill": odd.kill_call}[kind](seed, number, folder)


def of_error(error: Exception) -> str:
    """What kind of end an error is: a sentence of ours, or not."""
    from limitlab._core.law import is_intended
    from limitlab.errors import TooCostly

    failures = getattr(error, "failures", ())
    text = " ".join([str(error), *(failure.error for failure in failures)])
    foreign = [
        name
        for name in (
            "TypeError:",
            "AttributeError:",
            "KeyError:",
            "IndexError:",
            "OverflowError:",
            "ZeroDivisionError:",
            "LinAlgError:",
            "MemoryError:",
        )
        if name in text
    ]
    ours = isinstance(error, (ValueError, NotImplementedError, FloatingPointError)) or type(error).__module__.startswith(
        "limitlab."
    )
    if isinstance(error, OSError):
        ours = True
    if not ours or foreign or (isinstance(error, ValueError) and not is_intended(error)):
        frames = traceback.extract_tb(error.__traceback__)
        where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
        return f"WRONG: {type(error).__name__}: {str(error)[:200]}{where}"
    return "refused as too costly" if isinstance(error, TooCostly) else f"refused ({type(error).__name__})"


def run_command(arguments: list[str]) -> str:
    """A command line in this process: its exit code, and nothing foreign on its way."""
    from typer.testing import CliRunner

    from limitlab.show.cli import app

    result = CliRunner().invoke(app, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        if isinstance(result.exception, OutOfTime):
            raise result.exception
        trace = traceback.extract_tb(result.exception.__traceback__)[-1]
        return f"WRONG: {type(result.exception).__name__}: {str(result.exception)[:200]} ({Path(trace.filename).name}:{trace.lineno})"
    text = (result.stdout or "") + (result.stderr or "")
    for sign in ("Traceback", "RuntimeWarning", "pydantic.dev", "object at 0x"):
        if sign in text:
            return f"WRONG: prints {sign!r}: {text[max(text.index(sign) - 100, 0) :][:250]}"
    if result.exit_code not in (0, 1, 2, 130):
        return f"WRONG: exit code {result.exit_code}"
    return f"exit code {result.exit_code}"


def holds_nan(result: Any) -> bool:
    """Whether a Dataset or a mapping of arrays has a NaN."""
    import numpy as np

    if not hasattr(result, "items") or not hasattr(result, "keys"):
        return False
    arrays = [np.asarray(value) for name, value in result.items() if name != "accuracy"]
    return any(array.dtype.kind == "f" and bool(np.isnan(array).any()) for array in arrays)


def worker() -> None:
    """Answer requests `kind seed number` with one line of JSON each."""
    resource.setrlimit(resource.RLIMIT_AS, (int(MEMORY), int(MEMORY)))
    os.environ.update(LIMITLAB_TIME="30s", LIMITLAB_PATIENCE="15s")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import matplotlib

    matplotlib.use("Agg")
    folder = Path(tempfile.mkdtemp())
    for line in sys.stdin:
        kind, seed, number = line.split()
        answers.write(json.dumps(judged(kind, int(seed), int(number), folder)) + "\n")
        answers.flush()


# -- in the driver ----------------------------------------------------------------------------------------------------------


class Worker:
    """A worker process that is started again when it dies or hangs."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def ask(self, kind: str, seed: int, number: int) -> dict[str, Any]:
        if self.process is None or self.process.poll() is not None:
            command = [sys.executable, __file__, "--worker"]
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{kind} {seed} {number}\n")
        self.process.stdin.flush()
        limit, ready = self.spent() + GIVE_UP, []
        while not ready and self.spent() < limit:
            ready, _, _ = select.select([self.process.stdout], [], [], 1.0)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            self.stop()
            end = "died" if ready else f"did not answer for {GIVE_UP:g} s"
            return {
                "call": f"{kind}:{number}",
                "outcome": f"WRONG: the worker {end}",
                "seconds": 0.0,
                "memory": 0,
                "noise": "",
            }
        return dict(json.loads(line))

    def spent(self) -> float:
        """Processor time of the worker; the clock where the system does not tell."""
        assert self.process is not None
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except OSError:
            return time.monotonic()

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def fuzz(
    counts: dict[str, int], seed: int = 0, budget: float = float("inf"), tell: bool = False, start: int = 0
) -> dict[str, Any]:
    """Run the calls `start` to `count` of every kind (as many as the seconds of the budget allow) and sum up."""
    began, one = time.monotonic(), Worker()
    outcomes: dict[str, Counter[str]] = {kind: Counter() for kind in counts}
    wrong, slowest, largest, noisy = [], (0.0, ""), 0, Counter[str]()
    try:
        for place, (kind, count) in enumerate(counts.items(), 1):
            for number in range(start, count):
                if time.monotonic() - began > budget * place / len(counts):  # every kind gets its share of the time
                    break
                found = one.ask(kind, seed, number)
                bad = found["outcome"].startswith("WRONG")
                outcomes[kind]["WRONG" if bad else found["outcome"]] += 1
                noisy.update([f"{found['noise']} {kind}:{number}"] if found["noise"] else [])
                slowest, largest = max(slowest, (found["seconds"], found["call"])), max(largest, found["memory"])
                if tell and number % 100 == 99:
                    print(f"{kind}: {number + 1} calls, {len(wrong)} wrong, {time.monotonic() - began:.0f} s", flush=True)
                if bad:
                    wrong.append({"id": f"{kind}:{number}", **found})
                    if tell:
                        print(f"{kind}:{number}  {found['call'][:200]}\n    {found['outcome']}", flush=True)
    finally:
        one.stop()
    return {
        "outcomes": {k: dict(v) for k, v in outcomes.items()},
        "wrong": wrong,
        "slowest": slowest,
        "largest": largest,
        "noisy": sorted(noisy),
        "seconds": time.monotonic() - began,
    }


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--worker", action="store_true")
    for kind, default in DEFAULTS.items():
        parser.add_argument(f"--{kind}", type=int, default=default)
    parser.add_argument("--start", type=int, default=0, help="the first call of each kind")
    parser.add_argument("--seed", default="0", help="a whole number, or `today`: a new seed every day")
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds")
    parser.add_argument(
        "--keep", type=Path, help="a file to which the calls that are not in order are added; see found.json"
    )
    parser.add_argument("--only", help="one call, such as api:17")
    given = parser.parse_args()
    if given.worker:
        worker()
        return 0
    sys.path.insert(0, str(Path(__file__).parent))
    import odd

    seed = odd.seed_of_the_day() if given.seed == "today" else int(given.seed)
    print(f"seed {seed}", flush=True)
    if given.only:
        kind, number = given.only.split(":")
        print(json.dumps(judged(kind, seed, int(number), Path(tempfile.mkdtemp())), indent=1))
        return 0
    found = fuzz({kind: getattr(given, kind) for kind in DEFAULTS}, seed, given.budget, tell=True, start=given.start)
    if given.keep is not None:
        before = json.loads(given.keep.read_text(encoding="utf-8")) if given.keep.is_file() else []
        new = [
            {"id": each["id"], "seed": seed, "call": each["call"][:300], "outcome": each["outcome"][:300]}
            for each in found["wrong"]
        ]
        given.keep.write_text(json.dumps([*before, *new], indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps({**found, "wrong": len(found["wrong"])}, indent=1))
    return bool(found["wrong"])


if __name__ == "__main__":
    sys.exit(main())
