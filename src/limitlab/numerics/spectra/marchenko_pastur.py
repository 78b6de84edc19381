"""The Marchenko-Pastur law of the eigenvalues of S = X^T X / n for an n x p matrix X of independent entries.

Notation.  gamma = p/n (`ratio`), v = sigma^2, the variance of an entry (`variance`). Functions broadcast over their arguments.

           edges a, b = v (1 -+ sqrt(gamma))^2,   density sqrt((b - x)(x - a)) / (2 pi v gamma x) between them,
           an atom max(0, 1 - 1/gamma) at zero.

Equation numbers are those of docs/theory/spectra.md. Two identities make every formula free of cancellation. The first is duality. For
gamma > 1 the law is the atom plus 1/gamma times the law of gamma Y, where Y has ratio 1/gamma. Distribution functions and quadrature
rules are therefore only computed for gamma <= 1. The second is 1 - sqrt(gamma) = (1 - gamma) / (1 + sqrt(gamma)).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.checks import array, number, refuse, whole

Array = NDArray[np.float64]

SMALL_ROOT = 0.1
"""For sqrt(gamma) below this value the distribution function is summed as a series in sqrt(gamma)."""
SERIES_TERMS = 18
INSIDE = "z is a real number inside the support, where the transform has two limits: pass a complex z (x + 0j is the limit from above)"
"""Error message for an argument at which the Stieltjes transform is not defined."""
BELOW, ABOVE = 80.0, 28.0
"""Range of `log_quadrature` in t, below the log of the scale and above 0.

