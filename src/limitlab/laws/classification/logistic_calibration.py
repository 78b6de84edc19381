"""Bias, spread, calibration, discrimination and existence of logistic regression with p predictors and n samples.

Setting.  x ~ N(0, Sigma), y = 0, 1 with P(y = 1 | x) = sig(b0 + <beta, x>), Var <beta, x> = gamma^2 (`signal`). The fit minimises
          (1/n) sum_i log-loss(y_i, b + <a, x_i>) + (ridge/2) |a|^2; the intercept b is never penalised.
Limit.    n, p -> infinity with p/n -> kappa (`ratio`).
Result.   A sample's score in the fit without this sample is w = b + c1 G + c2 Z, where b0 + gamma G is the true score. With the proximal
          map p(w) of scale V, its force F = y - sig(p) and its stiffness h/(1 + V h), h = sig'(p), put v = E[h/(1 + V h)], m = E[F G]
          + c1 v. Then

              E F = 0,  c1 = (m/v) W1,  c1^2 + c2^2 = (m/v)^2 W2 + (E F^2/v^2) kappa E2,  V = kappa E1/v                 (1)

          with averages E, W over the spectrum at the penalty ridge/v (populations.py). Bias factor c1/gamma, noise scale
          c2/sqrt(kappa). The other observables follow from the score b + c1 G + c2 Z of a new input (gaussian_score.py).
          Without a penalty the fit exists only for kappa below a threshold (logistic_system.py). See docs/theory/logistic_calibration.md.
Status.   Theorem without a penalty (Sur and Candes 2019, Zhao, Sur and Candes 2022) and with a penalty (Salehi et al. 2019). The equations
          for intercept and groups, and the calibration, are derived.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from limitlab._core.declaration import apportion
from limitlab.errors import Refused
from limitlab.laws import Draw, Experiment, Headline, Mark, Values, observable, parameter, shared
from limitlab.laws._population import HasSpectrum, Population
from limitlab.laws.classification.beside_best import Best, HasBayesError, best_classifier, require_isotropic_signal
from limitlab.laws.classification.gaussian_score import TrueScore
from limitlab.laws.classification.logistic_system import Existence, Fitted, existence, solve_logistic
from limitlab.laws.classification.populations import Groups
from limitlab.models.channels import OutputChannel
from limitlab.models.data import gaussian_lattice
from limitlab.models.links import Labels, Link
from limitlab.models.logistic import LogisticFit, fit_logistic

__all__ = ["LogisticCalibration"]

Array = NDArray[np.float64]

SMALLEST_SIGNAL = 1e-4  # the bias factor is an even function of the signal, so its change below is of order 1e-8
TEST_INPUTS = 4096


class LogisticCalibration(HasSpectrum, HasBayesError):
    """With p predictors and n patients, are odds ratios inflated, are risks calibrated, and does the logistic fit exist at all?

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
        "exists": observable("whether the fit exists", "", least=0, most=1),
        "bias_factor": observable("factor by which coefficients are inflated", r"\alpha_*"),
        "noise_scale": observable("spread of a coefficient, times the root of n", r"\sigma_*", least=0),
        "fitted_intercept": observable("fitted intercept", "b"),
        "leverage_scale": observable("influence of a sample on its own score", "V", least=0),
        "calibration_slope": observable("slope of new labels on the fitted score", r"s_{\mathrm{cal}}"),
        "calibration_intercept": observable("intercept of new labels on the fitted score", r"a_{\mathrm{cal}}"),
        "auc": observable("probability that a case scores above a control", r"\mathrm{AUC}", least=0, most=1),
        **shared("classification_error"),
        "log_loss": observable("mean log-loss on a new label", r"\mathcal{L}", least=0),
        "brier_score": observable("mean squared error of the fitted risk", r"\mathrm{BS}", least=0, most=1),
        **shared("train_loss"),
    }
    simulation = Experiment("number of predictors p", sizes=(20, 40, 80), draws=60)
    # Rare labels without a penalty, then three groups with a penalty, without which the fit would not exist
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
    headline = Headline(
        "Odds ratios inflate long before p reaches n",
        x="ratio",
        over=(0.01, 0.35, 69),
        show=("bias_factor", "calibration_slope"),
        panels=True,
        at=dict(signal=1.5),
        size=80,
        draws=8,
        places=(0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3),
        sliders=("signal", "ridge"),
        marks=(Mark("y", 1.0, "no inflation"),),
    )

    ratio: float = parameter(0.1, symbol=r"\kappa = p/n", above=0, scale="log", count="size / value")
    signal: float = parameter(
        1.5, note="standard deviation of the true score; not used if signal_energy is given", symbol=r"\gamma", above=0
    )
    intercept: float = parameter(0.0, "intercept of the true score", note="not used if prevalence is given", symbol="b_0")
    prevalence: float | None = parameter(
        None, "share of labels 1", note="determines the intercept if it is not None", symbol=r"\pi", above=0, below=1
    )
    ridge: float = parameter(0.0, note="(ridge/2)|a|^2", least=0, scale="log")
    fit_intercept: bool = parameter(True, "whether an intercept is fitted")
    channel: OutputChannel | None = parameter(
        None,
        note="labels -1 and +1 stand for 0 and 1; not given: the logistic model",
        added=True,
    )
    eigenvalues: tuple[float, ...] = parameter((1.0,), above=0)
    weights: tuple[float, ...] = parameter(
        (1.0,), note="of the dimensions, rescaled to add up to 1", above=0, count="shares of size"
    )
    signal_energy: tuple[float, ...] | None = parameter(
        None, note="one number per group; None spreads the size of signal evenly over the directions", least=0
    )

    @model_validator(mode="after")
    def _channel_has_two_labels(self) -> Self:
        if self.channel is not None and self.channel.labels != (-1.0, 1.0):
            raise Refused(
                f"channel = {self.channel!r} is not allowed: a logistic regression needs the labels -1 and +1 (for 0 and 1); use "
                "OutputChannel.from_probability"
            )
        return self

    @model_validator(mode="after")
    def _groups_and_signal(self) -> Self:
        if self.spectrum is not None:
            if self.signal_energy is not None:
                raise Refused(
                    f"signal_energy = {self.signal_energy} is not allowed together with spectrum: give the energies to the spectrum "
                    "(Spectrum.with_energy)"
                )
            if not (self.spectrum.eigenvalues > 0).all():
                raise Refused(f"spectrum = {self.spectrum!r} is not allowed: every eigenvalue must be above 0")
            return self
        for name in ("weights", "signal_energy"):
            numbers = getattr(self, name)
            if numbers is not None and len(numbers) != len(self.eigenvalues):
                raise Refused(
                    f"{name} = {numbers} is not allowed: must have one entry for each of the {len(self.eigenvalues)} eigenvalues"
                )
        if self.signal_energy is not None and not any(self.signal_energy):
            raise Refused(f"signal_energy = {self.signal_energy} is not allowed: must have one entry above 0")
        return self

    def natural_scale(self, observable: str) -> float:
        """Return 1, the unit of log odds, as the scale of intercepts."""
        return 1.0 if observable.endswith("_intercept") else 0.0

    # -- the limit --------------------------------------------------------------------------------------------------------

    def energies(self) -> Array:
        """Return the squared norm of the coefficients in each group."""
        return self.groups().energy

    def groups(self, size: int | None = None) -> Population:
        """Return eigenvalues, shares and energies of the groups or of the spectrum, in the limit or in `size` dimensions."""
        if self.spectrum is not None:
            atoms = self.spectrum if size is None else self.spectrum.at(size)
            s, w, energy = atoms.eigenvalues, atoms.weights, atoms.energy
            return Population(s, w, self.signal**2 * w / (w @ s) if energy is None else energy)
        s, w = np.asarray(self.eigenvalues), np.asarray(self.weights)
        energy = self.signal**2 * w / (w @ s) if self.signal_energy is None else np.asarray(self.signal_energy)
        return Population(s, w / math.fsum(self.weights), energy)

    def truth(self) -> TrueScore:
        """Return the true score of the labels."""
        s, _, energy, _ = self.groups()
        signal = math.sqrt(float(np.dot(s, energy)))
        if self.prevalence is None:
            return TrueScore(self.intercept, signal, self.channel)
        return TrueScore(intercept_of(self.prevalence, signal, self.channel), signal, self.channel)

    def population(self) -> Groups:
        """Return the spectrum of the predictors and the signal in each group."""
        s, shares, energy, _ = self.groups()
        variance = s * energy
        return Groups(self.ratio, tuple(s.tolist()), tuple(shares.tolist()), tuple((variance / variance.sum()).tolist()))

    def existence(self) -> Existence:
        """Return the threshold of p/n below which the fit without penalty exists, and its spread, equations (4) and (5)."""
        return existence(self.truth(), self.fit_intercept)

    def existence_threshold(self) -> float:
        """Return the value of p/n below which a fit without penalty exists.

        >>> round(LogisticCalibration(signal=5**0.5, fit_intercept=False).existence_threshold(), 9)
        0.325588611
        """
        return self.existence().threshold

    def no_fit_probability(self, samples: Any) -> Any:
        """Return the probability that no fit exists for n samples and `ratio` * n predictors.

        It is 0 with a penalty.

        >>> round(float(LogisticCalibration(ratio=0.3).no_fit_probability(100)), 3)
        0.079
        """
        if self.ridge > 0:
            return np.zeros_like(np.asarray(samples, dtype=float))[()]
        return self.existence().no_fit_probability(self.ratio * np.asarray(samples, dtype=float), samples)[()]

    def exists(self) -> bool:
        """Return whether the fit exists in the limit."""
        return self.ridge > 0 or self.ratio < self.existence_threshold()

    def observed(self) -> tuple[str, ...]:
        """Return all observables, or those that have a limit also if no fit exists."""
        return tuple(type(self).observables) if self.exists() else tuple(NO_FIT)

    def predicted(self) -> Values:
        """Return the limit at the law's parameters."""
        if not self.exists():
            return NO_FIT
        solution = solve_logistic(self.truth(), self.population(), self.ridge, self.fit_intercept)
        score = solution.score
        slope, intercept = score.calibration()
        change = abs(score.auc(1.5) - score.auc())
        return dict(
            exists=True,
            bias_factor=self._bias_factor(solution),
            noise_scale=score.noise / math.sqrt(self.ratio),
            fitted_intercept=score.intercept,
            leverage_scale=solution.leverage,
            calibration_slope=slope,
            calibration_intercept=intercept,
            auc=score.auc(),
            **score.losses(),
            train_loss=solution.train_loss,
            # the calibration slope is a quotient by the spread of the score, which vanishes with the signal or for large penalties
            accuracy=max(
                10 * solution.accuracy, change, 1e-15 / score.spread, 0.0 if score.truth.signal >= SMALLEST_SIGNAL else 1e-9
            ),
        )

    def _bias_factor(self, solution: Fitted) -> float:
        """Return the fitted over the true standard deviation of the score.

        For a tiny signal both vanish. The ratio is an even function of the signal, so its value at `SMALLEST_SIGNAL` is its limit.
        """
        if solution.score.truth.signal >= SMALLEST_SIGNAL:
            return solution.score.signal / solution.score.truth.signal
        truth = TrueScore(solution.score.truth.intercept, SMALLEST_SIGNAL)
        return solve_logistic(truth, self.population(), self.ridge, self.fit_intercept).score.signal / SMALLEST_SIGNAL

    def best_possible(self) -> Best:
        """Return the best classifier on the same samples, for labels whose true score has no intercept."""
        truth = self.truth()
        if self.channel is not None:
            raise Refused(
                f"LogisticCalibration with channel = {self.channel!r} has no known best possible error, which is known for the logistic "
                "model; leave channel out, or use BayesOptimal with this channel"
            )
        if abs(truth.intercept) > 1e-12:
            raise Refused(
                f"LogisticCalibration with intercept = {truth.intercept:g} has no known best possible error: it is known only "
                "for intercept = 0 of the true score (prevalence 1/2)"
            )
        if not self.exists():
            raise Refused(
                f"LogisticCalibration with ratio = {self.ratio:g} and no penalty has no fit to compare with the best possible: the ratio "
                f"must be below {self.existence_threshold():.6g}, or the ridge above 0"
            )
        s, shares, energy, _ = self.groups()
        require_isotropic_signal(self, s * energy, shares if self.spectrum is not None else np.asarray(self.weights))
        return best_classifier(self, self.ratio, Labels(Link("logit"), truth.signal))

    # -- the experiment ---------------------------------------------------------------------------------------------------

    def measured(self, draw: Draw) -> Values:
        """Draw and fit a data set, and test the fit on true and fitted scores of new inputs.

        Given the fit, these scores are jointly Gaussian, and they are drawn directly.
        """
        from scipy.special import expit

        p, n, truth = draw.size, draw.count("ratio"), self.truth()
        s, shares, energy, _ = self.groups(p)
        counts = apportion(p, self.weights) if self.spectrum is None else np.round(shares * p).astype(int)
        deviation = np.sqrt(np.repeat(s, counts))
        beta = np.zeros(p)  # by rotation inside a group, one direction has all the energy of the group
        beta[np.cumsum(counts) - counts] = np.sqrt(energy)
        X = draw.rng.standard_normal((n, p)) * deviation
        y = (draw.rng.random(n) < truth.risk(truth.intercept + X @ beta)).astype(float)
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
"""Values of the observables if no fit exists. The scores of a minimising sequence then diverge, and these observables have a limit."""


