"""The flow of all summary statistics of the XOR mixture at a finite noise level (docs/theory/xor.md).

Setting.  As in `limitlab.laws.online_sgd.xor`, at fixed lambda. Statistics: v_i, a_i = <W_i, mu>, b_i = <W_i, nu>, and the Gram matrix Q of
          the components of the W_i orthogonal to mu and nu.
Limit.    N -> infinity with step c / N; time (c / N) * steps.
Result.   The ODE (3), whose right side consists of Gaussian averages over the K preactivations of each of the four clusters.
Numerics. For K = 1 quadrature panels end at the kink of the ReLU. For K >= 2 fixed scrambled Sobol points and their mirror images are
          mapped by the Cholesky factor of the covariance, which is smooth in the state. An eigenbasis is not smooth, and the solver would
          need more steps.
Status.   Derived. Simulations of the exact chain agree.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from limitlab._core.cost import Cost, latest
from limitlab.errors import Refused
from limitlab.laws import Draw, Experiment, Headline, Law, Values, observable, parameter, shared
from limitlab.numerics.ode import Trajectory, follow, integrate, runge_kutta
from limitlab.numerics.quadrature import between_kinks

__all__ = ["XorDynamics"]

Array = NDArray[np.float64]

CENTRES = ((1.0, 0.0, 1.0), (-1.0, 0.0, 1.0), (0.0, 1.0, 0.0), (0.0, -1.0, 0.0))
"""Coordinates along mu and nu, and label."""
SCRAMBLES = (0, 1, 2)  # seeds of independent sets of quasi-random points, whose spread is the error of their mean
STEP = 0.4  # fixed time step in units of 1 / (1 + rate), because quasi-random averages jump when a point crosses the kink


def xor_velocity(
    v: Array, a: Array, b: Array, gram: Array, snr: float, alpha: float, step: float, points: int = 4096, scramble: int = 0
) -> tuple[Array, ...]:
    """Return the right sides of (3)."""
    from scipy.special import expit

    width = v.size
    covariance = np.outer(a, a) + np.outer(b, b) + gram + 1e-13 * np.eye(width)
    factor = np.linalg.cholesky(covariance)
    dv, da, db, dq = (-alpha * part for part in (v, a, b, 2 * gram))
    for along_mu, along_nu, label in CENTRES:
        mean = along_mu * a + along_nu * b
        nodes, weights = _nodes(width, float(mean[0]), float(factor[0, 0]), snr, points, scramble)
        xi = nodes @ factor.T / math.sqrt(snr)
        inverse = np.linalg.solve(factor.T, nodes.T).T / math.sqrt(snr)  # C^-1 xi
        h = mean + xi
        hidden = np.maximum(h, 0.0)
        error = weights * (label - expit(hidden @ v)) / 4
        active = error[:, None] * (h > 0)
        dv = dv + error @ hidden
        da = da + v * (active.T @ (along_mu + inverse @ a))
        db = db + v * (active.T @ (along_nu + inverse @ b))
        cross = v[:, None] * (active.T @ (inverse @ gram))
        square = (active * (label - expit(hidden @ v))[:, None]).T @ (h > 0)
        dq = dq + cross + cross.T + step / snr * np.outer(v, v) * square
    return dv, da, db, dq


def _nodes(width: int, mean: float, spread: float, snr: float, points: int, scramble: int) -> tuple[Array, Array]:
    """Return standard Gaussian points (rows) and weights for averages over the preactivations."""
    if width == 1:
        nodes, weights = between_kinks((0.0,), np.array([mean]), spread / math.sqrt(snr), panels=6, order=16, reach=12.0)
        return nodes.T, weights[0]
    return _sobol(width, points, scramble)


@lru_cache(maxsize=8)
def _sobol(width: int, points: int, scramble: int) -> tuple[Array, Array]:
    """Return scrambled Sobol points and their mirror images, with equal weights."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    uniform = qmc.Sobol(width, seed=scramble).random_base2(math.ceil(math.log2(points)))
    half = ndtri(np.clip(uniform, 1e-12, 1 - 1e-12))
    both = np.concatenate([half, -half])
    return both, np.full(len(both), 1 / len(both))


