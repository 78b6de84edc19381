"""One step of a chain of models, ridge regression on labels of which some are predictions of an earlier model.

Setting.  The linear model of `Ridge`, with groups of directions (eigenvalue s_k, load m_k, energy B_k). A share pi of the labels is real,
          with noise tau. The other labels are the predictions of a vector b plus noise tau_s. The result depends on b through
          P_k = |b|_k^2 and C_k = <b, beta>_k only.
Result.   Let kappa be the effective ridge and df2 = sum m_k a_k^2, with a_k = s_k/(s_k + kappa), nu_k = m_k s_k/(s_k + kappa)^2. The labels
          without noise come from the mixture pi beta + (1 - pi) b, whose squared norm in group k is
          N_k = pi^2 B + 2 pi (1 - pi) C + (1 - pi)^2 P (docs/theory/learning_from_models.md, section 1). Then

              r1 = tau^2 + sum s [B - 2 a (pi B + (1 - pi) C) + a^2 N],   r2 = tau_s^2 + sum s [P - 2 a (pi C + (1 - pi) P) + a^2 N],
              q = [pi r1 + (1 - pi) r2]/(1 - df2),   C <- a (pi B + (1 - pi) C),   P <- a^2 N + nu q.                       (1)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.numerics.equivalents import learned, ridge_equivalent

Array = NDArray[np.float64]


class Shares(NamedTuple):
    """Effect of a ridge fit on each group of directions."""

    eigenvalues: Array  # s
    learned: Array  # a
    gain: Array  # nu
    gap: float  # 1 - df2


class State(NamedTuple):
    """Squared norm of a model and its overlap with the true coefficients, group by group."""

    overlap: Array  # C
    norm: Array  # P

    def excess(self, eigenvalues: Array, energy: Array) -> float:
        """Return the mean squared error on a new noiseless label."""
        return float(np.dot(eigenvalues, self.norm - 2 * self.overlap + energy))


def shares_of(ratio: float, ridge: float, eigenvalues: ArrayLike, weights: ArrayLike) -> Shares:
    """Return s, a, nu and 1 - df2 of a ridge, which may be 0 or infinite. The weights must add up to one.

    >>> fit = shares_of(0.5, 0.0, [2.0], [1.0])
    >>> fit.learned.tolist(), fit.gain.tolist(), float(fit.gap)
    ([1.0], [0.25], 0.5)
    """
    s, load = np.asarray(eigenvalues, dtype=float), ratio * np.asarray(weights, dtype=float)
    equivalent = ridge_equivalent(ridge, s, load)
    a = np.asarray(learned(equivalent.kappa, s))
    with np.errstate(invalid="ignore", divide="ignore"):
        gain = np.where(a > 0, load * a / (s + equivalent.kappa), 0.0)
    return Shares(s, a, gain, float(equivalent.gap2))


def step(fit: Shares, energy: Array, before: State, share: float, noise: float, synthetic_noise: float) -> State:
    """Return the state of the next model by equation (1). A share of its labels is real. The others are predictions of `before`.

    >>> fit = shares_of(0.5, 0.0, [1.0], [1.0])
    >>> zero = State(np.zeros(1), np.zeros(1))
    >>> step(fit, np.ones(1), zero, 1.0, 0.5, 0.5).excess(fit.eigenvalues, np.ones(1))  # tau^2 gamma/(1 - gamma)
    0.25
    """
    s, a, rest = fit.eigenvalues, fit.learned, 1 - share
    C, P = before
    with np.errstate(invalid="ignore", over="ignore"):  # every model after a model of infinite norm has an infinite norm
        mixed = share**2 * energy + 2 * share * rest * C + rest**2 * P
        real = noise**2 + s @ (energy - 2 * a * (share * energy + rest * C) + a**2 * mixed)
        synthetic = synthetic_noise**2 + s @ (P - 2 * a * (share * C + rest * P) + a**2 * mixed)
        residual = share * real + rest * synthetic if rest else real
        left = np.inf if fit.gap == 0 and residual > 0 else 0.0 if residual == 0 else residual / fit.gap
        return State(a * (share * energy + rest * C), a**2 * mixed + fit.gain * left)
