"""What a person sees in a terminal of 80 and of 120 columns, from real runs in a pseudo-terminal, and plots in the terminal."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from limitlab._core.registry import all_laws
from limitlab.lab._compare import COLUMNS
from limitlab.lab.figures import describe_figures
from limitlab.plotting.style import finish, new_figure, theory_line
from limitlab.show.cli import PANELS, app
from limitlab.show.cli._app import print_error, status_line, wrapped
from limitlab.show.cli._catalogue import mentions, shorten
from limitlab.show.cli._terminal import curves_of, panel

COMMANDS = (
    ["guide", "--have", "model", "--want", "stop", "--model", "network"],
    ["laws"],
    ["laws", "overfitting"],
    ["show", "ridge"],
    ["predict", "ridge", "--ratio", "0.1:10:8log", "--ridge", "0,0.1"],
    ["predict", "ridge", "--ratio", "0.1:10:50log", "--ridge", "0.01,0.1", "--plot"],
    ["compare", "ridge", "--ratio", "2", "--ridge", "0.1", "--sizes", "20,40,80", "--seeds", "30"],
    ["optimal", "ridge", "--ratio", "2", "--noise", "0.5", "--over", "ridge", "--minimise", "test_error"],
    ["plan", "ridge", "--noise", "0.5", "--target", "test_error=0.4", "--solve-for", "ratio"],
    ["stop", "early-stopping", "--ratio", "0.8", "--noise", "1"],
    ["forecast", "table.csv", "--target", "y", "--no-backtest"],
    ["cite", "ridge"],
    ["notes", "13"],
    ["verify", "J3"],
    [],
)
"""The commands of the README, with small experiments."""
PROGRAM = """
import json, sys
from limitlab.show.cli import app
for command in json.loads(sys.argv[1]):
    print("\\x01", " ".join(command), flush=True)
    try:
        app(command, prog_name="limitlab")
    except SystemExit:
        pass
    sys.stderr.flush()
    sys.stdout.flush()
"""


def shown(folder: Path, width: int | None) -> dict[str, str]:
    """The output of every command, in a pseudo-terminal with so many columns, or in a pipe."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(80, 6))
    table = np.column_stack([inputs, inputs.sum(axis=1) + rng.normal(size=80)])
    names = ",".join([*(f"x{i}" for i in range(6)), "y"])
    np.savetxt(folder / "table.csv", table, delimiter=",", header=names, comments="")
    program = [sys.executable, "-c", PROGRAM, json.dumps(COMMANDS)]
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    if width is None:
        done = subprocess.run(
            program, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, timeout=300
        )
        text = done.stdout.decode()
    else:
        outer, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
        options = dict(cwd=folder, env={**environment, "TERM": "xterm"}, stderr=subprocess.DEVNULL)  # without progress bars
        with subprocess.Popen(program, stdin=inner, stdout=inner, **options) as running:  # type: ignore[call-overload]
            os.close(inner)
            text = received(outer).decode()
        assert running.returncode == 0
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r\n", "\n")
    parts = (part.partition("\n") for part in plain.split("\x01")[1:])
    return {name.strip(): output for name, _, output in parts}


def received(terminal: int) -> bytes:
    """Everything that a program writes into a pseudo-terminal until it ends."""
    pieces = []
    while True:
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:  # Linux reports the end of the other side as an error
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(terminal)
    return b"".join(pieces)


@pytest.fixture(scope="module")
def piped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return shown(tmp_path_factory.mktemp("piped"), None)


@pytest.fixture(scope="module", params=[80, 120])
def screen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict[str, str]]:
    return request.param, shown(tmp_path_factory.mktemp("terminal"), request.param)


def test_no_line_is_wider_than_the_terminal_and_no_name_is_cut(screen: tuple[int, dict[str, str]]) -> None:
    width, outputs = screen
    assert len(outputs) == len(COMMANDS)
    for command, text in outputs.items():
        wide = [line for line in text.split("\n") if len(line) > width]
        assert not wide, (command, wide)
        assert "…" not in text, command
        assert "\\" not in text or command.startswith("cite"), command


def test_no_word_is_broken(screen: tuple[int, dict[str, str]], piped: dict[str, str]) -> None:
    """Every word of the terminal is a word of the same output in a pipe, where no line is broken."""
    marks = ",;:.()"
    for command, text in screen[1].items():
        known = {word.strip(marks) for word in re.findall(r"[^\s│┃]+", piped[command])}
        known |= {"no", "room", "for", "widen", "the", "terminal", "or", "use", "--out", "--json", "default"}
        known |= {part for word in known for part in word.split("_")}  # a name is a title with spaces
        known |= {*all_laws()["Ridge"].outputs(), *COLUMNS}  # the names of columns for which there is no room
        broken = {word for word in re.findall(r"[^\s│┃]+", text) if re.search(r"[A-Za-z]{3}", word)}
        broken = {word.strip(marks) for word in broken} - known
        assert not broken, (command, broken)


def test_laws_are_one_line_each_with_whole_names(screen: tuple[int, dict[str, str]]) -> None:
    lines = screen[1]["laws"].strip().split("\n")
    assert len(lines) <= 90
    for name in all_laws():
        (line,) = (line for line in lines if line.startswith(f"{name} "))
        assert len(line) > len(name) + 10


def test_the_first_line_is_the_answer(screen: tuple[int, dict[str, str]]) -> None:
    first = {command.split(" ")[0]: text.lstrip("\n").split("\n")[0] for command, text in screen[1].items()}
    assert first["compare"].startswith(("agree: ", "underpowered: "))
    assert first["plan"].startswith("ratio = 0.44")
    assert first["optimal"].startswith("ridge = 0.5 minimises test_error: 0.89")
    assert first["stop"].startswith("stop at time 0.8")
    assert first["forecast"].startswith("Now, with 80 rows: ")


