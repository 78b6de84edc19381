"""What a fitted score is worth when it is jointly Gaussian with the true one: errors, losses, discrimination, calibration.

Setting.  Labels y = 0, 1 with P(y = 1) = sig(b0 + gamma G), G standard Gaussian. A predictor has the score eta = b + c1 G + c2 Z with Z
          standard Gaussian and independent of G.
Result.   With S^2 = c1^2 + c2^2, r = c1/S and eta = b + S U, everything is an integral over U of the risk that the score leaves,

              m(U) = E_W sig(b0 + gamma (r U + sqrt(1 - r^2) W)),    g(U) = E[G 1(y = 1) | U]                           (3)

          (docs/theory/logistic_calibration.md, section "What a score is worth").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import ConvergenceError
from limitlab.numerics.quadrature import even_gaussian_rule, graded_rule

Array = NDArray[np.float64]

REACH = 9.0  # of even rules, in standard deviations
STEP = 0.5  # of an even rule, over the scale on which a sigmoid varies: its error is below e^-39
SINC_STEP = 0.06
NEWTON_STEPS = 60


@dataclass(frozen=True)
class TrueScore:
    """The score b0 + gamma G behind the labels.

    >>> round(TrueScore(0.0, 2.58372331489).auc, 9)
    0.9
    """

    intercept: float
    signal: float

    @property
    def prevalence(self) -> float:
        """P(y = 1)."""
        return float(self.seen(np.zeros(1), 0.0)[0][0])

    @property
    def auc(self) -> float:
        """Probability that a case has a higher score than a control, for the true score itself."""
        return Score(self, self.intercept, self.signal, 0.0).auc()

    def seen(self, u: Array, alignment: float) -> tuple[Array, Array]:
        """m(U) and g(U) of (3) for a score of correlation r with G, by an even rule (exponentially accurate)."""
        from scipy.special import expit

        left = float(np.sqrt(max((1 - alignment) * (1 + alignment), 0.0)))
        if left == 0:
            risk = np.asarray(expit(self.intercept + self.signal * u))
            return risk, u * risk
        w, weight = even_gaussian_rule(min(STEP, STEP / (self.signal * left)), REACH)
        score = alignment * u[:, None] + left * w
        risk = expit(self.intercept + self.signal * score)
        return np.asarray(risk @ weight), np.asarray((risk * score) @ weight)

    def layer(self, alignment: float) -> tuple[float, float]:
        """Where in U the risk varies, and on which scale."""
        sharp = max(alignment, 1e-3)
        return -self.intercept / (self.signal * sharp), float(np.hypot(1 / self.signal, np.sqrt(1 - alignment**2)) / sharp)


@dataclass(frozen=True)
class Score:
    """A score b + c1 G + c2 Z beside the truth."""

    truth: TrueScore
    intercept: float
    signal: float  # c1
    noise: float  # c2

    @property
    def spread(self) -> float:
        """S, the score's standard deviation."""
        return float(np.hypot(self.signal, self.noise))

    @property
    def alignment(self) -> float:
        """r, the score's correlation with the true one."""
        return self.signal / self.spread

    def rule(self, order: int = 24) -> tuple[Array, Array]:
        """Nodes and weights in U, split where the score changes sign."""
        return graded_rule([(-self.intercept / self.spread, 1 / self.spread), self.truth.layer(self.alignment)], order)

    def losses(self, order: int = 24) -> dict[str, float]:
        """Probability of a wrong label (threshold 1/2), log-loss and Brier score of the risks sig(eta)."""
        from scipy.special import expit

        u, weight = self.rule(order)
        risk, _ = self.truth.seen(u, self.alignment)
        score = self.intercept + self.spread * u
        said = expit(score)
        return dict(
            classification_error=float(weight @ np.where(score > 0, 1 - risk, risk)),
            log_loss=float(weight @ (np.logaddexp(0.0, score) - risk * score)),
            brier_score=float(weight @ (risk * (1 - said) ** 2 + (1 - risk) * said**2)),
        )

    def auc(self, refinement: float = 1.0) -> float:
        """P(score of a case > score of a control): E[m(U) F0(U)]/(prevalence (1 - prevalence)), F0 by sinc integration."""
        from scipy.special import sici

        step = SINC_STEP * min(1.0, 4 / self.truth.signal) / refinement
        u, weight = even_gaussian_rule(step, REACH)
        risk, _ = self.truth.seen(u, self.alignment)
        lags = np.arange(-(u.size - 1), u.size)
        cumulative = np.convolve(weight * (1 - risk), 0.5 + sici(np.pi * lags)[0] / np.pi, mode="valid")
        prevalence = float(weight @ risk)
        return float(weight @ (risk * cumulative)) / (prevalence * (1 - prevalence))

    def calibration(self, order: int = 24) -> tuple[float, float]:
        """Slope and intercept of the logistic regression of new labels on the score: E[(m - sig(a + s eta))(1, eta)] = 0.

        Newton's method in U, from slope 0; the objective is convex.
        """
        from scipy.special import expit, logit

        u, weight = self.rule(order)
        risk, _ = self.truth.seen(u, self.alignment)
        table = np.stack([np.ones_like(u), u])
        found = np.array([logit(weight @ risk), 0.0])
        for _ in range(NEWTON_STEPS):
            said = expit(found @ table)
            step = np.linalg.solve((table * (weight * said * (1 - said))) @ table.T, table @ (weight * (risk - said)))
            found = found + step
            if np.abs(step).max() <= 1e-14 * (1 + np.abs(found).max()):
                slope = float(found[1]) / self.spread
                return slope, float(found[0]) - slope * self.intercept
        raise ConvergenceError("the calibration slope did not converge", float(found[1]), float(np.abs(step).max()))
