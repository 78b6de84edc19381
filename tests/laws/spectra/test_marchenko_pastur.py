"""The Marchenko-Pastur law: reference values through the law, array form, experiment, comparison, refusals."""

import numpy as np
import pytest

from limitlab.lab import compare, sweep
from limitlab.laws import MarchenkoPastur
from limitlab.laws.spectra._claims import sup_distance
from limitlab.laws.spectra.marchenko_pastur import limit
from references import reference

ENTRIES = reference("spectra", "marchenko_pastur")


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"ratio={entry['inputs']['gamma_dim_over_samples']}")
def test_reference_values(entry):
    inputs, wanted = entry["inputs"], entry["outputs"]
    law = MarchenkoPastur(ratio=inputs["gamma_dim_over_samples"], variance=inputs["sigma2"])
    z = np.array([complex(*point) for point in inputs["z_re_im"]])
    np.testing.assert_allclose(law.support(), [wanted["edges"]], rtol=1e-10)
    assert law.atom() == pytest.approx(wanted["atom_at_zero"], rel=1e-10)
    np.testing.assert_allclose(law.density(inputs["x"]), wanted["density"], rtol=1e-10)
    np.testing.assert_allclose(law.cdf(inputs["x"]), wanted["cdf"], rtol=1e-10)
    m = law.stieltjes(z)
    np.testing.assert_allclose(m.real, wanted["stieltjes_re"], rtol=1e-10)
    np.testing.assert_allclose(m.imag, wanted["stieltjes_im"], rtol=1e-10)
    np.testing.assert_allclose([law.moment(k) for k in range(1, 5)], wanted["moments_1_to_4"], rtol=1e-10)


def test_theory_holds_what_a_drawn_spectrum_shows():
    law = MarchenkoPastur(ratio=2.0, variance=3.0, positions=(0.25, 0.5), shift=0.7)
    theory = law.theory()
    ((low, high),) = law.support()
    assert float(theory.smallest_eigenvalue) == low
    assert float(theory.largest_eigenvalue) == high
    assert float(theory.atom) == 0.5
    assert float(theory.second_moment) == pytest.approx(9 * 3)
    assert float(theory.stieltjes_transform) == pytest.approx(float(law.stieltjes(-0.7)))
    assert theory.cdf.dims == ("position",)
    np.testing.assert_allclose(theory.cdf, law.cdf(low + np.array([0.25, 0.5]) * (high - low)))
    assert theory.atom.dims == ()


def test_array_form_equals_one_law_at_a_time():
    ratios, variances = np.array([0.2, 1.0, 5.0])[:, None], np.array([1.0, 2.5])
    values = limit(ratios, variances, positions=(0.1, 0.6), shift=0.3)
    assert values["cdf"].shape == (3, 2, 2)
    for i, j in np.ndindex(3, 2):
        one = MarchenkoPastur(ratio=ratios[i, 0], variance=variances[j], positions=(0.1, 0.6), shift=0.3).theory()
        for name in MarchenkoPastur.outputs():
            np.testing.assert_allclose(values[name][i, j].ravel(), np.ravel(one[name]), rtol=1e-13, err_msg=name)


def test_sweep_over_the_ratio():
    result = sweep(MarchenkoPastur(), over={"ratio": [0.5, 2.0]})
    assert result.largest_eigenvalue.values == pytest.approx([(1 + 0.5**0.5) ** 2, (1 + 2**0.5) ** 2])


@pytest.mark.parametrize("ratio", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("entries", ["gaussian", "sign"])
def test_experiment(ratio, entries):
    law = MarchenkoPastur(ratio=ratio, entries=entries, variance=2.0)
    run = law.simulate(60, 3)
    values = run.eigenvalues.values
    n = round(60 / ratio)
    assert values.shape == (60,)
    assert (np.diff(values) >= 0).all()
    assert (values == 0).sum() == max(60 - n, 0)
    assert float(run.atom) == pytest.approx(law.realised(60).atom(), abs=1e-15)
    assert float(run.smallest_eigenvalue) == values[values > 0].min()
    assert float(run.second_moment) == pytest.approx(np.mean(values**2))
    if entries == "sign":  # each column has squared norm exactly n v
        assert np.mean(values) == pytest.approx(2.0, rel=1e-12)
    ((low, high),) = law.realised(60).support()
    np.testing.assert_allclose(run.cdf, [np.mean(values <= low + f * (high - low)) for f in law.positions])


def test_second_moment_of_gaussian_matrices_is_exact():
    """E tr S^2 / p = 1 + (p + 1)/n: the limit plus 1/n, which is 7 standard errors here."""
    law = MarchenkoPastur(ratio=0.5)
    draws = np.array([law.experiment(20, seed)["second_moment"] for seed in range(2000)])
    error = draws.std(ddof=1) / np.sqrt(draws.size)
    assert abs(draws.mean() - (1 + 21 / 40)) < 5 * error
    assert abs(draws.mean() - (1 + 20 / 40)) > 3 * error


@pytest.mark.parametrize("law", [MarchenkoPastur(ratio=0.3, entries="sign"), MarchenkoPastur(ratio=3.0, variance=0.5)])
def test_comparison_agrees(law):
    result = compare(law, sizes=[40, 80, 160], seeds=60, observables=["cdf", "second_moment", "stieltjes_transform", "atom"])
    assert result.passed, str(result)


def test_comparison_sees_a_wrong_ratio_and_a_wrong_variance():
    class Swapped(MarchenkoPastur):
        """The law with samples over dimension in place of dimension over samples."""

        def predicted(self, positions, ratio, variance, shift):
            return super().predicted(positions, 1 / ratio, variance, shift)

    class Louder(MarchenkoPastur):
        """The law of five per cent more variance."""

        def predicted(self, positions, ratio, variance, shift):
            return super().predicted(positions, ratio, 1.05 * variance, shift)

    for wrong in (Swapped(ratio=0.4), Louder(ratio=0.4)):
        assert compare(wrong, sizes=[40, 80, 160], seeds=20).verdict == "disagree"


def test_sup_distance_shrinks_and_knows_the_law():
    law = MarchenkoPastur(ratio=2.0, entries="sign")
    drawn = {p: [law.sample_eigenvalues(law.draw(p, seed)) for seed in range(10)] for p in (40, 160)}
    means = [np.mean([sup_distance(values, law.realised(p)) for values in drawn[p]]) for p in drawn]
    assert means[1] < means[0] / 2
    assert sup_distance(drawn[160][0], MarchenkoPastur(ratio=2.2)) > 3 * means[1]


def test_inversion_recovers_the_density():
    law = MarchenkoPastur(ratio=0.5)
    x = np.linspace(0.2, 2.8, 14)
    np.testing.assert_allclose(law.stieltjes(x + 0j).imag / np.pi, law.density(x), rtol=1e-12)
    errors = [np.max(np.abs(law.stieltjes(x + 1j * height).imag / np.pi - law.density(x))) for height in (1e-3, 1e-4)]
    assert errors[1] == pytest.approx(errors[0] / 10, rel=0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(ratio=float("nan")), "ratio"),
        (dict(ratio=float("inf")), "ratio"),
        (dict(positions=(0.5, 1.0)), "positions"),
        (dict(gamma=0.5), "no parameter 'gamma'"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        MarchenkoPastur(**options)
