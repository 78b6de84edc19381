"""The cone of positive neurons: reference value, bounds, invariant of the flow, the start that leaves it."""

import numpy as np
import pytest

from limitlab.laws import ConeFlow
from limitlab.laws.mean_field._training import circle, labels, relu_descent
from limitlab.laws.mean_field.cone import cone_risk
from references import label, reference


@pytest.mark.parametrize("entry", reference("further_dynamics", "stuck_mean_field"), ids=label)
def test_reference(entry):
    given_, want = entry["inputs"], entry["outputs"]
    law = ConeFlow(angle=given_["angle"], inputs=given_["inputs"], directions=given_["directions"])
    found = law.theory()
    assert float(found.risk) == pytest.approx(want["positive_cone_risk"], abs=1e-9)
    assert float(found.zero_risk) == pytest.approx(want["risk_of_zero"], abs=1e-9)
    assert float(found.lower_bound) == pytest.approx(want["lower_bound"], abs=1e-9)
    assert float(law.replace(signs="both").theory().risk) == want["full_support_risk"]
    assert float(law.simulate(20, 0).risk) == pytest.approx(want["positive_cone_risk"], abs=entry["tolerance"])
    assert float(law.replace(signs="both").simulate(20, 0).risk) < 1e-4


@pytest.mark.parametrize(("angle", "value"), [(2.6, 0.2484343), (1.2, 0.1387887)])
def test_other_angles(angle, value):
    assert cone_risk(angle, 200, 2000) == pytest.approx(value, abs=1e-7)


@pytest.mark.parametrize("angle", [0.3, 1.5, 3.0])
def test_the_value_lies_between_its_bounds(angle):
    found = ConeFlow(angle=angle, inputs=40, directions=400).theory()
    assert float(found.lower_bound) <= float(found.risk) + 1e-12 <= float(found.zero_risk)


def test_the_flow_keeps_the_difference_of_squares_up_to_its_steps():
    x, rng = circle(50), np.random.default_rng(0)
    w = rng.standard_normal((10, 2))
    a = 2 * np.linalg.norm(w, axis=1)
    drifts = []
    for step in (0.02, 0.01):
        later, weights = relu_descent(a, w, x, labels(x, 2.0), step, 5.0)
        drifts.append(np.abs(later**2 - np.sum(weights**2, axis=1) - a**2 + np.sum(w**2, axis=1)).max())
    assert 1.8 < drifts[0] / drifts[1] < 2.2


def test_starts_of_both_signs_leave_the_cone():
    """The control: what the positive start cannot do, one with both signs does."""
    law = ConeFlow(angle=2.0, inputs=60, directions=600)
    stuck, free = (float(law.replace(signs=signs).simulate(20, 1).risk) for signs in ("positive", "both"))
    assert stuck > 0.2
    assert free < 1e-3


def test_refusals():
    with pytest.raises(ValueError, match="angle"):
        ConeFlow(angle=0.0)
    with pytest.raises(ValueError, match="signs"):
        ConeFlow(signs="negative")
