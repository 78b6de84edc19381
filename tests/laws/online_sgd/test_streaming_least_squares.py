"""One-pass SGD on least squares: reference values, the loop against the closed form, identities, thresholds, refusals."""

from functools import partial

import numpy as np
import pytest

from limitlab.errors import UnreachableTarget
from limitlab.laws import StreamingLeastSquares
from limitlab.models.streams import white_entries
from references import reference

entries = partial(reference, "scaling")
EXACT = entries("streaming_least_squares")


def power_law(size=300, exponent=1.2, **options):
    s = np.arange(1, size + 1.0) ** -exponent
    return StreamingLeastSquares(
        eigenvalues=s, weights=np.ones(size), signal_energy=options.pop("energy", np.ones(size)), dimension=size, **options
    )


def law_of(inputs, **more):
    """The law of an entry that lists its eigenvalues: the step as it runs times d, the number of steps over d."""
    d = len(inputs["eigenvalues"])
    options = {name: inputs[name] for name in ("batch", "noise", "momentum", "excess_kurtosis") if name in inputs}
    if "scale" in inputs:
        options["schedule"] = lambda k: (1 + k / inputs["scale"]) ** -inputs["power"]
    if "average_from" in inputs:
        options["average_from"] = inputs["average_from"] / d
    return StreamingLeastSquares(
        eigenvalues=inputs["eigenvalues"],
        weights=[1.0] * d,
        signal_energy=inputs["start_energy"],
        step=inputs["step"] * d,
        times=[k / d for k in inputs["steps"]],
        dimension=d,
        **(options | more),
    )


def loop(law, steps):
    """Equation (1) step by step, one direction at a time."""
    d = law.dimension
    s, a = np.asarray(law.eigenvalues), np.asarray(law.signal_energy)
    eta, batch, risks = law.step / d, law.batch, []
    for _ in range(steps + 1):
        risks.append(s @ a)
        rho = (1 - eta * s) ** 2 + eta**2 * s**2 * (1 + law.kurtosis) / batch
        a = rho * a + eta**2 / batch * s * (risks[-1] + law.noise**2)
    return np.array(risks)


# -- reference values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", EXACT[:5], ids=["plain", "signs", "momentum", "schedule", "average"])
def test_reference_trajectories(entry):
    law, wanted = law_of(entry["inputs"]), entry["outputs"]
    found, tolerance = law.theory(), float(entry["tolerance"].removeprefix("rel "))
    for name, observable in (("excess", "excess_risk"), ("average_excess", "average_excess_risk")):
        if name in wanted:
            np.testing.assert_allclose(found[observable].values, wanted[name], rtol=tolerance)
    if "stationary_excess" in wanted:
        np.testing.assert_allclose(law.stationary_risk(), wanted["stationary_excess"], rtol=tolerance)
        np.testing.assert_allclose(law.largest_step() / law.dimension, wanted["largest_step"], rtol=tolerance)


def test_reference_long_run():
    inputs, wanted = EXACT[5]["inputs"], EXACT[5]["outputs"]
    law = power_law(step=60.0, noise=0.5, times=[k / 300 for k in inputs["steps"]])
    np.testing.assert_allclose(law.theory().excess_risk, wanted["excess"], rtol=1e-9)
    np.testing.assert_allclose(law.stationary_risk(), wanted["stationary_excess"], rtol=1e-9)
    np.testing.assert_allclose(law.slowest_rate() / 300, wanted["slowest_rate_per_step"], rtol=1e-9)
    np.testing.assert_allclose(law.average_constant() * 300, wanted["steps_times_average_excess_limit"], rtol=1e-9)


def test_reference_thresholds():
    inputs, wanted = EXACT[6]["inputs"], EXACT[6]["outputs"]
    for i, batch in enumerate(inputs["batch"]):
        law = power_law(step=1e-3, batch=batch)
        np.testing.assert_allclose(law.largest_step() / 300, wanted["largest_step"][i], rtol=1e-9)
        signs = law.replace(entries="sign").largest_step() / 300
        np.testing.assert_allclose(signs, wanted["largest_step_sign_entries"][i], rtol=1e-9)
        np.testing.assert_allclose(law.critical_batch(), wanted["critical_batch"], rtol=1e-9)


def test_reference_best_step():
    inputs, wanted = EXACT[7]["inputs"], EXACT[7]["outputs"]
    law = power_law(step=1.0, noise=0.5, times=(inputs["steps"] / 300,))
    best = law.best_step()
    np.testing.assert_allclose(best / 300, wanted["optimal_step"], rtol=1e-4)
    np.testing.assert_allclose(law.replace(step=best).theory().excess_risk, [wanted["excess"]], rtol=1e-8)


