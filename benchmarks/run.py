"""Run every benchmark and write one table: `limitlab bench`, or `python benchmarks/run.py [PART OF A NAME] [--out FILE]`.

A ratio is how many times faster limitlab is than what one would do instead, both measured in the same run. Without a name, growth exponents
and the distance from the machine's roof follow; `--peers` asks other packages too, in environments of their own.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy is imported: ratios of algorithms, not of thread counts
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import contextlib
import importlib.util
import json
import platform
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent


def benchmarks(part: str = "") -> list[Path]:
    """The benchmark files whose name contains a text, in alphabetical order."""
    return sorted(path for path in HERE.glob("bench_*.py") if part in path.stem)


def measure(path: Path) -> Mapping[str, float]:
    """The ratios of one benchmark: what its function `ratios()` returns."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path.name}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return dict(module.ratios())


def table(rows: list[tuple[str, str, float]]) -> str:
    """The ratios as a Markdown table, with what they were measured on."""
    import numpy
    import scipy

    lines = ["| benchmark | compared with | times faster |", "|---|---|---:|"]
    lines += [f"| {name} | {what} | {ratio:.3g} |" for name, what, ratio in rows]
    versions = f"Python {platform.python_version()}, NumPy {numpy.__version__}, SciPy {scipy.__version__}"
    return "\n".join(lines) + f"\n\nMeasured with {versions}, {os.cpu_count()} cores, one BLAS thread.\n"


def output_of(file: str) -> str:
    """What another program of this folder prints."""
    done = subprocess.run([sys.executable, str(HERE / file)], stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout if done.returncode == 0 else f"({file} failed)\n"


def main() -> None:
    """Run, print progress to stderr, the table to stdout and to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", default="", help="run only benchmarks whose name contains this")
    parser.add_argument("--out", type=Path, default=Path("benchmarks.md"), help="where to write the table")
    parser.add_argument("--peers", action="store_true", help="also other packages, in environments of their own (pip)")
    parser.add_argument("--json", action="store_true", help="print the ratios as JSON instead of the table")
    asked = parser.parse_args()
    paths = benchmarks(asked.part)
    if not paths:
        parser.error(f"no benchmark has {asked.part!r} in its name")
    rows = []
    for path in paths:
        start = time.perf_counter()
        try:
            with contextlib.redirect_stdout(sys.stderr):
                measured = measure(path)
        except Exception as error:
            print(f"{path.name} failed: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        rows += [(path.stem.removeprefix("bench_"), what, ratio) for what, ratio in measured.items()]
        print(f"{path.name}: {time.perf_counter() - start:.1f} s", file=sys.stderr)
    text = table(rows)
    for heading, file in (("Growth", "growth.py"), ("Roof", "roof.py")) if not asked.part else ():
        text += f"\n## {heading}\n\n{output_of(file)}"
    if asked.peers:
        text += f"\n## Peers\n\n{output_of('peers.py')}"
    asked.out.write_text("# Benchmarks\n\n" + text, encoding="utf-8")
    listed = [{"benchmark": name, "compared_with": what, "times_faster": ratio} for name, what, ratio in rows]
    print(json.dumps(listed, indent=1) if asked.json else text)


if __name__ == "__main__":
    main()
