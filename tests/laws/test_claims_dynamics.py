"""Checks of dynamics, steps and landscapes fail on their own negation."""

import numpy as np

from limitlab.lab.claims import find_claims
from limitlab.laws.attention import _claims as attention
from limitlab.laws.dmft._claims import first_order, growth, population
from limitlab.laws.landscapes import _claims as landscapes
from limitlab.laws.mean_field import _claims as mean_field
from limitlab.laws.online_sgd._claims import effective, steps
from limitlab.laws.regression._claims import annealed_penalty


def failed(claim_id: str) -> list[str]:
    """Criteria of the quick check that do not hold."""
    return [made.name for made in find_claims([claim_id])[0].run(quick=True).criteria if not made.holds]


def test_saddle_rates_that_are_wrong_are_noticed(monkeypatch):
    kind = attention.SingleCluster
    right = kind.saddle_rates
    monkeypatch.setattr(kind, "saddle_rates", staticmethod(lambda *a, **k: 0.9 * right(*a, **k)))
    assert any("Jacobian" in name for name in failed("J35"))


def test_tokens_that_rest_are_noticed(monkeypatch):
    monkeypatch.setattr(attention, "token_paths", lambda x, beta, times, tolerance: np.stack([x] * len(times)))
    assert {name.split()[0] for name in failed("J35")} == {"rate", "runs"}


def test_steps_that_are_always_critical_are_noticed(monkeypatch):
    law = effective.subcritical
    monkeypatch.setattr(effective, "subcritical", lambda step: law(1.0 if step else 0.0))
    assert sum("exponent" in name for name in failed("J34")) == 2


def test_an_index_that_is_off_by_one_is_noticed(monkeypatch):
    right = landscapes.saddle_index
    monkeypatch.setattr(landscapes, "saddle_index", lambda *a: right(*a)._replace(negative=right(*a).negative + 1))
    assert any("critical points" in name for name in failed("M9"))


def test_both_signs_in_place_of_positive_ones_are_noticed(monkeypatch):
    """The negation of the cone: a start that can change what its neurons count for ends at 0."""
    kind = mean_field.ConeFlow
    monkeypatch.setattr(mean_field, "ConeFlow", lambda **given: kind(**{**given, "signs": "both"}))
    mean_field.ConeFlow.check_points = kind.check_points
    assert {name.split()[0] for name in failed("M10")} >= {"largest", "least"}


def test_sgd_without_its_noise_is_noticed(monkeypatch):
    right = mean_field.regularised_risk
    monkeypatch.setattr(
        mean_field,
        "regularised_risk",
        lambda rng, t, n, lam, beta, step, time: right(rng, t, n, lam, 2 * beta, step, time),
    )
    assert any(name.startswith("largest z") for name in failed("M11"))


def test_a_rate_that_sees_the_variance_only_is_noticed(monkeypatch):
    monkeypatch.setattr("limitlab.laws.online_sgd.large_deviation.log_moment", lambda noise_law: lambda p: p * p / 2)
    monkeypatch.setattr(
        "limitlab.laws.online_sgd.large_deviation.tilt", lambda eps, time, noise_law: 2 * eps / (1 - np.exp(-2 * time))
    )
    assert any("sign" in name for name in failed("J33"))


def test_inputs_with_light_tails_in_place_of_the_control_are_noticed(monkeypatch):
    """The control has to fail: with Gaussian inputs in its place the claim does."""
    monkeypatch.setattr(steps, "student_inputs", lambda sizes, samples, seed: steps.online_pca(sizes, samples))
    assert [name.split()[0] for name in failed("J32")] == ["Student"]


def test_noise_that_grows_faster_is_noticed(monkeypatch):
    right = steps.SpikedTensor.growth_exponents

    def faster(self, sizes, samples):
        found = right(self, sizes, samples)
        return type(found)({**found.exponents, "norm_eighth": found.norm_eighth + 0.5}, found.errors)

    monkeypatch.setattr(steps.SpikedTensor, "growth_exponents", faster)
    assert len(failed("J32")) == 4


def test_a_penalty_that_stays_is_noticed(monkeypatch):
    monkeypatch.setattr(annealed_penalty, "decaying", lambda t: np.full_like(np.asarray(t, dtype=float), 1.5))
    assert any("constant" in name for name in failed("D12"))


def test_a_spread_target_in_place_of_the_sparse_control_is_noticed(monkeypatch):
    kind = first_order.FirstOrderDynamics
    right = kind.replace
    monkeypatch.setattr(kind, "replace", lambda self, **changes: right(self, **{**changes, "target_spread": True}))
    assert any("one coordinate" in name and "signs" in name for name in failed("D13"))


def test_particles_that_see_themselves_are_noticed(monkeypatch):
    """With |v_i|^2 replaced by 1 the particles are the finite network again, and the gap does not fall like 1/m any more."""
    monkeypatch.setattr(population, "particle_gap", lambda neurons, dimension: 0.3 * neurons**-0.5)
    assert any("exponent" in name for name in failed("D11"))


def test_sgd_that_learns_something_else_is_noticed(monkeypatch):
    right = population.one_pass_sgd
    monkeypatch.setattr(population, "one_pass_sgd", lambda rng, h, target, *rest: right(rng, h, target[:1], *rest))
    assert any("SGD" in name for name in failed("D11"))


def test_a_second_layer_that_stays_in_the_middle_regime_is_noticed(monkeypatch):
    """What the sources' list of time scales would say for a_0 = O(1): a = a_0 at times of order sqrt(m)."""
    kind = growth.MiddleRegime
    right = kind.predicted
    monkeypatch.setattr(kind, "predicted", lambda self, x: {**right(self, x), "second_layer": np.ones_like(x)})
    assert any("gap" in name for name in failed("D14"))


def test_a_first_regime_at_another_rate_is_noticed(monkeypatch):
    law = growth.TwoLayerDynamics
    monkeypatch.setattr(
        growth, "TwoLayerDynamics", lambda **given: law(**{**given, "sample_ratio": 2 * given["sample_ratio"]})
    )
    assert any(name.startswith("t = O(1)") for name in failed("D14"))


def test_a_network_that_is_not_trained_is_noticed(monkeypatch):
    """The negation: at a random start the directions are not flat, and their signs are not those on the kernel."""
    right, parts = landscapes.hessian_inertia, landscapes.hessian_parts

    def untrained(d, width, n, interpolate=True, seed=0, residual=0.0):
        return right(d, width, n, interpolate=False, seed=seed)

    monkeypatch.setattr(landscapes, "hessian_inertia", untrained)
    monkeypatch.setattr(landscapes, "hessian_parts", lambda d, w, n, i, seed, residual: parts(d, w, n, False, seed))
    assert len(failed("J31")) >= 3
