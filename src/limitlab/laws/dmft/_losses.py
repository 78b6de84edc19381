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
    """A loss with its derivatives, each a function of arrays (r, w, e).

    Attributes
    ----------
    first, second
        Gradient and Hessian in r. The Hessian must be bounded where the gradient does not jump.
        None if it is not available; the responses are then computed from values of the gradient.
    cross
        Mixed derivative in r and w, or None if labels are discontinuous in w or if it is not available.
    error
        The value reported as train error, which is the squared residual without 1/2 for regression and the loss for classification.
    linear
        Whether the gradient is linear in all arguments. Then second moments suffice, and few sampled paths give the exact answer.
    vector
        Whether r and w carry a leading axis of neurons and directions.
    exchangeable
        Whether the loss of a vector r is the same for relabelled neurons. Their averages are then symmetrised.
    jumps
        Arguments in which the gradient jumps, among "r" and "w". None: they are located by `jumping_arguments`.
    """

    first: Part
    second: Part | None
    cross: Part | None
    error: Part
    linear: bool = False
    vector: bool = False
    exchangeable: bool = False
    jumps: tuple[str, ...] | None = None


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
        jumps=(),
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
        jumps=(),
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
        jumps=("w",),
    )


def hinge(noise: float) -> Loss:
    """Return the loss L = (1 - y r)_+ with labels y = sign(w + noise e). Its gradient jumps at y r = 1.

    >>> hinge(0.0).first(np.array([0.0, 2.0]), np.array([2.0, 2.0]), np.zeros(2)).tolist()
    [-1.0, 0.0]
    """

    def label(w: Floats, e: Floats) -> Floats:
        return np.where(w + noise * e >= 0, 1.0, -1.0)

    def first(r: Floats, w: Floats, e: Floats) -> Floats:
        y = label(w, e)
        return np.where(y * r < 1, -y, 0.0)

    return Loss(
        first=first,
        second=None,
        cross=None,
        error=lambda r, w, e: np.maximum(1 - label(w, e) * r, 0.0),
        jumps=("r", "w"),
    )


def absolute(noise: float) -> Loss:
    """Return the loss L = |y - r| with y = w + noise e. Its gradient jumps at r = y.

    >>> absolute(0.5).first(np.array([0.0, 3.0]), np.array([1.0, 1.0]), np.zeros(2)).tolist()
    [-1.0, 1.0]
    """
    return Loss(
        first=lambda r, w, e: np.sign(r - w - noise * e),
        second=None,
        cross=None,
        error=lambda r, w, e: np.abs(r - w - noise * e),
        jumps=("r", "w"),
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

    An activation with a kink gives a gradient that jumps in r, and a target that jumps gives one that jumps in w.

    >>> loss = committee(0.0, 2, "tanh", "identity", second_layer=2.0)
    >>> loss.error(np.zeros((2, 1)), np.full((1, 1), 3.0), np.zeros(1))
    array([9.])
    """
    sigma, scale = Activation(activation), second_layer / width
    phi = None if target_function is None else Activation(target_function)
    sigma.derivative(np.zeros(1))  # raises an error for an activation that jumps
    smooth = not sigma.kinks
    jumps = (*(() if smooth else ("r",)), *(("w",) if phi is not None and phi.jumps else ()))

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
        second=second if smooth else None,
        cross=cross if smooth and "w" not in jumps else None,
        error=lambda r, w, e: gap(r, w, e) ** 2,
        linear=sigma.name == "identity" and (phi is None or phi.name == "identity"),
        vector=True,
        exchangeable=True,
        jumps=jumps,
    )


def loss_from_function(
    loss: Callable[[Any, Any, Any], Any], error: Part | None = None, *, vector: bool = False, exchangeable: bool = False
) -> Loss:
    """Return the loss of one sample (r, w, e) that a function defines, with its derivatives.

    Parameters
    ----------
    loss
        Function of scalars or, with `vector`, of arrays r of shape (m,) and w of shape (q,), written with `jax.numpy`; JAX
        differentiates it. A function that JAX cannot differentiate is called with arrays that have the samples as last axis, and its
        gradient in r is computed by differences. The loss must be continuous in r. Its gradient may jump.
    error
        Function of arrays that is reported as train and test error. By default it is the loss.
    vector
        Whether r and w are arrays.
    exchangeable
        Whether relabelling the neurons does not change the loss.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> loss = loss_from_function(lambda r, w, e: jnp.log(jnp.cosh(r - w - 0.1 * e)))
    >>> float(loss.second(np.array(1.0), np.array(1.0), np.array(0.0)))
    1.0
    >>> both = loss_from_function(lambda r, w, e: 0.5 * (w[0] - r[0] * r[1]) ** 2, vector=True)
    >>> both.second(np.ones((2, 1)), np.zeros((1, 1)), np.zeros(1))[:, :, 0]
    array([[1., 2.],
           [2., 1.]])
    >>> loss_from_function(lambda r, w, e: np.abs(r - w)).first(np.array([2.0]), np.array([1.0]), np.zeros(1)).round(9)
    array([1.])
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
    shape = (2,) if vector else ()
    try:
        jax.eval_shape(first, np.zeros(shape), np.zeros(shape), np.zeros(()))
    except jax.errors.JAXTypeError:  # the function converts its arguments to NumPy arrays or to numbers
        return Loss(_differences(loss), None, None, error or loss, vector=vector, exchangeable=exchangeable)
    except (IndexError, TypeError, ValueError):  # the number of neurons is not 2
        pass
    second, cross = (jax.jacfwd(first, argnums=of) for of in (0, 1))
    parts = arrays(first), arrays(second), arrays(cross), error or arrays(loss)
    return Loss(*parts, vector=vector, exchangeable=exchangeable)


DIFFERENCE = 1e-5
"""Step of the differences that replace the derivative of a loss, relative to 1 + |r|."""


def _differences(loss: Part) -> Part:
    """Return the gradient in r by central differences, for a loss of scalars or of vectors."""

    def first(r: Floats, w: Floats, e: Floats) -> Floats:
        r = np.asarray(r, dtype=float)
        step = DIFFERENCE * (1 + np.abs(r))
        if r.ndim < 2:
            return np.asarray((loss(r + step, w, e) - loss(r - step, w, e)) / (2 * step), dtype=float)
        gradient = np.empty_like(r)
        for i in range(len(r)):
            offset = np.zeros_like(r)
            offset[i] = step[i]
            gradient[i] = (loss(r + offset, w, e) - loss(r - offset, w, e)) / (2 * step[i])
        return gradient

    return first


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
        second=None if loss.second is None else lifted(loss.second, 2),
        cross=cross,
        error=lifted(loss.error, 0),
        vector=True,
        exchangeable=True,
    )


LOSSES: dict[str, Callable[[float], Loss]] = dict(
    square=square, tanh=tanh, logistic=logistic, hinge=hinge, absolute=absolute
)
"""Losses of one neuron by name, each a function of the noise."""
