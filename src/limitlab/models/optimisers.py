"""Adam for NumPy arrays and for networks that JAX differentiates, the import of JAX, and the recognition of PyTorch modules.

JAX is imported at first use and set to double precision. PyTorch is never imported; a module of the user is recognised by its type.
The step of Adam falls to zero along half a cosine.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

# -- JAX and PyTorch ----------------------------------------------------------------------------------------------------


def double_precision_jax() -> ModuleType:
    """Return the module `jax` with 64-bit floats switched on, because all of limitlab computes with 64-bit floats.

    >>> jax = double_precision_jax()
    >>> float(jax.grad(lambda x: x**3)(2.0))
    12.0
    >>> str(jax.numpy.zeros(1).dtype)
    'float64'
    """
    import jax

    jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
    return jax


def is_torch_module(model: Any) -> bool:
    """Return whether this is a `torch.nn.Module`, without importing PyTorch.

    >>> is_torch_module({"weights": [1.0]})
    False
    """
    return any(kind.__module__.startswith("torch.") and kind.__name__ == "Module" for kind in type(model).__mro__)


# -- Adam ---------------------------------------------------------------------------------------------------------------

Array = NDArray[Any]

FIRST, SECOND, SMALL = 0.9, 0.999, 1e-8  # decay rates of the two averages, and a number that avoids division by 0
AT_ONCE = 50
"""Number of steps whose batches are passed to the compiled program in one call."""


class Adam:
    """The method Adam, which updates arrays of parameters in place.

    Parameters
    ----------
    state
        The arrays.
    step
        Step size at the start.
    steps
        Number of steps after which the step size is zero.

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
        """Change the parameters by one step, given the gradients of the loss."""
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
    """Return the parameters of a network `apply(parameters, x)` after training with Adam, in single precision.

    The loss is the mean squared error of random batches.

    Parameters
    ----------
    apply, parameters
        The network, written with JAX, and its parameters at the start, as arrays in lists, tuples and dictionaries.
    X, y
        Training inputs and labels, shapes (samples, ...) and (samples, outputs).
    rng
        Generator that draws the batches.
    steps, batch, step
        Number of steps, number of samples in each batch, and step size of Adam at the start.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((50, 2))
    >>> weights = trained_by_adam(lambda w, x: x @ w, np.zeros((2, 1)), X, X[:, :1], np.random.default_rng(1), steps=300)
    >>> bool(np.abs(np.asarray(weights) - [[1.0], [0.0]]).max() < 1e-3)
    True
    """
    jax = double_precision_jax()
    state = jax.tree_util.tree_map(lambda leaf: np.asarray(leaf, dtype=np.float32), parameters)
    zero = jax.tree_util.tree_map(np.zeros_like, state)
    inputs, labels, run = X.astype(np.float32), y.astype(np.float32), compiled_steps(apply)
    carried = (state, zero, zero)
    for begin in range(0, steps, AT_ONCE):
        done = np.arange(begin, min(begin + AT_ONCE, steps))
        rows = rng.integers(0, len(inputs), (done.size, batch))
        carried = run(carried, (inputs[rows], labels[rows], *_rates(done, step, steps)))
    return jax.tree_util.tree_map(np.array, carried[0])


def _rates(done: Array, step: float, steps: int) -> tuple[Array, Array]:
    """Return the factors of the first average in the next steps, and the divisors of the second average under the root."""
    now = step * (1 + np.cos(np.pi * done / steps)) / 2 / (1 - FIRST ** (done + 1))
    return now.astype(np.float32), (1 - SECOND ** (done + 1)).astype(np.float32)


@functools.lru_cache(maxsize=8)
def compiled_steps(apply: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a compiled program that makes several steps of Adam on a list of batches.

    Compiling takes longer than a short training. The program is therefore cached per network and shape of its batches.
    """
    jax = double_precision_jax()
    slope, each = jax.grad(lambda parameters, x, y: ((apply(parameters, x) - y) ** 2).mean()), jax.tree_util.tree_map

    def move(carried: Any, batch: Any) -> Any:
        (state, first, second), (x, y, now, share) = carried, batch
        slopes = slope(state, x, y)
        first = each(lambda m, g: FIRST * m + (1 - FIRST) * g, first, slopes)
        second = each(lambda v, g: SECOND * v + (1 - SECOND) * g**2, second, slopes)
        moved = each(lambda part, m, v: part - now * m / (jax.numpy.sqrt(v / share) + SMALL), state, first, second)
        return (moved, first, second), None

    compiled: Callable[[Any, Any], Any] = jax.jit(lambda carried, batches: jax.lax.scan(move, carried, batches)[0])
    return compiled
