"""Distributions of one number: the three forms agree, moments of rules and draws, refusals, and the start of a mean-field law."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from limitlab.laws import MeanFieldParticles
from limitlab.models.distributions import Distribution

MIXTURE = [(0.3, -1.2, 0.3), (0.7, 0.8, 0.5)]
MEAN = 0.3 * -1.2 + 0.7 * 0.8
SECOND = 0.3 * (1.2**2 + 0.09) + 0.7 * (0.64 + 0.25)


def density(x: Any) -> Any:
    return 5 * (0.3 * norm.pdf(x, -1.2, 0.3) + 0.7 * norm.pdf(x, 0.8, 0.5))


def sampler(rng: Any, count: int) -> Any:
    low = rng.random(count) < 0.3
    return np.where(low, -1.2 + 0.3 * rng.standard_normal(count), 0.8 + 0.5 * rng.standard_normal(count))


def test_quantiles_of_the_three_forms_agree() -> None:
    levels = [1e-6, 0.01, 0.2, 0.5, 0.9, 1 - 1e-6]
    exact = Distribution(MIXTURE).quantile(levels)
    np.testing.assert_allclose(Distribution(density).quantile(levels), exact, atol=2e-3)
    np.testing.assert_allclose(Distribution(sampler).quantile(levels[1:5]), exact[1:5], atol=0.02)


@pytest.mark.parametrize(("given", "tolerance"), [(MIXTURE, 3e-3), (density, 6e-3), (sampler, 2e-2)])
def test_rules_and_draws_have_the_moments(given: Any, tolerance: float) -> None:
    start = Distribution(given)
    nodes, weights = start.rule(100)
    assert abs(weights.sum() - 1) < 1e-12
    assert abs(weights @ nodes - MEAN) < tolerance
    assert abs(weights @ nodes**2 - SECOND) < tolerance
    draws = start.draw(np.random.default_rng(3), (40000,))
    assert abs(draws.mean() - MEAN) < 5 / 200
    assert abs((draws**2).mean() - SECOND) < 5 * 1.2 / 200


def test_a_gaussian_start_is_the_default_start() -> None:
    options: dict[str, Any] = dict(times=(0.3, 0.8), solver_steps=24)
    plain, own = (
        MeanFieldParticles(**options).theory(),
        MeanFieldParticles(start_distribution=[(1.0, -1.0, 0.6)], **options).theory(),
    )
    for name in plain.data_vars:
        np.testing.assert_allclose(own[name], plain[name], rtol=1e-9)


def test_a_bimodal_start_agrees_with_networks() -> None:
    law = MeanFieldParticles(
        start_distribution=[(0.5, -1.2, 0.3), (0.5, 0.8, 0.3)], times=(0.3, 0.8), solver_steps=24, replicas=40
    )
    theory, runs = law.theory(), law.simulate_batch(32, range(15)).risk
    limit = theory.risk + theory.risk_bias / 32
    error = runs.std("seed", ddof=1) / np.sqrt(15) + theory.risk.attrs["numerical_error"]
    assert np.all(np.abs(runs.mean("seed") - limit) < 4 * error)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([(0.5, 0.0, -1.0)], "above 0"),
        ([(0.5, 0.0)], "must be triples"),
        (lambda x: -np.ones_like(x), "at least 0"),
        (lambda x: np.ones_like(x), "tails"),
        (lambda x: x[:3], "one finite number"),
        (lambda rng, count: np.zeros(2), "must return"),
        (lambda x: {}["a"], "KeyError"),
        ("normal", "must be triples"),
    ],
)
def test_distributions_that_cannot_work_are_refused(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Distribution(given)
