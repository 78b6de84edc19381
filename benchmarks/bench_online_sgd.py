"""Full-vector online SGD batched over seeds against a plain NumPy loop over samples.

Run `python benchmarks/bench_online_sgd.py`. Phase retrieval, N = 1000, 100 seeds. Drawing the samples is most of the work; the rate of
NumPy's generator alone is measured beside it. The exact chain, whose step does not depend on N, is timed beside it.
"""

from __future__ import annotations

import time

import numpy as np

from limitlab._core.cost import single_threaded
from limitlab.models.activations import Activation
from limitlab.models.online import TeacherStudent, full_overlap_paths, overlap_path
from timing import print_ratios

SIZE, SEEDS, STEPS, STEP = 1000, 100, 200, 0.02
CHAIN_STEPS = 2_000_000
MODEL = TeacherStudent(Activation("square"), Activation("square"))


def batched() -> float:
    """Samples per second of the library."""
    rngs = [np.random.default_rng(seed) for seed in range(SEEDS)]
    start = time.process_time()
    full_overlap_paths(rngs, MODEL, 0.3, SIZE, STEP, [STEPS])
    return SEEDS * STEPS / (time.process_time() - start)


def plain_loop(samples: int = 4000) -> float:
    """Samples per second of the loop one would write: one vector, one sample at a time."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(SIZE)
    x /= np.linalg.norm(x)
    start = time.process_time()
    for _ in range(samples):
        a = rng.standard_normal(SIZE)
        w = a @ x
        gradient = -4 * (a[0] ** 2 - w**2) * w * a
        x = x - STEP / SIZE * (gradient - (gradient @ x) * x)
        x /= np.linalg.norm(x)
    return samples / (time.process_time() - start)


def roof() -> float:
    """Samples per second if drawing them with NumPy were all."""
    rng, rows = np.random.default_rng(0), np.empty((500, SIZE), dtype=np.float32)
    start = time.process_time()
    for _ in range(10):
        rng.standard_normal(out=rows, dtype=np.float32)
    return 5000 / (time.process_time() - start)


def chain() -> float:
    """Steps per second of the exact chain."""
    model, counts = MODEL.compiled(), np.array([CHAIN_STEPS])
    start = time.process_time()
    overlap_path(np.random.default_rng(0), model, 0.3, 10**6, STEP, counts)
    return CHAIN_STEPS / (time.process_time() - start)


def ratios() -> dict[str, float]:
    """How many times faster the batched run is than the alternatives."""
    rng = np.random.default_rng(0)
    full_overlap_paths([rng], MODEL, 0.3, 50, STEP, [2])  # compiled before it is timed
    overlap_path(rng, MODEL.compiled(), 0.3, 50, STEP, np.array([2]))
    with single_threaded():
        ours, plain, limit = (max(measure() for _ in range(3)) for measure in (batched, plain_loop, roof))
        steps = chain()
    print(f"samples/s at N = {SIZE}: batched {ours:.3g}, plain loop {plain:.3g}, NumPy's drawing alone {limit:.3g}")
    print(f"exact chain: {steps:.3g} steps/s at N = 10^6")
    found = {f"a plain NumPy loop over samples (N = {SIZE}, {SEEDS} seeds)": ours / plain}
    found["only drawing the samples with NumPy's generator, single precision"] = ours / limit
    found["full vectors, with the exact chain (same law, N = 1000)"] = steps / ours
    return found


def main() -> None:
    """Print the table."""
    print_ratios(ratios())


if __name__ == "__main__":
    main()
