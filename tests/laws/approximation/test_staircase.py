"""The staircase: reference values, sum rules, limits that meet, exact errors given the neurons, planning, refusals."""

from functools import partial

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import limitlab as ll
from limitlab._core.draws import mean_and_error
from limitlab.laws import Staircase, degree_two_step, gegenbauer_coefficients, unexplained_exact
from limitlab.laws.approximation._equivalents import Levels, effective_ridge, tangent_unexplained
from limitlab.laws.approximation.exact import relu_tangent_kernel, spanned, tangent_kernel, unit_rows
from limitlab.laws.approximation.step import decoupled_step, step_strength
from limitlab.models.data import sphere
from limitlab.numerics.spectra import marchenko_pastur
from references import reference

entries = partial(reference, "approximation")
pytestmark = pytest.mark.filterwarnings("ignore:.* has no part of degree")  # tested where it is the point


def tanh_shift(u):
    return np.tanh(u + 0.5)


def activation_of(inputs):
    return "relu" if inputs["activation"] == "relu" else tanh_shift


def waves(rows, columns, shift):
    """The explicit array of the reference file."""
    i, a = np.arange(rows)[:, None], np.arange(columns)
    return np.sin(1 + 1.7 * i + 2.3 * a + 0.5 * i * a + shift)


# -- reference values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", entries("gegenbauer_coefficients"), ids=lambda e: e["inputs"]["activation"])
def test_coefficients(entry):
    inputs, wanted = entry["inputs"], entry["outputs"]
    found = gegenbauer_coefficients(activation_of(inputs), inputs["d"], inputs["k"])
    np.testing.assert_allclose(found.coefficients, wanted["lambda_k"], atol=2e-13)
    np.testing.assert_allclose(found.radial, wanted["nu_k"], atol=2e-13)
    np.testing.assert_array_equal(found.multiplicities, wanted["B_dk"])
    assert found.energy == pytest.approx(wanted["sigma_sq"], abs=2e-13)


@pytest.mark.parametrize("entry", entries("rf_staircase_equivalent"), ids=lambda e: f"{e['inputs']['d']}")
def test_random_features(entry):
    inputs, wanted = entry["inputs"], entry["outputs"]
    law = Staircase(dimension=inputs["d"], width=inputs["N"], activation=activation_of(inputs), degrees=range(6))
    found = law.theory()
    np.testing.assert_allclose(found.unexplained, wanted["residual_k0_to_5"], rtol=1e-9)
    np.testing.assert_allclose(found.effective_ridge, wanted["kappa"], rtol=1e-9)


@pytest.mark.parametrize("entry", entries("nt_staircase_equivalent"), ids=lambda e: e["inputs"]["activation"])
def test_tangent_features(entry):
    inputs, wanted = entry["inputs"], entry["outputs"]
    law = Staircase(model="nt", dimension=inputs["d"], width=inputs["N"], activation=activation_of(inputs), degrees=range(6))
    np.testing.assert_allclose(law.theory().unexplained, wanted["residual_k0_to_5"], rtol=1e-9)


