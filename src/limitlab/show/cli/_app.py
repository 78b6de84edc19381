"""The Typer application and its errors, which are a line on stderr and an exit code.

Exit code 0 means success. 1 means that a check failed (a comparison without agreement, a failed claim, a target that cannot be reached, a
solver that did not converge). 2 means bad input, and 130 means interrupted. A traceback means a bug in limitlab.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any, Protocol

import typer
from typer.core import TyperGroup

from limitlab._core.cost import duration
from limitlab.errors import UnreachableTarget
from limitlab.lab.progress import PATIENCE


class Tell(Protocol):
    """A function that changes the words of a progress line. `share` is the finished share of the work, if it is known."""

    def __call__(self, words: str, share: float | None = None) -> None: ...


FIRST_LINE, NEXT_LINES = 2.0, 30.0
"""Seconds before the first progress line if there is no terminal, and between further lines."""


@contextmanager
def status_line(
    what: str, patience: float = PATIENCE, counted: bool = False, first: float = FIRST_LINE, every: float = NEXT_LINES
) -> Iterator[Tell]:
    """Show on stderr what a command is doing, and return a function that changes the text.

    On a terminal a spinner appears after a second. Without a terminal, lines are printed at intervals. If the function is called with the
    finished share of the work, a line is printed for every tenth of it instead. If `counted` is true, a terminal shows a bar of finished
    tasks instead of the spinner.

    >>> with status_line("counting") as tell:
    ...     tell("counting rows")
    """
    if not sys.stderr.isatty():
        with _lines(what, first, every) as tell:
            yield tell
        return
    if counted:
        yield lambda words, share=None: None
        return
    from rich.console import Console

    status = Console(stderr=True).status(what)
    lock, over = threading.Lock(), threading.Event()

    def appear() -> None:
        with lock:
            if not over.is_set():
                status.start()

    timer = threading.Timer(patience, appear)
    timer.daemon = True
    timer.start()
    try:

        def tell(words: str, share: float | None = None) -> None:
            status.update(words)

        yield tell
    finally:
        timer.cancel()
        with lock:
            over.set()
            status.stop()


@contextmanager
def _lines(what: str, first: float, every: float) -> Iterator[Tell]:
    """Print a line on stderr after `first` seconds, and then every `every` seconds, or a line for every tenth of the work."""
    texts, over, stream, began = [what], threading.Event(), sys.stderr, time.monotonic()
    tenths: list[int] = []

    def show() -> None:
        print(f"{texts[-1]} ({duration(time.monotonic() - began)} so far)", file=stream, flush=True)

    def watch() -> None:
        pause = first
        while not over.wait(pause):
            pause = every
            if not tenths:
                show()

    def tell(words: str, share: float | None = None) -> None:
        texts.append(words)
        if share is not None and (not tenths or int(10 * share) > tenths[-1]):
            tenths.append(int(10 * share))
            show()

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield tell
    finally:
        over.set()


FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130

NO_INTEGER = "Input should be a valid integer, unable to parse string as an integer"

UsageError: type[Any] = typer.BadParameter.__bases__[0]
"""Base class of command-line errors. It is taken from Typer, which contains a copy of Click."""


class OneLineErrors(TyperGroup):
    """A command group that reports an error as a line and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command line. In standalone mode, end the process with the exit code."""
        try:
            # an overflow at extreme parameters either raises an error with a message or is harmless
            with warnings.catch_warnings(), one_line_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except Exception as error:
            if not expected(error):
                raise
            code = report_error(error)
        if standalone_mode:
            sys.exit(code or 0)
        return code

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, in which `--plot` may be the last one or may be followed by another option."""
        return super().parse_args(ctx, with_plot_file(args))

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Ctrl-C ends it with a line on stderr."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            print_error(f"interrupted: {stop}" if str(stop) else "interrupted")
            raise typer.Exit(INTERRUPTED) from None


IN_TERMINAL = "-"
"""The name of the file of `--plot` that means a plot in the terminal."""


def with_plot_file(args: Sequence[str]) -> list[str]:
    """Return the arguments of a command line in which `--plot` always has a value.

    >>> with_plot_file(["predict", "ridge", "--plot"]), with_plot_file(["--plot", "x.png"])
    (['predict', 'ridge', '--plot', '-'], ['--plot', 'x.png'])
    """
    pairs = zip_longest(args, args[1:], fillvalue="--")
    return [
        part for arg, after in pairs for part in ([arg, IN_TERMINAL] if arg == "--plot" and after[:2] == "--" else [arg])
    ]


def expected(error: Exception) -> bool:
    """Return whether user input or the mathematics can cause this error. Other errors are bugs and keep their traceback."""
    # errors of limitlab, such as a solver that did not converge or a sweep with failed tasks
    ours = isinstance(error, RuntimeError) and type(error).__module__.startswith("limitlab.")
    return ours or isinstance(error, (UsageError, ValueError, OSError, NotImplementedError, FloatingPointError))


