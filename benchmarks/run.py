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

How fast is limitlab? `limitlab bench` compares each family of laws with the usual alternative, such as a plain NumPy loop, and writes the
page `benchmarks.md`. The page contains ratios of processor times of one run, growth exponents of time and memory, and the speed of the
heaviest functions relative to the limits of the machine. Ratios are similar on different machines, but times in seconds are not.
`limitlab bench ridge` runs only the benchmarks with "ridge" in their name. `limitlab bench --peers` also measures other packages. For each
of them pip creates a separate environment once, and later runs use it again. The programs are part of the wheel, and in a checkout they are
in the folder `benchmarks/`.
"""

RATIOS = """A ratio is the processor time of the alternative over that of limitlab, on one thread. Both compute the same numbers. Each
program checks this, except for random numbers. If a row contains "scaled" or "extrapolated", only a part of the work was
timed, and the time of the whole is proportional to it.
"""

GROWTH = """The table shows the exponents with which the processor time and the peak of memory grow with the size, fitted to three sizes.
The exponent between the last two sizes is closer to that of large systems. The columns "by count" give the exponent of the
number of operations or of stored values.
"""

ROOF = """The first table shows the highest measured speed of one core (its roof) for several basic operations. The second shows, for
the heaviest functions of limitlab, the time of these basic operations alone over the time of the function.
"""

PEERS = """Other packages compute the same task to the same accuracy, in alternation with limitlab. If a ratio is below 1, the other
package is faster, and the remark gives the reason.
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
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
