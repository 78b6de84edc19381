"""Figures of scaling laws."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from limitlab.laws.scaling.ridge_scaling import RidgeScaling
from limitlab.laws.scaling.width_and_steps import PowerLawScaling
from limitlab.plotting.along import along
from limitlab.plotting.style import COLOURS, finish, new_figure, theory_line


def width_and_steps(quick: bool = True) -> Figure:
    """Draw loss curves of several widths with SGD points, the compute-optimal frontier, and the phases."""
    figure, (left, middle, right) = new_figure(columns=3, width=4.3)
    law = PowerLawScaling(spectrum_exponent=1.0, target_exponent=0.2, latent_dimension=400, step=0.25, batch=2)
    fine, few = np.unique(np.round(np.geomspace(1, 3000, 60))), (2, 8, 30, 120, 500)
    draws = 14 if quick else 100
    for index, width in enumerate((20, 50, 120)):
        narrow, label = law.replace(width=width), f"$d = {width}$"
        along(left, narrow, "steps", "excess_risk", fine, index=index, label=label)
        left.axhline(float(narrow.theory()["floor"]), color=COLOURS[index], linestyle=":", linewidth=1.6)
        along(left, law, "steps", "excess_risk", (), few, size=width, seeds=draws, index=index)
    finish(left, "steps $k$", "loss $P$", r"$\alpha = 1$, $\beta = 0.2$; dotted: floor", xscale="log", yscale="log")
    wide = law.replace(latent_dimension=1e7, batch=1)
    compute = np.geomspace(1e4, 1e9, 6 if quick else 16)
    for width in (50, 200, 800, 3200):
        steps = np.unique(np.round(np.geomspace(16, 1e9 / width, 40)))
        middle.plot(width * steps, wide.replace(width=width, steps=steps).theory().excess_risk, color="grey", linewidth=0.9)
    for index, beta in enumerate((0.2, 0.7, 1.3)):
        theory_line(middle, compute, wide.replace(target_exponent=beta).frontier(compute).loss, index, rf"$\beta = {beta}$")
    title = r"$\alpha = 1$; grey: single widths, $\beta = 0.2$"
    finish(middle, "compute $C = dBk$", "best loss", title, xscale="log", yscale="log")
    a, b = np.meshgrid(np.linspace(0.31, 1.6, 129), np.linspace(0.02, 1.6, 129))
    exponent = np.where(a + b < 0.5, 0.0, np.nan)  # this region is outside the table and is covered by a polygon below
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
    title = "exponent of the best loss, by phase"
    finish(right, r"spectrum exponent $\alpha$", r"target exponent $\beta$", title, legend=False)
    return figure


ANY = PowerLawScaling(latent_dimension=4, width=2, step=1e-3)


def phase_point(alpha: float, beta: float) -> float | None:
    """Return the exponent of the loss at a point of the phase diagram, or None outside the table."""
    law = ANY.model_copy(
        update={"spectrum_exponent": alpha, "target_exponent": beta}
    )  # without validation, which would be slow for thousands of points
    return law.exponents().loss if law.phase() not in ("boundary", "other") else None


def ridge_scaling(quick: bool = True) -> Figure:
    """Draw the excess risk against samples (with and without ridge) and against the number of random features."""
    figure, (left, right) = new_figure(columns=2)
    law = RidgeScaling(spectrum_exponent=1.0, target_exponent=0.3, latent_dimension=600, noise=0.3)
    samples, few, draws = np.geomspace(10, 400, 40), (12, 25, 50, 100), 14 if quick else 100
    penalised = {r"$\lambda = 10^{-3}$": law.replace(ridge=1e-3), r"$\lambda = 0.05$": law.replace(ridge=0.05)}
    laws = {"no ridge": law.replace(ridge=0.0), **penalised}
    along(left, laws, "samples", "excess_risk", samples, few, size=int, seeds=draws)
    best = [law.replace(samples=float(n)).optimal_ridge() for n in samples]
    along(
        left, law, lambda n: {"samples": n, "ridge": best}, "excess_risk", samples,
        index=3, label="best ridge", linestyle="--",
    )  # fmt: skip
    left.axhline(law.noise**2 * (2 * law.spectrum_exponent - 1), color="grey", linestyle=":", linewidth=1)
    finish(left, "samples $n$", title=r"all features; dotted: $\tau^2(2\alpha - 1)$", yscale="log", ylim=(0.01, 1))
    widths = np.unique(np.concatenate([np.geomspace(8, 800, 40), 80 * np.geomspace(0.75, 1.33, 31)]))
    wide = {label: each.replace(samples=80.0, ridge=max(each.ridge, 1e-9)) for label, each in laws.items()}
    along(right, wide, "width", "excess_risk", widths, (15, 40, 200, 500), size=80, seeds=draws)
    finish(right, "random features $N$", title="$n = 80$ samples", xscale="log", yscale="log", ylim=(0.02, 3))
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "power-law-scaling": width_and_steps,
    "ridge-scaling": ridge_scaling,
}
