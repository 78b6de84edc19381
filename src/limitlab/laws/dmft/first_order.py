"""Gradient descent on any smooth loss: the general dynamical mean-field theory, without Gaussian approximation (claim D1).

Setting.  x ~ N(0, I_d); n samples with loss L(<theta, x>; <theta_*, x>, e), e standard Gaussian; theta_{k+1} = theta_k - step *
          (ridge theta_k + (1/n) sum grad L).
Limit.    n, d -> infinity with n/d -> delta (`sample_ratio`), at a fixed number of steps.
Result.   A scalar process for the coordinates of theta and one for the predictions, coupled through their correlations and
          responses (docs/theory/first_order.md, eqs. 1 to 5). It is written here for discrete time, in which it is exact for
          gradient descent with the same step: no discretisation error.
Status.   Theorem (Celentano, Cheng, Montanari 2021). The process of predictions is sampled: exact for the square loss (second moments are
          matched exactly), otherwise with a statistical error that is reported as the accuracy.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from limitlab.errors import ConvergenceError
from limitlab.laws.base import Law
from limitlab.laws.dmft.losses import LOSSES, Loss
from limitlab.laws.parameters import parameter
from limitlab.laws.results import Values

Floats = NDArray[np.float64]

CELENTANO = """@article{celentano2021high,
  title = {The high-dimensional asymptotics of first order methods with random data},
  author = {Celentano, Michael and Cheng, Chen and Montanari, Andrea}, journal = {arXiv:2112.07572}, year = {2021}}"""

PIVOT = 1e-5
"""Least pivot of the covariance of the process, relative to its scale: it is numerically singular after about ten steps."""

REPLICATES = 3
"""Independent solutions whose spread gives the statistical error."""


@dataclass(frozen=True)
class DescentCorrelations:
    """The limit: C(k, s) = <theta_k, theta_s>, overlaps <theta_k, theta_*>, mean train error, and how well Stein's lemma holds."""

    correlation: Floats
    overlap: Floats
    train_error: Floats
    stein_gap: float