class XorDynamics(Law):
    """How do the neurons of a ReLU network move while it learns the XOR mixture from noisy samples?

    Examples
    --------
    >>> start = dict(start_second_layer=(1.0,), start_mu=(0.2,), start_nu=(0.1,), start_residual=(0.9,))
    >>> law = XorDynamics(snr=5.0, regularizer=0.03, times=(5.0, 10.0), **start)
    >>> law.theory().second_layer.values.round(6).tolist()
    [[0.801088, 0.70081]]
    """

    status = "derived"
    regime = "N -> infinity with step c/N at fixed snr, statistics of order 1 at the start"
    assumptions = (
        "one fresh sample per step",
        "neurons orthogonal outside mu and nu at the start",
    )
    references = ("benarous2022high",)
    page = "xor"
    observables = {
        **shared("second_layer"),
        "overlap_mu": observable("overlap with mu", "a"),
        "overlap_nu": observable("overlap with nu", "b"),
        **shared("residual"),
    }
    simulation = Experiment("dimension N of the inputs", sizes=(400, 800, 1600), draws=150)
    # Steps that are not 1 and overlaps with both axes, for one neuron and for two neurons of opposite signs
    points = (
        dict(
            snr=4.0,
            regularizer=0.05,
            step=0.7,
            start_second_layer=(0.9,),
            start_mu=(0.5,),
            start_nu=(0.4,),
            start_residual=(0.8,),
            times=(1.0, 2.0, 4.0),
        ),
        dict(
            snr=5.0,
            regularizer=0.03,
            step=0.8,
            start_second_layer=(0.9, -0.8),
            start_mu=(0.5, 0.3),
            start_nu=(0.4, 0.6),
            start_residual=(0.8, 0.7),
            times=(1.0, 2.0),
        ),
    )
    headline = Headline(
        "A neuron keeps one axis, drops the other",
        x="times",
        over=(0.0, 60.0, 81),
        show=("overlap_mu", "overlap_nu"),
        at=dict(start_mu=(0.2,), start_nu=(0.1,)),
        size=400,
        draws=3,
        places=(2.0, 5.0, 10.0, 20.0, 40.0, 60.0),
        sliders=("snr", "regularizer"),
    )

    snr: float = parameter(5.0, note="inverse variance of the noise", above=0, scale="log")
    regularizer: float = parameter(0.03, least=0)
    step: float = parameter(1.0, note="times the dimension", symbol=r"c_\delta", above=0)
    start_second_layer: tuple[float, ...] = parameter((1.0,), note="one number per neuron", symbol="v(0)")
    start_mu: tuple[float, ...] = parameter((0.2,), "overlaps with mu at the start", symbol="a(0)")
    start_nu: tuple[float, ...] = parameter((0.1,), "overlaps with nu at the start", symbol="b(0)")
    start_residual: tuple[float, ...] = parameter((0.9,), note="one number per neuron", symbol="Q_{ii}(0)", least=0)
    times: float | tuple[float, ...] = parameter(
        (2.0, 5.0, 10.0), note="step times samples over the dimension", kind="coordinate", least=0
    )
    quasi_points: int = parameter(
        4096,
        note="for two or more neurons, rounded up to a power of 2",
        kind="solver",
        least=64,
        most=2**18,
        scale="log",
        finer=4,
    )
    tolerance: float = parameter(1e-9, kind="solver", above=0, most=1e-3, scale="log", finer=0.1)

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of one sample per step. Only summary statistics are stored."""
        return Cost(1e5, 1e7 + 500.0 * len(self.start_second_layer) ** 2 * size * latest(self) / self.step)

    @model_validator(mode="after")
    def _same_width(self) -> Self:
        for name in ("start_mu", "start_nu", "start_residual"):
            if len(getattr(self, name)) != len(self.start_second_layer):
                raise Refused(f"{name} = {getattr(self, name)!r} is not allowed: must hold one number per neuron")
        if not self.start_second_layer:
            raise Refused("start_second_layer = () is not allowed: must hold at least one neuron")
        return self

    def coordinates(self) -> dict[str, Any]:
        """Return the coordinates, which are neurons and times."""
        return {"neuron": tuple(range(len(self.start_second_layer))), **super().coordinates()}

    def _start(self) -> tuple[Array, Array, Array, Array]:
        v, a, b = (np.array(part, dtype=float) for part in (self.start_second_layer, self.start_mu, self.start_nu))
        return v, a, b, np.diag(np.array(self.start_residual, dtype=float))

    def predicted(self, times: Array) -> Values:
        """Integrate equation (3). For several neurons the result is the mean over independent sets of quasi-random points."""
        alone = len(self.start_second_layer) == 1
        paths = [self._integrated(times, scramble) for scramble in (SCRAMBLES[:1] if alone else SCRAMBLES)]
        mean = np.mean([path.states for path in paths], axis=0)
        errors = np.max([path.errors for path in paths], axis=0)
        if not alone:
            errors = errors + np.max(np.std([path.states for path in paths], axis=0, ddof=1), axis=0)
        split = [self._split(part) for part in (mean.T, errors)]
        return {**split[0], "accuracy": split[1]}

    def _integrated(self, times: Array, scramble: int) -> Trajectory:
        """Return the flow of v, a, b and Q, flattened."""
        start = self._start()
        cuts = np.cumsum([part.size for part in start])[:-1]

        def rates(_: float, state: Array) -> Array:
            v, a, b, gram = np.split(state, cuts)
            parts = xor_velocity(
                v, a, b, gram.reshape(v.size, v.size), self.snr, self.regularizer, self.step, self.quasi_points, scramble
            )
            return np.concatenate([part.ravel() for part in parts])

        flat = np.concatenate([part.ravel() for part in start])
        if len(start[0]) == 1:
            return integrate(rates, flat, times, self.tolerance)
        advance, step = runge_kutta(rates), STEP / (1 + self.step / self.snr + self.regularizer)
        coarse, fine = (np.array(list(follow(advance, flat, times, h))) for h in (step, step / 2))
        return Trajectory(fine, np.abs(fine - coarse).max(axis=0))

    def _split(self, flat: Array) -> dict[str, Array]:
        """Return the observables by name, one row per neuron. Of Q only the diagonal is an observable."""
        width = len(self.start_second_layer)
        blocks = [flat[i * width : (i + 1) * width] for i in range(3)]
        return dict(zip(self.observables, (*blocks, flat[3 * width :: width + 1]), strict=True))

    def measured(self, draw: Draw, times: Array) -> Values:
        """Run the exact chain once."""
        from limitlab.models.xor_chain import xor_path

        size, width = draw.size, len(self.start_second_layer)
        if size < width + 3:
            raise Refused(f"size = {size} is not allowed: must be at least the number of neurons + 3 = {width + 3}")
        counts = np.round(times * size / self.step).astype(np.int64)
        shared_numbers = (self.snr**-0.5, self.regularizer, self.step / size, size, counts)
        return dict(zip(self.observables, xor_path(draw.rng, *self._start(), *shared_numbers), strict=True))
