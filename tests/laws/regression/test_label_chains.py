"""Chains of models on the shipped images: the laws at the images' spectrum, measured chains, bad input."""

import numpy as np
import pytest

from limitlab._core.draws import mean_and_error
from limitlab.laws import Distillation, ModelCollapse, Ridge
from limitlab.laws.regression._label_chains import TablePopulation, collapse_chain, shipped_images, taught

X, Y = shipped_images()


def relative_gaps(law, seeds, names=("excess_risk",)):
    """Measured mean over the law, minus 1, and its standard error."""
    runs, limit = law.on_table(X, Y, range(seeds)), law.theory()
    table = np.array([runs[name].values for name in names])
    want = np.array([limit[name].values for name in names])[:, None]
    scaled = table / want
    mean, error = mean_and_error(scaled, axis=1)
    return mean - 1, error


def test_a_table_as_population():
    table = TablePopulation.of(X, Y)
    assert len(table.eigenvalues) == 179
    assert (np.diff(table.eigenvalues) <= 0).all()
    assert table.excess(table.coefficients) == 0
    fitted, *_ = np.linalg.lstsq(X, Y - Y.mean(), rcond=None)
    assert table.noise == pytest.approx(np.std(Y - X @ fitted), rel=1e-9)
    nothing = float(table.eigenvalues @ table.coefficients**2)
    assert nothing + table.noise**2 == pytest.approx(Y.var(), rel=1e-9)


def test_one_generation_is_ridge():
    law = ModelCollapse.from_data(X, Y, samples=300, ridge=0.002, generations=(1,))
    ridge = Ridge(**TablePopulation.of(X, Y).spectrum(), ratio=law.ratio, ridge=0.002)
    assert float(law.theory().excess_risk[0]) == pytest.approx(float(ridge.theory().excess_risk), rel=1e-10)


@pytest.mark.parametrize(
    "given", [dict(ridge=0.001), dict(ridge=0.003, real_share=0.3), dict(ridge=0.01, synthetic_noise=0.0)]
)
def test_chains_on_images_follow_the_law(given):
    law = ModelCollapse.from_data(X, Y, samples=400, generations=(1, 2, 4), **given)
    gaps, errors = relative_gaps(law, 30)
    assert (np.abs(gaps) < 0.04 + 4 * errors).all(), (gaps, errors)
    assert errors.max() < 0.06


def test_students_on_images_follow_the_law():
    names = ("teacher_excess_risk", "excess_risk")
    for law in (
        Distillation.from_data(X, Y, samples=800, teacher_samples=200, teacher_ridge=0.002, ridge=0.01),
        Distillation.from_data(
            X, Y, samples=600, teacher_samples=400, teacher_ridge=0.01, ridge=0.01, teacher_groups=range(20)
        ),
        Distillation.from_data(X, Y, samples=300, teacher_ridge=0.01, ridge=0.01, inputs="same", mix=-0.5),
    ):
        gaps, errors = relative_gaps(law, 30, names)
        assert (np.abs(gaps) < 0.04 + 4 * errors).all(), (gaps, errors)
    assert (
        float(law.on_table(X, Y, range(30)).gain.mean()) > 0.004
    )  # mixing with less than nothing of the teacher's labels helps


@pytest.mark.slow
def test_chains_on_images_closely():
    """With many draws the gap is a few per cent; Gaussian inputs with the same spectrum are closer."""
    law = ModelCollapse.from_data(X, Y, samples=400, ridge=0.003, real_share=0.3, generations=(1, 2, 4))
    gaps, errors = relative_gaps(law, 400)
    assert np.abs(gaps).max() < 0.06
    assert errors.max() < 0.02
    gaussian = law.simulate_batch(len(law.eigenvalues), range(4)).excess_risk.mean("seed").values
    np.testing.assert_allclose(gaussian, law.theory().excess_risk.values, rtol=0.02)


def test_without_a_penalty_rare_pixels_break_the_law():
    """Leverages of images vary by twice their mean: a chain that keeps its data without a penalty is far worse than the law says."""
    law = ModelCollapse.from_data(X, Y, samples=600, ridge=0.0, data="accumulate", generations=(1, 2))
    assert (law.on_table(X, Y, range(6)).excess_risk.mean("seed").values > 2 * law.theory().excess_risk.values).all()


def test_chains_by_hand():
    """Two coordinates without noise: with real labels only, and with the same rows, nothing is lost."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((50, 2))
    table = TablePopulation.of(rows, rows @ [1.0, -2.0])
    np.testing.assert_allclose(collapse_chain(rng, table, 10, 3, 0.0, 1.0, 5.0), 0, atol=1e-20)
    np.testing.assert_allclose(collapse_chain(rng, table, 10, 3, 0.0, 0.0, 0.0, keep=True), 0, atol=1e-20)
    found = taught(rng, table, (10, 10), (0.5, 0.0), mix=0.0)
    assert found.student == pytest.approx(0, abs=1e-20)
    assert found.teacher > 0


@pytest.mark.parametrize(("rows", "labels"), [(X[:5], Y[:4]), (X[:5] * np.nan, Y[:5]), (np.ones((5, 2)), Y[:5])])
def test_bad_tables(rows, labels):
    with pytest.raises(ValueError, match="not allowed"):
        ModelCollapse.from_data(rows, labels, samples=10)


def test_another_table():
    with pytest.raises(ValueError, match="from_data"):
        ModelCollapse().on_table(X, Y)
