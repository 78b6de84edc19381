"""How far the heavy kernels are from what the machine can do: `python benchmarks/roof.py`. One core, processor time."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from limitlab.laws import OnlineSingleIndex, ntk
from limitlab.models.online import full_overlap_paths
from limitlab.numerics.blas import single_threaded
from limitlab.numerics.normal_rows import fill_row, key_of


def rate(amount: float, work: Callable[[], object], repeats: int = 3) -> float:
    """Amount per second of processor time, the best of some."""
    work()
    best = 0.0
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = max(best, amount / max(time.process_time() - start, 1e-9))
    return best


def roofs() -> dict[str, float]:
    """Rates of one core: multiply-adds in a matrix product, bytes in a sum of two arrays, Gaussian numbers."""
    a, b = (np.random.default_rng(s).standard_normal((1200, 1200)) for s in (0, 1))
    x, y, out = (np.ones(8_000_000) for _ in range(3))
    row, rng, key = np.empty(100_000, dtype=np.float32), np.random.default_rng(0), key_of(np.random.default_rng(0))
    return {
        "matrix product (GFLOP/s, double)": rate(2 * 1200**3, lambda: a @ b) / 1e9,
        "memory (GB/s, sum of two arrays)": rate(3 * 8 * 8_000_000, lambda: np.add(x, y, out=out)) / 1e9,
        "Gaussian numbers, NumPy (1e6/s, double)": rate(100_000, lambda: rng.standard_normal(100_000)) / 1e6,
        "Gaussian numbers, NumPy (1e6/s, single)": rate(100_000, lambda: rng.standard_normal(out=row, dtype=np.float32))
        / 1e6,
        "Gaussian numbers, ours (1e6/s, single)": rate(100_000, lambda: fill_row(key, np.uint32(1), row)) / 1e6,
    }


def kernels(roof: dict[str, float]) -> list[tuple[str, str, float]]:
    """Heavy kernels: what bounds them, and the share of that bound that they reach."""
    n, d, seeds, steps = 1200, 784, 50, 40
    X = np.random.default_rng(0).standard_normal((n, d))
    model = OnlineSingleIndex().model()
    products, numbers = roof["matrix product (GFLOP/s, double)"] * 1e9, roof["Gaussian numbers, ours (1e6/s, single)"] * 1e6
    draws = rate(
        seeds * steps * 1000,
        lambda: full_overlap_paths([np.random.default_rng(s) for s in range(seeds)], model, 0.3, 1000, 0.1, [steps]),
    )
    gram = rate(2 * n * n * d, lambda: ntk(X))
    return [
        ("full-vector SGD (N = 1000)", "its own Gaussian numbers", draws / numbers),
        (f"tangent kernel (n = {n}, d = {d}), its product X X' alone", "matrix product", gram / products),
    ]


def table() -> str:
    """Roofs and shares as Markdown."""
    with single_threaded():
        found = roofs()
        shares = kernels(found)
    lines = [
        "| roof of one core | rate |",
        "|---|---:|",
        *(f"| {name} | {value:.3g} |" for name, value in found.items()),
        "",
    ]
    lines += ["| kernel | bounded by | share of the roof |", "|---|---|---:|"]
    return "\n".join([*lines, *(f"| {name} | {bound} | {share:.2f} |" for name, bound, share in shares)])


if __name__ == "__main__":
    print(table())
