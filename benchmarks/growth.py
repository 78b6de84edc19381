"""How time and memory grow: `python benchmarks/growth.py`. Exponents are fitted to processor times and to peaks of traced memory."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from limitlab.lab.sweep import sweep
from limitlab.laws import OnlineSingleIndex, RandomFeaturesRidge, Ridge, TwoLayerDynamics, ntk
from limitlab.models.online import full_overlap_paths
from limitlab.numerics.blas import single_threaded

Work = Callable[[int], object]


def grid(points: int) -> object:
    """The limit over a grid of so many points."""
    return sweep(Ridge(), over={"ratio": np.geomspace(0.1, 10, 200), "ridge": np.geomspace(1e-3, 10, points // 200)})


def vectors(dimension: int) -> object:
    """100 steps of 20 runs of full-vector SGD."""
    model = OnlineSingleIndex().model()
    return full_overlap_paths([np.random.default_rng(s) for s in range(20)], model, 0.3, dimension, 0.1, [100])


CASES: dict[
    str, tuple[str, Work, tuple[int, ...], float]
] = {  # what grows, the work, its sizes, the exponent that is expected
    "ridge, limit over a grid": ("points", grid, (10_000, 40_000, 160_000), 1),
    "ridge, one draw": ("p = 2 n", lambda p: Ridge(ratio=2.0).simulate(p, 0), (300, 600, 1200), 3),
    "random features, one draw": ("d, N = 2 d, n = 3 d", lambda d: RandomFeaturesRidge().simulate(d, 0), (100, 200, 400), 3),
    "tangent kernel": ("n", lambda n: ntk(np.random.default_rng(0).standard_normal((n, 100))), (400, 800, 1600), 2),
    "two-time march, whole history": (
        "steps T",
        lambda t: TwoLayerDynamics(memory_points=0, times=4.0).march(t),
        (200, 400, 800),
        3,
    ),
    "two-time march, thinned": (
        "steps T",
        lambda t: TwoLayerDynamics(memory_points=20, times=4.0).march(t),
        (400, 800, 1600),
        1.5,
    ),
    "online SGD, exact chain": (
        "steps",
        lambda s: OnlineSingleIndex(times=s / 1e5).simulate(10**5, 0),
        (10**5, 2 * 10**5, 4 * 10**5),
        1,
    ),
    "online SGD, full vectors": ("N", vectors, (2000, 4000, 8000), 1),
}


def measured(work: Work, size: int) -> tuple[float, float]:
    """Processor seconds (the best of two) and the peak of memory in MB."""
    seconds = []
    for _ in range(2):
        start = time.process_time()
        work(size)
        seconds.append(time.process_time() - start)
    tracemalloc.start()
    work(size)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return min(seconds), peak / 1e6


def slope(sizes: tuple[int, ...], values: list[float]) -> float:
    """The exponent of a power law through the points."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-9)), 1)[0])


def rows() -> list[tuple[str, str, str, float, float, float]]:
    """Case, what grows, its sizes, the exponents of time and of memory, and what the operation count says of time."""
    found = []
    with single_threaded():
        for name, (what, work, sizes, expected) in CASES.items():
            work(sizes[0])  # compiled
            times, peaks = zip(*(measured(work, size) for size in sizes), strict=True)
            listed = ", ".join(f"{size:,}" for size in sizes)
            found.append((name, what, listed, slope(sizes, list(times)), slope(sizes, list(peaks)), expected))
    return found


def table() -> str:
    """The exponents as Markdown."""
    lines = [
        "| what | grows with | sizes | exponent of time | of memory | by operation count |",
        "|---|---|---|---:|---:|---:|",
    ]
    lines += [f"| {n} | {w} | {s} | {t:.2f} | {m:.2f} | {e:g} |" for n, w, s, t, m, e in rows()]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
