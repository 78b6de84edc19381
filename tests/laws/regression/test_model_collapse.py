"""Generations of models: reference values, one generation is `Ridge`, closed forms, the long run, finite chains, bad input."""

from functools import partial

import numpy as np
import pytest

from limitlab.laws import ModelCollapse, Ridge, exact_accumulated
from references import label, reference

entries = partial(reference, "best_possible")
GROUPS = dict(eigenvalues=(4.0, 1.0, 0.2), weights=(0.2, 0.3, 0.5), signal_energy=(0.5, 0.3, 0.2))


@pytest.mark.parametrize("entry", entries("model_collapse"), ids=label)
def test_reference_values(entry):
    law, want = ModelCollapse(**entry["inputs"]), entry["outputs"]
    found = law.theory()
    for name in ("excess_risk", "coefficient_norm"):
        np.testing.assert_allclose(found[name], want[name], rtol=1e-9, err_msg=name)
    if "limit" in want:
        assert law.growth_factor() == pytest.approx(want["growth_factor"], rel=1e-9)
        assert law.limit() == pytest.approx(float(want["limit"]), rel=1e-9)


@pytest.mark.parametrize("entry", entries("model_collapse_accumulate"), ids=label)
def test_reference_values_of_accumulated_data(entry):
    asked = entry["inputs"]
    found = exact_accumulated(asked["samples"], asked["features"], asked["noise"], asked["generations"])
    np.testing.assert_allclose(found, entry["outputs"]["excess_risk"], rtol=1e-11)


@pytest.mark.parametrize("entry", entries("critical_real_share"), ids=label)
def test_reference_values_of_the_critical_share(entry):
    assert ModelCollapse(**entry["inputs"]).critical_share() == pytest.approx(entry["outputs"]["critical_share"], abs=1e-10)


@pytest.mark.parametrize(("ratio", "ridge"), [(0.6, 0.3), (2.0, 0.0), (2.0, 0.1)])
def test_one_generation_and_only_real_labels_are_ridge(ratio, ridge):
    law = ModelCollapse(ratio=ratio, ridge=ridge, noise=0.7, real_share=1.0, generations=(1, 5), **GROUPS)
    found, plain = law.theory(), Ridge(ratio=ratio, ridge=ridge, noise=0.7, **GROUPS).theory()
    for name in found.data_vars:
        np.testing.assert_allclose(found[name], float(plain[name]), rtol=1e-12, err_msg=name)
    assert law.growth_factor() == 0
    assert law.limit() == pytest.approx(float(plain.excess_risk), rel=1e-12)


def test_without_real_labels_the_noise_adds_up():
    """g tau^2 gamma/(1 - gamma) without a penalty and p < n; the limit is infinite."""
    law = ModelCollapse(ratio=0.4, ridge=0.0, noise=0.5, generations=(1, 2, 7), **GROUPS)
    np.testing.assert_allclose(law.theory().excess_risk, np.array([1, 2, 7]) * 0.25 * 0.4 / 0.6, rtol=1e-12)
    assert law.limit() == np.inf


@pytest.mark.parametrize(("ratio", "want"), [(0.5, 0.0), (2 / 3, 0.0), (0.7, 0.25), (0.9, 0.875)])
def test_critical_share(ratio, want):
    assert ModelCollapse(ratio=ratio, ridge=0.0).critical_share() == pytest.approx(want, abs=1e-9)


def test_a_ridge_cures_a_chain_that_diverges():
    law = ModelCollapse(ratio=0.8, ridge=0.0, real_share=0.3)
    assert law.growth_factor() == pytest.approx(1.33)
    assert law.replace(ridge=0.01).growth_factor() == pytest.approx(1.037, abs=1e-3)
    assert law.replace(ridge=0.05).limit() == pytest.approx(1.447, abs=1e-3)


def test_the_limit_is_where_long_chains_go():
    law = ModelCollapse(ratio=1.3, ridge=0.2, noise=0.4, real_share=0.2, generations=(200,), **GROUPS)
    assert float(law.theory().excess_risk[0]) == pytest.approx(law.limit(), rel=1e-10)
    many = ModelCollapse(ratio=0.6, ridge=0.0, data="accumulate", synthetic_noise=0.9, generations=(20000,))
    assert float(many.theory().excess_risk[0]) == pytest.approx(many.limit(), rel=1e-4)


def test_best_ridges():
    law = ModelCollapse(ratio=0.8, noise=0.5)
    assert law.optimal_ridge(4) == pytest.approx(0.2270, abs=1e-4)
    assert law.replace(real_share=0.1).optimal_ridge() == pytest.approx(0.807, abs=1e-3)
    assert law.replace(ratio=0.5, real_share=0.1).optimal_ridge() == pytest.approx(0.2023, abs=1e-3)


def test_accumulated_data_as_the_sizes_grow():
    law = ModelCollapse(ratio=0.5, ridge=0.0, noise=0.5, data="accumulate", generations=(1, 2, 3))
    np.testing.assert_allclose(law.theory().excess_risk, exact_accumulated(2_000_000, 1_000_000, 0.5, [1, 2, 3]), rtol=1e-5)
    runs = law.simulate_batch(40, range(40)).excess_risk
    error = runs.std("seed", ddof=1) / np.sqrt(40)
    assert np.abs((runs.mean("seed") - exact_accumulated(80, 40, 0.5, [1, 2, 3])) / error).max() < 4


def test_at_the_interpolation_threshold():
    found = ModelCollapse(ratio=1.0, ridge=0.0, noise=0.5, real_share=0.5).theory()
    assert np.isinf(found.excess_risk).all()
    assert ModelCollapse(ratio=1.0, ridge=0.0, real_share=0.5).growth_factor() == np.inf


def test_simulation_by_drawing_signal_and_noise():
    """The closed averages of the experiment against a chain with labels drawn at random."""
    law = ModelCollapse(ratio=0.5, ridge=0.2, noise=0.5, synthetic_noise=0.3, real_share=0.25, generations=(3,))
    rng, p, n, found = np.random.default_rng(0), 20, 40, []
    for _ in range(600):
        beta = rng.standard_normal(p)
        beta /= np.linalg.norm(beta)
        b = beta
        for generation in range(3):
            X = rng.standard_normal((n, p))
            real = n if generation == 0 else n // 4
            y = np.r_[X[:real] @ beta + 0.5 * rng.standard_normal(real), X[real:] @ b + 0.3 * rng.standard_normal(n - real)]
            b = np.linalg.solve(X.T @ X / n + 0.2 * np.eye(p), X.T @ y / n)
        found.append(np.sum((b - beta) ** 2))
    averaged = float(law.simulate_batch(p, range(60)).excess_risk.mean())
    assert np.mean(found) == pytest.approx(averaged, abs=4 * np.std(found) / np.sqrt(600))


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (dict(generations=(0, 1)), "generations"),
        (dict(data="accumulate"), "ridge = 0.1 .*accumulate"),
        (dict(data="accumulate", ridge=0.0, ratio=1.5), "ratio = 1.5"),
        (dict(data="accumulate", ridge=0.0, real_share=0.5), "real_share"),
    ],
)
def test_bad_input(given, complaint):
    with pytest.raises(ValueError, match=complaint):
        ModelCollapse(**given)
