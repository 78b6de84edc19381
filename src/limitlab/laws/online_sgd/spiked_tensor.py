"""Online SGD for a spiked matrix or tensor at the critical step size (docs/theory/spiked_tensor.md).

Setting.  Y = lambda v^(k) + W with independent standard Gaussian entries, |v| = 1, loss |Y - x^(k)|^2, x <- x - (c/N) grad L.
Limit.    N -> infinity at fixed c (`step`), in the time t = (c/N) * steps; m = <x, v>, q = |x|^2 - m^2, R^2 = m^2 + q.
          For steps much shorter than 1/N the limit is (1) with c = 0, the flow of the population loss. The gap between the flow and an
          experiment is then of order step times dimension.
Result.   dm/dt = 2k m (lambda m^{k-2} - R^{2k-2}),     dq/dt = -4k R^{2k-2} (q - c).                                     (1)
          Close to m = 0, u = sqrt(N) m: du = 2k u (lambda 1{k=2} - q^{k-1}) dt + 2 sqrt(k c q^{k-1}) dB.                    (2)
Status.   Theorem (Ben Arous, Gheissari, Jagannath 2022), with the corrections listed on the page.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.cost import Cost, latest
from limitlab.errors import NotComputable
from limitlab.laws import Draw, Experiment, Headline, Law, Values, observable, parameter, shared
from limitlab.laws.online_sgd.growth import SIZES, GrowthExponents, Point, fitted
from limitlab.numerics.ode import Trajectory, integrate

__all__ = ["SpikedTensor", "SpikedTensorDiffusion"]

Array = NDArray[np.float64]


class FixedPoint(NamedTuple):
    """A fixed point of (1), with the two eigenvalues of the linearised flow and its stability."""

    overlap: float
    residual: float
    overlap_eigenvalue: float
    residual_eigenvalue: float
    kind: Literal["stable", "unstable", "critical"]


def velocity(order: int, snr: float, step: float, m: ArrayLike, q: ArrayLike) -> tuple[Array, Array]:
    """Return the right sides of (1).

    >>> [float(part) for part in velocity(2, 2.0, 1.0, 1.0, 1.0)]  # a fixed point
    [0.0, -0.0]
    """
    m, q = np.asarray(m, dtype=float), np.asarray(q, dtype=float)
    power = (m**2 + q) ** (order - 1)
    return np.asarray(2 * order * (snr * m ** (order - 1) - m * power)), np.asarray(-4 * order * power * (q - step))


def critical_snr(order: int, step: float) -> float:
    """Return the least signal strength with fixed points away from the equator m = 0, eq. (5).

    >>> critical_snr(2, 1.0), round(critical_snr(3, 1.0), 7), round(critical_snr(4, 1.0), 7)
    (1.0, 3.0792014, 6.75)
    """
    k = order
    if k == 2:
        return step
    return step ** (k / 2) * (2 * (k - 1) / k) ** (k - 1) * (k / (k - 2)) ** ((k - 2) / 2)


def positive_roots(order: int, snr: float, step: float) -> list[float]:
    """Return the overlaps m > 0 of fixed points with q = step, the roots of lambda m^{k-2} = (m^2 + c)^{k-1}.

    >>> [round(root, 9) for root in positive_roots(4, 8.0, 1.0)]
    [0.485868272, 1.0]
    """
    if order == 2:
        return [math.sqrt(snr - step)] if snr > step else []
    if step == 0:  # the lower root is at the equator
        return [snr ** (1 / order)] if snr > 0 else []
    top = math.sqrt((order - 2) * step / order)  # the two roots coincide here at the critical strength
    threshold = critical_snr(order, step)
    if abs(snr - threshold) <= 1e-14 * threshold:
        return [top]
    if snr < threshold:
        return []
    from scipy.optimize import brentq

    def balance(m: float) -> float:
        return math.log(snr) + (order - 2) * math.log(m) - (order - 1) * math.log(m * m + step)

    low, high = top, top
    while balance(low) > 0:
        low /= 2
    while balance(high) > 0:
        high *= 2
    return [float(brentq(balance, *ends, xtol=1e-15, rtol=1e-14)) for ends in ((low, top), (top, high))]


def fixed_point(order: int, snr: float, step: float, m: float) -> FixedPoint:
    """Return the fixed point (m, step) with its eigenvalues, eq. (4)."""
    square, k = m * m + step, order
    if m == 0:
        along = 4 * (snr - step) if k == 2 else -2 * k * step ** (k - 1)
    elif k == 2:
        along = -8 * m * m
    else:
        along = 2 * k * square ** (k - 2) * ((k - 2) * step - k * m * m)
    across = -4 * k * square ** (k - 1)
    if abs(along) <= 1e-12 * abs(across):
        along = 0.0
    # at q = step the linearised rate of q does not depend on m, so that these two numbers are the eigenvalues
    kind: Literal["stable", "unstable", "critical"] = "stable" if along < 0 else "unstable" if along > 0 else "critical"
    return FixedPoint(m, step, along, across, kind)


def named(path: Trajectory, *names: str) -> dict[str, Any]:
    """Return the components of a trajectory by name, with their errors."""
    return {**dict(zip(names, path.states.T, strict=True)), "accuracy": dict(zip(names, path.errors, strict=True))}


class _Spiked(Law):
    """Common base class of the two laws of the spiked tensor."""

    status = "theorem"
    assumptions = ("a fresh tensor of independent Gaussian entries at every step", "|v| = 1")
    references = ("benarous2022high",)
    simulation = Experiment("dimension N")

    order: int = parameter(2, "order of the tensor", note="2 for a matrix", symbol="k", least=2, most=12)
    snr: float = parameter(2.0, note="strength of the signal", least=0)
    step: float = parameter(1.0, note="times the dimension", symbol=r"c_\delta", above=0)
    times: float | tuple[float, ...] = parameter(
        (0.1, 0.3, 0.6), note="step times samples over the dimension", kind="coordinate", least=0
    )
    tolerance: float = parameter(1e-12, kind="solver", above=0, most=1e-3, scale="log", finer=0.1)

    def step_at(self, size: int) -> float:
        """Return step times dimension for an experiment. For `step` = 0 this product is 1/N, which is also the order of the gap."""
        return self.step or 1 / size

    def samples(self, times: Array, size: int) -> NDArray[np.int64]:
        """Return the number of steps at each of the times, in dimension `size`."""
        return np.round(times * size / self.step_at(size)).astype(np.int64)


class SpikedTensor(_Spiked):
    """Does online SGD at the critical step size find the direction hidden in noisy matrices or tensors?

    Examples
    --------
    >>> law = SpikedTensor(order=2, snr=2.0, step=1.0, start_overlap=0.1, start_residual=1.0, times=(0.5, 1.0))
    >>> law.theory().overlap.values.round(6).tolist()
    [0.596205, 0.983797]
    >>> [(point.overlap, point.kind) for point in law.fixed_points()]
    [(0.0, 'unstable'), (-1.0, 'stable'), (1.0, 'stable')]
    """

    regime = "N -> infinity with step c/N at fixed c, time (c/N) * steps, overlap of order 1 at the start"
    page = "spiked_tensor"
    observables = ("overlap", "residual")
    simulation = replace(_Spiked.simulation, sizes=(400, 800, 1600), draws=40)
    # Orders 2 and 3, a step that is not 1, and a residual that differs from its fixed point
    points = (
        dict(order=3, snr=1.6, step=0.6, start_overlap=0.7, start_residual=0.8),
        dict(order=2, snr=2.0, step=0.7, start_overlap=0.5, start_residual=1.2),
    )
    headline = Headline(
        "Below a critical strength SGD loses the signal",
        x="times",
        over=(0.0, 3.0, 101),
        show=("overlap",),
        curves=("snr", (0.5, 1.5, 3)),
        size=800,
        draws=3,
        places=(0.25, 0.5, 1.0, 1.5, 2.0, 3.0),
        sliders=("step", "order"),
    )

    step: float = parameter(
        1.0,
        note="times the dimension; 0 means steps far below 1/N, the population flow (experiments use N^-2)",
        symbol=r"c_\delta",
        least=0,
    )
    start_overlap: float = parameter(0.5, symbol="m(0)")
    start_residual: float = parameter(1.0, least=0)

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of one sample per step. Only summary statistics are stored."""
        return Cost(1e5, 1e7 + 500.0 * size * latest(self) / self.step_at(size) * getattr(self, "replicas", 1))

    def predicted(self, times: Array) -> Values:
        """Integrate equation (1)."""
        start = [self.start_overlap, self.start_residual]
        path = integrate(lambda _, x: np.array(velocity(self.order, self.snr, self.step, *x)), start, times, self.tolerance)
        return named(path, "overlap", "residual")

    def measured(self, draw: Draw, times: Array) -> Values:
        """Run the exact chain of the overlap and of the squared length of the orthogonal part once."""
        track = self.run(draw, times)
        if not np.all(np.isfinite(track)):
            raise NotComputable(
                f"the run of size {draw.size} and seed {draw.seed} diverges: use a larger size or a smaller step"
            )
        return dict(overlap=track[:, 0], residual=track[:, 1])

    def run(self, draw: Draw, times: Array) -> Array:
        """Return rows (overlap, squared length of the orthogonal part) of one run at the times, with inf after the run diverges.

        Runs of orders above 2 diverge at small sizes if the step is long.
        """
        from limitlab.laws.online_sgd._spiked_chain import spiked_path
        from limitlab.models.online import checked_dimension

        size, start = checked_dimension(draw.size), (self.start_overlap, self.start_residual)
        counts = self.samples(times, size)
        return np.asarray(spiked_path(draw.rng, self.order, self.snr, self.step_at(size), size, *start, counts))

    def critical_snr(self) -> float:
        """Return the signal strength from which a stable fixed point with a positive overlap exists.

        For matrices (order 2) the fixed point with overlap 0 is unstable above the same value."""
        return critical_snr(self.order, self.step)

    def growth_exponents(
        self, sizes: Sequence[int] = SIZES, samples: int = 4000, overlaps: Sequence[float] = (0.0, 0.5, 0.9), seed: int = 0
    ) -> GrowthExponents:
        """Return the growth exponents of the noise's moments in the dimension, which determine the steps that have this limit.

        The moments are those for the statistics m and q, measured on draws of the noise (3) at unit weights with the given overlaps.

        >>> growth = SpikedTensor(order=2).growth_exponents(sizes=(50, 100, 200), samples=1000)
        >>> abs(growth.largest_step_exponent + 1) < 0.1, growth.localizable(-1.0), growth.localizable(-0.8)
        (True, True, False)
        """
        rng = np.random.default_rng(seed)

        def at(size: int) -> Iterator[Point]:
            signal = np.eye(size)[0]
            for m in overlaps:
                x = m * signal + math.sqrt(1 - m * m) * np.eye(size)[1]
                isotropic, radial = rng.standard_normal((samples, size)), rng.standard_normal((samples, 1))
                k = self.order
                noise = 2 * math.sqrt(k) * isotropic + 2 * math.sqrt(k * (k - 1)) * radial * x  # eq. (3) at R = 1
                across = np.diag(2 * (1 - signal))
                yield Point(noise, np.stack([signal, across @ x]), np.stack([np.zeros_like(across), across]))

        return fitted(at, sizes)

    def fixed_points(self) -> list[FixedPoint]:
        """Return the fixed points with q = step. The first has m = 0. For even orders the others occur with both signs of m.

        The origin is a further fixed point. It is always unstable, because near it q grows like 4k q^{k-1} c.

        >>> [round(p.overlap, 6) for p in SpikedTensor(order=3, snr=6.0).fixed_points()]
        [0.0, 0.177311, 1.364163]
        """
        roots = positive_roots(self.order, self.snr, self.step)
        signs = (-1.0, 1.0) if self.order % 2 == 0 else (1.0,)
        return [
            fixed_point(self.order, self.snr, self.step, m)
            for m in (0.0, *(sign * root for root in roots for sign in signs))
        ]


