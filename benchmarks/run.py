"""Run every benchmark and write one page: `limitlab bench`, or `python benchmarks/run.py [PART OF A NAME] [--out FILE]`.

A ratio is how many times faster limitlab is than what one would do instead, both measured in the same run. Without a name, growth exponents
and the distance from the machine's roof follow; `--peers` asks other packages too, in environments of their own.
The page is the how-to "Benchmarks" of the documentation, whole.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy is imported: ratios of algorithms, not of thread counts
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import contextlib
import json
import platform
import subprocess
import sys
from pathlib import Path

from timing import spent

HERE = Path(__file__).resolve().parent

HEAD = """# Benchmarks

*How much faster is limitlab than a direct implementation of the same computation?* `limitlab bench` measures this and
writes the results to the page `benchmarks.md`. The page contains ratios of processor times (how many times faster limitlab
is), growth exponents of time and memory, and shares of the highest speed of the processor. It reports ratios
because they differ less between machines than times in seconds.
`limitlab bench ridge` runs only the benchmarks with "ridge" in their name. `limitlab bench --peers` also runs other packages. Each of them
is installed by pip in a separate environment, which later runs use again. The programs are part of the wheel and are in the folder
`benchmarks/` of the repository.
"""

RATIOS = """A ratio is the processor time of the alternative divided by the processor time of limitlab, with one thread. Both compute the
same numbers. Each program checks this for numbers that are not random. In rows with the word "scaled", only a part of the alternative was
timed. Its time is proportional to the size of this part.
"""

GROWTH = """The table shows exponents of processor time and of the peak of memory, fitted to three sizes. The exponent of time between the
two largest sizes is closer to the exponent of large systems. The columns "by count" show the exponents of the numbers of operations and of
stored values.
"""

ROOF = """The first table shows the highest rates that one core of this machine attains (its *roof*). The second table shows
the time of the necessary steps of an expensive computation at these rates, as a share of the time that the computation takes in limitlab.
"""

PEERS = """Other packages (*peers*) compute the same task to the same accuracy. Their runs alternate with the runs of
limitlab. A ratio below 1 means that the peer is faster, and the remark gives the reason.
"""

SECTIONS = {"Growth": ("growth.py", GROWTH), "Roof": ("roof.py", ROOF), "Peers": ("peers.py", PEERS)}


def benchmarks(part: str = "") -> list[Path]:
    """The benchmark files whose name contains a text, in alphabetical order."""
    return sorted(path for path in HERE.glob("bench_*.py") if part in path.stem)


def measure(path: Path) -> dict[str, float]:
    """The ratios of one benchmark, in a process of its own: what ran before must not decide where its memory comes from."""
    program = "import json, sys; sys.stdout, out = sys.stderr, sys.stdout; import {0}; json.dump(dict({0}.ratios()), out)"
    path_of = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-c", program.format(path.stem)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path_of}, check=True)
    return dict(json.loads(done.stdout))


def provenance(command: str) -> str:
    """Which command measures which version on what kind of machine."""
    import numba
    import numpy
    import scipy

    import limitlab

    version = f"version {limitlab.__version__}"
    with contextlib.suppress(OSError, subprocess.CalledProcessError):  # no git, or no checkout
        commit, changes = (
            subprocess.run(["git", "-C", str(HERE), *asked], capture_output=True, text=True, check=True).stdout.strip()
            for asked in (("rev-parse", "--short", "HEAD"), ("status", "--porcelain", "-uno", "..", ":!../docs"))
        )
        version = f"commit {commit}" + (" with changes" if changes else "")
    packages = f"Python {platform.python_version()}, NumPy {numpy.__version__}, SciPy {scipy.__version__}, Numba {numba.__version__}"
    return f"Measured by `{command}` at {version}: {packages}, {os.cpu_count()} cores, one thread.\n"


def table(rows: list[tuple[str, str, float]]) -> str:
    """The ratios as a Markdown table."""
    lines = ["| benchmark | compared with | times faster |", "|---|---|---:|"]
    return "\n".join([*lines, *(f"| {name} | {what} | {ratio:.3g} |" for name, what, ratio in rows)]) + "\n"


def output_of(file: str) -> str:
    """What another program of this folder prints."""
    done = subprocess.run([sys.executable, str(HERE / file)], stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout.strip() + "\n" if done.returncode == 0 else f"({file} failed)\n"


def ratios_of(paths: list[Path]) -> list[tuple[str, str, float]]:
    """Rows of the table, with a line of progress for every benchmark; one that fails has said why and is left out."""
    rows = []
    for number, path in enumerate(paths, 1):
        before = spent()
        print(f"{path.stem.removeprefix('bench_')} ({number} of {len(paths)})", file=sys.stderr, flush=True)
        try:
            measured = measure(path)
        except subprocess.CalledProcessError:
            print("  failed", file=sys.stderr, flush=True)
            continue
        rows += [(path.stem.removeprefix("bench_"), what, ratio) for what, ratio in measured.items()]
        print(f"  {spent() - before:.1f} s of processor time", file=sys.stderr, flush=True)
    return rows


def main() -> None:
    """Run, print progress to stderr, the page to stdout and to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", default="", help="run only benchmarks whose name contains this")
    parser.add_argument("--out", type=Path, default=Path("benchmarks.md"), help="where to write the page")
    parser.add_argument("--peers", action="store_true", help="also other packages, in environments of their own (pip)")
    parser.add_argument("--json", action="store_true", help="print the ratios as JSON instead of the page")
    asked = parser.parse_args()
    paths = benchmarks(asked.part)
    if not paths:
        parser.error(f"no benchmark has {asked.part!r} in its name")
    command = " ".join(["limitlab bench", *([asked.part] if asked.part else []), *(["--peers"] if asked.peers else [])])
    measured_by = provenance(command)  # before anything changes
    rows = ratios_of(paths)
    text = f"{HEAD}\n{measured_by}\n## Ratios\n\n{RATIOS}\n{table(rows)}"
    for heading in ([] if asked.part else ["Growth", "Roof"]) + (["Peers"] if asked.peers else []):
        file, words = SECTIONS[heading]
        print(heading.lower(), file=sys.stderr, flush=True)
        text += f"\n## {heading}\n\n{words}\n{output_of(file)}"
    print(f"{spent():.0f} s of processor time in all", file=sys.stderr, flush=True)
    asked.out.write_text(text, encoding="utf-8")
    listed = [{"benchmark": name, "compared_with": what, "times_faster": ratio} for name, what, ratio in rows]
    print(json.dumps(listed, indent=1) if asked.json else text)


if __name__ == "__main__":
    main()
