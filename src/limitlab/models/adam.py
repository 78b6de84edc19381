"""Adam, with a step that falls to zero along half a cosine: as such, and for any network that JAX can differentiate."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.models.autodiff import double_precision_jax

Array = NDArray[Any]

FIRST, SECOND, SMALL = 0.9, 0.999, 1e-8  # the averages and the guard of the division


class Adam:
    """Moves arrays of parameters in place.

    Parameters
    ----------
    state
        The arrays.
    step
        Step at the start.
    steps
        Number of steps after which it is zero.

    Examples
    --------
    >>> x = np.array([3.0, -2.0])
    >>> method = Adam([x], 0.1, 400)
    >>> for _ in range(400):
    ...     method.move([2 * x])
    >>> bool(np.abs(x).max() < 1e-2)
    True
    """

    def __init__(self, state: list[Array], step: float, steps: int):
        self.state, self.step, self.steps, self.done = state, step, steps, 0
        self.first = [np.zeros_like(part) for part in state]
        self.second = [np.zeros_like(part) for part in state]

    def move(self, slopes: list[Array]) -> None:
        """One step against the slopes."""
        now = self.step * (1 + np.cos(np.pi * self.done / self.steps)) / 2
        self.done += 1
        for part, slope, m, v in zip(self.state, slopes, self.first, self.second, strict=True):
            m += (1 - FIRST) * (slope - m)
            v += (1 - SECOND) * (slope**2 - v)
            part -= now * (m / (1 - FIRST**self.done)) / (np.sqrt(v / (1 - SECOND**self.done)) + SMALL)


def trained_by_adam(
    apply: Callable[[Any, Any], Any],
    parameters: Any,
    X: Array,
    y: Array,
    rng: np.random.Generator,
    *,
    steps: int = 1000,
    batch: int = 64,
    step: float = 0.02,
) -> Any:
    """Parameters of a network `apply(parameters, x)` after `steps` steps on the mean squared error of random batches, in single precision.

    Parameters
    ----------
    apply, parameters
        The network, written with JAX, and its start: arrays in lists, tuples and dictionaries.
    X, y
        Training inputs and labels, shapes (samples, ...) and (samples, outputs).
    rng
        Draws the batches.
    steps, batch, step
        Steps, samples in each, and Adam's step at the start.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((50, 2))
    >>> found = trained_by_adam(lambda w, x: x @ w, np.zeros((2, 1)), X, X[:, :1], np.random.default_rng(1), steps=300)
    >>> bool(np.abs(np.asarray(found) - [[1.0], [0.0]]).max() < 1e-3)
    True
    """
    tree_util = double_precision_jax().tree_util
    leaves, tree = tree_util.tree_flatten(parameters)
    state = [np.array(leaf, dtype=np.float32) for leaf in leaves]
    inputs, labels = X.astype(np.float32), y.astype(np.float32)
    slope, method = compiled_slope(apply), Adam(state, step, steps)
    for _ in range(steps):
        rows = rng.integers(0, len(inputs), batch)
        now = tree_util.tree_unflatten(tree, [part.copy() for part in state])
        method.move([np.asarray(part) for part in tree_util.tree_leaves(slope(now, inputs[rows], labels[rows]))])
    return tree_util.tree_unflatten(tree, state)


@functools.lru_cache(maxsize=8)
def compiled_slope(apply: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """The gradient of the mean squared error in the parameters. Compiling takes longer than a short training, hence once per network
    and shape of its inputs, not once per training."""
    jax = double_precision_jax()
    compiled: Callable[[Any, Any, Any], Any] = jax.jit(
        jax.grad(lambda parameters, x, y: ((apply(parameters, x) - y) ** 2).mean())
    )
    return compiled
