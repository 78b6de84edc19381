"""Sentences on columns of a table that probably make its forecast misleading.

Each check looks at the columns as they are in the file, before they become inputs, and names the column and the remedy. The checks are:

- A column determines the target (`leaks`), alone, by its missing values, or together with a few other columns as an exact sum.
- A column contains dates and the option `time` is not given (`dates`).
- A column contains repeated identifiers and the option `groups` is not given (`identifiers`), or rows are similar in groups.
- A column of whole numbers contains codes whose order has no meaning (`codes`).
- The labels are ordered, or a target that is taken as numbers contains only a few different values (`target_kind`).
- Few rows hold most of the variance of the target (`heavy_tails`), or one class is rare (`imbalance`).
- The forecast is no better than a prediction that uses no column (`no_skill`).

The thresholds are constants of this module. They were set on made tables. Tests check that tables without such defects have no
sentence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.applied.forecast._answer import Unit
from limitlab.applied.forecast._clusters import grouped_rows
from limitlab.applied.forecast._nested import TIME_FOLDS
from limitlab.applied.forecast.tables import Table, as_floats, days_of, numbers_of

Floats = NDArray[np.float64]

MOST_ROWS = 20_000
"""Largest number of rows that the checks read. Larger tables are thinned to every k-th row."""

MOST_COLUMNS = 5_000
"""Largest number of columns that the checks read."""

GROUPS_WITHOUT_COLUMN = (
    "The rows come in groups of similar rows, such as several rows of each patient, and no column names the groups. If the model will "
    "predict new groups, add a column with the group of each row and give --groups; errors on new groups may be larger."
)
"""Sentence on groups that no column names."""

LEAK_SHARE = 0.005
"""A single column leaks if it leaves at most this share of the variance of the target."""

SUM_SHARE = 1e-4
"""A sum of columns leaks if it leaves at most this share of the variance of the target."""

LEAK_ERRORS = 0.01
"""A single column leaks if its rule for the labels has at most this share of the errors of the most frequent label."""

MISSING_ERRORS = 0.1
"""The same limit for the rule "the value is missing"."""

RARE_CLASS = 0.1
"""A class with a smaller share of the rows is rare, and AUC replaces the share of wrong labels as default metric."""

HEAVY_SHARE = 0.5
"""Tails are heavy if the largest 1 % of the rows hold more than this share of the variance of the target."""

INFINITE_VARIANCE = 2.0
"""Tails are heavy if their estimated power (Hill) is two standard errors below this value, at which the variance becomes infinite."""

ALMOST_ALL = 0.985
"""A forecast that leaves a larger share of the variance shows no skill."""

ALIKE = 0.5
"""Rows with the same value of a column are repeated measurements if they share this part of the variance of other columns (median)."""

FEWEST_CODES, FEWEST_PER_CODE = 18, 4
"""Smallest number of values with this number of rows for a test of whether neighbouring values are alike."""

CODE_SHARE, CODE_DISORDER, CODE_LEVEL = 0.05, 0.6, 1e-8
"""A column of whole numbers contains codes under three conditions.

