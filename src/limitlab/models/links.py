"""Binary labels whose probability of y = +1 is a function of a Gaussian score.

A *link* is a function f with P(y = +1 | x) = f(<beta, x>), |beta| = 1. The named links, with their strength b, are

    sign     1 if t > 0 (b is not used)          probit   Phi(b t)
    flip     the sign, wrong with probability b    logit    1 / (1 + exp(-b t))

Any function f of arrays with values in [0, 1] is also a link, and the probability is then f(b t).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.models.channels import OutputChannel
from limitlab.models.functions import FunctionParameter, record, values_of
from limitlab.numerics.gaussian import find_kinks
from limitlab.numerics.quadrature import GROWTH, gaussian_panels, graded_rule

__all__ = ["Labels", "Link"]

Array = NDArray[np.float64]

NAMES = ("sign", "probit", "logit", "flip")
"""The named links."""

SAME = 1e-9  # largest deviation of f(t) + f(-t) from 1 for a link that counts as symmetric
INNER_REACH, INNER_PANEL = 10.0, 2.0  # end and panel width of the rule for the Gaussian that smooths a link


class Link(FunctionParameter):
    """A link function without its strength (a name or a function of arrays), usable as the type of a law's parameter.

    Examples
    --------
    >>> Link("probit").name
    'probit'
    >>> Link("logti")
    Traceback (most recent call last):
        ...
    limitlab.models.functions.FunctionError: link = 'logti' is not allowed: unknown link, did you mean 'logit'?
    """

    KIND = "link"
    MUST_BE = (
        f"one of {', '.join(NAMES)}, a function of arrays with values in [0, 1], or an OutputChannel with labels -1 and +1"
    )

    def __init__(self, given: Any):
        self.function: Callable[[Any], Any] | None = None
        if isinstance(given, Link):
            self.__dict__.update(given.__dict__)
        elif isinstance(given, str):
            self.name = self.checked_name(given)
        elif isinstance(given, OutputChannel) or callable(given):
            given = self._probability_of(given) if isinstance(given, OutputChannel) else given
            points = np.linspace(-6.0, 6.0, 49) + 1e-3
            self.name = record(given, _probabilities(given, values_of(Link, given, points)))
            self.function = given
        else:
            raise self.refusal(given)
        self._key = (self.name, self.function)

    @classmethod
    def _probability_of(cls, channel: OutputChannel) -> Callable[[Any], Any]:
        """Return the probability of the label +1 of a channel with labels -1 and +1."""
        if channel.labels != (-1.0, 1.0):
            raise cls.refusal(
                channel,
                "the labels of this channel must be -1 and +1; use OutputChannel.from_probability, or labels=(-1, 1)",
            )
        return channel.as_probability()

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the named links."""
        return NAMES

    def __reduce__(self) -> tuple[Any, ...]:
        return Link, (self.function if self.function is not None else self.name,)


