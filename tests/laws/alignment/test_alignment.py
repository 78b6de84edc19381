"""Spectral alignment: reference values, limits that meet, the general flow, blocks against dense matrices, XOR blocks."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limitlab._core.draws import mean_and_error
from limitlab.laws.alignment import _softmax_sgd as softmax_sgd
from limitlab.laws.alignment.blocks import block_law, block_spectrum, parts, span_alignment, weights_direction
from limitlab.laws.alignment.mixture import MixtureAlignment, statistics
from limitlab.laws.alignment.mixture_flow import mixture_flow, noiseless_mixture, symmetric_flow, symmetric_rates
from limitlab.laws.alignment.xor import XorAlignment, announce, first_layer, other_direction, second_layer_path
from limitlab.laws.online_sgd.xor import XorMixture
from limitlab.models.xor_chain import full_xor_run
from references import label, reference

entries = partial(reference, "alignment")
MATRIX = {"H": "hessian", "G": "gradient"}


def law_of(inputs, **options):
    return MixtureAlignment(
        classes=inputs["k"], snr=float(inputs["lambda_"]), regularizer=inputs["beta"], step=inputs["c_delta"], **options
    )


def close(found, want, tolerance):
    return abs(found - want) <= tolerance * max(1, abs(want))


# -- reference values ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", entries("kgmm_fixed_point"), ids=label)
def test_fixed_point(entry):
    law, want, tolerance = law_of(entry["inputs"]), entry["outputs"], entry["tolerance"]
    found = law.fixed_point()
    names = dict(
        margin="D",
        overlap_own="x_c_dot_mu_c",
        overlap_other="x_c_dot_mu_b",
        spread="q",
        span_alignment="rho_span",
        mean_probability="mean_pi_in",
    )
    for name, key in names.items():
        assert close(getattr(found, name), want[key], tolerance), name
    if math.isinf(law.snr):
        assert close(law.misalignment_constant(), want["lambda_times_one_minus_rho_limit"], tolerance)
        for matrix, pair in (("H", found.hessian_outliers), ("G", found.gradient_outliers)):
            assert pair[0] == pytest.approx(want[f"{matrix}_cc_eig_mu_c"], rel=1e-7)
            assert pair[1] == pytest.approx(want[f"{matrix}_cc_eig_mu_other"], rel=1e-7)
    else:
        assert found.hessian_outliers is None


@pytest.mark.parametrize("entry", entries("kgmm_ballistic"), ids=label)
def test_flow(entry):
    want, tolerance = entry["outputs"], entry["tolerance"]
    found = law_of(entry["inputs"], times=tuple(entry["inputs"]["t"]), quasi_points=16).theory()
    for name, key in dict(spread="q", common_spread="r", overlap_own="x_c_dot_mu_c", span_alignment="rho_span").items():
        np.testing.assert_allclose(found[name], want[key], rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found.overlap_own - found.overlap_other, want["D"], rtol=tolerance)


@pytest.mark.parametrize("entry", entries("kgmm_block_spectrum_concentrated_weights"), ids=label)
def test_blocks_with_constant_weights(entry):
    given_, want = entry["inputs"], entry["outputs"]
    found = block_spectrum(
        given_["k"], given_["lambda_"], 1 / given_["d_over_Mtest"], given_["margin_D"], MATRIX[given_["matrix"]]
    )
    for name, key in (("edge", "bulk_edge"), ("outlier_own", "outlier_mu_c"), ("outlier_other", "outlier_mu_other")):
        value = getattr(found, name)
        assert (value is None) == (want[key] is None), name
        assert value is None or value == pytest.approx(want[key], rel=1e-8), name


@pytest.mark.parametrize("entry", entries("kgmm_spectral_alignment"), ids=label)
def test_blocks_along_sgd(entry):
    given_, want, allowed = entry["inputs"], entry["outputs"], entry["tolerance"]
    law = law_of(given_, times=(given_["t"],), test_ratio=1 / given_["d_over_Mtest"])
    found = law.blocks(law.state(given_["t"]), MATRIX[given_["matrix"]])
    for one in found:
        assert abs(one.alignment - want["rho_x_with_E_k"]) < allowed["rho"] / 4
        assert one.top == pytest.approx(want["top_eigenvalue"], rel=allowed["top_eigenvalue_rel"] / 4)
        assert one.edge == pytest.approx(want["bulk_edge"], rel=allowed["edge_rel"] / 10)
        assert want["outliers_asymptotic"] in (None, len(one.outliers))


@pytest.mark.parametrize("entry", entries("xor_lambda_infinite_class_dynamics"), ids=label)
def test_curvature_of_the_xor_network(entry):
    found, want = XorMixture(regularizer=entry["inputs"]["alpha"]).curvature(), entry["outputs"]
    for name, key in (("H_WW", "H_WW_over_v2"), ("G_WW", "G_WW_over_v2"), ("H_vv", "H_vv"), ("G_vv", "G_vv")):
        value = getattr(found, name)
        assert (value is None) == (want[key] is None)
        assert value is None or close(value, want[key], entry["tolerance"])


# -- limits that meet ----------------------------------------------------------------------------------------------------


@given(st.integers(3, 8), st.floats(0.2, 2.5))
@settings(max_examples=8, deadline=None)
def test_large_snr_meets_constant_weights(classes, margin):
    """At lambda = 10^4 the weights hardly fluctuate: equation (7) becomes equation (9)."""
    state = np.array([margin, 1e-3, 1e-3])
    both = parts(classes, 1e4, margin, 1e-3, 64, 0)
    for matrix in ("hessian", "gradient"):
        law, exact = block_law(classes, 1e4, 2.0, state, matrix, both), block_spectrum(classes, 1e4, 2.0, margin, matrix)
        expected = sorted([exact.outlier_own] + [exact.outlier_other] * (classes - 1), reverse=True)
        np.testing.assert_allclose(law.outliers[:classes], expected, rtol=0.01)


def test_joint_law_has_the_moments_of_a_sample():
    """Summed over the grid: total probability, and E Y Y^T in the special directions."""
    k, snr, margin, spread = 4, 3.0, 1.2, 0.5
    own, other = parts(k, snr, margin, spread, 8192, 0)
    assert own.shares.sum() + other.shares.sum() == pytest.approx(1, abs=1e-9)
    second = own.alone.sum(axis=2) + other.alone.sum(axis=2)
    cosine, sine = margin / math.hypot(margin, math.sqrt(spread)), math.sqrt(spread) / math.hypot(margin, math.sqrt(spread))
    # E Y Y^T = (1/k) sum_a mu_a mu_a^T + I / lambda, and mu_a = cosine f_a - sine f_a^perp
    exact = np.eye(4) / snr
    pair = np.array([[cosine**2, -cosine * sine], [-cosine * sine, sine**2]]) / k
    exact[np.ix_([0, 2], [0, 2])] += pair
    exact[np.ix_([1, 3], [1, 3])] += pair
    np.testing.assert_allclose(second, exact, atol=2e-4)
    mixed = own.mixed.sum(axis=2) + other.mixed.sum(axis=2)
    np.testing.assert_allclose(mixed, np.eye(2) / snr + pair, atol=2e-4)


def test_direction_of_the_weights_agrees_with_the_span_alignment():
    k, margin, spread, common = 5, 1.1, 0.4, 0.7
    x, length = weights_direction(k, margin, spread, common), math.hypot(margin, math.sqrt(spread))
    cosine, sine = margin / length, math.sqrt(spread) / length
    along_own = cosine * x[0] - sine * x[2]
    along_others = cosine * x[1] - sine * x[3]  # on the normalised sum of the other means
    assert math.hypot(along_own, along_others) == pytest.approx(span_alignment(k, margin, spread, common))


def test_infinite_ratio_and_infinite_snr():
    many = MixtureAlignment(classes=4, snr=20.0, times=(5.0,), test_ratio=math.inf).theory()
    more = MixtureAlignment(classes=4, snr=20.0, times=(5.0,), test_ratio=1e5).theory()
    for name in ("hessian_alignment", "gradient_alignment", "top_hessian_eigenvalue", "hessian_edge"):
        assert float(many[name][0]) == pytest.approx(float(more[name][0]), rel=0.01), name
    quiet, clear = (MixtureAlignment(classes=4, snr=snr, times=(5.0,)).theory() for snr in (1e6, math.inf))
    for name in ("overlap_own", "hessian_alignment", "top_gradient_eigenvalue", "span_alignment"):
        assert float(quiet[name][0]) == pytest.approx(float(clear[name][0]), rel=1e-3), name
    assert int(clear.hessian_outliers[0]) == int(clear.gradient_outliers[0]) == 4
    assert float(clear.hessian_edge[0]) == 0


def test_misalignment_at_the_fixed_point():
    law = MixtureAlignment(classes=5, regularizer=0.03, step=0.6)
    scaled = [snr * (1 - law.replace(snr=snr).fixed_point().span_alignment) for snr in (1e3, 1e4)]
    assert scaled[1] == pytest.approx(law.misalignment_constant(), rel=2e-3)
    assert abs(scaled[1] - law.misalignment_constant()) < abs(scaled[0] - law.misalignment_constant()) / 5


def test_the_flow_ends_at_the_fixed_point():
    law = MixtureAlignment(classes=3, snr=5.0, regularizer=0.1, step=0.8)
    margin, spread, common = law.state(200.0)
    end = law.fixed_point()
    assert margin == pytest.approx(end.margin, rel=1e-6)
    assert spread == pytest.approx(end.spread, rel=1e-6)
    assert common == pytest.approx(math.exp(-40), rel=1e-4)


def test_required_test_ratio_is_where_the_last_outlier_appears():
    law = MixtureAlignment(classes=3, snr=20.0, regularizer=0.05)
    for matrix in ("hessian", "gradient"):
        needed = law.required_test_ratio(5.0, matrix)
        assert len(law.replace(test_ratio=1.01 * needed).outliers(5.0, matrix)) == 3
        assert len(law.replace(test_ratio=0.97 * needed).outliers(5.0, matrix)) < 3
    weights = [(1 - p) ** 2 for p in (symmetric_rates(3, 20.0, *law.state(5.0)[:2]).probability,)]
    assert law.required_test_ratio(5.0, "gradient") > 0.1 * (weights[0] / 0.04 - 1) * 3 / 20
    assert law.replace(snr=math.inf).required_test_ratio(5.0) == 0


def test_required_test_ratio_is_right_to_a_per_cent_where_rare_weights_decide_it():
    law = MixtureAlignment(classes=10, snr=10.0, regularizer=0.01, quasi_points=64)
    fine = law.replace(quasi_points=2**14)
    assert law.required_test_ratio(60.0, "gradient") == pytest.approx(fine.required_test_ratio(60.0, "gradient"), rel=0.015)


def test_gradient_keeps_one_outlier_at_ten_samples_per_dimension():
    """Ten classes: the Hessian has all ten at t = 20, the gradient matrix one."""
    law = MixtureAlignment(times=(20.0,))
    assert len(law.outliers(20.0)) == 10
    assert len(law.outliers(20.0, "gradient")) == 1


# -- any means and probabilities -----------------------------------------------------------------------------------------


def test_general_flow_is_the_symmetric_one():
    overlaps, rest = mixture_flow(np.eye(3), np.ones(3) / 3, 4.0, 0.05, 0.8, [2.0, 6.0], quasi_points=1024)
    exact = symmetric_flow(3, 4.0, 0.05, 0.8, [2.0, 6.0]).states
    np.testing.assert_allclose(overlaps[:, 0, 0] - overlaps[:, 0, 1], exact[:, 0], rtol=2e-3)
    common = rest.sum(axis=(1, 2)) / 3
    np.testing.assert_allclose(common, exact[:, 2], rtol=2e-3)
    np.testing.assert_allclose((np.trace(rest, axis1=1, axis2=2) - common) / 2, exact[:, 1], rtol=2e-3)


def test_general_flow_against_sgd():
    """Unequal classes whose means are not orthogonal."""
    gram, shares = np.array([[1.0, 0.4, 0.0], [0.4, 1.0, -0.2], [0.0, -0.2, 0.8]]), np.array([0.5, 0.3, 0.2])
    size, runs, rng = 150, 30, np.random.default_rng(0)
    means = np.zeros((3, size))
    means[:, :3] = np.linalg.cholesky(gram)
    counts, found, lengths = np.array([round(5.0 * size / 0.7)]), [], []
    for _ in range(runs):
        start = rng.standard_normal((3, size)) / math.sqrt(size)
        x = softmax_sgd.sgd_path(rng, start, means, shares, 0.5, 0.05, 0.7 / size, counts)[0]
        found.append(x @ means.T)
        lengths.append(x[:, 3:] @ x[:, 3:].T)
    overlaps, rest = mixture_flow(gram, shares, 4.0, 0.05, 0.7, [5.0], quasi_points=512)
    for values, exact in ((np.array(found), overlaps[0]), (np.array(lengths), rest[0])):
        error = mean_and_error(values)[1]
        assert np.all(np.abs(values.mean(axis=0) - exact) < 5 * error + 5 / size)


def test_sum_of_the_weights_decays():
    """sum_c x^c is an exact invariant of the loss: only the penalty moves it."""
    rng, size = np.random.default_rng(1), 40
    start, delta = rng.standard_normal((3, size)), 0.02
    path = softmax_sgd.sgd_path(rng, start, np.eye(3, size), np.ones(3) / 3, 0.4, 0.1, delta, np.array([500]))
    np.testing.assert_allclose(path[0].sum(axis=0), start.sum(axis=0) * (1 - 0.1 * delta) ** 500, rtol=1e-9, atol=1e-12)


def test_noiseless_fixed_point_is_at_rest():
    gram, shares = np.array([[1.0, 0.3], [0.3, 2.0]]), np.array([0.3, 0.7])
    m = noiseless_mixture(gram, shares, 0.02)
    pi = np.exp(m) / np.exp(m).sum(axis=0)  # column a: probabilities of a sample at mu_a
    np.testing.assert_allclose(((np.eye(2) - pi) * shares) @ gram, 0.02 * m, atol=1e-12)


def test_noiseless_fixed_point_of_equal_classes():
    m = noiseless_mixture(np.eye(10), np.ones(10) / 10, 0.01)
    assert m[0, 0] - m[0, 1] == pytest.approx(3.1322629203194334, rel=1e-9)


@pytest.mark.parametrize(
    ("gram", "shares", "word"),
    [
        (np.ones((2, 2)), [0.5, 0.5], "linearly independent"),
        (np.eye(2), [0.5, 0.6], "probabilities"),
        (np.eye(3), [0.5, 0.5], "gram"),
    ],
)
def test_mixtures_that_are_refused(gram, shares, word):
    with pytest.raises(ValueError, match=word):
        mixture_flow(gram, shares, 4.0, 0.05, 1.0, [1.0])
    with pytest.raises(ValueError, match=word):
        noiseless_mixture(gram, shares, 0.05)


# -- the experiment ------------------------------------------------------------------------------------------------------


def test_statistics_of_a_symmetric_state():
    k, d, margin, spread, common = 4, 20, 1.3, 0.5, 0.9
    centred, ones = np.eye(k) - 1 / k, np.ones((k, k)) / k
    x = np.zeros((k, d))
    x[:, :k], x[:, k : 2 * k] = margin * centred, math.sqrt(spread) * centred + math.sqrt(common) * ones
    found = statistics(x, k)
    assert found["overlap_own"] == pytest.approx(margin * (k - 1) / k)
    assert found["overlap_other"] == pytest.approx(-margin / k)
    assert found["spread"] == pytest.approx(spread)
    assert found["common_spread"] == pytest.approx(common)
    assert found["span_alignment"] == pytest.approx(span_alignment(k, margin, spread, common))


def test_blocks_without_forming_them(monkeypatch):
    """Products with vectors and the formed block measure the same."""
    rng, means = np.random.default_rng(0), np.eye(3, 120)
    x = rng.standard_normal((3, 120))
    samples, labels = softmax_sgd.draw_mixture(rng, means, np.ones(3) / 3, 0.3, 600)
    fresh = 0.3 * rng.standard_normal((600, 6))
    weights = softmax_sgd.weights_of("hessian", samples, labels, x, 0)
    arguments = (samples, weights, np.vstack([means, x]), fresh, x[0], 3)
    formed = softmax_sgd.block_measurement(*arguments)
    monkeypatch.setattr(softmax_sgd, "FORMED", 10)
    free = softmax_sgd.block_measurement(*arguments)
    np.testing.assert_allclose(free.values, formed.values, rtol=1e-4)
    assert free.edge == pytest.approx(formed.edge, rel=1e-4)
    assert free.alignment == pytest.approx(formed.alignment, abs=1e-4)
    assert free.outliers == formed.outliers


def test_weights_are_second_derivatives_of_the_loss():
    """H_cc and G_cc of a few samples, from automatic differentiation."""
    from limitlab.models.optimisers import double_precision_jax

    jax = double_precision_jax()
    rng = np.random.default_rng(2)
    samples, labels, x = rng.standard_normal((7, 4)), rng.integers(0, 3, 7), rng.standard_normal((3, 4))

    def loss(block, y, a):
        logits = jax.numpy.asarray(x).at[1].set(block) @ y
        return -logits[a] + jax.nn.logsumexp(logits)

    hessian = sum(jax.hessian(loss)(x[1], y, a) for y, a in zip(samples, labels, strict=True))
    slopes = [np.asarray(jax.grad(loss)(x[1], y, a)) for y, a in zip(samples, labels, strict=True)]
    for name, exact in (("hessian", np.asarray(hessian)), ("gradient", sum(np.outer(g, g) for g in slopes))):
        weights = softmax_sgd.weights_of(name, samples, labels, x, 1)
        np.testing.assert_allclose(samples.T @ (samples * weights[:, None]), exact, rtol=1e-10)


def test_a_gaussian_start_has_the_same_limit():
    law = MixtureAlignment(classes=3, snr=10.0, regularizer=0.05, times=(6.0,), test_ratio=5.0, whitened=False)
    theory, runs = law.theory(), law.simulate_batch(150, range(16))
    for name in ("overlap_own", "overlap_other", "spread", "hessian_alignment", "top_hessian_eigenvalue"):
        error = float(runs[name].std("seed", ddof=1)[0]) / 4
        assert abs(float(runs[name].mean("seed")[0] - theory[name][0])) < 5 * error + 0.03, name


@pytest.mark.parametrize(
    "bad",
    [
        dict(times=(-1.0,)),
    ],
)
def test_refusals(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        MixtureAlignment(**bad)


def test_further_refusals():
    law = MixtureAlignment(classes=3, regularizer=0.0)
    for call in (law.fixed_point, law.misalignment_constant):
        with pytest.raises(ValueError, match="regularizer = 0"):
            call()
    with pytest.raises(ValueError, match="matrix"):
        law.outliers(1.0, "fisher")
    with pytest.raises(ValueError, match="inf"):
        law.replace(snr=math.inf).simulate(50, 0)
    with pytest.raises(ValueError, match="size = 8"):
        law.simulate(8, 0)
    for name, bad in (("classes", (1, 1.0, 1.0, 0.0)), ("snr", (3, 0.0, 1.0, 0.0)), ("test_ratio", (3, 1.0, 0.0, 0.0))):
        with pytest.raises(ValueError, match=name):
            block_spectrum(*bad)
    assert "required_test_ratio" in law.replace(test_ratio=0.5).caveat()
    assert not law.caveat()


# -- XOR -----------------------------------------------------------------------------------------------------------------


@given(st.floats(0.01, 0.12))
@settings(max_examples=20, deadline=None)
def test_sliding_neurons(alpha):
    """Closed forms of equation (15), and equation (14) when all clusters are captured."""
    e1, e2 = 4 * alpha, 0.5
    hessian, gradient = other_direction(e1, e2)
    assert hessian == pytest.approx(e1 * e2 * (2 - e1 - e2) / (4 * (e1 + e2)), rel=1e-12)
    assert gradient == pytest.approx(e1 * e2 / 4, rel=1e-12)
    curvature = XorMixture(regularizer=alpha).curvature()
    np.testing.assert_allclose(first_layer(alpha, 4), (curvature.H_WW, curvature.G_WW), rtol=1e-12)
    theory = XorAlignment(regularizer=alpha).theory()
    assert float(theory.second_layer_hessian) == pytest.approx(curvature.H_vv, rel=1e-12)
    assert float(theory.second_layer_gradient) == pytest.approx(curvature.G_vv, rel=1e-12)


def test_curvature_without_penalty_vanishes():
    assert XorMixture(regularizer=0.0).curvature() == (0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("captured", [1, 2, 3, 4])
def test_outliers_count_the_captured_clusters(captured):
    law = XorAlignment(width=5, captured=captured)
    runs = law.simulate_batch(120, range(4))
    assert np.all(runs.second_layer_outliers == captured)
    assert np.all(runs.second_layer_alignment > 0.999)
    assert np.all(runs.first_layer_alignment > 0.99)


def test_blocks_of_a_run_with_full_vectors():
    """The chain's blocks are those of SGD with full vectors: d = 100, all clusters."""
    from limitlab.laws.alignment._softmax_sgd import draw_xor, first_layer_block, sample_weights, second_layer_block

    rng, size = np.random.default_rng(3), 100
    v, w = np.array([1.0, 1.1, -0.9, -1.0]), np.zeros((4, size))
    w[0, 0], w[1, 0], w[2, 1], w[3, 1] = 0.3, -0.3, 0.3, -0.3
    v, w = full_xor_run(rng, v, w, 1 / size, 0.05, 1 / size, 100 * size)
    samples, labels = draw_xor(rng, size, 1 / size, 2000)
    h, hessian, gradient = sample_weights(samples, labels, v, w)
    # single eigenvalues scatter with the clusters' frequencies and the last steps of SGD; their means do not
    assert second_layer_block(h, hessian).values.mean() == pytest.approx(0.05545, rel=0.05)
    assert second_layer_block(h, gradient).values.mean() == pytest.approx(0.01386, rel=0.05)
    first = [first_layer_block(samples, h, hessian, i).values.mean() for i in range(4)]
    assert np.mean(first) == pytest.approx(0.04, rel=0.05)