@pytest.mark.parametrize("entry", entries("krr_staircase_equivalent"), ids=lambda e: f"{e['inputs']['d']}")
def test_kernel_ridge(entry):
    inputs, wanted = entry["inputs"], entry["outputs"]
    law = Staircase(
        model="kernel_ridge",
        dimension=inputs["d"],
        samples=inputs["n"],
        ridge=inputs["ridge"],
        noise=inputs["tau2"] ** 0.5,
        degrees=(1, 2, 3),
        signal_energy=inputs["F2_levels_1_up"],
    )
    found = law.theory()
    for key, name in dict(excess_risk="excess_risk", kappa="effective_ridge", gamma="second_degrees_of_freedom").items():
        np.testing.assert_allclose(found[name], wanted[key], rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("entry", entries("rf_approximation_exact"), ids=lambda e: e["inputs"]["activation"])
def test_random_features_given_neurons(entry):
    inputs, wanted = entry["inputs"], entry["outputs"]
    W, activation = waves(inputs["N"], inputs["d"], inputs["s"]), activation_of(inputs)
    np.testing.assert_allclose(
        unexplained_exact(W, range(6), activation), wanted["residual_random_field_k0_to_5"], atol=1e-11
    )
    ridge = unexplained_exact(W, 2, activation, direction=np.eye(inputs["d"])[0])
    np.testing.assert_allclose(ridge, wanted["risk_ridge_target_degree2"], atol=1e-11)


@pytest.mark.parametrize("entry", entries("nt_approximation_exact"), ids=lambda e: e["inputs"]["activation"])
def test_tangent_features_given_neurons(entry):
    inputs, wanted = entry["inputs"], entry["outputs"]
    W = waves(inputs["N"], inputs["d"], inputs["s"])
    found = unexplained_exact(W, range(4), activation_of(inputs), "nt")
    np.testing.assert_allclose(found, wanted["residual_random_field_k0_to_3"], atol=1e-9)


def test_the_cut_of_tangent_features_at_40_degrees_costs_4e_6():
    """The reference follows 40 degrees; the closed form of ReLU follows all, and long series approach it."""
    W = waves(5, 6, 0.0)
    exact = unexplained_exact(W, range(4), "relu", "nt", highest_degree=None)
    gaps = [np.abs(unexplained_exact(W, range(4), "relu", "nt", highest_degree=k) - exact).max() for k in (40, 200)]
    assert 1e-6 < gaps[0] < 1e-5
    assert gaps[1] < 1e-8


@pytest.mark.parametrize("entry", entries("nt_degree2_step"), ids=lambda e: f"{e['inputs']['gamma']:g}")
def test_degree_two_step(entry):
    inputs = entry["inputs"]
    assert degree_two_step(inputs["psi_N_over_d"], inputs["gamma"]) == pytest.approx(entry["outputs"]["r2"], abs=1e-11)


@pytest.mark.parametrize("gamma", entries("nt_degree2_step_wide")[0]["inputs"]["gamma"])
def test_degree_two_step_keeps_its_digits(gamma):
    """Next to psi = 1 the smallest eigenvalues tend to 0; with 160 Gauss nodes the result is off by up to 69 % there."""
    (entry,) = entries("nt_degree2_step_wide")
    column = entry["inputs"]["gamma"].index(gamma)
    found = [degree_two_step(psi, gamma) for psi in entry["inputs"]["psi_N_over_d"]]
    np.testing.assert_allclose(found, [row[column] for row in entry["outputs"]["r2"]], rtol=4e-15, atol=0)


def test_degree_two_step_at_the_ends_of_the_range():
    (entry,) = entries("nt_degree2_step_extreme")
    for psi, gamma, wanted in zip(*entry["inputs"].values(), entry["outputs"]["r2"], strict=True):
        assert degree_two_step(psi, gamma) == pytest.approx(wanted, rel=4e-15, abs=0), (psi, gamma)
    largest = np.finfo(float).max
    assert degree_two_step(largest, 1 / largest) == pytest.approx(1 / 3, rel=1e-13)
    assert degree_two_step(5e-324, largest) == 1
    assert degree_two_step(largest, 5e-324) == pytest.approx(1, rel=1e-13)
    assert degree_two_step(largest, largest) == 0


near_one = st.tuples(st.floats(-15, -0.01), st.sampled_from([-1, 1])).map(lambda x: 1 + x[1] * 10 ** x[0])


@settings(max_examples=100, deadline=None)
@given(near_one | st.floats(-3, 3).map(lambda x: 10**x), st.floats(-12, 15).map(lambda x: 10**x))
def test_degree_two_step_is_between_its_bounds(psi, gamma):
    """1 + x + y is between 1 + x and (1 + x)(1 + y); and the mean of an inverse is at least the inverse of the mean."""
    r, alone = degree_two_step(psi, gamma), float(marchenko_pastur.stieltjes(-1 / gamma / psi, 1 / psi)) / gamma / psi
    rounding = 1e-14 + 1e-15 / max(abs(1 - psi), np.sqrt(1 / gamma))  # 1 / psi and 1 - 1 / psi in `alone`
    assert max(alone**2 * (1 - 2 * rounding), (1 - 1e-14) / (1 + 2 * gamma * psi)) <= r <= alone * (1 + rounding)


# -- sum rules --------------------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.integers(3, 60), st.integers(1, 3000), st.sampled_from(["relu", "gelu", "tanh", tanh_shift]))
def test_random_features_are_counted(dimension, width, activation):
    """sum_k B_k (1 - r_k), the white tail included, is the number of features."""
    known = gegenbauer_coefficients(activation, dimension, range(61))
    levels = Levels(known.levels, known.multiplicities, known.tail)
    assume(width < levels.rank())
    kappa = effective_ridge(width, levels)
    used = (levels.energy / (levels.eigenvalues() + kappa)).sum() + levels.tail / kappa
    assert used == pytest.approx(width, rel=1e-10)


@settings(max_examples=30, deadline=None)
@given(st.integers(3, 60), st.integers(1, 500), st.sampled_from(["relu", "gelu", "sin", tanh_shift]))
def test_tangent_features_are_counted(dimension, width, activation):
    """The same for tangent features: N d of them."""
    known = gegenbauer_coefficients(activation, dimension, range(41))
    seen = known.levels + known.radial_levels > 0
    capacity = known.multiplicities[seen].sum()
    assume(max(known.radial_tail, known.tangential_tail) > 0 or width * dimension < 0.9 * capacity)
    r = tangent_unexplained(width, known)
    along = (known.radial_levels * r).sum() + known.radial_tail
    across = ((known.tangential_levels * r).sum() + known.tangential_tail) / (dimension - 1)
    used = width * (known.radial_levels / along + known.tangential_levels / across) @ r  # sum_k B_k c_k / (1 + c_k)
    tails = width * (known.radial_tail / along + known.tangential_tail / across)
    assert used + tails == pytest.approx(width * dimension, rel=1e-10)


@settings(max_examples=15, deadline=None)
@given(st.integers(3, 7), st.integers(1, 10), st.integers(0, 10**6), st.sampled_from(["rf", "nt"]))
def test_exact_errors_add_up_to_the_rank(dimension, neurons, seed, model):
    """For given neurons: sum_k B_k (1 - r_k) is the rank of the Gram matrix, here of a smooth activation with all degrees."""
    W = sphere(np.random.default_rng(seed), neurons, dimension)
    r = unexplained_exact(W, range(61), tanh_shift, model, highest_degree=60)
    explained = spanned(W, tanh_shift, model, 60, 60).explained(np.arange(61))
    known = gegenbauer_coefficients(tanh_shift, dimension, range(61))
    span = spanned(W, tanh_shift, model, 60, 60)
    rank = np.vdot(span.inverse, tangent_kernel(span.w, span.overlaps, known)) if model == "nt" else neurons
    assert ((r >= 0) & (r <= 1)).all()
    if np.linalg.cond(span.inverse) < 1e7:
        assert known.multiplicities @ explained == pytest.approx(rank, rel=1e-10)
        assert rank == pytest.approx(neurons * (dimension if model == "nt" else 1), rel=1e-7)


def test_exact_relu_features_add_up_slowly():
    """ReLU's coefficients fall like a power: partial sums for 12 neurons in 8 dimensions."""
    many = gegenbauer_coefficients("relu", 8, range(201))
    explained = spanned(waves(12, 8, 0.0), "relu", degree=200).explained(np.arange(201))
    sums = np.cumsum(many.multiplicities * explained)[[20, 60, 200]]
    np.testing.assert_allclose(sums, [11.99642, 11.999816, 11.9999944], rtol=0, atol=1.2e-6)


@pytest.mark.parametrize(("activation", "neurons", "rank"), [("square", 3, 3), ("square", 40, 15), ("cube", 30, 20 + 5)])
def test_polynomial_features_fill_their_space(activation, neurons, rank):
    """In 5 dimensions x^2 sees 1 + 14 functions and x^3 sees 5 + 30; 30 neurons give 30 features."""
    W = sphere(np.random.default_rng(1), neurons, 5)
    r, known = unexplained_exact(W, range(6), activation), gegenbauer_coefficients(activation, 5, range(6))
    assert known.multiplicities @ (1 - r) == pytest.approx(min(neurons, rank if activation == "square" else 35), abs=1e-6)


# -- the exact errors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["rf", "nt"])
def test_more_neurons_never_hurt(model):
    W = sphere(np.random.default_rng(3), 14, 6)
    r = np.array([unexplained_exact(W[:n], range(5), tanh_shift, model) for n in (2, 5, 9, 14)])
    assert (np.diff(r, axis=0) <= 1e-9).all()


@pytest.mark.parametrize("model", ["rf", "nt"])
def test_ridge_targets_are_random_targets_on_average(model):
    rng = np.random.default_rng(5)
    W = sphere(rng, 6, 5)
    directions = sphere(rng, 800, 5)
    each = np.array([unexplained_exact(W, (1, 2, 3), tanh_shift, model, direction=b) for b in directions])
    error = mean_and_error(each)[1]
    assert (np.abs(each.mean(axis=0) - unexplained_exact(W, (1, 2, 3), tanh_shift, model)) < 5 * error).all()


def test_tangent_kernel_against_sampled_inputs():
    """The blocks (9), against the average of s'(u) s'(v) x x' over drawn inputs."""
    rng = np.random.default_rng(7)
    w, d = sphere(rng, 3, 5), 5
    x = sphere(rng, 200_000, d, radius=np.sqrt(d))
    known = gegenbauer_coefficients(tanh_shift, d, range(61))
    slopes = 1 / np.cosh(x @ w.T + 0.5) ** 2
    features = (slopes[:, :, None] * x[:, None, :]).reshape(len(x), -1)
    sampled = features.T @ features / len(x)
    spread = np.sqrt(np.maximum((features**2).T @ features**2 / len(x) - sampled**2, 0) / len(x))
    assert (np.abs(sampled - tangent_kernel(w, w @ w.T, known)) < 5.5 * spread + 1e-12).all()
    steps = ((x @ w.T > 0)[:, :, None] * x[:, None, :]).reshape(len(x), -1)
    sampled = steps.T @ steps / len(x)
    spread = np.sqrt(np.maximum((steps**2).T @ steps**2 / len(x) - sampled**2, 0) / len(x))
    assert (np.abs(sampled - relu_tangent_kernel(w, np.clip(w @ w.T, -1, 1))) < 5.5 * spread + 1e-12).all()


def test_best_fit_against_least_squares_on_many_inputs():
    """r of a ridge target, against a regression on drawn inputs."""
    rng = np.random.default_rng(11)
    w, d = sphere(rng, 7, 4), 4
    x = sphere(rng, 100_000, d, radius=2.0)
    t = x[:, 0] / 2
    target = np.sqrt(9.0) * (4 * t**2 - 1) / 3  # sqrt(B_2) Q_2 in 4 dimensions
    features = np.maximum(x @ w.T, 0)
    left = target - features @ np.linalg.lstsq(features, target, rcond=None)[0]
    assert unexplained_exact(w, 2, direction=np.eye(4)[0])[0] == pytest.approx(np.mean(left**2), rel=0.02)


# -- limits that meet -------------------------------------------------------------------------------------------------


def test_relu_never_learns_odd_degrees():
    """Degree 3 and 5 stay unexplained whatever the width, and the user is told; a shift gives them."""
    for model in ("rf", "nt"):
        law = Staircase(model=model, dimension=12, width=10**6, degrees=(3, 5))
        with pytest.warns(UserWarning, match="relu has no part of degree 3, 5: no number of neurons learns it"):
            assert (law.theory().unexplained == 1).all()
        assert "no part of degree 3, 5" in law.theory().attrs["caveat"]
        r = unexplained_exact(sphere(np.random.default_rng(0), 40, 6), (3, 5), "relu", model, highest_degree=None)
        np.testing.assert_allclose(r, 1, atol=1e-12)
    biased = Staircase(dimension=12, width=10**6, activation=lambda u: np.maximum(u - 0.5, 0), degrees=3).theory()
    assert float(biased.unexplained) < 0.01
    assert "caveat" not in biased.attrs


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(["rf", "nt"]), st.integers(5, 60), st.integers(1, 2000))
def test_shares_fall_with_width(model, dimension, width):
    law = Staircase(model=model, dimension=dimension, width=width, activation=tanh_shift, degrees=range(4))
    r = law.evaluate(width=np.array([width, 2 * width]))["unexplained"]
    assert ((r >= 0) & (r <= 1)).all()
    assert (np.diff(r, axis=0) <= 1e-12).all()