def report_error(error: Exception) -> int:
    """Print an expected error with one line per message, and return its exit code."""
    for line in messages(error):
        print_error(line)
    bad_input = isinstance(error, (UsageError, ValueError, OSError, NotImplementedError))
    return BAD_INPUT if bad_input and not isinstance(error, UnreachableTarget) else FAILED


def messages(error: Exception) -> list[str]:
    """Return the messages of an error, one line each.

    >>> messages(ValueError("ratio = 0.0 is not allowed"))
    ['ratio = 0.0 is not allowed']
    >>> messages(FileNotFoundError(2, "No such file or directory", "sweep.toml"))
    ["cannot read or write 'sweep.toml': No such file or directory"]
    """
    if isinstance(error, UsageError):
        context = getattr(error, "ctx", None)
        hint = f" (see {context.command_path} --help)" if context is not None else ""
        message = (
            _one_line(error.format_message()).replace("Value error, ", "").replace(NO_INTEGER, "must be a whole number")
        )
        return [message + hint] if message else []  # a command without arguments prints its help and has no error
    if isinstance(error, OSError) and error.strerror:
        where = f"cannot read or write '{error.filename}': " if error.filename is not None else ""
        return [_one_line(where + error.strerror)]
    errors = getattr(error, "errors", None)  # pydantic's ValidationError contains a list of errors
    if callable(errors):
        return [_one_line(str(item["msg"]).removeprefix("Value error, ")) for item in errors()]
    return [_one_line(line) for line in str(error).splitlines() if line.strip()] or [type(error).__name__]


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Print warnings as one line on stderr, without the source line that issued them."""
    before = warnings.formatwarning
    warnings.formatwarning = lambda message, *further, **named: f"warning: {_one_line(str(message))}\n"
    try:
        yield
    finally:
        warnings.formatwarning = before


def print_error(line: str) -> None:
    """Print an error on stderr."""
    first, *others = wrapped(f"error: {line}", sys.stderr).splitlines()
    typer.secho("error: ", fg="red", bold=True, err=True, nl=False)
    typer.echo("\n".join([first.removeprefix("error: "), *others]), err=True)


def wrapped(text: str, stream: Any = None, indent: str = "") -> str:
    """Return a text with lines that fit on the terminal, broken between words only.

    Without a terminal a line is as long as its sentence, so that other programs can read it. A word that is longer than a line, such as the
    path of a file, remains whole. Lines after the first begin with `indent`.
    """
    stream = sys.stdout if stream is None else stream
    if not stream.isatty():
        return text
    width = shutil.get_terminal_size().columns
    lines = (
        textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) or [""]
        for line in text.split("\n")
    )
    return "\n".join(line for part in lines for line in part)


def say(text: str, indent: str = "", *, err: bool = False, **style: Any) -> None:
    """Print sentences on stdout, or on stderr if `err` is true, with lines that fit on the terminal.

    Further options such as `bold=True` are those of `typer.style`.
    """
    shown = wrapped(text, sys.stderr if err else sys.stdout, indent)
    typer.echo(typer.style(shown, **style) if style else shown, err=err)


def _one_line(text: str) -> str:
    return " ".join(text.split())


app = typer.Typer(
    name="limitlab",
    cls=OneLineErrors,
    help="Predict, simulate and compare the limit laws of learning.",
    epilog="Example: limitlab predict ridge --ratio 0.1:10:60log --ridge 0.001,0.1 --plot double_descent.png",
    no_args_is_help=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=True,
)


@app.callback(invoke_without_command=True)
def version_option(
    ctx: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and stop.", is_eager=True),
    memory: str | None = typer.Option(
        None, "--memory", metavar="SIZE", help="Largest memory of a command, such as 16GB, or none."
    ),
    time: str | None = typer.Option(
        None, "--time", metavar="TIME", help="Largest estimated time of a command, such as 100h, or none."
    ),
) -> None:
    """Predict, simulate and compare the limit laws of learning."""
    if memory is not None or time is not None:
        from limitlab._core.cost import limits

        ctx.with_resource(limits(memory=memory, time=time))
    if version:
        from importlib.metadata import version as installed

        typer.echo(f"limitlab {installed('limitlab')}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        say(OVERVIEW)


OVERVIEW = """limitlab computes what learning systems do in the limit of large size,
and tests it by simulation.

My data    limitlab forecast DATA.csv --target COLUMN
           Would more data help?
A law      limitlab predict ridge --plot
           What does the theory predict? (a plot in the terminal)
Check      limitlab compare ridge
           Do theory and simulation agree?
See        limitlab report
           All laws in pictures, on one page.
Teach      limitlab explore ridge
           A law with sliders, in the browser.

`limitlab guide` asks three questions and recommends a command.
`limitlab laws` lists the laws, and `limitlab laws overfitting` those about a word.
`limitlab --help` lists all commands."""
"""The text of `limitlab` without a command, in lines of at most 80 characters."""
