"""Large deviations of SGD: reference rates and probabilities, the closed form of Gaussian noise, limits, weighted against exact."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limitlab.laws import SgdLargeDeviation
from limitlab.laws.online_sgd._exit_probability import gaussian_exit_probability, sign_exit_probability
from limitlab.laws.online_sgd.large_deviation import rate
from references import label, reference

ENTRIES = reference("further_dynamics", "sgd_large_deviation")


@pytest.mark.parametrize("entry", ENTRIES[:3], ids=label)
@pytest.mark.parametrize("noise_law", ["gaussian", "sign"])
def test_rates(entry, noise_law):
    given_ = entry["inputs"]
    found = SgdLargeDeviation(deviation=given_["deviation"], times=given_["time"], noise_law=noise_law).theory()
    assert float(found.rate) == pytest.approx(entry["outputs"][f"rate_{noise_law}_noise"], abs=entry["tolerance"])


@pytest.mark.parametrize("index", range(4))
@pytest.mark.parametrize("noise_law", ["gaussian", "sign"])
def test_probabilities(index, noise_law):
    entry = ENTRIES[3]
    given_, want = entry["inputs"], entry["outputs"][f"minus_step_log_probability_{noise_law}"][index]
    size = round(1 / given_["steps"][index])
    law = SgdLargeDeviation(deviation=given_["deviation"], times=given_["time"], noise_law=noise_law, paths=40_000)
    if noise_law == "gaussian" or index == 0:
        assert -math.log(law.exact_probability(size)) / size == pytest.approx(want, abs=1e-5)
    assert float(law.simulate(size, 0).rate) == pytest.approx(
        want, abs=5 * entry["tolerance"] if index == 0 else entry["tolerance"]
    )


@settings(max_examples=40)
@given(deviation=st.floats(0.01, 5), time=st.floats(0.05, 20))
def test_gaussian_noise_has_a_closed_form_and_signs_are_less_likely_to_stray(deviation, time):
    closed = deviation**2 / -math.expm1(-2 * time)
    assert rate(deviation, time, "gaussian") == pytest.approx(closed, rel=1e-10)
    assert rate(deviation, time, "sign") >= closed * (1 - 1e-9)


def test_signs_cannot_go_further_than_their_longest_path():
    far, time = 1 - math.exp(-1), 1.0
    assert rate(far, time, "sign") == pytest.approx(math.log(2))
    assert math.isinf(float(SgdLargeDeviation(deviation=0.7, times=time, noise_law="sign").theory().rate))
    assert math.isinf(float(SgdLargeDeviation(deviation=0.7, times=time, noise_law="sign").simulate(40, 0).rate))
    assert rate(far * (1 - 1e-6), time, "sign") == pytest.approx(math.log(2), rel=1e-3)


def test_a_small_distance_sees_the_variance_only():
    ratios = [rate(eps, 1.0, "sign") / rate(eps, 1.0, "gaussian") - 1 for eps in (0.02, 0.04)]
    assert ratios[1] / ratios[0] == pytest.approx(4, rel=0.05)


def test_the_transfer_operator_converges_and_adds_up_what_leaves():
    values = [gaussian_exit_probability(1 / 40, 0.5, 40, nodes) for nodes in (150, 300, 600)]
    assert values[1] == pytest.approx(values[2], rel=1e-10)
    rng = np.random.default_rng(0)
    x, out = np.zeros(40_000), np.zeros(40_000, dtype=bool)
    for _ in range(10):
        x = 0.8 * x + 0.2 * rng.standard_normal(x.size)
        out |= np.abs(x) >= 0.5
    exact = gaussian_exit_probability(0.2, 0.5, 10)
    assert out.mean() == pytest.approx(exact, abs=5 * math.sqrt(exact / x.size))


def test_refusals():
    with pytest.raises(ValueError, match="steps = 30"):
        sign_exit_probability(0.1, 0.5, 30)
    with pytest.raises(ValueError, match="deviation"):
        SgdLargeDeviation(deviation=0.0)
