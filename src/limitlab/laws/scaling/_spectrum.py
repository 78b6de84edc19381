"""Losses of SGD on random projections of a spectrum of modes, and quantities of ridge regression that depend on such a spectrum.

The groups of a power-law spectrum lambda_j = j^{-2 alpha}, b_j = j^{-beta} come from `limitlab.numerics.spectra`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.numerics.contours import FEW as FEW
from limitlab.numerics.contours import coefficients
from limitlab.numerics.equivalents import learned, resolvent_ridge, right_edge, unlearned
from limitlab.numerics.roots import bracketed_root
from limitlab.numerics.spectra._power_law import Modes, power_law_modes

Array = NDArray[np.float64]


@lru_cache(maxsize=64)
def power_law(alpha: float, beta: float, modes: float) -> Modes:
    """Return the groups of a power-law spectrum with this number of modes, which may be infinite if 2 alpha > 1.

    >>> power_law(1.0, 0.7, 1e6).counts.size
    331
    """
    return power_law_modes(alpha, beta, modes)


# -- SGD on random projections of a power-law spectrum, by generating functions that are inverted on contours ----------

Complex = NDArray[np.complex128]

NODES, COARSER = 32, 28


class Losses(NamedTuple):
    """Parts of the loss due to the start and to noise of variance 1, and forcing and kernel, at every number of steps."""

    signal: Array
    noise: Array
    forcing: Array
    kernel: Array


def losses(spectrum: Modes, width: float, step: float, batch: float, steps: Array, nodes: int = NODES) -> Losses:
    """Return all parts of the loss after `steps` steps, equations (4) and (5). Below 16 the numbers of steps must be whole."""
    return Losses(*coefficients(lambda q: _transforms(spectrum, width, step, batch, q), steps, nodes))


def _transforms(spectrum: Modes, width: float, step: float, batch: float, q: Complex) -> tuple[Complex, ...]:
    """Return the generating functions of the four parts at Lambda = e^q."""
    below = np.asarray(-np.expm1(q), dtype=np.complex128)  # 1 - Lambda
    curvature = step**2 * (1 + 1 / batch)
    z1 = np.asarray((step + np.sqrt(step**2 - curvature * below)) / curvature, dtype=np.complex128)
    z2 = np.asarray(below / (curvature * z1), dtype=np.complex128)  # second root, without cancellation
    (form1, trace1), (form2, trace2) = (_resolvents(spectrum, width, z) for z in (z1, z2))
    scale = -1 / (curvature * (z1 - z2))
    forcing, kernel = scale * (form1 - form2), step**2 / batch * scale * (trace1 - trace2)
    return forcing / (1 - kernel), -kernel / below / (1 - kernel), forcing, kernel


def _resolvents(spectrum: Modes, width: float, z: Complex) -> tuple[Complex, Complex]:
    """Return <D^{1/2} b, (K - z)^{-1} D^{1/2} b> and tr K^2 (K - z)^{-1} - tr D, equation (3)."""
    s, counts, energy = spectrum
    kappa = -z if math.isinf(width) else np.asarray(resolvent_ridge(z, s, counts / width))
    form = kappa / -z * ((s * energy) / (s + kappa[..., None])).sum(axis=-1)
    return form, z * (counts * learned(kappa, s)).sum(axis=-1)


def projection_floor(spectrum: Modes, width: float) -> tuple[float, float]:
    """Return the floor and the effective ridge kappa0 with df1(kappa0) = width, equation (2).

    The floor is the loss that remains after any training. Both are 0 for width >= V.

    >>> from limitlab.laws.scaling._spectrum import power_law
    >>> [round(part, 9) for part in projection_floor(power_law(1.0, 0.2, 1e6), 100)]
    [0.005472866, 0.000244271]
    """
    s, counts, energy = spectrum
    if width >= counts.sum():
        return 0.0, 0.0
    kappa = ridge_of_width(spectrum, width)
    return float((s * energy) @ unlearned(kappa, s)), kappa


def ridge_of_width(spectrum: Modes, width: float) -> float:
    """Return the root of df1(kappa) = width, for a width below the number of modes."""
    from scipy.optimize import brentq

    s, counts, _ = spectrum

    def missing(log_kappa: float) -> float:  # df1 decreases in kappa
        return width - float(counts @ (s / (s + math.exp(log_kappa))))

    low = math.log(s.min()) - 40
    return math.exp(brentq(missing, low, math.log(counts @ s / width) + 1e-9, xtol=1e-14, rtol=8.9e-16))


def equivalent_threshold(spectrum: Modes, width: float, batch: float) -> float:
    """Return the step above which the loss of the deterministic equivalent diverges, equation (7) of docs/theory/power_law_scaling.md.

    The equivalent replaces each isolated largest eigenvalue of a finite network by an interval of eigenvalues. This raises the largest
    eigenvalue, and the returned step tends to be smaller than the true threshold.
    """
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
