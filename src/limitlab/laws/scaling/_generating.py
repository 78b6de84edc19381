"""SGD on random projections of a power-law spectrum without time steps: generating functions, inverted on contours.

The equations are those of docs/theory/power_law_scaling.md. With L = e^q the loss after k steps is the inverse of

    P(L) = (F(L) + K(L) tau^2 / (L - 1)) / (1 - K(L)),

whose singularities are all real; F and K are differences of two resolvents at the roots z1, z2 of rho(z) = L.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.laws.scaling._spectrum import Spectrum
from limitlab.numerics.contours import FEW as FEW
from limitlab.numerics.contours import coefficients
from limitlab.numerics.equivalents import learned, resolvent_ridge, right_edge, unlearned
from limitlab.numerics.roots import bracketed_root

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

NODES, COARSER = 32, 28


class Losses(NamedTuple):
    """Loss from the start and from one unit of noise variance, the forcing and the kernel, at every number of steps."""

    signal: Array
    noise: Array
    forcing: Array
    kernel: Array


def losses(spectrum: Spectrum, width: float, step: float, batch: float, steps: Array, nodes: int = NODES) -> Losses:
    """Every part of the loss after `steps` steps (whole below 16, any number from there on), equations (4)-(6)."""
    return Losses(*coefficients(lambda q: _transforms(spectrum, width, step, batch, q), steps, nodes))


def _transforms(spectrum: Spectrum, width: float, step: float, batch: float, q: Complex) -> tuple[Complex, ...]:
    """The four generating functions at L = e^q."""
    below = np.asarray(-np.expm1(q), dtype=np.complex128)  # 1 - L
    curvature = step**2 * (1 + 1 / batch)
    z1 = np.asarray((step + np.sqrt(step**2 - curvature * below)) / curvature, dtype=np.complex128)
    z2 = np.asarray(below / (curvature * z1), dtype=np.complex128)  # the other root, without cancellation
    (form1, trace1), (form2, trace2) = (_resolvents(spectrum, width, z) for z in (z1, z2))
    scale = -1 / (curvature * (z1 - z2))
    forcing, kernel = scale * (form1 - form2), step**2 / batch * scale * (trace1 - trace2)
    return forcing / (1 - kernel), -kernel / below / (1 - kernel), forcing, kernel


def _resolvents(spectrum: Spectrum, width: float, z: Complex) -> tuple[Complex, Complex]:
    """<D^{1/2} b, (K - z)^{-1} D^{1/2} b> and tr K^2 (K - z)^{-1} less the trace of D, equation (3)."""
    s, counts, energy = spectrum
    kappa = -z if math.isinf(width) else np.asarray(resolvent_ridge(z, s, counts / width))
    form = kappa / -z * ((s * energy) / (s + kappa[..., None])).sum(axis=-1)
    return form, z * (counts * learned(kappa, s)).sum(axis=-1)


def projection_floor(spectrum: Spectrum, width: float) -> tuple[float, float]:
    """What no training removes, and the effective ridge kappa0 with df1(kappa0) = width: equation (2); zeros for width >= V.

    >>> from limitlab.laws.scaling._spectrum import power_law
    >>> [round(part, 9) for part in projection_floor(power_law(1.0, 0.2, 1e6), 100)]
    [0.005472866, 0.000244271]
    """
    s, counts, energy = spectrum
    if width >= counts.sum():
        return 0.0, 0.0
    kappa = ridge_of_width(spectrum, width)
    return float((s * energy) @ unlearned(kappa, s)), kappa


def ridge_of_width(spectrum: Spectrum, width: float) -> float:
    """The root of df1(kappa) = width, for a width below the number of modes."""
    from scipy.optimize import brentq

    s, counts, _ = spectrum

    def missing(log_kappa: float) -> float:  # df1 falls with kappa
        return width - float(counts @ (s / (s + math.exp(log_kappa))))

    low = math.log(s.min()) - 40
    return math.exp(brentq(missing, low, math.log(counts @ s / width) + 1e-9, xtol=1e-14, rtol=8.9e-16))


def equivalent_threshold(spectrum: Spectrum, width: float, batch: float) -> float:
    """The step at which the deterministic equivalent explodes, equation (7); it smears isolated top modes and errs on the short side."""
    s, counts, _ = spectrum
    top = float(s.max())

    def balance(x: Array) -> Array:
        return np.asarray((counts * s / (np.asarray(x)[..., None] - s)).sum(axis=-1) - (batch + 1))

    x = float(bracketed_root(balance, top * (1 + 1e-13), top + counts @ s / (batch + 1) * (1 + 1e-12)))
    if math.isinf(width):
        z = x
    elif float((counts * (s / (x - s)) ** 2).sum()) < width:
        z = x * (1 + (batch + 1) / width)
    else:
        z = float(right_edge(s, counts / width))
    return 2 * batch / ((batch + 1) * z)
