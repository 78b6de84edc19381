"""Figure style, lines for predictions, points with error bars for draws, saving, and plotted data."""

from limitlab._core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
