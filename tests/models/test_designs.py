"""Tests of the risks of spectral filters for a fixed design, against Monte Carlo averages over signal and noise."""

import numpy as np
import pytest

from limitlab.models.designs import descent_filter, draw_design, flow_filter, ridge_filter

S, B2 = np.array([0.3, 2.0]), np.array([1.0, 0.5])


@pytest.mark.parametrize("n", [12, 40])  # below and above p = 24
@pytest.mark.parametrize("name", ["ridge", "ridgeless", "flow"])
def test_averages_over_signal_and_noise(n, name):
    rng, counts, tau, draws = np.random.default_rng(3), [14, 10], 0.7, 4000
    design = draw_design(rng, n, S, counts)
    X, population = design.X, np.repeat(S, counts)
    x, vectors = np.linalg.eigh(X.T @ X / n)
    x = np.where(x > 1e-12, x, 0.0)
    chosen = {"ridge": ridge_filter, "ridgeless": ridge_filter, "flow": flow_filter}[name]
    amount = {"ridge": 0.2, "ridgeless": 0.0, "flow": 3.0}[name]
    fit = chosen(x, amount).fit
    operator = (vectors * np.divide(fit, x, out=np.zeros_like(x), where=x > 0)) @ vectors.T @ X.T / n
    runs = []
    for _ in range(draws):
        directions = [rng.standard_normal(count) for count in counts]
        beta = np.concatenate([np.sqrt(b) * v / np.linalg.norm(v) for b, v in zip(B2, directions, strict=True)])
        noise = tau * rng.standard_normal(n)
        clean, full = operator @ (X @ beta), operator @ (X @ beta + noise)
        runs.append(
            (
                population @ (clean - beta) ** 2,
                population @ (operator @ noise) ** 2,
                np.mean((X @ beta + noise - X @ full) ** 2),
                full @ full,
            )
        )
    mean, error = np.mean(runs, axis=0), np.std(runs, axis=0) / np.sqrt(draws)
    mine = chosen(design.values, amount)
    wanted = (
        design.bias(mine, B2),
        design.variance(mine, tau),
        design.train_error(mine, B2, tau),
        design.coefficient_norm(mine, B2, tau),
    )
    assert np.all(np.abs(mean - wanted) < 5 * error + 1e-12)
    np.testing.assert_allclose(design.degrees_of_freedom(mine), np.trace(X @ operator) / n, rtol=1e-9)
    np.testing.assert_allclose(design.left_over(mine), 1 - np.trace(X @ operator) / n, atol=1e-12)


@pytest.mark.parametrize("n", [12, 40])
def test_one_group_is_two_equal_groups(n):
    whole = draw_design(np.random.default_rng(0), n, [1.5], [24])
    halves = draw_design(np.random.default_rng(0), n, [1.5, 1.5], [12, 12])
    np.testing.assert_array_equal(whole.X, halves.X)
    one, two = (ridge_filter(design.values, [0.0, 0.3]) for design in (whole, halves))
    np.testing.assert_allclose(whole.bias(one, [2.0]), halves.bias(two, [1.0, 1.0]), atol=1e-12)
    np.testing.assert_allclose(whole.variance(one, 1.0), halves.variance(two, 1.0), rtol=1e-9)
    np.testing.assert_allclose(whole.average_bias(one, [2.0]), halves.average_bias(two, [1.0, 1.0]), rtol=0.1, atol=1e-12)


def test_average_bias_needs_only_means_within_groups():
    """The mean of g(S) over draws has one value per group. The squared bias of the mean predictor is therefore a sum over groups."""
    counts, n, draws = [14, 10], 16, 1500
    designs = [draw_design(np.random.default_rng([5, seed]), n, S, counts) for seed in range(draws)]
    mean = np.zeros((24, 24))
    values = []
    for design in designs:
        mean += np.linalg.inv(design.X.T @ design.X / n + 0.5 * np.eye(24)) * 0.5 / draws
        values.append(design.average_bias(ridge_filter(design.values, 0.5), B2))
    assert np.abs(mean - np.diag(np.diag(mean))).max() < 0.03
    levels = np.array([np.diag(mean)[:14].mean(), np.diag(mean)[14:].mean()])
    wanted = (S * B2 * levels**2).sum()
    np.testing.assert_allclose(np.mean(values), wanted, rtol=0.02)  # squaring a mean of 10 directions biases it by O(1/p^2)


def test_filters_add_up():
    x = np.array([0.0, 1e-9, 0.3, 2.0])
    for chosen in (
        ridge_filter(x, [0.0, 0.1, np.inf]),
        flow_filter(x, [0.0, 1.0, np.inf]),
        descent_filter(x, [0, 3, 50], 0.4),
    ):
        np.testing.assert_allclose(chosen.fit + chosen.residual, 1, rtol=1e-15)
        assert np.all(chosen.fit[:, 0] == 0)
    np.testing.assert_allclose(descent_filter(x, 10**6, 1e-6).fit, flow_filter(x, 1.0).fit, rtol=1e-5)
    np.testing.assert_allclose(descent_filter(x, 7, 0.4).residual, (1 - 0.4 * x) ** 7, rtol=1e-13)


def test_signs():
    X = draw_design(np.random.default_rng(0), 50, [4.0], [20], "sign").X
    assert set(np.unique(X)) == {-2.0, 2.0}
