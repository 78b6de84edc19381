import json

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from sweep_toys import Decay, Fragile, ShrunkMean, Snapshots

import limitlab as ll
from limitlab._core.draws import seed_entropy
from limitlab.lab import SweepError, sweep
from limitlab.laws import Ridge

PINNED_WORD, PINNED_NUMBER = 757094237, 0.061031936677411136

# -- the limit ----------------------------------------------------------------------------------------------------------


def test_a_sweep_of_the_limit_is_one_call(monkeypatch):
    calls = []
    evaluate = ShrunkMean.evaluate
    monkeypatch.setattr(ShrunkMean, "evaluate", lambda self, **grid: calls.append(grid) or evaluate(self, **grid))
    result = sweep(ShrunkMean(), over={"signal": [1.0, 2.0, 3.0], "shrink": np.linspace(0, 1, 5)})
    assert len(calls) == 1
    assert dict(result.sizes) == {"signal": 3, "shrink": 5}
    assert result.excess_risk.dims == ("signal", "shrink")


@pytest.mark.parametrize(
    "names", [("signal", "shrink"), ("shrink", "rule", "signal"), ("rule", "weights"), ("weights", "noise")]
)
def test_every_point_of_a_sweep_is_the_theory_there(names):
    values = {
        "signal": [1.0, 2.0],
        "shrink": [0.0, 0.5, 1.0],
        "rule": ["mean", "median"],
        "weights": [(1.0,), (1.0, 2.0)],
        "noise": [0, 3],
    }
    over = {name: values[name] for name in names}
    result = sweep(ShrunkMean(), over)
    assert tuple(result.sizes) == names
    for index in np.ndindex(*(len(value) for value in over.values())):
        point = {name: over[name][i] for name, i in zip(names, index, strict=True)}
        expected = ShrunkMean(**point).theory()
        for observable in ShrunkMean.observables:
            assert result[observable].dims == names
            assert float(result[observable].values[index]) == float(expected[observable])


def test_result_carries_provenance():
    result = sweep(ShrunkMean(noise=2.0), over={"shrink": [0.0, 0.5]})
    assert result.attrs["law"] == "ShrunkMean"
    assert json.loads(result.attrs["parameters"])["noise"] == 2.0
    assert result.attrs["accuracy"] == pytest.approx(1e-15, rel=1e-12)
    assert result.attrs["version"] == ll.__version__
    assert result.attrs["kind"] == "theory"
    assert result.shrink.attrs == {"long_name": "shrinkage", "symbol": "s"}


def test_names_and_tuples_become_text_labels():
    result = sweep(ShrunkMean(), over={"rule": ["mean", "median"], "weights": [[1, 2], (0.5,)]})
    assert result.rule.values.tolist() == ["mean", "median"]
    assert result.weights.values.tolist() == ["(1, 2)", "(0.5)"]
    assert all(result[name].dtype.kind == "U" for name in ("rule", "weights"))


def test_a_coordinate_of_the_law_can_be_swept():
    result = sweep(Decay(level=0.0), over={"times": [0.0, 1.0, 2.0], "speed": [1.0, 3.0]})
    assert result.overlap.dims == ("speed", "time")
    np.testing.assert_allclose(result.overlap, np.exp(-np.outer([1, 3], [0, 1, 2])), rtol=1e-15)
    np.testing.assert_array_equal(result.time, [0.0, 1.0, 2.0])
    xr.testing.assert_identical(sweep(Decay(), over={"times": "0:2:3"}), Decay(times=(0, 1, 2)).theory())


def test_own_coordinates_come_last():
    result = sweep(Decay(times=(0.0, 1.0, 2.0)), over={"level": [0.0, 5.0], "speed": [1.0, 2.0]})
    assert result.overlap.dims == ("level", "speed", "time")


def test_coordinates_that_change_from_point_to_point_are_refused():
    with pytest.raises(ValueError, match="the coordinate 'time' of Snapshots changes from point to point"):
        sweep(Snapshots(), over={"moments": [(1.0, 2.0), (2.0, 3.0)]})
    with pytest.raises(ValueError, match=r"over 'times': .* lists"):
        sweep(Decay(), over={"times": [(1.0, 2.0), (2.0, 3.0)]})
    with pytest.raises(ValueError, match=r"over 'times': times = .* in increasing order"):
        sweep(Decay(), over={"times": [2.0, 1.0]})


