"""Kernels of infinitely wide networks: reference values, invariants, the fused pass against the layers, finite networks, bad input."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from limitlab._core.draws import mean_and_error
from limitlab.errors import ConvergenceError
from limitlab.laws import (
    AveragePool,
    Convolution,
    Dense,
    Flatten,
    GlobalAverage,
    Network,
    Nonlinear,
    Parallel,
    Residual,
    Serial,
    conv_ntk,
    convolutional,
    dual,
    fully_connected,
    nngp,
    ntk,
)
from limitlab.laws.kernels._wide_networks import DeepNetworks, spectral_norms
from limitlab.laws.kernels.duals import coefficients, dual_matrix
from limitlab.laws.kernels.layers.layer import shifted
from limitlab.models.activations import Activation
from references import label, reference

entries = partial(reference, "kernels")
KERNELS = {"nngp": nngp, "ntk": ntk}


def waves(n, d, s):
    """The deterministic inputs of the reference values."""
    i, a = np.arange(n)[:, None], np.arange(d)
    return np.sin(1 + 1.7 * i + 2.3 * a + 0.5 * i * a + s)


# -- reference values -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("entry", entries("nngp_ntk_fc"), ids=lambda entry: label(entry)[60:])
def test_fully_connected(entry, name):
    asked = entry["inputs"]
    activation = {"quadratic": "square"}.get(asked["activation"], asked["activation"])
    options = dict(
        layers=asked["n_weight_layers"], activation=activation, weight_std=asked["sigma_w"], bias_std=asked["beta"]
    )
    tolerance = float(entry["tolerance"].split()[0])
    X, want = np.array(asked["X"]), np.array(entry["outputs"][name])
    np.testing.assert_allclose(KERNELS[name](X, **options), want, rtol=tolerance)
    np.testing.assert_allclose(KERNELS[name](X, X.copy(), **options), want, rtol=tolerance)
    np.testing.assert_allclose(getattr(fully_connected(**options), name)(X), want, rtol=tolerance)


@pytest.mark.parametrize("entry", entries("dual_activation"), ids=label)
def test_duals(entry):
    asked, want = entry["inputs"], entry["outputs"]
    value, slope = dual(asked["activation"], asked["q1"], asked["q2"], asked["c"])
    np.testing.assert_allclose([value, slope], [want["E_ss"], want["E_dsds"]], atol=1e-12)


@pytest.mark.parametrize("readout", ["flatten", "gap"])
def test_convolutional(readout):
    (entry,) = entries("conv_ntk_1d")
    want = entry["outputs"][readout]
    found = conv_ntk(waves(6, 2, 0.0), waves(6, 2, 2.0), depth=2, filter=3, readout=readout, bias_std=0.1)
    np.testing.assert_allclose(found, [want["nngp"], want["ntk"]], rtol=1e-10)


# -- duals ----------------------------------------------------------------------------------------------------------------

SMOOTH = ("erf", "sin", "cos", "identity", "square")


@pytest.mark.parametrize("name", SMOOTH)
def test_closed_forms_are_their_series(name):
    function = Activation(name)
    free = Activation(lambda x: function(x), derivative=lambda x: function.derivative(x), kinks=())
    triples = [(1.0, 2.0, 0.7), (0.5, 1.5, -0.4), (0.3, 0.3, 0.3), (0.0, 1.0, 0.0)]
    for triple in triples:
        np.testing.assert_allclose(dual(name, *triple), dual(free, *triple), atol=1e-12)


@pytest.mark.parametrize("name", ["relu", "abs"])
def test_closed_forms_are_their_quadrature(name):
    function = Activation(name)
    free = Activation(lambda x: function(x), derivative=lambda x: function.derivative(x), kinks=(0.0,))
    for triple in [(1.0, 2.0, 0.7), (0.5, 1.5, -0.4), (1.0, 1.0, -1.0), (0.0, 2.0, 0.0)]:
        np.testing.assert_allclose(dual(name, *triple), dual(free, *triple), atol=1e-8)


def test_shifted_kink_is_split():
    """A relu with its kink elsewhere, against a Monte Carlo average."""
    s = Activation(lambda x: np.maximum(x - 0.5, 0), derivative=lambda x: 1.0 * (x > 0.5), kinks=(0.5,))
    rng = np.random.default_rng(0)
    u = rng.standard_normal(4_000_000)
    v = 0.7 * u + np.sqrt(2 - 0.49) * rng.standard_normal(u.size)
    value, slope = dual(s, 1.0, 2.0, 0.7)
    for found, draws in ((value, s(u) * s(v)), (slope, s.derivative(u) * s.derivative(v))):
        assert abs(found - draws.mean()) < 5 * draws.std() / np.sqrt(draws.size)


def test_a_function_without_derivative_by_parts():
    bare = dual(lambda x: np.tanh(x + 0.5), 1.0, 2.0, 0.7)
    full = dual(Activation(lambda x: np.tanh(x + 0.5), derivative=lambda x: np.cosh(x + 0.5) ** -2), 1.0, 2.0, 0.7)
    np.testing.assert_allclose(bare, full, atol=1e-11)


def test_the_series_grows_until_it_is_complete():
    lengths, shares = [], []
    for variance in (0.1, 0.5, 2.0):
        values, _, left_out = coefficients(Activation("tanh"), np.array([variance]))
        lengths.append(len(values))
        shares.append(left_out)
    assert lengths[0] < lengths[1] < lengths[2]
    assert max(shares[:2]) <= 1e-13
    assert shares[2] <= 1e-10
    assert coefficients(Activation("tanh"), np.array([100.0]))[2] > 1e-6


def test_steep_activations_by_quadrature_or_refused():
    """tanh of large inputs is nearly a sign, whose dual is (2/pi) arcsin(rho)."""
    value, _ = dual("tanh", 1e4, 1e4, 0.5e4)
    assert abs(value - 2 / np.pi * np.arcsin(0.5)) < 1e-2
    with pytest.raises(ConvergenceError, match="too steep for inputs of variance"):
        dual_matrix(Activation("tanh"), np.full(200, 100.0), np.full(200, 100.0), np.zeros((200, 200)))


@given(st.floats(0.01, 5), st.floats(0.01, 5), st.floats(-1, 1))
@settings(max_examples=50, deadline=None)
def test_relu_duals_obey_cauchy_schwarz_and_homogeneity(q1, q2, rho):
    value, slope = dual("relu", q1, q2, rho * np.sqrt(q1 * q2))
    assert -1e-15 <= value <= np.sqrt(q1 * q2) / 2 * (1 + 1e-12)
    assert 0 <= slope <= 0.5
    np.testing.assert_allclose(dual("relu", 4 * q1, q2, 2 * rho * np.sqrt(q1 * q2)).value, 2 * value, atol=1e-14)


# -- invariants -----------------------------------------------------------------------------------------------------------

tables = hnp.arrays(float, (5, 3), elements=st.floats(-3, 3).map(lambda x: round(x, 3) + 0.0005))


@given(tables, st.sampled_from(["relu", "erf", "sin"]), st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_kernels_are_positive_and_the_tangent_kernel_is_larger(X, activation, layers):
    sigma, theta = (kernel(X, layers=layers, activation=activation, bias_std=0.3) for kernel in (nngp, ntk))
    for matrix in (sigma, theta, theta - sigma):
        assert np.linalg.eigvalsh(matrix)[0] >= -1e-10 * np.trace(theta)
    order = [3, 1, 4, 0, 2]
    np.testing.assert_allclose(
        ntk(X[order], layers=layers, activation=activation, bias_std=0.3), theta[np.ix_(order, order)], rtol=1e-9
    )


def test_special_cases():
    X = waves(4, 3, 0.0)
    linear = X @ X.T / 3
    np.testing.assert_allclose(ntk(X, layers=1), linear, rtol=1e-13)
    np.testing.assert_allclose(ntk(X, layers=5, activation="identity"), 5 * linear, rtol=1e-12)
    q = np.diag(linear)
    np.testing.assert_allclose(nngp(X, layers=2, activation="square"), np.outer(q, q) + 2 * linear**2, rtol=1e-12)
    factors = np.array([0.5, 2.0, 3.0, 1.0])
    np.testing.assert_allclose(ntk(factors[:, None] * X), np.outer(factors, factors) * ntk(X), rtol=1e-12)


def test_diagonal_and_opposite_rows_keep_their_digits():
    """x against x, 2x and -x: the angles are 0 and pi exactly, which rounding of the correlation would spoil at 1e-9."""
    x = np.random.default_rng(1).standard_normal(784)
    K = ntk(np.stack([x, 2 * x, -x]), layers=4)
    q = x @ x / 784
    exact = 4 * q / 8  # each layer halves the variance, each of 4 matrices contributes the same
    np.testing.assert_allclose(K[:2, :2], exact * np.array([[1, 2], [2, 4]]), rtol=1e-14)
    sigma, theta = q, q  # the recursion at correlation -1, by hand
    for layer in range(3):
        rho = -1.0 if layer == 0 else sigma / (q / 2**layer)
        angle = np.pi if layer == 0 else np.arccos(rho)
        theta = theta * (-1 if layer == 0 else 1) * (np.pi - angle) / (2 * np.pi)
        sigma = q / 2**layer * (np.sin(angle) * (layer > 0) + (np.pi - angle) * rho) / (2 * np.pi)
        theta += sigma
    np.testing.assert_allclose(K[0, 2], theta, rtol=1e-9)


def test_zero_row_has_a_zero_kernel():
    X = np.vstack([np.zeros(3), waves(2, 3, 0.0)])
    for activation in ("relu", "erf", "abs"):
        assert not ntk(X, activation=activation)[0].any()


def test_blocks_threads_and_single_precision_give_the_same_numbers():
    X, Y = np.random.default_rng(0).standard_normal((300, 20)), np.random.default_rng(1).standard_normal((150, 20))
    options = dict(bias_std=0.2, weight_std=1.3, layers=4)
    K = ntk(X, **options)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(ntk(X, threads=2, **options), K, rtol=1e-13)
    np.testing.assert_allclose(ntk(X, X.copy(), **options), K, rtol=1e-12)
    single = ntk(X, dtype=np.float32, **options)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, K, rtol=2e-5)
    np.testing.assert_allclose(ntk(X, Y, **options), fully_connected(4, "relu", 1.3, 0.2).ntk(X, Y), rtol=1e-11)
    np.testing.assert_allclose(nngp(X, Y, **options), fully_connected(4, "relu", 1.3, 0.2).nngp(X, Y, batch=70), rtol=1e-11)
    np.testing.assert_allclose(ntk(X[0], Y[0], **options), ntk(X, Y, **options)[0, 0], rtol=1e-13)


# -- layers ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("padding", ["circular", "zero"])
def test_filter_average_is_the_sum_over_offsets(padding):
    table, layer = np.random.default_rng(0).standard_normal((3, 12, 12)), Convolution(3, padding=padding)
    full = table.reshape(3, 3, 4, 3, 4)
    slow = sum(shifted(full, (1, 2, 3, 4), offset + offset, padding) for offset in layer.offsets(2)) / 9
    np.testing.assert_allclose(layer._average(table, (3, 4)), slow.reshape(table.shape), atol=1e-14)


BRANCH = Serial(Dense(), Nonlinear("sin"), Dense(1.3))
NETWORKS = {
    "dense": ((3,), Dense(1.2, 0.3), Nonlinear("relu"), Dense(0.8, 0.1), Nonlinear("erf"), Dense(1.1, 0.2, 8)),
    "residual": ((3,), Dense(), Residual(Nonlinear("relu"), Dense(1.4, 0.2)), Nonlinear("tanh"), Dense(1, 0.1, 8)),
    "parallel": ((3,), Dense(), Nonlinear("relu"), Parallel(Dense(0.6), BRANCH), Dense(outputs=8)),
    "convolution": (
        (5, 2), Convolution(3, 1.2, 0.3), Nonlinear("relu"), Convolution(3), Nonlinear("erf"), GlobalAverage(), Dense(1, 0.1, 8),
    ),
    "image": (
        (4, 4, 1), Convolution(3, padding="zero"), Nonlinear("relu"), AveragePool(2), Convolution(3), Nonlinear("relu"), Flatten(),
        Dense(outputs=8),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
def test_outputs_of_wide_networks_have_the_covariance(name):
    """Every layer at finite width against its map of kernels, over random networks; the bias is of order 1/width."""
    shape, *layers = NETWORKS[name]
    network = Network(*layers)
    X = waves(2, int(np.prod(shape)), 0.3).reshape(2, *shape)
    limit, draws = network.nngp(X), []
    for seed in range(300):
        parameters = network.start(np.random.default_rng(seed), shape, width=60)
        f = network.apply(parameters, X)
        draws.append(f @ f.T / f.shape[1])
    mean, error = mean_and_error(draws)
    assert (np.abs(mean - limit) < 5 * error + 0.02 * np.abs(limit)).all()


def test_batches_do_not_change_the_kernel():
    images = np.random.default_rng(0).standard_normal((7, 4, 4, 2))
    network = convolutional(2, 3, "gap", 0.2)
    for Y in (None, images[:3] + 1):
        whole, parts = network.kernels(images, Y), network.kernels(images, Y, batch=2)
        np.testing.assert_allclose(parts.nngp, whole.nngp, rtol=1e-13)
        np.testing.assert_allclose(parts.ntk, whole.ntk, rtol=1e-13)


def test_one_pixel_is_a_dense_network():
    x, y = waves(1, 3, 0.0), waves(1, 3, 1.0)
    for readout in ("flatten", "gap"):
        found = conv_ntk(x, y, depth=2, filter=1, readout=readout, bias_std=0.2)
        np.testing.assert_allclose(found, [nngp(x, y, bias_std=0.2)[0, 0], ntk(x, y, bias_std=0.2)[0, 0]], rtol=1e-12)


# -- bad input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ntk(np.eye(2), layers=0), "layers = 0 is not allowed: must be a whole number of at least 1"),
        (lambda: ntk(np.eye(2), bias_std=-1.0), "bias_std = -1.0 is not allowed"),
        (lambda: ntk(np.eye(2), bias_std=np.nan), "bias_std = nan is not allowed"),
        (lambda: ntk(np.eye(2), activation="rleu"), "did you mean 'relu'"),
        (lambda: ntk(np.eye(2), np.eye(3)), "Y has 3 columns and X has 2"),
        (lambda: ntk([[1.0, np.nan]]), "row 0 has an entry that is not a finite number"),
        (lambda: ntk(np.ones((2, 2, 2))), "must be a table"),
        (lambda: ntk(np.eye(2), threads=0), "threads = 0 is not allowed"),
        (lambda: dual("relu", -1.0, 1.0, 0.0), "q1 = -1 is not allowed"),
        (lambda: dual("relu", 1.0, 1.0, 1.1), "c = 1.1 is not allowed"),
        (lambda: dual(np.sign, 1.0, 1.0, 0.0), "it jumps at 0"),
        (lambda: ntk(np.eye(2), activation=np.sign), "it jumps at 0"),
        (lambda: Convolution(2), "filter = 2 is not allowed: must be an odd number"),
        (lambda: Convolution(3, padding="same"), "padding = 'same' is not allowed"),
        (lambda: conv_ntk(np.eye(2), np.eye(2), readout="max"), "readout = 'max' is not allowed"),
        (lambda: Network(Convolution(3)).ntk(np.ones((1, 4, 1))), "ends with 4 positions"),
        (lambda: Network(Convolution(3)).ntk(np.ones((1, 4))), "needs inputs with positions"),
        (lambda: Network(AveragePool(3)).ntk(np.ones((1, 4, 1))), "window = 3 is not allowed"),
        (lambda: Parallel(Nonlinear("relu"), Nonlinear("erf")), "all branches but one must end in"),
        (lambda: fully_connected().ntk(np.eye(2), batch=0), "batch = 0 is not allowed"),
        (lambda: fully_connected().ntk(np.eye(2), np.eye(3)), "both must have the same"),
    ],
)  # fmt: skip
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_blocks_between_outputs_are_products_of_derivatives():
    X, step = waves(3, 4, 0.0), 1e-6
    net = DeepNetworks.start(np.random.default_rng(2), 1, (4, 6, 5, 3), Activation("erf"), 1.2, 0.4)
    columns = []
    for part in (*net.weights, *net.biases):
        for index in np.ndindex(part.shape):
            value, sides = part[index], []
            for moved in (value + step, value - step):
                part[index] = moved
                sides.append(net.outputs(X)[0])
            part[index] = value
            columns.append((sides[0] - sides[1]) / (2 * step))
    jacobian = np.array(columns)  # parameters x rows x outputs
    for a, b in ((0, 0), (0, 2), (2, 1)):
        expected = jacobian[:, :, a].T @ jacobian[:, :, b]
        assert np.allclose(net.tangent_kernel(X, a, b)[0], expected, rtol=1e-6, atol=1e-7)


def test_spectral_norms_of_matrices_of_low_rank():
    rng = np.random.default_rng(1)
    matrices = rng.standard_normal((4, 40, 5)) @ rng.standard_normal((4, 5, 30)) + 1e-3 * rng.standard_normal((4, 40, 30))
    assert np.allclose(spectral_norms(matrices), np.linalg.norm(matrices, ord=2, axis=(1, 2)), rtol=1e-9)
