"""How time and memory grow: `python benchmarks/growth.py`. Exponents of processor times and of peaks of traced memory.

Fitted exponents hold for the sizes that are shown; the exponent between the last two sizes is nearer to what large systems do. Where it
differs from the operation count, the last column says why.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy is imported
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from limitlab._core.cost import single_threaded
from limitlab.lab import sweep
from limitlab.laws import OnlineSingleIndex, RandomFeaturesRidge, Ridge, TwoLayerDynamics, ntk
from limitlab.models.online import full_overlap_paths
from timing import progress

ENOUGH, MOST = 1.0, 5
"""Seconds after which a measurement is not repeated, and how often it is done at most."""


@dataclass(frozen=True)
class Case:
    """What grows, the work of a given size, the sizes, the exponents by count of operations and of numbers held, why they differ."""

    grows: str
    work: Callable[[int], object]
    sizes: tuple[int, ...]
    operations: float
    numbers: float
    why: str = ""


def grid(points: int) -> object:
    """The limit over a grid of so many points."""
    return sweep(Ridge(), over={"ratio": np.geomspace(0.1, 10, 200), "ridge": np.geomspace(1e-3, 10, points // 200)})


def kernel(rows: int) -> object:
    """The tangent kernel of so many inputs."""
    return ntk(np.random.default_rng(0).standard_normal((rows, 100)))


def whole(steps: int) -> object:
    """So many steps with the whole history."""
    return TwoLayerDynamics(memory_points=0, times=4.0).march(steps)


def thinned(steps: int) -> object:
    """So many steps with 10 points per octave of the past."""
    return TwoLayerDynamics(memory_points=10, times=4.0).march(steps)


def vectors(dimension: int) -> object:
    """100 steps of 20 runs of full-vector SGD."""
    model = OnlineSingleIndex().model()
    return full_overlap_paths([np.random.default_rng(s) for s in range(20)], model, 0.3, dimension, 0.1, [100])


CASES = {
    "ridge, limit over a grid": Case(
        "points", grid, (10_000, 40_000, 160_000), 1, 1, "every call has a fixed cost of some milliseconds"
    ),
    "ridge, one draw": Case(
        "p = 2 n",
        lambda p: Ridge(ratio=2.0).simulate(p, 0),
        (800, 1600, 3200),
        3,
        2,
        "drawing grows as p^2; half of LAPACK's work is limited by memory once the table exceeds the caches",
    ),
    "random features, one draw": Case(
        "d, N = 2 d, n = 3 d",
        lambda d: RandomFeaturesRidge().simulate(d, 0),
        (200, 400, 800),
        3,
        2,
        "drawing and the activation grow as d^2, LAPACK's rate grows with d until the tables exceed the caches",
    ),
    "tangent kernel": Case(
        "n", kernel, (1000, 2000, 4000), 2, 2, "the operating system allocates the memory of the result page by page"
    ),
    "two-time march, whole history": Case(
        "steps T",
        whole,
        (500, 1000, 2000),
        3,
        2,
        "vector operations on rows grow as T^2 and calls from Python as T; the stored triangles exceed the caches at the larger sizes",
    ),
    "two-time march, thinned": Case(
        "steps T",
        thinned,
        (600, 1200, 2400),
        1,
        0,
        "up to logarithms: the number of stored points grows with log T (operations as T log^2 T, histories as log^2 T), and records as T",
    ),
    "online SGD, exact chain": Case(
        "steps",
        lambda s: OnlineSingleIndex(times=s / 1e5).simulate(10**5, 0),
        (500_000, 1_000_000, 2_000_000),
        1,
        0,
        "the exponents agree",
    ),
    "online SGD, full vectors": Case(
        "N", vectors, (10_000, 20_000, 40_000), 1, 1, "each step has a fixed cost, and large vectors exceed the caches"
    ),
}


def measured(work: Callable[[int], object], size: int) -> tuple[float, float]:
    """Processor seconds (the best of some, where they are short) and the peak of memory in bytes."""
    seconds: list[float] = []
    while sum(seconds) < ENOUGH and len(seconds) < MOST:
        start = time.process_time()
        work(size)
        seconds.append(time.process_time() - start)
    tracemalloc.start()
    work(size)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return min(seconds), float(peak)


def slope(sizes: tuple[int, ...], values: tuple[float, ...]) -> float:
    """The exponent of a power law through the points."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-9)), 1)[0])


def row(name: str, case: Case) -> str:
    """One case as a row of the table."""
    case.work(case.sizes[0] // 10)  # compiled
    times, peaks = zip(*(measured(case.work, size) for size in case.sizes), strict=True)
    sizes = ", ".join(f"{size:,}" for size in case.sizes)
    cells = (name, case.grows, sizes, f"{slope(case.sizes, times):.2f}", f"{slope(case.sizes[-2:], times[-2:]):.2f}")
    return (
        "| "
        + " | ".join((*cells, f"{case.operations:g}", f"{slope(case.sizes, peaks):.2f}", f"{case.numbers:g}", case.why))
        + " |"
    )


def table() -> str:
    """The exponents as Markdown."""
    lines = [
        "| what | grows with | sizes | exponent of time | between the last two | by count | of memory | by count | why they differ |",
        "|---|---|---|---:|---:|---:|---:|---:|---|",
    ]
    with single_threaded():
        for name, case in CASES.items():
            lines.append(row(name, case))
            progress(name)
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
