"""Logistic regression with p predictors and n samples: bias, spread, calibration, discrimination, and whether the fit exists.

Setting.  x ~ N(0, Sigma), y = 0, 1 with P(y = 1 | x) = sig(b0 + <beta, x>), Var <beta, x> = gamma^2 (`signal`). The fit minimises
          (1/n) sum_i log-loss(y_i, b + <a, x_i>) + (ridge/2) |a|^2; the intercept b is never penalised.
Limit.    n, p -> infinity with p/n -> kappa (`ratio`).
Result.   A sample's score without its own influence is w = b + c1 G + c2 Z, where the label sees b0 + gamma G. With the proximal map
          p(w) of scale V, its force F = y - sig(p) and its stiffness h/(1 + V h), h = sig'(p), put v = E[h/(1 + V h)], m = E[F G]
          + c1 v. Then

              E F = 0,  c1 = (m/v) W1,  c1^2 + c2^2 = (m/v)^2 W2 + (E F^2/v^2) kappa E2,  V = kappa E1/v                 (1)

          with averages E, W over the spectrum at the penalty ridge/v (populations.py). Bias factor c1/gamma, noise scale
          c2/sqrt(kappa); the rest follows from the score b + c1 G + c2 Z of a new input (gaussian_score.py).
          Without a penalty the fit exists only for kappa below a threshold (logistic_existence.py). docs/theory/logistic_calibration.md.
Status.   Without a penalty theorem (Sur and Candes 2019, Zhao, Sur and Candes 2022), with one too (Salehi et al. 2019); intercept, groups
          and calibration as functionals: derived.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from limitlab._core.apportion import apportion
from limitlab.errors import Refused
from limitlab.laws import Draw, Experiment, Values, observable, parameter, shared
from limitlab.laws.classification.beside_best import BesideBest, Best, best_classifier, require_even
from limitlab.laws.classification.gaussian_score import TrueScore
from limitlab.laws.classification.logistic_existence import Existence, existence
from limitlab.laws.classification.logistic_system import solve_logistic
from limitlab.laws.classification.populations import Groups
from limitlab.models.data import gaussian_lattice
from limitlab.models.links import Labels, Link
from limitlab.models.logistic import LogisticFit, fit_logistic

__all__ = ["LogisticCalibration"]

Array = NDArray[np.float64]

TEST_INPUTS = 4096


class LogisticCalibration(BesideBest):
    """p predictors, n patients: are odds ratios inflated, are risks calibrated, and does the logistic fit exist at all?

    Examples
    --------
    >>> law = LogisticCalibration(ratio=0.1, intercept=-1.0, signal=1.5)
    >>> result = law.theory()
    >>> round(float(result.bias_factor), 8), round(float(result.calibration_slope), 8), round(float(result.auc), 8)
    (1.14979734, 0.59898483, 0.77198435)
    >>> round(law.existence_threshold(), 9)
    0.359803507
    """

    status = "derived"
    regime = "n, p -> infinity with p/n fixed; without a penalty p/n below the existence threshold"
    assumptions = (
        "Gaussian predictors (the limit is too favourable for skewed or heavy-tailed ones)",
        "labels follow a logistic model in the same predictors",
        "with groups and a penalty, the signal is spread over many directions of each group",
    )
    references = ("sur2019modern", "candes2020phase", "zhao2022asymptotic", "salehi2019impact")
    page = "logistic_calibration"
    observables = {
        "exists": observable("whether the fit exists", ""),
        "bias_factor": observable("factor by which coefficients are inflated", r"\alpha_*"),
        "noise_scale": observable("spread of a coefficient, times the root of n", r"\sigma_*"),
        "fitted_intercept": observable("fitted intercept", "b"),
        "leverage_scale": observable("influence of a sample on its own score", "V"),
        "calibration_slope": observable("slope of new labels on the fitted score", r"s_{\mathrm{cal}}"),
        "calibration_intercept": observable("intercept of new labels on the fitted score", r"a_{\mathrm{cal}}"),
        "auc": observable("probability that a case scores above a control", r"\mathrm{AUC}"),
        **shared("classification_error"),
        "log_loss": observable("mean log-loss on a new label", r"\mathcal{L}"),
        "brier_score": observable("mean squared error of the fitted risk", r"\mathrm{BS}"),
        **shared("train_loss"),
    }
    simulation = Experiment("number of predictors p", sizes=(20, 40, 80), draws=60)
    # Rare labels without a penalty; three groups with one, where the fit would not exist without
    points = (
        dict(ratio=0.1, intercept=-1.0, signal=1.5),
        dict(
            ratio=0.4,
            intercept=-0.7,
            ridge=0.1,
            eigenvalues=(4.0, 1.0, 0.2),
            weights=(0.25, 0.25, 0.5),
            signal_energy=(0.5, 0.3, 0.2),
        ),
    )

    ratio: float = parameter(0.1, symbol=r"\kappa = p/n", above=0, scale="log", count="size / value")
    signal: float = parameter(
        1.5, note="standard deviation of the true score; not used where signal_energy is given", symbol=r"\gamma", above=0
    )
    intercept: float = parameter(0.0, "intercept of the true score", note="not used where prevalence is given", symbol="b_0")
    prevalence: float | None = parameter(
        None, "share of labels 1", note="decides the intercept where it is given", symbol=r"\pi", above=0, below=1
    )
    ridge: float = parameter(0.0, note="(ridge/2)|a|^2", least=0, scale="log")
    fit_intercept: bool = parameter(True, "whether an intercept is fitted")
    eigenvalues: tuple[float, ...] = parameter((1.0,), above=0)
    weights: tuple[float, ...] = parameter(
        (1.0,), note="of the dimensions, rescaled to add up to 1", above=0, count="shares of size"
    )
    signal_energy: tuple[float, ...] | None = parameter(
        None, note="one number per group; not given: spread evenly over the directions, with the size of signal", least=0
    )

    @model_validator(mode="after")
    def _groups_and_signal(self) -> Self:
        for name in ("weights", "signal_energy"):
            given = getattr(self, name)
            if given is not None and len(given) != len(self.eigenvalues):
                raise Refused(
                    f"{name} = {given} is not allowed: must have one entry for each of the {len(self.eigenvalues)} eigenvalues"
                )
        if self.signal_energy is not None and not any(self.signal_energy):
            raise Refused(f"signal_energy = {self.signal_energy} is not allowed: must have one entry above 0")
        return self

    def natural_scale(self, observable: str) -> float:
        """Intercepts are judged on the scale of log odds, of which 1 is the unit."""
        return 1.0 if observable.endswith("_intercept") else 0.0

    # -- the limit --------------------------------------------------------------------------------------------------------

    def energies(self) -> Array:
        """Squared norm of the coefficients in each group."""
        s, w = np.asarray(self.eigenvalues), np.asarray(self.weights)
        return self.signal**2 * w / (w @ s) if self.signal_energy is None else np.asarray(self.signal_energy)

    def truth(self) -> TrueScore:
        """The score behind the labels."""
        signal = math.sqrt(float(np.dot(self.eigenvalues, self.energies())))
        if self.prevalence is None:
            return TrueScore(self.intercept, signal)
        return TrueScore(intercept_of(self.prevalence, signal), signal)

    def population(self) -> Groups:
        """What the limit needs to know of the predictors."""
        variance = np.asarray(self.eigenvalues) * self.energies()
        shares = np.asarray(self.weights) / math.fsum(self.weights)
        return Groups(self.ratio, self.eigenvalues, tuple(shares.tolist()), tuple((variance / variance.sum()).tolist()))

    def existence(self) -> Existence:
        """Threshold and spread without a penalty."""
        return existence(self.truth(), self.fit_intercept)

    def existence_threshold(self) -> float:
        """p/n below which a fit without penalty exists.

        >>> round(LogisticCalibration(signal=5**0.5, fit_intercept=False).existence_threshold(), 9)
        0.325588611
        """
        return self.existence().threshold

    def no_fit_probability(self, samples: Any) -> Any:
        """Probability that n samples and ratio n predictors leave no fit without penalty (0 with one).

        >>> round(float(LogisticCalibration(ratio=0.3).no_fit_probability(100)), 3)
        0.079
        """
        if self.ridge > 0:
            return np.zeros_like(np.asarray(samples, dtype=float))[()]
        return self.existence().no_fit_probability(self.ratio * np.asarray(samples, dtype=float), samples)[()]

    def exists(self) -> bool:
        """Whether the fit exists in the limit."""
        return self.ridge > 0 or self.ratio < self.existence_threshold()

    def observed(self) -> tuple[str, ...]:
        """All; where no fit exists, what its scores tend to as they grow."""
        return tuple(type(self).observables) if self.exists() else tuple(NO_FIT)

    def predicted(self) -> Values:
        """The limit at the law's own parameters."""
        if not self.exists():
            return NO_FIT
        found = solve_logistic(self.truth(), self.population(), self.ridge, self.fit_intercept)
        score = found.score
        slope, intercept = score.calibration()
        change = abs(score.auc(1.5) - score.auc())
        return dict(
            exists=True,
            bias_factor=score.signal / score.truth.signal,
            noise_scale=score.noise / math.sqrt(self.ratio),
            fitted_intercept=score.intercept,
            leverage_scale=found.leverage,
            calibration_slope=slope,
            calibration_intercept=intercept,
            auc=score.auc(),
            **score.losses(),
            train_loss=found.train_loss,
            accuracy=max(10 * found.accuracy, change),
        )

    def best_possible(self) -> Best:
        """The best classifier on the same samples, without an intercept behind the labels."""
        truth = self.truth()
        if abs(truth.intercept) > 1e-12:
            raise Refused(
                f"LogisticCalibration with intercept = {truth.intercept:g} has no known best possible error: it is known without an "
                "intercept behind the labels (prevalence 1/2)"
            )
        if not self.exists():
            raise Refused(
                f"LogisticCalibration with ratio = {self.ratio:g} and no penalty has no fit to compare with the best possible: the ratio "
                f"must be below {self.existence_threshold():.6g}, or the ridge above 0"
            )
        require_even(self, np.asarray(self.eigenvalues) * self.energies(), np.asarray(self.weights))
        return best_classifier(self, self.ratio, Labels(Link("logit"), truth.signal))

    # -- the experiment ---------------------------------------------------------------------------------------------------

    def measured(self, draw: Draw) -> Values:
        """One data set and its fit; new inputs are seen through their true and fitted scores, which are Gaussian given the fit."""
        from scipy.special import expit

        p, n, truth = draw.size, draw.count("ratio"), self.truth()
        counts = apportion(p, self.weights)
        deviation = np.sqrt(np.repeat(self.eigenvalues, counts))
        beta = np.zeros(p)  # by rotation inside a group, one direction carries its energy
        beta[np.cumsum(counts) - counts] = np.sqrt(self.energies())
        X = draw.rng.standard_normal((n, p)) * deviation
        y = (draw.rng.random(n) < expit(truth.intercept + X @ beta)).astype(float)
        fit = fit_logistic(X, y, self.ridge, self.fit_intercept)
        if not fit.exists:
            return NO_FIT
        a, true = deviation * fit.coefficients, deviation * beta
        c1 = float(a @ true) / truth.signal
        c2 = math.sqrt(max(float(a @ a) - c1**2, 0.0))
        scores = fit.intercept + X @ fit.coefficients
        bend = expit(scores) * expit(-scores)
        hessian = (X * (bend / n)[:, None]).T @ X + self.ridge * np.eye(p)
        return dict(
            exists=True,
            bias_factor=c1 / truth.signal,
            noise_scale=c2 / math.sqrt(p / n),
            fitted_intercept=fit.intercept,
            leverage_scale=float(np.sum(deviation**2 * np.diag(np.linalg.inv(hessian)))) / n,
            **on_new_inputs(draw.rng, truth, fit, c1, c2),
            train_loss=float(np.mean(np.logaddexp(0.0, scores) - y * scores)),
        )


