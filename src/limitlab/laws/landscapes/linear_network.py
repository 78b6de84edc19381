"""Linear and quadratic two-layer networks, which have no spurious minima, and the exact dynamics of the linear network.

Setting.  Whitened inputs, labels y = S x with singular values s_1 > s_2 > ... of S; f(x) = W2 W1 x with r hidden neurons, risk
          R = |S - W2 W1|_F^2, dW = -grad R. The start is balanced and aligned: every singular mode of W2 W1 has the strength a_0.
Limit.    Infinitely many samples at fixed dimensions.
Result.   Modes do not mix, and the network learns one after another (docs/theory/landscapes.md, eqs. 1 and 2):

              a(t) = s e^{4 s t} / (e^{4 s t} - 1 + s/a_0),     which is s/2 at t = log(s/a_0 - 1) / (4 s).

          Critical points select at most r modes. All except the top r modes are strict saddles of known index (eq. 3).
Status.   Theorem (Saxe, McClelland, Ganguli 2014 for the dynamics; Baldi and Hornik 1989 for the landscape). The index is derived, and the
          tests compare it with numerical Hessians.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab._core.checks import one_of
from limitlab.errors import Refused
from limitlab.laws import CLOSED_FORM, Draw, Experiment, Headline, Law, Values, observable, parameter

__all__ = ["LinearNetwork", "saddle_index"]

Array = NDArray[np.float64]


def modes(singular_values: ArrayLike, start: float, times: ArrayLike) -> Array:
    """Return the strengths a(t) of equation (1), broadcast over singular values and times.

    >>> modes([3.0, 2.0], 0.001, [[0.0], [1.0]]).round(6).tolist()
    [[0.001, 0.001], [2.945721, 1.197182]]
    """
    s, t = np.asarray(singular_values, dtype=float), np.asarray(times, dtype=float)
    return np.asarray(s / (1 + np.expm1(np.log(s / start)) * np.exp(-4 * s * t)))


def half_times(singular_values: ArrayLike, start: float) -> Array:
    """Return the times (2) at which modes have half their strength.

    >>> half_times([3.0, 0.5], 0.001).round(6).tolist()
    [0.66717, 3.106303]
    """
    s = np.asarray(singular_values, dtype=float)
    return np.asarray(np.log(s / start - 1) / (4 * s))


class SaddleIndex(NamedTuple):
    """The number of negative eigenvalues of the Hessian at a critical point, and the lowest eigenvalue if it is negative, else 0."""

    negative: int
    lowest: float


def saddle_index(
    spectrum: Sequence[float], hidden: int, selected: Sequence[int], network: Literal["linear", "quadratic"] = "linear"
) -> SaddleIndex:
    """Return the index (3) of the critical point that has learned the `selected` modes.

    The index is 0 only for the top modes, so there are no other minima.

    Parameters
    ----------
    spectrum
        Singular values of S (linear), or eigenvalues of B >= 0 (quadratic: sum_i <w_i, x>^2 + c with a free intercept). They must be
        positive and distinct.
    hidden
        Number of hidden neurons r.
    selected
        Indices of the modes that have been learned, at most r of them.
    network
        Type of the network. Both types have the same index, with curvatures -2 s (linear) and -8 s (quadratic).

    Examples
    --------
    >>> saddle_index([3.0, 2.0, 1.0, 0.5], 2, [1, 3])
    SaddleIndex(negative=3, lowest=-5.0)
    >>> saddle_index([3.0, 2.0, 1.0, 0.5], 2, [0, 1]).negative
    0
    """
    s, learned = [float(value) for value in spectrum], sorted(set(selected))
    if not s or min(s) <= 0 or len(set(s)) < len(s):
        raise Refused(
            f"spectrum = {tuple(s)} is not allowed: must be distinct numbers above 0, because equal ones make eigenvalues of the Hessian 0"
        )
    if hidden < 1 or len(learned) != len(selected) or len(learned) > hidden:
        raise Refused(f"selected = {tuple(selected)} is not allowed: must be at most hidden = {hidden} different modes")
    if learned and not 0 <= learned[0] <= learned[-1] < len(s):
        raise Refused(f"selected = {tuple(selected)} is not allowed: must be indices from 0 to {len(s) - 1}")
    one_of("network", network, ("linear", "quadratic"))
    free, left = hidden - len(learned), [j for j in range(len(s)) if j not in learned]
    swaps = [s[j] - s[i] for i in learned for j in left if s[j] > s[i]]
    falls = swaps + [s[j] for j in left if free]
    curvature = 2.0 if network == "linear" else 8.0
    return SaddleIndex(free * len(left) + len(swaps), -curvature * max(falls, default=0.0))


class LinearNetwork(Law):
    """In which order and how fast does a linear two-layer network learn the modes of its labels?

    Examples
    --------
    >>> law = LinearNetwork(singular_values=(3.0, 1.0), start=0.001, times=(1.0, 2.0))
    >>> law.theory().modes.values.round(4).tolist()
    [[2.9457, 0.0518], [3.0, 0.749]]
    """

    status = "theorem"
    regime = "infinitely many samples at fixed dimensions, gradient flow"
    assumptions = (
        "whitened inputs and labels without noise",
        "balanced and aligned start; a random small start comes close to it",
    )
    references = ("saxe2014exact", "baldi1989neural")
    page = "landscapes"
    observables = {
        "modes": observable("strength of a singular mode of the network", "a_k"),
        "half_time": observable("time at which a mode has half its strength", "t_k", dims=("mode",), least=0),
    }
    simulation = Experiment("number of samples n", sizes=(100, 200, 400), draws=60)
    # Modes at different stages: learned, rising, and still small
    points = (dict(singular_values=(2.0, 1.3, 0.6), start=0.02, times=(0.3, 0.7, 1.5)),)
    headline = Headline(
        "Strong modes are learned first, in steps",
        x="times",
        over=(0.0, 3.0, 121),
        show=("modes",),
        size=200,
        draws=3,
        places=(0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0),
        sliders=("start", "singular_values"),
    )

    singular_values: tuple[float, ...] = parameter(
        (3.0, 2.0, 1.0), "singular values of the map from inputs to labels", note="falling", symbol="s_k", above=0, most=100
    )
    start: float = parameter(
        0.01,
        "strength of every mode at the start",
        note="below half the least singular value",
        symbol="a_0",
        above=0,
        scale="log",
    )
    times: float | tuple[float, ...] = parameter((0.5, 1.0, 2.0), note="of the flow -grad R", kind="coordinate", least=0)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        s = self.singular_values
        if not s or any(a <= b for a, b in itertools.pairwise(s)):
            raise Refused(f"singular_values = {s} is not allowed: must be one or more falling numbers")
        if self.start >= s[-1] / 2:
            raise Refused(
                f"start = {self.start:g} is not allowed: must be below half the least singular value, {s[-1] / 2:g}"
            )
        return self

    def coordinates(self) -> dict[str, Any]:
        """Return the times, and the numbers of the modes."""
        return {"time": self.times, "mode": np.arange(len(self.singular_values))}

    def predicted(self, times: Array) -> Values:
        """Return the values of equations (1) and (2)."""
        return {
            "modes": modes(self.singular_values, self.start, times),
            "half_time": half_times(self.singular_values, self.start),
            "accuracy": CLOSED_FORM,
        }

    def measured(self, draw: Draw, times: Array) -> Values:
        """Run gradient flow of the mean square error on `size` Gaussian samples, in axes that are drawn at random."""
        from limitlab.laws.landscapes._linear_network_training import aligned_start, linear_flow

        rank, t = len(self.singular_values), np.ravel(times)
        x = draw.rng.standard_normal((draw.size, rank))
        left, right = (np.linalg.qr(draw.rng.standard_normal((rank, rank)))[0] for _ in range(2))
        target = left @ np.diag(self.singular_values) @ right.T
        fine = np.linspace(0, 1.5 * float(half_times(self.singular_values, self.start).max()), 150)
        grid = np.union1d(fine, t)
        weights = aligned_start(draw.rng, left, right, self.start)
        paths = linear_flow(weights, target, x.T @ x / draw.size, grid)
        strengths = np.einsum("ik,tij,jk->tk", left, paths, right)
        return {
            "modes": strengths[np.searchsorted(grid, t)],
            "half_time": np.array(
                [crossing(grid, a, s / 2) for a, s in zip(strengths.T, self.singular_values, strict=True)]
            ),
        }


def crossing(times: Array, values: Array, level: float) -> float:
    """Return the first time at which a curve exceeds a level, by linear interpolation, or the last time if it never does.

    >>> crossing(np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.0, 4.0]), 1.0)
    1.25
    """
    above = np.flatnonzero(values > level)
    if not above.size or above[0] == 0:
        return float(times[-1 if not above.size else 0])
    i = above[0]
    share = (level - values[i - 1]) / (values[i] - values[i - 1])
    return float(times[i - 1] + share * (times[i] - times[i - 1]))