def test_reference_limit():
    (entry,) = entries("streaming_least_squares_limit")
    inputs, wanted = entry["inputs"], entry["outputs"]
    law = StreamingLeastSquares(
        eigenvalues=inputs["eigenvalues"],
        weights=inputs["weights"],
        signal_energy=inputs["start_energy"],
        step=inputs["step_times_dimension"],
        batch=inputs["batch"],
        noise=inputs["noise"],
        times=inputs["times_steps_per_dimension"],
    )
    np.testing.assert_allclose(law.theory().excess_risk, wanted["excess"], rtol=1e-10)
    np.testing.assert_allclose(law.largest_step(), wanted["largest_step_times_dimension"], rtol=1e-10)
    exact = law.replace(dimension=3200).theory().excess_risk
    np.testing.assert_allclose(exact, wanted["excess"], rtol=2e-3)


# -- identities -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("batch", "entry_law"), [(1, "gaussian"), (4, "sign")])
def test_closed_form_is_the_loop(batch, entry_law):
    law = power_law(60, 1.0, step=60 * 0.2, batch=batch, entries=entry_law, times=np.arange(2001) / 60)
    np.testing.assert_allclose(law.theory().excess_risk, loop(law, 2000), rtol=1e-12)


def test_general_recursion_is_the_closed_form_without_momentum():
    law = power_law(40, 1.0, step=8.0, batch=2, noise=0.7, times=np.arange(1, 200) / 40)
    same = law.replace(schedule=lambda k: 1.0 + 0 * k)
    np.testing.assert_allclose(same.theory().excess_risk, law.theory().excess_risk, rtol=1e-12)


def test_average_is_the_double_sum_over_iterates():
    law = power_law(7, 1.0, step=2.0, noise=0.4, average_from=3 / 7, times=(11 / 7,))
    d, eta = 7, 2.0 / 7
    s, a = np.asarray(law.eigenvalues), [np.ones(d)]
    for _ in range(11):
        rho = (1 - eta * s) ** 2 + eta**2 * s**2
        a.append(rho * a[-1] + eta**2 * s * (s @ a[-1] + law.noise**2))
    total = sum(a[min(i, j)] * (1 - eta * s) ** abs(i - j) for i in range(3, 11) for j in range(3, 11))
    np.testing.assert_allclose(law.theory().average_excess_risk, [s @ total / 8**2], rtol=1e-12)


def test_one_direction_has_a_closed_form():
    eta, tau, batch = 0.3, 0.6, 2
    law = StreamingLeastSquares(step=eta, batch=batch, noise=tau, dimension=1, times=(0.0, 1.0, 7.0))
    rho = (1 - eta) ** 2 + 2 * eta**2 / batch
    k = np.array([0, 1, 7])
    np.testing.assert_allclose(
        law.theory().excess_risk, rho**k + eta**2 / batch * tau**2 * (1 - rho**k) / (1 - rho), rtol=1e-13
    )


def test_units_of_the_inputs_do_not_matter():
    law = power_law(30, 1.0, step=5.0, noise=0.5, times=(1.0, 5.0))
    scaled = law.replace(
        eigenvalues=3 * np.asarray(law.eigenvalues), signal_energy=np.asarray(law.signal_energy) / 3, step=5.0 / 3
    )
    np.testing.assert_allclose(scaled.theory().excess_risk, law.theory().excess_risk, rtol=1e-12)


def test_a_large_batch_is_gradient_descent_and_decreases():
    law = power_law(30, 1.0, step=30.0, noise=0.0, batch=10**9, times=np.arange(50) / 30)
    s = np.asarray(law.eigenvalues)
    wanted = [s @ (1 - s) ** (2 * k) for k in range(50)]
    np.testing.assert_allclose(law.theory().excess_risk, wanted, rtol=1e-6)
    assert np.all(np.diff(law.theory().excess_risk) < 0)


@pytest.mark.parametrize("momentum", [0.0, 0.7])
def test_at_the_largest_step_the_map_has_eigenvalue_one(momentum):
    law = power_law(20, 1.0, step=0.1, batch=3, momentum=momentum)
    eta, s = law.largest_step() / 20, np.asarray(law.eigenvalues)
    p, zero, fresh = np.diag(1 + momentum - eta * s), np.zeros((20, 20)), eta**2 / 3
    top = np.hstack([p**2 + fresh * (np.diag(s**2) + np.outer(s, s)), -2 * momentum * p, momentum**2 * np.eye(20)])
    rows = [top, np.hstack([p, -momentum * np.eye(20), zero]), np.hstack([np.eye(20), zero, zero])]
    assert np.abs(np.linalg.eigvals(np.vstack(rows))).max() == pytest.approx(1, abs=1e-11)


def test_thresholds_of_the_trace_are_wrong_for_a_large_top_mode():
    law = power_law(60, 1.0, step=0.1)
    trace = float(np.sum(law.eigenvalues))
    assert law.largest_step() / 60 == pytest.approx(0.3630, abs=5e-5)
    assert 2 / trace == pytest.approx(0.4274, abs=5e-5)
    assert law.replace(momentum=0.7).largest_step() / 60 == pytest.approx(0.1169, abs=5e-5)
    assert [round(law.replace(batch=b).largest_step() / 60, 2) for b in (16, 64, 256)] == [1.75, 1.94, 1.98]