def test_laws_without_array_form_are_looped_over():
    result = sweep(Snapshots(), over={"speed": [1.0, 2.0]})
    np.testing.assert_allclose(result.overlap, np.exp(-np.outer([1, 2], [1, 2])), rtol=1e-15)
    assert result.overlap.dims == ("speed", "time")


def test_nan_is_named_by_its_point():
    with pytest.raises(FloatingPointError, match="NaN for overlap"):
        sweep(Fragile(how="nan"), over={"level": [2]})
    with pytest.raises(SweepError, match=r"level = 2: FloatingPointError: .*Fragile.*NaN for overlap"):
        sweep(Fragile(how="nan"), over={"level": [0, 2]})


class NotANumber(ShrunkMean):
    """A law whose array form gives NaN at one point."""

    def predicted(self, **numbers):
        values = super().predicted(**numbers)
        return values | {"mean_bias": np.where(values["mean_bias"] == -0.5, np.nan, values["mean_bias"])}


def test_nan_in_a_vectorised_sweep_is_named_too():
    with pytest.raises(FloatingPointError, match=r"NotANumber.*NaN for mean_bias at signal = 1\.0, shrink = 0\.5"):
        sweep(NotANumber(), over={"signal": [1.0, 2.0], "shrink": [0.3, 0.5]})


@given(
    ratios=st.lists(st.floats(0.05, 20), min_size=1, max_size=4, unique=True),
    ridges=st.lists(st.floats(1e-4, 10), min_size=1, max_size=4, unique=True),
)
@settings(deadline=None, max_examples=20)
def test_ridge_sweep_equals_a_loop(ratios, ridges):
    result = sweep(Ridge(noise=0.5), over={"ratio": ratios, "ridge": ridges})
    for i, ratio in enumerate(ratios):
        for j, ridge in enumerate(ridges):
            expected = float(Ridge(noise=0.5, ratio=ratio, ridge=ridge).theory().test_error)
            assert float(result.test_error[i, j]) == pytest.approx(expected, rel=1e-12)


# -- experiments --------------------------------------------------------------------------------------------------------

OVER = {"shrink": [0.0, 0.25, 0.5], "signal": [1.0, 2.0], "rule": ["mean", "median"]}


def test_dimensions_of_a_simulation_sweep():
    result = sweep(ShrunkMean(), OVER, sizes=[10, 20], seeds=3)
    assert result.excess_risk.dims == ("shrink", "signal", "rule", "size", "seed")
    assert result.excess_risk.shape == (3, 2, 2, 2, 3)
    assert result["size"].attrs["long_name"] == "samples n"
    assert result.attrs["kind"] == "simulation"
    assert "theory_mean_bias" not in result


def test_simulate_gives_the_cell_again():
    result = sweep(ShrunkMean(), OVER, sizes=[10, 20], seeds=2)
    for index in np.ndindex(3, 2, 2, 2, 2):
        cell = result[dict(zip(result.excess_risk.dims, index, strict=True))]
        law = ShrunkMean(shrink=float(cell.shrink), signal=float(cell.signal), rule=str(cell.rule.values))
        again = law.simulate(int(cell["size"]), int(cell["seed"]))
        assert float(again.excess_risk) == float(cell.excess_risk)


def test_one_draw_serves_the_whole_path(monkeypatch):
    calls = []
    experiment = ShrunkMean.experiment
    monkeypatch.setattr(
        ShrunkMean, "experiment", lambda self, *a, **path: calls.append(path) or experiment(self, *a, **path)
    )
    sweep(ShrunkMean(), OVER, sizes=[10, 20], seeds=3)
    assert len(calls) == 2 * 2 * 2 * 3
    assert all(list(path) == ["shrink"] for path in calls)


def test_draws_depend_on_what_is_drawn_and_on_nothing_else():
    small = sweep(ShrunkMean(digits=3), {"signal": [2.0]}, sizes=[20], seeds=[1])
    large = sweep(ShrunkMean(), {"signal": [1.0, 2.0, 3.0], "shrink": [0.1, 0.9]}, sizes=[10, 20], seeds=4)
    same = large.sel(signal=[2.0], shrink=0.1, size=[20], seed=[1])
    np.testing.assert_array_equal(small.excess_risk, same.excess_risk)
    first, second = (Decay(times=times).simulate(20, 3).overlap for times in ((0.0, 1.0), (0.5, 1.0, 2.0)))
    assert float(first.sel(time=1.0)) == float(second.sel(time=1.0))


