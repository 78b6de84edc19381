"""Claims about the best possible error, logistic regression and learning from models fail when their law is wrong."""

import pytest

from limitlab.lab.claims import all_claims
from limitlab.laws import BayesOptimal, Distillation, LogisticCalibration, ModelCollapse
from limitlab.laws.classification.logistic_system import Existence


def failed(claim_id):
    return [str(made) for made in all_claims()[claim_id].run(quick=True).criteria if not made.holds]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("claim_id", "law", "names"),
    [
        ("B1", LogisticCalibration, ("bias_factor",)),
        ("B3", BayesOptimal, ("overlap_gamp",)),
        ("C1", ModelCollapse, ("excess_risk", "test_error")),
        ("C2", Distillation, ("variance", "excess_risk")),
    ],
)
def test_a_wrong_law_is_noticed(monkeypatch, claim_id, law, names):
    right = law.predicted

    def wrong(self, *args, **kwargs):
        values = dict(right(self, *args, **kwargs))
        return {name: 0.8 * value if name in names else value for name, value in values.items()}

    monkeypatch.setattr(law, "predicted", wrong)
    assert any("check point" in words for words in failed(claim_id))


def test_a_formula_without_the_intercepts_parameter_is_noticed(monkeypatch):
    right = Existence.no_fit_probability
    monkeypatch.setattr(Existence, "no_fit_probability", lambda self, p, n: right(self, p - 1, n))
    assert "squared gaps in units of their variance, added over five cases below 20.8114" in failed("B2")


@pytest.mark.slow
def test_a_wrong_law_on_images_is_noticed(monkeypatch):
    right = ModelCollapse.predicted

    def wrong(self, *args, **kwargs):
        return {name: 0.7 * value for name, value in right(self, *args, **kwargs).items()}

    monkeypatch.setattr(ModelCollapse, "predicted", wrong)
    assert any("largest relative gap" in words for words in failed("C3"))
