"""The claims about scaling laws fail on their own negations."""

from types import SimpleNamespace

import pytest

from limitlab.lab.claims import all_claims
from limitlab.laws import MultiPassLeastSquares, PowerLawScaling, StreamingLeastSquares
from limitlab.laws.online_sgd import second_moments
from limitlab.laws.scaling import _claims as scaling
from limitlab.laws.scaling import ridge_scaling


def failing(claim):
    return [made.name for made in all_claims()[claim].run(quick=True).criteria if not made.holds]


def agree_without_simulation(monkeypatch):
    agreement = SimpleNamespace(verdict="agree", passed=True)
    monkeypatch.setattr("limitlab.lab._compare.compare", lambda *_, **__: agreement)


def test_s1_fails_if_the_closed_form_forgets_fourth_moments(monkeypatch):
    true = second_moments.discrete_modes
    monkeypatch.setattr(
        second_moments, "discrete_modes", lambda s, m, e, step, batch, kurtosis: true(s, m, e, step, batch, -1.0)
    )
    agree_without_simulation(monkeypatch)
    assert any("closed form" in name for name in failing("S1"))


def test_s2_fails_if_the_trace_decides(monkeypatch):
    def textbook(law):
        return 2 * law.batch * law.dimension / sum(law.eigenvalues)

    monkeypatch.setattr(StreamingLeastSquares, "largest_step", textbook)
    assert len(failing("S2")) >= 2


def test_s3_fails_if_every_phase_were_the_first(monkeypatch):
    monkeypatch.setattr(
        scaling, "PowerLawScaling", lambda **options: PowerLawScaling(**(options | {"target_exponent": 0.2}))
    )
    assert any("phase III" in name for name in failing("S3"))


def test_s4_fails_if_the_phase_did_not_matter(monkeypatch):
    agree_without_simulation(monkeypatch)
    first = PowerLawScaling(target_exponent=0.2).exponents()
    monkeypatch.setattr(PowerLawScaling, "exponents", lambda _: first)
    assert any("slope of the frontier" in name for name in failing("S4"))


def test_s5_fails_if_ridgeless_noise_averaged_out(monkeypatch):
    true = ridge_scaling.risk

    def quiet(spectrum, samples, width, ridge, noise):
        found = true(spectrum, samples, width, ridge, noise)
        return {**found, "variance": found["variance"] / samples**0.1}

    monkeypatch.setattr(ridge_scaling, "risk", quiet)
    assert any("ridgeless variance" in name for name in failing("S5"))


def test_s6_fails_if_batches_were_free(monkeypatch):
    monkeypatch.setattr(MultiPassLeastSquares, "spread", property(lambda _: 0.0))
    agree_without_simulation(monkeypatch)
    assert any("half the threshold" in name for name in failing("S6"))


@pytest.mark.parametrize("claim", [f"S{i}" for i in range(1, 7)])
def test_the_claims_are_about_scaling(claim):
    assert all_claims()[claim].area == "Scaling laws"
