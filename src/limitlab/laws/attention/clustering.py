"""Clustering of random tokens: which share of the pairs has merged after t layers (claims J26, J27).

Setting.  n tokens drawn uniformly on the unit sphere of R^d, self-attention with Q = K = V = I. Two tokens are close when their
          overlap is above 1 - delta (`closeness`); P_pair(t) is the share of close pairs.
Limit.    d -> infinity at fixed n: all overlaps follow the equiangular law, and P_pair jumps from 0 to 1 at its collapse time
          t*(beta) (docs/theory/attention.md, eqs. 9, 12 and 13). In low dimension P_pair stalls between 0 and 1: several clusters live for
          a time that grows like exp(beta).
Result.   pair_probability = 1{t >= t*}, mean_overlap = g(t).
Status.   Theorem in the limit; finite dimensions are simulation.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab.laws.attention.equiangular import (
    GESHKOVSKI,
    collapse_time,
    largest_beta,
    overlap,
)
from limitlab.laws.base import Law, Status
from limitlab.laws.parameters import check_increasing, parameter
from limitlab.laws.results import Values

Array = NDArray[np.float64]


def critical_beta(times: ArrayLike, tokens: int, closeness: float = 1e-3) -> Array:
    """The boundary of the phase diagram: the largest beta whose tokens have collapsed by each time (0 where none has).

    >>> critical_beta([2.0, 10.0, 30.0], 32).round(4).tolist()
    [0.0, 5.1099, 6.9065]
    """
    soonest = float(collapse_time(closeness, tokens, 0.0))
    betas = [
        largest_beta(float(t), closeness, tokens) if t > soonest else 0.0 for t in np.ravel(np.asarray(times, dtype=float))
    ]
    return np.asarray(betas).reshape(np.shape(times))


def plateau_time(beta: ArrayLike, tokens: ArrayLike) -> Array:
    """Life time of the plateau for 1 << beta << n: (e^beta / 2n)(log((n-1)/beta) - 0.577 + 1/beta), independent of delta.

    >>> round(float(plateau_time(15.0, 2000) / collapse_time(1e-3, 2000, 15.0)), 2)
    0.99
    """
    b, n = np.asarray(beta, dtype=float), np.asarray(tokens, dtype=float)
    return np.asarray(np.exp(b) / (2 * n) * (np.log((n - 1) / b) - np.euler_gamma + 1 / b))[()]


def merging_time(overlap: ArrayLike, beta: ArrayLike, closeness: float = 1e-3) -> Array:
    """Life time of two clusters of equal mass with a given overlap: they move like two tokens, so it is exact in every dimension.

    It grows like e^{beta (1 - overlap)}: the further apart two clusters are, the longer they last.

    >>> merging_time(-0.5, [1.0, 5.0, 9.0]).round(1).tolist()
    [5.5, 212.9, 48744.8]
    """
    return collapse_time(closeness, 2, beta, overlap)


class TokenClustering(Law):
    """Which share of the pairs of random tokens has merged after t layers?

    With `dimension` left out, an experiment of size d is one system in d dimensions and tends to the limit. With a `dimension`, the
    experiment averages over `size` systems of that dimension: the way to phase diagrams in low dimension.

    Examples
    --------
    >>> law = TokenClustering(tokens=32, beta=5.0, times=(5.0, 20.0))
    >>> law.theory().pair_probability.values
    array([0., 1.])
    >>> low = law.replace(dimension=2).simulate(size=20, seed=0)
    >>> bool(0.3 < low.pair_probability[1] < 0.6)  # in the plane several clusters are left
    True
    """

    status: ClassVar[Status] = "theorem"
    regime: ClassVar[str] = "d -> infinity at a fixed number of tokens; at finite d a simulation"
    assumptions: ClassVar[tuple[str, ...]] = (
        "Q = K = V = I, no feed-forward layer",
        "tokens start independent and uniform on the sphere",
        "times away from the jump at the collapse time, which is smooth at finite d",
    )
    references: ClassVar[tuple[str, ...]] = (GESHKOVSKI,)
    claims: ClassVar[tuple[str, ...]] = ("J26", "J27")
    observables: ClassVar[tuple[str, ...]] = ("pair_probability", "mean_overlap")
    array_parameters: ClassVar[tuple[str, ...]] = ("tokens", "beta")
    path_parameters: ClassVar[tuple[str, ...]] = ("beta",)
    size_meaning: ClassVar[str] = "dimension d of the tokens; with `dimension` given, number of systems averaged"
    finite_size_rate: ClassVar[float] = 1.0
    default_sizes: ClassVar[tuple[int, ...]] = (128, 256, 512)
    default_seeds: ClassVar[int] = 30

    tokens: int = parameter(16, "number of tokens", symbol="n", least=2)
    dimension: int | None = parameter(None, "dimension of the tokens in a simulation; None: its size", symbol="d", least=2)
    beta: float = parameter(2.0, "inverse temperature of the attention", symbol=r"\beta", least=0, most=700)
    closeness: float = parameter(
        1e-3, "pairs with overlap above 1 minus this are close", symbol=r"\delta", above=0, below=1, scale="log"
    )
    times: float | tuple[float, ...] = parameter(
        (2.0, 4.0, 9.0), "time, in layers (one number or several)", symbol="t", least=0
    )

    @model_validator(mode="after")
    def _ordered_times(self) -> Self:
        check_increasing(self.times, repeats=True)
        return self

    def coordinates(self) -> dict[str, Any]:
        """The times at which pairs are counted."""
        return {"time": self.times}

    def evaluate(self, **grid: Any) -> Values:
        """The limit of infinite dimension, over a grid of token numbers and temperatures."""
        n, beta = self.arrays(grid, "tokens", "beta")
        if np.ndim(self.times):
            n, beta = n[..., None], beta[..., None]
        reached = np.asarray(self.times) >= collapse_time(self.closeness, n, beta)
        return {"pair_probability": reached.astype(float), "mean_overlap": overlap(np.asarray(self.times), n, beta)}

    def experiment(self, size: int, seed: int, **path: Any) -> Values:
        """One system in `size` dimensions, or the mean over `size` systems of the law's own dimension."""
        from limitlab.models.attention.clusters import mean_overlap, pair_fraction

        (beta,) = self.arrays(path, "beta")
        systems, dimension = (1, size) if self.dimension is None else (size, self.dimension)
        start = self._start(size, seed, systems, dimension)
        grams = [self._grams(start, b, dimension) for b in beta.ravel()]
        measured = {
            "pair_probability": [pair_fraction(g, self.closeness).mean(axis=-1) for g in grams],
            "mean_overlap": [mean_overlap(g).mean(axis=-1) for g in grams],
        }
        shaped = {name: np.asarray(rows).reshape(*beta.shape, -1) for name, rows in measured.items()}
        return shaped if np.ndim(self.times) else {name: rows[..., 0] for name, rows in shaped.items()}

    def _start(self, size: int, seed: int, systems: int, dimension: int) -> Array:
        from limitlab.models.attention.engines import random_grams, random_tokens

        draw = random_grams if dimension >= self.tokens else random_tokens
        return draw(self.rng(size, seed), systems, self.tokens, dimension)

    def _grams(self, start: Array, beta: float, dimension: int) -> Array:
        """Overlaps over time, shape (times, systems, n, n)."""
        from limitlab.models.attention.engines import gram_flow, token_paths

        times = np.atleast_1d(np.asarray(self.times, dtype=float))
        if dimension >= self.tokens:
            return gram_flow(start, float(beta), times, tolerance=1e-7)
        paths = token_paths(start, float(beta), times, tolerance=1e-7)
        return np.asarray(paths @ np.swapaxes(paths, -1, -2))

    def collapse_time(self) -> float:
        """Time of the jump of pair_probability in the limit."""
        return float(collapse_time(self.closeness, self.tokens, self.beta))
