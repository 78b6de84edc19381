"""The population spectrum of a law: kinds, accuracy, experiments, records and refusals."""

import json
import pickle

import numpy as np
import pytest

from limitlab import Spectrum
from limitlab.errors import Refused
from limitlab.numerics.equivalents import df1, df2, ridge_equivalent, right_edge
from limitlab.numerics.spectra import SampleSpectrum

KAPPAS = np.geomspace(1e-4, 1e2, 40)


def degrees(spectrum: Spectrum) -> np.ndarray:
    """Return the first degrees of freedom per dimension at many effective ridges."""
    return np.array([df1(kappa, spectrum.eigenvalues, spectrum.weights) for kappa in KAPPAS])


@pytest.mark.parametrize(
    ("spectrum", "exact"),
    [
        # of the uniform distribution on [1, 3]: the mean of s/(s + k) is 1 - k log((3 + k)/(1 + k))/2
        (Spectrum.from_density(lambda s: 0 * s + 0.5, 1, 3), lambda k: 1 - k / 2 * np.log((3 + k) / (1 + k))),
        (Spectrum.from_quantiles(lambda u: 1 + 2 * u), lambda k: 1 - k / 2 * np.log((3 + k) / (1 + k))),
        (Spectrum.from_quantiles(lambda u: 3 - 2 * u), lambda k: 1 - k / 2 * np.log((3 + k) / (1 + k))),
        (
            Spectrum.from_density(lambda s: 0 * s + 0.25, 1, 3, atoms=[(2.0, 0.5)]),
            lambda k: (1 - k / 2 * np.log((3 + k) / (1 + k)) + 2 / (2 + k)) / 2,
        ),
        # of the Pareto quantiles u^(-1/2): the mean of 1/(1 + k u^(1/2)) is 2 (k - log(1 + k))/k^2
        (Spectrum.from_quantiles(lambda u: u**-0.5), lambda k: 2 * (k - np.log1p(k)) / k**2),
    ],
)
def test_continuous_spectra_have_closed_integrals(spectrum, exact):
    error = np.abs(degrees(spectrum) / exact(KAPPAS) - 1).max()
    assert error < 2e-9
    assert error < max(10 * spectrum.accuracy, 1e-11)
    assert spectrum.variants
    assert spectrum.smooth


def test_atoms_that_stand_for_an_exponential_distribution():
    from scipy.special import exp1

    spectrum = Spectrum.from_quantiles(lambda u: -np.log1p(-u))
    k = KAPPAS[KAPPAS < 50]
    np.testing.assert_allclose(degrees(spectrum)[: k.size], 1 - k * np.exp(k) * exp1(k), rtol=1e-9)


def test_power_law_is_the_sum_over_its_modes():
    j = np.arange(1, 3001.0)
    grouped, listed = Spectrum.power_law(1.2, 3000), Spectrum.from_list(j**-1.2)
    assert grouped.weights.size < 400
    assert listed.weights.size == 3000
    np.testing.assert_allclose(degrees(grouped), degrees(listed), rtol=1e-10)
    energies = Spectrum.power_law(1.2, 400, target_exponent=0.3).energy
    np.testing.assert_allclose(np.sort(energies)[::-1], np.arange(1, 401.0) ** -0.6)


def test_lists_groups_and_steps_are_exact():
    assert Spectrum([2.0, 2.0, 2.0]).eigenvalues.tolist() == [2.0]
    step = Spectrum.from_quantiles(lambda u: np.where(u < 0.25, 1.0, 4.0))
    np.testing.assert_allclose(step.weights, [0.25, 0.75], rtol=1e-9)
    assert not step.variants
    groups = Spectrum.groups([4.0, 1.0], [0.25, 0.75], energy=[0.2, 0.8])
    listed = Spectrum.from_list([4.0, 1.0, 1.0, 1.0], energy=[0.2, 0.4, 0.2, 0.2])
    assert groups == listed
    assert hash(groups) == hash(listed)


