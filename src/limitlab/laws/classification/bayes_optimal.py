"""The least error of any method for a generalised linear model, and the error of message passing.

Setting.  x ~ N(0, I_p), coefficients beta = x0/sqrt(p) with independent entries of x0 from a prior of variance 1; n labels that depend on
          z = <beta, x> through a channel. The learner uses the true prior and channel.
Limit.    n, p -> infinity with p/n fixed (`ratio`); alpha = n/p.
Result.   The squared overlap q of the posterior mean with the truth solves, with V = 1 - q, omega = sqrt(q) v, v standard Gaussian,

              q_hat = alpha I(q),   I = E (d log Z(y | omega, V)/d omega)^2,   q = Q(q_hat)                               (1)

          (docs/theory/bayes_optimal.md has I and Q for every channel and prior). If there are several solutions, the Bayes solution has the
          largest free entropy, F'(q) = (alpha I(q) - Q^-1(q))/2. Message passing from an uninformative start converges to the smallest
          stable solution.
Status.   Theorem for the Bayes error (Barbier et al. 2019) and for the error of message passing (Javanmard and Montanari 2013).
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from limitlab.errors import Refused
from limitlab.laws import Cost, Draw, Experiment, Headline, Law, Values, observable, parameter, shared
from limitlab.laws.classification._channels import (
    CLASSES,
    LEAST_VARIANCE,
    Channel,
    ChannelName,
    Prior,
    PriorName,
    errors,
    information,
    precision_of,
    recovered,
)
from limitlab.laws.classification._own_channels import OwnChannel, OwnPrior
from limitlab.models.channels import CoefficientPrior, OutputChannel
from limitlab.models.data import gaussian_lattice

__all__ = ["BayesOptimal"]

Array = NDArray[np.float64]


SMALLEST, CLOSEST = 1e-6, 1e-7  # smallest overlap and smallest gap to 1 in the search for fixed points
SCAN = 1 / (1 + np.exp(-np.linspace(math.log(SMALLEST), -math.log(CLOSEST), 120)))
BEYOND = 60  # number of iterations of (1) that give a solution outside the search interval
LAST = 1e-12  # gap to 0 and 1 at which integrals end
TEST_INPUTS = 4096


class FixedPoint(NamedTuple):
    """A solution of (1), with its overlap and whether it is stable under message passing."""

    overlap: float
    stable: bool


def _of_message_passing(name: str, of: str) -> Any:
    return observable(f"{of}, message passing", name + r"^{\mathrm{MP}}")


class BayesOptimal(Law):
    """How far is my method from the best that any method could do with these data?

    Examples
    --------
    >>> law = BayesOptimal(ratio=0.5, channel="sign")
    >>> result = law.theory()
    >>> round(float(result.overlap), 9), round(float(result.classification_error), 9), result.phase
    (0.728298174, 0.174534186, 'easy')
    """

    status = "theorem"
    regime = "n, p -> infinity with p/n fixed"
    assumptions = (
        "standard Gaussian inputs, independent coefficients of a known prior, a known channel",
        "a coefficient vector of norm 1 (divide the noise, or multiply the link's strength, by another norm)",
        "no fast method has a smaller error than message passing (a conjecture, false for |z| without noise)",
    )
    references = ("barbier2019optimal", "rangan2011generalized", "javanmard2013state")
    page = "bayes_optimal"
    observables = {
        "overlap_gamp": _of_message_passing("q", "squared overlap with the truth"),
        "precision_gamp": _of_message_passing(r"\hat q", "precision of the effective observation of a coefficient"),
        "estimation_error_gamp": _of_message_passing("1-q", "mean squared error of the coefficients"),
        "classification_error_gamp": _of_message_passing(r"P_{\mathrm{err}}", "probability of a wrong label"),
        "test_error_gamp": _of_message_passing(r"E_{\mathrm{test}}", "mean squared error on a new noisy label"),
        "excess_risk_gamp": _of_message_passing("R", "mean squared error on a new noiseless label"),
        # no known algorithm has the error of the best method at all parameters, so no experiment measures this error
        "overlap": observable("overlap", "q", compared=False),
        "precision": observable(
            "precision of the effective observation of a coefficient", r"\hat q", compared=False, least=0
        ),
        "estimation_error": observable("mean squared error of the coefficients", "1-q", compared=False, least=0),
        **shared("classification_error", "test_error", "excess_risk", compared=False),
    }
    simulation = Experiment("number of coefficients p", sizes=(150, 300, 600), draws=40)
    # Two classes with noisy links, one of them with +-1 coefficients, and real-valued labels with a sparse prior
    points = (
        dict(ratio=0.6, channel="probit", link_strength=2.0),
        dict(ratio=0.8, channel="flip", link_strength=0.1, prior="rademacher"),
        dict(ratio=1.2, channel="gaussian", noise=0.4, prior="sparse", density=0.3),
    )
    headline = Headline(
        "Binary weights are found all at once",
        x="ratio",
        over=(0.1, 10.0, 41),
        scale="log",
        show=("classification_error_gamp",),
        curves=("prior", ("gaussian", "rademacher", "sparse")),
        at=dict(density=0.2),
        size=600,
        draws=6,
        places=(0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0),
        sliders=("channel", "density"),
    )

    ratio: float = parameter(0.5, symbol="p/n", above=0, scale="log", count="size / value")
    channel: ChannelName | OutputChannel = parameter("sign", note="see docs/theory/bayes_optimal.md; or an OutputChannel")
    link_strength: float = parameter(1.0, note="slope of probit and logit; probability of a wrong label for flip", least=0)
    noise: float = parameter(0.0, note="gaussian, abs and relu", least=0)
    prior: PriorName | CoefficientPrior = parameter(
        "gaussian", "prior of the coefficients", note="gaussian, rademacher or sparse; or a CoefficientPrior"
    )
    density: float = parameter(1.0, note="share of coefficients that are not 0 (sparse)", symbol="e", above=0, most=1)

    @model_validator(mode="after")
    def _channel_has_its_numbers(self) -> Self:
        for name, unused in (("channel", ("link_strength", "noise")), ("prior", ("density",))):
            if not isinstance(getattr(self, name), str):
                for other in unused:
                    if getattr(self, other) != type(self).parameters()[other].default:
                        raise Refused(
                            f"{other} = {getattr(self, other):g} is not allowed together with {name} = {getattr(self, name)!r}, which has "
                            "its own numbers; leave it out"
                        )
        if self.channel == "flip" and self.link_strength > 0.5:
            raise Refused(
                f"link_strength = {self.link_strength:g} is not allowed with channel = 'flip': must be at most 0.5"
            )
        if self.channel in ("probit", "logit") and self.link_strength == 0:
            raise Refused(f"link_strength = 0 is not allowed with channel = {self.channel!r}: must be above 0")
        if self.channel == "gaussian" and self.noise == 0:
            raise Refused("noise = 0 is not allowed with channel = 'gaussian': must be above 0")
        return self

    # -- the limit --------------------------------------------------------------------------------------------------------

    def _parts(self) -> tuple[Channel | OwnChannel, Prior | OwnPrior]:
        prior = Prior(self.prior, self.density) if isinstance(self.prior, str) else OwnPrior(self.prior)
        if isinstance(self.channel, str):
            noise = 0.0 if self.channel in CLASSES else self.noise
            return Channel(self.channel, self.link_strength, noise), prior
        return OwnChannel(self.channel), prior

    @property
    def blind(self) -> bool:
        """Whether an overlap of 0 is a solution of (1), because labels do not depend on the sign of the score."""
        channel, prior = self._parts()
        if isinstance(prior, OwnPrior) and abs(prior.mean) > 1e-12:
            return False
        if isinstance(channel, OwnChannel):
            return channel.blind
        return self.channel == "abs" or (self.channel == "flip" and self.link_strength == 0.5)

    @property
    def perfect(self) -> bool:
        """Whether an overlap of 1 is a solution of (1)."""
        _, prior = self._parts()
        discrete = prior.discrete if isinstance(prior, OwnPrior) else prior.name == "rademacher"
        return self.sharp and (discrete or self.channel in ("abs", "relu"))

    @property
    def discrete(self) -> bool:
        """Whether the coefficients have finitely many values."""
        _, prior = self._parts()
        return prior.discrete if isinstance(prior, OwnPrior) else prior.name == "rademacher"

    @property
    def sharp(self) -> bool:
        """Whether the information I(q) of the labels about the score grows without bound as the overlap q tends to 1.

        This holds for labels that jump at a score and for real-valued labels without noise.
        """
        channel, _ = self._parts()
        if isinstance(channel, OwnChannel):
            return channel.sharp
        flipped = self.channel == "flip" and self.link_strength < 0.5
        return self.channel == "sign" or flipped or (self.channel in ("abs", "relu") and self.noise == 0)

    def step(self, q: float, order: int = 24) -> float:
        """Return the overlap after one iteration of equation (1) of docs/theory/bayes_optimal.md."""
        channel, prior = self._parts()
        return recovered(prior, information(channel, q, order) / self.ratio)

    def fixed_points(self) -> list[FixedPoint]:
        """Return all solutions of (1) with their stability, in increasing order, including 0 and 1 if they are solutions."""
        from scipy.optimize import brentq

        def move(q: float) -> float:
            return self.step(q) - q

        moves = np.array([move(q) for q in SCAN])
        blind = self.blind
        solutions = [FixedPoint(0.0, bool(moves[0] < 0))] if blind else []
        if moves[0] < 0 and not blind:  # a solution below the scan, where the map is nearly constant
            solutions.append(FixedPoint(self._settled(float(SCAN[0])), True))
        for i in np.flatnonzero(np.sign(moves[:-1]) != np.sign(moves[1:])):
            root = float(brentq(move, SCAN[i], SCAN[i + 1], xtol=1e-15, rtol=1e-14))
            solutions.append(FixedPoint(root, bool(moves[i] > 0)))
        if self.perfect:
            if moves[-1] > 0 or self.discrete:
                solutions.append(FixedPoint(1.0, bool(moves[-1] > 0)))
        elif moves[-1] > 0:
            solutions.append(FixedPoint(self._settled(float(SCAN[-1])), True))
        return solutions

    def _settled(self, q: float) -> float:
        """Return the overlap after many iterations of (1) from a point at the end of the search interval."""
        for _ in range(BEYOND):
            q = self.step(q)
        return q

    def free_entropy_gain(self, low: float, high: float) -> float:
        """Return F(high) - F(low) for the free entropy F, the integral of (3) of docs/theory/bayes_optimal.md.

        If `high` is 1, the numerical integral ends at 1 - 1e-12, and an estimate of the remaining part is added.
        """
        channel, prior = self._parts()
        ends = [-math.log(1 - min(q, 1 - LAST)) for q in (low, high)]  # in -log(1 - q)
        x, w = np.polynomial.legendre.leggauss(16)
        edges = np.linspace(ends[0], ends[1], 17)
        total = 0.0
        for a, b in pairwise(edges):
            for point, weight in zip(a + (b - a) * (x + 1) / 2, w * (b - a) / 2, strict=True):
                gap = math.exp(-point)
                q = min(max(1 - gap, LAST), 1 - LAST)
                total += weight * gap * (information(channel, q) / self.ratio - precision_of(prior, q)) / 2
        if high > 1 - LAST:  # remaining integral of alpha I, which grows like 1/sqrt(1 - q) for sign labels
            total += LAST * information(channel, 1 - LAST) / self.ratio
        return float(total)

    def free_entropy(self, q: float) -> float:
        """Return F(q) - F(0), the free entropy at the overlap q relative to that at overlap 0.

        For coefficients +-1 and sign labels it is (alpha - 1) log 2 at q = 1, with alpha = n/p samples per coefficient.

        >>> law = BayesOptimal(ratio=0.8, channel="sign", prior="rademacher")
        >>> round(law.free_entropy(1.0) / (0.25 * math.log(2)), 5)
        1.0
        """
        if not 0 <= q <= 1:
            raise Refused(f"q = {q!r} is not allowed: must be at least 0, at most 1")
        return self.free_entropy_gain(0.0, q)

    def thresholds(self) -> dict[str, float]:
        """Return the numbers of samples per coefficient n/p at which the solutions change.

        The result contains only the thresholds that exist.

        weak_recovery_samples
            Least n/p at which message passing has a positive overlap. It is positive only if the labels do not depend on the sign of the
            score.
        information_samples
            Least n/p at which the Bayes estimate is the largest solution, which is perfect recovery without noise.
        algorithmic_samples
            Least n/p at which message passing converges to the upper solution.

        Examples
        --------
        >>> thresholds = BayesOptimal(channel="abs").thresholds()
        >>> [round(value, 6) for value in thresholds.values()]
        [0.5, 1.0, 1.128471]
        """
        from scipy.optimize import brentq, minimize_scalar

        def samples(q: float) -> float:  # the curve alpha(q) = r(q)/I(q) contains the fixed points of all n/p
            channel, prior = self._parts()
            return precision_of(prior, q) / information(channel, q)

        limits = {
            "weak_recovery_samples": 2 * samples(1e-5) - samples(2e-5) if self.blind and self.channel != "flip" else 0.0
        }
        perfect = math.nan
        if (
            self.sharp and self.channel in ("abs", "relu") and self.prior == "gaussian"
        ):  # extrapolated to q = 1, where the difference falls like sqrt(1 - q)
            perfect = 2 * samples(1 - 1e-7) - samples(1 - 4e-7)
        curve = np.array([samples(q) for q in SCAN])
        rising = np.diff(curve) > 0
        tops = np.flatnonzero(rising[:-1] & ~rising[1:]) + 1
        if not tops.size:
            return limits | (
                {} if math.isnan(perfect) else dict.fromkeys(("information_samples", "algorithmic_samples"), perfect)
            )
        top = int(tops[0])
        peak = minimize_scalar(
            lambda q: -samples(q), bounds=(SCAN[top - 1], SCAN[top + 1]), method="bounded", options={"xatol": 1e-9}
        )
        highest = -float(peak.fun)
        if not math.isnan(perfect):
            return limits | {"information_samples": perfect, "algorithmic_samples": highest}

        def advantage(alpha: float) -> float:
            law = self.replace(ratio=1 / alpha)
            stable = [point.overlap for point in law.fixed_points() if point.stable]
            if self.perfect and self.discrete and stable[-1] < 1:
                stable.append(1.0)
            return law.free_entropy_gain(stable[0], stable[-1])

        lowest = max(float(curve[top:].min()), 0.5 * highest)
        inside = highest - lowest
        equal = brentq(advantage, lowest + 0.02 * inside, highest - 0.02 * inside, xtol=1e-10)
        return limits | {"information_samples": float(equal), "algorithmic_samples": highest}

    def overlaps(self) -> tuple[float, float]:
        """Return the overlaps of the Bayes estimate and of message passing."""
        return _overlaps(self)

    def observed(self) -> tuple[str, ...]:
        """Return the observables, which differ between labels of two classes and real-valued labels."""
        if isinstance(self.channel, OutputChannel):
            classes = self.channel.labels is not None
            finite = classes or self.channel.has_variance
        else:
            classes, finite = self.channel in CLASSES, True
        last = ("classification_error_gamp",) if classes else ("test_error_gamp", "excess_risk_gamp") if finite else ()
        return ("overlap_gamp", "precision_gamp", "estimation_error_gamp", *last)

    def predicted(self) -> Values:
        """Return the observables of the Bayes estimate and of message passing."""
        channel, prior = self._parts()
        values: dict[str, Any] = {}
        bayes, gamp = self.overlaps()
        for suffix, q in (("", bayes), ("_gamp", gamp)):
            precision = math.inf if q == 1 else precision_of(prior, q)
            values_at_overlap = dict(overlap=q, precision=precision, estimation_error=1 - q, **errors(channel, q))
            values |= {name + suffix: value for name, value in values_at_overlap.items()}
        q = values["overlap_gamp"]
        moved = abs(self.step(q, 32) - q) if 0 < q < 1 else 0.0
        slope = abs(self.step(q + 1e-5 * (1 - q)) - self.step(q)) / (1e-5 * (1 - q)) if 0 < q < 1 else 0.0
        own = channel.label_error() if isinstance(channel, OwnChannel) else 1e-12
        share = max(1e-11, 10 * max(moved, own if own > 1e-12 else 0.0) / max(1 - slope, 1e-3))
        accuracy = {name: share * max(1.0, abs(value)) for name, value in values.items() if math.isfinite(value)}
        phase = "impossible" if bayes == 0 else "hard" if bayes > gamp + 1e-9 else "easy"
        return {**values, "accuracy": accuracy, "notes": {"phase": phase}}

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of one matrix of inputs and of its products with vectors."""
        return self.matrix_cost(size, matrices=1.5)

    # -- the experiment ---------------------------------------------------------------------------------------------------

    def measured(self, draw: Draw) -> Values:
        """Run message passing on one data set and test it on the true and estimated scores of new inputs."""
        channel, prior = self._parts()
        p, n, rng = draw.size, draw.count("ratio"), draw.rng
        truth = prior.draw(rng, p)
        A = rng.standard_normal((n, p)) / math.sqrt(p)
        y = channel.draw(rng, A @ truth)
        estimate = message_passing(A, y, channel, prior, rng)
        size, length, inner = (
            float(truth @ truth) / p,
            float(estimate.mean @ estimate.mean) / p,
            float(estimate.mean @ truth) / p,
        )
        inner = abs(inner) if self.blind and symmetric(channel) else inner
        G, W = gaussian_lattice(rng, TEST_INPUTS)
        z = math.sqrt(size) * G
        guess = inner / math.sqrt(size) * G + math.sqrt(max(length - inner**2 / size, 0.0)) * W
        values: dict[str, float] = dict(
            overlap_gamp=inner, precision_gamp=1 / estimate.seen_noise, estimation_error_gamp=size - 2 * inner + length
        )
        if isinstance(channel, OwnChannel):
            values |= channel.measured_errors(z, guess, max(1 - length, 1e-10))
        elif self.channel in CLASSES:
            case = channel.probability(z)
            values["classification_error_gamp"] = float(np.mean(np.where(guess > 0, 1 - case, case)))
        else:
            excess = float(np.mean((channel.clean(z) - channel.expected(guess, estimate.variance)) ** 2))
            values |= dict(excess_risk_gamp=excess, test_error_gamp=excess + channel.noise**2)
        return values


