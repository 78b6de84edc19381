"""The least error that any method can reach for a generalised linear model, and what message passing reaches.

Setting.  x ~ N(0, I_p), coefficients beta = x0/sqrt(p) with independent entries of x0 from a prior of variance 1; n labels that depend on
          z = <beta, x> through a channel. The learner knows prior and channel.
Limit.    n, p -> infinity with p/n fixed (`ratio`); alpha = n/p.
Result.   The squared overlap q of the posterior mean with the truth solves, with V = 1 - q, omega = sqrt(q) v, v standard Gaussian,

              q_hat = alpha I(q),   I = E (d log Z(y | omega, V)/d omega)^2,   q = Q(q_hat)                               (1)

          (docs/theory/bayes_optimal.md has I and Q for every channel and prior). Of several solutions the Bayes one has the largest free
          entropy, F'(q) = (alpha I(q) - Q^-1(q))/2; message passing without a hint ends at the smallest stable one.
Status.   Bayes error: theorem (Barbier et al. 2019); message passing: theorem (Javanmard and Montanari 2013).
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from pydantic import model_validator

from limitlab.errors import Refused
from limitlab.laws import Cost, Draw, Experiment, Law, Values, observable, parameter, shared
from limitlab.laws.classification._channel_information import errors, information, precision_of, recovered
from limitlab.laws.classification._channels import CLASSES, Channel, ChannelName, Prior, PriorName
from limitlab.laws.classification._message_passing import message_passing
from limitlab.models.data import gaussian_lattice

__all__ = ["BayesOptimal"]

SMALLEST, CLOSEST = 1e-6, 1e-7  # overlaps and gaps to 1 between which fixed points are looked for
SCAN = 1 / (1 + np.exp(-np.linspace(math.log(SMALLEST), -math.log(CLOSEST), 120)))
BEYOND = 60  # steps towards a solution outside it
LAST = 1e-12  # gap to 0 and 1 at which areas end
TEST_INPUTS = 4096


class FixedPoint(NamedTuple):
    """A solution of (1): its overlap, and whether message passing that is near it stays."""

    overlap: float
    stable: bool


def _told(name: str, of: str) -> Any:
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
        "that no fast method beats message passing is a conjecture, false for |z| without noise",
    )
    references = ("barbier2019optimal", "rangan2011generalized", "javanmard2013state")
    page = "bayes_optimal"
    observables = {
        "overlap_gamp": _told("q", "squared overlap with the truth"),
        "precision_gamp": _told(r"\hat q", "precision with which a coefficient is seen"),
        "estimation_error_gamp": _told("1-q", "mean squared error of the coefficients"),
        "classification_error_gamp": _told(r"P_{\mathrm{err}}", "probability of a wrong label"),
        "test_error_gamp": _told(r"E_{\mathrm{test}}", "mean squared error on a new noisy label"),
        "excess_risk_gamp": _told("R", "mean squared error on a new noiseless label"),
        # of the best method: no algorithm is known that reaches it everywhere, so no experiment measures it
        "overlap": observable("overlap", "q", compared=False),
        "precision": observable("precision with which a coefficient is seen", r"\hat q", compared=False),
        "estimation_error": observable("mean squared error of the coefficients", "1-q", compared=False),
        **shared("classification_error", "test_error", "excess_risk", compared=False),
    }
    simulation = Experiment("number of coefficients p", sizes=(150, 300, 600), draws=40)
    # Two classes with a blurred link, and numbers with a sparse prior
    points = (
        dict(ratio=0.6, channel="probit", link_strength=2.0),
        dict(ratio=0.8, channel="flip", link_strength=0.1, prior="rademacher"),
        dict(ratio=1.2, channel="gaussian", noise=0.4, prior="sparse", density=0.3),
    )

    ratio: float = parameter(0.5, symbol="p/n", above=0, scale="log", count="size / value")
    channel: ChannelName = parameter("sign", "how the label depends on the score", note="see docs/theory/bayes_optimal.md")
    link_strength: float = parameter(1.0, note="slope of probit and logit; probability of a wrong label for flip", least=0)
    noise: float = parameter(0.0, note="gaussian, abs and relu", least=0)
    prior: PriorName = parameter("gaussian", "prior of the coefficients", note="gaussian, rademacher or sparse")
    density: float = parameter(1.0, note="share of coefficients that are not 0 (sparse)", symbol="e", above=0, most=1)

    @model_validator(mode="after")
    def _channel_has_its_numbers(self) -> Self:
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

    def _parts(self) -> tuple[Channel, Prior]:
        noise = 0.0 if self.channel in CLASSES else self.noise
        return Channel(self.channel, self.link_strength, noise), Prior(self.prior, self.density)

    @property
    def sharp(self) -> bool:
        """Whether the information I(q) grows without bound as q tends to 1: labels that jump at a score, or numbers without noise."""
        flipped = self.channel == "flip" and self.link_strength < 0.5
        return self.channel == "sign" or flipped or (self.channel in ("abs", "relu") and self.noise == 0)

    def step(self, q: float, order: int = 24) -> float:
        """One step of (1)."""
        channel, prior = self._parts()
        return recovered(prior, information(channel, q, order) / self.ratio)

    def fixed_points(self) -> list[FixedPoint]:
        """All solutions of (1) with their stability, increasing; 0 and 1 where they are solutions."""
        from scipy.optimize import brentq

        def move(q: float) -> float:
            return self.step(q) - q

        moves = np.array([move(q) for q in SCAN])
        blind = self.channel == "abs" or (self.channel == "flip" and self.link_strength == 0.5)
        found = [FixedPoint(0.0, bool(moves[0] < 0))] if blind else []
        if moves[0] < 0 and not blind:  # a solution below the scan, where the map is nearly constant
            found.append(FixedPoint(self._settled(float(SCAN[0])), True))
        for i in np.flatnonzero(np.sign(moves[:-1]) != np.sign(moves[1:])):
            root = float(brentq(move, SCAN[i], SCAN[i + 1], xtol=1e-15, rtol=1e-14))
            found.append(FixedPoint(root, bool(moves[i] > 0)))
        if self.sharp and (self.channel in ("abs", "relu") or self.prior == "rademacher"):  # perfect recovery is possible
            if moves[-1] > 0 or self.prior == "rademacher":
                found.append(FixedPoint(1.0, bool(moves[-1] > 0)))
        elif moves[-1] > 0:
            found.append(FixedPoint(self._settled(float(SCAN[-1])), True))
        return found

    def _settled(self, q: float) -> float:
        """Where the steps (1) lead from a point beyond the scan."""
        for _ in range(BEYOND):
            q = self.step(q)
        return q

    def free_entropy_gain(self, low: float, high: float) -> float:
        """F(high) - F(low) as the area under (alpha I - r)/2, up to 1 - 1e-12 where high is 1."""
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
        if high > 1 - LAST:  # what is left of alpha I, which grows like 1/sqrt(1 - q) for sign labels
            total += LAST * information(channel, 1 - LAST) / self.ratio
        return float(total)

    def free_entropy(self, q: float) -> float:
        """F(q) - F(0); for +-1 coefficients and sign labels it is (alpha - 1) log 2 at q = 1.

        >>> law = BayesOptimal(ratio=0.8, channel="sign", prior="rademacher")
        >>> round(law.free_entropy(1.0) / (0.25 * math.log(2)), 5)
        1.0
        """
        if not 0 <= q <= 1:
            raise Refused(f"q = {q!r} is not allowed: must be at least 0, at most 1")
        return self.free_entropy_gain(0.0, q)

    def thresholds(self) -> dict[str, float]:
        """Samples per coefficient n/p at which the solutions change; only those that exist are named.

        weak_recovery_samples
            From here on message passing learns something (0 unless the labels are blind to the sign).
        information_samples
            From here on the Bayes estimate takes the upper solution (perfect recovery without noise).
        algorithmic_samples
            From here on message passing does.

        Examples
        --------
        >>> found = BayesOptimal(channel="abs").thresholds()
        >>> [round(value, 6) for value in found.values()]
        [0.5, 1.0, 1.128471]
        """
        from scipy.optimize import brentq, minimize_scalar

        def samples(q: float) -> float:  # alpha(q) = r(q)/I(q): every fixed point of every n/p at once
            channel, prior = self._parts()
            return precision_of(prior, q) / information(channel, q)

        found = {"weak_recovery_samples": 2 * samples(1e-5) - samples(2e-5) if self.channel == "abs" else 0.0}
        perfect = math.nan
        if (
            self.sharp and self.channel in ("abs", "relu") and self.prior == "gaussian"
        ):  # a limit in which the gap falls like sqrt(V)
            perfect = 2 * samples(1 - 1e-7) - samples(1 - 4e-7)
        curve = np.array([samples(q) for q in SCAN])
        rising = np.diff(curve) > 0
        tops = np.flatnonzero(rising[:-1] & ~rising[1:]) + 1
        if not tops.size:
            return found | (
                {} if math.isnan(perfect) else dict.fromkeys(("information_samples", "algorithmic_samples"), perfect)
            )
        top = int(tops[0])
        peak = minimize_scalar(
            lambda q: -samples(q), bounds=(SCAN[top - 1], SCAN[top + 1]), method="bounded", options={"xatol": 1e-9}
        )
        highest = -float(peak.fun)
        if not math.isnan(perfect):
            return found | {"information_samples": perfect, "algorithmic_samples": highest}

        def advantage(alpha: float) -> float:
            law = self.replace(ratio=1 / alpha)
            stable = [point.overlap for point in law.fixed_points() if point.stable]
            if self.sharp and self.prior == "rademacher" and stable[-1] < 1:
                stable.append(1.0)
            return law.free_entropy_gain(stable[0], stable[-1])

        lowest = max(float(curve[top:].min()), 0.5 * highest)
        inside = highest - lowest
        equal = brentq(advantage, lowest + 0.02 * inside, highest - 0.02 * inside, xtol=1e-10)
        return found | {"information_samples": float(equal), "algorithmic_samples": highest}

    def overlaps(self) -> tuple[float, float]:
        """Overlap of the Bayes estimate and of message passing."""
        return _overlaps(self)

    def observed(self) -> tuple[str, ...]:
        """Errors of labels of two classes, or of numbers."""
        last = ("classification_error_gamp",) if self.channel in CLASSES else ("test_error_gamp", "excess_risk_gamp")
        return ("overlap_gamp", "precision_gamp", "estimation_error_gamp", *last)

    def predicted(self) -> Values:
        """Bayes and message passing."""
        channel, prior = self._parts()
        values: dict[str, Any] = {}
        bayes, gamp = self.overlaps()
        for suffix, q in (("", bayes), ("_gamp", gamp)):
            precision = math.inf if q == 1 else precision_of(prior, q)
            known = dict(overlap=q, precision=precision, estimation_error=1 - q, **errors(channel, q))
            values |= {name + suffix: value for name, value in known.items()}
        q = values["overlap_gamp"]
        moved = abs(self.step(q, 32) - q) if 0 < q < 1 else 0.0
        slope = abs(self.step(q + 1e-5 * (1 - q)) - self.step(q)) / (1e-5 * (1 - q)) if 0 < q < 1 else 0.0
        share = max(1e-11, 10 * moved / max(1 - slope, 1e-3))
        accuracy = {name: share * max(1.0, abs(value)) for name, value in values.items() if math.isfinite(value)}
        phase = "impossible" if bayes == 0 else "hard" if bayes > gamp + 1e-9 else "easy"
        return {**values, "accuracy": accuracy, "notes": {"phase": phase}}

    def draw_cost(self, size: int) -> Cost:
        """One matrix of inputs, which message passing only multiplies with."""
        return self.matrix_cost(size, matrices=1.5)

    # -- the experiment ---------------------------------------------------------------------------------------------------

    def measured(self, draw: Draw) -> Values:
        """Message passing on one data set; new inputs are seen through their true and estimated scores."""
        channel, prior = self._parts()
        p, n, rng = draw.size, draw.count("ratio"), draw.rng
        truth = prior.draw(rng, p)
        A = rng.standard_normal((n, p)) / math.sqrt(p)
        y = channel.draw(rng, A @ truth)
        found = message_passing(A, y, channel, prior, rng)
        size, length, inner = float(truth @ truth) / p, float(found.mean @ found.mean) / p, float(found.mean @ truth) / p
        inner = abs(inner) if self.channel == "abs" else inner
        G, W = gaussian_lattice(rng, TEST_INPUTS)
        z = math.sqrt(size) * G
        guess = inner / math.sqrt(size) * G + math.sqrt(max(length - inner**2 / size, 0.0)) * W
        values: dict[str, float] = dict(
            overlap_gamp=inner, precision_gamp=1 / found.seen_noise, estimation_error_gamp=size - 2 * inner + length
        )
        if self.channel in CLASSES:
            case = channel.probability(z)
            values["classification_error_gamp"] = float(np.mean(np.where(guess > 0, 1 - case, case)))
        else:
            excess = float(np.mean((channel.clean(z) - channel.expected(guess, found.variance)) ** 2))
            values |= dict(excess_risk_gamp=excess, test_error_gamp=excess + channel.noise**2)
        return values


@lru_cache(maxsize=256)
def _overlaps(law: BayesOptimal) -> tuple[float, float]:
    """The stable solution of largest free entropy, and the smallest stable one."""
    points = law.fixed_points()
    stable = [point.overlap for point in points if point.stable]
    known = [*stable, 1.0] if law.sharp and law.prior == "rademacher" and stable[-1] < 1 else stable
    best = stable[0]
    for other in known[1:]:
        if law.free_entropy_gain(best, other) > 0:
            best = other
    return best, stable[0]
