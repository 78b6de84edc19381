"""The comparison on laws whose truth is known: its verdicts, its budget, its false alarms."""

import math

import numpy as np
import pytest
import xarray as xr

import limitlab as ll
from limitlab.lab.store import caching
from limitlab.lab.tasks import TasksFailed
from limitlab.laws import Law, parameter


class Toy(Law):
    """How far is the sample from the limit?"""

    regime = "always"
    assumptions = ("none",)
    references = ("james1961estimation",)
    observables = ("test_error", "train_error")

    level: float = parameter(2.0, "the limit", least=0, infinite=True)
    shift: float = parameter(0.0, "a planted gap that does not fall with size")
    drift: float = parameter(3.0, "coefficient of the finite-size gap")
    spread: float = parameter(0.05, "standard deviation of a draw", least=0)

    def predicted(self, level):
        return {"test_error": level, "train_error": 0 * np.where(np.isfinite(level), level, 0)}

    def measured(self, draw):
        noise = self.spread * draw.rng.standard_normal()
        value = (self.level if math.isfinite(self.level) else draw.size) + self.shift + self.drift / draw.size + noise
        return {"test_error": value, "train_error": 0.0}


def drawn_again(*_, **__):
    raise RuntimeError("a draw that was kept is made again")


def other_seeds(number, count):
    """Sets of seeds that do not overlap."""
    return range(number * count, (number + 1) * count)


def test_agrees_when_only_the_finite_size_term_separates_them():
    result = ll.compare(Toy(), sizes=[50, 100, 200], seeds=20)
    assert result.verdict == "agree"
    assert result.passed
    row = result.table().loc["test_error"]
    assert row.finite_size_allowance == pytest.approx(3 / 200 / 2, abs=4 * row.standard_error)


def test_disagrees_when_a_gap_does_not_fall_with_size():
    result = ll.compare(Toy(shift=0.5), sizes=[50, 100, 200], seeds=20)
    assert result.verdict == "disagree"
    assert not result.passed
    assert result.table().loc["test_error"].gap == pytest.approx(0.5, abs=0.15)
    assert "test_error" in result.explanation


def test_underpowered_says_how_many_draws_and_those_draws_decide():
    law = Toy(spread=1.0)
    weak = ll.compare(law, sizes=[50, 100, 200], seeds=10)
    assert weak.verdict == "underpowered"
    needed = int(weak.explanation.split("about ")[1].split(" draws")[0])
    assert ll.compare(law, sizes=[50, 100, 200], seeds=2 * needed).verdict == "agree"


