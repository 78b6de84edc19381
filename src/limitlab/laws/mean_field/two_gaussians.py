"""One-pass SGD of a wide network that separates two centred Gaussians, and its mean-field equation.

Setting.  y = +-1 with equal probability, x given y is N(0, (1 + y Delta)^2 I_d); f(x) = (1/N) sum_i a(<w_i, x>), with `a` equal to the
          level s1 below t1 and s2 above t2, and linear between; w_i ~ N(0, (s0^2/d) I) at the start; one sample per step,
          w_i <- w_i + 2 eps (y - f) a'(<w_i, x>) x, in the time t = eps * samples.
Limit.    N -> infinity and eps -> 0 at fixed d. The distribution of the weights solves a continuity equation and stays radial. The
          distribution of the radii is transported along characteristics (docs/theory/mean_field.md, eqs. 5-9).
Result.   With H_y(chi) the output on the shell |x| = (1 + y Delta) chi, an average of h over radii,

              R = 1/2 sum_y E (y - H_y)^2,     dr/dt = -sum_y E (H_y - y) (1 + y Delta) chi h'((1 + y Delta) r chi).          (9)

Status.   Theorem (Mei, Montanari, Nguyen 2018) with an error of order N^(-1/2) + eps^(1/2) on bounded times.
          The error of means is of order 1/N + eps.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab._core.cost import Cost, latest
from limitlab.errors import Refused
from limitlab.laws import Draw, Experiment, Headline, Law, Values, observable, parameter, shared
from limitlab.numerics.ode import solved

__all__ = ["TwoGaussians"]

Array = NDArray[np.float64]

TOLERANCE = 1e-8  # of the integration along characteristics
SHELLS = 40  # nodes in the length of the input; one more node is added for every `PER_SHELL` radii
PER_SHELL = 20
POTENTIAL_NODES = 2400  # nodes in the length of the input for `interaction` and `potential`


class TwoGaussians(Law):
    """How does a wide network that is trained on one sample at a time learn to separate two centred Gaussians?

    Examples
    --------
    >>> law = TwoGaussians(separation=0.4, times=(0.5, 2.0, 5.0))
    >>> law.theory().risk.values.round(5).tolist()
    [0.09081, 0.07293, 0.07292]
    >>> round(float(law.interaction(0.7, 0.7)), 9), round(float(law.potential(0.7)), 9)
    (2.959140772, -0.699947983)
    """

    status = "theorem"
    regime = "N -> infinity and step -> 0 at fixed dimension, on bounded times t = step * samples"
    assumptions = (
        "centred isotropic Gaussians of standard deviations 1 + Delta and 1 - Delta, equally likely",
        "isotropic Gaussian weights at the start, a second layer that is not trained",
    )
    references = ("mei2018mean", "mei2019mean")
    page = "mean_field"
    observables = {
        **shared("risk"),
        "mean_radius": observable("mean length of the weights", r"\mathbb{E}\,r", least=0),
        "radius_spread": observable("standard deviation of the length of the weights", r"\mathrm{sd}(r)", least=0),
    }
    simulation = Experiment("number of neurons N (the step is `step` / N)", sizes=(50, 100, 200), draws=160, rate=1.0)
    # Unequal classes, levels that are not opposite, and both signs of Delta; in few dimensions small networks are close to the limit
    points = (
        dict(
            separation=0.5,
            dimension=6,
            initial_scale=0.7,
            levels=(-2.0, 5.0),
            times=(0.1, 0.4, 1.0),
            step=0.04,
            test_points=400,
        ),
        dict(
            separation=-0.4,
            dimension=10,
            initial_scale=0.9,
            knots=(0.4, 1.2),
            levels=(3.0, -4.0),
            times=(0.1, 0.3, 0.8),
            step=0.04,
            test_points=400,
        ),
    )
    headline = Headline(
        "A long plateau hides the better solution",
        x="times",
        over=(0.05, 100.0, 41),
        scale="log",
        show=("risk",),
        curves=("separation", (0.4, 0.8)),
        size=400,
        draws=2,
        places=(0.1, 0.3, 1.0, 3.0, 6.0, 10.0, 30.0),
        sliders=("initial_scale", "separation"),
    )

    separation: float = parameter(
        0.8, "half the difference of the standard deviations of the two classes", symbol=r"\Delta", above=-1, below=1
    )
    dimension: int = parameter(40, note="of the inputs", least=3)
    initial_scale: float = parameter(
        0.8, "root mean square length of the weights at the start", symbol="s_0", above=0, scale="log"
    )
    knots: tuple[float, float] = parameter(
        (0.5, 1.5), "where the activation leaves its first level and reaches its second", symbol="t_1, t_2", above=0
    )
    levels: tuple[float, float] = parameter((-2.5, 7.5), "the two levels of the activation", symbol="s_1, s_2")
    times: float | tuple[float, ...] = parameter((0.5, 2.0, 5.0), note="step times samples", kind="coordinate", least=0)
    solver_steps: int = parameter(400, note="radii", kind="solver", least=100, finer=2)
    step: float = parameter(0.024, note="times the number of neurons", kind="experiment", above=0, scale="log")
    test_points: int = parameter(2000, "new inputs of each class that measure the risk", kind="experiment", least=10)

    @model_validator(mode="after")
    def _rising_knots(self) -> Self:
        if self.knots[0] >= self.knots[1]:
            raise Refused(f"knots = {self.knots} is not allowed: the first must be below the second")
        return self

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of evaluating every neuron at every test point."""
        return Cost(2.2 * self.test_points * size, 200.0 * self.test_points * size * max(latest(self) / self.step / 10, 1.0))

    def predicted(self, times: Array) -> Values:
        """Integrate the characteristics of (9) with all radii and with half as many; the difference is the stated error."""
        fine, coarse = self._observed_at(times, self.solver_steps), self._observed_at(times, self.solver_steps // 2)
        floor = 10 * TOLERANCE
        accuracy = {name: np.abs(fine[name] - coarse[name]).max() + floor * np.abs(fine[name]).max() for name in fine}
        return {**fine, "accuracy": accuracy}

    def measured(self, draw: Draw, times: Array) -> Values:
        """Run one-pass SGD once with `size` neurons."""
        from limitlab.laws.mean_field._training import ramp_risk, ramp_sgd

        rng, step = draw.rng, self.step / draw.size
        start = rng.standard_normal((draw.size, self.dimension)) * (self.initial_scale / np.sqrt(self.dimension))
        task = (self.separation, self.knots, self.levels)
        risks, means, spreads = [], [], []
        for weights in ramp_sgd(rng, start, *task, step, np.round(times / step).astype(np.int64)):
            radii = np.linalg.norm(weights, axis=1)
            risks.append(ramp_risk(rng, weights, *task, self.test_points))
            means.append(radii.mean())
            spreads.append(radii.std())
        return dict(risk=np.array(risks), mean_radius=np.array(means), radius_spread=np.array(spreads))

    def radii(self, times: ArrayLike, solver_steps: int | None = None) -> tuple[Array, Array]:
        """Return the radii of the characteristics over time, shape (times, points), and their weights.

        Radii and weights together are the distribution of |w| in the limit.

        >>> r, weights = TwoGaussians(separation=0.4).radii([0.0, 2.0], 200)
        >>> (r @ weights).round(4).tolist()
        [0.795, 1.6283]
        """
        from limitlab.laws.mean_field import _radial as radial

        count = solver_steps or self.solver_steps
        nodes, chi, table = (
            radial.radius_nodes(self.dimension, self.initial_scale, count),
            self._shells(count),
            self._table(),
        )
        grid = np.atleast_1d(np.asarray(times, dtype=float))
        if not grid.any():
            return np.tile(nodes.points, (grid.size, 1)), nodes.weights
        paths = solved(
            lambda _, r: radial.radial_velocity(r, nodes.weights, *chi, self.separation, *table),
            nodes.points, grid, TOLERANCE, TOLERANCE * self.initial_scale,
        )  # fmt: skip
        return paths, nodes.weights

    def interaction(self, r1: ArrayLike, r2: ArrayLike) -> Array:
        """Return the mean product of two neurons, averaged over the directions of their weights at fixed lengths, eq. (8)."""
        first, second = np.broadcast_arrays(np.asarray(r1, dtype=float), np.asarray(r2, dtype=float))
        chi = self._shells(POTENTIAL_NODES)
        total = sum(
            (self._shell_values(first, label) * self._shell_values(second, label)) @ chi.weights for label in (-1, 1)
        )
        return np.asarray(total / 2)[()]

    def potential(self, r: ArrayLike) -> Array:
        """Return minus the mean product of label and neuron, for a weight of this radius, eq. (8)."""
        chi, radius = self._shells(POTENTIAL_NODES), np.asarray(r, dtype=float)
        return np.asarray(-sum(label * self._shell_values(radius, label) @ chi.weights for label in (-1, 1)) / 2)[()]

    def _observed_at(self, times: Array, count: int) -> dict[str, Array]:
        from limitlab.laws.mean_field import _radial as radial

        (paths, weights), chi, table = self.radii(times, count), self._shells(count), self._table()
        risks = [
            sum(
                chi.weights @ (y - radial.shell_outputs(r, weights, chi.points, 1 + y * self.separation, *table)) ** 2 / 2
                for y in (-1.0, 1.0)
            )
            for r in paths
        ]
        mean = paths @ weights
        spread = np.sqrt(np.maximum((paths - mean[:, None]) ** 2 @ weights, 0))
        return dict(risk=np.array(risks), mean_radius=mean, radius_spread=spread)

    def _shell_values(self, r: Array, label: float) -> Array:
        """Return h on the shells of one class, shape (*r, nodes)."""
        from limitlab.laws.mean_field._radial import shell_mean

        scaled = (1 + label * self.separation) * r[..., None] * self._shells(POTENTIAL_NODES).points
        return shell_mean(scaled, self.dimension, self.knots, self.levels)[0]

    def _shells(self, count: int) -> Any:
        from limitlab.laws.mean_field._radial import chi_nodes

        return chi_nodes(self.dimension, SHELLS + count // PER_SHELL)

    def _table(self) -> Any:
        from limitlab.laws.mean_field._radial import shell_table

        return shell_table(self.dimension, self.knots, self.levels)
