"""The equations of gradient descent in high dimension, for matrix-valued correlations and responses in discrete time.

theta has m columns (neurons), and the truth has q. The loss is L(r; w_*, e) with r in R^m and w_* in R^q. Every two-time function of
docs/theory/first_order.md is a matrix of m x m blocks, stored here as one matrix of (steps m) rows. Block (k, s) of `response_loss` is
R_l(k, s), and the diagonal blocks contain Gamma_k = R_l(k, k). With M(k, s) = 1[k = s](1 - step ridge) - step R_l(k, s) equations (4)
and (5) read

    R_theta(k+1, .) = M(k, .) R_theta,   C(k+1, .) = M(k, .) C - step R_l(k, *) C(*, .) + (step^2/delta) C_l(k, .) R_theta'.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import ConvergenceError
from limitlab.laws.dmft._jumps import jumping_arguments
from limitlab.laws.dmft._kicks import SHIFT, ShiftedPaths
from limitlab.laws.dmft._losses import Loss, as_vector
from limitlab.laws.dmft._paths import DescentKernels, Paths, whitened_paths

__all__ = ["descent_correlations"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DescentCorrelations:
    """Correlations, overlap and errors in the limit, for k, s = 0..steps.

    For losses of one scalar response the axes of neurons and directions are dropped.

    Attributes
    ----------
    correlation
        C(k, s) = theta_k' theta_s, shape (steps + 1, steps + 1, m, m).
    overlap
        theta_k' theta_*, shape (steps + 1, m, q).
    train_error, test_error
        Average of `loss.error` over the training samples and over new samples.
    stein_gap
        Largest difference of two estimates. If the gradient is continuous in the prediction, these are the responses to the truth by
        differentiated paths and by Stein's lemma. Otherwise they are the averages E l_k w_j / max_k C(k, k) of the paths and those that
        the responses to shifts imply.
    predictions, truth, noise
        The sampled process of the predictions, shape (steps + 1, m, paths), with the predictions of theta_* and the noise of its samples.
    jumps
        Arguments in which the gradient jumps, among "r" (the prediction) and "w" (the truth).
    """

    correlation: Floats
    overlap: Floats
    train_error: Floats
    test_error: Floats
    stein_gap: float
    predictions: Floats
    truth: Floats
    noise: Floats
    jumps: tuple[str, ...] = ()


def descent_correlations(
    loss: Loss,
    sample_ratio: float,
    step: float,
    steps: int,
    *,
    signal: ArrayLike = 1.0,
    start_norm: ArrayLike = 0.0,
    start_overlap: ArrayLike = 0.0,
    ridge: ArrayLike = 0.0,
    sphere: bool = False,
    paths: int = 4000,
    seed: int = 0,
    shift: float = SHIFT,
    kernels_like: Callable[..., DescentKernels] | None = None,
) -> DescentCorrelations:
    """Solve the discrete-time equations (1) to (6) of docs/theory/first_order.md.

    Parameters
    ----------
    loss
        A `limitlab.laws.dmft._losses.Loss`; `loss_from_function` returns one for any function. The gradient may jump.
    sample_ratio, step, steps, ridge
        n/d, step size, number of steps, and ridge penalty: one number, one number for every step, or one symmetric matrix
        (m x m) for every step, which couples the neurons.
    signal, start_norm, start_overlap
        |theta_*|^2, |theta_0|^2 and <theta_0, theta_*>; for several neurons or directions the matrices theta_*' theta_* (q x q),
        theta_0' theta_0 (m x m) and theta_0' theta_* (m x q).
    sphere
        Whether every neuron is rescaled to its norm at the start after each step.
    paths, seed
        Number of sampled paths, and their seed.
    shift
        Shift of the process by which responses are computed if the gradient jumps in the prediction, relative to the larger one of the
        norms of truth and start. The error is of second order in the shift.
    kernels_like
        Constructor of the two-time functions (default: `DescentKernels`, for isotropic inputs).

    Raises
    ------
    ConvergenceError
        If the descent diverges, or if the derivatives of the loss contradict its gradient.

    Examples
    --------
    >>> from limitlab.laws.dmft._losses import square
    >>> result = descent_correlations(square(0.5), 2.0, 0.1, 8, start_norm=0.5, start_overlap=0.2, paths=100)
    >>> result.overlap[8].round(6)
    np.float64(0.600625)
    """
    truth, start = _square_matrix(signal), _square_matrix(start_norm)
    m, q = len(start), len(truth)
    kernels = (kernels_like or DescentKernels)(
        start,
        np.reshape(start_overlap, (m, q)).astype(float),
        truth,
        step,
        step / sample_ratio,
        penalty_matrices(ridge, steps, m),
        steps,
    )
    z = whitened_paths(np.random.default_rng(np.random.SeedSequence([seed, 77])), paths, 1 + q + m * (steps + 1))
    size = float(np.sqrt(max(np.diag(truth).max(), np.diag(start).max())))
    vector = resolved(as_vector(loss), truth, start, 2 * sample_ratio / step)
    sampled = Paths(vector, z, kernels)
    if "r" in (vector.jumps or ()):
        sampled = ShiftedPaths(vector, z, kernels)
        sampled.shift = shift * size
    errors, predictions = np.zeros((2, steps + 1)), np.empty((steps + 1, m, len(z)))
    limit = 1e12 * (np.trace(truth) + np.trace(start) + 1)
    with np.errstate(over="ignore", invalid="ignore"):  # an overflow raises ConvergenceError below
        for k in range(steps + 1):
            errors[:, k], predictions[k] = sampled.predict(k), sampled.predictions
            if not np.all(np.isfinite(sampled.pulls[k])) or np.trace(kernels.equal_time(k)) > limit:
                raise ConvergenceError(
                    f"step = {step:g} is not allowed: gradient descent diverges at iteration {k}; use a smaller step"
                )
            if k < steps:
                sampled.differentiate(k)
                kernels.advance(k, sphere)
    correlation, overlap = kernels.parameters()
    correlation = correlation.reshape(steps + 1, m, steps + 1, m).swapaxes(1, 2)
    overlap = overlap.reshape(steps + 1, m, q)
    if not loss.vector:
        correlation, overlap = correlation[:, :, 0, 0], overlap[:, 0, 0]
    return DescentCorrelations(
        correlation,
        overlap,
        errors[0],
        errors[1],
        sampled.stein_gap,
        predictions,
        sampled.truth,
        sampled.noise,
        vector.jumps or (),
    )


def penalty_matrices(ridge: ArrayLike, steps: int, width: int) -> Floats:
    """Return one penalty matrix (width x width) for every step.

    >>> penalty_matrices([0.1, 0.2], 2, 1).ravel().tolist()
    [0.1, 0.2]
    """
    values = np.asarray(ridge, dtype=float)
    return values if values.ndim == 3 else np.broadcast_to(values, steps)[:, None, None] * np.eye(width)


def resolved(loss: Loss, signal: Floats, start: Floats, steepest: float) -> Loss:
    """Return a loss with the arguments in which its gradient jumps, located if the loss does not declare them.

    A slope in r above `steepest` counts as a jump, because descent overshoots there and derivatives along a path grow at every step.
    """
    if loss.jumps is None:
        loss = replace(loss, jumps=jumping_arguments(loss, signal, start, steepest))
    if loss.second is None and "r" not in (loss.jumps or ()):
        loss = replace(loss, jumps=("r", *(loss.jumps or ())))
    return replace(loss, cross=None) if "w" in (loss.jumps or ()) else loss


def _square_matrix(values: ArrayLike) -> Floats:
    return np.atleast_2d(np.asarray(values, dtype=float))
