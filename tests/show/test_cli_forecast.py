"""The command `forecast`: its table, JSON, files, sentence, and refusals."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from limitlab.applied.forecast import Forecast, forecast_study
from limitlab.applied.forecast._learning import trust_word
from limitlab.applied.forecast._study import curve_rows
from limitlab.applied.forecast.tables import Table
from limitlab.show.cli import app


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
    assert done.stdout.startswith("Now, with 150 rows: 0.")
    assert "With 300 rows: 0." in done.stdout.splitlines()[0]
    assert "both numbers are within " in " ".join(done.stdout.split())
    assert "power law" in done.stdout
    assert "Twice the rows, 300 rows," in done.stdout
    assert "category with 2 levels" in done.stderr


def test_json_plot_and_file(data, tmp_path):
    asked = ["--target", "price", "--kernel", "linear", "--n", "20,100,400", "--error", 0.3, "--json"]
    done = run(data, *asked, "--plot", tmp_path / "a.png", "--out", tmp_path / "a.csv")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["observables"]["extrapolated"] == [False, False, True]
    assert 8 <= found["samples_for"]["n"] <= 100
    assert len(found["notes"]) >= 3
    real = dict(zip(found["measured"]["coordinates"]["n"], found["measured"]["observables"]["test_error"], strict=True))
    assert 0.8 < found["observables"]["value"][1] / real[100][0] < 1.25
    low, now, high = (found["answer"]["now"][name] for name in ("low", "value", "high"))
    assert low < now < high
    assert (tmp_path / "a.png").read_bytes()[1:4] == b"PNG"
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 4


def test_labels(data):
    done = run(data, "--target", "kind", "--classify", "--n", "20,60", "--kernel", "relu-nngp", "--ridge", "best")
    assert done.exit_code == 0, done.output
    assert "wrong labels" in done.stdout
    assert "auc" in done.stdout


def test_error_out_of_reach_is_exit_code_one(data):
    done = run(data, "--target", "price", "--n", "20,60", "--splits", 0, "--error", 1e-6)
    assert done.exit_code == 1
    assert "cannot be reached" in done.stdout
    assert "real fits" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--target", "nothing"], "no column 'nothing'"),
        ([], "Missing option '--target'"),
        (["--target", "kind", "--task", "regression"], "contains text, such as"),
        (["--target", "price", "--metric", "error"], "metric = 'error' is not allowed for numbers"),
        (["--target", "price", "--band", "2"], "band = 2.0 is not allowed"),
        (["--target", "price", "--n", "5:1"], "--n: range"),
        (["--target", "price", "--ridge", "-1"], "--ridge -1 is not allowed"),
        (["--target", "price", "--ridge", "x"], "--ridge x is not allowed"),
        (["--target", "price", "--splits", "-1"], "splits = -1 is not allowed"),
        (["--target", "price", "--splits", "1"], "splits = 1 is not allowed: must be at least 2, or 0"),
        (
            ["--target", "price", "--error", "0"],
            "error = 0.0 is not allowed: must be a number above 0, in the unit of the table",
        ),
        (["--target", "kind", "--error", "3"], "error = 3.0 is not allowed: must be a share between 0 and 1"),
        (["--target", "price", "--scoring", "r2"], "scoring = 'r2' is not allowed without a model"),
        (["--target", "price", "--model", "Ridge("], "is not an expression such as Ridge(alpha=1.0)"),
        (["--target", "price", "--model", "open('x')"], "scikit-learn has no estimator 'open'"),
        (["--target", "price", "--model", "Ridge().fit(1)"], "give calls of names of scikit-learn"),
        (["--target", "price", "--model", "Ridge(alfa=1)"], "unexpected keyword argument 'alfa'"),
        (["--target", "price", "--model", "Ridge()", "--scoring", "r3"], "scoring = 'r3' is not allowed"),
        (["--target", "price", "--seed", "-1"], "seed = -1 is not allowed: must be a whole number of at least 0"),
        (["--target", "price", "--rows", "-3"], "rows = -3 is not allowed: must be a whole number of at least 2"),
        (["--target", "price", "--kernel", "cubic"], "'--kernel': 'cubic' is not one of 'auto'"),
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
    assert "Missing argument 'DATA'" in done.stderr


def test_a_curve_without_real_fits_has_rows():
    X = np.random.default_rng(0).standard_normal((30, 2))
    curve = Forecast().fit(X, X[:, 0] + X[:, 1] ** 2).learning_curve([60, 90])
    table = Table(X, X[:, 0], ["a", "b"])
    assert [row["n"] for row in curve_rows(curve, None, table)] == ["60 *", "90 *"]


def test_a_study_keeps_to_its_time(data):
    """The optional parts are left out when the time is over, and the result names them."""
    study = forecast_study(data, "kind", kernel="linear", n=[20, 300], seconds=0.0)
    assert study.checks is None
    assert study.others == {}
    assert study.trust == []
    assert "power_law" not in study.curve
    assert any("the real fits, the other metrics, the backtest" in words for words in study.warnings)
    assert study.passed
    assert study.gains.data > -1


# -- table, sentence and plot say the same ---------------------------------------------------------------------------------------


def friedman(tmp_path):
    from sklearn.datasets import make_friedman1

    X, y = make_friedman1(400, noise=1.0, random_state=0)
    table = pd.DataFrame(X, columns=[f"x{i}" for i in range(10)]).assign(minutes=10 * y)
    table.to_csv(tmp_path / "friedman.csv", index=False)
    return tmp_path / "friedman.csv", "minutes"


def cancer(tmp_path):
    from sklearn.datasets import load_breast_cancer

    load_breast_cancer(as_frame=True).frame.to_csv(tmp_path / "cancer.csv", index=False)
    return tmp_path / "cancer.csv", "target"


def houses(tmp_path):
    """A messy file: semicolons, decimal commas, currencies, dates, an identifier, missing values."""
    rng, n = np.random.default_rng(1), 300
    size, heated, day = rng.uniform(20, 200, n), rng.random(n), rng.integers(0, 900, n)
    price = 2000 * size * (1 + 0.3 * heated) + 50 * day + 2e4 * rng.standard_normal(n)
    comma = [f"{value:.1f}".replace(".", ",") for value in size]
    comma[7] = ""
    euros = [f"{value:,.2f} €".replace(",", "_").replace(".", ",").replace("_", ".") for value in price]
    dates = (pd.Timestamp("2020-01-01") + pd.to_timedelta(day, unit="D")).strftime("%d.%m.%Y")
    shares = [f"{100 * value:.0f} %" for value in heated]
    frame = pd.DataFrame(
        {"house_id": rng.permutation(10_000)[:n], "size": comma, "heated": shares, "sold": dates, "price": euros}
    )
    frame.to_csv(tmp_path / "houses.csv", sep=";", index=False)
    return tmp_path / "houses.csv", "price"


@pytest.mark.parametrize("make", [friedman, cancer, houses])
def test_table_sentence_and_best_ridge_agree(tmp_path, make):
    """The default is the best ridge; with a ridge both gains are told, and the first is that of the default."""
    path, target = make(tmp_path)
    total = len(pd.read_csv(path, sep=";" if make is houses else ","))
    asked = [
        path,
        "--target",
        target,
        "--n",
        f"{total},{2 * total}",
        "--splits",
        0,
        "--kernel",
        "rbf",
        "--no-backtest",
        "--json",
    ]
    default, best, given = (json.loads(run(*asked, *more).stdout) for more in ([], ["--ridge", "best"], ["--ridge", 0.01]))
    assert default == best
    now, twice = default["observables"]["test_error"]
    cut = 1 - twice / now
    for found in (default, given):
        assert found["gains"]["data"] == pytest.approx(cut, rel=1e-9)
        assert f"{cut:.0%}" in found["advice"] or cut < 0.005
    assert default["gains"]["at_ridge"] is None
    fixed = given["observables"]["test_error"]
    assert given["gains"]["at_ridge"] == pytest.approx(1 - fixed[1] / fixed[0], rel=1e-9)
    if target != "target":
        root = np.sqrt(now) * default["target_scale"]
        assert f"{root:.4g} RMSE in the units of {target}" in default["level"]
        assert f"from {root:.4g} to" in default["advice"]
    else:
        wrong = default["observables"]["value"]
        assert f"wrong labels is {wrong[0]:.1%}, and {wrong[1]:.1%} with twice" in default["advice"]
        assert f"{wrong[0]:.1%} wrong labels" in default["level"]


def test_messy_houses_are_understood(tmp_path):
    path, target = houses(tmp_path)
    done = run(path, "--target", target, "--n", "50,150", "--splits", 2, "--kernel", "linear")
    assert done.exit_code == 0, done.output
    for words in ("house_id: row numbers", "heated: text read as numbers", "sold: dates", "1 missing values"):
        assert words in done.stderr, words


def test_gap_of_a_test_file(tmp_path):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((500, 4))
    y = X @ [1.0, 0.5, 0, 0] + 0.3 * rng.standard_normal(500)
    table = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
    table[:300].to_csv(tmp_path / "train.csv", index=False)
    table[300:].to_csv(tmp_path / "clean.csv", index=False)
    table[300:].assign(**(table[300:][list("abcd")] + 1)).to_csv(tmp_path / "shifted.csv", index=False)
    asked = [tmp_path / "train.csv", "--target", "y", "--kernel", "rbf", "--n", "100", "--splits", 0, "--test-file"]
    clean, shifted = run(*asked, tmp_path / "clean.csv"), run(*asked, tmp_path / "shifted.csv")
    assert (clean.exit_code, shifted.exit_code) == (0, 1)
    assert "is consistent with the left-out error" in clean.stdout
    assert "have another distribution" in shifted.stdout


def test_rows_in_time(tmp_path):
    """The slope turns with time: real fits on later rows say so, in whatever order the file has its rows."""
    rng = np.random.default_rng(1)
    x, turn = rng.standard_normal((200, 2)), np.linspace(0, 1.5, 200)
    y = x[:, 0] * (1 - turn) + x[:, 1] * turn + 0.2 * rng.standard_normal(200)
    days = pd.date_range("2020-01-01", periods=200).astype(str)
    table = pd.DataFrame(
        {"day": days, "a": x[:, 0], "b": x[:, 1], "y": y, "still": x[:, 0] + 0.3 * rng.standard_normal(200)}
    )
    path = tmp_path / "t.csv"
    table.sample(frac=1, random_state=0).to_csv(path, index=False)
    shared = ["--kernel", "linear", "--n", "40,120", "--no-backtest"]
    turning = run(path, "--target", "y", "--time", "day", *shared)
    assert "Errors on later rows are larger" in turning.stdout, turning.output
    table.drop(columns="y").to_csv(path, index=False)
    assert "Errors on later rows are not larger" in run(path, "--target", "still", "--time", "day", *shared).stdout


def test_new_groups(tmp_path):
    """Rows of a group share their level: the forecast says by how much new groups are harder, and real fits show it."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(30), 5)
    place, level = rng.standard_normal((30, 3)), rng.standard_normal(30)
    X, y = place[group] + 0.05 * rng.standard_normal((150, 3)), level[group] + 0.1 * rng.standard_normal(150)
    path = tmp_path / "t.csv"
    pd.DataFrame({"who": [f"p{k}" for k in group], "a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y}).to_csv(
        path, index=False
    )
    done = run(path, "--target", "y", "--groups", "who", "--kernel", "rbf", "--n", "50,100", "--no-backtest", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert any("errors on new groups are" in text for text in found["warnings"])
    assert "who: 30 groups of rows" in found["notes"]
    for wrong, message in (
        (["--groups", "whom"], "did you mean 'who'"),
        (["--groups", "y"], "two roles"),
        (["--time", "who"], "neither dates nor numbers"),
        (["--groups", "who", "--time", "a"], "not allowed"),
    ):
        refused = run(path, "--target", "y", *wrong)
        assert refused.exit_code != 0
        assert message in refused.output + str(refused.exception), message


# -- the answer ------------------------------------------------------------------------------------------------------------------


def test_the_error_of_the_option_is_in_the_unit_of_the_table(tmp_path):
    """The number of rows for an error lies between the two rows of the table that bracket it."""
    path, target = friedman(tmp_path)
    study = forecast_study(path, target, kernel="rbf", error=22.0)
    shown = [float(row["rmse"]) for row in study.rows()]
    n = study.curve.n.values
    after = next(i for i, value in enumerate(shown) if value <= 22.0)
    assert n[after - 1] <= study.needed["n"] <= n[after]
    assert study.needed["low"] <= study.needed["n"] <= study.needed["high"]
    assert study.level == study.sentences()[0]
    assert f"Trust: {study.answer.word}, within " in study.level
    assert study.answer.word == trust_word(study.answer.radius)
    assert study.trust[0].startswith(f"Trust ({study.answer.word})")


def test_groups_are_in_the_answer(tmp_path):
    """The first number is the error on new groups, as GroupKFold of the same kernel measures it."""
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict

    rng = np.random.default_rng(3)
    group = np.repeat(np.arange(60), 5)
    X = rng.standard_normal((60, 3))[group] + 0.15 * rng.standard_normal((300, 3))
    y = rng.standard_normal(60)[group] + X[:, 0] + 0.3 * rng.standard_normal(300)
    table = pd.DataFrame(X, columns=list("abc")).assign(who=[f"p{k}" for k in group], y=y)
    table.to_csv(tmp_path / "t.csv", index=False)
    study = forecast_study(tmp_path / "t.csv", "y", groups="who")
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    tuned = GridSearchCV(KernelRidge(kernel="linear"), {"alpha": np.geomspace(1e-3, 1e3, 13)}, cv=GroupKFold(10)).fit(
        scaled, y - y.mean(), groups=group
    )
    guess = cross_val_predict(tuned.best_estimator_, scaled, y - y.mean(), groups=group, cv=GroupKFold(10))
    real = float(np.mean((guess - (y - y.mean())) ** 2) / y.var())
    assert abs(study.answer.now[0] / real - 1) < 0.25
    assert "on new groups" in study.level
    assert "(60 groups)" in study.level
    assert [row["groups"] for row in study.rows()][-3:] == ["60", "120", "240"]


def test_drift_is_in_the_answer(tmp_path):
    """The first number is the error on the last block of rows, and the answer is not trusted."""
    rng, n = np.random.default_rng(4), 400
    t, X = np.arange(n) / n, rng.standard_normal((n, 3))
    y = np.cos(np.pi * t) * X[:, 0] + np.sin(np.pi * t) * X[:, 1] + 0.3 * rng.standard_normal(n)
    table = pd.DataFrame(X, columns=list("abc")).assign(day=np.arange(n), y=y)
    table.to_csv(tmp_path / "t.csv", index=False)
    study = forecast_study(tmp_path / "t.csv", "y", kernel="linear", time="day")
    size = n // 6
    fit = np.linalg.lstsq(np.c_[X, np.ones(n)][:-size], y[:-size], rcond=None)[0]  # ridges hardly matter for three columns
    real = float(np.mean((np.c_[X, np.ones(n)][-size:] @ fit - y[-size:]) ** 2) / y.var())
    assert abs(study.answer.now[0] / real - 1) < 0.25
    assert study.answer.word == "doubtful"
    assert "Errors on later rows are larger" in study.drift


def test_a_model_of_ones_own(data, tmp_path):
    done = run(
        data, "--target", "price", "--model", "make_pipeline(StandardScaler(), Ridge(alpha=1.0))", "--jobs", 1, "--json"
    )
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["answer"]["now"]["low"] < 0.2 < found["answer"]["now"]["high"] * 1.2
    assert found["kernel"].startswith("make_pipeline")
    asked = ["--scoring", "neg_log_loss", "--jobs", 1, "--plot", tmp_path / "a.png"]
    done = run(data, "--target", "kind", "--model", "LogisticRegression()", *asked)
    assert done.exit_code == 0, done.output
    assert "log loss" in done.stdout.splitlines()[0]
    assert (tmp_path / "a.png").read_bytes()[1:4] == b"PNG"
    for target, model, words in (
        ("kind", "Ridge()", "kind contains labels"),
        ("price", "LogisticRegression()", "price contains numbers"),
    ):
        done = run(data, "--target", target, "--model", model)
        assert done.exit_code == 2
        assert words in done.stderr
