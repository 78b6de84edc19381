"""Finite networks: empirical tangent kernels, linearisation, backpropagation by hand, kernels in scikit-learn and Forecast."""

import numpy as np
import pytest

from limitlab import Forecast
from limitlab._core.draws import mean_and_error
from limitlab.applied import NetworkKernel
from limitlab.laws import (
    Convolution,
    Dense,
    GlobalAverage,
    Network,
    Nonlinear,
    empirical_ntk,
    fully_connected,
    linearize,
    nngp,
    ntk,
)
from limitlab.laws.kernels import empirical
from limitlab.laws.kernels._layerwise import LayerProducts, Signals, gram_products
from limitlab.laws.kernels._wide_networks import DeepNetworks, waves
from limitlab.models.activations import Activation
from limitlab.models.datasets import digits
from limitlab.models.optimisers import double_precision_jax

X = waves(4, 3)


def network(outputs=2, width=15):
    net = Network(Dense(1.1, 0.3), Nonlinear("tanh"), Dense(1.2, 0.1, outputs))
    return net, net.start(np.random.default_rng(0), (3,), width)


def test_all_ways_lead_to_the_same_kernel():
    net, parameters = network()
    Y = waves(3, 3, 1.0)
    ways = [
        empirical_ntk(net.apply, parameters, X, Y, full=True, method="jacobian"),
        empirical_ntk(net.apply, parameters, X, Y, full=True, method="columns"),
        empirical_ntk(net.apply, parameters, X, Y, full=True, batch=2),
        empirical_ntk(net.apply, parameters, X, Y, full=True, method="layers"),
        empirical_ntk(net.apply, parameters, X, Y, full=True, method="layers", batch=2),
    ]
    assert ways[0].shape == (4, 2, 3, 2)
    for other in ways[1:]:
        np.testing.assert_allclose(other, ways[0], atol=1e-12)
    np.testing.assert_allclose(empirical_ntk(net.apply, parameters, X, Y), np.einsum("iaja->ij", ways[0]) / 2, atol=1e-12)
    with pytest.raises(ValueError, match="method = 'fast' is not allowed"):
        empirical_ntk(net.apply, parameters, X, method="fast")


def user_functions():
    """Functions as users write them, their parameters, and the arrays that act once as a factor of a product."""
    jax = double_precision_jax()
    jnp, rng = jax.numpy, np.random.default_rng(3)

    def dense(weights, x):
        return jax.nn.gelu(x @ weights["w"].T / np.sqrt(3) + weights["b"])

    def nested(p, x):  # jits within a jit, one of them used twice with arrays of its own
        once = jax.jit(dense)
        return jax.jit(lambda q, z: once(q[1], once(q[0], z)) @ (0.5 * q[2]))(p, x)

    layer = {"w": rng.standard_normal((3, 3)), "b": rng.standard_normal(3)}
    other = {"w": rng.standard_normal((3, 3)), "b": rng.standard_normal(3)}
    yield nested, [layer, other, rng.standard_normal((3, 2))], {1, 3, 4}

    def tied(p, x):  # an array that acts twice, and one on the left
        return jnp.tanh(x @ p["a"]) @ p["a"].T + (p["c"] @ jnp.sin(x).T).T

    yield tied, {"a": rng.standard_normal((3, 4)), "c": -rng.standard_normal((3, 3))}, {1}

    def places(p, x):  # the same weights at several places of the input, as in a convolution, and attention between them
        tokens = jnp.stack([x, 2 * x, jnp.cos(x)], axis=1)
        scores = jax.nn.softmax((tokens @ p[0]) @ (tokens @ p[1]).swapaxes(1, 2))
        return jnp.tanh(scores @ (tokens @ p[2])).mean(axis=1) @ p[3]

    yield places, [rng.standard_normal(shape) for shape in ((3, 4), (3, 4), (3, 5), (5, 1))], {0, 1, 2, 3}

    def alone(p, x):  # arrays that are products' only factors, added, or returned: nothing to gain
        return jnp.ones((len(x), 1)) * jnp.sum(p[0] @ p[1]) + x[:, :1] ** 2 * p[2]

    yield alone, [rng.standard_normal((2, 2)), rng.standard_normal((2, 2)), np.ones(1)], set()


@pytest.mark.parametrize("case", range(4))
def test_layers_of_any_function(case):
    """Products of Gram matrices wherever they are possible, Jacobians elsewhere: the same kernel to rounding."""
    f, parameters, expected = list(user_functions())[case]
    jax = double_precision_jax()
    leaves, tree = jax.tree_util.tree_flatten(parameters)
    found = LayerProducts(jax, lambda parts, x: f(jax.tree_util.tree_unflatten(tree, parts), x[None])[0], leaves, X[0])
    assert set(found.uses) == expected
    Y = waves(3, 3, 1.0)
    for first, second in ((X, None), (X, Y)):
        exact = empirical_ntk(f, parameters, first, second, full=True, method="jacobian")
        layers = empirical_ntk(f, parameters, first, second, full=True, method="layers")
        assert np.abs(layers - exact).max() < 1e-10 * np.abs(exact).max()


