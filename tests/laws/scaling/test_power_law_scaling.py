"""Loss against width and steps for power laws: reference values, the exact law at infinite width, floors, phases, frontier, speed."""

import time
from functools import partial

import numpy as np
import pytest

from limitlab.laws import PowerLawScaling, StreamingLeastSquares
from limitlab.laws.scaling._spectrum import power_law
from references import reference

ENTRIES = reference("scaling", "power_law_scaling")
law_at = partial(PowerLawScaling, latent_dimension=1e7, step=0.3)


def law_of(inputs, **more):
    return PowerLawScaling(
        spectrum_exponent=inputs["alpha"],
        target_exponent=inputs["beta"],
        latent_dimension=inputs["latent_dimension"],
        step=inputs["step"],
        batch=inputs["batch"],
        **({"width": float(inputs["width"])} if "width" in inputs else {}),
        **more,
    )


# -- reference values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", ENTRIES[:3], ids=["Ia", "II", "III"])
def test_reference_curves(entry):
    inputs, wanted = entry["inputs"], entry["outputs"]
    found = law_of(inputs, noise=inputs["noise"], steps=inputs["steps"]).theory()
    np.testing.assert_allclose(found.excess_risk, wanted["excess"], rtol=1e-7)
    np.testing.assert_allclose(found.forcing, wanted["forcing"], rtol=1e-7)
    np.testing.assert_allclose(found.kernel, wanted["kernel"], rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(float(found["floor"]), wanted["floor"], rtol=1e-9)


def test_reference_infinite_width():
    inputs, wanted = ENTRIES[3]["inputs"], ENTRIES[3]["outputs"]
    found = law_of(inputs, noise=inputs["noise"], steps=inputs["steps"]).theory()
    np.testing.assert_allclose(found.excess_risk, wanted["excess"], rtol=1e-9)


def test_reference_floors():
    inputs, wanted = ENTRIES[4]["inputs"], ENTRIES[4]["outputs"]
    for i, (alpha, beta, modes, width) in enumerate(inputs["alpha_beta_latent_width"]):
        found = PowerLawScaling(spectrum_exponent=alpha, target_exponent=beta, latent_dimension=modes, width=width).theory()
        np.testing.assert_allclose(float(found["floor"]), wanted["floor"][i], rtol=3e-6)
        np.testing.assert_allclose(float(found.effective_ridge), wanted["kappa0"][i], rtol=3e-6)


@pytest.mark.parametrize("entry", ENTRIES[5:7], ids=["Ia", "III"])
def test_reference_frontier(entry):
    inputs, wanted = entry["inputs"], entry["outputs"]
    found = law_of(inputs).frontier(inputs["compute"])
    np.testing.assert_allclose(found.width, wanted["optimal_width"], rtol=2e-3)
    np.testing.assert_allclose(found.loss, wanted["optimal_loss"], rtol=1e-5)
    np.testing.assert_allclose(found.width * found.steps, inputs["compute"], rtol=1e-12)


def test_reference_phases():
    inputs, wanted = ENTRIES[7]["inputs"], ENTRIES[7]["outputs"]
    laws = [PowerLawScaling(spectrum_exponent=a, target_exponent=b, step=0.1) for a, b in inputs["alpha_beta"]]
    assert [law.phase() for law in laws] == wanted["phase"]
    np.testing.assert_allclose([law.exponents().width for law in laws], wanted["width_exponent"], rtol=1e-12)
    np.testing.assert_allclose([law.exponents().loss for law in laws], wanted["loss_exponent"], rtol=1e-12)


# -- identities -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("batch", "noise"), [(1, 0.0), (4, 0.3)])
def test_infinite_width_is_the_streaming_law(batch, noise):
    modes, steps = 200, (0, 1, 7, 15, 16, 40, 300, 5000)
    law = PowerLawScaling(latent_dimension=modes, width=np.inf, batch=batch, noise=noise, steps=steps, step=0.25)
    j = np.arange(1.0, modes + 1)
    exact = StreamingLeastSquares(
        eigenvalues=j**-2,
        weights=np.ones(modes),
        signal_energy=j**-1.4,
        dimension=modes,
        step=0.25 * modes,
        batch=batch,
        noise=noise,
        times=np.divide(steps, modes),
    )
    np.testing.assert_allclose(law.theory().excess_risk, exact.theory().excess_risk, rtol=1e-10)


def test_the_loss_is_its_volterra_equation():
    steps = np.arange(61)
    law = PowerLawScaling(latent_dimension=300, width=40.0, batch=2, noise=0.3, steps=steps)
    found = law.theory()
    F, K, P = found.forcing.values, found.kernel.values, np.zeros(61)
    for k in steps:
        P[k] = F[k] + K[:k][::-1] @ (P[:k] + law.noise**2)
    np.testing.assert_allclose(found.excess_risk, P, rtol=1e-10)


@pytest.mark.parametrize("steps", [1e6, 1e9, 1e12])
def test_late_loss_is_the_floor_fed_back_as_noise(steps):
    law = PowerLawScaling(latent_dimension=2000, width=50.0, step=0.25, steps=steps)
    late, gain = law.theory(), None
    floor = float(late["floor"])
    noisy = float(law.replace(noise=1.0).theory().excess_risk) - float(late.excess_risk)  # N / (1 - N) at rest
    gain = noisy / (1 + noisy)
    assert float(late.excess_risk) == pytest.approx(floor / (1 - gain), rel=1e-4 if steps < 1e8 else 1e-9)
    assert float(late.forcing) == pytest.approx(floor, rel=1e-4 if steps < 1e8 else 1e-9)


@pytest.mark.parametrize(("alpha", "beta"), [(0.55, 0.7), (0.75, 0.2), (1.0, 1.3), (1.5, 0.4)])
@pytest.mark.parametrize("modes", [600, 100_000])
def test_grouped_spectra_are_the_full_ones(alpha, beta, modes):
    groups, j = power_law(alpha, beta, modes), np.arange(1.0, modes + 1)
    lam = j ** (-2 * alpha)
    for kappa in (1e-6, 1e-3, 0.1):
        full = (lam / (lam + kappa)).sum(), (lam * j ** (-2 * beta) / (lam + kappa)).sum()
        share = groups.eigenvalues / (groups.eigenvalues + kappa)
        np.testing.assert_allclose((groups.counts @ share, groups.energy @ share), full, rtol=1e-11)


def test_floor_is_what_projections_leave():
    law = PowerLawScaling(latent_dimension=300, width=60.0, target_exponent=0.3)
    runs = law.replace(steps=(0,)).simulate_batch(60, range(150))
    floor = float(law.theory()["floor"])
    assert float(runs["floor"].mean()) == pytest.approx(floor, abs=5 * float(runs["floor"].std()) / 150**0.5 + 0.02 * floor)


def test_in_runs_the_floor_comes_back_as_noise():
    """Late, without label noise: the loss is the floor over one minus the gain, not the floor."""
    law = PowerLawScaling(
        spectrum_exponent=0.75, target_exponent=0.3, latent_dimension=150, width=15.0, step=0.3, steps=(600,)
    )
    runs = law.simulate_batch(15, range(60))
    ratio = runs.excess_risk.values[:, 0] / runs["floor"].values
    theory = law.theory()
    wanted = float(theory.excess_risk[0]) / float(theory["floor"])
    assert wanted > 1.4
    assert ratio.mean() == pytest.approx(wanted, abs=5 * ratio.std() / 60**0.5 + 0.1)


def test_thresholds():
    law = PowerLawScaling(latent_dimension=1e6, step=0.01)
    assert law.largest_step() == pytest.approx(0.611, abs=1e-3)
    assert law.replace(batch=64).largest_step() == pytest.approx(1.94, abs=5e-3)
    with pytest.raises(ValueError, match=r"step = 1\.7 is not allowed: must be below 1\.6176"):
        law.replace(batch=64, step=1.7)


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "beta"), [(1, 0.2), (0.75, 0.3), (1, 0.7), (1.5, 1.0), (1, 1.3), (0.75, 1.2)])
def test_frontiers_reach_their_exponents(alpha, beta):
    law = PowerLawScaling(spectrum_exponent=alpha, target_exponent=beta, latent_dimension=np.inf, step=0.2)
    found, wanted = law.local_exponents(1e16), law.exponents()
    assert found.width == pytest.approx(wanted.width, abs=0.004)
    assert found.loss == pytest.approx(wanted.loss, abs=0.002)


