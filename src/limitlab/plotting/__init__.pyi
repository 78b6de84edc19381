# Written by `python -m limitlab._core.index`; do not edit.
"""Figure style, lines for predictions, points with error bars for draws, saving, and plotted data."""

from .style import COLOURS as COLOURS
from .headline import HeadlineView as HeadlineView
from .along import along as along
from .style import best_line as best_line
from .style import finish as finish
from .headline import headline_view as headline_view
from .style import mean_and_error as mean_and_error
from .style import new_figure as new_figure
from .output import plotted_data as plotted_data
from .style import readable_ticks as readable_ticks
from .output import rendered as rendered
from .style import simulation_points as simulation_points
from .style import theory_line as theory_line

__all__ = [
    "COLOURS",
    "HeadlineView",
    "along",
    "best_line",
    "finish",
    "headline_view",
    "mean_and_error",
    "new_figure",
    "plotted_data",
    "readable_ticks",
    "rendered",
    "simulation_points",
    "theory_line",
]
