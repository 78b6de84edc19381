"""Residual networks: reference values, the recursion written out, finite networks, warnings."""

from functools import partial

import numpy as np
import pytest

from limitlab._core.draws import mean_and_error
from limitlab.laws import empirical_ntk, resnet_ntk
from limitlab.laws.kernels._residual_networks import residual_tangent_kernel
from limitlab.laws.kernels.residual import residual_network
from references import label, reference

entries = partial(reference, "static_statements")
PAIR = np.array([[1.0, 0.5, -0.3, 0.8], [0.2, -1.0, 0.4, 0.6]])


@pytest.mark.parametrize("entry", entries("resnet_ntk"), ids=label)
def test_reference_kernels(entry):
    asked, want = entry["inputs"], entry["outputs"]
    options = {name: asked[name] for name in ("blocks", "branch", "activation")}
    X = np.array([asked["x"], asked["y"]])
    for given in (resnet_ntk(X, **options), resnet_ntk(X, X, **options)):
        np.testing.assert_allclose(given.nngp, want["nngp"], rtol=0, atol=entry["tolerance"])
        np.testing.assert_allclose(given.ntk, want["ntk"], rtol=0, atol=entry["tolerance"])
    one = resnet_ntk(X[0], X[1], **options)
    np.testing.assert_allclose([one.nngp, one.ntk], [want["nngp"][0][1], want["ntk"][0][1]], rtol=1e-10)


def test_the_recursion_written_out_for_relu():
    K = Theta = PAIR @ PAIR.T / 4
    for _ in range(4):
        q = np.sqrt(np.outer(np.diag(K), np.diag(K)))
        angle = np.arccos(np.clip(K / q, -1, 1))
        T, slope = q * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi), (np.pi - angle) / (2 * np.pi)
        K, Theta = K + 0.49 * T, Theta * (1 + 0.49 * slope) + 0.49 * T
    found = resnet_ntk(PAIR, blocks=4, branch=0.7)
    np.testing.assert_allclose(found.nngp, K, rtol=1e-7)  # the angle of a rounded cosine costs digits on the diagonal
    np.testing.assert_allclose(found.ntk, Theta + K, rtol=1e-7)


def test_without_branches_it_is_a_linear_network():
    found = resnet_ntk(PAIR, blocks=0)
    np.testing.assert_allclose(found.nngp, PAIR @ PAIR.T / 4, rtol=1e-14)
    np.testing.assert_allclose(found.ntk, 2 * found.nngp, rtol=1e-14)
    np.testing.assert_allclose(resnet_ntk(PAIR, blocks=5, branch=0.0).nngp, found.nngp, rtol=1e-14)


def test_backpropagation_against_differentiation():
    rng = np.random.default_rng(1)
    kernel = residual_tangent_kernel(np.random.default_rng(1), PAIR, 12, 2, 0.6)
    first, hidden = rng.standard_normal((4, 12)), [rng.standard_normal((12, 12)) for _ in range(2)]
    net = residual_network(2, 0.6)
    zero = np.zeros(12)
    parameters = [[first, zero], *([[], [(), [weights, zero]]] for weights in hidden)]
    parameters.append([rng.standard_normal((12, 1)), np.zeros(1)])
    np.testing.assert_allclose(empirical_ntk(net.apply, parameters, PAIR), kernel, rtol=1e-10)


def test_a_plain_network_is_told_apart():
    """Control: without the identity the kernels differ by far more than finite networks scatter."""
    rngs = (np.random.default_rng(k) for k in range(40))
    runs = np.array([residual_tangent_kernel(rng, PAIR, 200, 3, 1.0) for rng in rngs])
    gap, error = np.abs(runs.mean(axis=0) - resnet_ntk(PAIR, blocks=3).ntk), mean_and_error(runs)[1]
    assert (gap < 4.5 * error).all()
    for wrong in (resnet_ntk(PAIR, blocks=2).ntk, resnet_ntk(PAIR, blocks=3, branch=0.7).ntk):
        assert (np.abs(runs.mean(axis=0) - wrong) > 4.5 * error).any()


def test_warnings_and_bad_input():
    with pytest.warns(UserWarning, match="branch = 1 is large"):
        resnet_ntk(PAIR, blocks=60)
    for call, words in (
        (lambda: resnet_ntk(PAIR, blocks=-1), "blocks = -1 is not allowed"),
        (lambda: resnet_ntk(PAIR, branch=np.inf), "branch = inf is not allowed"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
