"""Convergence of tokens to one cluster, from almost every start.

Setting.  n tokens on the unit sphere of R^d, softmax attention with Q = K = V = I at inverse temperature beta. At beta = 0 each token moves
          towards their mean, x_i' = P_{x_i} m, m = (x_1 + ... + x_n)/n.
Limit.    t -> infinity at fixed n, d and beta, from almost every start (here: independent uniform tokens).
Result.   All tokens converge to one point. Every overlap tends to 1, at late times like 1 - <x_i, x_j> ~ e^{-2t} (docs/theory/attention.md,
          eq. 6). At beta = 0 the flow is the gradient ascent of |m|^2 / 2, and all other critical points are strict saddles.
          Their rates, which are the eigenvalues of the linearised flow, are known. The time of the collapse of two tokens has a known
          distribution (6b).
Status.   Theorem for beta = 0, for d >= n, and for beta small or large compared with n (Geshkovski, Letrouit, Polyanskiy, Rigollet).
          Elsewhere simulations agree. The convergence time depends on the start, and its scale is e^{2 beta}.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.cost import Cost
from limitlab.errors import Refused
from limitlab.laws import CLOSED_FORM, Draw, Experiment, Headline, Law, Values, observable, parameter, shared

__all__ = ["SingleCluster"]

AT_REST = 1e-9
"""Largest speed of a token at which positions count as a critical point."""


def pole_rates(tokens: int, at_pole: int, dimension: int) -> NDArray[np.float64]:
    """Return the rates of the linearised flow for k tokens at a pole and n - k at the opposite pole, largest first.

    With M = |2k - n|/n the rates are 1, M, 0 and -M. In each of the d - 1 directions across the axis the linearised flow of the
    displacements is e' = mean(e) -+ M e.

    >>> pole_rates(5, 4, 2).round(12).tolist()
    [1.0, 0.0, -0.6, -0.6, -0.6]
    >>> pole_rates(3, 3, 2).tolist()  # one cluster has no positive rate
    [0.0, -1.0, -1.0]
    """
    many = max(at_pole, tokens - at_pole)
    few, mean = tokens - many, (2 * many - tokens) / tokens
    line = [1.0, *[mean] * (few - 1), 0.0, *[-mean] * (many - 1)] if few else [0.0, *[-1.0] * (tokens - 1)]
    return np.repeat(line, dimension - 1)


def balanced_rates(positions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rates of the linearised flow at tokens whose mean is 0, largest first.

    The rates are 1 minus the eigenvalues of the second moment of the tokens. All further rates are 0.
    """
    n, d = positions.shape
    moved = 1 - np.linalg.eigvalsh(positions.T @ positions / n)
    return np.sort(np.concatenate([moved, np.zeros(n * (d - 1) - d)]))[::-1]


