"""How does a free second layer grow when a wide network is trained on pure noise? (claim D5)

Setting.  Labels are noise of standard deviation tau; m neurons, a_j(0) of order 1; n = alpha m d samples.
Limit.    n, d, then m -> infinity at fixed alpha and slow time s = t / m.
Result.   a = sqrt(m) gamma(s), where gamma grows along the plateaus of the frozen problem until gamma_GF, eqs. (3) and (4) of
          docs/theory/interpolation.md.
Status.   Conjecture: time scales separate, and the aging ansatz.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from limitlab.laws.dmft.aging import plateau, threshold
from limitlab.laws.dmft.pure_noise import PureNoise
from limitlab.laws.parameters import parameter
from limitlab.laws.results import Values

Floats = NDArray[np.float64]


class AdiabaticGrowth(PureNoise):
    """How fast does the second layer grow when a wide network is trained on pure noise?

    Times are s = t / m. Adiabatic approximation: gamma follows the plateaus of the frozen problem and stops at the threshold.

    Examples
    --------
    >>> law = AdiabaticGrowth(ratio=0.5, kernel=(0, 0.5, 0, 0.5), times=(0.5, 1.0, 2.0))
    >>> law.theory().second_layer.values.round(3)
    array([0.289, 0.443, 0.59 ])
    """

    regime: ClassVar = "n, d, then m -> infinity at fixed n / (m d), in the time s = t / m"
    assumptions: ClassVar = (
        "pure noise, centred activation, a_j(0) = O(1)",
        "time scales separate; ansatz of the aging equations",
    )
    claims: ClassVar = ("D5",)
    observables: ClassVar = ("second_layer", "train_error")

    ratio: float = parameter(
        0.5, "samples per parameter of the first layer", symbol=r"\alpha = n/(md)", above=0, below=1, scale="log"
    )
    times: float | tuple[float, ...] = parameter((0.25, 0.5, 1.0, 2.0, 4.0), "slow times s = t / m", symbol="s", least=0)

    def coordinates(self) -> dict[str, Any]:
        """The slow times."""
        return {"time": self.times}

    def initial_slope(self) -> float:
        """gamma_* = tau sqrt(alpha) E_th: gamma(s) = gamma_* s at the start.

        >>> round(AdiabaticGrowth(ratio=0.5, kernel=(0, 0.5, 0, 0.5)).initial_slope(), 4)
        0.8165
        """
        return float(self.noise * np.sqrt(self.ratio) * self.reduced().threshold_energy)

    def saturation(self) -> float:
        """gamma_GF, where growth stops."""
        reduced = self.reduced()
        return float(threshold(self.ratio, self.noise, reduced.h0, reduced.h1, reduced.h2))

    def evaluate(self, **grid: Any) -> Values:
        """gamma(s) (in units of sqrt(m)) and the train error there."""
        from scipy.integrate import solve_ivp

        times = np.atleast_1d(np.asarray(self.times, dtype=float))
        reduced, top = self.reduced(), self.saturation()
        first = min(1e-3, 1e-3 * top)
        begin = first / self.initial_slope() if top > 0 else np.inf  # gamma is gamma_* s up to there

        def speed(_: float, gamma: Floats) -> list[float]:
            if gamma[0] >= top * (1 - 1e-7):
                return [0.0]
            return [plateau(max(float(gamma[0]), first), self.ratio, self.noise, reduced).growth]

        gamma = np.minimum(self.initial_slope() * times, top)
        late = times > begin
        if np.any(late):
            solution = solve_ivp(speed, (begin, times[-1]), [first], "RK45", times[late], rtol=1e-7, atol=1e-9)
            gamma[late] = np.minimum(solution.y[0], top)
        error = np.array([plateau(float(x), self.ratio, self.noise, reduced).residual for x in gamma])
        if np.ndim(self.times) == 0:
            return {"second_layer": float(gamma[0]), "train_error": float(error[0]), "accuracy": 1e-5}
        return {"second_layer": gamma, "train_error": error, "accuracy": 1e-5}
