"""The walk-through of CONTRIBUTING.md is real: its code is run here, block by block, as a contributor would."""

from __future__ import annotations

import doctest
import sys
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

from markdown_blocks import ROOT, blocks

PAGE = ROOT / "CONTRIBUTING.md"


@pytest.fixture(scope="module")
def walk_through() -> Iterator[ModuleType]:
    """A module that holds everything the walk-through defines; registered, because a law is pickled by its module's name."""
    module = ModuleType("shrinkage")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "shrinkage", module)
        for block in blocks(PAGE, "python"):  # padded, so that a failure points to the line of the page
            exec(compile("\n" * (block.line - 1) + block.text, str(PAGE), "exec"), module.__dict__)
        yield module


def test_every_block_runs(walk_through: ModuleType) -> None:
    assert walk_through.comparison.passed
    assert doctest.testmod(walk_through).failed == 0


def test_walk_through_shows_every_step() -> None:
    """One file, the contract suite, a comparison, a planted fault, a claim: none may be dropped from the page."""
    code = "\n".join(block.text for block in blocks(PAGE, "python"))
    for step in ("class JamesStein(Law)", "check_law(", 'verdict == "agree"', 'verdict == "disagree"', "Claim("):
        assert step in code


def test_the_law_of_the_walk_through_is_right(walk_through: ModuleType) -> None:
    """Against the exact finite-size risk: E|y|^-2 by Monte Carlo, independent of the law's own experiment."""
    signal, noise, d = 1.5, 0.7, 400
    rng = np.random.default_rng(5)
    squares = np.sum((signal + noise * rng.standard_normal((4000, d))) ** 2, axis=1)
    exact = noise**2 - noise**4 * (d - 2) ** 2 / d * np.mean(1 / squares)  # Stein's unbiased estimate of the risk
    assert float(walk_through.JamesStein(signal=signal, noise=noise).theory().excess_risk) == pytest.approx(exact, rel=4 / d)
