"""The XOR mixture: catalogue, success probability, class dynamics, flow at finite noise, chain against full vectors."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from scipy import stats

from limitlab.laws.online_sgd.xor import (
    XorMixture,
    capture_level,
    captured_distribution,
    class_flow,
    class_strength,
    fixed_components,
)
from limitlab.laws.online_sgd.xor_flow import XorDynamics
from limitlab.models.xor_chain import full_xor_run, xor_path
from references import reference

entries = partial(reference, "online_sgd")


@pytest.mark.parametrize("entry", entries("xor_success_probability"), ids=lambda entry: f"K={entry['inputs']['K']}")
def test_success_probability_and_components(entry):
    law = XorMixture(width=entry["inputs"]["K"])
    assert abs(law.success_probability() - entry["outputs"]["p_K"]) < 1e-14
    assert law.fixed_components() == entry["outputs"]["connected_fixed_sets"]


def test_success_probability_by_enumeration():
    for width in (3, 4, 5, 6):
        every = list(itertools.product(range(4), repeat=width))
        counts = np.bincount([len(set(one)) for one in every], minlength=5)
        np.testing.assert_allclose(captured_distribution(width), counts / len(every), atol=1e-15)
        assert XorMixture(width=width).success_probability() == pytest.approx(counts[4] / len(every), abs=1e-15)
    assert XorMixture(width=4).success_probability() == 3 / 32  # not 3/27
    assert math.log((1 - XorMixture(width=61).success_probability()) / 4) / 61 == pytest.approx(math.log(3 / 4), abs=1e-6)


def test_stable_components():
    assert sum(part.stable for part in fixed_components(4)) == 24
    assert sum(part.stable for part in fixed_components(7)) == 1
    assert not any(part.stable for part in fixed_components(3))


@pytest.mark.parametrize(
    "entry", entries("xor_lambda_infinite_class_dynamics"), ids=lambda entry: str(entry["inputs"]["alpha"])
)
def test_class_dynamics(entry):
    given, want = entry["inputs"], entry["outputs"]
    found = class_flow(given["alpha"], given["sum_v0_squared_in_class"], [given["t"]])
    for name, key in (("strength", "S_t"), ("together", "P_t"), ("apart", "N_t")):
        assert abs(found[name][0] - want[key]) < entry["tolerance"] * max(1, abs(want[key]))
    strength = class_strength(given["alpha"])
    assert abs(strength - want["S_star"]) < 1e-9
    assert abs(math.log1p(math.exp(-strength)) - want["limit_loss_data_part_all_classes"]) < 1e-9


@pytest.mark.parametrize("entry", entries("xor_finite_lambda_ballistic"), ids=lambda entry: "K=1")
def test_flow_at_finite_noise(entry):
    given, want = entry["inputs"], entry["outputs"]
    law = XorDynamics(
        snr=given["lambda_"],
        regularizer=given["alpha"],
        step=given["c_delta"],
        start_second_layer=(given["v0"],),
        start_mu=(given["m_mu0"],),
        start_nu=(given["m_nu0"],),
        start_residual=(given["Q0"],),
        times=given["t"],
    )
    found = law.theory()
    for name, key in (("second_layer", "v"), ("overlap_mu", "m_mu"), ("overlap_nu", "m_nu"), ("residual", "Q")):
        np.testing.assert_allclose(found[name].values[0], want[key], rtol=1e-7, atol=1e-7)


def test_quasi_random_averages_agree_with_panels():
    """A second neuron that does nothing leaves the first one alone."""
    one = XorDynamics(times=(5.0,))
    two = one.replace(start_second_layer=(1.0, 0.0), start_mu=(0.2, 0.0), start_nu=(0.1, 0.0), start_residual=(0.9, 0.0))
    panels, points = one.theory(), two.theory()
    for name in one.observables:
        gap = np.abs(points[name].values[0] - panels[name].values[0]).max()
        assert gap < 3 * points[name].attrs["numerical_error"] < 1e-3, name  # a spread of three sets of points
        assert panels[name].attrs["numerical_error"] < 1e-9


def test_several_neurons_against_the_chain():
    law = XorDynamics(
        snr=10.0,
        start_second_layer=(1.0, -0.8, 0.5),
        start_mu=(0.3, 0.1, -0.3),
        start_nu=(0.1, 0.4, 0.2),
        start_residual=(0.5, 0.4, 0.6),
        times=(2.0, 6.0),
    )
    theory, runs = law.theory(), law.simulate_batch(1000, range(12))
    for name in law.observables:
        error = runs[name].std("seed", ddof=1).values / math.sqrt(12)
        assert np.all(np.abs(runs[name].mean("seed").values - theory[name].values) < 5 * error + 5e-3)


def test_chain_has_the_law_of_full_vectors():
    rng, size, steps, runs = np.random.default_rng(5), 30, 90, 250
    v, w = np.array([1.0, -0.7]), rng.standard_normal((2, size)) / math.sqrt(size)
    w[:, 0] += 0.3
    shared = (0.5, 0.05, 1 / size)
    full = np.array(
        [[*(r := full_xor_run(rng, v, w, *shared, steps))[0], *r[1][:, 0], r[1][0, 2:] @ r[1][0, 2:]] for _ in range(runs)]
    )
    gram, counts = w[:, 2:] @ w[:, 2:].T, np.array([steps])
    chain = np.array(
        [
            [*(p := xor_path(rng, v.copy(), w[:, 0].copy(), w[:, 1].copy(), gram.copy(), *shared, size, counts))[0, :, 0],
             *p[1, :, 0], p[3, 0, 0]]
            for _ in range(6 * runs)
        ]
    )  # fmt: skip
    for column in range(full.shape[1]):
        assert stats.ks_2samp(full[:, column], chain[:, column]).pvalue > 1e-5


def test_networks_end_as_the_catalogue_says():
    """Margins of captured classes are S*, and the classes are those that the signs of the start announce."""
    law = XorMixture(width=6, networks=30)
    margins, announced = law.train(law.draw(300, 0))
    captured = margins > capture_level(margins)
    assert np.mean(np.all(captured == announced, axis=1)) > 0.75
    settled = margins[captured & (announced > 0)]
    assert abs(np.median(settled) - law.class_strength()) < 0.1


def test_winning_neurons_win_again():
    """Pruned to one neuron per class and retrained from its own start, a network that succeeded succeeds again."""
    wins, again = XorMixture(width=8, networks=40).lottery_tickets(500, 0)
    assert wins > 15
    assert again / wins > 0.8  # four neurons drawn afresh: 3/32


def test_strong_penalty_leaves_nothing():
    law = XorMixture(width=5, regularizer=0.2, networks=3)
    with pytest.warns(UserWarning, match="1/8"):
        assert float(law.theory().captured_classes) == 0
    assert law.fixed_components() == 1
    assert float(law.simulate(100, 0).captured_classes) == 0


def test_more_quasi_random_points_are_more_accurate():
    start = dict(start_second_layer=(1.0, -0.8), start_mu=(0.3, 0.1), start_nu=(0.1, 0.4), start_residual=(0.5, 0.4))
    law = XorDynamics(times=(2.0,), quasi_points=512, **start)
    found, better = law.theory(), law.replace(quasi_points=8192).theory()
    for name in law.observables:
        assert np.abs(found[name] - better[name]).max() < 3 * found[name].attrs["numerical_error"], name
        assert better[name].attrs["numerical_error"] < found[name].attrs["numerical_error"] / 2, name


def test_flow_refuses_unequal_lengths():
    with pytest.raises(ValueError, match="start_mu"):
        XorDynamics(start_mu=(0.1, 0.2))
