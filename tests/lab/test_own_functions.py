"""Functions of a user in laws: every kind works or is refused with a sentence, and nothing fails late (tests/own_functions.py)."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import limitlab as ll
from limitlab.errors import FailedFunction, Refused
from own_functions import KINDS, PLACES, Place, named, outcome

BAD = {"only numbers", "wrong shape", "NaN", "exception", "late exception", "above 1"}
QUICK = {"RandomFeaturesRidge", "WideNetwork", "KernelGradientFlow", "PopulationFlow", "MaxMargin", "TangentInterpolation"}
PAGE = Path(__file__).parents[2] / "docs" / "howto" / "own_functions_table.md"


def label(place: Place) -> str:
    return f"{place.law}-{place.parameter}-{place.rest.get('model', '')}"


@pytest.mark.parametrize("place", PLACES, ids=label)
def test_functions_that_cannot_work_are_refused_at_construction(place: Place) -> None:
    for kind in BAD & set(place.kinds):
        with pytest.raises(ValueError, match=r"not allowed|raised"):
            place.build(place.kinds[kind])


@pytest.mark.parametrize("place", [place for place in PLACES if place.law in QUICK], ids=label)
def test_other_functions_work_or_are_refused(place: Place) -> None:
    small = replace(place, draws=max(6, place.draws // 3))
    for kind in ("lambda", "kink at 0.3", "jump", "table"):
        if kind in place.kinds:
            result = outcome(small, place.kinds[kind])
            assert result.verdict in ("works", "refused", "refused by the experiment"), (kind, result)
            assert not result.z > 6, (kind, result)


def test_the_page_has_no_late_failure_and_every_place() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert "LATE" not in text
    for place in PLACES:
        assert f"## {place.law}, `{place.parameter}`" in text
    assert set(re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE)) >= set(KINDS)


def test_prediction_and_experiment_use_the_derivative_that_is_computed() -> None:
    own = ll.laws.WideNetwork(activation=lambda x: np.tanh(x), layers=2)
    known = ll.laws.WideNetwork(activation="tanh", layers=2)
    assert abs(float(own.theory().tangent_pair) - float(known.theory().tangent_pair)) < 1e-8
    x = np.linspace(-20.0, 20.0, 999)
    np.testing.assert_allclose(own.activation.derivative(x), known.activation.derivative(x), atol=1e-9)
    np.testing.assert_allclose(own.activation.second_derivative(x), known.activation.second_derivative(x), atol=1e-7)


def test_lambdas_are_refused_on_processes_with_name_and_remedy() -> None:
    law = ll.laws.RandomFeaturesRidge(activation=lambda x: np.tanh(x))
    with pytest.raises(
        Refused, match=r"activation = <lambda> \(.*test_own_functions.py:\d+\).*with def in a module.*engine='threads'"
    ):
        ll.sweep(law, over={"ridge": [0.1, 0.2]}, sizes=[20], seeds=2, engine=2)
    result = ll.sweep(law, over={"ridge": [0.1, 0.2]}, sizes=[20], seeds=2, engine="threads")
    assert np.isfinite(result.test_error).all()


def test_functions_of_a_module_are_sent_to_processes() -> None:
    import pickle

    law = ll.laws.RandomFeaturesRidge(activation=named)
    assert pickle.loads(pickle.dumps(law)) == law


def test_errors_of_a_function_name_the_law_and_the_line() -> None:
    calls = {"count": 0}

    def breaks(x: Any) -> Any:
        calls["count"] += 1
        if np.ndim(x) == 2 and np.shape(x)[0] == 37:
            raise ZeroDivisionError("a mistake of the user")
        return np.tanh(x)

    law = ll.laws.RandomFeaturesRidge(activation=breaks, sample_ratio=1.0, width_ratio=2.0)
    law.theory()
    message = r"RandomFeaturesRidge at size 37.*ZeroDivisionError: a mistake of the user at .*test_own_functions\.py:\d+"
    with pytest.raises(FailedFunction, match=message):
        law.simulate(37, 0)


@pytest.mark.parametrize("function", ["erf", "jax gelu", "integers", "vectorised", "in place", "not element by element"])
def test_further_functions(function: str) -> None:
    import jax
    from scipy.special import erf

    def in_place(x: Any) -> Any:
        x[x < 0] = 0
        return x

    functions: dict[str, Any] = {
        "erf": erf,
        "jax gelu": jax.nn.gelu,
        "integers": lambda x: np.where(x > 0, 1, 0),
        "vectorised": np.vectorize(lambda x: 0 if x < 0 else x),
        "in place": in_place,
        "not element by element": lambda x: x - np.mean(x),
    }
    build = lambda: ll.laws.RandomFeaturesRidge(activation=functions[function])  # noqa: E731
    if function in ("vectorised", "in place", "not element by element"):
        with pytest.raises(ValueError, match="not allowed"):
            build()
    else:
        law = build()
        assert np.isfinite(float(law.theory().test_error))
        assert np.isfinite(float(law.simulate(20, 0).test_error))
