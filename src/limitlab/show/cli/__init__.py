"""The command line, with one module per group of commands.

Commands import laws and matplotlib when they run, so that `limitlab --help` is fast.
"""

from importlib import import_module

from limitlab.show.cli._app import app

GROUPS = ("_catalogue", "_running", "_data", "_showing", "_new_law")
"""The modules of the commands."""

PANELS = {
    "Your data": ("forecast", "stop", "sample-size", "components", "scaling-fit"),
    "Laws": ("guide", "laws", "show", "predict", "simulate", "sweep", "plan", "optimal", "cite", "notes", "new-law"),
    "Check": ("compare", "verify", "reproduce", "bench"),
    "Show": ("figure", "report", "explore"),
}
"""The commands in the order of the help page, by heading."""

for _name in GROUPS:
    import_module(f"limitlab.show.cli.{_name}")

_commands = {str(_info.name or getattr(_info.callback, "__name__", "")): _info for _info in app.registered_commands}
app.registered_commands = [_commands[_name] for _names in PANELS.values() for _name in _names]
for _heading, _names in PANELS.items():
    for _name in _names:
        _commands[_name].rich_help_panel = _heading


def main() -> None:
    """Run the command line. This is the entry point of the console script `limitlab`."""
    app(prog_name="limitlab")