The means of its values hold this share of the variance of the target, neighbouring values are this much as different as distant ones, and
the F test of the means has a smaller p-value.
"""


class Dependence(str):
    """A sentence on rows that depend on each other, such as those of one day or of one patient."""

    __slots__ = ()


class Leak(str):
    """A sentence on a column that determines the target."""

    __slots__ = ()


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


IDENTIFIERS = words_of(
    "id uid uuid ident identifier patient subject customer client user person participant respondent pupil student "
    "household family couple twin pair school hospital clinic ward machine device sensor animal mouse litter plot "
    "session speaker author account vendor supplier seller driver player donor group cluster batch site station shop "
    "store"
)
"""Words in the names of columns that identify what a row was measured on."""

CODES = words_of(
    "zip zipcode postal postcode plz code region country state county district municipality category cat sku sic "
    "naics icd atc isbn airport carrier branch department dept sector type"
)
"""Words in the names of columns whose whole numbers are names."""

CLOCK = words_of("timestamp datetime date when time epoch day month year week quarter hour period tick")
"""Words in the names of columns of times."""

BIRTH = words_of("birth birthday birthdate born dob")
"""Words in the names of dates that describe a person and not the time of a row."""

ORDERED = words_of("rating score grade stage level quality star severity rank satisfaction degree likert risk")
"""Words in the names of ordered labels."""


def has_word(name: Any, words: frozenset[str]) -> bool:
    """Return whether a name contains one of the words, also as a plural or in front of "id".

    >>> has_word("PatientID", IDENTIFIERS), has_word("customerid", IDENTIFIERS), has_word("humid", IDENTIFIERS)
    (True, True, False)
    """
    parts = re.split(r"[^a-z]+", re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", str(name)).lower())
    ends = [part[:-2] for part in parts if part.endswith("id")]
    plurals = [part[:-1] for part in parts if part.endswith("s")]
    return any(part in words for part in (*parts, *plurals, *(end for end in ends if end)))


def suspicions(
    table: Table,
    target: str,
    task: str = "auto",
    groups: str | None = None,
    time: str | None = None,
) -> list[str]:
    """Return sentences on defects of a table that make its forecast misleading. The list is empty for most tables.

    Parameters
    ----------
    table
        The prepared table, with the columns of the file in `raw`.
    target, task, groups, time
        The options of the forecast.
    """
    sentences: list[str] = []
    if table.raw is not None and target in table.raw.columns:
        frame = thinned(table.raw)
        inputs = [name for name in frame.columns if name not in (target, groups, time)][:MOST_COLUMNS]
        y, indicators = target_numbers(table, frame[target])
        leaking = leaks(frame, inputs, y, indicators, table.labels, target)
        sentences += leaking.values()
        others = [name for name in inputs if name not in leaking]
        if time is None:
            sentences += map(Dependence, dates(frame, others))
        repeated = identifiers(frame, others) if groups is None else {}
        sentences += map(Dependence, repeated.values())
        if groups is None and time is None and not repeated and grouped_rows(table.X):
            sentences.append(Dependence(GROUPS_WITHOUT_COLUMN))
        sentences += codes(frame, [name for name in others if name not in repeated], indicators)
        sentences += target_kind(table, frame[target], target, task)
    sentences += heavy_tails(table, target)
    sentences += imbalance(table, target)
    return sentences


def thinned(frame: Any) -> Any:
    """Return at most `MOST_ROWS` rows, spread evenly over the table."""
    if len(frame) <= MOST_ROWS:
        return frame
    return frame.iloc[np.linspace(0, len(frame) - 1, MOST_ROWS).astype(int)]


def target_numbers(table: Table, values: Any) -> tuple[Floats, Floats]:
    """Return the target as codes or numbers, and as columns.

    The columns are one indicator per class, or the numbers in units of their spread.
    """
    if table.labels:
        _, codes = np.unique(values.astype(str).to_numpy(), return_inverse=True)
        return codes.astype(float), np.eye(codes.max() + 1)[codes]
    numbers = as_floats(values)
    if numbers is None or not np.isfinite(numbers).all() or numbers.std() == 0:
        numbers = np.asarray(table.y, dtype=float)[: len(values)]
    return numbers, ((numbers - numbers.mean()) / numbers.std())[:, None]


def level_codes(values: Any) -> NDArray[np.int64]:
    """Return a whole number per row that names its value. Missing values are a value too."""
    import pandas as pd

    place, levels = pd.factorize(values)
    return np.asarray(np.where(place < 0, len(levels), place), dtype=np.int64)


# -- columns that determine the target ------------------------------------------------------------------------------------


def leaks(frame: Any, inputs: list[Any], y: Floats, indicators: Floats, labels: bool, target: str) -> dict[Any, Leak]:
    """Return a sentence for every column that determines the target."""
    sentences: dict[Any, str] = {}
    numeric: dict[Any, Floats] = {}
    least = 9.2 + math.log(max(len(inputs), 1))  # a chance of 1 in 10,000 for all columns together
    for name in inputs:
        numbers = as_floats(frame[name])
        missing = np.asarray(frame[name].isna())
        if labels:
            share = label_errors(numbers, level_codes(frame[name]), y, least)
            absent = missing_errors(missing, y, least)
            if share <= LEAK_ERRORS or absent <= MISSING_ERRORS:
                how = "" if share <= LEAK_ERRORS else "whether a value is missing in "
                wrong = min(share, absent)
                sentences[name] = (
                    f"{how}{name} alone gives the labels of {target} with {1 - wrong:.1%} of the errors of the most frequent label "
                    f"removed. {_remedy(name, target)}"
                )
        else:
            share = unexplained(numbers, level_codes(frame[name]), indicators)
            if share <= LEAK_SHARE:
                sentences[name] = (
                    f"{name} alone determines {target} up to {share:.2g} of its variance. {_remedy(name, target)}"
                )
        if numbers is not None and np.isfinite(numbers).all() and np.ptp(numbers) > 0:
            numeric[name] = numbers
    if not labels and not sentences and len(numeric) > 1:
        parts = exact_sum(numeric, indicators[:, 0])
        if parts:
            listed = ", ".join(map(str, parts))
            sentences[parts[0]] = (
                f"a sum of {listed} is equal to {target} up to less than {SUM_SHARE:g} of its variance. If {target} was made from these "
                "columns, the forecast has no meaning; leave them out."
            )
    return {
        name: Leak(text[0].upper() + text[1:] if text.startswith(("a sum", "whether")) else text)
        for name, text in sentences.items()
    }


def _remedy(name: Any, target: str) -> str:
    return f"If {name} is computed from {target} or is known only after it, leave {name} out; otherwise ignore this line."


def unexplained(numbers: Floats | None, levels: NDArray[np.int64], target: Floats) -> float:
    """Return the share of the variance of the target that a column leaves, by the best of a line, neighbours and means of levels.

    >>> x = np.arange(50.0)
    >>> unexplained(x, np.arange(50), ((x - x.mean()) / x.std())[:, None]) < 1e-12
    True
    """
    total = float(np.sum((target - target.mean(axis=0)) ** 2))
    shares = [within_levels(levels, target) / total]
    if numbers is not None:
        known = np.isfinite(numbers)
        x, t = numbers[known], target[known]
        if known.mean() > 0.9 and np.ptp(x) > 0:
            rest = float(np.sum((t - t.mean(axis=0)) ** 2))
            scale = np.abs(x - x.mean()).max()
            centred = (x - x.mean()) / scale
            slope = centred @ (t - t.mean(axis=0)) / float(centred @ centred)
            shares.append(float(np.sum((t - t.mean(axis=0) - centred[:, None] * slope) ** 2)) / rest)
            ordered = t[np.lexsort((t[:, 0], x))] if np.unique(x).size == x.size else _means_of_ties(x, t)
            if len(ordered) > 0.5 * len(x):
                shares.append(float(np.sum(np.diff(ordered, axis=0) ** 2)) / 2 / rest)
    return min(shares)


def _means_of_ties(x: Floats, t: Floats) -> Floats:
    """Return the target in the order of x, averaged over rows with the same x."""
    values, place = np.unique(x, return_inverse=True)
    sums = np.zeros((values.size, t.shape[1]))
    np.add.at(sums, place, t)
    return np.asarray(sums / np.bincount(place)[:, None])


def within_levels(levels: NDArray[np.int64], target: Floats) -> float:
    """Return the sum of squared leave-one-out errors of the means of levels. A level with one row is predicted by the mean of all rows."""
    counts = np.bincount(levels)
    sums = np.zeros((counts.size, target.shape[1]))
    np.add.at(sums, levels, target)
    own = counts[levels][:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        others = (sums[levels] - target) / (own - 1)
    guess = np.where(own > 1, others, target.mean(axis=0))
    return float(np.sum((target - guess) ** 2))


def label_errors(numbers: Floats | None, levels: NDArray[np.int64], y: Floats, least: float) -> float:
    """Return the errors of the best rule for the labels from one column, over the errors of the most frequent label.

    The rules are the most frequent label per value, leave one out, and, for numbers, at most as many intervals as classes. `least` is the
    logarithm of the number of arrangements of the labels that must be possible, so that a column of noise is not reported.
    """
    classes = y.astype(int)
    counts = np.bincount(classes)
    base = len(y) - counts.max()
    if math.lgamma(len(y) + 1) - sum(math.lgamma(count + 1) for count in counts) < least or base < 3:
        return math.inf
    table = np.zeros((levels.max() + 1, counts.size))
    np.add.at(table, (levels, classes), 1)
    rest = table[levels]
    rest[np.arange(len(y)), classes] -= 1
    wrong = np.sum((rest.argmax(axis=1) != classes) | (rest.sum(axis=1) == 0))
    if numbers is not None and np.isfinite(numbers).all() and counts.size <= 30:
        order = np.lexsort((classes, numbers))
        changes = int(np.count_nonzero(np.diff(classes[order])))
        if changes - (counts.size - 1) <= 2 * LEAK_ERRORS * base:  # every wrong row adds at most two changes of label
            wrong = min(wrong, interval_errors(numbers, classes, counts.size))
    return float(wrong / base)


def interval_errors(x: Floats, classes: NDArray[np.int64], count: int) -> int:
    """Return the fewest errors of a rule that cuts the numbers into at most `count` intervals, with one label each.

    >>> interval_errors(np.arange(6.0), np.array([0, 0, 0, 1, 1, 0]), 2)
    1
    """
    order = np.lexsort((classes, x))
    values, labels = x[order], classes[order]
    last = np.append(values[1:] != values[:-1], True)  # an interval ends at the last of equal values
    right = np.zeros((count, count))  # correct labels by number of intervals and label of the last interval
    right[1:] = -np.inf
    finished = np.full(count, -np.inf)
    for label, ends in zip(labels, last, strict=True):
        right[1:] = np.maximum(right[1:], finished[:-1, None])
        right[:, label] += 1
        finished = right.max(axis=1) if ends else np.full(count, -np.inf)
    return int(len(x) - right.max())


def missing_errors(missing: NDArray[np.bool_], y: Floats, least: float) -> float:
    """Return the errors of the rule "the value is missing" for two classes, over the errors of the most frequent label."""
    classes = y.astype(int)
    counts = np.bincount(classes)
    few = min(int(missing.sum()), int((~missing).sum()))
    if counts.size != 2 or few < 5 or math.lgamma(len(y) + 1) - sum(math.lgamma(c + 1) for c in counts) < least:
        return math.inf
    wrong = int(np.sum(missing != (classes == 1)))
    return min(wrong, len(y) - wrong) / int(counts.min())


def exact_sum(numeric: dict[Any, Floats], y: Floats) -> list[Any]:
    """Return the fewest columns (at most five) whose linear combination is the target, or an empty list."""
    names = list(numeric)
    X = np.column_stack([(column - column.mean()) / column.std() for column in numeric.values()])
    parts: list[int] = []
    rest = y - y.mean()
    for _ in range(min(5, len(names), len(y) // 10)):
        gain = np.abs(rest @ X)
        gain[parts] = -1
        parts.append(int(np.argmax(gain)))
        rest = y - y.mean() - X[:, parts] @ np.linalg.lstsq(X[:, parts], y - y.mean(), rcond=None)[0]
        if np.mean(rest**2) <= SUM_SHARE:
            return [names[part] for part in parts]
    return []


# -- dates, identifiers and codes -----------------------------------------------------------------------------------------


def dates(frame: Any, inputs: list[Any]) -> Iterator[str]:
    """Yield a sentence that names the columns of dates, because errors on later rows may be larger."""
    names = [str(name) for name in inputs if not has_word(name, BIRTH) and is_date(frame[name], str(name))]
    if names:
        listed = ", ".join(names[:3])
        verb = "contains dates" if len(names) == 1 else "contain dates"
        yield (
            f"{listed} {verb}, and rows at random are not later rows. If the model will predict later rows, give --time {names[0]}; "
            "errors on later rows may be larger."
        )


def is_date(values: Any, name: str) -> bool:
    """Return whether a column contains dates, or numbers that increase with the rows and have the name of a time."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(values):
        return bool(values.nunique() > 2)
    if pd.api.types.is_bool_dtype(values):
        return False
    if pd.api.types.is_numeric_dtype(values):
        numbers = values.to_numpy(dtype=float, na_value=np.nan)
        numbers = numbers[np.isfinite(numbers)]
        if not has_word(name, CLOCK) or np.unique(numbers).size <= 10:
            return False
        whole = bool((numbers == np.round(numbers)).all())
        seconds = whole and bool(((numbers > 6e8) & (numbers < 3e9)).all() or ((numbers > 6e11) & (numbers < 3e12)).all())
        digits = whole and bool(((numbers > 19e6) & (numbers < 21e6) & (numbers % 100 <= 31) & (numbers % 100 >= 1)).all())
        return seconds or digits or bool((np.diff(numbers) >= 0).all())
    texts = [str(value) for value in values.dropna().unique()[:200]]
    return len(texts) > 2 and numbers_of(texts) is None and days_of(texts) is not None


