"""Products over many pairs at once against pair-by-pair quadrature and closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from limitlab.laws.kernels.duals import dual, product_averages
from limitlab.numerics.gaussian import pair_expectation

RHO = np.array([0.97, 0.999, 1.0, -0.99, 0.5, -1 + 1e-9])


def test_products_of_erf_have_their_closed_form() -> None:
    from scipy.special import erf

    roots = np.linspace(0.5, 3.0, RHO.size)
    value, resolved = product_averages(erf, roots, 2.0 * np.ones(RHO.size), RHO)
    assert resolved.all()
    assert value == pytest.approx(dual("erf", roots**2, 4.0, RHO * roots * 2.0).value, abs=1e-12)


def test_steep_pairs_agree_with_quadrature() -> None:
    value, resolved = product_averages(np.tanh, np.array([3.0, 1.0]), np.array([2.0, 0.0]), np.array([0.98, 0.3]))
    assert resolved.all()
    exact = pair_expectation(lambda x, y: np.tanh(3 * x) * np.tanh(2 * y), 0.98, kinks=())
    assert value == pytest.approx([float(exact), 0.0], abs=1e-11)


def test_a_jump_and_too_steep_a_function_are_not_resolved() -> None:
    one = np.ones(1)
    assert not product_averages(np.sign, one, one, 0.5 * one)[1].any()
    assert not product_averages(np.tanh, 1e4 * one, 1e4 * one, 0.3 * one)[1].any()


def test_a_kink_in_the_second_derivative_is_not_taken_for_smooth() -> None:
    rho = np.linspace(-0.95, 0.95, 9)
    stds = np.linspace(0.5, 3.0, 9)
    value, resolved = product_averages(lambda x: np.abs(x) ** 3, stds, stds, rho)
    sine = np.sqrt(1 - rho**2)
    exact = stds**6 * (2 / np.pi) * ((9 * rho + 6 * rho**3) * np.arcsin(rho) + (4 + 11 * rho**2) * sine)
    assert (np.abs(value / exact - 1)[resolved] < 1e-9).all()


def test_near_lines_the_dual_of_tanh_is_exact_where_its_series_is_too_short() -> None:
    near = dual("tanh", [6.0, 6.0], [6.0, 6.0], [6.0, 6.0 * (1 - 1e-7)])
    slope = float(near.slope[0])
    # d value / d covariance is the dual of the slopes
    assert (near.value[0] - near.value[1]) / 6e-7 == pytest.approx(slope, rel=1e-5)
