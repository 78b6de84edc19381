"""When to believe a forecast: how unequal the leverages are, and what that has meant on real data.

The law replaces the leverage h_i of every point by the mean. The coefficient of variation of 1 - h_i over the data says how
wrong that is. On digits and diabetes, with linear, random-feature, Gaussian and arc-cosine kernels and the largest subsets, a
coefficient of at most 0.03 went with errors of the forecast of at most 3 %, and one of 0.25 or more with errors from 2 % to
59 %, the large ones at ridge 0 (docs/theory/learning_curves.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.applied.forecast._spectrum import Spectrum

Array = NDArray[np.float64]

TRUSTED, DOUBTED = 0.03, 0.25
"""Coefficients of variation of 1 - leverage up to which the law was right within 3 %, and from which it could be far off."""

SMALLEST_RIDGE = 1e-6
"""Over the mean diagonal of the kernel: leverages at ridge 0 are taken here (without ridge they are all 0 or 1)."""


class ForecastWarning(UserWarning):
    """A forecast that should not be trusted as it stands."""


def leverage_variation(spectrum: Spectrum, ridge: Any) -> Array:
    """Coefficient of variation of 1 - h_i of the fit to all points, for every ridge.

    >>> from limitlab.applied.forecast._spectrum import from_features
    >>> equal = from_features(np.array([[1.0], [-1.0], [1.0], [-1.0]]), np.ones((4, 1)))
    >>> leverage_variation(equal, [0.0, 1.0]).round(12).tolist()
    [0.0, 0.0]
    """
    lam = np.maximum(np.atleast_1d(np.asarray(ridge, dtype=float)), SMALLEST_RIDGE * spectrum.mean_diagonal)
    gaps = 1 - spectrum.leverages(lam)
    mean = gaps.mean(axis=0)
    return np.asarray(gaps.std(axis=0) / np.where(mean > 0, mean, 1.0))


def left_out_error(spectrum: Spectrum, ridge: Any) -> tuple[Array, Array]:
    """Generalised cross-validation and leave-one-out error of the fit to all points, for every ridge above 0."""
    lam = np.maximum(np.atleast_1d(np.asarray(ridge, dtype=float)), SMALLEST_RIDGE * spectrum.mean_diagonal)
    gaps = 1 - spectrum.leverages(lam)
    squares = (spectrum.residuals(lam) ** 2).mean(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return squares.mean(axis=0) / gaps.mean(axis=0) ** 2, (squares / gaps**2).mean(axis=0)


def diagnosed(spectrum: Spectrum, ridge: Any) -> dict[str, NDArray[Any]]:
    """Variation of the leverages with its verdict, and both cross-validation errors, for every ridge."""
    variation = leverage_variation(spectrum, ridge)
    gcv, left_out = left_out_error(spectrum, ridge)
    words = np.array([verdict(value) for value in variation], dtype=object)
    return dict(leverage_variation=variation, gcv=gcv, leave_one_out=left_out, verdict=words)


def verdict(variation: float) -> str:
    """What a coefficient of variation of the leverages means, in one word.

    >>> verdict(0.01), verdict(0.1), verdict(0.4)
    ('trusted', 'fair', 'doubtful')
    """
    return "trusted" if variation <= TRUSTED else "fair" if variation < DOUBTED else "doubtful"


def explain(variation: float, ridge: float) -> str:
    """The same in a sentence.

    >>> explain(0.01, 0.1)
    'at ridge 0.1 the points have nearly equal leverage (variation 0.01): forecasts like this one were right within 3%'
    """
    at = f"at ridge {ridge:.3g} "
    if verdict(variation) == "trusted":
        return f"{at}the points have nearly equal leverage (variation {variation:.2f}): forecasts like this one were right within 3%"
    if verdict(variation) == "fair":
        return f"{at}leverages differ somewhat (variation {variation:.2f}): expect the law to be right within about 10%"
    return (
        f"{at}a few points decide much of the fit (leverage variation {variation:.2f}): forecasts like this one were off by "
        "2% to 59%; use a larger ridge, or check with real fits (measure)"
    )


def doubts(spectrum: Spectrum, samples: Array, ridge: Array) -> list[str]:
    """What speaks against a forecast at these points, one sentence each; nothing for a trusted one."""
    found = []
    rank = spectrum.rank
    if (ridge == 0).any() and ((samples > rank / 2) & (samples < 2 * rank)).any():
        found.append(
            f"at ridge 0 and n within a factor 2 of the {rank} directions of the kernel, forecasts were off by -41% to +44%: "
            "use a positive ridge"
        )
    if spectrum.vectors is not None:
        least = float(ridge.min())  # leverages are the more unequal, the smaller the ridge
        variation = float(leverage_variation(spectrum, least)[0])
        if variation >= DOUBTED:
            found.append(explain(variation, least))
    return found
