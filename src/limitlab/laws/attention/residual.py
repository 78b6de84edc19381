"""The differential equation that is the limit of a deep residual network.

Setting.  x_{k+1} = x_k + (T/L) w_k tanh(a_k x_k + b_k), k = 0, ..., L - 1, in R^d. The layers' weights are smooth functions w(t), a(t),
          b(t) at t = kT/L, and w_k also has independent normal errors of standard deviation tau / sqrt(d) in its entries.
Limit.    L -> infinity at fixed horizon T.
Result.   x_L tends to x(T), where (docs/theory/attention.md, eq. 17)

              x' = w(t) tanh(a(t) x + b(t)).

          Without noise the gap is of order 1/L (Euler's method). With noise the fluctuations are of order L^{-1/2}, and the error of
          the means of smooth observables is still of order 1/L. Without the factor T/L the output does not converge to this limit.
Status.   Theorem (classical; Haber and Ruthotto 2017, Chen et al. 2018 for networks).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.laws import Draw, Experiment, Headline, Law, Values, observable, parameter
from limitlab.numerics.ode import Trajectory, integrate

__all__ = ["ResidualFlow"]

Array = NDArray[np.float64]


def smooth_layer(time: float, dimension: int) -> tuple[Array, Array, Array]:
    """Return the built-in smooth weights w(t), a(t), b(t), with entries of size 1/sqrt(d) that oscillate with time.

    >>> [part.shape for part in smooth_layer(0.0, 3)]
    [(3, 3), (3, 3), (3,)]
    """
    i = np.arange(dimension)
    phase = 1.3 * i[:, None] + 0.7 * (i * i)[None, :]
    return np.cos(time + phase) / np.sqrt(dimension), np.sin(2 * time + phase) / np.sqrt(dimension), 0.3 * np.cos(time + i)


def residual_output(
    start: Array, depth: int, horizon: float, noise: float = 0.0, rng: np.random.Generator | None = None
) -> Array:
    """Return the output of the network of `depth` layers.

    >>> residual_output(np.ones(2), 4, 0.0)
    array([1., 1.])
    """
    x, d, h = np.array(start, dtype=float), len(start), horizon / depth
    for k in range(depth):
        w, a, b = smooth_layer(k * h, d)
        if rng is not None and noise:
            w = w + noise / np.sqrt(d) * rng.standard_normal((d, d))
        x = x + h * w @ np.tanh(a @ x + b)
    return x


def ode_output(start: Array, horizon: float, tolerance: float = 1e-12) -> Trajectory:
    """Return the solution x(T) of the limiting equation with its error.

    >>> ode_output(np.ones(2), 0.0).states
    array([[1., 1.]])
    """

    def slope(t: float, x: Array) -> Array:
        w, a, b = smooth_layer(t, len(x))
        return np.asarray(w @ np.tanh(a @ x + b))

    return integrate(slope, start, [horizon], tolerance)


class ResidualFlow(Law):
    """What does a residual network with very many layers compute?

    Examples
    --------
    >>> law = ResidualFlow(dimension=4, horizon=2.0)
    >>> law.depth_errors([20, 40, 80]).round(4).tolist()
    [0.0268, 0.0134, 0.0067]
    """

    status = "theorem"
    regime = "depth L -> infinity with steps T/L, weights close to a smooth path in depth"
    assumptions = (
        "steps are scaled by T/L",
        "weights follow a smooth path in depth, up to independent noise of bounded variance",
    )
    references = ("chen2018neural", "haber2017stable")
    page = "attention"
    observables = {
        "output_norm": observable("mean square of the output", r"|x_L|^2/d", least=0),
        "displacement": observable("mean squared distance from the input", r"|x_L - x_0|^2/d", least=0),
    }
    simulation = Experiment("number of layers L", draws=80)
    # The weights are noisy, and the horizon is not 1
    points = (dict(dimension=5, horizon=1.5, weight_noise=0.7),)
    headline = Headline(
        "Deep residual networks converge to a flow",
        x="horizon",
        over=(0.0, 6.0, 61),
        show=("output_norm", "displacement"),
        size=100,
        draws=3,
        places=(0.5, 1.0, 2.0, 3.0, 4.0, 6.0),
        sliders=("dimension", "weight_noise"),
    )

    dimension: int = parameter(4, note="width of the layers", least=1)
    horizon: float = parameter(2.0, "depth in units of time", symbol="T", least=0)
    weight_noise: float = parameter(
        0.5, "standard deviation of the layers' weights around their path, times sqrt(d)", symbol=r"\tau", least=0
    )
    tolerance: float = parameter(1e-12, kind="solver", above=0, most=1e-3, scale="log", finer=0.1)

    def start(self) -> Array:
        """Return the input, a fixed vector with entries of order one."""
        return np.cos(1.0 + np.arange(self.dimension))

    def predicted(self) -> Values:
        """Return the observables of the differential equation."""
        solution = ode_output(self.start(), self.horizon, self.tolerance)
        x, error = solution.states[0], solution.errors
        moved = x - self.start()
        return dict(
            output_norm=float(x @ x) / self.dimension,
            displacement=float(moved @ moved) / self.dimension,
            accuracy={
                "output_norm": 2 * float(np.abs(x) @ error) / self.dimension,
                "displacement": 2 * float(np.abs(moved) @ error) / self.dimension,
            },
        )

    def measured(self, draw: Draw) -> Values:
        """Return the observables of a network of `size` layers with one draw of the noise in its weights."""
        x = residual_output(self.start(), draw.size, self.horizon, self.weight_noise, draw.rng)
        return dict(output_norm=np.mean(x**2), displacement=np.mean((x - self.start()) ** 2))

    def depth_errors(self, depths: Any) -> Array:
        """Return the largest gap between the output of the noiseless network and the differential equation, for each depth."""
        limit = ode_output(self.start(), self.horizon).states[0]
        return np.array(
            [np.abs(residual_output(self.start(), int(L), self.horizon) - limit).max() for L in np.ravel(depths)]
        )