@pytest.mark.parametrize(("model", "ahead"), [("rf", 0), ("nt", 1)])
def test_the_steps_are_at_powers_of_the_dimension(model, ahead):
    """Half way between two steps of a large dimension everything below is learned and nothing above; the lower bound holds."""
    for level in (1, 2):
        law = Staircase(
            model=model, dimension=100_000, width=round(100_000 ** (level + 0.5)), activation=tanh_shift, degrees=range(5)
        )
        r = law.theory().unexplained.values
        learned = level + ahead
        assert (r[: learned + 1] < 0.05).all()
        assert (r[learned + 1 :] > 0.95).all()
        np.testing.assert_array_equal(law.lower_bound(), np.arange(5) > learned)


def test_a_ridgeless_kernel_learns_like_random_features():
    """(14) without a ridge is (7): shares of a kernel on N samples are those of N features."""
    common = dict(dimension=15, activation="softplus", degrees=(0, 1, 2))
    kernel = Staircase(model="kernel_ridge", samples=70, ridge=0.0, noise=0.0, **common).theory()
    np.testing.assert_allclose(kernel.unexplained, Staircase(width=70, **common).theory().unexplained, rtol=1e-10)


def test_more_functions_than_features_are_all_learned():
    law = Staircase(dimension=5, width=16, activation="square", degrees=(0, 1, 2))
    assert law.theory().unexplained.values.tolist() == [0.0, 1.0, 0.0]
    assert (
        Staircase(model="nt", dimension=5, width=16, activation="square", degrees=(0, 2)).theory().unexplained.values.max()
        == 0
    )
    with pytest.raises(ValueError, match="ridge = 0 is not allowed"):
        law.replace(model="kernel_ridge", samples=15, ridge=0.0).theory()


