"""Random-features ridge: reference values through the public API, 10^5 random parameter sets, identities, limits, refusals."""

import warnings
from decimal import Decimal, localcontext
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import limitlab as ll
from limitlab.laws import RandomFeaturesRidge
from limitlab.laws.regression._random_features_point import fixed_point
from limitlab.laws.regression.random_features import risk
from limitlab.models.activations import Moments, moments
from references import reference

entries = partial(reference, "random_features")
OUTPUTS = dict(
    B="bias",
    V="variance",
    test="excess_risk",
    train="train_error",
    norm2="coefficient_norm",
    objective="objective",
)
OBSERVABLES = tuple(OUTPUTS.values())
RELU = moments("relu").linear, moments("relu").nonlinear
INF = np.inf


def law_of(inputs, **more):
    activation = Moments(mean=0.0, linear=inputs["mu1_sq"] ** 0.5, nonlinear=inputs["mustar_sq"] ** 0.5)
    return RandomFeaturesRidge(
        width_ratio=inputs.get("psi1", INF),
        sample_ratio=inputs.get("psi2", INF),
        ridge=inputs.get("lam", 1e-3),
        activation=activation,
        signal=inputs.get("F1_sq", 1.0) ** 0.5,
        nonlinear_signal=inputs.get("Fstar_sq", 0.0) ** 0.5,
        noise=inputs.get("tau_sq", 0.0) ** 0.5,
        **more,
    )


# -- reference values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", entries("hermite_coefficients"), ids=lambda e: e["inputs"]["activation"])
def test_moments_of_named_activations(entry):
    mu, wanted = RandomFeaturesRidge(activation=entry["inputs"]["activation"]).moments(), entry["outputs"]
    np.testing.assert_allclose(
        [mu.mean, mu.linear, mu.nonlinear**2], [wanted["mu0"], wanted["mu1"], wanted["mustar_sq"]], rtol=0, atol=1e-11
    )


@pytest.mark.parametrize(
    "entry", entries("rf_ridge"), ids=lambda e: "-".join(f"{x:g}" for x in list(e["inputs"].values())[:4])
)
def test_reference_values(entry):
    found = law_of(entry["inputs"]).theory()
    for key, name in OUTPUTS.items():
        wanted = float(entry["outputs"][key])
        if np.isinf(wanted):  # a linear activation without a ridge, where the limit is finite: see the test below
            continue
        np.testing.assert_allclose(float(found[name]), wanted, rtol=1e-12, atol=1e-15, err_msg=name)
    np.testing.assert_allclose(found.test_error, found.excess_risk + entry["inputs"]["tau_sq"], rtol=1e-14)


def test_norm_of_linear_neurons_is_finite_without_a_ridge():
    """The table of reference values has t * 0 = inf here. The limit lambda -> 0, and least squares itself, say 1.25."""
    (entry,) = [e for e in entries("rf_ridge") if e["outputs"]["norm2"] == "inf"]
    law = law_of(entry["inputs"])
    assert float(law.theory().coefficient_norm) == 1.25
    for ridge in (1e-4, 1e-6, 1e-8):
        np.testing.assert_allclose(law.replace(ridge=ridge).theory().coefficient_norm, 1.25, rtol=20 * ridge)
    drawn = law.replace(activation="identity").simulate_batch(150, range(6)).coefficient_norm
    assert abs(float(drawn.mean()) - 1.25) < 5 * float(drawn.std("seed", ddof=1)) / 6**0.5 + 0.02


@pytest.mark.parametrize("entry", entries("rf_wide_limit") + entries("rf_large_sample_limit"))
def test_infinite_ratios(entry):
    found = law_of(entry["inputs"]).theory()
    np.testing.assert_allclose([found.bias, found.variance], [entry["outputs"]["B"], entry["outputs"]["V"]], rtol=1e-12)


@pytest.mark.parametrize("entry", entries("rf_snr_threshold_wide") + entries("rf_snr_threshold_finite_width"))
def test_snr_threshold(entry):
    np.testing.assert_allclose(law_of(entry["inputs"]).snr_threshold(), float(entry["outputs"]["rho_star"]), rtol=1e-10)


