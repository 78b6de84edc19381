"""The middle regime on pure noise: reference values, widths, the invariant of (7), tensors, refusals."""

import numpy as np
import pytest

from limitlab._core.draws import mean_and_error
from limitlab.laws import AdiabaticGrowth, MiddleRegime
from limitlab.laws.dmft._claims.growth import late_energy, tensor_energies
from limitlab.laws.dmft._spin_ascent import random_polynomial
from references import label, reference

ENTRIES = reference("further_dynamics", "middle_regime")


@pytest.mark.parametrize("entry", ENTRIES[:2], ids=label)
def test_limit_and_spin_flow(entry):
    given_, want = entry["inputs"], entry["outputs"]
    kernel = (0.0, 0.0, given_["kernel_degree_2"], given_["kernel_degree_3"])
    law = MiddleRegime(kernel=kernel, start_second_layer=given_["start_second_layer"], x=tuple(given_["x"]))
    found, spins = law.theory(), law.spin_flow(given_["s"])
    for got, name in (
        (found.second_layer, "second_layer"),
        (found.clock, "clock"),
        (found.correlation_with_start, "weight_correlation"),
        (spins.energy, "energy"),
        (spins.correlation, "correlation_with_start"),
    ):
        np.testing.assert_allclose(got, want[name], rtol=0, atol=entry["tolerance"])
    assert law.threshold_energy() == pytest.approx(want["threshold_energy"], abs=1e-9)


@pytest.mark.parametrize("index", [0, 1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_two_layer_equations_at_finite_width(index):
    entry = ENTRIES[2]
    given_, want = entry["inputs"], entry["outputs"]
    law = MiddleRegime(
        kernel=tuple(given_["kernel"]), samples_per_weight=given_["alpha"], noise=given_["noise"], x=tuple(given_["x"])
    )
    np.testing.assert_allclose(law.theory().second_layer, want["limit"], atol=1e-4)
    found = law.finite_width(given_["widths"][index]).theory().second_layer
    np.testing.assert_allclose(found, want["second_layer"][index], atol=entry["tolerance"])


def test_the_second_layer_is_the_work_of_the_energy():
    """a^2 = a_0^2 + 2 int_0^s e, with the energy from the spin model in its own clock."""
    law = MiddleRegime(kernel=(0.0, 0.2, 0.3, 0.2), start_second_layer=0.7, x=(1.0, 2.0))
    found = law.theory()
    for a, s in zip(found.second_layer.values, found.clock.values, strict=True):
        nodes, weights = np.polynomial.legendre.leggauss(24)
        energy = law.spin_flow((nodes + 1) * s / 2).energy
        assert a**2 == pytest.approx(0.7**2 + 2 * float(weights @ energy) * s / 2, abs=1e-4)


def test_linear_part_ratio_and_noise_do_not_enter():
    base = MiddleRegime(kernel=(0.0, 0.0, 0.4, 0.1), x=1.0)
    other = MiddleRegime(kernel=(0.0, 0.8, 0.4, 0.1), x=1.0, samples_per_weight=0.9, noise=0.3)
    assert float(base.theory().second_layer) == float(other.theory().second_layer)
    assert base.finite_width(20).times != other.finite_width(20).times
    assert float(MiddleRegime(x=0.0).theory().correlation_with_start) == 1.0


def test_the_threshold_energy_is_the_slope_of_the_slow_growth():
    slow = AdiabaticGrowth(samples_per_weight=0.4, noise=0.7, kernel=(0.0, 0.5, 0.2, 0.3))
    middle = MiddleRegime(kernel=(0.0, 0.5, 0.2, 0.3))
    assert slow.initial_slope() == pytest.approx(0.7 * 0.4**0.5 * middle.threshold_energy())
    assert late_energy((0.0, 0.0, 0.0, 1.0), 15.0) == pytest.approx(1.63299, rel=0.03)


def test_tensors_climb_like_the_spin_model():
    energies = tensor_energies(40, 12, (0.5, 2.0))
    want = MiddleRegime(kernel=(0.0, 0.0, 0.0, 0.5)).spin_flow([0.5, 2.0]).energy
    error = mean_and_error(energies)[1]
    assert np.all(np.abs(energies.mean(axis=0) - want) < 0.08 + 4 * error)


def test_random_polynomials_have_their_covariance():
    rng, w = np.random.default_rng(0), np.eye(6)[:, :2].copy()
    w[:, 1] = 0.6 * w[:, 0] + 0.8 * w[:, 1]
    draws = np.array([random_polynomial(rng, (0.0, 0.3, 0.4, 0.5), 6)(w)[0] for _ in range(4000)])
    want = 0.3 * 0.6 + 0.4 * 0.36 + 0.5 * 0.216  # times d, over d^2
    assert 6 * np.mean(draws[:, 0] * draws[:, 1]) == pytest.approx(want, abs=0.12)
    assert 6 * np.mean(draws[:, 0] ** 2) == pytest.approx(1.2, abs=0.15)


def test_refusals():
    with pytest.raises(ValueError, match="kernel"):
        MiddleRegime(kernel=(0.0, 1.0))
    with pytest.raises(ValueError, match="degree above 3"):
        MiddleRegime(kernel=(0.0, 0.0, 0.0, 0.0, 1.0)).simulate(10, 0)
    with pytest.raises(ValueError, match="noise"):
        MiddleRegime(noise=0.0).finite_width(10)
