"""The ridge path: the same numbers as refits, least norm without a penalty, digits kept when ill conditioned, refusals."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from limitlab.applied.forecast._measure import RidgePath, minimum_norm

RIDGES = np.geomspace(1e-6, 1e3, 12)
SHAPES = [(40, 25), (25, 40), (30, 30), (6, 1), (1, 6)]


def problem(n, p, targets=None, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)), rng.standard_normal(n if targets is None else (n, targets))


@pytest.mark.parametrize(("n", "p"), SHAPES)
@pytest.mark.parametrize("targets", [None, 3])
def test_same_numbers_as_scikit_learn(n, p, targets):
    X, y = problem(n, p, targets)
    path = RidgePath(X, y)
    coefficients, fitted = path.coefficients(RIDGES), path.predict(X[:7], RIDGES)
    for ridge, found, values in zip(RIDGES, coefficients, fitted, strict=True):
        # scikit-learn's "svd" solver is exact where its default, a Cholesky factor of X'X, loses digits
        model = Ridge(alpha=n * ridge, fit_intercept=False, solver="svd").fit(X, y)
        np.testing.assert_allclose(found, model.coef_.T, rtol=0, atol=1e-8 * np.abs(model.coef_).max())
        np.testing.assert_allclose(values, model.predict(X[:7]), rtol=0, atol=1e-8)


@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_least_norm_without_a_penalty(n, p):
    X, y = problem(n, p)
    wanted = np.linalg.lstsq(X, y, rcond=None)[0]
    np.testing.assert_allclose(minimum_norm(X, y), wanted, atol=1e-10 * np.abs(wanted).max())


def test_least_norm_of_a_singular_table():
    X, y = problem(20, 12)
    X = np.c_[X, X[:, :4]]  # repeated columns
    wanted = np.linalg.pinv(X) @ y
    np.testing.assert_allclose(minimum_norm(X, y), wanted, atol=1e-12)
    path = RidgePath(X, y)
    np.testing.assert_allclose(path.coefficients([0.0, 1e-12])[0], path.coefficients([0.0, 1e-12])[1], atol=1e-9)
    np.testing.assert_allclose(path.degrees_of_freedom([0.0, 1e9]), [12 / 20, 0], atol=1e-8)
    np.testing.assert_array_equal(path.coefficients([1.0, 0.0]), [path.coefficients(1.0), path.coefficients(0.0)])


@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_digits_survive_an_ill_conditioned_table(n, p):
    """Singular values over four decades: forming the Gram matrix costs eight digits, refinement gives them back."""
    X, y = problem(n, p)
    left, _, right = np.linalg.svd(X, full_matrices=False)
    singular = np.geomspace(1, 1e-4, min(n, p))
    X = (left * singular) @ right
    for ridge in (0.0, 1e-12, 1e-8):
        wanted = right.T @ (singular / (singular**2 + n * ridge) * (left.T @ y))
        found = RidgePath(X, y).coefficients(ridge)
        np.testing.assert_allclose(found, wanted, atol=1e-10 * np.abs(wanted).max())


@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_errors_and_degrees_of_freedom(n, p):
    X, y = problem(n, p)
    path = RidgePath(X, y)
    ridges = np.array([[0.01, 0.1], [1.0, 10.0]])
    for index in np.ndindex(2, 2):
        hat = X @ np.linalg.solve(X.T @ X + n * ridges[index] * np.eye(p), X.T)
        residual = y - hat @ y
        np.testing.assert_allclose(path.train_error(ridges)[index], np.mean(residual**2), rtol=1e-9)
        np.testing.assert_allclose(path.degrees_of_freedom(ridges)[index], np.trace(hat) / n, rtol=1e-9)
        gcv = np.mean(residual**2) / (1 - np.trace(hat) / n) ** 2
        np.testing.assert_allclose(path.gcv(ridges)[index], gcv, rtol=1e-8)
    assert path.coefficients(ridges).shape == (2, 2, p)
    assert path.coefficients(0.1).shape == (p,)
    assert path.predict(np.ones((3, p)), ridges).shape == (2, 2, 3)


def test_gcv_refuses_interpolation():
    with pytest.raises(ValueError, match="interpolates"):
        RidgePath(*problem(10, 20)).gcv(0.0)


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (np.ones(3), np.ones(3), "X of shape"),
        (np.ones((3, 2)), np.ones(4), "y of shape"),
        (np.array([[np.nan]]), np.ones(1), "finite"),
    ],
)
def test_refusals(X, y, words):
    with pytest.raises(ValueError, match=words):
        RidgePath(X, y)
    with pytest.raises(ValueError, match="nan"):
        RidgePath(np.ones((2, 1)), np.ones(2)).coefficients(np.nan)
