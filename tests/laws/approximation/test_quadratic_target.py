"""Quadratic targets: reference values, exact means, limits that meet, the flow and one-pass SGD, refusals."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limitlab as ll
from limitlab.errors import NotComputable
from limitlab.laws import QuadraticTarget
from limitlab.laws.approximation._quadratic_network import one_pass
from limitlab.laws.approximation._relu_network import relu_tangent_risk, trained_relu_risk
from limitlab.laws.approximation.quadratic import (
    activation_constant,
    isotropic_risk,
    network_risk,
    neuron_covariance,
    population_risk,
    random_feature_risk,
    tangent_mean,
    tangent_risk,
)
from limitlab.models.activations import Activation
from references import label, reference

entries = partial(reference, "approximation")
spectra = st.lists(st.floats(-2, 2).filter(lambda x: abs(x) > 1e-3), min_size=2, max_size=12)


def waves(rows, columns, shift):
    i, a = np.arange(rows)[:, None], np.arange(columns)
    return np.sin(1 + 1.7 * i + 2.3 * a + 0.5 * i * a + shift)


# -- reference values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", reference("static_statements", "rank_r_target"), ids=label)
def test_targets_of_low_rank(entry):
    """The gap between network and tangent features is as large as one likes: the network is exact from N = r on."""
    d, r, width = (entry["inputs"][name] for name in ("dimension", "rank", "width"))
    spectrum, want, tolerance = (1.0,) * r + (0.0,) * (d - r), entry["outputs"], entry["tolerance"]
    tangent = QuadraticTarget(model="nt", width=width, eigenvalues=spectrum).theory()
    network = QuadraticTarget(model="nn", width=width, eigenvalues=spectrum).theory()
    np.testing.assert_allclose(float(tangent.relative_risk_exact), want["nt_exact_mean"], atol=tolerance)
    np.testing.assert_allclose(float(tangent.relative_risk), want["nt_limit"], atol=tolerance)
    np.testing.assert_allclose(float(network.relative_risk), want["nn"], atol=tolerance)


@pytest.mark.parametrize("entry", entries("quadratic_target_risks"), ids=lambda e: f"{e['inputs']['d']}")
def test_risks(entry):
    inputs, wanted = entry["inputs"], entry["outputs"]
    common = dict(width=inputs["N"], eigenvalues=inputs["eigenvalues_of_B"])
    random = QuadraticTarget(model="rf", feature_covariance=inputs["gamma_diag"], **common)
    tangent, trained = (QuadraticTarget(model=model, **common).theory() for model in ("nt", "nn"))
    np.testing.assert_allclose(random.theory().relative_risk, wanted["RF_limit"], rtol=1e-12)
    np.testing.assert_allclose(tangent.relative_risk, wanted["NT_limit"], rtol=1e-12)
    np.testing.assert_allclose(tangent.relative_risk_exact, wanted["NT_exact_expectation"], rtol=1e-12)
    np.testing.assert_allclose([trained.relative_risk, trained.relative_risk_exact], wanted["NN_min"], rtol=1e-12)
    assert random.target_variance() == pytest.approx(wanted["variance_f"], rel=1e-12)


@pytest.mark.parametrize("entry", entries("rf_quadratic_target_relu_isotropic"), ids=lambda e: f"{e['inputs']['psi1']}")
def test_relu_risks(entry):
    inputs, wanted = entry["inputs"], entry["outputs"]
    # two eigenvalues 1 +- x in equal numbers have T = 1 / (1 + x^2)
    x = np.sqrt(1 / inputs["trace_fraction"] - 1)
    law = QuadraticTarget(eigenvalues=(1 + x, 1 - x) * 10, width=round(20 * inputs["psi1"]), activation="relu")
    assert law.trace_fraction() == pytest.approx(inputs["trace_fraction"], rel=1e-12)
    assert law.activation_constant() == pytest.approx(wanted["c_sigma"], rel=1e-10)
    assert float(law.theory().relative_risk) == pytest.approx(wanted["risk"], rel=1e-10)


@pytest.mark.parametrize("entry", entries("nn_population_flow_quadratic"), ids=lambda e: f"{e['inputs']['d']}")
def test_flow(entry):
    inputs, wanted = entry["inputs"], entry["outputs"]
    B = inputs["eigenvalues_of_B"]
    law = QuadraticTarget(model="nn", width=inputs["N"], eigenvalues=B)
    found = law.flow(0.4 * waves(inputs["d"], inputs["N"], inputs["s"]), inputs["c0"], inputs["times"], -sum(B))
    np.testing.assert_allclose(found, wanted["risk"], rtol=1e-6)
    assert float(law.theory().relative_risk) * law.target_variance() == pytest.approx(wanted["inf_risk"], rel=1e-12)


# -- identities and limits --------------------------------------------------------------------------------------------


@given(spectra, st.integers(1, 15))
def test_the_mean_of_tangent_features_is_exact_at_the_ends(B, width):
    """No free direction: everything is explained. One neuron in d dimensions: by the fourth moments of a unit vector."""
    B = np.array(B)
    d, T = B.size, B.sum() ** 2 / (B.size * (B @ B))
    assert tangent_mean(d + width, d, T) == 0
    assert tangent_mean(0, d, T) == pytest.approx(1)
    along = (2 * B @ B + B.sum() ** 2) / (d * (d + 2))  # E <w, B w>^2
    square = (B @ B) / d  # E |B w|^2
    assert tangent_mean(1, d, T) == pytest.approx(1 + (along - 2 * square) / (B @ B), abs=1e-12)


@given(spectra, st.integers(1, 12))
def test_the_exact_mean_tends_to_its_limit(B, width):
    B = np.array(B)
    d, T = B.size, B.sum() ** 2 / (B.size * (B @ B))
    gaps = [abs(float(tangent_mean(width * k, d * k, T)) - float(tangent_risk(width / d, T))) for k in (100, 1000)]
    assert gaps[1] <= gaps[0] / 9 + 1e-12


@given(spectra, st.integers(1, 40))
def test_risks_are_shares(B, width):
    """All between 0 and 1; the best network has the least of the three whenever B has no negative eigenvalue."""
    found = {
        m: float(QuadraticTarget(model=m, width=width, eigenvalues=B).theory().relative_risk) for m in ("rf", "nt", "nn")
    }
    assert all(-1e-12 <= risk <= 1 for risk in found.values())
    positive = {
        m: float(QuadraticTarget(model=m, width=width, eigenvalues=np.abs(B)).theory().relative_risk)
        for m in ("rf", "nt", "nn")
    }
    assert positive["nn"] <= positive["nt"] + 1e-12


@given(st.floats(0.05, 20))
def test_the_constant_of_the_square_is_one(psi):
    assert activation_constant(psi, Activation("square")) == pytest.approx(1, rel=1e-12)
    relu = float(activation_constant(psi, Activation("relu")))
    assert relu > 1
    B = np.array([1.0, 0.4, -0.2, 0.7])
    gamma = np.full(4, 0.25)
    T = B.sum() ** 2 / (4 * (B @ B))
    assert random_feature_risk(4 * psi, B, gamma) == pytest.approx(
        float(isotropic_risk(psi, T, Activation("square"))), rel=1e-12
    )


def test_many_random_neurons_see_the_trace_only():
    relu = Activation("relu")
    assert isotropic_risk(1e9, 0.8, relu) == pytest.approx(0.2, abs=1e-6)
    assert activation_constant(1e9, relu) == pytest.approx((0.25 - 1 / (2 * np.pi)) / (1 / (4 * np.pi)), rel=1e-6)
    assert isotropic_risk(3.0, 0.8, Activation("tanh")) == 1  # odd: nothing of degree 2


def test_scaling_the_neurons_or_the_target_changes_nothing():
    B, gamma = (1.0, 0.5, -0.3), (0.2, 0.5, 0.4)
    law = QuadraticTarget(width=2, eigenvalues=B, feature_covariance=gamma)
    scaled = law.replace(eigenvalues=[5 * b for b in B], feature_covariance=[7 * g for g in gamma])
    np.testing.assert_allclose(scaled.theory().relative_risk, law.theory().relative_risk, rtol=1e-13)


@pytest.mark.parametrize("model", ["rf", "nt", "nn"])
def test_a_repeated_spectrum_is_the_same_law(model):
    law = QuadraticTarget(model=model, width=3, eigenvalues=(1.0, 0.9, 0.8, -0.3, 0.2, 0.1))
    np.testing.assert_allclose(law.realised(18).theory().relative_risk, law.theory().relative_risk, rtol=1e-12)
    assert law.realised(18).width == 9


def test_network_risk_with_negative_eigenvalues():
    B = np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(network_risk([1, 2, 3, 9], B), np.array([4.25, 4.0, 4.0, 4.0]) / 5.25)


# -- experiments ------------------------------------------------------------------------------------------------------


def test_random_projection_against_least_squares():
    """R given the neurons, against a regression with intercept on drawn inputs."""
    law = QuadraticTarget(width=3, eigenvalues=(1.0, 0.7, -0.4, 0.3), feature_covariance=(0.5, 0.3, 0.2, 0.1))
    rng = np.random.default_rng(2)
    predicted = law.random_projection(np.random.default_rng(2))
    w = rng.standard_normal((3, 4)) * np.sqrt(np.array([0.5, 0.3, 0.2, 0.1]) / 1.1)
    x = rng.standard_normal((200_000, 4))
    y = x**2 @ law.spectrum()
    features = np.column_stack([(x @ w.T) ** 2, np.ones(len(x))])
    left = y - features @ np.linalg.lstsq(features, y, rcond=None)[0]
    assert predicted == pytest.approx(np.var(left) / np.var(y), rel=0.02)


def test_tangent_projection_against_least_squares():
    law = QuadraticTarget(model="nt", width=2, eigenvalues=(1.0, 0.7, -0.4, 0.3))
    predicted = law.tangent_projection(np.random.default_rng(4))
    w = np.linalg.qr(np.random.default_rng(4).standard_normal((4, 4)))[0][:, :2].T
    x = np.random.default_rng(5).standard_normal((100_000, 4))
    y = x**2 @ law.spectrum()
    features = np.column_stack([*((x @ row)[:, None] * x for row in w), np.ones(len(x))])
    left = y - features @ np.linalg.lstsq(features, y, rcond=None)[0]
    assert predicted == pytest.approx(np.var(left) / np.var(y), rel=0.02)


def test_relu_tangent_features_against_least_squares():
    rng = np.random.default_rng(1)
    w, B = rng.standard_normal((3, 5)), np.array([1.0, 0.7, 0.5, -0.3, 0.2])
    x = rng.standard_normal((150_000, 5))
    y = x**2 @ B
    features = np.column_stack([*((x @ row > 0)[:, None] * x for row in w), np.ones(len(x))])
    left = y - features @ np.linalg.lstsq(features, y, rcond=None)[0]
    assert relu_tangent_risk(w, B) == pytest.approx(np.var(left) / np.var(y), rel=0.01)
    with pytest.raises(ValueError, match="eigenvalues of shape"):
        relu_tangent_risk(w, B[:4])


def test_a_relu_network_finds_a_target_that_it_can_represent():
    risk = trained_relu_risk(np.random.default_rng(0), lambda x: np.abs(x[:, 0]) - np.abs(x[:, 1]), 4, 8, steps=600)
    assert risk < 0.02 < 0.5 < 2 * (1 - 2 / np.pi)  # from the target's variance


@pytest.mark.parametrize("activation", ["relu", "gelu", "tanh"])
def test_covariance_of_neurons(activation):
    x = np.random.default_rng(6).standard_normal((200_000, 2))
    chosen, rho = Activation(activation), 0.6
    u, v = chosen(x[:, 0]), chosen(rho * x[:, 0] + 0.8 * x[:, 1])
    found = neuron_covariance(np.array([[1.0, rho], [rho, 1.0]]), chosen)
    product = (u - u.mean()) * (v - v.mean())
    assert found[0, 1] == pytest.approx(product.mean(), abs=5 * product.std() / np.sqrt(len(x)))
    assert found[0, 0] == pytest.approx(u.var(), rel=0.02)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000))
def test_population_risk_against_drawn_inputs(seed):
    rng = np.random.default_rng(seed)
    B, w, c, b0 = rng.uniform(-1, 1, 4), rng.standard_normal((4, 2)) / 2, 0.3, -0.2
    x = rng.standard_normal((50_000, 4))
    error = (b0 + x**2 @ B - ((x @ w) ** 2).sum(axis=1) - c) ** 2
    assert population_risk(B, w, c, b0) == pytest.approx(error.mean(), abs=6 * error.std() / np.sqrt(len(x)))


def test_the_flow_follows_the_gradient():
    """The risk never rises, and its first slope is minus the squared gradient of the population risk."""
    law = QuadraticTarget(model="nn", eigenvalues=(1.0, 0.6, -0.5), width=2)
    w = 0.4 * waves(3, 2, 0.2)
    times = np.linspace(0, 2, 41)
    risk = law.flow(w, 0.1, times, -1.1)
    assert (np.diff(risk) <= 1e-9).all()
    B, h = law.spectrum(), 1e-6
    slopes = [
        (population_risk(B, w + h * e.reshape(3, 2), 0.1, -1.1) - population_risk(B, w - h * e.reshape(3, 2), 0.1, -1.1))
        / (2 * h)
        for e in np.eye(6)
    ]
    slopes.append((population_risk(B, w, 0.1 + h, -1.1) - population_risk(B, w, 0.1 - h, -1.1)) / (2 * h))
    early = law.flow(w, 0.1, [0.0, 1e-5], -1.1)
    assert (early[1] - early[0]) / 1e-5 == pytest.approx(-np.square(slopes).sum(), rel=1e-3)


def sgd_gap(d, width, B, seed, pieces=16, end=4.0):
    """Largest |SGD - flow| over the time, relative to the risk at the start, at step 0.02/d^2."""
    rng = np.random.default_rng(seed)
    law = QuadraticTarget(model="nn", width=width, eigenvalues=B)
    start, c, step = rng.standard_normal((width, d)) * np.sqrt(0.5 / d), 0.0, 0.02 / d**2
    times = np.linspace(0, end, pieces + 1)
    flow = law.flow(start.T, c, times, -float(np.sum(B)))
    w, risks = start, [flow[0]]
    for _ in range(pieces):
        w, c = one_pass(rng, law.spectrum(), w, c, -float(np.sum(B)), step=step, steps=round(end / pieces / step))
        risks.append(population_risk(law.spectrum(), w.T, c, -float(np.sum(B))))
    return np.abs(np.array(risks) - flow).max() / flow[0], risks[-1] / law.target_variance(), law


def test_one_pass_of_sgd_follows_the_flow():
    """Within 3% of the start at the step 0.02/d^2 (d = 20), and towards the optimum, negative eigenvalues included."""
    rng = np.random.default_rng(0)
    positive = np.sort(rng.exponential(size=20))[::-1] / 3
    signed = positive * np.where(np.arange(20) % 4 == 3, -1, 1)
    for B in (positive, signed):
        gap, end, law = sgd_gap(20, 5, B, seed=1)
        assert gap < 0.03
        assert end == pytest.approx(float(law.theory().relative_risk), abs=0.03)


@pytest.mark.parametrize("law", QuadraticTarget.check_points(), ids=lambda law: f"{law.model}-{law.activation.name}")
def test_budgets_are_small(law):
    found = ll.compare(law)
    assert found.verdict == "agree", found.explanation
    for row in found.rows:
        assert row.half_width < 0.05 * abs(row.theory), row.observable


def test_sgd_that_diverges_says_so():
    law = QuadraticTarget(model="nn", step=50.0)
    with pytest.raises(NotComputable, match="SGD diverges at step = 50"), np.errstate(all="ignore"):
        law.simulate(10, 0)


# -- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (dict(eigenvalues=(0.0, 0.0)), "eigenvalues = .* at least one must differ from 0"),
        (dict(eigenvalues=(1.0,)), "give at least two"),
        (dict(eigenvalues=(1.0, 2.0), feature_covariance=(1.0,)), "feature_covariance of 1 numbers is not allowed"),
        (dict(eigenvalues=(1.0, 2.0), feature_covariance=(0.0, 0.0)), "feature_covariance of 2 numbers is not allowed"),
        (dict(eigenvalues=(1.0, 2.0), feature_covariance=(1.0, -1.0)), "feature_covariance = .* is not allowed"),
        (
            dict(model="nt", eigenvalues=(1.0, 2.0), feature_covariance=(1.0, 1.0)),
            "feature_covariance is not allowed for model = 'nt'",
        ),
        (dict(model="nn", activation="relu"), "activation = 'relu' is not allowed for model = 'nn'"),
        (
            dict(eigenvalues=(1.0, 2.0), feature_covariance=(1.0, 2.0), activation="relu"),
            "feature_covariance with activation = 'relu' is not allowed",
        ),
    ],
)
def test_refusals(given, words):
    with pytest.raises(ValueError, match=words):
        QuadraticTarget(**given)


def test_flow_refuses_bad_input():
    law = QuadraticTarget(model="nn", eigenvalues=(1.0, 0.5))
    with pytest.raises(ValueError, match="weights of shape"):
        law.flow(np.eye(3), 0.0, [1.0])
    with pytest.raises(ValueError, match=r"times = .* are not allowed"):
        law.flow(np.eye(2), 0.0, [1.0, 0.5])
