"""Tests of the distributions of random inputs, of their reproducibility and of refused arguments."""

import numpy as np
import pytest

from limitlab.models.data import ball, gaussian, signs, sphere


def generator(seed=0):
    return np.random.default_rng(seed)


def z_scores(samples, mean, variance):
    """Deviation of column means from a known mean, in standard errors."""
    return (samples.mean(axis=0) - mean) / np.sqrt(variance / samples.shape[0])


@pytest.mark.parametrize("dimension", [1, 2, 7])
def test_sphere_is_on_it_and_isotropic(dimension):
    x = sphere(generator(), 20_000, dimension, radius=3.0)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 3.0, rtol=1e-14)
    assert np.all(np.abs(z_scores(x, 0.0, 9 / dimension)) < 5)
    # E x1^4 = 3 r^4 / (d (d + 2)), and x1^8 gives its variance: E x1^8 = 105 r^8 / (d (d+2) (d+4) (d+6)).
    fourth = 3 * 81 / (dimension * (dimension + 2))
    eighth = 105 * 3**8 / np.prod(dimension + 2 * np.arange(4.0))
    assert np.all(np.abs(z_scores(x**4, fourth, eighth - fourth**2 + 1e-9)) < 5)


@pytest.mark.parametrize("dimension", [1, 3, 10])
def test_ball_is_uniform(dimension):
    """The radius to the power d is uniform on [0, 1], because a share r^d of the points is within radius r."""
    share = np.sort((np.linalg.norm(ball(generator(1), 20_000, dimension, radius=2.0), axis=1) / 2) ** dimension)
    distance = np.max(np.abs(share - (np.arange(share.size) + 0.5) / share.size))
    assert distance < 2.7 / np.sqrt(share.size)  # Kolmogorov's test at level 1e-6
    assert share[-1] < 1


def test_gaussian_covariances():
    eigenvalues = np.array([4.0, 1.0, 0.0])
    x = gaussian(generator(2), 50_000, 3, eigenvalues=eigenvalues)
    assert np.all(np.abs(z_scores(x[:, :2] ** 2, eigenvalues[:2], 2 * eigenvalues[:2] ** 2)) < 5)
    assert np.all(x[:, 2] == 0)
    root = np.array([[1.0, 0.0], [0.5, 2.0], [0.0, -1.0]])
    y = gaussian(generator(3), 50_000, 3, root=root)
    covariance = root @ root.T
    products = np.einsum("ni,nj->nij", y, y).reshape(-1, 9)
    spread = (np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2).ravel()
    assert np.all(np.abs(z_scores(products, covariance.ravel(), spread)) < 5)
    assert gaussian(generator(), 4, 3, eigenvalues=2.0).shape == (4, 3)


def test_signs():
    x = signs(generator(4), 1000, 30)
    assert set(np.unique(x)) == {-1.0, 1.0}
    assert abs(x.mean()) * np.sqrt(x.size) < 5


def test_same_generator_same_draw():
    for draw in (sphere, ball, gaussian, signs):
        np.testing.assert_array_equal(draw(generator(7), 5, 4), draw(generator(7), 5, 4))
        assert not np.array_equal(draw(generator(7), 5, 4), draw(generator(8), 5, 4))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sphere(generator(), 0, 3), "rows = 0 .* at least 1"),
        (lambda: ball(generator(), 3, 0), "dimension = 0 .* at least 1"),
        (lambda: sphere(generator(), 3, 3, radius=-1.0), "radius = -1.0 .* above 0"),
        (lambda: gaussian(generator(), 3, 3, eigenvalues=[1.0, 2.0]), "eigenvalues"),
        (lambda: gaussian(generator(), 3, 3, eigenvalues=[1.0, -2.0, 0.0]), "eigenvalues = -2.0"),
        (lambda: gaussian(generator(), 3, 3, root=np.eye(2)), "root"),
        (lambda: gaussian(generator(), 3, 3, root=np.eye(3), eigenvalues=1.0), "root"),
        (lambda: signs(generator(), 2.5, 3), "rows = 2.5"),
    ],
)
def test_bad_input_says_what_is_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call()
