"""The share of pairs of random tokens that has merged after t layers.

Setting.  n tokens drawn uniformly on the unit sphere of R^d, self-attention with Q = K = V = I. Two tokens are close when their
          overlap is above 1 - delta (`closeness`); P_pair(t) is the share of close pairs.
Limit.    d -> infinity at fixed n: all overlaps follow the equiangular law, and P_pair jumps from 0 to 1 at its collapse time
          t*(beta) (docs/theory/attention.md, eqs. 9, 12 and 13). In low dimension P_pair stays between 0 and 1 for a long time, because
          several clusters persist for a time that grows like exp(beta).
Result.   pair_probability = 1{t >= t*}, mean_overlap = g(t).
Status.   Theorem in the limit. For finite dimensions there is only the simulation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.cost import Cost, latest
from limitlab.laws import CLOSED_FORM, Draw, Experiment, Headline, Law, Mark, Values, observable, parameter, shared
from limitlab.laws.attention.equiangular import (
    collapse_time,
    largest_beta,
    overlap,
)

__all__ = ["TokenClustering"]

Array = NDArray[np.float64]


def critical_beta(times: ArrayLike, tokens: int, closeness: float = 1e-3) -> Array:
    """Return the largest beta at which the tokens have collapsed by each time, which is the boundary of the phase diagram.

    The result is 0 for times at which the tokens have not collapsed for any beta.

    >>> critical_beta([2.0, 10.0, 30.0], 32).round(4).tolist()
    [0.0, 5.1099, 6.9065]
    """
    soonest = float(collapse_time(closeness, tokens, 0.0))
    betas = [
        largest_beta(float(t), closeness, tokens) if t > soonest else 0.0 for t in np.ravel(np.asarray(times, dtype=float))
    ]
    return np.asarray(betas).reshape(np.shape(times))


def plateau_time(beta: ArrayLike, tokens: ArrayLike) -> Array:
    """Return the length of the plateau for 1 << beta << n, which does not depend on the closeness delta.

    The plateau is the time before the collapse during which the overlap stays near 0. Its length is
    (e^beta / 2n)(log((n-1)/beta) - 0.577 + 1/beta).

    >>> round(float(plateau_time(15.0, 2000) / collapse_time(1e-3, 2000, 15.0)), 2)
    0.99
    """
    b, n = np.asarray(beta, dtype=float), np.asarray(tokens, dtype=float)
    return np.asarray(np.exp(b) / (2 * n) * (np.log((n - 1) / b) - np.euler_gamma + 1 / b))[()]


def merging_time(overlap: ArrayLike, beta: ArrayLike, closeness: float = 1e-3) -> Array:
    """Return the time until two clusters of equal mass with overlap `overlap` merge.

    Two such clusters move like two tokens, so the time is exact in every dimension. It grows like e^{beta (1 - overlap)}, so clusters that
    are further apart persist longer.

    >>> merging_time(-0.5, [1.0, 5.0, 9.0]).round(1).tolist()
    [5.5, 212.9, 48744.8]
    """
    return collapse_time(closeness, 2, beta, overlap)


class TokenClustering(Law):
    """Which share of the pairs of random tokens has merged after t layers?

    Without `dimension`, an experiment of size d is one system in d dimensions, whose observables tend to the limit. With a `dimension`, the
    experiment averages over `size` systems of that dimension. Set a `dimension` to compute phase diagrams in low dimension.

    Examples
    --------
    >>> law = TokenClustering(tokens=32, beta=5.0, times=(5.0, 20.0))
    >>> law.theory().pair_probability.values
    array([0., 1.])
    >>> low = law.replace(dimension=2).simulate(size=20, seed=0)
    >>> bool(0.3 < low.pair_probability[1] < 0.6)  # in the plane several clusters remain
    True
    """

    status = "theorem"
    regime = "d -> infinity at a fixed number of tokens; at finite d only the simulation holds"
    assumptions = (
        "Q = K = V = I, no feed-forward layer",
        "tokens start independent and uniform on the sphere",
        "times away from the jump at the collapse time, which is smooth at finite d",
    )
    references = ("geshkovski2025mathematical",)
    page = "attention"
    observables = {
        "pair_probability": observable("share of pairs of tokens that have merged", r"P_{\mathrm{pair}}", least=0, most=1),
        **shared("mean_overlap"),
    }
    simulation = Experiment(
        "dimension d of the tokens; with `dimension` given, number of systems averaged", sizes=(128, 256, 512), draws=30
    )
    # Times before, during and after the collapse
    points = (dict(tokens=8, beta=1.5, times=(1.0, 2.0, 4.0)),)
    headline = Headline(
        "Random tokens meet almost at one time",
        x="times",
        over=(0.0, 12.0, 121),
        show=("pair_probability", "mean_overlap"),
        size=256,
        draws=4,
        places=(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0, 12.0),
        sliders=("beta", "tokens"),
        marks=(Mark("x", lambda law: law.collapse_time(), "predicted collapse"),),
    )

    tokens: int = parameter(16, least=2)
    dimension: int | None = parameter(None, note="of the tokens in a simulation; None: its size", kind="experiment", least=2)
    beta: float = parameter(2.0, least=0, most=700)
    closeness: float = parameter(
        1e-3, "pairs with overlap above 1 minus this are close", symbol=r"\delta", above=0, below=1, scale="log"
    )
    times: float | tuple[float, ...] = parameter((2.0, 4.0, 9.0), note="in layers", kind="coordinate", least=0)

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of computing all pairs of tokens until the last time."""
        pairs = float(self.tokens**2)
        return Cost(
            1e5 + 3.5 * pairs + 4.0 * self.tokens * size,
            1e7 + 2e3 * pairs + 50.0 * pairs * size + 50.0 * pairs * latest(self),
        )

    def predicted(self, times: Array, tokens: Array, beta: Array) -> Values:
        """Return the limit of infinite dimension over a grid of token numbers and temperatures."""
        reached = times >= collapse_time(self.closeness, tokens, beta)
        pairs, mean = reached.astype(float), overlap(times, tokens, beta)
        return {"pair_probability": pairs, "mean_overlap": mean, "accuracy": CLOSED_FORM}

    def measured(self, draw: Draw, times: Array, beta: Array) -> Values:
        """Simulate one system in `size` dimensions, or return the mean over `size` systems of the law's `dimension`."""
        from limitlab.models.attention.clusters import mean_overlap, pair_fraction

        systems, dimension = (1, draw.size) if self.dimension is None else (draw.size, self.dimension)
        start = self._start(draw.rng, systems, dimension)
        grams = [self._grams(start, float(b), times, dimension) for b in beta.ravel()]
        rows = {
            "pair_probability": [pair_fraction(g, self.closeness).mean(axis=-1) for g in grams],
            "mean_overlap": [mean_overlap(g).mean(axis=-1) for g in grams],
        }
        return {name: np.asarray(row).reshape(*beta.shape[:-1], -1) for name, row in rows.items()}

    def _start(self, rng: np.random.Generator, systems: int, dimension: int) -> Array:
        from limitlab.models.attention.engines import random_grams, random_tokens

        draw = random_grams if dimension >= self.tokens else random_tokens
        return draw(rng, systems, self.tokens, dimension)

    def _grams(self, start: Array, beta: float, times: Array, dimension: int) -> Array:
        """Return overlaps over time, with shape (times, systems, n, n)."""
        from limitlab.models.attention.engines import gram_flow, token_paths

        if dimension >= self.tokens:
            return gram_flow(start, beta, times, tolerance=1e-7)
        paths = token_paths(start, beta, times, tolerance=1e-7)
        return np.asarray(paths @ np.swapaxes(paths, -1, -2))

    def collapse_time(self) -> float:
        """Return the time of the jump of pair_probability in the limit."""
        return float(collapse_time(self.closeness, self.tokens, self.beta))