def test_streams_are_pinned():
    """A change here changes every draw that anybody has stored or published: raise every law's revision with it."""
    assert seed_entropy(ShrunkMean(shrink=0.3)) == seed_entropy(ShrunkMean(shrink=0.4))
    assert seed_entropy(ShrunkMean(digits=3)) == seed_entropy(ShrunkMean(digits=4))
    assert seed_entropy(ShrunkMean(noise=0.3)) != seed_entropy(ShrunkMean(noise=0.4))
    assert seed_entropy(Ridge(ratio=2.0, noise=0.5))[0] == PINNED_WORD
    assert float(Ridge(ratio=2.0).draw(50, 7).rng.random()) == PINNED_NUMBER


def test_theory_beside_the_draws():
    result = sweep(ShrunkMean(), OVER, sizes=[10], seeds=2, with_theory=True)
    assert result.theory_excess_risk.dims == ("shrink", "signal", "rule")
    limit = sweep(ShrunkMean(), OVER)
    np.testing.assert_array_equal(result.theory_excess_risk, limit.excess_risk)
    assert result.attrs["accuracy"] == limit.attrs["accuracy"]
    assert result.theory_mean_bias.attrs["long_name"] == limit.mean_bias.attrs["long_name"]


def test_a_swept_time_is_one_draw():
    result = sweep(Decay(), {"times": [0.0, 1.0]}, sizes=[10], seeds=3)
    assert result.overlap.dims == ("size", "seed", "time")
    np.testing.assert_allclose(result.overlap.diff("time").values, np.exp(-1) - 1, rtol=1e-12)


def test_ridge_path_of_one_draw_is_what_simulate_gives():
    law = Ridge(ratio=0.5, noise=0.3)
    result = sweep(law, {"ridge": [0.1, 1.0], "ratio": [0.5, 2.0]}, sizes=[20], seeds=2)
    cell = result.isel(ridge=1, ratio=1, size=0, seed=1)
    again = law.replace(ridge=1.0, ratio=2.0).simulate(20, 1)
    for name in law.observables:
        assert float(cell[name]) == pytest.approx(float(again[name]), rel=1e-9)


# -- bad input ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (dict(over={"shrnk": [0.1]}), "cannot sweep over 'shrnk'.*did you mean 'shrink'"),
        (dict(over={"shrink": [0.1, 1.5]}), "shrink = 1.5 is not allowed: must be at least 0, at most 1"),
        (dict(over={"shrink": [0.1, float("nan")]}), "shrink = nan is not allowed"),
        (dict(over={"shrink": [0.1, True]}), "shrink = True is not allowed"),
        (dict(over={"shrink": ["a"]}), "shrink = 'a' is not allowed"),
        (dict(over={"shrink": "0:1"}), "over 'shrink': range '0:1'"),
        (dict(over={"shrink": 0.1}), "is one value"),
        (dict(over={"shrink": []}), "is empty"),
        (dict(over={"shrink": [0.1, 0.2, 0.1]}), "0.1 is listed twice"),
        (dict(over={"rule": ["mean", "mode"]}), "rule = 'mode' is not allowed"),
        (dict(over={}), "give a mapping"),
        (dict(over=["shrink"]), "give a mapping"),
        (dict(over={"noise": [1, 500], "shrink": [0, 1]}), "the sweep reaches noise = 500.0, shrink = 0.0"),
        (dict(over={"shrink": [0.1]}, seeds=3), "without sizes"),
        (dict(over={"shrink": [0.1]}, sizes=[1]), "size = 1 is not allowed"),
        (dict(over={"shrink": [0.1]}, sizes=[10.5]), "size = 10.5 is not allowed"),
        (dict(over={"shrink": [0.1]}, sizes=["ten"]), "must be whole numbers"),
        (dict(over={"shrink": [0.1]}, sizes=[10, 10]), "each of them once"),
        (dict(over={"shrink": [0.1]}, sizes=[]), "at least one size"),
        (dict(over={"shrink": [0.1]}, sizes=[10], seeds=0), "seeds = 0 is not allowed"),
        (dict(over={"shrink": [0.1]}, sizes=[10], seeds=[1, 1]), "must be different"),
        (dict(over={"shrink": [0.1]}, sizes=[10], seeds=[-1]), "seed = -1 is not allowed"),
        (dict(over={"shrink": [0.1]}, engine="proceses"), "did you mean 'processes'"),
        (dict(over={"shrink": [0.1]}, engine=0), "at least 1"),
        (dict(over={"shrink": [0.1]}, engine=True), "engine = True is not allowed"),
    ],
)
def test_bad_input_is_one_clear_line(arguments, complaint):
    with pytest.raises(ValueError, match=complaint) as caught:
        sweep(ShrunkMean(), **arguments)
    assert "\n" not in str(caught.value)


