"""Losses of SGD on random projections of a spectrum of modes, and quantities of ridge regression that depend on such a spectrum.

The groups of a power-law spectrum lambda_j = j^{-2 alpha}, b_j = j^{-beta} come from `limitlab.numerics.spectra`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from limitlab._core.declaration import parameter
from limitlab.errors import Refused
from limitlab.laws._population import HasSpectrum
from limitlab.numerics.contours import FEW as FEW
from limitlab.numerics.contours import coefficients
from limitlab.numerics.equivalents import learned, resolvent_ridge, right_edge, unlearned
from limitlab.numerics.roots import bracketed_root
from limitlab.numerics.spectra import Spectrum as Population
from limitlab.numerics.spectra.power_law import Modes as Modes
from limitlab.numerics.spectra.power_law import power_law_modes

Array = NDArray[np.float64]


@lru_cache(maxsize=64)
def power_law(alpha: float, beta: float, modes: float) -> Modes:
    """Return the groups of a power-law spectrum with this number of modes, which may be infinite if 2 alpha > 1.

    >>> power_law(1.0, 0.7, 1e6).counts.size
    331
    """
    return power_law_modes(alpha, beta, modes)


class ModesLaw(HasSpectrum):
    """Base class of laws with V modes, whose eigenvalues and target are power laws or those of a spectrum."""

    spectrum_exponent: float = parameter(
        1.0, "half the exponent of the eigenvalues", note="eigenvalues j^(-2 alpha)", symbol=r"\alpha", above=0, most=6
    )
    target_exponent: float = parameter(0.3, note="coefficients j^(-beta)", least=0, most=6)
    latent_dimension: float = parameter(
        500.0, "modes of the inputs", note="inf only for alpha > 1/2", symbol="V", least=2, scale="log", infinite=True
    )

    @classmethod
    def replaced_by_spectrum(cls) -> tuple[str, ...]:
        """Return the two exponents."""
        return ("spectrum_exponent", "target_exponent")

    @model_validator(mode="after")
    def _finite_trace(self) -> Self:
        if math.isinf(self.latent_dimension) and (self.spectrum is not None or not 2 * self.spectrum_exponent > 1):
            cause = (
                "with a spectrum, whose weights are shares of the modes; choose a finite number of modes"
                if self.spectrum is not None
                else f"for spectrum_exponent = {self.spectrum_exponent:g}: the trace is infinite; choose a finite number of modes, or an "
                "exponent above 0.5"
            )
            raise Refused(f"latent_dimension = inf is not allowed {cause}")
        return self

    @property
    def modes(self) -> Modes:
        """The groups of modes."""
        if self.spectrum is None:
            return power_law(self.spectrum_exponent, self.target_exponent, self.latent_dimension)
        return modes_of(self.spectrum, self.latent_dimension)

    def drawn_modes(self) -> tuple[Array, Array, Array]:
        """Return the standard deviation, the variance and the target coefficient of every mode of an experiment."""
        if math.isinf(self.latent_dimension):
            raise Refused("latent_dimension = inf is not allowed in a simulation: choose a finite value")
        count = round(self.latent_dimension)
        if self.spectrum is None:
            j = np.arange(1.0, count + 1)
            return j**-self.spectrum_exponent, j ** (-2 * self.spectrum_exponent), j**-self.target_exponent
        at = self.spectrum.at(count)
        s, _, energy = modes_of(at, float(count))
        counts = at.counts(count)
        variances = np.repeat(s, counts)
        return np.sqrt(variances), variances, np.sqrt(np.repeat(energy / counts, counts))

    def whole_modes(self) -> Self:
        """Return the law with the spectrum of an experiment, which has one eigenvalue per mode."""
        if self.spectrum is None or math.isinf(self.latent_dimension):
            return self
        return self.replace(spectrum=self.spectrum.at(round(self.latent_dimension)))

    def require_power_laws(self, what: str) -> None:
        """Raise `Refused` if the law has a spectrum, for results about power laws only."""
        if self.spectrum is not None:
            raise Refused(
                f"{what} of {type(self).__name__} are not defined for a spectrum: they are exponents of power laws; leave spectrum out"
            )


def modes_of(spectrum: Population, modes: float) -> Modes:
    """Return the groups of a spectrum with V modes. Without energies the target has the norm 1 and is spread evenly.

    >>> from limitlab import Spectrum
    >>> modes_of(Spectrum.groups([4.0, 1.0], [0.2, 0.8]), 10.0).counts.tolist()
    [8.0, 2.0]
    """
    s, w = spectrum.eigenvalues, spectrum.weights
    spikes = w == 0
    counts = np.where(spikes, 1.0, w * (modes - spikes.sum()))
    counts[np.argmax(counts)] += modes - counts.sum()  # a rounding error would make the number of modes differ from V
    return Modes(s, counts, w if spectrum.energy is None else spectrum.energy)


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
