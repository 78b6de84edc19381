r"""Exact errors of k nearest neighbours at a cusp.

Setting.  n inputs uniform in the unit ball of R^d; y = C |x|^beta + noise of variance tau^2. The estimate at the origin is
          the mean of the labels of the k nearest inputs.
Limit.    None. The law is exact at every n and k, because |x|^d is uniform on [0, 1] and the estimate depends on its k smallest order
          statistics only.
Result.   With b = beta/d and the ratio (x)_b = Gamma(x+b)/Gamma(x) (docs/theory/local_averages.md),

              E[bias]   = C (k)_{1+b} / (k (1+b) (n+1)_b),                                                        (2)
              E[bias^2] = C^2 (k)_{1+2b} / (k^2 (n+1)_{2b}) * (1/(1+2b) + (k-1)/(1+b)^2),                         (3)
              test      = tau^2 + E[bias^2] + tau^2/k.                                                            (4)

          At the best k, (k/n)^{2b} and 1/k are of the same order, and the excess risk falls like n^{-2 beta/(2 beta + d)}. One
          neighbour interpolates the training labels, and its test error tends to 2 tau^2, not to infinity.
Status.   Derived here from moments of order statistics, which are summed in closed form. Simulations check the result. The rate is a
          classical theorem (Gyorfi et al. 2002).
"""

from __future__ import annotations

import math
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab._core.cost import Cost
from limitlab.errors import Refused
from limitlab.laws import CLOSED_FORM, Draw, Experiment, Headline, Law, Mark, Values, parameter
from limitlab.laws.regression._cusp import Labels, drawn_errors, summary_of_errors
from limitlab.laws.regression._neighbour_averages import bias_moments
from limitlab.models.data import sphere
from limitlab.models.index_functions import IndexFunction
from limitlab.numerics.special import gamma_ratio

__all__ = ["NearestNeighbours"]

Array = NDArray[np.float64]

BLOCK = 4_000_000
"""Number of random numbers drawn at once."""
MOST = 3
"""Largest dimension for a target function."""
COARSE = (0.75, 0.62, 0.5)
"""Shares of the nodes of further quadratures for a target function, from which its accuracy is estimated."""
SAFETY = 3
"""Factor of the largest change between these quadratures, because kinks make the changes irregular."""
ROUNDING = 1e-12
SCAN = 2000
"""Number of whole numbers tried at once in the search for the best k."""


def risk(
    samples: ArrayLike,
    neighbours: ArrayLike,
    dimension: ArrayLike = 2,
    smoothness: ArrayLike = 1.0,
    amplitude: ArrayLike = 1.0,
    noise: ArrayLike = 0.5,
) -> dict[str, Array]:
    """Return the exact observables. The arguments n, k, d, beta, C and tau broadcast.

    The formulas also hold for real `samples` and `neighbours`, so that an optimiser can vary them continuously.

    Examples
    --------
    >>> values = risk(samples=100, neighbours=1, dimension=2, amplitude=1.5, noise=0.3**0.5)
    >>> round(float(values["squared_bias"]), 12), round(float(values["test_error"]), 12)
    (0.022277227723, 0.622277227723)
    """
    n, k, d, beta, c, tau = (
        np.asarray(a, dtype=float) for a in (samples, neighbours, dimension, smoothness, amplitude, noise)
    )
    _check_counts(n, k)
    b = beta / d
    mean_bias = c * gamma_ratio(k, 1 + b) / (k * (1 + b) * gamma_ratio(n + 1, b))  # eq. 2
    spread = 1 / (1 + 2 * b) + (k - 1) / (1 + b) ** 2
    squared_bias = c**2 * gamma_ratio(k, 1 + 2 * b) / (k**2 * gamma_ratio(n + 1, 2 * b)) * spread  # eq. 3
    variance = tau**2 / k
    excess = squared_bias + variance
    test = excess + tau**2  # eq. 4
    return dict(mean_bias=mean_bias, squared_bias=squared_bias, variance=variance, excess_risk=excess, test_error=test)


