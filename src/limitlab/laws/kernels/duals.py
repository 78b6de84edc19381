"""The dual of an activation, E s(u) s(v) and E s'(u) s'(v) for a centred Gaussian pair (u, v).

The kernels of infinitely wide networks depend on an activation s only through its duals (docs/theory/tangent_kernels.md, eqs. 3-5). For
variances q1, q2 and covariance c = rho sqrt(q1 q2) they are computed in three ways:

    closed forms     relu, abs, erf, sin, cos, identity, square;
    Hermite series   sum_k a_k(q1) a_k(q2) rho^k,  a_k(q) = E[s(sqrt(q) z) h_k(z)], for any smooth s. The length follows from the
                     weight sum_k a_k^2 = E s^2 that the series omits;
    quadrature       split at the kinks of s, pair by pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import ConvergenceError, Refused
from limitlab.models.activations import Activation
from limitlab.numerics.gaussian import expectation, hermite_rule, hermite_values, pair_expectation
from limitlab.numerics.quadrature import panel_rule

__all__ = ["dual"]

Array = NDArray[Any]


Kinks = tuple[float, ...]

SNAP = 4 * np.finfo(float).eps
"""Correlations this close to 1 or -1 count as 1 or -1, because rounding of their angle (1e-8) enters the result to first order."""

DEGREES = (40, 80, 160, 250)
"""Lengths of the Hermite series, tried in turn, each with a rule of 2.5 times as many nodes."""

LEFT_OUT = 1e-13
"""Largest share of E s^2 (and of E s'^2) that a series may omit."""

TOLERATED = 1e-12
"""Largest error of the series for a pair (it falls as |rho| falls). A pair with a larger error is averaged by a quadrature rule."""

RELIABLE = 3e-6
"""Largest share that the longest series may omit. Beyond it the error of its coefficients exceeds 5e-11 (measured for tanh)."""

MOST_PAIRS = 3000
"""Largest number of pairs that are averaged one by one for an activation with kinks. Each takes milliseconds."""

MOST_LEFT = 100
"""Largest number of pairs averaged one by one for a smooth activation that is too steep for the rule over many pairs at once."""


class Duals(NamedTuple):
    """The pair of values E s(u) s(v) and E s'(u) s'(v)."""

    value: Array
    slope: Array


def dual(activation: Any, q1: ArrayLike, q2: ArrayLike, c: ArrayLike) -> Duals:
    """Return E s(u) s(v) and E s'(u) s'(v) for a centred Gaussian pair of variances q1, q2 and covariance c; arguments broadcast.

    Parameters
    ----------
    activation
        The activation s, given by a name, a function of arrays, or an `Activation`. It must not jump.
    q1, q2
        Variances, at least 0. If one of them is 0, the slope of a kinked s is the mean of its two sides.
    c
        Covariance, at most sqrt(q1 q2) in absolute value.

    Returns
    -------
    Duals
        The pair (value, slope), arrays of the common shape.

    Examples
    --------
    >>> value, slope = dual("relu", 1.0, 2.0, 0.7)
    >>> round(float(value), 12), round(float(slope), 12)
    (0.428260811631, 0.33241134758)
    >>> dual("tanh", 1.0, 1.0, [0.0, 0.5]).value.round(9).tolist()
    [0.0, 0.186324413]
    """
    first, second, covariance = np.broadcast_arrays(*(np.asarray(value, dtype=float) for value in (q1, q2, c)))
    _checked_variances(first, second, covariance)
    shape = first.shape
    Activation(activation).check_derivatives()
    duals = _rows(Activation(activation))(first.reshape(-1, 1), second.reshape(-1, 1), covariance.reshape(-1, 1))
    return Duals(*(part.reshape(shape)[()] for part in duals))


def dual_matrix(activation: Activation, q1: Array, q2: Array, c: Array) -> Duals:
    """Return the duals of all pairs of a row and a column, for q1 of length n, q2 of length m, c of shape (n, m).

    >>> dual_matrix(Activation("square"), np.ones(1), np.array([1.0, 2.0]), np.array([[0.5, 0.0]])).value.tolist()
    [[1.5, 2.0]]
    """
    if activation.name == "relu":
        return _relu_matrix(np.sqrt(q1), np.sqrt(q2), c)
    return _rows(activation)(q1[:, None], q2[None, :], c)


def _relu_matrix(roots1: Array, roots2: Array, c: Array) -> Duals:
    """Return the closed form for relu from a compiled function."""
    from limitlab.laws.kernels._fused import relu_duals

    value = np.array(c, dtype=float, order="C")
    slope = np.empty_like(value)
    relu_duals(value, slope, roots1, roots2)
    return Duals(value, slope)


def own_duals(activation: Activation, q: Array) -> Duals:
    """Return the duals E s(u)^2 and E s'(u)^2 for u ~ N(0, q).

    They are the duals of two Gaussians of correlation 1. This function does not compute the correlation and has no rounding error from it.

    >>> own_duals(Activation("relu"), np.array([3.0])).value.tolist()
    [1.5]
    """
    if activation.name == "relu":
        return Duals(np.asarray(q / 2), np.full(np.shape(q), 0.5))
    flat = np.ravel(q)
    if activation.name in CLOSED:
        duals = CLOSED[activation.name](flat, flat, flat)
    else:
        functions = (activation,) if activation.jumps else (activation, _slope_of(activation, flat))
        kinks = activation.kinks
        parts = [
            np.atleast_1d(expectation(lambda x, f=f: np.square(f(x)), std=np.sqrt(flat), kinks=kinks, tolerance=1e-11))
            for f in functions
        ]
        duals = Duals(parts[0], parts[1] if len(parts) > 1 else np.full(flat.shape, np.nan))
    return Duals(*(part.reshape(np.shape(q)) for part in duals))


def _slope_of(activation: Activation, variances: Array) -> Callable[[Any], Any]:
    """Return the derivative of an activation, or NaN for an activation that jumps, whose tangent kernel is refused."""
    if activation.jumps:
        return lambda x: np.full(np.shape(x), np.nan)
    return activation.derivative


def correlation(root1: Array, root2: Array, c: Array) -> Array:
    """Return c / (root1 root2) within [-1, 1], with 0 for a variance of 0 and 1 or -1 within rounding of these values."""
    scale = root1 * root2
    rho = np.divide(c, scale, out=np.zeros(np.broadcast_shapes(scale.shape, c.shape)), where=scale > 0)
    return np.where(np.abs(rho) >= 1 - SNAP, np.sign(rho), rho)


def _checked_variances(q1: Array, q2: Array, c: Array) -> None:
    for name, values in (("q1", q1), ("q2", q2)):
        if not (np.isfinite(values).all() and (values >= 0).all()):
            raise Refused(f"{name} = {values.min(initial=math.inf):g} is not allowed: must be a finite number, at least 0")
    over = np.abs(c) > np.sqrt(q1 * q2) * (1 + 1e-9)
    if over.any() or np.isnan(c).any():
        worst = c[over][0] if over.any() else math.nan
        raise Refused(f"c = {worst:g} is not allowed: must be a covariance, at most sqrt(q1 q2) in absolute value")


# -- closed forms ---------------------------------------------------------------------------------------------------------

Rule = Callable[[Array, Array, Array], Duals]


def _relu(q1: Array, q2: Array, c: Array) -> Duals:
    root1, root2 = np.sqrt(q1), np.sqrt(q2)
    rho = correlation(root1, root2, c)
    share = 0.5 + np.arcsin(rho) / np.pi  # (pi - angle) / pi
    sine = np.sqrt((1 - rho) * (1 + rho))
    return Duals(root1 * root2 * (sine / np.pi + share * rho) / 2, share / 2)


def _abs(q1: Array, q2: Array, c: Array) -> Duals:
    root1, root2 = np.sqrt(q1), np.sqrt(q2)
    rho = correlation(root1, root2, c)
    arc = 2 / np.pi * np.arcsin(rho)
    return Duals(root1 * root2 * (2 / np.pi * np.sqrt((1 - rho) * (1 + rho)) + rho * arc), arc)


def _erf(q1: Array, q2: Array, c: Array) -> Duals:
    product = (1 + 2 * q1) * (1 + 2 * q2)
    return Duals(2 / np.pi * np.arcsin(2 * c / np.sqrt(product)), 4 / np.pi / np.sqrt(np.maximum(product - 4 * c**2, 1.0)))


def _sin(q1: Array, q2: Array, c: Array) -> Duals:
    same, opposite = np.exp(c - (q1 + q2) / 2), np.exp(-c - (q1 + q2) / 2)
    return Duals((same - opposite) / 2, (same + opposite) / 2)


def _cos(q1: Array, q2: Array, c: Array) -> Duals:
    value, slope = _sin(q1, q2, c)
    return Duals(slope, value)


def _identity(q1: Array, q2: Array, c: Array) -> Duals:
    shape = np.broadcast_shapes(q1.shape, q2.shape, c.shape)
    return Duals(np.broadcast_to(c, shape).copy(), np.ones(shape))


def _square(q1: Array, q2: Array, c: Array) -> Duals:
    return Duals(q1 * q2 + 2 * c**2, 4 * c * np.ones_like(q1 * q2))


CLOSED: dict[str, Rule] = {
    "relu": _relu, "abs": _abs, "erf": _erf, "sin": _sin, "cos": _cos, "identity": _identity, "square": _square,
}  # fmt: skip
"""Activations whose duals are elementary functions (docs/theory/tangent_kernels.md, eq. 4)."""


def _rows(activation: Activation) -> Rule:
    """Return the function that computes an activation's duals."""
    closed = CLOSED.get(activation.name)
    if closed is not None:
        return closed
    if activation.kinks:
        return lambda q1, q2, c: _kinked(activation, q1, q2, c)
    return lambda q1, q2, c: _series(activation, q1, q2, c)


# -- Hermite series -------------------------------------------------------------------------------------------------------


def _series(activation: Activation, q1: Array, q2: Array, c: Array) -> Duals:
    """Return the series in rho by Horner's rule, with coefficients computed once per distinct variance."""
    levels, place = np.unique(np.concatenate([q1.ravel(), q2.ravel()]), return_inverse=True)
    at1, at2 = place[: q1.size].reshape(q1.shape), place[q1.size :].reshape(q2.shape)
    values, slopes, left_out = coefficients(activation, levels)
    rho = correlation(np.sqrt(q1), np.sqrt(q2), c)
    # a variance of 0 has rho = 0, and only the first term remains, the mean of the slope
    duals = Duals(_horner(values, at1, at2, rho), _horner(slopes, at1, at2, rho))
    left1, left2 = left_out[at1], left_out[at2]
    # the bound of Cauchy and Schwarz; if a series omits much, the quadrature rule of its coefficients has too few nodes
    doubtful = (np.sqrt(left1 * left2) * np.abs(rho) ** len(slopes) > TOLERATED) | (np.maximum(left1, left2) > RELIABLE)
    if doubtful.any():
        _correct(activation, duals, doubtful, *np.broadcast_arrays(q1, q2, c))
    return duals


def _correct(activation: Activation, duals: Duals, doubtful: Array, q1: Array, q2: Array, c: Array) -> None:
    """Replace the duals of pairs for which the series is too short by averages over the pairs, in place."""
    variances1, variances2, covariance = q1[doubtful], q2[doubtful], c[doubtful]
    root1, root2 = np.sqrt(variances1), np.sqrt(variances2)
    rho = correlation(root1, root2, covariance)
    parts = [
        product_averages(f, root1, root2, rho)
        for f in (activation, _slope_of(activation, np.stack([variances1, variances2])))
    ]
    left = ~(parts[0][1] & parts[1][1])
    if int(left.sum()) > MOST_LEFT:
        raise ConvergenceError(
            f"activation {activation.name!r} is too steep for inputs of variance {variances1.max():.3g}: its Hermite series is too "
            f"short for {int(left.sum())} pairs; scale the inputs down or use an activation with a closed form",
            estimate=duals,
        )
    better = Duals(parts[0][0], parts[1][0])
    if left.any():
        better.value[left], better.slope[left] = _quadrature(
            activation, variances1[left], variances2[left], covariance[left]
        )
    duals.value[doubtful], duals.slope[doubtful] = better


def _horner(table: Array, at1: Array, at2: Array, rho: Array) -> Array:
    total = table[-1][at1] * table[-1][at2] + np.zeros_like(rho)
    for row in table[-2::-1]:
        total *= rho
        total += row[at1] * row[at2]
    return total


def coefficients(activation: Activation, variances: Array) -> tuple[Array, Array, Array]:
    """Return Hermite coefficients of s(sqrt(q) z) and s'(sqrt(q) z), shape (degree, variances), and the share of squares that they omit.

    The series is the shortest that omits at most 1e-13 of E s^2 and E s'^2, or the longest.

    >>> values, slopes, left_out = coefficients(Activation("cube"), np.array([1.0]))
    >>> (values[:5, 0].round(9) + 0.0).tolist(), (left_out < 1e-13).tolist()
    ([0.0, 3.0, 0.0, 2.449489743, 0.0], [True])
    """
    roots = np.sqrt(variances)
    for degree in DEGREES:
        nodes, weights = hermite_rule(round(2.5 * degree))
        nodes, weights = nodes[weights > 0], weights[weights > 0]
        basis = hermite_values(nodes, degree) * weights
        points = nodes[:, None] * roots
        function = np.asarray(activation(points), dtype=float)
        values = basis @ function
        slopes, square = _slopes(activation, basis, points, values, roots, weights)
        whole = np.stack([weights @ function**2, square])
        included = np.stack([(values**2).sum(axis=0), (slopes**2).sum(axis=0)])
        left_out = np.max((whole - included) / np.where(whole > 0, whole, 1.0), axis=0, initial=0.0)
        if (left_out <= LEFT_OUT).all():
            break
    return values, slopes, left_out


def relative_error(activation: Activation, variances: Array) -> float:
    """Return the relative error of a kernel's entries, from rounding, the series, or averages over single pairs.

    >>> relative_error(Activation("relu"), np.array([1.0])), relative_error(Activation("tanh"), np.array([30.0]))
    (1e-14, 1e-10)
    """
    if activation.name in CLOSED:
        return 1e-14
    return TOLERATED if (coefficients(activation, np.unique(variances))[2] <= RELIABLE / 10).all() else 1e-10


def _slopes(
    activation: Activation, basis: Array, points: Array, values: Array, roots: Array, weights: Array
) -> tuple[Array, Array]:
    """Return coefficients and mean square of the derivative, by parts if the derivative is unknown.

    By parts, E s'(u) h_k = sqrt(k+1) a_{k+1} / sqrt(q).
    """
    try:
        slope = np.asarray(activation.derivative(points), dtype=float)
    except ValueError:
        if not (roots > 0).all():
            raise
        slopes = np.sqrt(np.arange(1, len(values)))[:, None] * values[1:] / roots
        return slopes, (slopes**2).sum(axis=0)
    return basis @ slope, weights @ slope**2


# -- kinks --------------------------------------------------------------------------------------------------------------

KINKED_DEGREE = 400
"""Degree of the Hermite series of an activation with kinks."""

FAR_APART = 1e-11 ** (1 / KINKED_DEGREE)
"""Largest correlation at which this series omits at most 1e-11 of the mean squares."""


def _kinked(activation: Activation, q1: Array, q2: Array, c: Array) -> Duals:
    """Return the duals of an activation with kinks, by a long Hermite series, and by quadrature for nearly equal or opposite inputs.

    >>> q = np.ones(1)
    >>> duals = _kinked(Activation(lambda x: np.maximum(x, 0.0)), q, q, np.array([0.5]))
    >>> exact = _relu(q, q, np.array([0.5]))
    >>> bool(abs(duals.value[0] - exact.value[0]) < 1e-10), bool(abs(duals.slope[0] - exact.slope[0]) < 1e-10)
    (True, True)
    """
    q1, q2, c = np.broadcast_arrays(q1, q2, c)
    rho = correlation(np.sqrt(q1), np.sqrt(q2), c)
    far = (np.abs(rho) <= FAR_APART) & (q1 > 0) & (q2 > 0)
    duals = Duals(np.empty(c.shape), np.full(c.shape, np.nan))
    if far.any():
        levels, place = np.unique(np.concatenate([q1[far], q2[far]]), return_inverse=True)
        tables = np.array([_long_series(activation, float(level)) for level in levels])
        at1, at2 = place[: int(far.sum())], place[int(far.sum()) :]
        for part, result in enumerate(duals):
            result[far] = _horner(tables[:, part].T, at1, at2, rho[far])
    if not far.all():
        for result, values in zip(duals, _quadrature(activation, q1[~far], q2[~far], c[~far]), strict=True):
            result[~far] = values
    return duals


@lru_cache(maxsize=4096)
def _long_series(activation: Activation, variance: float) -> Array:
    """Return the Hermite coefficients of s(sqrt(q) z) and of s'(sqrt(q) z), by panels between the kinks."""
    root = math.sqrt(variance)
    nodes, weights = panel_rule(tuple(kink / root for kink in activation.kinks), width=0.5)
    basis = hermite_values(nodes, KINKED_DEGREE) * weights
    functions = (activation, _slope_of(activation, np.array([variance])))
    return np.array([basis @ np.broadcast_to(np.asarray(f(root * nodes), dtype=float), nodes.shape) for f in functions])


# -- quadrature -----------------------------------------------------------------------------------------------------------


def _quadrature(activation: Activation, q1: Array, q2: Array, c: Array) -> Duals:
    """Return averages over each pair, split at the kinks, where equal pairs are averaged once."""
    triples = np.stack([part.ravel() for part in np.broadcast_arrays(q1, q2, c)], axis=1)
    distinct, place = np.unique(triples, axis=0, return_inverse=True)
    if len(distinct) > MOST_PAIRS:
        raise Refused(
            f"{len(distinct)} pairs are too many for quadrature: activations with kinks have fast kernels only for relu and abs; "
            "use one of those, a smooth activation, or fewer inputs"
        )
    slope = _slope_of(activation, distinct[:, :2])
    kinks = activation.kinks
    functions = (activation,) if activation.jumps else (activation, slope)
    pairs = [[_pair(f, float(a), float(b), float(cov), kinks) for f in functions] for a, b, cov in distinct]
    if activation.jumps:
        pairs = [[value, math.nan] for (value,) in pairs]
    duals = np.array(pairs)
    shape = np.broadcast_shapes(q1.shape, q2.shape, c.shape)
    return Duals(*(duals[place.ravel(), part].reshape(shape) for part in range(2)))


def _pair(function: Callable[[Any], Any], q1: float, q2: float, c: float, kinks: Kinks) -> float:
    root1, root2 = math.sqrt(q1), math.sqrt(q2)
    rho = float(correlation(np.array(root1), np.array(root2), np.array(c)))
    if root1 * root2 == 0 and 0 in kinks:  # a Gaussian of variance 0 is exactly at the kink
        return _both_sides(function, root1) * _both_sides(function, root2)

    def product(x: Array, y: Array) -> Any:
        return function(root1 * x) * function(root2 * y)

    first, second = (tuple(kink / root for kink in kinks) if root > 0 else () for root in (root1, root2))
    return float(pair_expectation(product, rho, kinks=(first, second), tolerance=1e-10))


def _both_sides(function: Callable[[Any], Any], root: float) -> float:
    """Return E f(root z), where f(0) is the mean of its two sides if root is 0."""
    if root == 0:
        tiny = np.finfo(float).tiny
        return float(np.mean(np.asarray(function(np.array([-tiny, tiny])))))
    return float(expectation(function, std=root))


# -- derivatives of functions that are known only by their values ----------------------------------------------------

WEIGHTS = np.array([4 / 5, -1 / 5, 4 / 105, -1 / 280])
"""Weights of f(x + kh) - f(x - kh), k = 1, ..., 4, in the central difference of order 8."""

STEP = 0.02  # rounding (1e-16 / h) and truncation (h^8) balance for functions of scale 1


def difference(f: Callable[[Any], Any], step: float = STEP) -> Callable[[Any], Any]:
    """Return the derivative of a smooth function of arrays, by central differences of order 8.

    >>> slope = difference(np.sin)
    >>> bool(abs(slope(0.3) - np.cos(0.3)) < 1e-13)
    True
    """

    def slope(x: Any) -> Any:
        total = 0.0
        for k, weight in enumerate(WEIGHTS, 1):
            total = total + weight * (f(x + k * step) - f(x - k * step))
        return total / step

    return slope


# -- averages of products f(u) f(v) over many correlated Gaussian pairs at once, for smooth f (docs/theory/gaussian.md, section 4)

STEPS = (0.3, 0.15, 0.075)
"""Steps in the argument of f, tried in turn. Each is compared with the rules of twice and four times its step."""
LONGEST = 0.5
"""Longest step in standard units. At twice this step the Gaussian density itself is summed to 5e-9."""
REACH = 7.5
"""Range of the sum in standard deviations. The weight beyond is 6e-14."""
MOST = 1_000_000_000
"""Largest number of values of f in one call, which take some seconds."""
CHUNK = 2_000_000
"""Largest number of values of f in memory at once."""


def product_averages(
    f: Callable[[Array], Array], std1: Array, std2: Array, correlation: Array, tolerance: float = 1e-10
) -> tuple[Array, NDArray[np.bool_]]:
    """Return E f(std1 X) f(std2 Y) for standard Gaussians X, Y of each correlation.

    Parameters
    ----------
    f
        Smooth function of arrays.
    std1, std2, correlation
        One entry per pair.
    tolerance
        Error accepted, relative to E|f f|.

    Returns
    -------
    tuple of arrays
        The averages, and whether each of them meets the tolerance. The others would need too many values of f.

    Examples
    --------
    >>> value, resolved = product_averages(np.sin, np.array([1.0]), np.array([2.0]), np.array([0.9]))
    >>> exact = (np.exp(1.8 - 2.5) - np.exp(-1.8 - 2.5)) / 2
    >>> bool(abs(value[0] - exact) < 1e-12), resolved.tolist()
    (True, [True])
    """
    rho = np.clip(correlation, -1.0, 1.0)
    spread = np.sqrt((1 - rho) * (1 + rho))
    value, resolved = np.zeros(rho.size), np.zeros(rho.size, dtype=bool)
    spent = 0.0
    for step in STEPS:
        along = _half(step, np.maximum(std1, std2 * np.abs(rho)))
        across = _half(step, std2 * spread)
        work = np.where(resolved, 0.0, (2.0 * along + 1) * (2.0 * across + 1))
        spent += float(work.sum())
        if spent > MOST:
            break
        todo = np.flatnonzero(~resolved)
        todo = todo[np.argsort(work[todo], kind="stable")]
        for chunk in _chunks(todo, work):
            nodes = int(along[chunk].max()), int(across[chunk].max())
            sums, scale = _trapezoid(f, std1[chunk], std2[chunk], rho[chunk], spread[chunk], *nodes)
            value[chunk], resolved[chunk] = sums[0], _settled(sums, scale, tolerance)
        if resolved.all():
            break
    return value, resolved


def _half(step: float, steepness: Array) -> Array:
    """Return the number of nodes on one side of 0, a multiple of four."""
    length = np.minimum(LONGEST, step / np.maximum(steepness, 1e-300))
    return 4 * np.ceil(REACH / (4 * length))


def _chunks(members: NDArray[np.intp], work: Array) -> list[NDArray[np.intp]]:
    """Return groups of pairs of similar work, each as large as memory allows."""
    if not members.size:
        return []
    heaviest = np.maximum.accumulate(work[members])
    cuts, start = [], 0
    for end in range(1, members.size + 1):
        if (end - start) * heaviest[end - 1] > CHUNK and end - 1 > start:
            cuts.append(end - 1)
            start = end - 1
    return np.split(members, cuts)


def _trapezoid(
    f: Callable[[Array], Array], std1: Array, std2: Array, rho: Array, spread: Array, along: int, across: int
) -> tuple[list[Array], Array]:
    """Return double sums over every node, every second and every fourth node, and the average of the absolute values."""
    (x, x_weight), (w, w_weight) = _rule(along), _rule(across)
    first = np.asarray(f(std1[:, None] * x), dtype=float) * x_weight
    second = np.asarray(f(std2[:, None, None] * (rho[:, None, None] * x[:, None] + spread[:, None, None] * w)), dtype=float)
    sums = [
        every**2 * np.sum(first[:, ::every] * (second[:, ::every, ::every] @ w_weight[::every]), axis=1)
        for every in (1, 2, 4)
    ]
    return sums, 4 * np.sum(np.abs(first[:, ::2]) * (np.abs(second[:, ::2, ::2]) @ w_weight[::2]), axis=1)


def _settled(sums: list[Array], scale: Array, tolerance: float) -> NDArray[np.bool_]:
    """Return whether the finest sum meets the tolerance.

    It does if its difference to the next coarser sum meets the tolerance. It also does if every halving of the step squares the
    error and the square of this difference meets the tolerance.
    """
    (fine, coarse, coarser), unit = sums, np.maximum(scale, 1e-300)
    last, before = np.abs(fine - coarse) / unit, np.abs(coarse - coarser) / unit
    return (last <= tolerance) | ((10 * last**2 <= tolerance) & (last <= before**1.5))


def _rule(half: int) -> tuple[Array, Array]:
    """Return nodes from -REACH to REACH, with 0 among them, and their Gaussian weights."""
    nodes = np.linspace(-REACH, REACH, 2 * half + 1)
    return nodes, np.exp(-(nodes**2) / 2) * (REACH / half) / np.sqrt(2 * np.pi)
