"""The figure of convolutional networks and their tangent kernels (claim M8)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from limitlab.ledger.convolutional import kernel_and_networks, plain_task
from limitlab.models.image_tasks import Task, row_task
from limitlab.plotting.style import COLOURS, MARKERS, finish, new_figure

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
    """Mean and standard error over seeds, for the kernel and for networks of both starts, joined by thin lines (no theory here)."""
    found = [[kernel_and_networks(task(n, seed), seed, SCALES, width, steps) for seed in range(seeds)] for n in counts]
    table = np.array([[(one.kernel, *one.networks) for one in row] for row in found])
    labels = ("tangent kernel", f"network, usual start times {SCALES[0]:g}", "network, usual start")
    for index, label in enumerate(labels):
        mean, error = table[:, :, index].mean(axis=1), table[:, :, index].std(axis=1, ddof=1) / np.sqrt(seeds)
        axes.errorbar(
            counts, mean, error, fmt=f"{MARKERS[index]}-", color=COLOURS[index], linewidth=1, capsize=2.5, label=label
        )


FIGURES: dict[str, Callable[[bool], Figure]] = {"convolutional-kernel": convolutional_kernel}