def test_many_places_take_the_derivatives_themselves():
    """Both orders of the sums over places give the same numbers."""
    rng = np.random.default_rng(0)
    for places, channels, columns in ((6, 2, 2), (2, 9, 9)):
        one, other = (
            Signals(rng.standard_normal((n, places, channels)), rng.standard_normal((n, 2, places, columns))) for n in (3, 4)
        )
        whole = [np.einsum("isk,icsf->ickf", part.inside, part.back) for part in (one, other)]
        np.testing.assert_allclose(gram_products(one, other), np.einsum("ickf,jdkf->icjd", *whole), atol=1e-12)


def test_wide_networks_need_no_jacobian(monkeypatch):
    """By itself the method changes to layers where a Jacobian would be too large, and to columns where layers do not help."""
    monkeypatch.setattr(empirical, "LARGEST_JACOBIAN", 40)
    for name, chosen in (("_columns", False), ("gram_products", True)):
        calls = []
        kept = getattr(empirical, name)
        monkeypatch.setattr(empirical, name, lambda *a, kept=kept, calls=calls: calls.append(1) or kept(*a))
        (nested, parameters, _), (tied, others, _), *_ = user_functions()
        f, p = (nested, parameters) if chosen else (tied, others)
        exact = empirical_ntk(f, p, X, method="jacobian")
        np.testing.assert_allclose(empirical_ntk(f, p, X), exact, rtol=1e-10)
        assert calls


def test_layerwise_products_are_the_kernel_of_all_derivatives():
    """Backpropagation by hand against automatic differentiation."""
    nets = DeepNetworks.start(np.random.default_rng(1), 2, (3, 10, 10, 1), Activation("tanh"), 1.3, 0.4)
    net = fully_connected(3, "tanh", 1.3, 0.4)
    for k in range(2):
        parts = [[w[k], b[k, 0]] for w, b in zip(nets.weights, nets.biases, strict=True)]
        parameters = [parts[0], (), parts[1], (), parts[2]]
        np.testing.assert_allclose(nets.outputs(X)[k], net.apply(parameters, X), atol=1e-12)
        np.testing.assert_allclose(nets.tangent_kernel(X)[k], empirical_ntk(net.apply, parameters, X), atol=1e-11)


def test_a_step_of_descent_follows_the_kernel():
    nets = DeepNetworks.start(np.random.default_rng(1), 2, (3, 10, 10, 1), Activation("tanh"), 1.3, 0.4)
    y, before, kernel = np.cos(np.arange(4.0)), nets.outputs(X)[..., 0], nets.tangent_kernel(X)
    nets.descend(X, y, 1e-7)
    np.testing.assert_allclose(
        (nets.outputs(X)[..., 0] - before) / 1e-7, -((kernel @ (before - y)[..., None])[..., 0]) / 4, atol=1e-4
    )
    mirrored = nets.with_mirror_images()
    np.testing.assert_allclose(mirrored.outputs(X)[2:], -nets.outputs(X), atol=1e-14)
    np.testing.assert_allclose(mirrored.tangent_kernel(X)[2:], nets.tangent_kernel(X), atol=1e-12)


def test_linearisation_touches_at_the_start_and_has_the_same_kernel():
    net, parameters = network(outputs=1)
    straight = linearize(net.apply, parameters)
    np.testing.assert_allclose(straight(parameters, X), net.apply(parameters, X), atol=1e-13)
    moved = [[part + 0.1 for part in layer] if len(layer) else () for layer in parameters]
    far = [[part + 0.2 for part in layer] if len(layer) else () for layer in parameters]
    start = np.asarray(net.apply(parameters, X))
    np.testing.assert_allclose(straight(far, X) - start, 2 * (straight(moved, X) - start), atol=1e-10)
    np.testing.assert_allclose(empirical_ntk(straight, moved, X), empirical_ntk(net.apply, parameters, X), atol=1e-10)


@pytest.mark.parametrize("kind", ["residual", "convolutional"])
def test_wide_networks_have_the_tangent_kernel_of_the_limit(kind):
    from limitlab.laws import Residual

    if kind == "residual":
        net, shape = Network(Dense(), Residual(Nonlinear("erf"), Dense(1.4, 0.2)), Nonlinear("erf"), Dense(1, 0.1, 1)), (3,)
    else:
        net, shape = Network(Convolution(3, 1.2, 0.3), Nonlinear("erf"), GlobalAverage(), Dense(1, 0.1, 1)), (4, 2)
    inputs = waves(2, int(np.prod(shape)), 0.3).reshape(2, *shape)
    draws = [
        empirical_ntk(net.apply, net.start(np.random.default_rng(seed), shape, 200), inputs, method="columns")
        for seed in range(8)
    ]
    mean, error = mean_and_error(draws)
    limit = net.ntk(inputs)
    assert (np.abs(mean - limit) < 5 * error + 0.02 * np.abs(limit)).all()
    assert (error < 0.1 * np.abs(limit).max()).all()


