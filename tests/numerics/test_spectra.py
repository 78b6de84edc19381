"""Tests of the Marchenko-Pastur law and of Silverstein's equation against references, other methods, sum rules and limits."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import i0e, i1e

from limitlab.errors import ConvergenceError
from limitlab.numerics.equivalents import effective_ridge, negative_ridge_limit, resolvent_ridge
from limitlab.numerics.spectra import SampleSpectrum, silverstein
from limitlab.numerics.spectra import marchenko_pastur as mp
from references import reference

ENTRIES = reference("spectra")
GENERAL = reference("spectra", "general_marchenko_pastur")
RATIOS = (1e-4, 0.0099, 0.0101, 0.1, 0.5, 0.99, 1.0, 1.01, 2.0, 30.0)

ratios = st.floats(-4, 4).map(lambda power: float(np.exp(power)))
populations = st.lists(
    st.tuples(st.floats(-3, 3).map(lambda power: float(np.exp(power))), st.floats(0.05, 1)), min_size=1, max_size=6
)


def complex_points(entry):
    return np.array([complex(*point) for point in entry["inputs"]["z_re_im"]])


def angle_rule(low, high, count=2000):
    """Nodes and weights of an integral over [low, high] for integrands with square-root ends."""
    t = (np.arange(count) + 0.5) * np.pi / count
    return (low + high) / 2 + (high - low) / 2 * np.cos(t), np.sin(t) * np.pi / count * (high - low) / 2


# -- Marchenko-Pastur -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", RATIOS)
def test_cdf_is_the_integral_of_the_density(ratio):
    low, high = mp.edges(ratio, 1.7)
    for fraction in (0.02, 0.3, 0.77, 0.999):
        x = low + fraction * (high - low)
        half = float(np.arccos(1 - 2 * fraction))

        def mass(t):
            y = (low + high) / 2 - (high - low) / 2 * np.cos(t)
            return mp.density(y, ratio, 1.7) * np.sin(t) * (high - low) / 2

        wanted, _ = quad(mass, 0, half, epsabs=1e-13, epsrel=1e-13, limit=400)
        assert mp.cdf(x, ratio, 1.7) == pytest.approx(mp.atom(ratio) + wanted, abs=2e-12)
    assert mp.cdf(high, ratio, 1.7) == pytest.approx(1, abs=1e-14)
    assert mp.cdf(low * (1 - 1e-9), ratio, 1.7) == pytest.approx(mp.atom(ratio), abs=1e-12)
    assert mp.cdf(-1e-9, ratio, 1.7) == 0


def test_cdf_is_smooth_where_the_series_takes_over():
    below, above = mp.SMALL_ROOT**2 * (1 - 1e-12), mp.SMALL_ROOT**2 * (1 + 1e-12)
    x = np.linspace(0.8, 1.2, 41)
    assert np.max(np.abs(mp.cdf(x, below) - mp.cdf(x, above))) < 1e-11


@pytest.mark.parametrize("ratio", RATIOS)
def test_gauss_rule_is_exact_for_polynomials(ratio):
    nodes, weights = mp.quadrature(ratio, 1.3, count=12)
    low, high = mp.edges(ratio, 1.3)
    assert low <= nodes.min()
    assert nodes.max() < high
    assert weights.sum() + mp.atom(ratio) == pytest.approx(1, abs=1e-13)
    for order in range(1, 24):
        assert weights @ nodes**order == pytest.approx(float(mp.moment(order, ratio, 1.3)), rel=1e-11)


def test_the_end_point_at_ratio_one_is_not_lost():
    """A trapezoidal rule in the angle with 400 nodes loses 0.25% of the mass at ratio 1, and `quadrature` loses nothing."""
    _, weights = mp.quadrature(1.0, count=400)
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    t = np.arange(1, 400) * np.pi / 400
    x = 2 + 2 * np.cos(t)
    trapezoid = np.sum(mp.density(x, 1.0) * 2 * np.sin(t)) * np.pi / 400
    assert 1 - trapezoid == pytest.approx(0.0025, rel=1e-3)


@pytest.mark.parametrize("ratio", [0.1, 0.5, 0.9])
def test_mean_of_the_inverse(ratio):
    nodes, weights = mp.quadrature(ratio, count=400)
    assert mp.stieltjes(0.0, ratio) == pytest.approx(1 / (1 - ratio), rel=1e-14)
    assert np.sum(weights / nodes) == pytest.approx(1 / (1 - ratio), rel=1e-12)


@pytest.mark.parametrize("ratio", [1e-9, 0.5, 1 - 1e-6, 1 - 1e-12, 1.0, 1 + 1e-9, 3.0, 1e9])
@pytest.mark.parametrize("shift", [1e-300, 1e-18, 1e-9, 0.3, 1e9])
def test_logarithmic_rule_resolves_the_hard_edge(ratio, shift):
    """The bulk's transform for z = -shift is the root of ratio z m^2 + (ratio - 1 + z) m + 1 = 0 with the atom taken out."""
    variance = 1.3
    nodes, weights = mp.log_quadrature(ratio, variance, smallest=shift)
    low, high = mp.edges(ratio, variance)
    assert low * (1 - 1e-14) <= nodes.min()
    assert nodes.max() <= high * (1 + 1e-14)
    assert weights.sum() == pytest.approx(min(1, 1 / ratio), rel=2e-15)
    for order in (1, 2, 3):
        assert weights @ nodes**order == pytest.approx(float(mp.moment(order, ratio, variance)), rel=4e-15)
    with localcontext() as context:
        context.prec = 700
        g, s = Decimal(ratio), Decimal(shift) / Decimal(variance)
        b = 1 - g + s
        wanted = ((-b + (b * b + 4 * g * s).sqrt()) / (2 * g) - max(1 - 1 / g, Decimal(0))) / Decimal(shift)
    assert weights @ (1 / (nodes + shift)) == pytest.approx(float(wanted), rel=4e-15)


