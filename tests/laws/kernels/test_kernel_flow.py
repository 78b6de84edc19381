"""Kernel gradient flow and lazy training: reference values, invariants, limits that meet, bounds, bad input."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limitlab.laws import KernelGradientFlow, LazyTraining, ensemble_flow, kernel_gradient_flow, lazy_certificate, ntk
from limitlab.laws.kernels._lazy_networks import LazyNetworks, half_signs, unit_rows
from limitlab.laws.kernels._wide_networks import waves
from limitlab.laws.kernels.lazy import largest_curvature, with_derivatives
from limitlab.models.activations import Activation
from references import reference

entries = partial(reference, "kernels")


# -- kernel gradient flow -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", entries("kernel_gradient_flow"), ids=lambda entry: entry["inputs"]["activation"])
def test_reference_trajectories(entry):
    asked = entry["inputs"]
    n, d, s = asked["n"], asked["d"], asked["s"]
    X, tests = 1.3 * waves(n, d, s), waves(2, d, s + 10)
    options = dict(layers=asked["n_weight_layers"], activation=asked["activation"], bias_std=asked["beta"])
    i, j = np.arange(n), np.arange(2)
    flow = kernel_gradient_flow(
        ntk(X, **options),
        np.cos(1.1 * i),
        0.3 * np.sin(2 * i),
        [*asked["times"], np.inf],
        ntk(tests, X, **options),
        0.2 * np.cos(3 * j),
    )
    assert len(entry["outputs"]) == len(flow.train)
    for k, want in enumerate(entry["outputs"].values()):
        np.testing.assert_allclose(flow.train[k], want["train"], atol=1e-7)
        np.testing.assert_allclose(flow.test[k], want["test"], atol=1e-7)


K = ntk(waves(5, 8), bias_std=0.2)
Y = np.cos(1.1 * np.arange(5))
F0 = 0.3 * np.sin(2.0 * np.arange(5))
CROSS = ntk(waves(3, 8, 4.0), waves(5, 8), bias_std=0.2)


def test_small_steps_are_the_flow():
    """Order 1 in the step."""
    exact = kernel_gradient_flow(K, Y, F0, [4.0], CROSS).test
    gaps = [
        np.abs(kernel_gradient_flow(K, Y, F0, [4.0], CROSS, step=step).test - exact).max() for step in (0.1, 0.05, 0.025)
    ]
    orders = np.log2(np.array(gaps[:-1]) / gaps[1:])
    assert (np.abs(orders - 1) < 0.1).all()


def test_steps_are_gradient_descent():
    f, g, step = F0.copy(), np.zeros(3), 1.5
    for _ in range(7):
        f, g = f - step / 5 * K @ (f - Y), g - step / 5 * CROSS @ (f - Y)
    found = kernel_gradient_flow(K, Y, F0, [7 * step], CROSS, step=step)
    np.testing.assert_allclose(found.train[0], f, atol=1e-12)
    np.testing.assert_allclose(found.test[0], g, atol=1e-12)
    values = np.linalg.eigvalsh(K)
    wild = 1.9 * 5 / values[-1]  # the fastest mode overshoots: its residual changes sign with every step
    top = np.linalg.eigh(K)[1][:, -1]
    odd, even = (top @ (kernel_gradient_flow(K, Y, F0, [k * wild], step=wild).train[0] - Y) for k in (1, 2))
    assert odd * even < 0
    with pytest.raises(ValueError, match=r"step = .* is not allowed: must be below .* longer steps diverge"):
        kernel_gradient_flow(K, Y, F0, [1.0], step=2.1 * 5 / values[-1])


def test_the_end_is_ridge_regression_and_interpolation():
    end = kernel_gradient_flow(K, Y, F0, [np.inf], CROSS, ridge=0.3)
    np.testing.assert_allclose(end.test[0], CROSS @ np.linalg.solve(K + 0.3 * np.eye(5), Y - F0), atol=1e-10)
    bare = kernel_gradient_flow(K, Y, F0, [1e6, np.inf], CROSS)
    np.testing.assert_allclose(bare.train[1], Y, atol=1e-9)
    np.testing.assert_allclose(bare.test[0], bare.test[1], atol=1e-9)
    tiny = kernel_gradient_flow(K, Y, F0, [np.inf], CROSS, ridge=1e-9).test
    np.testing.assert_allclose(tiny, bare.test[1:], atol=1e-6)


@given(st.lists(st.floats(0.01, 50), min_size=2, max_size=4, unique=True))
@settings(max_examples=30, deadline=None)
def test_every_eigenresidual_falls(times):
    grid = np.sort(times)
    vectors = np.linalg.eigh(K)[1]
    flow = kernel_gradient_flow(K, Y, F0, np.r_[0.0, grid]).train
    residuals = np.abs((flow - Y) @ vectors)
    assert (np.diff(residuals, axis=0) <= 1e-12).all()


def test_ensemble_is_the_mean_over_starts():
    points = np.vstack([waves(5, 8), waves(3, 8, 4.0)])
    from limitlab.laws import nngp

    sigma = nngp(points, bias_std=0.2)
    found = ensemble_flow(K, sigma, Y, [0.0, 3.0, np.inf], CROSS)
    np.testing.assert_allclose(found.covariance[0], sigma, atol=1e-12)
    np.testing.assert_allclose(found.covariance[2][:5, :5], 0, atol=1e-10)
    starts = np.random.default_rng(0).multivariate_normal(np.zeros(8), sigma, 4000)
    runs = np.array([kernel_gradient_flow(K, Y, f[:5], [3.0], CROSS, f[5:]).test[0] for f in starts])
    error = runs.std(axis=0) / np.sqrt(len(runs))
    assert (np.abs(runs.mean(axis=0) - found.mean[1, 5:]) < 5 * error).all()
    np.testing.assert_allclose(
        np.cov(runs.T), found.covariance[1][5:, 5:], atol=5 * np.diag(found.covariance[1])[5:].max() * 0.03
    )


def test_equal_inputs_with_different_labels():
    twice = np.array([[1.0, 1.0], [1.0, 1.0]])
    with pytest.warns(UserWarning, match="the nearest fit, not at an interpolant"):
        end = kernel_gradient_flow(twice, [1.0, -0.5], [0.0, 0.0], [np.inf], [[1.0, 1.0]])
    np.testing.assert_allclose(end.train[0], [0.25, 0.25], atol=1e-12)
    np.testing.assert_allclose(end.test[0], [0.25], atol=1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: kernel_gradient_flow(-K, Y, F0, [1.0]), "K is not allowed: it has the eigenvalue"),
        (lambda: kernel_gradient_flow(K, Y, F0, [-1.0]), "times = .* must be at least 0"),
        (lambda: kernel_gradient_flow(K, Y[:3], F0, [1.0]), "y and f0 of shapes"),
        (lambda: kernel_gradient_flow(K, Y, F0, [1.0], np.ones((1, 3))), "k_test of shape"),
        (lambda: kernel_gradient_flow(np.ones((2, 3)), Y, F0, [1.0]), "must be a square matrix"),
        (lambda: ensemble_flow(K, np.eye(3), Y, [1.0]), "nngp of shape"),
        (lambda: KernelGradientFlow(step=100.0), "step = 100 is not allowed: must be below"),
        (lambda: KernelGradientFlow(times=(1.0, np.inf)).simulate(16, 0), "times"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_a_flow_without_steps_can_be_simulated():
    law = KernelGradientFlow(step=0.0, times=(0.5, 2.0), networks=10)
    run = law.simulate_batch(200, range(6))
    gap = np.abs(run.train_error.mean("seed") - law.theory().train_error)
    assert (gap < 5 * run.train_error.std("seed") / np.sqrt(6) + 0.05).all()


# -- lazy training ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", entries("lazy_training_certificate"), ids=lambda entry: str(entry["inputs"]["m"]))
def test_reference_certificates(entry):
    asked = entry["inputs"]
    W = waves(asked["m"], asked["d"], asked["s"] + 3)
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    found = lazy_certificate(
        1.5 * waves(4, 5, asked["s"]), np.cos(1.1 * np.arange(4)), W, asked["alpha"], lambda u: np.tanh(u + 0.5)
    )
    got = (found.sigma_min, found.sigma_max, found.lipschitz, found.residual, found.ratio, found.rate)
    np.testing.assert_allclose(
        [*got, found.distance_bound, found.deviation_bound], list(entry["outputs"].values()), rtol=1e-7
    )
    assert found.sharper_deviation_bound <= found.deviation_bound * (1 + 1e-12)


def test_the_kernel_is_that_of_all_derivatives():
    X, y = waves(4, 5), np.ones(4)
    net = LazyNetworks(X, y, unit_rows(np.random.default_rng(0), 1, 6, 5), 1.7, Activation("tanh"))
    base, eps, columns = net.outputs()[0], 1e-6, []
    for k in range(30):
        moved = net.weights.copy()
        moved.flat[k] += eps
        columns.append((net.outputs(moved)[0] - base) / eps)
    J = np.array(columns).T
    np.testing.assert_allclose(net.kernel()[0], J @ J.T, atol=1e-5)
    np.testing.assert_allclose(net.pull_back(net.weights, y[None])[0].ravel(), J.T @ y, atol=1e-5)


def test_the_lipschitz_bound_bounds():
    X, y = waves(4, 5), np.ones(4)
    rng = np.random.default_rng(0)
    weights = unit_rows(rng, 1, 8, 5)[0]
    certificate = lazy_certificate(X, y, weights, 1.3, "tanh")
    s = Activation("tanh")

    def jacobian(w):
        return ((s.derivative(X @ w.T) * 1.3 * half_signs(8) / np.sqrt(8))[:, :, None] * X[:, None, :]).reshape(4, -1)

    for _ in range(200):
        a, b = (weights + rng.standard_normal(weights.shape) for _ in range(2))
        assert np.linalg.norm(jacobian(a) - jacobian(b), 2) <= certificate.lipschitz * np.linalg.norm(a - b)


def test_largest_curvatures():
    assert largest_curvature(Activation("softplus")) == pytest.approx(0.25, rel=1e-12)
    assert largest_curvature(with_derivatives(lambda u: np.tanh(u + 0.5))) == pytest.approx(4 / (3 * 3**0.5), rel=1e-9)


def test_antisymmetric_start_has_no_output():
    law = LazyTraining(antisymmetric=True, networks=2)
    assert np.abs(law.start(law.draw(20, 0)).outputs()).max() < 1e-12
    assert not law.limits()[0].any()


def test_the_linearised_flow_keeps_its_promises():
    law = LazyTraining(networks=3, times=(0.5, 2.0, 8.0))
    nets = law.start(law.draw(40, 1))
    flow = nets.flow(np.array([0.5, 2.0, 8.0]))
    assert (np.diff(flow.linear_squared_distance, axis=1) >= -1e-12).all()
    assert (np.diff(flow.train_error, axis=1) <= 0).all()
    for k, weights in enumerate(nets.weights):
        certificate = law.certificate(weights)
        assert flow.linear_squared_distance[k].max() <= certificate.linear_distance_bound**2


def test_integration_has_order_four():
    law = LazyTraining(networks=1, scale=2.0)
    nets = law.start(law.draw(20, 0))
    ends = {}
    for steps in (8, 16, 32, 256):
        w = nets.weights
        for _ in range(steps):
            w = nets._step(w, 2.0 / steps, law.samples)
        ends[steps] = w
    gaps = [np.abs(ends[steps] - ends[256]).max() for steps in (8, 16, 32)]
    assert (np.abs(np.log2(np.array(gaps[:-1]) / gaps[1:]) - 4) < 0.5).all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: lazy_certificate(waves(3, 4), np.ones(3), np.eye(4), 1.0, "relu"), "bounded second derivative"),
        (lambda: lazy_certificate(waves(3, 4), np.ones(3), np.eye(4), 1.0, "cube"), "bounded second derivative"),
        (lambda: lazy_certificate(waves(3, 4), np.ones(3), np.eye(4)[:3], 1.0, "tanh"), "must be an even number"),
        (lambda: lazy_certificate(np.ones((2, 4)), np.ones(2), np.eye(4), 1.0, "tanh"), "rank deficient"),
        (lambda: lazy_certificate(waves(3, 4), np.ones(2), np.eye(4), 1.0, "tanh"), "X, y and W0 of shapes"),
        (lambda: lazy_certificate(waves(3, 4), np.ones(3), np.eye(4), 0.0, "tanh"), "scale = 0.0 is not allowed"),
        (lambda: LazyTraining(activation="relu"), "bounded second derivative"),
        (lambda: LazyTraining().simulate(41, 0), "must be an even number"),
    ],
)  # fmt: skip
def test_bad_lazy_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()
