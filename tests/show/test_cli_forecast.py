"""The command `forecast`: its table, JSON, files, sentence, and refusals."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from limitlab.show.cli import app
from limitlab.show.cli.forecasting import curve_rows, measured_points


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    size, city = rng.uniform(0, 1, 150), rng.choice(["A", "B"], 150)
    price = size + 0.5 * (city == "B") + 0.2 * rng.standard_normal(150)
    kind = np.where(price > 0.8, "dear", "cheap")
    path = tmp_path / "t.csv"
    pd.DataFrame({"size": size, "city": city, "price": price, "kind": kind}).to_csv(path, index=False)
    return path


def run(*arguments):
    return CliRunner().invoke(app, ["forecast", *map(str, arguments)])


def test_table_notes_and_sentence(data):
    done = run(data, "--target", "price", "--n", "20:300:5log", "--splits", 2)
    assert done.exit_code == 0, done.output
    assert "real fits" in done.stdout
    assert "300 *" in done.stdout
    assert "Hiding half of the rows" in done.stdout
    assert "doubling the data" in done.stdout.lower()
    assert "category with 2 levels" in done.stderr


def test_json_plot_and_file(data, tmp_path):
    asked = ["--target", "price", "--kernel", "linear", "--n", "20,100,400", "--error", 0.3, "--json"]
    done = run(data, *asked, "--plot", tmp_path / "a.png", "--out", tmp_path / "a.csv")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["observables"]["extrapolated"] == [False, False, True]
    assert found["samples_for"]["n"] > 2
    assert len(found["notes"]) >= 3
    assert 0.8 < found["observables"]["test_error"][1] / found["measured"]["observables"]["test_error"][1][0] < 1.25
    assert (tmp_path / "a.png").read_bytes()[1:4] == b"PNG"
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 4


def test_labels(data):
    done = run(data, "--target", "kind", "--classify", "--n", "20,60", "--kernel", "relu-nngp", "--ridge", "best")
    assert done.exit_code == 0, done.output
    assert "wrong labels" in done.stdout


def test_error_out_of_reach_is_exit_code_one(data):
    done = run(data, "--target", "price", "--n", "20,60", "--splits", 0, "--error", 1e-6)
    assert done.exit_code == 1
    assert "out of reach" in done.stdout
    assert "real fits" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--target", "nothing"], "no column 'nothing'"),
        ([], "--target is missing"),
        (["--target", "kind"], "holds text, such as"),
        (["--target", "price", "--n", "5:1"], "--n: range"),
        (["--target", "price", "--ridge", "-1"], "--ridge -1 is not allowed"),
        (["--target", "price", "--ridge", "x"], "--ridge x is not allowed"),
        (["--target", "price", "--splits", "-1"], "--splits -1"),
        (["--target", "price", "--seed", "-1"], "seed = -1 is not allowed: must be a whole number of at least 0"),
        (["--target", "price", "--rows", "-3"], "rows = -3 is not allowed: must be a whole number of at least 2"),
        (["--target", "price", "--kernel", "cubic"], "'--kernel': 'cubic' is not one of 'linear'"),
        (["--target", "price", "--plot", "a.bmp"], "must end in"),
        (["--target", "price", "--kernel", "random-features", "--activation", "rleu"], "did you mean 'relu'"),
    ],
)
def test_one_line_and_exit_code_two(data, arguments, words):
    done = run(data, *arguments)
    assert done.exit_code == 2
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_no_file():
    done = run("--target", "x")
    assert done.exit_code == 2
    assert "name a file" in done.stderr


def test_self_test_prints_the_table(monkeypatch):
    from limitlab.applied.forecast import accuracy

    rows = [
        accuracy.Row("digits", "rbf", 100, 0.01, 0.4, 0.41, 0.42, 0.01),
        accuracy.Row("digits", "rbf", 1200, 0.0, 0.04, 0.06, 0.06, 0.001),
    ]
    monkeypatch.setattr(accuracy, "accuracy", lambda *args, **options: rows)
    monkeypatch.setattr(
        accuracy, "hidden_tail", lambda *args, **options: [accuracy.HiddenTail("rbf", 0.01, 0.4, 0.3, 0.5, 0.45)]
    )
    done = run("--self-test")
    assert done.exit_code == 0, done.output
    assert "4.8%" in done.stdout
    assert "-33%" in done.stdout
    assert "extrapolated" in done.stdout


def test_checks_are_left_out_where_they_cannot_be_made():
    from limitlab.applied.forecast import Forecast

    X = np.random.default_rng(0).standard_normal((30, 2))
    model = Forecast().fit(X, X[:, 0] + X[:, 1] ** 2)
    curve = model.learning_curve([60, 90])
    assert measured_points(model, curve, 2, 0) is None
    assert [row["n"] for row in curve_rows(curve, None, None)] == ["60 *", "90 *"]