@pytest.mark.parametrize("entry", entries("rf_wide_optimal_lambda") + entries("rf_optimal_lambda"))
def test_optimal_ridge(entry):
    law, wanted = law_of(entry["inputs"]), entry["outputs"]
    best = law.optimal_ridge()
    tolerance = 1e-5 if entry["law"] == "rf_optimal_lambda" else 1e-12  # the former was found by comparing values
    np.testing.assert_allclose(best, wanted["lam_opt"], rtol=tolerance, atol=0)
    np.testing.assert_allclose(law.replace(ridge=best).theory().excess_risk, wanted["risk"], rtol=1e-12)
    generic = ll.optimal(law, over="ridge", minimise="excess_risk")
    np.testing.assert_allclose(generic.excess_risk, wanted["risk"], rtol=1e-12)
    np.testing.assert_allclose(generic.ridge, best, rtol=1e-6, atol=1e-9)


# -- the equation -----------------------------------------------------------------------------------------------------


def random_parameters(count, seed=0):
    """Ratios 1e-3..1e6, ridges 0 and 1e-12..1e4, with thresholds, ratios of 1, linear and blind activations among them."""
    rng = np.random.default_rng(seed)
    psi1, psi2 = 10 ** rng.uniform(-3, 6, (2, count))
    lam = np.where(rng.random(count) < 0.2, 0.0, 10 ** rng.uniform(-12, 4, count))
    equal, ones = rng.random(count) < 0.1, rng.random((2, count)) < 0.03
    psi2 = np.where(equal, psi1, psi2)
    psi1, psi2 = np.where(ones[0], 1.0, psi1), np.where(ones[1], 1.0, psi2)
    infinite = rng.random(count)
    psi1, psi2 = np.where(infinite < 0.02, INF, psi1), np.where(infinite > 0.98, INF, psi2)
    mu1, mus = 10 ** rng.uniform(-3, 1, (2, count))
    kind = rng.random(count)
    mu1, mus = np.where(kind < 0.1, 0.0, mu1), np.where(kind > 0.9, 0.0, mus)
    sizes = np.where(rng.random((3, count)) < 0.2, 0.0, rng.exponential(size=(3, count)))
    return psi1, psi2, lam, mu1, mus, *sizes


def test_a_hundred_thousand_parameter_sets():
    given_ = random_parameters(100_000)
    psi1, psi2, lam, _, mus = given_[:5]
    assert ((psi1 == psi2) & (lam == 0)).sum() > 1000
    with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
        warnings.simplefilter("error")
        limit = risk(*given_)
        point = fixed_point(*given_[:5])
    for name, values in limit.items():
        assert values.shape == (100_000,)
        assert not np.isnan(values).any(), name
        assert (values >= 0).all(), name
    infinite = np.isinf(limit["excess_risk"])
    threshold = (lam == 0) & ((psi1 == psi2) | ((mus == 0) & (psi2 == 1)))
    assert (threshold[infinite]).all()
    assert np.isfinite(limit["train_error"]).all()
    assert np.isfinite(limit["objective"]).all()
    finite = np.isfinite(point.t)
    assert (finite | ((lam == 0) & (mus == 0) & (np.minimum(psi1, psi2) >= 1))).all()
    # (4): g / min(psi) + the smaller share = 1, and the product of the shares is lambda t
    small = np.minimum(point.width_share, point.sample_share)
    residual = np.abs(point.g / np.minimum(psi1, psi2) + small - 1)
    assert residual.max() < 4e-15
    penalty = lam[finite] * point.t[finite]
    product = (point.width_share * point.sample_share)[finite]
    assert (np.abs(product - penalty) <= 4e-15 * penalty).all()


def lecture_polynomials(psi1, psi2, lam, mu1_sq, mus_sq):
    """B and V from the polynomials of degree five in chi = -mu*^2 t, with 60 digits; t by bisection of the same equation."""
    with localcontext() as context:
        context.prec = 60
        p1, p2, r, a, b = (Decimal(x) for x in (psi1, psi2, lam, mu1_sq, mus_sq))

        def excess(t):
            g = b * t + a * t / (1 + a * t)
            return r * t * p1 * p2 - (p1 - g) * (p2 - g) if g < min(p1, p2) else Decimal(1)

        low, high = Decimal("1e-30"), Decimal("1e30")
        while high / low - 1 > Decimal("1e-50"):
            middle = (low * high).sqrt()
            low, high = (middle, high) if excess(middle) < 0 else (low, middle)
        z, x = a / b, -b * low  # zeta^2 and chi
        e0 = (
            -(x**5) * z**3
            + 3 * x**4 * z**2
            + (p1 * p2 - p2 - p1 + 1) * x**3 * z**3
            - 2 * x**3 * z**2
            - 3 * x**3 * z
            + (p1 + p2 - 3 * p1 * p2 + 1) * x**2 * z**2
            + 2 * x**2 * z
            + x**2
            + 3 * p1 * p2 * x * z
            - p1 * p2
        )
        e1 = p2 * x**3 * z**2 - p2 * x**2 * z + p1 * p2 * x * z - p1 * p2
        e2 = (
            x**5 * z**3
            - 3 * x**4 * z**2
            + (p1 - 1) * x**3 * z**3
            + 2 * x**3 * z**2
            + 3 * x**3 * z
            + (-p1 - 1) * x**2 * z**2
            - 2 * x**2 * z
            - x**2
        )
        return float(e1 / e0), float(e2 / e0), float(low)


