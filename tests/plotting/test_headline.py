"""The headline view of every law is declared, is not empty and shows something."""

import json
import math

import numpy as np
import pytest

from limitlab import laws
from limitlab._core.headline import headline_of
from limitlab._core.registry import all_laws
from limitlab.laws import Headline, Mark, Ridge
from limitlab.plotting.headline import headline_view

LAWS = [pytest.param(law, id=name) for name, law in sorted(all_laws().items())]
SLOW = {
    "GeneralMixtureAlignment",
    "OutputScale",
    "TwoGaussians",
    "NoisyMeanField",
    "FirstOrderDynamics",
    "BayesOptimal",
    "WideNetwork",
}
LEVELS = {"Distillation": {"teacher_excess_risk"}}
"""Observables whose line is constant on purpose."""
FEW = {"XorAlignment"}
"""Laws whose axis has only a few whole numbers."""


@pytest.mark.parametrize("law", LAWS)
def test_the_declaration_names_what_exists(law):
    view = law.headline
    assert view is not None
    assert 2 <= len(view.finding.split()) <= 8
    assert "=" not in view.finding
    assert 1 <= len(view.show) <= 2
    if view.x != "size" and not hasattr(law, "headline_line"):
        assert view.x in law.parameters()
    if not hasattr(law, "headline_line"):
        assert set(view.show) <= set(law.all_outputs())
    assert set(view.sliders) <= set(law.parameters())
    assert view.places or hasattr(law, "headline_histogram")
    low, high, _ = view.over
    assert all(low <= place <= high for place in view.places)


@pytest.mark.parametrize(
    "law",
    [
        pytest.param(law, id=name, marks=[pytest.mark.slow] * (law.__name__ in SLOW))
        for name, law in sorted(all_laws().items())
    ],
)
def test_the_lines_show_something(law):
    view = headline_view(law, points=False)
    lines = [series for series in view.series if series.kind == "line"]
    assert lines
    for line in lines:
        y = np.array(line.y)
        assert not np.isnan(y).any()
        if law.headline.x == "size":  # the limit is a level there, and the points carry the picture
            continue
        assert len(y) >= 40 or law.__name__ in FEW
        finite = y[np.isfinite(y)]
        levels = LEVELS.get(law.__name__, set())
        assert (
            line.name in levels
            or np.ptp(finite) > 0.05 * np.abs(finite).mean()
            or any(np.ptp(np.array(other.y)) > 0.05 for other in lines if other.curve != line.curve)
        )


def test_points_follow_the_lines():
    view = headline_view(Ridge)
    for curve in range(3):
        line, points = (next(s for s in view.series if s.kind == kind and s.curve == curve) for kind in ("line", "points"))
        expected = np.interp(np.log(points.x), np.log(line.x), line.y)
        assert np.all(np.abs(np.array(points.y) - expected) < 0.15 * expected + 5 * np.array(points.error))


def test_parameters_of_a_law_replace_those_of_the_view():
    view = headline_view(Ridge(noise=0.1, ridge=0.5), points=False)
    assert len(view.series) == 1  # the law sets the penalty, so there is one curve
    assert "noise 0.1" in view.setting
    assert "ridge 0.5" in view.setting


def test_a_histogram_is_a_density():
    view = headline_view(laws.MarchenkoPastur)
    bars = [series for series in view.series if series.kind == "histogram"]
    assert len(bars) == 3
    for each in bars:
        assert math.isclose(float(np.sum(np.diff(each.x) * each.y)), 1.0, rel_tol=1e-9)


def test_the_view_is_plain_data():
    text = json.dumps(headline_view(laws.EquiangularTokens, points=False).as_dict())
    assert json.loads(text)["finding"] == "All tokens become one within a few layers"


def test_a_law_without_a_declaration_gets_a_view():
    class Undeclared(Ridge):
        """How large is the error?"""

        headline = None

    assert headline_of(Undeclared).x == "ratio"
    assert headline_view(Undeclared, points=False).series


def test_marks_follow_the_curves():
    mark = Mark("x", lambda law: law.ratio, "here")
    assert mark.position(Ridge(ratio=3.0)) == 3.0
    positions = [each.value for each in headline_view(laws.MaxMargin, points=False).marks]
    assert len(positions) == 3
    assert positions == sorted(positions, reverse=True)


def test_values_of_whole_numbers():
    assert Headline("few", x="size", over=(1, 1000, 61), show=("risk",), scale="log", whole=True).values()[:3].tolist() == [
        1,
        2,
        3,
    ]
