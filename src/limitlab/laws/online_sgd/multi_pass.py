"""Least squares by SGD with batches from a fixed data set (docs/theory/multi_pass_least_squares.md).

Setting.  n rows of the linear model of `Ridge`, S = X'X/n. A step is theta <- theta - (eta/B) sum x (<x, theta> - y), where the sum runs
          over a batch of B rows that is drawn from the n rows, from theta = 0. Time is t = eta * steps, as in `EarlyStopping`.
Limit.    n, p large with p/n -> gamma (`ratio`). `samples` = n is a parameter because the noise of a batch is of order eta p / B.
Result.   Let Ft and Fe be the train error and the excess risk of gradient descent with the same step, and L the mean train error. Then

              L_k = Ft_k + (eta^2/B) sum_{j<k} tr[S^2 (1 - eta S)^{2(k-1-j)}] L_j,
              excess_k = Fe_k + (eta^2/B) sum_{j<k} tr[Sigma S (1 - eta S)^{2(k-1-j)}] L_j.                                (1)

          for batches with replacement. The traces are replaced by deterministic equivalents. Generating functions give the result after
          any number of steps.
Status.   Derived for rows of equal norm. The homogenised limit is due to Paquette, Paquette, Adlam and Pennington.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from limitlab.errors import Refused
from limitlab.laws import Draw, Headline, Values, observable, parameter, shared
from limitlab.laws.regression import early_stopping
from limitlab.laws.regression.linear_model import LinearModel
from limitlab.numerics.contours import coefficients
from limitlab.numerics.equivalents import df1, learned, resolvent_ridge, right_edge
from limitlab.numerics.roots import bracketed_root

__all__ = ["MultiPassLeastSquares"]

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

COARSER = 28  # number of nodes of the coarser rule that estimates the numerical error


class MultiPassLeastSquares(LinearModel):
    """How much larger is the error of SGD on a fixed data set than that of gradient descent?

    Examples
    --------
    >>> law = MultiPassLeastSquares(ratio=0.5, samples=200, noise=0.5, step=0.01, times=(0.5, 20.0))
    >>> limit = law.theory()
    >>> limit.train_error.values.round(6).tolist(), limit.descent_train_error.values.round(6).tolist()
    ([0.804564, 0.252224], [0.463043, 0.125124])
    >>> round(law.largest_step(), 5)
    0.0197
    """

    status = "derived"
    regime = "n, p large with p/n fixed; step times dimension over batch of order one"
    references = ("paquette2024homogenization", "ali2019continuous")
    page = "multi_pass_least_squares"
    observables = {
        **shared("train_error", "excess_risk", "test_error"),
        "descent_train_error": observable(
            "train error of gradient descent with the same step", r"E_{\mathrm{train}}^{GD}", least=0
        ),
        "descent_excess_risk": observable("excess risk of gradient descent with the same step", r"R^{GD}", least=0),
    }
    simulation = replace(LinearModel.simulation, sizes=(40, 80, 160))
    # More samples than features, with two groups; then fewer samples than features, with batches without replacement
    points = (
        dict(
            ratio=0.5,
            samples=160,
            noise=0.6,
            step=0.012,
            times=(0.48, 1.92),
            eigenvalues=(2.0, 0.5),
            weights=(0.3, 0.7),
            signal_energy=(0.5, 0.8),
        ),
        dict(ratio=1.6, samples=100, noise=0.7, step=0.03, batch=4, replacement=False, times=(0.6, 1.8)),
    )
    headline = Headline(
        "SGD noise costs test error at large steps",
        x="times",
        over=(0.05, 30.0, 61),
        scale="log",
        show=("excess_risk", "descent_excess_risk"),
        at=dict(step=0.012, samples=200.0),
        size=100,
        draws=10,
        places=(0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
        sliders=("step", "batch"),
    )

    noise: float = parameter(0.5, least=0)
    ratio: float = parameter(0.5, above=0, scale="log", count="size / value")
    samples: float = parameter(200.0, note="an experiment uses its size", least=2, scale="log")
    step: float = parameter(
        0.005,
        note="of one update; experiments have the same product of step and features",
        symbol=r"\eta",
        above=0,
        scale="log",
    )
    batch: int = parameter(1, least=1, scale="log")
    replacement: bool = parameter(True, "whether a batch may contain a sample twice")
    times: float | tuple[float, ...] = parameter(
        (0.5, 2.0), note="step times steps", kind="coordinate", least=0, scale="log"
    )
    replicas: int = parameter(10, kind="experiment", least=1)

    @model_validator(mode="after")
    def _short_enough(self) -> Self:
        most = min(
            self.largest_step(), 1 / float(right_edge(self.population.eigenvalues, self.ratio * self.population.shares))
        )
        if not self.step < most:
            raise Refused(
                f"step = {self.step:g} is not allowed: must be below {most:.6g}, the smaller of largest_step(), which grows with the "
                "batch, and 1 over the largest eigenvalue of the sample covariance"
            )
        return self

    def realised(self, size: int) -> Self:
        """Return the law with the samples and the step of an experiment of this size."""
        changed = super(MultiPassLeastSquares, self.replace(step=1e-9 * self.step)).realised(size)
        return changed.replace(samples=float(self.count("ratio", size)), step=self.pace(size))

    def pace(self, size: int) -> float:
        """Return the step of an experiment with `size` features, at which the product of step and features is that of the law."""
        return self.step * self.ratio * self.samples / size

    @property
    def spread(self) -> float:
        """The factor of a batch of B samples in the noise, 1/B with replacement and (1/B)(n-B)/(n-1) without."""
        whole = 1.0 if self.replacement else max(self.samples - self.batch, 0.0) / (self.samples - 1)
        return whole / self.batch

    # -- the prediction -------------------------------------------------------------------------------------------------

    def predicted(self, times: Array) -> Values:
        """Evaluate the limit at every time."""
        steps = np.round(np.ravel(times) / self.step)
        population = self.population[:3]
        descent = early_stopping.risk(steps * self.step, self.ratio, self.noise, *population, self.step)
        train, extra = coefficients(self._transforms, steps)
        coarse = coefficients(self._transforms, steps, COARSER)
        error = max(float(np.max(np.abs(train - coarse[0]))), float(np.max(np.abs(extra - coarse[1]))))
        error += max(descent["accuracy"].values()) + 1e-12 * self.null_error()
        excess = descent["excess_risk"] + extra
        values = dict(
            train_error=train,
            excess_risk=excess,
            test_error=excess + self.noise**2,
            descent_train_error=descent["train_error"],
            descent_excess_risk=descent["excess_risk"],
        )
        return {**values, "accuracy": dict.fromkeys(values, error)}

    def _transforms(self, q: Complex) -> tuple[Complex, Complex]:
        """Return generating functions at e^q, as differences of resolvents at the two roots of (1 - eta z)^2 = e^q."""
        s, shares, energy, _ = self.population
        load, n = self.ratio * shares, self.samples
        pairs = []
        for z in ((1 + np.exp(q / 2)) / self.step, np.asarray(-np.expm1(q / 2)) / self.step):
            kappa = np.asarray(resolvent_ridge(z, s, load))
            degrees = n * df1(kappa, s, load)
            # with `unlearned` instead of `learned`, the difference below would lose its digits for small steps
            train = learned(kappa, s) @ energy + self.noise**2 / kappa
            pairs.append((z, train, z * degrees, -kappa * degrees))
        scale = -1 / (self.step**2 * (pairs[0][0] - pairs[1][0]))
        forcing, kernel, response = (
            scale * (first - second) for first, second in zip(pairs[0][1:], pairs[1][1:], strict=True)
        )
        strength = self.step**2 * self.spread
        train = forcing / (1 - strength * kernel)
        return train, strength * response * train

    # -- the experiment -------------------------------------------------------------------------------------------------

    def measured(self, draw: Draw, times: Array) -> Values:
        """Run SGD `replicas` times and gradient descent once, on one data set."""
        design = self.design(draw)
        X, (n, p), rng, step = design.X, design.X.shape, draw.rng, self.pace(draw.size)
        population, _ = self.population_at(draw.size)
        scale = np.sqrt(np.repeat(np.divide(population.energy, design.counts), design.counts))
        beta = scale * rng.standard_normal(p)
        y = X @ beta + self.noise * rng.standard_normal(n)
        variances = np.repeat(population.eigenvalues, design.counts)
        theta, plain = np.zeros((self.replicas, p)), np.zeros(p)
        rows, done = [], 0
        for mark in np.round(np.ravel(times) / step).astype(int):
            while done < mark:
                if self.replacement:
                    rows_of_batch = rng.integers(0, n, (self.replicas, self.batch))
                else:
                    rows_of_batch = np.argsort(rng.random((self.replicas, n)), axis=1)[:, : self.batch]
                x = X[rows_of_batch]
                residual = (x @ theta[:, :, None])[..., 0] - y[rows_of_batch]
                theta = theta - step / self.batch * (residual[:, None, :] @ x)[:, 0]
                plain = plain - step / n * (X.T @ (X @ plain - y))
                done += 1
            rows.append(
                (
                    np.mean((y - theta @ X.T) ** 2),
                    np.mean((theta - beta) ** 2 @ variances),
                    np.mean((y - X @ plain) ** 2),
                    (plain - beta) ** 2 @ variances,
                )
            )
        train, excess, descent_train, descent_excess = np.array(rows).T
        return dict(
            train_error=train,
            excess_risk=excess,
            test_error=excess + self.noise**2,
            descent_train_error=descent_train,
            descent_excess_risk=descent_excess,
        )

    @classmethod
    def from_data(cls, X: Any, y: Any, batch: int = 1) -> GivenData:
        """Return the law for a user's table, with `train_error(step, steps)`, `law_step` and `safe_step`.

        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((100, 10))
        >>> data = MultiPassLeastSquares.from_data(X, X[:, 0] + 0.5 * rng.standard_normal(100))
        >>> bool(data.train_error(0.3 * data.safe_step, [0, 1000])[1] < 0.4)
        True
        """
        return GivenData(X, y, batch)

    # -- thresholds -----------------------------------------------------------------------------------------------------

    def largest_step(self) -> float:
        """Return the step from which the train error grows, the root of (1/B) tr[eta S / (2 - eta S)] = 1, equation (5).

        This threshold is valid for rows of equal norm. On real tables a single row of large norm can make the true threshold several times
        smaller.
        """
        s, shares, *_ = self.population
        load = self.ratio * shares
        edge = float(right_edge(s, load))
        if self.spread == 0:
            return 2 / edge
        s, load = s[load > 0], load[load > 0]  # a spike enters through the edge only
        target, top = 1 / (self.spread * self.samples), float(s.max())

        def balance(x: Array) -> Array:
            return np.asarray((load * s / (np.asarray(x)[..., None] - s)).sum(axis=-1) - target)

        x = float(bracketed_root(balance, top * (1 + 1e-13), top + float(load @ s) / target * (1 + 1e-12)))
        inside = float((load * (s / (x - s)) ** 2).sum()) < 1
        return min(2 / (x * (1 + target)), 2 / edge) if inside else 2 / edge


class GivenData:
    """Equation (1) for a table of data, and two thresholds of the step, as returned by `MultiPassLeastSquares.from_data`.

    Attributes
    ----------
    law_step, safe_step
        The threshold of the law, for rows of equal norm, and `safe_step(X, batch)`, which is safe for any rows. Use steps below both.
    """

    def __init__(self, X: Any, y: Any, batch: int = 1):
        rows, labels = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
        if rows.ndim != 2 or labels.shape != rows.shape[:1] or not (np.isfinite(rows).all() and np.isfinite(labels).all()):
            raise Refused(
                f"X of shape {rows.shape} and y of shape {labels.shape} are not allowed: give finite n x p and n numbers"
            )
        self.samples, self.batch = len(rows), batch
        left, singular, _ = np.linalg.svd(rows, full_matrices=False)
        self.values, along = singular**2 / self.samples, left.T @ labels
        self._energy, self._rest = along**2 / self.samples, float(labels @ labels - along @ along) / self.samples
        limits = step_limits(rows, batch)
        self.law_step, self.safe_step = limits["law"], limits["safe"]

    def train_error(self, step: float, steps: Any) -> Array:
        """Return the mean train error after whole numbers of steps with replacement, equation (1) given X."""
        if not 0 < step < self.law_step:
            raise Refused(
                f"step = {step:g} is not allowed: must be above 0 and below {self.law_step:.6g} (safe: {self.safe_step:.6g})"
            )
        marks = np.round(np.ravel(steps)).astype(int)
        parts, fresh = self._energy.copy(), step**2 / self.batch * self.values**2
        decay, path = (1 - step * self.values) ** 2, [self._rest + float(self._energy.sum())]
        for _ in range(int(marks.max())):
            parts = decay * parts + fresh * path[-1]
            path.append(self._rest + float(parts.sum()))
        return np.asarray(path)[marks]


def safe_step(X: Any, batch: int = 1) -> float:
    """Return a step below which the mean squared distance of SGD to the solution decreases for any rows.

    The step is 2 divided by the largest eigenvalue of the pencil (M4/B + (1 - 1/B) S^2, S), where M4 is the mean of |x|^2 x x'.

    >>> X = np.random.default_rng(0).standard_normal((400, 20))
    >>> 0.05 < safe_step(X) < 0.12
    True
    """
    from scipy.linalg import eigh

    rows = np.asarray(X, dtype=float)
    n = len(rows)
    S = rows.T @ rows / n
    fourth = (rows * np.sum(rows**2, axis=1)[:, None]).T @ rows / n
    values, basis = np.linalg.eigh(S)
    nonzero = values > 1e-10 * values[-1]
    basis, values = basis[:, nonzero], values[nonzero]
    matrix = basis.T @ (fourth / batch + (1 - 1 / batch) * S @ S) @ basis
    return 2 / float(eigh(matrix, np.diag(values), eigvals_only=True)[-1])


def step_limits(X: Any, batch: int = 1) -> dict[str, float]:
    """Return two thresholds for SGD on a table. "law" is valid for rows of equal norm, and "safe" for any rows.

    >>> X = np.random.default_rng(0).standard_normal((400, 20))
    >>> limits = step_limits(X)
    >>> limits["safe"] < limits["law"] < 2 / 20 * 1.1
    True
    """
    rows = np.asarray(X, dtype=float)
    values = np.linalg.eigvalsh(rows.T @ rows / len(rows))
    values = values[values > 1e-12 * values[-1]]

    def gain(step: Array) -> Array:
        eta = np.asarray(step)[..., None]
        return np.asarray((eta * values / (2 - eta * values)).sum(axis=-1) / batch - 1)

    law = float(bracketed_root(gain, 0.0, 2 / values[-1] * (1 - 1e-13)))
    return {"law": law, "safe": safe_step(rows, batch)}
