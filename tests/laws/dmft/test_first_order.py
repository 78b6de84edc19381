"""General dynamical mean-field theory of gradient descent: exact least-squares case, tanh reference, simulations, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import i0e, i1e

from limitlab.errors import ConvergenceError
from limitlab.laws.dmft import _losses as losses
from limitlab.laws.dmft._descent import descent_correlations
from limitlab.laws.dmft.first_order import FirstOrderDynamics
from limitlab.laws.dmft.solvable import least_squares_descent
from limitlab.laws.regression.early_stopping import EarlyStopping
from limitlab.testing import check_law
from references import reference

ENTRIES = reference("dmft")
REFERENCE = {entry["law"]: entry for entry in ENTRIES}
FLOWS = [entry for entry in ENTRIES if entry["law"] == "least_squares_gradient_flow"]


def test_least_squares_reference() -> None:
    entry = REFERENCE["least_squares_gd"]
    inputs, outputs = entry["inputs"], entry["outputs"]
    law = FirstOrderDynamics(
        loss="square",
        sample_ratio=inputs["delta"],
        noise=inputs["tau"],
        signal_energy=inputs["rho"],
        start_norm=inputs["q0"],
        start_overlap=inputs["m0"],
        step=inputs["eta"],
        steps=max(inputs["steps"]),
    )
    result = law.theory().isel(time=inputs["steps"])
    np.testing.assert_allclose(result.overlap, outputs["overlap"], atol=1e-8)
    np.testing.assert_allclose(result.train_error / 2, outputs["train_loss"], atol=1e-8)
    np.testing.assert_allclose(result.norm - 2 * result.overlap + inputs["rho"], outputs["param_error"], atol=1e-8)


@pytest.mark.parametrize("entry", FLOWS, ids=lambda entry: f"ratio-{entry['inputs']['delta']}")
def test_gradient_flow_of_least_squares_reference(entry: dict[str, Any]) -> None:
    inputs, outputs = entry["inputs"], entry["outputs"]
    result = least_squares_descent(
        inputs["times"],
        inputs["delta"],
        inputs["tau"],
        signal=inputs["rho"],
        start_norm=inputs["q0"],
        start_overlap=inputs["m0"],
    )
    error = result["norm"] - 2 * result["overlap"] + inputs["rho"]
    np.testing.assert_allclose(error, outputs["param_error"], atol=entry["tolerance"])
    np.testing.assert_allclose(result["test_error"], error + inputs["tau"] ** 2, atol=1e-14)
    np.testing.assert_allclose(result["overlap"], outputs["overlap"], atol=entry["tolerance"])
    np.testing.assert_allclose(result["train_error"] / 2, outputs["train_loss"], atol=entry["tolerance"])


@pytest.mark.parametrize("delta", [0.5, 2.0])
def test_least_squares_from_zero_is_early_stopping(delta: float) -> None:
    times = (0.0, 0.5, 3.0, 20.0)
    flow = least_squares_descent(times, delta, 0.5)
    limit = EarlyStopping(ratio=1 / delta, noise=0.5, times=times).theory()
    np.testing.assert_allclose(flow["test_error"], limit.test_error, atol=1e-9)
    np.testing.assert_allclose(flow["train_error"], limit.train_error, atol=1e-9)


def test_gradient_flow_keeps_its_digits_at_late_times() -> None:
    """As many samples as dimensions: closed forms in Bessel functions; 256 Gauss nodes are off by 2 % at t = 1e4, by 60 % at 1e6."""

    def decay(t: Any) -> Any:  # int e^(-lt) dmu
        return i0e(2 * t) + i1e(2 * t)

    def summed(t: Any) -> Any:  # its integral from 0 to t
        return 2 * t * decay(t) + (i0e(2 * t) - 1) / 2

    t = np.array([0.1, 1.0, 1e2, 1e4, 1e6, 1e9, 1e12])
    flow = least_squares_descent(t, 1.0, 0.5)
    np.testing.assert_allclose(flow["test_error"], decay(2 * t) + 0.25 * (2 * summed(t) - summed(2 * t)) + 0.25, rtol=1e-13)
    np.testing.assert_allclose(flow["overlap"], 1 - decay(t), rtol=1e-13)


@pytest.mark.parametrize("delta", [0.5, 1 - 1e-9, 1 + 1e-9, 1 + 1e-3, 4.0])
def test_gradient_flow_ends_at_least_squares(delta: float) -> None:
    """min(1, delta) / |delta - 1| times the noise's variance, and the signal that no sample sees."""
    found = float(least_squares_descent(1e30, delta, 1.0)["test_error"])
    assert found == pytest.approx(1 + min(1, delta) / abs(delta - 1) + max(0, 1 - delta), rel=4e-15)


