"""Number of real components: noise of several kinds, factors, wide tables, the command."""

import json

import numpy as np
import pandas as pd
import pytest

from limitlab.applied import components
from limitlab.applied.table_components import airy_points, distances_of


def ar(rng, rows, columns, power=0.5):
    """Noise that is correlated between neighbouring columns."""
    noise = rng.standard_normal((rows, columns))
    for j in range(1, columns):
        noise[:, j] = power * noise[:, j - 1] + np.sqrt(1 - power**2) * noise[:, j]
    return noise


def test_a_factor_in_a_wide_table():
    """One factor in 120 rows of 2000 columns gives one component."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 2000))
    X[:, :200] += rng.standard_normal((120, 1))
    result = components(X)
    assert (result.count, result.rows, result.columns) == (1, 120, 2000)
    assert all(int(name.split()[1]) < 200 for name, _ in result.loadings[0])
    assert result.sentences()[0].startswith("1 component is separated")


@pytest.mark.parametrize("shape", [(200, 60), (60, 200)])
def test_correlated_noise_has_no_components(shape):
    """Noise that is correlated between columns, or in time, has no component in at least 90 % of 50 tables."""
    for transpose in (False, True):
        counts = []
        for seed in range(50):
            noise = ar(np.random.default_rng([seed, transpose]), *shape)
            counts.append(components(noise.T if transpose else noise).count)
        assert np.mean(np.array(counts) == 0) >= 0.9


def test_parallel_analysis_is_reported():
    result = components(ar(np.random.default_rng(0), 300, 60))
    assert result.count == 0
    assert result.parallel > 5
    assert any("Parallel analysis counts" in line for line in result.sentences())


@pytest.mark.parametrize(
    ("rows", "columns", "factors", "strength"), [(200, 50, 3, 0.5), (100, 200, 4, 0.4), (500, 100, 10, 0.1)]
)
def test_factors(rows, columns, factors, strength):
    counts = []
    for seed in range(10):
        rng = np.random.default_rng([9, seed])
        common = rng.standard_normal((rows, factors)) @ rng.standard_normal((factors, columns))
        counts.append(components(rng.standard_normal((rows, columns)) + np.sqrt(strength) * common).count)
    assert np.median(counts) == factors
    assert np.mean(np.array(counts) == factors) >= 0.8


def test_factors_in_correlated_noise():
    rng = np.random.default_rng(1)
    common = rng.standard_normal((200, 2)) @ rng.standard_normal((2, 60))
    assert components(ar(rng, 200, 60) + 0.7 * common).count == 2


def test_the_distances_of_noise_have_the_law_of_the_edge():
    """The largest distance of white noise has about the 90 % quantile of the Airy process."""
    rng = np.random.default_rng(2)
    values = []
    for _ in range(200):
        X = rng.standard_normal((150, 60))
        values.append(np.linalg.eigvalsh(X.T @ X)[::-1][:8])
    found = distances_of(np.array(values), 1)[:, 0]
    null = distances_of(airy_points(), 1)[:, 0]
    assert np.mean(found > np.quantile(null, 0.9)) == pytest.approx(0.1, abs=0.06)
    assert np.median(found) == pytest.approx(np.median(null), abs=0.3)


def test_scale_and_order_of_columns_do_not_matter():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((150, 40)) + rng.standard_normal((150, 1))
    first, second = components(X), components(X[:, ::-1] * np.geomspace(1, 1e6, 40) + 5)
    np.testing.assert_allclose(first.eigenvalues, second.eigenvalues, rtol=1e-9, atol=1e-12)
    assert first.count == second.count == 1


def test_few_columns():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((300, 5)) + 2 * rng.standard_normal((300, 1))
    result = components(X)
    assert result.count == 1
    assert "fewer than 9 rows or columns" in " ".join(result.sentences())


def test_the_command(tmp_path):
    from typer.testing import CliRunner

    from limitlab.show.cli import app

    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.standard_normal((100, 30)) + rng.standard_normal((100, 1))).add_prefix("gene")
    frame["id"], frame["name"], frame["age"] = np.arange(100), [f"n{i}" for i in range(100)], rng.standard_normal(100)
    frame.loc[3, "gene0"] = np.nan
    file, figure = tmp_path / "genes.csv", tmp_path / "spectrum.png"
    frame.to_csv(file, index=False)
    done = CliRunner().invoke(app, ["components", str(file), "--leave-out", "age", "--plot", str(figure)])
    assert done.exit_code == 0, done.output
    assert "1 component is separated" in done.output
    assert "gene0: 1 missing values" in done.output
    assert figure.stat().st_size > 5000
    answer = json.loads(CliRunner().invoke(app, ["components", str(file), "--json"]).stdout)
    assert (answer["count"], answer["columns"]) == (1, 31)
    np.savez(tmp_path / "genes.npz", genes=frame.filter(like="gene").fillna(0).to_numpy(), other=np.arange(100))
    assert components(tmp_path / "genes.npz").count == 1


@pytest.mark.parametrize(
    ("data", "options", "complaint"),
    [
        (np.ones((50, 10)), {}, "0 usable columns"),
        (np.full((50, 10), np.nan), {}, "must be finite numbers"),
        (np.eye(20), {"level": 0.0}, "level = 0.0"),
        ("absent.csv", {}, "there is no such file"),
    ],
)
def test_bad_input(data, options, complaint):
    with pytest.raises(ValueError, match=complaint) as caught:
        components(data, **options)
    assert "\n" not in str(caught.value)
