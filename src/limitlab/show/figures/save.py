"""A figure as bytes: the same figure gives the same bytes, so that a committed picture changes only when it changes."""

from __future__ import annotations

import io
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from limitlab.show.figures.drawn import panels_without_data
from limitlab.show.figures.style import RC

UNDATED: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}


def rendered(figure: Figure, kind: str, dpi: float = RC["savefig.dpi"]) -> bytes:
    """The figure as "svg", "pdf" or "png"; refused where a panel shows no number, which nobody wants to see.

    >>> rendered(Figure(), "png")[1:4]
    b'PNG'
    """
    if empty := panels_without_data(figure):
        raise ValueError(f"the figure has a panel without data: {', '.join(empty)}")
    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": RC["svg.hashsalt"]}):
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=UNDATED[kind])
    return buffer.getvalue()