def test_small_steps_become_gradient_flow_at_first_order() -> None:
    start: dict[str, Any] = dict(start_norm=0.5, start_overlap=0.2)
    flow = least_squares_descent(1.0, 2.0, 0.5, **start)
    gaps = []
    for steps in (10, 20, 40):
        options: dict[str, Any] = dict(sample_ratio=2.0, noise=0.5, signal_energy=1.0, step=1 / steps, steps=steps)
        law = FirstOrderDynamics(loss="square", **options, **start)
        last = law.theory().isel(time=-1)
        gaps.append([float(last[name] - flow[name]) for name in ("train_error", "test_error", "norm", "overlap")])
        exact = least_squares_descent(steps, 2.0, 0.5, step=1 / steps, **start)
        np.testing.assert_allclose([last[name] for name in exact], list(exact.values()), atol=1e-9)
    orders = np.log2(np.abs(np.array(gaps[:-1]) / np.array(gaps[1:])))
    assert np.all(np.abs(orders - 1) < 0.1), orders


@given(delta=st.floats(0.3, 4.0), noise=st.floats(0.0, 1.0), steps=st.integers(1, 25), overlap=st.floats(-0.7, 0.7))
@settings(max_examples=15, deadline=None)
def test_least_squares_is_exact(delta: float, noise: float, steps: int, overlap: float) -> None:
    step = 0.5 / (1 + np.sqrt(1 / delta)) ** 2
    start: dict[str, Any] = dict(start_norm=0.5, start_overlap=overlap)
    result = descent_correlations(losses.square(noise), delta, step, steps, paths=2 * steps + 20, **start)
    exact = least_squares_descent(np.arange(steps + 1), delta, noise, step=step, **start)
    np.testing.assert_allclose(result.overlap, exact["overlap"], atol=1e-8)
    np.testing.assert_allclose(np.diag(result.correlation), exact["norm"], atol=1e-8)
    np.testing.assert_allclose(result.train_error, exact["train_error"], atol=1e-8)
    np.testing.assert_allclose(result.test_error, exact["test_error"], atol=1e-8)
    assert result.stein_gap < 1e-8


def test_long_descent_stays_exact() -> None:
    """The covariance of the process is singular to rounding after ten steps; the little white noise keeps 120 steps exact."""
    result = descent_correlations(losses.square(0.5), 1.0, 0.2, 120, paths=300)
    exact = least_squares_descent(np.arange(121), 1.0, 0.5, step=0.2)
    np.testing.assert_allclose(result.overlap, exact["overlap"], atol=1e-9)
    np.testing.assert_allclose(result.test_error, exact["test_error"], atol=1e-9)


def test_tanh_reference() -> None:
    entry = REFERENCE["general_dmft_tanh_gd"]
    law = FirstOrderDynamics(sample_ratio=2, noise=0.3, signal_energy=2.0, step=0.5, steps=20, paths=20000)
    result = law.theory().isel(time=entry["inputs"]["steps"])
    for name, ours in (("train_loss", result.train_error / 2), ("q", result.norm), ("overlap", result.overlap)):
        want = np.array(entry["outputs"][name])
        assert np.all(np.abs(ours.values - want) <= entry["tolerance"] * np.maximum(1, want)), name


def test_stein_lemma_agrees_with_differentiation() -> None:
    """Two estimates of the response to the truth, one by differentiating paths and one by Stein's lemma, within sampling error."""
    gaps = [
        descent_correlations(losses.tanh(0.3), 2.0, 0.5, 8, signal=2.0, paths=n, seed=3).stein_gap for n in (1000, 64000)
    ]
    assert gaps[1] < 0.01
    assert gaps[1] < gaps[0]


