"""Accuracy is an accuracy: solved again with more effort, no prediction moves by more than three times the error it states."""

import zlib

import numpy as np
import pytest

from limitlab._core.registry import all_laws
from limitlab.testing import true_errors

POINTS = 3
SOLVED = {name: law for name, law in all_laws().items() if law().finer() != law()}


def random_point(law, rng):
    """The law with its numbers moved by up to a quarter, at random; a move that it refuses is drawn again."""
    metas = type(law).parameters()
    for _ in range(50):
        changes = {
            name: getattr(law, name) * rng.uniform(0.8, 1.25)
            for name, meta in metas.items()
            if meta.kind == "physics" and type(getattr(law, name)) is float and np.isfinite(getattr(law, name))
        }
        try:
            return law.replace(**changes)
        except ValueError:
            continue
    raise AssertionError(f"no valid point near {law!r}")


@pytest.mark.parametrize("name", SOLVED)
def test_the_stated_error_is_honest(name):
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    points = SOLVED[name].check_points()
    for number in range(POINTS):
        law = random_point(points[number % len(points)], rng)
        for observable, (change, stated) in true_errors(law).items():
            assert change <= 3 * stated + 1e-13, f"{law!r}: {observable} states {stated:.2g} and changes by {change:.2g}"


INTEGRATED = {"LogisticDescent": 2e-8, "TokenFlow": 2e-7}
"""Laws that state the tolerance with which a draw is integrated, because an observable is a ratio of two results of a draw, or
with which the prediction is integrated."""


def test_laws_without_solver_options_claim_only_rounding():
    """A law that cannot be asked for more effort is a closed form, or reports the error of its own root finding or quadrature."""
    for name, law in all_laws().items():
        if name not in SOLVED:
            assert law().theory().attrs["accuracy"] < INTEGRATED.get(name, 1e-9), name
