"""Channels and priors made from functions: special cases, integrals, engines and refusals."""

import pickle

import numpy as np
import pytest
from scipy.special import expit, log_ndtr, ndtr

from limitlab.errors import Refused
from limitlab.laws import (
    BayesOptimal,
    CoefficientPrior,
    LogisticCalibration,
    MaxMargin,
    OnlineSingleIndex,
    OutputChannel,
    RandomFeaturesMargin,
)


def steep_probit(z):
    return ndtr(2 * z)


def probit_likelihood(y, z):
    return log_ndtr(2 * y * z)


def probit_sampler(rng, z):
    return np.where(rng.random(z.shape) < ndtr(2 * z), 1.0, -1.0)


def sign_likelihood(y, z):
    return np.where(y * z > 0, 0.0, -np.inf)


def sign_sampler(rng, z):
    return np.sign(z)


def identity(z):
    return z


def normal(x):
    return np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)


def slab(x):
    return 0.3 * np.sqrt(0.3) * normal(np.sqrt(0.3) * x)


PROBIT = OutputChannel.from_log_likelihood(probit_likelihood, probit_sampler, labels=(-1, 1))
SIGN = OutputChannel.from_log_likelihood(sign_likelihood, sign_sampler, labels=(-1, 1))
SIGNS = CoefficientPrior.table([-1, 1], [0.5, 0.5])

SPECIAL = {
    "probit": (dict(ratio=0.6, channel=PROBIT), dict(ratio=0.6, channel="probit", link_strength=2.0)),
    "probability": (
        dict(ratio=0.6, channel=OutputChannel.from_probability(steep_probit)),
        dict(ratio=0.6, channel="probit", link_strength=2.0),
    ),
    "sign": (dict(ratio=0.5, channel=SIGN), dict(ratio=0.5, channel="sign")),
    "gaussian": (
        dict(ratio=0.6, channel=OutputChannel.from_link(identity, 0.5)),
        dict(ratio=0.6, channel="gaussian", noise=0.5),
    ),
    "abs": (dict(ratio=0.6, channel=OutputChannel.from_link(np.abs, 0.5)), dict(ratio=0.6, channel="abs", noise=0.5)),
    "normal prior": (
        dict(ratio=0.6, channel="probit", link_strength=2.0, prior=CoefficientPrior.from_density(normal, -12, 12)),
        dict(ratio=0.6, channel="probit", link_strength=2.0),
    ),
    "sparse prior": (
        dict(ratio=1.2, channel="gaussian", noise=0.4, prior=CoefficientPrior.from_density(slab, -22, 22, atoms=[(0, 0.7)])),
        dict(ratio=1.2, channel="gaussian", noise=0.4, prior="sparse", density=0.3),
    ),
    "table prior": (
        dict(ratio=0.8, channel="flip", link_strength=0.1, prior=SIGNS),
        dict(ratio=0.8, channel="flip", link_strength=0.1, prior="rademacher"),
    ),
}


@pytest.mark.parametrize("case", SPECIAL)
def test_a_known_channel_or_prior_given_as_functions(case):
    ours, known = (BayesOptimal(**parameters).evaluate() for parameters in SPECIAL[case])
    for name, value in known.items():
        if name != "accuracy":
            assert float(ours[name]) == pytest.approx(float(value), rel=1e-8, abs=1e-8), name


def test_perfect_recovery_of_signs():
    law = BayesOptimal(ratio=0.6, channel=SIGN, prior=SIGNS)
    assert law.overlaps()[0] == 1.0
    assert law.theory().phase == BayesOptimal(ratio=0.6, prior="rademacher").theory().phase


@pytest.mark.parametrize("precision", [1e-3, 0.5, 20.0, 1e4, 1e8])
def test_overlap_and_precision_of_a_density(precision):
    from limitlab.laws.classification._own_channels import OwnPrior

    prior = OwnPrior(CoefficientPrior.from_density(normal, -12, 12))
    q = prior.recovered(precision)
    assert q == pytest.approx(precision / (1 + precision), rel=1e-9)
    if precision < 1e6:
        assert prior.precision_of(q) == pytest.approx(precision, rel=1e-6)


