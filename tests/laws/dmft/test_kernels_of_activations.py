"""Hermite series of activations: covariance of two neurons against independent quadrature, closed forms, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from limitlab.laws.dmft._finite.kernels import kernels_of
from limitlab.models.activations import Activation
from references import reference

ENTRIES = [entry for entry in reference("dmft") if entry["law"] == "activation_covariance"]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["inputs"]["sigma"])
def test_activation_covariance_reference(entry: dict[str, Any]) -> None:
    inputs, outputs = entry["inputs"], entry["outputs"]
    kernels = kernels_of(Activation(inputs["sigma"]), None)
    np.testing.assert_allclose(kernels.kernel[: inputs["kmax"] + 1], outputs["c_k_squared"], atol=entry["tolerance"], rtol=0)
    assert abs(kernels.h(1.0) - outputs["h_of_1"]) < entry["tolerance"]


def test_a_target_equal_to_the_activation_has_the_same_series() -> None:
    kernels = kernels_of(Activation("tanh"), Activation("tanh"))
    np.testing.assert_allclose(kernels.target, kernels.kernel[: len(kernels.target)], atol=1e-14)
    assert abs(kernels.target_norm - kernels.h(1.0)) < 1e-9


def test_an_activation_with_a_kink_is_refused() -> None:
    with pytest.raises(ValueError, match="too rough"):
        kernels_of(Activation("relu"), None)
