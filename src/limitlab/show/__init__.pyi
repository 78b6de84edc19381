# Written by `python -m limitlab._core.index`; do not edit.
"""The command line, the report and the explorer."""

from .report import Summary as Summary
from .explorer import explore as explore
from .explorer import serve as serve
from .explorer.static import write_pages as write_pages
from .report import write_report as write_report

__all__ = [
    "Summary",
    "explore",
    "serve",
    "write_pages",
    "write_report",
]
