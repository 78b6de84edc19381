"""The command `bench`, which compares the time of each family with that of alternatives, as ratios from the same run."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from limitlab.errors import Refused
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
        bool, typer.Option("--peers", help="Also compare with other packages, each in a separate environment made by pip.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure times relative to alternatives, growth exponents and the share of the machine's peak speed.

    This takes some minutes.
    """
    out = out / "benchmarks.md" if out.is_dir() else out
    if not out.parent.is_dir():
        raise Refused(f"--out {out} is not allowed: there is no folder {out.parent}; create it first")
    command = [sys.executable, str(benchmark_folder() / "run.py"), *([part] if part else []), "--out", str(out)]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    command += [*(["--peers"] if peers else []), *(["--json"] if as_json else [])]
    done = subprocess.run(command, env={**os.environ, **threads}, check=False)
    if done.returncode == 2:
        raise Refused(f"no name of a benchmark contains {part!r}")
    raise typer.Exit(done.returncode)


def benchmark_folder() -> Path:
    """Return the folder of the benchmarks, in an installed package or next to the sources of a checkout."""
    package = Path(str(files("limitlab")))
    for folder in (package / "_benchmarks", package.parents[1] / "benchmarks"):
        if (folder / "run.py").exists():
            return folder
    raise Refused("the benchmarks are not installed: install the wheel of limitlab, or use a checkout of the sources")
