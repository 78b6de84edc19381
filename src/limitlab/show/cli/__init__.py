"""The command line: laws, show, cite, predict, simulate, compare, sweep, plan, optimal, stop, sample-size, forecast, scaling-fit, verify,
figure, report, bench.

One file per group of commands. What a command needs beyond its options (laws, matplotlib) is imported when it runs, so that
`limitlab --help` answers at once.
"""

from limitlab.show.cli import catalogue, running, sweeping, planning, stopping, study, forecasting, scaling, ledger, showing  # isort: skip  (the order of the help page)
from limitlab.show.cli import bench  # isort: skip
from limitlab.show.cli.app import app as app

__all__ = [
    "app",
    "bench",
    "catalogue",
    "forecasting",
    "ledger",
    "main",
    "planning",
    "running",
    "scaling",
    "showing",
    "stopping",
    "study",
    "sweeping",
]


def main() -> None:
    """Entry point of the console script `limitlab`."""
    app(prog_name="limitlab")