def test_logarithmic_rule_of_an_exponential_at_ratio_one():
    """At ratio 1 the mean of e^(-tx) is e^(-2t) (I_0(2t) + I_1(2t)). With 256 Gauss nodes the error is above 2% at t = 1e5."""
    for t in (0.1, 1e2, 1e5, 1e12):
        nodes, weights = mp.log_quadrature(1.0, smallest=1 / t, spacing=0.1875)
        assert weights @ np.exp(-t * nodes) == pytest.approx(i0e(2 * t) + i1e(2 * t), rel=2e-14)
    gauss, weights = mp.quadrature(1.0, count=256)
    assert abs(weights @ np.exp(-1e5 * gauss) / (i0e(2e5) + i1e(2e5)) - 1) > 0.02


@settings(max_examples=60)
@given(ratio=ratios, x=st.floats(-1, 12), y=st.floats(-8, 2).map(lambda power: 10.0**power), sign=st.sampled_from([1, -1]))
def test_self_consistency_branch_and_symmetry(ratio, x, y, sign):
    z = complex(x, sign * y)
    m = complex(mp.stieltjes(z, ratio))
    scale = 1 + abs(z * m)
    assert abs(1 + z * m - m / (1 + ratio * m)) < 1e-12 * scale
    assert np.sign(m.imag) == sign
    assert complex(mp.stieltjes(z.conjugate(), ratio)) == m.conjugate()
    companion = ratio * m - (1 - ratio) / z  # itself a transform: that of the n x n matrix
    assert companion.imag * sign > -1e-12 * abs(companion)


def test_transform_is_the_integral_where_one_square_root_would_fail():
    for ratio in (0.4, 3.0):
        low, high = mp.edges(ratio)
        nodes, weights = mp.quadrature(ratio, count=300)
        z = np.array([-2 + 1j, -0.3 + 0.5j, (low + high) / 4 + 0.4j, high + 0.2j, 0.1 - 1j])
        wanted = np.sum(weights / (nodes - z[:, None]), axis=1) - mp.atom(ratio) / z
        np.testing.assert_allclose(mp.stieltjes(z, ratio), wanted, rtol=1e-11)
        single = (1 - ratio - z + np.sqrt((z - low) * (z - high))) / (2 * ratio * z)
        assert np.max(np.abs(single - wanted)) > 0.1


@pytest.mark.parametrize("ratio", ["0.5", "0.999999", "1", "1.000001", "3"])
@pytest.mark.parametrize("shift", ["1e-18", "1e-9", "0.3", "1e9"])
def test_negative_axis_has_no_cancellation(ratio, shift):
    with localcontext() as context:
        context.prec = 80
        g, s = Decimal(float(ratio)), Decimal(float(shift))
        b = 1 - g + s
        wanted = float((-b + (b * b + 4 * g * s).sqrt()) / (2 * g * s))
    assert float(mp.stieltjes(-float(shift), float(ratio))) == pytest.approx(wanted, rel=2e-15)


