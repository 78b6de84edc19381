"""Clusters of the XOR mixture that a two-layer ReLU network captures (docs/theory/xor.md).

Setting.  Inputs Y from clusters +-mu (label 1) and +-nu (label 0) with noise N(0, I / lambda). The network f = sum_i v_i relu(<W_i, Y>),
          i <= K, is trained by online SGD with step c / N on the logistic loss with penalty (alpha / 2)(|v|^2 + |W|^2), from
          v_i ~ N(0, 1), W_i ~ N(0, I / N).
Limit.    N -> infinity, then lambda -> infinity, then time -> infinity.
Result.   A neuron joins one of four classes, determined by the signs of v_i(0) and of its overlap with mu or nu. The classes of the
          neurons are independent and uniform. In a class with at least one neuron, S = sum |v_i| |overlap_i| tends to
          S* = log((1 - 4 alpha) / (4 alpha)) if alpha < 1/8, else to 0. A class with S -> S* > 0 is captured. All four classes are
          captured with probability p_K = 1 - 4 (3/4)^K + 6 (1/2)^K - 4 (1/4)^K.
Status.   Derived. p_K is exact in the limit; simulations of the chain agree with it.
"""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.cost import Cost
from limitlab.errors import Refused
from limitlab.laws import CLOSED_FORM, Draw, Experiment, Headline, Law, Mark, Values, observable, parameter
from limitlab.numerics.ode import states_at

__all__ = ["XorMixture", "class_flow"]

Array = NDArray[np.float64]

CRITICAL = 1 / 8
"""Regulariser from which the zero network is the only fixed point."""
VISIBLE = 0.05
"""Margins below this value belong to classes that no network has captured."""
CLASSES = ("mu+", "mu-", "nu+", "nu-")


def success_probability(width: ArrayLike) -> Array:
    """Return p_K, the probability that K neurons cover all four classes.

    >>> float(success_probability(4)) == 3 / 32
    True
    """
    k = np.asarray(width, dtype=float)
    covered = 1 - 4 * 0.75**k + 6 * 0.5**k - 4 * 0.25**k
    return np.where(k < 4, 0.0, covered)


def captured_distribution(width: int) -> Array:
    """Return P(exactly j of the four classes are captured) for j = 0, ..., 4, which is C(4, j) surjections(K, j) / 4^K.

    >>> captured_distribution(4) @ np.arange(5) == 4 * (1 - 0.75**4)
    np.True_
    """
    return np.array([math.comb(4, j) * surjections(width, j) / 4**width for j in range(5)])


def surjections(count: int, onto: int) -> int:
    """Return the number of maps of a set of `count` elements onto a set of `onto` elements.

    >>> surjections(4, 4), surjections(5, 4)
    (24, 240)
    """
    return sum((-1) ** j * math.comb(onto, j) * (onto - j) ** count for j in range(onto + 1))


def class_strength(regularizer: float) -> float:
    """Return S* = log((1 - 4 alpha) / (4 alpha)) for alpha < 1/8, 0 for alpha >= 1/8, and inf for alpha = 0.

    >>> class_strength(0.05) == math.log(4)
    True
    """
    if regularizer == 0:
        return math.inf
    return math.log((1 - 4 * regularizer) / (4 * regularizer)) if regularizer < CRITICAL else 0.0


class Curvature(NamedTuple):
    """Outliers of blocks of the Hessian (H) and of the gradient matrix (G), for a network that captured all four classes.

    The values hold in the limit of vanishing noise (docs/theory/alignment.md, eqs. 14 and 15). The block of a first-layer neuron with the
    second-layer weight v has two outliers, v^2 H_WW for the Hessian and v^2 G_WW for the gradient matrix. The block of the second layer
    has four outliers, one per class, which are H_vv or G_vv. The values are None if no class is captured.
    """

    H_WW: float | None
    G_WW: float | None
    H_vv: float | None
    G_vv: float | None


