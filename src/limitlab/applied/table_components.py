"""Number of components of a table that are separated from noise, also with more columns than rows and with correlated noise.

The eigenvalues of the correlation matrix of a table without common factors form a bulk. Near its upper edge their distances follow a law
that does not depend on the correlations of the noise, between columns or in time (Airy process, Onatski 2010). A component is real if its
eigenvalue lies further above the next eigenvalues than this law allows. Parallel analysis compares with noise that is independent between
columns, so it counts a part of the bulk as real if the noise is correlated. Its number is reported for comparison.

The result is conservative. A component whose eigenvalue lies inside the bulk, or at its edge, is not counted.
See docs/howto/components.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.arguments import explained
from limitlab._core.draws import checked_seed
from limitlab._core.page import Described, Page, Table
from limitlab.errors import Refused, did_you_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Components", "components"]

Array = NDArray[np.float64]

NEIGHBOURS = 6
"""Number of eigenvalues below a component that determine the position and the spacing of the edge."""

MOST = 16
"""Largest number of components that is tested."""

FEWEST = 9
"""Smallest number of columns, and of rows, for the test of the edge."""

NULL_DRAWS, NULL_SIZE, NULL_CORNER = 1500, 200, 150
"""Draws of the Airy process, size of the Gaussian ensemble, and size of its corner that determines the largest eigenvalues."""

SHIFTS, CHECK_SHIFTS = 20, 10
"""Number of tables with shifted columns in parallel analysis, and in the check of each component."""

LARGEST = 4000
"""Largest number of rows and columns of a decomposition. Of larger tables a random subset of the rows is used."""


@dataclass(frozen=True)
class Components(Described):
    """The components of a table.

    Attributes
    ----------
    source
        Name of the table.
    rows, columns
        Numbers of rows and columns that were used.
    count
        Number of real components.
    eigenvalues
        Eigenvalues of the correlation matrix (or of the covariance matrix), in descending order.
    distances
        Distance of each tested eigenvalue from the edge that the next eigenvalues determine, in units of the spacing at the edge.
    p_values
        Probability that noise alone has a distance as large at any of the tested eigenvalues.
    level
        Accepted probability of a false component.
    parallel
        Number of components according to parallel analysis.
    loadings
        For each real component the columns with the largest loadings, with the loading.
    notes
        Notes on the preparation.
    """

    source: str
    rows: int
    columns: int
    count: int
    eigenvalues: Array
    distances: Array
    p_values: Array
    level: float
    parallel: int
    loadings: tuple[tuple[tuple[str, float], ...], ...]
    notes: tuple[str, ...]

    @property
    def shares(self) -> Array:
        """Share of the variance of every component."""
        return self.eigenvalues / self.eigenvalues.sum()

    def sentences(self) -> list[str]:
        """Return the result in sentences."""
        verb = "component is" if self.count == 1 else "components are"
        lines = [f"{self.count} {verb} separated from the noise (chance of a false component {self.level:.0%})."]
        if self.count:
            lines[0] = lines[0][:-1] + f", with {self.shares[: self.count].sum():.1%} of the variance."
        for index, parts in enumerate(self.loadings):
            listed = ", ".join(f"{name} ({value:+.2f})" for name, value in parts)
            lines.append(f"Component {index + 1} has the largest loadings on {listed}.")
        if not self.distances.size:
            lines.append(
                f"The table has fewer than {FEWEST} rows or columns, so the number is that of parallel analysis, which assumes noise "
                "without correlations between columns."
            )
        elif self.parallel != self.count:
            lines.append(
                f"Parallel analysis counts {self.parallel}. It assumes noise without correlations between columns; the others are the part "
                "of the spectrum that is above such noise and is not separated from the other eigenvalues."
            )
        return lines

    @property
    def table(self) -> list[dict[str, Any]]:
        """The largest eigenvalues with share, distance from the edge and p-value."""
        shown = max(self.count + 3, 6)
        rows = []
        for i, value in enumerate(self.eigenvalues[:shown]):
            row: dict[str, Any] = {"component": i + 1, "eigenvalue": float(value), "share": float(self.shares[i])}
            tested = i < self.distances.size
            row["distance"] = float(self.distances[i]) if tested else ""
            row["p_value"] = float(self.p_values[i]) if tested else ""
            row["real"] = "yes" if i < self.count else "no"
            rows.append(row)
        return rows

    def page(self) -> Page:
        """Return the plain description, with the number first, a sentence per component and a table of the largest eigenvalues."""
        data = {
            "source": self.source, "rows": self.rows, "columns": self.columns, "count": self.count, "level": self.level,
            "parallel": self.parallel, "eigenvalues": self.eigenvalues.tolist(), "distances": self.distances.tolist(),
            "p_values": self.p_values.tolist(), "loadings": [dict(parts) for parts in self.loadings], "notes": list(self.notes),
        }  # fmt: skip
        first, *rest = self.sentences()
        facts = {"components": first, "table": f"{self.rows} rows, {self.columns} columns"}
        return Page(facts=facts, tables=[Table(self.table, "largest eigenvalues")], sentences=rest, data=data)

    def figure(self) -> Figure:
        """Draw the eigenvalues against their index, with the real components in another colour."""
        from limitlab.plotting.style import COLOURS, finish, new_figure

        figure, (axes,) = new_figure(width=7.2)
        index = np.arange(1, self.eigenvalues.size + 1)
        real = index <= self.count
        axes.plot(
            index[~real], self.eigenvalues[~real], "o", color=COLOURS[0], markersize=4, label="noise, or not separated"
        )
        axes.plot(index[real], self.eigenvalues[real], "o", color=COLOURS[1], markersize=7, label="real components")
        finish(axes, "index", "eigenvalue", f"{self.source}: {self.count} components", xscale="log", yscale="log")
        return figure


@explained
def components(
    data: str | Path | ArrayLike,
    array: str | None = None,
    leave_out: Sequence[str] | None = None,
    standardise: bool = True,
    level: float = 0.01,
    seed: int = 0,
) -> Components:
    """Return how many components of a table are real, and not noise.

    Parameters
    ----------
    data
        A .csv, .tsv, .parquet or .npz table, or an array of rows and columns. Columns of numbers are used.
    array
        Name of the array in an .npz file (default: its only array of two dimensions).
    leave_out
        Names of columns that are not used.
    standardise
        Divide every column by its standard deviation.
    level
        Probability of a false component that is accepted.
    seed
        Seed of parallel analysis and of random subsets of rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.standard_normal((100, 300))
    >>> factor = rng.standard_normal(100)
    >>> components(noise).count, components(noise + np.outer(factor, rng.standard_normal(300))).count
    (0, 1)
    """
    if not 0 < level < 1:
        raise Refused(f"level = {level!r} is not allowed: must be above 0 and below 1")
    rng = np.random.default_rng(checked_seed(seed))
    source, names, X, notes = _columns(data, array, leave_out or ())
    keep = np.ptp(X, axis=0) > 0
    if not keep.all():
        notes.append(f"left out {int((~keep).sum())} columns with the same value in every row")
    X, names = X[:, keep], [name for name, kept in zip(names, keep, strict=True) if kept]
    if X.shape[0] < 4 or X.shape[1] < 2:
        raise Refused(
            f"{source} has {X.shape[0]} rows and {X.shape[1]} usable columns: give at least 4 rows and 2 columns of numbers"
        )
    if min(X.shape) > LARGEST:
        notes.append(f"used {LARGEST} of {len(X)} rows at random")
        X = X[np.sort(rng.permutation(len(X))[:LARGEST])]
    centred = X - X.mean(axis=0)
    if standardise:
        centred = centred / centred.std(axis=0)
    values, vectors = spectrum_of(centred)
    rank = min(len(X) - 1, X.shape[1])
    values = values[:rank]
    distances, p_values = edge_distances(values)
    parallel = parallel_analysis(centred, values, rng)
    if distances.size:
        separated = np.flatnonzero(p_values <= level)
        count = above_shifts(centred, int(separated[-1]) + 1 if separated.size else 0, rng)
    else:
        count = parallel
    return Components(
        source=source,
        rows=len(X),
        columns=X.shape[1],
        count=count,
        eigenvalues=values,
        distances=distances,
        p_values=p_values,
        level=level,
        parallel=parallel,
        loadings=tuple(largest_loadings(centred, values[i], vectors[:, i], names) for i in range(count)),
        notes=tuple(notes),
    )


def spectrum_of(X: Array) -> tuple[Array, Array]:
    """Return the eigenvalues of X^T X / n in descending order, and the eigenvectors of the smaller of X^T X and X X^T."""
    small = X @ X.T if len(X) <= X.shape[1] else X.T @ X
    values, vectors = np.linalg.eigh(small / len(X))
    return np.maximum(values[::-1], 0.0), vectors[:, ::-1]


def largest_loadings(
    X: Array, value: float, vector: Array, names: list[str], most: int = 4
) -> tuple[tuple[str, float], ...]:
    """Return the columns with the largest loadings of a component. A loading is the correlation of a column with the component."""
    weights = vector if vector.size == X.shape[1] else X.T @ vector / np.sqrt(len(X) * value)
    scores = weights * np.sqrt(value) / X.std(axis=0)
    order = np.argsort(-np.abs(scores), kind="stable")[:most]
    sign = 1.0 if scores[order[0]] > 0 else -1.0
    return tuple((names[i], float(sign * scores[i])) for i in order)


# -- the edge of the bulk -------------------------------------------------------------------------------------------------


@lru_cache
def airy_points() -> Array:
    """Return draws of the largest points of the Airy process with parameter 1, the limit of the edge of correlation matrices.

    They are eigenvalues of tridiagonal matrices with the law of the Gaussian orthogonal ensemble (Dumitriu and Edelman 2002), shifted and
    scaled to the edge. The largest eigenvalues depend on a corner of such a matrix only.
    """
    from scipy.linalg import eigvalsh_tridiagonal

    rng = np.random.default_rng(0)
    top = MOST + NEIGHBOURS + 1
    points = np.empty((NULL_DRAWS, top))
    for draw in range(NULL_DRAWS):
        diagonal = np.sqrt(2) * rng.standard_normal(NULL_CORNER)
        beside = np.sqrt(rng.chisquare(NULL_SIZE - 1 - np.arange(NULL_CORNER - 1)))
        values = eigvalsh_tridiagonal(diagonal, beside, lapack_driver="sterf")
        points[draw] = values[::-1][:top]
    return (points - 2 * np.sqrt(NULL_SIZE)) * NULL_SIZE ** (1 / 6)


def distances_of(values: Array, tested: int) -> Array:
    """Return the distance of each of the first eigenvalues from the edge, in units of the spacing at the edge.

    Edge and spacing are those with which the mean positions of the Airy process fit the next eigenvalues best.
    """
    places = airy_points().mean(axis=0)[1 : NEIGHBOURS + 1]
    centred = places - places.mean()
    out = np.empty((*values.shape[:-1], tested))
    for k in range(tested):
        below = values[..., k + 1 : k + 1 + NEIGHBOURS]
        spacing = below @ centred / (centred @ centred)
        edge = below.mean(axis=-1) - spacing * places.mean()
        out[..., k] = (values[..., k] - edge) / np.maximum(spacing, np.finfo(float).tiny)
    return out


@lru_cache
def null_distances(tested: int) -> Array:
    """Return, in ascending order, the largest distance among the tested eigenvalues for draws without a component."""
    return np.sort(distances_of(airy_points(), tested).max(axis=1))


def edge_distances(values: Array) -> tuple[Array, Array]:
    """Return the distances of the largest eigenvalues from the edge and their p-values. Both are empty for few eigenvalues."""
    if values.size < FEWEST:
        return np.empty(0), np.empty(0)
    tested = max(1, min(MOST, values.size // 5, values.size - NEIGHBOURS - 1))
    distances = distances_of(values, tested)
    null = null_distances(tested)
    larger = null.size - np.searchsorted(null, distances, side="left")
    return distances, (larger + 1) / (null.size + 1)


def parallel_analysis(X: Array, values: Array, rng: np.random.Generator) -> int:
    """Return the number of leading eigenvalues above the 95 % quantile of tables whose columns are shifted independently.

    A shift by a random number of rows, with the end continued at the start, keeps the order in time within a column.
    """
    shifted = [spectrum_of(with_shifts(X, rng))[0][: values.size] for _ in range(SHIFTS)]
    above = values > np.quantile(shifted, 0.95, axis=0)
    return int(above.size if above.all() else np.argmin(above))


def with_shifts(X: Array, rng: np.random.Generator) -> Array:
    """Return the table with every column shifted by a random number of rows, the end continued at the start."""
    moves = rng.integers(0, len(X), X.shape[1])
    return np.asarray(X[(np.arange(len(X))[:, None] + moves) % len(X), np.arange(X.shape[1])])


def above_shifts(X: Array, count: int, rng: np.random.Generator) -> int:
    """Return how many of the first components are larger than the largest one of the table without the earlier components, shifted.

    This check removes components that are due to the order in time within columns. Noise that is correlated between columns passes it.
    """
    rest = X
    for k in range(count):
        value = spectrum_of(rest)[0][0]
        if value <= max(spectrum_of(with_shifts(rest, rng))[0][0] for _ in range(CHECK_SHIFTS)):
            return k
        left, singular, right = first_component(rest)
        rest = rest - singular * np.outer(left, right)
    return count


def first_component(X: Array) -> tuple[Array, float, Array]:
    """Return the first singular vectors and the first singular value of a table."""
    values, vectors = spectrum_of(X)
    singular = float(np.sqrt(values[0] * len(X)))
    if len(X) <= X.shape[1]:
        return vectors[:, 0], singular, X.T @ vectors[:, 0] / singular
    return X @ vectors[:, 0] / singular, singular, vectors[:, 0]


# -- reading --------------------------------------------------------------------------------------------------------------


def _columns(data: Any, array: str | None, leave_out: Sequence[str]) -> tuple[str, list[str], Array, list[str]]:
    """Return the name of a table, the names of its columns of numbers, the columns, and notes."""
    if not isinstance(data, (str, Path)):
        X = np.asarray(data, dtype=float)
        if X.ndim != 2 or not np.isfinite(X).all():
            raise Refused(f"data of shape {X.shape} is not allowed: must be finite numbers in rows and columns")
        return "table", [f"column {i}" for i in range(X.shape[1])], X, []
    from limitlab.applied.forecast.tables import as_floats, counts_rows, load_frame, load_matrix

    file = Path(data)
    frame = load_matrix(file, array) if file.suffix.lower() == ".npz" else load_frame(file, "")
    names = list(map(str, frame.columns))
    for name in leave_out:
        if name not in names:
            raise Refused(f"{file.name} has no column {name!r}: {did_you_mean(name, names)}")
    notes: list[str] = []
    kept: dict[str, Array] = {}
    dropped: list[str] = []
    for name, label in zip(frame.columns, names, strict=True):
        if label in leave_out:
            continue
        numbers = as_floats(frame[name])
        if numbers is None or frame[name].dtype.kind == "M" or (known := np.isfinite(numbers)).mean() < 0.5:
            dropped.append(label)
            continue
        if counts_rows(numbers[known], label):
            dropped.append(label)
            continue
        if not known.all():
            notes.append(f"{label}: {int((~known).sum())} missing values replaced by the median")
        kept[label] = np.where(known, numbers, np.median(numbers[known]))
    if dropped:
        more = f" and {len(dropped) - 5} more columns" if len(dropped) > 5 else ""
        notes.append(f"left out {', '.join(dropped[:5])}{more}: not numbers, mostly missing, or row numbers")
    if not kept:
        raise Refused(f"{file.name} has no column of numbers: give at least 2")
    return file.name, list(kept), np.column_stack(list(kept.values())), notes
