"""Spherical online SGD: reference values, closed forms, recovery times, chain against full vectors."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import erf

from limitlab._core.draws import mean_and_error
from limitlab.errors import Refused
from limitlab.laws.online_sgd._recovery import DiffusiveRecovery
from limitlab.laws.online_sgd._spherical import pair_averages, teacher_student_exponent
from limitlab.laws.online_sgd.mixture import OnlineMixture
from limitlab.laws.online_sgd.pca import OnlinePCA
from limitlab.laws.online_sgd.single_index import OnlineSingleIndex
from limitlab.models.activations import Activation, hermite
from limitlab.models.online import (
    full_overlap_paths,
    hitting_times,
    overlap_extremes,
    overlap_path,
    uniform_overlap,
)
from references import label, reference

entries = partial(reference, "online_sgd")


def scaled_erf(x):
    return erf(x / math.sqrt(2))


def negative_h2(x):
    return -(x**2 - 1) / math.sqrt(2)


OTHER_NAMES = {
    "erf": Activation(scaled_erf, derivative=lambda x: math.sqrt(2 / math.pi) * np.exp(-(x**2) / 2)),
    "He3": Activation("he3"),
    "neg_h2": Activation(negative_h2, derivative=lambda x: -math.sqrt(2) * x),
}


def activation(name):
    return OTHER_NAMES.get(name, name)


def close(got, want, entry):
    tolerance = entry["tolerance"] * np.maximum(1, np.abs(want))
    np.testing.assert_array_less(np.abs(np.asarray(got) - want), tolerance + 1e-300)


def law_of(inputs, **extra):
    common = dict(step=inputs.get("delta", 0.1), start_overlap=inputs.get("m0", 0.0), times=inputs.get("s", 1.0), **extra)
    if inputs.get("model") == "online_pca":
        return OnlinePCA(snr=inputs["snr"], **common)
    if inputs.get("model") == "binary_gmm":
        return OnlineMixture(field=inputs["h"], **common)
    teacher, student = activation(inputs["teacher"]), activation(inputs["student"])
    return OnlineSingleIndex(teacher=teacher, student=student, noise=inputs["noise_std"], **common)


@pytest.mark.parametrize("entry", entries("hermite_coefficients"), ids=label)
def test_hermite_coefficients(entry):
    found = hermite(activation(entry["inputs"]["activation"]), entry["inputs"]["kmax"])
    close(found, np.array(entry["outputs"]["u"]), entry)


@pytest.mark.parametrize("entry", entries("information_exponent"), ids=label)
def test_population_loss_and_exponent(entry):
    law, m, want = law_of(entry["inputs"]), entry["inputs"]["m"], entry["outputs"]
    close(law.population_loss(m), want["phi"], entry)
    close(law.population_slope(m), want["dphi_dm"], entry)
    found = law.information_exponent()
    assert found.order == want["information_exponent"]
    assert found.case == want["sign"].replace("_", " ")
    close(found.derivative, want["kth_derivative_at_0"], entry)


@pytest.mark.parametrize("entry", entries("spherical_sgd_noise_constants"), ids=label)
def test_noise_constants(entry):
    law, want = law_of(entry["inputs"]), entry["outputs"]
    close(law.gradient_noise(0.0), want["G0"], entry)
    close(law.search_noise(), want["V0"], entry)
    if "kappa" in want:
        close(law.recovery(0.5).kappa, want["kappa"], entry)
        close(law.critical_step(), want["delta_critical"], entry)


@pytest.mark.parametrize("entry", entries("spherical_sgd_ballistic"), ids=label)
def test_ballistic_flow(entry):
    law, want = law_of(entry["inputs"]), entry["outputs"]
    close(law.theory().overlap.values, np.array(want["m"]), entry)
    close(law.stable_overlap(), want["stable_fixed_point"], entry)
    if "phi_at_half" in want:
        close(law.population_loss(0.5), want["phi_at_half"], entry)
        close(law.population_slope(0.0), want["dphi_at_0"], entry)
        assert law.information_exponent().order == want["information_exponent"]
    if "G0" in want:
        close(law.gradient_noise(0.0), want["G0"], entry)
    if "V0" in want:
        close(law.search_noise(), want["V0"], entry)
        close(law.critical_step(), want["delta_critical"], entry)


@pytest.mark.parametrize("entry", entries("weak_recovery_time"), ids=label)
def test_recovery_time(entry):
    inputs, want = entry["inputs"], entry["outputs"]
    if "delta0" in inputs:
        law = law_of({**inputs, "delta": 0.1}).recovery(0.5)
        assert isinstance(law, DiffusiveRecovery)
        assert law.order == want["information_exponent"]
        close(law.push, want["c"], entry)
        close(law.blow_up_time(inputs["delta0"]), want["mean_rescaled_time"], entry)
        close(law.blow_up_time(inputs["delta0"]) / inputs["delta0"], want["mean_tau_over_N_pow_k_minus_1"], entry)
        return
    law = law_of(inputs)
    if want["information_exponent"] == 1:
        close(law.recovery_time(inputs["eta"]), want["delta_tau_over_N"], entry)
        return
    found = law.recovery(inputs["eta"])
    close(found.kappa, want["kappa"], entry)
    close(found.spread, want["sigma_inf"], entry)
    close(found.constant, want["C_eta"], entry)
    close(law.recovery_time(inputs["eta"], inputs["N"]), want["mean_delta_tau_over_N"], entry)
    if "std_delta_tau_over_N" in want:
        close(found.std(inputs["N"]), want["std_delta_tau_over_N"], entry)


# -- closed forms ------------------------------------------------------------------------------------------------------

KERNELS = {
    "relu": lambda m: (np.sqrt(1 - m**2) + m * (np.pi - np.arccos(m))) / (2 * np.pi),
    "abs": lambda m: 2 / np.pi * (np.sqrt(1 - m**2) + m * np.arcsin(m)),
    "erf": lambda m: 2 / np.pi * np.arcsin(m / 2),
    "sin": lambda m: np.exp(-1) * np.sinh(m),
    "cos": lambda m: np.exp(-1) * np.cosh(m),
}


@pytest.mark.parametrize("name", KERNELS)
def test_pair_kernels_in_closed_form(name):
    chosen, m = Activation(activation(name)), np.array([-0.999, -0.3, 0.0, 0.4, 0.9, 0.9999, 1.0])
    np.testing.assert_allclose(pair_averages(chosen, chosen).kernel(m), KERNELS[name](m), atol=1e-11)


def test_slope_is_the_derivative_of_the_loss():
    law = OnlineSingleIndex(teacher="tanh", student="gelu")
    m, h = np.linspace(-0.8, 0.8, 9), 1e-5
    difference = (law.population_loss(m + h) - law.population_loss(m - h)) / (2 * h)
    np.testing.assert_allclose(law.population_slope(m), difference, atol=1e-9)


@given(st.sampled_from(["relu", "tanh", "square", "softplus", "h3"]), st.floats(0, 0.5), st.floats(0, 1))
@settings(max_examples=25)
def test_loss_ends_at_the_noise_and_falls(name, noise, m):
    law = OnlineSingleIndex(teacher=name, student=name, noise=noise)
    assert abs(float(law.population_loss(1.0)) - noise**2) < 1e-9
    assert float(law.population_slope(m)) <= 1e-9  # all products of Hermite coefficients are squares
    assert float(law.gradient_noise(m)) >= 0


def test_parseval():
    for name in ("tanh", "relu", "gelu"):
        square = pair_averages(Activation(name), Activation(name)).squares[0]
        partial = np.cumsum(hermite(name, 20) ** 2)
        assert np.all(partial <= square + 1e-12)
        assert partial[-1] > 0.99 * square


def test_user_functions_need_no_derivative():
    by_name = OnlineSingleIndex(teacher="tanh", student="tanh", noise=0.2)
    by_function = OnlineSingleIndex(teacher=np.tanh, student=np.tanh, noise=0.2)
    m = np.array([0.0, 0.3, 0.95])
    np.testing.assert_allclose(by_function.drift(m), by_name.drift(m), atol=1e-9)


def test_teacher_may_jump():
    law = OnlineSingleIndex(teacher=np.sign, student="identity")
    np.testing.assert_allclose(law.population_slope([0.0, 0.7]), -2 * math.sqrt(2 / math.pi), rtol=1e-9)


def test_linear_student_with_too_long_a_step_stops_short():
    """Without noise m = 1 attracts for steps below 1; beyond, the student stops at 1 / (2 step - 1)."""
    for step, end in ((0.9, 1.0), (1.5, 0.5), (2.0, 1 / 3)):
        law = OnlineSingleIndex(teacher="identity", student="identity", step=step, start_overlap=0.0)
        assert abs(law.stable_overlap() - end) < 1e-9
        assert law.interpolation_step() == pytest.approx(1.0, abs=1e-5)


def test_pca_settles_where_the_formula_says():
    for snr, step in ((2.0, 0.5), (1.0, 0.2), (5.0, 3.0)):
        law = OnlinePCA(snr=snr, step=step, start_overlap=0.1)
        assert abs(law.stable_overlap() ** 2 - (snr - step) / (snr * (1 + step))) < 1e-10
    assert OnlinePCA(snr=1.0, step=1.5, start_overlap=0.3).stable_overlap() == pytest.approx(0.0, abs=1e-9)


def test_best_step_needs_the_fewest_samples():
    law = OnlineSingleIndex(teacher="h3", student="h3").recovery(0.5)
    best = law.best_step()
    counts = [law.blow_up_time(step) / step for step in (0.01, 0.05, 0.07, best, 0.1)]
    assert min(counts) == counts[3]
    np.testing.assert_allclose(counts[:3] + counts[4:], [75.18, 15.23, 13.48, 15.53], atol=0.01)


def test_even_exponent_above_two_agrees_with_direct_quadrature():
    """k = 4, the double integral (12) by brute force on the line."""
    found = DiffusiveRecovery(4, 8.0, 20.0, 30.0, 0.5).blow_up_time(0.2)
    a, variance = 0.2 * 20 / 2, 0.2 * 30
    y = np.linspace(0, 12, 40001)
    psi = 2 / variance * (8 * y**4 / 4 - a * y**2 / 2)
    inner = np.empty_like(y)
    for i in range(0, y.size, 20):  # e^{psi(z) - psi(y)} never overflows
        inner[i] = np.trapezoid(np.exp(psi[: i + 1] - psi[i]), y[: i + 1])
    grid = y[::20]
    weight = stats.norm.cdf(grid) * 2 - 1
    direct = 2 / variance * np.trapezoid(weight * inner[::20], grid) - np.log1p(-a / 8 * 12.0**-2) / (2 * a)
    assert found == pytest.approx(direct, rel=2e-4)


# -- simulation --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "law",
    [
        OnlineSingleIndex(teacher="relu", student="relu", noise=0.3, start_overlap=0.3, times=(1.0,)),
        OnlinePCA(start_overlap=0.3, times=(0.7,)),
        OnlineMixture(start_overlap=0.3, times=(2.0,)),
    ],
    ids=lambda law: type(law).__name__,
)
def test_full_vectors_have_the_law_of_the_chain(law):
    size, runs = 60, 300
    full = law.full_experiment(size, range(runs))[:, 0]
    chain = law.simulate_batch(size, range(1000, 1000 + 4 * runs)).overlap.values[:, 0]
    assert stats.ks_2samp(full, chain).pvalue > 1e-5
    assert np.std(chain) > 0.01  # the comparison is of distributions, not of two constants


def test_full_vector_run_does_not_depend_on_its_batch():
    law = OnlinePCA(times=(0.2, 0.5))
    np.testing.assert_array_equal(law.full_experiment(50, [3])[0], law.full_experiment(50, [1, 2, 3])[2])


def test_supercritical_pca_fluctuates_around_the_equator():
    """N m^2 has mean delta (1 + lambda) / (delta - lambda) when the step is above critical: 4 here."""
    model, size = OnlinePCA(snr=1.0, step=2.0).model().compiled(), 1000
    squares = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        path = overlap_path(rng, model, 0.0, size, 2.0, np.arange(5_000, 205_000, 1_000))
        squares.append(size * np.mean(path**2))
    error = mean_and_error(squares)[1]
    assert abs(np.mean(squares) - 4.0) < 5 * error + 0.1
    assert error < 0.4


@pytest.mark.parametrize(
    ("activation", "size", "step", "start", "level", "last"),
    [("identity", 60, 0.3, 0.0, 0.5, 400), ("h3", 30, 0.05, 0.25, 0.6, 6000)],
)
def test_recovery_times_of_full_vectors_have_the_law_of_the_chain(activation, size, step, start, level, last):
    """Exponents 1 and 3: first time, on a grid of marks that both share, above the level (or after the last mark)."""
    model = OnlineSingleIndex(teacher=activation, student=activation, step=step).model()
    marks = np.arange(0, last, last // 100)

    def recovery(paths):
        above = paths > level
        return np.where(above.any(axis=1), marks[np.argmax(above, axis=1)], last)

    full = full_overlap_paths([np.random.default_rng(s) for s in range(150)], model, start, size, step, marks.tolist())
    compiled = model.compiled()
    chain = np.stack([overlap_path(np.random.default_rng(5000 + s), compiled, start, size, step, marks) for s in range(600)])
    assert stats.ks_2samp(recovery(full), recovery(chain)).pvalue > 1e-4
    assert np.std(recovery(chain)) > 0.1 * np.mean(recovery(chain))


def test_recovery_time_of_exponent_two_has_the_predicted_distribution():
    law, size, level = OnlineSingleIndex(teacher="square", student="square", step=0.02), 1600, 0.5
    model, times = law.model().compiled(), []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        start = uniform_overlap(rng, size)
        times.append(hitting_times(rng, model, start, size, law.step, np.array([level]), True, 10**7)[0])
    rescaled = np.array(times) * law.step / size
    predicted = law.recovery(level)
    assert stats.kstest(rescaled, lambda t: predicted.cdf(t, size)).pvalue > 1e-4
    assert abs(rescaled.mean() - predicted.mean(size)) < 5 * predicted.std(size) / math.sqrt(150)


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OnlineSingleIndex(student=np.sign), "student = .* jumps at 0"),
        (lambda: OnlineSingleIndex(teacher=lambda x: np.exp(x**2 / 2)), "teacher .* not allowed"),
        (lambda: OnlineSingleIndex(teacher={"mean": 0.0, "linear": 1.0, "nonlinear": 1.0}), "teacher"),
        (lambda: OnlineSingleIndex().recovery(1.2), "level = 1.2 .* between 0 and 1"),
        (lambda: OnlinePCA(snr=2.0, step=0.5).recovery(0.9), "level = 0.9 .*m = 0.7"),
        (lambda: OnlinePCA(snr=1.0, step=1.5).recovery(0.1), "step = 1.5.*from step 1 on"),
        (lambda: OnlineSingleIndex(teacher="h3", student="relu").recovery(0.5), "no recovery from m > 0.*none"),
        (lambda: OnlineSingleIndex(teacher="h2", student=OTHER_NAMES["neg_h2"]).recovery(0.5), "wrong sign"),
        (lambda: OnlinePCA().recovery_time(0.5), "size = None"),
        (lambda: OnlinePCA().simulate(2, 0), "size = 2 .* at least 3"),
        (lambda: OnlinePCA(times=(1.0, 0.5)), "times = .* in increasing order"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_exponent_none_means_flat_loss():
    law = OnlineSingleIndex(teacher="h3", student="relu")
    assert teacher_student_exponent(law.teacher, law.student).case == "none"
    np.testing.assert_allclose(law.population_slope(np.linspace(-0.9, 0.9, 7)), 0, atol=1e-12)


@pytest.mark.parametrize(("order", "push", "shrink", "noise"), [(3, 6.0, 384.0, 456.0), (4, 20.0, 100.0, 120.0)])
def test_the_distribution_of_the_recovery_time_has_the_mean_of_the_law(order, push, shrink, noise):
    law = DiffusiveRecovery(order=order, push=push, shrink=shrink, noise=noise, level=0.5)
    size, step = 4000, 0.05
    times = np.linspace(0, 60 * law.mean(size, step), 40_001)
    chance = law.cdf(times, size, step)
    assert np.all(np.diff(chance) >= -1e-12)
    assert chance[-1] > 1 - 1e-8
    np.testing.assert_allclose(np.trapezoid(1 - chance, times), law.mean(size, step), rtol=5e-3)


def test_extremes_of_a_run_agree_with_its_path():
    law = OnlinePCA(snr=2.0, step=0.4)
    model, size, steps = law.model().compiled(), 60, 3000
    path = overlap_path(np.random.default_rng(5), model, -0.3, size, law.step, np.arange(steps + 1))
    for two_sided in (False, True):
        end, highest, first, least = overlap_extremes(
            np.random.default_rng(5), model, -0.3, size, law.step, steps, 0.6, two_sided
        )
        track = np.abs(path) if two_sided else path
        above = np.flatnonzero(track > 0.6)
        assert end == track[-1]
        assert highest == np.abs(path).max()
        assert (first, least) == ((above[0], track[above[0] :].min()) if above.size else (np.inf, np.inf))


def test_variance_of_the_search_solves_its_equation():
    law = OnlinePCA(snr=2.0, step=0.3)
    kappa, times = 2 * 2.0 - 0.3 / 2 * 4, np.linspace(0, 1, 2001)
    values = np.array([law.search_variance(t / law.step) for t in times])
    slope = np.gradient(values, times, edge_order=2)
    np.testing.assert_allclose(slope, 2 * kappa * values + law.step * law.search_noise(), rtol=1e-5)
    np.testing.assert_allclose(law.replace(step=2.0).search_variance(0.5), 1 + 2.0 * 12 * 1.0)  # kappa = 0
    with pytest.raises(Refused, match="information exponent 1"):
        OnlineSingleIndex(teacher="identity", student="identity").search_variance(1.0)
