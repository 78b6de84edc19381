"""Ridge and ridgeless regression in high dimension.

Setting.  n samples y = <x, beta> + noise with p features, x = Sigma^{1/2} z, noise of standard deviation tau. The estimator
          minimises (1/n)|y - Xb|^2 + lambda |b|^2. For lambda = 0 it is the least-norm solution. The parameter alpha of scikit-learn
          is n lambda. With a start b_0 at distance D from beta the penalty is lambda |b - b_0|^2, and D^2 replaces |beta|^2.
          Sigma has eigenvalue s_k in a share w_k of the directions. The part of beta in these directions has squared norm b_k.
Limit.    n, p -> infinity with p/n -> gamma (`ratio`).
Result.   With m_k = gamma w_k, all errors follow from one unknown kappa >= 0 (docs/theory/ridge.md):

              kappa (1 - df1) = lambda,  df1 = sum m_k s_k / (s_k + kappa),  df2 = sum m_k s_k^2 / (s_k + kappa)^2,     (1)
              bias     = kappa^2 sum b_k s_k / (s_k + kappa)^2 / (1 - df2),                                             (2)
              variance = tau^2 df2 / (1 - df2),                                                                         (3)
              test     = bias + variance + tau^2,     train = (1 - df1)^2 test.                                         (4)

          If the test inputs have the variance t_k in these directions, s_k is replaced by t_k in the bias kappa^2 sum b_k s_k / (s_k +
          kappa)^2 and in the sum over the noise of the training set, and (4) holds with the error r at t = s in place of bias + variance:

              bias + variance = kappa^2 sum b_k t_k / (s_k + kappa)^2 + (r + tau^2) sum m_k s_k t_k / (s_k + kappa)^2.  (13)

Status.   Theorem (Dobriban and Wager 2018; Hastie et al. 2022), from the resolvent limit of Rubio and Mestre (2011).
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab.errors import Refused
from limitlab.laws import CLOSED_FORM, Draw, Headline, Mark, Values, observable, parameter, shared
from limitlab.laws._population import Population
from limitlab.laws.classification.beside_best import Best
from limitlab.laws.regression.linear_model import LinearModel, spectrum
from limitlab.models.designs import Filter, ridge_filter
from limitlab.numerics.equivalents import (
    both_shares,
    edge_kappa,
    effective_ridge,
    gaps,
    negative_ridge_limit,
    ridge_equivalent,
    unlearned,
)
from limitlab.numerics.roots import bracketed_root

__all__ = ["Ridge", "exact_ridgeless"]

Array = NDArray[np.float64]

SCAN_POINTS = 4000  # number of trial values of kappa in the search for the best penalty, spaced geometrically


def risk(
    ratio: ArrayLike,
    ridge: ArrayLike,
    noise: ArrayLike,
    eigenvalues: ArrayLike = (1.0,),
    weights: ArrayLike = (1.0,),
    signal_energy: ArrayLike = (1.0,),
    start_distance: ArrayLike = math.nan,
    test: ArrayLike | None = None,
) -> dict[str, Array]:
    """Return the limit of every observable.

    `ratio`, `ridge`, `noise` and `start_distance` broadcast. The spectrum is one-dimensional.

    Parameters
    ----------
    ratio
        Features per sample. Infinity is the limit of very many features, in which the model learns nothing.
    ridge
        lambda. It is positive, 0, infinity, or negative and above `negative_ridge_limit`.
    noise
        Standard deviation of the label noise.
    eigenvalues, weights, signal_energy
        Eigenvalue, share of the dimensions and squared norm of the coefficients of every group of the population spectrum.
    start_distance
        Distance between beta and the point to which the penalty shrinks the coefficients. NaN means that this point is 0.
    test
        Variance of the test inputs in the directions of every group. None means the eigenvalues.

    Examples
    --------
    The least-norm solution has a double descent, and its test error is infinite at p = n:

    >>> risk([0.5, 1.0, 2.0], 0.0, 0.7)["test_error"].round(6).tolist()
    [0.98, inf, 1.48]
    """
    s, load, b2, wide = spectrum(ratio, eigenvalues, weights, signal_energy)
    lam, tau2 = np.asarray(ridge, dtype=float), np.asarray(noise, dtype=float) ** 2
    if (wide & np.isinf(lam)).any():
        raise Refused("ratio = inf and ridge = inf together are not allowed: the train error depends on which grows faster")
    equivalent = ridge_equivalent(np.where(wide, np.maximum(lam, 0.0), lam), s, load)
    left, fitted = both_shares(equivalent.kappa, s)
    unit, distance = _unit_energy(b2, weights), np.asarray(start_distance, dtype=float)
    energy, total = float(b2.sum()), np.where(np.isnan(distance), b2.sum(), distance**2)
    average_bias = total * (unit * s * left**2).sum(axis=-1)
    bias = _quotient(average_bias, equivalent.gap2)  # (2)
    variance = _quotient(tau2 * equivalent.df2, equivalent.gap2)  # (3)
    same = bias + variance + tau2  # (4), for test inputs like the training inputs
    interpolates = equivalent.gap1 == 0
    noise_gain = (load * fitted**2 / np.where(s > 0, s, 1.0)).sum(axis=-1)  # sum m s / (s + kappa)^2
    moved = total * (unit * fitted**2).sum(axis=-1) + np.where(noise_gain > 0, same, 0.0) * noise_gain
    from_start = (
        energy + total * (1 - 2 * (unit * fitted).sum(axis=-1)) + moved
    )  # |b|^2 for coefficients that are shrunk to the start
    limits = dict(
        bias=bias,
        variance=variance,
        excess_risk=bias + variance,
        test_error=same,
        train_error=np.where(interpolates, 0.0, equivalent.gap1**2 * np.where(interpolates, 0.0, same)),
        degrees_of_freedom=equivalent.df1,
        effective_ridge=equivalent.kappa,
        coefficient_norm=np.where(np.isnan(distance), moved, from_start),
        gcv=same.copy(),  # train / (1 - df1)^2, which is the test error by (4)
        average_bias=average_bias,
    )
    t = s if test is None else np.asarray(test, dtype=float)
    if test is not None:
        limits |= _on_other_inputs(t, s, load, left, fitted, total * unit, bias, tau2, equivalent.gap2)
    start_norm = np.where(np.isnan(distance), 0.0, energy + total)
    return _with_wide_limit(limits, wide, total * float(np.dot(t, unit)), total * float(np.dot(s, unit)), tau2, start_norm)


def _on_other_inputs(
    t: Array, s: Array, load: Array, left: Array, fitted: Array, energy: Array, bias: Array, tau2: Array, gap: Array
) -> dict[str, Array]:
    """Return bias, variance and errors (13) for test inputs with the variances t."""
    gain = (load * np.where(s > 0, t / np.where(s > 0, s, 1.0), 0.0) * fitted**2).sum(axis=-1)  # sum m s t / (s + kappa)^2
    average = (energy * t * left**2).sum(axis=-1)
    moved = average + np.where(gain == 0, 0.0, bias * gain)
    variance = _quotient(tau2 * gain, gap)
    excess = moved + variance
    return dict(bias=moved, variance=variance, excess_risk=excess, test_error=excess + tau2, average_bias=average)


def _unit_energy(signal_energy: Array, weights: ArrayLike) -> Array:
    """Return the energy per group, scaled to a total of 1. Without a signal, all directions have the same energy."""
    total = float(signal_energy.sum())
    shares = np.atleast_1d(np.asarray(weights, dtype=float))
    return signal_energy / total if total > 0 else shares / shares.sum()


def _quotient(numerator: Array, gap: Array) -> Array:
    """Return numerator / gap. At the interpolation threshold the gap vanishes, and the value is 0 or infinity."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(numerator == 0, 0.0, numerator / gap)