def identifiers(frame: Any, inputs: list[Any]) -> dict[Any, str]:
    """Return a sentence for every column that identifies a patient, a shop or the like with several rows."""
    sentences: dict[Any, str] = {}
    rows = len(frame)
    for name in inputs:
        values = frame[name]
        if not names_things(values):
            continue
        levels = level_codes(values)
        counts = np.bincount(levels)
        different = int((counts > 0).sum())
        if not 10 <= different <= 0.6 * rows:
            continue
        named = has_word(name, IDENTIFIERS)
        alike = 0.0 if named or different < 20 else likeness(frame, [other for other in inputs if other != name], levels)
        if named or alike > ALIKE:
            mean = rows / different
            reason = "" if named else f", and rows with the same {name} are alike in the other columns"
            sentences[name] = (
                f"{name} has {different} different values with {mean:.1f} rows each{reason}. If the model will predict new values of "
                f"{name}, give --groups {name}; errors on new groups may be larger."
            )
    return sentences


def names_things(values: Any) -> bool:
    """Return whether a column contains whole numbers or text, and neither numbers in text nor dates."""
    import pandas as pd

    if pd.api.types.is_bool_dtype(values) or pd.api.types.is_datetime64_any_dtype(values):
        return False
    if pd.api.types.is_numeric_dtype(values):
        numbers = values.to_numpy(dtype=float, na_value=np.nan)
        numbers = numbers[np.isfinite(numbers)]
        return bool(numbers.size and (numbers == np.round(numbers)).all())
    texts = [str(value) for value in values.dropna().unique()[:200]]
    return bool(texts) and numbers_of(texts) is None and days_of(texts) is None