def test_verify_prints_one_line_per_claim(screen: tuple[int, dict[str, str]]) -> None:
    lines = screen[1]["verify J3"].strip().split("\n")
    assert re.match(r"pass  J3  \d+ of \d+ criteria +[\d.]+ m?s  The test error", lines[0])
    assert lines[1].startswith("1 pass in ")
    assert len(lines) == 2


def test_the_overview_is_short(screen: tuple[int, dict[str, str]]) -> None:
    lines = screen[1][""].rstrip("\n").split("\n")
    assert len(lines) <= 24
    commands = re.findall(r"limitlab ([a-z]+) ", "\n".join(lines))
    assert len(set(commands)) >= 5
    assert set(commands) - {"computes"} <= {name for names in PANELS.values() for name in names}


# -- one process --------------------------------------------------------------------------------------------------------------


def run(*args: str) -> str:
    result = CliRunner().invoke(app, [*args], env={"COLUMNS": "80", "TERM": "dumb"})
    assert result.exit_code == 0, result.output
    return result.stdout


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_errors_and_notes_are_wrapped_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    words = "the value is not allowed: choose another one, or see /a/very/long/path/of/a/file/that/has/no/blank"
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    print_error(words)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()).splitlines()
    assert " ".join(lines) == f"error: {words}"
    assert [len(line) <= 40 for line in lines] == [True, True, False]
    assert wrapped(words, io.StringIO()) == words


def test_help_is_grouped() -> None:
    text = run("--help")
    places = [text.index(f"─ {heading} ─") for heading in PANELS]
    assert places == sorted(places)
    for command in app.registered_commands:
        assert command.rich_help_panel in PANELS


def test_laws_can_be_filtered() -> None:
    text = run("laws", "spectrum")
    assert "SampleCovariance" in text
    assert "TokenClustering" not in text
    assert "Ridge  " in run("laws", "ridge", "J8")
    nothing = CliRunner().invoke(app, ["laws", "overfiting"])
    assert nothing.exit_code == 2
    assert "no law contains 'overfiting': did you mean" in nothing.stderr


def test_filters_combine_words() -> None:
    law = all_laws()["Ridge"]
    assert mentions(law, "Regression", ["test_error", "noise"])
    assert not mentions(law, "Regression", ["test_error", "transformers"])
    assert shorten("Some words of text", 12) == "Some ..."


def test_the_list_of_figures_has_the_laws() -> None:
    text = run("figure", "--list")
    assert all(f"│ {name} " in text or f"\n{name}\n" in text for name in ("Ridge", "ridge-double-descent"))
    assert len(describe_figures()) > 50


def test_a_law_is_a_figure(tmp_path: Path) -> None:
    file = tmp_path / "view.png"
    run("figure", "equiangular-tokens", "--out", str(file))
    assert file.read_bytes().startswith(b"\x89PNG")
    assert file.with_suffix(".csv").read_text().startswith("panel,")


def test_predict_draws_at_most_two_panels(monkeypatch: pytest.MonkeyPatch) -> None:
    from limitlab.show.cli import _output

    panels: list[int] = []
    monkeypatch.setattr(_output, "save_figure", lambda make, path: panels.append(len(make().axes)))
    run("predict", "ridge", "--ratio", "0.5,1,2", "--plot", "x.png")
    run("predict", "ridge", "--ratio", "0.5,1,2", "--observables", "bias,variance,gcv", "--plot", "x.png")
    run("predict", "ridge", "--plot")
    assert panels[0] <= 2
    assert panels[2] <= 2
    assert panels[1] >= 3  # named observables are all drawn


def test_a_plot_without_a_file_is_drawn_in_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for args in (["--plot"], ["--plot", "--observables", "test_error"]):
        text = run("predict", "ridge", "--ratio", "0.1:10:40log", *args)
        assert sum("\u2800" < character <= "\u28ff" for character in text) > 50
        assert "features per sample" in text
    assert list(tmp_path.iterdir()) == []


def test_a_panel_in_braille_has_the_height_of_its_numbers() -> None:
    """A rising line goes from the lower left to the upper right corner, and a legend names both lines."""
    from limitlab.plotting.output import plotted_data

    figure, (axes,) = new_figure()
    theory_line(axes, [0, 1, 2], [0, 1, 2], 0, r"$\lambda$ $=$ 1")
    theory_line(axes, [0, 1, 2], [2, 2, 2], 1, "constant")
    axes.set_ylim(0, 2)
    finish(axes, "steps $t$", "error $E$")
    rows = plotted_data(figure)
    assert [curve.label for curve in curves_of(rows)] == ["λ = 1", "constant"]
    lines = [line.plain for line in panel(axes, rows, 60, 10)]
    assert lines[0] == "error E"
    assert lines[-1] == "a λ = 1   b constant"
    assert lines[1].startswith("2 │")
    assert lines[10].lstrip().startswith("0 │")
    rising = [re.search(r"[\u2801-\u28ffa]", line.partition("│")[2]) for line in lines[2:11]]
    columns = [match.start() for match in rising if match]
    assert len(columns) == 9
    assert columns == sorted(columns, reverse=True)
    assert columns[-1] == 0
    assert "steps t" in lines[-2]
    assert "b" in lines[1]


def test_progress_without_a_terminal_is_at_most_one_line_per_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    with status_line("working", first=30) as tell:
        for done in range(1, 301):
            tell(f"{done} of 300 parts done", done / 300)
    lines = capsys.readouterr().err.splitlines()
    assert 10 <= len(lines) <= 11
    assert lines[-1].startswith("300 of 300 parts done (")
