"""Output channels and priors of a generalised linear model, made from functions of the user.

A *channel* is the distribution of a label y given the score z = <beta, x>. `OutputChannel` takes a link with Gaussian noise, a probability
of the label +1, or any log-likelihood with a sampler. `CoefficientPrior` is the distribution of the entries of beta, given by a density
with atoms or by a table. Both are checked when they are made: a likelihood and a prior must be normalised, a sampler must agree with its
likelihood, and the integrals over the score must converge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import PydanticCustomError, core_schema

from limitlab._core.checks import array, number, refuse
from limitlab.errors import ConvergenceError, Refused
from limitlab.models.functions import record
from limitlab.numerics.gaussian import find_kinks
from limitlab.numerics.quadrature import between_kinks

__all__ = ["CoefficientPrior", "OutputChannel"]

Array = NDArray[np.float64]

SCORES = np.linspace(-6.0, 6.0, 25) + 1e-3  # scores at which a channel is checked
NORMALISED = 1e-6  # allowed deviation of an integral from 1
SAME = 1e-9
KINKED_LENGTH = 0.12  # length of panels if the likelihood has kinks that move with the label
WORST_ERROR = 1e-3  # largest accepted relative error of an integral
LENGTHS = (2.0, 1.4, 1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08, 0.05)  # tried lengths of panels in the score
RESOLVED = 1e-10  # largest relative error of an integral over the score
REACH = 9.5  # end of integrals over a Gaussian, in standard deviations
ORDER = 12  # nodes per panel
SAMPLED, SAMPLER_GAP = 4000, 0.045  # draws of a check of a sampler, and largest distance of its distribution function
HEAVY = 1e-3  # share of the second moment from the farthest panels above which the variance counts as infinite
WORST_LABEL_ERROR = 1e-4  # largest accepted error of an integral over the labels
MOST_LABELS = 4000


class FromFunctions:
    """Base class of parameters that are made from functions of the user.

    Two objects are equal if their records are. The record contains the names of the functions and a fingerprint of their values.
    """

    WORD = "function"
    HOW = ""
    name: str

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.name == other.name

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._validated,
            serialization=core_schema.plain_serializer_function_ser_schema(cls._serialised, info_arg=True),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "object"}

    @classmethod
    def _validated(cls, given: Any) -> Self:
        if isinstance(given, cls):
            return given
        raise PydanticCustomError(cls.WORD, "{reason}", {"reason": f"must be {cls.HOW}"})

    def _serialised(self, info: core_schema.SerializationInfo) -> Any:
        return self.record() if info.mode == "json" else self

    def record(self) -> Any:
        """Return the record of the object in JSON."""
        return self.name


def _called(what: str, function: Callable[..., Any], *arguments: Array, shape: tuple[int, ...]) -> Array:
    """Return the values of a function of the user, which must have a shape and must not be NaN or +inf."""
    try:
        with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
            values = np.asarray(function(*arguments), dtype=float)
            values = np.broadcast_to(values, shape)
    except Exception as error:
        raise Refused(f"{what} = {function!r} is not allowed: it failed on arrays of shape {shape} ({error})") from error
    if np.isnan(values).any() or (values == np.inf).any():
        raise Refused(
            f"{what} = {function!r} is not allowed: it must return numbers below infinity, and it returned NaN or inf"
        )
    return values


# -- channels -------------------------------------------------------------------------------------------------------------


class OutputChannel(FromFunctions):
    """The distribution of a label given a score, made by `from_link`, `from_probability` or `from_log_likelihood`.

    Attributes
    ----------
    labels
        The possible labels in increasing order, or None for real labels.
    kinks
        Scores at which the likelihood or its derivative jumps.
    length
        Length of panels in the score for integrals of the likelihood.
    error
        Estimated relative error of these integrals. It is 0 if they are exact to about 1e-10. Kinks that move with the label increase it.
    function, noise
        Link and standard deviation of the noise, for a channel of `from_link`, and None otherwise.
    mean, second_moment
        Methods that return E[y | z] and E[y^2 | z].

    Examples
    --------
    >>> saturating = OutputChannel.from_link(np.tanh, noise=0.3)
    >>> saturating.draw(np.random.default_rng(0), np.array([-5.0, 5.0])).round(2).tolist()
    [-0.96, 0.96]
    >>> coin = OutputChannel.from_probability(lambda z: 0.5 + 0.4 * np.tanh(z))
    >>> coin.labels
    (-1.0, 1.0)
    """

    WORD = "channel"
    ALLOWED = "an OutputChannel (in Python)"
    HOW = (
        "a name, or a channel made by OutputChannel.from_link(function, noise), OutputChannel.from_probability(function) or "
        "OutputChannel.from_log_likelihood(log_likelihood, sampler)"
    )

    labels: tuple[float, ...] | None
    kinks: tuple[float, ...]
    length: float
    error: float
    function: Callable[[Any], Any] | None
    noise: float | None

    def __init__(self, *_: Any, **__: Any) -> None:
        raise Refused(f"channel is not allowed: must be {self.HOW}")

    @classmethod
    def from_link(
        cls, function: Callable[[Array], Any], noise: float, kinks: Sequence[float] | None = None
    ) -> OutputChannel:
        """Return the channel y = function(z) + noise of this standard deviation.

        Parameters
        ----------
        function
            A function of an array of scores.
        noise
            Standard deviation of the Gaussian noise.
        kinks
            Scores at which the function or its derivative jumps (default: they are found).

        Examples
        --------
        >>> channel = OutputChannel.from_link(lambda z: np.clip(z, -1, 1), noise=0.5)
        >>> channel.kinks
        (-1.0, 1.0)
        """
        tau = number("noise", noise, above=0, remedy="labels without noise have no likelihood; use a small noise")
        values = _called("function", function, SCORES, shape=SCORES.shape)
        refuse(not np.isfinite(values).all(), f"function = {function!r} is not allowed: its values must be finite")
        places = _kinks("function", function) if kinks is None else tuple(float(kink) for kink in kinks)
        return _finished(
            cls, dict(form="link", function=function, noise=tau), None, places, record(function, values, np.array([tau]))
        )

    @classmethod
    def from_probability(cls, function: Callable[[Array], Any], kinks: Sequence[float] | None = None) -> OutputChannel:
        """Return the channel of labels -1 and +1, where the label is +1 with the probability function(z).

        >>> OutputChannel.from_probability(lambda z: 1.0 * (z > 0)).kinks
        (0.0,)
        """
        values = _called("function", function, SCORES, shape=SCORES.shape)
        refuse(
            not ((values >= 0) & (values <= 1)).all(),
            f"function = {function!r} is not allowed: its values must be probabilities between 0 and 1",
        )
        places = _kinks("function", function) if kinks is None else tuple(float(kink) for kink in kinks)
        return _finished(cls, dict(form="probability", function=function), (-1.0, 1.0), places, record(function, values))

    @classmethod
    def from_log_likelihood(
        cls,
        log_likelihood: Callable[[Array, Array], Any],
        sampler: Callable[[np.random.Generator, Array], Any],
        labels: Sequence[float] | None = None,
        kinks: Sequence[float] | None = None,
    ) -> OutputChannel:
        """Return the channel with a log-likelihood log P(y | z) and a sampler.

        Parameters
        ----------
        log_likelihood
            A function of arrays y and z that broadcast. It returns the logarithm of the probability of the label y, or of the density of
            real labels. The value -inf is allowed.
        sampler
            A function of a random number generator and an array of scores. It returns one label per score.
        labels
            The possible labels. Without them the labels are real numbers.
        kinks
            Scores at which the likelihood or its derivative jumps (default: they are found).

        Examples
        --------
        >>> laplace = OutputChannel.from_log_likelihood(
        ...     lambda y, z: -np.abs(y - np.tanh(z)) / 0.5, lambda rng, z: np.tanh(z) + rng.laplace(0, 0.5, z.shape))
        >>> laplace.labels is None
        True
        >>> OutputChannel.from_log_likelihood(lambda y, z: -(y - z) ** 2, lambda rng, z: z + rng.standard_normal(z.shape))
        Traceback (most recent call last):
            ...
        limitlab.errors.Refused: log_likelihood is not allowed: the integral of its exponential over the labels at the score -5.999 is \
