"""Sample sizes of logistic regression: reference values, rules of thumb, simulated studies, the command, bad input."""

import json
from functools import partial

import numpy as np
import pytest

from limitlab.applied import sample_size
from limitlab.applied.study_size import riley_criteria
from references import label, reference

entries = partial(reference, "best_possible", "sample_size")


@pytest.mark.parametrize("entry", entries(), ids=label)
def test_reference_values(entry):
    found, want = sample_size(**entry["inputs"]), entry["outputs"]
    near = partial(pytest.approx, rel=1e-6, abs=1e-9)
    assert found.intercept == near(want["intercept"])
    assert found.signal == near(want["signal"])
    assert found.ratio == near(want["ratio"])
    assert found.samples == np.ceil(want["samples"])
    assert found.riley_samples == want["riley_samples"]
    assert found.riley_r2 == near(want["riley_r2_cox_snell"])
    assert found.slope_at_riley == near(want["slope_at_riley_samples"])
    assert found.slope_at_ten_events == near(want["slope_at_ten_events"])
    assert found.existence_threshold == near(want["existence_threshold"])
    risk = want["risk_no_mle"]
    np.testing.assert_allclose(found.no_fit_probability(risk["samples"]), risk["probability"], rtol=1e-6)


def test_other_requirements():
    """Each has its own n; the strictest decides; the promise holds there."""
    found = sample_size(20, 0.8, 0.2, auc_loss=0.01, log_loss_excess=0.01, error_excess=0.005)
    want = dict(calibration_slope=1323, auc_loss=1282, log_loss_excess=1067, error_excess=981)
    for name, count in want.items():
        assert found.needed[name] == pytest.approx(count, abs=2), name
    assert found.samples == max(found.needed.values())
    table = found.curve([found.needed["auc_loss"], found.samples])
    assert float(table.auc_loss[0]) == pytest.approx(0.01, rel=2e-3)
    assert float(table.calibration_slope[1]) == pytest.approx(0.9, abs=2e-4)


def test_a_fit_that_exists_may_be_all_that_is_asked():
    found = sample_size(10, 0.75, 0.4, calibration_slope=0.05, risk_no_fit=1e-6)
    assert found.samples == found.needed["no_fit_probability"]
    assert float(found.no_fit_probability(found.samples)) <= 1e-6


def test_rules_of_thumb_fail_where_the_model_is_strong():
    """Riley's shrinkage falls short of 0.9 as the AUC grows; ten events suffice for rare labels of a strong model only."""
    slopes = [sample_size(20, auc, 0.2).slope_at_riley for auc in (0.7, 0.8, 0.9)]
    np.testing.assert_allclose(slopes, [0.884, 0.855, 0.776], atol=1e-3)
    assert sample_size(20, 0.8, 0.05).slope_at_ten_events > 0.9 > sample_size(20, 0.7, 0.5).slope_at_ten_events + 0.2


def test_rileys_criteria_by_hand():
    r2, most = 0.1, 1 - np.exp(2 * (0.3 * np.log(0.3) + 0.7 * np.log(0.7)))
    shrunk = r2 / (r2 + 0.05 * most)
    want = [12 / (-0.1 * np.log(1 - r2 / 0.9)), 12 / ((shrunk - 1) * np.log(1 - r2 / shrunk)), 39.2**2 * 0.21]
    assert list(riley_criteria(12, 0.3, r2).values()) == [int(np.ceil(count)) for count in want]


def test_simulated_studies():
    found = sample_size(12, 0.8, 0.3)
    slopes = found.simulated_slopes(fits=60)
    assert slopes.mean() == pytest.approx(0.9, abs=0.05)
    assert 0.04 < slopes.std() < 0.2


GRID = [(p, auc, prevalence) for p in (10, 20, 40) for auc, prevalence in ((0.7, 0.3), (0.75, 0.5), (0.8, 0.2), (0.9, 0.5))]


@pytest.mark.slow
@pytest.mark.parametrize(("predictors", "auc", "prevalence"), GRID)
def test_the_promise_on_a_grid_of_designs(predictors, auc, prevalence):
    """The mean slope of simulated studies at the law's n is within 0.02 of 0.9."""
    slopes = sample_size(predictors, auc, prevalence).simulated_slopes(fits=6000 // predictors)
    assert slopes.std() / np.sqrt(slopes.size) < 0.006
    assert slopes.mean() == pytest.approx(0.9, abs=0.02)


def test_command():
    from typer.testing import CliRunner

    from limitlab.show.cli import app

    asked = ["sample-size", "--predictors", "20", "--auc", "0.8", "--prevalence", "0.2"]
    shown = CliRunner().invoke(app, asked)
    assert shown.exit_code == 0
    assert "1323" in shown.output
    assert "882, where the slope is 0.855" in shown.output
    assert json.loads(CliRunner().invoke(app, [*asked, "--json"]).stdout)["samples"] == 1323
    assert (
        CliRunner().invoke(app, ["sample-size", "--predictors", "20", "--auc", "0.4", "--prevalence", "0.2"]).exit_code == 2
    )


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (dict(predictors=0), "predictors = 0"),
        (dict(auc=0.5), "auc = 0.5"),
        (dict(prevalence=1.0), "prevalence"),
        (dict(calibration_slope=1.0), "calibration_slope"),
        (dict(error_excess=0.0), "error_excess"),
        (dict(risk_no_fit=0.0), "risk_no_fit"),
    ],
)
def test_bad_input(given, complaint):
    with pytest.raises(ValueError, match=complaint):
        sample_size(**{**dict(predictors=10, auc=0.8, prevalence=0.3), **given})


def real_slopes(scores, draws=600, predictors=15, samples=150):
    """Calibration slopes on a clinical table with labels drawn from a logistic model; and the spread of its leverages."""
    from scipy.special import expit, ndtri
    from scipy.stats import rankdata
    from sklearn.datasets import load_breast_cancer

    from limitlab.models.logistic import fit_logistic

    table = load_breast_cancer().data[:, :predictors]
    if scores:
        table = ndtri((rankdata(table, axis=0) - 0.5) / len(table))
    left, _, _ = np.linalg.svd(table - table.mean(axis=0), full_matrices=False)
    X, rng, slopes = left * np.sqrt(len(table)), np.random.default_rng(0), []
    for _ in range(draws):
        beta = rng.standard_normal(predictors)
        risk = expit(-0.5 + 1.5 * X @ (beta / np.linalg.norm(beta)))
        rows = rng.permutation(len(X))[:samples]
        fit = fit_logistic(X[rows], (rng.random(samples) < risk[rows]).astype(float))
        if fit.exists:
            slopes.append(fit_logistic((fit.intercept + X @ fit.coefficients)[:, None], risk).coefficients[0])
    leverage = (X**2).sum(axis=1)
    return np.array(slopes), leverage.std() / leverage.mean()


def test_skewed_predictors_need_more_and_normal_scores_help():
    """On the breast cancer table the law is too favourable; leverages that differ less bring the slope back."""
    from limitlab.laws import LogisticCalibration

    law = float(LogisticCalibration(ratio=0.1, intercept=-0.5, signal=1.5).theory().calibration_slope)
    raw, spread = real_slopes(scores=False)
    scored, less = real_slopes(scores=True)
    assert spread > 1 > less
    error = np.hypot(raw.std(), scored.std()) / np.sqrt(raw.size)
    assert raw.mean() < law - 0.03
    assert scored.mean() > raw.mean() + 2 * error
