"""The comparison on laws whose truth is known: its verdicts, its budget, its false alarms."""

import math
from typing import ClassVar

import numpy as np
import pytest

import limitlab as ll
from limitlab.laws import Law, parameter


class Toy(Law):
    """How far is the sample from the limit?"""

    regime: ClassVar[str] = "always"
    assumptions: ClassVar[tuple[str, ...]] = ("none",)
    references: ClassVar[tuple[str, ...]] = ("@misc{toy}",)
    observables: ClassVar[tuple[str, ...]] = ("test_error", "train_error")
    array_parameters: ClassVar[tuple[str, ...]] = ("level",)

    level: float = parameter(2.0, "the limit", least=0, infinite=True)
    shift: float = parameter(0.0, "a planted gap that does not fall with size")
    drift: float = parameter(3.0, "coefficient of the finite-size gap")
    spread: float = parameter(0.05, "standard deviation of a draw", least=0)

    def evaluate(self, level=None):
        level = np.asarray(self.level if level is None else level)
        return {"test_error": level, "train_error": 0 * np.where(np.isfinite(level), level, 0)}

    def experiment(self, size, seed):
        noise = self.spread * self.rng(size, seed).standard_normal()
        value = (self.level if math.isfinite(self.level) else size) + self.shift + self.drift / size + noise
        return {"test_error": value, "train_error": 0.0}


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
    verdicts = [ll.compare(Toy(), sizes=[50, 100, 200], seeds=10, base_seed=s, level=0.05).verdict for s in range(300)]
    # the finite-size allowance can only make alarms rarer than the level
    assert np.mean([verdict == "disagree" for verdict in verdicts]) < 0.05 + 5 * np.sqrt(0.05 * 0.95 / 300)


def test_power_a_gap_of_the_stated_half_width_is_noticed():
    row = ll.compare(Toy(), sizes=[50, 100, 200], seeds=20).table().loc["test_error"]
    shifted = Toy(shift=2 * row.half_width)
    caught = [ll.compare(shifted, sizes=[50, 100, 200], seeds=20, base_seed=s).verdict == "disagree" for s in range(20)]
    assert np.mean(caught) > 0.8


def test_few_draws_of_a_discrete_observable_raise_no_false_alarm():
    law = ll.laws.MarchenkoPastur()
    verdicts = {ll.compare(law, sizes=[20, 40], seeds=3, base_seed=seed).verdict for seed in range(8)}
    assert verdicts == {"underpowered"}


def test_infinite_limits_are_named_not_compared():
    result = ll.compare(Toy(level=math.inf), sizes=[50, 100], seeds=5)
    assert "test_error" in result.explanation
    assert [row.observable for row in result.rows] == ["train_error"]


def test_dataset_holds_theory_mean_and_error_per_size():
    data = ll.compare(Toy(), sizes=[50, 100], seeds=5).dataset
    assert data.sizes["size"] == 2
    assert {"theory_test_error", "mean_test_error", "error_test_error"} <= set(data)
    assert data.attrs["verdict"] in ("agree", "disagree", "underpowered")


def test_different_base_seeds_draw_differently_and_the_same_one_repeats():
    first, second = (ll.compare(Toy(), sizes=[50, 100], seeds=5, base_seed=s).dataset for s in (0, 1))
    assert not np.array_equal(first["mean_test_error"], second["mean_test_error"])
    np.testing.assert_array_equal(
        first["mean_test_error"], ll.compare(Toy(), sizes=[50, 100], seeds=5).dataset["mean_test_error"]
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (dict(seeds=1), "seeds = 1"),
        (dict(seeds=2.5), "seeds = 2.5"),
        (dict(sizes=[1]), "size = 1"),
        (dict(sizes=[]), "sizes = []"),
        (dict(observables=["tset_error"]), "tset_error"),
        (dict(base_seed=-1), "seed = -1"),
    ],
)
def test_bad_input_is_refused_by_name(options, words):
    with pytest.raises(ValueError, match=words.replace("[", r"\[").replace("]", r"\]")):
        ll.compare(Toy(), **options)