1.7724539 and must be 1; subtract the logarithm of the integral
        """
        values = None if labels is None else array("labels", labels, shape=("k",))
        refuse(
            values is not None and len(np.unique(values)) != len(values), "labels is not allowed: must be different numbers"
        )
        options = None if values is None else tuple(np.sort(values).tolist())
        probe = np.array([-1.3, 0.2, 0.9]) if options is None else np.array(options)
        table = _called("log_likelihood", log_likelihood, probe[:, None], SCORES[None], shape=(probe.size, SCORES.size))
        _called("sampler", lambda z: sampler(np.random.default_rng(0), z), SCORES, shape=SCORES.shape)
        if kinks is None:
            found = [_kinks("log_likelihood", _at_label(log_likelihood, float(y))) for y in probe[:5]]
            places = _common(found, 1 if options is not None else 2)
        else:
            places = tuple(float(kink) for kink in kinks)
        functions: tuple[Any, Any] = (log_likelihood, sampler)
        name = f"{record(functions[0], np.exp(table).ravel())}+{record(functions[1])}"
        parts = dict(form="likelihood", function=log_likelihood, sampler=sampler)
        return _finished(cls, parts, options, places, name)

    # -- the channel ------------------------------------------------------------------------------------------------------

    def log_likelihood(self, y: Array, z: Array) -> Array:
        """Return log P(y | z), or the logarithm of the density; the arguments broadcast."""
        form, function = self._parts["form"], self._parts["function"]
        y, z = np.broadcast_arrays(np.asarray(y, dtype=float), np.asarray(z, dtype=float))
        with np.errstate(all="ignore"):
            if form == "link":
                tau = self._parts["noise"]
                gap = (y - np.asarray(function(z), dtype=float)) / tau
                return np.asarray(-(gap**2) / 2 - math.log(tau * math.sqrt(2 * math.pi)))
            if form == "probability":
                return np.log(self.likelihood(y, z))
            return np.broadcast_to(np.asarray(function(y, z), dtype=float), y.shape)

    def likelihood(self, y: Array, z: Array) -> Array:
        """Return P(y | z), or the density; the arguments broadcast."""
        form, function = self._parts["form"], self._parts["function"]
        y, z = np.broadcast_arrays(np.asarray(y, dtype=float), np.asarray(z, dtype=float))
        with np.errstate(all="ignore"):
            if form == "probability":
                up = np.asarray(function(z), dtype=float)
                return np.where(y > 0, up, 1 - up)
            return np.exp(self.log_likelihood(y, z))

    def draw(self, rng: np.random.Generator, z: Array) -> Array:
        """Return one random label per score."""
        form, function = self._parts["form"], self._parts["function"]
        if form == "link":
            return np.asarray(np.asarray(function(z), dtype=float) + self._parts["noise"] * rng.standard_normal(z.shape))
        if form == "probability":
            return np.where(rng.random(z.shape) < np.asarray(function(z), dtype=float), 1.0, -1.0)
        labels = np.asarray(self._parts["sampler"](rng, z), dtype=float)
        refuse(labels.shape != z.shape, f"sampler of {self.name} is not allowed: it must return one label per score")
        return labels

    def rule(self) -> tuple[Array, Array]:
        """Return labels and weights of sums (or integrals) over all labels."""
        if self.labels is not None:
            return np.array(self.labels), np.ones(len(self.labels))
        return self._label_rule

    @cached_property
    def _label_rule(self) -> tuple[Array, Array]:
        return _label_rule(self)

    def mean(self, z: Array) -> Array:
        """Return E[y | z]."""
        y, w = self.rule()
        return np.asarray((y * w) @ self.likelihood(y[:, None], np.asarray(z)[None]))

    def second_moment(self, z: Array) -> Array:
        """Return E[y^2 | z]."""
        y, w = self.rule()
        return np.asarray((y**2 * w) @ self.likelihood(y[:, None], np.asarray(z)[None]))

    @cached_property
    def has_variance(self) -> bool:
        """Whether the labels have a finite variance given the score."""
        if self.labels is not None or self._parts["form"] == "link":
            return True
        y, w = self.rule()
        parts = (y**2 * w)[:, None] * self.likelihood(y[:, None], SCORES[None])
        far = np.abs(y) > np.abs(y).max() / 2
        return bool((parts[far].sum(axis=0) <= HEAVY * parts.sum(axis=0)).all())

    @cached_property
    def even(self) -> bool:
        """Whether the label does not depend on the sign of the score."""
        y, _ = self.rule()
        z = np.linspace(0.05, 5.0, 60)
        left, right = (self.likelihood(y[:, None], side * z[None]) for side in (-1.0, 1.0))
        return bool(np.abs(left - right).max() <= SAME * max(float(left.max()), 1e-300))

    def score_rule(self, mean: Array, spread: float, order: int = ORDER) -> tuple[Array, Array]:
        """Return nodes w and weights of Gaussian averages of functions of mean + spread w, one row per mean."""
        panels = math.ceil(2 * REACH * max(0.5, spread / self.length))
        return between_kinks(
            self.kinks, mean, spread, panels=max(panels // (len(self.kinks) + 1), 5), order=order, reach=REACH
        )

    def as_probability(self) -> Callable[[Array], Array]:
        """Return P(y = +1 | z) as a function, for labels -1 and +1."""
        if self.labels != (-1.0, 1.0):
            raise Refused(
                f"channel = {self.name!r} is not allowed here: its labels must be -1 and +1; use OutputChannel.from_probability"
            )
        if self._parts["form"] == "probability":
            function: Callable[[Array], Array] = self._parts["function"]
            return function
        return Probability(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _remade, (dict(self._parts), self.labels, self.kinks, self.length, self.name, self.error)

    _parts: dict[str, Any]


class Probability:
    """The probability of the label +1 as a function of the score, for a channel with labels -1 and +1."""

    def __init__(self, channel: OutputChannel):
        self.channel, self.__qualname__ = channel, channel.name

    def __call__(self, z: ArrayLike) -> Array:
        """Return P(y = +1 | z)."""
        return np.clip(self.channel.likelihood(np.asarray(1.0), np.asarray(z, dtype=float)), 0.0, 1.0)


def _remade(
    parts: dict[str, Any], labels: Any, kinks: tuple[float, ...], length: float, name: str, error: float = 0.0
) -> OutputChannel:
    made = object.__new__(OutputChannel)
    made._parts, made.labels, made.kinks, made.length, made.name, made.error = parts, labels, kinks, length, name, error
    made.function, made.noise = (parts["function"], parts["noise"]) if parts["form"] == "link" else (None, None)
    return made


def _kinks(what: str, function: Callable[[Array], Any]) -> tuple[float, ...]:
    try:
        with np.errstate(all="ignore"):
            places = find_kinks(lambda z: np.asarray(function(z), dtype=float))
        return tuple(0.0 if abs(kink) < 1e-12 else kink for kink in places if abs(kink) < 2 * REACH)
    except (ConvergenceError, ValueError) as error:
        raise Refused(
            f"{what} = {function!r} is not allowed: its jumps and kinks were not located ({error}); give them with kinks="
        ) from None


def _at_label(log_likelihood: Callable[[Array, Array], Any], y: float) -> Callable[[Array], Array]:
    """Return the likelihood of one label as a function of the score."""
    return lambda z: np.exp(np.broadcast_to(log_likelihood(np.full(z.shape, y), z), z.shape))


def _common(found: Sequence[tuple[float, ...]], least: int) -> tuple[float, ...]:
    """Return the places that occur for at least `least` labels. Kinks that move with the label are resolved by short panels instead."""
    places = sorted(kink for kinks in found for kink in kinks)
    groups: list[list[float]] = []
    for place in places:
        if groups and place - groups[-1][-1] < 1e-7:
            groups[-1].append(place)
        else:
            groups.append([place])
    return tuple(round(group[0], 12) + 0.0 for group in groups if len(group) >= least)


def _finished(
    cls: type[OutputChannel], parts: dict[str, Any], labels: Any, kinks: tuple[float, ...], name: str
) -> OutputChannel:
    """Return the channel after the checks of normalisation, sampler and integrals over the score."""
    extra = (
        "" if labels is None or parts["form"] == "probability" else f"|labels={','.join(f'{label:g}' for label in labels)}"
    )
    made = _remade(parts, labels, kinks, 1.0, name + extra)
    y, w = made.rule()
    if parts["form"] == "likelihood":
        total = w @ made.likelihood(y[:, None], SCORES[None])
        worst = int(np.argmax(np.abs(total - 1)))
        refuse(
            abs(total[worst] - 1) > NORMALISED,
            f"log_likelihood is not allowed: the {'integral' if labels is None else 'sum'} of its exponential over the labels at the score "
            f"{SCORES[worst]:g} is {total[worst]:.8g} and must be 1; subtract the logarithm of the "
            f"{'integral' if labels is None else 'sum'}",
        )
        _check_sampler(made, y, w)
    made.length = _resolved_length(made, y, w)
    return made


def _check_sampler(channel: OutputChannel, y: Array, w: Array) -> None:
    """Raise `Refused` if the distribution of drawn labels differs from the likelihood."""
    rng, order = np.random.default_rng(0), np.argsort(y)
    for z in (-1.7, 0.3, 2.1):
        drawn = np.sort(channel.draw(rng, np.full(SAMPLED, z)))
        mass = (w * channel.likelihood(y, np.full(y.shape, z)))[order]
        if channel.labels is not None:
            counted = np.array([(drawn == label).mean() for label in y[order]])
            gap = float(np.abs(counted - mass).max())
        else:
            middle = np.cumsum(mass) - mass / 2
            gap = float(np.abs(np.searchsorted(drawn, y[order]) / SAMPLED - middle).max() - mass.max())
        refuse(
            gap > SAMPLER_GAP,
            f"sampler is not allowed: at the score {z} the distribution of {SAMPLED} draws differs from the likelihood by {gap:.3g}; "
            "log_likelihood and sampler must describe the same labels",
        )


def _resolved_length(channel: OutputChannel, y: Array, w: Array) -> float:
    """Return the longest tried panel in the score that resolves the likelihood, or raise `Refused`."""
    few = y[np.linspace(0, y.size - 1, min(y.size, 40)).astype(int)]
    mean = np.array([-2.3, -0.6, 0.4, 1.7])

    def averages(length: float) -> Array:
        channel.length = length
        nodes, weight = channel.score_rule(mean, 1.0)
        return (weight * channel.likelihood(few[:, None, None], mean[:, None] + nodes)).sum(axis=-1)

    before, kinked = averages(LENGTHS[0]), math.inf
    for length, finer in pairwise(LENGTHS):
        after = averages(finer)
        if np.abs(after - before).max() <= RESOLVED * max(float(after.max()), 1e-300):
            return length
        before = after
        if length == KINKED_LENGTH:
            kinked = float(np.abs(after - averages(length)).max() / max(float(after.max()), 1e-300))
    if kinked <= WORST_ERROR:  # kinks that move with the label limit the accuracy
        channel.error = max(channel.error, kinked)
        return KINKED_LENGTH
    raise Refused(
        f"channel = {channel.name!r} is not allowed: averages over the score do not converge, because the likelihood varies too fast or "
        "has jumps that were not found; use more noise, or give the places of jumps and kinks with kinks="
    )


def _label_rule(channel: OutputChannel) -> tuple[Array, Array]:
    """Return nodes and weights for integrals over real labels, on panels that are refined where some score needs it."""
    from scipy.integrate import quad_vec

    drawn = channel.draw(np.random.default_rng(0), np.repeat(np.linspace(-4, 4, 33), 60))
    refuse(not np.isfinite(drawn).all(), f"sampler of {channel.name} is not allowed: its labels must be finite")
    middle = float(np.median(drawn))
    size = float(np.subtract(*np.quantile(drawn, [0.75, 0.25]))) or 1.0
    if channel._parts["form"] == "link":
        tau, link = (
            channel._parts["noise"],
            np.asarray(channel._parts["function"](np.linspace(-REACH, REACH, 4001)), dtype=float),
        )
        low, high = float(link.min()) - 9 * tau, float(link.max()) + 9 * tau
        count = math.ceil((high - low) / (0.35 * tau))  # evenly spaced labels integrate Gaussian noise to about 1e-15
        if count > MOST_LABELS:
            raise Refused(
                f"noise = {tau:g} is not allowed: must be above {(high - low) / (0.35 * MOST_LABELS):.2g}, because the labels have the "
                f"range {high - low:.3g}; use more noise, or a link that grows more slowly"
            )
        labels = np.linspace(low, high, count)
        return labels, np.full(count, labels[1] - labels[0])

    def mapped(t: Any) -> Any:
        return middle + size * t / (1 - t**2)

    z = np.linspace(-8, 8, 65)

    def integrand(t: float) -> Array:
        y = np.full(z.shape, mapped(t))
        return np.nan_to_num(channel.likelihood(y, z) * size * (1 + t**2) / (1 - t**2) ** 2, nan=0.0, posinf=0.0)

    for count in (65, 129):
        z = np.linspace(-8, 8, count)
        _, _, info = quad_vec(
            integrand, -1 + 1e-9, 1 - 1e-9, epsabs=1e-9, epsrel=0, norm="max", limit=150, points=[0.0], full_output=True
        )
        intervals = np.asarray(info.intervals)
        edges = np.unique(np.round(intervals.ravel(), 15))
        points, weights = np.polynomial.legendre.leggauss(ORDER)
        t = (edges[:-1, None] + np.diff(edges)[:, None] * (points + 1) / 2).ravel()
        step = (np.diff(edges)[:, None] * weights / 2).ravel()
        y, w = mapped(t), step * size * (1 + t**2) / (1 - t**2) ** 2
        between = np.linspace(-7.93, 7.93, 300)
        total = w @ channel.likelihood(y[:, None], between[None])
        if np.ptp(total) < RESOLVED:
            break
    if np.ptp(total) < WORST_LABEL_ERROR:
        channel.error = max(channel.error, float(np.ptp(total)))
    else:
        raise Refused(
            f"log_likelihood of {channel.name} is not allowed: its integral over the labels varies between {total.min():.6g} and "
            f"{total.max():.6g} with the score; normalise it for every score, or use more noise"
        )
    keep = (w[:, None] * channel.likelihood(y[:, None], z[None])).max(axis=1) > 1e-16
    return y[keep], w[keep]


# -- priors ---------------------------------------------------------------------------------------------------------------


class Posterior(NamedTuple):
    """Density of observations, and the prior's moments of order 1 and 2 given each observation."""

    evidence: Array
    mean: Array
    square: Array


