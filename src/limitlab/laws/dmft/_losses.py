"""Losses L(r; w, e) that depend on a sample through r = <theta, x>, w = <theta_*, x> and a standard Gaussian e.

The dynamical mean-field equations need the gradient of L in r, its Hessian and the mixed derivative in r and w. If labels are not
differentiable in w (signs), Stein's lemma gives the average of the mixed derivative. Losses of one neuron take plain arrays. Losses of m
neurons and q directions of the truth take r of shape (m, N) and w of shape (q, N), and return (m, N), (m, m, N) and (m, q, N).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.models.activations import Activation
from limitlab.models.optimisers import double_precision_jax

__all__ = ["loss_from_function"]

Floats = NDArray[np.float64]
Part = Callable[[Floats, Floats, Floats], Floats]


@dataclass(frozen=True)
class Loss:
    """A smooth loss with its derivatives, each a function of arrays (r, w, e).

    Attributes
    ----------
    first, second
        Gradient and Hessian in r. The Hessian must be bounded.
    cross
        Mixed derivative in r and w, or None if labels are discontinuous in w.
    error
        The value reported as train error, which is the squared residual without 1/2 for regression and the loss for classification.
    linear
        Whether the gradient is linear in all arguments. Then second moments suffice, and few sampled paths give the exact answer.
    vector
        Whether r and w carry a leading axis of neurons and directions.
    exchangeable
        Whether the loss of a vector r is the same for relabelled neurons. Their averages are then symmetrised.
    """

    first: Part
    second: Part
    cross: Part | None
    error: Part
    linear: bool = False
    vector: bool = False
    exchangeable: bool = False


def square(noise: float) -> Loss:
    """Return the loss L = (y - r)^2 / 2 with y = w + noise e.

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
    """Return the loss L = (y - tanh r)^2 / 2 with y = tanh w + noise e.

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
    """Return the loss L = log(1 + exp(-y r)) with labels y = sign(w + noise e).

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


def committee(
    noise: float,
    width: int,
    activation: Activation | str = "tanh",
    target_function: Activation | str | None = "tanh",
    second_layer: float = 1.0,
) -> Loss:
    """Return L = (y - f)^2 / 2 for the network f = (a/m) sum_j sigma(r_j) with fixed a, and y = phi(w) + noise e.

    `target_function` None means phi = 0.

    The mixed derivative comes from Stein's lemma if the derivative of the target is not available.

    >>> loss = committee(0.0, 2, "tanh", "identity", second_layer=2.0)
    >>> loss.error(np.zeros((2, 1)), np.full((1, 1), 3.0), np.zeros(1))
    array([9.])
    """
    sigma, scale = Activation(activation), second_layer / width
    phi = None if target_function is None else Activation(target_function)
    sigma.second_derivative(np.zeros(1))  # raises an error if the activation has none

    def gap(r: Floats, w: Floats, e: Floats) -> Floats:
        label = noise * e if phi is None else phi(w[0]) + noise * e
        return np.asarray(label - scale * sigma(r).sum(axis=0))

    def second(r: Floats, w: Floats, e: Floats) -> Floats:
        slope = scale * sigma.derivative(r)
        hessian = slope[:, None] * slope
        for j in range(width):
            hessian[j, j] -= scale * gap(r, w, e) * sigma.second_derivative(r[j])
        return np.asarray(hessian)

    def cross(r: Floats, w: Floats, e: Floats) -> Floats:
        rise = np.zeros_like(w[0]) if phi is None else phi.derivative(w[0])
        return np.asarray(-scale * (rise * sigma.derivative(r))[:, None])

    return Loss(
        first=lambda r, w, e: -scale * gap(r, w, e) * sigma.derivative(r),
        second=second,
        cross=cross if phi is None or _has_derivative(phi) else None,
        error=lambda r, w, e: gap(r, w, e) ** 2,
        linear=sigma.name == "identity" and (phi is None or phi.name == "identity"),
        vector=True,
        exchangeable=True,
    )


def _has_derivative(function: Activation) -> bool:
    """Return whether a target has a derivative at almost every point. The derivative may jump, but the function may not."""
    try:
        function.derivative(np.zeros(1))
    except ValueError:
        return False
    return True


def loss_from_function(
    loss: Callable[[Any, Any, Any], Any], error: Part | None = None, *, vector: bool = False, exchangeable: bool = False
) -> Loss:
    """Return the loss of one sample that a function written with `jax.numpy` defines. JAX computes its derivatives.

    The arguments of the function are the prediction r, the signal w of the label, and the noise e of the label. By default `error` is the
    loss. r and w are scalars or, with `vector`, arrays of shape (m,) and (q,). `exchangeable` states that
    relabelling the neurons does not change the loss.

    >>> import jax.numpy as jnp
    >>> loss = loss_from_function(lambda r, w, e: jnp.log(jnp.cosh(r - w - 0.1 * e)))
    >>> float(loss.second(np.array(1.0), np.array(1.0), np.array(0.0)))
    1.0
    >>> both = loss_from_function(lambda r, w, e: 0.5 * (w[0] - r[0] * r[1]) ** 2, vector=True)
    >>> both.second(np.ones((2, 1)), np.zeros((1, 1)), np.zeros(1))[:, :, 0]
    array([[1., 2.],
           [2., 1.]])
    """
    jax = double_precision_jax()

    def arrays(function: Callable[[Any, Any, Any], Any]) -> Part:
        mapped = jax.jit(jax.vmap(function, in_axes=-1, out_axes=-1))
        if vector:
            return lambda r, w, e: np.array(mapped(r, w, e))
        return lambda r, w, e: np.asarray(mapped(*(np.atleast_1d(np.asarray(x, dtype=float)) for x in (r, w, e)))).reshape(
            np.shape(r)
        )

    first = jax.grad(loss)
    second, cross = (jax.jacfwd(first, argnums=of) for of in (0, 1))
    parts = arrays(first), arrays(second), arrays(cross), error or arrays(loss)
    return Loss(*parts, vector=vector, exchangeable=exchangeable)


def as_vector(loss: Loss) -> Loss:
    """Return a loss of one neuron as a loss of vectors of length 1. A loss of vectors is returned unchanged.

    >>> as_vector(square(0.0)).second(np.zeros((1, 3)), np.zeros((1, 3)), np.zeros(3)).shape
    (1, 1, 3)
    """
    if loss.vector:
        return loss

    def lifted(part: Part, axes: int) -> Part:
        return lambda r, w, e: part(r[0], w[0], e)[(None,) * axes]

    cross = None if loss.cross is None else lifted(loss.cross, 2)
    return replace(
        loss,
        first=lifted(loss.first, 1),
        second=lifted(loss.second, 2),
        cross=cross,
        error=lifted(loss.error, 0),
        vector=True,
        exchangeable=True,
    )


LOSSES: dict[str, Callable[[float], Loss]] = {"square": square, "tanh": tanh, "logistic": logistic}
"""Losses of one neuron by name, each a function of the noise."""
