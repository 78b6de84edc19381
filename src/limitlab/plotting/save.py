"""A figure as bytes: the same figure gives the same bytes, so that a committed picture changes only when it changes."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from numpy.typing import NDArray

from limitlab.plotting.drawn import panels_without_data
from limitlab.plotting.style import RC

__all__ = ["rendered"]

Array = NDArray[np.uint8]
UNDATED: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}


def rendered(figure: Figure, kind: str, dpi: float = RC["savefig.dpi"]) -> bytes:
    """The figure as "svg", "pdf" or "png"; refused where a panel shows no number, which nobody wants to see.

    >>> rendered(Figure(), "png")[1:4]
    b'PNG'
    """
    _refuse_empty(figure)
    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": RC["svg.hashsalt"]}):
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=UNDATED[kind])
    return buffer.getvalue()


def pixels(figure: Figure, dpi: float = RC["savefig.dpi"]) -> Array:
    """The figure as an image of bytes, (height, width, 4); refused as in `rendered`. It is laid out and drawn once, where a file needs
    both twice.

    >>> pixels(Figure(figsize=(2, 1)), dpi=50).shape
    (50, 100, 4)
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    _refuse_empty(figure)
    figure.set_dpi(dpi)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())


def _refuse_empty(figure: Figure) -> None:
    if empty := panels_without_data(figure):
        raise ValueError(f"the figure has a panel without data: {', '.join(empty)}")
