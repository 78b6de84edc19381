"""One-pass SGD of a wide network on two Gaussians against a plain NumPy loop over samples (and the equation it follows).

Run `python benchmarks/bench_mean_field.py`. N = 800 neurons in 40 dimensions. The rate of drawing the samples alone is printed as the roof,
with the share of it that the training reaches: a step costs 2 N d multiplications, a sample only d Gaussian numbers.
"""

from __future__ import annotations

import time

import numpy as np

from limitlab._core.cost import single_threaded
from limitlab.laws import TwoGaussians
from limitlab.laws.mean_field._training import ramp_sgd
from timing import print_ratios

WIDTH, DIMENSION, SAMPLES, STEP = 800, 40, 20_000, 3e-5
SEPARATION, KNOTS, LEVELS = 0.8, (0.5, 1.5), (-2.5, 7.5)


def start() -> np.ndarray:
    """Weights at the start."""
    return np.random.default_rng(0).standard_normal((WIDTH, DIMENSION)) * 0.8 / np.sqrt(DIMENSION)


def compiled() -> float:
    """Samples per second of the library."""
    rng, weights = np.random.default_rng(1), start()
    begin = time.process_time()
    for _ in ramp_sgd(rng, weights, SEPARATION, KNOTS, LEVELS, STEP, [SAMPLES]):
        pass
    return SAMPLES / (time.process_time() - begin)


def plain_loop(samples: int = 5000) -> float:
    """Samples per second of the loop one would write: one sample at a time, whole-array operations."""
    rng, w = np.random.default_rng(1), start()
    begin = time.process_time()
    for _ in range(samples):
        y = 1.0 if rng.random() < 0.5 else -1.0
        step(w, (1 + y * SEPARATION) * rng.standard_normal(DIMENSION), y)
    return samples / (time.process_time() - begin)


def step(w: np.ndarray, x: np.ndarray, y: float) -> None:
    """One step of the plain loop, in place."""
    slope = (LEVELS[1] - LEVELS[0]) / (KNOTS[1] - KNOTS[0])
    z = w @ x
    output = (LEVELS[0] + slope * (np.clip(z, *KNOTS) - KNOTS[0])).mean()
    active = (z > KNOTS[0]) & (z < KNOTS[1])
    w[active] += (2 * STEP * (y - output) * slope) * x


def check(samples: int = 300) -> None:
    """Both give the same weights from the same samples."""
    ours = next(iter(ramp_sgd(np.random.default_rng(2), start(), SEPARATION, KNOTS, LEVELS, STEP, [samples])))
    rng, w = np.random.default_rng(2), start()
    labels = rng.integers(0, 2, samples) * 2.0 - 1.0
    for x, y in zip(rng.standard_normal((samples, DIMENSION)) * (1 + SEPARATION * labels)[:, None], labels, strict=True):
        step(w, x, y)
    np.testing.assert_allclose(ours, w, rtol=1e-9, atol=1e-12)


def roof() -> float:
    """Samples per second if drawing them were all."""
    rng = np.random.default_rng(1)
    begin = time.process_time()
    for _ in range(20):
        y = rng.integers(0, 2, 4096) * 2.0 - 1.0
        x = rng.standard_normal((4096, DIMENSION))
        x *= (1 + SEPARATION * y)[:, None]
    return 20 * 4096 / (time.process_time() - begin)


def equation() -> float:
    """Seconds for the mean-field equation to t = 10."""
    law = TwoGaussians(times=(1.0, 10.0))
    begin = time.process_time()
    law.theory()
    return time.process_time() - begin


def ratios() -> dict[str, float]:
    """How many times faster the compiled training is than the loop."""
    next(
        iter(ramp_sgd(np.random.default_rng(0), start(), SEPARATION, KNOTS, LEVELS, STEP, [2]))
    )  # compiled before it is timed
    TwoGaussians(times=0.01).theory()
    check()
    with single_threaded():
        ours, plain, limit = (max(measure() for _ in range(3)) for measure in (compiled, plain_loop, roof))
        seconds = equation()
    print(
        f"samples/s at N = {WIDTH}, d = {DIMENSION}: compiled {ours:.3g}, plain loop {plain:.3g}, roof of drawing {limit:.3g}"
    )
    print(
        f"training reaches {ours / limit:.1%} of the roof; the equation to t = 10 takes {seconds:.2g} s, SGD {10 / STEP / ours:.2g} s"
    )
    return {f"a plain NumPy loop over samples (N = {WIDTH}, d = {DIMENSION})": ours / plain}


def main() -> None:
    """Print the table."""
    print_ratios(ratios(), 1.5)


if __name__ == "__main__":
    main()
