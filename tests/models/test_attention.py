"""Tests of attention drifts and flows against references, symmetries and energies, and of blocks, precision and bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limitlab.models.attention import Attention, FeedForward, Head, flow, token_energy
from limitlab.models.attention.clusters import energy_rate
from limitlab.models.attention.engines import random_tokens
from limitlab.numerics.sphere_flow import flow_on_spheres, tangent
from references import reference

PARTICLES = [(entry["inputs"], entry["outputs"]) for entry in reference("attention", "sa_particles")]


def tokens(seed, n, d):
    return random_tokens(np.random.default_rng(seed), 1, n, d)[0]


def waves(c, d):
    i, k = np.arange(d)[:, None], np.arange(d)[None, :]
    return np.sin(c + 1.3 * i + 0.7 * k * k) / np.sqrt(d) + 0.5 * (i == k)


@pytest.mark.parametrize(("inputs", "outputs"), PARTICLES)
def test_reference_particles(inputs, outputs):
    n, d, c = inputs["n"], inputs["d"], inputs["c0"]
    i, k = np.arange(n)[:, None], np.arange(d)[None, :]
    x = np.cos(1 + np.sqrt(2) * i * (k + 1) + 0.3 * k)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    heads = [(waves(c + 0.1 + m, d), waves(c + 0.5 + m, d), waves(c + 0.9 + m, d)) for m in range(inputs["heads"])]
    layer = (waves(c + 3, d), waves(c + 2, d), 0.1, np.tanh) if inputs["feed_forward"] else None
    end = flow(x, inputs["beta"], inputs["T"], normalised=inputs["kind"] == "SA", heads=heads or None, feed_forward=layer)
    pairs = (end @ end.T)[~np.eye(n, dtype=bool)]
    assert abs(pairs.mean() - outputs["mean_offdiag"]) < 1e-9
    assert abs(pairs.min() - outputs["min_offdiag"]) < 1e-9
    assert abs(token_energy(x @ x.T, inputs["beta"]) - outputs["E_start"]) < 1e-9
    assert abs(token_energy(end @ end.T, inputs["beta"]) - outputs["E_end"]) < 1e-9
    np.testing.assert_allclose(end[0], outputs["x0_end"], atol=1e-9)


@settings(max_examples=8)
@given(st.integers(0, 10**6), st.just(0.0) | st.floats(0.1, 4.0), st.booleans())
def test_energy_identity(seed, beta, normalised):
    """The derivative of the energy, from differences along the flow, is the weighted sum of squared speeds.

    Small positive beta are not tested, because rounding errors of the constant 1 / (2 beta) of the energy would exceed the difference.
    """
    x = tokens(seed, 7, 4)
    field = Attention(beta, normalised=normalised)
    expected = energy_rate(x, tangent(x, field.drift(0.0, x)), beta, normalised)
    times = 1e-2 * np.exp(-beta) * np.arange(1, 4)
    ahead = flow(x, beta, times, normalised=normalised, tolerance=1e-14)
    behind = flow_on_spheres(lambda t, y: -field.drift(t, y), x, times, method="adaptive", tolerance=1e-14)
    rises = [token_energy(a @ a.T, beta) - token_energy(b @ b.T, beta) for a, b in zip(ahead, behind, strict=True)]
    assert np.dot([45.0, -9.0, 1.0], rises) / (60 * times[0]) == pytest.approx(expected, rel=1e-9, abs=1e-10)
    assert expected >= 0


def test_drift_at_beta_zero_is_the_mean():
    x = tokens(0, 9, 3)
    np.testing.assert_allclose(Attention(0.0).drift(0.0, x), np.broadcast_to(x.mean(axis=0), x.shape), atol=1e-15)
    np.testing.assert_allclose(Attention(0.0, normalised=False).drift(0.0, x)[3], x.mean(axis=0), atol=1e-15)


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.floats(0.0, 20.0), st.integers(1, 11), st.booleans(), st.booleans())
def test_blocks_change_nothing(seed, beta, block, normalised, causal):
    rng = np.random.default_rng(seed)
    x, (q, k, v) = tokens(seed, 10, 3), rng.standard_normal((3, 3, 3))
    whole = Attention(beta, [Head(q, k, v)], normalised=normalised, causal=causal, block=10).drift(0.0, x)
    np.testing.assert_allclose(
        Attention(beta, [Head(q, k, v)], normalised=normalised, causal=causal, block=block).drift(0.0, x),
        whole,
        rtol=1e-11,
        atol=1e-12,
    )


def test_many_tokens_use_the_symmetric_blocks():
    x = tokens(1, 1500, 3)
    gram = x @ x.T
    weights = np.exp(30 * (gram - 1))
    expected = weights @ x / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(Attention(30.0).drift(0.0, x), expected, atol=1e-13)
    np.testing.assert_allclose(Attention(30.0, block=100).drift(0.0, x), expected, atol=1e-13)
    single = Attention(30.0).drift(0.0, x.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, atol=2e-5)


def test_systems_and_their_temperatures_are_independent():
    rng = np.random.default_rng(5)
    x, beta = random_tokens(rng, 3, 6, 4), np.array([0.0, 2.0, 9.0])
    together = flow(x, beta, [0.5, 1.5], method="rk4", step=0.05)
    assert together.shape == (2, 3, 6, 4)
    for system in range(3):
        alone = flow(x[system], float(beta[system]), [0.5, 1.5], method="rk4", step=0.05)
        np.testing.assert_allclose(together[:, system], alone, atol=1e-13)


def test_causal_tokens_ignore_later_ones():
    x = tokens(2, 8, 3)
    np.testing.assert_allclose(flow(x, 3.0, 2.0, causal=True)[:5], flow(x[:5], 3.0, 2.0, causal=True), atol=1e-9)
    np.testing.assert_allclose(flow(x, 3.0, 2.0, causal=True)[0], x[0], atol=1e-12)  # the first token attends only to itself


def test_matrices_may_depend_on_time():
    x = tokens(3, 5, 3)
    slowing = flow(x, 1.0, 2.0, V=lambda t: np.exp(-t) * np.eye(3))
    np.testing.assert_allclose(slowing, flow(x, 1.0, 1 - np.exp(-2.0)), atol=1e-9)


def test_rescaling():
    x, eye = tokens(4, 6, 4), 1.7 * np.eye(4)
    np.testing.assert_allclose(flow(x, 1.2, 2.0, Q=eye, K=eye), flow(x, 1.2 * 1.7**2, 2.0), atol=1e-10)
    np.testing.assert_allclose(flow(x, 1.2, 2.0, V=eye), flow(x, 1.2, 3.4), atol=1e-10)


def test_heads_add_up_however_they_are_given():
    rng = np.random.default_rng(6)
    x, (q, k, v) = tokens(6, 5, 3), rng.standard_normal((3, 2, 3, 3))
    named = flow(x, 1.0, 1.0, heads=[Head(q[h], k[h], v[h]) for h in range(2)])
    np.testing.assert_array_equal(named, flow(x, 1.0, 1.0, heads=[(q[h], k[h], v[h]) for h in range(2)]))
    np.testing.assert_array_equal(named, flow(x, 1.0, 1.0, q, k, v, heads=2))
    twice = flow(x, 1.0, 1.0, heads=[Head(), Head()])
    np.testing.assert_allclose(twice, flow(x, 1.0, 2.0), atol=1e-10)


def test_float32_flow():
    x = tokens(7, 10, 4)
    single = flow(x, 2.0, 2.0, method="rk4", dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, flow(x, 2.0, 2.0), atol=1e-5)


def test_fixed_points():
    same = np.tile([[0.6, 0.8]], (3, 1))
    np.testing.assert_allclose(flow(same, 4.0, 5.0), same, atol=1e-14)
    with pytest.warns(UserWarning, match="antipodal"):
        ends = flow(np.array([[1.0, 0.0], [-1.0, 0.0]]), 1.0, 3.0)
    np.testing.assert_allclose(ends, [[1.0, 0.0], [-1.0, 0.0]], atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(beta=-1.0), "beta"),
        (dict(beta=np.nan), "beta"),
        (dict(beta=701.0, normalised=False), "overflows"),
        (dict(x0=[[1.0, 0.0]]), "at least 2"),
        (dict(x0=[[1.0], [1.0]]), "at least 2"),
        (dict(x0=[[1.0, 0.0], [0.0, 0.0]]), "zero"),
        (dict(x0=[[1.0, 0.0], [0.0, 1.1]]), "normalise=True"),
        (dict(x0=[[1.0, 0.0], [0.0, np.nan]]), "finite"),
        (dict(Q=np.eye(3)), "Q of shape"),
        (dict(V=np.ones((2, 3))), "V of shape"),
        (dict(heads=[]), "at least one head"),
        (dict(heads=2, Q=np.eye(2)), "heads = 2"),
        (dict(heads=[Head()], V=np.eye(2)), "once"),
        (dict(feed_forward="relu"), "feed_forward"),
        (dict(dtype=np.float32), "rk4"),
        (dict(dtype=np.int64), "dtype"),
        (dict(beta=[1.0, 2.0]), "one per system"),
        (dict(times=-1.0), "times"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(ValueError, match=message):
        flow(**{**dict(x0=np.eye(2), beta=1.0, times=1.0), **arguments})


def test_feed_forward_of_time():
    layer = FeedForward(lambda t: t * np.eye(2), np.eye(2), np.zeros(2), activation=np.sin)
    x = np.array([[0.5, 0.0]])
    np.testing.assert_allclose(layer(2.0, x), 2 * np.sin(x))
