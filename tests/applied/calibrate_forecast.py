"""How good forecasts are beyond the data, and how often their alarms are false: the tables of docs/theory/learning_curves.md.

    python tests/applied/calibrate_forecast.py bands      coverage and width of the bands at N/4 to 4N
    python tests/applied/calibrate_forecast.py beyond     forecasts beyond the data against a power law and the last value
    python tests/applied/calibrate_forecast.py labels     the same for error rates
    python tests/applied/calibrate_forecast.py gap        false and true alarms of check_gap
    python tests/applied/calibrate_forecast.py kernels    what choosing the kernel by leave-one-out costs

Known points are drawn anew for every draw; kernels and ridges of one draw share them, so cases are correlated.
"""

from __future__ import annotations

import sys
import warnings
from collections import defaultdict

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn import datasets

from limitlab.applied.forecast import Forecast
from limitlab.applied.forecast._metrics import METRICS
from limitlab.models.datasets import mnist

warnings.simplefilter("ignore")
RIDGES = (1e-3, 1e-2)
KERNELS = ("linear", "rbf", "laplace")


def scaled(X):
    X = X - X.mean(axis=0)
    return X / np.sqrt((X**2).sum(axis=1).mean())


def pools():
    """Numbers to forecast: name, inputs, targets; and labels."""
    digits, digit = datasets.load_digits(return_X_y=True)
    images, label = mnist("all")
    friedman, quality = datasets.make_friedman1(4000, noise=1.0, random_state=0)
    noisy, noisy_y = datasets.make_friedman1(4000, noise=4.0, random_state=1)
    made, made_y = datasets.make_classification(4000, 20, n_informative=6, class_sep=0.8, random_state=0)
    yield "digits", scaled(digits), 1.0 - 2.0 * (digit % 2), digit
    yield "MNIST", scaled(images[:4000]), 1.0 - 2.0 * (label[:4000] % 2), label[:4000]
    yield "friedman1", scaled(friedman), (quality - quality.mean()) / quality.std(), None
    yield "friedman1, noisy", scaled(noisy), (noisy_y - noisy_y.mean()) / noisy_y.std(), None
    yield "make_classification", scaled(made), 2.0 * made_y - 1, made_y


def truth(model, X, Y, n, ridge, metric, rng, splits):
    """The metric of real fits to n points of the pool, tested on up to 2,000 others."""
    found = []
    for _ in range(splits):
        order = rng.permutation(len(X))
        inside, outside = order[:n], order[n : n + 2000]
        gram = model.kernel_(X[inside], X[inside])
        gram[np.diag_indices(n)] += ridge * n
        fit = model.kernel_(X[outside], X[inside]) @ cho_solve(cho_factor(gram, overwrite_a=True), Y[inside])
        found.append(METRICS[metric](fit, Y[outside]))
    return float(np.mean(found))


