"""The ridge law on a 200 x 200 grid of ratios and penalties in one call, against a loop of `law.theory()` calls.

Run `python benchmarks/bench_sweep.py`. The loop is timed on a sample of 200 grid points and extrapolated to all 40,000.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from limitlab.lab import sweep
from limitlab.laws import Ridge
from timing import best, print_ratios

POINTS, SAMPLE, REPEATS = 200, 200, 3
FLOOR = 200.0
LAWS = {
    "isotropic": Ridge(noise=0.5),
    "three groups": Ridge(noise=0.5, eigenvalues=(0.2, 1.0, 3.0), weights=(0.3, 0.4, 0.3), signal_energy=(0.5, 1.0, 0.2)),
}


def ratios() -> dict[str, float]:
    """How many times faster the grid is, for each law; fails if the two differ by more than 1e-9."""
    ratio, ridge = np.geomspace(0.1, 10, POINTS), np.geomspace(1e-4, 1e2, POINTS)
    chosen = np.random.default_rng(0).integers(0, POINTS, (SAMPLE, 2))
    measured = {}
    for name, law in LAWS.items():
        law.theory(), sweep(law, over={"ratio": ratio[:2], "ridge": ridge[:2]})  # first calls are not part of the comparison
        (seconds, sampled), (grid, single) = best(
            REPEATS,
            partial(sweep, law, {"ratio": ratio, "ridge": ridge}),
            partial(loop_over, law, ratio[chosen[:, 0]], ridge[chosen[:, 1]]),
        )
        gap = max(abs(float(grid.test_error[i, j] / one.test_error) - 1) for (i, j), one in zip(chosen, single, strict=True))
        if not gap < 1e-9:
            raise AssertionError(f"grid and loop differ by {gap:.2g}, more than 1e-9")
        loop = sampled / SAMPLE * POINTS**2
        print(
            f"{name}: {POINTS**2} points in {seconds:.4f} s; loop {loop:.1f} s, extrapolated from {SAMPLE} calls; gap {gap:.1e}"
        )
        measured[f"a loop of theory() over {POINTS} x {POINTS} ratios and penalties, {name} (extrapolated)"] = loop / seconds
    return measured


def loop_over(law: Ridge, ratios_: np.ndarray, ridges: np.ndarray) -> list:
    """The theory point by point."""
    return [law.replace(ratio=ratio, ridge=ridge).theory() for ratio, ridge in zip(ratios_, ridges, strict=True)]


def main() -> None:
    """Print the table."""
    print_ratios(ratios(), *[FLOOR] * len(LAWS))


if __name__ == "__main__":
    main()
