"""A 20 x 20 table of test errors over points and ridges on 2,000 images of MNIST: one forecast, against fitting models.

Run `python benchmarks/bench_forecast.py`. Two rivals, both with 5 random splits and a Gaussian kernel:

- scikit-learn's `learning_curve` on `KernelRidge`, a fit for every number of points, ridge and split;
- a careful user, who reuses one eigendecomposition for all ridges of a split.

Both are timed on one split, scikit-learn at one ridge, and scaled to all splits and ridges, in which their time is linear. The
forecast is timed whole: kernel matrix, decomposition, 400 errors.
"""

from __future__ import annotations

import warnings

import numpy as np

from limitlab.applied import Forecast, compare_with_sklearn
from limitlab.models.datasets import prepared
from timing import clock, print_ratios

IMAGES = 2000
SAMPLES, RIDGES, SPLITS = np.linspace(90, 1800, 20).round().astype(int), np.geomspace(1e-3, 1.0, 20), 5
FLOOR = 30.0


def ratios() -> dict[str, float]:
    """How many times faster the forecast is; fails if it differs from the sampled fits by more than 20 %."""
    X, y = (part[:IMAGES] for part in prepared("mnist"))
    warm = Forecast("rbf").fit(X[:200], y[:200])
    warm.predict_error([50], [0.1], corrected=True)  # imports and first calls are not part of the comparison
    compare_with_sklearn(X[:200], y[:200], [50], [0.1], splits=1), warm.measure([50], [0.1], splits=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, (forecast, table) = clock(forecast_table, X, y)
    middle = RIDGES[len(RIDGES) // 2]
    fits, sampled = clock(compare_with_sklearn, X, y, SAMPLES, [middle], "rbf", None, 1)
    fits *= RIDGES.size * SPLITS
    careful, _ = clock(forecast.measure, SAMPLES, RIDGES, 1)
    careful *= SPLITS
    gap = np.abs(table.corrected_test_error.sel(ridge=middle).values / sampled.test_error.values[:, 0] - 1).max()
    if not gap < 0.2:
        raise AssertionError(f"forecast and one real split differ by {gap:.2g}, more than 0.2")
    print(
        f"MNIST, N = {len(X)}, {SAMPLES.size} x {RIDGES.size} table: forecast {seconds:.1f} s; scikit-learn {fits:.0f} s and a careful "
        f"user {careful:.0f} s, both scaled up from one split; largest difference to one real split {gap:.1%}"
    )
    table_size = f"{SAMPLES.size} x {RIDGES.size} points and ridges"
    return {
        f"fitting scikit-learn's KernelRidge for {table_size}, {SPLITS} splits (one ridge and split timed, scaled)": fits
        / seconds,
        f"one eigendecomposition per split for all ridges (one of {SPLITS} timed, scaled)": careful / seconds,
    }


def forecast_table(X: np.ndarray, y: np.ndarray):
    """The whole table from nothing, with the correction for leverages."""
    forecast = Forecast("rbf").fit(X, y)
    return forecast, forecast.predict_error(SAMPLES, RIDGES, corrected=True)


def main() -> None:
    """Print the table."""
    print_ratios(ratios(), FLOOR)


if __name__ == "__main__":
    main()