def bands(draws: int = 8, known: int = 200) -> None:
    """Share of nominal 90 % bands that hold the truth."""
    held, widths, sets = defaultdict(list), defaultdict(list), 0
    for name, X, y, _ in pools():
        for kernel in KERNELS:
            for ridge in RIDGES:
                cache = {}
                for draw in range(draws):
                    rows = np.random.default_rng([draw, 1]).permutation(len(X))[:known]
                    model = Forecast(kernel, ridge=ridge, intercept=0.3, gamma=1.0).fit(X[rows], y[rows])
                    counts = [known // 4, known // 2, known, 2 * known, 4 * known]
                    curve = model.learning_curve(counts, baselines=False)
                    for i, n in enumerate(counts):
                        if n not in cache:
                            cache[n] = truth(
                                model, X, y[:, None], n, ridge, "mse", np.random.default_rng(9), 12 if n < 400 else 4
                            )
                        held[n].append(float(curve.low[i]) <= cache[n] <= float(curve.high[i]))
                        widths[n].append(float(np.log(curve.high[i] / curve.value[i])))
                    sets += 1
        print(f"  {name} done", flush=True)
    print(f"{sets} forecasts, {draws} independent draws of {known} points on each of 5 data sets, nominal 90 %")
    for n, found in held.items():
        print(
            f"n = {n / known:g} N: coverage {np.mean(found):.3f}, median half width of the logarithm {np.median(widths[n]):.3f}"
        )


def beyond(metric: str = "mse", draws: int = 4, known: int = 250) -> None:
    """Relative errors at 2N and 4N: forecast, power law through real fits, last value."""
    rows_out = defaultdict(lambda: defaultdict(list))
    for name, X, y, labels in pools():
        if metric != "mse" and labels is None:
            continue
        for kernel in KERNELS:
            for ridge in RIDGES:
                cache = {}
                for draw in range(draws):
                    rows = np.random.default_rng([draw, 2]).permutation(len(X))[:known]
                    task = "regression" if metric == "mse" else "classification"
                    target = y if metric == "mse" else labels
                    model = Forecast(kernel, ridge=ridge, intercept=0.3, gamma=1.0, task=task).fit(X[rows], target[rows])
                    if metric == "mse":
                        Y = y[:, None]
                    elif len(model.classes_) == 2:
                        Y = np.where(labels == model.classes_[1], 1.0, -1.0)[:, None]
                    else:
                        Y = np.eye(len(model.classes_))[labels]
                    curve = model.learning_curve([2 * known, 4 * known], metric=metric)
                    for i, times in enumerate((2, 4)):
                        n = times * known
                        if n not in cache:
                            cache[n] = truth(model, X, Y, n, ridge, metric, np.random.default_rng(8), 6)
                        for what in ("value", "power_law", "last_value"):
                            rows_out[name, times][what].append(abs(float(curve[what][i]) / cache[n] - 1))
        print(f"  {name} done", flush=True)
    print(
        "| data | times N | cases | forecast: median, p90 | a n^-b + c | last value | closer |\n|---|---:|---:|---|---|---|---:|"
    )
    for (name, times), found in rows_out.items():
        cells = [
            f"{np.median(found[w]):.1%}, {np.quantile(found[w], 0.9):.1%}" for w in ("value", "power_law", "last_value")
        ]
        closer = np.mean(np.array(found["value"]) < np.array(found["power_law"]))
        print(f"| {name} | {times} | {len(found['value'])} | {' | '.join(cells)} | {closer:.0%} |")


def gap(runs: int = 40) -> None:
    """Alarms of check_gap on clean and on planted test data (300 training rows, 200 test rows)."""
    alarms = defaultdict(lambda: defaultdict(int))
    total = 0
    for name, X, y, _ in pools():
        X = X / X.std() if name.startswith("friedman") else X
        for run in range(runs):
            rng = np.random.default_rng([run, 3])
            order = rng.permutation(len(X))
            train, test = order[:300], order[300:500]
            model = Forecast("rbf", ridge=1e-3, intercept=0.3).fit(X[train], y[train])
            copies = X[test].copy()
            some = rng.permutation(200)[:20]
            copies[some] = X[train[:20]] + 1e-3 * X.std() * rng.standard_normal((20, X.shape[1]))
            wrong = np.where(np.arange(200) < 40, y[rng.permutation(order[:300])[:200]], y[test])
            cases = {
                "nothing": (X[test], y[test]),
                "all columns shifted by 0.5 std": (X[test] + 0.5 * X.std(axis=0), y[test]),
                "10 % near copies": (copies, np.r_[y[test]]),
                "20 % wrong labels": (X[test], wrong),
            }
            for case, (inputs, targets) in cases.items():
                report = model.check_gap(inputs, targets)
                alarms[case]["gap"] += abs(report.z) > 2.5
                alarms[case]["novelty"] += report.novelty_p < 0.01
                alarms[case]["copies"] += report.copies_p < 0.001
            total += 1
    print(f"{total} runs each\n| planted | gap | novelty | copies |\n|---|---:|---:|---:|")
    for case, found in alarms.items():
        print(f"| {case} | {found['gap'] / total:.1%} | {found['novelty'] / total:.1%} | {found['copies'] / total:.1%} |")


def kernels(draws: int = 3, known: int = 250) -> None:
    """Test error of the kernel and ridge chosen by leave-one-out over the best of all that were tried."""
    regrets = []
    for _, X, y, _ in pools():
        for draw in range(draws):
            order = np.random.default_rng([draw, 4]).permutation(len(X))
            train, test = order[:known], order[known : known + 1500]
            model = Forecast("auto", intercept=0.3).fit(X[train], y[train])
            best, chosen = np.inf, None
            for name, kernel in zip(model.choice_.names, model.choice_.kernels, strict=True):
                gram, across = kernel(X[train], X[train]), kernel(X[test], X[train])
                unit = float(np.trace(gram)) / known
                values, vectors = np.linalg.eigh(gram / known)
                for lam in np.geomspace(1e-6, 1e2, 26) * unit:
                    fit = across @ (vectors / (values + lam) @ (vectors.T @ y[train])) / known
                    error = float(np.mean((fit - y[test]) ** 2))
                    best = min(best, error)
                    i = model.choice_.best
                    if name == model.choice_.names[i] and np.isclose(lam, model.choice_.ridges[i]):
                        chosen = error
            regrets.append(chosen / best - 1)
    print(f"{len(regrets)} choices of 234: regret median {np.median(regrets):.1%}, p90 {np.quantile(regrets, 0.9):.1%}, "
          f"worst {max(regrets):.1%}")  # fmt: skip


if __name__ == "__main__":
    jobs = {"bands": bands, "beyond": beyond, "labels": lambda: beyond("error"), "gap": gap, "kernels": kernels}
    for job in sys.argv[1:] or jobs:
        print(f"== {job}", flush=True)
        jobs[job]()
