"""Ridge with power laws: reference values, the ridge law at infinite width, exponents and constants, best ridge, widths."""

import time

import numpy as np
import pytest

from limitlab.laws import Ridge, RidgeScaling
from limitlab.laws.scaling._spectrum import Modes, power_law
from limitlab.laws.scaling.ridge_scaling import risk, slopes
from references import reference

ENTRIES = reference("scaling", "ridge_scaling")


@pytest.mark.parametrize("entry", ENTRIES[:5], ids=["inf", "ridgeless", "narrow", "wide-ridgeless", "narrow-ridgeless"])
def test_reference_points(entry):
    inputs, wanted = entry["inputs"], entry["outputs"]
    names = ("latent_dimension", "samples", "ridge", "noise")
    law = RidgeScaling(
        spectrum_exponent=inputs["alpha"],
        target_exponent=inputs["beta"],
        width=float(inputs["width"]),
        **{name: inputs[name] for name in names},
    )
    found = law.theory()
    for key, name in dict(kappa="effective_ridge", bias="bias", variance="variance", test="test_error").items():
        np.testing.assert_allclose(float(found[name]), wanted[key], rtol=1e-8, err_msg=name)
    np.testing.assert_allclose(float(found.degrees_of_freedom) * law.samples, wanted["df1"], rtol=1e-8)
    gain = float(found.variance) / law.noise**2
    np.testing.assert_allclose(law.samples * gain / (1 + gain), wanted["df2_features"], rtol=1e-8)


def test_reference_best_ridge():
    inputs, wanted = ENTRIES[5]["inputs"], ENTRIES[5]["outputs"]
    law = RidgeScaling(target_exponent=0.7, **{name: inputs[name] for name in ("latent_dimension", "samples", "noise")})
    best = law.optimal_ridge()
    np.testing.assert_allclose(best, wanted["optimal_ridge"], rtol=1e-4)
    np.testing.assert_allclose(float(law.replace(ridge=best).theory().excess_risk), wanted["excess"], rtol=1e-7)


def test_reference_constants():
    inputs, wanted = ENTRIES[6]["inputs"], ENTRIES[6]["outputs"]
    for (alpha, beta), row in zip(inputs["alpha_beta"], wanted["rows"], strict=True):
        np.testing.assert_allclose(RidgeScaling(spectrum_exponent=alpha, target_exponent=beta).exponents(), row, rtol=1e-10)


# -- identities -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [0.0, 1e-4, 0.3])
def test_infinite_width_is_the_ridge_law(ridge):
    law = RidgeScaling(latent_dimension=300, samples=120, ridge=ridge, noise=0.4)
    j = np.arange(1.0, 301)
    same = Ridge(ratio=300 / 120, ridge=ridge, noise=0.4, eigenvalues=j**-2, weights=np.ones(300), signal_energy=j**-0.6)
    for name in ("bias", "variance", "test_error", "train_error", "effective_ridge", "degrees_of_freedom"):
        np.testing.assert_allclose(
            float(law.theory()[name]), float(same.theory()[name]), rtol=1e-10, atol=1e-14, err_msg=name
        )


def test_a_huge_width_is_an_infinite_one():
    law = RidgeScaling(samples=60)
    np.testing.assert_allclose(float(law.replace(width=1e12).theory().test_error), float(law.theory().test_error), rtol=1e-9)


def test_a_huge_ridge_learns_nothing():
    law = RidgeScaling(width=50, ridge=1e12, noise=0.4)
    np.testing.assert_allclose(float(law.theory().test_error), law.modes.variance + 0.16, rtol=1e-6)


def test_more_features_help_at_the_best_ridge():
    law = RidgeScaling(samples=200, noise=0.5)
    best = [
        float(wide.replace(ridge=wide.optimal_ridge()).theory().excess_risk)
        for wide in map(lambda n: law.replace(width=n), (20, 60, 200, 600))
    ]
    assert np.all(np.diff(best) < 0)


def test_interpolation_threshold_is_infinite():
    assert np.isinf(float(RidgeScaling(samples=100, width=100, ridge=0.0).theory().test_error))


def test_fewer_modes_than_samples_leave_no_bias():
    found = RidgeScaling(latent_dimension=20, samples=80, ridge=0.0, noise=0.5).theory()
    assert float(found.bias) == 0
    assert float(found.variance) == pytest.approx(0.25 * 20 / 60)


# -- exponents --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alpha", "beta", "share"), [(1.0, 0.2, 2e-3), (1.0, 0.7, 2e-3), (0.75, 0.2, 3e-3), (1.0, 1.8, 3e-2)]
)
def test_noiseless_ridgeless_error_meets_its_power_law(alpha, beta, share):
    law = RidgeScaling(
        spectrum_exponent=alpha, target_exponent=beta, latent_dimension=np.inf, samples=3000, ridge=0.0, noise=0.0
    )
    rates = law.exponents()
    assert float(law.theory().test_error) * 3000**rates.data == pytest.approx(rates.error_constant, rel=share)
    narrow = law.replace(samples=1e9)
    errors = [float(narrow.replace(width=width).theory().test_error) for width in (1e3, 1e4)]
    assert np.log10(errors[0] / errors[1]) == pytest.approx(rates.width, abs=0.02)


@pytest.mark.parametrize("alpha", [0.75, 1.0, 1.5])
def test_ridgeless_noise_never_averages_out(alpha):
    law = RidgeScaling(spectrum_exponent=alpha, latent_dimension=np.inf, samples=1000, ridge=0.0, noise=1.0)
    assert float(law.theory().variance) == pytest.approx(2 * alpha - 1, rel=2e-3)


@pytest.mark.parametrize(("beta", "ridge", "excess"), [(0.2, 0.8333, 0.5833), (0.7, 0.5882, 0.7059)])
def test_best_ridge_and_its_error_have_their_exponents(beta, ridge, excess):
    law = RidgeScaling(target_exponent=beta, latent_dimension=1e12, noise=0.5)
    assert slopes(law, (1e5, 1e6)) == pytest.approx((ridge, excess), abs=3e-3)


def test_width_that_keeps_the_rate():
    law = RidgeScaling(target_exponent=0.2, latent_dimension=1e12, noise=0.5)
    widths = [law.replace(samples=n).width_needed(1.5) for n in (1e6, 1e7)]
    assert np.log10(widths[1] / widths[0]) == pytest.approx(0.419, abs=0.01)


def test_groups_are_much_faster_than_modes():
    j = np.arange(1.0, 1e6 + 1)
    full, groups = Modes(j**-2, np.ones_like(j), j**-1.4), power_law(1.0, 0.7, 1e6)
    spent = []
    for spectrum, repeats in ((full, 1), (groups, 20)):
        began = time.process_time()
        for _ in range(repeats):
            found = risk(spectrum, 1e4, np.inf, 1e-3, 0.5)
        spent.append(((time.process_time() - began) / repeats, found["test_error"]))
    assert spent[0][0] > 100 * spent[1][0]  # the benchmark measures 300 and more
    assert spent[0][1] == pytest.approx(spent[1][1], rel=1e-10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RidgeScaling(latent_dimension=np.inf, spectrum_exponent=0.4), "the trace is infinite"),
        (lambda: RidgeScaling(spectrum_exponent=0.4).exponents(), "alpha must be above 0.5"),
        (lambda: RidgeScaling().width_needed(0.9), "loss_factor = 0.9"),
        (lambda: RidgeScaling(latent_dimension=np.inf).simulate(50, 0), "not allowed in a simulation"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
