"""Square matrices: reference values, moments of the two laws, finite-size means."""

from functools import partial

import numpy as np
import pytest
from scipy.integrate import quad

from limitlab import compare
from limitlab.laws import MarchenkoPastur, SquareMatrixEdge, mean_inverse_trace
from references import label, reference

entries = partial(reference, "static_statements")


def test_reference_smallest():
    (entry,) = entries("square_gaussian_smallest")
    law, want = SquareMatrixEdge(), entry["outputs"]
    np.testing.assert_allclose(law.smallest_cdf(entry["inputs"]["x"]), want["cdf"], rtol=entry["tolerance"])
    np.testing.assert_allclose(law.smallest_quantile(entry["inputs"]["p"]), want["quantile"], rtol=entry["tolerance"])


def test_reference_condition():
    (entry,) = entries("square_gaussian_condition")
    law, want = SquareMatrixEdge(), entry["outputs"]
    np.testing.assert_allclose(law.condition_cdf(entry["inputs"]["x"]), want["cdf"], rtol=entry["tolerance"])
    np.testing.assert_allclose(float(law.theory().condition_number), want["mean_log_minus_log_n"], rtol=entry["tolerance"])


@pytest.mark.parametrize("entry", entries("trace_inverse"), ids=label)
def test_reference_trace(entry):
    found = mean_inverse_trace(entry["inputs"]["n"], entry["inputs"]["d"])
    np.testing.assert_allclose(found, entry["outputs"]["mean_trace_pinv"], rtol=entry["tolerance"])


@pytest.mark.parametrize("entry", entries("condition_number"), ids=label)
def test_reference_away_from_the_square(entry):
    low, high = MarchenkoPastur(ratio=entry["inputs"]["ratio"]).support()[0]
    np.testing.assert_allclose(np.sqrt(high / low), entry["outputs"]["limit"], rtol=entry["tolerance"])


@pytest.mark.parametrize("entry", entries("covariance_operator_error"), ids=label)
def test_reference_operator_norm(entry):
    """|S - 1| of a sample covariance matrix tends to the right edge minus 1."""
    ((_, high),) = MarchenkoPastur(ratio=entry["inputs"]["ratio_dim_over_samples"]).support()
    np.testing.assert_allclose(high - 1, entry["outputs"]["limit"], rtol=entry["tolerance"])


def test_means_follow_from_the_distributions():
    law = SquareMatrixEdge()
    mean = quad(lambda x: 1 - law.smallest_cdf(x), 0, 200, epsabs=1e-11, limit=200)[0]
    assert float(law.theory().smallest) == pytest.approx(mean, abs=1e-9)
    up = quad(lambda y: 1 - law.condition_cdf(np.exp(y)), 0, 40, epsabs=1e-12)[0]
    down = quad(lambda y: law.condition_cdf(np.exp(y)), -10, 0, epsabs=1e-12)[0]
    assert float(law.theory().condition_number) == pytest.approx(up - down, abs=1e-9)
    p = np.array([0.0, 1e-12, 0.3, 0.999])
    np.testing.assert_allclose(law.smallest_cdf(law.smallest_quantile(p)), p, rtol=1e-9)
    assert law.smallest_quantile(1.0) == np.inf
    assert law.condition_cdf([0.0, -1.0]).tolist() == [0.0, 0.0]


def test_a_tall_matrix_does_not_follow_the_law():
    """Control: with one column less the smallest eigenvalue is of another order."""

    class Tall(SquareMatrixEdge):
        """n x (n - 1)."""

        def measured(self, draw):
            n = draw.size
            singular = np.linalg.svd(draw.rng.standard_normal((self.matrices, n, n - 1)), compute_uv=False)
            return dict(
                smallest=(n * singular[:, -1] ** 2).mean(),
                condition_number=np.log(singular[:, 0] / singular[:, -1]).mean() - np.log(n),
            )

    assert compare(Tall(), seeds=20, budget=0.0, progress=False).verdict == "disagree"


def test_bad_input():
    with pytest.raises(ValueError, match="p = 2 is not allowed"):
        SquareMatrixEdge().smallest_quantile(2)
    with pytest.raises(ValueError, match="d = 0 is not allowed"):
        mean_inverse_trace(3, 0)
