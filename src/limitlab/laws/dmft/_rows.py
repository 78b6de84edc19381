"""The equations of gradient descent for inputs with a population spectrum.

Setting.  Sigma has eigenvalue s_a in a share w_a of the directions. A share e_a of |theta_*|^2 lies in these directions.
Result.   The rows of theta in a group follow (4) and (5) of docs/theory/first_order.md with the responses of the loss multiplied by s_a
          and the noise of the gradient by s_a w_a. Predictions depend on the groups through

              C = sum s_a C_a,   <theta, theta_*> = sum s_a O_a,   R_theta = sum w_a s_a R_a.                             (6b)
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.laws.dmft._paths import DescentKernels

Floats = NDArray[np.float64]


class Rows(NamedTuple):
    """Eigenvalue, share of the directions and share of |theta_*|^2 of every group of rows."""

    eigenvalues: Floats
    shares: Floats
    energy: Floats


class RowKernels(DescentKernels):
    """Two-time functions of the predictions, computed from those of each group of rows by (6b)."""

    def __init__(self, rows: Rows, start: Floats, overlap: Floats, signal: Floats, *numbers: Any) -> None:
        s, w, e = (np.asarray(column, dtype=float)[:, None, None] for column in rows)
        along = np.linalg.solve(signal, overlap.T).T
        aligned = along @ signal @ along.T
        first, overlaps, signals = e * aligned + w * (start - aligned), e * overlap, e * signal
        super().__init__((s * first).sum(axis=0), (s * overlaps).sum(axis=0), (s * signals).sum(axis=0), *numbers)
        self.s, self.w, self.signals, self.m = s, w, signals, len(start)
        size = len(self.correlation)
        self.group_correlation, self.group_response = np.zeros((2, len(s), size, size))
        self.group_overlap = np.zeros((len(s), size, len(signal)))
        self.group_correlation[:, : self.m, : self.m], self.group_overlap[:, : self.m] = first, overlaps

    def parameters(self) -> tuple[Floats, Floats]:
        """Return the inner products of the parameters with each other and with the truth."""
        return self.group_correlation.sum(axis=0), self.group_overlap.sum(axis=0)

    def advance(self, k: int, sphere: bool) -> None:
        """Compute the functions of every group after one more step, and those of the predictions by (6b)."""
        now, new, known = self.at(k), self.at(k + 1), self.until(k + 1)
        identity = np.eye(self.m)
        memory = -self.step * self.s * self.response_loss[now, known]
        memory[:, :, now] += (1 - self.step * self.ridge[k]) * identity
        toward = -self.step * self.s * self.response_star[now]
        kick = self.step * self.rate * self.s * self.w * self.force[now, known]

        response = memory @ self.group_response[:, known, known]
        response[:, :, now] = identity
        overlap = memory @ self.group_overlap[:, known] + toward @ self.signals
        past = memory @ self.group_correlation[:, known, known] + toward @ _transposed(self.group_overlap[:, known])
        past += kick @ _transposed(self.group_response[:, known, known])
        equal = memory @ _transposed(past) + toward @ _transposed(overlap) + kick @ _transposed(response)
        if sphere:
            norms = np.diag(self.group_correlation[:, self.at(0), self.at(0)].sum(axis=0))
            scale = np.sqrt(norms / np.diag(equal.sum(axis=0)))[:, None]
            response, overlap, past, equal = scale * response, scale * overlap, scale * past, scale * equal * scale.T
        self.group_response[:, new, known], self.group_overlap[:, new] = response, overlap
        self.group_correlation[:, new, known], self.group_correlation[:, known, new] = past, _transposed(past)
        self.group_correlation[:, new, new] = 0.5 * (equal + _transposed(equal))

        self.response_theta[new, known] = (self.w * self.s * response).sum(axis=0)
        self.overlap[new] = (self.s * overlap).sum(axis=0)
        seen = (self.s * past).sum(axis=0)
        self.correlation[new, known], self.correlation[known, new] = seen, seen.T
        self.correlation[new, new] = (self.s * self.group_correlation[:, new, new]).sum(axis=0)


def _transposed(stack: Floats) -> Floats:
    return np.swapaxes(stack, -1, -2)


def kernels_of(rows: Rows | None) -> Any:
    """Return the constructor of the two-time functions, for isotropic inputs or for groups of rows."""
    return DescentKernels if rows is None else functools.partial(RowKernels, rows)
