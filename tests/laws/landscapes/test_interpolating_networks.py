"""Networks trained to interpolation: the solver, the tasks, double descent, random labels, bad input."""

import numpy as np
import pytest

from limitlab.errors import ConvergenceError
from limitlab.laws import RandomLabels, WidthDoubleDescent, width_double_descent
from limitlab.laws.kernels.deep import ntk
from limitlab.laws.landscapes._levenberg import TanhNetwork, first_order, levenberg_marquardt
from limitlab.models.datasets import image_task


@pytest.mark.parametrize("widths", [(3, 5, 1), (3, 4, 5, 2)])
def test_jacobian_by_differences_and_by_products(widths):
    network, rng = TanhNetwork(widths), np.random.default_rng(0)
    theta, X = network.start(rng), rng.standard_normal((6, 3))
    assert not theta[-widths[-1] :].any()  # the last bias starts at 0
    J, eps = network.jacobian(theta, X), 1e-6
    columns = [
        (network.outputs(theta + eps * e, X) - network.outputs(theta - eps * e, X)).ravel() / (2 * eps)
        for e in np.eye(len(theta))
    ]
    np.testing.assert_allclose(J, np.array(columns).T, atol=1e-8)
    f, parts = network.backward(theta, X)
    np.testing.assert_allclose(f, network.outputs(theta, X), atol=1e-14)
    np.testing.assert_allclose(network.gram(parts), J @ J.T, atol=1e-12)
    v = rng.standard_normal(f.size)
    np.testing.assert_allclose(network.pull_back(parts, v), J.T @ v, atol=1e-12)


@pytest.mark.parametrize("loss", ["square", "squared_hinge"])
def test_training_lowers_the_loss_to_its_goal(loss):
    task = image_task(samples=40, flips=0.2)
    network = TanhNetwork((10, 30, 1))
    fit = levenberg_marquardt(network, network.start(np.random.default_rng(0)), task.X, task.y, loss)
    f = network.outputs(fit.theta, task.X)
    gap = task.y - f if loss == "square" else np.maximum(0, 1 - task.y * f)
    assert np.mean(gap**2) == pytest.approx(fit.loss, rel=1e-9)
    assert fit.loss < 1e-12
    assert fit.unsatisfied == 0
    if loss == "squared_hinge":
        assert (task.y * f).max() > 1.5  # satisfied margins are left alone


def test_tasks():
    clean, noisy = image_task(samples=100), image_task(samples=100, flips=0.3)
    assert (clean.y != noisy.y).sum() == 30
    np.testing.assert_array_equal(clean.X_test, noisy.X_test)
    classes = image_task("mnist", samples=50, labels="classes", flips=0.2, components=5, tests=20)
    assert classes.y.shape == (50, 10)
    assert (classes.y.sum(axis=1) == -8).all()
    right = image_task("mnist", samples=50, labels="classes", components=5, tests=20)
    assert (classes.y != right.y).any(axis=1).sum() == 10
    assert len(classes.X_test) == 20


def test_test_error_rises_to_the_threshold_and_falls():
    found = width_double_descent((3, 8, 60), samples=100, flips=0.1, seeds=5)
    ratio, test = found.parameters_over_samples.values, found.test_loss.median("seed").values
    np.testing.assert_allclose(ratio, [0.37, 0.97, 7.21], atol=1e-9)
    assert test[1] > 2 * test[2]
    assert test[1] > 1.5 * test[0]
    assert (found.train_loss.sel(width=60) < 1e-10).all()
    assert float(found.train_loss.sel(width=3).median()) > 1e-2


def test_random_labels_are_interpolated_and_mean_nothing():
    found = width_double_descent([60], samples=100, flips=0.5, seeds=4)
    assert (found.train_loss < 1e-10).all()
    assert 0.4 < float(found.test_classification_error.mean()) < 0.6


def test_deep_networks_with_the_hinge_and_ten_classes():
    deep = width_double_descent([2, 14], samples=150, flips=0.1, depth=3, loss="squared_hinge", seeds=2)
    assert (deep.unsatisfied.sel(width=14) == 0).all()
    assert (deep.unsatisfied.sel(width=2) > 0).all()
    ten = width_double_descent([40], samples=30, labels="classes", images="mnist", seeds=1)
    assert float(ten.parameters_over_samples[0]) == pytest.approx((40 * 11 + 41 * 10) / 300)
    assert float(ten.train_loss.max()) < 1e-10


