"""Figures: the catalogue, and those that any law gets from its metadata."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from limitlab._core.registry import all_laws
from limitlab.lab import compare, optimal, plan, sweep
from limitlab.lab.claims import all_claims
from limitlab.lab.figures import all_figures, describe_figures, find_figure
from limitlab.lab.figures import figure as make_figure
from limitlab.lab.result_figures import answer_figure, comparison_figure, simulation_figure, sweep_figure
from limitlab.laws import EarlyStopping, LinearNetwork, NearestNeighbours, Ridge
from limitlab.plotting.output import rendered
from limitlab.plotting.panels import drawable, geometric, label_of, wide


def draws(figure: Figure) -> bool:
    """Whether a figure can be drawn without a warning or an error."""
    return rendered(figure, "svg").startswith(b"<?xml")


# -- the catalogue -------------------------------------------------------------------------------------------------------


def test_every_figure_explains_itself() -> None:
    for name, draw in all_figures().items():
        assert name == name.lower().replace("_", "-")
        assert inspect.getdoc(draw), name
    assert list(describe_figures()) == list(all_figures())


def test_every_figure_of_a_claim_exists() -> None:
    wanted = {claim.figure for claim in all_claims().values() if claim.figure}
    assert wanted <= set(all_figures())


def test_figures_are_found_by_id_and_by_claim() -> None:
    name = next(iter(all_figures()))
    assert find_figure(name.replace("-", "_").upper()) == name
    claim = next(claim for claim in all_claims().values() if claim.figure)
    assert find_figure(claim.id.lower()) == claim.figure
    missing = next(claim for claim in all_claims().values() if not claim.figure)
    with pytest.raises(ValueError, match=f"claim {missing.id} has no figure"):
        find_figure(missing.id)
    with pytest.raises(ValueError, match="did you mean"):
        find_figure(name + "x")


def test_a_figure_is_made() -> None:
    assert draws(make_figure("ridge-path"))


# -- a sweep -------------------------------------------------------------------------------------------------------------


def test_sweep_has_a_panel_per_observable_and_a_curve_per_value() -> None:
    ratios = np.geomspace(0.1, 10, 30)
    theory = sweep(Ridge(), over={"ratio": ratios, "ridge": [0.0, 0.1, 1.0]})
    figure = sweep_figure(theory, ["test_error", "train_error"])
    assert len(figure.axes) == 2
    axes = figure.axes[0]
    assert len(axes.lines) == 3
    assert axes.get_xscale() == "log"
    assert np.allclose(axes.lines[1].get_xdata(), ratios)
    assert np.allclose(axes.lines[1].get_ydata(), theory.test_error.sel(ridge=0.1))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        r"$\lambda$ = 0",
        r"$\lambda$ = 0.1",
        r"$\lambda$ = 1",
    ]
    assert draws(figure)


def test_infinite_values_are_gaps() -> None:
    theory = sweep(Ridge(ridge=0.0), over={"ratio": [0.5, 1.0, 2.0]})
    assert np.isinf(theory.test_error.values[1])
    line = sweep_figure(theory, ["test_error"]).axes[0].lines[0]
    assert np.isnan(line.get_ydata()).tolist() == [False, True, False]


def test_many_curves_are_shaded_and_only_the_ends_named() -> None:
    figure = sweep_figure(
        sweep(Ridge(), over={"ratio": np.geomspace(0.1, 10, 40), "ridge": np.geomspace(0.01, 1, 20)}), ["bias"]
    )
    assert len(figure.axes[0].lines) == 20
    assert len(figure.axes[0].get_legend().get_texts()) == 2


def test_names_on_the_axis() -> None:
    theory = sweep(NearestNeighbours(), over={"labels": ["averaged", "drawn"]})
    ticks = sweep_figure(theory, ["test_error"]).axes[0].get_xticklabels()
    assert [tick.get_text() for tick in ticks] == ["averaged", "drawn"]


def test_simulation_lies_beside_the_curve() -> None:
    over = {"ridge": [0.1, 1.0, 10.0]}
    law = Ridge(ratio=0.5)
    batch = sweep(law, over, sizes=[40], seeds=4).squeeze("size")
    figure = simulation_figure(sweep(law, over), batch, ["test_error"])
    (container,) = figure.axes[0].containers
    assert np.allclose(container.lines[0].get_ydata(), batch.test_error.mean("seed"))
    assert draws(figure)


def test_nothing_to_plot_against() -> None:
    with pytest.raises(ValueError, match="no dimension"):
        sweep_figure(Ridge().theory())


# -- a comparison --------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("shared_cells")
@pytest.mark.parametrize("name", sorted(all_laws()))
def test_comparison_of_every_law(name: str) -> None:
    result = compare(all_laws()[name].check_points()[0], budget=0.0)
    figure = result.plot()
    observables = {row.observable for row in result.rows}
    assert len(figure.axes) == len(observables) + 1
    assert draws(figure)


def test_comparison_along_a_coordinate() -> None:
    times = (0.1, 1.0, 10.0)
    result = compare(EarlyStopping(times=times), sizes=[20, 40], seeds=3)
    axes = comparison_figure(result).axes[0]
    assert np.allclose(axes.lines[0].get_xdata(), times)
    name = result.rows[0].observable
    assert np.allclose(axes.lines[0].get_ydata(), result.dataset[f"theory_{name}"].isel(size=-1))
    assert result.verdict in str(comparison_figure(result).get_suptitle()) or result.verdict == "underpowered"


# -- an answer -----------------------------------------------------------------------------------------------------------


def test_answers_lie_on_the_curve() -> None:
    law = Ridge(ratio=2.0)
    best = optimal(law, over="ridge", minimise="test_error")
    figure = answer_figure(law, best, "ridge", "test_error")
    curve, point = figure.axes[0].lines
    assert float(point.get_ydata()[0]) <= np.nanmin(curve.get_ydata()) + 1e-12
    assert draws(figure)


def test_answer_of_a_whole_number_within_what_the_law_takes() -> None:
    law = NearestNeighbours(neighbours=8)
    answer = plan(law, {"excess_risk": 0.05}, "samples", bounds=(8, 10_000))
    curve = answer_figure(law, answer, "samples", "excess_risk", level=0.05).axes[0].lines[0]
    assert curve.get_xdata().min() >= 8
    assert np.array_equal(curve.get_xdata(), np.round(curve.get_xdata()))


# -- labels and scales ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("symbol", "drawn"), [(r"\lambda", r"$\lambda$"), ("p/n", "$p/n$"), ("", ""), (r"\nosuchcommand{x}", ""), ("{", "")]
)
def test_symbols_that_cannot_be_drawn_are_left_out(symbol: str, drawn: str) -> None:
    assert drawable(symbol) == drawn


def test_labels_have_symbol_and_meaning() -> None:
    array = xr.DataArray(
        1.0, name="test_error", attrs={"symbol": "E", "long_name": "a very long name that does not fit anywhere"}
    )
    assert label_of(array) == "$E$ (test error)"


def test_scales_follow_the_values() -> None:
    assert geometric(np.geomspace(0.1, 100, 20))
    assert not geometric(np.linspace(1, 100, 20))
    assert not geometric(np.array([0.0, 1.0, 10.0]))
    assert wide([1e-3, 1.0, np.inf])
    assert not wide([-1.0, 1e6])


def test_observables_without_the_longest_dimension_are_drawn_along_their_own() -> None:
    figure = sweep_figure(LinearNetwork().theory())
    assert len(figure.axes) > 1
    assert all(axes.get_xlabel() for axes in figure.axes)