def likeness(frame: Any, others: list[Any], levels: NDArray[np.int64]) -> float:
    """Return the median share of the variance of other columns of numbers that rows with the same value share (intraclass correlation)."""
    import pandas as pd

    shares = []
    counts = np.bincount(levels)
    counts = counts[counts > 0]
    _, levels = np.unique(levels, return_inverse=True)
    rows, groups = levels.size, counts.size
    if rows - groups < 10:
        return 0.0
    size = (rows - float(np.sum(counts**2)) / rows) / (groups - 1)
    for name in others[:50]:
        values = frame[name]
        if not pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
            continue
        x = values.to_numpy(dtype=float, na_value=np.nan)
        if not np.isfinite(x).all() or np.unique(x).size < 20:
            continue
        means = np.bincount(levels, x) / counts
        inside = float(np.sum((x - means[levels]) ** 2)) / (rows - groups)
        between = float(np.sum(counts * (means - x.mean()) ** 2)) / (groups - 1)
        total = (between - inside) / size + inside
        shares.append((between - inside) / size / total if total > 0 else 0.0)
    return float(np.median(shares)) if shares else 0.0


def codes(frame: Any, inputs: list[Any], target: Floats) -> Iterator[str]:
    """Yield a sentence for the columns of whole numbers that have names of codes, or whose order has no relation to the target."""
    import pandas as pd

    named: dict[str, int] = {}
    measured: dict[str, int] = {}
    for name in inputs:
        values = frame[name]
        if not pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values) or not names_things(values):
            continue
        if values.isna().any() or not 5 <= (count := values.nunique()) <= len(values) / 3:
            continue
        if has_word(name, CODES):
            named[str(name)] = count
        elif target.shape[1] <= 2 and disordered(values.to_numpy(dtype=float), target[:, 0]):
            measured[str(name)] = count
    reasons = (
        (named, "The name is that of a code."),
        (measured, "Neighbouring values have no similar targets, as in codes."),
    )
    for columns, reason in reasons:
        if columns:
            listed = ", ".join(f"{name} ({count} different values)" for name, count in list(columns.items())[:5])
            verb = "contains" if len(columns) == 1 else "contain"
            yield (
                f"{listed} {verb} whole numbers that are taken as a quantity. {reason} If the numbers are codes, write them as text, for "
                "example with a letter in front."
            )