@pytest.mark.parametrize("ratio", [0.3, 1.0, 4.0])
def test_duality_with_the_other_gram_matrix(ratio):
    x = np.linspace(0.01, 10, 60)
    np.testing.assert_allclose(mp.density(x, ratio), mp.density(x / ratio, 1 / ratio) / ratio**2, rtol=1e-12)
    np.testing.assert_allclose(1 - mp.cdf(x, ratio), (1 - mp.cdf(x / ratio, 1 / ratio)) / ratio, atol=1e-14)


def test_values_at_the_ends_of_the_range():
    assert mp.density(0.0, 1.0) == np.inf
    assert mp.density(0.0, 0.5) == 0
    assert mp.stieltjes(0.0, 1.0) == np.inf
    assert np.isinf(mp.stieltjes(0j, 2.0))
    assert mp.edges(1.0)[0] == 0
    assert mp.stieltjes(-1.0, 0.5).dtype == float
    assert mp.density([[0.5], [1.0]], [0.2, 0.4, 3.0]).shape == (2, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mp.density(1.0, 0.0), "ratio = 0.0 is not allowed: must be above 0"),
        (lambda: mp.density(1.0, [0.5, -1.0]), "ratio = -1.0"),
        (lambda: mp.cdf(1.0, 0.5, np.nan), "variance = nan"),
        (lambda: mp.cdf(np.nan, 0.5), "x = nan"),
        (lambda: mp.stieltjes(1.0, 0.5), r"inside the support.*x \+ 0j"),
        (lambda: mp.moment(-1, 0.5), "order = -1"),
        (lambda: mp.quadrature(0.5, count=0), "count = 0"),
        (lambda: mp.log_quadrature(1.0, smallest=0.0), "smallest = 0.0 is not allowed: .* above 0 at ratio = 1"),
        (lambda: mp.log_quadrature(0.5, smallest=-1.0), "smallest = -1.0"),
        (lambda: mp.log_quadrature(0.5, smallest=np.nan), "smallest = nan"),
        (lambda: mp.log_quadrature(0.5, smallest=0.1, spacing=0.0), "spacing = 0.0"),
        (lambda: mp.log_quadrature(-0.5, smallest=0.1), "ratio = -0.5"),
    ],
)
def test_marchenko_pastur_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# -- any population -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", GENERAL, ids=lambda entry: str(entry["inputs"]["population_eigenvalues"]))
def test_general_reference_companion(entry):
    given_, wanted = entry["inputs"], entry["outputs"]
    spectrum = SampleSpectrum(
        given_["population_eigenvalues"], given_["population_weights"], ratio=given_["gamma_dim_over_samples"]
    )
    v = spectrum.companion(complex_points(entry))
    np.testing.assert_allclose(v.real, wanted["companion_stieltjes_re"], rtol=1e-10)
    np.testing.assert_allclose(v.imag, wanted["companion_stieltjes_im"], rtol=1e-10)


@pytest.mark.parametrize("ratio", RATIOS)
def test_one_eigenvalue_is_marchenko_pastur(ratio):
    spectrum = SampleSpectrum([2.5], ratio=ratio)
    low, high = mp.edges(ratio, 2.5)
    np.testing.assert_allclose(spectrum.support(), [(low, high)], rtol=1e-13, atol=1e-30)
    x = low + (high - low) * np.array([1e-4, 0.1, 0.5, 0.9, 0.9999])
    np.testing.assert_allclose(spectrum.density(x), mp.density(x, ratio, 2.5), rtol=1e-9)
    np.testing.assert_allclose(spectrum.cdf(x), mp.cdf(x, ratio, 2.5), atol=1e-12)
    z = np.array([1e-12 + 1e-12j, 1 + 1e-9j, -3 + 1j, 2 - 2j, 50 + 0.1j, -1e-10 + 0j])
    np.testing.assert_allclose(spectrum.stieltjes(z), mp.stieltjes(z, ratio, 2.5), rtol=1e-12)
    np.testing.assert_allclose(spectrum.stieltjes([-1e-14, -1.0]), mp.stieltjes([-1e-14, -1.0], ratio, 2.5), rtol=1e-12)
    assert spectrum.moment(4) == pytest.approx(float(mp.moment(4, ratio, 2.5)), rel=1e-12)


