"""Binary labels: how the probability of y = +1 depends on a Gaussian score.

A *link* f gives P(y = +1 | x) = f(<beta, x>), |beta| = 1. The named ones, with their strength b:

    sign     1 if t > 0 (b is not used)          probit   Phi(b t)
    flip     the sign, wrong with probability b    logit    1 / (1 + exp(-b t))

Any function of arrays with values in [0, 1] is a link too, used as f(b t).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import PydanticCustomError, core_schema

from limitlab.errors import did_you_mean
from limitlab.numerics.gaussian import find_kinks

Array = NDArray[np.float64]

NAMES = ("sign", "probit", "logit", "flip")
"""The named links."""

SAME = 1e-9  # how well f(t) + f(-t) = 1 has to hold for a link to count as symmetric
GROWTH = 2.5  # of the panels away from a place where something varies fast
INNER_REACH, INNER_PANEL = 10.0, 2.0  # of the noise that blurs a link
REACH, PANEL = 13.0, 2.0  # end of the rules, in standard deviations, and width of their widest panels


class LinkError(ValueError):
    """A link that cannot be used; `reason` says why."""

    def __init__(self, given: Any, reason: str):
        super().__init__(f"link = {given!r} is not allowed: {reason}")
        self.reason = reason


class Link:
    """A link function without its strength: a name or a function of arrays. A valid type for a law's parameter.

    Examples
    --------
    >>> Link("probit").name
    'probit'
    >>> Link("logti")
    Traceback (most recent call last):
        ...
    limitlab.models.links.LinkError: link = 'logti' is not allowed: unknown link, did you mean 'logit'?
    """

    def __init__(self, given: Any):
        self.function: Callable[[Any], Any] | None = None
        if isinstance(given, Link):
            self.__dict__.update(given.__dict__)
        elif isinstance(given, str):
            if given not in NAMES:
                raise LinkError(given, f"unknown link, {did_you_mean(given, NAMES)}")
            self.name = given
        elif callable(given):
            values = _probe(given)
            place = f"{getattr(given, '__module__', None) or 'builtins'}:{getattr(given, '__qualname__', 'function')}"
            self.name = f"{place}#{hashlib.sha256(np.round(values, 9).tobytes()).hexdigest()[:8]}"
            self.function = given
        else:
            raise LinkError(given, f"must be one of {', '.join(NAMES)} or a function of arrays with values in [0, 1]")

    def __repr__(self) -> str:
        return f"Link({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Link) and (self.name, self.function) == (other.name, other.function)

    def __hash__(self) -> int:
        return hash((self.name, self.function))

    def __reduce__(self) -> tuple[Any, ...]:
        return Link, (self.function if self.function is not None else self.name,)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._validated,
            serialization=core_schema.plain_serializer_function_ser_schema(cls._serialised, info_arg=True),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "enum": list(NAMES)}

    @classmethod
    def _validated(cls, given: Any) -> Link:
        try:
            return cls(given)
        except LinkError as error:
            raise PydanticCustomError("link", error.reason) from None  # type: ignore[arg-type]

    def _serialised(self, info: core_schema.SerializationInfo) -> Any:
        return self.name if self.function is None or info.mode == "json" else self


@dataclass(frozen=True)
class Labels:
    """A link with its strength: probabilities, draws, and averages over label and score.

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
        """P(y = +1) at a score."""
        from scipy.special import expit, ndtr

        t = np.asarray(score, dtype=float)
        if self.link.function is not None:
            return _checked(self.link, self.link.function(self.strength * t), t)
        if self.link.name == "probit":
            return np.asarray(ndtr(self.strength * t))
        if self.link.name == "logit":
            return np.asarray(expit(self.strength * t))
        wrong = self.strength if self.link.name == "flip" else 0.0
        return np.asarray(np.where(t > 0, 1 - wrong, np.where(t < 0, wrong, 0.5)))

    @property
    def normal_form(self) -> tuple[float, float] | None:
        """(e, b) when f(t) = e + (1 - 2 e) Phi(b t), where b may be infinite; None for other links."""
        forms = dict(sign=(0.0, np.inf), flip=(self.strength, np.inf), probit=(0.0, self.strength))
        return forms.get(self.link.name) if self.link.function is None else None

    @cached_property
    def layers(self) -> tuple[tuple[float, float], ...]:
        """(place, width) of where the probability varies fast; the width of a jump or a kink is 0."""
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
        """E[y L] of the label with its standard Gaussian score L."""
        t, w = self.rule()
        return float(w @ t)

    def draw(self, rng: np.random.Generator, score: Array) -> Array:
        """One label -1, +1 per score.

        >>> Labels(Link("sign")).draw(np.random.default_rng(0), np.array([0.3, -2.0])).tolist()
        [1.0, -1.0]
        """
        return np.where(rng.random(len(score)) < self.probability(score), 1.0, -1.0)

    def rule(self, focus: Sequence[tuple[float, float]] = (), order: int = 24) -> tuple[Array, Array]:
        """Nodes t and weights of averages over T = y L, whose density is phi(t) [f(t) + 1 - f(-t)].

        Parameters
        ----------
        focus
            (place, width) of where the function to be averaged varies fast.
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
        """These labels, or those of the score with the other sign, so that E[y L] is not negative.

        >>> Labels(Link(lambda t: 1.0 * (t < 0))).oriented().correlation > 0
        True
        """
        if self.correlation >= 0:
            return self
        return Labels(Link(lambda t: self.probability(-np.asarray(t))))

    def seen(self, alignment: float, x: Array, order: int = 16) -> tuple[Array, Array]:
        """The labels as seen through a standard Gaussian U of this correlation q with the score: two functions of x.

        With f_q(x) = E f(q x + sqrt(1 - q^2) G), they are g = f_q(x) + 1 - f_q(-x), the density of y U over phi, and
        the average slope f_q'(x)/q + f_q'(-x)/q.

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
        """E f(q x + s G) and E G f(q x + s G) / s, by panels in G that have the link's layers as edges."""
        spread = np.sqrt((1 - alignment) * (1 + alignment))
        edges = np.repeat(np.arange(-INNER_REACH, INNER_REACH + 1, INNER_PANEL)[None], len(x), axis=0)
        for place, width in self.layers:
            for offset in (0.0, *(np.outer((-1, 1), width * GROWTH ** np.arange(0, 4)).ravel() if width else ())):
                edges = np.hstack([edges, ((place + offset - alignment * x) / spread)[:, None]])
        edges = np.sort(np.clip(edges, -INNER_REACH, INNER_REACH), axis=1)
        points, weights = _legendre(order)
        panels = np.diff(edges, axis=1)[..., None]
        g = (edges[:, :-1, None] + panels * points).reshape(len(x), -1)
        weight = (panels * weights).reshape(g.shape) * np.exp(-(g**2) / 2) / np.sqrt(2 * np.pi)
        f = self.probability((alignment * x[:, None] + spread * g).ravel()).reshape(g.shape)
        return (weight * f).sum(axis=1), (weight * g * f).sum(axis=1) / spread


