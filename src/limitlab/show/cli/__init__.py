"""The command line, with one module per group of commands.

Commands import laws and matplotlib when they run, so that `limitlab --help` is fast.
"""

from importlib import import_module

from limitlab.show.cli._app import app

GROUPS = ("_catalogue", "_running", "_data", "_showing", "_new_law")
"""The modules of the commands, in the order of the help page."""

for _name in GROUPS:
    import_module(f"limitlab.show.cli.{_name}")


def main() -> None:
    """Run the command line. This is the entry point of the console script `limitlab`."""
    app(prog_name="limitlab")
