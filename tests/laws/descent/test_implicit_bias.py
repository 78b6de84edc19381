"""Implicit bias: reference values through the API, where descent ends, how fast, refusals."""

import numpy as np
import pytest

from limitlab.laws import LeastSquaresDescent, LogisticDescent, MaxMargin, Ridge
from limitlab.laws.descent._separable_flow import LeastSquares, SeparableFlow, gradient_descent
from limitlab.laws.descent.least_squares import descent_limit
from references import reference

ENTRIES = {entry["law"]: entry for entry in reference("margins") if entry["law"].startswith("gd_")}


def separable(n, p, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, p))
    return X, np.sign(X[:, 0])


# -- separable data -----------------------------------------------------------------------------------------------------------


def test_separable_reference():
    inputs, wanted = (ENTRIES["gd_exponential_separable"][key] for key in ("inputs", "outputs"))
    law = LogisticDescent.from_data(inputs["X"], inputs["y"])
    np.testing.assert_allclose(law.direction, wanted["w_hat"], rtol=1e-9)
    np.testing.assert_allclose(law.margin, wanted["margin"], rtol=1e-9)
    np.testing.assert_allclose(law.correction, wanted["w_tilde"], rtol=1e-9)
    np.testing.assert_allclose(law.gap_constant, wanted["dir_gap_times_log_t_limit"], rtol=1e-9)
    times = [float(t) for t in wanted["direction_gap"]]
    np.testing.assert_allclose(law.direction_gap(times), list(wanted["direction_gap"].values()), rtol=1e-6)
    assert law.direction_gap(times[0]).shape == ()


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
@pytest.mark.parametrize(("n", "p"), [(30, 10), (20, 40)])
def test_remainder_converges_and_the_gap_follows(loss, n, p):
    X, y = separable(n, p)
    law = LogisticDescent.from_data(X, y, loss=loss)
    times = np.array([1e4, 1e5, 1e6])
    np.testing.assert_allclose(law.direction_gap(times) * times, law.gap_constant, rtol=2e-3)
    support = law.flow.vectors[law.flow.hard_margin.support]
    late = law.flow.remainders([law.flow.settled])[0]
    np.testing.assert_allclose(support @ late, support @ law.correction, atol=1e-8)
    np.testing.assert_allclose(np.linalg.norm(law.flow.weights(times), axis=1) / times, 1 / law.margin, rtol=3e-3)


def test_plain_descent_follows_the_flow():
    X, y = separable(30, 10)
    flow = SeparableFlow(y[:, None] * X)
    gaps = []
    for step in (0.02, 0.01):
        walked = gradient_descent(flow, step, [round(20 / step)])[0]
        gaps.append(np.linalg.norm(walked - flow.weights([np.log(20)])[0]))
    assert gaps[0] / gaps[1] == pytest.approx(2, rel=0.1)  # first order in the step


def test_both_losses_share_direction_and_correction():
    X, y = separable(40, 25)
    a, b = (LogisticDescent.from_data(X, y, loss=loss) for loss in ("exponential", "logistic"))
    np.testing.assert_allclose(a.direction, b.direction)
    np.testing.assert_allclose(a.correction, b.correction)
    assert a.gap_constant != pytest.approx(b.gap_constant, rel=1e-6)  # the part outside the span of the support differs


def test_random_inputs_have_the_max_margin_limit():
    law = LogisticDescent(ratio=2.0, link="probit", link_strength=2.0)
    assert law.margin == pytest.approx(float(MaxMargin(ratio=2.0, link="probit", link_strength=2.0).theory().margin))
    run = law.simulate(30, 0)
    assert float(run.gap_product) == pytest.approx(1, abs=1e-7)


def test_data_law_round_trip_and_simulation():
    law = LogisticDescent.from_data(*separable(12, 5))
    assert LogisticDescent.model_validate_json(law.model_dump_json()) == law
    run, theory = law.simulate(5, 0), law.theory()
    for name in law.observables:
        assert float(run[name]) == pytest.approx(float(theory[name]), rel=1e-8)


