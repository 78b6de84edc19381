"""How far the heavy kernels are from what the machine can do: `python benchmarks/roof.py`. One core, processor time.

The roof of a kernel is the time of its bare steps at the rates of this machine: the numbers it must draw, the matrix product or
decomposition it must do, the bytes it must read. The share is that time over the kernel's own.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy is imported
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from limitlab._core.cost import single_threaded
from limitlab.laws import OnlineSingleIndex, RandomFeaturesRidge, Ridge, TwoLayerDynamics, ntk
from limitlab.laws.mean_field._training import ramp_sgd
from limitlab.models.attention import Attention
from limitlab.models.attention.engines import random_tokens
from limitlab.models.online import full_overlap_paths
from limitlab.numerics.normal_rows import fill_row, key_of
from timing import progress

Row = tuple[str, str, float]


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """Processor time of a call, the best of some after one that does not count."""
    work()
    found = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return max(min(found), 1e-9)


def normal(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape)


# -- the machine ------------------------------------------------------------------------------------------------------


def roofs() -> dict[str, float]:
    """Rates of one core, per second."""
    a, b = normal(1200, 1200), normal(1200, 1200)
    a4, b4 = a.astype(np.float32), b.astype(np.float32)
    x, y, out = (np.ones(8_000_000) for _ in range(3))
    rng, key = np.random.default_rng(0), key_of(np.random.default_rng(0))
    row, scores, room = np.empty(100_000, np.float32), -a4 * a4, np.empty_like(a4)
    return {
        "matrix product (FLOP, double)": 2 * 1200**3 / seconds(lambda: a @ b),
        "matrix product (FLOP, single)": 2 * 1200**3 / seconds(lambda: a4 @ b4),
        "memory (bytes, sum of two arrays)": 3 * x.nbytes / seconds(lambda: np.add(x, y, out=out)),
        "memory (bytes, inner product of two arrays)": 2 * x.nbytes / seconds(lambda: x @ y),
        "exponentials, NumPy (single)": scores.size / seconds(lambda: np.exp(scores, out=room)),
        "Gaussian numbers, NumPy (double)": 100_000 / seconds(lambda: rng.standard_normal(100_000)),
        "Gaussian numbers, NumPy (single)": 100_000 / seconds(lambda: rng.standard_normal(out=row, dtype=np.float32)),
        "Gaussian numbers, ours (single)": 100_000 / seconds(lambda: fill_row(key, np.uint32(1), row)),
    }


# -- the kernels ------------------------------------------------------------------------------------------------------


def ridge_draw(roof: dict[str, float]) -> Row:
    law = Ridge(ratio=2.0, eigenvalues=(0.5, 2.0), weights=(0.5, 0.5), signal_energy=(0.5, 0.5))
    table = normal(500, 1000)

    def bare() -> None:
        normal(500, 1000)
        np.linalg.svd(table, full_matrices=False)

    share = seconds(bare) / seconds(lambda: law.simulate(1000, 0))
    return (
        "ridge, one draw (n = 500, p = 1000, two groups)",
        "drawing the table, LAPACK's singular values and vectors",
        share,
    )


def features_draw(roof: dict[str, float]) -> Row:
    law, d = RandomFeaturesRidge(), 250
    N, n, new = (len(drawn) for drawn in law.inputs(law.draw(d, 0)))
    X, X_new, W, Z, Z_new = normal(n, d), normal(new, d), normal(N, d), normal(n, N), normal(new, N)

    def bare() -> None:
        normal(n + new + N, d)
        X @ W.T, X_new @ W.T
        _, vectors = np.linalg.eigh(Z.T @ Z)
        rotated = Z_new @ vectors
        Z @ vectors, rotated.T @ rotated

    share = seconds(bare) / seconds(lambda: law.simulate(d, 0))
    return (
        f"random features, one draw (d = {d}, N = {N}, n = {n})",
        "drawing, five matrix products, LAPACK's eigenvectors",
        share,
    )


def tangent_kernel(roof: dict[str, float]) -> Row:
    X = normal(1200, 784)
    share = seconds(lambda: X @ X.T) / seconds(lambda: ntk(X))
    return (
        "tangent kernel (n = 1200, d = 784, 3 layers of relu)",
        "the product X X' alone; the computation also evaluates two arc cosines per entry",
        share,
    )


def two_time_march(roof: dict[str, float]) -> Row:
    law, steps = TwoLayerDynamics(memory_points=0, times=4.0), 1200
    rows = np.arange(1.0, steps + 1)
    # Two evaluations per step read C+, C-, R+, R- and the labels' covariance once, the residual's response twice.
    read = 2 * 7 * float(np.sum((rows + 1) * (rows + 2) / 2)) * 8
    bare = read / roof["memory (bytes, inner product of two arrays)"]
    share = bare / seconds(lambda: law.march(steps), 1)
    return f"two-time march, whole history ({steps} steps, {read / 1e9:.0f} GB)", "reading the history from memory", share


def full_vector_sgd(roof: dict[str, float]) -> Row:
    model, size, seeds, steps = OnlineSingleIndex().model(), 1000, 50, 100
    ours = seconds(
        lambda: full_overlap_paths([np.random.default_rng(s) for s in range(seeds)], model, 0.3, size, 0.1, [steps])
    )
    numbers = size * seeds * steps
    return (
        "full-vector SGD (N = 1000, 50 seeds)",
        "drawing the Gaussian numbers",
        numbers / roof["Gaussian numbers, ours (single)"] / ours,
    )


def attention(roof: dict[str, float]) -> Row:
    n = 6000
    x = random_tokens(np.random.default_rng(0), 1, n, 3)[0].astype(np.float32)
    share = n**2 / 2 / roof["exponentials, NumPy (single)"] / seconds(lambda: Attention(5.0).drift(0.0, x))
    return (
        f"attention, one evaluation of the velocity ({n} tokens, d = 3, single)",
        "n^2 / 2 exponentials; the computation also contains products with three columns",
        share,
    )


def mean_field(roof: dict[str, float]) -> Row:
    w, x, samples = normal(800, 40) * 0.8 / np.sqrt(40), normal(40), 4000

    def bare() -> None:
        for _ in range(samples):
            w @ x

    def train() -> None:
        for _ in ramp_sgd(np.random.default_rng(1), w, 0.8, (0.5, 1.5), (-2.5, 7.5), 3e-5, [samples]):
            pass

    share = seconds(bare) / seconds(train)
    return (
        "one-pass SGD of a wide network (N = 800, d = 40)",
        "one BLAS product of weights and sample; the computation also contains the update",
        share,
    )


KERNELS = (ridge_draw, features_draw, tangent_kernel, two_time_march, full_vector_sgd, attention, mean_field)


def table() -> str:
    """Roofs and shares as Markdown."""
    with single_threaded():
        found = roofs()
        progress("rates of the machine")
        shares = []
        for kernel in KERNELS:
            shares.append(kernel(found))
            progress(shares[-1][0])
    lines = [
        "| roof of one core | 1e9 per second |",
        "|---|---:|",
        *(f"| {name} | {value / 1e9:.3g} |" for name, value in found.items()),
        "",
    ]
    lines += ["| kernel | its roof | share of the roof |", "|---|---|---:|"]
    return "\n".join([*lines, *(f"| {name} | {bound} | {share:.2f} |" for name, bound, share in shares)])


if __name__ == "__main__":
    print(table())