def test_step_law():
    assert degree_two_step(0.0, 2.0) == 1.0
    assert degree_two_step(0.3) == pytest.approx(0.49)
    assert degree_two_step(0.3, 1e9) == pytest.approx(0.49, abs=1e-6)
    assert degree_two_step(2.0) == 0.0
    assert degree_two_step(0.7, 1e-9) == pytest.approx(1.0, abs=1e-8)
    assert degree_two_step(0.7, 0.0) == 1.0
    slope = (1 - degree_two_step(2.5, 1e-6)) / 2e-6  # 1 - r = 2 gamma psi - gamma^2 (2 (psi + psi^2) + 2 psi^2) + ...
    assert slope == pytest.approx(2.5 - 1e-6 * (2.5 * 3.5 + 2.5**2), abs=1e-9)
    assert step_strength("relu") == pytest.approx(1.7519384, abs=1e-7)
    assert step_strength(tanh_shift) == pytest.approx(
        step_strength(ll.models.activations.Activation(tanh_shift, derivative=lambda u: 1 / np.cosh(u + 0.5) ** 2)), rel=1e-9
    )


# -- law and experiment -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", Staircase.check_points(), ids=lambda law: law.model)
def test_budgets_are_small(law):
    found = ll.compare(law)
    assert found.verdict == "agree"
    for row in found.rows:
        scale = float(np.abs(found.dataset[f"theory_{row.observable}"]).max())
        assert row.half_width < 0.05 * scale, row.observable


