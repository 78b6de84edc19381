"""SGD on a fixed data set: reference values, the sum over steps, limits, thresholds on real data, refusals."""

import numpy as np
import pytest

from limitlab.laws import EarlyStopping, MultiPassLeastSquares
from limitlab.laws.online_sgd.multi_pass import safe_step, step_limits
from references import reference

ENTRIES = reference("scaling", "multi_pass_least_squares")


def law_of(inputs, **more):
    energy = inputs["signal_energy"]
    return MultiPassLeastSquares(
        ratio=inputs["dimension"] / inputs["samples"],
        samples=inputs["samples"],
        noise=inputs["noise"],
        eigenvalues=inputs.get("eigenvalues", (1.0,)),
        weights=inputs.get("weights", (1.0,)),
        signal_energy=energy if isinstance(energy, list) else (energy,),
        step=inputs["step"],
        batch=inputs["batch"],
        replacement=inputs["sampling"] == "with replacement",
        times=[inputs["step"] * k for k in inputs["steps"]],
        **more,
    )


@pytest.mark.parametrize("entry", ENTRIES, ids=["tall", "wide", "groups"])
def test_reference_values(entry):
    found, wanted = law_of(entry["inputs"]).theory(), entry["outputs"]
    tolerance = float(entry["tolerance"].removeprefix("rel "))
    names = dict(
        train_error="train_error",
        excess="excess_risk",
        gradient_descent_train_error="descent_train_error",
        gradient_descent_excess="descent_excess_risk",
    )
    for key, name in names.items():
        if key in wanted:
            np.testing.assert_allclose(found[name], wanted[key], rtol=tolerance, atol=1e-11, err_msg=name)


def test_a_whole_batch_is_gradient_descent():
    law = MultiPassLeastSquares(ratio=0.5, samples=50, batch=50, replacement=False, step=0.05, times=(0.5, 3.0))
    same = EarlyStopping(ratio=0.5, noise=0.5, step=0.05, times=(0.5, 3.0)).theory()
    np.testing.assert_allclose(law.theory().train_error, same.train_error, rtol=1e-9)
    np.testing.assert_allclose(law.theory().excess_risk, same.excess_risk, rtol=1e-9)


def test_a_short_step_is_gradient_flow():
    law = MultiPassLeastSquares(ratio=0.5, samples=100, step=1e-6, times=(1.0,))
    flow = EarlyStopping(ratio=0.5, noise=0.5, times=(1.0,)).theory()
    np.testing.assert_allclose(law.theory().train_error, flow.train_error, rtol=1e-3)
    np.testing.assert_allclose(law.theory().excess_risk, flow.excess_risk, rtol=1e-3)


def test_late_train_error_with_more_samples_than_features():
    """At half the threshold noise doubles the train error."""
    law = MultiPassLeastSquares(ratio=0.5, samples=200, step=0.01, times=(200.0,))
    found = law.theory()
    gain = 200 * 0.5 * 0.01 / 2
    assert float(found.train_error[0]) == pytest.approx(float(found.descent_train_error[0]) / (1 - gain), rel=0.02)


@pytest.mark.parametrize("batch", [1, 64])
def test_threshold_is_that_of_the_eigenvalues_of_gaussian_data(batch):
    X = np.random.default_rng(0).standard_normal((400, 200))
    law = MultiPassLeastSquares(ratio=0.5, samples=400, batch=batch, step=1e-4)
    assert law.largest_step() == pytest.approx(step_limits(X, batch)["law"], rel=0.02)


def test_thresholds_on_digits():
    """Rows of very different size: the law's threshold is six times too long, the safe step is safe."""
    from sklearn.datasets import load_digits

    X = load_digits().data
    X = X[:600, X.std(axis=0) > 0.3]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X = X[:, np.isfinite(X).all(axis=0)]
    limits = step_limits(X)
    assert limits["law"] == pytest.approx(0.0348, abs=5e-4)
    assert limits["safe"] == pytest.approx(0.0056, abs=2e-4)
    assert step_limits(X, 16)["law"] == pytest.approx(0.245, abs=3e-3)
    assert safe_step(X, 16) == pytest.approx(0.082, abs=2e-3)


def test_law_given_a_table_is_what_paths_of_sgd_do():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 20))
    y = X @ rng.standard_normal(20) + 0.5 * rng.standard_normal(60)
    data = MultiPassLeastSquares.from_data(X, y, batch=2)
    step, theta = 0.3 * data.safe_step, np.zeros((2000, 20))
    for _ in range(100):
        chosen = rng.integers(0, 60, (2000, 2))
        x = X[chosen]
        wrong = (x @ theta[:, :, None])[..., 0] - y[chosen]
        theta -= step / 2 * (wrong[:, None, :] @ x)[:, 0]
    paths = ((y - theta @ X.T) ** 2).mean(axis=1)
    wanted = data.train_error(step, [0, 100])
    assert wanted[0] == pytest.approx(np.mean(y**2))
    assert paths.mean() == pytest.approx(wanted[1], rel=0.04)
    with pytest.raises(ValueError, match="safe: "):
        data.train_error(10.0, [1])


def test_refusals():
    with pytest.raises(ValueError, match=r"step = 0\.05 is not allowed"):
        MultiPassLeastSquares(step=0.05)
    with pytest.raises(ValueError, match="samples = 1"):
        MultiPassLeastSquares(samples=1)


@pytest.mark.parametrize("step", [1e-2, 1e-9, 1e-12, 1e-18, 1e-30])
def test_before_training_the_errors_are_those_of_zero_whatever_the_step(step):
    law = MultiPassLeastSquares(times=(0.0,), batch=200, step=step)
    start = law.theory()
    assert float(start.train_error.squeeze()) == pytest.approx(1.25, rel=1e-12)
    assert float(start.test_error.squeeze()) == pytest.approx(1.25, rel=1e-12)


def test_tiny_steps_have_the_errors_of_gradient_flow():
    law = MultiPassLeastSquares(times=(1.0,), batch=200)
    flow = EarlyStopping(ratio=law.ratio, noise=law.noise, times=law.times).theory()
    for step in (1e-12, 1e-18, 1e-30):
        errors = law.replace(step=step).theory()
        for name in ("train_error", "excess_risk"):
            np.testing.assert_allclose(errors[name].values, flow[name].values, rtol=1e-10)
