"""Sample covariance of any population: reference values through the law, experiment, comparison, outliers, refusals."""

import numpy as np
import pytest

from limitlab._core.draws import mean_and_error
from limitlab.lab import compare
from limitlab.laws import MarchenkoPastur, SampleCovariance
from limitlab.laws.spectra._measurements import extreme_eigenvalues, sample_eigenvalues
from references import reference

ENTRIES = reference("spectra")
THREE_BULKS = dict(ratio=0.15, eigenvalues=(1.0, 4.0, 10.0), weights=(0.5, 0.3, 0.2))


@pytest.mark.parametrize(
    "entry",
    reference("spectra", "general_marchenko_pastur"),
    ids=lambda entry: str(entry["inputs"]["population_eigenvalues"]),
)
def test_reference_values(entry):
    inputs, wanted = entry["inputs"], entry["outputs"]
    law = SampleCovariance(
        ratio=inputs["gamma_dim_over_samples"],
        eigenvalues=inputs["population_eigenvalues"],
        weights=inputs["population_weights"],
    )
    assert len(law.support()) == wanted["n_bulks"]
    np.testing.assert_allclose(np.ravel(law.support()), wanted["support_edges"], rtol=1e-10)
    np.testing.assert_allclose(law.bulk_masses(), wanted["bulk_masses"], atol=1e-12)
    assert law.atom() == pytest.approx(wanted["atom_at_zero"], rel=1e-12)
    np.testing.assert_allclose(law.density(inputs["x"]), wanted["density"], rtol=1e-10)
    z = np.array([complex(*point) for point in inputs["z_re_im"]])
    np.testing.assert_allclose(law.companion(z).real, wanted["companion_stieltjes_re"], rtol=1e-10)
    np.testing.assert_allclose(law.companion(z).imag, wanted["companion_stieltjes_im"], rtol=1e-10)
    np.testing.assert_allclose(law.stieltjes(z).real, wanted["stieltjes_re"], rtol=1e-10)
    np.testing.assert_allclose(law.stieltjes(z).imag, wanted["stieltjes_im"], rtol=1e-10)


def test_reference_of_a_uniform_population():
    (entry,) = [entry for entry in ENTRIES if entry["law"].endswith("uniform_population")]
    nodes, weights = np.polynomial.legendre.leggauss(200)
    law = SampleCovariance(ratio=0.5, eigenvalues=2 + nodes, weights=weights)
    np.testing.assert_allclose(np.ravel(law.support()), entry["outputs"]["support_edges"], rtol=1e-10)
    np.testing.assert_allclose(law.density(entry["inputs"]["x"]), entry["outputs"]["density"], rtol=1e-10)


def test_one_eigenvalue_is_the_marchenko_pastur_law():
    one = SampleCovariance(ratio=0.7, eigenvalues=(3.0,), weights=(1.0,)).theory()
    other = MarchenkoPastur(ratio=0.7, variance=3.0).theory()
    for name in MarchenkoPastur.outputs():
        np.testing.assert_allclose(one[name], other[name], rtol=1e-11, err_msg=name)


def test_weights_are_shares():
    first, second = SampleCovariance(**THREE_BULKS), SampleCovariance(**{**THREE_BULKS, "weights": (5, 3, 2)})
    np.testing.assert_allclose(first.support(), second.support(), rtol=1e-14)
    assert first.cdf(3.0) == pytest.approx(second.cdf(3.0))


@pytest.mark.parametrize(
    "law",
    [
        SampleCovariance(**THREE_BULKS),
        SampleCovariance(ratio=3.0, eigenvalues=(1.0, 5.0), weights=(0.5, 0.5), entries="sign"),
        SampleCovariance(ratio=0.8, eigenvalues=(0.0, 1.0, 2.0), weights=(0.3, 0.4, 0.3)),
    ],
    ids=["three bulks", "more dimensions than samples", "null directions"],
)
def test_comparison_agrees(law):
    result = compare(law, sizes=[40, 80, 160], seeds=60, observables=["cdf", "second_moment", "stieltjes_transform", "atom"])
    assert result.passed, str(result)


