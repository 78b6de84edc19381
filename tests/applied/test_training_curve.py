"""When to stop, from the validation losses of a training so far."""

import json

import numpy as np
import pandas as pd
import pytest

import limitlab as ll
from limitlab.applied import stop_training

STEPS = np.arange(100, 10_001, 50.0)


def falling(steps, noise=0.0, seed=0):
    return 2.0 + 12.0 * steps**-0.4 + noise * np.random.default_rng(seed).standard_normal(steps.size)


def overfitting(steps, noise=0.0, seed=0):
    return 1.0 + 20.0 * steps**-0.5 + steps / 10_000 + noise * np.random.default_rng(seed).standard_normal(steps.size)


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_the_loss_at_the_end_of_a_falling_curve(share):
    """The median error over noises is below 2 %, and 90 % bands hold the truth mostly."""
    errors, held = [], []
    end, truth = 40_000.0, float(falling(np.array([40_000.0]))[0])
    for seed in range(12):
        steps = STEPS[share * end >= STEPS]
        plan = stop_training((steps, falling(steps, 0.02, seed)), end=end)
        assert plan.verdict in ("continue", "flat")
        errors.append(abs(plan.forecast / truth - 1))
        held.append(plan.low <= truth <= plan.high)
    assert np.median(errors) < 0.02
    assert np.mean(held) >= 0.75


def test_the_minimum_of_an_overfitting_curve():
    best = (20 * 0.5 * 10_000) ** (1 / 1.5)  # the derivative of the loss is 0 there
    for seed in range(5):
        plan = stop_training((STEPS, overfitting(STEPS, 0.01, seed)))
        assert plan.verdict == "stop"
        assert plan.best_step == pytest.approx(best, rel=0.35)
        assert overfitting(np.array([plan.stop_at]))[0] == pytest.approx(overfitting(np.array([best]))[0], rel=0.01)
        assert plan.sentences()[0].startswith("Stop, and use the weights of step")


def test_a_minimum_that_is_ahead():
    steps = np.arange(50, 1501, 10.0)
    plan = stop_training((steps, overfitting(steps)), end=20_000)
    assert plan.verdict == "rising soon"
    assert 1500 < plan.stop_at < 6000


def test_a_flat_curve():
    steps = np.arange(100, 20_001, 100.0)
    plan = stop_training((steps, 3 + 50 / steps), slack=0.02)
    assert plan.verdict == "flat"
    assert plan.sentences()[0].startswith("Stop: up to step 40000")


def test_long_and_noisy_curves_are_averaged():
    steps = np.arange(1, 20_001, 1.0)
    plan = stop_training((steps, falling(steps + 100, 0.1)), end=60_000)
    assert plan.forecast == pytest.approx(float(falling(np.array([60_100.0]))[0]), rel=0.02)


def test_the_function_of_laws_accepts_a_curve(tmp_path):
    file = tmp_path / "curve.csv"
    pd.DataFrame({"step": STEPS, "val_loss": falling(STEPS)}).to_csv(file, index=False)
    plan = ll.stop(file, end=20_000)
    assert plan.end == 20_000
    assert ll.stop((STEPS, falling(STEPS)), end=20_000).forecast == pytest.approx(plan.forecast)


def test_the_command(tmp_path):
    from typer.testing import CliRunner

    from limitlab.show.cli import app

    file, figure, rows = tmp_path / "curve.csv", tmp_path / "curve.png", tmp_path / "rows.csv"
    pd.DataFrame({"epoch": STEPS, "train loss": falling(STEPS), "val loss": overfitting(STEPS)}).to_csv(file, index=False)
    done = CliRunner().invoke(app, ["stop", str(file), "--plot", str(figure), "--out", str(rows)])
    assert done.exit_code == 0, done.output
    assert "Stop, and use the weights of step" in " ".join(done.stdout.split())
    assert figure.stat().st_size > 5000
    assert len(rows.read_text().splitlines()) == 13
    answer = json.loads(CliRunner().invoke(app, ["stop", str(file), "--end", "50000", "--json"]).stdout)
    assert (answer["verdict"], answer["end"]) == ("stop", 50_000)
    for arguments, words in (
        (["--end", "10"], "end = 10 is not allowed"),
        (["--width", "3"], "--width is not allowed with"),
    ):
        bad = CliRunner().invoke(app, ["stop", str(file), *arguments])
        assert bad.exit_code == 2
        assert words in bad.stderr


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"step": [1, 2, 3], "loss": [3, 2, 1]}, "has 3 losses, which is too few"),
        ({"step": [*range(20), 3], "loss": np.linspace(3, 1, 21)}, "give the losses of a single run"),
        ({"step": range(20), "loss": np.ones(20)}, "every loss is 1"),
        ({"step": range(20), "loss": list("abcdefghijklmnopqrst")}, "contains text and not numbers"),
        ({"step": range(20), "height": np.ones(20)}, "has no column for loss_column"),
        ({"when": range(20), "loss": np.linspace(3, 1, 20)}, "has no column for step_column"),
        ({"step": range(20), "val_loss": np.ones(20), "test_loss": np.ones(20)}, "name one with loss_column"),
    ],
)
def test_bad_input(columns, words, tmp_path):
    file = tmp_path / "curve.csv"
    pd.DataFrame(columns).to_csv(file, index=False)
    with pytest.raises(ValueError, match=words) as caught:
        stop_training(file)
    assert "\n" not in str(caught.value)


def with_rates(steps, rates, gain=0.035, b=0.5):
    """A falling loss whose steps count by their learning rates, with a gain when the learning rate falls."""
    area = np.cumsum(rates / rates.max()) * (steps[1] - steps[0])
    return (2.0 + 15.0 * area**-b) * (1 - gain * (1 - rates / rates.max()))


def test_learning_rates_of_the_file_are_part_of_the_forecast(tmp_path):
    """A planned decay lowers the forecast by the gain, within its prior. Without a plan a rate that falls is continued."""
    steps = np.arange(100.0, 20_001, 100.0)
    decay = np.where(steps < 16_000, 1.0, np.maximum(1 - (steps - 16_000) / 4000, 0.05))
    losses = with_rates(steps, decay)
    seen = np.where(steps <= 8000, losses, np.nan)
    file = tmp_path / "curve.csv"
    pd.DataFrame({"step": steps, "val_loss": seen, "lr": 1e-3 * decay}).to_csv(file, index=False)
    planned = stop_training(file)
    assert planned.end == 20_000
    assert abs(planned.forecast / losses[-1] - 1) < 0.015
    assert "which end with 5% of the largest" in planned.rates
    known = steps <= 8000
    constant = stop_training((steps[known], losses[known], decay[known]), end=20_000)
    assert constant.rates == ""
    assert constant.forecast > planned.forecast
    cosine = 0.1 + 0.9 * 0.5 * (1 + np.cos(np.pi * steps / steps[-1]))
    losses = with_rates(steps, cosine)
    falling_rate = stop_training((steps[known], losses[known], cosine[known]), end=20_000)
    blind = stop_training((steps[known], losses[known]), end=20_000)
    assert "assumed to fall further, to 10%" in falling_rate.rates
    assert abs(falling_rate.forecast / losses[-1] - 1) < min(0.015, abs(blind.forecast / losses[-1] - 1))
    with pytest.raises(ValueError, match="learning rate of -1"):
        stop_training((steps, losses, -np.ones(steps.size)))
