"""The dynamical mean-field equations of a two-layer network with exchangeable neurons, as a two-time system.

Equation numbers are those of docs/theory/two_layer_dynamics.md. The permutation symmetry of the neurons is diagonalised: a
pair (X_d, X_o) of "same neuron" and "other neuron" functions becomes X_+ = X_d + (m-1) X_o and X_- = X_d - X_o, and every
product of m x m matrices becomes two products of numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from limitlab.models.two_layer.kernels import Kernels
from limitlab.numerics.two_time import Flow, History

Floats = NDArray[np.float64]


@numba.njit(cache=True)
def power_series(coefficients, x):  # type: ignore[no-untyped-def]
    """A power series and its first two derivatives at every entry of x, in one pass."""
    value, slope, curve = np.empty(x.size), np.empty(x.size), np.empty(x.size)
    top = coefficients.size - 1
    for i in range(x.size):
        f, f1, f2 = coefficients[top], 0.0, 0.0
        for k in range(top - 1, -1, -1):
            f2 = f2 * x[i] + f1
            f1 = f1 * x[i] + f
            f = f * x[i] + coefficients[k]
        value[i], slope[i], curve[i] = f, f1, 2.0 * f2
    return value, slope, curve


@dataclass(frozen=True)
class ExchangeableNeurons:
    """m neurons that start alike: the unknowns a, v, C_+, C_-, R_+, R_- and the residual's r and Sigma_C.

    Parameters
    ----------
    kernels
        h, phihat, ||phi||^2.
    width, sample_ratio, noise
        m, n/d and the standard deviation of the label noise.
    second_layer, overlap, correlation
        Start: a(0), v(0) and C_o(0, 0).
    frozen
        Whether the second layer keeps its start.
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
        "fastest_rate",
    )

    @property
    def correlations(self) -> tuple[str, ...]:
        """C_+, and C_- when there is more than one neuron."""
        return ("C+",) if self.width == 1 else ("C+", "C-")

    @property
    def responses(self) -> tuple[str, ...]:
        """R_+, and R_- when there is more than one neuron."""
        return ("R+",) if self.width == 1 else ("R+", "R-")

    def start(self) -> Mapping[str, float]:
        """Unit neurons with overlap v(0) and mutual correlation C_o(0, 0)."""
        together = 1.0 + (self.width - 1) * self.correlation
        return {
            "second_layer": self.second_layer,
            "overlap": self.overlap,
            "C+": together if self.width > 1 else 1.0,
            "C-": 1.0 - self.correlation,
        }

    def constrain(self, history: History) -> None:
        """C_d(t, t) = (C_+ + (m-1) C_-) / m = 1: the neurons stay on the sphere."""
        m = self.width
        if m == 1:
            history.row("C+")[-1] = 1.0
        else:
            history.row("C-")[-1] = (m - history.row("C+")[-1]) / (m - 1)

    def flow(self, history: History) -> Flow:
        """Right sides of (5) to (8), from the residual (2) to (4)."""
        m, ratio = self.width, self.sample_ratio
        a, v = history.path("second_layer"), history.path("overlap")
        kernel, target = self.kernels.padded
        coupling = ratio / m**2 * a[-1] * a  # K a(t) a(s)
        phi, phi_slope, _ = power_series(target, v)
        same, other = self._pairs(history)

        # The residual: covariance and response of the labels' error, eqs. (2), (3), (4).
        h_s, h1_s, h2_s = power_series(kernel, same[0])
        h_o, h1_o, h2_o = power_series(kernel, other[0])
        overlap_kernel = h_s / m + (m - 1) / m * h_o
        response_kernel = h1_s * same[1] / m + (m - 1) / m * h1_o * other[1]
        label = self.noise**2 + self.kernels.target_norm - a[-1] * phi[-1] - a * phi + a[-1] * a * overlap_kernel
        history.row("label")[:] = label
        r, residual, integrated, instant = self._residual(history, label, a[-1] * a * response_kernel)

        # Memory kernels of the weights, eq. (5).
        s_same = coupling * (r * h1_s + residual * h2_s * same[1])
        s_other = coupling * (r * h1_o + residual * h2_o * other[1])
        d_same, d_other = coupling * residual * h1_s, coupling * residual * h1_o
        l_same, l_other = instant * coupling[-1] * h1_s[-1], instant * coupling[-1] * h1_o[-1]
        signal = ratio * phi_slope[-1] * a[-1] * integrated

        s, d = s_same + (m - 1) * s_other, d_same + (m - 1) * d_other
        local = {"+": l_same + (m - 1) * l_other}
        response_force, noise_force = history.both(s, d, "R+")
        forcings: dict[str, Floats | float] = {
            "C+": history.whole(s, "C+") + noise_force + signal * v,
            "R+": response_force,
            "overlap": signal / m + history.total(s * v),
        }
        if m > 1:
            s, d = s_same - s_other, d_same - d_other
            local["-"] = l_same - l_other
            response_force, noise_force = history.both(s, d, "R-")
            forcings["C-"] = history.whole(s, "C-") + noise_force
            forcings["R-"] = response_force

        # The multiplier that keeps C_d(t, t) = 1, eq. (9), and the second layer, eq. (8).
        growth = {
            sector: float(np.asarray(forcings["C" + sector])[-1]) - rate * float(history.row("C" + sector)[-1])
            for sector, rate in local.items()
        }
        multiplier = (growth["+"] + (m - 1) * growth.get("-", 0.0)) / m
        rates = {kind + sector: multiplier + rate for sector, rate in local.items() for kind in ("C", "R")}
        rates["overlap"] = rates["C+"]
        speed = 0.0 if self.frozen else ratio / m
        rates["second_layer"] = speed * instant * float(overlap_kernel[-1])
        forcings["second_layer"] = speed * (
            phi[-1] * integrated + history.total(r * a * overlap_kernel) + history.total(residual * a * response_kernel)
        )
        observed = {
            "train_error": float(residual[-1]),
            "test_error": float(label[-1]),
            "correlation": float(other[0][-1]) if m > 1 else 0.0,
            "multiplier": multiplier,
            "residual_response": integrated,
            "instant": instant,
            "same_neuron_correlation": float(same[0][0]),
            "same_neuron_response": float(same[1][0]),
            "fastest_rate": max(abs(rate) for rate in rates.values()),
        }
        return Flow(rates, forcings, observed)

    def _pairs(self, history: History) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """(C_d, R_d) and (C_o, R_o) at the newest time."""
        m = self.width
        c_plus, r_plus = history.row("C+"), history.row("R+")
        if m == 1:
            nothing = np.zeros(c_plus.size)
            return (c_plus, r_plus), (nothing, nothing)
        c_minus, r_minus = history.row("C-"), history.row("R-")
        same = ((c_plus + (m - 1) * c_minus) / m, (r_plus + (m - 1) * r_minus) / m)
        return same, ((c_plus - c_minus) / m, (r_plus - r_minus) / m)

    @staticmethod
    def _residual(history: History, label: Floats, response: Floats) -> tuple[Floats, Floats, float, float]:
        """r and I_A from their Volterra equations (3), implicit in the last point only, C_A from (4), and the weight of delta in R_A.

        R_A = instant * delta - r, where instant is 1 up to the error of the quadrature: it makes the integral of R_A equal to I_A, which
        vanishes when the train error does.
        """
        implicit = 1.0 + (0.5 * history.step * response[-1] if history.index else 0.0)  # at time 0 the integrals are empty
        newest = history.row("r")
        newest[:] = 0.0
        newest[:] = (response - history.after_start(response, "r")) / implicit
        newest[-1] = response[-1]
        past = history.records["residual_response"][history.columns]
        past[-1] = 0.0
        integrated = (1.0 - history.total(response * past)) / implicit
        weight = history.records["instant"][history.columns]
        weight[-1] = integrated + history.total(newest)
        half = weight[-1] * label - history.whole(newest, "label")
        return newest, weight * half - history.before(half, "r"), integrated, float(weight[-1])
