"""Scores of the model that nobody trained: what fits to random subsets would say about every point.

Left out of the fit to all points, point i has the score m_i = y_i - e_i, e_i = r_i / (1 - h_i) (docs/theory/learning_curves.md, eq. 13).
A fit to n of the points scatters around it, because other points were drawn: to first order by

    g = (H(xi e) - h xi e) / (1 - h),      xi_j = (1[j drawn] - p) / sqrt(p (1 - p)),      p = min(n/N, 1/2),             (14)

with the same xi for every output. One number scales all g so that mean (m + g - y)^2 is the test error that the law predicts for n points.
Whatever is a function of scores and labels (error rate, area under the curve, a cost) is averaged over such draws. A measured heuristic:
how good it is stands on the same page.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.applied.forecast._spectrum import Spectrum
from limitlab.numerics.equivalents import learned

Array = NDArray[Any]
Metric = Callable[[Array, Array], float]

DRAWS = 96
"""Surrogate training sets: with half as many, error rates still moved by 2 %."""

NEARLY_ONE = 1e-6


def left_out(spectrum: Spectrum, kappa: float) -> tuple[Array, Array]:
    """Leave-one-out residuals e (N x outputs) and leverages h of the fit to all points with ridge kappa."""
    at = np.array([kappa])
    leverages = spectrum.leverages(at)[:, 0]
    return spectrum.residuals(at)[:, 0, :] / np.maximum(1 - leverages, NEARLY_ONE)[:, None], leverages


def smoothed(spectrum: Spectrum, kappa: float, values: Array) -> Array:
    """H = K (K + N kappa)^-1 times columns."""
    assert spectrum.vectors is not None
    share = learned(np.array([kappa]), spectrum.eigenvalues)[0]
    inside = spectrum.vectors.T @ values
    kept = spectrum.vectors @ ((share[:-1] - share[-1])[:, None] * inside)
    return np.asarray(kept + share[-1] * values)


def surrogate_scores(
    spectrum: Spectrum, samples: float, kappa: float, error: float, rng: np.random.Generator, draws: int = DRAWS
) -> Array:
    """Scores of every point by fits to `samples` other points, shape (draws, N, outputs).

    Parameters
    ----------
    spectrum
        The population of N points.
    samples, kappa, error
        n, its effective ridge, and the mean square that the scores shall have (the law's test error).
    rng, draws
        Which points are drawn, and how often.

    Examples
    --------
    >>> from limitlab.applied.forecast._spectrum import from_features
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 5))
    >>> spectrum = from_features(X, np.sign(X[:, :1]))
    >>> scores = surrogate_scores(spectrum, 40, 0.1, 0.5, rng)
    >>> scores.shape, round(float(np.mean((scores - spectrum.targets) ** 2)), 2)
    ((96, 100, 1), 0.5)
    """
    assert spectrum.targets is not None
    residuals, leverages = left_out(spectrum, kappa)
    total = len(residuals)
    drawn = max(1, round(min(samples / total, 0.5) * total))
    p = drawn / total
    marks = np.full((total, draws), -p)
    for column in range(draws):
        marks[rng.permutation(total)[:drawn], column] += 1
    marks /= np.sqrt(p * (1 - p))
    pushed = marks[:, :, None] * residuals[:, None, :]  # one xi for all outputs
    field = smoothed(spectrum, kappa, pushed.reshape(total, -1)).reshape(pushed.shape) - leverages[:, None, None] * pushed
    field /= np.maximum(1 - leverages, NEARLY_ONE)[:, None, None]
    mean = float(np.mean(residuals**2))
    size = float(np.mean(field**2))
    scale = np.sqrt(max(error - mean, 0.0) / size) if size > 0 else 0.0
    return np.moveaxis((spectrum.targets - residuals)[:, None, :] + scale * field, 1, 0)


# -- functions of scores and labels ------------------------------------------------------------------------------------------


def error_rate(scores: Array, targets: Array) -> float:
    """Share of wrong labels: by the sign of one output, by the largest of several.

    >>> error_rate(np.array([[0.2], [-0.1], [0.3]]), np.array([[1.0], [1.0], [1.0]])).__round__(3)
    0.333
    """
    if targets.shape[1] == 1:
        return float(np.mean((scores[:, 0] > 0) != (targets[:, 0] > 0)))
    return float(np.mean(scores.argmax(axis=1) != targets.argmax(axis=1)))


def accuracy(scores: Array, targets: Array) -> float:
    """Share of right labels."""
    return 1.0 - error_rate(scores, targets)


def auc(scores: Array, targets: Array) -> float:
    """Area under the curve of true against false positives; several outputs: each against the rest, averaged.

    >>> auc(np.array([[0.1], [0.4], [0.35], [0.8]]), np.array([[-1.0], [-1.0], [1.0], [1.0]]))
    0.75
    """
    from scipy.stats import rankdata

    ranks = rankdata(scores, axis=0)
    positive = targets > 0 if targets.shape[1] == 1 else targets > 0.5
    ones = positive.sum(axis=0)
    zeros = len(targets) - ones
    sums = np.where(positive, ranks, 0).sum(axis=0) - ones * (ones + 1) / 2
    return float(np.mean(sums / (ones * zeros)))


def mean_square(scores: Array, targets: Array) -> float:
    """Mean squared error of the scores."""
    return float(np.mean((scores - targets) ** 2))


METRICS: dict[str, Metric] = {"mse": mean_square, "error": error_rate, "accuracy": accuracy, "auc": auc}
