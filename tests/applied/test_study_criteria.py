"""Published criteria for sample sizes: published examples, simulations behind the formulas, assurance, intervals of a pilot."""

import json

import numpy as np
import pytest

from limitlab.applied import continuous_size, sample_size, survival_size, validation_size
from limitlab.applied.pilot import newton_fit, read_pilot, signal_interval, simulated_fits
from limitlab.applied.study_criteria import auc_variance, slope_size
from limitlab.applied.study_size import riley_criteria
from limitlab.laws.classification.gaussian_score import TrueScore
from limitlab.models.logistic import fit_logistic

# Examples of the manual and the tests of the R package pmsampsize (versions 1.1.1 and later)


@pytest.mark.parametrize(
    ("r_squared", "predictors", "prevalence", "want"),
    [
        (0.288, 24, 0.174, (623, 662, 221)),
        (0.55, 24, 0.174, (255, 532, 221)),
        (0.288, 36, 0.174, (934, 992, 221)),
        (0.288, 24, 0.25, (623, 590, 289)),
    ],
)
def test_published_examples_for_labels(r_squared, predictors, prevalence, want):
    assert tuple(riley_criteria(predictors, prevalence, r_squared).values()) == want


@pytest.mark.parametrize(
    ("r_squared", "predictors", "mean", "sd", "want"),
    [
        (0.2, 25, 1.9, 0.6, (918, 401, 259)),
        (0.3, 25, 1.9, 0.6, (574, 351, 259)),
        (0.2, 50, 1.9, 0.6, (1924, 801, 284)),
        (0.5, 100, 1.9, 2.0, (1264, 1001, 334)),
    ],
)
def test_published_examples_for_numbers(r_squared, predictors, mean, sd, want):
    study = continuous_size(predictors, r_squared, mean, sd)
    assert tuple(study.criteria.values())[:3] == want
    assert study.samples == want[0]
    assert study.decides == "shrinkage"


@pytest.mark.parametrize(
    ("r_squared", "predictors", "rate", "horizon", "follow_up", "want"),
    [
        (0.051, 25, 0.065, 2, 2.07, (4286, 866)),
        (0.065, 25, 0.065, 2, 2.07, (3335, 859)),
        (0.051, 50, 0.065, 2, 2.07, (8572, 1731)),
        (0.06, 40, 0.08, 3, 5, (5798, 969)),
        (0.03, 10, 0.09, 3, 3, (2950, 272)),
        (0.3, 80, 0.03, 1, 5, (1974, 2272)),
    ],
)
def test_published_examples_for_times(r_squared, predictors, rate, horizon, follow_up, want):
    study = survival_size(predictors, r_squared, rate, follow_up, horizon)
    assert np.abs(np.array(list(study.criteria.values())[:2]) - want).max() <= 1  # the package rounds the number of events
    assert study.samples == pytest.approx(max(want), abs=1)


def test_published_example_of_a_validation():
    """The package rounds the standard error, and simulates a million scores for the slope."""
    study = validation_size(0.018, 0.8, score_mean=-5, score_sd=2.5, ratio_width=1)
    assert study.criteria["observed over expected"] == pytest.approx(905, abs=1)
    assert study.criteria["calibration slope"] == pytest.approx(4544, rel=0.01)
    assert study.criteria["AUC"] == 4252


# -- simulations behind the formulas ---------------------------------------------------------------------------------------


def test_the_standard_error_of_the_slope():
    """Slopes of refits of a calibrated score to simulated validations."""
    from scipy.special import expit

    mean, sd, n, rng = -1.0, 1.5, 400, np.random.default_rng(0)
    slopes = []
    for _ in range(400):
        score = mean + sd * rng.standard_normal(n)
        y = (rng.random(n) < expit(score)).astype(float)
        slopes.append(newton_fit(np.column_stack([score, np.ones(n)]), y)[0])
    assert slope_size(mean, sd, float(np.std(slopes))) == pytest.approx(n, rel=0.2)