def test_xor_refusals():
    with pytest.raises(ValueError, match="captured"):
        XorAlignment(width=2, captured=3)
    with pytest.raises(ValueError, match="regularizer"):
        XorAlignment(regularizer=0.125)
    with pytest.raises(ValueError, match="size"):
        XorAlignment(width=6).simulate(8, 0)


@pytest.mark.parametrize("captured", [1, 3])
def test_second_layer_outliers_along_training(captured):
    """Eq. (16) at every time, for one and three captured clusters: the gap is that of the noise and of N, both small here."""
    from limitlab.laws.alignment._softmax_sgd import draw_xor, sample_weights, second_layer_block, weights_in_space
    from limitlab.models.xor_chain import random_start, xor_path

    size, width, penalty, rng = 4000, 4, 0.06, np.random.default_rng(5 + captured)
    v, a, b, gram = random_start(rng, width, size)
    v, a, b, classes = announce(rng, v, a, b, captured, size)
    squares = np.bincount(classes, weights=v**2, minlength=4)
    times = np.array([8.0, 20.0, 60.0])
    paths = np.array([second_layer_path(penalty, float(square), times) for square in squares[squares > 0]])
    samples, labels = draw_xor(rng, width + 2, 1 / size, 4000)
    for wait, predicted in zip(np.diff(times, prepend=0.0), np.sort(paths.T, axis=1)[:, ::-1], strict=True):
        xor_path(rng, v, a, b, gram, 1 / size, penalty, 1 / size, size, np.array([round(wait * size)]))
        h, hessian, _ = sample_weights(samples, labels, v, weights_in_space(a, b, gram, width + 2))
        found = second_layer_block(h, hessian).values
        np.testing.assert_allclose(found[:captured], predicted, rtol=0.06)
        assert found[captured] < 0.05 * predicted[-1]