def test_underpowered_by_finite_size_asks_for_larger_sizes():
    weak = ll.compare(Toy(drift=200.0, spread=1e-3), sizes=[50, 100, 200], seeds=10)
    assert weak.verdict == "underpowered"
    larger = int(weak.explanation.split("sizes up to about ")[1].split(" ")[0])
    sizes = [larger // 4, larger // 2, larger]
    assert ll.compare(Toy(drift=200.0, spread=1e-3), sizes=sizes, seeds=10).verdict == "agree"


def test_one_size_cannot_blame_the_law():
    result = ll.compare(Toy(drift=50.0, spread=0.01), sizes=[100], seeds=10)
    assert result.verdict == "underpowered"
    assert "finite-size" in result.explanation


def test_false_alarms_are_as_rare_as_promised():
    verdicts = [ll.compare(Toy(), sizes=[50, 100, 200], seeds=other_seeds(s, 10), level=0.05).verdict for s in range(300)]
    # the finite-size allowance can only make alarms rarer than the level
    assert np.mean([verdict == "disagree" for verdict in verdicts]) < 0.05 + 5 * np.sqrt(0.05 * 0.95 / 300)


def test_power_a_gap_of_the_stated_half_width_is_noticed():
    row = ll.compare(Toy(), sizes=[50, 100, 200], seeds=20).table().loc["test_error"]
    shifted = Toy(shift=2 * row.half_width)
    caught = [ll.compare(shifted, sizes=[50, 100, 200], seeds=other_seeds(s, 20)).verdict == "disagree" for s in range(20)]
    assert np.mean(caught) > 0.8


def test_few_draws_of_a_discrete_observable_raise_no_false_alarm():
    law = ll.laws.MarchenkoPastur()
    verdicts = {ll.compare(law, sizes=[20, 40], seeds=other_seeds(seed, 3)).verdict for seed in range(8)}
    assert verdicts == {"underpowered"}


def test_draws_are_cut_short_only_where_they_agree():
    sizes = [50, 100, 200]
    clear, less, hard = (ll.compare(Toy(spread=spread), sizes, 40, budget=0.0, early=True) for spread in (0.02, 0.05, 0.5))
    assert (clear.verdict, clear.draws, clear.dataset.attrs["seeds"].size) == ("agree", 8, 8)
    assert (less.verdict, less.draws) == ("agree", 16)
    assert (hard.verdict, hard.draws) == (ll.compare(Toy(spread=0.5), sizes, 40, budget=0.0).verdict, 40)
    off = ll.compare(Toy(shift=0.5), sizes, 40, budget=0.0, early=True)
    assert (off.verdict, off.draws) == ("disagree", 40)


def test_looks_that_end_early_raise_no_false_alarm():
    verdicts = [ll.compare(Toy(), [50, 100, 200], other_seeds(i, 16), early=True, level=0.1).verdict for i in range(100)]
    assert verdicts.count("disagree") <= 20  # the mean is below 10


def test_infinite_limits_are_named_not_compared():
    result = ll.compare(Toy(level=math.inf), sizes=[50, 100], seeds=5)
    assert "test_error" in result.explanation
    assert [row.observable for row in result.rows] == ["train_error"]


def test_dataset_holds_theory_mean_and_error_per_size():
    data = ll.compare(Toy(), sizes=[50, 100], seeds=5).dataset
    assert data.sizes["size"] == 2
    assert {"theory_test_error", "mean_test_error", "error_test_error"} <= set(data)
    assert data.attrs["verdict"] in ("agree", "disagree", "underpowered")


def test_the_draws_are_those_of_simulate():
    first, second = (ll.compare(Toy(), sizes=[50, 100], seeds=seeds).dataset for seeds in (5, range(5, 10)))
    assert not np.array_equal(first["mean_test_error"], second["mean_test_error"])
    expected = Toy().simulate_batch(50, range(5)).test_error.mean()
    assert float(first["mean_test_error"].sel(size=50)) == pytest.approx(float(expected), rel=1e-15)


def test_costs_are_estimated_once_per_size_and_the_law_is_not_validated_for_every_draw(monkeypatch):
    law, estimates, validations = ll.laws.Ridge(ratio=0.5, ridge=0.1, noise=0.5), [], []
    draw_cost, init = type(law).draw_cost, Law.__init__
    monkeypatch.setattr(type(law), "draw_cost", lambda self, size: estimates.append(size) or draw_cost(self, size))
    monkeypatch.setattr(Law, "__init__", lambda self, *a, **k: validations.append(k) or init(self, *a, **k))
    ll.compare(law, sizes=[20, 40, 80], seeds=10)
    assert estimates == [20, 40, 80]
    assert len(validations) == 3  # the law with the ratios of every size


@pytest.mark.parametrize("engine", ["threads", 2])
def test_engine_and_store_do_not_change_a_comparison(tmp_path, engine):
    law = ll.laws.Ridge(ratio=0.5, ridge=0.2)
    plain = ll.compare(law, sizes=[20, 40], seeds=5)
    kept = ll.compare(law, sizes=[20, 40], seeds=5, engine=engine, store=tmp_path / "x.nc")
    again = ll.compare(law, sizes=[20, 40], seeds=5, store=tmp_path / "x.nc")
    for other in (kept, again):
        xr.testing.assert_identical(plain.dataset, other.dataset)
        assert repr(plain.rows) == repr(other.rows)
    with pytest.raises(ValueError, match=r"ratio = 0.5, not 2.0: choose another store"):
        ll.compare(law.replace(ratio=2.0), sizes=[20, 40], seeds=5, store=tmp_path / "x.nc")


def test_a_comparison_in_a_caching_block_reads_its_cells(tmp_path, monkeypatch):
    law = ll.laws.Ridge(ratio=0.5, ridge=0.2)
    with caching(tmp_path):
        first = ll.compare(law, sizes=[20, 40], seeds=5)
        monkeypatch.setattr(type(law), "measured", drawn_again)
        xr.testing.assert_identical(first.dataset, ll.compare(law, sizes=[20, 40], seeds=5).dataset)
        monkeypatch.setattr(type(law), "revision", 99)
        with pytest.raises(TasksFailed):  # a corrected law never meets old cells
            ll.compare(law, sizes=[20, 40], seeds=5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (dict(seeds=1), "seeds = 1"),
        (dict(seeds=2.5), "seeds = 2.5"),
        (dict(sizes=[1]), "size = 1"),
        (dict(sizes=[]), "sizes = []"),
        (dict(observables=["tset_error"]), "tset_error"),
        (dict(seeds=[-1, 2]), "seed = -1"),
        (dict(engine="proceses"), "did you mean 'processes'"),
    ],
)
def test_bad_input_is_refused_by_name(options, words):
    with pytest.raises(ValueError, match=words.replace("[", r"\[").replace("]", r"\]")):
        ll.compare(Toy(), **options)