def test_the_standard_error_of_auc_and_net_benefit():
    from scipy.special import expit
    from scipy.stats import mannwhitneyu

    truth, n, cut, rng = TrueScore(-1.0, 1.5), 400, 0.4, np.random.default_rng(1)
    areas, benefits = [], []
    for _ in range(400):
        risk = expit(truth.intercept + truth.signal * rng.standard_normal(n))
        y = rng.random(n) < risk
        areas.append(mannwhitneyu(risk[y], risk[~y]).statistic / y.sum() / (~y).sum())
        odds = cut / (1 - cut)
        benefits.append((np.mean(y & (risk > cut)) - odds * np.mean(~y & (risk > cut))) / y.mean())
    assert np.sqrt(auc_variance(n, truth.auc, truth.prevalence)) == pytest.approx(np.std(areas), rel=0.12)
    width = 2 * 1.96 * float(np.std(benefits))
    study = validation_size(truth.prevalence, truth.auc, score_mean=-1.0, score_sd=1.5, threshold=cut, benefit_width=width)
    assert study.criteria["net benefit"] == pytest.approx(n, rel=0.25)


def test_the_standard_errors_of_a_continuous_validation():
    r_squared, n, rng = 0.4, 500, np.random.default_rng(2)
    values, slopes, means = [], [], []
    for _ in range(600):
        guess = np.sqrt(r_squared) * rng.standard_normal(n)
        y = guess + np.sqrt(1 - r_squared) * rng.standard_normal(n)
        values.append(np.corrcoef(guess, y)[0, 1] ** 2)
        slopes.append(np.polyfit(guess, y, 1)[0])
        means.append(np.mean(y - guess))
    width = [2 * 1.96 * float(np.std(found)) for found in (values, slopes, means)]
    study = validation_size(r_squared=r_squared, r_squared_width=width[0], slope_width=width[1], mean_width=width[2])
    for name in ("R^2", "calibration slope", "mean error"):
        assert study.criteria[name] == pytest.approx(n, rel=0.2), name


def test_linear_shrinkage_of_simulated_studies():
    """Copas' formula gives the mean slope of new outcomes on the predictions of simulated linear regressions."""
    p, r_squared, rng = 10, 0.3, np.random.default_rng(3)
    n = continuous_size(p, r_squared).criteria["shrinkage"]
    slopes = []
    for _ in range(300):
        X = rng.standard_normal((n, p))
        y = np.sqrt(r_squared) * X[:, 0] + np.sqrt(1 - r_squared) * rng.standard_normal(n)
        beta = np.linalg.lstsq(np.column_stack([X, np.ones(n)]), y, rcond=None)[0][:p]
        slopes.append(np.sqrt(r_squared) * beta[0] / (beta @ beta))
    assert np.mean(slopes) == pytest.approx(0.9, abs=0.02)


def test_simulated_fits_are_logistic_regressions():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    y = (rng.random(80) < 0.4).astype(float)
    fit = fit_logistic(X, y)
    np.testing.assert_allclose(
        newton_fit(np.column_stack([X, np.ones(80)]), y), [*fit.coefficients, fit.intercept], atol=1e-7
    )
    separable = np.column_stack([np.arange(-5, 5) + 0.5, np.ones(10)])
    assert newton_fit(separable, (separable[:, 0] > 0).astype(float)) is None


# -- all criteria, assurance and the interval of a pilot -------------------------------------------------------------------


def test_all_of_rileys_criteria_are_shown():
    study = sample_size(3, auc=0.9, prevalence=0.5)
    assert dict(study.riley_criteria) == {"shrinkage": 45, "optimism": 59, "prevalence": 385}
    assert study.recommended == 385
    assert study.decides == "Riley (iii), prevalence within 0.05"
    facts = study.page().facts
    assert facts["samples"].startswith("385 (193 events)")
    assert facts["Riley, all three"] == "385"
    study = sample_size(20, auc=0.8, prevalence=0.2)
    assert (study.recommended, study.decides) == (1323, "calibration slope")


def test_r_squared_replaces_the_auc():
    study = sample_size(24, prevalence=0.174, r_squared=0.288)
    assert tuple(study.riley_criteria.values()) == (623, 662, 221)
    assert sample_size(24, auc=study.auc, prevalence=0.174).samples == study.samples


def test_assurance():
    """At the assured number of samples, 70 % of other simulated studies have the required slope."""
    study = sample_size(6, auc=0.8, prevalence=0.4, calibration_slope=0.8, assurance=0.7)
    assert study.samples == study.needed["assurance"] > study.needed["calibration_slope"]
    slopes = simulated_fits(TrueScore(study.intercept, study.signal), 6, study.samples, 1500, seed=77).slopes
    assert np.mean(slopes >= 0.8) == pytest.approx(0.7, abs=0.035)