NO_FIT: dict[str, Any] = dict(
    exists=False,
    bias_factor=math.inf,
    noise_scale=math.inf,
    leverage_scale=math.inf,
    calibration_slope=0.0,
    log_loss=math.inf,
    train_loss=0.0,
)
"""What the observables tend to along scores that grow for ever, as far as they have one limit."""


def intercept_of(prevalence: float, signal: float) -> float:
    """The intercept at which a share `prevalence` of the labels is 1.

    >>> round(intercept_of(0.2, 1.34170951851), 9)
    -1.825888435
    """
    from scipy.optimize import brentq

    reach = 40.0 + 10 * signal**2
    return float(brentq(lambda b: TrueScore(b, signal).prevalence - prevalence, -reach, reach, xtol=1e-14, rtol=1e-14))


def on_new_inputs(rng: np.random.Generator, truth: TrueScore, fit: LogisticFit, c1: float, c2: float) -> dict[str, float]:
    """Test observables over new inputs: a randomly shifted lattice of true and fitted scores, labels averaged."""
    from scipy.special import expit

    G, Z = gaussian_lattice(rng, TEST_INPUTS)
    risk, score = expit(truth.intercept + truth.signal * G), fit.intercept + c1 * G + c2 * Z
    said = expit(score)
    again = fit_logistic(score[:, None], risk)
    order = np.argsort(score)
    below = np.cumsum(1 - risk[order]) - (1 - risk[order]) / 2
    return dict(
        calibration_slope=float(again.coefficients[0]),
        calibration_intercept=again.intercept,
        auc=float(risk[order] @ below / (risk.sum() * (1 - risk).sum())),
        classification_error=float(np.mean(np.where(score > 0, 1 - risk, risk))),
        log_loss=float(np.mean(np.logaddexp(0.0, score) - risk * score)),
        brier_score=float(np.mean(risk * (1 - said) ** 2 + (1 - risk) * said**2)),
    )
