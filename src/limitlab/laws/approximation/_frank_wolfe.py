"""The method of Frank and Wolfe, which solves a convex problem over measures by adding one neuron of a two-layer network at a time.

The dictionary is {+-g relu(<w, x>), |w| = 1} on fixed inputs. Step k moves a share 2/(k + 2) of the weight to the neuron that is most
correlated with the residual. Let B be the largest norm in the dictionary. For a target in the closed convex hull, the error is at most
16 B^2/(k + 2) if every step uses the best neuron. The search for this neuron is not convex, and the neuron that it
returns can have a lower correlation (`correlated_neuron`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.models.data import sphere

__all__ = ["GreedyNetwork", "frank_wolfe"]

Array = NDArray[Any]

DIRECTIONS, ASCENT, KEPT = 2000, 60, 20


@dataclass(frozen=True)
class GreedyNetwork:
    """A network f = sum_i a_i relu(<w_i, x>) built one neuron at a time.

    Attributes
    ----------
    neurons, second_layer
        Unit vectors w_i, and a_i.
    errors
        Mean squared error after 0, 1, 2, ... steps.
    """

    neurons: Array
    second_layer: Array
    errors: Array


def frank_wolfe(X: Array, y: Array, scale: float, steps: int, seed: int = 0) -> GreedyNetwork:
    """Fit y on the rows of X by `steps` steps of the method of Frank and Wolfe.

    Parameters
    ----------
    X, y
        Inputs and target.
    scale
        The sum g of the absolute values of the second-layer weights.
    steps, seed
        Number of steps, and seed of the random directions.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((50, 2))
    >>> network = frank_wolfe(X, np.maximum(X[:, 0], 0), 1.0, 20)
    >>> network.errors.shape, bool(network.errors[-1] < 0.02)
    ((21,), True)
    """
    rng = np.random.default_rng(seed)
    f, neurons = np.zeros(len(X)), np.zeros((steps, X.shape[1]))
    second, errors = np.zeros(steps), [float(np.mean(y**2))]
    for k in range(steps):
        w, value = correlated_neuron(rng, X, y - f)
        share = 2 / (k + 2)
        f = (1 - share) * f + share * scale * np.sign(value) * np.maximum(X @ w, 0.0)
        second *= 1 - share
        neurons[k], second[k] = w, share * scale * np.sign(value)
        errors.append(float(np.mean((y - f) ** 2)))
    return GreedyNetwork(neurons, second, np.array(errors))


def correlated_neuron(
    rng: np.random.Generator, X: Array, residual: Array, directions: int = DIRECTIONS, ascent: int = ASCENT
) -> tuple[Array, float]:
    """Return a unit w with a large |mean residual relu(<w, x>)|, and that mean with its sign.

    The search tries random directions and then ascends from the best of them.
    """
    w = sphere(rng, directions, X.shape[1])
    value = np.maximum(w @ X.T, 0.0) @ residual / len(X)
    best = np.argsort(-np.abs(value))[:KEPT]
    w, value, length = w[best], value[best], np.full((KEPT, 1), 0.3)
    for _ in range(ascent):
        slope = np.sign(value)[:, None] * (((w @ X.T) > 0) * residual) @ X
        slope -= (slope * w).sum(axis=1, keepdims=True) * w
        moved = w + length * slope / np.maximum(np.linalg.norm(slope, axis=1, keepdims=True), 1e-300)
        moved /= np.linalg.norm(moved, axis=1, keepdims=True)
        trial = np.maximum(moved @ X.T, 0.0) @ residual / len(X)
        up = (np.abs(trial) > np.abs(value))[:, None]
        w, value = np.where(up, moved, w), np.where(up[:, 0], trial, value)
        length = np.where(up, 1.2 * length, 0.5 * length)
    top = int(np.argmax(np.abs(value)))
    return w[top], float(value[top])


def largest_norm(X: Array, scale: float) -> float:
    """Return an upper bound of B, the largest root mean square of g relu(<w, x>) over unit w.

    The mean is over the n rows x of X, and g is `scale`. The bound is g times the largest singular value of X/sqrt(n).
    """
    return float(scale * np.linalg.norm(X, 2) / np.sqrt(len(X)))
