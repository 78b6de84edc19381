"""The gap to the best possible error: reference values of all losses, no law and no experiment below it, refusals."""

import math
from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from limitlab.laws import (
    BayesOptimal,
    ConvexLoss,
    Distillation,
    EarlyStopping,
    LogisticCalibration,
    MaxMargin,
    ModelCollapse,
    MultiPassLeastSquares,
    RandomFeaturesMargin,
    RandomFeaturesRidge,
    Ridge,
)
from limitlab.laws.classification.convex_loss import solve_loss
from limitlab.laws.classification.populations import Isotropic
from limitlab.models.links import Labels, Link
from limitlab.models.losses import loss
from references import label, reference

LINKS = (("sign", 1.0), ("flip", 0.1), ("probit", 2.0), ("logit", 3.0))


# -- reference values -----------------------------------------------------------------------------------------------------


def error_of(name, labels, ratio, ridge):
    """Classification error of a loss on the inputs themselves."""
    return solve_loss(loss(name), labels, Isotropic(ratio), ridge).error


@pytest.mark.parametrize("entry", reference("best_possible", "gap_to_bayes"), ids=label)
def test_reference_values(entry):
    """Bayes, max margin and three losses at their best penalties."""
    want, ratio = entry["outputs"], entry["inputs"]["ratio"]
    found = MaxMargin(ratio=ratio, link=entry["inputs"]["link"]).gap_to_best()
    assert float(found.best_error) == pytest.approx(want["bayes"], abs=5e-6)
    assert float(found.classification_error) == pytest.approx(want["max_margin"], abs=5e-6)
    labels = Labels(Link(entry["inputs"]["link"]))
    for name in ("logistic", "hinge", "square"):
        error = partial(error_of, name, labels, ratio)
        start = math.log(want[f"{name}_ridge"])
        best = minimize_scalar(
            lambda x, f=error: f(math.exp(x)), bounds=(start - 0.2, start + 0.2), method="bounded", options={"xatol": 1e-2}
        )
        assert best.fun == pytest.approx(want[f"{name}_best"], abs=5e-6), name
        assert math.exp(best.x) == pytest.approx(want[f"{name}_ridge"], rel=3e-2), name


TABLE = [
    ("sign", 1.0, 0.5, 0.322395, dict(logistic=(0.0895, 0.322407), hinge=(1.16, 0.326698), square=(1.14, 0.322845)), 0.328850),
    ("sign", 1.0, 2, 0.174534, dict(logistic=(0.0081, 0.174587), hinge=(0.0713, 0.184975), square=(0.285, 0.186028)), 0.188479),
    ("sign", 1.0, 8, 0.054065, dict(logistic=(0.00021, 0.054097), hinge=(0.0015, 0.059394), square=(0.0714, 0.088094)), 0.060904),
    ("probit", 2.0, 1, 0.311266, dict(logistic=(0.135, 0.311271), hinge=(0.740, 0.317918), square=(0.963, 0.311811)), 0.328987),
    ("probit", 2.0, 4, 0.209247, dict(logistic=(0.0264, 0.209312), hinge=(0.0683, 0.218668), square=(0.241, 0.212677)), 0.243388),
    ("logit", 3.0, 2, 0.273593, dict(logistic=(0.0802, 0.273593)), None),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("link", "strength", "samples", "bayes", "losses", "margin"), TABLE)
def test_a_table_of_gaps(link, strength, samples, bayes, losses, margin):
    """Tuned logistic regression is within 1.2e-4 of the best possible; the other losses and the largest margin are not."""
    labels, law = Labels(Link(link), strength), MaxMargin(ratio=1 / samples, link=link, link_strength=strength)
    assert law.best_possible().error()[0] == pytest.approx(bayes, abs=1e-6)
    if margin is not None:
        assert float(law.theory().classification_error) == pytest.approx(margin, abs=1e-6)
    for name, (ridge, want) in losses.items():
        error = error_of(name, labels, 1 / samples, ridge)
        assert error == pytest.approx(want, abs=2e-6), name
        assert error > bayes - 1e-6
    assert losses["logistic"][1] - bayes < 1.2e-4


# -- nothing is below -------------------------------------------------------------------------------------------------------


def log_uniform(rng, low, high):
    return float(np.exp(rng.uniform(math.log(low), math.log(high))))


def linear(rng):
    return dict(ratio=log_uniform(rng, 0.2, 4), noise=log_uniform(rng, 0.2, 1.5), signal_energy=(log_uniform(rng, 0.3, 3),))


def labelled(rng):
    link, strength = LINKS[rng.integers(len(LINKS))]
    return dict(link=link, link_strength=strength * float(rng.uniform(0.5, 1.5)))


def multi_pass(rng):
    law = MultiPassLeastSquares(**linear(rng), samples=200, step=1e-9)
    return law.replace(step=0.3 * law.largest_step(), times=(1.0, 5.0))


def with_ridge(rng, low=0.01, high=3.0):
    return dict(ridge=log_uniform(rng, low, high))


def on_features(rng):
    return dict(width_ratio=log_uniform(rng, 1, 6), sample_ratio=log_uniform(rng, 0.4, 4))


