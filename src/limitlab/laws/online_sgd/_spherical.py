"""Spherical online SGD: what its three models share (docs/theory/online_sgd.md).

Setting.  x <- (x - (delta / N) grad L) / |...| with one fresh sample per step, grad the gradient on the unit sphere, E L = phi(m),
          m = <x, v0>.
Limit.    N -> infinity at fixed delta, in the time s = delta * steps / N.
Result.   dm/ds = h(m) = -phi'(m) (1 - m^2) - (delta / 2) m G(m).                                                        (7)

          The second term is what normalising away the noise of the gradient costs: as delta -> 0 the population flow remains.
Status.   Derived for a fixed delta (theorem as delta -> 0: Ben Arous, Gheissari, Jagannath 2021), checked against the exact chain.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.cost import Cost, latest
from limitlab._core.results import CLOSED_FORM
from limitlab.errors import Refused
from limitlab.laws import Draw, Experiment, Law, Values, parameter
from limitlab.laws.online_sgd._information import InformationExponent
from limitlab.laws.online_sgd._recovery import (
    BallisticRecovery,
    DiffusiveRecovery,
    LogarithmicRecovery,
    logarithmic_constant,
    passage_time,
)
from limitlab.numerics.ode import integrate

Array = NDArray[np.float64]


SCAN = 2001  # overlaps at which the sign of the drift is looked at
NEAR = 1e-7  # distance from an end or a start that counts as being there


class SphericalSGD(Law):
    """What does online SGD on the sphere do with a loss whose average depends on one overlap?"""

    status = "derived"
    regime = "N -> infinity at a fixed step, one fresh sample per step, time s = step * samples / N"
    assumptions = (
        "samples are independent and used once",
        "the gradient is projected and the weights are normalised after every step",
    )
    references = ("benarous2021online", "benarous2022high")
    observables = ("overlap",)
    simulation = Experiment("dimension N of the weights", sizes=(200, 400, 800), draws=40)

    step: float = parameter(0.3, note="times the dimension", symbol=r"\delta", above=0, scale="log")
    start_overlap: float = parameter(0.2, above=-1, below=1)
    times: float | tuple[float, ...] = parameter(
        (0.5, 1.0, 2.0, 4.0), note="step times samples over the dimension", symbol="s", kind="coordinate", least=0
    )
    tolerance: float = parameter(1e-11, kind="solver", above=0, most=1e-3, scale="log", finer=0.1)

    # -- what a model says ---------------------------------------------------------------------------------------------

    @abstractmethod
    def population_loss(self, m: ArrayLike) -> Array:
        """phi(m) = E L."""

    @abstractmethod
    def population_slope(self, m: ArrayLike) -> Array:
        """phi'(m)."""

    @abstractmethod
    def gradient_noise(self, m: ArrayLike) -> Array:
        """G(m), the limit of E|grad L|^2 / N."""

    @abstractmethod
    def search_noise(self) -> float:
        """V(0), the variance of <grad L, v0> at m = 0."""

    @abstractmethod
    def information_exponent(self) -> InformationExponent:
        """The first derivative of phi at m = 0 that does not vanish."""

    @abstractmethod
    def model(self) -> Any:
        """What `limitlab.models.online` simulates."""

    def drift_error(self) -> float:
        """Relative error of the averages in the drift."""
        return CLOSED_FORM

    # -- what follows --------------------------------------------------------------------------------------------------

    def drift(self, m: ArrayLike) -> Array:
        """h(m) of (7)."""
        overlap = np.asarray(m, dtype=float)
        shrink = self.step / 2 * overlap * self.gradient_noise(overlap)
        return np.asarray(-self.population_slope(overlap) * (1 - overlap**2) - shrink)

    def descends(self) -> bool:
        """Whether phi' < 0 on all of (0, 1), so that no other minimum stands in the way."""
        return bool(np.all(self.population_slope(np.linspace(0, 1, SCAN)[1:-1]) < 0))

    def critical_step(self) -> float:
        """The step from which m = 0 attracts, for k = 2: -2 phi''(0) / G(0). It is inf for k = 1 and 0 for k >= 3."""
        found = self.information_exponent()
        if found.case != "escapes" or found.order is None:
            return 0.0
        if found.order == 2:
            return 2 * found.push / float(self.gradient_noise(0.0))
        return math.inf if found.order == 1 else 0.0

    def draw_cost(self, size: int) -> Cost:
        """One sample per step; only summary statistics are kept."""
        return Cost(1e5, 1e7 + 500.0 * size * latest(self) / self.step)

    def predicted(self, times: Array) -> Values:
        """Equation (7) integrated."""
        path = integrate(lambda _, m: self.drift(m), [self.start_overlap], times, self.tolerance)
        # an error of the drift, which is of order one, acts over the whole time unless the flow forgets it
        drifted = self.drift_error() * (1 + float(times[-1])) * float(np.abs(self.drift(path.states)).max(initial=0.0))
        return dict(overlap=path.states[:, 0], accuracy={"overlap": float(path.errors[0]) + drifted})

    def measured(self, draw: Draw, times: Array) -> Values:
        """One run of the exact chain of the overlap, from `start_overlap`."""
        from limitlab.models.online import checked_dimension, long_overlap_path

        size = checked_dimension(draw.size)
        counts = self.samples(times, size)
        return dict(
            overlap=long_overlap_path(draw.rng, self.model().compiled(), self.start_overlap, size, self.step, counts)
        )

    def full_experiment(self, size: int, seeds: Sequence[int], threads: int = 1) -> Array:
        """Overlaps (seeds, times) of SGD with full vectors; the same law as that of the chain, and a check of it.

        A seed's row does not depend on the other seeds or on the number of threads.
        """
        from limitlab.models.online import checked_dimension, full_overlap_paths

        rngs = [self.draw(checked_dimension(size), seed).rng for seed in seeds]
        counts = self.samples(np.atleast_1d(self.times), size).tolist()
        return full_overlap_paths(rngs, self.model(), self.start_overlap, size, self.step, counts, threads)

    def samples(self, times: ArrayLike, size: int) -> NDArray[np.int64]:
        """Number of steps at each of the times, in dimension `size`."""
        return np.round(np.asarray(times, dtype=float) * size / self.step).astype(np.int64)

    def stable_overlap(self) -> float:
        """Where the flow from `start_overlap` ends (from just above it, if the start is an unstable point of rest)."""
        here = float(self.drift(self.start_overlap))
        if abs(here) < 1e-9:
            here = float(self.drift(self.start_overlap + 1e-4))
            if here <= 0:
                return self.start_overlap
        side = 1.0 if here > 0 else -1.0
        m = self.start_overlap + (side - self.start_overlap) * np.linspace(0, 1, SCAN)[1:]
        values = self.drift(m) * side
        values[-1] = -float(self.gradient_noise(side)) * self.step / 2
        turned = np.flatnonzero(values[:-1] < 0)
        if turned.size == 0 and values[-1] > -NEAR * float(self.gradient_noise(0.0)) * self.step:
            return side
        from scipy.optimize import brentq

        last = int(turned[0]) if turned.size else SCAN - 2
        low = m[last - 1] if last else self.start_overlap + side * 1e-4
        return float(brentq(lambda x: float(self.drift(x)), low, m[last], xtol=1e-14, rtol=1e-14))

    def recovery(self, level: float) -> BallisticRecovery | LogarithmicRecovery | DiffusiveRecovery:
        """The law of the first step at which the overlap exceeds a level, from a uniform start."""
        if not 0 < level < 1:
            raise Refused(f"level = {level!r} is not allowed: must be between 0 and 1 (an overlap)")
        found = self.information_exponent()
        if found.order is None or found.case != "escapes":
            raise Refused(
                f"no recovery from m > 0: the information exponent is {found.order} ({found.case}); change the student"
            )
        if found.order == 1:
            return BallisticRecovery(passage_time(self.drift, 0.0, level))
        shrink, noise = float(self.gradient_noise(0.0)), self.search_noise()
        if found.order == 2:
            kappa = found.push - self.step * shrink / 2
            if kappa <= 0:
                raise Refused(
                    f"step = {self.step:g} is not allowed here: m = 0 attracts from step {self.critical_step():.6g} on; "
                    "use a smaller step"
                )
            spread = math.sqrt(1 + self.step * noise / (2 * kappa))
            return LogarithmicRecovery(kappa, spread, logarithmic_constant(self.drift, kappa, level))
        return DiffusiveRecovery(found.order, found.push, shrink, noise, level)

    def recovery_time(self, level: float, size: int | None = None) -> float:
        """Mean of the rescaled recovery time, step * samples / N; for k >= 2 it depends on the dimension N = `size`.

        For k >= 3 the step is read as delta0 N^{-(k-2)/2} at this N.
        """
        law = self.recovery(level)
        if isinstance(law, BallisticRecovery):
            return law.time
        if size is None:
            raise Refused("size = None is not allowed here: for information exponents above 1 the time grows with N")
        if isinstance(law, LogarithmicRecovery):
            return law.mean(size)
        scale = size ** ((law.order - 2) / 2)
        return self.step * law.mean(size, self.step * scale) * float(size) ** (law.order - 2)

    def descent_time(self, level: float) -> float:
        """Rescaled time from overlap `level` to 1 - `level`: a descent takes of order N / step samples, whatever k is."""
        if not 0 < level < 0.5:
            raise Refused(f"level = {level!r} is not allowed: must be between 0 and 1/2")
        return passage_time(self.drift, level, 1 - level)