def _with_wide_limit(
    limits: dict[str, Array], wide: NDArray[np.bool_], energy: Array, trained: Array, tau2: Array, start_norm: Array
) -> dict[str, Array]:
    """Broadcast the limits and insert their values for infinitely many features per sample, where nothing is learned."""
    if wide.any():
        nothing: dict[str, ArrayLike] = dict(
            bias=energy,
            variance=0.0,
            excess_risk=energy,
            test_error=energy + tau2,
            train_error=0.0,
            degrees_of_freedom=1.0,
            effective_ridge=np.inf,
            coefficient_norm=start_norm,
            gcv=trained + tau2,
            average_bias=energy,
        )
        limits = {name: np.where(wide, nothing[name], value) for name, value in limits.items()}
    shape = np.broadcast_shapes(wide.shape, *(np.shape(value) for value in limits.values()))
    return {name: value if np.shape(value) == shape else np.broadcast_to(value, shape) for name, value in limits.items()}


def exact_ridgeless(
    samples: ArrayLike, features: ArrayLike, noise: ArrayLike, signal_energy: ArrayLike = 1.0
) -> dict[str, Array]:
    """Return the exact mean errors of the least-norm solution at finite n and p, for standard Gaussian inputs.

    The arguments broadcast. The values follow from the mean of an inverse Wishart matrix (docs/theory/ridge.md, eq. 10). The
    variance is infinite for |n - p| <= 1.

    >>> exact_ridgeless(50, [30, 100], noise=0.7)["excess_risk"].round(9).tolist()
    [0.773684211, 1.0]
    """
    n, p = (np.asarray(count, dtype=float) for count in (samples, features))
    r2, tau2 = np.asarray(signal_energy, dtype=float), np.asarray(noise, dtype=float) ** 2
    if not (n >= 1).all() or not (p >= 1).all():
        raise Refused("samples and features are not allowed: must be at least 1")
    margin = np.maximum(np.abs(n - p) - 1, 0.0)
    variance = _quotient(tau2 * np.minimum(n, p), margin)
    bias = r2 * np.maximum(1 - n / p, 0.0)
    excess = bias + variance
    values = (bias, variance, excess, excess + tau2, tau2 * np.maximum(1 - p / n, 0.0))
    names = ("bias", "variance", "excess_risk", "test_error", "train_error")
    return dict(zip(names, np.broadcast_arrays(*values), strict=True))


