"""What is saved beside a figure, and what is never saved: a panel without data."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

from limitlab.lab import compare
from limitlab.lab.figures import all_figures
from limitlab.lab.figures import figure as make_figure
from limitlab.lab.judging import extrapolated, extrapolated_runs
from limitlab.laws import EarlyStopping, Ridge
from limitlab.plotting.output import COLUMNS, panels_without_data, plotted_data, rendered
from limitlab.plotting.style import legend_of_styles, new_figure, simulation_points, theory_line
from limitlab.show.cli import app


def of_kind(figure: Figure, kind: str) -> list[dict[str, object]]:
    return [row for row in plotted_data(figure) if row["kind"] == kind]


# -- the numbers ---------------------------------------------------------------------------------------------------------


def test_lines_and_points_come_back_with_their_error_bars() -> None:
    figure, (axes,) = new_figure()
    theory_line(axes, [1, 2, 3], [0.1, 0.2, 0.3], 0, "limit")
    simulation_points(axes, [1, 3], [0.15, 0.25], [0.05, 0.01], 0, "experiment")
    assert [(row["x"], row["y"], row["label"]) for row in of_kind(figure, "line")] == [
        (1, 0.1, "limit"),
        (2, 0.2, "limit"),
        (3, 0.3, "limit"),
    ]
    points = of_kind(figure, "points")
    assert [row["label"] for row in points] == ["experiment"] * 2
    assert np.allclose(
        [[row[name] for name in ("x", "y", "low", "high")] for row in points], [[1, 0.15, 0.1, 0.2], [3, 0.25, 0.24, 0.26]]
    )
    assert {row["colour"] for row in plotted_data(figure)} == {"#0072b2"}


def test_entries_that_only_the_legend_shows_are_no_data() -> None:
    figure, (axes,) = new_figure()
    legend_of_styles(axes)
    assert panels_without_data(figure) == ["panel 1 ('')"]
    simulation_points(axes, [1.0], [2.0], [0.5])
    assert [(row["x"], row["low"]) for row in plotted_data(figure)] == [(1, 1.5)]


def test_bars_of_two_lengths_and_bars_across() -> None:
    figure, (axes,) = new_figure()
    simulation_points(axes, [1.0], [2.0], [[0.5], [1.0]])
    axes.errorbar([5.0], [6.0], xerr=[0.25])
    assert [(row["low"], row["high"]) for row in of_kind(figure, "points") + of_kind(figure, "line")] == [
        (1.5, 3.0),
        (4.75, 5.25),
    ]


@pytest.mark.parametrize("shading", ["nearest", "gouraud"])
def test_maps_come_back_at_their_grid(shading: str) -> None:
    figure, (axes,) = new_figure()
    x, y, table = np.array([0.0, 1.0, 2.0]), np.array([5.0, 6.0]), np.arange(6.0).reshape(2, 3)
    figure.colorbar(axes.pcolormesh(x, y, table, shading=shading))
    rows = of_kind(figure, "map")
    assert [row["panel"] for row in rows] == [1] * 6  # the colour bar is not a panel
    assert [(row["x"], row["y"], row["value"]) for row in rows] == [
        (a, b, table[i, j]) for i, b in enumerate(y) for j, a in enumerate(x)
    ]


def test_histograms_stairs_bands_and_scatters_come_back() -> None:
    figure, (axes,) = new_figure()
    axes.hist([0.1, 0.2, 0.9], bins=[0.0, 0.5, 1.0])
    axes.stairs([3.0], [0.0, 1.0], baseline=1.0)
    axes.fill_between([0.0, 1.0], [1.0, 2.0], [3.0, 4.0])
    axes.scatter([7.0], [8.0])
    assert [(row["x"], row["y"], row["low"]) for row in of_kind(figure, "bars")] == [(0.25, 2, 0), (0.75, 1, 0), (0.5, 3, 1)]
    assert {(row["x"], row["y"]) for row in of_kind(figure, "outline")} == {(0, 1), (0, 3), (1, 2), (1, 4)}
    assert [(row["x"], row["y"]) for row in of_kind(figure, "points")] == [(7, 8)]


# -- panels without data -------------------------------------------------------------------------------------------------


def test_a_panel_without_data_is_not_saved() -> None:
    figure, (left, right) = new_figure(columns=2)
    left.plot([0, 1], [0, 1])
    right.axhline(1.0)  # a reference is not data,
    right.plot([0, 1], [np.nan, np.inf])  # nor is a gap,
    right.plot([], [], label="key")  # nor a key
    right.set_title("nothing here")
    assert panels_without_data(figure) == ["panel 2 ('nothing here')"]
    with pytest.raises(ValueError, match=r"panel without data: panel 2 \('nothing here'"):
        rendered(figure, "png")
    right.plot([0.5], [0.5], "o")
    assert rendered(figure, "png", dpi=10).startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize("name", all_figures())
def test_every_figure_has_data_in_every_panel(name: str) -> None:
    figure = make_figure(name)
    assert panels_without_data(figure) == []
    assert {"line", "points", "map", "bars"} & {str(row["kind"]) for row in plotted_data(figure)}


# -- what the verdict uses -----------------------------------------------------------------------------------------------


def test_extrapolated_values_are_those_of_the_verdict() -> None:
    result = compare(EarlyStopping(times=(0.1, 1.0, 10.0)), sizes=[20, 40, 80], seeds=20)
    for row in result.rows:
        value, error = extrapolated(result, row.observable)
        theory = result.dataset[f"theory_{row.observable}"].isel(size=-1).values
        worst = int(np.argmin(np.abs(theory - row.theory)))
        assert np.isclose(value[worst] - theory[worst], row.gap, atol=1e-12)
        assert np.isclose(error[worst], row.standard_error + row.finite_size_allowance)


def test_extrapolation_of_runs_is_the_same() -> None:
    law, sizes, draws = Ridge(ratio=0.5, ridge=0.1, noise=0.5), (20, 40, 80), 30
    runs = [law.simulate_batch(size, range(draws)).test_error.values[:, None] for size in sizes]
    by_hand = extrapolated_runs(sizes, runs, float(law.theory().test_error), law.rates("test_error")[0])
    judged = extrapolated(compare(law, sizes, draws), "test_error")
    assert np.allclose(np.ravel(by_hand), judged, rtol=1e-6)


def test_comparisons_draw_what_was_judged() -> None:
    result = compare(Ridge(ratio=0.5, ridge=0.1, noise=0.5), sizes=[20, 40], seeds=10, observables=["test_error"])
    axes = result.plot().axes[0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["20", "40", r"$\infty$"]
    value, _ = extrapolated(result, "test_error")
    drawn = [row for row in plotted_data(axes.figure) if row["label"] == "extrapolated, as judged"]  # type: ignore[arg-type]
    assert [row["y"] for row in drawn] == [float(value)]


# -- the command ---------------------------------------------------------------------------------------------------------


def test_figures_are_saved_in_several_formats_with_their_numbers(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app, ["figure", "spectral-bulks", "--out", str(tmp_path / "x.png"), "--format", "png,svg,pdf"]
    )
    assert result.exit_code == 0, result.output
    assert {file.name for file in tmp_path.iterdir()} == {"x.png", "x.svg", "x.pdf", "x.csv"}
    with (tmp_path / "x.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(COLUMNS)
    assert {"line", "points"} <= {row["kind"] for row in rows}
    assert all(np.isfinite(float(row["x"])) for row in rows)


def test_numbers_can_be_left_out(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["figure", "spectral-bulks", "--out", str(tmp_path / "x.svg"), "--no-data"])
    assert result.exit_code == 0, result.output
    assert [file.name for file in tmp_path.iterdir()] == ["x.svg"]
