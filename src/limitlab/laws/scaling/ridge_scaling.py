"""Ridge regression with power-law spectra on all features or on random features (docs/theory/ridge_scaling.md).

Setting.  n rows x with independent coordinates of variance lambda_j = j^{-2 alpha}, y = <x, b> + noise of variance tau^2 with
          b_j = j^{-beta}, j <= V. Ridge regression minimises (1/n)|y - Z t|^2 + lambda |t|^2 with Z = X W, where the V x N matrix W has
          entries N(0, 1/N). For N = infinity Z = X.
Limit.    n, N large and V larger. The error of the deterministic equivalents does not depend on V.
Result.   The effective ridge kappa solves kappa (1 - df1/n) (1 - df1/N) = lambda with df1 < min(n, N). With r = (1 - df1/N)/(1 - df2/N),

              T = sum lambda_j b_j^2 kappa/(lambda_j + kappa) - kappa r sum lambda_j^2 b_j^2/(lambda_j + kappa)^2,
              D2 = df1 - r (df1 - df2),   bias = T / (1 - D2/n),   variance = tau^2 (D2/n) / (1 - D2/n).                      (1)

Status.   Theorem with dimension-free errors (Defilippis, Loureiro and Misiakiewicz 2024). Form (1) and its constants are derived here.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.cost import Cost
from limitlab.errors import Refused, UnreachableTarget
from limitlab.laws import Draw, Experiment, Headline, Values, parameter
from limitlab.laws.scaling._spectrum import Modes, ModesLaw, ridge_of_width

__all__ = ["RidgeScaling"]

Array = NDArray[np.float64]

NAMES = ("bias", "variance", "excess_risk", "test_error", "train_error", "effective_ridge", "degrees_of_freedom")
SPECTRUM_ERROR = (
    2e-11  # relative error of the observables due to grouped spectra; measured for four exponents, it is at most 5e-12
)
LEAST_RIDGE = 1e-14  # smallest ridge in the search for the best ridge


class Rates(NamedTuple):
    """Constants and exponents of an infinite spectrum without ridge (docs/theory/ridge_scaling.md, eqs. 3 and 4)."""

    effective_ridge_constant: float
    error_constant: float
    variance_constant: float
    data: float
    width: float


def risk(spectrum: Modes, samples: float, width: float, ridge: float, noise: float) -> dict[str, float]:
    """Return every observable at one set of parameters, equation (1).

    >>> from limitlab.laws.scaling._spectrum import power_law
    >>> values = risk(power_law(1.0, 0.3, 3000.0), 300, 100, 0.0, 0.1)
    >>> round(values["bias"], 9), round(values["variance"], 9)
    (0.004356103, 0.005)
    """
    s, counts, energy = spectrum
    kappa = effective_ridge(spectrum, samples, width, ridge)
    learnt = s / (s + kappa)
    df1, df2 = float(counts @ learnt), float(counts @ learnt**2)
    fewest = min(samples, width)
    if ridge == 0 and counts.sum() >= fewest:
        df1 = float(fewest)  # the exact value, so that terms that vanish are 0
    share = 1.0 if math.isinf(width) else (1 - df1 / width) / (1 - df2 / width) if df2 < width else 1.0
    unlearned = kappa / (s + kappa) if kappa > 0 else np.zeros_like(s)
    signal = float((s * energy) @ (unlearned * (1 - share * learnt)))
    second = df1 - share * (df1 - df2)
    gap = 1 - second / samples
    tau2 = noise**2
    bias = _over(signal, gap)
    variance = _over(tau2 * second / samples, gap)
    test = bias + variance + tau2
    left = 1 - df1 / samples if ridge == 0 else ridge / (kappa * (1 - df1 / width))
    train = left**2 * test if left > 0 else 0.0
    values = (bias, variance, bias + variance, test, train, kappa, df1 / samples)
    return dict(zip(NAMES, values, strict=True))


def _over(value: float, gap: float) -> float:
    """Return value / gap, which is infinite if the gap is 0 and the value is not."""
    return 0.0 if value == 0 else value / gap if gap > 1e-14 else math.inf


def effective_ridge(spectrum: Modes, samples: float, width: float, ridge: float) -> float:
    """Return the root kappa of kappa (1 - df1/n) (1 - df1/N) = ridge with df1 < min(n, N)."""
    from scipy.optimize import brentq

    s, counts, _ = spectrum
    fewest = min(samples, width)
    lowest = ridge_of_width(spectrum, fewest) if counts.sum() > fewest else 0.0
    if ridge == 0:
        return lowest
    if math.isinf(ridge):
        return math.inf

    def excess(log_kappa: float) -> float:
        kappa = math.exp(log_kappa)
        df1 = float(counts @ (s / (s + kappa)))
        return kappa * (1 - df1 / samples) * (1 - df1 / width) - ridge

    low = math.log(max(lowest, ridge * (1 - 1e-12)))
    high = low + 1
    while excess(high) < 0:
        high += 2
    return math.exp(brentq(excess, low, high, xtol=1e-15, rtol=8.9e-16)) if excess(low) < 0 else math.exp(low)


class RidgeScaling(ModesLaw):
    """How fast does the error of ridge regression decrease with samples and width if spectrum and target are power laws?

    Examples
    --------
    >>> law = RidgeScaling(latent_dimension=1e6, samples=1e4, target_exponent=0.7, noise=0.5)
    >>> best = law.optimal_ridge()
    >>> round(best, 6), round(float(law.replace(ridge=best).theory().excess_risk), 9)
    (0.00147, 0.000713828)
    >>> law.exponents().data, law.exponents().width
    (2.4, 2.0)
    """

    status = "theorem"
    regime = "samples and width large; any number of modes"
    assumptions = (
        "Gaussian inputs with independent coordinates of variance j^(-2 alpha), target coefficients j^(-beta)",
        "Gaussian random features, or the inputs themselves",
    )
    references = ("defilippis2024dimension", "cui2021generalization", "mallinar2022benign")
    page = "ridge_scaling"
    observables = NAMES
    simulation = Experiment("number of samples n (the ratio of width to samples is fixed)", sizes=(40, 80, 160), draws=60)
    # More samples than features, then fewer samples than features; both with a ridge and noise
    points = (
        dict(
            spectrum_exponent=0.75,
            target_exponent=0.6,
            latent_dimension=400,
            samples=80,
            width=40,
            ridge=0.003,
            noise=0.3,
        ),
        dict(
            spectrum_exponent=1.0,
            target_exponent=0.3,
            latent_dimension=300,
            samples=80,
            width=160,
            ridge=2e-3,
            noise=0.4,
        ),
    )
    headline = Headline(
        "Noise bends the power law",
        x="samples",
        over=(5.0, 5000.0, 61),
        scale="log",
        y_scale="log",
        show=("excess_risk",),
        curves=("noise", (0, 0.1, 0.3)),
        at=dict(latent_dimension=2000.0, ridge=1e-06),
        draws=3,
        places=(10.0, 30.0, 100.0, 300.0),
        sliders=("ridge", "target_exponent"),
    )

    samples: float = parameter(100.0, note="an experiment's size", least=1, scale="log")
    width: float = parameter(
        math.inf, note="random features; inf: the inputs themselves", least=1, scale="log", infinite=True
    )
    ridge: float = parameter(1e-3, least=0, scale="log")
    noise: float = parameter(0.3, least=0)

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of samples of all modes and of their random features."""
        if math.isinf(self.latent_dimension):
            return Cost()  # the experiment raises a specific error
        modes, features = self.latent_dimension, self.features(size)
        fitted = min(features, modes)
        held = 14.0 * size * modes if math.isinf(features) else 2.0 * size * modes + 4.0 * (size + modes) * features
        return Cost(held, 1e7 + 3.0 * size * fitted * min(size, fitted))

    def features(self, size: int) -> float:
        """Return the number of random features of an experiment with `size` samples."""
        return math.inf if math.isinf(self.width) else float(max(1, round(self.width * size / self.samples)))

    def realised(self, size: int) -> Self:
        """Return the law with the samples and the width of an experiment of this size."""
        return self.whole_modes().replace(samples=float(size), width=self.features(size))

    def predicted(self, ridge: Array, noise: Array) -> Values:
        """Evaluate the limit over grids of ridges and noise levels."""
        ridges, noises = np.broadcast_arrays(ridge, noise)
        rows = [self._point(float(lam), float(tau)) for lam, tau in zip(ridges.ravel(), noises.ravel(), strict=True)]
        values: dict[str, Any] = {name: np.reshape([row[name] for row in rows], ridges.shape) for name in NAMES}
        return {**values, "accuracy": SPECTRUM_ERROR}

    def _point(self, ridge: float, noise: float) -> dict[str, float]:
        return risk(self.modes, self.samples, self.width, ridge, noise)

    def measured(self, draw: Draw, ridge: Array, noise: Array) -> Values:
        """Fit one draw of inputs and features at every ridge and noise level, with label noise averaged in closed form."""
        roots, _, target = self.drawn_modes()
        modes, n, features = roots.size, draw.size, self.features(draw.size)
        X = draw.rng.standard_normal((n, modes)) * roots
        W = np.eye(modes) if math.isinf(features) else draw.rng.standard_normal((modes, int(features))) / math.sqrt(features)
        left, singular, right = np.linalg.svd(X @ W, full_matrices=False)
        nonzero = singular > 1e-10 * singular[0]
        left, singular, right = left[:, nonzero], singular[nonzero], right[nonzero]
        maps = roots[:, None] * (W @ right.T)  # values of the fitted features at a new input
        clean, spread = X @ target, np.sum(maps**2, axis=0)
        rows = [
            self._fit(float(lam), float(tau), n, features, clean, left, singular, maps, spread, roots * target)
            for lam, tau in zip(*map(np.ravel, np.broadcast_arrays(ridge, noise)), strict=True)
        ]
        shape = np.broadcast_shapes(ridge.shape, noise.shape)
        return {name: np.reshape([row[name] for row in rows], shape) for name in NAMES}

    @staticmethod
    def _fit(
        ridge: float, noise: float, n: int, features: float, clean: Array,
        left: Array, singular: Array, maps: Array, spread: Array, target: Array,
    ) -> dict[str, float]:  # fmt: skip
        """Return the errors of one ridge fit, averaged over the label noise."""
        strength = singular / (singular**2 + n * ridge)
        along = left.T @ clean
        bias = float(np.sum((maps @ (strength * along) - target) ** 2))
        variance = noise**2 * float(spread @ strength**2)
        fitted = singular * strength
        residual = clean - left @ (fitted * along)
        free = n - singular.size
        train = float(np.mean(residual**2)) + noise**2 * (float(np.sum((1 - fitted) ** 2)) + free) / n
        df = float(fitted.sum())
        if ridge > 0:
            companion = n / float(np.sum(1 / (singular**2 / n + ridge)) + free / ridge)
        else:
            companion = n / float(np.sum(n / singular**2)) if free == 0 else 0.0
        if df < features * (1 - 1e-9):
            kappa = companion / (1 - df / features)
        else:  # more samples than features and no ridge, so that only the projection counts
            kappa = features / float(np.trace(np.linalg.inv(maps.T @ maps)))
        values = (bias, variance, bias + variance, bias + variance + noise**2, train, kappa, df / n)
        return dict(zip(NAMES, values, strict=True))

    # -- exponents, the best ridge, the sufficient width ----------------------------------------------------------------

    def exponents(self) -> Rates:
        """Return constants and exponents of the ridgeless law with infinitely many modes (alpha above 1/2).

        With a constant c for each quantity, kappa ~ c n^(-2 alpha) and variance ~ c tau^2. The error without noise is ~ c n^-data with all
        features, and ~ N^-width with N < n random features.
        """
        self.require_power_laws("exponents")
        alpha, beta = self.spectrum_exponent, self.target_exponent
        ratio = (2 * beta - 1) / (2 * alpha)
        if not alpha > 0.5 or ratio == 1:
            raise Refused(
                f"the law has no exponents at spectrum_exponent = {alpha:g} and target_exponent = {beta:g}: alpha must be above 0.5, and "
                "2 beta - 1 must differ from 2 alpha, because logarithms appear if they are equal"
            )
        constant = (math.pi / (2 * alpha)) / math.sin(math.pi / (2 * alpha))
        kappa = constant ** (2 * alpha)
        if ratio < 1:
            error = kappa ** (1 + ratio) * (math.pi * ratio / math.sin(math.pi * ratio) if ratio else 1.0)
        else:
            from scipy.special import zeta

            error = 2 * alpha * kappa**2 * float(zeta(2 * beta - 2 * alpha))
        source = 2 * alpha + 2 * beta - 1
        return Rates(kappa, error, 2 * alpha - 1, min(source, 4 * alpha), min(source, 2 * alpha))

    def optimal_ridge(self) -> float:
        """Return the ridge with the least excess risk, which is 0 if every positive ridge is worse, for example without noise."""
        return self._best(self.width)[0]

    def _best(self, width: float) -> tuple[float, float]:
        from scipy.optimize import minimize_scalar

        def excess(log_ridge: float) -> float:
            return risk(self.modes, self.samples, width, math.exp(log_ridge), self.noise)["excess_risk"]

        grid = np.linspace(math.log(LEAST_RIDGE), math.log(100.0), 50)
        values = [excess(float(x)) for x in grid]
        i = int(np.argmin(values))
        none = risk(self.modes, self.samples, width, 0.0, self.noise)["excess_risk"]
        if i == 0 and none <= values[0]:
            return 0.0, none
        ends = float(grid[max(i - 1, 0)]), float(grid[min(i + 1, grid.size - 1)])
        best = minimize_scalar(excess, bounds=ends, method="bounded", options={"xatol": 1e-8})
        return math.exp(best.x), float(best.fun)

    def width_needed(self, loss_factor: float) -> float:
        """Return the number of random features at which the best excess risk is `loss_factor` times that of all features.

        >>> law = RidgeScaling(latent_dimension=1e8, samples=1e5, target_exponent=0.2, noise=0.5)
        >>> 100 < law.width_needed(1.5) < 1000
        True
        """
        from scipy.optimize import brentq

        if not loss_factor > 1:
            raise Refused(f"loss_factor = {loss_factor:g} is not allowed: must be above 1")
        full = self._best(math.inf)[1]

        def over(log_width: float) -> float:
            return math.log(self._best(math.exp(log_width))[1] / full) - math.log(loss_factor)

        low, high = 0.0, math.log(1e3 * self.samples)
        if over(high) > 0:
            raise UnreachableTarget(
                f"loss_factor = {loss_factor:g} needs more than {math.exp(high):.3g} features; allow a larger factor",
                best=math.exp(over(high)) * loss_factor, at=math.exp(high),
            )  # fmt: skip
        return math.exp(brentq(over, low, high, xtol=1e-4)) if over(low) > 0 else 1.0


def slopes(law: RidgeScaling, samples: ArrayLike) -> tuple[float, float]:
    """Return the exponents of the best ridge and of its excess risk between two numbers of samples."""
    low, high = (law.replace(samples=float(n))._best(law.width) for n in np.asarray(samples, dtype=float))
    step = math.log(float(np.asarray(samples)[1]) / float(np.asarray(samples)[0]))
    return -math.log(high[0] / low[0]) / step, -math.log(high[1] / low[1]) / step
