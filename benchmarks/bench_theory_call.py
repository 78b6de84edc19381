"""The ridge law at 1,000 points, in one call and in a loop of `Ridge(...).theory()`, against SciPy at every point.

Run `python benchmarks/bench_theory_call.py`. The alternative is what one writes down from the paper: `brentq` for the effective ridge,
then the formulas for bias and variance. It gives bare numbers; a loop of laws gives labelled results with accuracy and provenance, which
costs more than the equation itself; many points belong into one call.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from limitlab.laws import Ridge
from timing import best, print_ratios

POINTS = 1000
SPECTRUM = dict(eigenvalues=(0.2, 1.0, 3.0), weights=(0.3, 0.4, 0.3), signal_energy=(0.5, 1.0, 0.2))


def points() -> list[tuple[float, float]]:
    """Ratios and penalties."""
    rng = np.random.default_rng(0)
    return list(zip(rng.uniform(0.3, 3, POINTS).tolist(), rng.uniform(0.05, 1, POINTS).tolist(), strict=True))


def ours() -> list[float]:
    """Labelled results, one at a time."""
    return [float(Ridge(ratio=ratio, ridge=ridge, noise=0.5, **SPECTRUM).theory().test_error) for ratio, ridge in points()]


def at_once() -> list[float]:
    """All points in one call."""
    ratio, ridge = np.array(points()).T
    return Ridge(noise=0.5, **SPECTRUM).evaluate(ratio=ratio, ridge=ridge)["test_error"].tolist()


def by_hand() -> list[float]:
    """The equations with SciPy."""
    s, w, b = (np.array(SPECTRUM[name]) for name in ("eigenvalues", "weights", "signal_energy"))

    def excess(k: float, ratio: float, ridge: float) -> float:
        return float(k * (1 - np.sum(ratio * w * s / (s + k))) - ridge)

    found = []
    for ratio, ridge in points():
        kappa = brentq(excess, ridge, ridge + 10 * ratio * 3, args=(ratio, ridge), xtol=1e-14)
        df2 = np.sum(ratio * w * s**2 / (s + kappa) ** 2)
        bias = kappa**2 * np.sum(b * s / (s + kappa) ** 2) / (1 - df2)
        found.append(float(bias + 0.25 * df2 / (1 - df2) + 0.25))
    return found


def ratios() -> dict[str, float]:
    """How many times faster the loop of laws is."""
    ours(), by_hand(), at_once()
    (mine, theirs, call), results = best(3, ours, by_hand, at_once)
    gap = max(float(np.abs(np.array(found) / np.array(results[1]) - 1).max()) for found in results)
    if not gap < 1e-9:
        raise AssertionError(f"they differ by {gap:.2g}, more than 1e-9")
    print(
        f"{POINTS} points: loop {1e3 * mine:.0f} ms, by hand {1e3 * theirs:.0f} ms, one call {1e3 * call:.1f} ms; gap {gap:.1e}"
    )
    return {
        f"brentq and the formulas at {POINTS} points, one call of ours": theirs / call,
        "the same, a loop of theory() (limitlab also returns labels, accuracy and provenance)": theirs / mine,
    }


def main() -> None:
    """Print the table."""
    print_ratios(ratios())


if __name__ == "__main__":
    main()
