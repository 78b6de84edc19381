"""Pilot tables of a planned study: the corrected AUC, leverages, files, the command, bad input."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from limitlab.applied import read_pilot, sample_size
from limitlab.applied.pilot import auc_of, leverages, scores_without, variation, whitened
from limitlab.models.logistic import fit_logistic

WEAK = [4, 8, 9, 11, 14, 15, 16, 18, 19]
"""Columns of the breast cancer table that do not separate its classes."""


def drawn(rng, n, p, intercept=-1.8259, signal=1.3417):
    """A study whose true model has AUC 0.8 and prevalence 0.2."""
    X = rng.standard_normal((n, p))
    return X, rng.random(n) < 1 / (1 + np.exp(-intercept - signal * X[:, 0]))


def test_the_apparent_auc_is_corrected():
    """In the mean over pilots: too good on its own rows, too bad for a fit of this size, right for the true model."""
    rng = np.random.default_rng(1)
    found = [read_pilot(drawn(rng, 300, 12)) for _ in range(16)]
    apparent, alone, corrected = (
        np.array([getattr(one, name) for one in found]) for name in ("apparent_auc", "held_out_auc", "auc")
    )
    error = corrected.std(ddof=1) / 4
    assert abs(corrected.mean() - 0.8) < 4 * error < 0.03
    assert apparent.mean() - 0.8 > 2 * error
    assert 0.8 - alone.mean() > 2 * error


def test_scores_without_a_row_are_those_of_refits():
    """Row by row, and in their spread: closer than the scores of the fit on its own rows."""
    X, y = drawn(np.random.default_rng(0), 150, 6)
    Z, labels = whitened(X), y.astype(float)
    fit = fit_logistic(Z, labels)
    seen = fit.intercept + Z @ fit.coefficients
    quick, refitted = scores_without(Z, labels, seen), np.empty(150)
    for row in range(150):
        kept = np.arange(150) != row
        again = fit_logistic(Z[kept], labels[kept])
        refitted[row] = again.intercept + Z[row] @ again.coefficients
    assert np.linalg.norm(quick - refitted) < 0.1 * np.linalg.norm(seen - refitted)
    gap = abs(read_pilot((X, y)).score_spread - refitted.std())
    assert gap < 0.005 * refitted.std()
    assert gap < 0.2 * abs(seen.std() - refitted.std())


def test_breast_cancer():
    """A strength near 2.6 by the law, and leverages that normal scores even out."""
    data = load_breast_cancer()
    found = read_pilot((data.data[:, WEAK], 1 - data.target))
    assert found.signal == pytest.approx(2.63, abs=0.1)
    assert found.skewed
    assert found.scored_variation < 0.7 < 2 < found.leverage_variation
    assert "a few rows determine the fit" in found.remarks()[1]
    scored = read_pilot((data.data[:, :15], data.target))
    assert scored.leverage_variation == pytest.approx(1.38, abs=0.01)
    assert scored.scored_variation == pytest.approx(0.87, abs=0.01)


def test_leverages_of_gaussian_predictors():
    rng, n, p = np.random.default_rng(0), 40, 10
    spreads = [variation(leverages(whitened(rng.standard_normal((n, p))))) for _ in range(200)]
    want = np.sqrt(2 * (n - 1 - p) / (p * (n + 1)))
    assert np.mean(np.square(spreads)) == pytest.approx(want**2, rel=0.05)
    found = read_pilot(drawn(rng, 200, p))
    assert found.gaussian_variation == pytest.approx(np.sqrt(2 * 189 / (10 * 201)))


def test_a_file_with_a_category(tmp_path):
    """Levels of a category count one less; what the file tells can be overruled."""
    rng = np.random.default_rng(3)
    X, y = drawn(rng, 250, 4, intercept=-0.5)
    places = np.array(["north", "south", "west"])[rng.integers(3, size=250)]
    file = tmp_path / "pilot.csv"
    lines = ["a,b,c,d,place,died"] + [
        ",".join([*(f"{value:.6f}" for value in row), place, "yes" if label else "no"])
        for row, place, label in zip(X, places, y, strict=True)
    ]
    file.write_text("\n".join(lines))
    found = sample_size(pilot=file, target="died")
    assert (found.predictors, found.pilot.samples) == (6, 250)
    assert found.prevalence == pytest.approx(y.mean())
    assert found.pilot.notes[-1] == "label 1 is yes"
    assert sample_size(pilot=file, target="died", predictors=20, auc=0.8, prevalence=0.2).samples == 1323
    assert found.samples == sample_size(6, found.auc, found.prevalence).samples

    from typer.testing import CliRunner

    from limitlab.show.cli import app

    asked = ["sample-size", "--pilot", str(file), "--target", "died"]
    shown = json.loads(CliRunner().invoke(app, [*asked, "--json"]).stdout)
    assert shown["samples"] == found.samples
    assert "for the true model" in shown["pilot"]["remarks"][0]
    words = CliRunner().invoke(app, asked)
    assert words.exit_code == 0
    assert "leverages vary" in words.output
    wrong = CliRunner().invoke(app, ["sample-size", "--pilot", str(file), "--target", "dead"])
    assert wrong.exit_code == 2
    assert "did you mean" in wrong.output


def test_nothing_is_unpickled(tmp_path):
    file = tmp_path / "pilot.pkl"
    file.write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(ValueError, match="pickles are never read"):
        sample_size(pilot=file, target="y")


def noise(n, p, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)), rng.integers(2, size=n)


@pytest.mark.parametrize(
    ("pilot", "complaint"),
    [
        (noise(30, 40), "30 rows for 29 predictors"),
        (noise(60, 30), "can be separated"),
        (noise(400, 40), "no signal beyond chance"),
        ((np.eye(4), [0, 1, 2, 0]), "3 classes"),
        ((np.eye(4), [0, 1]), "of shape"),
    ],
)
def test_bad_pilots(pilot, complaint):
    with pytest.raises(ValueError, match=complaint):
        sample_size(pilot=pilot)


def test_missing_numbers():
    with pytest.raises(ValueError, match="or a pilot table"):
        sample_size(predictors=10, auc=0.8)
    with pytest.raises(ValueError, match="target is missing"):
        sample_size(pilot="pilot.csv")


def test_ties():
    assert auc_of(np.zeros(4), np.array([0.0, 1.0, 0.0, 1.0])) == 0.5
