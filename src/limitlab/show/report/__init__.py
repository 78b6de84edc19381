"""The report: the ledger, every law with theory against simulation, and the figures, on one self-contained HTML page."""

from limitlab.show.report._write import Summary as Summary
from limitlab.show.report._write import write_report as write_report

__all__ = ["Summary", "write_report"]