class SingleCluster(Law):
    """Do all tokens converge to one cluster, and how many of the starts have arrived at a time?

    Examples
    --------
    >>> law = SingleCluster(tokens=6, dimension=3)
    >>> float(law.theory().smallest_overlap)
    1.0
    >>> law.simulate(size=30, seed=0).smallest_overlap.round(9).item()
    1.0
    >>> law.replace(beta=4.0).simulate(size=30, seed=0).smallest_overlap.round(2).item()
    -0.71
    """

    status = "theorem"
    regime = "t -> infinity at fixed numbers of tokens and dimensions and fixed beta"
    assumptions = (
        "Q = K = V = I and softmax attention",
        "beta = 0, or d >= n, or beta small or large compared with n; elsewhere by simulation",
        "the start is not in an exceptional set of probability 0",
    )
    references = ("geshkovski2025mathematical",)
    page = "attention"
    observables = {
        "smallest_overlap": observable(
            "smallest overlap of two tokens", r"\min_{ij}\langle x_i, x_j\rangle", least=-1, most=1
        ),
        **shared("mean_overlap"),
    }
    simulation = Experiment(
        "time t at which the overlaps are measured",
        sizes=(8, 16, 32),
        draws=40,
        rate=6.0,  # faster than every power, because the gap falls like e^{-2t}
    )
    # More tokens than dimensions
    points = (dict(tokens=6, dimension=4), dict(tokens=5, dimension=3, beta=0.5))
    headline = Headline(
        "Every start ends in one cluster",
        x="size",
        over=(2.0, 16.0, 41),
        whole=True,
        show=("smallest_overlap", "mean_overlap"),
        at=dict(tokens=32, dimension=3),
        draws=20,
        places=(2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 16.0),
        sliders=("tokens", "dimension"),
    )

    tokens: int = parameter(6, least=2)
    dimension: int = parameter(4, note="of the tokens", least=2)
    beta: float = parameter(0.0, least=0, most=700)

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of computing all pairs of tokens until time `size`."""
        pairs = float(self.tokens * max(self.tokens, self.dimension))
        return Cost(1e5 + 1.1 * pairs, 1e7 + 50.0 * pairs * max(size, 100))

    def predicted(self, beta: NDArray[np.float64]) -> Values:
        """Return the limit, in which every overlap is 1 at every beta."""
        ones = np.ones_like(beta, dtype=float)
        return {"smallest_overlap": ones, "mean_overlap": ones, "accuracy": CLOSED_FORM}

    def measured(self, draw: Draw, beta: NDArray[np.float64]) -> Values:
        """Return the smallest and the mean overlap for one random start at time `size`, at every beta from the same start."""
        from limitlab.models.attention.clusters import mean_overlap, smallest_overlap

        start = self._starts([draw])
        grams = [self._grams([float(draw.size)], start, float(b))[0, 0] for b in beta.ravel()]
        found = {"smallest_overlap": [smallest_overlap(g) for g in grams], "mean_overlap": [mean_overlap(g) for g in grams]}
        return {name: np.reshape(values, beta.shape) for name, values in found.items()}

    def _starts(self, draws: Sequence[Draw]) -> NDArray[np.float64]:
        """Return one system of uniform tokens per draw."""
        from limitlab.models.attention.engines import random_tokens

        start = [random_tokens(draw.rng, 1, self.tokens, self.dimension)[0] for draw in draws]
        return np.stack(start)

    def _grams(self, times: Sequence[float], start: NDArray[np.float64], beta: float) -> NDArray[np.float64]:
        """Return the overlaps at increasing times, with the shape (times, systems, n, n)."""
        from limitlab.models.attention.engines import token_paths

        x = token_paths(start, beta, np.asarray(times, dtype=float))
        return np.asarray(x @ np.swapaxes(x, -1, -2))

    def collapsed(self, time: float, seeds: int, distance: float = 1e-6) -> float:
        """Return the share of random starts whose overlaps are all above 1 - distance at a time.

        >>> SingleCluster(tokens=6, dimension=3).collapsed(40.0, seeds=20)
        1.0
        """
        start = self._starts([self.draw(max(2, round(time)), seed) for seed in range(seeds)])
        return float(np.mean(self._grams([time], start, self.beta)[0].min(axis=(-2, -1)) > 1 - distance))

    def collapse_shares(self, times: Sequence[float], seeds: int, distance: float = 1e-3) -> NDArray[np.float64]:
        """Return the shares of the same random starts whose overlaps are all above 1 - distance at increasing times.

        >>> SingleCluster(tokens=4, dimension=2, beta=1.0).collapse_shares([1.0, 40.0], seeds=10).tolist()
        [0.0, 1.0]
        """
        start = self._starts([self.draw(2, seed) for seed in range(seeds)])
        smallest = self._grams(times, start, self.beta).min(axis=(-2, -1))
        return np.asarray(np.mean(smallest > 1 - distance, axis=1))

    def pair_collapse_share(self, time: float, distance: float = 1e-3) -> float:
        """Return the probability (6b) that two uniform tokens have an overlap above 1 - distance at a time.

        >>> law = SingleCluster(tokens=2, dimension=3, beta=4.0)
        >>> [round(law.pair_collapse_share(t), 4) for t in (5.0, 50.0, 500.0)]
        [0.302, 0.7263, 0.9384]
        """
        from scipy.optimize import brentq
        from scipy.special import betainc

        from limitlab.laws.attention.equiangular import collapse_time

        if self.tokens != 2:
            raise Refused(f"tokens = {self.tokens} is not allowed here: must be 2; use collapse_shares for more tokens")

        def late(start: float) -> float:
            return float(collapse_time(distance, 2, self.beta, start)) - time

        low, high = -1 + 1e-12, 1 - distance
        if late(high - 1e-12) > 0:
            return float(betainc((self.dimension - 1) / 2, (self.dimension - 1) / 2, distance / 2))
        start = low if late(low) < 0 else float(brentq(late, low, high - 1e-12, xtol=1e-14))
        half = (self.dimension - 1) / 2  # (1 + <x, y>) / 2 of uniform x, y has the law Beta(half, half)
        return float(1 - betainc(half, half, (1 + start) / 2))

    @staticmethod
    def saddle_rates(
        tokens: int | None = None,
        at_pole: int | None = None,
        dimension: int | None = None,
        *,
        positions: ArrayLike | None = None,
    ) -> NDArray[np.float64]:
        """Return the n(d-1) rates of the linearised flow at a critical point, largest first.

        A critical point has `at_pole` of `tokens` at one pole and the remaining tokens opposite, or it has tokens with mean 0. The single
        cluster is the only critical point without a positive rate. All other critical points are strict saddles.

        Parameters
        ----------
        tokens, at_pole, dimension
            n, k and d of a critical point on an axis.
        positions
            The tokens of any critical point, one unit vector per row. Use it instead of `tokens`, `at_pole` and `dimension`.

        Examples
        --------
        >>> SingleCluster.saddle_rates(6, 4, 2).round(6).tolist()
        [1.0, 0.333333, 0.0, -0.333333, -0.333333, -0.333333]
        >>> SingleCluster.saddle_rates(positions=[[1, 0], [0, 1], [-1, 0], [0, -1]]).tolist()
        [0.5, 0.5, 0.0, 0.0]
        """
        if positions is not None:
            if not (tokens is at_pole is dimension is None):
                raise Refused(
                    "positions are not allowed together with tokens, at_pole and dimension: give either positions or the three numbers"
                )
            return _rates_of(np.asarray(positions, dtype=float))
        for name, value, least in (("tokens", tokens, 2), ("dimension", dimension, 2), ("at_pole", at_pole, 0)):
            if value is None or value != int(value) or value < least:
                raise Refused(f"{name} = {value} is not allowed: must be a whole number of at least {least}")
        if at_pole > tokens:  # type: ignore[operator]
            raise Refused(f"at_pole = {at_pole} is not allowed: must be at most tokens = {tokens}")
        return pole_rates(tokens, at_pole, dimension)  # type: ignore[arg-type]


def _rates_of(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rates at the positions x, or raise `Refused` if they are not a critical point."""
    if x.ndim != 2 or min(x.shape) < 2 or not np.allclose(np.linalg.norm(x, axis=1), 1, rtol=0, atol=AT_REST):
        raise Refused(f"positions of shape {x.shape} are not allowed: must be at least two unit vectors, one per row")
    mean = x.mean(axis=0)
    if np.linalg.norm(mean) < AT_REST:
        return balanced_rates(x)
    speed = float(np.abs(mean - (x @ mean)[:, None] * x).max())
    if speed > AT_REST:
        raise Refused(
            f"positions that move with speed {speed:.3g} are not allowed: must be a critical point, all tokens on one axis or with mean 0"
        )
    return pole_rates(len(x), int(np.sum(x @ mean > 0)), x.shape[1])
