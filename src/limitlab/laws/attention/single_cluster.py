"""At infinite temperature almost every start ends in one cluster.

Setting.  n tokens on the unit sphere of R^d with beta = 0: each is pulled to their mean, x_i' = P_{x_i} m, m = (x_1 + ... + x_n)/n.
Limit.    t -> infinity at fixed n and d, from almost every start (here: independent uniform tokens).
Result.   All tokens converge to one point: every overlap tends to 1, in the end like 1 - <x_i, x_j> ~ e^{-2t}
          (docs/theory/attention.md, eq. 6: the flow climbs |m|^2 / 2, whose other critical points are saddles).
Status.   Theorem (Geshkovski, Letrouit, Polyanskiy, Rigollet); the time it takes depends on the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from limitlab.laws import Draw, Law, Values, observable, parameter, shared

__all__ = ["SingleCluster"]


class SingleCluster(Law):
    """Do all tokens end in one cluster when every token attends to all alike?

    Examples
    --------
    >>> law = SingleCluster(tokens=6, dimension=3)
    >>> float(law.theory().smallest_overlap)
    1.0
    >>> law.simulate(size=30, seed=0).smallest_overlap.round(9).item()
    1.0
    """

    status = "theorem"
    regime = "t -> infinity at fixed numbers of tokens and dimensions, beta = 0"
    assumptions = (
        "Q = K = V = I and beta = 0: every token is pulled to the mean of all",
        "the start is not one of the exceptional ones, which have probability 0",
    )
    references = ("geshkovski2025mathematical",)
    observables = {
        "smallest_overlap": observable("smallest overlap of two tokens", r"\min_{ij}\langle x_i, x_j\rangle"),
        **shared("mean_overlap"),
    }
    size_meaning = "time t at which the overlaps are measured"
    finite_size_rate = 6.0  # faster than every power: what is left falls like e^{-2t}
    default_sizes = (8, 16, 32)
    default_seeds = 40

    tokens: int = parameter(6, "number of tokens", symbol="n", least=2)
    dimension: int = parameter(4, "dimension", note="of the tokens", symbol="d", least=2)

    @classmethod
    def check_points(cls) -> list[Self]:
        """More tokens than dimensions."""
        return [
            cls(tokens=6, dimension=4),
        ]

    def predicted(self) -> Values:
        """Every overlap is 1."""
        return {"smallest_overlap": 1.0, "mean_overlap": 1.0}

    def measured(self, draw: Draw) -> Values:
        """The overlaps of one random start at time `size`."""
        from limitlab.models.attention.clusters import mean_overlap, smallest_overlap

        gram = self._grams(draw.size, [draw])[0]
        return {"smallest_overlap": float(smallest_overlap(gram)), "mean_overlap": float(mean_overlap(gram))}

    def _grams(self, time: float, draws: Sequence[Draw]) -> NDArray[np.float64]:
        """Overlaps at a time, one system per draw."""
        from limitlab.models.attention.engines import random_tokens, token_paths

        start = [random_tokens(draw.rng, 1, self.tokens, self.dimension)[0] for draw in draws]
        x = token_paths(np.stack(start), 0.0, float(time))
        return np.asarray(x @ np.swapaxes(x, -1, -2))

    def collapsed(self, time: float, seeds: int, distance: float = 1e-6) -> float:
        """Share of random starts whose overlaps are all above 1 - distance at a time.

        >>> SingleCluster(tokens=6, dimension=3).collapsed(40.0, seeds=20)
        1.0
        """
        grams = self._grams(time, [self.draw(max(2, round(time)), seed) for seed in range(seeds)])
        smallest = grams.min(axis=(-2, -1))
        return float(np.mean(smallest > 1 - distance))
