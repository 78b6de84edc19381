"""Ratios of gamma functions, exponential integrals of any real order, and Fourier coefficients of a von Mises kernel.

The first two are only partly available in SciPy. A difference of two log-gamma values at 10^7 has only eight correct digits, and
SciPy's `expn` accepts integer orders only.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.checks import array, number

__all__ = ["exponential_integral", "gamma_ratio", "von_mises_coefficients"]

Array = NDArray[np.float64]

SHIFT = 16
"""Amount by which small arguments are increased before Stirling's series, whose six terms are then exact to rounding."""
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
"""Coefficients B_2k / (2k (2k-1)) of the correction to Stirling's formula."""
NODES = 128
"""Number of Gauss-Legendre nodes of an exponential integral."""
CUT = 40.0
"""The integrand of an exponential integral is dropped below e^-40 of its largest value."""


def gamma_ratio(x: ArrayLike, shift: ArrayLike) -> Array:
    r"""Return Gamma(x + shift) / Gamma(x) for x > 0 and shift >= 0, without computing either gamma function.

    The two Stirling formulas are subtracted term by term, so that the relative error is of the order of rounding for every x:

    .. math:: \log\frac{\Gamma(x+a)}{\Gamma(x)} = a \log x + (x + a - \tfrac12) \log(1 + a/x) - a + s(x+a) - s(x).

    Parameters
    ----------
    x, shift
        Arrays that broadcast.

    Examples
    --------
    >>> float(gamma_ratio(3.0, 2.0))                      # 4! / 2!
    12.0
    >>> x = 1e12
    >>> bool(abs(gamma_ratio(x, 0.5) / np.sqrt(x) - 1) < 1e-12)
    True
    """
    x, a = np.broadcast_arrays(array("x", x, above=0, infinite=True), array("shift", shift, least=0, infinite=True))
    small = x < SHIFT  # Gamma(x+a)/Gamma(x) = Gamma(x+m+a)/Gamma(x+m) * prod_{i<m} (x+i)/(x+i+a)
    raised = np.where(small, x + SHIFT, x)
    step = np.arange(SHIFT).reshape(-1, *(1,) * x.ndim)
    lowering = np.where(small, np.log1p(a / (x + step)).sum(axis=0), 0.0)
    logarithm = a * np.log(raised) + (raised + a - 0.5) * np.log1p(a / raised) - a
    return np.asarray(np.exp(logarithm + _stirling_tail(raised + a) - _stirling_tail(raised) - lowering))


def _stirling_tail(x: Array) -> Array:
    """Return log Gamma(x) minus Stirling's formula, for x >= SHIFT."""
    return np.asarray(sum(c * x ** -(2 * k + 1) for k, c in enumerate(STIRLING)))


def exponential_integral(order: float, argument: ArrayLike, nodes: int = NODES) -> Array:
    r"""Return the exponential integral of any real order of at least 0, for positive arguments.

    .. math:: E_\nu(t) = \int_1^\infty x^{-\nu} e^{-t x}\, dx
              = e^{-t} \int_0^\infty e^{-(\nu - 1) y - t (e^y - 1)}\, dy.

    The integrand of the second form is smooth in y, and the integral is cut where the integrand is below e^-40. Gauss-Legendre
    quadrature converges geometrically for every order (see `tests/numerics/test_special.py`). This includes the integers, where
    the power series has its poles.

    Parameters
    ----------
    order
        The order, at least 0.
    argument
        Array of positive arguments.
    nodes
        Number of Gauss-Legendre nodes. The default has an error of 1e-12 down to arguments of 1e-30.

    Examples
    --------
    >>> from scipy.special import expn
    >>> bool(abs(exponential_integral(2, 0.3) / expn(2, 0.3) - 1) < 1e-12)
    True
    """
    t, order = array("argument", argument, above=0, infinite=True), number("order", order, least=0)
    end = np.log1p(CUT / t)
    if order > 1:
        end = np.minimum(end, CUT / (order - 1))
    x, weight = _unit_legendre(nodes)
    y = end[..., None] * x
    integral = np.exp(-(order - 1) * y - t[..., None] * np.expm1(y)) @ weight
    return np.asarray(np.exp(-t) * end * integral)


@lru_cache(maxsize=8)
def _unit_legendre(nodes: int) -> tuple[Array, Array]:
    """Return Gauss-Legendre nodes and weights on [0, 1]."""
    from scipy.special import roots_legendre

    x, weight = roots_legendre(nodes)
    return (x + 1) / 2, weight / 2


@lru_cache(maxsize=32)
def von_mises_coefficients(beta: float, count: int) -> tuple[Array, Array]:
    """Return the means over the circle of K(t) cos kt and of sin(t) K(t) sin kt for k = 0, ..., count.

    The kernel is K(t) = exp(beta (cos t - 1)).

    >>> even, odd = von_mises_coefficients(0.0, 2)
    >>> even.tolist(), odd.tolist()
    ([1.0, 0.0, 0.0], [0.0, 0.5, 0.0])
    """
    from scipy.special import ive

    k = np.arange(count + 1)
    even, odd = ive(k, beta), (ive(np.abs(k - 1), beta) - ive(k + 1, beta)) / 2
    for part in (even, odd):
        part.flags.writeable = False  # all callers share the cached arrays
    return even, odd
