"""A two-time system with a known solution, for tests, documentation and as a pattern for new systems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.numerics.two_time._marching import Flow
from limitlab.numerics.two_time._memory import History

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DampedOscillator:
    r"""A particle with memory friction, x' = -x - g int_0^t e^{-(t-s)} x(s) ds, under a random constant force.

    With S(t, u) = -g e^{-(t-u)} and a force of unit variance, the equations are::

        d/dt R(t,s) = -R(t,s) + int_s^t S(t,u) R(u,s) du,
        d/dt C(t,s) = -C(t,s) + int_0^t S(t,u) C(u,s) du + int_0^s R(s,u) du,

    where R is the response and C the correlation with the force. The solution is R(t,s) = e^{-(t-s)} cos(sqrt(g) (t-s)) and
    C(t,s) = R(t,0) R(s,0) + y(t) y(s), where y(t) = int_0^t R(t,u) du. The function x starts at 1 without force.

    >>> float(DampedOscillator(coupling=4.0).exact(0.0))
    1.0
    """

    coupling: float
    correlations = ("C",)
    responses = ("R",)
    auxiliaries = ()
    functions = ("x",)
    observed = ("power",)

    def start(self) -> Mapping[str, float]:
        """Return the start x(0) = C(0, 0) = 1."""
        return {"x": 1.0, "C": 1.0}

    def flow(self, history: History) -> Flow:
        """Return unit damping rates and the memory integrals."""
        lag = history.step * (history.index - history.columns)
        kernel = -self.coupling * np.exp(-lag)
        response, pushed = history.both(kernel, np.ones(lag.size), "R")
        return Flow(
            rates={"x": 1.0, "C": 1.0, "R": 1.0},
            forcings={
                "x": history.total(kernel * history.path("x")),
                "C": history.whole(kernel, "C") + pushed,
                "R": response,
            },
            observed={"power": float(history.row("C")[-1])},
        )

    def constrain(self, history: History) -> None:
        """Do nothing, because the system has no constraint."""

    def exact(self, t: ArrayLike) -> Floats:
        """Return x(t), which is also the response after a time t."""
        t = np.asarray(t, dtype=float)
        return np.asarray(np.exp(-t) * np.cos(np.sqrt(self.coupling) * t))

    def exact_power(self, t: ArrayLike) -> Floats:
        """Return the correlation C(t, t) of the newest time with itself."""
        t, w = np.asarray(t, dtype=float), np.sqrt(self.coupling)
        y = (1 + np.exp(-t) * (w * np.sin(w * t) - np.cos(w * t))) / (1 + w**2)
        return np.asarray(self.exact(t) ** 2 + y**2)