def intercept_of(prevalence: float, signal: float, channel: OutputChannel | None = None) -> float:
    """Return the intercept at which a share `prevalence` of the labels is 1.

    >>> round(intercept_of(0.2, 1.34170951851), 9)
    -1.825888435
    """
    from scipy.optimize import brentq

    reach = 40.0 + 10 * signal**2

    def excess(b: float) -> float:
        return TrueScore(b, signal, channel).prevalence - prevalence

    if not excess(-reach) < 0 < excess(reach):
        raise Refused(
            f"prevalence = {prevalence:g} is not allowed with this channel: it must be between {excess(-reach) + prevalence:.4g} and "
            f"{excess(reach) + prevalence:.4g}, the shares of labels 1 that the channel can have"
        )
    return float(brentq(excess, -reach, reach, xtol=1e-14, rtol=1e-14))


def on_new_inputs(rng: np.random.Generator, truth: TrueScore, fit: LogisticFit, c1: float, c2: float) -> dict[str, float]:
    """Return test observables averaged over labels and over a randomly shifted lattice of true and fitted scores of new inputs."""
    from scipy.special import expit

    G, Z = gaussian_lattice(rng, TEST_INPUTS)
    risk, score = truth.risk(truth.intercept + truth.signal * G), fit.intercept + c1 * G + c2 * Z
    fitted_risk = expit(score)
    again = fit_logistic(score[:, None], risk)
    order = np.argsort(score)
    below = np.cumsum(1 - risk[order]) - (1 - risk[order]) / 2
    return dict(
        calibration_slope=float(again.coefficients[0]),
        calibration_intercept=again.intercept,
        auc=float(risk[order] @ below / (risk.sum() * (1 - risk).sum())),
        classification_error=float(np.mean(np.where(score > 0, 1 - risk, risk))),
        log_loss=float(np.mean(np.logaddexp(0.0, score) - risk * score)),
        brier_score=float(np.mean(risk * (1 - fitted_risk) ** 2 + (1 - risk) * fitted_risk**2)),
    )
