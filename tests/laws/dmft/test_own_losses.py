"""Losses whose gradient jumps: responses from shifts and Stein's identity against gradient descent, and refusals of losses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from limitlab.errors import ConvergenceError
from limitlab.laws import FirstOrderDynamics
from limitlab.laws.dmft import _losses as losses
from limitlab.laws.dmft._descent import descent_correlations
from limitlab.laws.dmft._jumps import jumping_arguments
from limitlab.laws.dmft._losses import as_vector
from limitlab.laws.dmft.sample_loss import SampleLoss
from limitlab.testing import check_law
from references import reference

RUNS = {entry["law"]: entry for entry in reference("own_losses")}


def sign(w: Any) -> Any:
    return jnp.where(w >= 0, 1.0, -1.0)


LOSSES: dict[str, Any] = {
    "huber": lambda r, w, e: jnp.where(jnp.abs(r - w - e) < 1, (r - w - e) ** 2 / 2, jnp.abs(r - w - e) - 0.5),
    "logistic of signs": lambda r, w, e: jnp.logaddexp(0.0, -sign(w) * r),
    "hinge of signs": lambda r, w, e: jnp.maximum(1 - sign(w) * r, 0),
    "absolute": lambda r, w, e: np.abs(r - w - e),  # NumPy, so that the gradient is computed by differences
    "relu neuron": lambda r, w, e: (jnp.maximum(w, 0) + e - jnp.maximum(r, 0)) ** 2 / 2,
    "quantile": lambda r, w, e: jnp.maximum(0.8 * (w + e - r), -0.2 * (w + e - r)),
    "squared hinge": lambda r, w, e: jnp.maximum(1 - sign(w) * r, 0) ** 2 / 2,
    "truncated": lambda r, w, e: jnp.minimum((r - w - e) ** 2, 1) / 2,
    "labels of three levels": lambda r, w, e: (r - jnp.sign(w) * (jnp.abs(w) > 0.5) - e) ** 2 / 2,
}
START: dict[str, Any] = {"relu neuron": dict(start_norm=0.5, start_overlap=0.3)}


def law_of(name: str, **changes: Any) -> FirstOrderDynamics:
    given: dict[str, Any] = dict(
        loss=LOSSES[name], noise=0.3, sample_ratio=2, step=0.3, steps=10, signal_energy=1.0, **START.get(name, {})
    )
    return FirstOrderDynamics(**{**given, **changes})


# -- gradient descent --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LOSSES)
def test_losses_agree_with_gradient_descent_at_two_sizes(name: str) -> None:
    """The recorded runs (tests/reference/own_losses.py) are written in NumPy, with gradients by hand, and share no code with limitlab."""
    theory = law_of(name).theory()
    assert theory.attrs["accuracy"] < 0.06
    for size, run in RUNS[name]["outputs"].items():
        for quantity in ("overlap", "norm"):
            limit, accuracy = float(theory[quantity][-1]), theory[quantity].attrs["numerical_error"]
            error = np.hypot(run[f"{quantity}_error"], accuracy / 4)  # the accuracy is four standard errors
            assert abs(run[quantity] - limit) < 3 * error, (name, size, quantity, run[quantity], limit)


def test_the_experiment_is_gradient_descent_with_the_same_loss() -> None:
    """The experiment of the law against the recorded runs."""
    runs = law_of("hinge of signs").simulate_batch(200, range(40)).isel(time=-1)
    for quantity in ("overlap", "norm"):
        run = RUNS["hinge of signs"]["outputs"]["400"]
        error = np.hypot(run[f"{quantity}_error"], float(runs[quantity].std(ddof=1)) / np.sqrt(40))
        assert abs(float(runs[quantity].mean()) - run[quantity]) < 3.5 * error + 2 / 200


def test_named_losses_with_jumps_are_the_same_as_functions() -> None:
    for name, own in (("absolute", "absolute"), ("hinge", "hinge of signs")):
        options: dict[str, Any] = dict(noise=0.3 if name == "absolute" else 0.0, steps=5, paths=2000)
        named, function = law_of(own, loss=name, **options).theory(), law_of(own, **options).theory()
        for quantity in ("norm", "overlap", "test_loss"):
            np.testing.assert_allclose(named[quantity], function[quantity], atol=1e-4)


# -- both ways to compute responses ------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 2])
def test_shifts_agree_with_derivatives_for_smooth_losses(width: int) -> None:
    smooth = losses.committee(0.3, width) if width > 1 else losses.tanh(0.3)
    start = np.array([[1.0, 0.3], [0.3, 1.0]])[:width, :width]
    options: dict[str, Any] = dict(start_norm=start, start_overlap=np.full((width, 1), 0.2), paths=20000)
    exact, shifted = ([], [])
    for seed in range(12):
        exact.append(descent_correlations(smooth, 2.0, 0.6, 6, seed=seed, **options).overlap.ravel()[-1])
        by_shifts = replace(smooth, second=None, cross=None, jumps=("r",))
        shifted.append(descent_correlations(by_shifts, 2.0, 0.6, 6, seed=seed, **options).overlap.ravel()[-1])
    gaps = np.subtract(shifted, exact)
    assert abs(gaps.mean()) < 4 * gaps.std(ddof=1) / np.sqrt(12), gaps


def test_halving_the_shift_changes_little() -> None:
    loss, options = losses.hinge(0.0), dict(paths=16000)
    wide, narrow = (descent_correlations(loss, 2.0, 0.3, 8, shift=shift, **options).overlap for shift in (0.2, 0.1))
    assert np.abs(wide - narrow).max() < 2e-3


def test_wrong_derivatives_are_an_error() -> None:
    """The derivative of the gradient of a ReLU neuron at almost every point lacks the jump; so does a lost term of tanh."""
    neuron = losses.loss_from_function(LOSSES["relu neuron"])
    with pytest.raises(ConvergenceError, match="contradict"):
        descent_correlations(replace(neuron, jumps=()), 2.0, 0.3, 10, start_norm=0.5, start_overlap=0.3, paths=60000)
    tanh = losses.tanh(0.3)
    assert tanh.second is not None
    wrong = replace(tanh, second=lambda r, w, e: (1 - np.tanh(r) ** 2) ** 2)
    with pytest.raises(ConvergenceError, match="contradict"):
        descent_correlations(wrong, 2.0, 0.5, 6, start_norm=0.5, start_overlap=0.3, paths=20000)


@pytest.mark.parametrize(
    ("name", "jumps"),
    [
        ("huber", ()),
        ("logistic of signs", ("w",)),
        ("hinge of signs", ("r", "w")),
        ("absolute", ("r", "w")),
        ("relu neuron", ("r",)),
        ("squared hinge", ("w",)),
        ("labels of three levels", ("w",)),
    ],
)
def test_jumps_are_located(name: str, jumps: tuple[str, ...]) -> None:
    loss = as_vector(losses.loss_from_function(LOSSES[name]))
    assert jumping_arguments(loss, np.eye(1), np.zeros((1, 1)), 13.3) == jumps


# -- a law like every other --------------------------------------------------------------------------------------------


def test_contract_of_a_loss_with_jumps() -> None:
    check_law(
        FirstOrderDynamics(loss="hinge", steps=4, ridge=0.2, noise=0.4, start_norm=0.6, start_overlap=0.3),
        sizes=[40, 80, 160],
        seeds=16,
    )


def test_a_relu_committee_follows_the_law() -> None:
    """Two ReLU neurons: the gradient of the network jumps where a neuron starts to be active."""
    law = FirstOrderDynamics(
        loss="committee",
        activation="relu",
        target_function="relu",
        width=2,
        start_norm=1.0,
        start_overlap=0.3,
        steps=6,
        step=0.5,
    )
    theory, runs = law.theory().isel(time=-1), law.simulate_batch(300, range(40)).isel(time=-1)
    for quantity in ("train_error", "norm", "overlap"):
        error = float(runs[quantity].std(ddof=1)) / np.sqrt(40) + theory[quantity].attrs["numerical_error"]
        assert abs(float(runs[quantity].mean()) - float(theory[quantity])) < 3 * error


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda r, w, e: (r > w) * 1.0, "jumps in r"),
        (lambda r, w, e: np.log(r - w), "not finite"),
        (lambda r, w, e: np.ones(3), "shape|must return one number"),
        (lambda r: r, "failed on arrays of samples"),
        (lambda r, w, e: {}["x"], "KeyError"),
        ("hing", "did you mean 'hinge'"),
        (3, "must be a name or a function"),
    ],
)
def test_losses_that_cannot_work_are_refused_at_construction(loss: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FirstOrderDynamics(loss=loss)


def test_a_loss_is_recorded_and_equal_to_itself() -> None:
    law = law_of("huber")
    assert law == law_of("huber")
    assert law.model_dump(mode="json")["loss"].split("#")[0].endswith("test_own_losses:<lambda>")
    assert SampleLoss("hinge") == SampleLoss("hinge") != SampleLoss("absolute")
