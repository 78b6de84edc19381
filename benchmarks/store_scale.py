"""Time and memory of a large store: `python benchmarks/store_scale.py 1000 10000 100000`.

For each number of cells a store is filled (with one draw under the names of all: drawing is not what is measured), and then, in a
process of its own, opened and resumed to the end: plan, names, read and check every cell, assemble, write the result.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

POINTS = 100


def plan_of(cells: int):
    from limitlab.lab.sweep import plan_sweep
    from limitlab.laws import Ridge

    over = {"ratio": np.linspace(0.3, 3.0, POINTS)}
    return over, plan_sweep(Ridge(), over, [20], cells // POINTS, False)


def fill(folder: Path, cells: int) -> None:
    """Every cell but the last, without forcing them to disk one by one."""
    import limitlab.lab.files as files
    from limitlab.lab.store import Store
    from limitlab.lab.sweep import _open
    from limitlab.lab.tasks import key_of, run

    files.force_to_disk = lambda path: None
    over, plan = plan_of(cells)
    _open(folder / "x.zarr", plan, over)
    shelf = Store(folder / "x.zarr").cells
    cell = run(plan.tasks[0])
    for task in plan.tasks[:-1]:
        shelf.write(key_of(task), cell, task.content)


def resume(folder: Path, cells: int) -> dict[str, float]:
    """Processor seconds of every stage, and the peak of memory."""
    from limitlab.lab.runner import run_tasks
    from limitlab.lab.sweep import _open
    from limitlab.lab.tasks import key_of

    def peak() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    base, clock, found = peak(), time.process_time, {}
    start = clock()
    over, plan = plan_of(cells)
    found["plan"] = clock() - start
    start = clock()
    shelf = _open(folder / "x.zarr", plan, over)
    found["open"] = clock() - start
    start = clock()
    for task in plan.tasks:
        key_of(task)
    found["names"] = clock() - start
    start = clock()
    run = run_tasks(plan.tasks, None, shelf.cells, False)
    found["resume"] = clock() - start
    start = clock()
    result = plan.assemble(run.cells)
    found["assemble"] = clock() - start
    start = clock()
    shelf.finish(result)
    found["write"] = clock() - start
    found["memory_MB"], found["base_MB"] = peak() - base, base
    files = list((folder / "x.zarr.cells" / "cells").iterdir())
    found["cells_per_directory"] = max(len(list(entry.iterdir())) for entry in files)
    found["manifest_kB"] = (folder / "x.zarr.cells" / "sweep.json").stat().st_size / 1024
    sample = next(files[0].glob("*.npz"))
    found["bytes_per_cell"] = sample.stat().st_size
    return found


def main() -> None:
    """A table over the numbers of cells, with the growth exponent between the last two."""
    if sys.argv[1] == "--resume":
        print(json.dumps(resume(Path(sys.argv[2]), int(sys.argv[3]))))
        return
    counts, rows = [int(text) for text in sys.argv[1:]], []
    for cells in counts:
        with tempfile.TemporaryDirectory() as folder:
            fill(Path(folder), cells)
            command = [sys.executable, __file__, "--resume", folder, str(cells)]
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