def test_laplace_noise_has_a_kink_that_moves_with_the_label():
    channel = OutputChannel.from_log_likelihood(
        lambda y, z: -np.abs(y - np.tanh(z)) / 0.5, lambda rng, z: np.tanh(z) + rng.laplace(0, 0.5, z.shape)
    )
    assert 0 < channel.error < 1e-3
    assert channel.has_variance
    z = np.array([-1.0, 0.4])
    np.testing.assert_allclose(channel.mean(z), np.tanh(z), atol=1e-4)
    np.testing.assert_allclose(channel.second_moment(z) - channel.mean(z) ** 2, 0.5, atol=1e-3)


def test_labels_without_variance_have_no_test_error():
    channel = OutputChannel.from_log_likelihood(
        lambda y, z: -np.log(np.pi * (1 + (y - z) ** 2)), lambda rng, z: z + rng.standard_cauchy(z.shape)
    )
    assert not channel.has_variance
    assert BayesOptimal(channel=channel).observed() == ("overlap_gamp", "precision_gamp", "estimation_error_gamp")


def test_draws_of_a_prior_with_atoms_and_density():
    prior = CoefficientPrior.from_density(lambda x: 0 * x + 0.25, -1, 1, atoms=[(0.5, 0.5)], scale=True)
    drawn = prior.draw(np.random.default_rng(0), 100_000)
    assert np.mean(drawn == prior.points[0]) == pytest.approx(0.5, abs=0.01)
    assert np.mean(drawn**2) == pytest.approx(1.0, abs=0.02)
    assert drawn.mean() == pytest.approx(prior.mean, abs=0.02)


@pytest.mark.parametrize(
    "law",
    [
        BayesOptimal(
            ratio=0.8,
            channel="probit",
            link_strength=2.0,
            prior=CoefficientPrior.table([0, 1, 2], [0.6, 0.2, 0.2], scale=True),
        ),
        BayesOptimal(ratio=0.6, channel=OutputChannel.from_probability(lambda z: np.where(z > 0, 0.9, 0.2))),
        MaxMargin(ratio=1.5, link=OutputChannel.from_probability(lambda z: np.where(z > 0.3, 0.95, 0.1))),
        LogisticCalibration(ratio=0.1, channel=OutputChannel.from_probability(lambda z: np.where(z > 0, 0.9, 0.2))),
        OnlineSingleIndex(
            channel=OutputChannel.from_link(np.tanh, 0.4), student="tanh", start_overlap=0.3, times=(0.5, 1.5)
        ),
    ],
    ids=lambda law: type(law).__name__,
)
def test_experiments_with_a_channel_do_not_contradict_the_prediction(law):
    import limitlab as ll

    comparison = ll.compare(
        law, sizes=(40, 80) if not isinstance(law, BayesOptimal) else (100, 200), seeds=60, resolution=0.5
    )
    assert comparison.verdict != "disagree", str(comparison)
    assert max(abs(row.z) for row in comparison.rows) < 4


def test_known_links_as_channels_of_other_laws():
    ours, known = MaxMargin(link=PROBIT).evaluate(), MaxMargin(link="probit", link_strength=2.0).evaluate()
    assert float(ours["margin"]) == pytest.approx(float(known["margin"]), rel=1e-10)
    ours = LogisticCalibration(intercept=-1.0, channel=OutputChannel.from_probability(expit)).evaluate()
    known = LogisticCalibration(intercept=-1.0).evaluate()
    for name in ("bias_factor", "calibration_slope", "auc", "brier_score"):
        assert float(ours[name]) == pytest.approx(float(known[name]), rel=1e-9)
    relu = OutputChannel.from_link(lambda z: np.maximum(z, 0), 0.5)
    np.testing.assert_allclose(
        OnlineSingleIndex(channel=relu).evaluate()["overlap"], OnlineSingleIndex(noise=0.5).evaluate()["overlap"], rtol=1e-9
    )


