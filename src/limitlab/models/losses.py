"""Losses of binary classifiers as functions of the margin m = y <a, u>, with their proximal maps and minimisers.

    square          (1 - m)^2 / 2          hinge      (1 - m)_+
    squared_hinge   (1 - m)_+^2 / 2        logistic   log(1 + e^-m)

`fit` minimises (1/n) sum_i loss(y_i <a, u_i>) + (ridge/2) |a|^2 over a.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.checks import number, one_of
from limitlab.errors import ConvergenceError

__all__ = ["Loss", "loss"]

Array = NDArray[np.float64]
LossName = Literal["square", "logistic", "hinge", "squared_hinge"]

NEWTON_STEPS = 100
GRADIENT = 1e-10  # norm of the gradient at which a fit stops, relative to the norm at a = 0
SVM_TOLERANCE, SVM_STEPS = 1e-9, 1_000_000


class Proximal(NamedTuple):
    """The proximal map p(w) = argmin loss(p) + (p - w)^2 / (2 V), the force (p - w)/V, and minus the slope of the force."""

    point: Array
    force: Array
    stiffness: Array


@dataclass(frozen=True)
class Loss:
    """A convex loss as a function of the margin, which is the label -1 or +1 times the prediction."""

    name: str
    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    curvature: Callable[[Array], Array]
    proximal: Callable[[Array, float], Proximal]
    kinks: Callable[[float], tuple[float, ...]]
    """Margins w at which the proximal map of scale V has a kink."""


def loss(name: str) -> Loss:
    """Return a loss by name.

    >>> loss("hinge").value(np.array([-1.0, 0.5, 2.0])).tolist()
    [2.0, 0.5, 0.0]
    >>> loss("hinge").proximal(np.array([-1.0, 0.5, 2.0]), 1.0).point.tolist()
    [0.0, 1.0, 2.0]
    """
    return LOSSES[one_of("loss", name, LOSSES)]


def _sigmoid(m: Array) -> Array:
    from scipy.special import expit

    return np.asarray(expit(m))


def _square_proximal(w: Array, scale: float) -> Proximal:
    force = (1 - w) / (1 + scale)
    return Proximal(w + scale * force, force, np.full_like(w, 1 / (1 + scale)))


def _squared_hinge_proximal(w: Array, scale: float) -> Proximal:
    force = np.maximum(1 - w, 0.0) / (1 + scale)
    return Proximal(w + scale * force, force, (w < 1) / (1 + scale))


def _hinge_proximal(w: Array, scale: float) -> Proximal:
    force = np.clip((1 - w) / scale, 0.0, 1.0)
    return Proximal(w + scale * force, force, ((w < 1) & (w > 1 - scale)) / scale)


def _logistic_proximal(w: Array, scale: float) -> Proximal:
    """Return the proximal map at the root of p = w + V / (1 + e^p), computed by Newton's method.

    p - w - V / (1 + e^p) increases in p, and is concave for p > 0 and convex for p < 0. From p = 0, or from w or w + V on the same
    side of the root, Newton's steps therefore approach the root from one side.
    """
    p = np.where(w > -scale / 2, np.maximum(w, 0.0), np.minimum(w + scale, 0.0))
    for _ in range(NEWTON_STEPS):
        share = _sigmoid(-p)
        step = (p - w - scale * share) / (1 + scale * share * (1 - share))
        p = p - step
        if (np.abs(step) <= 1e-15 * (1 + np.abs(w) + scale)).all():
            break
    else:
        raise ConvergenceError("the proximal map of the logistic loss did not converge", p, float(np.abs(step).max()))
    share = _sigmoid(-p)
    bend = share * (1 - share)
    return Proximal(p, share, bend / (1 + scale * bend))


LOSSES: dict[str, Loss] = {
    "square": Loss(
        "square", lambda m: (1 - m) ** 2 / 2, lambda m: m - 1, lambda m: np.ones_like(m), _square_proximal, lambda v: ()
    ),
    "logistic": Loss(
        "logistic",
        lambda m: np.logaddexp(0.0, -m),
        lambda m: -_sigmoid(-m),
        lambda m: np.asarray(_sigmoid(m) * _sigmoid(-m)),
        _logistic_proximal,
        lambda v: (),
    ),
    "hinge": Loss(
        "hinge",
        lambda m: np.maximum(1 - m, 0.0),
        lambda m: -(m < 1).astype(float),
        np.zeros_like,
        _hinge_proximal,
        lambda v: (1 - v, 1.0),
    ),
    "squared_hinge": Loss(
        "squared_hinge",
        lambda m: np.maximum(1 - m, 0.0) ** 2 / 2,
        lambda m: -np.maximum(1 - m, 0.0),
        lambda m: (m < 1).astype(float),
        _squared_hinge_proximal,
        lambda v: (1.0,),
    ),
}


def fit(name: str, vectors: ArrayLike, ridge: float) -> Array:
    """Return the minimiser a of (1/n) sum_i loss(<a, v_i>) + (ridge/2) |a|^2 for rows v_i = y_i u_i.

    Parameters
    ----------
    name
        Name of the loss.
    vectors
        The vectors y_i u_i, one row per sample.
    ridge
        Penalty, above 0.

    Raises
    ------
    ConvergenceError
        If the gradient does not become small.

    Examples
    --------
    >>> fit("square", [[1.0, 0.0], [0.0, 1.0]], ridge=0.5).tolist()
    [0.5, 0.5]
    """
    V = np.asarray(vectors, dtype=float)
    number("ridge", ridge, above=0, remedy="the minimiser is unique only for a positive ridge")
    loss_function = loss(name)
    if name == "hinge":
        return _support_vector_machine(V, ridge)
    if len(V) < V.shape[1]:  # the minimiser lies in the span of the rows
        basis, triangle = np.linalg.qr(V.T)
        return np.asarray(basis @ _newton(loss_function, triangle.T, ridge))
    return _newton(loss_function, V, ridge)


def _newton(loss_function: Loss, V: Array, ridge: float) -> Array:
    """Return the minimiser by Newton's method, in which steps that increase the objective are halved."""
    n, p = V.shape
    a = np.zeros(p)

    def objective(a: Array) -> float:
        return float(loss_function.value(V @ a).mean() + ridge / 2 * (a @ a))

    scale = float(np.linalg.norm(loss_function.slope(np.zeros(n)) @ V / n)) or 1.0
    for _ in range(NEWTON_STEPS):
        m = V @ a
        gradient = loss_function.slope(m) @ V / n + ridge * a
        if np.linalg.norm(gradient) <= GRADIENT * scale:
            return a
        hessian = (V * (loss_function.curvature(m) / n)[:, None]).T @ V
        hessian[np.diag_indices(p)] += ridge
        direction, now, step = np.linalg.solve(hessian, gradient), objective(a), 1.0
        while objective(a - step * direction) > now + 1e-12 * abs(now) and step > 1e-6:
            step /= 2
        a = a - step * direction
    raise ConvergenceError(
        f"Newton's method for the {loss_function.name} loss did not converge", a, float(np.linalg.norm(gradient))
    )


def _support_vector_machine(V: Array, ridge: float) -> Array:
    """Return the minimiser for the hinge loss, by coordinate descent on the dual problem (liblinear, no intercept)."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    # LinearSVC needs two classes. The objective does not change if a row and its label both change sign.
    y = np.where(np.arange(len(V)) % 2 == 0, 1, -1)
    machine = LinearSVC(
        loss="hinge",
        C=1 / (len(V) * ridge),
        fit_intercept=False,
        tol=SVM_TOLERANCE,
        max_iter=SVM_STEPS,
        dual=True,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            machine.fit(V * y[:, None], y)
        except ConvergenceWarning as error:
            raise ConvergenceError("coordinate descent for the hinge loss did not converge") from error
    return np.asarray(machine.coef_[0], dtype=float)