def test_against_the_published_polynomials():
    """Sixty digits, random parameters over twelve orders of magnitude, the smallest ridges included."""
    rng = np.random.default_rng(5)
    for _ in range(40):
        psi1, psi2 = 10 ** rng.uniform(-2, 3, 2)
        lam, mu1_sq, mus_sq = 10 ** rng.uniform(-10, 2), 10 ** rng.uniform(-2, 1), 10 ** rng.uniform(-2, 1)
        bias, variance, t = lecture_polynomials(psi1, psi2, lam, mu1_sq, mus_sq)
        found = risk(psi1, psi2, lam, mu1_sq**0.5, mus_sq**0.5)
        np.testing.assert_allclose(fixed_point(psi1, psi2, lam, mu1_sq**0.5, mus_sq**0.5).t, t, rtol=1e-13)
        np.testing.assert_allclose([found["bias"], found["variance"]], [bias, variance], rtol=1e-12)


# -- identities -------------------------------------------------------------------------------------------------------

logs = st.floats(-2, 3)
model = dict(
    log_psi1=logs,
    log_psi2=logs,
    log_ridge=st.floats(-7, 3),
    mu1=st.floats(0.05, 2),
    mus=st.floats(0.05, 2),
    signal=st.floats(0, 2),
    rest=st.floats(0, 2),
    noise=st.floats(0, 2),
)


@settings(max_examples=100)
@given(**model)
def test_identities(log_psi1, log_psi2, log_ridge, mu1, mus, signal, rest, noise):
    psi1, psi2, lam = 10**log_psi1, 10**log_psi2, 10**log_ridge
    limit = risk(psi1, psi2, lam, mu1, mus, signal, rest, noise)
    point = fixed_point(psi1, psi2, lam, mu1, mus)
    null = signal**2 + rest**2 + noise**2
    np.testing.assert_allclose(limit["test_error"], limit["excess_risk"] + noise**2, rtol=1e-14)
    np.testing.assert_allclose(
        limit["excess_risk"], signal**2 * limit["bias"] + (noise**2 + rest**2) * limit["variance"] + rest**2, rtol=1e-13
    )
    np.testing.assert_allclose(limit["train_error"], point.sample_share**2 * limit["test_error"], rtol=1e-13)  # GCV
    np.testing.assert_allclose(limit["objective"], limit["train_error"] + lam * psi1 * limit["coefficient_norm"], rtol=1e-11)
    np.testing.assert_allclose(1 + limit["variance"], (point.width_share + point.q / psi1) / point.det, rtol=1e-10)
    assert limit["train_error"] <= limit["objective"] * (1 + 1e-12) <= null * (1 + 1e-11)
    assert 0 < point.g < min(psi1, psi2) * (1 + 1e-12)


@settings(max_examples=50)
@given(**model)
def test_objective_is_concave_in_the_ridge_with_the_norm_as_slope(
    log_psi1, log_psi2, log_ridge, mu1, mus, signal, rest, noise
):
    assume(signal + rest + noise > 0.1)
    psi1, psi2, lam = 10**log_psi1, 10**log_psi2, 10**log_ridge
    step = 1e-4
    limit = risk(psi1, psi2, lam * np.exp([-step, 0.0, step]), mu1, mus, signal, rest, noise)
    slope = (limit["objective"][2] - limit["objective"][0]) / (2 * step * lam)
    scale = limit["objective"][1] / lam
    np.testing.assert_allclose(slope, psi1 * limit["coefficient_norm"][1], rtol=1e-6, atol=1e-11 * scale)