MAKERS = {
    "ridge": lambda rng: Ridge(**linear(rng), **with_ridge(rng)),
    "early stopping": lambda rng: EarlyStopping(**linear(rng), times=(0.5, 2.0, 8.0)),
    "several passes": multi_pass,
    "student": lambda rng: Distillation(
        **linear(rng), **with_ridge(rng), teacher_ratio=log_uniform(rng, 0.3, 2), teacher_ridge=log_uniform(rng, 0.01, 1)
    ),
    "student, same inputs": lambda rng: Distillation(
        **linear(rng), **with_ridge(rng), teacher_ridge=log_uniform(rng, 0.01, 1), inputs="same", mix=float(rng.uniform(-2, 2))
    ),
    "random features": lambda rng: RandomFeaturesRidge(**on_features(rng), **with_ridge(rng), signal=1.3, noise=log_uniform(rng, 0.2, 1)),
    "margin": lambda rng: MaxMargin(ratio=log_uniform(rng, 0.6, 3), **labelled(rng)),
    "margin of features": lambda rng: RandomFeaturesMargin(**on_features(rng), **labelled(rng)),
    "loss": lambda rng: ConvexLoss(
        **on_features(rng), **labelled(rng), **with_ridge(rng), loss=("square", "logistic", "hinge", "squared_hinge")[rng.integers(4)]
    ),
    "logistic": lambda rng: LogisticCalibration(
        ratio=log_uniform(rng, 0.1, 2), signal=log_uniform(rng, 0.5, 4), fit_intercept=bool(rng.integers(2)), **with_ridge(rng)
    ),
}  # fmt: skip


def assert_not_below(name, seed):
    found = MAKERS[name](np.random.default_rng([seed, len(name)])).gap_to_best()
    assert float(found.gap_to_best.min()) >= -found.attrs["accuracy"], (name, seed, found.attrs["parameters"])