class CoefficientPrior(FromFunctions):
    """The distribution of independent coefficients with E x^2 = 1, made by `table` or `from_density`.

    Attributes
    ----------
    points, weights
        Values of the discrete part and their probabilities.
    mean
        The mean of a coefficient.

    Examples
    --------
    >>> three = CoefficientPrior.table([-1.0, 0.0, 1.0], [0.25, 0.5, 0.25], scale=True)
    >>> three.points.round(6).tolist(), three.mean
    ([-1.414214, 0.0, 1.414214], 0.0)
    >>> gaussian = CoefficientPrior.from_density(lambda x: np.exp(-x**2 / 2) / np.sqrt(2 * np.pi), -12, 12)
    >>> gaussian.posterior(np.array([1.0]), 1.0).mean.round(9).tolist()
    [0.5]
    """

    WORD = "prior"
    ALLOWED = "a CoefficientPrior (in Python)"
    HOW = "a name, or a prior made by CoefficientPrior.table(values, probabilities) or CoefficientPrior.from_density(density, low, high)"

    points: Array
    weights: Array

    def __init__(self, *_: Any, **__: Any) -> None:
        raise Refused(f"prior is not allowed: must be {self.HOW}")

    @classmethod
    def table(cls, values: ArrayLike, probabilities: ArrayLike, *, scale: bool = False) -> CoefficientPrior:
        """Return the prior of a discrete coefficient. With `scale` the values are divided by their root mean square."""
        x, p = array("values", values, shape=("k",)), array("probabilities", probabilities, shape=("k",), least=0)
        refuse(
            len(x) != len(p),
            f"probabilities of shape {p.shape} is not allowed: must have one entry for each of {len(x)} values",
        )
        refuse(
            abs(p.sum() - 1) > SAME,
            f"probabilities is not allowed: they add up to {p.sum():.10g} and must add up to 1; divide them by their sum",
        )
        return _prior(cls, x, p / p.sum(), None, scale)

    @classmethod
    def from_density(
        cls,
        density: Callable[[Array], Any],
        low: float,
        high: float,
        *,
        atoms: Sequence[tuple[float, float]] = (),
        scale: bool = False,
    ) -> CoefficientPrior:
        """Return the prior with a density between `low` and `high` and with atoms (value, probability).

        The integral of the density and the probabilities must add up to 1. With `scale` the coefficients are divided by their root mean
        square.
        """
        a = number("low", low, remedy="cut off the tails where their mass is negligible")
        b = number("high", high, above=a, remedy="cut off the tails where their mass is negligible")
        x = array("atoms", [value for value, _ in atoms])
        p = array("atoms", [share for _, share in atoms], least=0)
        return _prior(cls, x, p, (density, a, b), scale)

    # -- the prior --------------------------------------------------------------------------------------------------------

    @property
    def discrete(self) -> bool:
        """Whether the prior is a table."""
        return self._density is None

    @cached_property
    def mean(self) -> float:
        """The mean of a coefficient."""
        total = float(self.points @ self.weights)
        if self._density is not None:
            x, w = self.rule()
            total += float(w @ x)
        return total

    def rule(self, length: float = math.inf) -> tuple[Array, Array]:
        """Return nodes and weights of integrals over the continuous part, on panels of at most this length."""
        if self._density is None:
            return np.zeros(0), np.zeros(0)
        edges = [
            np.linspace(left, right, math.ceil((right - left) / length) + 1 if math.isfinite(length) else 2)
            for left, right in self._panels
        ]
        points, weights = np.polynomial.legendre.leggauss(16)
        nodes, steps = [], []
        for line in edges:
            widths = np.diff(line)[:, None]
            nodes.append((line[:-1, None] + widths * (points + 1) / 2).ravel())
            steps.append((widths * weights / 2).ravel())
        x = np.concatenate(nodes)
        return x, np.concatenate(steps) * self.density(x)

    def density(self, x: Array) -> Array:
        """Return the density of the continuous part."""
        if self._density is None:
            return np.zeros_like(x)
        function, low, high = self._density
        inside = np.clip(x * self._scale, low, high)
        values = np.broadcast_to(np.asarray(function(inside), dtype=float), x.shape) * self._scale
        return np.where((x * self._scale >= low) & (x * self._scale <= high), values, 0.0)

    @property
    def support(self) -> tuple[float, float]:
        """The least and the largest coefficient."""
        ends = [*self.points.tolist()]
        if self._density is not None:
            ends += [self._density[1] / self._scale, self._density[2] / self._scale]
        return min(ends), max(ends)

    def posterior(self, observation: Array, variance: float) -> Posterior:
        """Return the density of observations x + noise of this variance, and the posterior moments of x given each."""
        spread, R = math.sqrt(variance), np.asarray(observation, dtype=float)
        logs = [-((R[:, None] - self.points) ** 2) / (2 * variance) + np.log(np.maximum(self.weights, 1e-300))]
        values = [np.broadcast_to(self.points, (R.size, self.points.size))]
        if self._density is not None:
            low, high = self._density[1] / self._scale, self._density[2] / self._scale
            x, w = self.rule(3 * spread) if spread > (high - low) / FINE_POSTERIOR else (np.zeros(0), np.zeros(0))
            if x.size:
                with np.errstate(divide="ignore"):
                    logs.append(-((R[:, None] - x) ** 2) / (2 * variance) + np.log(w))
                values.append(np.broadcast_to(x, (R.size, x.size)))
            else:
                centre = np.clip(R, low, high)  # nodes stay inside the support
                t, weight = between_kinks((low, high), centre, spread, panels=4, order=ORDER, reach=REACH)
                x = centre[:, None] + spread * t
                outside = (x < low) | (x > high)
                plain = weight * np.exp(t**2 / 2) * math.sqrt(2 * math.pi) * spread  # the weights without the Gaussian
                with np.errstate(divide="ignore"):
                    logs.append(
                        np.where(outside, -np.inf, -((R[:, None] - x) ** 2) / (2 * variance))
                        + np.log(plain * self.density(x))
                    )
                values.append(np.clip(x, low, high))
        table, points = np.concatenate(logs, axis=1), np.concatenate(values, axis=1)
        top = table.max(axis=1, keepdims=True)
        share = np.exp(table - top)
        total = share.sum(axis=1)
        mean = (share * points).sum(axis=1) / total
        square = (share * (points - mean[:, None]) ** 2).sum(axis=1) / total
        evidence = total * np.exp(top[:, 0]) / math.sqrt(2 * math.pi * variance)
        return Posterior(evidence, mean, square)

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """Draw `size` coefficients, by inversion of the distribution function."""
        values, shares = self._quantiles
        return np.interp(rng.random(size), shares, values) if self._density is not None else self._drawn(rng, size)

    def _drawn(self, rng: np.random.Generator, size: int) -> Array:
        return np.asarray(rng.choice(self.points, size=size, p=self.weights / self.weights.sum()))

    @cached_property
    def _quantiles(self) -> tuple[Array, Array]:
        """Values and distribution function on a fine grid, in which every atom is a jump."""
        if self._density is None:
            return np.zeros(0), np.zeros(0)
        low, high = self._density[1] / self._scale, self._density[2] / self._scale
        x = np.unique(np.concatenate([np.linspace(low, high, 20001), *(np.linspace(a, b, 65) for a, b in self._panels)]))
        middle = (x[:-1] + x[1:]) / 2
        simpson = (self.density(x[:-1]) + 4 * self.density(middle) + self.density(x[1:])) / 6 * np.diff(x)
        cumulated = np.concatenate([[0.0], np.cumsum(simpson)])
        for point, share in sorted(zip(self.points.tolist(), self.weights.tolist(), strict=True)):
            at = float(np.interp(point, x, cumulated, left=cumulated[0], right=cumulated[-1]))
            i = int(np.searchsorted(x, point))
            x = np.insert(x, i, [point, point])
            cumulated = np.concatenate([cumulated[:i], [at, at + share], cumulated[i:] + share])
        return x, cumulated / cumulated[-1]

    def record(self) -> Any:
        """Return the record of the prior in JSON, which restores a table."""
        if self._density is None:
            return {"values": self.points.tolist(), "probabilities": self.weights.tolist()}
        return self.name

    @classmethod
    def _validated(cls, given: Any) -> Self:
        if isinstance(given, dict) and set(given) == {"values", "probabilities"}:
            try:
                made: Any = cls.table(given["values"], given["probabilities"])
                return made
            except Refused as error:
                raise PydanticCustomError(cls.WORD, "{reason}", {"reason": str(error)}) from None
        return super()._validated(given)

    def __reduce__(self) -> tuple[Any, ...]:
        return _prior_remade, (self.points, self.weights, self._density, self._scale, self._panels, self.name)

    _density: tuple[Callable[[Array], Any], float, float] | None
    _scale: float
    _panels: tuple[tuple[float, float], ...]


