"""Tests of drawn random features, and of regression on them against dense linear algebra."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from limitlab._core.draws import mean_and_error
from limitlab.models.activations import Activation, Moments, moments
from limitlab.models.random_features import (
    PARTS,
    FeatureRidge,
    covariance,
    draw_inputs,
    draw_part,
    draw_weights,
    linear_features,
    nonlinear_features,
)


def table(width, samples, d=12, seed=0, activation="relu"):
    rng = np.random.default_rng(seed)
    W, X, X_new = draw_weights(rng, width, d), draw_inputs(rng, samples, d), draw_inputs(rng, 50, d)
    Z, Z_new = (nonlinear_features(x, W, Activation(activation)) for x in (X, X_new))
    return Z, X, Z_new, X_new


@pytest.mark.parametrize(("width", "samples"), [(20, 45), (45, 20), (30, 30)])
@pytest.mark.parametrize("r", [0.5, 1e-4, 0.0])
def test_averages_against_the_matrices(width, samples, r):
    """The quadratic forms, written out with the matrix A = (Z'Z + r)^-1 Z'."""
    Z, X, Z_new, X_new = table(width, samples)
    d, n, m = X.shape[1], samples, len(X_new)
    A = np.linalg.pinv(Z) if r == 0 else np.linalg.solve(Z.T @ Z + r * np.eye(width), Z.T)
    forms = FeatureRidge(Z, X, Z_new, X_new).averaged(r)
    K, K_cross, K_new = (covariance("quadratic", *pair) for pair in ((X, X), (X_new, X), (X_new, X_new)))
    H, P = Z @ A, Z_new @ A
    ones, ones_new = np.ones((n, 1)), np.ones((m, 1))
    expected = dict(
        test=[
            np.sum((X_new - P @ X) ** 2) / (d * m),
            np.sum(P**2) / m,
            np.trace(K_new - 2 * P @ K_cross.T + P @ K @ P.T) / m,
            np.sum((ones_new - P @ ones) ** 2) / m,
        ],
        train=[
            np.sum((X - H @ X) ** 2) / (n * d),
            np.sum((np.eye(n) - H) ** 2) / n,
            np.trace((np.eye(n) - H) @ K @ (np.eye(n) - H).T) / n,
            np.sum((ones - H @ ones) ** 2) / n,
        ],
        norm=[np.sum((A @ X) ** 2) / d, np.sum(A**2), np.trace(A @ K @ A.T), np.sum((A @ ones) ** 2)],
    )
    for name, values in expected.items():
        form = getattr(forms, name)
        np.testing.assert_allclose(np.diag(form), values, rtol=1e-6, atol=1e-9, err_msg=name)
        assert np.count_nonzero(form - np.diag(np.diag(form))) == 0


@pytest.mark.parametrize(("width", "samples"), [(20, 45), (45, 20)])
def test_drawn_labels_against_scikit_learn(width, samples):
    Z, X, Z_new, X_new = table(width, samples)
    model, r, sizes = FeatureRidge(Z, X, Z_new, X_new), 0.3, np.array([1.5, 0.5, 0.7, 0.2])
    forms = model.drawn(np.random.default_rng(7), r)
    rng = np.random.default_rng(7)
    labels, truth = (
        np.stack(rows, axis=1) @ sizes for rows in zip(*(draw_part(rng, p, (X, X_new)) for p in PARTS), strict=True)
    )
    fit = Ridge(alpha=r, fit_intercept=False, tol=1e-12).fit(Z, labels)
    np.testing.assert_allclose(sizes @ forms.test @ sizes, np.mean((truth - fit.predict(Z_new)) ** 2), rtol=1e-8)
    np.testing.assert_allclose(sizes @ forms.train @ sizes, np.mean((labels - fit.predict(Z)) ** 2), rtol=1e-8)
    np.testing.assert_allclose(sizes @ forms.norm @ sizes, np.sum(fit.coef_**2), rtol=1e-8)


def test_a_path_of_penalties_is_the_penalties_one_by_one():
    model, ridges = FeatureRidge(*table(25, 40)), np.array([[0.0, 0.1], [1.0, 30.0]])
    for draw in (model.averaged, lambda r: model.drawn(np.random.default_rng(1), r)):
        path = draw(ridges)
        for index in np.ndindex(ridges.shape):
            single = draw(ridges[index])
            for name in single._fields:
                np.testing.assert_allclose(getattr(path, name)[index], getattr(single, name), rtol=1e-10, atol=1e-13)


def test_mean_over_drawn_labels_is_the_closed_average():
    model = FeatureRidge(*table(20, 35))
    rng, draws = np.random.default_rng(3), 3000
    average = model.averaged(0.2)
    runs = [model.drawn(rng, 0.2) for _ in range(draws)]
    for name in average._fields:
        values = np.stack([getattr(run, name) for run in runs])
        error = mean_and_error(values)[1]
        z = (values.mean(axis=0) - getattr(average, name)) / np.maximum(error, 1e-12)
        assert np.abs(z).max() < 5, name


def test_linear_neurons_beyond_their_rank():
    """With more linear neurons than inputs the features have a null space, and least squares fits a linear signal exactly."""
    rng = np.random.default_rng(0)
    W, X, X_new = draw_weights(rng, 40, 10), draw_inputs(rng, 30, 10), draw_inputs(rng, 25, 10)
    model = FeatureRidge(X @ W.T, X, X_new @ W.T, X_new)
    assert np.count_nonzero(model.singular) == 10
    forms = model.averaged(0.0, ("linear", "noise"))
    assert max(forms.test[0, 0], forms.train[0, 0]) < 1e-12
    np.testing.assert_allclose(forms.train[1, 1], 20 / 30, rtol=1e-10)
    np.testing.assert_allclose(forms.norm[0, 0], np.trace(np.linalg.inv(W.T @ W)) / 10, rtol=1e-8)


def test_gaussian_equivalent_has_the_moments_of_the_features():
    rng = np.random.default_rng(0)
    d, mu = 400, moments("relu")
    W, X = draw_weights(rng, 40, d), draw_inputs(rng, 4000, d)
    linear, nonlinear = linear_features(rng, X, W, mu), nonlinear_features(X, W, Activation("relu"))
    for Z in (linear, nonlinear):
        assert abs(Z.mean() - mu.mean) < 0.01
        assert abs(Z.var() - mu.linear**2 - mu.nonlinear**2) < 0.01
        slope = np.mean((Z - Z.mean()) * (X @ W.T))
        assert abs(slope - mu.linear) < 0.01
    exact = linear_features(rng, X, W, Moments(mean=0.5, linear=2.0, nonlinear=0.0))
    np.testing.assert_allclose(exact, 0.5 + 2 * X @ W.T, rtol=1e-14)


def test_inputs():
    rng = np.random.default_rng(0)
    np.testing.assert_allclose(np.linalg.norm(draw_inputs(rng, 5, 16), axis=1), 4.0)
    assert np.ptp(np.linalg.norm(draw_inputs(rng, 50, 16, "gaussian"), axis=1)) > 0.5
    with pytest.raises(ValueError, match="inputs = 'cube'"):
        draw_inputs(rng, 5, 16, "cube")


def test_quadratic_part_has_its_covariance():
    rng, d = np.random.default_rng(0), 6
    X = draw_inputs(rng, 4, d)
    draws = np.array([draw_part(rng, "quadratic", (X,))[0] for _ in range(20000)])
    np.testing.assert_allclose(np.cov(draws.T), covariance("quadratic", X, X), atol=0.05)