def graded_rule(layers: Sequence[tuple[float, float]], order: int = 24) -> tuple[Array, Array]:
    """A rule for Gaussian averages whose panels shrink geometrically towards every (place, width) of fast variation.

    >>> from scipy.special import ndtr
    >>> t, w = graded_rule([(0.3, 1e-4)])
    >>> bool(abs(w @ ndtr((t - 0.3) / 1e-4) - ndtr(-0.3 / np.sqrt(1 + 1e-8))) < 1e-14)
    True
    """
    edges = set(np.arange(-REACH, REACH + 1, PANEL).tolist())
    for place, width in layers:
        if abs(place) < REACH:
            edges.add(place)
            step = width
            while 0 < step < PANEL:
                edges.update((place - step, place + step))
                step *= GROWTH
    corners = np.array(sorted(edge for edge in edges if abs(edge) <= REACH))
    points, weights = _legendre(order)
    panels = np.diff(corners)[:, None]
    nodes = (corners[:-1, None] + panels * points).ravel()
    return nodes, (panels * weights).ravel() * np.exp(-(nodes**2) / 2) / np.sqrt(2 * np.pi)


@lru_cache(maxsize=8)
def _legendre(order: int) -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights on [0, 1]."""
    points, weights = np.polynomial.legendre.leggauss(order)
    return (points + 1) / 2, weights / 2


def misclassification(labels: Labels, alignment: float, offset: float = 0.0) -> float:
    """P(y u <= 0) for a score u = offset + U, U standard Gaussian of the given correlation with the score behind the label.

    >>> round(misclassification(Labels(Link("sign")), np.cos(0.3 * np.pi)), 12)
    0.3
    """
    from scipy.special import ndtr

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


def _probe(function: Callable[[Any], Any]) -> Array:
    points = np.linspace(-6.0, 6.0, 49) + 1e-3
    try:
        values = function(points)
    except Exception as error:
        raise LinkError(function, f"it failed on an array ({error}); try numpy.vectorize(function)") from error
    return _checked(function, values, points)


def _checked(link: Any, values: Any, points: Array) -> Array:
    array = np.asarray(values, dtype=float)
    if array.shape != points.shape or not ((array >= 0) & (array <= 1)).all():
        raise LinkError(link, "must map an array of numbers to probabilities between 0 and 1, one for each")
    return array