def curvature(regularizer: float) -> Curvature:
    """Return alpha (1 - 4 alpha) and 4 alpha^2, multiplied by S* in the second layer (docs/theory/alignment.md, eq. 14).

    >>> [round(value, 9) for value in curvature(0.05)]
    [0.04, 0.01, 0.055451774, 0.013862944]
    """
    if regularizer >= CRITICAL:
        return Curvature(None, None, None, None)
    hessian, gradient = regularizer * (1 - 4 * regularizer), 4 * regularizer**2
    strength = class_strength(regularizer) if regularizer > 0 else 0.0  # for alpha = 0: alpha log(alpha) tends to 0
    return Curvature(hessian, gradient, hessian * strength, gradient * strength)


class Component(NamedTuple):
    """A connected set of fixed points.

    `classes` are the classes with active neurons. `owners` are their neurons, if these are the same at every point of the set.
    """

    classes: tuple[str, ...]
    owners: tuple[int, ...] | None
    stable: bool


def fixed_components(width: int) -> list[Component]:
    """Return the fixed points for alpha < 1/8, one entry per connected component.

    Along a component the neurons of a class exchange parts of S* = sum v_i^2 with each other and with neurons at zero. If each of the K
    neurons is the only one of its class, no exchange is possible, and every assignment of neurons to classes is a separate component.
    A component is stable if all four classes are captured.

    >>> [len(fixed_components(width)) for width in (1, 2, 3, 4, 5, 6)]
    [5, 17, 35, 39, 16, 16]
    """
    from itertools import combinations, permutations

    components = []
    for count in range(min(4, width) + 1):
        for classes in combinations(CLASSES, count):
            if count < width or count == 0:
                components.append(Component(classes, None, count == 4))
            else:
                components += [Component(classes, owners, count == 4) for owners in permutations(range(width))]
    return components


