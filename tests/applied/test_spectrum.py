"""The spectrum of one's own network: against dense matrices, on a network for digits, along training, and in bounded memory."""

import sys

import numpy as np
import pytest

import limitlab
from limitlab.applied.spectrum_blocks import spectrum, spectrum_along
from limitlab.models.datasets import digits
from limitlab.models.optimisers import double_precision_jax

jax = double_precision_jax()
jnp = jax.numpy


def network_loss(params, x, y):
    """Cross entropy of a two-layer network, as a user writes it."""
    hidden = jnp.tanh(x @ params["first"]["w"] + params["first"]["b"])
    logits = hidden @ params["second"]
    return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(len(y)), y])


def start(rng, inputs, hidden, classes):
    return {
        "first": {"w": rng.standard_normal((inputs, hidden)) / np.sqrt(inputs), "b": np.zeros(hidden)},
        "second": rng.standard_normal((hidden, classes)) / np.sqrt(hidden),
    }


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((70, 9)), rng.integers(0, 3, 70)
    return start(rng, 9, 8, 3), (x, y)


def dense_blocks(params, data):
    """Hessian and gradients' second moment of the block first.w, formed completely."""

    def of_block(w, x, y):
        return network_loss({**params, "first": {**params["first"], "w": w.reshape(9, 8)}}, x, y)

    w, (x, y) = params["first"]["w"].ravel(), data
    hessian = jax.hessian(of_block)(w, x, y)
    each = jax.vmap(lambda a, b: jax.grad(of_block)(w, a[None], b[None]))(x, y)
    return np.asarray(hessian), np.asarray(each.T @ each / len(x))


def test_agrees_with_dense_matrices(small):
    params, data = small
    found = spectrum(network_loss, params, data, count=6, batch=32)  # 32 does not divide 70
    for matrix, dense in zip(("hessian", "gradient"), dense_blocks(params, data), strict=True):
        values, vectors = np.linalg.eigh(dense)
        one = found.block("first.w", matrix)
        assert one.size == 72
        np.testing.assert_allclose(one.values, values[::-1][:6], rtol=1e-5)
        space = vectors[:, ::-1][:, :6]
        expected = np.linalg.norm(space.T @ params["first"]["w"].ravel()) / np.linalg.norm(params["first"]["w"])
        assert abs(one.alignment() - expected) < 1e-5


def test_density_has_the_moments_of_the_spectrum(small):
    params, data = small
    found = spectrum(network_loss, params, data, count=2, density=True, probes=40, steps=30)
    for matrix, dense in zip(("hessian", "gradient"), dense_blocks(params, data), strict=True):
        measure = found.block("first.w", matrix).measure
        assert abs(measure.shares.sum() - 1) < 1e-10
        # Rademacher probes: the variance of v^T A v / n is 2 (|A|^2 - |diag A|^2) / n^2
        noise = np.sqrt(2 * (np.sum(dense**2) - np.sum(np.diag(dense) ** 2)) / 40) / 72
        assert abs(measure.moment(1) - np.trace(dense) / 72) < 5 * noise
    assert len(found.plot().axes) == 6


def digits_loss(params, x, y):
    """A network whose classes are parameters of their own, as in the theory's blocks."""
    logits = jnp.tanh(x @ params["first"]) @ jnp.stack(params["rows"]).T
    return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(len(y)), y])


def test_a_network_for_digits_aligns_with_its_outliers():
    """Trained by SGD, the weights of every class move into the ten leading directions of their own blocks on test images."""
    data = digits()
    x, y = np.asarray(data.X), np.asarray(data.y, dtype=int)
    x, rng = (x - x.mean(axis=0)) / 16, np.random.default_rng(1)
    params = {"first": rng.standard_normal((64, 40)) / 8, "rows": list(rng.standard_normal((10, 40)) / np.sqrt(40))}
    grad, kept = jax.jit(jax.grad(digits_loss)), [params]
    for _ in range(300):
        rows = rng.integers(0, 1000, 32)
        params = jax.tree.map(lambda p, g: p - 0.5 * (g + 0.003 * p), params, grad(params, x[rows], y[rows]))
    kept.append(params)
    test = x[1000:1500], y[1000:1500]
    found = spectrum_along(digits_loss, kept, test, labels=[0, 300], blocks=["rows.0", "rows.7"], count=10, tolerance=1e-4)
    assert found.sizes == {"matrix": 2, "block": 2, "checkpoint": 2}
    start_, end = found.alignment.sel(checkpoint=0).values, found.alignment.sel(checkpoint=300).values
    assert np.all(start_ < 0.75)  # chance: sqrt(10 / 40) = 0.5
    assert np.all(end > 0.95)
    assert np.all(found.largest_eigenvalue.values > 0)