class SpikedTensorDiffusion(_Spiked):
    """How does the overlap fluctuate before SGD finds the signal, and above which signal strength is the start unstable?

    Examples
    --------
    >>> law = SpikedTensorDiffusion(snr=0.5, times=(0.4,))
    >>> law.theory().overlap_variance.values.round(6).tolist()
    [1.798103]
    >>> law.stationary_variance()
    2.0
    """

    regime = "N -> infinity with step c/N at fixed c, overlap of order N^(-1/2)"
    page = "spiked_tensor"
    observables = {
        "overlap_variance": observable("variance of the overlap times the dimension", r"N\,\mathbb{E}\,m^2", least=0),
        **shared("residual"),
    }
    simulation = replace(_Spiked.simulation, sizes=(200, 400, 800), draws=80)
    # A step that is not 1 and a start away from the fixed point; order 2, and order 3, whose drift has no signal term
    points = (
        dict(order=2, snr=0.8, step=0.6, start_variance=1.4, start_residual=0.8),
        dict(order=3, snr=1.2, step=0.7, start_variance=1.2, start_residual=0.9),
    )
    headline = Headline(
        "Above the critical strength fluctuations explode",
        x="times",
        over=(0.0, 0.6, 81),
        y_scale="log",
        show=("overlap_variance",),
        curves=("snr", (0.5, 1, 1.5)),
        size=1600,
        draws=6,
        places=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6),
        sliders=("step", "start_variance"),
    )

    snr: float = parameter(0.8, note="strength of the signal", least=0)
    times: float | tuple[float, ...] = parameter(
        (0.1, 0.2, 0.4), note="step times samples over the dimension", kind="coordinate", least=0
    )
    start_variance: float = parameter(1.0, "variance of sqrt(N) times the overlap at the start", symbol="s_0^2", least=0)
    start_residual: float = parameter(1.0, least=0)
    replicas: int = parameter(100, kind="experiment", least=1)

    def predicted(self, times: Array) -> Values:
        """Integrate the equation of the second moment, which follows from (2) of docs/theory/spiked_tensor.md."""
        k, signal = self.order, self.snr if self.order == 2 else 0.0

        def rates(_: float, state: Array) -> list[float]:
            power = state[1] ** (k - 1)
            return [4 * k * ((signal - power) * state[0] + self.step * power), -4 * k * power * (state[1] - self.step)]

        path = integrate(rates, [self.start_variance, self.start_residual], times, self.tolerance)
        return named(path, "overlap_variance", "residual")

    def measured(self, draw: Draw, times: Array) -> Values:
        """Measure the second moment of sqrt(N) times the overlap over `replicas` runs of the exact chain."""
        track = self.runs(draw, times)
        if not np.all(np.isfinite(track)):
            raise NotComputable(
                f"a run of size {draw.size} and seed {draw.seed} diverges: use a larger size or a smaller step"
            )
        square = draw.size * track[..., 0] ** 2
        return dict(overlap_variance=square.mean(axis=0), residual=track[..., 1].mean(axis=0))

    def runs(self, draw: Draw, times: Array) -> Array:
        """Return an array (replicas, times, 2) of overlap and squared orthogonal length for independent runs from Gaussian starts."""
        from limitlab.laws.online_sgd._spiked_chain import spiked_path
        from limitlab.models.online import checked_dimension

        size, rng = checked_dimension(draw.size), draw.rng
        starts, counts = (
            rng.standard_normal(self.replicas) * math.sqrt(self.start_variance / size),
            self.samples(times, size),
        )
        return np.stack(
            [spiked_path(rng, self.order, self.snr, self.step, size, float(m), self.start_residual, counts) for m in starts]
        )

    def stationary_variance(self) -> float:
        """Return the variance of sqrt(N) times the overlap after a long time.

        For a matrix it is c^2 / (c - lambda) below the transition lambda = c, and inf from the transition on.
        """
        if self.order > 2:
            return self.step
        return self.step**2 / (self.step - self.snr) if self.snr < self.step else math.inf