def drawn(n, seed, p=10):
    from scipy.special import expit

    study = sample_size(p, auc=0.75, prevalence=0.3)
    rng = np.random.default_rng([seed, 5])
    X = rng.standard_normal((n, p))
    return study, X, (rng.random(n) < expit(study.intercept + study.signal * X[:, 0])).astype(float)


def test_the_interval_of_a_pilot():
    truth, X, y = drawn(600, 0)
    planned = sample_size(pilot=(X, y))
    low, high = planned.interval
    assert low < planned.samples < high
    assert low < truth.samples < high
    assert "interval from the pilot" in planned.page().facts
    truth, X, y = drawn(150, 1)
    wide = sample_size(pilot=(X, y)).interval
    assert np.log(wide[1] / wide[0]) > 1.3 * np.log(high / low)
    assert sample_size(pilot=(X, y), auc=0.75).interval is None  # the pilot did not determine the AUC


@pytest.mark.slow
def test_coverage_of_the_signal_of_a_pilot():
    """The 90 % interval holds the true signal in 85 to 95 % of pilots."""
    held = []
    for seed in range(100):
        truth, X, y = drawn(200, 100 + seed)
        low, high = signal_interval(read_pilot((X, y)))
        held.append(low <= truth.signal <= high)
    assert 0.83 <= np.mean(held) <= 0.97


# -- the command and bad input ---------------------------------------------------------------------------------------------


SURVIVAL = [
    *("--outcome", "survival", "--predictors", "30", "--r-squared", "0.051"),
    *("--rate", "0.065", "--follow-up", "2.07", "--horizon", "2"),
]


@pytest.mark.parametrize(
    ("arguments", "samples", "words"),
    [
        (["--outcome", "continuous", "--predictors", "25", "--r-squared", "0.2"], 918, "918; the criterion that decides is shrinkage"),
        (SURVIVAL, 5143, "5143 (692 events)"),
        (
            ["--validation", "--prevalence", "0.018", "--auc", "0.8", "--score-mean", "-5", "--score-sd", "2.5"], 21028,
            "observed over expected",
        ),
        (["--validation", "--outcome", "continuous", "--r-squared", "0.5"], 769, "R^2"),
    ],
)  # fmt: skip
def test_commands(arguments, samples, words, tmp_path):
    from typer.testing import CliRunner

    from limitlab.show.cli import app

    shown = CliRunner().invoke(app, ["sample-size", *arguments])
    assert shown.exit_code == 0, shown.output
    assert words in " ".join(shown.output.split())
    figure = tmp_path / "criteria.png"
    done = CliRunner().invoke(app, ["sample-size", *arguments, "--json", "--plot", str(figure)])
    assert json.loads(done.stdout)["samples"] == pytest.approx(samples, rel=0.1)
    assert figure.stat().st_size > 5000


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (
            dict(outcome="continuous", predictors=5, r_squared=1.2),
            "r_squared = 1.2 is not allowed: must be above 0 and below 1",
        ),
        (dict(outcome="continuous", predictors=5), "r_squared is missing: a continuous outcome needs"),
        (dict(outcome="continuous", predictors=5, r_squared=0.2, auc=0.8), "auc = 0.8 is not used for a continuous outcome"),
        (dict(outcome="continuous", predictors=5, r_squared=0.2, mean=3.0), "mean and sd belong together"),
        (dict(outcome="survival", predictors=5, r_squared=0.2, rate=0.1, follow_up=2), "horizon is missing"),
        (dict(outcome="survival", predictors=5, r_squared=0.9, rate=0.01, follow_up=2, horizon=1), "r_squared = 0.9"),
        (dict(outcome="survival", validation=True), "is not available"),
        (dict(validation=True, auc=0.8), "prevalence and auc are required"),
        (dict(validation=True, auc=0.8, prevalence=0.2, predictors=3), "predictors = 3 is not used"),
        (dict(predictors=5, auc=0.8, prevalence=0.2, rate=0.1), "rate = 0.1 is not used for a logistic regression"),
        (dict(predictors=5, auc=0.8, prevalence=0.2, r_squared=0.1), "auc together with r_squared"),
        (dict(predictors=5, auc=0.8, prevalence=0.2, assurance=1.0), "assurance = 1.0"),
    ],
)
def test_bad_input(given, complaint):
    with pytest.raises(ValueError, match=complaint) as caught:
        sample_size(**given)
    assert "\n" not in str(caught.value)
