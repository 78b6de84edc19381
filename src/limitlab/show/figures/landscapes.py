"""Figures of landscapes: how flows leave saddles, and where they end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from limitlab.laws.attention.single_cluster import SingleCluster
from limitlab.models.attention.engines import token_paths
from limitlab.show.figures.style import finish, new_figure, simulation_points, theory_line


def token_saddles(quick: bool = True) -> Figure:
    """Tokens that leave a saddle at beta = 0 at its largest rate, and the rates at every pair of poles."""
    figure, (left, right) = new_figure(columns=2)
    tokens, dimension, kick, rng = 6, 3, 1e-6, np.random.default_rng(0)
    times = np.linspace(0, 20, 41)
    for index, at_pole in enumerate((3, 4, 5)):
        saddle = np.zeros((tokens, dimension))
        saddle[:, 0] = np.where(np.arange(tokens) < at_pole, 1.0, -1.0)
        start = saddle + kick * rng.standard_normal((10 if quick else 40, *saddle.shape))
        paths = token_paths(start / np.linalg.norm(start, axis=-1, keepdims=True), 0.0, times, tolerance=1e-12)
        distance = np.sqrt(np.mean((paths - saddle) ** 2, axis=(1, 2, 3)))
        simulation_points(left, times[1::2], distance[1::2], None, index, f"{at_pole} and {tokens - at_pole} at the poles")
    early = times[:30]
    theory_line(left, early, 0.4 * kick * np.exp(early), 6, "$e^{t}$", linestyle="--")
    finish(
        left,
        "time $t$",
        "distance from the saddle (rms)",
        f"$n = {tokens}$, $d = {dimension}$, kick $10^{{-6}}$",
        yscale="log",
        ylim=(1e-7, 30),
    )
    counts = np.arange(10, 21)
    for index, part in enumerate(("largest", "second", "smallest")):
        rates = [np.unique(SingleCluster.saddle_rates(20, int(k), 2).round(12))[::-1] for k in counts]
        values = [r[0] if part == "largest" else r[-1] if part == "smallest" else r[1] for r in rates]
        theory_line(right, counts / 20, values, index, f"{part} rate", marker="o", markersize=4)
    right.axhline(0, color="0.4", linewidth=1)
    finish(
        right, "share of tokens at the larger pole $k/n$", "rate", "$n = 20$: only one cluster ($k=n$) has no positive rate"
    )
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {"token-saddles": token_saddles}
