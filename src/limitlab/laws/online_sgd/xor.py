"""A two-layer ReLU network learns the XOR mixture: which clusters does it capture? (docs/theory/xor.md)

Setting.  Clusters +-mu (label 1) and +-nu (label 0) with noise N(0, I / lambda); f = sum_i v_i relu(<W_i, Y>), logistic loss,
          penalty (alpha / 2)(|v|^2 + |W|^2), online SGD with step c / N; v_i ~ N(0, 1), W_i ~ N(0, I / N).
Limit.    N -> infinity, then lambda -> infinity, then time -> infinity.
Result.   A neuron joins one of four classes, by the sign of v_i(0) and of its overlap with mu or nu: independent and uniform.
          In a class, S = sum |v_i| |overlap_i| tends to S* = log((1 - 4 alpha) / (4 alpha)) if alpha < 1/8, else to 0, and all
          four are captured with probability p_K = 1 - 4 (3/4)^K + 6 (1/2)^K - 4 (1/4)^K.
Status.   Derived; p_K is exact for the limit, and checked by the chain.
"""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.cost import Cost
from limitlab.errors import Refused
from limitlab.laws import CLOSED_FORM, Draw, Experiment, Law, Values, observable, parameter
from limitlab.numerics.ode import states_at

__all__ = ["XorMixture", "class_flow"]

Array = NDArray[np.float64]

CRITICAL = 1 / 8
"""The regulariser from which only the zero network is left."""
VISIBLE = 0.05
"""A margin below this is that of a class that nobody learns."""
CLASSES = ("mu+", "mu-", "nu+", "nu-")


def success_probability(width: ArrayLike) -> Array:
    """p_K: the chance that K neurons cover all four classes.

    >>> float(success_probability(4)) == 3 / 32
    True
    """
    k = np.asarray(width, dtype=float)
    covered = 1 - 4 * 0.75**k + 6 * 0.5**k - 4 * 0.25**k
    return np.where(k < 4, 0.0, covered)


def captured_distribution(width: int) -> Array:
    """P(exactly j of the four classes are captured), j = 0, ..., 4: C(4, j) times the surjections from K to j, over 4^K.

    >>> captured_distribution(4) @ np.arange(5) == 4 * (1 - 0.75**4)
    np.True_
    """
    return np.array([math.comb(4, j) * surjections(width, j) / 4**width for j in range(5)])


def surjections(count: int, onto: int) -> int:
    """Number of maps from `count` things onto `onto` others.

    >>> surjections(4, 4), surjections(5, 4)
    (24, 240)
    """
    return sum((-1) ** j * math.comb(onto, j) * (onto - j) ** count for j in range(onto + 1))


def class_strength(regularizer: float) -> float:
    """S* = log((1 - 4 alpha) / (4 alpha)) below 1/8, 0 from there on; inf without penalty.

    >>> class_strength(0.05) == math.log(4)
    True
    """
    if regularizer == 0:
        return math.inf
    return math.log((1 - 4 * regularizer) / (4 * regularizer)) if regularizer < CRITICAL else 0.0


class Curvature(NamedTuple):
    """Outliers of the second-derivative blocks of a network that captured all four classes, as the noise vanishes: per squared
    second-layer weight in the first layer (two of them), per class in the second (four). None where nothing is captured."""

    H_WW: float | None
    G_WW: float | None
    H_vv: float | None
    G_vv: float | None


def curvature(regularizer: float) -> Curvature:
    """alpha (1 - 4 alpha) and 4 alpha^2, in the second layer times S* (docs/theory/alignment.md, eq. 14).

    >>> [round(value, 9) for value in curvature(0.05)]
    [0.04, 0.01, 0.055451774, 0.013862944]
    """
    if regularizer >= CRITICAL:
        return Curvature(None, None, None, None)
    hessian, gradient = regularizer * (1 - 4 * regularizer), 4 * regularizer**2
    strength = class_strength(regularizer) if regularizer > 0 else 0.0  # alpha log(alpha) vanishes
    return Curvature(hessian, gradient, hessian * strength, gradient * strength)


class Component(NamedTuple):
    """A connected set of fixed points: the classes that hold neurons, who holds them if that is fixed, and its stability."""

    classes: tuple[str, ...]
    owners: tuple[int, ...] | None
    stable: bool


def fixed_components(width: int) -> list[Component]:
    """The catalogue of fixed points (alpha < 1/8), one entry per connected component.

    Neurons of a class share S* = sum v_i^2 and can hand it on to a neuron that is at zero; only when each of the K neurons is alone in
    its class can nothing be exchanged, and every assignment is a component of its own. A component is stable when all four
    classes are captured.

    >>> [len(fixed_components(width)) for width in (1, 2, 3, 4, 5, 6)]
    [5, 17, 35, 39, 16, 16]
    """
    from itertools import combinations, permutations

    found = []
    for count in range(min(4, width) + 1):
        for classes in combinations(CLASSES, count):
            if count < width or count == 0:
                found.append(Component(classes, None, count == 4))
            else:
                found += [Component(classes, owners, count == 4) for owners in permutations(range(width))]
    return found


