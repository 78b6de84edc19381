"""Learning curves of a finite population: reference values, its two limits, special cases, random populations, refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limitlab._core.draws import mean_and_error
from limitlab.laws.regression.finite_population import flow_curve, learning_curve
from limitlab.numerics.equivalents import ridge_equivalent
from references import reference

CURVES = reference("ridge", "learning_curve_finite_population")
DATA = reference("ridge", "learning_curve_real_data")
S, C = 1 / np.arange(1, 41) ** 1.5, np.arange(1, 41) ** -1.2 / 2


@pytest.mark.parametrize("entry", CURVES, ids=lambda entry: f"N={entry['inputs']['N']}")
def test_reference_values(entry):
    inputs, wanted = entry["inputs"], entry["outputs"]
    spectrum = inputs["gram_eigenvalues_over_N"], inputs["target_energy_per_mode"]
    found = learning_curve(inputs["n"], inputs["ridge_lambda"], *spectrum, population=inputs["N"])
    np.testing.assert_allclose(found.effective_ridge, wanted["kappa"], rtol=1e-12)
    np.testing.assert_allclose(found.test_error, wanted["test_on_rest"], rtol=1e-12)
    independent = learning_curve(inputs["n"], inputs["ridge_lambda"], *spectrum)
    np.testing.assert_allclose(independent.test_error, wanted["test_iid_population"], rtol=1e-12)


@pytest.mark.parametrize("entry", DATA, ids=lambda entry: f"{entry['inputs']['dataset']}-{entry['inputs']['n']}")
def test_reference_values_of_real_data(entry):
    inputs, wanted = entry["inputs"], entry["outputs"]
    s, c = linear_spectrum(inputs["dataset"])
    found = learning_curve(inputs["n"], inputs["ridge_lambda"], s, c, population=inputs["N"])
    np.testing.assert_allclose(found.test_error, wanted["test_theory_finite_population"], rtol=1e-5)
    found = learning_curve(inputs["n"], inputs["ridge_lambda"], s, c)
    np.testing.assert_allclose(found.test_error, wanted["test_theory_iid"], rtol=1e-5)


def linear_spectrum(name):
    """Eigenvalues of K/N and mode energies for linear features; what no feature explains is one mode of eigenvalue 0."""
    from sklearn.datasets import load_diabetes, load_digits

    if name == "digits":
        X, digit = load_digits(return_X_y=True)
        y = 1.0 - 2.0 * (digit % 2)
        X = X - X.mean(axis=0)
        X = np.c_[X / np.sqrt(X.var(axis=0).sum()), np.full(len(X), 0.3)]
    else:
        X, y = load_diabetes(return_X_y=True)
        y = (y - y.mean()) / y.std()
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        X = np.c_[X / np.sqrt(X.shape[1]), np.full(len(X), 0.5)]
    left, singular, _ = np.linalg.svd(X, full_matrices=False)
    kept = singular > 1e-7 * singular.max()
    s, c = singular[kept] ** 2 / len(X), (left[:, kept].T @ y) ** 2 / len(X)
    return np.r_[s, 0.0], np.r_[c, np.mean(y**2) - c.sum()]


@settings(max_examples=40)
@given(n=st.integers(2, 60), log_ridge=st.floats(-6, 2))
def test_large_population_is_independent_draws(n, log_ridge):
    finite = learning_curve(n, 10**log_ridge, S, C, population=1e12)
    infinite = learning_curve(n, 10**log_ridge, S, C)
    np.testing.assert_allclose(finite, infinite, rtol=1e-8)
    found = ridge_equivalent(10**log_ridge, S, np.full(40, 1 / n))
    np.testing.assert_allclose(
        infinite.test_error, (C * (found.kappa / (S + found.kappa)) ** 2).sum() / found.gap2, rtol=1e-12
    )


@settings(max_examples=40)
@given(log_ridge=st.floats(-4, 2))
def test_almost_everyone_drawn_is_generalised_cross_validation(log_ridge):
    ridge = 10**log_ridge
    found = learning_curve(40 - 1e-9, ridge, S, C, population=40)
    left = ridge / (S + ridge)
    gcv = (C * left**2).sum() / np.mean(left) ** 2
    np.testing.assert_allclose(found.test_error, gcv, rtol=1e-7)
    np.testing.assert_allclose(found.effective_ridge, ridge, rtol=1e-7)


def test_fewer_directions_than_samples_is_the_unbiased_variance():
    s, c = np.r_[1.0, 0.5, np.zeros(6)], np.r_[1.0, 1.0, np.full(6, 0.1)]
    found = learning_curve(4, [0.0, 1e-12], s, c, population=8)
    np.testing.assert_allclose(found.test_error, 0.6 / ((1 - 2 / 8) * (1 - 2 / 4)), rtol=1e-9)
    np.testing.assert_allclose(found.train_error, 0.6 * (1 - 2 / 4) / (1 - 2 / 8), rtol=1e-9)
    assert np.isinf(learning_curve(2, 0.0, s, c, population=8).test_error)
    assert learning_curve(4, 0.0, s, np.r_[1.0, 1.0, np.zeros(6)], population=8).test_error == 0


def test_interpolation_of_a_finite_population():
    found = learning_curve(15, [0.0, 1e-12], S, C, population=40)
    kappa = found.effective_ridge[0]
    left, df2 = kappa / (S + kappa), ((S / (S + kappa)) ** 2).sum()
    np.testing.assert_allclose(found.test_error[0], (C * left**2).sum() / ((1 - 15 / 40) * (1 - df2 / 15)), rtol=1e-12)
    np.testing.assert_allclose(found.test_error[1], found.test_error[0], rtol=1e-8)
    assert found.train_error[0] == 0
    np.testing.assert_allclose(found.degrees_of_freedom[0], 1, rtol=1e-12)


def test_random_populations():
    """Eigenvectors drawn at random: mean errors and degrees of freedom over subsets, within 5 standard errors."""
    rng, population, draws = np.random.default_rng(1), 200, 40
    s = 1 / np.arange(1, population + 1)
    c = rng.random(population) * s**0.5 / population
    for n, ridge in ((60, 1e-3), (120, 1e-2), (120, 0.0)):
        runs = np.array([subset_errors(rng, s, c, n, ridge) for _ in range(draws)])
        found = learning_curve(n, ridge, s, c, population=population)
        error = mean_and_error(runs)[1]
        gaps = runs.mean(axis=0) - [found.test_error, found.train_error, found.degrees_of_freedom]
        assert np.all(np.abs(gaps) < 5 * error + 1e-12), gaps / error


def subset_errors(rng, s, c, n, ridge):
    population = len(s)
    vectors = np.linalg.qr(rng.standard_normal((population, population)))[0]
    gram = population * (vectors * s) @ vectors.T
    y = vectors @ (np.sqrt(population * c) * rng.choice([-1, 1], population))
    resolvent = np.linalg.inv(gram[:n, :n] / n + ridge * np.eye(n))
    fit = gram[:, :n] @ (resolvent @ y[:n]) / n
    return np.mean((fit[n:] - y[n:]) ** 2), np.mean((fit[:n] - y[:n]) ** 2), np.trace(resolvent @ gram[:n, :n]) / n**2


def test_broadcasting():
    n, ridge = np.array([5, 20, 35])[:, None], np.array([0.0, 1e-3, 0.1, 10.0])
    grid = learning_curve(n, ridge, S, C, population=40)
    assert all(part.shape == (3, 4) for part in grid)
    for i, j in np.ndindex(3, 4):
        np.testing.assert_allclose([part[i, j] for part in grid], learning_curve(n[i, 0], ridge[j], S, C, 40), rtol=1e-11)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (dict(samples=40), "samples = 40 .* below population = 40.*cross-validation"),
        (dict(samples=0), "samples = 0"),
        (dict(ridge=-0.1), "ridge = -0.1"),
        (dict(ridge=np.nan), "ridge = nan"),
        (dict(energies=C[1:]), "energies"),
        (dict(energies=-C), "energies"),
        (dict(eigenvalues=-S), "eigenvalues"),
        (dict(population=30), "40 eigenvalues are not allowed: must be at most the 30 points"),
    ],
)
def test_refusals(changes, words):
    with pytest.raises(ValueError, match=words):
        learning_curve(**{**dict(samples=10, ridge=0.1, eigenvalues=S, energies=C, population=40), **changes})


def test_gradient_flow_on_most_of_a_small_population():
    """120 of 200 points, targets averaged in closed form: terms that count how few points are left decide a third of the error."""
    total, n, times = 200, 120, np.array([3.0, 30.0, 300.0])
    s, c = np.arange(1, total + 1) ** -1.3, np.arange(1, total + 1) ** -1.1 / 4
    rng, errors = np.random.default_rng(7), []
    for _ in range(40):
        modes = np.linalg.qr(rng.standard_normal((total, total)))[0] * np.sqrt(total)
        gram, targets = modes * s @ modes.T, modes * np.sqrt(c)  # the first n points are a random subset
        rates, vectors = np.linalg.eigh(gram[:n, :n] / n)
        seen = vectors.T @ targets[:n] / n
        fits = [gram[n:, :n] @ (vectors * (-np.expm1(-t * rates) / rates)) @ seen for t in times]
        errors.append([np.sum((targets[n:] - fit) ** 2) / (total - n) for fit in fits])
    found, error = flow_curve(n, times, s, c, population=total).test_error, mean_and_error(errors)[1]
    assert np.all(np.abs(np.mean(errors, axis=0) - found) < 5 * error + 0.005 * found), np.mean(errors, axis=0) / found
    assert np.all(5 * error < 0.03 * found)