def test_a_loss_of_the_user_is_differentiated() -> None:
    import jax.numpy as jnp

    own = losses.loss_from_function(lambda r, w, e: 0.5 * (jnp.tanh(w) + 0.3 * e - jnp.tanh(r)) ** 2)
    ours = descent_correlations(losses.tanh(0.3), 2.0, 0.5, 6, signal=2.0, paths=400)
    theirs = descent_correlations(own, 2.0, 0.5, 6, signal=2.0, paths=400)
    np.testing.assert_allclose(theirs.correlation, ours.correlation, atol=1e-12)
    np.testing.assert_allclose(2 * theirs.train_error, ours.train_error, atol=1e-12)


@pytest.mark.parametrize("loss", ["tanh", "logistic"])
def test_gradient_descent_agrees(loss: Any) -> None:
    law = FirstOrderDynamics(loss=loss, steps=8, paths=20000)
    theory, runs = law.theory(), law.simulate_batch(400, range(12))
    kind = "loss" if loss == "logistic" else "error"
    assert law.observed() == (f"train_{kind}", f"test_{kind}", "norm", "overlap", "correlation")
    for name in law.observed():
        error = runs[name].std("seed", ddof=1) / np.sqrt(12) + theory[name].attrs["numerical_error"]
        gap = np.abs(runs[name].mean("seed") - theory[name])
        assert np.all(gap < 5 * error + 4.0 / 400), (name, gap.values)


def test_contract() -> None:
    check_law(FirstOrderDynamics(steps=5), sizes=[40, 80, 160], seeds=16)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="start_overlap = 1"):
        FirstOrderDynamics(start_overlap=1.0)
    with pytest.raises(ValueError, match="width = 2"):
        FirstOrderDynamics(width=2)
    with pytest.raises(ValueError, match="times"):
        least_squares_descent(-1.0, 2.0, 0.5)
    with pytest.raises(ConvergenceError, match="diverges"):
        FirstOrderDynamics(loss="square", step=5.0, steps=40).theory()


def test_a_step_that_overshoots_is_named_and_shorter_ones_are_solved() -> None:
    few = FirstOrderDynamics(sample_ratio=0.01, paths=2000)
    with pytest.raises(
        ConvergenceError, match=r"step = 0.5 is too long for sample_ratio = 0.01.* use a step of at most 0\.017"
    ):
        few.theory()
    assert few.replace(step=0.016).theory().attrs["accuracy"] < 0.1
    with pytest.raises(ConvergenceError, match="paths = 100 is not enough"):
        FirstOrderDynamics(paths=100, steps=60, step=0.68).theory()


def test_the_law_of_a_row_has_the_second_moments_of_the_limit() -> None:
    """For b of mean square rho the second moment of a row is C(k, k), and its correlation with b is the overlap."""
    law = FirstOrderDynamics(loss="square", steps=4, noise=0.5, start_norm=0.7, start_overlap=0.4, ridge=0.1)
    mean, covariance = law.row_law()
    limit = law.theory()
    square = law.signal_energy * mean[:, 0] ** 2 + np.einsum("kkij->kij", covariance)[:, 0, 0]
    np.testing.assert_allclose(square, limit.norm, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(law.signal_energy * mean[:, 0], limit.overlap, rtol=1e-9, atol=1e-12)


def test_rows_after_one_step_have_their_closed_form() -> None:
    """One step from zero: theta_1 = step X'y/n, whose rows have mean step b and variance step^2 (rho + tau^2)/delta."""
    law = FirstOrderDynamics(loss="square", sample_ratio=3.0, noise=0.7, step=0.4, steps=1, signal_energy=1.6)
    mean, covariance = law.row_law()
    assert abs(mean[1, 0] - 0.4) < 1e-9
    assert abs(covariance[1, 1, 0, 0] - 0.4**2 * (1.6 + 0.49) / 3.0) < 1e-9
    x, e = np.random.default_rng(0).standard_normal((6, 2)), np.zeros(6)
    first, second = (theta for theta, _ in law.descent(np.zeros((2, 1)), np.array([[1.0], [0.5]]), x, e))
    np.testing.assert_allclose(second - first, 0.4 * x.T @ (x @ [[1.0], [0.5]]) / 6, atol=1e-12)
