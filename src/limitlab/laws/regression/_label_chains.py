"""Ridge regressions on rows of a real table, trained on predictions of earlier models.

The table is treated as the whole population, and rows are drawn from it with replacement. Its covariance, its best linear predictor and
the residual of this predictor are then known exactly, and the excess risk of a model needs no test rows. Real labels are the labels of
the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import Refused
from limitlab.models.designs import ridge_resolvent

Array = NDArray[np.float64]

NOTHING = 1e-10  # variances below this share of the largest count as 0
POOLED = 2  # pixels of a shipped image are averaged in squares of this side


@dataclass(frozen=True)
class TablePopulation:
    """Centred table in the coordinates of its principal components, largest first.

    Attributes
    ----------
    rows, labels
        Coordinates of every row, and centred labels.
    eigenvalues, coefficients
        Variance of each coordinate, and its coefficient in the best linear predictor.
    noise
        Standard deviation of the residual of the best linear predictor.
    """

    rows: Array
    labels: Array
    eigenvalues: Array
    coefficients: Array
    noise: float

    @classmethod
    def of(cls, X: ArrayLike, y: ArrayLike) -> Self:
        """Return the population of a table of numbers and its labels.

        >>> table = TablePopulation.of([[1.0, 0.0], [-1.0, 0.0], [2.0, 0.0], [-2.0, 0.0]], [1.0, -1.0, 2.0, -1.0])
        >>> table.eigenvalues.tolist(), table.rows.shape
        ([2.5], (4, 1))
        """
        inputs, labels = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
        if (
            inputs.ndim != 2
            or labels.shape != inputs.shape[:1]
            or not (np.isfinite(inputs).all() and np.isfinite(labels).all())
        ):
            raise Refused(
                f"X of shape {inputs.shape} and y of shape {labels.shape} are not allowed: give finite n x p and n numbers"
            )
        centred, labels = inputs - inputs.mean(axis=0), labels - labels.mean()
        values, basis = np.linalg.eigh(centred.T @ centred / len(centred))
        varying = np.flatnonzero(values > NOTHING * values.max(initial=0.0))[::-1]
        if not varying.size:
            raise Refused("X is not allowed: must have a column that varies")
        rows = centred @ basis[:, varying]
        coefficients = labels @ rows / len(rows) / values[varying]
        return cls(rows, labels, values[varying], coefficients, float(np.std(labels - rows @ coefficients)))

    def draw(self, rng: np.random.Generator, samples: int) -> tuple[Array, Array]:
        """Draw rows with replacement, and return them with their labels in the table."""
        drawn = rng.integers(len(self.rows), size=samples)
        return self.rows[drawn], self.labels[drawn]

    def excess(self, b: Array) -> float:
        """Return the mean squared distance of a model's predictions from the best linear ones, over the whole table."""
        return float(self.eigenvalues @ (b - self.coefficients) ** 2)

    def samples_at(self, ratio: float, eigenvalues: Sequence[float]) -> int:
        """Return the number of rows at a ratio of coordinates to rows, for a law that has the eigenvalues of this table."""
        if len(eigenvalues) != len(self.eigenvalues) or not np.allclose(eigenvalues, self.eigenvalues, rtol=1e-6):
            raise Refused(
                "the table is not allowed: the law was made from another table; make it with from_data(X, y, samples)"
            )
        return max(1, round(len(self.eigenvalues) / ratio))

    def spectrum(self) -> dict[str, Any]:
        """Return the parameters of a linear model with one group for each coordinate."""
        directions = len(self.eigenvalues)
        return dict(
            eigenvalues=tuple(self.eigenvalues.tolist()),
            weights=(1.0,) * directions,
            signal_energy=tuple((self.coefficients**2).tolist()),
            noise=self.noise,
        )


def collapse_chain(
    rng: np.random.Generator,
    table: TablePopulation,
    samples: int,
    generations: int,
    ridge: float,
    real_share: float = 0.0,
    synthetic_noise: float = 0.0,
    keep: bool = False,
) -> Array:
    """Return the excess risk of generations 1, 2, ... of a chain of models.

    Every generation is trained on fresh rows. A share of the rows has real labels. The other rows have predictions of the previous
    generation as labels. With `keep` a generation is also trained on the data of all earlier generations.
    """
    S, c = np.zeros((len(table.eigenvalues),) * 2), np.zeros(len(table.eigenvalues))
    b, risks = c, []
    for generation in range(generations):
        X, y = table.draw(rng, samples)
        real = samples if generation == 0 else round(real_share * samples)
        y = np.r_[y[:real], X[real:] @ b + synthetic_noise * rng.standard_normal(samples - real)]
        S, c = X.T @ X / samples + keep * S, X.T @ y / samples + keep * c
        b = ridge_resolvent(S, ridge) @ c
        risks.append(table.excess(b))
    return np.array(risks)


class Taught(NamedTuple):
    """Excess risks of a teacher and of its student."""

    teacher: float
    student: float


def taught(
    rng: np.random.Generator,
    table: TablePopulation,
    samples: tuple[int, int],
    ridges: tuple[float, float],
    seen: ArrayLike | None = None,
    student_noise: float = 0.0,
    mix: float | None = None,
) -> Taught:
    """Return the excess risks of a teacher on real labels and of a student on the teacher's predictions.

    `samples` and `ridges` are pairs for teacher and student. The teacher uses the coordinates `seen` only. With `mix` the student has
    the rows of the teacher, and its labels are (1 - mix) y + mix times the predictions of the teacher.
    """
    X, y = table.draw(rng, samples[0])
    coordinates = np.arange(len(table.eigenvalues)) if seen is None else np.asarray(seen)
    part, teacher = X[:, coordinates], np.zeros(len(table.eigenvalues))
    teacher[coordinates] = ridge_resolvent(part.T @ part / len(part), ridges[0]) @ (part.T @ y / len(part))
    if mix is None:
        X, _ = table.draw(rng, samples[1])
        y = X @ teacher + student_noise * rng.standard_normal(samples[1])
    else:
        y = (1 - mix) * y + mix * X @ teacher
    student = ridge_resolvent(X.T @ X / len(X), ridges[1]) @ (X.T @ y / len(X))
    return Taught(table.excess(teacher), table.excess(student))


def shipped_images() -> tuple[Array, Array]:
    """Return the 8,000 images of digits of the package, with 14 x 14 pixels and mean squared norm 1, and their parities -1, +1.

    >>> X, y = shipped_images()
    >>> X.shape, float((X**2).sum(axis=1).mean().round(12)), sorted(set(y.tolist()))
    ((8000, 196), 1.0, [-1.0, 1.0])
    """
    from limitlab.models.datasets import mnist

    images, label = mnist("all")
    side = 28 // POOLED
    X = images.reshape(-1, side, POOLED, side, POOLED).mean(axis=(2, 4)).reshape(len(images), -1)
    X = X - X.mean(axis=0)
    return X / np.sqrt((X**2).sum(axis=1).mean()), 1.0 - 2.0 * (label % 2)
