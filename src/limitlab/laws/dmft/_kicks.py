"""Responses of losses whose gradient jumps in the prediction, by finite shifts of the Gaussian process and by Stein's identity.

If the gradient l jumps, its derivative contains a Dirac delta function, which the derivative at almost every point does not contain. A
product of derivatives along a path has no meaning there either, because a jump changes all later steps by a finite amount. Both methods
below use values of l only (docs/theory/first_order.md, eqs. 3a to 3c).

1. Shifts.  The process w_s of every path is shifted by -h and by h, and the path is computed again. With l_k^{s,h} for the gradient after k
   steps, the average of (l_k^{s,h} - l_k^{s,-h}) / (2h) is R_l(k, s) up to O(h^2). Its statistical error is of order (h N)^(-1/2).
2. Stein's identity.  E l_k w_j' = sum_s R_l(k, s) C(s, j) + R_l(k, *) C(*, j) holds for every j, also for a gradient that jumps. It
   determines R_l in the directions in which w has a large variance, with the error N^(-1/2).

`combined` adds to the first estimate the correction that the second one requires. Errors of the first estimate then remain only in the
directions in which w has almost no variance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limitlab.laws.dmft._paths import Paths, from_first_column, row_of_blocks, symmetrised

Floats = NDArray[np.float64]

SHIFT = 0.2
"""Shift h of w, relative to the larger one of the norms of the truth and of the start."""

WEIGHT = 1e-3
"""Squared error of Stein's identity over that of the shifts, relative to the largest variance of w."""


class ShiftedPaths(Paths):
    """Paths whose responses are computed by shifts and Stein's identity."""

    shift: float

    def differentiate(self, k: int) -> None:
        """Compute responses and correlations of the gradient after k steps from the paths and their shifted copies."""
        kernels, m, columns = self.kernels, self.kernels.width, self.columns
        copies = 2 * columns
        plain, pulls = np.tile(self.predictions, copies), np.tile(self.pulls[k], copies)
        truth, noise = np.tile(self.truth, copies), np.tile(self.noise, copies)
        self.moves.append(np.empty((kernels.steps - k, m, copies * self.count)))
        for s, moved in enumerate(self.moves):  # changes of the gradient after s, s + 1, ... steps by a shift of w_s
            if s < k:
                shifted = plain - self._memory(k, moved, s)
            else:
                offsets = self.shift * np.eye(m)[:, :columns, None] * np.array([-1.0, 1.0])
                shifted = plain + np.repeat(offsets.reshape(m, copies), self.count, axis=1)
            moved[k - s] = self.loss.first(shifted, truth, noise) - pulls
        slopes = np.array([-0.5, 0.5]) / self.shift
        blocks = np.array([self._mean(moved[k - s]).reshape(m, columns, 2) @ slopes for s, moved in enumerate(self.moves)])
        rows = row_of_blocks(from_first_column(blocks) if self.exchangeable else blocks)
        self._correlate(k)
        self._respond(k, rows)

    def _respond(self, k: int, rows: Floats) -> None:
        """Write the responses to w and to the truth that agree with Stein's identity."""
        kernels, m, q = self.kernels, self.kernels.width, len(self.truth)
        now, known = kernels.at(k), kernels.until(k + 1)
        w = self.factor[q : q + known.stop, : q + known.stop] @ self.gaussian[:, : q + known.stop].T
        products = self.pulls[k] @ w.T / self.count
        if self.exchangeable:
            products = row_of_blocks(symmetrised(products.reshape(m, k + 1, m).swapaxes(0, 1)))
        star = self._same_rows(self.pulls[k] @ self.truth.T / self.count)
        overlap = kernels.overlap[known]
        along = np.linalg.solve(kernels.signal, overlap.T)  # the part of w along the truth
        rest = kernels.correlation[known, known] - overlap @ along
        largest = float(np.diag(rest).max())
        if largest > 0:
            self.stein_gap = max(self.stein_gap, float(np.abs(products - star @ along - rows @ rest).max()) / largest)
        rows = combined(rows, products - star @ along, rest)
        kernels.response_loss[now, known] = rows
        kernels.response_star[now] = np.linalg.solve(kernels.signal, (star - rows @ overlap).T).T


def combined(rows: Floats, products: Floats, covariance: Floats) -> Floats:
    """Return the rows plus their smallest correction that satisfies rows @ covariance = products up to the weight of the noise.

    >>> covariance = np.diag([1.0, 0.0])
    >>> combined(np.array([[0.9, 0.3]]), np.array([[1.0, 0.0]]), covariance).round(3).tolist()
    [[1.0, 0.3]]
    """
    weight = WEIGHT * float(np.diag(covariance).max())
    if weight <= 0.0:  # w is 0, or is determined by the truth
        return rows
    left = products - rows @ covariance
    return np.asarray(rows + np.linalg.solve(covariance + weight * np.eye(len(covariance)), left.T).T)