def test_exported_and_printed(small):
    params, data = small
    assert limitlab.applied.spectrum is spectrum
    found = spectrum(network_loss, params, data, count=2, matrices=["hessian"])
    assert found.names == ["first.b", "first.w", "second"]
    assert "second" in str(found)
    assert found.block("second").outliers() in (1, 2)


def test_refusals(small):
    params, (x, y) = small
    with pytest.raises(ValueError, match="same length"):
        spectrum(network_loss, params, (x, y[:-1]))
    with pytest.raises(ValueError, match="count = 0"):
        spectrum(network_loss, params, (x, y), count=0)
    with pytest.raises(ValueError, match="batch = 0"):
        spectrum(network_loss, params, (x, y), batch=0)
    with pytest.raises(ValueError, match="matrices"):
        spectrum(network_loss, params, (x, y), matrices=["fisher"])
    with pytest.raises(ValueError, match="did you mean 'second'"):
        spectrum(network_loss, params, (x, y), count=1, matrices=["hessian"]).block("secnd")
    with pytest.raises(ValueError, match="did you mean 'second'"):
        spectrum(network_loss, params, (x, y), blocks=["secnd"])
    with pytest.raises(ValueError, match="checkpoints"):
        spectrum_along(network_loss, [], (x, y))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs the module resource")
def test_a_million_parameters_in_bounded_memory():
    """A block of 10^6 parameters: the matrix would take 8 terabytes."""
    import resource

    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((64, 1000)), rng.integers(0, 3, 64)
    params = start(rng, 1000, 1000, 3)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = spectrum(network_loss, params, (x, y), count=3, batch=16, tolerance=1e-3)
    assert found.block("first.w").size == 10**6
    assert found.block("first.w").values[0] > 0
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 / (1024 if sys.platform == "darwin" else 1)
    assert grown < 1500  # megabytes


def test_a_pytorch_module_gives_the_same_report(small):
    """The same network written with PyTorch: same eigenvalues and alignments, and the module stays as it was."""
    torch = pytest.importorskip("torch")
    params, (x, y) = small

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(9, 8), torch.nn.Linear(8, 3, bias=False)
            self.quiet = torch.nn.Dropout(0.5)

        def forward(self, inputs):
            return self.second(self.quiet(torch.tanh(self.first(inputs))))

    module = Network().double()
    with torch.no_grad():
        module.first.weight.copy_(torch.as_tensor(params["first"]["w"].T))
        module.first.bias.copy_(torch.as_tensor(params["first"]["b"]))
        module.second.weight.copy_(torch.as_tensor(params["second"].T))

    def loss(net, inputs, targets):
        return torch.nn.functional.cross_entropy(net(inputs), targets)

    expected = spectrum(network_loss, params, (x, y), count=4, batch=32)
    tables = torch.as_tensor(x, dtype=torch.float32).double(), torch.as_tensor(y)
    expected_of_singles = spectrum(network_loss, params, (x.astype(np.float32), y), count=4, batch=32)
    for data, right in (((x, y), expected), (tables, expected_of_singles)):
        found = spectrum(loss, module, data, count=4, batch=32, density=True)
        assert found.names == ["first.weight", "first.bias", "second.weight"]
        for ours, theirs in zip(found.names, ("first.w", "first.b", "second"), strict=True):
            for matrix in ("hessian", "gradient"):
                one, other = found.block(ours, matrix), right.block(theirs, matrix)
                np.testing.assert_allclose(one.values, other.values, rtol=1e-7, atol=1e-12)
                assert abs(one.alignment() - other.alignment()) < 1e-6
    assert module.training
    assert all(value.grad is None for value in module.parameters())
    along = spectrum_along(loss, [module, module], (x, y), count=1, matrices=["hessian"], blocks=["first.bias"])
    assert along.alignment.shape == (1, 1, 2)
    with pytest.raises(ValueError, match=r"did you mean 'first\.weight'"):
        spectrum(loss, module, (x, y), blocks=["first.weigt"])
