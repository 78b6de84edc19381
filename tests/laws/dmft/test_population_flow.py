"""Population flow and mean-field equations: reference values, Lyapunov function, limits that meet, one-pass descent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limitlab.laws.dmft.population import MeanFieldSingleIndex, PopulationFlow, particle_flow
from limitlab.testing import check_law
from references import reference

CASES = [entry for entry in reference("dmft") if entry["law"] in ("mean_field_2d", "population_flow_symmetric")]
SINGLE_INDEX: dict[str, Any] = dict(kernel=(0, 0.5, 0.3, 0.2), target=(0, 0.5, 0.3), target_norm=1.0)


@pytest.mark.parametrize("entry", CASES, ids=lambda entry: entry["law"])
def test_reference_values(entry: dict[str, Any]) -> None:
    inputs = entry["inputs"]
    common = dict(
        kernel=inputs["h"],
        target=inputs["phihat"],
        start_second_layer=inputs["a0"],
        start_overlap=inputs["v0"],
        times=inputs["that"],
    )
    law = MeanFieldSingleIndex(**common) if entry["law"] == "mean_field_2d" else PopulationFlow(width=inputs["m"], **common)
    result = law.theory()
    for name, ours in (("a", "second_layer"), ("v", "overlap"), ("C_o", "correlation")):
        if name in entry["outputs"]:
            np.testing.assert_allclose(result[ours], entry["outputs"][name], rtol=0, atol=entry["tolerance"])


@given(
    a=st.floats(-2, 2),
    v=st.floats(-0.9, 0.9),
    kernel=st.tuples(*[st.floats(0.05, 1.0)] * 4),
    share=st.tuples(*[st.floats(-0.9, 0.9)] * 4),
    width=st.integers(1, 9),
)
@settings(max_examples=25)
def test_the_test_error_never_increases(a: float, v: float, kernel: Any, share: Any, width: int) -> None:
    common: dict[str, Any] = dict(
        kernel=kernel,
        target=tuple(s * c for s, c in zip(share, kernel, strict=True)),
        start_second_layer=a,
        start_overlap=v,
        times=tuple(np.linspace(0, 5, 21)),
    )
    for law in (MeanFieldSingleIndex(**common), PopulationFlow(width=width, **common)):
        error = law.theory().test_error.values
        assert np.all(np.diff(error) < 1e-9)
        assert error[-1] > law.noise**2 - 1e-9


def test_finite_width_approaches_mean_field_like_one_over_width() -> None:
    mean_field = MeanFieldSingleIndex(times=2.0, **SINGLE_INDEX).theory()
    gaps = [
        abs(float(PopulationFlow(width=m, times=2.0, **SINGLE_INDEX).theory().overlap - mean_field.overlap))
        for m in (50, 100, 200)
    ]
    slopes = np.diff(np.log(gaps)) / np.log(2)
    assert np.all(np.abs(slopes + 1) < 0.1), slopes


def test_particles_with_equal_starts_follow_the_two_equations() -> None:
    """In the particle form neuron i sees <v_i, v_i> = v^2 of itself too, as in the limit: equal at every m."""
    law = MeanFieldSingleIndex(times=(1.0, 3.0), **SINGLE_INDEX)
    kernels = law.kernels()
    a, v = particle_flow(
        kernels,
        lambda x: kernels.phihat(x[:, 0]),
        lambda x: kernels.phihat(x, order=1),
        np.ones(7),
        np.full((7, 1), 0.1),
        np.array([1.0, 3.0]),
    )
    theory = law.theory()
    np.testing.assert_allclose(a[:, 3], theory.second_layer, atol=1e-7)
    np.testing.assert_allclose(v[:, 3, 0], theory.overlap, atol=1e-7)


def test_particles_learn_a_target_with_two_directions() -> None:
    """A linear target in 2 of 3 directions and linear neurons: the network (1/m) sum a_i v_i becomes the target."""
    rng = np.random.default_rng(0)
    direction = np.array([0.5, 0.5, 0.0])
    from limitlab.laws.dmft._finite.kernels import Kernels

    v0 = 0.1 * rng.normal(size=(20, 3))
    a, v = particle_flow(
        Kernels((0.0, 0.5), (), 0.0),
        lambda x: x @ direction,
        lambda x: np.tile(direction, (len(x), 1)),
        np.ones(20),
        v0,
        np.array([0.0, 60.0]),
    )
    np.testing.assert_allclose(a[-1] @ v[-1] / 20, [1.0, 1.0, 0.0], atol=1e-3)


def test_saddle_is_kept_exactly() -> None:
    law = MeanFieldSingleIndex(kernel=(0, 0, 0.5), target=(0, 0, 0.5), start_overlap=0.0, times=(1.0, 10.0))
    assert np.all(law.theory().overlap == 0)


@pytest.mark.parametrize("law", [PopulationFlow(times=(0.0, 1.0, 2.0)), MeanFieldSingleIndex(times=(0.0, 1.0, 2.0))])
def test_contract(law: Any) -> None:
    check_law(law, sizes=[6, 12, 24], seeds=8)
