"""The mean-field equation of very many tokens, and the instability of the uniform law.

Setting.  n tokens on the unit sphere of R^d under self-attention with Q = K = V = I, drawn from a density at time 0.
Limit.    n -> infinity at fixed d: the empirical law tends to mu_t with d_t mu + div(mu X[mu]) = 0.
Result.   On the circle (d = 2) the law computes the density (docs/theory/attention.md, eqs. 14-15). Around the uniform law on any
          sphere a harmonic of degree k grows at the rate (nu = d/2 - 1)

              sigma_k = k (k + d - 2) I_{k + nu}(beta) / (beta I_nu(beta)),                                              (16)

          times Gamma(nu + 1) (2/beta)^nu I_nu(beta) for unnormalised attention. At beta = 0 only k = 1 grows, at (d - 1)/d. The
          degree of the largest sigma_k is near k = sqrt(2 beta) on the circle. The number of early clusters differs from it by at most two.
Status.   Theorem for the limit equation on bounded times; rates derived and checked; the cluster count is a rule of thumb.
"""

from __future__ import annotations

import math
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import field_validator, model_validator

from limitlab._core.checks import whole
from limitlab._core.cost import Cost, latest
from limitlab.errors import Refused
from limitlab.laws import Draw, Experiment, Headline, Law, Values, observable, parameter
from limitlab.laws.attention import _circle_density as circle_density
from limitlab.models.attention import circle
from limitlab.models.distributions import CircleDistribution

__all__ = ["CircleMeanField", "growth_rates", "poisson_radius"]

Array = NDArray[np.float64]
Solver = Literal["fourier", "volumes", "particles"]

CELLS = 1600  # number of finite volumes; a run with half of them gives the error estimate
QUANTILES = 1024  # number of deterministic particles; a run with half of them gives the error estimate
SHARES = (0.7, 0.61, 0.43)  # sizes of further runs with particles from an own distribution, as shares of their number
STEP = 0.05  # time step of the particles


def growth_rates(k: ArrayLike, beta: ArrayLike, dimension: int = 2, normalised: bool = True) -> Array:
    """Return the growth rate sigma_k of a degree-k harmonic around the uniform density, eq. (16); `k` and `beta` broadcast.

    >>> growth_rates([1, 2, 3, 4], 5.0).round(6).tolist()
    [0.178677, 0.514117, 0.682678, 0.600089]
    >>> growth_rates([1, 2], 0.0, dimension=3).round(6).tolist()
    [0.666667, 0.0]
    """
    from scipy.special import gammaln, ive

    k, beta = np.broadcast_arrays(np.asarray(k, dtype=float), np.asarray(beta, dtype=float))
    if not np.all((k >= 1) & (k == np.round(k))):
        raise Refused("k is not allowed: must be whole numbers of at least 1")
    if not np.all(np.isfinite(beta) & (beta >= 0)):
        raise Refused(f"beta = {np.min(beta):g} is not allowed: must be finite and at least 0")
    whole("dimension", dimension, least=2)
    nu = dimension / 2 - 1
    warm = np.where(beta > 1e-8, beta, 1.0)
    rate = k * (k + dimension - 2) * ive(k + nu, warm) / (warm * ive(nu, warm))
    if not normalised:
        rate = rate * np.exp(gammaln(nu + 1) + nu * np.log(2 / warm) + warm) * ive(nu, warm)
    cold = np.where(k == 1, (dimension - 1) / dimension, 0.0)  # I_{1+nu}(b) / (b I_nu(b)) -> 1 / d
    return np.asarray(np.where(beta > 1e-8, rate, cold))[()]


def most_unstable(beta: float, dimension: int = 2) -> int:
    """Return the degree with the largest growth rate, which predicts the number of early clusters on the circle.

    >>> [most_unstable(beta) for beta in (1.0, 5.0, 25.0, 50.0)]
    [1, 3, 7, 10]
    """
    k = np.arange(1, 20 + int(4 * np.sqrt(beta)))
    return int(k[np.argmax(growth_rates(k, beta, dimension))])


def escape_time(beta: float, tokens: int, dimension: int = 2) -> float:
    """Return the time log(sqrt(n)) / sigma_max in which the noise of n random tokens grows to order one.

    The result is an order of magnitude only.

    >>> round(escape_time(5.0, 5000), 3)
    6.238
    """
    return float(0.5 * np.log(tokens) / growth_rates(most_unstable(beta, dimension), beta, dimension))


def poisson_radius(start: ArrayLike, time: ArrayLike) -> Array:
    """Return r = |E e^{i theta}|, the length of the mean token, at beta = 0 on the circle from a wrapped Cauchy density.

    The ratio r^2 / (1 - r^2) grows in proportion to e^t.

    >>> round(float(poisson_radius(0.3, 3.0)), 12)
    0.815572088437
    """
    r2 = np.asarray(start, dtype=float) ** 2
    if not np.all((r2 >= 0) & (r2 < 1)):
        raise Refused(f"start = {start!r} is not allowed: must be at least 0 and below 1")
    odds = np.exp(np.asarray(time, dtype=float)) * r2 / (1 - r2)
    return np.asarray(np.sqrt(odds / (1 + odds)))[()]


