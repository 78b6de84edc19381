"""In a notebook and at the prompt: what laws, comparisons, claims and forecasts show, and what misspelt names answer."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.figure import Figure

import limitlab as ll
from limitlab._core.about import full_docstring
from limitlab._core.declaration import own_docstring
from limitlab.lab.check import Criterion
from limitlab.lab.claims import Outcome, Record, find_claims


def balanced(html: str) -> str:
    """The text of a piece of HTML whose elements are all closed."""
    open_ones: list[str] = []
    text: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            open_ones.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert open_ones.pop() == tag

        def handle_data(self, data: str) -> None:
            text.append(data)

    Reader().feed(html)
    assert open_ones == []
    return " ".join(text)


def test_a_law_shows_question_values_and_regime() -> None:
    html = ll.laws.Ridge(ratio=3.0)._repr_html_()
    text = balanced(html)
    for words in ("What are the train and test errors", "features per sample", "ratio", "test_error", "theorem"):
        assert words in text
    assert "<td>3</td>" in html
    assert "<math>" in html


def test_every_law_has_a_page_of_its_own() -> None:
    from limitlab._core.registry import all_laws

    for law in all_laws().values():
        html = law.check_points()[0]._repr_html_()
        assert law.__name__ in balanced(html)
        assert "<code>\\" not in html  # every symbol could be set


def test_a_comparison_shows_its_verdict_and_budget() -> None:
    html = ll.compare(ll.laws.NearestNeighbours.check_points()[0], sizes=[20, 40], seeds=4, progress=False)._repr_html_()
    text = balanced(html)
    assert "finite size allowance" in text
    assert "NearestNeighbours" in text


def test_a_claim_and_what_its_check_found() -> None:
    (claim,) = find_claims(["J8"])
    assert "limitlab verify J8" in balanced(claim._repr_html_())
    outcome = Outcome((Criterion("tau^2", 0.5, "below 1", True),), note="mind the gap", seconds=1.0)
    text = balanced(Record(claim, "pass", outcome)._repr_html_())
    assert "mind the gap" in text
    assert "below 1" in text
    assert "pass" in balanced(outcome._repr_html_())


def test_a_forecast_shows_what_more_data_would_give() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    forecast = ll.Forecast(kernel="linear", ridge=0.01)
    assert "Forecast(" in balanced(forecast._repr_html_())
    html = forecast.fit(X, X[:, 0] + 0.1 * rng.standard_normal(80))._repr_html_()
    text = balanced(html)
    assert "80 (your data)" in text
    assert "320 (4 times)" in text


def test_help_is_made_from_the_declaration() -> None:
    text = inspect.getdoc(ll.laws.Ridge) or ""
    for words in (
        "What are the train and test errors",
        "Regime: n, p -> infinity",
        "Assumes: ",
        "ratio : above 0, inf allowed; default 2.0",
        "kappa (1 - df1) = lambda",
        "References\n----------",
        "Hastie",
        "test_error: mean squared error on a new noisy label",
    ):
        assert words in text
    assert full_docstring(ll.laws.Ridge) == ll.laws.Ridge.__doc__
    assert own_docstring(ll.laws.Ridge) in text
    assert "ratio: float = 2.0" in str(inspect.signature(ll.laws.Ridge))


def test_completion_offers_the_law_and_not_its_library() -> None:
    of = ll.laws.Ridge()
    names = [name for name in dir(of) if not name.startswith("__")]
    assert {"theory", "simulate", "ratio", "model_dump"} <= {*names, *ll.laws.Ridge.model_fields}
    for leftover in ("parse_obj", "schema_json", "construct", "update_forward_refs", "model_rebuild", "json", "dict"):
        assert leftover not in names
        assert hasattr(of, leftover)  # hidden, not gone


def test_a_value_without_a_name_is_answered_in_a_sentence() -> None:
    with pytest.raises(TypeError, match=r"Ridge\(2\.0\) is not allowed: .* Ridge\(ratio=2\.0\)"):
        ll.laws.Ridge(2.0)  # type: ignore[misc]


def test_misspelt_names_are_answered_in_a_sentence() -> None:
    with pytest.raises(AttributeError, match=r"limitlab\.laws has no 'Rigde': did you mean 'Ridge'"):
        _ = ll.laws.Rigde  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"limitlab has no 'Ridge': it is limitlab\.laws\.Ridge"):
        _ = ll.Ridge  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="did you mean 'compare'"):
        _ = ll.compar  # type: ignore[attr-defined]
    assert not hasattr(ll, "__wrapped__")


def test_copies_survive() -> None:
    law = ll.laws.Ridge(ratio=3.0)
    for same in (copy.copy(law), copy.deepcopy(law), pickle.loads(pickle.dumps(law)), law.model_copy()):
        assert same == law
    assert ll.laws.Ridge.model_validate_json(law.model_dump_json()) == law


def test_stop_of_laws_that_overfit_and_of_one_that_does_not() -> None:
    plan = ll.stop(ll.laws.EarlyStopping(ratio=0.8, noise=1.0))
    assert plan.learned < plan.time < plan.overfit < np.inf
    assert plan.final_test_error > plan.test_error
    assert plan.overlap is None
    assert f"stop at time {plan.time:.3g}" in plan.words()
    exact = ll.laws.EarlyStopping(ratio=0.8, noise=1.0, times=plan.time).theory().test_error
    assert abs(float(exact) / plan.test_error - 1) < 1e-3
    assert ll.stop(ll.laws.MultiPassLeastSquares()).overfit < np.inf
    quiet = ll.stop(ll.laws.StreamingLeastSquares())
    assert quiet.overfit == np.inf
    assert "stays close to its best value" in quiet.words()
    table = ll.stop(ll.laws.EarlyStopping(ratio=0.8), {"noise": [0.5, 1.0]})
    assert table.time[0] > table.time[1]  # the noisier, the sooner
    with pytest.raises(ValueError, match="no test error along training times"):
        ll.stop(ll.laws.Ridge())


def test_a_figure_by_its_id() -> None:
    assert isinstance(ll.figure("interpolating-fit"), Figure)
    with pytest.raises(ValueError, match="there is no figure 'nothing-like-it'"):
        ll.figure("nothing-like-it")


def test_showing_oneself_costs_nothing_before_it_is_asked_for() -> None:
    program = "import sys, limitlab as ll; ll.laws.Ridge(); print('latex2mathml' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == ["False"]