def test_measurements_are_extrapolated_to_infinite_time():
    """What is left at log t is of its second order: a hundred times less at ten times log t."""
    law = LogisticDescent.from_data(*separable(12, 5))
    theory = law.evaluate()
    gaps = np.array(
        [[law.replace(log_time=t).experiment(5, 0)[name] / theory[name] - 1 for name in law.observables] for t in (1e3, 1e4)]
    )
    np.testing.assert_allclose(gaps[0] / gaps[1], 100, rtol=0.05)
    assert np.abs(gaps[1]).max() < 1e-6


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], [1, 1, 1], "no direction separates"),
        ([[1.0, 0.0], [1.0, 0.0]], [1, 1], "linearly dependent"),
        ([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]], [1, 1, 1], "linearly dependent|multiplier 0"),
    ],
)
def test_degenerate_data_are_refused(X, y, message):
    with pytest.raises(ValueError, match=message):
        LogisticDescent.from_data(X, y).gap_constant  # noqa: B018


def test_refusals_of_parameters():
    with pytest.raises(ValueError, match=r"labels must be -1 or \+1"):
        LogisticDescent.from_data([[1.0]], [0.0])
    with pytest.raises(ValueError, match="targets of shape"):
        LogisticDescent.from_data([[1.0]], [1.0, 1.0])
    with pytest.raises(ValueError, match="finite"):
        LeastSquaresDescent.from_data([[np.nan, 1.0]], [1.0])
    with pytest.raises(ValueError, match=r"ratio = 0.2 is not allowed: must be above 0.33"):
        LogisticDescent(ratio=0.2, link="flip", link_strength=0.1)
    with pytest.raises(ValueError, match="from_data"):
        LogisticDescent().direction  # noqa: B018
    with pytest.raises(ValueError, match="together"):
        LeastSquaresDescent(inputs=[[1.0, 2.0]])


# -- least squares ------------------------------------------------------------------------------------------------------------


def test_least_squares_reference():
    inputs, wanted = (ENTRIES["gd_least_squares"][key] for key in ("inputs", "outputs"))
    law = LeastSquaresDescent.from_data(inputs["X"], inputs["y"])
    np.testing.assert_allclose(law.interpolant, wanted["theta"], atol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(law.interpolant), wanted["norm"], atol=1e-10)
    np.testing.assert_allclose(law.largest_step, wanted["eta_max"], atol=1e-10)
    np.testing.assert_allclose(law.best_rate, wanted["best_rate"], atol=1e-10)
    np.testing.assert_allclose(law.problem.descend(60), wanted["theta"], atol=1e-10)


def test_spectrum_predicts_every_step_of_given_data():
    rng = np.random.default_rng(0)
    law = LeastSquaresDescent.from_data(rng.standard_normal((10, 25)), rng.standard_normal(10))
    for steps in (0, 1, 7, 30):
        chosen = law.replace(steps=steps)
        assert float(chosen.theory().distance) == pytest.approx(float(chosen.simulate(25, 0).distance), rel=1e-9)


def test_steps_beyond_the_largest_are_refused_and_would_diverge():
    law = LeastSquaresDescent()
    problem = law.random_problem(law.draw(40, 0))
    with pytest.raises(ValueError, match="step = "):
        problem.descend(10, step=1.01 * problem.largest_step)
    theta = np.zeros(40)
    for _ in range(3000):
        theta = theta - 2 * 1.02 * problem.largest_step / len(problem.X) * problem.X.T @ (problem.X @ theta - problem.y)
    assert np.linalg.norm(theta) > 1e6


def test_end_is_the_nearest_interpolant():
    rng = np.random.default_rng(1)
    problem = LeastSquares(rng.standard_normal((8, 20)), rng.standard_normal(8))
    start = rng.standard_normal(20)
    end = problem.limit(start)
    np.testing.assert_allclose(problem.X @ end, problem.y, atol=1e-12)
    np.testing.assert_allclose(problem.descend(2000, start=start), end, atol=1e-9)
    kernel = rng.standard_normal(20)
    kernel -= problem.X.T @ np.linalg.lstsq(problem.X.T, kernel, rcond=None)[0]
    assert np.linalg.norm(end + 0.1 * kernel - start) > np.linalg.norm(end - start)


def test_limits_of_random_data():
    ridge = Ridge(ratio=4.0, ridge=0.0, noise=0.5).theory()
    values = descent_limit(4.0, [0, 5, 5000], 1.0, 0.5)
    assert float(values["coefficient_norm"][0]) == pytest.approx(float(ridge.coefficient_norm), rel=1e-12)
    assert float(values["distance"][0]) == pytest.approx(1, rel=1e-12)
    assert float(values["distance"][2]) < 1e-300
    rate = float(values["best_rate"][0])
    late = descent_limit(4.0, [400, 401], 1.0, 0.5)["distance"]
    assert float(late[1] / late[0]) == pytest.approx(rate * (1 - 0.75 / 400), rel=1e-4)  # rate^k k^(-3/4) from the edges