def disordered(x: Floats, target: Floats) -> bool:
    """Return whether the means of the target differ between values of x, and differ between neighbours as much as between distant values.

    >>> rng = np.random.default_rng(0)
    >>> code, effect = rng.integers(0, 40, 2000), 2 * rng.standard_normal(40)
    >>> disordered(code.astype(float), effect[code] + rng.standard_normal(2000))
    True
    >>> disordered(code.astype(float), code / 10 + rng.standard_normal(2000))
    False
    """
    from scipy.stats import f as f_distribution

    values, place = np.unique(x, return_inverse=True)
    counts = np.bincount(place)
    groups, rows = values.size, x.size
    inner = np.flatnonzero(counts >= FEWEST_PER_CODE)[1:-1]  # the ends are often "none" and "at least"
    if inner.size < FEWEST_CODES or rows - groups < 2 * groups:
        return False
    centred = target - target.mean()
    total = float(centred @ centred)
    means = np.bincount(place, centred) / counts
    between = float(np.sum(counts * means**2))
    noise = (total - between) / (rows - groups)
    if noise <= 0 or between - (groups - 1) * noise < CODE_SHARE * total:
        return False
    if f_distribution.sf(between / (groups - 1) / noise, groups - 1, rows - groups) > CODE_LEVEL:
        return False
    chance = noise * float(np.mean(1 / counts[inner]))
    spread = float(np.var(means[inner], ddof=1)) - chance
    steps = float(np.mean(np.diff(means[inner]) ** 2)) / 2 - chance
    return spread > 3 * chance and steps > CODE_DISORDER * spread


