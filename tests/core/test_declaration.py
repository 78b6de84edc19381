"""What follows from the declaration of a law: arguments, shared names, check points, the experiment, the stated accuracy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import limitlab as ll
from limitlab._core.draws import seed_entropy
from limitlab._core.registry import all_laws
from limitlab._core.vocabulary import PARAMETERS
from limitlab.laws import CLOSED_FORM, Draw, Experiment, Law, Values, parameter
from limitlab.testing import LawContractError, check_law


class Mean(Law):
    """How far is a shrunken mean from the truth?"""

    regime = "every number of samples"
    assumptions = ("Gaussian noise",)
    references = ("james1961estimation",)
    observables = ("bias", "excess_risk")
    simulation = Experiment("number of repetitions", sizes=(100, 200, 400), draws=40, rate=math.inf)
    points = (dict(noise=0.7, shrink=0.3), dict(noise=1.2, shrink=0.6, offset=0.5))

    noise: float = parameter(0.5, least=0)
    shrink: float = parameter(0.2, "factor of the mean", symbol="s", least=0, most=1)
    offset: float = parameter(1.0, "true mean")

    def predicted(self, noise: Any, shrink: Any) -> Values:
        return dict(
            bias=(1 - shrink) ** 2 * self.offset**2, excess_risk=(1 - shrink) ** 2 * self.offset**2 + (shrink * noise) ** 2
        )

    def measured(self, draw: Draw, shrink: Any) -> Values:
        mean = self.offset + self.noise * draw.rng.standard_normal(draw.size)
        error = shrink[..., None] * mean - self.offset
        return dict(bias=(1 - shrink) ** 2 * self.offset**2, excess_risk=np.mean(error**2, axis=-1))


class Exact(Mean):
    """How far is a shrunken mean from the truth, with the accuracy of a closed form?"""

    def predicted(self, **numbers: Any) -> Values:
        return {**super().predicted(**numbers), "accuracy": CLOSED_FORM}


class Unstable(Mean):
    """How far is a shrunken mean from the truth, with an error that rounding of the parameters shows?"""

    def predicted(self, noise: Any, shrink: Any) -> Values:
        return {**super().predicted(noise, shrink), "bias": 1 + np.sin(1e17 * noise)}


# -- arguments from signatures ----------------------------------------------------------------------------------------------


def test_arguments_follow_from_the_signatures() -> None:
    assert Mean.array_parameters() == ("noise", "shrink")
    assert Mean.path_parameters() == ("shrink",)


def test_a_method_that_passes_arguments_on_gets_what_the_method_below_it_names() -> None:
    assert Exact.array_parameters() == ("noise", "shrink")
    np.testing.assert_array_equal(Exact().evaluate(noise=[0.5, 1.0])["bias"], Mean().evaluate(noise=[0.5, 1.0])["bias"])


def test_the_stream_depends_on_what_measured_does_not_name() -> None:
    law = Mean()
    assert seed_entropy(law) == seed_entropy(law.replace(shrink=0.9))
    assert seed_entropy(law) != seed_entropy(law.replace(noise=0.9))
    assert seed_entropy(law) != seed_entropy(law.replace(offset=0.9))


def test_what_one_draw_serves_is_predicted_as_an_array_too() -> None:
    for name, law in all_laws().items():
        assert set(law.path_parameters()) <= set(law.array_parameters()), name


# -- shared names -----------------------------------------------------------------------------------------------------------


def test_description_and_symbol_come_from_the_vocabulary() -> None:
    noise = Mean.parameters()["noise"]
    assert (noise.description, noise.symbol) == PARAMETERS["noise"]
    assert Mean.model_json_schema()["properties"]["noise"]["description"] == PARAMETERS["noise"][0]


def test_a_law_may_say_something_of_its_own() -> None:
    class Loud(Law):
        noise: float = parameter(0.5, "volume", least=0)
        step: float = parameter(0.5, symbol=r"\eta", above=0)

    assert (Loud.parameters()["noise"].description, Loud.parameters()["noise"].symbol) == ("volume", "")
    assert Loud.parameters()["step"].symbol == r"\eta"


def test_a_name_that_is_not_shared_needs_a_description() -> None:
    with pytest.raises(TypeError, match="'volume' is not in the shared vocabulary"):

        class Silent(Law):
            volume: float = parameter(0.5, least=0)


def test_the_vocabulary_holds_the_names_that_several_laws_declare() -> None:
    """Every other name is declared once, and the laws of limitlab say the same of a shared one."""
    declared: dict[str, set[type]] = {}
    for law in all_laws().values():
        for name, meta in law.parameters().items():
            owner = next(kind for kind in reversed(law.__mro__) if name in vars(kind).get("__annotations__", {}))
            overriding = [kind for kind in law.__mro__ if name in vars(kind).get("__annotations__", {})]
            declared.setdefault(name, set()).update(overriding or [owner])
            assert name not in PARAMETERS or meta.description == PARAMETERS[name][0], (law, name)
    assert {name for name, kinds in declared.items() if len(kinds) > 1} == set(PARAMETERS)


# -- check points and experiment --------------------------------------------------------------------------------------------


def test_check_points_are_the_laws_at_the_points() -> None:
    assert Mean.check_points() == [Mean(noise=0.7, shrink=0.3), Mean(noise=1.2, shrink=0.6, offset=0.5)]
    assert not [name for name, law in all_laws().items() if "check_points" in vars(law)]


@pytest.mark.parametrize(
    ("wrong", "words"), [({"sizes": ()}, "sizes"), ({"sizes": (1, 50)}, "sizes"), ({"draws": 1}, "draws")]
)
def test_an_experiment_that_cannot_be_compared_is_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=f"{words} = .* is not allowed"):
        Experiment(**wrong)


# -- accuracy ---------------------------------------------------------------------------------------------------------------


def test_a_closed_form_states_rounding() -> None:
    assert Exact().theory().attrs["accuracy"] == CLOSED_FORM
    assert Exact().theory().excess_risk.attrs["numerical_error"] > 0


def test_an_accuracy_that_is_not_stated_is_not_invented() -> None:
    for result in (Mean().theory(), ll.sweep(Mean(), {"noise": [0.5, 1.0], "offset": [1.0, 2.0]}, progress=False)):
        assert result.attrs["accuracy"] == "not stated"
        assert not [name for name in result if "numerical_error" in result[name].attrs]


def test_a_comparison_estimates_an_accuracy_that_is_not_stated() -> None:
    comparison = ll.compare(Mean(), seeds=4, progress=False)
    assert "numerical error is estimated" in comparison.explanation
    errors = [comparison.dataset[f"theory_{name}"].attrs["numerical_error"] for name in ("bias", "excess_risk")]
    assert all(0 < error < 1e-14 for error in errors)
    assert "states no accuracy" not in ll.compare(Exact(), seeds=4, progress=False).explanation


def test_the_contract_estimates_an_accuracy_that_is_not_stated() -> None:
    assert "accuracy" in check_law(Mean)
    with pytest.raises(LawContractError, match=r"accuracy: .*bias states no accuracy and changes by"):
        check_law(Unstable)


def test_every_law_of_limitlab_states_its_accuracy_at_its_first_check_point() -> None:
    silent = [name for name, law in all_laws().items() if "accuracy" not in law.check_points()[0].evaluate()]
    assert silent == []
