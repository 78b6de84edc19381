"""The command line: guide, laws, show, cite, predict, simulate, compare, sweep, reproduce, plan, optimal, stop, sample-size,
forecast, scaling-fit, verify, figure, report, explore, bench.

One file per group of commands. What a command needs beyond its options (laws, matplotlib) is imported when it runs, so that
`limitlab --help` answers at once.
"""

from limitlab.show.cli import guide as guide  # isort: skip  (first on the help page)
from limitlab.show.cli import catalogue as catalogue  # isort: skip
from limitlab.show.cli import running as running  # isort: skip
from limitlab.show.cli import sweeping as sweeping  # isort: skip
from limitlab.show.cli import reproducing as reproducing  # isort: skip
from limitlab.show.cli import planning as planning  # isort: skip
from limitlab.show.cli import stopping as stopping  # isort: skip
from limitlab.show.cli import study as study  # isort: skip
from limitlab.show.cli import forecasting as forecasting  # isort: skip
from limitlab.show.cli import scaling as scaling  # isort: skip
from limitlab.show.cli import ledger as ledger  # isort: skip
from limitlab.show.cli import showing as showing  # isort: skip
from limitlab.show.cli import exploring as exploring  # isort: skip
from limitlab.show.cli import bench as bench  # isort: skip
from limitlab.show.cli.app import app as app


def main() -> None:
    """Entry point of the console script `limitlab`."""
    app(prog_name="limitlab")
