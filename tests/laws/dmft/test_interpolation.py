"""Interpolation of pure noise: closed forms, refusals, the experiment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limitlab.laws.dmft.interpolation import InterpolationTransition
from limitlab.testing import check_law
from references import reference

CASES = reference("dmft", "pure_noise_threshold")


@pytest.mark.parametrize("entry", CASES, ids=lambda entry: str(entry["inputs"]["h"]))
def test_reference_values(entry: dict[str, Any]) -> None:
    inputs, outputs = entry["inputs"], entry["outputs"]
    common: dict[str, Any] = dict(samples_per_weight=inputs["alpha"], noise=inputs["tau"], kernel=inputs["h"])
    law = InterpolationTransition(**common)
    np.testing.assert_allclose(law.threshold(), outputs["gamma_GF"], rtol=1e-8)
    np.testing.assert_allclose(float(law.theory().threshold), outputs["gamma_GF"], rtol=1e-8)
    np.testing.assert_allclose(law.reduced().threshold_energy, outputs["E_th"], rtol=1e-8)
    for k, share in enumerate(inputs["gamma_over_gammaGF"]):
        state = law.plateau(share * law.threshold())
        found = (state.response, state.residual / 2, state.slope, state.growth)
        wanted = tuple(outputs[name][k] for name in ("chi", "e_inf", "xhat", "dgamma_ds"))
        np.testing.assert_allclose(found, wanted, rtol=1e-8)


@given(power=st.integers(2, 6), scale=st.floats(0.1, 3.0), ratio=st.floats(0.02, 0.95), noise=st.floats(0.1, 3.0))
def test_pure_powers_have_a_short_formula(power: int, scale: float, ratio: float, noise: float) -> None:
    law = InterpolationTransition(samples_per_weight=ratio, noise=noise, kernel=(0.0,) * power + (scale,))
    wanted = noise * np.sqrt(ratio * power / (2 * (power - 1) * scale * (2 - ratio)))
    np.testing.assert_allclose(law.threshold(), wanted, rtol=1e-10)


@given(kernel=st.tuples(st.just(0.0), *[st.floats(0.05, 1.0)] * 3), ratio=st.floats(0.05, 0.85))
def test_threshold_grows_with_the_samples_and_the_residual_falls_with_gamma(kernel: Any, ratio: float) -> None:
    law = InterpolationTransition(samples_per_weight=ratio, kernel=kernel)
    assert law.replace(samples_per_weight=ratio + 0.05).threshold() > law.threshold()
    residuals = [law.residual(share * law.threshold()) for share in (0.0, 0.2, 0.5, 0.9)]
    assert all(np.diff(residuals) < 0)
    assert residuals[0] == law.noise**2
    assert law.residual(law.threshold()) == 0


def test_edges() -> None:
    assert InterpolationTransition(samples_per_weight=1.5).threshold() == np.inf
    assert InterpolationTransition(noise=0.0).threshold() == 0
    with pytest.raises(ValueError, match="below 1"):
        InterpolationTransition(samples_per_weight=1.5).residual(0.1)
    with pytest.raises(ValueError, match="h\\(0\\) must be 0"):
        InterpolationTransition(kernel=(0.1, 0, 1.0))
    with pytest.raises(ValueError, match="no transition"):
        InterpolationTransition(kernel=(0, 1.0))
    with pytest.raises(ValueError, match="at least 0"):
        InterpolationTransition(kernel=(0, 0, -1.0))


def test_contract() -> None:
    check_law(InterpolationTransition(times=(0.0, 1.0, 2.0), solver_steps=100), sizes=[15, 30, 60], seeds=16)


def test_the_experiment_keeps_its_second_layer():
    """A second layer of zero stays there: nothing is fitted."""
    law = InterpolationTransition(second_layer=0.0, noise=0.7, times=(0.0, 1.0, 4.0))
    np.testing.assert_allclose(law.simulate(20, 0).train_error, 0.49, rtol=1e-12)


def test_wide_networks_approach_the_limit_system():
    """Constant and linear part of the kernel drop out as m grows: the gap falls nearly like 1/m."""
    law = InterpolationTransition(samples_per_weight=0.5, kernel=(0, 0.5, 0.5), times=2.0)
    limit = float(law.theory().train_error)
    gaps = [limit - float(law.finite_width(m, solver_steps=160).theory().train_error) for m in (20, 80)]
    assert gaps[1] > 0
    assert 2.2 < gaps[0] / gaps[1] < 5