# -- the target -----------------------------------------------------------------------------------------------------------


def target_kind(table: Table, values: Any, target: str, task: str) -> Iterator[str]:
    """Yield a sentence if numbers look like labels, or labels look like an ordered scale."""
    numbers = as_floats(values)
    if task != "auto" or numbers is None:
        return
    numbers = numbers[np.isfinite(numbers)]
    levels = np.unique(numbers)
    if not table.labels:
        few = levels.size <= 10 and bool((levels == np.round(levels)).all()) and numbers.size >= 10 * levels.size
        if levels.size == 2 or few:
            listed = ", ".join(f"{level:g}" for level in levels[:10])
            yield (
                f"{target} contains only {listed} and is taken as a number. If the values are labels, give --task classification."
            )
        return
    steps = bool((np.diff(levels) == 1).all()) and 3 <= levels.size <= 12
    if steps and (has_word(target, ORDERED) or in_order(np.asarray(table.X), np.searchsorted(levels, numbers), levels.size)):
        yield (
            f"{target} has the values {levels[0]:g} to {levels[-1]:g}, which look ordered, and is taken as {levels.size} labels without an "
            "order. If the order has a meaning, give --task regression."
        )


def in_order(X: Floats, classes: NDArray[np.int64], count: int) -> bool:
    """Return whether a linear classifier mostly confuses neighbouring classes, more than for any other order of the classes."""
    if count < 4 or len(X) != len(classes):
        return False
    if len(X) > 3000:
        rows = np.linspace(0, len(X) - 1, 3000).astype(int)
        X, classes = X[rows], classes[rows]
    table = confusions(X, classes, count)
    wrong = table.sum()
    if wrong < max(20, 0.1 * len(X)):
        return False
    distance = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    ours = float((table * distance).sum() / wrong)
    rng = np.random.default_rng(0)
    orders = (
        [np.array(order) for order in permutations(range(count))]
        if count <= 6
        else [rng.permutation(count) for _ in range(720)]
    )
    better = sum(float((table * distance[order][:, order]).sum() / wrong) <= ours + 1e-12 for order in orders)
    return ours < 1.5 and better <= 2 + (0 if count <= 6 else -1)


