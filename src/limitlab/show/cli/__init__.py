"""The command line: guide, laws, show, cite, predict, simulate, compare, sweep, reproduce, plan, optimal, stop, sample-size,
forecast, scaling-fit, verify, figure, report, explore, bench.

One file per group of commands. What a command needs beyond its options (laws, matplotlib) is imported when it runs, so that
`limitlab --help` answers at once.
"""

from limitlab.show.cli import guide  # isort: skip  (first on the help page)
from limitlab.show.cli import catalogue, running, sweeping, reproducing, planning, stopping  # isort: skip  (the order of the help page)
from limitlab.show.cli import study, forecasting, scaling, ledger, showing, exploring, bench  # isort: skip
from limitlab.show.cli.app import app as app

__all__ = [
    "app",
    "bench",
    "catalogue",
    "exploring",
    "forecasting",
    "guide",
    "ledger",
    "main",
    "planning",
    "reproducing",
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
