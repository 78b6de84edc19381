"""Many global minima: the nearest interpolant in its law, four starts on the digits, five layers with a squared hinge."""

from functools import partial

import numpy as np
import pytest

from limitlab import compare
from limitlab.laws import LeastSquaresDescent, Ridge, digits_minima, exact_ridgeless, width_double_descent
from limitlab.laws.descent._claims import STARTS
from limitlab.laws.descent.least_squares import descent_limit
from limitlab.laws.landscapes._levenberg import TanhNetwork, levenberg_marquardt
from references import label, reference

entries = partial(reference, "static_statements")


@pytest.mark.parametrize("entry", entries("nearest_interpolant"), ids=label)
def test_reference_interpolants(entry):
    asked, want = entry["inputs"], entry["outputs"]
    squared, noise = asked["start_distance_squared"], asked["noise"]
    if "n" in asked:
        found = exact_ridgeless(asked["n"], asked["p"], noise, signal_energy=squared)
    else:
        law = LeastSquaresDescent(ratio=asked["ratio_p_over_n"], start_distance=squared**0.5, noise=noise)
        found = law.theory()
    for name, value in want.items():
        np.testing.assert_allclose(float(found[name]), value, rtol=1e-12, atol=entry["tolerance"])


def test_a_start_at_zero_is_the_default():
    plain = LeastSquaresDescent(ratio=3.0, signal=1.3, noise=0.6).theory()
    ridgeless = Ridge(ratio=3.0, ridge=0.0, noise=0.6, signal_energy=(1.69,)).theory()
    for name in ("bias", "variance", "excess_risk", "coefficient_norm"):
        np.testing.assert_allclose(float(plain[name]), float(ridgeless[name]), rtol=1e-12)
    away = LeastSquaresDescent(ratio=3.0, signal=0.1, noise=0.6, start_distance=1.3).theory()
    np.testing.assert_allclose(float(away.excess_risk), float(plain.excess_risk), rtol=1e-12)
    np.testing.assert_allclose(float(away.distance), float(plain.distance), rtol=1e-12)


@pytest.mark.parametrize("entry", [one for one in entries("nearest_interpolant") if "n" not in one["inputs"]], ids=label)
def test_ridge_without_a_penalty_is_the_nearest_interpolant(entry):
    asked, want = entry["inputs"], entry["outputs"]
    distance = asked["start_distance_squared"] ** 0.5
    law = Ridge(
        ratio=asked["ratio_p_over_n"], ridge=0.0, noise=asked["noise"], start_distance=distance, signal_energy=(0.7,)
    )
    found = law.theory()
    for name, value in want.items():
        np.testing.assert_allclose(float(found[name]), value, rtol=1e-12, atol=entry["tolerance"])
    descent = LeastSquaresDescent(ratio=law.ratio, noise=law.noise, start_distance=distance, signal=0.7**0.5).theory()
    np.testing.assert_allclose(float(found.coefficient_norm), float(descent.coefficient_norm), rtol=1e-12)


def test_ridge_towards_a_start_by_hand():
    """Data drawn with a target and a start, the penalty solved for: means of the draws against the closed averages of the experiment."""
    law = Ridge(ratio=1.25, ridge=0.3, noise=0.4, signal_energy=(0.9,), start_distance=1.4)
    p, n = 40, 32
    rng, errors, norms = np.random.default_rng(0), [], []
    for _ in range(400):
        X, beta, u = rng.standard_normal((n, p)), rng.standard_normal(p), rng.standard_normal(p)
        beta *= 0.9**0.5 / np.linalg.norm(beta)
        start = beta + 1.4 * u / np.linalg.norm(u)
        y = X @ beta + 0.4 * rng.standard_normal(n)
        b = start + np.linalg.solve(X.T @ X / n + 0.3 * np.eye(p), X.T @ (y - X @ start) / n)
        errors.append(np.sum((b - beta) ** 2))
        norms.append(b @ b)
    runs = law.simulate_batch(p, range(200))
    for found, name in ((errors, "excess_risk"), (norms, "coefficient_norm")):
        spread = np.hypot(np.std(found) / 20, float(runs[name].std()) / 200**0.5)
        assert abs(np.mean(found) - float(runs[name].mean())) < 4.5 * spread
    assert law.optimal_ridge() == pytest.approx(1.25 * 0.16 / 1.96)


def test_a_start_at_the_target_without_noise_stays_there():
    found = descent_limit(2.0, [0, 5], 1.0, 0.0, 0.0)
    assert found["distance"].tolist() == [0.0, 0.0]
    assert found["excess_risk"].tolist() == [0.0, 0.0]
    assert found["coefficient_norm"].tolist() == [1.0, 1.0]


