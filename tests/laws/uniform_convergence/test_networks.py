"""Ascent over networks against values that are known: projections, one neuron, the plane, and the growth with the l2 norm."""

import numpy as np
import pytest

from limitlab.laws.uniform_convergence._networks import (
    absolute_error,
    correlation,
    largest_deviation,
    largest_value,
    project,
)
from limitlab.laws.uniform_convergence.rademacher import switching_supremum


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_projection_is_the_nearest_point_of_the_ball(norm):
    rng = np.random.default_rng(0)
    order = 1 if norm == "l1" else 2
    points = rng.standard_normal((20, 5)) * 2
    near = project(points, 1.5, norm)
    assert np.all(np.linalg.norm(near, order, axis=1) <= 1.5 + 1e-12)
    inside = rng.standard_normal((500, 5))
    inside *= 1.5 * rng.random((500, 1)) / np.linalg.norm(inside, order, axis=1)[:, None]
    # a convex set lies on one side of the plane through the nearest point
    assert np.max((points - near) @ inside.T - ((points - near) * near).sum(axis=1)[:, None]) < 1e-12


@pytest.mark.parametrize("width", [1, 3, 16])
def test_networks_attain_the_exact_supremum_in_the_plane(width):
    rng = np.random.default_rng(1)
    for k in range(3):
        X, signs = rng.standard_normal((40, 2)), 1 - 2.0 * rng.integers(0, 2, 40)
        value = largest_value(X, correlation(signs), 0.7, width, np.random.default_rng(k))
        exact = 0.7 * switching_supremum(X, signs) / 40
        assert 0.995 * exact < value < exact * (1 + 1e-12)


def test_bounded_l2_norm_grows_with_the_width():
    rng = np.random.default_rng(2)
    X, signs = rng.standard_normal((60, 3)), 1 - 2.0 * rng.integers(0, 2, 60)
    one, many = (largest_value(X, correlation(signs), 1.0, width, np.random.default_rng(0), "l2") for width in (1, 16))
    assert 3 < many / one <= 4 + 1e-12


def test_slopes_of_the_absolute_error():
    rng = np.random.default_rng(3)
    loss = absolute_error(rng.standard_normal(30), rng.standard_normal(30))
    outputs, way = rng.standard_normal((30, 2)), rng.standard_normal((30, 2))
    (value, slope), (moved, _) = loss(outputs), loss(outputs + 1e-7 * way)
    np.testing.assert_allclose((moved - value) / 1e-7, (slope * way).sum(axis=0), rtol=1e-5)


def test_the_population_of_all_samples_has_no_deviation():
    """With as many draws as can be, empirical and population risk are close."""
    few, many = (largest_deviation(np.random.default_rng(4), n, 3, 1.0, 2, neurons=8, members=1) for n in (20, 5000))
    assert 0 < many < few / 5
