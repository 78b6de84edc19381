"""Figures of kernels and lazy training."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from limitlab._core.draws import mean_and_error
from limitlab.laws.kernels._claims.architectures import PAIR, kernel_and_networks, plain_task, tangent_kernels
from limitlab.laws.kernels._claims.lazy import trained, used_up
from limitlab.laws.kernels._claims.wide import deep_drift, kernel_errors, lazy_data, lazy_drift
from limitlab.laws.kernels._lazy_networks import unit_rows
from limitlab.laws.kernels.gradient_flow import KernelGradientFlow
from limitlab.laws.kernels.lazy import lazy_certificate
from limitlab.laws.kernels.residual import resnet_ntk
from limitlab.laws.kernels.wide_network import WideNetwork
from limitlab.models.datasets import Task, row_task
from limitlab.plotting.along import along, draws_along
from limitlab.plotting.style import COLOURS, MARKERS, finish, new_figure, simulation_points, theory_line, value_map

# -- kernels ------------------------------------------------------------------------------------------------------


def kernel_convergence(quick: bool = True) -> Figure:
    """Gap of the tangent kernel of single networks to its limit, of order width^(-1/2), and of its mean, of order 1/width."""
    figure, (left, right) = new_figure(columns=2)
    widths, draws = ((16, 32, 64, 128, 256), 24) if quick else ((16, 32, 64, 128, 256, 512, 1024), 60)
    for index, (layers, name) in enumerate(((2, "erf"), (3, "relu"), (4, "relu"))):
        errors = np.array(kernel_errors(widths, draws, layers, name))
        bars = errors / math.sqrt(2 * draws)
        simulation_points(left, widths, errors, bars, index, f"{layers} layers of {'ReLU' if name == 'relu' else name}")
        middle = np.exp(np.mean(np.log(errors * np.sqrt(widths))))
        theory_line(left, widths, middle / np.sqrt(widths), index, linestyle=":", linewidth=1.2)
    labels = ("width $m$", r"$|K-\Theta|/|\Theta|$, root mean square", "gap of one network (dotted: $m^{-1/2}$)")
    finish(left, *labels, xscale="log", yscale="log")
    left.set_xticks(widths, [str(width) for width in widths])
    law = WideNetwork.check_points()[0]
    sizes, seeds = ([8, 16, 32, 64], 60) if quick else ([8, 16, 32, 64, 128], 300)
    names = {
        "characteristic": r"$\mathbb{E}\cos\frac{f+f'}{2}$",
        "output_covariance": r"$\Sigma(x,x')$",
        "tangent_pair": r"$\Theta(x,x')$",
    }
    limit, draws_of = law.theory(), draws_along(law, "size", sizes, seeds=seeds)
    for index, (name, label) in enumerate(names.items()):
        simulation_points(right, sizes, *mean_and_error(draws_of[name] / float(limit[name])), index, label)
    right.axhline(1.0, color="0.3", linewidth=1.2)
    finish(right, "width $m$", "mean over networks / limit", f"means over {seeds} networks approach the limit", xscale="log")
    right.set_xticks(sizes, [str(size) for size in sizes])
    return figure


def kernel_drift(quick: bool = True) -> Figure:
    """Change of the kernel in training, about 1/m, and its fluctuation between starts, m^(-1/2)."""
    figure, (axes,) = new_figure()
    widths, draws = ((50, 100, 200, 400), 8) if quick else ((50, 100, 200, 400, 800, 1600, 3200), 12)
    changes, spreads = np.array(lazy_drift(widths, draws))
    deep_widths, deep_draws = (
        ((32, 64, 128, 256), (40, 40, 40, 20)) if quick else ((32, 64, 128, 256, 512), (400, 400, 400, 300, 100))
    )
    simulation_points(axes, widths, spreads, None, 1, "between starts, two layers")
    simulation_points(axes, widths, changes, None, 0, "during training, two layers")
    drifts = [deep_drift(width, count) for width, count in zip(deep_widths, deep_draws, strict=True)]
    deep, hidden = np.array([drift.change for drift in drifts]), np.array([drift.hidden for drift in drifts])
    bars = [drift.hidden_error for drift in drifts]
    simulation_points(axes, deep_widths, deep, None, 2, "during training, three layers of erf")
    simulation_points(axes, deep_widths, hidden, bars, 3, r"hidden weights, $\|W_t-W_0\|/\sqrt{m}$, three layers")
    theory_line(
        axes, deep_widths, np.exp(np.mean(np.log(hidden**2 * deep_widths))) ** 0.5 / np.sqrt(deep_widths), 3, linestyle=":"
    )
    x, y = np.array(widths, dtype=float), np.array(deep_widths, dtype=float)
    theory_line(axes, x, np.exp(np.mean(np.log(spreads * np.sqrt(x)))) / np.sqrt(x), 1, "$m^{-1/2}$", linestyle=":")
    theory_line(axes, x, np.exp(np.mean(np.log(changes * x))) / x, 0, "$m^{-1}$", linestyle=":")
    theory_line(axes, y, np.exp(np.mean(np.log(deep * y))) / y, 2, linestyle=":")
    finish(axes, "width $m$", "relative change of kernel or weights", xscale="log", yscale="log", ylim=(3e-5, 0.4))
    axes.legend(loc="lower left", fontsize=11, frameon=False)
    axes.set_title("moves by $1/m$ in training, by $m^{-1/2}$ between starts")
    return figure


def kernel_flow(quick: bool = True) -> Figure:
    """Train error and test outputs of wide networks, compared with kernel gradient flow."""
    figure, panels = new_figure(columns=2)
    law, names = KernelGradientFlow.check_points()[0], ("train_error", "test_output")
    along(panels, law, "times", names, law.step * np.arange(0, 61), index=6, label=r"$m\to\infty$")
    few, networks = law.step * np.array([0, 2, 5, 10, 20, 40, 60]), 12 if quick else 60
    for index, size in enumerate((8, 128) if quick else (8, 32, 256)):
        along(panels, law, "times", names, (), few, size=size, seeds=networks, index=index, label=f"$m={size}$")
    finish(panels[0], y_label="train error", title="mean over starts", yscale="log")
    finish(panels[1], y_label=r"$\mathbb{E}f_t(x)$", title="output at a test input")
    return figure


def lazy_bounds(quick: bool = True) -> Figure:
    """The range in which the lazy certificate holds, and the share of its bounds that networks reach."""
    figure, (left, right) = new_figure(columns=2)
    n, d = 8, 16
    widths, scales = np.geomspace(40, 4e5, 9).astype(int) // 2 * 2, np.geomspace(0.1, 30, 10)
    X, y = lazy_data(0, n, d)
    ratios = np.empty((len(scales), len(widths)))
    for j, width in enumerate(widths):
        # only L ~ m^(-1/2) depends strongly on the width; s_min, s_max and Delta of a moderate width are used for all
        weights = unit_rows(np.random.default_rng(1), 1, min(int(width), 2000), d, antisymmetric=True)[0]
        for i, scale in enumerate(scales):
            certificate = lazy_certificate(X, y, weights, float(scale), "softplus")
            ratios[i, j] = certificate.ratio * math.sqrt(min(int(width), 2000) / width)
    mesh = value_map(left, widths, scales, np.log10(ratios), cmap="RdBu_r", vmin=-2, vmax=2)
    figure.colorbar(mesh, ax=left, label=r"$\log_{10}\,4L\Delta/s_{\min}^2$")
    x, y_places = np.moveaxis(np.asarray(mesh.get_coordinates(), dtype=float), -1, 0)
    left.contour(x, y_places, np.asarray(mesh.get_array()), levels=[0.0], colors="black", linewidths=2)
    title = "training certified above the black line"
    finish(left, "width $m$", r"output scale $\alpha$", title, xscale="log", yscale="log")
    counted = (40, 160, 640) if quick else (40, 160, 640, 2560)
    starts = [(antisymmetric, scale) for antisymmetric in (False, True) for scale in (0.5, 2.0, 8.0)]
    runs = [trained(0, n, d, m, scale, "softplus", antisymmetric) for antisymmetric, scale in starts for m in counted]
    ratio, held = np.array([(certificate.ratio, certificate.holds) for certificate, _, _ in runs]).T
    for index, name in enumerate(("train error", "distance", "deviation")):
        used = np.array([used_up(certificate, flow, times, n)[name] for certificate, flow, times in runs])
        right.plot(ratio, used, "o", color=COLOURS[index], markerfacecolor="white", label=name, markersize=6)
        right.plot(ratio[held > 0], used[held > 0], "o", color=COLOURS[index], markersize=6)
    right.axhline(1.0, color="0.3", linewidth=1.2)
    right.axvline(1.0, color="0.3", linewidth=1.2, linestyle="--")
    labels = (r"$4L\Delta/s_{\min}^2$ (filled: certified)", "measured / bound", "every bound holds (below the line)")
    finish(right, *labels, xscale="log", yscale="log")
    return figure


# -- convolutional ------------------------------------------------------------------------------------------------

SCALES = (0.3, 1.0)


def convolutional_kernel(quick: bool = True) -> Figure:
    """Test errors of a convolutional tangent kernel and of networks, on images that need features and on plain digits."""
    figure, (left, right) = new_figure(columns=2)
    counts, seeds, width, steps = ((60, 120, 240), 2, 16, 250) if quick else ((100, 200, 400, 800), 4, 32, 500)
    shared = (counts, seeds, width, steps)
    _errors(left, lambda n, seed: row_task(16, n, 200 if quick else 1000, seed), *shared)
    left.axhline(0.5, color="0.5", linewidth=1.2, linestyle=":", label="guessing")
    finish(
        left, "training images $n$", "test error", "16 zeros and ones: are the first two equal?", xscale="log", yscale="log"
    )
    _errors(right, lambda n, seed: plain_task(n, 200 if quick else 1000, seed), *shared)
    finish(right, "training images $n$", "test error", "single digits, ten classes", xscale="log", yscale="log")
    for axes in (left, right):
        axes.set_xticks(counts, [str(count) for count in counts])
    return figure


def _errors(
    axes: Axes, task: Callable[[int, int], Task], counts: tuple[int, ...], seeds: int, width: int, steps: int
) -> None:
    """Plot test errors of the kernel and of networks of both starts, joined by thin lines (there is no theory)."""
    fits = [[kernel_and_networks(task(n, seed), seed, SCALES, width, steps) for seed in range(seeds)] for n in counts]
    table = np.array([[(fit.kernel, *fit.networks) for fit in row] for row in fits])
    labels = ("tangent kernel", f"network, usual start times {SCALES[0]:g}", "network, usual start")
    for index, label in enumerate(labels):
        style: dict[str, Any] = dict(fmt=f"{MARKERS[index]}-", color=COLOURS[index], linewidth=1, capsize=2.5)
        axes.errorbar(counts, *mean_and_error(table[:, :, index], axis=1), label=label, **style)


# -- conditioning -------------------------------------------------------------------------------------------------


def residual_kernel(quick: bool = True) -> Figure:
    """Tangent kernel of residual networks of finite width, with means against the limit, and the scatter of single networks."""
    figure, (left, right) = new_figure(columns=2)
    widths, draws = np.array([25, 50, 100, 200] if quick else [25, 50, 100, 200, 400, 800]), 200 if quick else 400
    for index, (blocks, branch) in enumerate(((3, 1.0), (10, 0.3))):
        limit = float(resnet_ntk(PAIR, None, blocks, branch).ntk[0, 1])
        runs = np.array([tangent_kernels(blocks, branch, int(width), draws)[:, 0, 1] for width in widths])
        label = f"$L={blocks}$, $b={branch:g}$"
        theory_line(left, widths[[0, -1]], [limit, limit], index, f"limit, {label}")
        simulation_points(left, widths, *mean_and_error(runs, axis=1), index)
        gaps = np.sqrt(np.mean((runs - limit) ** 2, axis=1))
        simulation_points(right, widths, gaps, gaps / math.sqrt(2 * draws), index, label)
        theory_line(right, widths, gaps[-1] * np.sqrt(widths[-1] / widths), index, linewidth=1.2)
    finish(left, "width $N$", r"tangent kernel $\Theta(x,x')$", f"mean of {draws} networks", xscale="log", ylim=(0, None))
    finish(right, "width $N$", "rms distance from the limit", r"lines: $N^{-1/2}$", xscale="log", yscale="log")
    for axes in (left, right):
        axes.set_xticks(widths, [str(width) for width in widths])
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "kernel-convergence": kernel_convergence,
    "kernel-drift": kernel_drift,
    "kernel-flow": kernel_flow,
    "lazy-bounds": lazy_bounds,
    "convolutional-kernel": convolutional_kernel,
    "residual-kernel": residual_kernel,
}

ITEMS = {
    "kernel-convergence": ("J-20",),
    "kernel-drift": ("J-21",),
    "kernel-flow": ("J-17", "M-11"),
    "lazy-bounds": ("J-23",),
    "convolutional-kernel": ("M-12",),
    "residual-kernel": ("M-21",),
}
"""Items of the lecture notes that the figures cover."""
