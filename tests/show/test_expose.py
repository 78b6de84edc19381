"""Commands that are made from functions: what follows from the signature and the docstring."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from limitlab import applied
from limitlab._core.page import Page
from limitlab.applied.forecast._later import forecast_command
from limitlab.show.cli import _data, app
from limitlab.show.cli._expose import Option, Shown, _command, parameter_texts, plain

SERVICES = {"sample-size": applied.sample_size, "forecast": forecast_command, "scaling-fit": applied.scaling_study}


def options(name: str) -> dict[str, object]:
    """The options and arguments of a command, by the parameter that they set."""
    group = get_command(app)
    context = group.commands[name].make_context(name, ["--help"], resilient_parsing=True)  # type: ignore[attr-defined]
    return {parameter.name: parameter for parameter in context.command.params}


@pytest.mark.parametrize("name", SERVICES)
def test_every_parameter_is_an_option_with_its_default_and_its_help(name: str) -> None:
    function, made = SERVICES[name], options(name)
    texts = parameter_texts(function)
    for key, parameter in inspect.signature(function).parameters.items():
        if key in ("seconds", "progress"):
            assert key not in made
            continue
        assert made[key].help == texts[key]  # type: ignore[attr-defined]
        if parameter.default is inspect.Parameter.empty:
            assert made[key].required  # type: ignore[attr-defined]
        else:
            assert made[key].default == parameter.default  # type: ignore[attr-defined]
    assert {"as_json", "out", "plot"} <= set(made)


def test_types_that_a_command_line_cannot_give_are_refused() -> None:
    assert plain(str | Path) is Path
    assert plain(Literal["a", "b"]) == Literal["a", "b"]
    with pytest.raises(TypeError, match="add an Option with `read`"):
        plain(dict[str, int])


def test_a_text_is_read_and_bad_paths_are_refused_before_the_work(tmp_path: Path) -> None:
    seen = []

    def work(numbers: list[float], fast: bool = True) -> list[float]:
        """Add.

        Parameters
        ----------
        numbers
            Numbers, such as 1,2.
        fast
            Whether to hurry.
        """
        seen.append((numbers, fast))
        return numbers

    def show(result: list[float]) -> Shown:
        """Add numbers."""
        return Shown(Page("sum", data=sum(result)), [{"sum": sum(result)}], lambda: None)  # type: ignore[arg-type, return-value]

    read = {"numbers": Option("NUMBERS", read=lambda text: [float(part) for part in text.split(",")])}
    own = typer.Typer()
    own.command()(_command(work, show, "adding", read, (), tables=True))
    done = CliRunner().invoke(own, ["1,2", "--no-fast", "--json", "--out", str(tmp_path / "sum.csv")])
    assert done.exit_code == 0, done.output
    assert seen == [([1.0, 2.0], False)]
    assert done.stdout.strip() == "3.0"
    assert (tmp_path / "sum.csv").read_text() == "sum\n3.0\n"
    refused = CliRunner().invoke(own, ["1,2", "--out", str(tmp_path / "sum.nc")])
    assert isinstance(refused.exception, ValueError)
    assert len(seen) == 1


def test_the_list_of_commands_imports_no_tool() -> None:
    program = (
        "import sys; from typer.testing import CliRunner; from limitlab.show.cli import app; "
        "code = CliRunner().invoke(app, ['--help']).exit_code; "
        "print(code, [name for name in ('sklearn', 'xarray', 'scipy', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "0 []"


def test_readers_of_options() -> None:
    assert _data.read_ridge("best") == "best"
    with pytest.raises(ValueError, match=r"--ridge .* is not allowed"):
        _data.read_ridge("0.1,0.2")
    with pytest.raises(ValueError, match="--n: "):
        _data.read_counts("5:1")
