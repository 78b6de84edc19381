"""From the text of an option to the values of a parameter."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from limitlab._core.about import allowed, kind_of
from limitlab._core.registry import law_id
from limitlab.laws import Law, NearestNeighbours, Ridge, parameter
from limitlab.show.cli import app
from limitlab.show.cli._catalogue import describe_law, example
from limitlab.show.cli._law import read_law, read_numbers, read_sizes, read_values, split_options
from limitlab.show.cli._output import kebab


class Everything(Law):
    """Does every kind of parameter have an option?"""

    observables = ("test_error",)

    slope: float = parameter(1.0, "a number", symbol=r"\alpha", above=0, infinite=True, scale="log")
    number: int = parameter(3, "a whole number", least=1)
    smooth: bool = parameter(True, "a truth")
    shape: Literal["round", "flat"] = parameter("round", "a name")
    times: float | tuple[float, ...] = parameter(1.0, "one number or several", least=0)
    levels: tuple[float, ...] = parameter((1.0, 2.0), "a list")


@pytest.mark.parametrize(
    ("annotation", "kind"),
    [
        (float, "number"),
        (float | None, "number"),
        (Annotated[float, "metres"], "number"),
        (int, "whole"),
        (bool, "truth"),
        (str, "name"),
        (Literal["a", "b"], "name"),
        (tuple[float, ...], "sequence"),
        (list[float] | None, "sequence"),
        (float | tuple[float, ...], "series"),
    ],
)
def test_kind_follows_from_the_type(annotation: object, kind: str) -> None:
    assert kind_of(annotation) == kind


@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        ("slope", "2", [2.0]),
        ("slope", "inf", [math.inf]),
        ("slope", "-1e-3", [-1e-3]),
        ("slope", "0,0.1", [0.0, 0.1]),
        ("slope", "0.1:10:3log", [0.1, 1.0, 10.0]),
        ("slope", "0,1:2:2", [0.0, 1.0, 2.0]),
        ("slope", "abc", ["abc"]),
        ("number", "7", [7]),
        ("number", "1e2", [100]),
        ("number", "2.5", [2.5]),
        ("number", "10:1000:4log", [10, 46, 215, 1000]),
        ("number", "1:2:5", [1, 2]),
        ("smooth", "no", [False]),
        ("smooth", "true,false", [True, False]),
        ("smooth", "perhaps", ["perhaps"]),
        ("shape", "flat", ["flat"]),
        ("shape", "flat, round", ["flat", "round"]),
        ("times", "2", [2.0]),
        ("times", "1,2", [(1.0, 2.0)]),
        ("times", "0:1:3", [(0.0, 0.5, 1.0)]),
        ("levels", "3", [(3.0,)]),
        ("levels", "1,2;3,4", [(1.0, 2.0), (3.0, 4.0)]),
        ("levels", "[1, 2]", [[1, 2]]),
    ],
)
def test_values_of_a_text(name: str, text: str, values: list[object]) -> None:
    found = read_values(Everything, name, text)
    assert found == pytest.approx(values) if name == "slope" and ":" in text else found == values
    assert [type(value) for value in found] == [type(value) for value in values]


def test_values_become_the_law_and_the_sweep() -> None:
    asked = read_law(Everything, ["--slope", "0.5,2", "--number=5", "--levels", "1,4", "--shape", "flat"])
    assert asked.law == Everything(slope=0.5, number=5, levels=(1.0, 4.0), shape="flat")
    assert asked.over == {"slope": [0.5, 2.0]}


def test_kebab_and_snake_are_the_same() -> None:
    class Wide(Law):
        """Wide?"""

        width_ratio: float = parameter(1.0, "features per input")

    assert read_law(Wide, ["--width-ratio", "3"]).law == read_law(Wide, ["--width_ratio", "3"]).law == Wide(width_ratio=3.0)
    assert kebab("width_ratio") == "width-ratio"


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=6))
def test_numbers_survive_being_typed(values: list[float]) -> None:
    text = ",".join(map(repr, values))
    assert read_numbers("slope", text) == values


@given(st.floats(1e-3, 1e3), st.floats(1.001, 1e3), st.integers(2, 50))
def test_geometric_range(start: float, factor: float, count: int) -> None:
    values = np.array(read_numbers("slope", f"{start!r}:{start * factor!r}:{count}log"))
    assert len(values) == count
    assert values[[0, -1]] == pytest.approx([start, start * factor])
    assert np.diff(np.log(values)) == pytest.approx(math.log(factor) / (count - 1), abs=1e-9)


@pytest.mark.parametrize(
    ("extras", "words"),
    [
        (["--slop", "2"], "did you mean 'slope'"),
        (["--sed", "2"], "did you mean 'seed'"),
        (["--slope"], "--slope needs a value"),
        (["--slope", "--number", "2"], "--slope needs a value"),
        (["--slope", ""], "--slope needs a value"),
        (["--slope", "1", "--slope", "2"], "--slope is given twice"),
        (["slope", "2"], "unexpected argument 'slope'"),
        (["--slope", "0"], "slope = 0.0 is not allowed: must be above 0"),
        (["--slope", "1,-1"], "slope = -1.0 is not allowed: must be above 0"),
        (["--slope", "nan"], "slope = nan is not allowed"),
        (["--slope", "1:2"], "write start:stop:count"),
        (["--slope", "1:2:1000000000"], "the number of points"),
        (["--slope", "-1:2:3log"], "two ends of the same sign"),
        (["--number", "2.5"], "number = 2.5 is not allowed"),
        (["--smooth", "perhaps"], "smooth = 'perhaps' is not allowed"),
        (["--shape", "square"], "shape = 'square' is not allowed"),
        (["--levels", "1,x"], "levels = (1.0, 'x') is not allowed"),
        (["--levels", "[1, "], "not valid JSON"),
    ],
)
def test_bad_options_are_refused_in_words(extras: list[str], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        read_law(Everything, extras, ["--seed", "--out"])


def test_negative_numbers_are_values_not_options() -> None:
    assert split_options(["--ridge", "-0.5"]) == [("--ridge", "-0.5")]


def test_sizes_are_whole_numbers() -> None:
    assert read_sizes("size", "50,100:200:2") == [50, 100, 200]
    with pytest.raises(ValueError, match=r"'x' is not a whole number"):
        read_sizes("size", "50,x")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("slope", "above 0, inf allowed"),
        ("number", "whole, at least 1"),
        ("smooth", "yes or no"),
        ("shape", "round or flat"),
        ("times", "one or several, at least 0"),
        ("levels", "a list, each any finite number"),
    ],
)
def test_what_is_allowed_in_words(name: str, words: str) -> None:
    assert allowed(Everything, name) == words


@pytest.mark.parametrize("law", [Everything, Ridge, NearestNeighbours])
def test_the_example_of_a_law_is_a_command_that_works(law: type[Law]) -> None:
    words = example(law).split()
    assert words[:3] == ["limitlab", "predict", law_id(law)]
    asked = read_law(law, words[3:])
    assert len(next(iter(asked.over.values()))) > 2


def test_description_names_every_parameter() -> None:
    described = describe_law(Everything)
    assert [entry["name"] for entry in described["parameters"]] == list(Everything.model_fields)


def test_a_prediction_on_a_grid_validates_the_law_at_most_four_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """The 50 ratios are checked as an array; the law itself is made at its parameters and at the corners of the grid."""
    made: list[Law] = []
    initialise = Ridge.__init__

    def counted(self: Law, **parameters: Any) -> None:
        made.append(self)
        initialise(self, **parameters)

    monkeypatch.setattr(Ridge, "__init__", counted)
    result = CliRunner().invoke(app, ["predict", "ridge", "--ratio", "0.1:10:50log"])
    assert result.exit_code == 0
    assert 1 <= len(made) <= 4


def test_values_beyond_the_bounds_are_refused_one_by_one() -> None:
    with pytest.raises(ValueError, match=r"ratio = -1\.0 is not allowed: must be above 0"):
        read_law(Ridge, ["--ratio", "0.5,-1"])