class CircleMeanField(Law):
    """How does the density of very many tokens on a circle evolve, and into how many clusters does it break?

    Examples
    --------
    >>> law = CircleMeanField(beta=4.0, density=((0.5, 0.0), (0.0, 0.3)), times=(1.0, 3.0))
    >>> law.theory().cos1.values.round(9)
    array([0.30734572, 0.42395658])
    >>> law.growth_rates([1, 2, 3]).round(4).tolist()
    [0.2159, 0.5682, 0.6644]
    >>> law.predicted_clusters()
    3
    """

    status = "theorem"
    regime = "n -> infinity at fixed dimension and temperature, on bounded times"
    assumptions = (
        "Q = K = V = I, no feed-forward layer",
        "tokens start as draws from a density (independent, or one in each of n strata of equal mass)",
        "densities are computed on the circle only (dimension 2); growth rates hold on every sphere",
    )
    references = ("geshkovski2025mathematical", "sander2022sinkformers")
    page = "attention"
    observables = {
        "cos1": observable("first cosine moment", r"\mathbb{E}\cos\theta", least=-1, most=1),
        "sin1": observable("first sine moment", r"\mathbb{E}\sin\theta", least=-1, most=1),
        "cos2": observable("second cosine moment", r"\mathbb{E}\cos 2\theta", least=-1, most=1),
    }
    simulation = Experiment("number of tokens n", sizes=(100, 200, 400), draws=40)
    # The densities have two harmonics with both phases; one point is unnormalised attention
    points = (
        dict(beta=3.0, density=((0.5, 0.2), (0.2, 0.3)), times=(0.5, 1.5)),
        dict(beta=1.5, normalised=False, density=((0.4, -0.3), (0.1, 0.2)), times=(0.2, 0.6)),
    )
    headline = Headline(
        "Tokens gather into clusters",
        x=r"angle $\theta$",
        over=(0.0, 2 * np.pi, 513),
        show=("density_of_tokens",),
        curves=("times", (0.0, 1.5, 3.0)),
        at=dict(beta=4.0, density=((0.5, 0.0), (0.0, 0.3))),
        size=2000,
        draws=1,
        sliders=("beta", "times"),
    )

    beta: float = parameter(4.0, least=0, most=700)
    dimension: int = parameter(2, note="of the tokens (densities: 2 only)", least=2)
    density: tuple[tuple[float, float], ...] = parameter(
        ((0.5, 0.2), (0.2, 0.3)),
        note="at the start, 2 pi rho = 1 + sum_k a_k cos(k theta) + b_k sin(k theta); pairs (a_k, b_k)",
    )
    start_distribution: CircleDistribution | None = parameter(
        None,
        note="of the angles in place of density; wrapped triples (share, mean, standard deviation), a density of angles or a sampler",
        added=True,
    )
    normalised: bool = parameter(True)
    times: float | tuple[float, ...] = parameter((1.0, 2.0), note="in layers", kind="coordinate", least=0)
    solver: Solver = parameter("fourier", "numerical method", note="fourier, volumes or particles", kind="solver")
    stratified: bool = parameter(
        True, "whether one token is drawn in each of n arcs of equal probability, not all independently", kind="experiment"
    )

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of computing all pairs of particles."""
        return Cost(1.1 * size**2 + 1e5, 330.0 * size**2 * max(latest(self), 1.0))

    def headline_line(self, values: Array) -> dict[str, Array]:
        """Return the density at angles, for the headline view."""
        rho, _ = circle_density.spectral_density(
            self.start_density()[0],
            self.beta,
            np.atleast_1d(np.asarray(self.times, dtype=float)),
            normalised=self.normalised,
        )
        grid = np.linspace(0, 2 * np.pi, rho.shape[-1] + 1)
        return {"density_of_tokens": np.interp(values, grid, np.append(rho[-1], rho[-1, :1]))}

    def headline_histogram(self, size: int, seed: int) -> Array:
        """Return the angles of tokens that start independently, for the headline view."""
        from limitlab.models.attention.engines import token_paths

        theta = self._angles(self.draw(size, seed).rng, size, stratified=False)
        start = np.stack([np.cos(theta), np.sin(theta)], axis=-1)
        x, y = token_paths(
            start, self.beta, np.atleast_1d(np.asarray(self.times, dtype=float)), normalised=self.normalised, tolerance=1e-7
        )[-1].T
        return np.asarray(np.arctan2(y, x) % (2 * np.pi))

    @field_validator("density", mode="before")
    @classmethod
    def _pairs(cls, value: Any) -> Any:
        """Convert a flat list a_1, b_1, a_2, b_2, ... (as on the command line) to pairs."""
        flat = isinstance(value, (tuple, list)) and all(isinstance(number, (int, float)) for number in value)
        if flat and len(value) % 2 == 0:
            return tuple(zip(value[::2], value[1::2], strict=True))
        return value

    @model_validator(mode="after")
    def _possible_density(self) -> Self:
        lowest = float(2 * np.pi * circle.density_values(self.density, np.linspace(0, 2 * np.pi, 4097)).min())
        if lowest < -1e-12:
            raise Refused(
                f"density = {self.density} is not allowed: it falls to {lowest:.3g} / 2 pi; choose smaller coefficients"
            )
        return self

    @model_validator(mode="after")
    def _possible_start(self) -> Self:
        if self.start_distribution is None:
            return self
        default = type(self).model_fields["density"].default
        if self.density != default:
            raise Refused(f"density = {self.density} is not allowed together with start_distribution: omit one of them")
        if self.solver != "particles" and math.isinf(self.start_density()[1]):
            cause = "a sampler" if self.start_distribution.sampled else "a density that 2048 points do not resolve"
            raise Refused(f"solver = {self.solver!r} is not allowed for {cause}: use solver = 'particles'")
        return self

    def start_density(self) -> tuple[circle.Coefficients, float]:
        """Return the Fourier coefficients of the density at the start, and their error.

        >>> pairs, error = CircleMeanField(start_distribution=[(1.0, 0.0, 1.0)]).start_density()
        >>> round(pairs[0][0], 9), error                                    # 2 exp(-1/2)
        (1.213061319, 0.0)
        """
        return (self.density, 0.0) if self.start_distribution is None else self.start_distribution.fourier()

    def _angles(self, rng: np.random.Generator, size: int, stratified: bool) -> Array:
        """Return random angles of tokens at the start. The draws of a sampler are always independent."""
        start = self.start_distribution
        if start is not None and start.sampled:
            return start.draw(rng, (size,))
        levels = rng.random(size)
        if stratified:
            levels = (np.arange(size) + levels) / size
        return circle.density_quantiles(self.density, levels) if start is None else start.quantile(levels)

    def predicted(self, times: Array) -> Values:
        """Return moments of the density by the selected solver.

        The accuracy is the Fourier tail, or the difference from a run with half the resolution.
        """
        self._on_the_circle()
        if self.solver == "fourier":
            pairs, error = self.start_density()
            rho, tail = circle_density.spectral_density(pairs, self.beta, times, normalised=self.normalised)
            return {**circle_density.moments(rho), "accuracy": max(tail, 1e-11) + error}
        size = CELLS if self.solver == "volumes" else QUANTILES
        fine, coarse = self._resolved(times, size), self._resolved(times, size // 2)
        # with half the resolution in space and time the error is four times larger, or twice as large if the density is steep
        accuracy = {name: np.abs(fine[name] - coarse[name]).max() for name in fine}
        if self.start_distribution is not None and self.solver == "particles":
            # if the density is small or 0 between two clusters, the error depends on how the shares of the clusters are rounded
            others = [self._resolved(times, round(share * size)) for share in SHARES]
            accuracy = {n: 2 * max(accuracy[n], *(np.abs(fine[n] - other[n]).max() for other in others)) for n in fine}
        if self.start_distribution is not None and self.start_distribution.sampled:
            # the difference of both halves of the draws is twice the error of all draws
            first, second = (self._resolved(times, size, half) for half in (0, 1))
            accuracy = {name: accuracy[name] + 2 * np.abs(first[name] - second[name]).max() for name in fine}
        return {**fine, "accuracy": accuracy}

    def _resolved(self, times: Array, size: int, half: int | None = None) -> dict[str, Any]:
        if self.solver == "volumes":
            pairs, _ = self.start_density()
            rho = circle_density.volume_density(pairs, self.beta, times, normalised=self.normalised, cells=size)
            return circle_density.moments(rho, offset=0.5)
        levels = (np.arange(size) + 0.5) / size
        if self.start_distribution is None:
            start = circle.density_quantiles(self.density, levels)
        else:
            start = self.start_distribution.quantile(levels, half=half)
        step = STEP * QUANTILES / size
        return circle.angle_moments(circle.circle_flow(start, self.beta, times, normalised=self.normalised, step=step))

    def measured(self, draw: Draw, times: Array) -> Values:
        """Return the moments of `size` tokens that are drawn from the density and move by the attention of all pairs."""
        from limitlab.models.attention.engines import token_paths

        self._on_the_circle()
        theta = self._angles(draw.rng, draw.size, self.stratified)
        start = np.stack([np.cos(theta), np.sin(theta)], axis=-1)
        x, y = np.moveaxis(token_paths(start, self.beta, times, normalised=self.normalised, tolerance=1e-7), -1, 0)
        return dict(cos1=x.mean(axis=-1), sin1=y.mean(axis=-1), cos2=(x**2 - y**2).mean(axis=-1))

    def _on_the_circle(self) -> None:
        if self.dimension != 2:
            raise Refused(
                f"dimension = {self.dimension} is not allowed here: the density is computed on the circle only, dimension = 2; "
                "growth_rates and predicted_clusters hold in every dimension"
            )

    def growth_rates(self, k: ArrayLike) -> Array:
        """Return the growth rates of harmonics of degree k around the uniform density, eq. (16)."""
        return growth_rates(k, self.beta, self.dimension, self.normalised)

    def predicted_clusters(self) -> int:
        """Return the degree that grows fastest, which is the number of early clusters on the circle to within two."""
        return most_unstable(self.beta, self.dimension)
