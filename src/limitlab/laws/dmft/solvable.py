"""Least squares from any start, with a closed form of gradient flow and gradient descent that uses the Marchenko-Pastur law.

Setting.  y = <theta_*, x> + noise e, R_hat = (1/2n) sum (y - <theta, x>)^2; gradient flow theta' = -grad R_hat, or descent.
Result.   Let mu be the limit law of the eigenvalues l of X'X/n, n/d -> delta. After time t or k steps an eigendirection's error is
          multiplied by p(l) = exp(-l t) or (1 - step l)^k. With e0 = |theta_0 - theta_*|^2 (docs/theory/first_order.md, eqs. 7 to 9)

              |theta - theta_*|^2   = e0 int p^2 dmu + (noise^2/delta) int (1 - p)^2 / l dmu,
              <theta, theta_*>      = rho + (m0 - rho) int p dmu,
              mean squared residual = e0 int l p^2 dmu + noise^2 (int_{l>0} p^2 dmu / delta + (1 - 1/delta)_+).
Status.   Theorem (isotropy of X and the Marchenko-Pastur law).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import Refused
from limitlab.numerics.spectra.marchenko_pastur import log_quadrature, quadrature

__all__ = ["least_squares_descent"]

Floats = NDArray[np.float64]

NODES = 256
"""Least number of Gauss nodes for gradient descent, whose integrands are polynomials of l."""
SPACING = 0.1875
"""Spacing of the logarithmic rule for gradient flow. It is half the default, because e^(-l t) is bounded only for Re l > 0."""
LATEST = 1e200
"""Latest time at which the rule resolves e^(-l t). A later time would need eigenvalues below the smallest floating-point number."""


def least_squares_descent(
    times: ArrayLike,
    sample_ratio: float,
    noise: float,
    *,
    signal: float = 1.0,
    start_norm: float = 0.0,
    start_overlap: float = 0.0,
    step: float = 0.0,
) -> dict[str, Floats]:
    """Return train and test error, norm and overlap at times of gradient flow, or after numbers of steps of gradient descent.

    The relative error of the test error of gradient flow is below 1e-14 at every time up to 1e200, also next to sample_ratio = 1,
    where the smallest eigenvalues tend to 0 and the test error grows like sqrt(t).

    Parameters
    ----------
    times
        Times of gradient flow; with a `step`, numbers of steps.
    sample_ratio, noise
        n/d, standard deviation of the label noise.
    signal, start_norm, start_overlap
        |theta_*|^2, |theta_0|^2 and <theta_0, theta_*>.
    step
        Step size of gradient descent; 0 is gradient flow.

    Examples
    --------
    >>> flow = least_squares_descent([0.0, 1.0], 2.0, 0.5, start_norm=0.5, start_overlap=0.2)
    >>> flow["overlap"].round(6).tolist()
    [0.2, 0.637992]
    """
    t = np.asarray(times, dtype=float)[..., None]
    if not (t >= 0).all():
        raise Refused(f"times = {t[~(t >= 0)][0]:g} is not allowed: must be at least 0")
    longest = float(t.max(initial=0.0))
    if step:
        x, weight = quadrature(1 / sample_ratio, count=max(NODES, int(longest) + 1))
    else:
        # The rule is for XX'/n, because rounding 1 / sample_ratio would change the distance of the ratio from 1.
        scale = 1 / min(max(longest, 1.0), LATEST)
        x, weight = log_quadrature(sample_ratio, 1 / sample_ratio, smallest=scale, spacing=SPACING)
        weight = sample_ratio * weight
    left = (1 - step * x) ** t if step else np.exp(-t * x)
    gone = 1 - left if step else -np.expm1(-t * x)
    untouched = max(0.0, 1 - sample_ratio)  # share of directions orthogonal to all samples
    distance = start_norm - 2 * start_overlap + signal
    error = distance * (left**2 @ weight + untouched) + noise**2 / sample_ratio * ((gone**2 / x) @ weight)
    overlap = signal + (start_overlap - signal) * (left @ weight + untouched)
    noisy = left**2 @ weight / sample_ratio + max(0.0, 1 - 1 / sample_ratio)
    return dict(
        train_error=distance * ((x * left**2) @ weight) + noise**2 * noisy,
        test_error=error + noise**2,
        norm=error + 2 * overlap - signal,
        overlap=overlap,
    )
