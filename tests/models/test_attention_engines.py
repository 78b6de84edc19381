"""Tests of compiled flows, clusters, ensembles and overlap profiles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limitlab.models.attention import (
    flow,
    gram_flow,
    gram_path,
    overlap_profile,
    phase_diagram,
    random_transformer,
    token_paths,
)
from limitlab.models.attention.clusters import circle_clusters, cluster_count, mean_overlap, pair_fraction, token_energy
from limitlab.models.attention.engines import correlated_tokens, random_grams, random_tokens
from limitlab.models.attention.ensembles import draw_matrices, ensemble_paths
from references import reference

PHASES = [(e["inputs"], e["outputs"], e["tolerance"]) for e in reference("attention", "sa_phase_pair_probability")]


def overlaps(x):
    return x @ np.swapaxes(x, -1, -2)


@pytest.mark.parametrize(("d", "beta"), [(8, 0.0), (8, 3.0), (40, 1.0), (40, 7.0)])
@pytest.mark.parametrize("normalised", [True, False])
def test_gram_engine_equals_the_vectors(d, beta, normalised):
    x = random_tokens(np.random.default_rng(d), 1, 8, d)[0]
    times = np.array([0.0, 0.5, 2.0, 6.0]) * (1 if normalised else np.exp(-beta))
    paths = flow(x, beta, times, normalised=normalised)
    np.testing.assert_allclose(gram_flow(overlaps(x), beta, times, normalised=normalised), overlaps(paths), atol=1e-7)
    np.testing.assert_allclose(token_paths(x, beta, times, normalised=normalised), paths, atol=1e-7)


def test_error_follows_the_tolerance():
    x = random_tokens(np.random.default_rng(0), 1, 6, 9)[0]
    times = np.linspace(0.3, 5, 7)  # times between the steps, which require the continuous extension
    exact = overlaps(flow(x, 4.0, times, tolerance=1e-13))
    errors = [
        np.abs(gram_flow(overlaps(x), 4.0, times, tolerance=tolerance) - exact).max() for tolerance in (1e-5, 1e-7, 1e-9)
    ]
    assert errors[0] < 3e-4
    assert errors[1] < 3e-6
    assert errors[2] < 3e-8


def test_gram_engine_refuses_dependent_tokens():
    with pytest.raises(ValueError, match=r"integrate the vectors"):
        gram_flow(overlaps(random_tokens(np.random.default_rng(0), 1, 8, 5)[0]), 1.0, 1.0)
    with pytest.raises(ValueError, match=r"linearly dependent"):
        gram_flow(np.ones((3, 3)), 1.0, 1.0)
    with pytest.raises(ValueError, match="diagonal"):
        gram_flow(2 * np.eye(3), 1.0, 1.0)
    with pytest.raises(ValueError, match="beta"):
        gram_flow(np.eye(3), -1.0, 1.0)
    with pytest.raises(ValueError, match="dimension = 5"):
        random_grams(np.random.default_rng(0), 1, 8, 5)


def test_low_dimension_goes_by_vectors():
    x = random_tokens(np.random.default_rng(1), 3, 12, 2)
    grams = gram_path(x, [0.0, 1.0, 5.0], [1.0, 20.0])
    assert grams.shape == (2, 3, 12, 12)
    assert np.abs(grams).max() <= 1 + 1e-9
    np.testing.assert_allclose(grams[0, 2], overlaps(flow(x[2], 5.0, 1.0)), atol=1e-7)


@settings(max_examples=10)
@given(st.integers(0, 10**6), st.floats(0.0, 8.0), st.booleans())
def test_energy_increases(seed, beta, normalised):
    x = random_tokens(np.random.default_rng(seed), 1, 6, 3)[0]
    times = np.linspace(0, 10 if normalised else 10 * np.exp(-beta), 30)
    energy = token_energy(overlaps(token_paths(x, beta, times, normalised=normalised)), beta)
    assert np.all(np.diff(energy) > -1e-7 * max(energy.max(), 1))


def test_random_grams_have_the_law_of_random_tokens():
    rng = np.random.default_rng(3)
    drawn, made = random_grams(rng, 4000, 5, 8), overlaps(random_tokens(rng, 4000, 5, 8))
    pairs = np.triu_indices(5, 1)
    for power in (1, 2, 4):
        a, b = ((g[:, *pairs] ** power).mean(axis=1) for g in (drawn, made))
        assert abs(a.mean() - b.mean()) < 5 * np.hypot(a.std(), b.std()) / np.sqrt(4000)
    second = (drawn[:, *pairs] ** 2).mean(axis=1)
    assert abs(second.mean() - 1 / 8) < 5 * second.std() / np.sqrt(4000)


def test_correlated_tokens():
    x = correlated_tokens(np.random.default_rng(0), 6, 40_000, -0.15)
    assert np.abs(overlaps(x)[~np.eye(6, dtype=bool)] + 0.15).max() < 5 / np.sqrt(40_000)


@pytest.mark.parametrize(("inputs", "outputs", "tolerance"), PHASES)
def test_pair_probability_reference(inputs, outputs, tolerance):
    systems = 200
    found = phase_diagram(inputs["n"], inputs["d"], [inputs["beta"]], [inputs["t"]], systems=systems, seed=7)
    # 4 standard errors of the difference, where `tolerance` is 4 standard errors of the reference
    allowed = np.hypot(tolerance, 4 * found.spread[0, 0] / np.sqrt(systems))
    assert abs(found.pair_probability[0, 0] - outputs["p_pair"]) < allowed


def test_phase_diagram_by_threads_and_half_times():
    one = phase_diagram(8, 16, [1.0, 3.0], np.arange(0, 12, 0.5), systems=6, count=True)
    two = phase_diagram(8, 16, [1.0, 3.0], np.arange(0, 12, 0.5), systems=6, count=True, workers=2)
    np.testing.assert_array_equal(one.pair_probability, two.pair_probability)
    assert np.all(np.diff(one.clusters, axis=1) <= 0)
    assert np.all(one.all_probability <= one.pair_probability + 1e-12)
    halves = one.half_time()
    assert halves[0] < halves[1] < 12
    assert np.isinf(phase_diagram(8, 16, [1.0], [0.1, 0.2], systems=2).half_time()[0])


def test_clusters():
    gram = np.array([[1.0, 0.9995, 0.998], [0.9995, 1.0, 0.9995], [0.998, 0.9995, 1.0]])
    assert cluster_count(gram) == 1  # connected through the middle token, although the outer tokens are not close
    assert pair_fraction(gram) == pytest.approx(4 / 6)
    assert pair_fraction(-gram + 2 * np.eye(3), antipodal=True) == pytest.approx(4 / 6)
    assert mean_overlap(gram) == pytest.approx((0.9995 * 2 + 0.998) / 3)
    with pytest.raises(ValueError, match="finite"):
        pair_fraction(np.full((2, 2), np.nan))
    assert circle_clusters(np.r_[np.full(99, 0.01), 3.0], least_share=0.02) == 1
    assert circle_clusters(np.linspace(0, 2 * np.pi, 1000)) == 1


@pytest.mark.parametrize("name", ["A", "B", "C", "D"])
def test_ensembles(name):
    B, V = draw_matrices(np.random.default_rng(0), name, 60)
    assert B.std() == pytest.approx(1.0, abs=0.1)
    assert np.trace(V @ V.T) / 60 == pytest.approx({"A": 1.0, "B": 2.0, "C": 1.0, "D": 1.0}[name], rel=0.2)
    if name == "B":
        assert np.linalg.eigvalsh(V).min() > -1e-12
    paths = ensemble_paths(np.random.default_rng(0), name, 5, 12, 1.5, [0.0, 1.0], step=0.02, dtype=np.float64)
    rng = np.random.default_rng(0)
    B, V = draw_matrices(rng, name, 12)
    x = random_tokens(rng, 1, 5, 12)[0]
    np.testing.assert_allclose(paths[1], flow(x, 1.5, 1.0, K=B, V=V), atol=1e-6)


def test_ensemble_refusal():
    with pytest.raises(ValueError, match="ensemble = "):
        draw_matrices(np.random.default_rng(0), "E", 3)


def test_overlap_profile():
    x = random_transformer(layers=20, tokens=20, dimension=40, seed=1)
    np.testing.assert_allclose(np.linalg.norm(x, axis=-1), 1, atol=1e-12)
    profile = overlap_profile(3.0 * x)  # the profile does not depend on the lengths
    np.testing.assert_allclose(profile.histograms.sum(axis=1), 1)
    np.testing.assert_allclose(profile.mean, mean_overlap(overlaps(x)), atol=1e-12)
    layer = profile.collapse_layer()
    assert layer is not None
    assert profile.pair_probability[layer] >= 0.5 > profile.pair_probability[layer - 1]
    assert profile.clusters[0] == 20
    assert overlap_profile(x[:2]).collapse_layer() is None
    centred = overlap_profile(x[:1] + 100.0, centre=True)
    assert abs(centred.mean[0] + 1 / 19) < 0.05
    with pytest.raises(ValueError, match="layers, tokens, d"):
        overlap_profile(np.ones((3, 4)))
    with pytest.raises(ValueError, match="closeness"):
        overlap_profile(x, closeness=2.0)
    with pytest.raises(ValueError, match="divide"):
        random_transformer(dimension=10, heads=3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("d", "table"), [(128, {1.0: 5.28, 3.0: 5.92, 5.0: 9.14}), (1024, {1.0: 5.26, 3.0: 5.91, 5.0: 9.50})]
)
def test_half_times(d, table):
    halves = phase_diagram(32, d, list(table), np.arange(4, 12, 0.05), systems=64, seed=3).half_time()
    np.testing.assert_allclose(halves, list(table.values()), rtol=0.03)