def _check_counts(n: Array, k: Array) -> None:
    n, k = np.broadcast_arrays(n, k)
    if not np.all(k >= 1):
        raise Refused(f"neighbours = {np.min(k):g} is not allowed: must be at least 1")
    if not np.all(k <= n):
        worst = np.unravel_index(int(np.argmax(k - n)), k.shape)
        raise Refused(
            f"neighbours = {k[worst]:g} is not allowed: must be at most samples = {n[worst]:g}; "
            "lower neighbours, raise samples, or keep the grid or bounds where neighbours <= samples"
        )


def _check_whole(k: Array) -> None:
    if np.any(k != np.round(k)) or np.any(k < 1):
        raise Refused("neighbours must be whole numbers of at least 1 in an experiment: round the grid")


def rate_exponent(dimension: ArrayLike, smoothness: ArrayLike) -> Array:
    """Return the exponent r = 2 beta/(2 beta + d) with which the excess risk at the best k falls, like samples^-r.

    >>> float(rate_exponent(2, 1.0))
    0.5
    """
    d, beta = np.asarray(dimension, dtype=float), np.asarray(smoothness, dtype=float)
    return np.asarray(2 * beta / (2 * beta + d))


class NearestNeighbours(Law):
    """How well does the mean of the k nearest labels estimate a rough function from n noisy samples?

    The query is the tip of a cusp C|x|^beta, and the samples are uniform in the unit ball around it. No function with the same Holder
    exponent and constant has a larger bias at the query. If the inputs have a density p(x) at the query, rescale distances so that the
    volume of the ball is 1/p(x).

    Examples
    --------
    >>> law = NearestNeighbours(samples=1000, neighbours=20, dimension=5, smoothness=0.5, noise=1.0)
    >>> round(float(law.theory().test_error), 10)
    1.4302989032
    >>> law.best_neighbours()
    15
    """

    status = "derived"
    regime = "every number of samples n, neighbours k <= n and dimension d: exact at finite n"
    assumptions = (
        "inputs uniform in the unit ball, query at its centre",
        "target amplitude * |x|^smoothness (Holder exponent in (0, 1])",
        "independent label noise of mean 0 and standard deviation `noise`",
    )
    references = ("biau2015lectures", "gyorfi2002distribution")
    page = "local_averages"
    observables = ("mean_bias", "squared_bias", "variance", "excess_risk", "test_error")
    simulation = Experiment("number of independent training sets", sizes=(200, 400, 800), rate=math.inf)
    # Drawn and averaged labels; no exponent is 1.
    points = (
        dict(samples=60, neighbours=4, dimension=3, smoothness=0.7, amplitude=1.5, noise=0.6, labels="drawn"),
        dict(samples=200, neighbours=7, dimension=2, smoothness=0.8, amplitude=1.3, noise=0.7),
    )
    headline = Headline(
        "Too few and too many neighbours both hurt",
        x="neighbours",
        over=(1.0, 100.0, 61),
        scale="log",
        y_scale="log",
        whole=True,
        show=("excess_risk",),
        curves=("samples", (100, 1000, 10000)),
        size=200,
        draws=2,
        places=(1.0, 3.0, 10.0, 30.0, 100.0),
        sliders=("dimension", "noise"),
        marks=(Mark("x", lambda law: float(law.best_neighbours()), "best number", each=True),),
    )

    samples: int = parameter(100, least=1, scale="log")
    neighbours: int = parameter(
        5, "number of neighbours averaged", note="at most `samples`", symbol="k", least=1, scale="log"
    )
    dimension: int = parameter(2, note="of the inputs", least=1)
    smoothness: float = parameter(1.0, above=0, most=1)
    amplitude: float = parameter(1.0, least=0)
    noise: float = parameter(0.5, least=0)
    labels: Labels = parameter("averaged", kind="experiment")
    target_function: IndexFunction | None = parameter(
        None,
        note="of the position in place of the cusp, in up to three dimensions; one argument per coordinate, query at 0",
        added=True,
    )

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of a draw, which processes its queries in blocks."""
        return Cost(
            1e5 + 70.0 * size + 10.0 * self.samples * self.dimension,
            1e7 + 3.0 * size * self.samples * self.dimension + 1e5 * size,
        )

    @model_validator(mode="after")
    def _enough_samples(self) -> Self:
        _check_counts(np.asarray(float(self.samples)), np.asarray(float(self.neighbours)))
        self._check_target(np.asarray(self.dimension), np.asarray(self.smoothness), np.asarray(self.amplitude))
        return self

    def _check_target(self, dimension: Array, smoothness: Array, amplitude: Array) -> None:
        """Raise `Refused` if a target function has the wrong dimension or is combined with a Holder exponent or constant."""
        target = self.target_function
        if target is None:
            return
        if target.index > MOST or np.any(dimension != target.index):
            raise Refused(
                f"target_function with {target.index} arguments and dimension = {dimension.flat[0]} is not allowed: must have one argument "
                f"per coordinate, in at most {MOST} dimensions"
            )
        for name, value in (("smoothness", smoothness), ("amplitude", amplitude)):
            if np.any(value != type(self).model_fields[name].default):
                raise Refused(
                    f"{name} = {value.flat[0]:g} is not allowed together with target_function, whose Holder exponent and constant are not "
                    f"known: omit {name}"
                )

    def predicted(
        self, samples: Array, neighbours: Array, dimension: Array, smoothness: Array, amplitude: Array, noise: Array
    ) -> Values:
        """Return the exact observables over a grid of any of the numerical parameters."""
        if self.target_function is not None:
            self._check_target(dimension, smoothness, amplitude)
            return self._of_target(samples, neighbours, noise)
        return {**risk(samples, neighbours, dimension, smoothness, amplitude, noise), "accuracy": CLOSED_FORM}

    def _of_target(self, samples: Array, neighbours: Array, noise: Array) -> Values:
        """Return the observables of a target function. The accuracy is estimated from quadratures with fewer nodes."""
        assert self.target_function is not None
        n, k, tau = np.broadcast_arrays(samples, neighbours, noise)
        _check_counts(n, k)
        pairs = list(zip(n.ravel(), k.ravel(), strict=True))
        fine, *others = (
            np.array([bias_moments(self.target_function, float(a), float(b), share) for a, b in pairs])
            for share in (1.0, *COARSE)
        )
        mean_bias, squared_bias = (np.reshape(column, n.shape) for column in fine.T)
        variance = np.square(tau) / k
        excess = squared_bias + variance
        change = np.max([np.abs(fine - other).max(axis=0) for other in others], axis=0)
        first, second = SAFETY * change + ROUNDING * np.abs(fine).max(axis=0)
        accuracy = dict(mean_bias=first, squared_bias=second, variance=CLOSED_FORM, excess_risk=second, test_error=second)
        values = dict(
            mean_bias=mean_bias, squared_bias=squared_bias, variance=variance, excess_risk=excess, test_error=excess + tau**2
        )
        return {**values, "accuracy": accuracy}

    def best_neighbours(self) -> int:
        """Return the k that minimises the excess risk.

        >>> NearestNeighbours(samples=10_000, dimension=1).best_neighbours()
        368
        """
        low, high = 1, self.samples
        while True:  # try all whole numbers if they are few, otherwise narrow the range by a geometric scan
            k = np.unique(np.round(np.geomspace(low, high, SCAN))) if high - low > SCAN else np.arange(low, high + 1.0)
            best = int(np.argmin(self.evaluate(neighbours=k)["excess_risk"]))
            if high - low <= SCAN:
                return int(k[best])
            low, high = int(k[max(best - 1, 0)]), int(k[min(best + 1, k.size - 1)])

    def rate_exponent(self) -> float:
        """Return the exponent r with which the excess risk at the best k falls, like samples^-r.

        >>> NearestNeighbours(dimension=1, smoothness=1.0).rate_exponent()
        0.6666666666666666
        """
        if self.target_function is not None:
            raise Refused(
                "rate_exponent is not known for target_function, because its Holder exponent is not known: give smoothness and amplitude"
            )
        return float(rate_exponent(self.dimension, self.smoothness))

    def measured(self, draw: Draw, neighbours: Array, smoothness: Array, amplitude: Array, noise: Array) -> Values:
        """Return means over `size` training sets. All values of these parameters use the same draw of the distances."""
        arrays = np.broadcast_arrays(neighbours, smoothness, amplitude, noise)
        k, beta, c, tau = (array.ravel() for array in arrays)
        self._check_target(np.asarray(self.dimension), beta, c)
        _check_whole(k)
        _check_counts(np.asarray(float(self.samples)), k)
        rows = (self._averaged_labels if self.labels == "averaged" else self._drawn_labels)(draw, k, beta, c, tau)
        return {name: row.reshape(arrays[0].shape) for name, row in rows.items()}

    def _averaged_labels(
        self, draw: Draw, neighbours: Array, smoothness: Array, amplitude: Array, noise: Array
    ) -> dict[str, Array]:
        """Return the observables with the bias from drawn order statistics and the exact variance tau^2/k."""
        most, size = int(neighbours.max()), draw.size
        sums = np.zeros((2, neighbours.size))
        blocks = -(-size * self.samples // BLOCK)
        for sets, rng in zip(np.array_split(np.arange(size), blocks), draw.rng.spawn(blocks), strict=True):
            marks = smallest_uniforms(rng, self.samples, most, len(sets))
            if self.target_function is not None:
                x = marks ** (1 / self.dimension) * sphere(rng, marks.size, self.dimension).T.reshape(-1, *marks.shape)
                gaps = self.target_function(x.reshape(self.dimension, -1)).reshape(marks.shape) - self._at_query()
                biases = (np.cumsum(gaps, axis=0) / np.arange(1, most + 1)[:, None])[neighbours.astype(int) - 1]
                sums += biases.sum(axis=1), (biases**2).sum(axis=1)
                continue
            for beta in np.unique(smoothness):
                means = np.cumsum(marks ** (beta / self.dimension), axis=0) / np.arange(1, most + 1)[:, None]
                for j in np.flatnonzero(smoothness == beta):
                    bias = amplitude[j] * means[int(neighbours[j]) - 1]
                    sums[:, j] += bias.sum(), (bias**2).sum()
        mean_bias, squared_bias = sums / size
        variance = noise**2 / neighbours
        excess = squared_bias + variance
        return dict(
            mean_bias=mean_bias,
            squared_bias=squared_bias,
            variance=variance,
            excess_risk=excess,
            test_error=excess + noise**2,
        )

    def _at_query(self) -> float:
        """Return the value of the target function at the query."""
        assert self.target_function is not None
        return float(self.target_function(np.zeros((self.dimension, 1)))[0])

    def _drawn_labels(
        self, draw: Draw, neighbours: Array, smoothness: Array, amplitude: Array, noise: Array
    ) -> dict[str, Array]:
        """Return the observables of estimators fitted to drawn points and labels. All parameter values share points and noise."""
        from limitlab.laws.regression._smoothers import NearestNeighbourRegressor

        runs = []
        for k, beta, c, tau in zip(neighbours, smoothness, amplitude, noise, strict=True):
            rng, model = self.draw(draw.size, draw.seed).rng, NearestNeighbourRegressor(neighbours=int(k))
            offset = 0.0 if self.target_function is None else self._at_query()
            errors, _ = drawn_errors(
                rng, model, draw.size, self.samples, self.dimension, beta, c, tau, offset, self.target_function
            )
            new_noise = tau * rng.standard_normal(errors.shape)
            runs.append({**summary_of_errors(errors), "test_error": np.mean((new_noise - errors) ** 2)})
        return {name: np.array([run[name] for run in runs]) for name in self.observables}


def smallest_uniforms(rng: np.random.Generator, samples: int, smallest: int, sets: int) -> Array:
    """Return the `smallest` smallest of `samples` uniform numbers in increasing order, for `sets` sets, of shape (smallest, sets).

    By Renyi's representation, -log(1 - U_(l)) is a sum of independent exponentials E_i/(n - i + 1), i <= l. The first rows do
    not depend on `smallest`.

    >>> draws = smallest_uniforms(np.random.default_rng(0), samples=9, smallest=2, sets=100_000)
    >>> draws.mean(axis=1).round(3).tolist()                           # l / (n + 1)
    [0.1, 0.2]
    """
    spacing = rng.standard_exponential((smallest, sets)) / (samples - np.arange(smallest))[:, None]
    return np.asarray(-np.expm1(-np.cumsum(spacing, axis=0)))