@pytest.mark.parametrize("name", MAKERS)
def test_no_law_is_below(name):
    """At random parameters, beyond its numerical error."""
    for seed in range(2):
        assert_not_below(name, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("block", range(4))
def test_no_law_is_below_anywhere(name, block):
    for seed in range(10 * block, 10 * block + 10):
        assert_not_below(name, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_no_loss_on_the_inputs_themselves_is_below(seed):
    rng = np.random.default_rng(seed)
    ratio, ridge, (link, strength) = log_uniform(rng, 0.15, 4), log_uniform(rng, 0.003, 3), LINKS[seed % 4]
    best = MaxMargin(ratio=ratio, link=link, link_strength=strength).best_possible().error()[0]
    for name in ("square", "logistic", "hinge", "squared_hinge"):
        assert error_of(name, Labels(Link(link), strength), ratio, ridge) >= best - 1e-9, name


def test_no_generation_is_below_the_best_on_its_real_labels():
    """A generation has seen the real labels of its predecessors, and those only."""
    law = ModelCollapse(ratio=0.8, ridge=0.1, noise=0.6, real_share=0.3, generations=(1, 2, 5))
    for generation, excess in zip(law.generations, law.theory().excess_risk.values, strict=True):
        best = BayesOptimal(ratio=0.8 / (1 + 0.3 * (generation - 1)), channel="gaussian", noise=0.6).theory()
        assert excess > float(best.excess_risk)


def simulated_gap(law, size, seeds):
    """Experiments at two sizes, the 1/size term removed: gap to the best possible and its standard error."""
    name, parts = law.best_possible().observable, []
    for factor, p in ((-1, size), (2, 2 * size)):
        real = law.realised(p)
        runs = law.simulate_batch(p, range(seeds))[name].values - real.best_possible().error()[0]
        parts.append((factor * runs.mean(axis=0), factor**2 * runs.var(axis=0, ddof=1) / seeds))
    return sum(gap for gap, _ in parts), np.sqrt(sum(square for _, square in parts))


def assert_not_simulated_below(name, seed, size, seeds):
    law = MAKERS[name](np.random.default_rng([seed, len(name), 1]))
    gap, error = simulated_gap(law, size, seeds)
    assert (gap >= -4 * error).all(), (name, seed, gap, error, law)


@pytest.mark.parametrize("name", ["ridge", "early stopping", "student", "random features", "margin"])
def test_no_experiment_is_below(name):
    assert_not_simulated_below(name, 0, 30, 12)


def test_message_passing_is_not_below():
    law = BayesOptimal(ratio=0.6, channel="probit", link_strength=2.0)
    runs = law.simulate_batch(200, range(20)).classification_error_gamp.values
    assert runs.mean() + 4 * runs.std(ddof=1) / 20**0.5 > float(law.realised(200).theory().classification_error)


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_no_experiment_is_below_anywhere(name):
    for seed in range(1, 5):
        assert_not_simulated_below(name, seed, 60, 24)


@pytest.mark.parametrize(("ratio", "noise"), [(0.4, 0.5), (2.0, 0.5), (2.0, 1.3)])
def test_the_best_ridge_is_the_best_possible(ratio, noise):
    """For even signals of any size; also where eigenvalues differ, if the score's variance does not."""
    law = Ridge(ratio=ratio, noise=noise, signal_energy=(1.7,))
    found = law.replace(ridge=law.optimal_ridge()).gap_to_best()
    assert float(found.gap_to_best) == pytest.approx(0, abs=1e-10)
    assert float(law.gap_to_best().gap_to_best) > 1e-4
    groups = Ridge(ratio=ratio, noise=noise, eigenvalues=(1.0, 2.0), weights=(0.25, 0.75), signal_energy=(1.0, 1.5))
    assert float(groups.gap_to_best().best_error) == pytest.approx(
        Ridge(ratio=ratio, noise=noise, signal_energy=(4.0,)).best_possible().error()[0], rel=1e-12
    )


def test_the_best_method_has_the_same_data():
    """As many samples per dimension, the same labels; a student's knowledge is its teacher's."""
    law = ConvexLoss(sample_ratio=4.0, activation="tanh", link="probit", link_strength=2.0)
    assert law.best_possible() == MaxMargin(ratio=0.25, link="probit", link_strength=2.0).best_possible()
    fresh, same = (
        Distillation(ratio=0.3, teacher_ratio=0.8, inputs=inputs).best_possible().law.ratio for inputs in ("fresh", "same")
    )
    assert (fresh, same) == (0.8, 0.3)
    logistic = LogisticCalibration(ratio=0.25, signal=3.0, ridge=0.1).best_possible().law
    assert (logistic.channel, logistic.link_strength, logistic.ratio) == ("logit", 3.0, 0.25)
    assert RandomFeaturesRidge(sample_ratio=4.0, signal=2.0, noise=0.5).best_possible().law.noise == 0.25


def test_dimensions():
    found = EarlyStopping(times=(0.5, 2.0)).gap_to_best(ratio=[0.5, 2.0, 3.0], noise=[0.4, 0.8])
    assert dict(found.sizes) == {"ratio": 3, "noise": 2, "time": 2}
    one = EarlyStopping(times=(0.5, 2.0), ratio=2.0, noise=0.8).gap_to_best()
    np.testing.assert_array_equal(found.gap_to_best[1, 1], one.gap_to_best)
    np.testing.assert_allclose(found.test_error - found.best_error, found.gap_to_best)
    names = ConvexLoss(activation="tanh").gap_to_best(loss=["square", "logistic"])
    assert names.loss.values.tolist() == ["square", "logistic"]


@pytest.mark.parametrize(
    ("law", "complaint"),
    [
        (Ridge(eigenvalues=(1.0, 2.0), weights=(0.5, 0.5), signal_energy=(1.0, 1.0)), "in its groups and must be the same"),
        (Ridge(start_distance=1.0), "start_distance = 1"),
        (Ridge(noise=0.0), "noise = 0"),
        (Ridge(ratio=math.inf), "ratio = inf"),
        (Ridge(signal_energy=(0.0,)), "signal = 0"),
        (ModelCollapse(), "number of real labels"),
        (RandomFeaturesRidge(nonlinear_signal=0.5), "nonlinear_signal = 0.5"),
        (LogisticCalibration(intercept=-1.0), "intercept = -1"),
        (LogisticCalibration(ratio=0.5), "no fit to compare"),
        (
            LogisticCalibration(ratio=0.1, eigenvalues=(1.0, 2.0), weights=(0.5, 0.5), ridge=0.1),
            "must be the same in all",
        ),
        (MaxMargin(link=lambda t: 0.5 + 0.5 * np.tanh(t)), "sign, flip, probit and logit"),
    ],
)
def test_refusals(law, complaint):
    with pytest.raises(ValueError, match=complaint):
        law.gap_to_best()


def test_labels_without_information():
    for law in (
        MaxMargin(ratio=2.0, link="probit", link_strength=0.0),
        MaxMargin(ratio=2.0, link="flip", link_strength=0.5),
    ):
        found = law.gap_to_best()
        assert float(found.best_error) == pytest.approx(0.5, abs=1e-14)
        assert abs(float(found.gap_to_best)) < 1e-14
    signs = MaxMargin(ratio=2.0, link="flip", link_strength=0.0)
    assert signs.best_possible().law.channel == "sign"


def test_command(tmp_path):
    """`predict --best` has the gap on a grid, draws it, and refuses laws whose best possible error is not known."""
    import json

    from typer.testing import CliRunner

    from limitlab.show.cli import app

    picture = tmp_path / "gap.png"
    asked = ["predict", "ridge", "--ratio", "0.5,2", "--best", "--json", "--plot", str(picture)]
    shown = CliRunner().invoke(app, asked)
    assert shown.exit_code == 0, shown.output
    assert "gap_to_best" in json.dumps(json.loads(shown.stdout))
    assert picture.stat().st_size > 1000
    table = CliRunner().invoke(app, ["predict", "max-margin", "--best"])
    assert "best_error" in table.output
    refused = CliRunner().invoke(app, ["predict", "marchenko-pastur", "--best"])
    assert refused.exit_code == 2
    assert "best possible error" in refused.output