def test_the_size_of_the_truth_in_place_of_the_distance_is_noticed():
    """Control: the bias belongs to the distance from the start, not to the norm of the target."""

    class FromZero(LeastSquaresDescent):
        """Predicts as if descent started at 0."""

        def predicted(self, ratio, steps, signal, noise):
            return descent_limit(ratio, steps, signal, noise)

    point = FromZero(ratio=3.0, steps=5, signal=0.7, noise=0.5, start_distance=1.6)
    assert compare(point, (50, 100, 200), 20, budget=0.0, progress=False).verdict == "disagree"


def test_reference_network():
    """Four starts, zero train loss from each; means of three seeds and their order, as measured elsewhere."""
    (entry,) = entries("bad_global_minimum")
    asked, want = entry["inputs"], entry["outputs"]
    found = [digits_minima(asked["width"], asked["wrong"], seed) for seed in range(3)]
    names = ("random_start", "after_random_labels", "start_four_times_larger", "after_wrong_labels")
    for ours, theirs in zip(STARTS, names, strict=True):
        mean = np.mean([getattr(one, ours) for one in found])
        assert mean == pytest.approx(want[f"test_error_{theirs}"], abs=0.04)
    for one in found:
        assert one.random_start < one.random_labels_start < one.large_start < one.wrong_start
        assert max(one.train_losses) < want["train_loss_all_below"]


def test_right_labels_of_the_others_make_a_good_start():
    """Control: it is the wrong labels that spoil the start, not the longer training."""
    from limitlab.models.datasets import image_task

    task, network = image_task("digits", 100, 0.0, 10, 0), TanhNetwork((10, 40, 1))
    start = network.start(np.random.default_rng(0))
    errors = {}
    for sign in (1.0, -1.0):
        X, y = np.vstack([task.X, task.X_test[:300]]), np.vstack([task.y, sign * task.y_test[:300]])
        led = levenberg_marquardt(network, start, X, y, goal=1e-8, iterations=400, damping=1.0).theta
        end = levenberg_marquardt(network, led, task.X, task.y, iterations=400, damping=1.0)
        assert end.loss < 1e-11
        errors[sign] = float(np.mean(network.outputs(end.theta, task.X_test[-597:]) * task.y_test[-597:] <= 0))
    assert errors[1.0] < 0.2 < 0.5 < errors[-1.0]


def test_parameters_of_five_layers():
    (entry,) = entries("five_layer_hinge")
    found = [TanhNetwork((10, *(width,) * 4, 1)).parameters / entry["inputs"]["n"] for width in entry["inputs"]["widths"]]
    np.testing.assert_allclose(found, entry["outputs"]["params_over_n"], atol=6e-4)


@pytest.mark.slow
def test_reference_five_layers():
    """The reference states bounds, not digits: they belong to one rule of damping."""
    (entry,) = entries("five_layer_hinge")
    asked = entry["inputs"]
    widths = [width for width in asked["widths"] if width not in (10, 16)]
    options = {"depth": 5, "loss": "squared_hinge", "seeds": 4, "iterations": 300}
    found = width_double_descent(widths, asked["n"], asked["flips"], **options)
    share, test = (found.train_loss < 1e-12).mean("seed"), found.test_loss.median("seed")
    assert float(share.sel(width=7)) >= 0.5
    assert float(share.sel(width=8)) >= 0.75
    assert float(found.train_loss.median("seed").sel(width=3)) > 0.05
    top = int(test.argmax())
    assert 0.2 <= float(found.parameters_over_samples[top]) <= 1.1
    assert float(test[top]) >= 2 * float(test.sel(width=20))


def test_the_square_loss_needs_more_parameters():
    """Control: with the square loss every sample binds, and below p = n few runs interpolate."""
    options = {"depth": 5, "seeds": 8, "iterations": 200}
    hinge, square = (width_double_descent([4], 120, 0.2, loss=loss, **options) for loss in ("squared_hinge", "square"))
    assert float(hinge.parameters_over_samples[0]) < 1
    assert int((hinge.train_loss < 1e-11).sum()) >= 5  # of 8
    assert int((square.train_loss < 1e-11).sum()) <= 2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: LeastSquaresDescent(start_distance=-1.0), "start_distance = -1.0 is not allowed"),
        (
            lambda: LeastSquaresDescent(inputs=((1.0, 2.0),), targets=(1.0,), start_distance=1.0),
            "start_distance = 1 is not allowed with a data set",
        ),
        (lambda: digits_minima(width=10, wrong=600), "width = 10 is not allowed"),
        (lambda: digits_minima(wrong=1000), "wrong = 1000 are not allowed"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()