@lru_cache(maxsize=256)
def _overlaps(law: BayesOptimal) -> tuple[float, float]:
    """Return the stable solution of largest free entropy, and the smallest stable solution."""
    points = law.fixed_points()
    stable = [point.overlap for point in points if point.stable]
    candidates = [*stable, 1.0] if law.perfect and law.discrete and stable[-1] < 1 else stable
    best = stable[0]
    for other in candidates[1:]:
        if law.free_entropy_gain(best, other) > 0:
            best = other
    return best, stable[0]


def symmetric(channel: Channel | OwnChannel) -> bool:
    """Return whether the label does not depend on the sign of the score, so that an estimate is known up to its sign."""
    return channel.output.even if isinstance(channel, OwnChannel) else channel.name == "abs"


# -- Generalised approximate message passing (Rangan 2011) ----------------------------------------------------------------

STEPS = 200
SETTLED = 1e-6
STUCK = 0.01  # size of the random start for a channel that does not depend on the sign


class Estimate(NamedTuple):
    """The final estimate of message passing.

    It consists of the posterior means, their mean variance V, and the noise S of the effective observations of the entries.
    """

    mean: Array
    variance: float
    seen_noise: float


def message_passing(
    A: Array,
    y: Array,
    channel: Channel | OwnChannel,
    prior: Prior | OwnPrior,
    rng: np.random.Generator,
    steps: int = STEPS,
) -> Estimate:
    """Estimate x0 from labels of A x0, with entries of A of variance 1/p.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> A, x0 = rng.standard_normal((800, 200)) / 200**0.5, rng.standard_normal(200)
    >>> channel, prior = Channel("gaussian", noise=0.1), Prior("gaussian")
    >>> estimate = message_passing(A, channel.draw(rng, A @ x0), channel, prior, rng)
    >>> bool(np.mean((estimate.mean - x0) ** 2) < 0.01)
    True
    """
    n, p = A.shape
    centre = prior.mean if isinstance(prior, OwnPrior) else 0.0
    stuck = channel.name == "abs" or (isinstance(channel, OwnChannel) and channel.blind and abs(centre) < 1e-12)
    a: Array = np.asarray(STUCK * rng.standard_normal(p)) if stuck else np.full(p, centre)
    V, g, S = max(1.0 - centre**2, LEAST_VARIANCE), np.zeros(n), 1.0
    for _ in range(steps):
        omega = A @ a - V * g
        g = channel.pull(y, omega, V)
        S = p / (n * max(float(np.mean(g**2)), 1e-12))
        new, spread = prior.posterior(a + S * (A.T @ g), S)
        moved = float(np.mean((new - a) ** 2))
        a, V = new, max(float(np.mean(spread)), LEAST_VARIANCE)
        if moved < SETTLED**2:
            break
    return Estimate(a, V, S)
