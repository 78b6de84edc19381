"""How good forecasts from a pilot are, on seventeen tables, against real fits to the whole table.

    python tests/applied/forecast_tables.py labels --pilots 6       the tables with labels
    python tests/applied/forecast_tables.py numbers --pilots 6      the tables with numbers
    python tests/applied/forecast_tables.py further --pilots 6      ten further tables, not used for any choice of the method
    python tests/applied/forecast_tables.py models --pilots 6       models of scikit-learn on twelve tables
    python tests/applied/forecast_tables.py wine iris               some tables
    python tests/applied/forecast_tables.py all --page docs/howto/forecast_accuracy.md      writes the tables of this page

A pilot is a quarter of 80 % of the rows of a table. `Forecast("auto", intercept=1.0, ridge="best")`, which is what `limitlab forecast`
uses, forecasts the error at half, once, twice and four times the rows of the pilot. The truth is the mean error of real fits of the same
kernel to random subsets of the whole table, with the ridge of the least leave-one-out error of every subset, tested on the other rows.
The truth is stored in a folder (`--cache`, default ~/.cache/limitlab/forecast_tables), because it takes most of the time.

For the models, `forecast_model` forecasts from the pilot, and the truth is the mean error of fits of the same model.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import curve_fit
from sklearn import datasets

from limitlab.applied.forecast import Forecast, forecast_model
from limitlab.applied.forecast._fitting import candidates, class_targets
from limitlab.applied.forecast._learning import trust_word
from limitlab.applied.forecast._own_model import parse_estimator
from limitlab.models.datasets import mnist

LABELS = ("wine", "iris", "breast", "rating", "noisy01", "digits", "mnist")
NUMBERS = ("diabetes", "wide", "null", "grouped", "friedman", "drift", "shop", "zip", "heavy", "cauchyish")
ORDINARY = ("diabetes", "wide", "null", "grouped", "friedman", "drift", "shop", "zip")
FURTHER_LABELS = ("moons", "classes", "flipped", "parity", "eights")
FURTHER_NUMBERS = ("friedman2", "friedman3", "sparse", "swiss", "steps")
"""Tables that were not used for any choice of the method."""

FOREST, LOGISTIC = (
    "RandomForest{}(n_estimators=50, random_state=0)",
    "make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))",
)
MODELS = {
    "breast": LOGISTIC, "digits": LOGISTIC, "mnist": FOREST.format("Classifier"), "rating": FOREST.format("Classifier"),
    "parity": "KNeighborsClassifier(n_neighbors=3)", "moons": "SVC(C=10)", "diabetes": FOREST.format("Regressor"),
    "friedman": "HistGradientBoostingRegressor(max_iter=50)", "shop": "make_pipeline(StandardScaler(), Ridge())",
    "drift": "KNeighborsRegressor()", "friedman2": "GradientBoostingRegressor(n_estimators=50, random_state=0)",
    "steps": FOREST.format("Regressor"),
}  # fmt: skip
"""The model of scikit-learn for each of twelve tables."""

TIMES = (0.5, 1.0, 2.0, 4.0)


def columns(*parts):
    return np.column_stack([np.asarray(part, dtype=float) for part in parts])


def one_hot(codes):
    return np.eye(int(codes.max()) + 1)[codes]


def raw(name):
    """Return inputs and targets of a table."""
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big"))
    normal = rng.standard_normal
    if name in ("wine", "iris", "breast", "digits", "diabetes"):
        load = {"breast": datasets.load_breast_cancer}.get(name) or getattr(datasets, f"load_{name}")
        X, y = load(return_X_y=True)
        if name == "iris":  # two rows are equal
            keep = np.sort(np.unique(X, axis=0, return_index=True)[1])
            X, y = X[keep], y[keep]
        return X, y
    if name == "mnist":
        X, y = mnist("all")
        rows = rng.permutation(len(X))[:2400]
        return X[rows], y[rows]
    if name in ("rating", "noisy01"):
        X = normal((600, 5))
        latent = X[:, 0] + (0.5 if name == "rating" else 1.0) * normal(600)
        return X, (np.clip(np.round(3 + latent), 1, 5).astype(int) if name == "rating" else (latent > 0).astype(int))
    if name in FURTHER_LABELS + FURTHER_NUMBERS:
        return further(name, rng)
    if name == "wide":
        factor = normal(120)
        X = normal((120, 2000))
        X[:, :200] = 0.7 * X[:, :200] + factor[:, None]
        return X, 0.4 * X[:, :10].sum(axis=1) + normal(120)
    if name == "null":
        return normal((500, 10)), normal(500)
    if name == "grouped":
        patient = np.repeat(np.arange(100), 10)
        X = normal((100, 5))[patient] + 0.15 * normal((1000, 5))
        return X, normal(100)[patient] + X[:, 0] + 0.3 * normal(1000)
    if name == "friedman":
        return datasets.make_friedman1(2400, noise=1.0, random_state=0)
    if name == "drift":
        X, t = normal((2000, 4)), np.arange(2000) / 2000
        return columns(X, t), np.cos(np.pi * t) * X[:, 0] + np.sin(np.pi * t) * X[:, 1] + 0.3 * normal(2000)
    if name == "shop":
        kind, region, size, day = (
            rng.integers(0, 4, 3000),
            rng.integers(0, 60, 3000),
            rng.uniform(1, 50, 3000),
            rng.integers(0, 730, 3000),
        )
        price = np.array([20.0, 5, 60, 40])[kind] + 1.5 * size + 0.02 * day + 5 * normal(3000)
        weight = size * rng.uniform(0.5, 1.5, 3000)
        absent = rng.random(3000) < 0.15
        weight[absent] = np.median(weight)
        return columns(one_hot(kind), one_hot(region), size, day, weight, absent), price
    if name == "zip":
        code, x = rng.integers(0, 40, 2000), normal(2000)
        return columns(code * 100 + 10000, x, normal((2000, 2))), 2 * normal(40)[code] + x + 0.5 * normal(2000)
    if name == "heavy":
        X = normal((1500, 4))
        return X, np.exp(1.5 * X[:, 0] + 0.8 * X[:, 1] + normal(1500))
    if name == "cauchyish":
        X = normal((1500, 4))
        return X, X[:, 0] + rng.standard_t(1.5, 1500)
    raise ValueError(name)


def further(name, rng):
    """Return inputs and targets of a table that was not used for any choice."""
    if name == "moons":
        return datasets.make_moons(1200, noise=0.3, random_state=5)
    if name in ("classes", "flipped"):
        return datasets.make_classification(
            1500,
            20,
            n_informative=6,
            n_classes=3 if name == "classes" else 2,
            flip_y=0.01 if name == "classes" else 0.2,
            random_state=6,
        )
    if name == "parity":
        X, y = datasets.load_digits(return_X_y=True)
        return X, y % 2
    if name == "eights":
        X, y = mnist("all")
        rows = np.flatnonzero(np.isin(y, (3, 5, 8)))[:2000]
        return X[rows], y[rows]
    if name == "sparse":
        return datasets.make_sparse_uncorrelated(1200, 15, random_state=8)
    if name == "swiss":
        return datasets.make_swiss_roll(1500, noise=0.5, random_state=9)
    if name == "steps":
        X = rng.uniform(-1, 1, (1500, 4))
        return X, np.sign(X[:, 0]) + (X[:, 1] > 0.3) * X[:, 2] + 0.3 * rng.standard_normal(1500)
    make = {"friedman2": datasets.make_friedman2, "friedman3": datasets.make_friedman3}[name]
    return make(1500, noise={"friedman2": 100.0, "friedman3": 0.1}[name], random_state=7)


def table(name):
    """Return standardised inputs, targets, and whether they are labels."""
    X, y = raw(name)
    spread = X.std(axis=0)
    X = ((X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0))[:, spread > 0]
    X = X / np.sqrt(X.shape[1])
    if name in LABELS + FURTHER_LABELS:
        return X, y, True
    return X, (y - y.mean()) / y.std(), False


class Truth:
    """Mean errors of real fits to random subsets of a table, stored in a file."""

    def __init__(self, name, folder):
        self.name, self.file = name, Path(folder) / f"{name}.json"
        self.X, self.y, self.labels = table(name)
        self.known = json.loads(self.file.read_text()) if self.file.exists() else {}
        self.kernels = candidates(self.X, 1.0)
        self.grams = {}

    def values(self, kernel, n, splits):
        """Return the errors of single fits."""
        key = f"{kernel} {int(n)}"
        values = self.known.get(key, [])
        if len(values) < splits:
            if kernel not in self.grams:
                self.grams = {kernel: self.kernels[kernel](self.X, self.X)}
            targets = class_targets(self.y)[1] if self.labels else self.y[:, None]
            for split in range(len(values), splits):
                order = np.random.default_rng([99, split, int(n)]).permutation(len(self.X))
                values.append(fit_and_test(self.grams[kernel], targets, order[: int(n)], order[int(n) :], self.labels))
            self.known[key] = values
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_text(json.dumps(self.known))
        return np.array(values)

    def mean(self, kernel, n):
        """Return the mean error and its relative standard error."""
        total = len(self.X)
        splits = 60 if total <= 700 else 20 if n < 1000 else 10
        values = self.values(kernel, n, splits)
        return values.mean(), values.std(ddof=1) / np.sqrt(splits) / max(values.mean(), 1e-9)


def fit_and_test(gram, targets, inside, outside, labels):
    """Return the test error of kernel ridge regression whose ridge has the least leave-one-out error on the training rows."""
    values, vectors = eigh(gram[np.ix_(inside, inside)], driver="evd")
    values = np.maximum(values, 0)
    y = targets[inside]
    best = None
    for ridge in np.geomspace(1e-10, 1e2, 49) * gram[inside, inside].sum():
        inverse = 1 / (values + ridge)
        dual = vectors @ (inverse[:, None] * (vectors.T @ y))
        left = np.mean((dual / (vectors**2 @ inverse)[:, None]) ** 2)
        if best is None or left < best[0]:
            best = left, dual
    guess, true = gram[np.ix_(outside, inside)] @ best[1], targets[outside]
    if not labels:
        return float(np.mean((guess - true) ** 2))
    wrong = (guess[:, 0] > 0) != (true[:, 0] > 0) if true.shape[1] == 1 else guess.argmax(1) != true.argmax(1)
    return float(np.mean(wrong))


def rival(model, n0, labels, seed, counts):
    """Return a n^-b + c through real fits at five sizes up to 0.8 n0 with five splits, by least squares."""
    gram, targets = model.kernel_(model.X_fit_, model.X_fit_), model.targets_
    sizes = np.unique(np.round(np.geomspace(0.1, 0.8, 5) * n0)).astype(int)
    values = []
    for n in sizes:
        fits = []
        for split in range(5):
            order = np.random.default_rng([seed, 5, split]).permutation(n0)
            fits.append(fit_and_test(gram, targets, order[:n], order[n:], labels))
        values.append(np.mean(fits))
    law = lambda x, a, b, c: a * (x / sizes[-1]) ** -b + c  # noqa: E731
    try:
        best, _ = curve_fit(
            law, sizes, values, p0=[values[-1], 0.5, 0.0], bounds=([0, 0, 0], [np.inf, 5, np.inf]), maxfev=20000
        )
        return np.maximum(law(np.asarray(counts), *best), 1e-6)
    except (RuntimeError, ValueError):
        return np.full(len(counts), max(values[-1], 1e-6))


def pilots(name, count, folder, forecast):
    """Return one record per pilot and multiple of its rows."""
    truth = Truth(name, folder)
    records = []
    for pilot in range(count):
        n0 = int(0.2 * len(truth.X))
        rows = np.random.default_rng([pilot, 11]).permutation(len(truth.X))[:n0]
        counts = np.array([round(n0 * times) for times in TIMES])
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, curve = forecast(truth.X[rows], truth.y[rows], truth.labels, counts, pilot)
            spent = time.process_time() - began
            other = rival(model, n0, truth.labels, pilot, counts)
        kernel = model.kernel_scores_[0]["kernel"]
        for i, times in enumerate(TIMES):
            value, error = truth.mean(kernel, counts[i])
            records.append(
                {
                    "table": name, "pilot": pilot, "kernel": kernel, "times": times, "truth": value, "truth_error": error,
                    "value": float(curve["value"][i]), "low": float(curve["low"][i]), "high": float(curve["high"][i]),
                    "now": float(curve["value"][1]), "rival": float(other[i]), "radius": float(curve["radius"].values[i]),
                    "seconds": spent,
                }
            )  # fmt: skip
    return records


def model_error(estimator, X, y, inside, outside, labels):
    """Return the test error of a clone of an estimator."""
    from sklearn.base import clone

    guess = clone(estimator).fit(X[inside], y[inside]).predict(X[outside])
    return float(np.mean(guess != y[outside])) if labels else float(np.mean((guess - y[outside]) ** 2))


def power_laws(sizes, values, counts):
    """Return a n^-b + c and a (n + d)^-b + c through errors by least squares."""
    start, curves = sizes[-1], []
    for law, first, most in (
        (lambda x, a, b, c: a * (x / start) ** -b + c, [values[-1], 0.5, 0.0], [np.inf, 5, np.inf]),
        (lambda x, a, b, c, d: a * (x / start + d) ** -b + c, [values[-1], 0.5, 0.0, 0.1], [np.inf, 5, np.inf, 10]),
    ):
        try:
            best, _ = curve_fit(law, sizes, values, p0=first, bounds=([0] * len(first), most), maxfev=20000)
            curves.append(np.maximum(law(np.asarray(counts, dtype=float), *best), 1e-6))
        except (RuntimeError, ValueError, TypeError):
            curves.append(np.full(len(counts), max(values[-1], 1e-6)))
    return curves


def model_pilots(name, count, folder):
    """Return one record per pilot and multiple of its rows for the model of a table."""
    X, y, labels = table(name)
    estimator = parse_estimator(MODELS[name])
    n0 = int(0.2 * len(X))
    counts = np.array([round(n0 * times) for times in TIMES])
    file = Path(folder) / f"model_{name}.json"
    known = json.loads(file.read_text()) if file.exists() else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not known:
            for n in counts.tolist():
                splits = 40 if len(X) <= 700 else 15 if n < 1000 else 8
                orders = [np.random.default_rng([99, split, n]).permutation(len(X)) for split in range(splits)]
                known.append([model_error(estimator, X, y, order[:n], order[n:], labels) for order in orders])
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(known))
        truths = [(np.mean(v), np.std(v, ddof=1) / np.sqrt(len(v)) / np.mean(v)) for v in known]
        records = []
        for pilot in range(count):
            rows = np.random.default_rng([pilot, 11]).permutation(len(X))[:n0]
            began = time.process_time()
            scoring = "error" if labels else "neg_mean_squared_error"
            made = forecast_model(estimator, X[rows], y[rows], n=counts, scoring=scoring, jobs=1)
            spent = time.process_time() - began
            measured = made.posterior.measured
            plain, shifted = power_laws(measured.sizes, measured.values, counts)
            for i, times in enumerate(TIMES):
                records.append(
                    {
                        "table": name, "pilot": pilot, "kernel": MODELS[name], "times": times,
                        "truth": truths[i][0], "truth_error": truths[i][1],
                        "value": float(made.curve["value"][i]), "low": float(made.curve["low"][i]), "high": float(made.curve["high"][i]),
                        "now": float(made.curve["value"][1]), "rival": float(plain[i]), "pow4": float(shifted[i]),
                        "radius": float(made.curve["radius"].values[i]), "seconds": spent,
                    }
                )  # fmt: skip
    return records


def forecast_default(X, y, labels, counts, seed):
    """Return the fitted forecast and its curve, with the options of `limitlab forecast`."""
    model = Forecast("auto", intercept=1.0, ridge="best", task="classification" if labels else "regression").fit(X, y)
    return model, model.learning_curve(counts)


HEAD = (
    "| target | at | 90% band contains the truth | band, upper over lower end | factor off: forecast | $an^{-b}+c$ | no change "
    "| median bias: forecast | $an^{-b}+c$ | forecast closer | worst factor |\n|---|---|---|---|---|---|---|---|---|---|---|"
)


def at_words(times):
    """Return a multiple of the rows of the pilot as a formula."""
    return {0.5: "$n_0/2$", 1.0: "$n_0$", 2.0: "$2n_0$", 4.0: "$4n_0$"}[times]


def columns_of(rows):
    """Return value, truth, low, high, rival and the value at n_0 as arrays."""
    return (np.array([r[key] for r in rows]) for key in ("value", "truth", "low", "high", "rival", "now"))


def accuracy_lines(records, title):
    """Return the lines of the table of accuracy."""
    lines = []
    name = f"{title} ({len(records) // len(TIMES)} pilots, {len({r['table'] for r in records})} tables)"
    for times in TIMES:
        value, truth, low, high, other, now = columns_of([r for r in records if r["times"] == times])
        off, off_other = np.abs(np.log(value / truth)), np.abs(np.log(other / truth))
        lines.append(
            f"| {name} | {at_words(times)} | {np.mean((low <= truth) & (truth <= high)):.2f} | {np.median(high / low):.2f} "
            f"| {np.exp(np.median(off)):.2f} | {np.exp(np.median(off_other)):.2f} | {np.exp(np.median(np.abs(np.log(now / truth)))):.2f} "
            f"| {np.median(value / truth) - 1:+.0%} | {np.median(other / truth) - 1:+.0%} | {np.mean(off < off_other):.0%} "
            f"| {np.exp(off.max()):.1f} |"
        )
        name = ""
    return lines


def word_lines(groups):
    """Return the table of what the words of trust are worth. Numbers are compared as RMSE, which the command shows."""
    lines = [
        "| target | at | word | values | within 10% | within 25% | within the printed radius |",
        "|---|---|---|---|---|---|---|",
    ]
    for title, records, power in groups:
        for times in TIMES[1:]:
            rows = [r for r in records if r["times"] == times]
            off = np.array([abs(power * np.log(r["value"] / r["truth"])) for r in rows])
            radius = np.array([(1 + r["radius"]) ** power - 1 for r in rows])
            words = np.array([trust_word(value) for value in radius])
            for word in ("trusted", "fair", "doubtful"):
                held = words == word
                if held.any():
                    lines.append(
                        f"| {title} | {at_words(times)} | {word} | {held.sum()} | {np.mean(off[held] < np.log(1.1)):.0%} "
                        f"| {np.mean(off[held] < np.log(1.25)):.0%} | {np.mean(off[held] < np.log1p(radius[held])):.0%} |"
                    )
        rows = [r for r in records if r["times"] >= 1]
        off = np.array([abs(power * np.log(r["value"] / r["truth"])) for r in rows])
        radius = np.array([(1 + r["radius"]) ** power - 1 for r in rows])
        for word in ("trusted", "fair", "doubtful"):
            held = np.array([trust_word(value) for value in radius]) == word
            if held.any():
                lines.append(
                    f"| **{title}** | all | **{word}** | {held.sum()} | {np.mean(off[held] < np.log(1.1)):.0%} "
                    f"| {np.mean(off[held] < np.log(1.25)):.0%} | {np.mean(off[held] < np.log1p(radius[held])):.0%} |"
                )
    return lines


NAMES = {
    "breast": "breast cancer", "rating": "ratings 1 to 5", "noisy01": "noisy labels", "mnist": "MNIST", "null": "pure noise",
    "wide": "wide (120 rows, 2000 columns)", "grouped": "groups, rows at random", "friedman": "friedman1", "drift": "drift, rows at random",
    "zip": "postal codes as numbers", "heavy": "log-normal target", "cauchyish": "t(1.5) noise",
}  # fmt: skip


def table_lines(records):
    """Return the mean forecast at 4 n0 of every table."""
    lines = [
        "| table (rows in the pilot) | mean forecast at $4n_0$ | truth | $an^{-b}+c$ | no change | bands that contain the truth at $n_0$, "
        "$2n_0$, $4n_0$ (of 6) |",
        "|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(r["table"] for r in records):
        rows = [r for r in records if r["table"] == name]
        last = [r for r in rows if r["times"] == TIMES[-1]]
        held = ", ".join(str(sum(r["low"] <= r["truth"] <= r["high"] for r in rows if r["times"] == t)) for t in TIMES[1:])
        means = " | ".join(f"{np.mean([r[key] for r in last]):.4f}" for key in ("value", "truth", "rival", "now"))
        lines.append(f"| {NAMES.get(name, name)} ({len(table(name)[0]) // 5}) | {means} | {held} |")
    return lines


def model_lines(records):
    """Return the table of accuracy of models of scikit-learn, by table and in total."""
    lines = [
        "| table, model | covered at $n_0$, $2n_0$, $4n_0$ | factor off at $2n_0$: forecast | $an^{-b}+c$ | $a(n+d)^{-b}+c$ "
        "| factor off at $4n_0$: forecast | $an^{-b}+c$ | $a(n+d)^{-b}+c$ |",
        "|---|---|---|---|---|---|---|---|",
    ]
    names = [*dict.fromkeys(r["table"] for r in records), ""]
    for name in names:
        rows = [r for r in records if not name or r["table"] == name]
        covered = [[r["low"] <= r["truth"] <= r["high"] for r in rows if r["times"] == t] for t in TIMES[1:]]
        held = ", ".join(f"{sum(c)}" if name else f"{np.mean(c):.2f}" for c in covered)
        factors = [
            f"{np.exp(np.median([abs(np.log(r[key] / r['truth'])) for r in rows if r['times'] == t])):.2f}"
            for t in TIMES[2:] for key in ("value", "rival", "pow4")
        ]  # fmt: skip
        words = f"{NAMES.get(name, name)}, `{MODELS[name]}`" if name else f"**all ({len(rows) // len(TIMES)} pilots)**"
        lines.append(f"| {words} | {held} | {' | '.join(factors)} |")
    return lines


def pages(records, models):
    """Return the tables of docs/howto/forecast_accuracy.md by their names."""
    part = lambda wanted: [r for r in records if r["table"] in wanted]  # noqa: E731
    made = {}
    for name, groups in (
        ("accuracy", (("labels", LABELS), ("numbers without heavy tails", ORDINARY), ("numbers, all", NUMBERS))),
        ("further", (("labels", FURTHER_LABELS), ("numbers", FURTHER_NUMBERS))),
    ):
        lines = [line for title, wanted in groups if part(wanted) for line in accuracy_lines(part(wanted), title)]
        if lines:
            made[name] = [HEAD, *lines]
    judged = [
        (title, part(wanted), power)
        for title, wanted, power in (("labels", LABELS + FURTHER_LABELS, 1.0), ("numbers", ORDINARY + FURTHER_NUMBERS, 0.5))
        if part(wanted)
    ]
    if judged:
        made["words"] = word_lines(judged)
    if part(LABELS + NUMBERS):
        made["tables"] = table_lines(part(LABELS + NUMBERS))
    if models:
        made["models"] = model_lines(models)
    return made


def write_page(file, made):
    """Replace the tables of a page between the comments that name them."""
    text = Path(file).read_text()
    for name, lines in made.items():
        begin, end = f"<!-- table {name} -->", f"<!-- end of {name} -->"
        if begin not in text or end not in text:
            raise SystemExit(f"{file} has no lines {begin} and {end}")
        head, tail = text.split(begin)[0], text.split(end)[1]
        text = f"{head}{begin}\n" + "\n".join(lines) + f"\n{end}{tail}"
    Path(file).write_text(text)


def main():
    """Run the tables and print or write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=[*LABELS, *NUMBERS])
    parser.add_argument("--pilots", type=int, default=3)
    parser.add_argument("--cache", default=Path.home() / ".cache" / "limitlab" / "forecast_tables")
    parser.add_argument("--out", help="a file for the records")
    parser.add_argument("--page", help="a page whose tables are replaced")
    options = parser.parse_args()
    groups = {"labels": LABELS, "numbers": NUMBERS, "further": FURTHER_LABELS + FURTHER_NUMBERS, "models": ()}
    groups["all"] = LABELS + NUMBERS + FURTHER_LABELS + FURTHER_NUMBERS
    names = [name for entry in options.tables for name in groups.get(entry, (entry,))]
    records, models = [], []
    for name in names:
        records += pilots(name, options.pilots, options.cache, forecast_default)
        print(name, "done", flush=True)
    for name in MODELS if {"models", "all"} & set(options.tables) else ():
        models += model_pilots(name, options.pilots, options.cache)
        print(name, MODELS[name], "done", flush=True)
    made = pages(records, models)
    for lines in made.values():
        print("\n" + "\n".join(lines))
    if options.page:
        write_page(options.page, made)
    if options.out:
        Path(options.out).write_text(json.dumps({"records": records, "models": models}))


if __name__ == "__main__":
    main()
