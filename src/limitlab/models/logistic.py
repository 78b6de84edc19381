"""Logistic regression on finite data, with labels between 0 and 1, an unpenalised intercept, and a test of whether the fit exists."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["fit_logistic"]

Array = NDArray[np.float64]

NEWTON_STEPS = 200
GRADIENT = 1e-9
LARGEST_SCORE = 200.0  # with larger scores the classes are separated, and the scores grow without limit


class LogisticFit(NamedTuple):
    """A fitted logistic regression.

    Attributes
    ----------
    intercept, coefficients
        The minimiser, or the last iterate if there is no minimiser.
    exists
        Whether a minimiser exists.
    """

    intercept: float
    coefficients: Array
    exists: bool


def fit_logistic(X: ArrayLike, y: ArrayLike, ridge: float = 0.0, intercept: bool = True) -> LogisticFit:
    """Return the minimiser of (1/n) sum_i log-loss(y_i, b + <a, x_i>) + (ridge/2) |a|^2.

    The method is Newton's, and steps that increase the objective are halved.

    Parameters
    ----------
    X
        Inputs, one row per sample.
    y
        Labels 0 and 1, or probabilities between them.
    ridge
        Penalty, at least 0. The parameter C of scikit-learn is 1/(n ridge).
    intercept
        Whether b is fitted. If False, b is 0.

    Examples
    --------
    >>> fit = fit_logistic([[0.0], [0.0], [1.0], [1.0]], [0.0, 1.0, 0.25, 0.25])
    >>> round(fit.intercept, 9), round(float(fit.coefficients[0]), 6)  # logit 1/2, then logit 1/4
    (0.0, -1.098612)
    >>> fit_logistic([[0.0], [1.0]], [0.0, 1.0]).exists
    False
    """
    from scipy.special import expit

    inputs, labels = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    n, p = inputs.shape
    table = np.hstack([inputs, np.ones((n, 1))]) if intercept else inputs
    penalty = np.zeros(table.shape[1])
    penalty[:p] = ridge
    a = np.zeros(table.shape[1])

    def objective(a: Array) -> float:
        scores = table @ a
        return float(np.mean(np.logaddexp(0.0, scores) - labels * scores) + penalty @ a**2 / 2)

    now = objective(a)
    exists = True
    for _ in range(NEWTON_STEPS):
        scores = table @ a
        if np.abs(scores).max() > LARGEST_SCORE:
            exists = False
            break
        risk = expit(scores)
        gradient = (risk - labels) @ table / n + penalty * a
        if np.linalg.norm(gradient) <= GRADIENT * max(now, 1e-300):
            break
        hessian = (table * (risk * (1 - risk) / n)[:, None]).T @ table + np.diag(penalty)
        try:
            direction = np.linalg.solve(hessian, gradient)
        except np.linalg.LinAlgError:
            exists = False
            break
        step, then = 1.0, objective(a - direction)
        while then > now + 1e-12 * abs(now) and step > 1e-8:
            step /= 2
            then = objective(a - step * direction)
        a, now = a - step * direction, then
    else:
        exists = False
    return LogisticFit(float(a[p]) if intercept else 0.0, a[:p], exists)