# -- the best penalty -------------------------------------------------------------------------------------------------


def best_ridge(
    ratio: float,
    noise: float,
    eigenvalues: ArrayLike = (1.0,),
    weights: ArrayLike = (1.0,),
    signal_energy: ArrayLike = (1.0,),
    allow_negative: bool = True,
) -> float:
    """Return the penalty with the least test error.

    It may be negative with more features than samples, and it is infinite without a signal. For a signal that is spread evenly
    over the directions it is gamma tau^2 / |beta|^2. For other signals the function minimises the test error over kappa, because the
    test error is an explicit function of kappa. It then computes lambda from (1).

    >>> round(best_ridge(4.0, 0.1, (1.0, 20.0), (0.95, 0.05), (0.0076, 1.0)), 6)
    -0.947296
    """
    s, load, b2, wide = spectrum(ratio, eigenvalues, weights, signal_energy)
    if wide.any():
        raise Refused("ratio = inf is not allowed here: no penalty changes the test error")
    s, load, b2 = s[s > 0], load[s > 0], b2[s > 0]
    if not b2.any():
        return math.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        density = b2 / load  # infinite for a spike
    if np.allclose(density, density[0], rtol=1e-14, atol=0):
        return float(load.sum() * noise**2 / b2.sum())
    lowest = float(edge_kappa(s, load) if allow_negative else effective_ridge(0.0, s, load))
    kappa = _best_kappa(lowest, noise**2, s, load, b2)
    if kappa == lowest:  # then lambda = 0, because the test error is infinite at the negative limit
        return 0.0
    return float(kappa * gaps(kappa, s, load)[0])


def _best_kappa(lowest: float, tau2: float, s: Array, load: Array, b2: Array) -> float:
    """Return the kappa >= lowest with the least test error, from the zeros of its derivative (docs/theory/ridge.md, eq. 11)."""

    def energy(u: Array) -> Array:
        return np.asarray(tau2 + (b2 * s * u**2).sum(axis=-1))

    def slope(kappa: Any) -> Any:  # half the derivative, times (1 - df2)^2
        u, a = both_shares(kappa, s)
        growth = (load * a**2 / (s + np.asarray(kappa)[..., None])).sum(axis=-1)
        return (b2 * u * a**2).sum(axis=-1) * gaps(kappa, s, load)[1] - energy(u) * growth

    far = (tau2 + b2 @ s) * (load @ s**2) / (b2 @ s**2)  # the best kappa for a weak signal
    kappa = np.r_[lowest, lowest + np.geomspace(1e-10 * s.min(), 100 * (s.max() + load @ s + far), SCAN_POINTS)]
    rising = slope(kappa) > 0
    turns = np.flatnonzero(~rising[:-1] & rising[1:])
    minima = np.asarray(bracketed_root(slope, kappa[turns], kappa[turns + 1]))
    candidates = np.r_[lowest, minima] if rising[0] else minima
    return float(candidates[np.argmin(energy(unlearned(candidates, s)) / gaps(candidates, s, load)[1])])


# -- the law ----------------------------------------------------------------------------------------------------------