def test_named_functions_are_pickled_and_tables_are_records():
    for value in (PROBIT, OutputChannel.from_link(np.tanh, 0.3), SIGNS, CoefficientPrior.from_density(normal, -12, 12)):
        assert pickle.loads(pickle.dumps(value)) == value
    law = BayesOptimal(channel="probit", link_strength=1.0, prior=SIGNS)
    assert BayesOptimal.model_validate_json(law.model_dump_json()) == law
    assert OutputChannel.from_link(np.tanh, 0.3) != OutputChannel.from_link(np.tanh, 0.4)


TANH = OutputChannel.from_link(np.tanh, 0.3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: OutputChannel(np.tanh),
        lambda: OutputChannel.from_link(np.tanh, 0.0),
        lambda: OutputChannel.from_link(lambda z: np.ones(3), 0.3),
        lambda: OutputChannel.from_link(lambda z: z / 0, 0.3),
        lambda: OutputChannel.from_link(lambda z: np.nan * z, 0.3),
        lambda: OutputChannel.from_link(np.exp, 0.1),
        lambda: OutputChannel.from_probability(np.tanh),
        lambda: OutputChannel.from_log_likelihood(lambda y, z: -np.abs(y - z), lambda r, z: z + r.laplace(0, 1, z.shape)),
        lambda: OutputChannel.from_log_likelihood(  # the sampler has twice the scale
            lambda y, z: -np.abs(y - z) - np.log(2), lambda r, z: z + r.laplace(0, 2, z.shape)
        ),
        lambda: OutputChannel.from_log_likelihood(probit_likelihood, lambda r, z: 1.0, labels=(-1, 1)),
        lambda: OutputChannel.from_log_likelihood(probit_likelihood, probit_sampler, labels=(1, 1)),
        lambda: OutputChannel.from_log_likelihood(lambda y, z: np.log(0.6) + 0 * z * y, probit_sampler, labels=(-1, 1)),
        lambda: CoefficientPrior.table([1, 2], [0.5, 0.4]),
        lambda: CoefficientPrior.table([1, 2], [0.5, 0.5]),
        lambda: CoefficientPrior.table([1, 2], [0.5, 0.5, 0.0]),
        lambda: CoefficientPrior.table([], []),
        lambda: CoefficientPrior.table([np.nan], [1.0]),
        lambda: CoefficientPrior.from_density(lambda x: 1 + 0 * x, -1, 1),
        lambda: CoefficientPrior.from_density(lambda x: 1 / x**2, -1, 1),
        lambda: CoefficientPrior.from_density(normal, -np.inf, np.inf),
        lambda: CoefficientPrior.from_density(lambda x: x, -1, 1),
        lambda: BayesOptimal(channel=np.tanh),
        lambda: BayesOptimal(channel=TANH, noise=0.3),
        lambda: BayesOptimal(prior=SIGNS, density=0.3),
        lambda: MaxMargin(link=TANH),
        lambda: RandomFeaturesMargin(link=TANH),
        lambda: LogisticCalibration(channel=TANH),
        lambda: LogisticCalibration(
            channel=OutputChannel.from_probability(lambda z: 0.3 + 0.2 * np.tanh(z)), prevalence=0.9
        ).theory(),
        lambda: OnlineSingleIndex(channel=PROBIT),
        lambda: OnlineSingleIndex(channel=TANH, noise=0.3),
        lambda: OnlineSingleIndex(channel=TANH, teacher="tanh"),
    ],
)
def test_channels_and_priors_that_cannot_work_are_refused(make):
    with pytest.raises(ValueError, match="not allowed"):
        make()


def test_a_channel_is_sent_to_worker_processes():
    import limitlab as ll

    law = OnlineSingleIndex(channel=OutputChannel.from_link(np.tanh, 0.3), student="tanh", times=(0.5,))
    serial, other = (
        ll.sweep(law, over={"step": [0.3, 0.5]}, sizes=[30], seeds=2, engine=e) for e in ("serial", "processes")
    )
    np.testing.assert_array_equal(serial.overlap.values, other.overlap.values)


def test_refusals_are_of_the_project():
    with pytest.raises(Refused):
        OutputChannel.from_link(np.tanh, -1.0)
