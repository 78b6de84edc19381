"""The XOR mixture at a finite noise level: the flow of all summary statistics (claim J21; docs/theory/xor.md).

Setting.  As in `limitlab.laws.sgd.xor`, at fixed lambda. Statistics: v_i, a_i = <W_i, mu>, b_i = <W_i, nu>, and the Gram matrix Q of
          what is left of the W_i.
Limit.    N -> infinity with step c / N; time (c / N) * steps.
Result.   The ODE (5): Gaussian averages over the K preactivations of each of the four clusters.
Numerics. K = 1: panels that end at the kink of the ReLU. K >= 2: fixed scrambled Sobol points with their mirror images, mapped by
          the Cholesky factor of the covariance, which is smooth in the state (an eigenbasis is not, and stalls the solver).
Status.   Derived, checked against the exact chain.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from limitlab.errors import ConvergenceError
from limitlab.laws.base import Law, Status
from limitlab.laws.parameters import parameter
from limitlab.laws.results import Values
from limitlab.laws.sgd.information import between_kinks
from limitlab.laws.sgd.spherical import REFERENCES

Array = NDArray[np.float64]

CENTRES = ((1.0, 0.0, 1.0), (-1.0, 0.0, 1.0), (0.0, 1.0, 0.0), (0.0, -1.0, 0.0))
"""Coordinates along mu and nu, and label."""
SOBOL = 12  # two to this power points, and their mirror images
SOBOL_ACCURACY = 2e-3


def xor_velocity(v: Array, a: Array, b: Array, gram: Array, snr: float, alpha: float, step: float) -> tuple[Array, ...]:
    """Right sides of (5)."""
    from scipy.special import expit

    width = v.size
    covariance = np.outer(a, a) + np.outer(b, b) + gram + 1e-13 * np.eye(width)
    factor = np.linalg.cholesky(covariance)
    dv, da, db, dq = (-alpha * part for part in (v, a, b, 2 * gram))
    for along_mu, along_nu, label in CENTRES:
        mean = along_mu * a + along_nu * b
        nodes, weights = _nodes(width, float(mean[0]), float(factor[0, 0]), snr)
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


def _nodes(width: int, mean: float, spread: float, snr: float) -> tuple[Array, Array]:
    """Standard Gaussian points (rows) and weights for averages over the preactivations."""
    if width == 1:
        nodes, weights = between_kinks((0.0,), np.array([mean]), spread / math.sqrt(snr))
        return nodes.T, weights[0]
    return _sobol(width)


@lru_cache(maxsize=8)
def _sobol(width: int) -> tuple[Array, Array]:
    from scipy.special import ndtri
    from scipy.stats import qmc

    points = ndtri(np.clip(qmc.Sobol(width, seed=0).random_base2(SOBOL), 1e-12, 1 - 1e-12))
    both = np.concatenate([points, -points])
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

    status: ClassVar[Status] = "derived"
    regime: ClassVar[str] = "N -> infinity with step c/N at fixed snr, statistics of order 1 at the start"
    assumptions: ClassVar[tuple[str, ...]] = (
        "one fresh sample per step",
        "neurons orthogonal outside mu and nu at the start",
    )
    references: ClassVar[tuple[str, ...]] = (REFERENCES[1],)
    claims: ClassVar[tuple[str, ...]] = ("J21",)
    observables: ClassVar[tuple[str, ...]] = ("second_layer", "overlap_mu", "overlap_nu", "residual")
    size_meaning: ClassVar[str] = "dimension N of the inputs"
    default_sizes: ClassVar[tuple[int, ...]] = (400, 800, 1600)
    default_seeds: ClassVar[int] = 150

    snr: float = parameter(5.0, "inverse variance of the noise", symbol=r"\lambda", above=0, scale="log")
    regularizer: float = parameter(0.03, "penalty on both layers", symbol=r"\alpha", least=0)
    step: float = parameter(1.0, "step size times the dimension", symbol=r"c_\delta", above=0)
    start_second_layer: tuple[float, ...] = parameter((1.0,), "second layer at the start", symbol="v(0)")
    start_mu: tuple[float, ...] = parameter((0.2,), "overlaps with mu at the start", symbol="a(0)")
    start_nu: tuple[float, ...] = parameter((0.1,), "overlaps with nu at the start", symbol="b(0)")
    start_residual: tuple[float, ...] = parameter(
        (0.9,), "squared lengths of the rest at the start", symbol="Q_{ii}(0)", least=0
    )
    times: tuple[float, ...] = parameter((2.0, 5.0, 10.0), "time: step times samples over N", symbol="t", least=0)

    @model_validator(mode="after")
    def _same_width(self) -> Self:
        for name in ("start_mu", "start_nu", "start_residual"):
            if len(getattr(self, name)) != len(self.start_second_layer):
                raise ValueError(f"{name} = {getattr(self, name)!r} is not allowed: must hold one number per neuron")
        if not self.times or np.any(np.diff(self.times) <= 0) or not self.start_second_layer:
            raise ValueError(f"times = {self.times!r} is not allowed: must be in increasing order, with at least one neuron")
        return self

    def coordinates(self) -> dict[str, Any]:
        """Neurons and times."""
        return {"neuron": tuple(range(len(self.start_second_layer))), "time": self.times}

    def _start(self) -> tuple[Array, Array, Array, Array]:
        v, a, b = (np.array(part, dtype=float) for part in (self.start_second_layer, self.start_mu, self.start_nu))
        return v, a, b, np.diag(np.array(self.start_residual, dtype=float))

    def evaluate(self, **grid: Any) -> Values:
        """Equation (5) integrated."""
        from scipy.integrate import solve_ivp

        start = self._start()
        width, alone = len(start[0]), len(start[0]) == 1

        def rates(_: float, state: Array) -> Array:
            v, a, b, gram = state[:width], state[width : 2 * width], state[2 * width : 3 * width], state[3 * width :]
            parts = xor_velocity(v, a, b, gram.reshape(width, width), self.snr, self.regularizer, self.step)
            return np.concatenate([part.ravel() for part in parts])

        tolerance = 1e-9 if alone else 1e-6
        flat = np.concatenate([part.ravel() for part in start])
        solution = solve_ivp(rates, (0, self.times[-1]), flat, "DOP853", self.times, rtol=tolerance, atol=tolerance)
        if not solution.success:
            raise ConvergenceError(f"the flow was not followed to the end: {solution.message}", solution.y)
        blocks = [solution.y[i * width : (i + 1) * width] for i in range(3)]
        residual = solution.y[3 * width :: width + 1]
        return {
            **dict(zip(self.observables, (*blocks, residual), strict=True)),
            "accuracy": 1e-8 if alone else SOBOL_ACCURACY,
        }

    def experiment(self, size: int, seed: int, **path: Any) -> Values:
        """One run of the exact chain."""
        from limitlab.models.xor_chain import xor_path

        width = len(self.start_second_layer)
        if size < width + 3:
            raise ValueError(f"size = {size} is not allowed: must be at least the number of neurons + 3 = {width + 3}")
        counts = np.round(np.array(self.times) * size / self.step).astype(np.int64)
        shared = (self.snr**-0.5, self.regularizer, self.step / size, size, counts)
        track = xor_path(self.rng(size, seed), *self._start(), *shared)
        return dict(zip(self.observables, track, strict=True))
