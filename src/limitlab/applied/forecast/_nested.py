"""Errors of fits to nested subsets of the rows, tested on rows that the fits do not contain.

A split assigns rows to training and test. Its training rows have an order, and the fit of size n uses the first n of them. The kinds of
splits are

- rows: folds of a random order of the rows, whose test rows have equal shares of the classes. A fit is tested on all rows that it does
  not contain.
- groups: folds of groups. The training rows are ordered by groups, and a fit is tested on the groups of the fold.
- time: the rows before a time, latest rows first. A fit is tested on the rows that follow this time.
- given: the splits of a splitter. The training rows have a random order.

The ridge of a fit to rows is the one with the least leave-one-out error on its training rows. With other splits, the ridge of a size is
the one with the least error in the other splits.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.applied.forecast._kernels import Kernel
from limitlab.applied.forecast._learning import Measurement, from_rows, from_splits
from limitlab.errors import Refused

Array = NDArray[Any]
Rows = NDArray[np.int64]
Kind = Literal["rows", "groups", "time", "given"]

LARGEST_SHARE = 0.9
"""Largest share of the rows for a fit to random rows."""

FOLDS, GROUP_FOLDS, TIME_FOLDS = 10, 10, 5
MOST_TESTS = 4000
SIZES = 6

SIZES_IN_TIME = 3
"""Number of the largest sizes whose errors on later rows determine the curve. Data that change with time have no simple curve."""

LARGEST_FIT = 4000
"""Largest number of rows of a fit with a kernel."""


class Split(NamedTuple):
    """Training rows in their order, and test rows."""

    train: Rows
    test: Rows


@dataclass(frozen=True)
class Splits:
    """Splits of a kind.

    Attributes
    ----------
    kind
        The kind of the splits.
    splits
        The splits.
    total
        Number of rows.
    """

    kind: Kind
    splits: tuple[Split, ...]
    total: int

    def sizes(self, most: float = np.inf, extra: Any = (), count: int = SIZES) -> Array:
        """Return the sizes of the fits, and sizes that the user wants in addition.

        >>> make_splits(1000).sizes().tolist()
        [28.0, 56.0, 112.0, 225.0, 450.0, 900.0]
        """
        room = [len(split.train) for split in self.splits]
        largest = min(room) if self.kind != "time" else max(room)
        sizes = nested_sizes(min(largest, most), count)
        more = np.round(np.asarray(extra, dtype=float))
        more = more[(more >= min(8, sizes[0])) & (more <= sizes[-1])]
        return np.unique(np.append(sizes, more))


def nested_sizes(largest: float, count: int = SIZES, least: float = 8) -> Array:
    """Return sizes that increase by factors 2 up to the largest.

    >>> nested_sizes(900).tolist(), nested_sizes(18).tolist()
    ([28.0, 56.0, 112.0, 225.0, 450.0, 900.0], [9.0, 18.0])
    """
    sizes = np.floor(largest / 2.0 ** np.arange(count - 1, -1, -1))
    return sizes[sizes >= min(least, sizes[-2])]


def repeats_for(total: int) -> int:
    """Return how often the folds of a random order are repeated. Small tables need more repetitions."""
    return 1 if total > 300 else 2 if total > 60 else 4


def make_splits(
    total: int, labels: Any = None, groups: Any = None, cv: Any = None, seed: int = 0, X: Any = None, y: Any = None
) -> Splits:
    """Return splits.

    Parameters
    ----------
    total
        Number of rows.
    labels
        Class of every row, for folds with equal shares of the classes.
    groups
        Group of every row, as whole numbers.
    cv
        None, "time" if the rows are in the order of time, a number of folds, a splitter of scikit-learn, or pairs of training and test
        rows.
    seed
        Seed of the random orders.
    X, y
        Inputs and targets for the splitter.

    Examples
    --------
    >>> [split.test.size for split in make_splits(30).splits[:10]]
    [3, 3, 3, 3, 3, 3, 3, 3, 3, 3]
    >>> [split.train[:2].tolist() for split in make_splits(60, cv="time").splits]
    [[9, 8], [19, 18], [29, 28], [39, 38], [49, 48]]
    """
    rng = np.random.default_rng([seed, 8])
    if isinstance(cv, str) and cv == "time":
        if total < 2 * (TIME_FOLDS + 1):
            raise Refused(f"{total} rows are too few for tests on later rows: give at least {2 * (TIME_FOLDS + 1)}")
        size = total // (TIME_FOLDS + 1)
        starts = [total - size * k for k in range(TIME_FOLDS, 0, -1)]
        return Splits("time", tuple(Split(np.arange(at)[::-1], np.arange(at, at + size)) for at in starts), total)
    if cv is not None and not isinstance(cv, (int, np.integer)):
        return Splits(*_given(total, groups, cv, rng, X, y), total)
    if groups is not None:
        codes = np.asarray(groups)
        count = int(codes.max()) + 1
        folds = min(GROUP_FOLDS if cv is None else int(cv), count)
        splits = []
        for repeat in range(1 if count > 60 else 2):
            rank = np.random.default_rng([seed, 8, repeat]).permutation(count)
            for k in range(folds):
                tested = rank % folds == k
                shifted = np.random.default_rng([seed, 8, repeat, k]).permutation(count)
                splits.append(_by_groups(codes, np.flatnonzero(~tested[codes]), np.flatnonzero(tested[codes]), shifted))
        return Splits("groups", tuple(splits), total)
    folds = min(FOLDS if cv is None else int(cv), total)
    splits = []
    for repeat in range(repeats_for(total)):
        shuffled = np.random.default_rng([seed, 8, repeat])
        order = _mixed(labels, total, shuffled)
        edges = np.round(np.linspace(0, total, folds + 1)).astype(int)
        for k in range(folds):
            rotated = np.roll(order, -int(edges[k + 1]))
            count = int(edges[k + 1] - edges[k])
            # small training sets with equal shares of the classes would have smaller errors than random ones
            train = rotated[: total - count] if labels is None else shuffled.permutation(rotated[: total - count])
            splits.append(Split(train, rotated[total - count :]))
    return Splits("rows", tuple(splits), total)


def _mixed(labels: Any, total: int, rng: np.random.Generator) -> Rows:
    """Return a random order. With labels, every part of the order has nearly equal shares of the classes."""
    if labels is None:
        return rng.permutation(total)
    codes = np.unique(np.asarray(labels), return_inverse=True)[1]
    place = np.empty(total)
    for code in range(int(codes.max()) + 1):
        rows = rng.permutation(np.flatnonzero(codes == code))
        place[rows] = (np.arange(rows.size) + rng.random(rows.size)) / rows.size
    return np.argsort(place)


def _by_groups(codes: Rows, train: Rows, test: Rows, rank: Rows) -> Split:
    """Return a split whose training rows are ordered by a random order of the groups."""
    return Split(train[np.argsort(rank[codes[train]], kind="stable")], test)


def _given(total: int, groups: Any, cv: Any, rng: np.random.Generator, X: Any, y: Any) -> tuple[Kind, tuple[Split, ...]]:
    if isinstance(cv, str) or not (hasattr(cv, "split") or hasattr(cv, "__iter__")):
        raise Refused(
            f"cv = {cv!r} is not allowed: give 'time', a number of folds, a splitter of scikit-learn, or pairs of rows"
        )
    if hasattr(cv, "split"):
        try:
            pairs = list(cv.split(np.zeros((total, 1)) if X is None else X, y, groups))
        except (ValueError, TypeError) as error:
            raise Refused(f"cv = {cv!r} cannot split the rows: {str(error).splitlines()[0]}") from None
    else:
        pairs = list(cv)
    if len(pairs) < 2:
        raise Refused(f"cv has {len(pairs)} splits, which is not allowed: give at least two")
    made, kinds = [], set()
    for train, test in pairs:
        train, test = np.asarray(train, dtype=np.int64), np.asarray(test, dtype=np.int64)
        if not train.size or not test.size or np.intersect1d(train, test).size:
            raise Refused(
                "cv has a split that is not allowed: training and test rows must differ, and there must be some of both"
            )
        if train.max() < test.min():
            kinds.add("time")
            made.append(Split(np.sort(train)[::-1], test))
        elif groups is not None and not np.isin(np.asarray(groups)[test], np.asarray(groups)[train]).any():
            kinds.add("groups")
            codes = np.asarray(groups)
            made.append(_by_groups(codes, train, test, rng.permutation(int(codes.max()) + 1)))
        else:
            kinds.add("given")
            made.append(Split(rng.permutation(train), test))
    kind: Kind = "given" if len(kinds) > 1 else kinds.pop()  # type: ignore[assignment]
    return kind, tuple(made)


@dataclass(frozen=True)
class NestedLosses:
    """Losses of fits to nested subsets.

    Attributes
    ----------
    kind
        Kind of the splits.
    sizes
        Numbers of training rows.
    losses, tested
        Sum of the losses of every row over the fits that did not contain it, for every loss and size, and number of the tests, with
        shape (names, sizes, rows) and (sizes, rows). None for a metric of whole test sets.
    means
        Mean loss of every fit, with shape (names, sizes, splits). It is NaN for fits that were not made.
    names
        Names of the losses.
    ridges
        Geometric mean of the ridges for every size.
    share
        Number of test rows over number of training rows of the largest fits.
    least
        Smallest loss that the test sets can resolve.
    events
        Number of tested rows of the rarest class at every size, for the area under the curve; None otherwise.
    last
        Losses of the rows in the last split, for splits in time, with shape (names, sizes, rows), and the number of their tests.
    """

    kind: Kind
    sizes: Array
    losses: Array | None
    tested: Array
    means: Array
    names: tuple[str, ...]
    ridges: Array
    share: float = 0.1
    least: float = 0.0
    last: tuple[Array, Array] | None = None
    events: Array | None = None

    def fits(self) -> int:
        """Return the number of fits."""
        return int(np.isfinite(self.means[0]).sum())

    def measurement(self, name: str) -> Measurement:
        """Return the measured errors of a loss with their covariance."""
        at, labels = self.names.index(name), name == "error"
        if self.kind == "time":
            return self._in_time(at, labels)
        if name == "auc" and self.events is not None:
            enough = self.events >= min(FEWEST_EVENTS, self.events.max())
            made = from_splits(self.sizes, self.means[at], self.share, self.least, self.events)
            return made.only(np.flatnonzero(enough)) if enough.sum() > 1 else made
        if self.losses is None or name == "auc":
            return from_splits(self.sizes, self.means[at], self.share, self.least)
        return from_rows(self.sizes, self.losses[at], self.tested, self.means[at], labels)

    def _in_time(self, at: int, labels: bool) -> Measurement:
        """Return the errors after the latest time at the largest sizes. The scatter of earlier times is the error of the level."""
        means = self.means[at]
        if self.last is not None and self.losses is not None:
            made = from_rows(self.sizes, self.last[0][at], self.last[1], means[:, -1:], labels)
        else:
            made = from_splits(self.sizes, means[:, -1:], self.share, self.least)
        complete = np.isfinite(means).all(axis=1)
        logs = np.log(np.maximum(means[complete][-1], np.finfo(float).tiny)) if complete.any() else np.zeros(1)
        level = float(logs.var(ddof=1)) if logs.size > 2 else 0.1
        made = Measurement(made.sizes, made.values, made.covariance + level)
        return made.only(np.arange(max(0, made.sizes.size - SIZES_IN_TIME), made.sizes.size))


RIDGE_GRID = np.geomspace(1e-10, 1e2, 37)
"""Ridges of a fit to a subset, relative to the mean diagonal of the kernel."""

EIGEN_LIMIT = 1500
"""Fits to more rows use Cholesky factors at a few ridges instead of an eigendecomposition."""


def most_fits(size: int) -> int:
    """Return the largest number of fits with a kernel at a size. A fit costs the third power of its size.

    >>> [most_fits(size) for size in (300, 900, 1800, 4000)]
    [100, 6, 4, 2]
    """
    return 100 if size <= 700 else max(4, int(10 * (700 / size) ** 2)) if size < 2500 else 2


class RidgeSolver:
    """Ridge regression on some rows for all ridges of a grid, from one decomposition.

    Attributes
    ----------
    shifts
        The ridges times the number of rows.
    """

    def __init__(self, source: Kernel | Array, X: Array, inside: Rows, y: Array, grid: Array):
        from scipy.linalg import eigh

        self.source, self.X, self.inside = source, X, inside
        n = len(inside)
        self.wide = isinstance(source, Kernel) and source.features is not None and source.table(X[:1]).shape[1] < n
        if self.wide:
            assert isinstance(source, Kernel)
            self.left, singular, self.right = np.linalg.svd(source.table(X[inside]), full_matrices=False)
            values = singular**2
            unit = float(values.sum()) / n
            self.singular = singular
        else:
            gram = source(X[inside], X[inside]) if isinstance(source, Kernel) else source[np.ix_(inside, inside)]
            unit = float(np.trace(gram)) / n
            values, self.left = eigh(gram, driver="evd", overwrite_a=True, check_finite=False)
            values = np.maximum(values, 0.0)
        self.values, self.shifts = values, np.maximum(grid * unit, 1e-14 * unit) * n
        self.projected = self.left.T @ y
        self.y = y

    def left_out(self) -> Array:
        """Return the leave-one-out mean square for every ridge."""
        return self.left_out_rows().mean(axis=0)

    def left_out_rows(self) -> Array:
        """Return the mean square of every row in the fit without it, for every ridge, with shape (rows, ridges).

        The unfitted shares are computed directly, because 1 - leverage loses all digits at small ridges.
        """
        share = self.shifts / (self.values[:, None] + self.shifts)  # unfitted share
        rest = 1 - (self.left**2).sum(axis=1)[:, None] if self.wide else 0.0
        gap = (self.left**2) @ share + rest
        outside = self.y - self.left @ self.projected if self.wide else 0.0
        out = np.empty((len(self.y), self.shifts.size))
        for k in range(self.shifts.size):
            residual = self.left @ (share[:, [k]] * self.projected) + outside
            out[:, k] = ((residual / np.maximum(gap[:, [k]], np.finfo(float).tiny)) ** 2).mean(axis=1)
        return out

    def scores(self, outside: Rows, places: Any) -> Array:
        """Return the scores of rows for some ridges, with shape (ridges, rows, outputs)."""
        if self.wide:
            assert isinstance(self.source, Kernel)
            base = self.source.table(self.X[outside]) @ self.right.T
            weight = self.singular[:, None] / (self.values[:, None] + self.shifts)
        else:
            source = self.source
            across = (
                source(self.X[outside], self.X[self.inside])
                if isinstance(source, Kernel)
                else source[np.ix_(outside, self.inside)]
            )
            base, weight = across @ self.left, 1 / (self.values[:, None] + self.shifts)
        return np.stack([base @ (weight[:, [k]] * self.projected) for k in np.atleast_1d(places)])


def row_losses(scores: Array, targets: Array, labels: bool) -> Array:
    """Return the squared error (and 1 for a wrong label) of every row, with shape (names, rows)."""
    square = ((scores - targets) ** 2).mean(axis=1)
    if not labels:
        return np.asarray(square[None])
    if targets.shape[1] == 1:
        wrong = (scores[:, 0] > 0) != (targets[:, 0] > 0)
    else:
        wrong = scores.argmax(axis=1) != targets.argmax(axis=1)
    return np.array([square, wrong.astype(float)])


def area_loss(scores: Array, targets: Array) -> float:
    """Return one minus the area under the curve, averaged over the classes with rows on both sides; NaN if there is none."""
    from scipy.stats import rankdata

    positive = targets > 0 if targets.shape[1] == 1 else targets > 0.5
    ones = positive.sum(axis=0)
    zeros = len(targets) - ones
    both = (ones > 0) & (zeros > 0)
    if not both.any():
        return float("nan")
    ranks = rankdata(scores[:, both], axis=0)
    sums = np.where(positive[:, both], ranks, 0).sum(axis=0) - ones[both] * (ones[both] + 1) / 2
    return float(1 - np.mean(sums / (ones[both] * zeros[both])))


def kernel_losses(
    source: Kernel | Array,
    X: Array,
    targets: Array,
    labels: bool,
    splits: Splits,
    sizes: Array,
    ridge_at: Callable[[float], float] | None = None,
    deadline: float = np.inf,
    area: bool = False,
) -> NestedLosses:
    """Return the losses of kernel ridge regression at nested sizes.

    Parameters
    ----------
    source
        The kernel, or a Gram matrix.
    X, targets, labels
        Inputs, targets with one column per output, and whether these encode labels.
    splits, sizes
        The splits, and the numbers of training rows.
    ridge_at
        Function of the size that returns the ridge; None for the best ridge.
    deadline
        Time of `time.perf_counter` after which no further fit is started, except for the first two of every size below it.
    area
        Whether to measure one minus the area under the curve.
    """
    names = ("mse", *(("error",) if labels else ()), *(("auc",) if area else ()))
    total, sizes = len(targets), np.asarray(sizes, dtype=float)
    if isinstance(source, Kernel) and source.features is None and total <= LARGEST_FIT:
        source = source(X, X)
    losses, tested = np.zeros((len(names), sizes.size, total)), np.zeros((sizes.size, total))
    means = np.full((len(names), sizes.size, len(splits.splits)), np.nan)
    ridges: list[list[float]] = [[] for _ in sizes]
    stored: dict[tuple[int, int], Any] = {}
    by_split = splits.kind != "rows" and ridge_at is None
    last = (np.zeros((len(names), sizes.size, total)), np.zeros((sizes.size, total)))

    def enter(j: int, s: int, outside: Rows, scores: Array) -> None:
        each = row_losses(scores, targets[outside], labels)
        rows = len(each)
        losses[:rows, j, outside] += each
        tested[j, outside] += 1
        means[:rows, j, s] = each.mean(axis=1)
        if area:
            means[-1, j, s] = area_loss(scores, targets[outside])
        if s == len(splits.splits) - 1:
            last[0][:rows, j, outside] += each
            last[1][j, outside] += 1

    rare = rare_rows(targets) if area else np.zeros(total, dtype=bool)
    rarest = int(rare.sum())
    best_before, before = 1e-3, int(np.searchsorted(RIDGE_GRID, 1e-3))
    for j, size in enumerate(sizes.astype(int)):
        grid = RIDGE_GRID if ridge_at is None else np.zeros(1)
        cheap = _few_features(source, X)
        order = np.arange(len(splits.splits))
        most = max(most_fits(size), FITS_OF_EVENTS) if area and rarest < FEW_EVENTS else most_fits(size)
        if not cheap and order.size > most:  # the last split is the latest of splits in time
            order = np.unique(np.round(np.linspace(0, order.size - 1, most)).astype(int))
        for s in order.tolist():
            split = splits.splits[s]
            if size > len(split.train):
                continue
            if (
                clock.perf_counter() > deadline
                and (np.isfinite(means[0, j]).sum() + len([1 for key in stored if key[0] == j])) >= 2
            ):
                break
            inside = split.train[:size]
            outside = np.concatenate([split.test, split.train[size:]]) if splits.kind == "rows" else split.test
            outside = outside[:MOST_TESTS]
            if size > EIGEN_LIMIT and not cheap:
                scores, ridge, best_before = _large_fit(source, X, inside, outside, targets, best_before, ridge_at)
                ridges[j].append(ridge)
                enter(j, s, outside, scores)
                continue
            solver = RidgeSolver(source, X, inside, targets[inside], grid)
            if ridge_at is not None:
                solver.shifts = np.array([max(ridge_at(float(size)), 1e-12) * size])
                enter(j, s, outside, solver.scores(outside, 0)[0])
                ridges[j].append(ridge_at(float(size)))
            elif by_split:
                stored[j, s] = outside, solver.scores(outside, np.arange(grid.size)), solver.shifts / size
            else:
                k = int(np.argmin(solver.left_out()))
                enter(j, s, outside, solver.scores(outside, k)[0])
                ridges[j].append(float(solver.shifts[k] / size))
                if s == 0:
                    best_before = float(grid[k])
        if by_split:
            here = [s for i, s in stored if i == j]
            table = np.array([((stored[j, s][1] - targets[stored[j, s][0]]) ** 2).mean(axis=(1, 2)) for s in here])
            for at, s in enumerate(here):
                # a single split has no others, so it uses the ridge of the size before
                k = int(np.argmin(np.delete(table, at, axis=0).mean(axis=0))) if len(here) > 1 else before
                outside, scores, shifts = stored.pop((j, s))
                enter(j, s, outside, scores[k])
                ridges[j].append(float(shifts[k]))
                best_before = float(RIDGE_GRID[k])
            if len(here) > 1:
                before = int(np.argmin(table.mean(axis=0)))
    at = np.isfinite(means[0]).any(axis=1) & np.array([bool(values) for values in ridges])
    centre = np.array(
        [float(np.exp(np.mean(np.log(np.maximum(values, 1e-300))))) for values, held in zip(ridges, at, strict=True) if held]
    )
    share = float(np.mean([len(split.test) / len(split.train) for split in splits.splits]))
    return NestedLosses(
        splits.kind, sizes[at], losses[:, at], tested[at], means[:, at], names, centre, share,
        0.5 / max(float(rarest), 1.0) if area else 0.0, (last[0][:, at], last[1][at]) if splits.kind == "time" else None,
        (tested[at][:, rare] > 0).sum(axis=1).astype(float) if area else None,
    )  # fmt: skip


FEWEST_EVENTS = 5
"""Sizes at which fewer rows of the rarest class were tested are left out of the curve of the area under the curve."""

FEW_EVENTS, FITS_OF_EVENTS = 50, 5
"""Number of rows of the rarest class below which at least the second number of fits is made at every size."""


def rare_rows(targets: Array) -> NDArray[np.bool_]:
    """Return which rows belong to the rarest class.

    >>> rare_rows(np.array([[1.0], [-1.0], [-1.0]])).tolist()
    [True, False, False]
    """
    positive = targets > 0 if targets.shape[1] == 1 else targets > 0.5
    sides = np.column_stack([positive, ~positive]) if targets.shape[1] == 1 else positive
    return np.asarray(sides[:, int(np.argmin(np.where(sides.any(axis=0), sides.sum(axis=0), len(sides) + 1)))])


def _few_features(source: Any, X: Array) -> bool:
    return isinstance(source, Kernel) and source.features is not None and source.table(X[:1]).shape[1] <= EIGEN_LIMIT


def _large_fit(
    source: Kernel | Array, X: Array, inside: Rows, outside: Rows, targets: Array, before: float, ridge_at: Any
) -> tuple[Array, float, float]:
    """Return the scores of a large fit, its ridge, and this ridge relative to the mean diagonal.

    The ridge is the best of three near that of the size before. The choice uses the test rows. With more than a thousand test rows the
    choice among three has an optimism that is negligible.
    """
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    n = len(inside)
    gram = source(X[inside], X[inside]) if isinstance(source, Kernel) else source[np.ix_(inside, inside)]
    across = source(X[outside], X[inside]) if isinstance(source, Kernel) else source[np.ix_(outside, inside)]
    unit = float(np.trace(gram)) / n
    relative = before * np.array([1.0, 0.25, 0.06]) if ridge_at is None else np.array([ridge_at(float(n)) / unit])
    best = None
    for value in np.maximum(relative, 1e-12):
        shifted = gram.copy()
        shifted[np.diag_indices(n)] += value * unit * n
        try:
            scores = across @ cho_solve(cho_factor(shifted, overwrite_a=True, check_finite=False), targets[inside])
        except LinAlgError:
            continue
        loss = float(np.mean((scores - targets[outside]) ** 2))
        if best is None or loss < best[0]:
            best = loss, scores, value
        elif ridge_at is None:
            break
    if best is None:
        raise Refused(f"the Gram matrix of {n} rows is singular: give a larger ridge")
    return best[1], float(best[2] * unit), float(best[2])


# -- choice of the kernel ------------------------------------------------------------------------------------------------


MOST_FOR_CHOICE = 600
"""Largest number of training rows of the fits that choose a kernel by splits."""


def scores_by_splits(kernels: dict[str, Kernel], X: Array, targets: Array, splits: Splits) -> tuple[Array, Array, Array]:
    """Return the least mean square over ridges of every kernel on the test rows of the splits, the ridge, and the standard error."""
    some = splits.splits[-min(5, len(splits.splits)) :]
    scores, ridges, errors = [], [], []
    for kernel in kernels.values():
        table, units = [], []
        for split in some:
            inside, outside = split.train[:MOST_FOR_CHOICE], split.test[:MOST_FOR_CHOICE]
            solver = RidgeSolver(kernel, X, inside, targets[inside], RIDGE_GRID)
            guess = solver.scores(outside, np.arange(RIDGE_GRID.size))
            table.append(((guess - targets[outside]) ** 2).mean(axis=(1, 2)))
            units.append(solver.shifts / len(inside))
        each = np.array(table)
        k = int(np.argmin(each.mean(axis=0)))
        scores.append(float(each[:, k].mean()))
        ridges.append(float(np.mean([unit[k] for unit in units])))
        errors.append(float(each[:, k].std(ddof=1) / np.sqrt(len(some))))
    return np.array(scores), np.array(ridges), np.array(errors)


def selection_shift(kernels: dict[str, Kernel], chosen: str, X: Array, targets: Array, splits: Splits) -> float:
    """Return the logarithm of the error with the kernel chosen anew in every split over the error with the chosen kernel, at least 0.

    The chosen kernel was selected with the test rows of the splits. The kernel of a split is selected by leave-one-out on its training
    rows.
    """
    nested = fixed = 0.0
    for split in splits.splits[: 2 * FOLDS]:
        best, least = 0.0, np.inf
        for name, kernel in kernels.items():
            solver = RidgeSolver(kernel, X, split.train, targets[split.train], RIDGE_GRID)
            left = solver.left_out()
            k = int(np.argmin(left))
            if left[k] < least or name == chosen:
                loss = float(((solver.scores(split.test, k)[0] - targets[split.test]) ** 2).mean()) * len(split.test)
                if name == chosen:
                    fixed += loss
                if left[k] < least:
                    best, least = loss, left[k]
        nested += best
    return float(max(np.log(nested / fixed), 0.0)) if fixed > 0 else 0.0
