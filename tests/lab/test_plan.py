"""Planning and optimising on curves whose answers are known, and on ridge regression."""

import numpy as np
import pytest

import limitlab as ll
from limitlab.errors import UnreachableTarget
from limitlab.laws import Law, parameter


class Curve(Law):
    """A curve with a dip near x = 1 and a pole at x = 3?"""

    observables = ("test_error",)

    x: float = parameter(2.0, "position", above=0, scale="log")
    number: int = parameter(5, "a whole number", least=1)

    def predicted(self, x):
        with np.errstate(divide="ignore"):
            return {"test_error": 0.1 + np.log(x) ** 2 + 0.02 / np.abs(x - 3) + 0.001 * (self.number - 7) ** 2}


def test_every_crossing_is_found_also_around_a_narrow_peak():
    answer = ll.plan(Curve(number=7), {"test_error": 2.5}, solve_for="x", bounds=(0.01, 4.0))
    roots = answer.solutions.values
    assert len(roots) == 3  # one left of the dip, one on each side of the pole
    assert abs(roots[1] - 2.983) < 0.01 > abs(roots[2] - 3.017)
    np.testing.assert_allclose(Curve(number=7).evaluate(x=roots)["test_error"], 2.5, rtol=1e-12)
    assert float(answer.x) == roots[0]


def test_dip_between_two_points_of_the_scan_is_found():
    best = ll.optimal(Curve(number=7), over="x", minimise="test_error", bounds=(0.01, 2.5))
    answer = ll.plan(Curve(number=7), {"test_error": float(best.test_error) + 1e-9}, solve_for="x", bounds=(0.01, 2.5))
    assert answer.sizes["solution"] == 2


def test_preference_picks_among_the_solutions():
    target = {"test_error": 0.5}
    low = ll.plan(Curve(number=7), target, "x", bounds=(0.01, 2.5))
    high = ll.plan(Curve(number=7), target, "x", bounds=(0.01, 2.5), prefer="largest")
    near = ll.plan(Curve(number=7, x=2.0), target, "x", bounds=(0.01, 2.5), prefer="nearest")
    assert float(low.x) < 1 < float(high.x) == float(near.x)


def test_unreachable_target_says_the_best_value_and_where():
    with pytest.raises(UnreachableTarget, match="out of reach") as caught:
        ll.plan(Curve(number=7), {"test_error": 0.05}, solve_for="x", bounds=(0.01, 2.5))
    best = ll.optimal(Curve(number=7), over="x", minimise="test_error", bounds=(0.01, 2.5))
    assert caught.value.best == pytest.approx(float(best.test_error), rel=1e-12)
    assert caught.value.at == pytest.approx(float(best.x), rel=1e-9)


def test_whole_number_parameters_are_chosen_among_whole_numbers():
    best = ll.optimal(Curve(x=1.0), over="number", minimise="test_error", bounds=(1, 1000))
    assert float(best["number"]) == 7
    enough = ll.plan(Curve(x=1.0), {"test_error": 0.2}, solve_for="number", bounds=(1, 1000))
    assert all(float(value).is_integer() for value in enough.solutions)


def test_default_range_stops_where_another_parameter_says():
    law = ll.laws.NearestNeighbours(samples=300, neighbours=3)
    best = ll.optimal(law, over="neighbours", minimise="excess_risk")
    risks = [float(law.replace(neighbours=k).theory().excess_risk) for k in range(1, 301)]
    assert int(best.neighbours) == 1 + int(np.argmin(risks))


def test_optimal_ridge_of_the_isotropic_model_is_the_closed_form():
    for ratio, signal, variance in [(0.5, 1.0, 0.5), (2.0, 4.0, 1.0), (1.0, 1.0, 0.25)]:
        law = ll.laws.Ridge(ratio=ratio, noise=variance**0.5, signal_energy=(signal,))
        best = ll.optimal(law, over="ridge", minimise="excess_risk")
        assert float(best.ridge) == pytest.approx(ratio * variance / signal, rel=1e-10)


def test_plan_inverts_ridge_theory_in_each_parameter():
    law = ll.laws.Ridge(ratio=0.7, ridge=0.2, noise=0.6)
    target = {"test_error": float(law.theory().test_error)}
    for name in ("ratio", "ridge", "noise"):
        answer = ll.plan(law, target, solve_for=name)
        assert np.isclose(answer.solutions.values, getattr(law, name), rtol=1e-9).any()


@pytest.mark.parametrize(
    ("target", "solve_for", "bounds", "words"),
    [
        ({"test_error": 0.3, "train_error": 0.1}, "ratio", None, "exactly one"),
        ({"tset_error": 0.3}, "ratio", None, "did you mean 'test_error'"),
        ({"test_error": 0.3}, "ratoi", None, "did you mean 'ratio'"),
        ({"test_error": float("nan")}, "ratio", None, "finite"),
        ({"test_error": 0.3}, "eigenvalues", None, "not a single number"),
        ({"test_error": 0.3}, "ratio", (2.0, 1.0), "smaller one first"),
        ({"test_error": 0.3}, "ratio", (-1.0, 1.0), "above 0"),
    ],
)
def test_bad_plans_are_refused_by_name(target, solve_for, bounds, words):
    with pytest.raises(ValueError, match=words):
        ll.plan(ll.laws.Ridge(), target, solve_for, bounds=bounds)


def test_optimal_says_when_there_is_nothing_to_choose():
    law = ll.laws.SingularKernelSmoother(dimension=6)
    with pytest.raises(ValueError, match="empty_probability does not depend on smoothness"):
        ll.optimal(law, over="smoothness", minimise="empty_probability")
