"""Losses of the form L(r; w, e): r = <theta, x> is the prediction's argument, w = <theta_*, x> the truth's, e a standard Gaussian.

The dynamical mean-field equations need L' = dL/dr, L'' and dL'/dw; where labels are not differentiable in w (signs), Stein's lemma gives
the average of the last one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.models.autodiff import double_precision_jax

Floats = NDArray[np.float64]
Part = Callable[[Floats, Floats, Floats], Floats]


@dataclass(frozen=True)
class Loss:
    """A smooth loss with its derivatives, each a function of arrays (r, w, e).

    Attributes
    ----------
    first, second
        dL/dr and d^2L/dr^2; the second must be bounded.
    cross
        d^2L/(dr dw), or None where labels jump with w.
    error
        What is reported as train error: the squared residual without 1/2 for regression, the loss itself for classification.
    linear
        Whether L' is linear in all arguments: then second moments suffice and few sampled paths give the exact answer.
    """

    first: Part
    second: Part
    cross: Part | None
    error: Part
    linear: bool = False


def square(noise: float) -> Loss:
    """L = (y - r)^2 / 2 with y = w + noise e.

    >>> loss = square(0.5)
    >>> float(loss.error(np.array(1.0), np.array(3.0), np.array(2.0)))
    9.0
    """
    return Loss(
        first=lambda r, w, e: r - w - noise * e,
        second=lambda r, w, e: np.ones_like(r),
        cross=lambda r, w, e: -np.ones_like(r),
        error=lambda r, w, e: (r - w - noise * e) ** 2,
        linear=True,
    )


def tanh(noise: float) -> Loss:
    """L = (y - tanh r)^2 / 2 with y = tanh w + noise e.

    >>> loss = tanh(0.0)
    >>> float(loss.first(np.array(0.3), np.array(0.3), np.array(1.0)))
    -0.0
    """

    def gap(r: Floats, w: Floats, e: Floats) -> Floats:
        return np.tanh(w) + noise * e - np.tanh(r)

    def slope(r: Floats) -> Floats:
        return 1 - np.tanh(r) ** 2

    return Loss(
        first=lambda r, w, e: -gap(r, w, e) * slope(r),
        second=lambda r, w, e: slope(r) ** 2 + 2 * gap(r, w, e) * np.tanh(r) * slope(r),
        cross=lambda r, w, e: -slope(w) * slope(r),
        error=lambda r, w, e: gap(r, w, e) ** 2,
    )


def logistic(noise: float) -> Loss:
    """L = log(1 + exp(-y r)) with labels y = sign(w + noise e).

    >>> float(logistic(0.0).first(np.array(0.0), np.array(2.0), np.array(0.0)))
    -0.5
    """
    from scipy.special import expit

    def label(w: Floats, e: Floats) -> Floats:
        return np.where(w + noise * e >= 0, 1.0, -1.0)

    def first(r: Floats, w: Floats, e: Floats) -> Floats:
        y = label(w, e)
        return np.asarray(-y * expit(-y * r))

    return Loss(
        first=first,
        second=lambda r, w, e: np.asarray(expit(r) * expit(-r)),
        cross=None,
        error=lambda r, w, e: np.logaddexp(0.0, -label(w, e) * r),
    )


def from_function(loss: Callable[[Any, Any, Any], Any], error: Part | None = None) -> Loss:
    """A user's loss of scalars (r, w, e), written with `jax.numpy`; JAX differentiates it. `error` defaults to the loss.

    >>> import jax.numpy as jnp
    >>> loss = from_function(lambda r, w, e: jnp.log(jnp.cosh(r - w - 0.1 * e)))
    >>> float(loss.second(np.array(1.0), np.array(1.0), np.array(0.0)))
    1.0
    """
    jax = double_precision_jax()

    def arrays(function: Callable[[Any, Any, Any], Any]) -> Part:
        mapped = jax.jit(jax.vmap(function))
        return lambda r, w, e: np.asarray(mapped(*(np.atleast_1d(np.asarray(x, dtype=float)) for x in (r, w, e)))).reshape(
            np.shape(r)
        )

    first = jax.grad(loss)
    return Loss(arrays(first), arrays(jax.grad(first)), arrays(jax.grad(first, argnums=1)), error or arrays(loss))


LOSSES: dict[str, Callable[[float], Loss]] = {"square": square, "tanh": tanh, "logistic": logistic}
