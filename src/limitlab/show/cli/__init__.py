"""The command line. One module per group of commands.

What a command needs beyond its options (laws, matplotlib) is imported when the command runs, so that `limitlab --help` answers at once.
"""

from importlib import import_module

from limitlab.show.cli._app import app

GROUPS = ("_catalogue", "_running", "_sweeping", "_planning", "_data", "_showing", "_new_law", "_bench")
"""The modules of the commands, in the order of the help page."""

for _name in GROUPS:
    import_module(f"limitlab.show.cli.{_name}")


def main() -> None:
    """Entry point of the console script `limitlab`."""
    app(prog_name="limitlab")