@settings(max_examples=50)
@given(log_scale=st.floats(-3, 3), **model)
def test_scaling_the_activation(log_scale, log_psi1, log_psi2, log_ridge, mu1, mus, signal, rest, noise):
    """sigma -> c sigma with lambda -> c^2 lambda: the same predictions, coefficients divided by c."""
    psi1, psi2, lam, c = 10**log_psi1, 10**log_psi2, 10**log_ridge, 10**log_scale
    one = risk(psi1, psi2, lam, mu1, mus, signal, rest, noise)
    two = risk(psi1, psi2, c**2 * lam, c * mu1, c * mus, signal, rest, noise)
    for name in ("bias", "variance", "test_error", "train_error", "objective"):
        np.testing.assert_allclose(one[name], two[name], rtol=1e-10, atol=1e-14, err_msg=name)
    np.testing.assert_allclose(one["coefficient_norm"], c**2 * two["coefficient_norm"], rtol=1e-10)


# -- limits -----------------------------------------------------------------------------------------------------------


def assert_meets(exact, near, tolerance, names=OBSERVABLES):
    for name in names:
        if np.isfinite(exact[name]):
            np.testing.assert_allclose(near[name], exact[name], rtol=tolerance, atol=tolerance, err_msg=name)
        else:
            assert near[name] > 1e3, name


@pytest.mark.parametrize("mu", [RELU, (1.0, 0.0), (0.0, 1.0)], ids=["relu", "linear", "blind"])
@pytest.mark.parametrize(
    ("psi1", "psi2"), [(0.5, 0.8), (0.8, 0.5), (2.0, 3.0), (3.0, 2.0), (0.5, 4.0), (4.0, 0.5), (INF, 0.7), (2.0, INF)]
)
def test_ridge_zero_is_the_limit_from_above(psi1, psi2, mu):
    sizes = dict(signal=1.2, nonlinear_signal=0.4, noise=0.7)
    assert_meets(risk(psi1, psi2, 0.0, *mu, **sizes), risk(psi1, psi2, 1e-9, *mu, **sizes), 1e-6)


@pytest.mark.parametrize("ratios", [(1.0, 3.0), (3.0, 1.0), (1.0, 1.0), (INF, 1.0), (1.0, INF)])
def test_linear_activation_at_a_ratio_of_one(ratios):
    """Where the rank, the samples and the dimension meet: limits of 0/0, from above in the ridge."""
    exact, near = (risk(*ratios, ridge, 1.0, 0.0, signal=1.2, noise=0.7) for ridge in (0.0, 1e-20))
    assert_meets(exact, near, 2e-6)
    if ratios == (1.0, 1.0):
        np.testing.assert_allclose(exact["bias"], 1 / 3)


@pytest.mark.parametrize("mu", [RELU, (0.0, 1.0)], ids=["relu", "blind"])
def test_threshold_is_infinite(mu):
    at = risk(2.5, 2.5, 0.0, *mu, noise=0.5)
    assert np.isinf([at["bias"], at["variance"], at["excess_risk"], at["coefficient_norm"]]).all()
    assert at["train_error"] == at["objective"] == 0
    ridge = np.array([1e-14, 1e-12])
    top = risk(2.5, 2.5, ridge, *mu, noise=0.5)["excess_risk"]
    np.testing.assert_allclose(np.log(top[0] / top[1]) / np.log(1e-2), -0.5, atol=1e-4)
    silent = risk(2.5, 2.5, 0.0, *mu, signal=0.0, noise=0.0)  # nothing there: nothing infinite
    assert silent["excess_risk"] == silent["coefficient_norm"] == 0


@pytest.mark.parametrize("ridge", [0.0, 1e-3, 0.5])
def test_infinite_ratios_are_limits(ridge):
    sizes = dict(signal=1.2, nonlinear_signal=0.4, noise=0.7)
    names = ("bias", "variance", "excess_risk", "train_error", "objective", "coefficient_norm")
    assert_meets(risk(INF, 3.0, ridge, *RELU, **sizes), risk(1e9, 3.0, ridge, *RELU, **sizes), 1e-6, names)
    assert_meets(risk(3.0, INF, ridge, *RELU, **sizes), risk(3.0, 1e9, ridge, *RELU, **sizes), 1e-6, names)
    if ridge:
        both = risk(INF, INF, ridge, *RELU, **sizes)
        assert_meets(both, risk(1e9, 3e9, ridge, *RELU, **sizes), 1e-6, names)
        np.testing.assert_allclose(both["bias"], (ridge / (ridge + RELU[0] ** 2)) ** 2, rtol=1e-12)


