"""Figures of logistic regression at fixed p/n: calibration, existence, and what a number of samples buys."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from limitlab.applied.study_size import SampleSize, sample_size
from limitlab.laws.classification.gaussian_score import TrueScore
from limitlab.laws.classification.logistic_calibration import LogisticCalibration
from limitlab.laws.classification.logistic_existence import existence
from limitlab.ledger.logistic import share_without_fit
from limitlab.plotting.style import COLOURS, finish, new_figure, reading_key, simulation_points, theory_line


def logistic_calibration(quick: bool = True) -> Figure:
    """Bias factor and calibration slope against p/n, and the chance that no fit exists."""
    figure, (left, right) = new_figure(columns=2)
    law = LogisticCalibration(intercept=-1.0, signal=1.5)
    seeds = 24 if quick else 200
    threshold = law.existence_threshold()
    lines = np.concatenate([np.geomspace(0.01, 0.5 * threshold, 24), np.linspace(0.5, 0.8, 15)[1:] * threshold])
    names = {"bias_factor": r"bias factor $\alpha_*$", "calibration_slope": "calibration slope"}
    few = np.array([0.02, 0.05, 0.1, 0.16])
    runs = [law.replace(ratio=float(ratio)).simulate_batch(30, range(seeds)) for ratio in few]
    limits = [law.replace(ratio=float(ratio)).theory() for ratio in lines]
    for index, (name, label) in enumerate(names.items()):
        theory_line(left, lines, [float(limit[name]) for limit in limits], index, label)
        means, spread = ([float(getattr(run[name], kind)()) for run in runs] for kind in ("mean", "std"))
        simulation_points(left, few, means, np.array(spread) / math.sqrt(seeds), index)
    tuned = [float(law.replace(ratio=float(ratio), ridge=0.5 * float(ratio)).theory().calibration_slope) for ratio in lines]
    theory_line(left, lines, tuned, 2, r"calibration slope, ridge $\lambda=0.5\,p/n$", linestyle="--")
    left.axhline(1.0, color="0.5", linewidth=1.0, linestyle=":")
    finish(
        left,
        r"predictors per sample $p/n$",
        "bias factor, slope",
        r"$b_0=-1,\ \gamma=1.5$ (points: $p=30$)",
        xscale="log",
        ylim=(0, 2),
    )
    draws, p = 100 if quick else 1000, 15
    for index, (b0, gamma) in enumerate([(0.0, 0.5), (-1.0, 1.5), (0.0, 3.0)]):
        case = existence(TrueScore(b0, gamma))
        samples = np.arange(20, 91)
        theory_line(right, samples, case.no_fit_probability(p, samples), index, rf"$b_0={b0:g},\ \gamma={gamma:g}$")
        counts = np.array([26, 34, 42, 52, 64])
        shares = np.array([share_without_fit(p, int(n), b0, gamma, draws) for n in counts])
        errors = np.sqrt(np.maximum(shares * (1 - shares), 0.25 / draws) / draws)
        simulation_points(right, counts, shares, errors, index)
    reading_key(right, "law", f"{draws} draws")
    finish(right, "samples $n$", "probability that no fit exists", rf"$p={p}$ predictors and an intercept")
    return figure


def sample_size_figure(found: SampleSize, fits: int = 0) -> Figure:
    """What each number of samples buys, with the rules of thumb marked; `fits` simulated studies at a few sizes."""
    figure, (left, right) = new_figure(columns=2)
    marks = {
        "this law": found.samples,
        "Riley's criterion (i)": found.riley_samples,
        "10 events/predictor": found.ten_events_samples,
    }
    low = 1.3 * found.predictors / found.existence_threshold
    samples = np.geomspace(low, 3 * max(marks.values()), 40)
    table = found.curve(samples)
    theory_line(left, samples, table.calibration_slope, 0, "calibration slope")
    if fits:
        few = np.unique(np.round(np.geomspace(2 * low, 2 * max(marks.values()), 5))).astype(int)
        slopes = [found.simulated_slopes(int(n), fits) for n in few]
        simulation_points(
            left, few, [s.mean() for s in slopes], [s.std(ddof=1) for s in slopes], 0, "one study (mean, spread)"
        )
    for index, (name, count) in enumerate(marks.items()):
        left.axvline(count, color=COLOURS[index + 1], linestyle="--", linewidth=1.4, label=f"{name}: $n = {count}$")
    title = f"$p = {found.predictors}$, AUC {found.auc:g}, prevalence {found.prevalence:g}"
    finish(left, "samples $n$", "calibration slope", title, xscale="log", ylim=(0, 1.15), legend=False)
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, fontsize=11, frameon=False)
    for index, name in enumerate(("auc_loss", "log_loss_excess", "error_excess")):
        theory_line(right, samples, np.maximum(table[name], 1e-9), index, table[name].attrs["long_name"])
    risk = np.asarray(table.no_fit_probability)
    seen = risk > 1e-5
    theory_line(right, samples[seen], risk[seen], 3, "probability that no fit exists", linestyle="--")
    finish(
        right,
        "samples $n$",
        "loss against the true model",
        "what each number of samples costs",
        xscale="log",
        yscale="log",
        ylim=(1e-5, 2),
    )
    return figure


def study_size(quick: bool = True) -> Figure:
    """What a number of samples buys, with simulated studies."""
    return sample_size_figure(sample_size(20, auc=0.8, prevalence=0.2), 20 if quick else 100)


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "logistic-calibration": logistic_calibration,
    "sample-size": study_size,
}