def confusions(X: Floats, classes: NDArray[np.int64], count: int) -> Floats:
    """Return the numbers of confusions of a ridge classifier, leave one out, without the diagonal."""
    table = np.column_stack([X, np.ones(len(X))])
    targets = np.eye(count)[classes] / np.sqrt(np.bincount(classes, minlength=count))  # rare classes get the same weight
    left, singular, _ = np.linalg.svd(table, full_matrices=False)
    shrink = singular**2 / (singular**2 + 1e-3 * len(X) * np.mean(np.sum(X**2, axis=1)))
    fitted = (left * shrink) @ (left.T @ targets)
    lever = np.minimum(np.sum(left**2 * shrink, axis=1), 0.99)
    scores = targets - (targets - fitted) / (1 - lever)[:, None]
    out = np.zeros((count, count))
    np.add.at(out, (classes, scores.argmax(axis=1)), 1)
    np.fill_diagonal(out, 0)
    return out


def tail_share(values: Floats) -> float:
    """Return the share of the variance that the largest 1 % of the deviations from the mean hold (at least one row).

    >>> round(tail_share(np.r_[np.zeros(99), 10.0]), 2)
    0.99
    """
    squares = np.sort((values - values.mean()) ** 2)[::-1]
    return float(squares[: max(1, round(0.01 * values.size))].sum() / squares.sum())


def tail_power(values: Floats) -> tuple[float, float]:
    """Return Hill's estimate of the power of the tails of the deviations from the median, and its standard error."""
    sizes = np.sort(np.abs(values - np.median(values)))[::-1]
    count = max(10, round(values.size**0.6))
    if sizes.size <= count or sizes[count] <= 0:
        return math.inf, 0.0
    excess = float(np.mean(np.log(sizes[:count] / sizes[count])))
    if excess <= 0:
        return math.inf, 0.0
    power = 1 / excess
    return power, power / math.sqrt(count)


def heavy_tails(table: Table, target: str) -> Iterator[str]:
    """Yield a sentence if few rows hold most of the variance of a target of numbers."""
    if table.labels:
        return
    y = np.asarray(table.y, dtype=float)
    share, (power, error) = tail_share(y), tail_power(y)
    if y.size < 50 or not (share > HEAVY_SHARE or power + 2 * error < INFINITE_VARIANCE):
        return
    positive = table.raw is not None and target in table.raw.columns and _all_positive(table.raw[target])
    remedy = f"the logarithm of {target}, or its ranks," if positive else f"the ranks of {target}, or values cut at a limit,"
    yield (
        f"{target} has heavy tails: the largest 1% of the rows hold {share:.0%} of its variance. Few rows then determine the mean square, "
        f"and its forecast is not reliable; predict {remedy} instead."
    )