def test_closed_forms():
    below = risk([0.3, 1.0, 2.0], 3.0, 0.0, *RELU)  # underparametrised: V does not see the activation
    np.testing.assert_allclose(below["variance"], np.array([0.3, 1.0, 2.0]) / (3 - np.array([0.3, 1.0, 2.0])), rtol=1e-14)
    ordinary = risk(5.0, [1.5, 4.0], 0.0, 1.0, 0.0, noise=1.0)
    np.testing.assert_array_equal(ordinary["bias"], 0)
    np.testing.assert_allclose(ordinary["variance"], 1 / np.array([0.5, 3.0]), rtol=1e-14)
    blind = risk(2.0, 3.0, [0.0, 0.1], 0.0, 1.0)
    np.testing.assert_allclose(blind["bias"], 1 + blind["variance"], rtol=1e-14)
    for nothing in (risk(2.0, 3.0, INF, *RELU, 1.2, 0.4, 0.7), risk(1e-12, 3.0, 0.1, *RELU, 1.2, 0.4, 0.7)):
        np.testing.assert_allclose([nothing["bias"], nothing["variance"]], [1, 0], atol=1e-9)
        np.testing.assert_allclose(nothing["train_error"], 1.44 + 0.16 + 0.49, rtol=1e-9)


def test_linear_features_are_ridge_regression():
    """psi1 -> infinity with a linear activation is ridge regression on the inputs, whose limit has another derivation."""
    psi2, lam, noise = 1.7, 0.2, 0.6
    features = risk(INF, psi2, lam, 1.0, 0.0, noise=noise)
    plain = ll.laws.Ridge(ratio=1 / psi2, ridge=lam, noise=noise).theory()  # W'W/N -> 1/d: the penalties agree
    np.testing.assert_allclose(features["excess_risk"], plain.excess_risk, rtol=1e-12)
    np.testing.assert_allclose(features["train_error"], plain.train_error, rtol=1e-12)


# -- arguments --------------------------------------------------------------------------------------------------------


def test_activation_by_name_function_or_moments():
    named = RandomFeaturesRidge(activation="relu").theory()
    mu = moments("relu")
    for activation in (lambda x: np.maximum(x, 0), mu):
        given_ = RandomFeaturesRidge(activation=activation).theory()
        np.testing.assert_allclose(given_.test_error, named.test_error, rtol=1e-10)
    shifted = RandomFeaturesRidge(activation=lambda x: np.maximum(x - 0.3, 0))  # a kink that has to be found
    density, tail = np.exp(-0.045) / np.sqrt(2 * np.pi), 0.3820885778110474
    np.testing.assert_allclose(shifted.moments().linear, tail, rtol=1e-11)
    np.testing.assert_allclose(shifted.moments().mean, density - 0.3 * tail, rtol=1e-11)
    with pytest.raises(ValueError, match="moments but no values"):
        RandomFeaturesRidge(activation=mu).simulate(20, 0)


def test_constant_part():
    learned = RandomFeaturesRidge(activation="relu", constant=2.0)
    assert learned.theory().identical(learned.theory())
    np.testing.assert_array_equal(learned.theory().excess_risk, learned.replace(constant=0.0).theory().excess_risk)
    with pytest.warns(UserWarning, match="constant = 2 cannot be learned.*'tanh'"):
        odd = RandomFeaturesRidge(activation="tanh", constant=2.0, nonlinear_signal=1.5)
    folded = RandomFeaturesRidge(activation="tanh", nonlinear_signal=2.5)
    np.testing.assert_allclose(odd.theory().excess_risk, folded.theory().excess_risk, rtol=1e-14)
    assert odd.signal_to_noise() == pytest.approx(folded.signal_to_noise())