def test_comparison_sees_wrong_weights():
    class Wrong(SampleCovariance):
        """Weights the wrong way round."""

        def predicted(self, **given):
            return SampleCovariance(ratio=self.ratio, eigenvalues=self.eigenvalues, weights=(0.4, 0.6)).predicted(**given)

    assert compare(Wrong(weights=(0.6, 0.4)), sizes=[40, 80, 160], seeds=30).verdict == "disagree"


def test_separate_bulks_hold_whole_numbers_of_eigenvalues():
    """Exact separation: not one eigenvalue of a drawn matrix is in a gap, and each bulk has its share to the last one."""
    law = SampleCovariance(**THREE_BULKS)
    for seed in range(5):
        values = law.sample_eigenvalues(law.draw(100, seed))
        assert [np.sum(values < 2.0), np.sum((values > 2.0) & (values < 6.5)), np.sum(values > 6.5)] == [50, 30, 20]


def test_experiment():
    law = SampleCovariance(ratio=2.0, eigenvalues=(0.0, 1.0, 4.0), weights=(0.2, 0.5, 0.3))
    run = law.simulate(50, 1)
    assert run.eigenvalues.shape == (50,)
    assert (run.eigenvalues.values == 0).sum() == 25
    assert float(run.atom) == pytest.approx(law.realised(50).atom())
    assert law.realised(50).weights == (10.0, 25.0, 15.0)
    few_samples = law.replace(ratio=0.5).simulate(50, 1)
    assert float(few_samples.atom) == pytest.approx(0.2)
    assert float(few_samples.smallest_eigenvalue) > 0


@pytest.mark.parametrize(("spike", "sign"), [(8.0, 1), (0.1, -1)])
def test_outlier_of_drawn_matrices(spike, sign):
    """Position and overlap of the extreme eigenvector, above and below the bulk; tolerance: 5 standard errors and O(1/n)."""
    law = SampleCovariance(ratio=0.2, eigenvalues=(1.0, 3.0), weights=(0.5, 0.5))
    position, overlap = law.outlier(spike)
    size, draws = 100, 40
    found = []
    for seed in range(draws):
        table = law.sample(law.draw(size, seed))
        extra = np.sqrt(spike) * law.draw(size, 1000 + seed).rng.standard_normal((len(table), 1))
        full = np.hstack([extra, table])
        values, vectors = np.linalg.eigh(full.T @ full / len(full))
        index = -1 if sign > 0 else 0
        found.append((values[index], vectors[0, index] ** 2))
    mean, error = mean_and_error(found)
    assert abs(mean[0] - position) < 5 * error[0] + 3 * position / len(table)
    assert abs(mean[1] - overlap) < 5 * error[1] + 3 / len(table)


def test_extremes_of_the_bidiagonal_model_have_the_law_of_drawn_tables():
    rng = np.random.default_rng(5)
    drawn = np.array([sample_eigenvalues(rng.standard_normal((30, 12)))[[0, -1]] for _ in range(1500)])
    model = np.array([extreme_eigenvalues(rng, 12, 30) for _ in range(1500)])
    flat = np.array([extreme_eigenvalues(rng, 30, 12) for _ in range(1500)]) * 12 / 30  # the same table, transposed
    for other in (model, flat):
        for power in (1, 2):
            a, b = drawn**power, other**power
            z = (a.mean(axis=0) - b.mean(axis=0)) / np.sqrt((a.var(axis=0) + b.var(axis=0)) / 1500)
            assert np.abs(z).max() < 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(eigenvalues=(1.0, -2.0)), "eigenvalues"),
        (dict(eigenvalues=(1.0, float("nan"))), "eigenvalues"),
        (dict(eigenvalues=(0.0, 0.0)), "at least one must be above 0"),
        (dict(eigenvalues=(1.0, 2.0, 3.0)), "weights has 2 entries"),
        (dict(weights=(1.0, 0.0)), "weights"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        SampleCovariance(**options)


def test_refusals_of_methods():
    law = SampleCovariance()
    with pytest.raises(ValueError, match="spike = 0"):
        law.outlier(0.0)
    with pytest.raises(ValueError, match="one value of ratio at a time"):
        law.evaluate(ratio=np.array([1.0]))