@dataclass(frozen=True)
class Labels:
    """A link with its strength, which computes probabilities, draws, and averages over label and score.

    Examples
    --------
    >>> Labels(Link("flip"), 0.1).probability([-2.0, 3.0]).tolist()
    [0.1, 0.9]
    >>> Labels(Link(lambda t: 0.5 + 0.5 * np.tanh(t)), 2.0).symmetric
    True
    """

    link: Link
    strength: float = 1.0

    def probability(self, score: ArrayLike) -> Array:
        """Return P(y = +1) at a score."""
        from scipy.special import expit, ndtr

        t = np.asarray(score, dtype=float)
        if self.link.function is not None:
            return _probabilities(self.link, np.asarray(self.link.function(self.strength * t), dtype=float))
        if self.link.name == "probit":
            return np.asarray(ndtr(self.strength * t))
        if self.link.name == "logit":
            return np.asarray(expit(self.strength * t))
        wrong = self.strength if self.link.name == "flip" else 0.0
        return np.asarray(np.where(t > 0, 1 - wrong, np.where(t < 0, wrong, 0.5)))

    @property
    def normal_form(self) -> tuple[float, float] | None:
        """The pair (e, b) of a link f(t) = e + (1 - 2 e) Phi(b t), where b may be infinite, or None for other links."""
        forms = dict(sign=(0.0, np.inf), flip=(self.strength, np.inf), probit=(0.0, self.strength))
        return forms.get(self.link.name) if self.link.function is None else None

    @cached_property
    def layers(self) -> tuple[tuple[float, float], ...]:
        """Pairs (place, width) of the intervals of fast variation of the probability. A jump or a kink has width 0."""
        if self.link.name in ("sign", "flip") and self.link.function is None:
            return ((0.0, 0.0),)
        smooth = ((0.0, 1 / self.strength),) if self.strength > 0 else ()
        if self.link.function is None or self.strength == 0:
            return smooth
        return (*smooth, *((kink / self.strength, 0.0) for kink in find_kinks(self.link.function)))

    @cached_property
    def symmetric(self) -> bool:
        """Whether f(-t) = 1 - f(t), so that both labels are equally likely."""
        t = np.linspace(1e-3, 8.0, 400)
        return bool(np.abs(self.probability(t) + self.probability(-t) - 1).max() <= SAME)

    @cached_property
    def correlation(self) -> float:
        """The correlation E[y L] of the label y with its standard Gaussian score L."""
        t, w = self.rule()
        return float(w @ t)

    def draw(self, rng: np.random.Generator, score: Array) -> Array:
        """Return a random label -1 or +1 for each score.

        >>> Labels(Link("sign")).draw(np.random.default_rng(0), np.array([0.3, -2.0])).tolist()
        [1.0, -1.0]
        """
        return np.where(rng.random(len(score)) < self.probability(score), 1.0, -1.0)

    def rule(self, focus: Sequence[tuple[float, float]] = (), order: int = 24) -> tuple[Array, Array]:
        """Return nodes t and weights of averages over T = y L, whose density is phi(t) [f(t) + 1 - f(-t)].

        Parameters
        ----------
        focus
            Pairs (place, width) of the intervals of fast variation of the function to be averaged.
        order
            Nodes per panel.

        Examples
        --------
        >>> t, w = Labels(Link("sign")).rule()        # T = |L|
        >>> bool(abs(w @ t - np.sqrt(2 / np.pi)) < 1e-14)
        True
        """
        mirrored = [(-place, width) for place, width in self.layers]
        t, w = graded_rule([*self.layers, *mirrored, *focus], order)
        return t, w * (self.probability(t) + 1 - self.probability(-t))

    def oriented(self) -> Labels:
        """Return these labels, or the labels for the score with opposite sign, so that E[y L] is at least 0.

        >>> Labels(Link(lambda t: 1.0 * (t < 0))).oriented().correlation > 0
        True
        """
        if self.correlation >= 0:
            return self
        return Labels(Link(lambda t: self.probability(-np.asarray(t))))

    def seen(self, alignment: float, x: Array, order: int = 16) -> tuple[Array, Array]:
        """Return two functions of x that describe the labels given a Gaussian U of correlation q with the score.

        U and G are standard Gaussians, and q is `alignment`. With f_q(x) = E f(q x + sqrt(1 - q^2) G), the functions are
        g = f_q(x) + 1 - f_q(-x), which is the density of y U divided by phi, and the average slope f_q'(x)/q + f_q'(-x)/q.

        >>> g, slope = Labels(Link("sign")).seen(0.6, np.array([0.0, 1.0]))
        >>> (g.round(6) + 0.0).tolist(), slope.round(6).tolist()
        ([1.0, 1.546745], [0.997356, 0.752844])
        """
        from scipy.special import ndtr

        spread2 = (1 - alignment) * (1 + alignment)
        form = self.normal_form
        if form is not None:
            floor, steepness = form
            if steepness == 0:
                return np.ones_like(x), np.zeros_like(x)
            width = np.sqrt(steepness**-2 + spread2)
            z = alignment * x / width
            bell = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
            return 1 + (1 - 2 * floor) * (2 * ndtr(z) - 1), (1 - 2 * floor) * 2 * bell / width
        up = self._smoothed(alignment, x, order)
        if self.symmetric:
            return 2 * up[0], 2 * up[1]
        down = self._smoothed(alignment, -x, order)
        return up[0] + 1 - down[0], up[1] + down[1]

    def _smoothed(self, alignment: float, x: Array, order: int) -> tuple[Array, Array]:
        """Return E f(q x + s G) and E G f(q x + s G) / s, by panels in G that have the link's layers as edges."""
        spread = np.sqrt((1 - alignment) * (1 + alignment))
        edges = np.repeat(np.arange(-INNER_REACH, INNER_REACH + 1, INNER_PANEL)[None], len(x), axis=0)
        for place, width in self.layers:
            for offset in (0.0, *(np.outer((-1, 1), width * GROWTH ** np.arange(0, 4)).ravel() if width else ())):
                edges = np.hstack([edges, ((place + offset - alignment * x) / spread)[:, None]])
        g, weight = gaussian_panels(np.sort(np.clip(edges, -INNER_REACH, INNER_REACH), axis=1), order)
        f = self.probability((alignment * x[:, None] + spread * g).ravel()).reshape(g.shape)
        return (weight * f).sum(axis=1), (weight * g * f).sum(axis=1) / spread


def misclassification(labels: Labels, alignment: float, offset: float = 0.0, spread: float | None = None) -> float:
    """Return P(y u <= 0) for a score u = offset + U.

    U is a standard Gaussian with correlation `alignment` to the score that determines the label. `spread` is sqrt(1 - alignment^2). Give
    it if the correlation is so close to 1 that the difference loses digits.

    >>> round(misclassification(Labels(Link("sign")), np.cos(0.3 * np.pi)), 12)
    0.3
    """
    from scipy.special import ndtr

    if spread is None:
        spread = float(np.sqrt(max((1 - alignment) * (1 + alignment), 0.0)))
    if spread == 0 and offset == 0:  # u is the score, or minus it
        t, w = labels.rule()
        return float(w @ (np.sign(alignment) * t <= 0))
    place = -offset / alignment if alignment else 0.0
    width = spread / abs(alignment) if alignment else 1.0
    layers = [*labels.layers, *((-place, width) for place, width in labels.layers), (place, width)]
    score, w = graded_rule(layers)
    with np.errstate(divide="ignore"):
        u = (offset + alignment * score) / max(spread, 1e-300)
    p = labels.probability(score)
    return float(w @ (p * ndtr(-u) + (1 - p) * ndtr(u)))


def _probabilities(link: Any, values: Array) -> Array:
    if not ((values >= 0) & (values <= 1)).all():
        raise Link.refusal(link, "must map an array of numbers to probabilities between 0 and 1, one for each")
    return values