def test_blind_activation_warns():
    with pytest.warns(UserWarning, match=r"signal = 1 cannot be learned.*mu1 = 0"):
        law = RandomFeaturesRidge(activation="square")
    assert float(law.theory().bias) > 1
    assert law.optimal_ridge() == INF


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(activation=Moments(1.0, 0.0, 0.0)), "activation = 'moments' is not allowed.*constant"),
        (dict(activation=lambda x: np.full_like(x, np.nan)), "activation = .*finite"),
        (dict(width_ratio=INF, sample_ratio=INF, ridge=0.0), "ridge = 0 is not allowed.*both infinite"),
    ],
)
def test_refusals(change, message):
    with pytest.raises(ValueError, match=message):
        RandomFeaturesRidge(**change)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 1.0, 0.1, 0.5, 0.3), "width_ratio = 0 "),
        ((1.0, [1.0, -2.0], 0.1, 0.5, 0.3), "sample_ratio = -2 "),
        ((1.0, 1.0, -0.1, 0.5, 0.3), "ridge = -0.1 "),
        ((1.0, 1.0, 0.1, 0.0, 0.0), "nonlinear = 0 .*constant activation"),
        ((1.0, 1.0, 0.1, 0.5, -0.3), "nonlinear = -0.3 "),
        ((INF, INF, 0.0, 0.5, 0.3), "ridge = 0 .*both infinite"),
        ((1.0, 1.0, np.nan, 0.5, 0.3), "ridge = nan"),
    ],
)
def test_array_form_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        risk(*arguments)


def test_infinite_ratio_has_no_experiment():
    with pytest.raises(ValueError, match="width_ratio = inf is not allowed in a simulation"):
        RandomFeaturesRidge(width_ratio=INF).simulate(20, 0)
    with pytest.raises(ValueError, match="takes one value of activation at a time"):
        RandomFeaturesRidge().evaluate(activation="tanh")


# -- a target function of one direction -----------------------------------------------------------------------------------


def quadratic(x):
    return 0.4 - 1.1 * x + 0.7 * (x**2 - 1) / np.sqrt(2)


def test_a_quadratic_target_function_has_the_limit_of_its_parts():
    options = dict(width_ratio=3.0, sample_ratio=2.0, ridge=0.02, noise=0.4)
    own = RandomFeaturesRidge(target_function=quadratic, **options)
    parts = RandomFeaturesRidge(signal=1.1, nonlinear_signal=0.7, constant=0.4, **options)
    assert own.target_parts() == pytest.approx((1.1, 0.7, 0.4), abs=1e-12)
    assert own.signal_to_noise() == pytest.approx(parts.signal_to_noise(), rel=1e-12)
    for name in OBSERVABLES:
        assert float(own.theory()[name]) == pytest.approx(float(parts.theory()[name]), abs=1e-8), name


def test_a_target_function_without_learnable_constant_and_with_a_jump():
    with pytest.warns(UserWarning, match=r"constant = 0\.5 cannot be learned"):
        law = RandomFeaturesRidge(activation="tanh", target_function=lambda x: 1.0 * (x > 0))
    linear = 1 / np.sqrt(2 * np.pi)
    same = law.replace(target_function=None, signal=linear, nonlinear_signal=np.sqrt(0.5 - linear**2), constant=0.0)
    assert float(law.theory().excess_risk) == pytest.approx(float(same.theory().excess_risk), abs=1e-8)


def test_compare_agrees_for_a_target_function_that_jumps():
    law = RandomFeaturesRidge(width_ratio=2.0, sample_ratio=3.0, ridge=0.5, noise=0.4, target_function=np.sign)
    assert ll.compare(law, sizes=[30, 60, 120], seeds=100).verdict == "agree"


def test_a_draw_with_drawn_labels_contains_the_target_function():
    def mean_risk(g):
        law = RandomFeaturesRidge(width_ratio=2.0, sample_ratio=3.0, ridge=0.5, noise=0.4, labels="drawn", target_function=g)
        return np.mean([float(law.simulate(60, seed=seed).excess_risk) for seed in range(8)])

    low, high = mean_risk(np.sin), mean_risk(lambda x: 3 * np.sin(x))
    assert 5 < high / low < 10  # nine times, apart from the noise


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            dict(target_function="sin", signal=2.0),
            "signal = 2 is not allowed together with target_function, which has signal = 0.606531",
        ),
        (dict(target_function="sin", constant=0.1), "omit constant, or scale the function"),
        (dict(target_function=Moments(0.0, 1.0, 0.5)), "target_function is not allowed as moments"),
        (dict(target_function=np.log), "it is not finite at"),
    ],
)
def test_refused_target_functions(changes, message):
    with pytest.raises(ValueError, match=message):
        RandomFeaturesRidge(**changes)


def test_a_grid_of_signals_is_refused_with_a_target_function():
    with pytest.raises(ValueError, match="together with target_function"):
        RandomFeaturesRidge(target_function="sin").evaluate(signal=[0.5, 1.0])
    with pytest.raises(ValueError, match="nonlinear_signal must be 0"):
        RandomFeaturesRidge(target_function="sin").best_possible()