@pytest.mark.parametrize("size", [7, 40, 333])
def test_an_experiment_keeps_trace_and_energy(size):
    power = Spectrum.power_law(0.9, 2000, energy=1.5).with_spikes([30.0, 8.0], energy=[0.4, 0.1])
    drawn = power.at(size)
    assert drawn.counts(size).sum() == size
    bulk = (size - 2) / size * power.trace + 38.0 / size
    assert drawn.trace == pytest.approx(bulk, rel=1e-12)
    assert drawn.energy.sum() == pytest.approx(2.0, rel=1e-12)
    assert drawn.at(size) == drawn  # an experiment at its own size does not change


def test_an_experiment_converges_to_its_spectrum():
    spectrum = Spectrum.from_quantiles(lambda u: -np.log1p(-u))
    errors = [np.abs(degrees(spectrum.at(size)) - degrees(spectrum)).max() for size in (50, 100, 200)]
    assert errors[0] > 1.5 * errors[1] > 1.5**2 * errors[2]


def test_groups_receive_the_directions_of_the_former_parameters():
    from limitlab._core.declaration import apportion

    weights = [0.55, 0.44, 0.01]
    drawn = Spectrum.groups([1.0, 2.0, 3.0], weights).at(10)
    assert drawn.counts(10).tolist() == apportion(10, weights).tolist()


def test_records_and_pickles_restore_the_spectrum():
    density = Spectrum.from_density(lambda s: 0 * s + 0.5, 1, 3, energy=lambda s: s).with_test(lambda s: 1 / s)
    spiked = Spectrum("power:1.5:50").with_spikes([3.0], energy=[1.0])
    for spectrum in (
        density,
        spiked,
        Spectrum([3, 1]),
        Spectrum("power:1.2"),
        Spectrum.power_law(1, 900, target_exponent=0.4),
    ):
        assert Spectrum(json.loads(json.dumps(spectrum.record()))) == spectrum
        assert pickle.loads(pickle.dumps(spectrum)) == spectrum


def test_files(tmp_path):
    named, plain = tmp_path / "named.csv", tmp_path / "plain.csv"
    named.write_text("energy,eigenvalue,weight\n0.2,4,0.25\n0.8,1,0.75\n")
    plain.write_text("4\n1\n1\n1\n")
    assert Spectrum(str(named)) == Spectrum.groups([4.0, 1.0], [0.25, 0.75], energy=[0.2, 0.8])
    assert Spectrum(plain) == Spectrum([4.0, 1.0, 1.0, 1.0])
    plain.write_text("a,b\n1,2\n")
    with pytest.raises(Refused, match="column eigenvalue"):
        Spectrum(plain)


def test_the_largest_sample_eigenvalue_of_a_spike():
    spiked, weak = Spectrum([1.0]).with_spikes([6.0]), Spectrum([1.0]).with_spikes([1.2])
    position, _ = SampleSpectrum([1.0], ratio=0.5).outlier(6.0)
    assert right_edge(spiked.eigenvalues, 0.5 * spiked.weights) == pytest.approx(position, rel=1e-12)
    assert right_edge(weak.eigenvalues, 0.5 * weak.weights) == pytest.approx((1 + np.sqrt(0.5)) ** 2, rel=1e-12)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Spectrum([1.0, -1e-9]),
        lambda: Spectrum([1.0, np.nan]),
        lambda: Spectrum([np.inf]),
        lambda: Spectrum([]),
        lambda: Spectrum([[1.0, 2.0]]),
        lambda: Spectrum([0.0, 0.0]),
        lambda: Spectrum("power"),
        lambda: Spectrum("power:x"),
        lambda: Spectrum("nothing.csv"),
        lambda: Spectrum(np.tanh),
        lambda: Spectrum({"eigenvalues": [1.0]}),
        lambda: Spectrum.groups([1.0, 2.0], [0.5, 0.6]),
        lambda: Spectrum.groups([1.0, 2.0], [1.0]),
        lambda: Spectrum.groups([1.0, 2.0], [1.0, 0.0]),
        lambda: Spectrum.groups([1.0, 2.0], [0.5, 0.5], energy=[1.0]),
        lambda: Spectrum.groups([1.0, 2.0], [0.5, 0.5], energy=[1.0, -1.0]),
        lambda: Spectrum.groups([1.0, 2.0], [0.5, 0.5], test=1.0),
        lambda: Spectrum.power_law(-1.0),
        lambda: Spectrum.power_law(1.0, 1),
        lambda: Spectrum.from_quantiles(lambda u: u**-1.2),  # the trace is infinite
        lambda: Spectrum.from_quantiles(lambda u: u - 0.5),
        lambda: Spectrum.from_quantiles(lambda u: 0 * u),
        lambda: Spectrum.from_quantiles(lambda u: 1 / 0),
        lambda: Spectrum.from_density(lambda s: 0 * s + 1.0, 1, 3),  # the integral is 2
        lambda: Spectrum.from_density(lambda s: np.exp(-s), 0, np.inf),
        lambda: Spectrum.from_density(lambda s: 0 * s + 0.5, 1, 3, energy=[1.0, 2.0]),
        lambda: Spectrum.from_density(lambda s: 0 * s + 0.5, 1, 3).with_energy([1.0, 2.0]),
        lambda: Spectrum([1.0]).with_spikes([-2.0]),
        lambda: Spectrum([1.0]).with_spikes([2.0]).at(1),
    ],
)
def test_spectra_that_cannot_work_are_refused(make):
    with pytest.raises(Refused, match="not allowed"):
        make()


