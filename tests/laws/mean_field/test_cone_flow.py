"""The cone of positive neurons: reference value, bounds, invariant of the flow, the start that leaves it."""

import numpy as np
import pytest

import limitlab as ll
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


# -- labels from a function of the angle ------------------------------------------------------------------------------------


def wave(t):
    return 0.3 + np.cos(t) + 0.5 * np.cos(2 * t) - 0.4 * np.sin(2 * t)


def two_neurons(t):
    return np.maximum(np.cos(t), 0) - np.maximum(np.cos(t - 2.0), 0)


@pytest.mark.parametrize("signs", ["positive", "both"])
def test_two_neurons_as_a_function_have_the_same_limit(signs):
    own, same = (ConeFlow(signs=signs, **changes).theory() for changes in (dict(target_function=two_neurons), {}))
    for name in same.data_vars:
        assert float(own[name]) == pytest.approx(float(same[name]), abs=1e-8)


def test_compare_agrees_for_labels_of_a_wave():
    law = ConeFlow(target_function=wave, inputs=40, directions=400)
    assert ll.compare(law).verdict == "agree"
    assert float(law.theory().risk) == pytest.approx(0.135057, abs=1e-6)


def test_odd_harmonics_are_not_learned_with_both_signs():
    law = ConeFlow(target_function=lambda t: np.cos(t) + 0.5 * np.cos(2 * t) + 0.6 * np.cos(3 * t), inputs=80, signs="both")
    limit = float(law.theory().risk)
    assert limit == pytest.approx(0.6**2 / 2, abs=1e-12)
    assert limit - 1e-9 <= float(law.simulate(40, 0).risk) < limit + 2e-4


def test_descent_on_labels_that_jump_attains_the_value_of_the_cone():
    law = ConeFlow(target_function=lambda t: 1.0 * (np.cos(t - 1) > 0.2) - 0.3, inputs=80, directions=800)
    assert float(law.simulate(40, 0).risk) == pytest.approx(float(law.theory().risk), abs=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(target_function=wave, angle=1.0), "angle = 1 is not allowed together with target_function"),
        (dict(target_function=lambda t: 0 * t), "the labels would be 0"),
        (dict(target_function=lambda t: np.sign(t - 1.0), signs="both"), "of its mean square is in harmonics"),
        (dict(target_function=lambda t: np.cos(8 * t), signs="both"), "use a smoother function"),
        (dict(target_function=lambda t: np.cos(3 * t), signs="both", inputs=81), "an even number of inputs"),
        (dict(target_function=lambda t: 1 / (t - t)), "not finite"),
        (dict(target_function="cos"), "must be a function"),
    ],
)
def test_refused_labels(changes, message):
    with pytest.raises(ValueError, match=message):
        ConeFlow(**changes)