def class_flow(regularizer: float, start_square: float, times: ArrayLike) -> dict[str, Array]:
    """Return the strength of one class over time at lambda = infinity, eq. (4).

    The equations are P' = 2 (s/4 - alpha) P, M' = -2 (s/4 + alpha) M with s = sigma(-S), S = (P - M) / 4.

    Parameters
    ----------
    regularizer
        Penalty alpha.
    start_square
        Sum of v_i(0)^2 over the class, which is P(0) = M(0).
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
    """How likely is a narrow ReLU network to find all four clusters of the XOR problem, and to which network does it converge?

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
        "success_probability": observable("probability that all four clusters are found", "p_K", least=0, most=1),
        "captured_classes": observable("number of clusters found", "", least=0, most=4),
        "data_loss": observable("mean logistic loss on the four centres", r"\mathcal{L}", least=0),
    }
    simulation = Experiment("dimension N of the inputs", rate=0.5)
    revision = 2
    # A step that is not 1, and a width at which the probability of success is near neither 0 nor 1
    points = (dict(width=12, regularizer=0.05, step=0.7),)
    headline = Headline(
        "More neurons, more lottery tickets",
        x="width",
        over=(1.0, 40.0, 40),
        whole=True,
        show=("success_probability", "captured_classes"),
        panels=True,
        at=dict(networks=20),
        size=50,
        draws=3,
        places=(4.0, 6.0, 8.0, 12.0, 16.0, 24.0),
        sliders=("snr", "regularizer"),
        marks=(Mark("x", 4.0, "one neuron per cluster"),),
    )

    width: int = parameter(6, symbol="K", least=1)
    regularizer: float = parameter(0.05, least=0, below=0.25)
    snr: float = parameter(math.inf, note="inverse variance of the noise", above=0, scale="log", infinite=True)
    step: float = parameter(1.0, note="times the dimension", symbol=r"c_\delta", above=0)
    networks: int = parameter(20, kind="experiment", least=1)

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of one sample per step for all networks."""
        return Cost(1e5 + 3.0 * self.width * size * self.networks, 1e3 * self.networks * self.width * size / self.step)

    def caveat(self) -> str:
        """Return a warning if snr is finite, because the prediction is always the limit snr -> infinity."""
        return (
            ""
            if math.isinf(self.snr)
            else f"the prediction is the limit snr -> infinity; snr = {self.snr:g} is only simulated"
        )

    def success_probability(self) -> float:
        """Return p_K, the probability that K neurons capture all four clusters."""
        return float(success_probability(self.width)) if self.regularizer < CRITICAL else 0.0

    def captured_distribution(self) -> Array:
        """Return the probabilities of 0, ..., 4 captured classes."""
        return captured_distribution(self.width)

    def class_strength(self) -> float:
        """Return S*, the absolute value of the network's output on the centre of a captured cluster after training."""
        return class_strength(self.regularizer)

    def curvature(self) -> Curvature:
        """Return the outliers of the Hessian and gradient blocks of both layers if all four classes are captured."""
        return curvature(self.regularizer)

    def fixed_components(self) -> int:
        """Return the number of connected components of the set of fixed points.

        It is 1 (the zero network) if the penalty is at least 1/8."""
        return len(fixed_components(self.width)) if self.regularizer < CRITICAL else 1

    def long_time(self) -> float:
        """Return 8 / (1/8 - regularizer), a time after which neurons with small second-layer weights have grown."""
        return 8 / max(CRITICAL - self.regularizer, 1 / 40)

    def predicted(self) -> Values:
        """Return the success probability, the mean number of captured classes, and the mean logistic loss on the four centres."""
        if self.regularizer >= CRITICAL:
            warnings.warn(
                "regularizer is at least 1/8: the zero network is the only fixed point",
                stacklevel=2,
            )
            return dict(success_probability=0.0, captured_classes=0.0, data_loss=math.log(2), accuracy=CLOSED_FORM)
        captured = 4 * (1 - 0.75**self.width)
        loss_of_captured = math.log1p(math.exp(-self.class_strength()))
        loss = (captured * loss_of_captured + (4 - captured) * math.log(2)) / 4
        success = self.success_probability()
        return dict(success_probability=success, captured_classes=captured, data_loss=loss, accuracy=CLOSED_FORM)

    def measured(self, draw: Draw) -> Values:
        """Train networks from random starts by the exact chain of their statistics."""
        margins, _ = self.train(draw)
        captured = (margins > capture_level(margins)).sum(axis=1)
        loss = np.logaddexp(0.0, -margins).mean()
        return dict(success_probability=np.mean(captured == 4), captured_classes=captured.mean(), data_loss=loss)

    def train(self, draw: Draw) -> tuple[Array, Array]:
        """Return the final margins on the four centres (networks, 4), and the classes predicted by the signs at the start."""
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
        """Return the number of networks that succeeded, and how many of these succeed again after pruning and retraining.

        Pruning leaves in every class only the neuron with the largest final weight. These four neurons are trained again from the values
        that they had before training, on new samples. Four new random neurons would succeed with probability 3/32.

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
            strongest = [int(np.argmax(strength)) for strength in strengths]
            v, a, b = (part[strongest].copy() for part in start[:3])
            xor_path(rng, v, a, b, start[3][np.ix_(strongest, strongest)].copy(), *shared)
            again += bool(np.all(centre_margins(v, a, b) > capture_level(margins)))
        return wins, again


def announced_classes(v: Array, a: Array, b: Array) -> NDArray[np.bool_]:
    """Return for each of mu+, mu-, nu+, nu- whether the signs of some neuron at the start assign it to this class.

    >>> announced_classes(np.array([1.0, -1.0]), np.array([0.1, 0.2]), np.array([0.3, -0.1])).tolist()
    [True, False, False, True]
    """
    return np.array(
        [np.any((side * v > 0) & (sign * overlap > 0)) for side, overlap in ((1, a), (-1, b)) for sign in (1, -1)]
    )


def capture_level(margins: Array) -> float:
    """Return the margin above which a class counts as captured, a third of the largest margin and at least 0.05.

    >>> round(capture_level(np.array([[1.2, 0.0, 0.9, 1.1]])), 6), capture_level(np.zeros((1, 4)))
    (0.4, 0.05)
    """
    return max(float(margins.max(initial=0.0)) / 3, VISIBLE)


def centre_margins(v: Array, a: Array, b: Array) -> Array:
    """Return the margins y f at the centres mu, -mu (y = +1) and nu, -nu (y = -1).

    >>> centre_margins(np.array([2.0]), np.array([0.5]), np.array([0.0])).tolist()
    [1.0, 0.0, 0.0, 0.0]
    """
    values = [side * (v @ np.maximum(sign * overlap, 0.0)) for side, overlap in ((1, a), (-1, b)) for sign in (1, -1)]
    return np.array(values) + 0.0
