"""Saved forecasts and their comparison with later rows."""

import json

import numpy as np
import pandas as pd
import pytest

from limitlab.applied import forecast_against, forecast_study, save_forecast
from limitlab.applied.forecast._later import SavedForecast, load_forecast, measure


def table(rows, seed, noise=0.5, labels=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, 4))
    y = X[:, 0] + 0.5 * X[:, 1] ** 2 + noise * rng.standard_normal(rows)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["y"] = np.where(y > 0.5, "up", "down") if labels else y
    frame["who"] = rng.integers(0, max(rows // 10, 2), rows)
    frame["day"] = np.arange(rows) + 1000 * seed
    return frame


def saved(tmp_path, frame, columns=("a", "b", "c", "d", "y"), **options):
    data, file = tmp_path / "old.csv", tmp_path / "old.json"
    frame[list(columns)].to_csv(data, index=False)
    study = forecast_study(data, "y", splits=0, **options)
    kept = {name: options[name] for name in ("groups", "time", "rows", "seed", "gamma") if name in options}
    return data, save_forecast(study, file, data, **kept), study


def new(tmp_path, frame, columns=("a", "b", "c", "d", "y")):
    file = tmp_path / "new.csv"
    frame[list(columns)].to_csv(file, index=False)
    return file


def test_the_band_holds_for_rows_of_the_same_kind(tmp_path):
    _data, file, study = saved(tmp_path, table(150, 0))
    frame = pd.concat([table(150, 0).iloc[:20], table(100, 1)])  # 20 rows that the forecast used already
    later = forecast_against(file, new(tmp_path, frame))
    assert (later.old_rows, later.new_rows) == (150, 100)
    assert any("left out 20 rows" in note for note in later.notes)
    assert later.passed
    assert [test["n"] for test in later.tests] == [225.0, 150.0]
    assert later.sentences()[0].startswith("The band held: with 225 rows, by cross-validation of 250 rows")
    for test in later.tests:
        assert test["measured"] == pytest.approx(test["forecast"], abs=4 * test["standard_error"])
    at = float(study.curve.value.sel(n=150))
    assert later.tests[1]["forecast"] == pytest.approx(at, rel=1e-6)


def test_the_band_fails_for_rows_of_another_kind(tmp_path):
    """Rows with three times the noise; the measured error is in the unit of the saved curve."""
    _data, file, _ = saved(tmp_path, table(150, 0))
    later = forecast_against(file, new(tmp_path, table(150, 1, noise=1.5)))
    assert not later.passed
    assert later.sentences()[0].startswith("The band failed")
    same = forecast_against(file, new(tmp_path, table(150, 1)))
    assert later.tests[1]["measured"] - same.tests[1]["measured"] == pytest.approx(2 / later.saved.scale**2, rel=0.35)


def test_without_the_old_file_the_new_rows_are_used(tmp_path):
    data, file, _ = saved(tmp_path, table(150, 0))
    data.write_text(data.read_text() + "\n")
    later = forecast_against(file, new(tmp_path, table(120, 1)))
    assert (later.old_rows, later.new_rows, len(later.tests)) == (0, 120, 1)
    assert "absent or was changed" in later.notes[0]
    assert later.tests[0]["n"] == 108


@pytest.mark.parametrize("metric", ["error", "accuracy", "auc"])
def test_labels(metric, tmp_path):
    _data, file, _ = saved(tmp_path, table(150, 0, labels=True), metric=metric, kernel="rbf")
    later = forecast_against(file, new(tmp_path, table(150, 1, labels=True)))
    assert later.passed
    assert 0 < later.tests[0]["measured"] < 1


def test_groups_and_time(tmp_path):
    columns = ("a", "b", "c", "d", "y", "who")
    _data, file, _ = saved(tmp_path, table(150, 0), columns, groups="who", kernel="linear")
    later = forecast_against(file, new(tmp_path, table(100, 1), columns))
    assert "groups" in later.tests[0]["how"]
    columns = ("a", "b", "c", "d", "y", "day")
    _data, file, _ = saved(tmp_path, table(150, 0), columns, time="day", kernel="linear")
    later = forecast_against(file, new(tmp_path, table(100, 1), columns))
    assert later.tests[0]["how"] == "tested on the last rows"
    assert later.tests[0]["n"] == 225


def test_a_saved_forecast_is_read_as_it_was_written(tmp_path):
    _data, file, study = saved(tmp_path, table(80, 0), kernel="rbf", gamma=0.7, band=0.8)
    read = load_forecast(file)
    np.testing.assert_array_equal(read.value, study.curve.value)
    assert (read.kernel, read.band, read.rows, read.metric) == ("rbf", 0.8, 80, "mse")
    assert read.gamma == pytest.approx(0.7, rel=1e-6)  # the inputs have total variance 1
    assert json.loads(file.read_text())["sentences"][0] == study.level
    assert [entry.name for entry in tmp_path.iterdir() if entry.suffix == ".tmp"] == []


def test_the_curve_between_its_points(tmp_path):
    curve = {name: [1.0, 0.25] for name in ("value", "low", "high", "ridge")}
    fields = dict.fromkeys(SavedForecast.__dataclass_fields__, None) | dict(n=[10.0, 40.0], **curve)
    read = SavedForecast(**fields)
    assert read.at(20)["value"] == pytest.approx(0.5)
    with pytest.raises(ValueError, match="the saved curve ends at 40 rows"):
        read.at(100)


def test_standard_errors_of_the_measurement():
    """Simulated errors of a fixed prediction have the stated standard errors, also in groups."""
    rng = np.random.default_rng(0)
    rows, errors, grouped, group_errors = [], [], [], []
    place = np.repeat(np.arange(40), 5)
    for _ in range(400):
        noise = rng.standard_normal((200, 1))
        value, error = measure("mse", noise, np.zeros((200, 1)))
        rows.append(value)
        errors.append(error)
        value, error = measure("mse", rng.standard_normal(40)[place][:, None] + 0.3 * noise, np.zeros((200, 1)), place)
        grouped.append(value)
        group_errors.append(error)
    assert np.mean(errors) == pytest.approx(np.std(rows), rel=0.12)
    assert np.mean(group_errors) == pytest.approx(np.std(grouped), rel=0.15)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda body: body | {"format": "x"}, "is not a saved forecast"),
        (lambda body: body | {"format_version": 9}, "has the format 9"),
        (lambda body: body | {"value": body["value"][1:]}, "columns of different lengths"),
        (lambda body: body | {"n": "abc"}, "its entry 'n' is 'abc'"),
        (lambda body: body | {"scale": None}, "its entry 'scale' is None"),
        (lambda body: body | {"metric": "__import__('os')"}, "its metric is"),
        (lambda body: [body], "is not a saved forecast"),
    ],
)
def test_damaged_files_are_refused(change, words, tmp_path):
    data, file, _ = saved(tmp_path, table(60, 0), kernel="linear", backtest=False)
    file.write_text(json.dumps(change(json.loads(file.read_text()))))
    with pytest.raises(ValueError, match=words) as caught:
        forecast_against(file, data)
    assert "\n" not in str(caught.value)