def test_a_class_is_not_a_law():
    with pytest.raises(ValueError, match="is not a law"):
        sweep(ShrunkMean, {"shrink": [0.1]})


def test_values_that_fit_only_together_are_allowed():
    """No single change of the law is valid here, but every point of the grid is."""
    law = Ridge(eigenvalues=(1.0,), weights=(1.0,), signal_energy=(1.0,))
    over = {"eigenvalues": [(1.0, 2.0), (1.0, 3.0)], "weights": [(0.5, 0.5)], "signal_energy": [(1.0, 1.0)]}
    result = sweep(law, over)
    expected = Ridge(eigenvalues=(1.0, 3.0), weights=(0.5, 0.5), signal_energy=(1.0, 1.0)).theory()
    assert float(result.test_error[1, 0, 0]) == float(expected.test_error)


def test_public_name():
    assert ll.sweep is sweep
    assert isinstance(ll.sweep(Ridge(), over={"ratio": "0.5:2:3"}), xr.Dataset)


@pytest.mark.parametrize("draws", [{}, dict(sizes=[10, 20], seeds=3, with_theory=True)])
def test_parts_of_a_sweep_grow_into_its_result(draws, monkeypatch):
    monkeypatch.setattr("limitlab.lab._sweep.PART_SECONDS", 0.0)
    over = {"rule": ["mean", "median"], "signal": [0.1 * k for k in range(5)]}
    parts = []
    result = sweep(ShrunkMean(), over, **draws, on_part=lambda part, done, total: parts.append((part, done, total)))
    xr.testing.assert_identical(result, sweep(ShrunkMean(), over, **draws))
    assert parts
    for part, done, total in parts:
        assert 0 < done < total
        assert part.attrs["missing_tasks"] <= total - done
        for name in part.data_vars:
            known = part[name].notnull()
            assert known.any()
            xr.testing.assert_equal(part[name].where(known), result[name].where(known))
    assert [done for _, done, _ in parts] == sorted({done for _, done, _ in parts})


def test_parts_show_every_eighth_point_first_and_one_draw_everywhere_before_the_next(monkeypatch):
    monkeypatch.setattr("limitlab.lab._sweep._Parts.__call__", lambda self, cells, done: order.append(self._plan.tasks))
    order = []
    sweep(ShrunkMean(), {"signal": [1.0 + k for k in range(9)]}, sizes=[10], seeds=2, on_part=lambda *part: None)
    assert [task.place for task in order[0][:9]] == [(k, 0, 0) for k in (0, 8, 4, 2, 6, 1, 3, 5, 7)]
    assert [task.seed for task in order[0]] == [0] * 9 + [1] * 9


def test_an_observable_that_exists_at_some_points_only_is_left_out_or_nan_at_the_others():
    law, over = ll.laws.LogisticCalibration(), {"ratio": [0.1, 2.0, 0.2]}
    assert "auc" in sweep(law, over).attrs["left_out"]
    for values in (over["ratio"], over["ratio"][1:]):  # the first point has the observable, or has not
        result = sweep(law, {"ratio": values}, absent_as_nan=True)
        assert "left_out" not in result.attrs
        for value in values:
            auc = law.replace(ratio=value).theory().get("auc", np.nan)
            np.testing.assert_equal(float(result.auc.sel(ratio=value)), float(auc))
    with pytest.raises(ValueError, match="absent_as_nan = True"):
        sweep(law, over, absent_as_nan=True, store="never.nc")


def test_draws_of_an_observable_that_some_draws_have_not_are_nan_there():
    law, over = ll.laws.LogisticCalibration(), {"ratio": [0.1, 2.0]}
    draws = sweep(law, over, sizes=40, seeds=2, absent_as_nan=True)
    assert draws.auc.sel(ratio=0.1).notnull().all()
    assert draws.auc.sel(ratio=2.0).isnull().all()
    assert "auc" not in sweep(law, over, sizes=40, seeds=2)
