"""Claims on kernels fail when what they say is not so."""

import pytest

from limitlab.lab.claims import all_claims
from limitlab.laws.kernels._claims import architectures as convolutional


@pytest.mark.slow
def test_networks_that_learn_no_features_do_not_pass(monkeypatch):
    """M8 with networks that all start as their kernel does: as wrong as the kernel, and the claim fails."""
    measured = convolutional.kernel_and_networks

    def lazy(task, seed, scales, width, steps):
        return measured(task, seed, (1.0,) * len(scales), width, steps)

    monkeypatch.setattr(convolutional, "kernel_and_networks", lazy)
    outcome = all_claims()["M8"].run(quick=True)
    failed = {made.name for made in outcome.criteria if not made.holds}
    assert "smallest ratio of the kernel's test error to the network's" in failed
