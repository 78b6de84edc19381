"""Interpolant that gradient descent on least squares converges to, which is the nearest to its start, and the rate of convergence.

Setting.  The loss (1/n) |X theta - y|^2 with more unknowns p than samples n; gradient descent from theta = 0, or from a start at distance D
          from beta, with the step eta = 1/(lambda_max + lambda_min), the largest and the least non-zero eigenvalue of X'X/n. Random
          inputs: x ~ N(0, 1_p), y = <x, beta> + noise.
Result.   theta_k -> X^+ y, the interpolant of least norm (from theta_0: theta_0 + X^+(y - X theta_0), the nearest one). Steps below
          1/lambda_max converge, and the best rate per step is (lambda_max - lambda_min)/(lambda_max + lambda_min). Random inputs with
          p/n -> gamma > 1 (docs/theory/implicit_bias.md, eqs. 3-7): eigenvalues x = 1 + gamma + 2 sqrt(gamma) cos phi,

              largest step = (1 + sqrt gamma)^-2,   best rate = 2 sqrt(gamma)/(1 + gamma),                                  (4)
              |theta_k - theta_inf|^2 = int (rate cos phi)^(2k) (r^2 + tau^2 gamma/x) (2/pi) sin^2 phi dphi / x.            (5)
              |theta_inf - beta|^2 = D^2 (1 - 1/gamma) + tau^2/(gamma - 1),                                               (7)

          with r = |beta|, and D = r for the start 0. For a start at distance D from beta, D replaces r in (5).
          Every excess risk from tau^2/(gamma - 1) up belongs to an interpolant that descent finds from some start.
Status.   Theorem.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab._core.checks import checked_table
from limitlab.errors import Refused
from limitlab.laws import CLOSED_FORM, Draw, Experiment, Headline, Law, Values, observable, parameter, shared
from limitlab.laws.descent._separable_flow import LeastSquares

__all__ = ["LeastSquaresDescent"]

Array = NDArray[np.float64]

POINTS = 4096  # of the trapezoidal rule for (5), which converges geometrically
NARROW = 0.01  # width of the peak at ratio 1 below which the trapezoidal rule is replaced
GAUSS = 400  # nodes of the rule that replaces it
LABELS = 16  # label vectors of a draw; after a few steps the distance in a few directions dominates, and it varies with the labels


def descent_limit(
    ratio: ArrayLike, steps: ArrayLike, signal: ArrayLike, noise: ArrayLike, start_distance: ArrayLike | None = None
) -> dict[str, Array]:
    """Return the limits (4)-(7) for random inputs as a dict of arrays; all arguments broadcast.

    Parameters
    ----------
    ratio
        p/n, above 1.
    steps
        Number of steps.
    signal, noise
        Norm of beta, standard deviation of the noise.
    start_distance
        Distance D of the start from beta, in a random direction. None means that the start is 0.

    Examples
    --------
    >>> values = descent_limit(4.0, [0, 10], 1.0, 0.5)
    >>> values["distance"].round(6).tolist(), values["best_rate"].tolist()
    ([1.0, 0.021083], [0.8, 0.8])
    """
    gamma, k, r, tau = (np.asarray(value, dtype=float) for value in (ratio, steps, signal, noise))
    away = r if start_distance is None else np.asarray(start_distance, dtype=float)
    if not (gamma > 1).all():
        raise Refused(
            f"ratio = {gamma[~(gamma > 1)].flat[0]:g} is not allowed: must be above 1 (more unknowns than samples)"
        )
    rate = 2 * np.sqrt(gamma) / (1 + gamma)
    phi = np.pi * (np.arange(POINTS) + 0.5) / POINTS
    wide = [array[..., None] for array in (gamma, k, away, tau, rate)]
    x = 1 + wide[0] + 2 * np.sqrt(wide[0]) * np.cos(phi)
    mass = 2 * np.sin(phi) ** 2 / (POINTS * x) * (wide[2] ** 2 + wide[3] ** 2 * wide[0] / x)
    left = ((wide[4] * np.cos(phi)) ** (2 * wide[1]) * mass).sum(axis=-1)
    if (close := np.sqrt(gamma) - 1 < NARROW).any():
        left = np.where(close, _left_close_to_square(*wide), left)
    variance, bias = tau**2 / (gamma - 1), away**2 * (1 - 1 / gamma)  # (7)
    travelled = away**2 / gamma + variance  # from the start to the end
    norm = travelled if start_distance is None else r**2 + bias + variance
    shape = np.broadcast_shapes(gamma.shape, left.shape, r.shape)
    values = dict(
        largest_step=(1 + np.sqrt(gamma)) ** -2.0,
        best_rate=rate,
        distance=np.sqrt(
            np.divide(left, travelled, out=np.zeros(np.broadcast_shapes(left.shape, travelled.shape)), where=travelled > 0)
        ),
        coefficient_norm=norm,
        bias=bias,
        variance=variance,
        excess_risk=bias + variance,
    )
    return {name: np.broadcast_to(value, shape) for name, value in values.items()}


def _left_close_to_square(gamma: Array, k: Array, away: Array, tau: Array, rate: Array) -> Array:
    """Return the integral of `descent_limit` if gamma is close to 1, where the integrand has a peak of width sqrt(gamma) - 1 at pi.

    The nodes pi - w sinh(u), for Gauss nodes u and the width w, resolve the peak on every scale.
    """
    nodes, weights = np.polynomial.legendre.leggauss(GAUSS)
    width = (gamma - 1) / (np.sqrt(gamma) + 1)
    end = np.arcsinh(np.pi / width)
    u = end * (nodes + 1) / 2
    angle = width * np.sinh(u)
    x = width**2 + 4 * np.sqrt(gamma) * np.sin(angle / 2) ** 2
    step = end / 2 * weights * width * np.cosh(u) / np.pi
    mass = 2 * np.sin(angle) ** 2 / x * (away**2 + tau**2 * gamma / x) * step
    return np.asarray(((rate * np.cos(angle)) ** (2 * k) * mass).sum(axis=-1))


class LeastSquaresDescent(Law):
    """Which of the many interpolants does gradient descent find, and how fast?

    Make the law from your data by `from_data(X, y)`, or with random inputs and `ratio` unknowns per sample.

    Examples
    --------
    >>> law = LeastSquaresDescent.from_data([[1.0, 2.0, 0.0, 1.0], [0.0, 1.0, 1.0, -1.0]], [1.0, 2.0])
    >>> law.interpolant.round(6).tolist()
    [0.058824, 0.764706, 0.647059, -0.588235]
    >>> round(law.largest_step, 9), round(law.best_rate, 9)
    (0.317320513, 0.400616808)
    """

    status = "theorem"
    regime = "any data with more unknowns than samples; random inputs: n, p -> infinity with p/n above 1"
    assumptions = (
        "gradient descent on the mean squared residual (no factor 1/2) from zero, with the step 1/(lambda_max + lambda_min)",
        "random inputs: standard Gaussian, labels linear plus noise",
    )
    references = ("hastie2022surprises",)
    page = "implicit_bias"
    observables = {
        "largest_step": observable("steps below this converge", r"\eta_{\max}", rate=2 / 3, least=0),
        "best_rate": observable("factor per step at the best step", r"\rho", rate=2 / 3, least=0, most=1),
        "distance": observable(
            "distance to the end of descent over that of its start", r"|\theta_t - \hat\theta|", rate=2 / 3, least=0
        ),
        **shared("coefficient_norm", "bias", "variance", "excess_risk"),
    }
    simulation = Experiment("number of unknowns p", sizes=(200, 400, 800), draws=80)
    revision = 2
    # More and fewer features. Signal and noise differ. The last point does not start at 0
    points = (
        dict(ratio=4.0, steps=6, signal=1.3, noise=0.6),
        dict(ratio=2.5, steps=4, signal=0.8, noise=0.9),
        dict(ratio=3.0, steps=5, signal=0.7, noise=0.5, start_distance=1.6),
    )
    headline = Headline(
        "More parameters, faster way to the interpolant",
        x="steps",
        over=(0.0, 40.0, 41),
        y_scale="log",
        whole=True,
        show=("distance",),
        curves=("ratio", (1.5, 3, 8)),
        size=200,
        draws=3,
        places=(0.0, 5.0, 10.0, 20.0, 30.0, 40.0),
        sliders=("ratio",),
    )

    ratio: float = parameter(4.0, above=1, scale="log", count="size / value")
    steps: int = parameter(10, least=0)
    signal: float = parameter(1.0, above=0)
    noise: float = parameter(0.5, least=0)
    start_distance: float | None = parameter(None, note="in a random direction; None: start at 0", least=0)
    inputs: tuple[tuple[float, ...], ...] | None = parameter(None, note="rows of a data set, in place of random ones")
    targets: tuple[float, ...] | None = parameter(None)

    @model_validator(mode="after")
    def _consistent_data(self) -> Self:
        checked_table(self.inputs, self.targets)
        if self.inputs is not None and self.start_distance is not None:
            raise Refused(
                f"start_distance = {self.start_distance:g} is not allowed with a data set: the true coefficients are unknown"
            )
        if self.inputs is not None and not np.any(self.inputs):
            raise Refused("inputs are not allowed: must not all be 0")
        return self

    @classmethod
    def from_data(cls, X: ArrayLike, y: ArrayLike, **parameters: Any) -> Self:
        """Return the law of a data set with inputs X (one row per sample) and labels y."""
        table, labels = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
        return cls(inputs=tuple(map(tuple, table.tolist())), targets=tuple(labels.tolist()), **parameters)

    # -- the data set ------------------------------------------------------------------------------------------------------

    @cached_property
    def problem(self) -> LeastSquares:
        """Least squares on the data set of the law."""
        if self.inputs is None:
            raise Refused("this law has random inputs: use from_data(X, y) for the results of a data set")
        return LeastSquares(np.asarray(self.inputs), np.asarray(self.targets))

    @property
    def interpolant(self) -> Array:
        """The end of descent from zero, which is the least-squares solution of least norm."""
        return self.problem.limit()

    @property
    def largest_step(self) -> float:
        """The bound on the step below which descent converges."""
        return float(self.evaluate()["largest_step"])

    @property
    def best_rate(self) -> float:
        """The guaranteed factor by which a step of the best length shrinks the distance to the limit."""
        return float(self.evaluate()["best_rate"])

    # -- the law -----------------------------------------------------------------------------------------------------------

    def predicted(self, ratio: Array, steps: Array, signal: Array, noise: Array) -> Values:
        """Return step, rate, relative distance after `steps` steps, and squared norm of the end.

        For a data set all of them are computed from the spectrum of its inputs.
        """
        if self.inputs is not None:
            values = spectral(self.problem, steps)
        else:
            values = descent_limit(ratio, steps, signal, noise, self.start_distance)
        return {**values, "accuracy": CLOSED_FORM}

    def observed(self) -> tuple[str, ...]:
        """Return the names of the observables. A data set has no known target, and so no bias, variance or excess risk."""
        names = super().observed()
        return names if self.inputs is None else names[:4]

    def measured(self, draw: Draw) -> Values:
        """Take the steps of gradient descent on a fresh draw, or on the data set (size and seed are then not used).

        The inputs of a fresh draw are used with several label vectors, and squared lengths are averaged over these.
        """
        if self.inputs is None:
            return self._from_start(draw)
        end = self.problem.limit()
        return {**_measures(self.problem, self.problem.descend(self.steps), end, 0.0), "coefficient_norm": np.sum(end**2)}

    def _from_start(self, draw: Draw) -> dict[str, float]:
        """Run descent for random inputs on noisy labels, and compute its end for labels with and without noise."""
        problem, beta = self._drawn(draw, LABELS)
        start: Array | float = 0.0
        if self.start_distance is not None:
            away = draw.rng.standard_normal(beta.shape)
            start = beta + self.start_distance * away / np.linalg.norm(away, axis=0)
        end, clean = problem.limit(start), problem.limit(start, problem.X @ beta)
        theta = problem.descend(self.steps, start=start)
        squares = dict(
            bias=np.sum((clean - beta) ** 2), variance=np.sum((end - clean) ** 2), excess_risk=np.sum((end - beta) ** 2)
        )
        means = {name: float(value) / LABELS for name, value in squares.items()}
        return {**_measures(problem, theta, end, start), "coefficient_norm": float(np.sum(end**2)) / LABELS, **means}

    def random_problem(self, draw: Draw, *labels: int) -> LeastSquares:
        """Return random inputs with one vector of labels, or with several vectors of labels as columns."""
        return self._drawn(draw, *labels)[0]

    def _drawn(self, draw: Draw, *labels: int) -> tuple[LeastSquares, Array]:
        """Return random inputs with labels, and the coefficients beta that generate the labels."""
        rng, size = draw.rng, draw.size
        X = rng.standard_normal((draw.count("ratio"), size))
        beta = rng.standard_normal((size, *labels))
        beta *= self.signal / np.linalg.norm(beta, axis=0)
        return LeastSquares(X, X @ beta + self.noise * rng.standard_normal((len(X), *labels))), beta

    def count(self, parameter: str, size: int) -> int:
        """Return the number of samples for `size` unknowns, which is smaller than `size`."""
        return min(super().count(parameter, size), size - 1)

    def realised(self, size: int) -> Self:
        """Return the law with the ratio that `size` unknowns give. A law of a data set is returned unchanged."""
        return self if self.inputs is not None else super().realised(size)


def spectral(problem: LeastSquares, steps: ArrayLike) -> dict[str, Array]:
    """Return the observables of descent with steps of the best length on a data set, computed from the singular values of X."""
    k = np.asarray(steps, dtype=float)
    _, _, right = problem.svd
    parts = (right @ problem.limit()) ** 2
    left = np.abs(1 - 2 * problem.best_step * problem.eigenvalues) ** (2 * k[..., None])
    norm = float(parts.sum())
    distance = np.sqrt((left * parts).sum(axis=-1) / norm) if norm else np.zeros(k.shape)
    constants = (problem.largest_step, problem.best_rate, norm)
    step, rate, size = (np.broadcast_to(value, k.shape) for value in constants)
    return dict(largest_step=step, best_rate=rate, distance=distance, coefficient_norm=size)


def _measures(problem: LeastSquares, theta: Array, end: Array, start: Array | float) -> dict[str, float]:
    """Return step, rate, and the distance to the end after the steps over that of the start."""
    initial = float(np.linalg.norm(end - start))
    remaining = float(np.linalg.norm(theta - end))
    return dict(
        largest_step=problem.largest_step, best_rate=problem.best_rate, distance=remaining / initial if initial else 0.0
    )
