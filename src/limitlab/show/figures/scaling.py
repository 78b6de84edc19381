"""Figures of SGD at scale and of scaling laws."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from limitlab.applied.scaling.fit import ScalingFit, scaling_fit
from limitlab.laws.online_sgd.multi_pass import MultiPassLeastSquares
from limitlab.laws.online_sgd.streaming import StreamingLeastSquares
from limitlab.laws.scaling.ridge_scaling import RidgeScaling
from limitlab.laws.scaling.width_and_steps import PowerLawScaling
from limitlab.plotting.style import COLOURS, finish, new_figure, simulation_points, theory_line


def streaming(quick: bool = True) -> Figure:
    """Loss curves of one-pass SGD with runs, and the largest stable step against the batch."""
    figure, (left, right) = new_figure(columns=2)
    d = 60
    s = 1 / np.arange(1, d + 1.0)
    base = StreamingLeastSquares(
        eigenvalues=s, weights=np.ones(d), signal_energy=s**0.6, dimension=d, noise=0.3, step=0.2 * d, times=(1 / d, 20.0)
    )
    few, fine = np.array([1, 3, 10, 30, 100, 300]), np.unique(np.round(np.geomspace(1, 1000, 120)))
    cases = {
        "$B = 1$": base,
        "$B = 8$": base.replace(batch=8),
        r"$B = 8$, $\mu = 0.7$": base.replace(batch=8, momentum=0.7),
    }
    for index, (label, law) in enumerate(cases.items()):
        theory_line(left, fine, law.replace(times=fine / d).theory().excess_risk, index, label)
        runs = law.replace(times=few / d, replicas=40).simulate_batch(d, range(4 if quick else 40)).excess_risk
        error = runs.std("seed", ddof=1) / math.sqrt(runs.sizes["seed"])
        simulation_points(left, few, runs.mean("seed"), error, index)
    late = fine[fine > 12]
    averaged = base.replace(average_from=10 / d, times=late / d).theory().average_excess_risk
    theory_line(left, late, averaged, 3, "$B = 1$, mean of iterates", linestyle="--")
    finish(left, "steps $k$", "excess risk $R_k$", rf"$s_j = 1/j$, $d = {d}$, $\eta = 0.2$", xscale="log", yscale="log")
    batches = np.unique(np.round(np.geomspace(1, 512, 40))).astype(int)
    for index, exponent in enumerate((0.5, 1.0, 2.0)):
        s = np.arange(1, d + 1.0) ** -exponent
        law = base.replace(eigenvalues=s, step=1e-3)
        theory_line(
            right,
            batches,
            [law.replace(batch=int(b)).largest_step() / d for b in batches],
            index,
            f"$s_j = j^{{-{exponent:g}}}$",
        )
        theory_line(right, batches, np.minimum(2 * batches / s.sum(), 2 / s[0]), index, linestyle=":", linewidth=1.2)
        words = "critical batch" if index == 0 else None
        right.axvline(law.critical_batch(), color=COLOURS[index], linewidth=0.9, linestyle="-.", label=words)
    finish(
        right,
        "batch $B$",
        r"largest step $\eta_{\max}$",
        r"dotted: $\min(2B/\mathrm{tr}\,\Sigma,\ 2/s_1)$",
        xscale="log",
        yscale="log",
    )
    return figure


def multi_pass(quick: bool = True) -> Figure:
    """Train error and excess risk of SGD on a fixed data set with paths, beside gradient descent, for two batches."""
    figure, panels = new_figure(columns=2)
    few, size = (0.2, 0.8, 3.0, 8.0), 60
    fine = 0.016 * np.unique(np.round(np.geomspace(0.05, 12, 80) / 0.016))  # whole steps
    base = MultiPassLeastSquares(ratio=0.5, samples=2.0 * size, step=0.016, noise=0.6)
    draws = 40 if quick else 200
    for index, batch in enumerate((1, 4)):
        law = base.replace(batch=batch)
        curve = law.replace(times=fine).theory()
        runs = law.replace(times=few).simulate_batch(size, range(draws))
        for axes, name in zip(panels, ("train_error", "excess_risk"), strict=True):
            theory_line(axes, fine, curve[name], index, f"SGD, $B = {batch}$")
            error = runs[name].std("seed", ddof=1) / math.sqrt(draws)
            simulation_points(axes, few, runs[name].mean("seed"), error, index)
    for axes, name, label in zip(
        panels, ("descent_train_error", "descent_excess_risk"), ("train error", "excess risk $R$"), strict=True
    ):
        theory_line(axes, fine, curve[name], 2, "gradient descent", linestyle="--")
        finish(axes, r"time $t = \eta k$", label, f"$n = {2 * size}$, $p = {size}$", xscale="log", yscale="log")
    return figure


def width_and_steps(quick: bool = True) -> Figure:
    """Loss curves of several widths with SGD points, the compute-optimal frontier below them, and the phases."""
    figure, (left, middle, right) = new_figure(columns=3, width=4.3)
    law = PowerLawScaling(spectrum_exponent=1.0, target_exponent=0.2, latent_dimension=400, step=0.25, batch=2)
    fine, few = np.unique(np.round(np.geomspace(1, 3000, 60))), (2, 8, 30, 120, 500)
    for index, width in enumerate((20, 50, 120)):
        theory_line(left, fine, law.replace(width=width, steps=fine).theory().excess_risk, index, f"$d = {width}$")
        left.axhline(float(law.replace(width=width).theory()["floor"]), color=COLOURS[index], linestyle=":", linewidth=1.6)
        runs = law.replace(steps=few).simulate_batch(width, range(14 if quick else 100)).excess_risk
        simulation_points(left, few, runs.mean("seed"), runs.std("seed", ddof=1) / math.sqrt(runs.sizes["seed"]), index)
    finish(left, "steps $k$", "loss $P$", r"$\alpha = 1$, $\beta = 0.2$; dotted: floor", xscale="log", yscale="log")
    wide = law.replace(latent_dimension=1e7, batch=1)
    compute = np.geomspace(1e4, 1e9, 6 if quick else 16)
    for width in (50, 200, 800, 3200):
        steps = np.unique(np.round(np.geomspace(16, 1e9 / width, 40)))
        middle.plot(width * steps, wide.replace(width=width, steps=steps).theory().excess_risk, color="grey", linewidth=0.9)
    for index, beta in enumerate((0.2, 0.7, 1.3)):
        theory_line(middle, compute, wide.replace(target_exponent=beta).frontier(compute).loss, index, rf"$\beta = {beta}$")
    finish(
        middle,
        "compute $C = dBk$",
        "best loss",
        r"$\alpha = 1$; grey: single widths, $\beta = 0.2$",
        xscale="log",
        yscale="log",
    )
    a, b = np.meshgrid(np.linspace(0.31, 1.6, 129), np.linspace(0.02, 1.6, 129))
    exponent = np.where(a + b < 0.5, 0.0, np.nan)  # outside the table, and covered below by a straight edge
    for i in np.ndindex(a.shape):
        point = phase_point(float(a[i]), float(b[i]))
        if point is not None:
            exponent[i] = point
    image = right.pcolormesh(a, b, exponent, cmap="viridis", rasterized=True)
    for x, y, name in ((1.2, 0.25, "Ia"), (1.3, 0.8, "II"), (0.9, 1.35, "III"), (0.4, 0.3, "Ib"), (0.4, 1.0, "IVa")):
        right.text(x, y, name, color="white", ha="center", va="center", fontsize=13)
    right.plot([0.5, 0.5, 1.6], [1.6, 0.5, 0.5], color="white", linewidth=1)
    right.plot([0.5, 1.6], [0.5, 1.6], color="white", linewidth=1)
    right.fill([0.3, 0.5, 0.3], [0.0, 0.0, 0.2], color="0.8")
    right.set(xlim=(0.31, 1.6), ylim=(0.02, 1.6))
    right.grid(False)
    right.set_facecolor("0.8")
    figure.colorbar(image, ax=right).set_label("exponent of the loss in $C$", fontsize=12)
    title = "how fast the best loss falls, by phase"
    finish(right, r"spectrum exponent $\alpha$", r"target exponent $\beta$", title, legend=False)
    return figure


ANY = PowerLawScaling(latent_dimension=4, width=2, step=1e-3)


def phase_point(alpha: float, beta: float) -> float | None:
    """The exponent of the loss at a point of the phase diagram, None outside the table."""
    law = ANY.model_copy(
        update={"spectrum_exponent": alpha, "target_exponent": beta}
    )  # unchecked: the map asks thousands of times
    return law.exponents().loss if law.phase() not in ("boundary", "other") else None


def ridge_scaling(quick: bool = True) -> Figure:
    """Excess risk against samples without and with the best ridge, with regressions; and against the number of random features."""
    figure, (left, right) = new_figure(columns=2)
    law = RidgeScaling(spectrum_exponent=1.0, target_exponent=0.3, latent_dimension=600, noise=0.3)
    samples, few = np.geomspace(10, 400, 40), (12, 25, 50, 100)
    draws = 14 if quick else 100
    for index, (label, ridge) in enumerate((("no ridge", 0.0), (r"$\lambda = 10^{-3}$", 1e-3), (r"$\lambda = 0.05$", 0.05))):
        curve = [float(law.replace(samples=n, ridge=ridge).theory().excess_risk) for n in samples]
        theory_line(left, samples, curve, index, label)
        runs = [law.replace(samples=n, ridge=ridge).simulate_batch(n, range(draws)).excess_risk for n in few]
        simulation_points(left, few, [r.mean() for r in runs], [r.std(ddof=1) / math.sqrt(draws) for r in runs], index)
    best = [(one := law.replace(samples=float(n))).replace(ridge=one.optimal_ridge()) for n in samples]
    theory_line(left, samples, [float(one.theory().excess_risk) for one in best], 3, "best ridge", linestyle="--")
    left.axhline(law.noise**2 * (2 * law.spectrum_exponent - 1), color="grey", linestyle=":", linewidth=1)
    finish(
        left,
        "samples $n$",
        "excess risk $R$",
        r"all features; dotted: $\tau^2(2\alpha - 1)$",
        xscale="log",
        yscale="log",
        ylim=(0.01, 1),
    )
    widths = np.unique(np.concatenate([np.geomspace(8, 800, 40), 80 * np.geomspace(0.75, 1.33, 31)]))
    some = (15, 40, 200, 500)
    wide = law.replace(samples=80.0)
    for index, (label, ridge) in enumerate(
        (("no ridge", 1e-9), (r"$\lambda = 10^{-3}$", 1e-3), (r"$\lambda = 0.05$", 0.05))
    ):
        theory_line(
            right, widths, [float(wide.replace(width=w, ridge=ridge).theory().excess_risk) for w in widths], index, label
        )
        runs = [wide.replace(width=float(w), ridge=ridge).simulate_batch(80, range(draws)).excess_risk for w in some]
        simulation_points(right, some, [r.mean() for r in runs], [r.std(ddof=1) / math.sqrt(draws) for r in runs], index)
    finish(right, "random features $N$", "excess risk $R$", "$n = 80$ samples", xscale="log", yscale="log", ylim=(0.02, 3))
    return figure


# -- fits -------------------------------------------------------------------------------------------------------------


def scaling_fit_figure(fit: ScalingFit, title: str = "") -> Figure:
    """The runs with the fitted loss, and the best size against the compute with its band (where the runs decide it)."""
    figure, (left, right) = new_figure(columns=2)
    runs = fit.runs
    N, D = np.exp(runs.n + runs.centre_n), np.exp(runs.d + runs.centre_d)
    order = np.unique(N.round(-int(np.floor(np.log10(N.min()))) + 6))
    shown = order[np.unique(np.linspace(0, order.size - 1, 5).round().astype(int))]
    fine = np.geomspace(D.min(), D.max(), 80)
    for index, size in enumerate(shown):
        near = np.abs(np.log(N / size)) < 1e-4
        theory_line(left, fine, fit.predict(size, fine), index, f"$N = {size:.2g}$", linewidth=1.3)
        simulation_points(left, D[near], np.exp(runs.log_loss[near]), index=index, markersize=4)
    finish(left, "data $D$", "loss $L$", title or "runs and fit", xscale="log", yscale="log")
    compute = np.geomspace(fit.largest_compute / 1e4, fit.largest_compute * 1e2, 13)
    used = fit.flops * N * D
    right.plot(used, N, ".", color="grey", markersize=4, label="runs")
    if fit.separable:
        theory_line(right, compute, [fit.optimum(c).N for c in compute], 0, "best size $N^*$")
        if not fit.interaction:
            ends = np.array([fit.interval("N", compute=c) for c in compute])
            right.fill_between(compute, *ends.T, color=COLOURS[0], alpha=0.2, linewidth=0, label=f"{100 * fit.level:g} %")
        right.axvline(fit.largest_compute, color="grey", linestyle=":", linewidth=1)
        name = f"$a = {fit.a:.3f}$, $b = {fit.b:.3f}$, condition {fit.condition:.0f}"
    else:
        name = "best size: not determined by these data"
    finish(right, "compute $C$", "size $N$", name, xscale="log", yscale="log")
    return figure


def two_fits(quick: bool = True) -> Figure:
    """The profile of the two exponents for a grid of runs, which decides them, and for runs along one ray, which cannot."""
    from matplotlib.colors import BoundaryNorm

    figure, panels = new_figure(columns=2)
    levels = np.array([0, 1, 2, 3, 5, 10, 20, 50])
    steps = BoundaryNorm(levels**2, 256, extend="max")  # steps of equal contrast
    truth = (1.82, 482.0, 2085.0, 0.348, 0.366)
    grids = np.meshgrid(np.geomspace(5e7, 1e10, 8), np.geomspace(1e9, 3e11, 6), indexing="ij")
    line = np.geomspace(5e7, 1e10, 48)
    for axes, (N, D), title in zip(
        panels, (grids, (line, 20 * line)), ("a grid of $N$ and $D$", "one ray $D = 20\\,N$"), strict=True
    ):
        N, D = N.ravel(), D.ravel()
        E, A, B, a, b = truth
        loss = (E + A * N**-a + B * D**-b) * np.exp(0.005 * np.random.default_rng(0).standard_normal(N.size))
        fit = scaling_fit(N, D, loss, robust=False)
        points = np.linspace(0.15, 0.75, 49 if quick else 97)
        rise = np.array([[fit.profiled_rise(x, y) for x in points] for y in points])
        # contours of the rise, which is smooth at its minimum, where its root has a tip
        image = axes.contourf(points, points, rise, levels=levels**2, norm=steps, cmap="Blues_r", extend="max")
        axes.plot([a], [b], "X", color=COLOURS[1], markeredgecolor="white", markersize=11)
        axes.annotate(
            "truth", (a, b), (-8, -8), textcoords="offset points", ha="right", va="top", color=COLOURS[1], fontsize=12
        )
        axes.grid(False)
        said = "separable" if fit.separable else "not separable"
        finish(axes, "exponent $a$", "exponent $b$", f"{title}: {said}", legend=False)
    bar = figure.colorbar(image, ax=list(panels))
    bar.set_ticks((levels**2).tolist(), labels=[str(level) for level in levels])
    bar.set_label("standard errors from the best fit")
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "streaming-least-squares": streaming,
    "multi-pass-least-squares": multi_pass,
    "power-law-scaling": width_and_steps,
    "ridge-scaling": ridge_scaling,
    "scaling-fit": two_fits,
}