# -- speed and refusals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [1e2, 1e6, 1e12])
def test_a_point_costs_little_at_any_number_of_steps(steps):
    law = law_at(width=300.0, steps=steps)
    law.theory()
    spent = []
    for _ in range(5):
        began = time.process_time()
        law.evaluate()
        spent.append(time.process_time() - began)
    assert min(spent) < 0.05


def test_a_frontier_costs_little():
    law = law_at(target_exponent=1.3)
    began = time.process_time()
    law.frontier(np.geomspace(1e5, 1e10, 6))
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(latent_dimension=np.inf, spectrum_exponent=0.4), "the trace is infinite"),
        (dict(steps=(0.5, 20)), "steps = 0.5 is not allowed: must be a whole number if it is below 16"),
        (dict(step=0.9), "step = 0.9 is not allowed"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        PowerLawScaling(**options)


def test_boundaries_have_no_exponents():
    for beta in (0.5, 1.0):
        with pytest.raises(ValueError, match="phase: boundary"):
            PowerLawScaling(target_exponent=beta).exponents()
    with pytest.raises(ValueError, match="latent_dimension = inf"):
        PowerLawScaling(latent_dimension=np.inf).simulate(50, 0)
    with pytest.raises(ValueError, match="compute = 3"):
        PowerLawScaling().frontier(3.0)


def test_phases_two_and_three_carry_a_warning():
    assert "A N^-a" in PowerLawScaling(target_exponent=0.7).theory().attrs["caveat"]
    assert "A N^-a" in PowerLawScaling(target_exponent=1.3).theory().attrs["caveat"]
    assert "caveat" not in PowerLawScaling(target_exponent=0.2).theory().attrs
