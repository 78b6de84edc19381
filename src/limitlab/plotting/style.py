"""The style of all figures, with predictions as lines, and simulations as points with error bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from limitlab._core.arguments import explained
from limitlab._core.draws import mean_and_error

__all__ = [
    "COLOURS",
    "best_line",
    "finish",
    "mean_and_error",
    "new_figure",
    "readable_ticks",
    "simulation_points",
    "theory_line",
]

# Okabe and Ito's palette, whose colours are distinguishable with every common form of colour blindness.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
BETWEEN, FINE = 8, 250
"""The largest number of steps between two grid points of a map, and the approximate number along a whole side."""

RC: dict[str, Any] = {
    "font.size": 13,
    "axes.labelsize": 14,
    "axes.titlesize": 14,
    "legend.fontsize": 11,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "lines.linewidth": 2.0,
    "lines.markersize": 6,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 150,
    "svg.hashsalt": "limitlab",
}


@explained
def new_figure(
    columns: int = 1, rows: int = 1, width: float = 6.4, height: float = 4.4, margins: dict[str, float] | None = None
) -> tuple[Figure, Sequence[Axes]]:
    """Return a figure with `rows * columns` axes in the style of limitlab. No pyplot is used, so no figure needs closing.

    `margins` are those of a grid of matplotlib. Without them every text is measured, which takes as long as drawing.
    """
    style: dict[Any, Any] = {**RC, "figure.constrained_layout.use": margins is None}
    with rc_context(style):
        figure = Figure(figsize=(width * columns, height * rows))
        axes = figure.subplots(rows, columns, squeeze=False, gridspec_kw=margins)
    return figure, list(axes.flat)


@explained
def theory_line(axes: Axes, x: ArrayLike, y: ArrayLike, index: int = 0, label: str | None = None, **options: Any) -> None:
    """Draw a prediction as a line in the colour of its index."""
    options.setdefault("linewidth", RC["lines.linewidth"])
    axes.plot(np.asarray(x), np.asarray(y), color=COLOURS[index % len(COLOURS)], label=label, **options)


@explained
def simulation_points(
    axes: Axes,
    x: ArrayLike,
    y: ArrayLike,
    error: ArrayLike | None = None,
    index: int = 0,
    label: str | None = None,
    **options: Any,
) -> None:
    """Draw an experiment as points with error bars (one standard error) in the colour of their index."""
    axes.errorbar(
        np.asarray(x),
        np.asarray(y),
        yerr=None if error is None else np.asarray(error),
        fmt=options.pop("fmt", MARKERS[index % len(MARKERS)]),
        color=COLOURS[index % len(COLOURS)],
        markerfacecolor="white",
        markeredgewidth=1.5,
        capsize=2.5,
        label=label,
        **options,
    )


def legend_of_styles(axes: Axes, line: str | None = "limit", points: str | None = "experiment") -> None:
    """Add grey entries to the legend that explain the lines and points of every colour.

    Call this function before `finish`.
    """
    if line is not None:
        axes.plot([], [], color="0.4", linewidth=RC["lines.linewidth"], label=line)
    if points is not None:
        axes.errorbar(
            [], [], yerr=[], fmt="o", color="0.4", markerfacecolor="white", markeredgewidth=1.5, capsize=2.5, label=points
        )


def value_map(axes: Axes, x: ArrayLike, y: ArrayLike, values: ArrayLike, **options: Any) -> QuadMesh:
    """Draw a map whose values, not whose colours, are interpolated between the grid points.

    Halfway between grid points with the values 0 and 1 the map has the colour of 1/2.

    >>> mesh = value_map(Figure().subplots(), [0, 1], [0, 1, 2], [[0, 1], [0, 1], [0, 1]], vmin=0, vmax=1)
    >>> mesh.get_array().shape[1] > 2, mesh.grid_values.shape
    (True, (3, 2))
    """
    table = np.asarray(values, dtype=float)
    rows, columns = (np.linspace(0, size - 1, min(BETWEEN, -(-FINE // size)) * (size - 1) + 1) for size in table.shape)
    fine = np.array([np.interp(columns, np.arange(table.shape[1]), row) for row in table])
    fine = np.array([np.interp(rows, np.arange(table.shape[0]), column) for column in fine.T]).T
    mesh = axes.pcolormesh(_between(columns, x), _between(rows, y), fine, shading="gouraud", rasterized=True, **options)
    # the plotted data are the values on the grid, not the interpolated ones
    mesh.grid_x, mesh.grid_y, mesh.grid_values = np.asarray(x), np.asarray(y), table  # type: ignore[attr-defined]
    axes.grid(False)
    return mesh


def _between(steps: NDArray[np.float64], grid: ArrayLike) -> NDArray[np.float64]:
    """Return positions between grid points, evenly spaced in the logarithm if the grid points are."""
    points = np.asarray(grid, dtype=float)
    if points.min() > 0 and np.allclose(
        np.diff(np.log(points)), np.log(points[-1] / points[0]) / (points.size - 1), rtol=0.1
    ):
        return np.exp(np.interp(steps, np.arange(points.size), np.log(points)))
    return np.interp(steps, np.arange(points.size), points)


@explained
def finish(
    axes: Axes, x_label: str | None = None, y_label: str | None = None, title: str = "", legend: bool = True, **options: Any
) -> None:
    r"""Set axis labels, title and scales of a panel, choose readable ticks and add a legend.

    Parameters
    ----------
    axes
        The panel.
    x_label, y_label
        Labels with symbols. Without a label the panel keeps its present label, for example that of `along`.
    title
        The title of the panel.
    legend
        Whether to add a legend if some lines or points have a label.
    options
        Any setters of the axes, such as `xscale="log"` and `ylim=(0, 1)`.

    Examples
    --------
    >>> figure, (axes,) = new_figure()
    >>> finish(axes, r"noise $\tau$", "excess risk $R$", xscale="log")
    >>> axes.get_xlabel(), axes.get_xscale()
    ('noise $\\tau$', 'log')
    """
    labels = {name: text for name, text in (("xlabel", x_label), ("ylabel", y_label)) if text is not None}
    axes.set(title=title, **labels, **options)
    readable_ticks(axes)
    if legend and axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=RC["legend.fontsize"], frameon=False)


@explained
def readable_ticks(axes: Axes) -> None:
    """Use plain numbers on logarithmic axes that cover less than a few decades."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        if axis.get_scale() == "log" and high / low < 120:
            steps = (1.0, 2.0, 3.0, 5.0, 7.0) if high / low < 12 else (1.0, 2.0, 5.0)
            axis.set_major_locator(MaxNLocator(5) if high / low < 3 else LogLocator(subs=steps))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_locator(NullLocator())  # its labels would appear between ticks that a figure sets itself


@explained
def best_line(axes: Axes, law: Any, label: str = "best possible", less: float = 0.0, **grid: ArrayLike) -> None:
    """Draw the least error of any method with the data of a law that has `gap_to_best`.

    Without `grid` it is a horizontal line, otherwise a line over the values of one parameter.

    `less` is subtracted from the error. The square of the noise changes test errors into excess risks.
    """
    least_error = law.gap_to_best(**grid).best_error - less
    if grid:
        axes.plot(next(iter(grid.values())), least_error, color="0.25", linewidth=1.6, linestyle="-.", label=label)
    else:
        axes.axhline(float(least_error), color="0.25", linewidth=1.6, linestyle="-.", label=label)
