"""What a population knows beyond its spectrum: unequal leverages and the spread of residuals, as functions of kappa.

The law of a random subset sees the targets through mean_i r_i(kappa)^2 / (1 - mean_i h_i(kappa))^2, where r = y - H y are the
residuals of a ridge fit to all points with ridge kappa and h the diagonal of H (docs/theory/learning_curves.md, eq. 4). Two
things can be read off the points themselves:

- with the leverage of each point in its own place, mean_i (r_i / (1 - h_i))^2, which at n = N is leave-one-out exactly;
- the spread of that mean over populations of N such points: the jackknife, std(e_i^2) / (mean(e_i^2) sqrt N).

Both depend on (n, ridge) through kappa only, so they are computed on a few dozen values of kappa and interpolated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.applied.forecast._spectrum import Spectrum

Array = NDArray[np.float64]

NODES = 48
RANGE = (1e-7, 1e2)
"""Values of kappa over the mean diagonal of the kernel between which the profile is computed."""

NEARLY_ONE = 1e-6
"""A point whose 1 - leverage is smaller than this decides its own prediction: leave-one-out says nothing there."""

COLUMNS = 256
"""Columns per matrix product."""


@dataclass(frozen=True)
class Profile:
    """Correction for unequal leverages and relative standard error of the mean, against log kappa.

    Attributes
    ----------
    log_kappa
        Nodes, increasing.
    log_correction
        Logarithm of mean (r / (1 - h))^2 over mean r^2 / (1 - mean h)^2; 0 where it means nothing.
    spread
        Standard deviation of the logarithm of mean (r / (1 - h))^2, by the jackknife.
    """

    log_kappa: Array
    log_correction: Array
    spread: Array

    def correction(self, kappa: Any) -> Array:
        """Factor that turns the law with the mean leverage into the one with the leverage of each point."""
        return np.exp(self._at(kappa, self.log_correction))

    def deviation(self, kappa: Any) -> Array:
        """Relative standard error of a predicted test error, from the finite number of points."""
        return self._at(kappa, self.spread)

    def _at(self, kappa: Any, values: Array) -> Array:
        from scipy.interpolate import PchipInterpolator

        low, high = self.log_kappa[[0, -1]]
        with np.errstate(divide="ignore"):
            place = np.clip(np.log(np.asarray(kappa, dtype=float)), low, high)
        return np.asarray(PchipInterpolator(self.log_kappa, values)(place))


def profile(spectrum: Spectrum, nodes: int = NODES) -> Profile:
    """The profile of a fitted population.

    Examples
    --------
    >>> from limitlab.applied.forecast._spectrum import from_features
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 5))
    >>> found = profile(from_features(X, X[:, :1] + rng.standard_normal((200, 1))))
    >>> bool(abs(found.correction(0.01) - 1) < 0.02), bool(0.05 < found.deviation(0.01) < 0.2)
    (True, True)
    """
    kappas = np.geomspace(*RANGE, nodes) * spectrum.mean_diagonal
    outputs = 1 if spectrum.targets is None else spectrum.targets.shape[1]
    pieces = np.array_split(kappas, max(1, -(-nodes * outputs // COLUMNS)))
    corrections, spreads = zip(*(_piece(spectrum, piece) for piece in pieces), strict=True)
    return Profile(np.log(kappas), np.concatenate(corrections), np.concatenate(spreads))


def _piece(spectrum: Spectrum, kappas: Array) -> tuple[Array, Array]:
    squares = (spectrum.residuals(kappas) ** 2).mean(axis=2)  # (N, kappas)
    gaps = 1 - spectrum.leverages(kappas)
    alone = np.maximum(gaps, NEARLY_ONE)
    left_out = squares / alone**2
    mean, plain = left_out.mean(axis=0), squares.mean(axis=0) / gaps.mean(axis=0) ** 2
    sensible = (gaps.min(axis=0) > NEARLY_ONE) & (plain > 0) & (mean > 0)
    correction = np.where(sensible, np.log(np.where(sensible, mean / np.where(plain > 0, plain, 1), 1)), 0.0)
    used = np.where(sensible, left_out, squares)
    size = used.mean(axis=0)
    spread = used.std(axis=0) / (np.where(size > 0, size, 1.0) * np.sqrt(len(used)))
    return correction, spread