@settings(max_examples=20)
@given(population=populations, ratio=ratios)
def test_transform_density_and_cdf_belong_together(population, ratio):
    s, w = np.array(population).T
    spectrum = SampleSpectrum(s, w, ratio=ratio)
    bulks, masses = spectrum.support(), spectrum.bulk_masses()
    edges = np.ravel(bulks)
    assert (np.diff(edges) >= 0).all()
    assert edges[0] >= 0
    assert sum(masses) + spectrum.atom() == pytest.approx(1, abs=1e-12)
    # the distribution function, which does not use the bulks, has the right mass at every edge
    reached = spectrum.atom() + np.cumsum(masses)
    np.testing.assert_allclose(spectrum.cdf(edges[1::2]), reached, atol=1e-11)
    x = np.sort(np.concatenate([np.linspace(0, 1.1 * edges[-1], 40), edges]))
    assert (np.diff(spectrum.cdf(x)) >= -1e-12).all()
    assert (spectrum.density(x[x > 0]) >= 0).all()
    # equation (8) in its textbook form, and the transform of S from that of the companion
    z = np.linspace(-1, 1.1, 12) * edges[-1] + 1j * edges[-1] * np.geomspace(1e-9, 1, 12)
    v, m = spectrum.companion(z), spectrum.stieltjes(z)
    assert (v.imag > 0).all()
    assert (m.imag > 0).all()
    terms = ratio * (w / w.sum()) * s / (1 + s * v[:, None])
    assert np.max(np.abs(-1 / v + terms.sum(axis=1) - z) / (np.abs(z) + np.abs(1 / v) + np.abs(terms).sum(axis=1))) < 1e-11
    np.testing.assert_allclose(v, ratio * m - (1 - ratio) / z, rtol=1e-8, atol=1e-9 * np.abs((1 - ratio) / z).max())
    np.testing.assert_allclose(spectrum.stieltjes(z.conj()), m.conj(), rtol=1e-12)


@settings(max_examples=15)
@given(population=populations, ratio=st.floats(0.05, 20))
def test_density_integrates_to_masses_moments_and_transform(population, ratio):
    s, w = np.array(population).T
    spectrum = SampleSpectrum(s, w, ratio=ratio)
    bulks = spectrum.support()
    assume(bulks[0][0] > 1e-3 * bulks[0][1])  # a nearly hard edge needs more nodes than this
    rules = [angle_rule(low, high) for low, high in bulks]
    for (x, weight), mass in zip(rules, spectrum.bulk_masses(), strict=True):
        assert weight @ spectrum.density(x) == pytest.approx(mass, rel=1e-9)
    x, weight = (np.concatenate(part) for part in zip(*rules, strict=True))
    weight = weight * spectrum.density(x)
    for order in (1, 2, 3, 5):
        assert weight @ x**order == pytest.approx(spectrum.moment(order), rel=1e-9)
    shift = float(bulks[-1][1]) / 7
    assert weight @ (1 / (x + shift)) + spectrum.atom() / shift == pytest.approx(float(spectrum.stieltjes(-shift)), rel=1e-9)


def test_first_two_moments():
    s, w, ratio = np.array([0.5, 2.0, 7.0]), np.array([0.2, 0.5, 0.3]), 1.7
    spectrum = SampleSpectrum(s, w, ratio=ratio)
    assert spectrum.moment(0) == 1
    assert spectrum.moment(1) == pytest.approx(w @ s)
    assert spectrum.moment(2) == pytest.approx(w @ s**2 + ratio * (w @ s) ** 2)


