"""Growth of a free second layer on pure noise: the adiabatic curve, its accuracy, finite widths, the experiment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limitlab.laws.dmft._aging import plateau
from limitlab.laws.dmft.growth import AdiabaticGrowth, width_extrapolation
from limitlab.testing import check_law
from references import reference

CASES = reference("dmft", "pure_noise_threshold")

SLOW = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
CUBIC: dict[str, Any] = dict(samples_per_weight=0.5, kernel=(0, 0.5, 0, 0.5), times=SLOW)

# Computed independently (plain trapezoid scheme, step doubling): a / sqrt(m) of h = (q + q^3) / 2, a_0 = 1, to the digits given.
FINITE = {
    10: (0.3196, 0.3444, 0.4045, 0.5083, 0.6366, 0.742),
    20: (0.2373, 0.2726, 0.3486, 0.4717, 0.6142, 0.722),
    40: (0.1813, 0.2260, 0.3161, 0.4537, 0.6033, 0.709),
    80: (0.1440, 0.1975, 0.2988, 0.4454, 0.597, 0.700),
}


@pytest.mark.parametrize("entry", CASES, ids=lambda entry: str(entry["inputs"]["h"]))
def test_initial_slope_of_the_reference(entry: dict[str, Any]) -> None:
    inputs = entry["inputs"]
    law = AdiabaticGrowth(samples_per_weight=inputs["alpha"], noise=inputs["tau"], kernel=inputs["h"])
    np.testing.assert_allclose(law.initial_slope(), entry["outputs"]["gamma_star"], rtol=1e-8)
    np.testing.assert_allclose(law.saturation(), entry["outputs"]["gamma_GF"], rtol=1e-8)


def test_growth_is_linear_at_first_and_stops_at_the_threshold() -> None:
    law = AdiabaticGrowth(samples_per_weight=0.5, kernel=(0, 0.5, 0, 0.5), times=(1e-6, 1e-3, 60.0))
    gamma = law.theory().second_layer.values
    np.testing.assert_allclose(gamma[:2] / np.array([1e-6, 1e-3]), law.initial_slope(), rtol=2e-3)
    assert abs(gamma[0] / 1e-6 / law.initial_slope() - 1) < 1e-5
    assert 0.999 < gamma[2] / law.saturation() <= 1


@pytest.mark.parametrize("given_parameters", [CUBIC, dict(samples_per_weight=0.8)], ids=["cubic", "dense"])
def test_reported_accuracy_bounds_the_error(given_parameters: dict[str, Any]) -> None:
    """Against interpolants of higher degree, and against the differential equation itself."""
    law = AdiabaticGrowth(**given_parameters)
    result = law.theory()
    for better in (law.replace(solver_steps=60).theory(), law.finer().theory()):
        for name in law.observables:
            assert np.abs(result[name] - better[name]).max() <= result[name].attrs["numerical_error"], name
    times, width = np.atleast_1d(np.asarray(law.times, dtype=float)), 1e-3
    pairs = law.replace(times=tuple(np.sort(np.concatenate([times - width, times, times + width])))).theory()
    gamma = pairs.second_layer.values.reshape(-1, 3)
    speed = [plateau(float(x), law.samples_per_weight, law.noise, law.reduced()).growth for x in gamma[:, 1]]
    np.testing.assert_allclose((gamma[:, 2] - gamma[:, 0]) / (2 * width), speed, rtol=1e-4, atol=1e-6)


@given(ratio=st.floats(0.05, 0.8), noise=st.floats(0.01, 3.0), kernel=st.tuples(st.just(0.0), *[st.floats(0.05, 1.0)] * 3))
@settings(max_examples=5)
def test_the_second_layer_grows_in_units_of_the_noise_and_the_train_error_falls(
    ratio: float, noise: float, kernel: Any
) -> None:
    law = AdiabaticGrowth(samples_per_weight=ratio, noise=noise, kernel=kernel, times=(0.0, 0.3, 1.0, 4.0))
    result, unit = law.theory(), law.replace(noise=1.0).theory()
    np.testing.assert_allclose(result.second_layer, noise * unit.second_layer, rtol=1e-9)
    np.testing.assert_allclose(result.train_error, noise**2 * unit.train_error, rtol=1e-9)
    assert np.all(np.diff(unit.second_layer) > 0)
    assert np.all(np.diff(unit.train_error) < 0)
    assert result.second_layer[0] == 0
    assert result.train_error[0] == noise**2


def test_edges() -> None:
    silent = AdiabaticGrowth(noise=0.0).theory()
    assert not silent.second_layer.any()
    assert not silent.train_error.any()
    assert AdiabaticGrowth(times=0.0).theory().train_error.shape == ()
    alone, among = AdiabaticGrowth(times=1.0).theory().second_layer, AdiabaticGrowth().theory().second_layer.sel(time=1)
    assert abs(float(alone - among)) < 1e-9
    with pytest.raises(ValueError, match="increasing"):
        AdiabaticGrowth(times=(1.0, 0.5))
    with pytest.raises(ValueError, match="samples_per_weight = 1"):
        AdiabaticGrowth(samples_per_weight=1.0)
    with pytest.raises(ValueError, match="h\\(0\\) must be 0"):
        AdiabaticGrowth(kernel=(0.1, 0, 1.0))
    with pytest.raises(ValueError, match="at least three"):
        width_extrapolation((10, 20), (0.1, 0.2))


# -- finite widths ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "width", [10, 20, pytest.param(40, marks=pytest.mark.slow), pytest.param(80, marks=pytest.mark.slow)]
)
def test_finite_widths(width: int) -> None:
    result = AdiabaticGrowth(**CUBIC).finite_width(width).theory()
    found, wanted = result.second_layer.values / np.sqrt(width), np.array(FINITE[width])
    assert result.attrs["accuracy"] < 2e-3
    bound = np.array([1e-4, 1e-4, 1e-4, 5e-4, 1.5e-3, 1.5e-3])  # what the independent numbers are good for
    assert np.all(np.abs(found - wanted) < bound), found - wanted


def test_two_starts_approach_the_curve_from_both_sides() -> None:
    law = AdiabaticGrowth(samples_per_weight=0.5, kernel=(0, 0.5, 0, 0.5), times=2.0)
    limit = float(law.theory().second_layer)
    gaps = {
        start: [
            float(law.replace(start_second_layer=start).finite_width(m).theory().second_layer) / np.sqrt(m) - limit
            for m in (10, 20)
        ]
        for start in (1.0, 0.5)
    }
    assert gaps[1.0][0] > gaps[1.0][1] > 0
    assert gaps[0.5][0] < gaps[0.5][1] < 0


def test_extrapolation_of_widths_recovers_a_limit_with_known_corrections() -> None:
    widths = (80, 160, 320)
    for x in (2 / 3, 3 / 4, 1.0):
        limit, spread = width_extrapolation(widths, [0.44 + 0.7 * m**-0.5 - 0.9 * m**-x for m in widths])
        assert abs(limit - 0.44) <= spread + 1e-12


# -- the experiment --------------------------------------------------------------------------------------------------------


def test_contract() -> None:
    check_law(AdiabaticGrowth(times=(0.2, 0.5)), sizes=[8, 16, 32], seeds=12)


def test_labels_have_the_norm_that_the_noise_says() -> None:
    law = AdiabaticGrowth(noise=0.7, times=0.0, start_second_layer=1e-9)
    assert abs(float(law.simulate(8, 0).train_error) - 0.49) < 1e-6


@pytest.mark.slow
def test_networks_of_smooth_neurons_follow_the_equations_of_their_width() -> None:
    law = AdiabaticGrowth(activation="tanh", experiment_model="network", times=(0.2, 0.5))
    runs, theory = law.simulate_batch(10, range(12)), law.finite_width(10).theory()
    error = runs.second_layer.std("seed", ddof=1) / np.sqrt(12)
    assert np.all(
        np.abs(runs.second_layer.mean("seed").values - theory.second_layer.values / np.sqrt(10)) < 0.02 + 5 * error
    )


def test_one_neuron_in_random_equations_follows_the_two_time_equations_of_the_same_width() -> None:
    """At equal width there is nothing to extrapolate: the sampled equations in 40 + m dimensions against those of infinitely many."""
    law = AdiabaticGrowth(
        samples_per_weight=0.3, noise=0.8, kernel=(0.0, 0.4, 0.6), times=(0.5, 1.5), start_second_layer=0.8
    )
    runs, limit = law.simulate_batch(16, range(40)), law.replace(experiment_model="two-time").simulate(16, 0)
    for name, scale in (("second_layer", float(limit.second_layer[-1])), ("train_error", 0.64)):
        error = runs[name].std("seed", ddof=1) / np.sqrt(40)
        assert np.all(np.abs(runs[name].mean("seed") - limit[name]) < 5 * error + 0.05 * scale), name