@pytest.mark.slow
def test_the_gap_shrinks_with_the_dimension():
    """Mean gap between law and exact errors at d = 20, 40, 80, with N = d^2/4."""
    gaps, errors = [], []
    for dimension, seeds in ((20, 40), (40, 20), (80, 4)):
        law = Staircase(dimension=dimension, width=dimension**2 // 4, activation=tanh_shift, degrees=(0, 1, 2, 3))
        runs = law.simulate_batch(dimension, range(seeds)).unexplained.values
        gaps.append(np.abs(runs.mean(axis=0) - law.theory().unexplained.values).max())
        errors.append(mean_and_error(runs)[1].max())
    assert gaps[2] < gaps[0] / 4 + 3 * errors[2]
    assert gaps[2] < 3e-4


@pytest.mark.slow
@pytest.mark.parametrize(("ratio", "seeds"), [(0.5, 12), (1, 8), (2, 3)])
def test_tangent_features_take_the_second_step(ratio, seeds):
    """Exact r_2 at d = 40: within 0.012 of the limit (13), and closer to the corrected equivalent."""
    law = Staircase(model="nt", dimension=40, width=round(40 * ratio), degrees=2)
    r = law.simulate_batch(40, range(seeds)).unexplained.values
    error = mean_and_error(r)[1]
    assert abs(r.mean() - degree_two_step(ratio, step_strength("relu"))) < 0.012
    assert abs(r.mean() - law.degree_two()) < 0.003 + 3 * error
    assert 0.003 + 3 * error < 0.01


def test_the_decoupled_step_is_the_limit_of_the_equivalent():
    gamma = step_strength("relu")
    for psi in (0.3, 1.0, 2.5):
        gaps = []
        for d in (400, 4000):
            law = Staircase(model="nt", dimension=d, width=round(psi * d), degrees=2)
            gaps.append(abs(float(law.theory().unexplained) - decoupled_step(psi, gamma)))
        assert gaps[1] < gaps[0] / 8
        assert decoupled_step(psi, gamma) < degree_two_step(psi, gamma)
    assert decoupled_step(0.2, np.inf) == pytest.approx(decoupled_step(0.2, 1e9), abs=1e-6)
    assert decoupled_step(0.2, 1e15) == pytest.approx(0.6 + 2 / 3 * 1e-15, rel=1e-15)
    assert decoupled_step(0.5, 1e200) == pytest.approx(1e-100, rel=1e-15)


# -- planning and refusals --------------------------------------------------------------------------------------------


def test_neurons_and_samples_can_be_planned():
    law = Staircase(dimension=30, activation=tanh_shift, degrees=2)
    neurons = int(ll.plan(law, {"unexplained": 0.2}, solve_for="width").width)
    assert (
        float(law.replace(width=neurons).theory().unexplained)
        <= 0.2
        < float(law.replace(width=neurons - 1).theory().unexplained)
    )
    tangent = int(ll.plan(law.replace(model="nt"), {"unexplained": 0.2}, solve_for="width").width)
    assert tangent < neurons / 10
    kernel = law.replace(model="kernel_ridge", degrees=(1, 2), signal_energy=(0.5, 0.5), noise=0.1)
    samples = int(ll.plan(kernel, {"excess_risk": 0.2}, solve_for="samples").samples)
    assert float(kernel.replace(samples=samples).theory().excess_risk) == pytest.approx(0.2, rel=0.02)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Staircase(dimension=2), "dimension = 2 is not allowed"),
        (lambda: Staircase(width=0), "width = 0 is not allowed"),
        (lambda: Staircase(model="cnn"), "model = 'cnn' is not allowed"),
        (lambda: Staircase(degrees=(2, 1)), "increasing order"),
        (
            lambda: Staircase(degrees=1, signal_energy=(0.5, 0.5)),
            "signal_energy = .* is not allowed: it has 2 entries for 1 degrees",
        ),
        (lambda: Staircase(activation=lambda u: 0 * u).theory(), "activation = .* is not allowed: it is zero"),
        (lambda: unexplained_exact(np.eye(2), 1), "W of shape"),
        (lambda: unexplained_exact(np.zeros((2, 3)), 1), "must be finite and not zero"),
        (lambda: unexplained_exact(np.eye(3), 1, model="nn"), "model = 'nn' is not allowed"),
        (lambda: unexplained_exact(np.ones((7000, 3)), 1), "7000 features are not allowed: a matrix of 0.4 GB"),
        (lambda: unexplained_exact(np.eye(3), -1), "degrees = -1 is not allowed"),
        (lambda: gegenbauer_coefficients("relu", 5, ()), r"degrees = \(\) is not allowed"),
        (lambda: degree_two_step(-1.0, 2.0), "width_ratio = -1.0 is not allowed"),
        (lambda: degree_two_step(1.0, -2.0), "gamma = -2.0 is not allowed"),
        (lambda: Staircase().degree_two(), "degree_two of model = 'rf' is not allowed"),
        (lambda: step_strength("identity"), "its tangent features are linear or constant"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_a_large_tail_is_said():
    law = Staircase(dimension=200, activation=lambda u: np.sign(np.sin(8 * u)), degrees=1, highest_degree=8)
    assert "raise highest_degree" in law.caveat()


def test_unit_rows():
    np.testing.assert_allclose(np.linalg.norm(unit_rows(waves(4, 6, 0.1)), axis=1), 1)
