"""The figure of a comparison, with prediction and experiment at growing size, and the gaps between them."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from limitlab._core.law import Law
from limitlab.lab.extrapolated import Compared, extrapolated
from limitlab.lab.judging import Row, Verdict
from limitlab.plotting.panels import (
    axis_values,
    curves_of,
    finite_or_gap,
    geometric,
    give_title,
    label_of,
    legend_above,
    longest_dimension,
    panel_grid,
    wide,
)
from limitlab.plotting.style import RC, finish, simulation_points, theory_line

Array = NDArray[np.float64]
MOST_GAPS = 6
ROUNDING = 1e-9
"""Relative gaps below this are rounding errors and are not drawn."""


class Judged(Compared, Protocol):
    """The parts of a comparison that its figure shows."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """The error budget, one row per observable."""

    @property
    def verdict(self) -> Verdict:
        """The verdict over all observables."""


def comparison_figure(result: Judged) -> Figure:
    """Draw the figure of a comparison, with every observable over size or coordinate, and the relative gaps.

    Parameters
    ----------
    result
        The result of `compare`.
    """
    data = result.dataset
    names = list(dict.fromkeys(row.observable for row in result.rows))
    figure, panels = panel_grid(len(names) + 1)
    explained: set[tuple[str, ...]] = set()
    for axes, name in zip(panels, names, strict=False):
        draw = draw_over_size if data[f"theory_{name}"].ndim == 1 else draw_along
        draw(axes, name, result)
        labels = tuple(axes.get_legend_handles_labels()[1])
        if labels not in explained:  # one legend serves for all panels with the same labels
            axes.legend(fontsize=RC["legend.fontsize"], frameon=False)
        explained.add(labels)
    draw_gaps(panels[len(names)], result, names)
    give_title(figure, f"{type(result.law).__name__}: theory and simulation {VERDICTS[result.verdict]}")
    return figure


VERDICTS = {"agree": "agree", "disagree": "disagree", "underpowered": "not decided (underpowered)"}


def draw_over_size(axes: Axes, name: str, result: Judged) -> None:
    """Draw a single number, with its limit as a line, its experiments as points, and their extrapolation."""
    theory, mean, error = (result.dataset[f"{kind}_{name}"] for kind in ("theory", "mean", "error"))
    sizes = theory["size"].values.astype(float)
    beyond = sizes[-1] * max(float(sizes[-1] / sizes[0]) ** 0.5, 1.5)
    theory_line(axes, [*sizes, beyond], [*theory.values, theory.values[-1]], 0, "limit")
    simulation_points(axes, sizes, mean.values, error.values, 1, "experiment")
    value, budget = extrapolated(result, name)
    simulation_points(axes, [beyond], [value], [budget], 2, "extrapolated, as judged")
    finish(axes, size_label(result.law), label_of(theory, name), legend=False)
    size_axis(axes, sizes, beyond)


def draw_along(axes: Axes, name: str, result: Judged) -> None:
    """Draw a curve, with its limit as a line, the largest size as faint points, and the extrapolation as points."""
    largest = {"size": -1}
    theory, mean, error = (result.dataset[f"{kind}_{name}"] for kind in ("theory", "mean", "error"))
    value, budget = (mean.isel(largest).copy(data=part) for part in extrapolated(result, name))
    along = longest_dimension(theory.isel(largest).to_dataset(name="value"))
    x, _ = axis_values(theory, along)
    size = int(theory["size"].values[-1])
    curves = curves_of(theory.isel(largest), along)
    for index, (label, line) in enumerate(curves):
        theory_line(axes, x, finite_or_gap(line), index, label or "limit")
        colour = index if len(curves) > 1 else 1
        for kind, parts, look in (
            (f"size {size}", (mean.isel(largest), error.isel(largest)), {"alpha": 0.35}),
            ("extrapolated, as judged", (value, budget), {}),
        ):
            points, spread = (curves_of(part, along)[index][1] for part in parts)
            simulation_points(
                axes, x, points, spread, colour + (not look and len(curves) == 1), kind if index == 0 else None, **look
            )
    finish(
        axes,
        label_of(theory[along]) if along in theory.coords else along,
        label_of(theory, name),
        xscale="log" if geometric(x) else "linear",
        yscale="log" if wide(theory.isel(largest).values) else "linear",
        legend=False,
    )


def draw_gaps(axes: Axes, result: Judged, names: Sequence[str]) -> None:
    """Draw the relative gaps against size, beside the declared rate.

    Of many observables those with the largest gaps are drawn.
    """
    data = result.dataset
    sizes = data["size"].values.astype(float)
    gaps_of: dict[str, tuple[Array, Array]] = {}
    for name in names:
        theory, mean, error = (data[f"{kind}_{name}"].values.reshape(len(sizes), -1) for kind in ("theory", "mean", "error"))
        finite = np.isfinite(theory).all(axis=0)
        scale = float(np.abs(theory[:, finite]).max()) or 1.0
        gap: Array = np.sqrt(np.mean((mean - theory)[:, finite] ** 2, axis=1)) / scale
        spread = np.sqrt(np.mean(error[:, finite] ** 2, axis=1)) / scale
        if gap.max() >= ROUNDING:
            gaps_of[name] = gap, spread
    largest = sorted(gaps_of, key=lambda name: -gaps_of[name][0].max())[:MOST_GAPS]
    for index, name in enumerate(name for name in gaps_of if name in largest):
        gap, spread = gaps_of[name]
        # side by side, so that the error bars do not cover each other
        shift = sizes * 1.03 ** (index - (len(largest) - 1) / 2)
        simulation_points(axes, shift, gap, np.minimum(spread, 0.9 * gap), index, name.replace("_", " "))
    rate = min(result.law.rates(name)[0] for name in names)
    if math.isfinite(rate) and len(sizes) > 1:
        top = max(axes.get_ylim()[1], 1e-12)
        theory_line(
            axes,
            sizes,
            top * (sizes / sizes[0]) ** -rate,
            6,
            rf"$\mathrm{{size}}^{{-{rate:.2g}}}$",
            linestyle=":",
            linewidth=1.2,
        )
    words = "relative gap" if len(gaps_of) == len(largest) else f"relative gap, {MOST_GAPS} largest"
    finish(axes, size_label(result.law), words, yscale="log", legend=False)
    legend_above(axes)
    size_axis(axes, sizes)


def size_label(law: Law) -> str:
    """Return the label of a size axis, in as many words as fit below a panel.

    >>> from limitlab.laws import SpikedTensor, Staircase
    >>> size_label(SpikedTensor()), size_label(Staircase())
    ('dimension N', 'dimension d')
    """
    main = re.split(r"[;,(]", law.simulation.size_meaning)[0].strip()
    return "\n".join(textwrap.wrap(main, 34))


def size_axis(axes: Axes, sizes: Any, beyond: float | None = None) -> None:
    """Set a logarithmic axis whose ticks are the sizes of the experiments, and infinity if `infinity` is a position."""
    names = [f"{int(size)}" for size in sizes]
    axes.set_xscale("log")
    axes.set_xticks([*sizes, *([] if beyond is None else [beyond])], [*names, *([] if beyond is None else [r"$\infty$"])])
    axes.minorticks_off()
