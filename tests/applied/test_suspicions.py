"""Sentences that name defective columns, on made tables with a single defect and on tables without one."""

import numpy as np
import pandas as pd
import pytest

from limitlab.applied.forecast import forecast_study
from limitlab.applied.forecast._suspicions import default_metric, interval_errors, suspicions, tail_share
from limitlab.applied.forecast.tables import Table, read_table

ROWS = 600


def made(seed=0):
    """A table without defects, and its generator."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS, 4))
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["y"] = X[:, 0] + np.sin(X[:, 1]) + 0.5 * rng.standard_normal(ROWS)
    return frame, rng


def sentences(frame, tmp_path, target="y", **roles):
    file = tmp_path / "table.csv"
    frame.to_csv(file, index=False)
    return suspicions(read_table(file, target, **roles), target, **roles)


def leak(frame, rng):
    frame["copy"] = 1.0001 * frame.y + 0.01 * rng.standard_normal(ROWS)


def tax(frame, rng):
    frame["tax"] = (0.19 * frame.y).round(3)


def curved(frame, rng):
    frame["grade"] = np.exp(0.3 * frame.y)


def missing(frame, rng):
    frame["y"] = np.where(frame.y > 0, "up", "down")
    frame["until"] = np.where(frame.y == "up", np.nan, rng.random(ROWS))


def label(frame, rng):
    frame["y"] = np.where(frame.y > 0, "up", "down")
    frame["outcome"] = 5.0 * (frame.y == "up") + rng.random(ROWS)


def rare_label(frame, rng):
    frame["y"] = np.where(frame.y > 3, "up", "down")
    frame["outcome"] = (frame.y == "up") + 0.01 * rng.random(ROWS)


def parts(frame, rng):
    frame["y"] = 3 * frame.a - frame.c + 0.5 * frame.d


def date(frame, rng):
    frame["when"] = (pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(ROWS), "D")).strftime("%Y-%m-%d")


def seconds(frame, rng):
    frame["timestamp"] = 1_600_000_000 + rng.integers(0, 10**7, ROWS)


def patient(frame, rng):
    frame["PatientID"] = rng.integers(0, 60, ROWS)


def repeats(frame, rng):
    own, who = rng.standard_normal((60, 4)), np.repeat(np.arange(60), 10)
    frame[list("abcd")] = own[who] + 0.2 * rng.standard_normal((ROWS, 4))
    frame["k"] = who


def postcode(frame, rng):
    frame["zip"] = rng.integers(10000, 10040, ROWS)


def unnamed_code(frame, rng):
    code, effect = rng.integers(0, 30, ROWS), 2 * rng.standard_normal(30)
    frame["m"], frame["y"] = code, frame.y + effect[code]


def scale(frame, rng):
    frame["y"] = np.clip(np.round(3 + frame.a + 0.5 * rng.standard_normal(ROWS)), 1, 5).astype(int)


def floats(frame, rng):
    frame["y"] = (frame.y > 0).astype(float)


def tails(frame, rng):
    frame["y"] = np.exp(2 * frame.y)


def student(frame, rng):
    frame["y"] = frame.a + rng.standard_t(1.2, ROWS)


def rare(frame, rng):
    frame["y"] = np.where(frame.y > 2.4, "yes", "no")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (leak, "copy alone determines y"), (tax, "tax alone determines y"), (curved, "grade alone determines y"),
        (missing, "Whether a value is missing in until"), (label, "outcome alone gives the labels"),
        (rare_label, "outcome alone gives the labels"), (parts, "A sum of a, c, d is equal to y"),
        (date, "give --time when"), (seconds, "give --time timestamp"), (patient, "give --groups PatientID"),
        (repeats, "rows with the same k are alike"), (postcode, "zip (40 different values) contains whole numbers"),
        (unnamed_code, "m (30 different values) contains whole numbers"), (scale, "give --task regression"),
        (floats, "give --task classification"), (tails, "the logarithm of y"), (student, "y has heavy tails"),
        (rare, "always 'no' gives"),
    ],
)  # fmt: skip
def test_every_defect_has_its_sentence(change, words, tmp_path):
    frame, rng = made()
    change(frame, rng)
    lines = sentences(frame, tmp_path)
    assert any(words in line for line in lines), lines
    allowed = 2 if change is rare_label else 1  # its rare class has a sentence too
    assert len(lines) == allowed, lines


@pytest.mark.parametrize("seed", range(5))
def test_a_table_without_defects_has_no_sentence(seed, tmp_path):
    frame, rng = made(seed)
    frame["children"] = rng.poisson(2, ROWS)
    frame["age"] = rng.integers(18, 90, ROWS)
    frame["grid"] = rng.choice(["red", "green", "blue"], ROWS)
    frame["y"] += 0.03 * frame.age
    assert sentences(frame, tmp_path) == []
    assert sentences(frame.assign(y=np.where(frame.y > 2, "up", "down")), tmp_path) == []


@pytest.mark.parametrize("name", ["diabetes", "breast_cancer", "wine", "iris", "digits"])
def test_known_tables_have_no_sentence(name, tmp_path):
    import sklearn.datasets

    frame = getattr(sklearn.datasets, f"load_{name}")(as_frame=True).frame
    assert sentences(frame, tmp_path, "target") == []


def test_a_role_removes_the_sentence(tmp_path):
    frame, rng = made()
    patient(frame, rng)
    assert sentences(frame, tmp_path, groups="PatientID") == []
    frame, rng = made()
    date(frame, rng)
    assert sentences(frame, tmp_path, time="when") == []


def test_wide_noise_does_not_leak(tmp_path):
    """Among 400 columns of noise and 24 rows no column is reported as a leak, although some predict many labels."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((24, 400)))
    frame.columns = [f"x{i}" for i in range(400)]
    assert sentences(frame.assign(y=rng.standard_normal(24)), tmp_path) == []
    labels = np.where(np.arange(24) < 3, "a", "b")
    assert sentences(frame.assign(y=labels), tmp_path) == []