def class_flow(regularizer: float, start_square: float, times: ArrayLike) -> dict[str, Array]:
    """One class at lambda = infinity, eq. (4): P' = 2 (s/4 - alpha) P, M' = -2 (s/4 + alpha) M, s = sigma(-S), S = (P - M) / 4.

    Parameters
    ----------
    regularizer
        alpha.
    start_square
        P(0) = M(0), the sum of v_i(0)^2 over the class.
    times
        Times, increasing.

    Examples
    --------
    >>> float(class_flow(0.05, 1.0, [20.0])["strength"][0].round(9))
    1.084800194
    """
    from scipy.special import expit

    def rates(_: float, state: Array) -> list[float]:
        pull = float(expit(-(state[0] - state[1]) / 4)) / 4
        return [2 * (pull - regularizer) * state[0], -2 * (pull + regularizer) * state[1]]

    together, apart = states_at(rates, [start_square] * 2, times, tolerance=1e-12).T
    return dict(strength=(together - apart) / 4, together=together, apart=apart)


class XorMixture(Law):
    """How likely is a narrow ReLU network to find all four clusters of the XOR problem, and what does it converge to?

    Examples
    --------
    >>> law = XorMixture(width=4)
    >>> law.success_probability(), law.fixed_components(), round(law.class_strength(), 6)
    (0.09375, 39, 1.386294)
    """

    status = "derived"
    regime = "N -> infinity, then snr -> infinity (in practice snr far above N), then long times"
    assumptions = (
        "one fresh sample per step, step c / N on both layers and on the penalty",
        "independent start v ~ N(0, I), W ~ N(0, I / N)",
    )
    references = ("benarous2022high",)
    page = "xor"
    observables = {
        "success_probability": observable("probability that all four clusters are found", "p_K"),
        "captured_classes": observable("number of clusters found", ""),
        "data_loss": observable("mean logistic loss on the four centres", r"\mathcal{L}"),
    }
    simulation = Experiment("dimension N of the inputs", rate=0.5)
    revision = 2
    # A step that is not 1, a width at which success is neither rare nor sure
    points = (dict(width=12, regularizer=0.05, step=0.7),)

    width: int = parameter(6, symbol="K", least=1)
    regularizer: float = parameter(0.05, least=0, below=0.25)
    snr: float = parameter(math.inf, note="inverse variance of the noise", above=0, scale="log", infinite=True)
    step: float = parameter(1.0, note="times the dimension", symbol=r"c_\delta", above=0)
    networks: int = parameter(20, kind="experiment", least=1)

    def draw_cost(self, size: int) -> Cost:
        """One sample per step, for all networks."""
        return Cost(1e5 + 3.0 * self.width * size * self.networks, 1e3 * self.networks * self.width * size / self.step)

    def caveat(self) -> str:
        """The prediction is that of snr -> infinity, whatever the experiment's."""
        return (
            ""
            if math.isinf(self.snr)
            else f"the prediction is the limit snr -> infinity; snr = {self.snr:g} is only simulated"
        )

    def success_probability(self) -> float:
        """p_K: all four classes are captured."""
        return float(success_probability(self.width)) if self.regularizer < CRITICAL else 0.0

    def captured_distribution(self) -> Array:
        """The law of the number of captured classes."""
        return captured_distribution(self.width)

    def class_strength(self) -> float:
        """S*, the margin at which a captured class ends."""
        return class_strength(self.regularizer)

    def curvature(self) -> Curvature:
        """Outliers of the Hessian and gradient blocks of both layers, where all four classes are captured."""
        return curvature(self.regularizer)

    def fixed_components(self) -> int:
        """Number of connected components of the fixed points; from the critical penalty on, one: the zero network."""
        return len(fixed_components(self.width)) if self.regularizer < CRITICAL else 1

    def long_time(self) -> float:
        """A time after which neurons with small second-layer weights have grown: 8 / (1/8 - alpha)."""
        return 8 / max(CRITICAL - self.regularizer, 1 / 40)

    def predicted(self) -> Values:
        """p_K, the mean number of captured classes, and the mean logistic loss on the four centres."""
        if self.regularizer >= CRITICAL:
            warnings.warn("regulariser above 1/8: only the zero fixed point", stacklevel=2)
            return dict(success_probability=0.0, captured_classes=0.0, data_loss=math.log(2), accuracy=CLOSED_FORM)
        captured = 4 * (1 - 0.75**self.width)
        caught = math.log1p(math.exp(-self.class_strength()))
        loss = (captured * caught + (4 - captured) * math.log(2)) / 4
        success = self.success_probability()
        return dict(success_probability=success, captured_classes=captured, data_loss=loss, accuracy=CLOSED_FORM)

    def measured(self, draw: Draw) -> Values:
        """Networks trained by the exact chain of their statistics, from random starts."""
        margins, _ = self.train(draw)
        captured = (margins > capture_level(margins)).sum(axis=1)
        loss = np.logaddexp(0.0, -margins).mean()
        return dict(success_probability=np.mean(captured == 4), captured_classes=captured.mean(), data_loss=loss)

    def train(self, draw: Draw) -> tuple[Array, Array]:
        """Margins on the four centres (networks, 4) at the end, and the classes that the start's signs announce (same shape)."""
        from limitlab.models.xor_chain import random_start, xor_path

        size, rng = draw.size, draw.rng
        if size < self.width + 3:
            raise Refused(f"size = {size} is not allowed: must be at least width + 3 = {self.width + 3}")
        spread = 0.0 if math.isinf(self.snr) else self.snr**-0.5
        counts = np.array([round(self.long_time() * size / self.step)])
        margins, announced = np.empty((2, self.networks, 4))
        for i in range(self.networks):
            v, a, b, gram = random_start(rng, self.width, size)
            announced[i] = announced_classes(v, a, b)
            xor_path(rng, v, a, b, gram, spread, self.regularizer, self.step / size, size, counts)
            margins[i] = centre_margins(v, a, b)
        return margins, announced

    def lottery_tickets(self, size: int, seed: int) -> tuple[int, int]:
        """Networks that succeeded, and how many of them do again when pruned to four neurons and retrained from their own start.

        Of every class the neuron with the largest final weight is kept, with the values that it had before training; the samples
        are new. Four neurons drawn afresh would succeed with probability 3/32.

        >>> wins, again = XorMixture(width=8, networks=6).lottery_tickets(200, 0)
        >>> 0 <= again <= wins <= 6
        True
        """
        from limitlab.models.xor_chain import random_start, xor_path

        rng, spread = self.draw(size, seed).rng, 0.0 if math.isinf(self.snr) else self.snr**-0.5
        shared = (spread, self.regularizer, self.step / size, size, np.array([round(self.long_time() * size / self.step)]))
        wins = again = 0
        for _ in range(self.networks):
            start = random_start(rng, self.width, size)
            v, a, b, gram = (part.copy() for part in start)
            xor_path(rng, v, a, b, gram, *shared)
            margins = centre_margins(v, a, b)
            if not np.all(margins > capture_level(margins)):
                continue
            wins += 1
            strengths = [np.maximum(s * v, 0) * np.maximum(t * o, 0) for s, o in ((1, a), (-1, b)) for t in (1, -1)]
            kept = [int(np.argmax(strength)) for strength in strengths]
            v, a, b = (part[kept].copy() for part in start[:3])
            xor_path(rng, v, a, b, start[3][np.ix_(kept, kept)].copy(), *shared)
            again += bool(np.all(centre_margins(v, a, b) > capture_level(margins)))
        return wins, again


