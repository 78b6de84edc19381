"""Time and memory of a large store: `python benchmarks/store_scale.py 1000 10000 100000 [--path 100] [--in-memory]`.

For each number of cells a store is filled (with one draw under the names of all: drawing is not what is measured), and then, in a
process of its own, opened and resumed to the end: plan, names, read and check every cell, assemble and write the result block by block
(or, to compare with, in memory). With a path every cell holds its ten numbers for so many ridges.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

POINTS = 100


def plan_of(cells: int, path: int = 1):
    from limitlab.lab._sweep import plan_sweep
    from limitlab.laws import Ridge

    over = {"ratio": np.linspace(0.3, 3.0, POINTS)}
    if path > 1:
        over["ridge"] = np.geomspace(1e-3, 10, path)
    return over, plan_sweep(Ridge(), over, [20], cells // POINTS, False)


def fill(folder: Path, cells: int, path: int) -> None:
    """Every cell but the last, without forcing them to disk one by one."""
    import limitlab._core.files as files
    from limitlab.lab._sweep import open_store
    from limitlab.lab.tasks import key_of, run

    files.force_to_disk = lambda path: None
    over, plan = plan_of(cells, path)
    store = open_store(folder / "x.zarr", plan, over)
    cell = run(plan.tasks[0])
    for task in plan.tasks[:-1]:
        store.cells.write(key_of(task), cell, task.content)


def resume(folder: Path, cells: int, path: int, in_memory: bool) -> dict[str, float]:
    """Processor seconds of every stage, and the peak of memory."""
    from limitlab.lab._sweep import open_store
    from limitlab.lab.tasks import key_of, run_tasks

    def peak() -> float:
        """Of this process alone, in MB (Linux): what `getrusage` says begins with the peak of the process that started it."""
        return float(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024

    base, clock, found = peak(), time.process_time, {}
    start = clock()
    over, plan = plan_of(cells, path)
    found["plan"] = clock() - start
    start = clock()
    store = open_store(folder / "x.zarr", plan, over)
    found["open"] = clock() - start
    start = clock()
    for task in plan.tasks:
        key_of(task)
    found["names"] = clock() - start
    start = clock()
    run = run_tasks(plan.tasks, None, store.cells, False)
    found["resume"] = clock() - start
    start = clock()
    found["memory_before_assembly_MB"] = peak() - base
    if in_memory:
        result = plan.assemble(run)
        store.finish(result)
    else:
        result = store.finish_in_blocks(lambda regions: plan.assemble(run, regions))
    found["assemble_and_write"] = clock() - start
    found["memory_MB"], found["base_MB"], found["result_MB"] = peak() - base, base, result.nbytes / 1024**2
    files = list((folder / "x.zarr.cells" / "cells").iterdir())
    found["cells_per_directory"] = max(len(list(entry.iterdir())) for entry in files)
    found["manifest_kB"] = (folder / "x.zarr.cells" / "sweep.json").stat().st_size / 1024
    sample = next(files[0].glob("*.cell"))
    found["bytes_per_cell"] = sample.stat().st_size
    return found


def main() -> None:
    """A table over the numbers of cells, with the growth exponent between the last two."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cells", nargs="+", type=int)
    parser.add_argument("--path", type=int, default=1)
    parser.add_argument("--in-memory", action="store_true")
    parser.add_argument("--resume", type=Path)
    asked = parser.parse_args()
    if asked.resume:
        print(json.dumps(resume(asked.resume, asked.cells[0], asked.path, asked.in_memory)))
        return
    counts, rows = asked.cells, []
    for cells in counts:
        with tempfile.TemporaryDirectory() as folder:
            fill(Path(folder), cells, asked.path)
            command = [sys.executable, __file__, str(cells), "--resume", folder, "--path", str(asked.path)]
            command += ["--in-memory"] if asked.in_memory else []
            rows.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
        print(cells, json.dumps({name: round(value, 3) for name, value in rows[-1].items()}), flush=True)
    print("| |" + "".join(f" {cells:,} cells |" for cells in counts) + " exponent |")
    print("|---|" + "---:|" * (len(counts) + 1))
    for name in rows[0]:
        values = [row[name] for row in rows]
        growth = (
            np.log(values[-1] / values[-2]) / np.log(counts[-1] / counts[-2])
            if len(rows) > 1 and min(values[-2:]) > 0
            else 0
        )
        print(f"| {name} |" + "".join(f" {value:.3g} |" for value in values) + f" {growth:.2f} |")


if __name__ == "__main__":
    main()
