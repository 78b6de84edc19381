"""Figures of square matrices and of the tangent kernels of residual networks."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from limitlab.laws.kernels.residual import resnet_ntk
from limitlab.laws.spectra.square_matrix import SquareMatrixEdge, mean_inverse_trace
from limitlab.ledger.conditioning import PAIR, inverse_trace, tangent_kernels
from limitlab.plotting.style import finish, new_figure, simulation_points, theory_line


def square_matrix(quick: bool = True) -> Figure:
    """Laws of the smallest eigenvalue and of the condition number at n = d; the mean of the inverse's trace around it."""
    figure, (left, right) = new_figure(columns=2)
    law, rng, n = SquareMatrixEdge(), np.random.default_rng(0), 50
    draws = 400 if quick else 3000
    singular = np.linalg.svd(rng.standard_normal((draws, n, n)), compute_uv=False)
    x = np.geomspace(0.02, 100, 200)
    shown = np.geomspace(0.05, 40, 9)
    cases = (
        (law.smallest_cdf, n * singular[:, -1] ** 2, r"$n\lambda_{\min}$"),
        (law.condition_cdf, singular[:, 0] / singular[:, -1] / n, r"$\kappa/n$"),
    )
    for index, (cdf, values, label) in enumerate(cases):
        theory_line(left, x, cdf(x), index, label)
        share = (values[:, None] <= shown).mean(axis=0)
        simulation_points(left, shown, share, np.sqrt(share * (1 - share) / draws), index)
    title = f"square Gaussian matrices (points: $n={n}$)"
    finish(left, "value $x$", r"distribution function $P(\,\cdot\leq x)$", title, xscale="log")
    samples = 40
    columns = np.arange(10, 81)
    away = np.abs(columns - samples) > 1
    for side, name in ((columns < samples, r"$\min(n,d)/(|n-d|-1)$"), (columns > samples, "")):
        theory_line(right, columns[away & side], mean_inverse_trace(samples, columns[away & side]), 0, name or None)
    few, repeats = np.array([10, 20, 30, 35, 40, 45, 50, 60, 80]), 100 if quick else 1000
    traces = [[inverse_trace(rng.standard_normal((samples, d))) for _ in range(repeats)] for d in few]
    means, errors = np.mean(traces, axis=1), np.std(traces, axis=1, ddof=1) / math.sqrt(repeats)
    seen = few != samples
    simulation_points(right, few[seen], means[seen], errors[seen], 0, "mean")
    simulation_points(right, few, np.median(traces, axis=1), None, 1, "median (the mean at $n=d$ is infinite)")
    finish(right, "columns $d$", r"$\mathrm{tr}\,(X^\top X)^+$", f"$n={samples}$ rows", yscale="log", ylim=(0.2, 3000))
    return figure


def residual_kernel(quick: bool = True) -> Figure:
    """Tangent kernel of residual networks of finite width: means against the limit, and the scatter of single networks."""
    figure, (left, right) = new_figure(columns=2)
    widths, draws = np.array([25, 50, 100, 200] if quick else [25, 50, 100, 200, 400, 800]), 200 if quick else 400
    for index, (blocks, branch) in enumerate(((3, 1.0), (10, 0.3))):
        limit = float(resnet_ntk(PAIR, None, blocks, branch).ntk[0, 1])
        runs = [tangent_kernels(blocks, branch, int(width), draws)[:, 0, 1] for width in widths]
        label = f"$L={blocks}$, $b={branch:g}$"
        errors = [run.std(ddof=1) / math.sqrt(draws) for run in runs]
        theory_line(left, widths[[0, -1]], [limit, limit], index, f"limit, {label}")
        simulation_points(left, widths, [run.mean() for run in runs], errors, index)
        gaps = np.array([np.sqrt(np.mean((run - limit) ** 2)) for run in runs])
        simulation_points(right, widths, gaps, gaps / math.sqrt(2 * draws), index, label)
        theory_line(right, widths, gaps[-1] * np.sqrt(widths[-1] / widths), index, linewidth=1.2)
    finish(left, "width $N$", r"tangent kernel $\Theta(x,x')$", f"mean of {draws} networks", xscale="log", ylim=(0, None))
    finish(right, "width $N$", "rms distance from the limit", r"lines: $N^{-1/2}$", xscale="log", yscale="log")
    for axes in (left, right):
        axes.set_xticks(widths, [str(width) for width in widths])
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {"square-matrix": square_matrix, "residual-kernel": residual_kernel}
