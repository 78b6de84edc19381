"""Convergence of tokens to one cluster at infinite temperature, from almost every start.

Setting.  n tokens on the unit sphere of R^d with beta = 0. Each token moves towards their mean, x_i' = P_{x_i} m, m = (x_1 + ... + x_n)/n.
Limit.    t -> infinity at fixed n and d, from almost every start (here: independent uniform tokens).
Result.   All tokens converge to one point. Every overlap tends to 1, at late times like 1 - <x_i, x_j> ~ e^{-2t} (docs/theory/attention.md,
          eq. 6). The flow is the gradient ascent of |m|^2 / 2. All other critical points are strict saddles.
          The rates, which are the eigenvalues of the linearised flow, are known at every critical point.
Status.   Theorem (Geshkovski, Letrouit, Polyanskiy, Rigollet). The convergence time depends on the start.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.cost import Cost
from limitlab.errors import Refused
from limitlab.laws import CLOSED_FORM, Draw, Experiment, Law, Values, observable, parameter, shared

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
    """Do all tokens converge to one cluster if every token attends to all tokens with equal weights?

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
        "Q = K = V = I and beta = 0, so that every token moves towards the mean of all tokens",
        "the start is not in an exceptional set of probability 0",
    )
    references = ("geshkovski2025mathematical",)
    page = "attention"
    observables = {
        "smallest_overlap": observable("smallest overlap of two tokens", r"\min_{ij}\langle x_i, x_j\rangle"),
        **shared("mean_overlap"),
    }
    simulation = Experiment(
        "time t at which the overlaps are measured",
        sizes=(8, 16, 32),
        draws=40,
        rate=6.0,  # faster than every power, because the gap falls like e^{-2t}
    )
    # More tokens than dimensions
    points = (dict(tokens=6, dimension=4),)

    tokens: int = parameter(6, least=2)
    dimension: int = parameter(4, note="of the tokens", least=2)

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of computing all pairs of tokens until time `size`."""
        pairs = float(self.tokens * max(self.tokens, self.dimension))
        return Cost(1e5 + 1.1 * pairs, 1e7 + 50.0 * pairs * max(size, 100))

    def predicted(self) -> Values:
        """Return the limit, in which every overlap is 1."""
        return {"smallest_overlap": 1.0, "mean_overlap": 1.0, "accuracy": CLOSED_FORM}

    def measured(self, draw: Draw) -> Values:
        """Return the smallest and the mean overlap for one random start at time `size`."""
        from limitlab.models.attention.clusters import mean_overlap, smallest_overlap

        gram = self._grams(draw.size, [draw])[0]
        return {"smallest_overlap": float(smallest_overlap(gram)), "mean_overlap": float(mean_overlap(gram))}

    def _grams(self, time: float, draws: Sequence[Draw]) -> NDArray[np.float64]:
        """Return the overlaps at a time, one system per draw."""
        from limitlab.models.attention.engines import random_tokens, token_paths

        start = [random_tokens(draw.rng, 1, self.tokens, self.dimension)[0] for draw in draws]
        x = token_paths(np.stack(start), 0.0, float(time))
        return np.asarray(x @ np.swapaxes(x, -1, -2))

    def collapsed(self, time: float, seeds: int, distance: float = 1e-6) -> float:
        """Return the share of random starts whose overlaps are all above 1 - distance at a time.

        >>> SingleCluster(tokens=6, dimension=3).collapsed(40.0, seeds=20)
        1.0
        """
        grams = self._grams(time, [self.draw(max(2, round(time)), seed) for seed in range(seeds)])
        smallest = grams.min(axis=(-2, -1))
        return float(np.mean(smallest > 1 - distance))

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
