"""The tangent kernel of 1,000 images by one fused pass, against the recursion in plain NumPy.

Run `python benchmarks/bench_tangent_kernel.py`. n = 1000, d = 784, three weight matrices of relu, double precision, one core for
everybody; values must agree to 1e-9 (off the diagonal, where the plain recursion loses half of its digits to the angle 0).

`python benchmarks/peers.py neural-tangents` measures the package `neural-tangents` on the same kernel.
`python benchmarks/bench_tangent_kernel.py --threads` compares two threads with one, and with NumPy on both cores.
`python benchmarks/bench_tangent_kernel.py --layers` compares the kernel of a finite network by layers with its Jacobian: time and memory.
`python benchmarks/bench_tangent_kernel.py --large` computes n = 20,000 in single precision and prints time and peak memory.
"""

from __future__ import annotations

import os

os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from limitlab.laws import ntk
from timing import best, print_ratios

ROWS, COLUMNS, REPEATS = 1000, 784, 7
FLOOR = 1.7


def table() -> np.ndarray:
    """Inputs of the size of MNIST."""
    return np.random.default_rng(0).standard_normal((ROWS, COLUMNS))


def recursion(X: np.ndarray, layers: int = 3) -> np.ndarray:
    """The textbook: whole matrices, layer by layer."""
    sigma = X @ X.T / X.shape[1]
    theta = sigma.copy()
    for _ in range(layers - 1):
        root = np.sqrt(np.diag(sigma))
        scale = np.outer(root, root)
        cosine = np.clip(sigma / scale, -1, 1)
        angle = np.arccos(cosine)
        sigma = scale * (np.sin(angle) + (np.pi - angle) * cosine) / (2 * np.pi)
        theta = theta * (np.pi - angle) / (2 * np.pi) + sigma
    return theta


def off_diagonal_gap(found: np.ndarray, expected: np.ndarray) -> float:
    """Largest difference off the diagonal, relative to the largest entry."""
    gap = np.abs(found - expected)
    np.fill_diagonal(gap, 0.0)
    return float(gap.max() / np.abs(expected).max())


def ratios() -> dict[str, float]:
    """How many times faster the fused pass is; fails if the numbers differ by more than 1e-9."""
    X = table()
    ntk(X[:10])  # compilation is not part of the comparison
    (seconds, others), (found, expected) = best(REPEATS, lambda: ntk(X), lambda: recursion(X))
    gap = off_diagonal_gap(found, expected)
    if not gap < 1e-9:
        raise AssertionError(f"the kernels differ by {gap:.2g}, more than 1e-9")
    print(f"n = {ROWS}, d = {COLUMNS}: fused {seconds:.4f} s, plain NumPy {others:.4f} s, largest difference {gap:.1e}")
    return {f"the recursion in plain NumPy (n = {ROWS}, d = {COLUMNS}, 3 layers of relu)": others / seconds}


def thread_ratios(repeats: int = 40) -> dict[str, float]:
    """Two threads of ours against one, and against the recursion with two BLAS threads; interleaved, the shortest of many."""
    X = table()
    calls = (lambda: ntk(X, threads=2), lambda: ntk(X, threads=1), lambda: recursion(X))
    seconds = [[] for _ in calls]
    for call in calls:
        call()
    for _ in range(repeats):
        for call, found in zip(calls, seconds, strict=True):
            start = time.perf_counter()
            call()
            found.append(time.perf_counter() - start)
    two, one, plain = map(min, seconds)
    print(f"two threads {two:.4f} s, one thread {one:.4f} s, plain NumPy with BLAS's own {plain:.4f} s")
    return {"one thread of ours": one / two, "plain NumPy on the same cores": plain / two}


FINITE_PROGRAM = """
import json, resource, sys, time
import numpy as np
from limitlab.laws import empirical_ntk, fully_connected
net, rng = fully_connected(4, "relu"), np.random.default_rng(0)
X, parameters = rng.standard_normal((60, 100)), net.start(rng, (100,), 800)
empirical_ntk(net.apply, parameters, X[:2], method=sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
K = empirical_ntk(net.apply, parameters, X, method=sys.argv[1])
seconds = time.perf_counter() - start
np.save(sys.argv[2], K)
print(json.dumps([seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024]))
"""


def finite_ratios() -> dict[str, float]:
    """Four layers of 800 neurons, 60 inputs: by layers, by Jacobians and by columns, each in a process of its own."""
    found, kernels = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for method in ("layers", "jacobian", "columns"):
            place = str(Path(folder) / f"{method}.npy")
            run = subprocess.run(
                [sys.executable, "-c", FINITE_PROGRAM, method, place], capture_output=True, text=True, check=True
            )
            found[method], kernels[method] = json.loads(run.stdout), np.load(place)
            print(f"{method}: {found[method][0]:.2f} s, {found[method][1]:.0f} MB more than before")
    for method, kernel in kernels.items():
        gap = np.abs(kernel - kernels["layers"]).max() / np.abs(kernel).max()
        if not gap < 1e-10:
            raise AssertionError(f"the kernels by layers and {method} differ by {gap:.2g}, more than 1e-10")
    (seconds, memory), (others, theirs), (third, _) = (found[method] for method in ("layers", "jacobian", "columns"))
    print(f"memory of the Jacobians over that of the layers: {theirs / max(memory, 1.0):.0f}")
    return {"Jacobians (4 layers of 800, 60 inputs)": others / seconds, "columns": third / seconds}


def large(rows: int = 20_000, columns: int = 784) -> None:
    """A kernel of 400 million entries in single precision: time, and peak memory over the result's own."""
    X = np.random.default_rng(0).standard_normal((rows, columns)).astype(np.float32)
    start = time.perf_counter()
    K = ntk(X, dtype=np.float32)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        f"n = {rows}, float32: {time.perf_counter() - start:.1f} s, peak memory {peak / 1e9:.2f} GB, "
        f"of which the result {K.nbytes / 1e9:.2f} GB"
    )


def main() -> None:
    """Print the table."""
    if "--large" in sys.argv:
        large()
        return
    if "--layers" in sys.argv:
        print_ratios(finite_ratios(), 1.0, 1.0)
        return
    if "--threads" in sys.argv:
        print(f"load of the machine: {os.getloadavg()[0]:.2f}")
        print_ratios(thread_ratios(), 1.0, 1.0)
        return
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {0})  # one core for everybody
    print(f"load of the machine: {os.getloadavg()[0]:.2f}")
    print_ratios(ratios(), FLOOR)


if __name__ == "__main__":
    main()
