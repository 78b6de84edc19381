r"""Kernel smoother that interpolates its labels, because its kernel is infinite at zero.

Setting.  n inputs uniform in the unit ball of R^d; y = f_0 + C |x|^beta + noise of variance tau^2. The estimate at the tip
          is the mean of the labels within distance h, weighted by |x|^-a, and 0 if there are no such labels. At a sample the
          weight is infinite, so the fitted function passes through every noisy label, for every h.
Limit.    None. The law is exact at every n.
Result.   With q = a/d, b = beta/d, p = h^d, U uniform, K = U^-q and Phi(t) = 1 - p + p E e^{-tK}, variance V, squared bias B2 and
          excess risk are integrals over t (docs/theory/local_averages.md),

              V  = tau^2 n p int t E[K^2 e^{-tK}] Phi^{n-1} dt,                                                   (8)
              B2 = C^2 h^{2 beta} { n p int t E[U^{2b} K^2 e^{-tK}] Phi^{n-1} dt
                                    + n (n-1) p^2 int t (E[U^b K e^{-tK}])^2 Phi^{n-2} dt },                      (9)
              excess risk = V + B2 + f_0^2 (1-p)^n.                                                              (10)

          For a < d/2 and h = n^{-1/(2 beta + d)} the excess risk falls like n^{-2 beta/(2 beta + d)}, which is the best
          possible rate, although the estimator fits the noise exactly. For d/2 < a < d the estimator also interpolates, but its
          excess risk falls more slowly.
Status.   The identities (8)-(10) are derived here, and simulations check them. The rate is a theorem (Belkin, Rakhlin and Tsybakov 2019).
"""

from __future__ import annotations

import math
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab._core.cost import Cost
from limitlab.errors import ConvergenceError, Refused
from limitlab.laws import Draw, Experiment, Headline, Law, Values, observable, parameter, shared
from limitlab.laws.regression._cusp import Labels, drawn_errors, summary_of_errors
from limitlab.laws.regression._laplace import weighted_average

__all__ = ["SingularKernelSmoother"]

Array = NDArray[np.float64]

ACCEPTED = 1e-8
"""Relative error above which the quadrature counts as not converged."""
BLOCK = 2_000_000
"""Number of points drawn at once."""
SCAN = 200
"""Number of bandwidths in the first scan of the search for the best bandwidth."""


def risk(
    samples: ArrayLike,
    bandwidth: ArrayLike,
    singularity: ArrayLike,
    dimension: ArrayLike = 2,
    smoothness: ArrayLike = 1.0,
    amplitude: ArrayLike = 1.0,
    noise: ArrayLike = 0.5,
    offset: ArrayLike = 0.0,
) -> dict[str, Array]:
    """Return the exact observables and their `accuracy`. The arguments n, h, a, d, beta, C, tau and f_0 broadcast.

    Examples
    --------
    >>> values = risk(samples=200, bandwidth=0.4, singularity=0.6, dimension=2, amplitude=1.5, noise=0.3**0.5)
    >>> round(float(values["variance"]), 10), round(float(values["squared_bias"]), 10)
    (0.0113548982, 0.1259796218)
    """
    n, h, a, d, beta, c, tau, f0 = (
        np.asarray(x, dtype=float)
        for x in (samples, bandwidth, singularity, dimension, smoothness, amplitude, noise, offset)
    )
    _check_singularity(a, d)
    p = _window(h, d)
    average = weighted_average(n, p, a / d, beta / d)
    accuracy = float(average.accuracy.max(initial=0.0))
    if not accuracy <= ACCEPTED:
        raise ConvergenceError(f"the Laplace quadrature stopped at a relative error of {accuracy:.1e}", average, accuracy)
    with np.errstate(divide="ignore"):  # p = 1: the window is never empty
        empty = np.exp(n * np.log1p(-p))
    height = c * h**beta
    mean_bias = height * average.mean - f0 * empty
    squared_bias = height**2 * average.mean_square + f0**2 * empty
    variance = tau**2 * average.concentration
    mean_bias, squared_bias, variance, empty = np.broadcast_arrays(mean_bias, squared_bias, variance, empty)
    return dict(
        mean_bias=mean_bias,
        squared_bias=squared_bias,
        variance=variance,
        excess_risk=squared_bias + variance,
        empty_probability=empty,
        accuracy=np.asarray(accuracy),
    )