def test_interval_errors_is_the_fewest_errors():
    """The result is compared with all pairs of cuts."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        x, classes = rng.integers(0, 6, 12).astype(float), rng.integers(0, 3, 12)
        best = len(x)
        for low in range(7):
            for high in range(low, 7):
                place = (x >= low).astype(int) + (x >= high)
                best = min(
                    best,
                    sum(int((place == i).sum() - np.bincount(classes[place == i], minlength=3).max()) for i in range(3)),
                )
        assert interval_errors(x, classes, 3) == best


def test_tail_share_of_known_laws():
    rng = np.random.default_rng(0)
    assert 0.05 < tail_share(rng.standard_normal(10_000)) < 0.12
    assert tail_share(rng.standard_t(1.1, 10_000)) > 0.8


def test_rare_classes_have_another_metric_and_a_baseline(tmp_path):
    frame, rng = made()
    rare(frame, rng)
    file = tmp_path / "rare.csv"
    frame.to_csv(file, index=False)
    events = int((frame.y == "yes").sum())
    study = forecast_study(file, "y", kernel="linear", n=[100, ROWS], splits=0, backtest=False)
    assert study.curve.attrs["metric"] == "auc"
    assert f"{events} of {ROWS} rows have the label 'yes'" in study.level
    assert f"always 'no' gives {events / ROWS:.2%} wrong labels" in study.level
    table = Table(np.zeros((10, 1)), np.array(["a"] * 5 + ["b"] * 5), ["x"], labels=True)
    assert default_metric(table, None) is None
    assert default_metric(table, "error") == "error"


def test_noise_has_no_skill(tmp_path):
    frame, rng = made()
    file = tmp_path / "noise.csv"
    options = dict(kernel="linear", n=[100, ROWS], splits=0, backtest=False)
    frame.to_csv(file, index=False)
    assert forecast_study(file, "y", **options).warnings == []
    assert "No skill" not in forecast_study(file, "y", **options).level
    y = rng.standard_normal(ROWS)
    frame.assign(y=y).to_csv(file, index=False)
    mean_alone = np.std(y) * np.sqrt((ROWS + 1) / (ROWS - 1))
    words = f"No skill is shown: the mean of y alone gives {mean_alone:.4g} RMSE in the units of y. Now, with {ROWS} rows: "
    assert forecast_study(file, "y", **options).level.startswith(words)
    labels = rng.choice(["up", "down"], ROWS)
    most, count = max(((name, np.sum(labels == name)) for name in ("up", "down")), key=lambda entry: entry[1])
    frame.assign(y=labels).to_csv(file, index=False)
    words = f"No skill is shown: always {most!r} gives {1 - count / ROWS:.1%} wrong labels."
    assert forecast_study(file, "y", **options).level.startswith(words)
    frame.assign(y=y).to_csv(file, index=False)
    assert forecast_study(file, "y", model="Ridge()", splits=3, jobs=1).level.startswith("No skill is shown: the mean of y")


def test_own_models_get_the_same_warnings(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((120, 2))
    y = x[:, 0] + 0.5 * rng.standard_normal(120)
    for name, columns in (("leak", [x, 1.19 * y, y]), ("sound", [x, y])):
        file = tmp_path / f"{name}.csv"
        header = "a,b,tax,y" if name == "leak" else "a,b,y"
        np.savetxt(file, np.column_stack(columns), delimiter=",", header=header, comments="")
        study = forecast_study(file, "y", model="Ridge()", splits=2, jobs=1)
        assert any("tax" in warning for warning in study.warnings) == (name == "leak"), study.warnings


def test_advice_on_a_rising_metric_speaks_of_the_metric_itself(tmp_path):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((300, 3))
    labels = np.where(x[:, 0] + 0.8 * rng.standard_normal(300) > 1.6, "yes", "no")
    file = tmp_path / "rare.csv"
    pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": labels}).to_csv(file, index=False)
    study = forecast_study(file, "y", kernel="linear", metric="auc", splits=2)
    assert "reduce the area" not in study.advice
    assert "area under the curve" in study.advice
    assert "(" not in study.advice.split(" would ")[0].partition(",")[0]


def test_groups_without_a_column_are_found_from_the_inputs(tmp_path):
    """Rows near common centres have a warning. Rows of a normal distribution, of digits, and of few different values have none."""
    from sklearn.datasets import load_digits

    from limitlab.applied.forecast._clusters import dimensions, grouped_rows

    rng = np.random.default_rng(3)
    centres = rng.standard_normal((80, 6))
    patients = np.repeat(centres, 4, axis=0) + 0.15 * rng.standard_normal((320, 6))
    for X, wanted in (
        (patients, True),
        (rng.permutation(patients)[:160], True),
        (rng.standard_normal((320, 6)), False),
        (rng.standard_normal((60, 2)), False),
        (load_digits().data, False),
        (np.column_stack([rng.integers(0, 2, (90, 4)), rng.standard_normal(90)]), False),
        (np.repeat(centres, 4, axis=0), False),
    ):
        assert grouped_rows(X) == wanted
    np.testing.assert_allclose(dimensions(rng.uniform(size=(4000, 2))), 2, rtol=0.12)
    file = tmp_path / "patients.csv"
    y = np.repeat(rng.standard_normal(80), 4)
    np.savetxt(
        file,
        np.column_stack([patients, y + 0.3 * rng.standard_normal(320)]),
        delimiter=",",
        header="a,b,c,d,e,f,y",
        comments="",
    )
    (line,) = suspicions(read_table(file, "y"), "y")
    assert line.startswith("The rows come in groups")
