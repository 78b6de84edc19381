"""Uniform convergence: reference values, duality, exact suprema of one data set, Rademacher complexities, bad input."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

from limitlab.laws import UniformConvergence, exact_deviations, rademacher_linear, rademacher_two_layer
from limitlab.laws.kernels._wide_networks import waves
from limitlab.laws.uniform_convergence.rademacher import ascended, switching_supremum
from limitlab.laws.uniform_convergence.uniform_convergence import deviations, largest_on_ball
from limitlab.models.activations import Activation
from references import label, reference

entries = partial(reference, "kernels")


@pytest.mark.parametrize("entry", entries("uniform_deviation_linear_square_loss"), ids=label)
def test_reference_deviations(entry):
    asked, want = entry["inputs"], entry["outputs"]
    law = UniformConvergence(ratio=asked["delta_d_over_n"], radius=asked["rho"], signal=asked["r"], noise=asked["tau"])
    found = law.theory()
    got = [float(found.sup_empirical_minus_population), float(found.sup_population_minus_empirical)]
    np.testing.assert_allclose(got, [want["sup_emp_minus_pop"], want["sup_pop_minus_emp"]], rtol=1e-9)


@given(st.floats(0.05, 4), st.floats(0.2, 3), st.floats(0, 2), st.floats(0, 2))
@settings(max_examples=40, deadline=None)
def test_the_first_equals_its_dual(delta, rho, r, tau):
    def dual(u):
        return rho**2 * (u + delta + delta / u) + r**2 * (delta / u + delta**2 / (u**2 * (u + delta))) + tau**2 * delta / u

    root = np.sqrt(delta)
    found = minimize_scalar(lambda x: dual(root + x**2), bounds=(0, 30), method="bounded", options={"xatol": 1e-12})
    np.testing.assert_allclose(deviations(delta, rho, r, tau)[0], min(found.fun, dual(root)), rtol=1e-7)


@pytest.mark.parametrize(("delta", "rho", "tau"), [(0.5, 1.0, 1.0), (0.1, 2.0, 0.3), (3.0, 2.0, 0.1), (1.5, 1.0, 0.9)])
def test_closed_forms_without_a_signal(delta, rho, tau):
    energy, root = np.sqrt(rho**2 + tau**2), np.sqrt(delta)
    above = rho**2 * delta + 2 * root * rho * energy
    below = 2 * root * rho * energy - rho**2 * delta if energy >= root * rho else rho**2 + tau**2
    np.testing.assert_allclose(deviations(delta, rho, 0.0, tau), [above, below], rtol=1e-10)


@given(st.integers(0, 10_000), st.floats(0.1, 3))
@settings(max_examples=40, deadline=None)
def test_quadratic_on_a_ball(seed, radius):
    """Against a local solver from many starts; some slopes vanish (the hard case)."""
    rng = np.random.default_rng(seed)
    a, s = rng.standard_normal(4), rng.standard_normal(4) * rng.integers(0, 2, 4)
    best = 0.0
    for start in [*rng.standard_normal((6, 4)), *np.eye(4)]:
        x = start / np.linalg.norm(start) * radius * 0.99
        found = minimize(
            lambda v: -(a @ v**2 + 2 * s @ v),
            x,
            jac=lambda v: -2 * (a * v + s),
            constraints={"type": "ineq", "fun": lambda v: radius**2 - v @ v, "jac": lambda v: -2 * v},
            method="SLSQP",
        )
        inside = found.x * min(1.0, radius / max(np.linalg.norm(found.x), 1e-300))
        best = max(best, float(a @ inside**2 + 2 * s @ inside))
    exact = largest_on_ball(a, s, radius)
    assert exact >= best - 1e-9 * (1 + abs(best))
    np.testing.assert_allclose(exact, best, rtol=1e-3, atol=1e-4)


def test_exact_deviations_are_attained_and_not_exceeded():
    rng = np.random.default_rng(0)
    n, d, noise, radius = 30, 6, 0.5, 1.3
    X, target = rng.standard_normal((n, d)), np.eye(d)[0]
    y = X @ target + noise * rng.standard_normal(n)
    above, below = exact_deviations(X, y, target, noise, radius)
    theta = rng.standard_normal((100_000, d))
    theta *= radius * rng.random((len(theta), 1)) ** 0.05 / np.linalg.norm(theta, axis=1, keepdims=True)
    gap = ((y - theta @ X.T) ** 2).mean(axis=1) - ((theta - target) ** 2).sum(axis=1) - noise**2
    assert gap.max() <= above
    assert gap.max() >= above - 0.1 * abs(above)
    assert -gap.min() <= below
    assert -gap.min() >= below - 0.1 * abs(below)


# -- Rademacher complexities ------------------------------------------------------------------------------------------------


def test_reference_complexity():
    (entry,) = entries("rademacher_linear")
    found = rademacher_linear(waves(8, 3), entry["inputs"]["rho"])
    np.testing.assert_allclose(
        [found.value, found.bound], [entry["outputs"]["exact"], entry["outputs"]["upper_bound"]], rtol=1e-10
    )
    assert found.standard_error == 0
    assert found.exact


def test_sampled_patterns_agree_with_all_of_them():
    X = waves(14, 3)
    exact = rademacher_linear(X, 1.0)
    from limitlab.laws.uniform_convergence.rademacher import random_signs

    lengths = np.linalg.norm(random_signs(14, 20_000, 1) @ X, axis=1) / 14
    assert abs(lengths.mean() - exact.value) < 5 * lengths.std() / np.sqrt(20_000)
    assert rademacher_linear(waves(15, 3), 1.0).standard_error > 0


def test_switching_angles_against_a_grid():
    rng = np.random.default_rng(0)
    for _ in range(5):
        X, signs = rng.standard_normal((20, 2)), 1 - 2.0 * rng.integers(0, 2, 20)
        angles = np.linspace(0, 2 * np.pi, 20_001)
        grid = np.abs(np.maximum(np.stack([np.cos(angles), np.sin(angles)], 1) @ X.T, 0) @ signs).max()
        exact = switching_supremum(X, signs)
        assert grid <= exact * (1 + 1e-12)
        np.testing.assert_allclose(grid, exact, rtol=1e-4)
        assert ascended(X, signs, Activation("relu"), 20, rng) == pytest.approx(exact, rel=0.02)


def test_two_layer_complexity_scales_with_the_norm_and_not_with_the_width():
    X = np.random.default_rng(0).standard_normal((60, 4))
    one, many, double = (
        rademacher_two_layer(X, gamma, width=width, draws=6) for gamma, width in ((1.0, 1), (1.0, 8), (2.0, 1))
    )
    assert one.value <= many.value * (1 + 1e-9) <= one.value * 1.02
    assert double.value == pytest.approx(2 * one.value)
    assert one.value < one.bound
    assert not one.exact
    assert rademacher_two_layer(X, 1.0, "cos", draws=2).bound == np.inf


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rademacher_linear(waves(3, 2), -1.0), "radius = -1.0 is not allowed"),
        (lambda: rademacher_linear([1.0, 2.0], 1.0), "must be a table"),
        (lambda: rademacher_two_layer(waves(3, 2), -1.0), "l1_norm = -1.0 is not allowed"),
        (lambda: UniformConvergence(ratio=0.0), "ratio = 0.0 is not allowed"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()