def announced_classes(v: Array, a: Array, b: Array) -> NDArray[np.bool_]:
    """Which of mu+, mu-, nu+, nu- have a neuron whose signs at the start send it there.

    >>> announced_classes(np.array([1.0, -1.0]), np.array([0.1, 0.2]), np.array([0.3, -0.1])).tolist()
    [True, False, False, True]
    """
    return np.array(
        [np.any((side * v > 0) & (sign * overlap > 0)) for side, overlap in ((1, a), (-1, b)) for sign in (1, -1)]
    )


def capture_level(margins: Array) -> float:
    """A class counts as captured when its margin exceeds a third of the largest one that was trained with it (and is visible at all).

    >>> round(capture_level(np.array([[1.2, 0.0, 0.9, 1.1]])), 6), capture_level(np.zeros((1, 4)))
    (0.4, 0.05)
    """
    return max(float(margins.max(initial=0.0)) / 3, VISIBLE)


def centre_margins(v: Array, a: Array, b: Array) -> Array:
    """Margins y f at the centres mu, -mu, nu, -nu, with y = +1 for the first two and -1 for the others.

    >>> centre_margins(np.array([2.0]), np.array([0.5]), np.array([0.0])).tolist()
    [1.0, 0.0, 0.0, 0.0]
    """
    values = [side * (v @ np.maximum(sign * overlap, 0.0)) for side, overlap in ((1, a), (-1, b)) for sign in (1, -1)]
    return np.array(values) + 0.0
