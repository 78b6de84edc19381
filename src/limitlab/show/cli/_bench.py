"""`bench`: every family against what one would do instead, as ratios of times measured in one run."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from limitlab.show.cli._app import app
from limitlab.show.cli._output import JsonOption

EXAMPLE = """Example: limitlab bench ridge

limitlab bench --out benchmarks.md"""


@app.command(epilog=EXAMPLE)
def bench(
    part: Annotated[str, typer.Argument(metavar="[PART]", help="Only benchmarks whose name contains this.")] = "",
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE.md", help="Where to write the page: a file or a folder.")
    ] = Path("benchmarks.md"),
    peers: Annotated[
        bool, typer.Option("--peers", help="Also other packages, each in an environment of its own that pip makes.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure ratios to the alternatives, growth exponents and the distance from the machine's roof; some minutes."""
    out = out / "benchmarks.md" if out.is_dir() else out
    if not out.parent.is_dir():
        raise ValueError(f"--out {out} is not allowed: there is no folder {out.parent}; make it first")
    command = [sys.executable, str(benchmark_folder() / "run.py"), *([part] if part else []), "--out", str(out)]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    command += [*(["--peers"] if peers else []), *(["--json"] if as_json else [])]
    done = subprocess.run(command, env={**os.environ, **threads}, check=False)
    if done.returncode == 2:
        raise ValueError(f"no benchmark has {part!r} in its name")
    raise typer.Exit(done.returncode)


def benchmark_folder() -> Path:
    """Where the benchmarks are: inside an installed package, or beside the sources of a checkout."""
    package = Path(str(files("limitlab")))
    for folder in (package / "_benchmarks", package.parents[1] / "benchmarks"):
        if (folder / "run.py").exists():
            return folder
    raise ValueError("the benchmarks are not installed: they come with the wheel, and with a checkout of the sources")