The weights fall at least like e^(t/2) and e^(-3t/2), to below 2^-57."""


def edges(ratio: ArrayLike, variance: ArrayLike = 1.0) -> tuple[Array, Array]:
    """Return the two ends of the bulk.

    >>> [float(edge) for edge in edges(0.25, variance=4.0)]
    [1.0, 9.0]
    """
    gamma, v = _checked(ratio, variance)
    root = np.sqrt(gamma)
    return (v * ((1 - gamma) / (1 + root)) ** 2)[()], (v * (1 + root) ** 2)[()]


def atom(ratio: ArrayLike) -> Array:
    """Return the mass at zero, which is the share of directions orthogonal to all n < p samples.

    >>> float(atom(4.0)), float(atom(0.5))
    (0.75, 0.0)
    """
    gamma, _ = _checked(ratio, 1.0)
    return np.maximum(1 - 1 / gamma, 0.0)[()]


def density(x: ArrayLike, ratio: ArrayLike, variance: ArrayLike = 1.0) -> Array:
    """Return the density of the continuous part (without the mass at zero). It is infinite at x = 0 if the ratio is 1.

    >>> float(density(1.0, 0.25).round(12))
    0.616404444061
    """
    x = checked_points(x, "x")
    gamma, v = _checked(ratio, variance)
    low, high = edges(gamma, v)
    inside = (x > low) & (x < high)
    safe = np.where(inside, x, (low + high) / 2)
    root = np.sqrt(np.maximum(high - safe, 0)) * np.sqrt(np.maximum(safe - low, 0))
    value = np.where(inside, root / (2 * np.pi * v * gamma * safe), 0.0)
    return np.where((x == 0) & (gamma == 1), np.inf, value)[()]


def cdf(x: ArrayLike, ratio: ArrayLike, variance: ArrayLike = 1.0) -> Array:
    """Return the distribution function with the mass at zero, in closed form (eq. 4).

    >>> float(cdf(1.0, 0.5).round(12)), float(cdf(0.1, 2.0))
    (0.576004215104, 0.5)
    """
    x = checked_points(x, "x")
    gamma, v = _checked(ratio, variance)
    share = np.minimum(1 / gamma, 1.0)  # mass of the continuous part
    stretch = np.maximum(gamma, 1.0) * v  # duality: x = stretch * y, y of ratio min(gamma, 1/gamma)
    tail = share * _upper_tail(x / stretch, np.minimum(gamma, 1 / gamma))
    return np.where(x < 0, 0.0, np.clip(1 - tail, 0.0, 1.0))[()]


def _upper_tail(y: Array, gamma: Array) -> Array:
    """Return the mass (t - phi + (phi - g sin t) / gamma) / pi above y, for unit variance and gamma <= 1 (eq. 4)."""
    g = np.sqrt(gamma)
    low, high = edges(gamma)
    t = 2 * np.arctan2(np.sqrt(np.maximum(high - y, 0)), np.sqrt(np.maximum(y - low, 0)))  # y = 1 + gamma + 2 g cos t
    phi = np.arctan2(g * np.sin(t), 1 + g * np.cos(t))  # argument of 1 + g e^(it)
    rest = np.asarray((phi - g * np.sin(t)) / gamma)
    few = np.broadcast_to(g < SMALL_ROOT, rest.shape)  # the first terms cancel for these g
    if few.any():
        rest = np.where(few, _cancelling_rest(np.where(few, g, 0.0), np.broadcast_to(t, rest.shape)), rest)
    return np.asarray((t - phi + rest) / np.pi)


def _cancelling_rest(g: Array, t: Array) -> Array:
    """Return (phi - g sin t) / g^2 by the series phi = -sum (-g)^k sin(kt) / k, for small g."""
    k = np.arange(SERIES_TERMS, 1, -1)
    return np.asarray(-np.sum((-1.0) ** k * g[..., None] ** (k - 2) * np.sin(k * t[..., None]) / k, axis=-1))


def stieltjes(z: ArrayLike, ratio: ArrayLike, variance: ArrayLike = 1.0) -> NDArray[Any]:
    """Return the Stieltjes transform, the integral of dmu(x) / (x - z) (eqs. 5 and 6).

    Parameters
    ----------
    z
        Real numbers outside the support, for which the result is real, or complex numbers. A complex number on the real axis
        inside the bulk stands for the limit from the upper half plane.
    ratio, variance
        gamma = p/n and the variance of an entry.

    Returns
    -------
    ndarray
        The transform. It is infinite at z = 0 if there is an atom or the ratio is 1.

    Examples
    --------
    >>> float(stieltjes(-1.0, 1.0).round(12)) == round((5**0.5 - 1) / 2, 12)
    True
    >>> complex(stieltjes(1 + 1j, 1.0).round(12))
    (-0.106924311121+0.636009824757j)
    """
    z = checked_points(z, "z")
    gamma, v = _checked(ratio, variance)
    low, high = edges(gamma, v)
    if np.iscomplexobj(z):
        upper = z.real + 1j * np.abs(z.imag)
        # The product of two principal roots is used because sqrt((z - a)(z - b)) is on the wrong branch left of (a + b)/2.
        root = np.sqrt(upper - low) * np.sqrt(upper - high)
    else:
        upper = z
        refuse(((upper > low) & (upper < high)).any(), INSIDE)
        size = np.sqrt(np.abs(upper - low)) * np.sqrt(np.abs(upper - high))
        root = np.where(upper < high, -size, size)
    linear = upper - v * (1 - gamma)
    with np.errstate(divide="ignore", invalid="ignore"):  # the form that is not used may divide by zero
        first, second = -2 / (linear + root), (root - linear) / (2 * gamma * v * upper)
    value = np.where(np.abs(linear + root) >= np.abs(linear - root), first, second)
    value = np.where((upper == 0) & (gamma >= 1), np.inf, value)
    return (np.where(z.imag < 0, np.conj(value), value) if np.iscomplexobj(z) else value)[()]


def moment(order: int, ratio: ArrayLike, variance: ArrayLike = 1.0) -> Array:
    """Return the moment E x^k (eq. 3), with the mass at zero.

    >>> [float(moment(k, 2.0)) for k in range(5)]
    [1.0, 1.0, 3.0, 11.0, 45.0]
    """
    from scipy.special import comb

    order = whole("order", order, least=0)
    gamma, v = _checked(ratio, variance)
    terms = (gamma**r / (r + 1) * comb(order, r) * comb(order - 1, r) for r in range(max(order, 1)))
    return np.asarray(v**order * (sum(terms) if order else 1.0))[()]


def quadrature(ratio: float, variance: float = 1.0, count: int = 128) -> tuple[Array, Array]:
    """Return Gauss nodes and weights of the continuous part, exact for polynomials of degree 2 `count` - 1 (eq. 7).

    The weights add up to min(1, 1/ratio). To integrate over the whole law, add `atom(ratio)` times the value at zero. For a
    function with a pole at zero, such as 1/x, the error falls like sqrt(ratio)^(2 count), so that about
    20 / |1 - sqrt(ratio)| nodes are needed. The rule needs no special case at ratio = 1, where rules on equispaced angles lose
    the weight of their end point.

    >>> x, w = quadrature(1.0, count=4)
    >>> float(w.sum().round(12)), float((w * x**7).sum().round(9)) == float(moment(7, 1.0))
    (1.0, True)
    """
    from scipy.linalg import eigh_tridiagonal

    gamma, v = (float(value) for value in _checked(ratio, variance))
    count = whole("count", count, least=1)
    g = min(gamma, 1 / gamma)
    # The Jacobi matrix of the law has constant coefficients 1 + g and sqrt(g) after a first entry 1.
    diagonal, beside = np.full(count, 1 + g), np.full(count - 1, np.sqrt(g))
    diagonal[0] = 1.0
    nodes, vectors = eigh_tridiagonal(diagonal, beside)
    return v * max(gamma, 1.0) * nodes, min(1.0, 1 / gamma) * vectors[0] ** 2


def log_quadrature(ratio: float, variance: float = 1.0, *, smallest: float, spacing: float = 0.375) -> tuple[Array, Array]:
    """Return nodes and weights of the continuous part for functions that vary over many decades of x.

    The rule is the trapezoidal rule in t, where (x - a) / (b - x) = e^t. Suppose that f is analytic outside the negative real
    axis, for example 1 / (c + x). The integrand is then analytic for |Im t| < pi at every ratio, also at ratio 1. The relative error
    is of the order of e^(-2 pi^2 / spacing), which is below the rounding error at the default spacing. A function such as
    e^(-x / c), which is bounded only where Re x > 0, needs half that spacing. `quadrature` needs several times sqrt(b / c) nodes
    for such functions.

    Parameters
    ----------
    ratio, variance
        p/n and the variance of an entry.
    smallest
        The scale c of x, below which f is nearly constant or falls towards 0. Each factor e in b / c adds 1 / spacing nodes.
    spacing
        Distance of the nodes in t.

    Returns
    -------
    tuple of ndarray
        Nodes, and weights that add up to min(1, 1/ratio), like the weights of `quadrature`.

    Examples
    --------
    >>> x, w = log_quadrature(1.0, smallest=1e-12)
    >>> exact = float(stieltjes(-1e-12, 1.0))
    >>> x.size, bool(abs(w @ (1 / (x + 1e-12)) / exact - 1) < 4e-15)
    (367, True)
    """
    gamma, v = (float(value) for value in _checked(ratio, variance))
    near, far = (v**0.5 * side for side in (abs(1 - gamma) / (1 + gamma**0.5), 1 + gamma**0.5))  # roots of the two edges
    depth = max((near / far) ** 2, min(smallest / far / far, 1.0))
    number("smallest", smallest, least=0, infinite=True)
    refuse(not depth > 0, f"smallest = {smallest!r} is not allowed: must be above 0 at ratio = 1")
    spacing = number("spacing", spacing, above=0)
    first, last = np.floor((np.log(depth) - BELOW) / spacing), np.ceil(ABOVE / spacing)
    rise = np.exp(spacing / 2 * np.arange(first, last + 1))  # e^(t/2)
    length, beyond = np.hypot(near, far * rise), np.hypot(1.0, rise)  # hypot, because the square of e^(t/2) may underflow
    root = rise / length / beyond**2
    return (length / beyond) ** 2, 8 * v / np.pi * spacing * rise * root * root


def checked_points(points: ArrayLike, name: str) -> NDArray[Any]:
    """Return real or complex points at which a spectrum is evaluated, as an array of floating-point numbers.

    >>> checked_points([1, 2], "x")
    array([1., 2.])
    """
    if not np.iscomplexobj(points):
        return array(name, points)
    places = np.asarray(points).astype(complex)
    refuse(not np.isfinite(places).all(), f"{name} is not allowed: every entry must be finite")
    return places


def _checked(ratio: ArrayLike, variance: ArrayLike) -> tuple[Array, Array]:
    return array("ratio", ratio, above=0), array("variance", variance, above=0)