def _all_positive(values: Any) -> bool:
    numbers = as_floats(values)
    return numbers is not None and bool(np.nanmin(numbers) > 0)


def class_counts(table: Table) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the labels of a table and their numbers, the rarest first."""
    labels, counts = np.unique(table.y, return_counts=True)
    order = np.argsort(counts, kind="stable")
    return labels[order], counts[order]


def default_metric(table: Table, metric: str | None) -> str | None:
    """Return the metric of a curve, which is "auc" for two classes of which one is rare unless another metric is given."""
    if metric is not None or not table.labels:
        return metric
    labels, counts = class_counts(table)
    return "auc" if labels.size == 2 and counts[0] < RARE_CLASS * counts.sum() else None


def baseline_words(table: Table) -> str:
    """Return a sentence on the rarest class and on the error of the most frequent label. It is empty unless a class is rare."""
    if not table.labels:
        return ""
    labels, counts = class_counts(table)
    total = int(counts.sum())
    if labels.size != 2 or counts[0] >= RARE_CLASS * total:
        return ""
    return (
        f"{counts[0]} of {total} rows have the label {str(labels[0])!r}; always {str(labels[-1])!r} gives "
        f"{counts[0] / total:.2%} wrong labels, and AUC 0.5."
    )


def imbalance(table: Table, target: str) -> Iterator[str]:
    """Yield a sentence if one of two classes is rare."""
    words = baseline_words(table)
    if words:
        yield f"{target} is imbalanced: {words} The share of wrong labels says little, so AUC is the default metric."


def baseline(table: Table, kind: str, target: str, later: bool = False) -> tuple[float, str] | None:
    """Return the loss of a prediction that uses no column, and its words. The result is None for losses without such a prediction.

    For numbers this is the error of the mean of the other rows, leave one out, which is (N + 1) / (N - 1) of the variance. With `later`
    the prediction uses the rows before the last block of a test in time, and its loss is that on this block.
    """
    y = np.asarray(table.y)
    rows = len(y)
    block = rows // (TIME_FOLDS + 1) if later else 0
    before, test = (y[:-block], y[-block:]) if block else (y, y)
    if kind in ("mse", "mae") and not table.labels:
        before, test = before.astype(float), test.astype(float)
        if kind == "mae":
            return float(np.abs(test - np.median(before)).mean()), f"the median of {target} alone"
        least = float(((test - before.mean()) ** 2).mean())
        return least * (1.0 if block else (rows + 1) / (rows - 1)), f"the mean of {target} alone"
    if not table.labels or kind not in ("error", "accuracy", "auc", "log_loss"):
        return None
    if kind == "auc":
        return 0.5, "a guess"
    labels, counts = np.unique(before, return_counts=True)
    if kind == "log_loss":
        shares = dict(zip(labels.tolist(), (counts / counts.sum()).tolist(), strict=True))
        return float(
            -np.mean([np.log(shares.get(label, 1e-15)) for label in test.tolist()])
        ), "the shares of the labels alone"
    most = labels[int(np.argmax(counts))]
    return float(np.mean(test != most)), f"always {str(most)!r}"


def no_skill(table: Table, loss: tuple[float, float, float], kind: str, unit: Unit, target: str, later: bool = False) -> str:
    """Return a sentence if the forecast with all rows is not clearly better than a prediction that uses no column.

    Parameters
    ----------
    table
        The prepared table.
    loss
        Loss with all rows, and its band.
    kind
        Name of the loss.
    unit
        How the loss is shown.
    target
        The column to predict.
    later
        Whether the tests use later rows.
    """
    known = baseline(table, kind, target, later)
    if known is None:
        return ""
    least, words = known
    if max(loss[0], loss[2]) < least and not (kind == "mse" and loss[0] > ALMOST_ALL * least):
        return ""
    return f"No skill is shown: {words} gives {unit.text(unit.shown(least))} {unit.words}."
