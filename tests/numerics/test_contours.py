"""Tests of contour quadratures for convergence, independence of spectrum and time, and relative accuracy at short times."""

import numpy as np
import pytest

from limitlab.numerics.contours import circle, descent_parabola, parabola

X = np.linspace(0, 4, 81)


def applied(contour, values):
    return 2 * (contour.weight * values / (X[:, None] - contour.z)).sum(axis=-1).real


@pytest.mark.parametrize("time", [1e-2, 1.0, 30.0, 1e6])
def test_parabola_converges_geometrically_whatever_the_time(time):
    errors = []
    for nodes in (12, 16, 20, 24):
        contour = parabola(time, nodes)
        errors.append(np.abs(applied(contour, np.exp(-time * contour.z)) - np.exp(-time * X)).max())
    rate = -np.diff(np.log(errors)) / 4
    np.testing.assert_allclose(rate, np.log(2.85), atol=0.1)
    contour = parabola(time)
    assert np.abs(applied(contour, np.exp(-time * contour.z)) - np.exp(-time * X)).max() < 2e-14


@pytest.mark.parametrize("nodes", [32, 48, 64])
def test_circle_converges_geometrically(nodes):
    contour = circle(4.0, nodes)
    error = np.abs(applied(contour, np.exp(-contour.z)) - np.exp(-X)).max()
    np.testing.assert_allclose(error, 1.5**-nodes, rtol=0.2)


@pytest.mark.parametrize("time", [1e-8, 1e-3, 1.0])
def test_circle_keeps_relative_accuracy(time):
    contour = circle(4.0)
    found = applied(contour, np.expm1(-time * contour.z) ** 2 / contour.z)
    wanted = np.divide(np.expm1(-time * X) ** 2, X, out=np.zeros_like(X), where=X > 0)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-13 * wanted.max())


@pytest.mark.parametrize("step", [0.25, 0.1, 1e-3])
@pytest.mark.parametrize("count", [8, 20, 1000])
def test_descent_parabola(step, count):
    contour, power = descent_parabola(count, step)
    with np.errstate(divide="ignore"):
        wanted = np.exp(count * np.log1p(-step * X))  # the power itself would lose three digits at 1000 steps
    assert np.abs(applied(contour, power) - wanted).max() < 2e-14
