"""Errors, losses, discrimination and calibration of a fitted score that is jointly Gaussian with the true score.

Setting.  Labels y = 0, 1 with P(y = 1) = sig(b0 + gamma G), G standard Gaussian. A predictor has the score eta = b + c1 G + c2 Z with Z
          standard Gaussian and independent of G.
Result.   With S^2 = c1^2 + c2^2, r = c1/S and eta = b + S U, all quantities are integrals over U of the risk given the score,

              m(U) = E_W sig(b0 + gamma (r U + sqrt(1 - r^2) W)),    g(U) = E[G 1(y = 1) | U]                           (3)

          (docs/theory/logistic_calibration.md, section "Accuracy of the scores").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import ConvergenceError
from limitlab.models.channels import OutputChannel
from limitlab.numerics.quadrature import even_gaussian_rule, graded_rule

Array = NDArray[np.float64]

GAUSSIAN_END = 9.0  # end of equally spaced rules, in standard deviations
STEP = 0.5  # step of an equally spaced rule over the scale on which a sigmoid varies; the error of the rule is below e^-39
SINC_STEP = 0.06
NEWTON_STEPS = 60


@dataclass(frozen=True)
class TrueScore:
    """The true score b0 + gamma G of the labels.

    >>> round(TrueScore(0.0, 2.58372331489).auc, 9)
    0.9
    """

    intercept: float
    signal: float
    channel: OutputChannel | None = None

    def risk(self, score: Array) -> Array:
        """Return the probability of the label 1 at a true score."""
        from scipy.special import expit

        return np.asarray(expit(score)) if self.channel is None else np.asarray(self.channel.as_probability()(score))

    @property
    def prevalence(self) -> float:
        """Return P(y = 1)."""
        return float(self.seen(np.zeros(1), 0.0)[0][0])

    @property
    def auc(self) -> float:
        """Probability that a case has a higher true score than a control."""
        return Score(self, self.intercept, self.signal, 0.0).auc()

    def seen(self, u: Array, alignment: float) -> tuple[Array, Array]:
        """Return the functions m and g of (3) at u for a score whose correlation with the true score is `alignment`."""
        from scipy.special import expit

        if self.channel is not None:
            return self._seen_by_channel(self.channel, u, alignment)
        left = float(np.sqrt(max((1 - alignment) * (1 + alignment), 0.0)))
        if left == 0:
            risk = np.asarray(expit(self.intercept + self.signal * u))
            return risk, u * risk
        w, weight = even_gaussian_rule(min(STEP, STEP / (self.signal * left)), GAUSSIAN_END)
        score = alignment * u[:, None] + left * w
        risk = expit(self.intercept + self.signal * score)
        return np.asarray(risk @ weight), np.asarray((risk * score) @ weight)

    def _seen_by_channel(self, channel: OutputChannel, u: Array, alignment: float) -> tuple[Array, Array]:
        """Return m(U) and g(U) for labels of a channel, on panels that end at its kinks."""
        left = float(np.sqrt(max((1 - alignment) * (1 + alignment), 0.0)))
        middle = self.intercept + self.signal * alignment * u
        if left == 0:
            risk = self.risk(middle)
            return risk, u * risk
        w, weight = channel.score_rule(middle, self.signal * left)
        risk = self.risk(middle[:, None] + self.signal * left * w)
        return (weight * risk).sum(axis=1), (weight * risk * (alignment * u[:, None] + left * w)).sum(axis=1)

    def layers(self, alignment: float) -> list[tuple[float, float]]:
        """Return the positions in U at which the risk varies, with the scales of the variations."""
        if self.channel is None:
            return [self.layer(alignment)]
        sharp, left = max(abs(alignment), 1e-3), float(np.sqrt(max(1 - alignment**2, 0.0)))
        smooth = float(np.hypot(self.channel.length / (4 * self.signal), left)) / sharp
        kinks = [((kink - self.intercept) / (self.signal * sharp), left / sharp) for kink in self.channel.kinks]
        return [(-self.intercept / (self.signal * sharp), smooth), *kinks]

    def layer(self, alignment: float) -> tuple[float, float]:
        """Return the place in the standard Gaussian score U around which the risk changes from 0 to 1, and the width of this change."""
        sharp = max(alignment, 1e-3)
        return -self.intercept / (self.signal * sharp), float(np.hypot(1 / self.signal, np.sqrt(1 - alignment**2)) / sharp)


@dataclass(frozen=True)
class Score:
    """A fitted score b + c1 G + c2 Z, together with the true score."""

    truth: TrueScore
    intercept: float
    signal: float  # c1
    noise: float  # c2

    @property
    def spread(self) -> float:
        """The score's standard deviation S."""
        return float(np.hypot(self.signal, self.noise))

    @property
    def alignment(self) -> float:
        """The correlation r of the score with the true score."""
        return self.signal / self.spread

    def rule(self, order: int = 24) -> tuple[Array, Array]:
        """Return nodes and weights in U, split at the sign change of the score."""
        return graded_rule([(-self.intercept / self.spread, 1 / self.spread), *self.truth.layers(self.alignment)], order)

    def losses(self, order: int = 24) -> dict[str, float]:
        """Return the probability of a wrong label (threshold 1/2), the log-loss and the Brier score of the risks sig(eta)."""
        from scipy.special import expit

        u, weight = self.rule(order)
        risk, _ = self.truth.seen(u, self.alignment)
        score = self.intercept + self.spread * u
        fitted_risk = expit(score)
        return dict(
            classification_error=float(weight @ np.where(score > 0, 1 - risk, risk)),
            log_loss=float(weight @ (np.logaddexp(0.0, score) - risk * score)),
            brier_score=float(weight @ (risk * (1 - fitted_risk) ** 2 + (1 - risk) * fitted_risk**2)),
        )

    def auc(self, refinement: float = 1.0) -> float:
        """Return P(score of a case > score of a control).

        It is E[m(U) F0(U)]/(prevalence (1 - prevalence)), with F0 by sinc integration.
        """
        from scipy.special import sici

        step = SINC_STEP * min(1.0, 4 / self.truth.signal) / refinement
        u, weight = even_gaussian_rule(step, GAUSSIAN_END)
        risk, _ = self.truth.seen(u, self.alignment)
        lags = np.arange(-(u.size - 1), u.size)
        cumulative = np.convolve(weight * (1 - risk), 0.5 + sici(np.pi * lags)[0] / np.pi, mode="valid")
        prevalence = float(weight @ risk)
        return float(weight @ (risk * cumulative)) / (prevalence * (1 - prevalence))

    def calibration(self, order: int = 24) -> tuple[float, float]:
        """Return slope s and intercept a of the logistic regression of new labels on the score.

        They solve E[(m - sig(a + s eta))(1, eta)] = 0. Newton's method in U starts from slope 0. The objective is convex.
        """
        from scipy.special import expit, logit

        u, weight = self.rule(order)
        risk, _ = self.truth.seen(u, self.alignment)
        table = np.stack([np.ones_like(u), u])
        coefficients = np.array([logit(weight @ risk), 0.0])
        for _ in range(NEWTON_STEPS):
            fitted_risk = expit(coefficients @ table)
            step = np.linalg.solve(
                (table * (weight * fitted_risk * (1 - fitted_risk))) @ table.T, table @ (weight * (risk - fitted_risk))
            )
            coefficients = coefficients + step
            if np.abs(step).max() <= 1e-14 * (1 + np.abs(coefficients).max()):
                slope = float(coefficients[1]) / self.spread
                return slope, float(coefficients[0]) - slope * self.intercept
        raise ConvergenceError("the calibration slope did not converge", float(coefficients[1]), float(np.abs(step).max()))
