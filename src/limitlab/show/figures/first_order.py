"""Figures of gradient descent without Gaussian approximation: small networks that the Gaussian model misses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from limitlab.laws.dmft.first_order import FirstOrderDynamics
from limitlab.laws.dmft.two_layer import TwoLayerDynamics
from limitlab.models.activations import Activation
from limitlab.plotting.style import finish, new_figure, reading_key, simulation_points, theory_line

Floats = NDArray[np.float64]

RATIO, NOISE = 2.0, 0.5
MARKS = slice(0, None, 5)


def _cubic(x: Floats) -> Floats:
    return 0.8 * x + 0.5 / math.sqrt(2) * (x**2 - 1) + 0.3 / math.sqrt(6) * x * (x**2 - 3)


def _cubic_slope(x: Floats) -> Floats:
    return 0.8 + 1 / math.sqrt(2) * x + 0.9 / math.sqrt(6) * (x**2 - 1)


def _cubic_curvature(x: Floats) -> Floats:
    return 1 / math.sqrt(2) + 1.8 / math.sqrt(6) * x


def _bent(u: Floats) -> Floats:
    return u + 0.5 * (u**2 - 1)


def _bent_slope(u: Floats) -> Floats:
    return 1 + u


CUBIC = Activation(_cubic, derivative=_cubic_slope, second_derivative=_cubic_curvature)
BENT = Activation(_bent, derivative=_bent_slope)


@dataclass(frozen=True)
class Curves:
    """One network: times, the two theories, draws of gradient descent and their dimension."""

    times: Floats
    exact: xr.Dataset
    gaussian: xr.Dataset
    runs: xr.Dataset
    size: int

    def measured(self, name: str) -> tuple[Floats, Floats]:
        """Mean and standard error of an observable over the draws."""
        values = self.runs[name].values
        return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))


def beyond_the_gaussian_model(quick: bool = True) -> Figure:
    """Small networks: the exact equations (lines) follow gradient descent (points), the Gaussian model (dashed) does not."""
    figure, (left, right) = new_figure(columns=2)
    few, many, paths, steps = ((150, 12), (150, 60), 4000, 30) if quick else ((800, 40), (800, 80), 20000, 40)
    cubic = _curves(dict(width=4, activation=CUBIC, target_function=BENT, start_overlap=0.2), 4.0, paths, few, steps)
    tanh = _curves(dict(width=2, activation="tanh", target_function="tanh", start_overlap=0.1), 8.0, 2 * paths, many, steps)
    _errors(left, cubic)
    finish(left, "time $t$", "squared error", "cubic activation, $m = 4$", ylim=(0, 2.3))
    _deviations(right, tanh)
    finish(right, "time $t$", "train error above the exact one (%)", "tanh, $m = 2$", ylim=(-9, 9))
    return figure


def _curves(network: dict[str, Any], end: float, paths: int, draws: tuple[int, int], steps: int) -> Curves:
    """A network with frozen second layer on the sphere, by the exact equations, the Gaussian model and gradient descent."""
    law = FirstOrderDynamics(
        loss="committee",
        sample_ratio=RATIO,
        noise=NOISE,
        step=RATIO * end / steps,  # gradient flow of the two-layer laws runs n/d times faster
        steps=steps,
        signal_energy=1.0,
        start_norm=1.0,
        sphere=True,
        paths=paths,
        **network,
    )
    times = np.linspace(0, end, steps + 1)
    gaussian = TwoLayerDynamics(
        sample_ratio=RATIO, noise=NOISE, frozen=True, times=tuple(times), solver_steps=120, **network
    )
    return Curves(times, law.theory(), gaussian.theory(), law.simulate_batch(draws[0], range(draws[1])), draws[0])


def _errors(axes: Axes, curves: Curves) -> None:
    for index, (name, label) in enumerate((("test_error", "test error"), ("train_error", "train error"))):
        theory_line(axes, curves.times, curves.exact[name], index, label)
        theory_line(axes, curves.times, curves.gaussian[name], index, linestyle="--", linewidth=1.3)
        mean, error = curves.measured(name)
        simulation_points(axes, curves.times[MARKS], mean[MARKS], error[MARKS], index)
    reading_key(axes, "exact equations", None)
    axes.plot([], [], "--", color="0.4", linewidth=1.3, label="Gaussian model")
    reading_key(axes, None, f"gradient descent, $d = {curves.size}$")


def _deviations(axes: Axes, curves: Curves) -> None:
    """Train error of the Gaussian model and of gradient descent, relative to the exact equations."""
    exact = curves.exact.train_error.values
    mean, error = curves.measured("train_error")
    theory_line(axes, curves.times, 0 * exact, 1, "exact equations")
    gaussian = 100 * (curves.gaussian.train_error.values / exact - 1)
    theory_line(axes, curves.times, gaussian, 1, "Gaussian model", linestyle="--", linewidth=1.3)
    above, bars = 100 * (mean / exact - 1), 100 * error / exact
    simulation_points(axes, curves.times[MARKS], above[MARKS], bars[MARKS], 1, f"gradient descent, $d = {curves.size}$")


FIGURES: dict[str, Callable[[bool], Figure]] = {"beyond-gaussian-model": beyond_the_gaussian_model}