def test_pytorch_modules():
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Linear(3, 7), torch.nn.Tanh(), torch.nn.Linear(7, 2)).double()
    K = empirical_ntk(module, None, X, full=True)
    rows = []
    for x in X:
        for k in range(2):
            module.zero_grad()
            module(torch.as_tensor(x)[None])[0, k].backward()
            rows.append(np.concatenate([p.grad.numpy().ravel() for p in module.parameters()]))
    J = np.array(rows)
    np.testing.assert_allclose(K.reshape(8, 8), J @ J.T, atol=1e-10)

    weights = [part.detach().numpy() for part in module.parameters()]

    def same(p, x):
        return double_precision_jax().numpy.tanh(x @ p[0].T + p[1]) @ p[2].T + p[3]

    Y = waves(3, 3, 1.0)
    for batch in (None, 2):
        found = empirical_ntk(module, None, X, Y, full=True, batch=batch)
        np.testing.assert_allclose(found, empirical_ntk(same, weights, X, Y, full=True), atol=1e-10)
    np.testing.assert_allclose(empirical_ntk(module, None, X, batch=3), np.einsum("iaja->ij", K) / 2, atol=1e-10)
    single = empirical_ntk(module.float(), None, X)
    np.testing.assert_allclose(single, np.einsum("iaja->ij", K) / 2, rtol=1e-4)


def test_pytorch_convolutions():
    """A module with convolutions, pooling and a buffer, against derivatives one by one."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layers = torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1)
    module = torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(4, 1)).double().eval()
    images = waves(5, 36).reshape(5, 1, 6, 6)
    rows = []
    for image in images:
        module.zero_grad()
        module(torch.as_tensor(image)[None])[0, 0].backward()
        rows.append(np.concatenate([p.grad.numpy().ravel() for p in module.parameters()]))
    np.testing.assert_allclose(empirical_ntk(module, None, images), np.array(rows) @ np.array(rows).T, atol=1e-10)


# -- scikit-learn and Forecast ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def images():
    inputs, labels = digits()
    inputs = inputs / 16.0
    order = np.random.default_rng(0).permutation(len(inputs))
    return inputs[order[:500]], labels[order[:500]], inputs[order[500:900]], labels[order[500:900]]


def test_kernel_ridge_on_digits(images):
    from sklearn.kernel_ridge import KernelRidge

    X, y, tests, right = images
    model = KernelRidge(alpha=1e-3, kernel=NetworkKernel(layers=3)).fit(X, np.eye(10)[y])
    accuracy = np.mean(model.predict(tests).argmax(axis=1) == right)
    assert accuracy > 0.95
    plain = KernelRidge(alpha=1e-3, kernel="precomputed").fit(ntk(X), np.eye(10)[y]).predict(ntk(tests, X))
    np.testing.assert_allclose(model.predict(tests), plain, atol=1e-7)


def test_kernel_ridge_takes_the_bare_function():
    """scikit-learn calls a bare function on one pair of rows at a time."""
    from sklearn.kernel_ridge import KernelRidge

    X, y = waves(6, 4), np.arange(6.0)
    model = KernelRidge(alpha=0.1, kernel=ntk, kernel_params={"layers": 2}).fit(X, y)
    np.testing.assert_allclose(
        model.predict(X), KernelRidge(alpha=0.1, kernel=NetworkKernel(layers=2)).fit(X, y).predict(X), atol=1e-9
    )


def test_support_vectors_and_gaussian_processes(images):
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.svm import SVC

    X, y, tests, right = images
    assert np.mean(SVC(kernel=ntk, C=1000.0).fit(X[:300], y[:300]).predict(tests) == right) > 0.9
    process = GaussianProcessRegressor(NetworkKernel("nngp", bias_std=0.1), alpha=1e-6).fit(
        X[:100], 1.0 - 2.0 * (y[:100] % 2)
    )
    mean, spread = process.predict(tests, return_std=True)
    sigma = nngp(X[:100], bias_std=0.1) + 1e-6 * np.eye(100)
    cross = nngp(tests, X[:100], bias_std=0.1)
    np.testing.assert_allclose(mean, cross @ np.linalg.solve(sigma, 1.0 - 2.0 * (y[:100] % 2)), atol=1e-6)
    assert (spread > 0).all()


def test_forecast_takes_the_kernel(images):
    X, y, _, _ = images
    forecast = Forecast(kernel=ntk).fit(X, 1.0 - 2.0 * (y % 2))
    found = forecast.predict_error(n=[100, 200], ridge=[1e-3]).test_error.squeeze()
    assert 0 < float(found[1]) < float(found[0]) < 1.5
