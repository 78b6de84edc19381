"""Rademacher complexities, which measure the correlation of a class of functions with random signs on fixed inputs.

    R(F) = E sup_{f in F} (1/n) sum_i e_i f(x_i),   e_i = +-1 independent (docs/theory/uniform_convergence.md, eqs. 1-3).

For linear predictors of norm at most rho the supremum is rho |sum e_i x_i|/n. For two-layer networks with sum |a_j| <= gamma and weights
w_j of length 1 it is attained by a single neuron for every width, and equals gamma sup_w |sum e_i s(<w, x_i>)|/n. The function of w is not
concave. Ascent from many starts gives a lower bound. In the plane, for relu, a sweep over the angles at which a neuron becomes active or
inactive gives the exact value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.checks import number
from limitlab.errors import Refused
from limitlab.models.activations import Activation

__all__ = ["Rademacher", "rademacher_linear", "rademacher_two_layer"]

Array = NDArray[Any]

ENUMERATED = 14
"""Largest number of samples for which all sign patterns are summed."""


@dataclass(frozen=True)
class Rademacher:
    """A Rademacher complexity.

    Attributes
    ----------
    value, standard_error
        The mean over sign patterns, and its standard error (0 if all patterns were summed).
    bound
        An upper bound in closed form, equation (2) or (3).
    exact
        Whether the suprema are exact. If not, they are computed by ascent, and `value` is a lower estimate.
    """

    value: float
    standard_error: float
    bound: float
    exact: bool = True


def rademacher_linear(X: ArrayLike, radius: float, draws: int = 4000, seed: int = 0) -> Rademacher:
    """Return the Rademacher complexity of the predictors <theta, x>, |theta| <= radius, on the rows of X.

    Parameters
    ----------
    X
        Inputs, one row each. Up to 14 rows all sign patterns are summed; for more rows the patterns are sampled.
    radius
        Largest norm rho of theta.
    draws, seed
        Number and seed of the sampled sign patterns.

    Examples
    --------
    >>> complexity = rademacher_linear([[3.0, 0.0], [0.0, 4.0]], radius=2.0)
    >>> complexity.value, complexity.bound, complexity.standard_error
    (5.0, 5.0, 0.0)
    """
    inputs = _table(X)
    number("radius", radius, least=0, infinite=True)
    n = len(inputs)
    signs = all_signs(n) if n <= ENUMERATED else random_signs(n, draws, seed)
    lengths = radius / n * np.linalg.norm(signs @ inputs, axis=1)
    error = 0.0 if n <= ENUMERATED else float(lengths.std(ddof=1) / np.sqrt(len(lengths)))
    return Rademacher(float(lengths.mean()), error, float(radius / n * np.sqrt((inputs**2).sum())))


def rademacher_two_layer(
    X: ArrayLike,
    l1_norm: float,
    activation: Any = "relu",
    *,
    width: int = 1,
    draws: int = 24,
    starts: int = 40,
    seed: int = 0,
) -> Rademacher:
    """Return the Rademacher complexity of the networks sum_j a_j s(<w_j, x>), |a|_1 <= l1_norm, unit w_j, on the rows of X.

    Parameters
    ----------
    X
        Inputs, one row each. In two dimensions, with relu, the suprema are exact.
    l1_norm
        Largest sum gamma of the absolute values of the second-layer weights.
    activation
        The activation s.
    width
        Number of neurons of the networks. The supremum gives all second-layer weight to the best neuron, so the width only multiplies
        the number of starts.
    draws, starts, seed
        Number of sampled sign patterns, number of starting points of the ascent for each pattern and neuron, and seed of both.

    Examples
    --------
    >>> complexity = rademacher_two_layer([[1.0, 0.0], [0.0, 1.0]], l1_norm=2.0)
    >>> complexity.exact, round(complexity.bound, 6)
    (True, 2.828427)
    """
    inputs, s = _table(X), Activation(activation)
    n, d = inputs.shape
    number("l1_norm", l1_norm, least=0, infinite=True)
    exact = d == 2 and s.name == "relu"
    rng = np.random.default_rng(seed)
    patterns = all_signs(n) if n <= 8 else 1 - 2.0 * rng.integers(0, 2, (draws, n))
    # the random numbers of a sign pattern do not depend on the width, so more neurons only add starts
    tops = [
        switching_supremum(inputs, signs)
        if exact
        else ascended(inputs, signs, s, starts * width, np.random.default_rng([seed, k]))
        for k, signs in enumerate(patterns)
    ]
    suprema = l1_norm / n * np.array(tops)
    error = 0.0 if n <= 8 else float(suprema.std(ddof=1) / np.sqrt(len(suprema)))
    return Rademacher(float(suprema.mean()), error, two_layer_bound(inputs, l1_norm, s), exact)


def two_layer_bound(inputs: Array, l1_norm: float, activation: Activation) -> float:
    """Return the bound 2 Lip gamma sqrt(sum |x|^2)/n of equation (3), or infinity if s(0) is not 0.

    >>> two_layer_bound(np.array([[3.0, 4.0]]), 1.0, Activation("relu"))
    10.0
    """
    if abs(float(activation(0.0))) > 1e-12:
        return float("inf")
    lipschitz = float(np.abs(activation.derivative(np.linspace(-20.0, 20.0, 4001))).max())
    return float(2 * lipschitz * l1_norm / len(inputs) * np.sqrt((inputs**2).sum()))


def ascended(inputs: Array, signs: Array, s: Activation, starts: int, rng: np.random.Generator, steps: int = 150) -> float:
    """Return a lower estimate of sup over unit w of |sum_i e_i s(<w, x_i>)|, by projected ascent from random starts for both signs.

    Half of the starts are drawn among directions aligned with the signs, where the largest values are.
    """
    d = inputs.shape[1]
    w = rng.standard_normal((starts, d))
    w[1::2] += np.sqrt(d) * (signs @ inputs) / np.linalg.norm(signs @ inputs)
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    w, direction = np.concatenate([w, w]), np.repeat([1.0, -1.0], starts)[:, None]
    best = 0.0
    length = np.ones((2 * starts, 1))
    value = (s(w @ inputs.T) @ signs)[:, None] * direction
    for _ in range(steps):
        gradient = direction * ((s.derivative(w @ inputs.T) * signs) @ inputs)
        gradient -= (gradient * w).sum(axis=1, keepdims=True) * w
        size = np.linalg.norm(gradient, axis=1, keepdims=True)
        moved = w + length * gradient / np.maximum(size, 1e-300)
        moved /= np.linalg.norm(moved, axis=1, keepdims=True)
        higher = (s(moved @ inputs.T) @ signs)[:, None] * direction
        up = higher > value
        w, value, length = np.where(up, moved, w), np.where(up, higher, value), np.where(up, 1.3 * length, 0.5 * length)
        best = max(best, float(value.max()))
        if length.max() < 1e-7:
            break
    return best


def switching_supremum(inputs: Array, signs: Array) -> float:
    """Return sup over unit w in the plane of |sum_i e_i relu(<w, x_i>)|, exactly.

    On an arc between the angles at which a neuron becomes active or inactive, the sum is <w, c> with a fixed vector c. The largest |<w, c>|
    on the arc is attained at the direction of c or -c, or at an end of the arc.

    >>> round(switching_supremum(np.array([[3.0, 4.0], [0.0, 1.0]]), np.array([1.0, 1.0])), 12) == round(34**0.5, 12)
    True
    """
    angles = np.arctan2(inputs[:, 1], inputs[:, 0])
    ends = np.sort(np.concatenate([angles + np.pi / 2, angles - np.pi / 2]) % (2 * np.pi))
    middles = (ends + np.roll(ends, -1)) / 2
    middles[-1] = (ends[-1] + ends[0] + 2 * np.pi) / 2
    best = 0.0
    following = np.append(ends[1:], ends[0] + 2 * np.pi)
    for low, high, middle in zip(ends, following, middles, strict=True):
        active = inputs @ np.array([np.cos(middle), np.sin(middle)]) > 0
        vector = (signs * active) @ inputs
        for sign in (1.0, -1.0):
            peak = np.arctan2(sign * vector[1], sign * vector[0])
            turn = (peak - low) % (2 * np.pi)
            if turn <= high - low:
                best = max(best, float(np.linalg.norm(vector)))
        for angle in (low, high):
            best = max(best, abs(float(vector @ np.array([np.cos(angle), np.sin(angle)]))))
    return best


def all_signs(n: int) -> Array:
    """Return all sign patterns of n signs whose first sign is +1, of shape (2^(n-1), n). The other patterns are their negatives.

    >>> all_signs(2).tolist()
    [[1.0, 1.0], [1.0, -1.0]]
    """
    bits = (np.arange(2 ** (n - 1))[:, None] >> np.arange(n - 1)) & 1
    return np.column_stack([np.ones(len(bits)), 1 - 2.0 * bits])


def random_signs(n: int, draws: int, seed: int) -> Array:
    """Return independent sign patterns, shape (draws, n)."""
    return 1 - 2.0 * np.random.default_rng(seed).integers(0, 2, (draws, n))


def _table(X: ArrayLike) -> Array:
    inputs = np.asarray(X, dtype=float)
    if inputs.ndim != 2 or not len(inputs) or not np.isfinite(inputs).all():
        raise Refused(f"X of shape {inputs.shape} is not allowed: must be a table of finite numbers with at least one row")
    return inputs
