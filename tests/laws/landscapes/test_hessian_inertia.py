"""Signs of the Hessian's eigenvalues: reference counts, the second derivative itself, growth with the residual, refusals."""

import numpy as np
import pytest

from limitlab.laws import hessian_inertia
from limitlab.laws.landscapes._levenberg import PlainTanh
from limitlab.laws.landscapes.hessian import hessian_parts
from limitlab.models.optimisers import double_precision_jax
from references import label, reference


@pytest.mark.parametrize("entry", reference("further_dynamics", "network_hessian"), ids=label)
def test_reference(entry):
    given_, want = entry["inputs"], entry["outputs"]
    shape = (given_["d"], given_["width"], given_["n"])
    assert PlainTanh(*shape[:2]).parameters == given_["parameters"]
    found = hessian_inertia(*shape)
    assert (found.negative, found.zero, found.positive) == (0, want["zero_eigenvalues_at_interpolation"], want["positive"])
    low, high = want["negative_share_at_random_start"]
    for seed in range(3):
        assert low <= hessian_inertia(*shape, interpolate=False, seed=seed).negative / given_["parameters"] <= high


def test_curvature_is_the_second_derivative():
    jax = double_precision_jax()
    net, rng = PlainTanh(3, 4), np.random.default_rng(0)
    theta, x, r = net.start(rng), rng.standard_normal((6, 3)), rng.standard_normal(6)

    def weighted(flat):
        rows = flat.reshape(4, 4)
        return jax.numpy.tanh(x @ rows[:, 1:].T) @ rows[:, 0] / 2 @ r / 6

    np.testing.assert_allclose(net.curvature(theta, x, r), jax.hessian(weighted)(theta), atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_negative_directions_near_interpolation_are_those_on_the_kernel(seed):
    jacobian, bend = hessian_parts(6, 10, 30, True, seed, residual=1e-3)
    kernel = np.linalg.svd(jacobian)[2][30:]
    found = hessian_inertia(6, 10, 30, seed=seed, residual=1e-3)
    assert found.negative == int(np.sum(np.linalg.eigvalsh(kernel @ bend @ kernel.T) < 0))
    assert found.negative <= hessian_inertia(6, 10, 30, seed=seed, residual=1.0).negative


@pytest.mark.parametrize(
    ("given_", "match"),
    [
        (dict(dimension=0, width=3, samples=2), "dimension = 0"),
        (dict(dimension=2, width=2, samples=6), "samples = 6"),
        (dict(dimension=2, width=2, samples=2, interpolate=False, residual=0.1), "residual"),
    ],
)
def test_refusals(given_, match):
    with pytest.raises(ValueError, match=match):
        hessian_inertia(**given_)
