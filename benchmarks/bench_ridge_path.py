"""A path of 100 ridge penalties from one factorisation, against refitting scikit-learn's `Ridge` at each penalty.

Run `python benchmarks/bench_ridge_path.py`. Both sides solve p = n = 800 and must give the same coefficients to 1e-8.
"""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import Ridge

from limitlab.applied.forecast._measure import RidgePath
from timing import best, print_ratios

SIZE, PENALTIES, REPEATS = 800, 100, 2
FLOOR = 15.0


def problem(size: int = SIZE, penalties: int = PENALTIES) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, labels and penalties."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((size, size))
    y = X @ rng.standard_normal(size) / np.sqrt(size) + rng.standard_normal(size)
    return X, y, np.geomspace(1e-3, 1e3, penalties)


def path(X: np.ndarray, y: np.ndarray, ridges: np.ndarray) -> np.ndarray:
    """All coefficients from one factorisation."""
    return RidgePath(X, y).coefficients(ridges)


def refits(X: np.ndarray, y: np.ndarray, ridges: np.ndarray) -> np.ndarray:
    """All coefficients, one fit each."""
    return np.array([Ridge(alpha=len(X) * ridge, fit_intercept=False).fit(X, y).coef_ for ridge in ridges])


def ratios() -> dict[str, float]:
    """How many times faster the path is; fails if the two differ by more than 1e-8."""
    X, y, ridges = problem()
    path(*problem(50, 3))  # imports and first calls are not part of the comparison
    (seconds, others), (found, expected) = best(REPEATS, lambda: path(X, y, ridges), lambda: refits(X, y, ridges))
    gap = (np.abs(found - expected).max(axis=1) / np.abs(expected).max(axis=1)).max()
    if not gap < 1e-8:
        raise AssertionError(f"the coefficients differ by {gap:.2g}, more than 1e-8")
    print(
        f"{PENALTIES} penalties, p = n = {SIZE}: path {seconds:.3f} s, refits {others:.3f} s, largest difference {gap:.1e}"
    )
    return {f"refitting scikit-learn's Ridge at {PENALTIES} penalties (p = n = {SIZE})": others / seconds}


def main() -> None:
    """Print the table."""
    print_ratios(ratios(), FLOOR)


if __name__ == "__main__":
    main()