FINE_POSTERIOR = 40.0  # a narrower noise than the support over this number uses nodes around each observation


def _prior_remade(
    points: Array, weights: Array, density: Any, scale: float, panels: tuple[tuple[float, float], ...], name: str
) -> CoefficientPrior:
    made = object.__new__(CoefficientPrior)
    made.points, made.weights, made._density, made._scale, made._panels, made.name = (
        points,
        weights,
        density,
        scale,
        panels,
        name,
    )
    return made


def _prior(cls: type[CoefficientPrior], x: Array, p: Array, density: Any, scale: bool) -> CoefficientPrior:
    """Return the prior after the checks of normalisation and second moment."""
    from scipy.integrate import quad_vec

    refuse(density is None and not x.size, "values is not allowed: must hold at least one number")
    panels: tuple[tuple[float, float], ...] = ()
    mass, square, name = float(p.sum()), float(p @ x**2), ""
    if density is not None:
        function, low, high = density
        grid = low + (high - low) * (np.arange(200) + 0.5) / 200
        values = _called("density", function, grid, shape=grid.shape)
        refuse(
            (values < 0).any() or not np.isfinite(values).all(),
            f"density = {function!r} is not allowed: must be finite and at least 0",
        )

        def integrand(point: float) -> Array:
            value = float(np.ravel(function(np.array([point])))[0])
            return value * np.array([1.0, point, point**2, math.cos(3 * point), math.sin(3 * point)])

        with np.errstate(all="ignore"):
            result, error, info = quad_vec(
                integrand, low, high, epsabs=1e-11, epsrel=0, norm="max", limit=400, full_output=True
            )
        refuse(
            not np.isfinite(result).all() or not error < 1e-8,
            f"density = {function!r} is not allowed: its integral between {low:g} and {high:g} does not converge; an improper prior has no "
            "Bayes error, and a density that varies too fast needs a table",
        )
        mass, square = mass + float(result[0]), square + float(result[2])
        intervals = np.asarray(info.intervals)
        panels = tuple((float(a), float(b)) for a, b in intervals[np.argsort(intervals[:, 0])])
        name = record(function, values, np.array([low, high]))
    refuse(
        abs(mass - 1) > NORMALISED,
        f"density is not allowed: its integral and the probabilities of the atoms add up to {mass:.8g} and must add up to 1; divide by "
        f"{mass:.8g}",
    )
    refuse(not square > 0, "values is not allowed: one coefficient must differ from 0")
    refuse(
        not scale and abs(square - 1) > NORMALISED,
        f"prior is not allowed: its mean square is {square:.8g} and must be 1; divide the coefficients by {math.sqrt(square):.8g}, or set "
        "scale=True",
    )
    size = math.sqrt(square)
    merged, index = np.unique(x / size, return_inverse=True)
    weights = np.bincount(index, weights=p, minlength=merged.size).astype(float)
    panels = tuple((a / size, b / size) for a, b in panels)
    name += "" if not x.size else f"atoms({', '.join(f'{v:.9g}:{w:.9g}' for v, w in zip(merged, weights, strict=True))})"
    return _prior_remade(merged, weights, density, size, panels, name)