def test_the_command(tmp_path):
    from typer.testing import CliRunner

    from limitlab.show.cli import app

    def run(*arguments):
        return CliRunner().invoke(app, ["forecast", *map(str, arguments)])

    old, more, file = tmp_path / "old.csv", new(tmp_path, table(60, 1)), tmp_path / "kept.json"
    table(100, 0)[["a", "b", "c", "d", "y"]].to_csv(old, index=False)
    few = ("--target", "y", "--kernel", "linear", "--splits", "0", "--no-backtest")
    assert run(old, *few, "--save", file).exit_code == 0
    later = run(file, "--against", more)
    assert later.exit_code == 0, later.output
    assert "The band held" in " ".join(later.stdout.split())
    figure = tmp_path / "later.png"
    answer = json.loads(run(file, "--against", more, "--json", "--plot", figure).stdout)
    assert answer["held"]
    assert figure.stat().st_size > 5000
    assert json.loads(run(old, *few, "--against", more, "--json").stdout)["tests"] == answer["tests"]
    broken = new(tmp_path, table(60, 2, noise=3.0))
    assert run(file, "--against", broken).exit_code == 1
    for arguments, words in (
        ((file,), "Missing option '--against'"),
        ((file, "--against", more, "--kernel", "rbf"), "--kernel is not allowed with a saved forecast"),
        ((file, "--against", tmp_path / "absent.csv"), "there is no such file"),
        ((old, *few, "--save", tmp_path / "kept.txt"), "the name must end in .json"),
        ((tmp_path / "absent.json", "--against", more), "No such file"),
    ):
        done = run(*arguments)
        assert done.exit_code == 2, arguments
        assert words in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