def whitened_paths(rng: np.random.Generator, paths: int, columns: int) -> Floats:
    """Gaussian-like samples with mean exactly 0 and covariance exactly the identity: whitened by QR, then antithetic.

    >>> z = whitened_paths(np.random.default_rng(0), 100, 5)
    >>> bool(np.allclose(z.T @ z / 100, np.eye(5))), bool(np.allclose(z.sum(axis=0), 0))
    (True, True)
    """
    half = max(paths // 2, columns + 1)
    q, r = np.linalg.qr(rng.standard_normal((half, columns)))
    z = q * np.sign(np.diag(r)) * np.sqrt(half)
    return np.concatenate([z, -z])


def descent_correlations(
    loss: Loss,
    sample_ratio: float,
    step: float,
    steps: int,
    *,
    signal: float = 1.0,
    start_norm: float = 0.0,
    start_overlap: float = 0.0,
    ridge: float = 0.0,
    paths: int = 4000,
    seed: int = 0,
) -> DescentCorrelations:
    """Solve the discrete-time equations (1) to (5).

    Parameters
    ----------
    loss
        A `limitlab.laws.dmft.losses.Loss`; `losses.from_function` makes one from any function that JAX can differentiate.
    sample_ratio, step, steps, ridge
        n/d, step size, number of steps, ridge penalty.
    signal, start_norm, start_overlap
        |theta_*|^2, |theta_0|^2 and <theta_0, theta_*>.
    paths, seed
        Number of sampled paths, and their seed.

    Examples
    --------
    >>> from limitlab.laws.dmft.losses import square
    >>> result = descent_correlations(square(0.5), 2.0, 0.1, 8, start_norm=0.5, start_overlap=0.2, paths=100)
    >>> result.overlap[8].round(6)
    np.float64(0.600625)
    """
    eta, rate = step, step / sample_ratio
    z = whitened_paths(np.random.default_rng(np.random.SeedSequence([seed, 77])), paths, steps + 3)
    noise, truth, count = z[:, 0], np.sqrt(signal) * z[:, 1], len(z)
    xi = z[:, 1:]  # the truth's Gaussian, then one per step
    c = np.zeros((steps + 1, steps + 1))
    star = np.zeros(steps + 1)
    c[0, 0], star[0] = start_norm, start_overlap
    response_loss, response_theta, force = np.zeros((3, steps + 1, steps + 1))
    response_star, curvature, error = np.zeros((3, steps + 1))
    cholesky = np.zeros((steps + 2, steps + 2))
    cholesky[0, 0] = np.sqrt(signal)
    pulls, curves, turns = np.zeros((3, steps + 1, count))  # L'(r_k), L''(r_k), dL'(r_k)/dw_*
    sensitivity: list[Floats] = []  # dr_k / dw_s, s <= k
    stein = 0.0

    for k in range(steps + 1):
        # A new point of the Gaussian process w, and the prediction r that it drives, eq. (2).
        _extend(cholesky, k + 1, np.concatenate([[star[k]], c[k, : k + 1]]), max(signal, c[k, k]))
        w = xi[:, : k + 2] @ cholesky[k + 1, : k + 2]
        r = w - rate * response_theta[k, :k] @ pulls[:k]
        pulls[k], curves[k] = loss.first(r, truth, noise), loss.second(r, truth, noise)
        if not np.all(np.isfinite(pulls[k])) or c[k, k] > 1e12 * (signal + start_norm + 1):
            raise ConvergenceError(
                f"step = {step:g} is not allowed: gradient descent diverges at step {k}; use a smaller one"
            )
        error[k] = loss.error(r, truth, noise).mean()

        # Responses of the loss, eq. (3), by differentiating (2) along every path.
        weights = rate * response_theta[k, :k, None] * curves[:k]
        own = np.zeros((k + 1, count))
        own[k] = 1.0
        for j in range(k):
            own[: j + 1] -= weights[j] * sensitivity[j]
        sensitivity.append(own)
        curvature[k] = curves[k].mean()
        response_loss[k, :k] = own[:k] @ curves[k] / count
        force[k, : k + 1] = force[: k + 1, k] = pulls[: k + 1] @ pulls[k] / count
        direct = (pulls[k] @ truth / count - curvature[k] * star[k] - response_loss[k, :k] @ star[:k]) / signal
        if loss.cross is None:
            response_star[k] = direct  # Stein's lemma
        else:
            turns[k] = loss.cross(r, truth, noise) - rate * curves[k] * (response_theta[k, :k] @ turns[:k])
            response_star[k] = turns[k].mean()
            stein = max(stein, abs(direct - response_star[k]))
        if k == steps:
            break

        # One step of the coordinates of theta, which are linear in their noise, eqs. (4) and (5).
        damping = 1 - eta * (ridge + curvature[k])
        response_theta[k + 1, :k] = damping * response_theta[k, :k] - eta * response_loss[k, :k] @ response_theta[:k, :k]
        response_theta[k + 1, k] = 1.0
        star[k + 1] = damping * star[k] - eta * (response_loss[k, :k] @ star[:k] + response_star[k] * signal)
        past = damping * c[k, : k + 1] - eta * (response_loss[k, :k] @ c[:k, : k + 1] + response_star[k] * star[: k + 1])
        past += eta * rate * response_theta[: k + 1, :k] @ force[k, :k]
        c[k + 1, : k + 1] = c[: k + 1, k + 1] = past
        c[k + 1, k + 1] = (
            damping * c[k, k + 1]
            - eta * (response_loss[k, :k] @ c[:k, k + 1] + response_star[k] * star[k + 1])
            + eta * rate * response_theta[k + 1, : k + 1] @ force[k, : k + 1]
        )
    return DescentCorrelations(c, star, error, stein)


def _extend(factor: Floats, k: int, covariances: Floats, scale: float) -> None:
    """One more row of a Cholesky factor, its pivot kept away from zero."""
    for j in range(k):
        factor[k, j] = (covariances[j] - factor[k, :j] @ factor[j, :j]) / factor[j, j]
    factor[k, k] = np.sqrt(max(covariances[k] - factor[k, :k] @ factor[k, :k], PIVOT**2 * scale))


class FirstOrderDynamics(Law):
    """How do train error, norm and overlap evolve when gradient descent fits a single neuron or a linear model?

    Examples
    --------
    >>> law = FirstOrderDynamics(loss="square", sample_ratio=2, noise=0.5, step=0.1, steps=8,
    ...                          signal=1.0, start_norm=0.5, start_overlap=0.2)
    >>> law.theory().overlap.values[[0, 8]].round(6)
    array([0.2     , 0.600625])
    """

    status: ClassVar = "theorem"
    regime: ClassVar = "n, d -> infinity at fixed n/d, step size and number of steps"
    assumptions: ClassVar = ("Gaussian inputs", "loss with bounded second derivative", "full-batch gradient descent")
    references: ClassVar = (CELENTANO,)
    claims: ClassVar = ("D1",)
    observables: ClassVar = ("train_error", "norm", "overlap")
    default_sizes: ClassVar = (50, 100, 200)
    default_seeds: ClassVar = 30

    loss: Literal["square", "tanh", "logistic"] = parameter(
        "tanh", "squared error of <theta,x> or of tanh<theta,x>, or logistic loss of sign labels", symbol="L"
    )
    sample_ratio: float = parameter(2.0, "samples per dimension", symbol=r"\delta = n/d", above=0, scale="log")
    noise: float = parameter(0.3, "standard deviation of the noise in the labels", symbol=r"\tau", least=0)
    step: float = parameter(0.5, "step size of gradient descent", symbol=r"\eta", above=0, scale="log")
    steps: int = parameter(10, "number of steps", symbol="K", least=1, most=200)
    signal: float = parameter(2.0, "squared norm of the true parameters", symbol=r"\rho", above=0)
    start_norm: float = parameter(0.0, "squared norm at the start", symbol="q_0", least=0)
    start_overlap: float = parameter(0.0, "inner product of the start with the truth", symbol="m_0")
    ridge: float = parameter(0.0, "ridge penalty", symbol=r"\lambda", least=0)
    paths: int = parameter(8000, "sampled paths of the prediction process, per replicate", least=100, scale="log")

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.start_overlap**2 > self.start_norm * self.signal * (1 + 1e-12):
            raise ValueError(
                f"start_overlap = {self.start_overlap:g} is not allowed: its square must be at most start_norm * signal = "
                f"{self.start_norm * self.signal:g}"
            )
        return self

    def coordinates(self) -> dict[str, Any]:
        """The number of steps done."""
        return {"time": np.arange(self.steps + 1)}

    def evaluate(self, **grid: Any) -> Values:
        """The discrete-time equations; the accuracy is the spread of independent sets of paths."""
        return dict(_solved(self))

    def realised(self, size: int) -> Self:
        """n = round(size * sample_ratio)."""
        return self.replace(sample_ratio=max(1, round(self.sample_ratio * size)) / size)

    def experiment(self, size: int, seed: int, **path: Any) -> Values:
        """Gradient descent in `size` dimensions."""
        rng, n, loss = self.rng(size, seed), max(1, round(self.sample_ratio * size)), LOSSES[self.loss](self.noise)
        frame, _ = np.linalg.qr(rng.standard_normal((size, 2)))
        truth = np.sqrt(self.signal) * frame[:, 0]
        along = self.start_overlap / self.signal
        theta = along * truth + np.sqrt(max(self.start_norm - along**2 * self.signal, 0.0)) * frame[:, 1]
        x, e = rng.standard_normal((n, size)), rng.standard_normal(n)
        target = x @ truth
        result: dict[str, list[float]] = {name: [] for name in self.observables}
        for _ in range(self.steps + 1):
            r = x @ theta
            for name, value in zip(result, (loss.error(r, target, e).mean(), theta @ theta, theta @ truth), strict=True):
                result[name].append(float(value))
            theta = theta - self.step * (self.ridge * theta + x.T @ loss.first(r, target, e) / n)
        return {name: np.array(values) for name, values in result.items()}


@functools.lru_cache(maxsize=32)
def _solved(law: FirstOrderDynamics) -> dict[str, Any]:
    loss = LOSSES[law.loss](law.noise)
    runs = [
        descent_correlations(
            loss,
            law.sample_ratio,
            law.step,
            law.steps,
            signal=law.signal,
            start_norm=law.start_norm,
            start_overlap=law.start_overlap,
            ridge=law.ridge,
            paths=2 * (law.steps + 4) if loss.linear else law.paths,
            seed=replicate,
        )
        for replicate in range(1 if loss.linear else REPLICATES)
    ]
    parts = {
        "train_error": [run.train_error for run in runs],
        "norm": [np.diag(run.correlation) for run in runs],
        "overlap": [run.overlap for run in runs],
    }
    values: dict[str, Any] = {name: np.mean(part, axis=0) for name, part in parts.items()}
    accuracy = 1e-9
    for part in parts.values() if len(runs) > 1 else ():
        spread = np.std(part, axis=0, ddof=1) / np.sqrt(len(runs))
        accuracy = max(accuracy, float(2 * spread.max() / np.abs(np.mean(part, axis=0)).max()))
    return {**values, "accuracy": accuracy}
