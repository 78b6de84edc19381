"""The floor of kernels: reference values, ridge regression, random features, limits; the network that passes it."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limitlab import optimal
from limitlab.laws import RandomFeaturesRidge, Ridge, TwoLayerDynamics, kernel_floor
from limitlab.models.activations import Moments
from references import label, reference

entries = partial(reference, "static_statements")


@pytest.mark.parametrize("entry", entries("kernel_floor"), ids=label)
def test_reference_floor(entry):
    asked, want = entry["inputs"], entry["outputs"]
    found = kernel_floor(asked["sample_ratio"], asked["linear_energy"], asked["nonlinear_energy"], asked["noise"])
    np.testing.assert_allclose(found, want["best_excess_risk"], rtol=entry["tolerance"])
    endless = kernel_floor(np.inf, asked["linear_energy"], asked["nonlinear_energy"], asked["noise"])
    np.testing.assert_allclose(endless, want["floor"], rtol=entry["tolerance"])


def test_reference_feature_learning():
    (entry,) = entries("feature_learning_beats_kernel")
    asked, want = entry["inputs"], entry["outputs"]
    law = TwoLayerDynamics(
        width=asked["width"], sample_ratio=asked["sample_ratio"], noise=asked["noise"], kernel=asked["kernel"], target=asked["target"],
        target_norm=asked["target_norm"], start_second_layer=asked["second_layer"], start_overlap=asked["overlap"],
        times=tuple(np.linspace(0, 16, 81)), solver_steps=300,
    )  # fmt: skip
    excess = float(law.theory().test_error.min()) - asked["noise"] ** 2
    assert excess == pytest.approx(want["best_excess_over_time"], abs=entry["tolerance"])
    linear = asked["target"][1] ** 2 / asked["kernel"][1]
    kernel = float(kernel_floor(asked["sample_ratio"], linear, asked["target_norm"] - linear, asked["noise"]))
    assert kernel == pytest.approx(want["kernel_best"], abs=entry["tolerance"])
    assert excess < asked["target_norm"] - linear < kernel


@given(st.floats(0.1, 50), st.floats(0.05, 3), st.floats(0, 2), st.floats(0.05, 2))
@settings(max_examples=50, deadline=None)
def test_it_is_ridge_regression_at_its_best(ratio, linear, rest, noise):
    effective = np.sqrt(noise**2 + rest)
    law = Ridge(ratio=1 / ratio, noise=effective, signal_energy=(linear,))
    best = float(law.replace(ridge=law.optimal_ridge()).theory().excess_risk)
    np.testing.assert_allclose(kernel_floor(ratio, linear, rest, noise), rest + best, rtol=1e-9)


def test_no_activation_does_better_and_some_do_as_well():
    base = RandomFeaturesRidge(width_ratio=np.inf, sample_ratio=5.0, signal=0.5**0.5, nonlinear_signal=0.3**0.5, noise=0.5)
    floor = float(kernel_floor(5.0, 0.5, 0.3, 0.5))
    for mu1, mus, attained in ((0.6, 0.5, True), (0.5, 0.2, True), (0.3, 0.9, False)):
        law = base.replace(activation=Moments(0.0, mu1, mus))
        best = float(optimal(law, over="ridge", minimise="excess_risk").excess_risk)
        assert best >= floor * (1 - 1e-9)
        assert (abs(best / floor - 1) < 1e-6) == attained


def test_limits():
    assert kernel_floor(2.0, 0.0, 0.3, 0.5) == pytest.approx(0.3)
    assert kernel_floor(0.5, 0.8, 0.0, 0.0) == pytest.approx(0.4)  # noiseless, fewer samples than dimensions: F1^2 (1 - n/d)
    assert kernel_floor(2.0, 0.8, 0.0, 0.0) == pytest.approx(0.0)
    assert kernel_floor(1e-9, 0.8, 0.1, 0.3) == pytest.approx(0.9)  # nothing is learned
    assert np.all(np.diff(kernel_floor(np.geomspace(0.1, 100, 50), 0.5, 0.3, 0.5)) < 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0.0, 1, 1, 1), "sample_ratio = 0 is not allowed"),
        ((1, -1, 1, 1), "linear = -1 is not allowed"),
        ((1, 1, np.inf, 1), "nonlinear = inf is not allowed"),
        ((1, 1, 1, np.nan), "noise = nan is not allowed"),
    ],
)
def test_bad_input(arguments, words):
    with pytest.raises(ValueError, match=words):
        kernel_floor(*arguments)
