"""Margins and convex losses: reference values through the API, thresholds, limits, invariants, experiments, refusals."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limitlab as ll
from limitlab.laws import ConvexLoss, MaxMargin, RandomFeaturesMargin, RandomFeaturesRidge
from limitlab.laws.classification.margin_system import separability_threshold, solve_margin
from limitlab.laws.classification.populations import Isotropic, RandomFeatures
from limitlab.laws.classification.random_features_margin import LabelledFeatures
from limitlab.models.activations import Moments
from limitlab.models.links import Labels, Link
from references import reference

entries = partial(reference, "margins")
OUTPUTS = dict(
    kappa="margin", err="classification_error", sv_fraction="support_fraction", rho="latent_correlation",
    train_loss="train_loss", norm2="coefficient_norm",
)  # fmt: skip


def name_of(entry):
    return "-".join(str(entry["inputs"].get(key)) for key in ("link", "psi1", "p_over_n", "loss"))


def parameters_of(inputs):
    chosen = dict(link=inputs["link"][0])
    if len(inputs["link"]) > 1:
        chosen["link_strength"] = inputs["link"][1]
    if "psi2" in inputs:
        chosen["sample_ratio"] = inputs["psi2"]
        chosen["activation"] = Moments(mean=0.0, linear=inputs["mu1_sq"] ** 0.5, nonlinear=inputs["mustar_sq"] ** 0.5)
    for key, name in (("psi1", "width_ratio"), ("p_over_n", "ratio"), ("ridge", "ridge"), ("loss", "loss")):
        if key in inputs:
            chosen[name] = inputs[key]
    return chosen


def check(result, outputs, rtol):
    for key, name in OUTPUTS.items():
        if key in outputs:
            np.testing.assert_allclose(float(result[name]), outputs[key], rtol=rtol, err_msg=name)


# -- reference values --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", entries("maxmargin_isotropic"), ids=name_of)
def test_isotropic_reference(entry):
    result = MaxMargin(**parameters_of(entry["inputs"])).theory()
    assert bool(result.separable) == entry["outputs"]["separable"]
    check(result, entry["outputs"], 1e-11)


@pytest.mark.parametrize("entry", entries("maxmargin_rf"), ids=name_of)
def test_random_features_reference(entry):
    law = RandomFeaturesMargin(**parameters_of(entry["inputs"]))
    result, outputs = law.theory(), entry["outputs"]
    assert bool(result.separable) == outputs["separable"]
    check(result, outputs, 1e-11)
    np.testing.assert_allclose(
        separability_threshold(law.labels, law.population.correlation), outputs["sep_ratio"], rtol=1e-10
    )
    if outputs["separable"]:
        point = solve_margin(law.labels, law.population)
        np.testing.assert_allclose([point.signal, point.spread], [outputs["c1"], outputs["c2"]], rtol=1e-10)


@pytest.mark.parametrize("entry", entries("glm_rf"), ids=name_of)
def test_convex_loss_reference(entry):
    check(ConvexLoss(**parameters_of(entry["inputs"])).theory(), entry["outputs"], 1e-11)


@pytest.mark.parametrize("entry", entries("separability_threshold"), ids=name_of)
def test_separability_reference(entry):
    law, rho = MaxMargin(**parameters_of(entry["inputs"])), entry["inputs"]["rho"]
    np.testing.assert_allclose(separability_threshold(law.labels, rho), entry["outputs"]["p_over_n_min"], rtol=1e-10)
    if rho == 1:
        np.testing.assert_allclose(law.separability_ratio(), entry["outputs"]["p_over_n_min"], rtol=1e-10)


def test_separability_width_reference():
    (entry,) = entries("rf_separability_width")
    law = RandomFeaturesMargin(**parameters_of(entry["inputs"]))
    np.testing.assert_allclose(law.separability_width(), entry["outputs"]["psi1_min"], rtol=1e-12)
    np.testing.assert_allclose(RandomFeaturesMargin(sample_ratio=2.0).separability_width(), 0.76843356, atol=5e-9)


# -- limits and invariants ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("link", "strength"), [("sign", 1.0), ("flip", 0.2)])
def test_margin_grows_and_error_falls_with_width(link, strength):
    widths = np.geomspace(1.0, 1000, 9)
    laws = [RandomFeaturesMargin(width_ratio=float(w), link=link, link_strength=strength) for w in widths]
    results = [law.theory() for law in laws if law.width_ratio > law.separability_width()]
    margins, errors, shares = (
        np.array([float(r[name]) for r in results]) for name in ("margin", "classification_error", "support_fraction")
    )
    assert (np.diff(margins) > 0).all()
    assert (np.diff(errors) < 0).all()
    assert (shares <= np.minimum(1, widths[-len(results) :] / 2)).all()


def test_wide_limit():
    result = RandomFeaturesMargin(width_ratio=1e7, sample_ratio=2.0).theory()
    assert float(result.margin) / 1e7**0.5 == pytest.approx(0.40145, abs=5e-6)
    assert float(result.classification_error) == pytest.approx(0.17759, abs=5e-6)


@pytest.mark.parametrize("distance", [1e-4, 1e-2, 0.1])
def test_margin_vanishes_linearly_at_the_threshold(distance):
    law = MaxMargin(link="flip", link_strength=0.2)
    threshold = law.separability_ratio()
    margins = [float(law.replace(ratio=threshold * (1 + d)).theory().margin) for d in (distance, distance / 10)]
    assert margins[0] / margins[1] == pytest.approx(10, rel=0.5 * distance + 1e-4)
    below = law.replace(ratio=threshold * (1 - distance)).theory()
    assert (float(below.separable), float(below.margin)) == (0, 0)
    assert np.isinf([float(below.classification_error), float(below.support_fraction)]).all()


def test_few_features_per_sample_and_noise_free_labels():
    """Margin over p/n and error over p/n tend to constants, at every p/n that a number can represent without rounding to 0."""
    ratios = np.r_[np.geomspace(1e-14, 1e-3, 23), 1e-6 * (1 + 3e-7)]
    limits = [MaxMargin(ratio=ratio).theory() for ratio in ratios]
    margins = np.array([float(limit.margin) for limit in limits]) / ratios
    errors = np.array([float(limit.classification_error) for limit in limits]) / ratios
    np.testing.assert_allclose(margins, margins[0], rtol=1e-3)
    assert margins[0] == pytest.approx(1.0044581323, rel=1e-9)
    np.testing.assert_allclose(errors, errors[0], rtol=1e-3)
    np.testing.assert_allclose(margins[ratios < 1e-7], margins[0], rtol=1e-11)


def test_coin_flips_follow_gardner():
    """For random labels kappa solves n/p = 1 / E(kappa + Z)_+^2."""
    from scipy.stats import norm

    law = MaxMargin(ratio=2.0, link="flip", link_strength=0.5)
    kappa = float(law.theory().margin)
    assert law.separability_ratio() == 0.5
    second_moment = (1 + kappa**2) * norm.cdf(kappa) + kappa * norm.pdf(kappa)
    assert second_moment == pytest.approx(2.0, rel=1e-11)
    assert float(law.theory().classification_error) == pytest.approx(0.5, abs=1e-14)


def test_sign_error_is_an_angle():
    point = solve_margin(Labels(Link("sign")), Isotropic(0.7))
    assert point.error == pytest.approx(np.arccos(point.signal / np.hypot(point.signal, point.spread)) / np.pi, rel=1e-12)


def test_channel_can_be_folded_into_the_link():
    """Features of correlation rho with a sign label are features that contain the score of a probit label."""
    rho = 0.8
    blurred = Labels(Link("probit"), rho / (1 - rho**2) ** 0.5)
    seen = solve_margin(Labels(Link("sign")), Isotropic(0.6, correlation=rho))
    whole = solve_margin(blurred, Isotropic(0.6))
    assert seen.margin == pytest.approx(whole.margin, rel=1e-11)
    assert seen.error == pytest.approx(whole.error, rel=1e-11)


def test_links_as_functions_equal_the_named_ones():
    from scipy.special import expit, ndtr

    for name, function in (("probit", ndtr), ("logit", expit)):
        for law in (MaxMargin(ratio=1.5, link_strength=2.0), ConvexLoss(loss="hinge", link_strength=2.0)):
            named, own = (law.replace(link=link).theory() for link in (name, function))
            for observable in law.observables:
                assert float(own[observable]) == pytest.approx(float(named[observable]), rel=1e-9), (name, observable)


def test_pure_noise_features_and_linear_neurons():
    noise = RandomFeaturesMargin(activation=Moments(0.0, 0.0, 1.0), width_ratio=4.0, sample_ratio=2.0).theory()
    assert float(noise.margin) == pytest.approx(float(MaxMargin(ratio=2.0, link="flip", link_strength=0.5).theory().margin))
    assert float(noise.classification_error) == pytest.approx(0.5)
    wide = RandomFeaturesMargin(activation="identity", width_ratio=50.0, sample_ratio=2.0).theory()
    assert float(wide.latent_correlation) == pytest.approx(1, abs=1e-12)
    assert bool(wide.separable)  # rank d = n/2 and noiseless labels
    assert (
        RandomFeaturesMargin(activation="identity", sample_ratio=4.0, link="flip", link_strength=0.3).separability_width()
        == np.inf
    )


def test_spectral_averages_are_those_of_a_large_matrix():
    rng = np.random.default_rng(0)
    d, width, mu1, mus, gam = 1500, 0.7, 0.5, 0.3, 0.2
    W = rng.standard_normal((round(width * d), d))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    s = np.linalg.eigvalsh(W @ W.T)
    sigma = mu1**2 * s + mus**2
    found = RandomFeatures(width, 2.0, mu1, mus).averages(gam)
    start = (s / sigma).mean()
    wanted = [
        (sigma / (sigma + gam)).mean(),
        (sigma / (sigma + gam) ** 2).mean(),
        (sigma**2 / (sigma + gam) ** 2).mean(),
        (s / (sigma + gam)).mean() / start,
        (s / (sigma + gam) ** 2).mean() / start,
        (s * sigma / (sigma + gam) ** 2).mean() / start,
    ]
    wanted += [1 - wanted[3], wanted[5] - wanted[3] ** 2]
    np.testing.assert_allclose(np.array(found[:7], dtype=float), wanted[:7], rtol=2e-3)
    np.testing.assert_allclose(float(found.variance), wanted[7], atol=2e-3)  # a difference of two averages
    np.testing.assert_allclose(found.E2, found.E1 - gam * found.E12, rtol=1e-12)
    np.testing.assert_allclose(found.W2, found.W1 - gam * found.W12, rtol=1e-12)


@settings(max_examples=25)
@given(
    st.floats(-2, 2), st.floats(-2, 2), st.sampled_from(["sign", "probit", "logit", "flip"]), st.floats(0.01, 0.5),
    st.sampled_from(["relu", "tanh", "identity", "square"]),
)  # fmt: skip
def test_anywhere(log_width, log_samples, link, strength, activation):
    law = RandomFeaturesMargin(
        width_ratio=10**log_width, sample_ratio=10**log_samples, link=link, link_strength=strength, activation=activation
    )
    result = law.theory()
    if not bool(result.separable):
        assert float(result.margin) == 0
        return
    assert float(result.margin) > 0
    assert 0 <= float(result.classification_error) <= 0.5 + 1e-12
    assert 0 < float(result.support_fraction) <= min(1, law.population.load) * (1 + 1e-12)


# -- convex losses ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("link", "strength"), [("probit", 2.0), ("flip", 0.1)])
def test_square_loss_is_ridge_regression(link, strength):
    law = ConvexLoss(loss="square", link=link, link_strength=strength, ridge=0.05)
    size = law.labels.correlation
    ridge = RandomFeaturesRidge(
        width_ratio=law.width_ratio, sample_ratio=law.sample_ratio, ridge=law.ridge / law.width_ratio, signal=size,
        noise=(1 - size**2) ** 0.5,
    ).theory()  # fmt: skip
    result = law.theory()
    assert float(result.train_loss) == pytest.approx(float(ridge.train_error) / 2, rel=1e-10)
    assert float(result.coefficient_norm) == pytest.approx(float(ridge.coefficient_norm), rel=1e-10)


def test_small_ridge_tends_to_the_largest_margin():
    labels = dict(link="probit", link_strength=2.0)
    hard = RandomFeaturesMargin(width_ratio=1.5, **labels).theory()
    error, margin = float(hard.classification_error), float(hard.margin)
    soft = {r: ConvexLoss(loss="squared_hinge", ridge=r, **labels).theory() for r in (1e-5, 1e-6)}
    gaps = [abs(float(result.classification_error) - error) for result in soft.values()]
    assert gaps[0] == pytest.approx(10 * gaps[1], rel=0.02)
    assert float(soft[1e-6].coefficient_norm) ** -0.5 == pytest.approx(margin, rel=1e-4)
    hinge = ConvexLoss(loss="hinge", ridge=1e-3, **labels).theory()  # already there at a positive ridge
    assert float(hinge.classification_error) == pytest.approx(error, rel=1e-10)
    logistic = [
        float(ConvexLoss(loss="logistic", ridge=r, **labels).theory().classification_error) for r in (1e-3, 1e-4, 1e-6)
    ]
    np.testing.assert_allclose(logistic[:2], [0.3536, 0.3588], atol=5e-5)
    assert logistic[0] < logistic[1] < logistic[2] < error


@pytest.mark.parametrize("loss", ["square", "logistic", "hinge", "squared_hinge"])
def test_large_ridge_learns_the_mean(loss):
    """All losses with the same slope at 0 give a = slope E[y u] / ridge, and the same direction."""
    result = ConvexLoss(loss=loss, ridge=1e5).theory()
    slope = 0.5 if loss == "logistic" else 1.0
    law = ConvexLoss()
    mean_square = law.moments.linear**2 * law.labels.correlation**2 * law.width_ratio  # |E y u|^2
    noise = (law.moments.linear**2 + law.moments.nonlinear**2) * law.width_ratio / law.sample_ratio
    assert float(result.coefficient_norm) == pytest.approx((slope / 1e5) ** 2 * (mean_square + noise), rel=1e-3)


@pytest.mark.parametrize("loss", ["square", "hinge", "squared_hinge"])
def test_losses_against_experiment(loss):
    """The default loss is compared by the contract suite; the others here."""
    comparison = ll.compare(ConvexLoss(loss=loss, link="logit", link_strength=2.0), sizes=(20, 40, 80), seeds=12)
    assert comparison.verdict != "disagree", comparison.explanation


# -- experiments --------------------------------------------------------------------------------------------------------------


def test_below_the_threshold_the_comparison_works():
    comparison = ll.compare(RandomFeaturesMargin(width_ratio=0.4), sizes=(20, 40, 80), seeds=10)
    assert comparison.verdict != "disagree"
    assert {row.observable for row in comparison.rows} == {"separable", "margin", "latent_correlation"}
    run = RandomFeaturesMargin(width_ratio=0.4).simulate(40, 0)
    assert (float(run.separable), float(run.margin), float(run.classification_error)) == (0, 0, 1)


def test_sweep_and_plan_across_the_threshold():
    law = MaxMargin(link="flip", link_strength=0.1)
    curve = ll.sweep(law, over={"ratio": [0.2, 0.5, 1.0]})
    assert curve.separable.values.tolist() == [0, 1, 1]
    answer = ll.plan(law, {"margin": 0.5}, solve_for="ratio", bounds=(0.1, 10.0))
    assert float(law.replace(ratio=float(answer.ratio)).theory().margin) == pytest.approx(0.5, rel=1e-8)


@pytest.mark.parametrize("features", ["nonlinear", "linear"])
def test_tanh_with_wrong_labels(features):
    law = RandomFeaturesMargin(activation="tanh", width_ratio=3.0, link="flip", link_strength=0.1, features=features)
    runs, theory = law.simulate_batch(60, range(40)), law.theory()
    for name in ("margin", "classification_error", "support_fraction"):
        error = float(runs[name].std(ddof=1)) / 40**0.5
        assert abs(float(runs[name].mean() - theory[name])) < 5 * error + 0.02  # the finite-size gap at d = 60


def test_exact_error_of_linear_features_is_the_measured_one():
    law = RandomFeaturesMargin(features="linear", link="probit", link_strength=3.0)
    data = LabelledFeatures(law, law.draw(40, 0))
    a = np.random.default_rng(1).standard_normal(data.weights.shape[0]) + 3 * data.weights[:, 0]
    rng = np.random.default_rng(2)
    X = rng.standard_normal((100_000, 40))
    mu = law.moments
    u = mu.mean + mu.linear * X @ data.weights.T + mu.nonlinear * rng.standard_normal((100_000, len(a)))
    wrong = law.labels.draw(rng, X[:, 0]) * (u @ a) <= 0
    assert data.error(a) == pytest.approx(wrong.mean(), abs=5 * wrong.std() / 100_000**0.5)


def test_latent_correlation_of_a_draw():
    law = RandomFeaturesMargin(width_ratio=2.0)
    draws = [LabelledFeatures(law, law.draw(150, seed)).latent_correlation() for seed in range(6)]
    assert np.mean(draws) == pytest.approx(law.population.correlation, abs=0.01)


@pytest.mark.slow
def test_whole_figure_within_three_standard_errors():
    for width in (1.0, 2.0, 4.0, 8.0):
        law = RandomFeaturesMargin(width_ratio=width, sample_ratio=2.0)
        runs, theory = law.simulate_batch(200, range(1000, 1030)), law.theory()
        for name in ("margin", "classification_error"):
            gap = float(runs[name].mean() - theory[name])
            assert abs(gap) < 3 * float(runs[name].std(ddof=1)) / 30**0.5, (width, name, gap)


# -- refusals -----------------------------------------------------------------------------------------------------------------


def test_asymmetric_links_need_centred_activations():
    def link(t):
        return 0.1 + 0.8 * (np.asarray(t) > 0.3)

    with pytest.raises(ValueError, match=r"link = .*activation of mean 0.398942.*intercept"):
        RandomFeaturesMargin(link=link)
    with pytest.raises(ValueError, match="intercept"):
        ConvexLoss(link=link, activation="softplus")
    assert bool(RandomFeaturesMargin(link=link, activation="tanh", width_ratio=4.0).theory().separable)
    assert bool(MaxMargin(link=link, ratio=2.0).theory().separable)


@pytest.mark.parametrize(
    ("kind", "bad", "message"),
    [
        (MaxMargin, dict(ratio=0.0), "ratio = 0.0 is not allowed: must be above 0"),
        (MaxMargin, dict(link="flip"), r"link_strength = 1 .*at most 0.5"),
        (MaxMargin, dict(link="logistic"), "link = 'logistic' is not allowed"),
        (MaxMargin, dict(link=lambda t: t), "between 0 and 1"),
        (MaxMargin, dict(link_strength=-1.0), "link_strength = -1.0 is not allowed"),
        (RandomFeaturesMargin, dict(activation=Moments(1.0, 0.0, 0.0)), "constant"),
        (RandomFeaturesMargin, dict(sample_ratio=-1.0), "sample_ratio"),
        (ConvexLoss, dict(ridge=0.0), "ridge = 0.0 is not allowed: must be above 0"),
        (ConvexLoss, dict(loss="absolute"), "loss = 'absolute' is not allowed"),
    ],
)
def test_refusals(kind, bad, message):
    with pytest.raises(ValueError, match=message):
        kind(**bad)
