"""Large data by small parts: disjoint random subsets, each with an exact decomposition, whose forecasts are averaged.

Six subsets of a thousand points cost seconds whatever N is, and on images they were closer than a Nystrom approximation of the same cost
(docs/theory/learning_curves.md). Beyond the size of a subset the forecast is an extrapolation, and says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.applied.forecast._curves import Errors, Population

Array = NDArray[np.float64]

SUBSETS, SUBSET_SIZE = 6, 1000


@dataclass(frozen=True)
class Ensemble(Population):
    """Several populations of one size, drawn from the same data; its own spectrum is that of the first.

    Parameters
    ----------
    parts
        The populations.
    """

    parts: tuple[Population, ...] = field(default=())

    def errors(self, samples: Any, ridge: Any, corrected: bool = True, quick: bool = False) -> Errors:
        """Errors averaged over the parts; their deviation is that of the average."""
        found = [part.errors(samples, ridge, corrected, quick) for part in self.parts]
        mean = Errors(*(np.mean([one[i] for one in found], axis=0) for i in range(len(found[0]))))
        each = np.sqrt(np.mean([one.deviation**2 for one in found], axis=0) / len(self.parts))
        return mean._replace(deviation=each)

    def backtest(self, ridge: Any, corrected: bool = True) -> tuple[Array, Array]:
        """What halves of each part say about the part: forecasts over (half of any part, ridge), and the mean error left out."""
        pairs = [part.backtest(ridge, corrected) for part in self.parts]
        reference = np.mean([truth for _, truth in pairs], axis=0)
        return np.concatenate([guess / truth for guess, truth in pairs]) * reference, reference


def subset_rows(total: int, subsets: int, size: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Disjoint random subsets of the rows, as many as there are points for.

    >>> [len(rows) for rows in subset_rows(2500, 6, 1000, np.random.default_rng(0))]
    [1000, 1000]
    """
    order = rng.permutation(total)
    count = max(1, min(subsets, total // size))
    return [np.sort(order[i * size : (i + 1) * size]) for i in range(count)]
