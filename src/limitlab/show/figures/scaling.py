"""Figures of SGD at scale and of scaling laws."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from limitlab.laws.sgd.streaming import StreamingLeastSquares
from limitlab.show.figures.style import finish, new_figure, simulation_points, theory_line


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
        theory_line(right, batches, [law.replace(batch=int(b)).largest_step() / d for b in batches], index, f"$s_j = j^{{-{exponent:g}}}$")
        theory_line(right, batches, np.minimum(2 * batches / s.sum(), 2 / s[0]), index, linestyle=":", linewidth=1.2)
        right.axvline(law.critical_batch(), color="grey", linewidth=0.6)
    finish(
        right, "batch $B$", r"largest step $\eta_{\max}$", r"dotted: $\min(2B/\mathrm{tr}\,\Sigma,\ 2/s_1)$", xscale="log", yscale="log"
    )
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "streaming-least-squares": streaming,
}
