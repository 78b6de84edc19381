"""A few extreme but allowed parameter sets of every law in each run of the tests; more of them among the slow tests."""

import extremes
import pytest

from limitlab._core.registry import all_laws

LAWS = [pytest.param(law, id=name) for name, law in sorted(all_laws().items())]
COSTLY = {
    "CircleMeanField",
    "FirstOrderDynamics",
    "GeneralMixtureAlignment",
    "KernelGradientFlow",
    "MiddleRegime",
    "TwoGaussians",
    "TwoLayerDynamics",
}


def ends(law, numbers, seed):
    return {number: extremes.judged(*extremes.parameter_set(law, seed, number)) for number in numbers}


@pytest.mark.parametrize("law", [param for param in LAWS if param.values[0].__name__ not in COSTLY])
def test_predictions_hold_or_are_refused(law):
    wrong = {number: end for number, end in ends(law, range(1), seed=11).items() if end[0] in extremes.WRONG}
    assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_more_predictions_hold_or_are_refused(law):
    wrong = {number: end for number, end in ends(law, range(40), seed=1).items() if end[0] in extremes.WRONG}
    assert not wrong


def test_numbers_out_of_range_are_noticed(monkeypatch):
    from limitlab.laws import Ridge

    def below_zero(self, **grid):
        return {**original(self, **grid), "test_error": -1.0}

    original = Ridge.predicted
    monkeypatch.setattr(Ridge, "predicted", below_zero)
    assert extremes.judged(Ridge(), {})[0] == "range"


def test_a_jump_is_noticed(monkeypatch):
    from limitlab.laws import EquiangularTokens

    original = EquiangularTokens.predicted

    def jumping(self, **grid):
        values = original(self, **grid)
        return {**values, "overlap": values["overlap"] * (0.5 if self.beta > 1 else 1.0)}

    monkeypatch.setattr(EquiangularTokens, "predicted", jumping)
    assert extremes.judged(EquiangularTokens(beta=1.0), {"beta": 1.0})[0] == "jump"
