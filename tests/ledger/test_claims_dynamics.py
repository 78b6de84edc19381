"""Checks of dynamics, steps and landscapes fail on their own negation."""

import numpy as np

from limitlab.ledger import find_claims, landscapes, sgd_steps


def failed(claim_id: str) -> list[str]:
    """Criteria of the quick check that do not hold."""
    return [made.name for made in find_claims([claim_id])[0].run(quick=True).criteria if not made.holds]


def test_saddle_rates_that_are_wrong_are_noticed(monkeypatch):
    kind = landscapes.SingleCluster
    right = kind.saddle_rates
    monkeypatch.setattr(kind, "saddle_rates", staticmethod(lambda *a, **k: 0.9 * right(*a, **k)))
    assert any("Jacobian" in name for name in failed("J35"))


def test_tokens_that_rest_are_noticed(monkeypatch):
    monkeypatch.setattr(landscapes, "token_paths", lambda x, beta, times, tolerance: np.stack([x] * len(times)))
    assert {name.split()[0] for name in failed("J35")} == {"rate", "runs"}


def test_steps_that_are_always_critical_are_noticed(monkeypatch):
    law = sgd_steps.subcritical
    monkeypatch.setattr(sgd_steps, "subcritical", lambda step: law(1.0 if step else 0.0))
    assert sum("exponent" in name for name in failed("J34")) == 2