def test_first_order_training_does_not_interpolate_at_the_threshold():
    """Adam in single steps on the same problem stays far above what Levenberg-Marquardt reaches."""
    task = image_task(samples=60, flips=0.1)
    network = TanhNetwork((10, 6, 1))  # p / n = 1.2
    theta = network.start(np.random.default_rng(0))
    best = levenberg_marquardt(network, theta, task.X, task.y).loss
    adam = first_order(network, theta, task.X, task.y, np.random.default_rng(1), iterations=1500).loss
    assert adam > 1e-3
    assert best < adam / 1e3


def test_gradient_is_the_product_with_the_jacobian():
    task, network = image_task(samples=20, labels="classes", images="mnist"), TanhNetwork((10, 7, 5, 10))
    theta = network.start(np.random.default_rng(0))
    slope = network.gradient(theta, task.X, lambda f: f - task.y)
    residuals = (network.outputs(theta, task.X) - task.y).ravel()
    np.testing.assert_allclose(slope, network.jacobian(theta, task.X).T @ residuals, atol=1e-12)


@pytest.mark.slow
def test_ten_classes_of_mnist():
    """The peak, interpolation past it and the second descent with ten outputs; Adam stops short of interpolation and blurs the peak."""
    shared = {"samples": 100, "flips": 0.2, "seeds": 3, "images": "mnist", "labels": "classes", "tests": 2000}
    widths = [10, 40, 50, 160, 380]
    exact = width_double_descent(widths, **shared)
    ratio, middle = exact.parameters_over_samples.values, exact.test_loss.median("seed").values
    assert ratio[1] < 1 < ratio[2]
    assert (exact.train_loss.values[ratio > 1] < 1e-10).all()
    assert (exact.train_loss.values[0] > 0.05).all()
    assert middle[1] > 2 * middle[-1]
    assert (np.diff(middle[1:]) < 0).all()
    rough = width_double_descent(widths, **shared, training="adam", iterations=2000)
    assert (rough.train_loss.values[1:3] > 1e-4).all()
    blurred = rough.test_loss.median("seed").values
    assert blurred[1] / blurred[-1] < middle[1] / middle[-1]


@pytest.mark.slow
def test_four_thousand_images_are_within_reach_of_adam_only():
    """p = 1.05 residuals, 1,000 steps: far from interpolation, and better than a tenth of the width."""
    found = width_double_descent(
        [100, 2000], 4000, 0.2, seeds=1, images="mnist", labels="classes", training="adam", iterations=1000
    )
    assert found.parameters_over_samples.values[1] > 1
    assert (found.train_loss > 0.05).all()
    error = found.test_classification_error.values[:, 0]
    assert error[1] < error[0] < 0.2


def test_limits_at_special_labels():
    """Without wrong labels the limit is better than with them; random labels are worse than any."""
    clean, noisy = (float(WidthDoubleDescent(samples=60, flips=share).theory().excess_risk) for share in (0.0, 0.2))
    random = float(RandomLabels(samples=60).theory().excess_risk)
    assert clean < noisy < random
    assert random > 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: width_double_descent([]), "widths = .* are not allowed"),
        (lambda: width_double_descent([3], depth=1), "depth = 1 is not allowed"),
        (lambda: width_double_descent([3], loss="hinge"), "loss = 'hinge' is not allowed"),
        (lambda: width_double_descent([3], training="sgd"), "training = 'sgd' is not allowed"),
        (lambda: image_task(samples=5000), "samples = 5000 is not allowed"),
        (lambda: image_task(flips=1.5), "flips = 1.5 is not allowed"),
        (lambda: image_task("cifar"), "images = 'cifar'"),
        (lambda: image_task(components=65), "components = 65 is not allowed"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_the_accuracy_follows_the_condition_of_the_kernel(monkeypatch):
    """With few components the kernel is nearly singular: an error of its entries is seen in the limit, and stated."""
    from limitlab.laws.landscapes import interpolating

    law = RandomLabels(components=3, samples=40)
    found, rng = law.theory(), np.random.default_rng(5)

    def coarser(*args):
        kernel = ntk(*args)
        return kernel * (1 + 1e-12 * rng.standard_normal(kernel.shape))

    monkeypatch.setattr(interpolating, "ntk", coarser)
    change = abs(float(law.theory().excess_risk) / float(found.excess_risk) - 1)
    assert 1e-9 < change < found.attrs["accuracy"] < 1e-4
    with pytest.raises(ConvergenceError, match=r"40 samples in 1 components"):
        law.replace(components=1).theory()
