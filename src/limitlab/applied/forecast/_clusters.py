"""Whether the rows of a table come in groups of similar rows, such as several rows of each patient.

The distance of a row to its k-th neighbour grows like k^(1/d), where d is the dimension of the inputs at this scale. The ratio of the
distances to the neighbours j and k estimates d, because its logarithm has the mean (digamma(k) - digamma(j)) / d (Levina and Bickel 2004).
In most tables d falls with the scale, because small distances are those of noise in all columns. If rows come in groups, the distances jump
from the neighbours inside the group to those outside, and d is small at the scale of this jump and larger beyond.

The error of fits to random rows then falls late, because a row is predicted well only if its group has a training row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SCALES = (1, 2, 4, 8, 16)
"""Numbers of the neighbours."""

JUMP = 1.4
"""The rows are grouped if the dimension at a scale is this factor above that at a smaller scale.

In 36 tables without groups the largest factor was 1.24, and in a table with groups it was 1.6 to 2.3.
"""

MOSTLY = 0.5
"""Smallest share of different values in a column that is used."""

FEWEST, MOST_ASKED, MOST_KNOWN = 50, 1000, 5000
"""Smallest number of rows, and largest numbers of rows whose neighbours are computed and among which they are searched."""


def dimensions(X: Any, seed: int = 0) -> NDArray[np.float64]:
    """Return the dimension of the inputs at each scale, from small to large distances.

    >>> points = np.random.default_rng(0).standard_normal((1000, 3))
    >>> dimensions(points).round().tolist()
    [3.0, 3.0, 3.0, 3.0]
    """
    from scipy.special import digamma
    from sklearn.neighbors import NearestNeighbors

    rows = np.asarray(X, dtype=float)
    rng = np.random.default_rng([seed, 12])
    known = rows[rng.permutation(len(rows))[:MOST_KNOWN]]
    search = NearestNeighbors(n_neighbors=SCALES[-1] + 1).fit(known)
    distances = search.kneighbors(known[:MOST_ASKED])[0][:, 1:]
    distances = distances[distances[:, 0] > 0]  # copies of a row have no scale
    if len(distances) < FEWEST:
        return np.full(len(SCALES) - 1, np.nan)
    logs = np.log(distances[:, np.array(SCALES) - 1]).mean(axis=0)
    return np.asarray(np.diff(digamma(SCALES)) / np.maximum(np.diff(logs), 1e-12))


def grouped_rows(X: Any) -> bool:
    """Return whether the rows come in groups of similar rows.

    Only columns whose values mostly differ are used, because columns with few values make groups of equal rows by chance.

    >>> rng = np.random.default_rng(0)
    >>> centres = rng.standard_normal((100, 4))
    >>> grouped_rows(np.repeat(centres, 3, axis=0) + 0.1 * rng.standard_normal((300, 4))), grouped_rows(centres)
    (True, False)
    """
    rows = np.asarray(X, dtype=float)
    if len(rows) < FEWEST or rows.ndim != 2:
        return False
    some = rows[:MOST_ASKED]
    different = 1 + (np.diff(np.sort(some, axis=0), axis=0) > 0).sum(axis=0)
    rows = rows[:, different > MOSTLY * len(some)]
    if rows.shape[1] == 0:
        return False
    found = dimensions(rows)
    if not np.isfinite(found).all():
        return False
    return bool((found[1:] / np.minimum.accumulate(found)[:-1]).max() > JUMP)
