"""What a forecast refuses, in one line each, and how files become numbers."""

import warnings

import numpy as np
import pandas as pd
import pytest

from limitlab.applied.forecast import Forecast, ForecastWarning
from limitlab.applied.forecast.tables import read_table

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))
Y = X[:, 0] + 0.1 * RNG.standard_normal(40)


def refused(words, call):
    """A ValueError of one line that says these words."""
    with pytest.raises(ValueError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


def broken(table, value):
    copy = table.copy()
    copy[5, 1] = value
    return copy


CASES = {
    "constant target": ("y is constant", lambda: Forecast().fit(X, np.ones(40))),
    "NaN": ("X contains NaN or infinity .* row 5", lambda: Forecast().fit(broken(X, np.nan), Y)),
    "infinity": ("X contains NaN or infinity", lambda: Forecast("rbf").fit(broken(X, np.inf), Y)),
    "NaN in y": ("y contains NaN", lambda: Forecast().fit(X, np.where(np.arange(40) == 3, np.nan, Y))),
    "text target": ("y contains text, such as 'a': pass task='classification'", lambda: Forecast().fit(X, ["a", "b"] * 20)),
    "one class": ("y contains only the class", lambda: Forecast(classify=True).fit(X, ["a"] * 40)),
    "n = N": ("n = 40 is not allowed: must be below N = 40", lambda: Forecast().fit(X, Y).predict_error(40, 0.1)),
    "n > N": ("use learning_curve to extrapolate", lambda: Forecast().fit(X, Y).predict_error([10, 100], 0.1)),
    "n = 0": ("n = 0 is not allowed", lambda: Forecast().fit(X, Y).predict_error(0, 0.1)),
    "negative ridge": ("ridge = -1 is not allowed", lambda: Forecast().fit(X, Y).predict_error(10, -1.0)),
    "negative own ridge": ("ridge = -1 is not allowed", lambda: Forecast(ridge=-1.0).fit(X, Y)),
    "zero Gram": ("no positive eigenvalue", lambda: Forecast("precomputed").fit(np.zeros((40, 40)), Y)),
    "asymmetric Gram": ("not symmetric", lambda: Forecast("precomputed").fit(np.triu(X @ X.T), Y)),
    "indefinite Gram": ("not positive semi-definite", lambda: Forecast("precomputed").fit(-np.eye(40) + 0.5, Y)),
    "oblong Gram": ("must be square", lambda: Forecast("precomputed").fit(X, Y)),
    "unknown kernel": ("did you mean 'rbf'", lambda: Forecast("rbff").fit(X, Y)),
    "no kernel": ("must return one number for every pair of rows", lambda: Forecast(lambda A, B: A.sum(axis=1)).fit(X, Y)),
    "bad method": ("method = 'fast'", lambda: Forecast(method="fast").fit(X, Y)),
    "bad dtype": ("dtype = 'float16'", lambda: Forecast(dtype="float16").fit(X, Y)),
    "bad rank": ("rank = 0", lambda: Forecast(rank=0).fit(X, Y)),
    "bad gamma": ("gamma = -1", lambda: Forecast("rbf", gamma=-1.0).fit(X, Y)),
    "memory": ("needs about .* GB of memory", lambda: Forecast("rbf", max_memory=1e4).fit(X, Y)),
    "memory of features": ("needs about", lambda: Forecast("linear", max_memory=10).fit(X, Y)),
    "memory of nystrom": ("smaller rank", lambda: Forecast("rbf", method="nystrom", rank=20, max_memory=10).fit(X, Y)),
    "negative eigenvalue": ("eigenvalues is not allowed", lambda: Forecast.from_spectrum([-1.0, 1.0], [1, 1], 5)),
    "lengths": ("one entry per eigenvalue", lambda: Forecast.from_spectrum([1.0], [1, 1], 5)),
    "small population": ("population = 1 is not allowed", lambda: Forecast.from_spectrum([1.0, 2.0], [1, 1], 1)),
    "no data": ("made from a spectrum", lambda: Forecast.from_spectrum([1.0], [1], 5).diagnose(0.1)),
    "no points to correct": ("needs data", lambda: Forecast.from_spectrum([1.0], [1], 5).predict_error(2, 0.1, corrected=True)),
    "negative time": ("time = -1 is not allowed", lambda: Forecast().fit(X, Y).error_over_time(10, -1.0)),
    "error of 0": ("error = 0 is not allowed", lambda: Forecast().fit(X, Y).samples_for(0)),
    "band": ("band = 2", lambda: Forecast().fit(X, Y).learning_curve([10], band=2)),
    "measured n": ("real fits need 1 <= n < 40", lambda: Forecast().fit(X, Y).measure([40])),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_one_line(name):
    refused(*CASES[name])


def test_ten_gigabytes_are_refused_before_any_work(monkeypatch):
    """21,000 points exactly take 10.6 GB; with 8 GB free the refusal comes at once, with three remedies."""
    from limitlab.applied.forecast import _spectrum as memory

    monkeypatch.setattr(memory, "available_memory", lambda: 8e9)
    many = np.arange(21_000.0)[:, None]
    refused(
        "10.6 GB .* 8.0 GB may be used: use method='nystrom', dtype='float32'",
        lambda: Forecast("rbf", method="exact").fit(many, many[:, 0]),
    )


def test_limits_of_the_shell_and_the_machine_are_read():
    from limitlab._core.cost import available_memory

    assert 1e6 < available_memory() < 1e15


def test_duplicates_are_warned_about():
    twice = np.vstack([X, X[:5]])
    with pytest.warns(ForecastWarning, match="5 duplicate rows of 45"):
        Forecast("rbf").fit(twice, np.r_[Y, Y[:5]])


def test_singular_gram_is_no_problem():
    model = Forecast("precomputed").fit(X @ X.T, Y)
    assert model.spectrum_.rank == 3
    assert np.isfinite(model.predict_error([10, 30], [0.0, 0.1]).test_error).all()


def test_unequal_leverages_are_warned_about():
    heavy = X * np.exp(2 * np.random.default_rng(3).standard_normal((40, 1)))
    model = Forecast("linear").fit(heavy, Y)
    with pytest.warns(ForecastWarning, match=r"2% to 59%"):
        model.predict_error([20], [1e-6])
    assert model.diagnose([1e-6])["verdict"].item() == "doubtful"


def test_interpolation_threshold_is_warned_about():
    model = Forecast("linear").fit(np.random.default_rng(1).standard_normal((200, 50)), RNG.standard_normal(200))
    with pytest.warns(ForecastWarning, match=r"-41% to \+44%"):
        model.predict_error([60], [0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict_error([150], [1.0])


# -- tables -------------------------------------------------------------------------------------------------------------


def frame(rows=60):
    rng = np.random.default_rng(0)
    size = rng.uniform(20, 200, rows)
    return pd.DataFrame(
        {
            "id": [f"row {i}" for i in range(rows)],
            "size": size,
            "rooms": rng.integers(1, 5, rows),
            "city": rng.choice(["A", "B", None], rows),
            "sold": pd.date_range("2020-01-01", periods=rows).astype(str),
            "balcony": rng.random(rows) < 0.5,
            "country": "X",
            "price": 3 * size + rng.standard_normal(rows),
        }
    )


def test_table_is_prepared_and_says_how(tmp_path):
    data = frame()
    data.loc[[1, 2], "size"] = np.nan
    data.loc[5, "price"] = np.nan
    data = pd.concat([data, data.iloc[10:12]])
    data.to_csv(tmp_path / "t.csv", index=False)
    table = read_table(tmp_path / "t.csv", "price")
    assert table.X.shape == (59, len(table.names))
    expected = {"size", "size (missing)", "rooms", "city=A", "city=B", "city=(missing)", "sold", "balcony"}
    assert set(table.names) == expected
    np.testing.assert_allclose((table.X**2).sum(axis=1).mean(), 1)
    assert table.y.std() == pytest.approx(1)
    notes = " | ".join(table.notes)
    said = ("dropped 1 rows without price", "dropped 2 rows that are equal", "median", "category with 3 levels", "dates")
    for words in (*said, "dropped country", "dropped id"):
        assert words in notes


def test_formats_agree(tmp_path):
    data = frame()[["size", "rooms", "price"]]
    data.to_csv(tmp_path / "t.csv", index=False)
    np.savez(tmp_path / "t.npz", inputs=data[["size", "rooms"]].to_numpy(), price=data["price"].to_numpy(), other=np.ones(3))
    first, second = read_table(tmp_path / "t.csv", "price"), read_table(tmp_path / "t.npz", "price")
    np.testing.assert_allclose(first.X, second.X, rtol=1e-9)
    np.testing.assert_allclose(first.y, second.y, rtol=1e-9)


def test_parquet_or_what_it_needs(tmp_path):
    data = frame()[["size", "rooms", "price"]]
    try:
        data.to_parquet(tmp_path / "t.parquet")
    except ImportError:
        (tmp_path / "t.parquet").write_bytes(b"PAR1")
        refused("pyarrow", lambda: read_table(tmp_path / "t.parquet", "price"))
        return
    assert read_table(tmp_path / "t.parquet", "price").X.shape == (60, 2)


def test_many_levels_share_a_column(tmp_path):
    rng = np.random.default_rng(0)
    pd.DataFrame({"code": [f"c{i}" for i in rng.integers(0, 80, 400)], "y": rng.standard_normal(400)}).to_csv(
        tmp_path / "t.csv", index=False
    )
    assert len(read_table(tmp_path / "t.csv", "y").names) == 31


def test_bad_files(tmp_path):
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "header.csv").write_text("a,b\n")
    (tmp_path / "ragged.csv").write_text("a,b\n1,2\n1,2,3\n")
    (tmp_path / "text.csv").write_text("a,b\n1,cat\n2,dog\n3,cat\n4,dog\n")
    (tmp_path / "constant.csv").write_text("a,b\n1,5\n2,5\n3,5\n")
    (tmp_path / "only.csv").write_text("b\n5\n6\n7\n")
    (tmp_path / "single.csv").write_text("a,b\n1,2\n1,2\n3,\n")
    (tmp_path / "damaged.npz").write_bytes(b"PK and nothing more")
    (tmp_path / "model.pkl").write_bytes(b"\x80\x04.")
    np.savez(tmp_path / "object.npz", a=np.array([{}, {}], dtype=object), b=np.ones(2))
    refused("the file is empty", lambda: read_table(tmp_path / "empty.csv", "b"))
    refused("no rows", lambda: read_table(tmp_path / "header.csv", "b"))
    refused("cannot read", lambda: read_table(tmp_path / "ragged.csv", "b"))
    refused("b contains text, such as 'cat': use --task", lambda: read_table(tmp_path / "text.csv", "b", "regression"))
    refused("b is constant", lambda: read_table(tmp_path / "constant.csv", "b"))
    refused("no usable column", lambda: read_table(tmp_path / "only.csv", "b"))
    refused("single.csv has 1 different rows with a value of 'b'", lambda: read_table(tmp_path / "single.csv", "b"))
    refused("damaged.npz': it is damaged", lambda: read_table(tmp_path / "damaged.npz", "b"))
    refused("pickles are never read", lambda: read_table(tmp_path / "model.pkl", "b"))
    refused("never read", lambda: read_table(tmp_path / "object.npz", "b"))
    refused("no column 'prize': known names: a, b", lambda: read_table(tmp_path / "text.csv", "prize"))
    refused("no such file", lambda: read_table(tmp_path / "absent.csv", "b"))
    (tmp_path / "labels.csv").write_text("a,b\n" + "".join(f"{i * i},{'cat' if i % 2 else 'dog'}\n" for i in range(20)))
    assert read_table(tmp_path / "labels.csv", "b").y.tolist() == ["dog", "cat"] * 10
    (tmp_path / "twelve.csv").write_text("a,b\n" + "".join(f"{i * i},{i**3}\n" for i in range(12)))
    refused("12 different rows .* too few for a learning curve", lambda: read_table(tmp_path / "twelve.csv", "b"))


# -- files as they are ------------------------------------------------------------------------------------------------------


def written(path, text):
    path.write_text(text)
    return path


def test_a_spreadsheet_from_a_country_with_decimal_commas(tmp_path):
    rng = np.random.default_rng(3)
    size, share = rng.uniform(20, 200, 50), rng.uniform(0, 100, 50)
    price = 3000 * size
    german = [f"{value:,.2f} €".replace(",", "_").replace(".", ",").replace("_", ".") for value in price]
    rows = [f"{a:.1f};{b:.1f} %;{c}".replace(".", ",", 1) for a, b, c in zip(size, share, german, strict=True)]
    file = written(tmp_path / "t.csv", "size;heated;price\n" + "\n".join(rows) + "\n")
    table = read_table(file, "price")
    assert table.names == ["size", "heated"]
    assert abs(table.scale / price.std() - 1) < 1e-4
    assert abs(np.corrcoef(table.X[:, 0], table.y)[0, 1]) > 0.999
    assert "heated: text read as numbers" in " | ".join(table.notes)


def test_the_same_table_in_every_dialect(tmp_path):
    data = frame()[["size", "rooms", "price"]]
    first = None
    for i, (separator, decimal) in enumerate([(",", "."), (";", "."), (";", ","), ("\t", ","), ("|", ".")]):
        data.to_csv(tmp_path / f"{i}.csv", sep=separator, decimal=decimal, index=False, encoding="utf-8-sig")
        table = read_table(tmp_path / f"{i}.csv", "price")
        first = first if first is not None else table
        np.testing.assert_allclose(table.X, first.X, rtol=1e-12)
        np.testing.assert_allclose(table.y, first.y, rtol=1e-12)


def test_dates_come_before_categories(tmp_path):
    rng = np.random.default_rng(4)
    days = rng.integers(0, 900, 2000)
    dates = (pd.Timestamp("2021-03-05") + pd.to_timedelta(days, unit="D")).strftime("%d.%m.%Y")
    pd.DataFrame({"sold": dates, "y": days + rng.standard_normal(2000)}).to_csv(tmp_path / "t.csv", index=False)
    table = read_table(tmp_path / "t.csv", "y")
    assert table.names == ["sold"]
    assert abs(np.corrcoef(table.X[:, 0], days)[0, 1]) > 0.9999


def test_row_numbers_are_dropped_and_years_are_not(tmp_path):
    rng, n = np.random.default_rng(5), 60
    data = pd.DataFrame(
        {
            "Unnamed": np.arange(n),
            "customer_id": rng.permutation(10_000)[:n],
            "year": 1960 + np.arange(n),
            "rooms": rng.integers(1, 5, n),
            "y": rng.standard_normal(n),
        }
    )
    data.to_csv(tmp_path / "t.csv", index=False)
    table = read_table(tmp_path / "t.csv", "y")
    assert table.names == ["year", "rooms"]
    assert "dropped Unnamed, customer_id: row numbers or other whole numbers that identify rows" in table.notes


def test_a_second_target_cannot_become_an_input(tmp_path):
    text = "x,y,y\n" + "".join(f"{i},{i * i},{i * i}\n" for i in range(30))
    refused("more than one column called 'y'", lambda: read_table(written(tmp_path / "t.csv", text), "y"))


def test_lists_records_and_complex_numbers(tmp_path):
    pytest.importorskip("pyarrow")
    n = 30
    data = pd.DataFrame({"x": np.arange(n) ** 2.0, "tags": [[i, i] for i in range(n)], "y": np.arange(n) ** 3.0})
    data.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", "y")
    assert table.names == ["x"]
    assert any("dropped tags: they contain lists or records" in note for note in table.notes)
    refused("tags contains lists or records", lambda: read_table(tmp_path / "t.parquet", "tags"))
    np.savez(tmp_path / "t.npz", z=np.full(n, 1 + 2j), y=np.arange(n))
    refused("'z' contains complex numbers", lambda: read_table(tmp_path / "t.npz", "y"))


def test_infinite_targets_in_plain_words(tmp_path):
    text = "x,y\n" + "".join(f"{i},{'inf' if i == 7 else i * i}\n" for i in range(30))
    refused("y is infinite in 1 rows, first in row 7", lambda: read_table(written(tmp_path / "t.csv", text), "y"))


def test_a_hundred_thousand_columns(tmp_path):
    rng = np.random.default_rng(6)
    table = rng.standard_normal((25, 100_000)).astype(np.float32)
    np.savez(tmp_path / "wide.npz", inputs=table, y=table[:, 0].copy())
    assert read_table(tmp_path / "wide.npz", "y").X.shape == (25, 100_000)


def test_text_with_many_levels_is_quick_and_small(tmp_path):
    import tracemalloc

    rng, n = np.random.default_rng(7), 40_000
    words = [f"level {i} " + "x" * 50 for i in rng.integers(0, n // 2, n)]
    pd.DataFrame({"text": words, "y": rng.standard_normal(n)}).to_csv(tmp_path / "t.csv", index=False)
    tracemalloc.start()
    table = read_table(tmp_path / "t.csv", "y")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(table.names) == 31
    assert peak < 40 * (tmp_path / "t.csv").stat().st_size


def test_a_decompression_bomb_is_refused_before_it_unpacks(tmp_path, monkeypatch):
    from limitlab.applied.forecast import tables

    np.savez_compressed(tmp_path / "bomb.npz", x=np.zeros((3000, 1000)), y=np.arange(3000.0))
    monkeypatch.setattr(tables, "available_memory", lambda: 4e7)
    assert (tmp_path / "bomb.npz").stat().st_size < 1e5
    refused("needs about", lambda: read_table(tmp_path / "bomb.npz", "y"))


def test_a_binary_file_is_not_a_table(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"\x00\x01\x02" * 100)
    refused("not a text file", lambda: read_table(tmp_path / "t.csv", "y"))


def test_old_encodings_are_read(tmp_path):
    text = "Größe,y\n" + "".join(f"{i * i},{i}\n" for i in range(30))
    (tmp_path / "t.csv").write_bytes(text.encode("latin-1"))
    assert read_table(tmp_path / "t.csv", "y").names == ["Größe"]
