"""The interpolation transition measured from trajectories: limits of decays, thresholds, plateaus, relaxation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limitlab.errors import ConvergenceError
from limitlab.laws.dmft._transition import (
    Decay,
    asymptotic_rate,
    fit_power_law,
    follow_decay,
    late_residual,
    locate_threshold,
    relaxation_rate,
)
from limitlab.laws.dmft.interpolation import InterpolationTransition

SQUARE, CUBE, MIXED = (0, 0, 1.0), (0, 0, 0, 1.0), (0, 0, 0.5, 0.5)


@given(limit=st.floats(0.05, 1), exponent=st.floats(0.4, 1.0), second=st.floats(-0.5, 0.5))
def test_the_limit_of_a_power_law_is_within_its_error(limit: float, exponent: float, second: float) -> None:
    times = np.array([10.0 * 2.0**k for k in range(9)])
    values = limit + times**-exponent + second * times ** (-2 * exponent)
    found = late_residual(Decay(times, values, np.zeros(9)))
    assert abs(found.value - limit) <= found.error + 1e-6
    assert found.error < 0.2


def test_too_few_octaves_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 5"):
        late_residual(Decay(np.ones(4), np.ones(4), np.zeros(4)))


def test_an_effective_threshold_of_early_times_knows_that_it_is_early() -> None:
    law = InterpolationTransition(samples_per_weight=0.3, kernel=SQUARE)
    found = locate_threshold(law, end=40.0, steps=160)
    assert abs(found.value / law.threshold() - 1) < 0.05
    assert abs(found.value - law.threshold()) < 3 * found.error
    slopes = list(found.slopes.values())
    assert slopes[0][-1] > slopes[0][-2]  # below the threshold the decay flattens, above it steepens
    assert slopes[-1][-1] < slopes[-1][-2]


@pytest.mark.parametrize("shares", [(0.9, 0.93, 0.96), (1.12, 1.16)])
def test_a_bracket_without_the_threshold_is_moved(shares: tuple[float, ...]) -> None:
    law = InterpolationTransition(samples_per_weight=0.3, kernel=SQUARE)
    found, wanted = locate_threshold(law, 40.0, 160, shares), locate_threshold(law, 40.0, 160)
    assert abs(found.value / wanted.value - 1) < 0.003


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [SQUARE, CUBE], ids=["square", "cube"])
def test_located_threshold_of_pure_powers(kernel: tuple[float, ...]) -> None:
    """At time 640 the effective threshold is within 1.5 % of the closed form, and its limit within 1 %."""
    law = InterpolationTransition(samples_per_weight=0.3, kernel=kernel)
    found = locate_threshold(law, 640.0, 2560, (0.98, 1.0, 1.02, 1.04), octaves=6)
    assert abs(found.by_octave[-1] / law.threshold() - 1) < 0.015
    assert abs(found.value / law.threshold() - 1) < 0.01
    assert abs(found.value - law.threshold()) < 2 * found.error


def test_plateau_of_a_pure_power() -> None:
    law = InterpolationTransition(samples_per_weight=0.3, kernel=SQUARE)
    gamma = 0.6 * law.threshold()
    found = late_residual(follow_decay(law, gamma, 80.0, 320, octaves=6))
    assert abs(found.value / law.residual(gamma) - 1) < 0.05
    assert abs(found.value - law.residual(gamma)) < 3 * found.error


def test_the_train_error_decays_exponentially_only_above_the_threshold() -> None:
    law = InterpolationTransition(samples_per_weight=0.3, kernel=CUBE)
    above, drift = relaxation_rate(law, 1.8 * law.threshold(), end=24.0, steps=240)
    assert abs(above - 0.371) < 0.03, above  # measured independently on a finer grid
    below, _ = relaxation_rate(law, 0.6 * law.threshold(), end=24.0, steps=240)
    assert below < 0.05 < above
    assert drift < 0.1 * above


def test_the_asymptotic_rate_is_below_the_rate_at_finite_times() -> None:
    law = InterpolationTransition(samples_per_weight=0.3, kernel=CUBE)
    limit = asymptotic_rate(law, 1.8 * law.threshold(), end=24.0, steps=240)
    later, _ = relaxation_rate(law, 1.8 * law.threshold(), end=36.0, steps=360)
    sooner, _ = relaxation_rate(law, 1.8 * law.threshold(), end=24.0, steps=240)
    assert limit.value < later < sooner
    assert abs(limit.value - later) < 3 * (sooner - later) + limit.error


@pytest.mark.parametrize("side", [-1, 1])
def test_a_power_law_is_fitted_with_its_threshold(side: int) -> None:
    x = np.array([1.1, 1.2, 1.3, 1.5, 1.8])
    noise = np.exp(1e-3 * np.array([1, -1, 0.5, -0.5, 0.2]))
    fit = fit_power_law(side * x, 2.0 * (x - 1.02) ** 1.9 * noise)
    assert abs(fit.threshold - side * 1.02) < 4 * fit.error < 0.01
    assert fit.exponent == pytest.approx(1.9, abs=0.02)


def test_a_train_error_below_the_accuracy_is_not_used() -> None:
    law = InterpolationTransition(samples_per_weight=0.3, kernel=CUBE)
    with pytest.raises(ConvergenceError, match="earlier end"):
        asymptotic_rate(law, 1.8 * law.threshold(), end=240.0, steps=960)
    with pytest.raises(ConvergenceError, match="earlier end"):
        relaxation_rate(law, 1.8 * law.threshold(), end=240.0, steps=960)
    with pytest.raises(ConvergenceError, match="earlier end"):
        follow_decay(law, 1.8 * law.threshold(), 240.0, 960)


def test_wide_networks_converge_to_the_limit_like_one_over_width() -> None:
    limit = InterpolationTransition(samples_per_weight=0.5, kernel=(0, 0.5, 0.3, 0.2), second_layer=0.5, times=8.0)
    late = float(limit.theory().train_error)
    gaps = [late - float(limit.finite_width(width, solver_steps=320).theory().train_error) for width in (10, 20, 40)]
    slopes = np.diff(np.log2(gaps))
    assert np.all(np.array(gaps) > 0)
    assert -1.15 < slopes[-1] < slopes[0] < -0.6, (gaps, slopes)