# -- estimates from rows --------------------------------------------------------------------------------------------------


def rows_of(eigenvalues: np.ndarray, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, eigenvalues.size)) * np.sqrt(eigenvalues)
    beta = rng.standard_normal(eigenvalues.size) / np.sqrt(eigenvalues.size)
    return X, X @ beta + 0.5 * rng.standard_normal(n), beta


@pytest.mark.parametrize(("p", "n"), [(100, 300), (150, 150), (240, 160)])
def test_an_estimate_removes_the_bias_of_the_sample_spectrum(p, n):
    true = 4 * np.arange(1, p + 1) ** -0.7
    X, y, beta = rows_of(true, n)
    spectrum, exact = Spectrum.from_rows(X, y), Spectrum(true)
    sample = Spectrum(np.maximum(np.linalg.eigvalsh(np.cov(X.T)), 0))
    for ridge in (0.05, 0.5):
        kappa, estimate, naive = (
            float(ridge_equivalent(ridge, s.eigenvalues, p / n * s.weights).kappa) for s in (exact, spectrum, sample)
        )
        assert abs(estimate / kappa - 1) < 0.06
        assert abs(naive / kappa - 1) > 4 * abs(estimate / kappa - 1)
        second, other = (float(df2(kappa, s.eigenvalues, s.weights)) for s in (exact, spectrum))
        assert abs(other / second - 1) < 0.12
    assert spectrum.label_noise == pytest.approx(0.5, abs=0.2)
    signal = float(spectrum.eigenvalues @ spectrum.energy)
    assert signal + spectrum.label_noise**2 == pytest.approx(float(np.var(y)), rel=0.1)
    if p <= n:  # with fewer rows than columns, signal and noise cannot be told apart as well
        assert signal == pytest.approx(float(true @ beta**2), rel=0.25)


def test_the_stated_accuracy_of_an_estimate_is_that_of_other_rows():
    true = 4 * np.arange(1, 81) ** -0.7
    estimates = [Spectrum.from_rows(rows_of(true, 200, seed)[0]) for seed in range(8)]
    errors = [abs(spectrum.trace / true.mean() - 1) for spectrum in estimates]
    assert max(errors) < 2 * max(spectrum.accuracy for spectrum in estimates)
    assert np.median(errors) > 0.02 * np.median([spectrum.accuracy for spectrum in estimates])


@pytest.mark.parametrize(
    "rows",
    [
        np.ones((100, 5)),
        np.random.default_rng(0).standard_normal((20, 5)),
        np.full((100, 5), np.nan),
        np.random.default_rng(0).standard_cauchy((100, 30)),  # a few rows have nearly all of the variance
        np.zeros(50),
    ],
)
def test_rows_without_an_estimate_are_refused(rows):
    with pytest.raises(Refused, match="not allowed"):
        Spectrum.from_rows(rows)
