"""Phase diagrams of clustering against a plain loop in NumPy, and 10,000 tokens against the unblocked form.

Run `python benchmarks/bench_attention.py`; add `full` for the whole diagram (90 temperatures, 64 systems, t up to 30), with its time.
The plain loop does what one would write first: for every system, classical Runge-Kutta of step 0.1 on the token vectors.
"""

from __future__ import annotations

import os
import sys

import numpy as np

from limitlab.models.attention import Attention, phase_diagram
from limitlab.models.attention.engines import random_grams, random_tokens
from timing import best, clock, print_ratios

TOKENS, DIMENSION, HORIZON, STEP = 32, 128, 30.0, 0.1
BETAS = (0.5, 3.0, 6.0, 9.0)
SYSTEMS = 2
FLOOR_DIAGRAM, FLOOR_BLOCKS = 10.0, 5.0


def plain_velocity(x: np.ndarray, beta: float) -> np.ndarray:
    """The tangent field of one system, as one would write it."""
    weights = np.exp(beta * (x @ x.T - 1))
    weights /= weights.sum(axis=1, keepdims=True)
    pulled = weights @ x
    return pulled - (pulled * x).sum(axis=1, keepdims=True) * x


def plain_diagram(starts: np.ndarray, betas: tuple[float, ...]) -> np.ndarray:
    """Share of close pairs over time, one system after the other."""
    steps = round(HORIZON / STEP)
    shares = np.zeros((len(betas), steps + 1))
    for row, beta in enumerate(betas):
        for x in starts:
            for k in range(steps + 1):
                shares[row, k] += ((x @ x.T > 0.999).sum() - TOKENS) / (TOKENS * (TOKENS - 1) * len(starts))
                k1 = plain_velocity(x, beta)
                k2 = plain_velocity(x + STEP / 2 * k1, beta)
                k3 = plain_velocity(x + STEP / 2 * k2, beta)
                k4 = plain_velocity(x + STEP * k3, beta)
                x = x + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
                x = x / np.linalg.norm(x, axis=1, keepdims=True)
    return shares


def our_diagram(betas: tuple[float, ...], systems: int, workers: int = 1) -> np.ndarray:
    """The same table by the Gram engine."""
    times = np.arange(0, HORIZON + STEP / 2, STEP)
    return phase_diagram(TOKENS, DIMENSION, betas, times, systems=systems, seed=0, workers=workers).pair_probability


def diagram_ratio() -> float:
    """Times faster per system; the same starts on both sides, and the same shares."""
    our_diagram((1.0,), 1)  # compilation is not part of the comparison
    rng = np.random.default_rng(np.random.SeedSequence([0, TOKENS, DIMENSION]))
    grams = random_grams(rng, SYSTEMS, TOKENS, DIMENSION)
    starts = np.zeros((SYSTEMS, TOKENS, DIMENSION))
    starts[:, :, :TOKENS] = np.linalg.cholesky(grams)  # vectors with these overlaps, in 128 dimensions
    (plain, ours), found = best(2, lambda: plain_diagram(starts, BETAS), lambda: our_diagram(BETAS, SYSTEMS))
    gap = np.abs(found[0] - found[1])
    if not (gap > 0.01).mean() < 0.01:  # a pair may cross the threshold one picture earlier or later
        raise AssertionError(f"the diagrams differ: {(gap > 0.01).mean():.3g} of the entries by more than 0.01")
    print(
        f"{len(BETAS)} temperatures, {SYSTEMS} systems, t up to {HORIZON:g}: plain loop {plain:.2f} s, Gram engine {ours:.2f} s"
    )
    return plain / ours


def unblocked(x: np.ndarray, beta: float) -> np.ndarray:
    """Softmax attention of all tokens at once, with its n x n temporaries."""
    scores = np.float32(beta) * (x @ x.T)
    scores = scores - scores.max(axis=1, keepdims=True)
    weights = np.exp(scores)
    weights = weights / weights.sum(axis=1, keepdims=True)
    return weights @ x


def block_ratio(tokens: int = 10_000) -> float:
    """Times faster for one right side with 10,000 tokens in three dimensions, float32 on both sides."""
    x = random_tokens(np.random.default_rng(0), 1, tokens, 3)[0].astype(np.float32)
    field = Attention(5.0)
    (plain, ours), found = best(3, lambda: unblocked(x, 5.0), lambda: field.drift(0.0, x))
    gap = float(np.abs(found[0] - found[1]).max())
    if not gap < 1e-4:
        raise AssertionError(f"the fields differ by {gap:.2g}")
    print(f"{tokens} tokens, d = 3, float32: unblocked {plain:.2f} s, blocked {ours:.2f} s, difference {gap:.1e}")
    return plain / ours


def ratios() -> dict[str, float]:
    """How many times faster limitlab is."""
    return {
        f"a plain NumPy loop over systems (phase diagram, n = {TOKENS}, d = {DIMENSION})": diagram_ratio(),
        "attention with n x n temporaries (10,000 tokens, d = 3)": block_ratio(),
    }


def main() -> None:
    """Print the table, or time the whole diagram."""
    if "full" in sys.argv[1:]:
        our_diagram((1.0,), 1)
        seconds, _ = clock(our_diagram, tuple(np.linspace(0.1, 9, 90)), 64, os.cpu_count() or 1)
        print(f"90 temperatures, 64 systems, t up to {HORIZON:g}, {os.cpu_count()} threads: {seconds:.1f} s")
        return
    print_ratios(ratios(), FLOOR_DIAGRAM, FLOOR_BLOCKS)


if __name__ == "__main__":
    main()
