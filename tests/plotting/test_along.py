"""Predictions as lines and draws as points along a parameter: the numbers, the number of calls, labels and refusals."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

from limitlab._core.law import Law
from limitlab.laws import EarlyStopping, LinearNetwork, ModelCollapse, Ridge, RidgeScaling
from limitlab.plotting import COLOURS, along, finish, mean_and_error, new_figure, plotted_data
from limitlab.plotting.along import draws_along, predictions_along


def drawn(axes: Axes, kind: str) -> np.ndarray:
    """The vertices of a kind on the panel, as rows (x, y, low, high)."""
    rows = [row for row in plotted_data(axes.get_figure(root=True)) if row["kind"] == kind]  # type: ignore[arg-type]
    return np.array([[row[name] if row[name] != "" else np.nan for name in ("x", "y", "low", "high")] for row in rows])


def count_calls(monkeypatch: pytest.MonkeyPatch, law: type[Law]) -> Counter[str]:
    """Count how often a law evaluates its prediction and its experiment."""
    calls: Counter[str] = Counter()

    def counted(name: str) -> None:
        original = getattr(law, name)

        def method(*arguments: Any, **options: Any) -> Any:
            calls[name] += 1
            return original(*arguments, **options)

        monkeypatch.setattr(law, name, method)

    for name in ("evaluate", "experiment"):
        counted(name)
    return calls


# -- numbers -------------------------------------------------------------------------------------------------------------


def test_a_line_and_points_with_their_standard_errors() -> None:
    law, grid, few = RidgeScaling(latent_dimension=40), np.geomspace(5, 20, 4), [6, 12]
    _, (axes,) = new_figure()
    along(axes, law, "samples", "excess_risk", grid, few, size=int, seeds=3)
    expected = [float(law.replace(samples=n).theory().excess_risk) for n in grid]
    np.testing.assert_allclose(drawn(axes, "line")[:, :2], np.column_stack([grid, expected]), rtol=1e-12)
    runs = [[float(law.replace(samples=n).simulate(n, seed).excess_risk) for n in few] for seed in range(3)]
    mean, error = mean_and_error(runs)
    np.testing.assert_allclose(drawn(axes, "points"), np.column_stack([few, mean, mean - error, mean + error]), rtol=1e-12)


def test_the_standard_error_divides_by_the_number_of_draws_minus_one() -> None:
    mean, error = mean_and_error([[1.0, 2.0], [3.0, 2.0], [5.0, 2.0]])
    np.testing.assert_allclose(mean, [3, 2])
    np.testing.assert_allclose(error, [2 / np.sqrt(3), 0])
    np.testing.assert_allclose(mean_and_error(np.ones((2, 5)), axis=1), [[1, 1], [0, 0]])


def test_a_prediction_is_evaluated_once_and_a_draw_serves_all_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count_calls(monkeypatch, Ridge)
    _, (axes,) = new_figure()
    along(axes, Ridge(), "ridge", ("bias", "variance"), np.geomspace(0.1, 1, 30), (0.1, 0.2, 0.4), size=20, seeds=4)
    assert calls == {"evaluate": 1, "experiment": 4}


def test_a_size_that_depends_on_the_value_makes_a_draw_for_every_value(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count_calls(monkeypatch, Ridge)
    draws = draws_along(Ridge(ridge=0.1), "ratio", (0.5, 2.0), lambda ratio: round(10 * ratio), seeds=3)
    assert calls == {"experiment": 6}
    assert draws["bias"].shape == (3, 2)
    expected = Ridge(ratio=2.0, ridge=0.1).simulate(20, 2).bias
    assert draws["bias"][2, 1] == float(expected)


def test_a_coordinate_of_the_law() -> None:
    law, times = EarlyStopping(noise=0.4), (0.5, 1.0, 4.0)
    np.testing.assert_array_equal(predictions_along(law, "times", times)["bias"], law.replace(times=times).theory().bias)
    draws = draws_along(law, "times", times, 20, seeds=[5])
    np.testing.assert_array_equal(draws["bias"][0], law.replace(times=times).simulate(20, 5).bias)


def test_a_coordinate_comes_before_the_dimensions_of_an_observable() -> None:
    law = LinearNetwork(singular_values=(2.0, 1.0))
    assert predictions_along(law, "times", (0.1, 0.2, 0.3))["modes"].shape == (3, 2)
    assert draws_along(law, "times", (0.1, 0.2, 0.3), 30, seeds=4)["modes"].shape == (4, 3, 2)


def test_values_on_the_axis_that_are_not_the_parameter() -> None:
    _, (axes,) = new_figure()
    samples, law = np.array([0.5, 1.0, 2.0]), Ridge(ridge=0.3)
    along(axes, law, lambda n: {"ratio": 1 / n, "noise": n}, "test_error", samples, transform=lambda error: 10 * error)
    np.testing.assert_allclose(drawn(axes, "line")[:, 1], 10 * law.evaluate(ratio=1 / samples, noise=samples)["test_error"])
    assert axes.get_xlabel() == ""
    assert axes.get_ylabel() == r"test error $E_{\mathrm{test}}$"


def test_the_size_of_the_experiments_on_the_axis() -> None:
    _, (axes,) = new_figure()
    along(axes, Ridge(), "size", "bias", (), (10, 20), seeds=2)
    runs = [[float(Ridge().simulate(size, seed).bias) for size in (10, 20)] for seed in (0, 1)]
    np.testing.assert_allclose(drawn(axes, "points")[:, 1], np.mean(runs, axis=0))


def test_a_single_draw_has_no_error_bar() -> None:
    _, (axes,) = new_figure()
    along(axes, Ridge(), "ridge", "bias", (), (0.1, 1.0), size=20, seeds=1)
    assert np.isnan(drawn(axes, "points")[:, 2:]).all()


# -- panels, colours, labels ---------------------------------------------------------------------------------------------


def test_labels_and_scale_come_from_the_declarations_and_the_values() -> None:
    _, (axes,) = new_figure()
    along(axes, Ridge(), "ratio", "excess_risk", np.geomspace(0.1, 10, 20), label="limit")
    finish(axes, title="kept")
    assert (axes.get_xlabel(), axes.get_ylabel()) == (r"features per sample $\gamma = p/n$", "excess risk $R$")
    assert axes.get_xscale() == "log"
    assert axes.get_title() == "kept"
    finish(axes, "mine", xscale="linear")
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_xscale()) == ("mine", "excess risk $R$", "linear")
    along(axes, ModelCollapse(), "generations", "excess_risk", (1, 2, 3))
    assert axes.get_xlabel() == "generation $g$"


def test_every_observable_of_a_panel_has_a_colour_and_a_label() -> None:
    _, (axes,) = new_figure()
    along(axes, Ridge(), "ridge", {"bias": "first", "variance": "second"}, (0.1, 1.0), (0.5,), size=10, seeds=2, index=1)
    assert [(line.get_label(), line.get_color()) for line in axes.lines if len(np.atleast_1d(line.get_xdata())) == 2] == [
        ("first", COLOURS[1]),
        ("second", COLOURS[2]),
    ]
    assert axes.get_legend_handles_labels()[1] == ["first", "second"]
    assert axes.get_ylabel() == ""


def test_every_law_has_a_colour_and_every_observable_a_panel() -> None:
    _, panels = new_figure(columns=2)
    laws = {"a": Ridge(noise=0.1), "b": Ridge(noise=0.2)}
    along(panels, laws, "ridge", ("bias", "variance"), (0.1, 1.0), linestyle="--")
    for panel, name in zip(panels, ("bias $B$", "variance $V$"), strict=True):
        assert [(line.get_label(), line.get_color()) for line in panel.lines] == [("a", COLOURS[0]), ("b", COLOURS[1])]
        assert {line.get_linestyle() for line in panel.lines} == {"--"}
        assert panel.get_ylabel() == name


def test_points_alone_carry_the_label() -> None:
    _, (axes,) = new_figure()
    along(axes, Ridge(), "ridge", "bias", (), (0.1, 1.0), size=10, seeds=2, label="simulated")
    assert axes.get_legend_handles_labels()[1] == ["simulated"]


# -- refusals ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameter", "changes"),
    [
        ("parameter", dict(parameter="rigde")),
        ("observables", dict(observables="biass")),
        ("observables", dict(observables=())),
        ("laws", dict(law={})),
        ("line", dict(line=())),
        ("line", dict(line=[[1.0]])),
        ("size", dict(points=(1.0,))),
        ("seeds", dict(points=(1.0,), size=10)),
    ],
)
def test_bad_arguments_are_named(parameter: str, changes: dict[str, Any]) -> None:
    _, (axes,) = new_figure()
    arguments = dict(law=Ridge(), parameter="ridge", observables="bias", line=(0.1, 1.0)) | changes
    with pytest.raises(ValueError, match=parameter):
        along(axes, **arguments)  # type: ignore[arg-type]


def test_the_number_of_panels_is_one_or_that_of_the_observables() -> None:
    _, panels = new_figure(columns=2)
    with pytest.raises(ValueError, match="axes"):
        along(panels, Ridge(), "ridge", "bias", (0.1, 1.0))
