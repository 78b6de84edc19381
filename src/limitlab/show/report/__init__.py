"""The report, a self-contained HTML page with claims, comparisons of theory and simulation, and figures."""

from limitlab.show.report._write import Summary as Summary
from limitlab.show.report._write import write_report as write_report

__all__ = ["Summary", "write_report"]
