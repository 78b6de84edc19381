"""Checks of the ledger's further statements fail when what they state is made false."""

import dataclasses

import numpy as np
import pytest

from limitlab.lab.claims import find_claims
from limitlab.laws import FiniteClass, SampledMeasure, ThresholdClass, resnet_ntk
from limitlab.laws.approximation import _claims as finite_width
from limitlab.laws.classification import _claims as classification
from limitlab.laws.classification import perceptron
from limitlab.laws.descent import _claims as descent
from limitlab.laws.descent._separable_flow import SeparableFlow
from limitlab.laws.kernels._claims import architectures as kernels
from limitlab.laws.landscapes import _claims as landscapes
from limitlab.laws.regression._claims import kernel_floor
from limitlab.laws.spectra import _claims as spectra


def leading_term(patch):
    patch.setattr(
        FiniteClass, "predicted", lambda law, models: {"largest_deviation": law.leading_term(), "largest_deviation_std": 0.4}
    )


def same_law_for_coins(patch):
    right = ThresholdClass.predicted
    patch.setattr(ThresholdClass, "predicted", lambda law: right(ThresholdClass(label_noise="none")))


def too_many_mistakes(patch):
    right = perceptron.perceptron_mistakes
    for module in (perceptron, classification):
        patch.setattr(module, "perceptron_mistakes", lambda vectors: 4 * right(vectors))


def harmless_start(patch):
    right = descent.digits_minima

    def found(**options):
        one = right(width=30, wrong=50, samples=60, **options)
        return dataclasses.replace(one, wrong_start=one.random_start)

    patch.setattr(descent, "digits_minima", found)


def lazy_network(patch):
    right = kernel_floor.feature_learning
    patch.setattr(kernel_floor, "feature_learning", lambda width: right(width).replace(target=(0.0, 0.5), start_overlap=0.0))


def short_training(patch):
    right = landscapes.width_double_descent
    patch.setattr(
        landscapes, "width_double_descent", lambda *given, **options: right(*given, **{**options, "iterations": 5})
    )


def double_rate(patch):
    right = SeparableFlow.rate.fget
    patch.setattr(SeparableFlow, "rate", property(lambda flow: 2 * right(flow)))


def small_constant(patch):
    right = finite_width.fixed_dimension_constant
    patch.setattr(finite_width, "fixed_dimension_constant", lambda *given: right(*given) / 30)


def no_one_less(patch):
    patch.setattr(spectra, "mean_inverse_trace", lambda n, d: min(n, d) / abs(n - d))


def one_block_less(patch):
    patch.setattr(kernels, "resnet_ntk", lambda X, Y, blocks, branch: resnet_ntk(X, Y, blocks - 1, branch))


def no_mixture(patch):
    def predicted(law):
        return {"squared_error": np.asarray(law.weights) @ np.mean(np.asarray(law.neurons) ** 2, axis=1)}

    patch.setattr(SampledMeasure, "predicted", predicted)


def full_rank(patch):
    patch.setattr(finite_width, "tangent_rank", lambda d, n, activation: n * d)


@pytest.mark.parametrize(
    ("claim", "spoil"),
    [
        pytest.param("L6", leading_term, marks=pytest.mark.slow),
        pytest.param("L7", same_law_for_coins, marks=pytest.mark.slow),
        ("L8", too_many_mistakes),
        pytest.param("L9", harmless_start, marks=pytest.mark.slow),
        pytest.param("L10", lazy_network, marks=pytest.mark.slow),
        ("L11", short_training),
        ("J30", double_rate),
        ("M12", small_constant),
        pytest.param("M13", no_one_less, marks=pytest.mark.slow),
        ("M14", one_block_less),
        ("T10", no_mixture),
        pytest.param("T11", full_rank, marks=pytest.mark.slow),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_false_statement_fails(claim, spoil, monkeypatch):
    spoil(monkeypatch)
    assert not find_claims([claim])[0].run(quick=True).passed
