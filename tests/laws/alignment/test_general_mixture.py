"""Blocks of general mixtures: the symmetric law, the definition of "lives in", sampled blocks, bad input."""

import numpy as np
import pytest

from limitlab.errors import Refused
from limitlab.laws import GeneralMixtureAlignment, MixtureAlignment
from limitlab.laws.alignment.general_mixture import blocks, coordinates, lives_in, outside_share
from limitlab.laws.alignment.mixture_flow import mixture_flow, noiseless_mixture

EYE = tuple(map(tuple, np.eye(3)))


def test_orthonormal_means_and_equal_classes_give_the_symmetric_law():
    common = dict(snr=30.0, regularizer=0.05, step=1.2, times=(3.0, 9.0))
    general = GeneralMixtureAlignment(gram=EYE, probabilities=(1 / 3, 1 / 3, 1 / 3), **common).theory()
    symmetric = MixtureAlignment(classes=3, test_ratio=np.inf, **common).theory()
    for name, twin in (("own_overlap", "overlap_own"), *((n, n) for n in ("span_alignment", "hessian_alignment"))):
        np.testing.assert_allclose(general[name], symmetric[twin], atol=2e-3)
    for name in ("top_hessian_eigenvalue", "top_gradient_eigenvalue"):
        np.testing.assert_allclose(general[name], symmetric[name], rtol=5e-3)


def test_overlaps_tend_to_those_without_noise():
    law = GeneralMixtureAlignment(snr=1e6, regularizer=0.1, times=(150.0,), quasi_points=64)
    limit = np.diag(noiseless_mixture(law.gram, law.probabilities, law.regularizer)).mean()
    assert float(law.theory().own_overlap[0]) == pytest.approx(limit, abs=1e-4)


def test_blocks_agree_with_averages_over_samples():
    law, rng = GeneralMixtureAlignment(snr=5.0, test_samples=400_000), np.random.default_rng(0)
    overlaps, orthogonal = mixture_flow(law.gram, law.probabilities, law.snr, 0.05, 1.0, [4.0])
    means, weights = coordinates(np.array(law.gram), overlaps[0], orthogonal[0])
    sampled = law.sampled_blocks(rng, means, weights)
    for name, (inside, outside) in sampled.items():
        expected, beyond = blocks(means, weights, np.array(law.probabilities), law.snr, name, 2048, 0)
        np.testing.assert_allclose(inside, expected, atol=8e-4)
        np.testing.assert_allclose(outside, beyond, atol=2e-4)
        np.testing.assert_allclose(expected, np.swapaxes(np.swapaxes(expected, 0, 1), 2, 3), atol=1e-12)


def test_share_outside_is_the_distance_to_matrices_with_image_in_the_span():
    rng = np.random.default_rng(1)
    block, basis = rng.standard_normal((6, 6)), np.eye(3, 6)
    share = lives_in(block, basis)
    assert share == pytest.approx(float(outside_share(block[None, None], np.zeros((1, 1)))[0, 0]))
    norm = np.linalg.norm(block, ord=2)
    for _ in range(50):  # every M with Im(A - M) in the span has at least this norm
        remainder = block - basis.T @ rng.standard_normal((3, 6))
        assert np.linalg.norm(remainder, ord=2) / norm >= share - 1e-12
    assert lives_in(basis.T @ rng.standard_normal((3, 6)), basis) < 1e-14


def test_errors_fall_like_one_over_lambda():
    law = GeneralMixtureAlignment(times=(10.0,), quasi_points=128)
    near, far = (law.replace(snr=snr).theory() for snr in (200.0, 800.0))
    for name in ("hessian_outside", "gradient_outside"):
        assert float(near[name][0] / far[name][0]) == pytest.approx(4.0, rel=0.1)


@pytest.mark.parametrize(
    "options",
    [
        dict(probabilities=(0.5, 0.5)),
        dict(probabilities=(0.5, 0.3, 0.3)),
        dict(gram=((1.0, 1.0, 0.0), (1.0, 1.0, 0.0), (0.0, 0.0, 1.0))),
        dict(gram=((1.0, 0.2, 0.0), (0.3, 1.0, 0.0), (0.0, 0.0, 1.0))),
    ],
)
def test_mixtures_that_are_refused(options):
    with pytest.raises((Refused, ValueError), match="not allowed"):
        GeneralMixtureAlignment(**options)
    with pytest.raises(Refused, match="at least 3 classes"):
        GeneralMixtureAlignment().simulate(size=6, seed=0)