class Ridge(LinearModel):
    """What are the train and test errors of ridge regression with p features and n samples?

    Examples
    --------
    >>> law = Ridge(ratio=2.0, ridge=0.1, noise=0.5)
    >>> result = law.theory()
    >>> round(float(result.test_error), 9), round(float(result.train_error), 9)
    (0.936528664, 0.006675797)
    >>> law.optimal_ridge()
    0.5
    """

    status = "theorem"
    references = ("hastie2022surprises", "rubio2011spectral", "dobriban2018high")
    page = "ridge"
    regime = "n, p -> infinity with p/n fixed; the penalty is of the order of the eigenvalues of Sigma"
    observables = {
        **shared("bias", "variance", "excess_risk", "test_error", "train_error"),
        **shared("degrees_of_freedom", "effective_ridge", "coefficient_norm"),
        "gcv": observable("generalised cross-validation score", r"\mathrm{GCV}", least=0),
        "average_bias": observable("squared bias of the predictor averaged over training sets", r"\bar B", least=0),
    }
    # Unequal shares, eigenvalues and energies on both sides of ratio 1, a penalty that shrinks to a start, and other test inputs.
    points = (
        dict(ratio=0.6, ridge=0.3, noise=0.7, eigenvalues=(0.5, 2.0), weights=(0.4, 0.6), signal_energy=(0.5, 0.8)),
        dict(
            ratio=2.0,
            ridge=0.15,
            noise=0.6,
            eigenvalues=(0.4, 1.0, 3.0),
            weights=(0.5, 0.3, 0.2),
            signal_energy=(0.3, 0.5, 0.4),
        ),
        dict(
            ratio=1.5,
            ridge=0.2,
            noise=0.5,
            eigenvalues=(0.6, 1.5),
            weights=(0.5, 0.5),
            signal_energy=(0.4, 0.8),
            start_distance=1.6,
        ),
        dict(
            ratio=1.5,
            ridge=0.2,
            noise=0.5,
            eigenvalues=(1.0, 2.0),
            weights=(0.4, 0.6),
            signal_energy=(0.3, 0.5),
            test_eigenvalues=(3.0, 0.2),
        ),
    )
    headline = Headline(
        "Worst exactly at one feature per sample",
        x="ratio",
        over=(0.1, 10.0, 161),
        scale="log",
        show=("test_error",),
        curves=("ridge", (0.001, 0.01, 0.1)),
        at=dict(noise=0.5),
        size=100,
        draws=6,
        places=(0.2, 0.5, 0.8, 1.0, 1.25, 2.0, 4.0, 10.0),
        sliders=("noise", "eigenvalues"),
        marks=(Mark("x", 1.0, "one feature per sample"),),
    )

    ridge: float = parameter(0.1, scale="log")

    start_distance: float | None = parameter(None, note="in a random direction; not given: the start is 0", least=0)
    test_eigenvalues: tuple[float, ...] | None = parameter(
        None,
        "variance of the test inputs in the directions of each group",
        note="not given: that of the training inputs",
        symbol="t_k",
        least=0,
        added=True,
    )

    @classmethod
    def reads_test_variance(cls) -> bool:
        """Return True."""
        return True

    @model_validator(mode="after")
    def _test_inputs_have_groups(self) -> Self:
        if self.test_eigenvalues is None:
            return self
        if self.spectrum is not None:
            raise Refused(
                f"test_eigenvalues = {self.test_eigenvalues} is not allowed together with spectrum: give these variances to the "
                "spectrum (Spectrum.with_test)"
            )
        if len(self.test_eigenvalues) != len(self.eigenvalues):
            raise Refused(
                f"test_eigenvalues = {self.test_eigenvalues} is not allowed: must have one entry for each of the {len(self.eigenvalues)} "
                "eigenvalues"
            )
        return self

    @property
    def population(self) -> Population:
        """Eigenvalues, shares and energies of the groups or of the spectrum, and the variances of the test inputs."""
        whole = super().population
        return (
            whole if self.test_eigenvalues is None else whole._replace(test=np.asarray(self.test_eigenvalues, dtype=float))
        )

    def null_error(self) -> float:
        """Return the test error of predicting zero, which is the variance of the signal plus the variance of the noise."""
        population = self.population
        variances = population.eigenvalues if population.test is None else population.test
        return float(np.dot(variances, population.energy)) + self.noise**2

    @model_validator(mode="after")
    def _ridge_above_its_limit(self) -> Self:
        limit = self.negative_ridge_limit() if self.ridge < 0 else -math.inf
        if not limit < self.ridge:
            remedy = (
                "or use more features than samples (ratio above 1)"
                if limit == 0
                else "minus the left edge of the sample spectrum"
            )
            bound = "at least 0" if limit == 0 else f"above {limit:.10g}"
            raise Refused(f"ridge = {self.ridge:g} is not allowed: must be {bound}, {remedy}")
        return self

    def predicted(self, ratio: Array, ridge: Array, noise: Array, start_distance: Array) -> Values:
        """Return the limit over a grid of ratios, penalties, noise levels and starting distances (NaN means that the start is 0)."""
        s, shares, energy, test = self.population
        limit = risk(ratio, ridge, noise, s, shares, energy, start_distance, test)
        return {**limit, "accuracy": CLOSED_FORM}

    def measured(self, draw: Draw, ridge: Array, noise: Array, start_distance: Array) -> Values:
        """Measure the observables on one draw of the inputs.

        The same inputs are used for every penalty, noise level and start. Signal and noise are averaged in closed form.
        """
        lam, tau, distance = np.broadcast_arrays(ridge, noise, start_distance)
        design, (population, _) = self.design(draw), self.population_at(draw.size)
        energy, unit = float(np.sum(population.energy)), _unit_energy(population.energy, population.shares)
        total, nothing = np.where(np.isnan(distance), energy, distance**2), np.zeros_like(unit)
        shrinkage = ridge_filter(design.values, lam)
        bias, variance = (
            total * design.bias(shrinkage, unit, population.test),
            design.variance(shrinkage, tau, population.test),
        )
        moved = total * design.coefficient_norm(shrinkage, unit, 0.0) + design.coefficient_norm(shrinkage, nothing, tau)
        from_start = energy + total * (1 - 2 * design.overlap(shrinkage, unit)) + moved
        left = design.left_over(shrinkage)
        # If the fit interpolates, gcv and kappa are limits lambda -> 0, where residual shares are proportional to 1/x.
        interpolates = left == 0
        with np.errstate(divide="ignore"):
            limiting = np.where(interpolates[..., None], 1 / design.values, shrinkage.residual)
        proxy = Filter(shrinkage.fit, limiting)
        scale = design.left_over(proxy)
        return dict(
            bias=bias,
            variance=variance,
            excess_risk=bias + variance,
            test_error=bias + variance + tau**2,
            train_error=total * design.train_error(shrinkage, unit, 0.0) + design.train_error(shrinkage, nothing, tau),
            degrees_of_freedom=design.degrees_of_freedom(shrinkage),
            effective_ridge=np.where(interpolates, 1.0, lam) / scale,
            coefficient_norm=np.where(np.isnan(distance), moved, from_start),
            gcv=(total * design.train_error(proxy, unit, 0.0) + design.train_error(proxy, nothing, tau)) / scale**2,
            average_bias=total * design.average_bias(shrinkage, unit, population.test),
        )

    def best_possible(self) -> Best:
        """Return the best method on the same samples. A law with `start_distance` has no known best method."""
        if self.start_distance is not None:
            raise Refused(
                f"Ridge with start_distance = {self.start_distance:g} has no known best possible error, because the start adds information "
                "to the samples; leave start_distance out"
            )
        if self.population.test is not None:
            raise Refused(
                "Ridge with test inputs of another covariance has no known best possible error; leave test_eigenvalues out"
            )
        return super().best_possible()

    def negative_ridge_limit(self) -> float:
        """Return the lower bound of a negative penalty.

        It is minus the smallest non-zero eigenvalue of the sample covariance if p > n, and 0 otherwise.

        >>> round(Ridge(ratio=4.0).negative_ridge_limit(), 12)
        -1.0
        """
        if math.isinf(self.ratio):
            return -math.inf
        s, shares, *_ = self.population
        return float(negative_ridge_limit(s, self.ratio * shares))

    def optimal_ridge(self, allow_negative: bool = True) -> float:
        """Return the penalty with the least test error. It may be negative, and it is infinite without a signal.

        >>> Ridge(ratio=0.5, noise=0.5).optimal_ridge()
        0.125
        """
        s, shares, energy, test = self.population
        if test is not None:
            raise Refused(
                "test inputs with another covariance are not allowed here: the best penalty is computed for test inputs like the training "
                "inputs; use limitlab.optimal(law, over='ridge', minimise='test_error')"
            )
        if self.start_distance is not None:
            energy = self.start_distance**2 * _unit_energy(energy, shares)
        return best_ridge(self.ratio, self.noise, s, shares, energy, allow_negative)
