"""Figures of wide networks: kernels over widths, their drift, kernel gradient flow, lazy training."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from limitlab.laws.kernels.gradient_flow import KernelGradientFlow
from limitlab.laws.kernels.lazy import lazy_certificate
from limitlab.laws.kernels.lazy_networks import unit_rows
from limitlab.laws.kernels.wide_network import WideNetwork
from limitlab.ledger.lazy import trained, used_up
from limitlab.ledger.wide_networks import deep_drift, kernel_errors, lazy_data, lazy_drift
from limitlab.plotting.style import COLOURS, finish, new_figure, simulation_points, theory_line, value_map


def kernel_convergence(quick: bool = True) -> Figure:
    """The tangent kernel of single networks approaches its limit as width^(-1/2), its mean as 1/width."""
    figure, (left, right) = new_figure(columns=2)
    widths, draws = ((16, 32, 64, 128, 256), 24) if quick else ((16, 32, 64, 128, 256, 512, 1024), 60)
    for index, (layers, name) in enumerate(((2, "erf"), (3, "relu"), (4, "relu"))):
        errors = np.array(kernel_errors(widths, draws, layers, name))
        bars = errors / math.sqrt(2 * draws)
        simulation_points(left, widths, errors, bars, index, f"{layers} layers of {'ReLU' if name == 'relu' else name}")
        middle = np.exp(np.mean(np.log(errors * np.sqrt(widths))))
        theory_line(left, widths, middle / np.sqrt(widths), index, linestyle=":", linewidth=1.2)
    finish(
        left,
        "width $m$",
        r"$|K-\Theta|/|\Theta|$, root mean square",
        "gap of one network (dotted: $m^{-1/2}$)",
        xscale="log",
        yscale="log",
    )
    left.set_xticks(widths, [str(width) for width in widths])
    law = WideNetwork.check_points()[0]
    sizes, seeds = ([8, 16, 32, 64], 60) if quick else ([8, 16, 32, 64, 128], 300)
    names = ("characteristic", "output_covariance", "tangent_pair")
    labels = (r"$\mathbb{E}\cos\frac{f+f'}{2}$", r"$\Sigma(x,x')$", r"$\Theta(x,x')$")
    limit, batches = law.theory(), [law.simulate_batch(size, range(seeds)) for size in sizes]
    for index, (name, label) in enumerate(zip(names, labels, strict=True)):
        runs = [batch[name] / float(limit[name]) for batch in batches]
        means, spread = ([float(getattr(run, kind)()) for run in runs] for kind in ("mean", "std"))
        simulation_points(right, sizes, means, np.array(spread) / math.sqrt(seeds), index, label)
    right.axhline(1.0, color="0.3", linewidth=1.2)
    finish(right, "width $m$", "mean over networks / limit", f"means over {seeds} networks approach the limit", xscale="log")
    right.set_xticks(sizes, [str(size) for size in sizes])
    return figure


def kernel_drift(quick: bool = True) -> Figure:
    """The kernel moves by about 1/m in training, while it fluctuates by m^(-1/2) between starts."""
    figure, (axes,) = new_figure()
    widths, draws = ((50, 100, 200, 400), 8) if quick else ((50, 100, 200, 400, 800, 1600, 3200), 12)
    changes, spreads = np.array(lazy_drift(widths, draws))
    deep_widths, deep_draws = (
        ((32, 64, 128, 256), (40, 40, 40, 20)) if quick else ((32, 64, 128, 256, 512), (400, 400, 400, 300, 100))
    )
    simulation_points(axes, widths, spreads, None, 1, "between starts, two layers")
    simulation_points(axes, widths, changes, None, 0, "during training, two layers")
    deep = np.array(deep_drift(deep_widths, deep_draws))
    simulation_points(axes, deep_widths, deep, None, 2, "during training, three layers of erf")
    x, y = np.array(widths, dtype=float), np.array(deep_widths, dtype=float)
    theory_line(axes, x, np.exp(np.mean(np.log(spreads * np.sqrt(x)))) / np.sqrt(x), 1, "$m^{-1/2}$", linestyle=":")
    theory_line(axes, x, np.exp(np.mean(np.log(changes * x))) / x, 0, "$m^{-1}$", linestyle=":")
    theory_line(axes, y, np.exp(np.mean(np.log(deep * y))) / y, 2, linestyle=":")
    finish(axes, "width $m$", "relative change of the tangent kernel", xscale="log", yscale="log", ylim=(3e-5, 0.4))
    axes.legend(loc="lower left", fontsize=11, frameon=False)
    axes.set_title("moves by $1/m$ in training, by $m^{-1/2}$ between starts")
    return figure


def kernel_flow(quick: bool = True) -> Figure:
    """Train error and test outputs of wide networks follow kernel gradient flow."""
    figure, (left, right) = new_figure(columns=2)
    law = KernelGradientFlow.check_points()[0]
    step = law.step
    lines = law.replace(times=tuple(step * np.arange(0, 61))).theory()
    few = law.replace(times=tuple(step * np.array([0, 2, 5, 10, 20, 40, 60])))
    theory_line(left, lines.time, lines.train_error, 6, r"$m\to\infty$")
    theory_line(right, lines.time, lines.test_output, 6, r"$m\to\infty$")
    for index, size in enumerate((8, 128) if quick else (8, 32, 256)):
        runs = few.simulate_batch(size, range(12 if quick else 60))
        count = math.sqrt(runs.sizes["seed"])
        for axes, name in ((left, "train_error"), (right, "test_output")):
            mean, spread = runs[name].mean("seed"), runs[name].std("seed", ddof=1) / count
            simulation_points(axes, runs.time, mean, spread, index, f"$m={size}$")
    finish(left, "time $t$", "train error", "mean over starts", yscale="log")
    finish(right, "time $t$", r"$\mathbb{E}f_t(x)$", "output at a test input")
    return figure


def lazy_bounds(quick: bool = True) -> Figure:
    """The lazy certificate: where it holds, and how much of its bounds networks use up."""
    figure, (left, right) = new_figure(columns=2)
    n, d = 8, 16
    widths, scales = np.geomspace(40, 4e5, 9).astype(int) // 2 * 2, np.geomspace(0.1, 30, 10)
    X, y = lazy_data(0, n, d)
    ratios = np.empty((len(scales), len(widths)))
    for j, width in enumerate(widths):
        # the certificate sees the width in L ~ m^(-1/2) only: s_min, s_max and Delta of a moderate width stand for all
        weights = unit_rows(np.random.default_rng(1), 1, min(int(width), 2000), d, antisymmetric=True)[0]
        for i, scale in enumerate(scales):
            found = lazy_certificate(X, y, weights, float(scale), "softplus")
            ratios[i, j] = found.ratio * math.sqrt(min(int(width), 2000) / width)
    mesh = value_map(left, widths, scales, np.log10(ratios), cmap="RdBu_r", vmin=-2, vmax=2)
    figure.colorbar(mesh, ax=left, label=r"$\log_{10}\,4L\Delta/s_{\min}^2$")
    x, y_places = np.moveaxis(np.asarray(mesh.get_coordinates(), dtype=float), -1, 0)
    left.contour(x, y_places, np.asarray(mesh.get_array()), levels=[0.0], colors="black", linewidths=2)
    finish(
        left, "width $m$", r"output scale $\alpha$", "training certified above the black line", xscale="log", yscale="log"
    )
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
    finish(
        right,
        r"$4L\Delta/s_{\min}^2$ (filled: certified)",
        "measured / bound",
        "every bound holds (below the line)",
        xscale="log",
        yscale="log",
    )
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "kernel-convergence": kernel_convergence,
    "kernel-drift": kernel_drift,
    "kernel-flow": kernel_flow,
    "lazy-bounds": lazy_bounds,
}