def leading_risk(
    samples: ArrayLike,
    bandwidth: ArrayLike,
    singularity: ArrayLike,
    dimension: ArrayLike = 2,
    smoothness: ArrayLike = 1.0,
    amplitude: ArrayLike = 1.0,
    noise: ArrayLike = 0.5,
) -> dict[str, Array]:
    """Return the leading terms for many samples in the window (m = n h^d -> infinity, h -> 0), eqs. 12-13.

    The exponents of the leading terms are correct, but their ratio to the exact values converges slowly near a = d/2. At m = 32 and
    a/d = 0.45 they are wrong by a factor of 1.8. Use `risk` for values.

    Examples
    --------
    >>> exact, leading = (rule(1e7, 0.01, 0.4, dimension=2)["variance"] for rule in (risk, leading_risk))
    >>> bool(abs(leading / exact - 1) < 0.01)
    True
    """
    n, h, a, d, beta, c, tau = (
        np.asarray(x, dtype=float) for x in (samples, bandwidth, singularity, dimension, smoothness, amplitude, noise)
    )
    _check_singularity(a, d)
    q, m = a / d, n * _window(h, d)
    variance = tau**2 * _leading_concentration(*np.broadcast_arrays(q, m))
    squared_bias = (c * h**beta * (1 - q) / (1 - q + beta / d)) ** 2
    squared_bias, variance = np.broadcast_arrays(squared_bias, variance)
    return dict(squared_bias=squared_bias, variance=variance, excess_risk=squared_bias + variance)


def _leading_concentration(q: Array, m: Array) -> Array:
    """Return the mean sum of squared weights for m expected neighbours.

    The formula has three cases, because the second moment of the kernel is finite, diverges logarithmically, or diverges as a power.
    """
    from scipy.special import gamma

    light, heavy = np.where(q < 0.5, q, 0.25), np.where(q > 0.5, q, 0.75)  # placeholders where a branch is not used
    finite = (1 - light) ** 2 / (1 - 2 * light) / m
    logarithmic = (np.log(2 * m) - 1) / (2 * m)
    infinite = gamma(2 - 1 / heavy) * gamma(1 / heavy) / heavy * (1 - heavy) ** (1 / heavy) * m ** (1 - 1 / heavy)
    return np.asarray(np.select([q < 0.5, q > 0.5], [finite, infinite], logarithmic))


def variance_exponent(singularity: ArrayLike, dimension: ArrayLike) -> Array:
    """Return the exponent of 1/(n h^d) in the variance, which is 1 for a <= d/2 (with a logarithm at a = d/2) and d/a - 1 above.

    >>> variance_exponent([0.5, 1.0, 1.5], 2).round(4).tolist()
    [1.0, 1.0, 0.3333]
    """
    a, d = np.asarray(singularity, dtype=float), np.asarray(dimension, dtype=float)
    return np.asarray(np.minimum(1.0, d / a - 1))


def rate_exponent(singularity: ArrayLike, dimension: ArrayLike, smoothness: ArrayLike) -> Array:
    """Return the exponent r of samples^-r in the excess risk at the best bandwidth (eq. 14).

    The exponent is 2 beta/(2 beta + d) for a <= d/2.

    >>> rate_exponent([0.5, 1.5], 2, 1.0).round(4).tolist()
    [0.5, 0.25]
    """
    d, beta, rho = np.asarray(dimension, float), np.asarray(smoothness, float), variance_exponent(singularity, dimension)
    return np.asarray(2 * beta * rho / (2 * beta + rho * d))