@pytest.mark.parametrize("ratio", [0.12, 0.6, 1.0, 4.0])
def test_density_is_the_complex_root_of_the_polynomial(ratio):
    s, w = np.array([1.0, 3.0, 8.0]), np.array([0.3, 0.5, 0.2])
    spectrum = SampleSpectrum(s, w, ratio=ratio)
    for x in np.linspace(0.3, 1.05 * spectrum.support()[-1][1], 25):
        factors = [np.polynomial.Polynomial([1.0, value]) for value in s]
        product = factors[0] * factors[1] * factors[2]
        v = np.polynomial.Polynomial([0.0, 1.0])
        rest = sum(ratio * w[k] * s[k] * (product // factors[k]) for k in range(3))
        roots = ((x * v + 1) * product - v * rest).roots()
        assert spectrum.density(x) == pytest.approx(max(roots.imag.max(), 0.0) / (np.pi * ratio), abs=1e-7)


@pytest.mark.parametrize("count", [50, 400])
def test_continuous_population(count):
    """A uniform population, represented by 50 or 400 quadrature nodes, has one bulk and agrees with the reference."""
    (entry,) = [entry for entry in ENTRIES if entry["law"].endswith("uniform_population")]
    nodes, weights = np.polynomial.legendre.leggauss(count)
    spectrum = SampleSpectrum(2 + nodes, weights, ratio=0.5)
    assert len(spectrum.support()) == 1
    np.testing.assert_allclose(spectrum.support()[0], entry["outputs"]["support_edges"], rtol=1e-10)
    np.testing.assert_allclose(spectrum.density(entry["inputs"]["x"]), entry["outputs"]["density"], rtol=1e-10)
    x, weight = angle_rule(*spectrum.support()[0], count=200)
    assert weight @ spectrum.density(x) == pytest.approx(1, rel=1e-11)


def test_wide_population_of_a_power_law():
    s = np.arange(1.0, 301.0) ** -1.5
    spectrum = SampleSpectrum(s, ratio=0.5)
    x = np.geomspace(spectrum.support()[0][0], spectrum.support()[-1][1], 40)[1:-1]
    f = spectrum.cdf(x)
    assert (np.diff(f) >= 0).all()
    assert 0 < f[0] < f[-1] < 1
    assert sum(spectrum.bulk_masses()) == pytest.approx(1, abs=1e-13)
    middle = np.sqrt(x[10] * x[11])
    step = middle * 1e-5
    slope = (spectrum.cdf(middle + step) - spectrum.cdf(middle - step)) / (2 * step)
    assert slope == pytest.approx(float(spectrum.density(middle)), rel=1e-6)


def test_equal_eigenvalues_are_merged_and_weightless_ones_dropped():
    one = SampleSpectrum([1.0, 4.0], [0.5, 0.5], ratio=0.3)
    two = SampleSpectrum([4.0, 1.0, 4.0, 1.0, 9.0], [0.2, 0.4, 0.3, 0.1, 0.0], ratio=0.3)
    np.testing.assert_allclose(one.support(), two.support(), rtol=1e-13)
    x = np.linspace(0.2, 8, 20)
    np.testing.assert_allclose(one.density(x), two.density(x), rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("ratio", [0.5, 2.0, 6.0])
def test_null_directions_only_add_zeros(ratio):
    """If half of the directions have no variance, the remaining half has half the ratio and half of the mass."""
    spectrum, seen = (
        SampleSpectrum([0.0, 1.0, 3.0], [0.5, 0.25, 0.25], ratio=ratio),
        SampleSpectrum([1.0, 3.0], ratio=ratio / 2),
    )
    assert spectrum.atom() == pytest.approx(0.5 + seen.atom() / 2)
    np.testing.assert_allclose(spectrum.support(), seen.support(), rtol=1e-13)
    x = np.linspace(0.05, 12, 30)
    np.testing.assert_allclose(spectrum.density(x), seen.density(x) / 2, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(spectrum.cdf(x), 0.5 + seen.cdf(x) / 2, atol=1e-13)
    z = np.array([-1.0 + 0j, 2 + 1j, 1e-6 + 1e-6j])
    np.testing.assert_allclose(spectrum.stieltjes(z), seen.stieltjes(z) / 2 - 0.5 / z, rtol=1e-12)


@settings(max_examples=20)
@given(population=populations, ratio=ratios, power=st.floats(-30, 30))
def test_scale_covariance(population, ratio, power):
    s, w = np.array(population).T
    one, scaled, scale = SampleSpectrum(s, w, ratio=ratio), SampleSpectrum(s * 10**power, w, ratio=ratio), 10.0**power
    np.testing.assert_allclose(np.array(scaled.support()), scale * np.array(one.support()), rtol=1e-9)
    z = np.array([-1.0 + 0j, 1 + 1j]) * s.max()
    np.testing.assert_allclose(scale * scaled.stieltjes(scale * z), one.stieltjes(z), rtol=1e-9)


def test_bulks_merge_as_samples_get_fewer():
    """The gap between the bulks of two eigenvalues closes at one ratio, at which no quantity jumps."""
    bulks = [len(SampleSpectrum([1.0, 2.0], ratio=ratio).support()) for ratio in (0.1, 0.105, 0.11, 0.2, 1.0, 5.0)]
    assert bulks == sorted(bulks, reverse=True)
    assert bulks[0] == 2
    assert bulks[-1] == 1
    low, high = 0.1, 0.2  # the ratio at which they touch
    for _ in range(48):
        middle = (low + high) / 2
        low, high = (middle, high) if len(SampleSpectrum([1.0, 2.0], ratio=middle).support()) == 2 else (low, middle)
    x = np.linspace(1.2, 1.5, 31)
    before, after = SampleSpectrum([1.0, 2.0], ratio=low), SampleSpectrum([1.0, 2.0], ratio=high)
    (_, end), (start, _) = before.support()
    assert start - end < 1e-6
    np.testing.assert_allclose(before.cdf(x), after.cdf(x), atol=1e-10)


def test_more_dimensions_than_samples_with_separate_bulks():
    spectrum = SampleSpectrum([1.0, 300.0], [0.99, 0.01], ratio=5.0)
    assert len(spectrum.support()) == 2
    assert spectrum.bulk_masses()[1] == pytest.approx(0.01)
    assert spectrum.bulk_masses()[0] == pytest.approx(1 / 5 - 0.01)
    assert spectrum.cdf(0.0) == pytest.approx(0.8)


@pytest.mark.parametrize("ratio", [0.2, 1.0, 3.0])
def test_outlier_of_a_spiked_identity(ratio):
    """Tests the transition of Baik, Ben Arous and Peche, and the classical formulas above it."""
    spectrum, threshold = SampleSpectrum([1.0], ratio=ratio), 1 + np.sqrt(ratio)
    assert spectrum.outlier(threshold - 1e-9) is None
    assert spectrum.outlier(1.0) is None
    for spike in (threshold + 1e-6, threshold + 1, 50.0):
        position, overlap = spectrum.outlier(spike)
        assert position == pytest.approx(spike * (1 + ratio / (spike - 1)), rel=1e-12)
        assert overlap == pytest.approx((1 - ratio / (spike - 1) ** 2) / (1 + ratio / (spike - 1)), abs=1e-12)
        assert position >= spectrum.support()[-1][1]
    below = spectrum.outlier((1 - np.sqrt(ratio)) / 2) if ratio < 1 else spectrum.outlier(0.1)
    assert (below is not None) == (ratio < 1)
    if below is not None:
        assert 0 < below[0] < spectrum.support()[0][0]
        assert 0 < below[1] < 1


def test_outlier_in_a_gap_between_bulks():
    spectrum = SampleSpectrum([1.0, 10.0], ratio=0.05)
    (_, end), (start, _) = spectrum.support()
    position, overlap = spectrum.outlier(3.0)
    assert end < position < start
    assert 0.8 < overlap < 1


def test_values_at_zero():
    hard = SampleSpectrum([1.0, 2.0], ratio=1.0)
    assert hard.support()[0][0] == 0
    assert hard.density(0.0) == np.inf
    assert np.isinf(hard.stieltjes(0.0))
    assert SampleSpectrum([1.0, 2.0], ratio=0.5).stieltjes(0.0) == pytest.approx(
        0.75 / 0.5, rel=1e-13
    )  # E[1/s] / (1 - ratio)
    assert np.isinf(SampleSpectrum([1.0, 2.0], ratio=0.5).companion(0.0))
    wide = SampleSpectrum([1.0, 2.0], ratio=4.0)
    assert np.isinf(wide.stieltjes(0.0))
    kappa = 1 / wide.companion(0.0)
    assert 4 * np.mean([1 / (1 + kappa), 2 / (2 + kappa)]) == pytest.approx(1, rel=1e-13)  # one degree of freedom per sample
    exact = SampleSpectrum([0.0, 1.0], [1 / 11, 10 / 11], ratio=1.1)  # as many positive eigenvalues as samples
    assert exact.support()[0][0] == 0


@pytest.mark.parametrize("ratio", [0.3, 1.0, 3.0])
def test_two_solvers_agree_on_and_off_the_negative_axis(ratio):
    """1/v is the effective ridge, which `numerics.equivalents` finds by Newton's method from above and by continuation."""
    s, w = np.array([0.2, 1.0, 6.0]), np.array([0.5, 0.3, 0.2])
    spectrum, ridges = SampleSpectrum(s, w, ratio=ratio), np.array([1e-9, 1e-3, 1.0, 40.0])
    np.testing.assert_allclose(1 / spectrum.companion(-ridges), effective_ridge(ridges, s, ratio * w), rtol=1e-12)
    z = np.array([0.5 + 0.1j, -2 + 1j, 4 - 0.5j])
    np.testing.assert_allclose(1 / spectrum.companion(z), resolvent_ridge(z, s, ratio * w), rtol=1e-10)
    if ratio > 1:
        assert spectrum.support()[0][0] == pytest.approx(-float(negative_ridge_limit(s, ratio * w)), rel=1e-12)


def test_hard_edge_keeps_relative_accuracy():
    spectrum = SampleSpectrum([1.0, 4.0], ratio=1.0)
    x = np.geomspace(1e-24, 1e-8, 9)
    inverse = np.mean([1, 1 / 4])  # psi(u) ~ -u^2 E[1/s], so the density is sqrt(E[1/s] / x) / pi
    np.testing.assert_allclose(spectrum.density(x) * np.sqrt(x), np.sqrt(inverse) / np.pi, rtol=1e-7)


def test_shapes_and_types():
    spectrum = SampleSpectrum([1.0, 3.0], ratio=0.3)
    assert spectrum.density(np.ones((2, 3))).shape == (2, 3)
    assert spectrum.cdf([]).shape == (0,)
    assert spectrum.stieltjes([-1.0, -2.0]).dtype == float
    assert spectrum.stieltjes([-1.0 + 0j]).dtype == complex
    assert np.ndim(spectrum.cdf(1.0)) == 0
    inside = spectrum.stieltjes(1.0 + 0j)
    assert inside.imag == pytest.approx(np.pi * spectrum.density(1.0), rel=1e-12)


def test_many_points_go_through_in_parts(monkeypatch):
    spectrum = SampleSpectrum([1.0, 3.0], ratio=0.3)
    x = np.linspace(0.1, 6, 101)
    whole = spectrum.cdf(x), spectrum.stieltjes(x + 0.1j)
    monkeypatch.setattr(silverstein, "CHUNK", 20)
    np.testing.assert_array_equal(spectrum.cdf(x), whole[0])
    np.testing.assert_array_equal(spectrum.stieltjes(x + 0.1j), whole[1])


def test_an_unfinished_solution_is_an_error_that_carries_it(monkeypatch):
    monkeypatch.setattr(silverstein, "MOST_STEPS", 1)
    monkeypatch.setattr(silverstein, "POLISHING_STEPS", 0)
    with pytest.raises(ConvergenceError, match="is solved to") as caught:
        SampleSpectrum([1.0, 3.0, 7.0], ratio=0.8).density(1.0)
    assert caught.value.estimate.shape == (1,)
    assert caught.value.accuracy > 1e-12


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SampleSpectrum([1.0], ratio=0.0), "ratio = 0.0 is not allowed"),
        (lambda: SampleSpectrum([1.0], ratio=np.inf), "ratio = inf"),
        (lambda: SampleSpectrum([1.0, -2.0], ratio=1.0), "eigenvalues = -2.0"),
        (lambda: SampleSpectrum([1.0, np.nan], ratio=1.0), "eigenvalues = nan"),
        (lambda: SampleSpectrum([0.0, 0.0], ratio=1.0), "eigenvalues"),
        (lambda: SampleSpectrum([], ratio=1.0), "eigenvalues"),
        (lambda: SampleSpectrum([1.0, 2.0], [1.0], ratio=1.0), "weights"),
        (lambda: SampleSpectrum([1.0, 2.0], [1.0, -1.0], ratio=1.0), "weights = -1.0"),
        (lambda: SampleSpectrum([0.0, 2.0], [1.0, 0.0], ratio=1.0), "weights"),
        (lambda: SampleSpectrum([1.0], ratio=0.5).outlier(-1.0), "spike = -1.0"),
        (lambda: SampleSpectrum([1.0], ratio=0.5).stieltjes(1.0), "inside the support"),
        (lambda: SampleSpectrum([1.0], ratio=0.5).density(np.inf), "x = inf"),
        (lambda: SampleSpectrum([1.0], ratio=0.5).moment(1.5), "order = 1.5"),
    ],
)
def test_sample_spectrum_refuses(call, message):
    with pytest.raises(ValueError, match=message):
        call()
