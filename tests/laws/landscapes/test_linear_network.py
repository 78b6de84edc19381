"""Linear and quadratic networks: reference modes and indices, numerical Hessians, conservation, refusals."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limitlab.laws import LinearNetwork, saddle_index
from limitlab.laws.landscapes._claims import numerical_index
from limitlab.laws.landscapes._linear_network_training import aligned_start, linear_flow
from references import label, reference


@pytest.mark.parametrize("entry", reference("further_dynamics", "deep_linear_modes"), ids=label)
def test_modes_and_half_times(entry):
    given_ = entry["inputs"]
    found = LinearNetwork(
        singular_values=tuple(given_["singular_values"]), start=given_["start"], times=tuple(given_["times"])
    ).theory()
    assert found.modes.dims == ("time", "mode")
    np.testing.assert_allclose(found.modes, entry["outputs"]["modes"], atol=entry["tolerance"])
    np.testing.assert_allclose(found.half_time, entry["outputs"]["half_times"], atol=entry["tolerance"])


@pytest.mark.parametrize("entry", reference("further_dynamics", "landscape_index"), ids=label)
def test_indices(entry):
    given_, want = entry["inputs"], entry["outputs"]
    for network in ("linear", "quadratic"):
        found = saddle_index(given_["spectrum"], given_["hidden"], given_["selected"], network)
        assert found.negative == want["negative_eigenvalues"]
        assert found.lowest == pytest.approx(want[f"smallest_eigenvalue_{network}"], abs=entry["tolerance"])


@pytest.mark.parametrize("hidden", [1, 3])
def test_indices_are_those_of_the_hessian(hidden):
    spectrum = (2.0, 1.4, 0.5)
    for size in range(hidden + 1):
        for chosen in itertools.combinations(range(3), size):
            found = saddle_index(spectrum, hidden, chosen)
            negative, lowest = numerical_index(spectrum, hidden, chosen, quadratic=False)
            assert found.negative == negative
            assert found.lowest == pytest.approx(lowest, abs=1e-10)


def test_the_flow_keeps_the_balance_and_the_axes():
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.standard_normal((3, 3)))[0] for _ in range(2))
    target = left @ np.diag([2.0, 1.0, 0.4]) @ right.T
    path = linear_flow(aligned_start(rng, left, right, 0.05), target, np.eye(3), [0.0, 0.5, 2.0])
    inside = np.einsum("ik,tij,jl->tkl", left, path, right)
    law = LinearNetwork(singular_values=(2.0, 1.0, 0.4), start=0.05, times=(0.0, 0.5, 2.0))
    np.testing.assert_allclose(inside, [np.diag(row) for row in law.theory().modes.values], atol=3e-5)


@settings(max_examples=30)
@given(s=st.floats(0.1, 20), share=st.floats(1e-8, 0.45))
def test_a_mode_rises_from_its_start_to_its_singular_value(s, share):
    law = LinearNetwork(singular_values=(s,), start=s * share, times=(0.0, 1.0 / s, 50.0 / s))
    first, middle, last = law.theory().modes.values[:, 0]
    assert first == pytest.approx(s * share)
    assert first < middle < s
    assert last == pytest.approx(s)
    half = float(law.theory().half_time[0])
    assert float(law.replace(times=half).theory().modes[0]) == pytest.approx(s / 2)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: LinearNetwork(singular_values=(1.0, 2.0)), "singular_values"),
        (lambda: LinearNetwork(singular_values=(1.0,), start=0.6), "start"),
        (lambda: saddle_index([1.0, 1.0], 1, []), "spectrum"),
        (lambda: saddle_index([2.0, 1.0], 1, [0, 1]), "selected"),
        (lambda: saddle_index([2.0, 1.0], 1, [2]), "indices"),
        (lambda: saddle_index([2.0, 1.0], 1, [0], "cubic"), "network"),
    ],
)
def test_refusals(call, match):
    with pytest.raises(ValueError, match=match):
        call()