def test_the_gap_to_the_limit_falls_like_one_over_d():
    law = StreamingLeastSquares(step=0.8, noise=0.5, times=(0.5, 1.0, 2.0, 4.0))
    limit = law.theory().excess_risk.values
    gaps = [d * np.abs(law.replace(dimension=d).theory().excess_risk.values / limit - 1) for d in (50, 800)]
    np.testing.assert_allclose(gaps[0], [0.444, 0.842, 1.391, 1.545], atol=1e-3)
    np.testing.assert_allclose(gaps[1], [0.434, 0.822, 1.352, 1.499], atol=1e-3)


def test_momentum_in_the_limit_only_lengthens_the_step():
    law = StreamingLeastSquares(eigenvalues=(2.0, 0.5), weights=(1, 1), signal_energy=(1, 1), step=0.3, momentum=0.6)
    exact = law.replace(dimension=20000, times=(1.0, 3.0)).theory().excess_risk
    np.testing.assert_allclose(law.replace(times=(1.0, 3.0)).theory().excess_risk, exact, rtol=2e-3)


def test_average_in_the_limit_is_that_of_many_dimensions():
    law = StreamingLeastSquares(
        eigenvalues=(2.0, 0.5), weights=(1, 2), signal_energy=(1, 1), step=0.9, average_from=0.5, times=(1.0, 6.0)
    )
    exact = law.replace(dimension=9000).theory().average_excess_risk
    np.testing.assert_allclose(law.theory().average_excess_risk, exact, rtol=1e-3)
    late = law.replace(times=(4000.0,)).theory().average_excess_risk.values[0]
    assert (4000 - 0.5) * late == pytest.approx(law.average_constant(), rel=2e-3)


def test_steps_to_a_level_and_the_critical_batch_curve():
    """Fewest steps with the best constant step to excess 0.05, s = 1/j, start energies j^-0.6, d = 100, noise 0.3."""
    from scipy.optimize import minimize_scalar

    energy = np.arange(1, 101.0) ** -0.6
    for batch, wanted in ((1, 636), (16, 49.4), (256, 16.7)):
        law = power_law(100, 1.0, energy=energy, step=1e-3, noise=0.3, batch=batch)
        most = law.largest_step()

        def steps(share, law=law, most=most):
            try:
                return law.replace(step=share * most).steps_to(0.05)
            except UnreachableTarget:
                return 1e9

        grid = np.linspace(0.05, 0.95, 19)
        best = grid[np.argmin([steps(share) for share in grid])]
        found = minimize_scalar(
            steps, bounds=(best - 0.05, min(best + 0.05, 0.999)), method="bounded", options={"xatol": 1e-4}
        )
        assert found.fun == pytest.approx(wanted, rel=4e-3)


def test_from_data_finds_the_generating_law():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((4000, 4)) * np.sqrt([3.0, 2.0, 1.0, 0.3])
    law = StreamingLeastSquares.from_data(X, X @ [1.0, 0.5, -1.0, 2.0] + 0.5 * rng.standard_normal(4000), step=0.4)
    np.testing.assert_allclose(sorted(law.eigenvalues), [0.3, 1.0, 2.0, 3.0], rtol=0.08)
    np.testing.assert_allclose(law.noise, 0.5, rtol=0.05)
    np.testing.assert_allclose(law.null_error() - law.noise**2, 3 + 0.5 + 1 + 1.2, rtol=0.1)


@pytest.mark.parametrize("kurtosis", [-2.0, -1.0, 0.0, 3.0])
def test_entries_have_the_kurtosis_that_is_asked_for(kurtosis):
    z = white_entries(np.random.default_rng(0), (400_000,), kurtosis)
    assert np.mean(z**2) == pytest.approx(1, abs=0.02)
    assert np.mean(z**4) == pytest.approx(3 + kurtosis, abs=0.12)


# -- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(step=2.5), "step = 2.5 is not allowed: must be below 2"),
        (dict(average_from=0.1, momentum=0.5), "average_from = 0.1 is not allowed with momentum"),
        (dict(average_from=0.5), "must be below the first of the times, 0.5"),
        (dict(schedule=np.sqrt), "without a dimension"),
        (dict(dimension=1, eigenvalues=(1, 2), weights=(1, 1), signal_energy=(1, 1)), "at least the number of groups, 2"),
        (dict(schedule="linear"), "unknown schedule"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        StreamingLeastSquares(**options)


def test_a_level_below_the_rest_is_out_of_reach():
    with pytest.raises(UnreachableTarget, match="stays above"):
        StreamingLeastSquares(step=0.5, noise=1.0).steps_to(0.1)
    with pytest.raises(ValueError, match="momentum"):
        StreamingLeastSquares(momentum=0.5).average_constant()
