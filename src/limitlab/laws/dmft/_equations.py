"""The dynamical mean-field equations of a two-layer network with exchangeable neurons, as a two-time system.

Equation numbers are those of docs/theory/two_layer_dynamics.md. The permutation symmetry of the neurons is used to diagonalise: a
pair (X_d, X_o) of "same neuron" and "other neuron" functions becomes X_+ = X_d + (m-1) X_o and X_- = X_d - X_o, and every
product of m x m matrices becomes two products of numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from limitlab.laws.dmft._finite.kernels import Kernels
from limitlab.numerics.two_time import Flow, History
from limitlab.numerics.two_time.compiled import after_start, before, both, newest, total, whole

Floats = NDArray[np.float64]


@numba.njit(cache=True)
def series(coefficients: Any, x: Any) -> Any:
    """Return a power series and its first two derivatives at x, in one pass."""
    f, f1, f2 = coefficients[-1], 0.0, 0.0
    for k in range(coefficients.size - 2, -1, -1):
        f2 = f2 * x + f1
        f1 = f1 * x + f
        f = f * x + coefficients[k]
    return f, f1, 2.0 * f2


@numba.njit(cache=True)
def power_series(coefficients: Any, x: Any) -> Any:
    """Return `series` at every entry of x."""
    value, slope, curve = np.empty(x.size), np.empty(x.size), np.empty(x.size)
    for i in range(x.size):
        value[i], slope[i], curve[i] = series(coefficients, x[i])
    return value, slope, curve


class RightSides(NamedTuple):
    """Right sides of the equations at the newest time t, with two-time forcings in the order C_+, (C_-), R_+, (R_-)."""

    forcings: Floats
    rates: Floats
    overlap_force: float
    second_layer_force: float
    second_layer_rate: float
    multiplier: float
    train_error: float
    test_error: float
    integrated: float
    instant: float


@numba.njit(cache=True, error_model="numpy")
def right_sides(
    memory: Any,
    a: Any,
    v: Any,
    integrals: Any,
    instants: Any,
    kernel: Any,
    target: Any,
    label_norm: Any,
    width: Any,
    ratio: Any,
    speed: Any,
) -> Any:
    """Return the right sides of (7) to (9), from the residual (2) to (4) and the memory kernels (5), (6).

    `integrals` and `instants` are I_A and the weight of delta in R_A at all earlier times, `label_norm` is tau^2 + ||phi||^2, `speed`
    that of the second layer.
    """
    m, t, sectors = width, a.size - 1, min(width, 2)
    # With a single neuron X_- = X_+, which makes X_o = 0.
    c_plus, c_minus = newest(memory, 0), newest(memory, sectors - 1)
    r_plus, r_minus = newest(memory, sectors), newest(memory, 2 * sectors - 1)
    strength = ratio / m**2  # K
    phi, phi_slope, _ = series(target, v[t])

    # The residual: covariance and response of the labels' error, eqs. (2), (3), (4).
    h1, h2, response = np.empty((2, t + 1)), np.empty((2, t + 1)), np.empty((2, t + 1))  # of the same neuron, of another one
    overlap_kernel, response_kernel, label_response = np.empty(t + 1), np.empty(t + 1), np.empty(t + 1)
    label = newest(memory, 2 * sectors + 1)
    for s in range(t + 1):
        h_s, h1[0, s], h2[0, s] = series(kernel, (c_plus[s] + (m - 1) * c_minus[s]) / m)
        h_o, h1[1, s], h2[1, s] = series(kernel, (c_plus[s] - c_minus[s]) / m)
        response[0, s], response[1, s] = (r_plus[s] + (m - 1) * r_minus[s]) / m, (r_plus[s] - r_minus[s]) / m
        overlap_kernel[s] = h_s / m + (m - 1) / m * h_o
        response_kernel[s] = h1[0, s] * response[0, s] / m + (m - 1) / m * h1[1, s] * response[1, s]
        label[s] = label_norm - a[t] * phi - a[s] * series(target, v[s])[0] + a[t] * a[s] * overlap_kernel[s]
        label_response[s] = a[t] * a[s] * response_kernel[s]
    r, residual, integrated, instant = _residual(memory, 2 * sectors, label, label_response, integrals, instants)

    # In each sector the memory kernels, eqs. (5) and (6), the forcings, eq. (7), and its share of the multiplier, eq. (9).
    signal, multiplier, rates = ratio * phi_slope * a[t] * integrated, 0.0, np.empty(sectors)
    forcings, integrand = np.empty((2 * sectors, t + 1)), np.empty(t + 1)
    drift, diffusion = np.empty(t + 1), np.empty(t + 1)  # S and D
    for sector in range(sectors):
        others, share = (m - 1, 1 / m) if sector == 0 else (-1, (m - 1) / m)
        for s in range(t + 1):
            coupling = strength * a[t] * a[s]
            slope = h1[0, s] + others * h1[1, s]
            curve = h2[0, s] * response[0, s] + others * h2[1, s] * response[1, s]
            drift[s] = coupling * (r[s] * slope + residual[s] * curve)
            diffusion[s] = coupling * residual[s] * slope
        rates[sector] = instant * strength * a[t] ** 2 * (h1[0, t] + others * h1[1, t])
        response_force, noise_force = both(memory, drift, diffusion, sectors + sector)
        motion_force = whole(memory, drift, sector)
        for s in range(t + 1):
            forcings[sector, s] = motion_force[s] + noise_force[s] + (signal * v[s] if sector == 0 else 0.0)
            forcings[sectors + sector, s] = response_force[s]
        if sector == 0:
            for s in range(t + 1):
                integrand[s] = drift[s] * v[s]
        multiplier += share * (forcings[sector, t] - rates[sector] * newest(memory, sector)[t])
    overlap_force = signal / m + total(memory, integrand)

    # The second layer, eq. (8).
    for s in range(t + 1):
        integrand[s] = a[s] * (r[s] * overlap_kernel[s] + residual[s] * response_kernel[s])
    return RightSides(
        forcings,
        rates,
        overlap_force,
        speed * (phi * integrated + total(memory, integrand)),
        speed * instant * overlap_kernel[t],
        multiplier,
        residual[t],
        label[t],
        integrated,
        instant,
    )


@numba.njit(cache=True, error_model="numpy")
def _residual(memory: Any, number: Any, label: Any, response: Any, integrals: Any, instants: Any) -> Any:
    """Return r and I_A from their Volterra equations (3), implicit in the last point only, C_A from (4), and the weight of delta in R_A.

    R_A = instant * delta - r, where instant is 1 up to the error of the quadrature. With it the integral of R_A equals I_A, which
    vanishes when the train error does. `number` is the index of r, and the covariance of the labels has the next index.
    """
    t, implicit = label.size - 1, 1.0
    if t > 0:  # at time 0 the integrals are empty
        implicit += 0.5 * memory.step * response[t]
    r, integrand = newest(memory, number), np.zeros(t + 1)
    for s in range(t + 1):
        r[s] = 0.0
    known = after_start(memory, response, number)
    for s in range(t):
        r[s] = (response[s] - known[s]) / implicit
        integrand[s] = response[s] * integrals[s]
    r[t] = response[t]
    integrated = (1.0 - total(memory, integrand)) / implicit
    instant = integrated + total(memory, r)
    half = whole(memory, r, number + 1)
    for s in range(t + 1):
        half[s] = instant * label[s] - half[s]
    residual = before(memory, half, number)
    for s in range(t + 1):
        residual[s] = (instants[s] if s < t else instant) * half[s] - residual[s]
    return r, residual, integrated, instant


@dataclass(frozen=True)
class ExchangeableNeurons:
    """m neurons with the same start, described by a, v, C_+, C_-, R_+, R_- and the residual's r and Sigma_C.

    Parameters
    ----------
    kernels
        h, phihat, ||phi||^2.
    width, sample_ratio, noise
        m, n/d and the standard deviation of the label noise.
    second_layer, overlap, correlation
        Start: a(0), v(0) and C_o(0, 0).
    frozen
        Whether the second layer is fixed at its start.
    """

    kernels: Kernels
    width: int
    sample_ratio: float
    noise: float
    second_layer: float
    overlap: float
    correlation: float
    frozen: bool

    auxiliaries = ("r", "label")
    functions = ("second_layer", "overlap")
    observed = (
        "train_error",
        "test_error",
        "correlation",
        "multiplier",
        "residual_response",
        "instant",
        "same_neuron_correlation",
        "same_neuron_response",
        "other_neuron_correlation",
        "fastest_rate",
    )

    @property
    def correlations(self) -> tuple[str, ...]:
        """The names C_+ and, with more than one neuron, C_-."""
        return ("C+",) if self.width == 1 else ("C+", "C-")

    @property
    def responses(self) -> tuple[str, ...]:
        """The names R_+ and, with more than one neuron, R_-."""
        return ("R+",) if self.width == 1 else ("R+", "R-")

    def start(self) -> Mapping[str, float]:
        """Return the values at the start, for unit neurons with given overlap and given inner product of two neurons."""
        together = 1.0 + (self.width - 1) * self.correlation
        return {
            "second_layer": self.second_layer,
            "overlap": self.overlap,
            "C+": together if self.width > 1 else 1.0,
            "C-": 1.0 - self.correlation,
        }

    def constrain(self, history: History) -> None:
        """Set the newest entries so that the neurons have norm 1, because they stay on the sphere."""
        m = self.width
        if m == 1:
            history.row("C+")[-1] = 1.0
        else:
            history.row("C-")[-1] = (m - history.row("C+")[-1]) / (m - 1)

    def flow(self, history: History) -> Flow:
        """Return the right sides of (7) to (9) at the newest time."""
        m, records, columns = self.width, history.records, history.columns
        kernel, target = self.kernels.padded
        sides = right_sides(
            history.memory(),
            history.path("second_layer"),
            history.path("overlap"),
            records["residual_response"][columns],
            records["instant"][columns],
            kernel,
            target,
            self.noise**2 + self.kernels.target_norm,
            m,
            self.sample_ratio,
            0.0 if self.frozen else self.sample_ratio / m,
        )
        moving = (*self.correlations, *self.responses)
        forcings: dict[str, Floats | float] = dict(zip(moving, sides.forcings, strict=True))
        forcings |= {"overlap": sides.overlap_force, "second_layer": sides.second_layer_force}
        sectors = (sides.multiplier + sides.rates).tolist()
        rates = dict(zip(moving, [*sectors, *sectors], strict=True))  # a correlation decays as fast as its response
        rates |= {"overlap": rates["C+"], "second_layer": sides.second_layer_rate}
        c_plus, c_minus = history.row("C+"), history.row(self.correlations[-1])
        r_plus, r_minus = history.row("R+"), history.row(self.responses[-1])
        observed = {
            "train_error": sides.train_error,
            "test_error": sides.test_error,
            "correlation": float(c_plus[-1] - c_minus[-1]) / m,
            "multiplier": sides.multiplier,
            "residual_response": sides.integrated,
            "instant": sides.instant,
            "same_neuron_correlation": float(c_plus[0] + (m - 1) * c_minus[0]) / m,
            "same_neuron_response": float(r_plus[0] + (m - 1) * r_minus[0]) / m,
            "other_neuron_correlation": float(c_plus[0] - c_minus[0]) / m,
            "fastest_rate": max(abs(rate) for rate in rates.values()),
        }
        return Flow(rates, forcings, observed)