def _check_singularity(a: Array, d: Array) -> None:
    a, d = np.broadcast_arrays(a, d)
    wrong = ~((a > 0) & (a < d))
    if np.any(wrong):
        worst = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
        raise Refused(
            f"singularity = {a[worst]:g} is not allowed: must be above 0 and below dimension = {d[worst]:g}; "
            "below half the dimension it gives the optimal rate"
        )


def _window(h: Array, d: Array) -> Array:
    """Return the share of the ball that lies in the window."""
    wrong = ~((h > 0) & (h <= 1))
    if np.any(wrong):
        raise Refused(
            f"bandwidth = {h[wrong].flat[0]:g} is not allowed: must be above 0 and at most 1, the radius of the ball"
        )
    p = np.asarray(h**d)
    if np.any(p <= 0):
        raise Refused(
            "bandwidth is too small for this dimension: the volume bandwidth^dimension of the window rounds to 0; raise bandwidth"
        )
    return p


class SingularKernelSmoother(Law):
    """Can a smoother that passes through every noisy label still learn at the best possible rate?

    The query is the tip of a cusp, f_0 + C|x|^beta, and the samples are uniform in the unit ball around it.

    Examples
    --------
    >>> law = SingularKernelSmoother(samples=1000, bandwidth=0.3, singularity=1.2, dimension=3, smoothness=0.5, noise=1.0)
    >>> round(float(law.theory().excess_risk), 10)
    0.2427526083
    >>> round(law.best_bandwidth(), 4)
    0.2888
    """

    status = "derived"
    regime = "every number of samples n, bandwidth h <= 1 and singularity 0 < a < d: exact at finite n"
    assumptions = (
        "inputs uniform in the unit ball, query at its centre",
        "target offset + amplitude * |x|^smoothness (Holder exponent in (0, 1])",
        "independent label noise of mean 0 and standard deviation `noise`",
        "the estimate is 0 if the window is empty",
    )
    references = ("belkin2019does", "devroye1998hilbert")
    page = "local_averages"
    observables = {
        **shared("mean_bias", "squared_bias", "variance", "excess_risk"),
        "empty_probability": observable("probability that no sample is within the bandwidth", r"P_0", least=0, most=1),
    }
    simulation = Experiment("number of independent training sets", sizes=(400, 800, 1600), rate=math.inf)
    # Drawn and averaged labels, and a target that does not vanish at the tip; no exponent is 1.
    points = (
        dict(
            samples=40,
            bandwidth=0.35,
            singularity=0.6,
            dimension=2,
            smoothness=0.7,
            amplitude=1.5,
            noise=0.6,
            offset=0.4,
            labels="drawn",
        ),
        dict(
            samples=100,
            bandwidth=0.25,
            singularity=0.5,
            dimension=2,
            smoothness=0.8,
            amplitude=1.3,
            noise=0.7,
            offset=0.3,
        ),
    )
    headline = Headline(
        "Passing through noisy labels can still learn",
        x="samples",
        over=(60.0, 100000.0, 61),
        scale="log",
        y_scale="log",
        whole=True,
        show=("excess_risk",),
        curves=("bandwidth", (0.15, 0.25, 0.4)),
        size=400,
        draws=3,
        places=(60.0, 100.0, 200.0, 400.0, 1000.0, 3000.0),
        sliders=("singularity", "noise"),
    )

    samples: int = parameter(100, least=1, scale="log")
    bandwidth: float = parameter(0.2, "radius of the window", symbol="h", above=0, most=1, scale="log")
    singularity: float = parameter(0.6, "exponent of the kernel at zero", note="below `dimension`", symbol="a", above=0)
    dimension: int = parameter(2, note="of the inputs", least=1)
    smoothness: float = parameter(1.0, above=0, most=1)
    amplitude: float = parameter(1.0, least=0)
    noise: float = parameter(0.5, least=0)
    offset: float = parameter(0.0, "value of the target at the query", symbol="f_0")
    labels: Labels = parameter("averaged", kind="experiment")

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of a draw, which processes its queries in blocks."""
        return Cost(
            1e5 + 70.0 * size + 10.0 * self.samples * self.dimension,
            1e7 + 3.0 * size * self.samples * self.dimension + 1e5 * size,
        )

    @model_validator(mode="after")
    def _integrable_kernel(self) -> Self:
        _check_singularity(np.asarray(self.singularity), np.asarray(float(self.dimension)))
        return self

    def predicted(
        self,
        samples: Array,
        bandwidth: Array,
        singularity: Array,
        dimension: Array,
        smoothness: Array,
        amplitude: Array,
        noise: Array,
        offset: Array,
    ) -> Values:
        """Return the exact observables over a grid of any of the numerical parameters."""
        return risk(samples, bandwidth, singularity, dimension, smoothness, amplitude, noise, offset)

    def best_bandwidth(self, empty_cost: float | None = None) -> float:
        """Return the bandwidth in (0, 1] that minimises the excess risk, with an additional cost of empty windows.

        The estimate of an empty window is 0. If `offset` is 0, this estimate has no error, and without an additional cost the best
        bandwidth would be 0. `empty_cost` is the squared error that the search assigns to an empty window. Its default is the larger of
        offset^2 and amplitude^2 + noise^2. The result depends little on `empty_cost`, because at the best bandwidth windows are rarely
        empty.

        >>> law = SingularKernelSmoother(samples=10_000, dimension=2)
        >>> round(law.best_bandwidth() / 10_000**-0.25, 2)                 # in units of n^{-1/(2 beta + d)}
        0.97
        """
        from scipy.optimize import minimize_scalar

        price = max(self.offset**2, self.amplitude**2 + self.noise**2) if empty_cost is None else float(empty_cost)

        def cost(log_h: ArrayLike) -> Array:
            values = self.evaluate(bandwidth=np.exp(np.asarray(log_h)))
            return np.asarray(values["excess_risk"] + (price - self.offset**2) * values["empty_probability"])

        lowest = -np.log(10.0 * self.samples) / self.dimension  # the window contains a tenth of a sample on average
        scan = np.linspace(lowest, 0.0, SCAN)
        best = int(np.argmin(cost(scan)))
        bounds = (scan[max(best - 1, 0)], scan[min(best + 1, SCAN - 1)])
        refined = minimize_scalar(lambda log_h: float(cost(log_h)), bounds=bounds, method="bounded", options={"xatol": 1e-9})
        return float(np.exp(refined.x if refined.fun < cost(scan[best]) else scan[best]))

    def rate_exponent(self) -> float:
        """Return the exponent r with which the excess risk at the best bandwidth falls, like samples^-r.

        >>> SingularKernelSmoother(dimension=2, singularity=0.6).rate_exponent()
        0.5
        """
        return float(rate_exponent(self.singularity, self.dimension, self.smoothness))

    def measured(
        self, draw: Draw, singularity: Array, smoothness: Array, amplitude: Array, noise: Array, offset: Array
    ) -> Values:
        """Return means over `size` training sets. All values of these parameters use the same draw of the samples."""
        arrays = np.broadcast_arrays(singularity, smoothness, amplitude, noise, offset)
        a, beta, c, tau, f0 = (array.ravel() for array in arrays)
        _check_singularity(a, np.asarray(float(self.dimension)))
        rows = (self._averaged_labels if self.labels == "averaged" else self._drawn_labels)(draw, a, beta, c, tau, f0)
        return {name: row.reshape(arrays[0].shape) for name, row in rows.items()}

    def _averaged_labels(
        self, draw: Draw, singularity: Array, smoothness: Array, amplitude: Array, noise: Array, offset: Array
    ) -> dict[str, Array]:
        """Return the observables with bias and variance as sums over the weights of drawn distances."""
        rng, size, p = draw.rng, draw.size, self.bandwidth**self.dimension
        counts = rng.binomial(self.samples, p, size)
        q, b = singularity / self.dimension, smoothness / self.dimension
        sums = np.zeros((3, q.size))
        for block in _blocks(counts[counts > 0]):
            sums += window_sums(1.0 - rng.random(int(block.sum())), block, q, b)  # marks in (0, 1]
        height, empty = amplitude * self.bandwidth**smoothness, np.mean(counts == 0)
        squared_bias = height**2 * sums[1] / size + offset**2 * empty
        variance = noise**2 * sums[2] / size
        return dict(
            mean_bias=height * sums[0] / size - offset * empty,
            squared_bias=squared_bias,
            variance=variance,
            excess_risk=squared_bias + variance,
            empty_probability=np.full(q.size, share_of_empty_sets(int(counts.sum()), self.samples, size)),
        )

    def _drawn_labels(
        self, draw: Draw, singularity: Array, smoothness: Array, amplitude: Array, noise: Array, offset: Array
    ) -> dict[str, Array]:
        """Return the observables of estimators fitted to drawn points and labels. All parameter values share points and noise."""
        from limitlab.laws.regression._smoothers import SingularKernelRegressor

        runs = []
        for a, beta, c, tau, f0 in zip(singularity, smoothness, amplitude, noise, offset, strict=True):
            rng = self.draw(draw.size, draw.seed).rng
            model = SingularKernelRegressor(bandwidth=self.bandwidth, singularity=float(a))
            errors, distances = drawn_errors(rng, model, draw.size, self.samples, self.dimension, beta, c, tau, f0)
            inside = int((distances <= self.bandwidth).sum())
            empty = share_of_empty_sets(inside, self.samples, draw.size)
            runs.append({**summary_of_errors(errors), "empty_probability": np.asarray(empty)})
        return {name: np.array([run[name] for run in runs]) for name in self.observables}


def window_sums(marks: Array, counts: NDArray[np.int64], tail: Array, power: Array) -> Array:
    """Return sums over windows of the weighted average, its square, and the sum of squared weights.

    The result has one column per pair (tail, power). `marks` holds the uniform marks of all windows, one window after another.
    `counts` holds the number of marks of each window, which is at least 1.

    >>> window_sums(np.array([0.25, 1.0]), np.array([2]), np.array([0.5]), np.array([1.0])).ravel().round(4).tolist()
    [0.5, 0.25, 0.5556]
    """
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    relative = marks / np.repeat(np.minimum.reduceat(marks, starts), counts)  # so the nearest point has weight 1
    out = np.empty((3, tail.size))
    for j, (q, b) in enumerate(zip(tail, power, strict=True)):
        weight = relative**-q
        total = np.add.reduceat(weight, starts)
        average = np.add.reduceat(weight * marks**b, starts) / total
        out[:, j] = average.sum(), (average**2).sum(), (np.add.reduceat(weight**2, starts) / total**2).sum()
    return out


def share_of_empty_sets(inside: int, samples: int, sets: int) -> float:
    """Return the share of all n-subsets of the sets * n drawn points that have no point in the window, if it contains `inside` points.

    This share is the unbiased estimate of (1-p)^n with the least variance. It can be positive even if every drawn set has a point in the
    window.

    >>> share_of_empty_sets(inside=2, samples=1, sets=4)
    0.5
    """
    total = sets * samples
    if inside > total - samples:
        return 0.0
    return float(np.exp(np.log1p(-inside / (total - np.arange(samples))).sum()))


def _blocks(counts: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return blocks of consecutive windows with about BLOCK points in total."""
    edges = np.flatnonzero(np.diff(np.cumsum(counts) // BLOCK)) + 1
    return [block for block in np.split(counts, edges) if block.size]
