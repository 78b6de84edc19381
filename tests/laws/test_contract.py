"""Every law keeps the contract (`limitlab.testing.check_law`), at its check points."""

import numpy as np
import pytest

from limitlab._core.registry import all_laws
from limitlab.laws import Ridge, parameter
from limitlab.testing import LawContractError, check_law


@pytest.mark.usefixtures("shared_cells")
@pytest.mark.parametrize("name", all_laws())
def test_law_keeps_its_contract(name):
    checks = check_law(all_laws()[name])
    assert "agreement" in checks


class Forgetful(Ridge):
    """What is wrong here?"""

    def measured(self, draw, **path):
        values = dict(super().measured(draw, **path))
        values.pop("train_error")
        return values


class Restless(Ridge):
    """What is wrong here?"""

    def measured(self, draw, **path):
        values = super().measured(draw, **path)
        return {**values, "bias": values["bias"] * (1 + 0.01 * np.random.default_rng().random())}


class Boastful(Ridge):
    """What is wrong here?"""

    grid: int = parameter(10, "points of a grid", kind="solver", least=1, finer=2)

    def predicted(self, **numbers):
        values = super().predicted(**numbers)
        return {**values, "bias": values["bias"] * (1 + 1e-3 / self.grid)}


class SolverInTheStream(Ridge):
    """What is wrong here?"""

    grid: int = parameter(10, "points of a grid", kind="solver", least=1, finer=2)

    def measured(self, draw, **path):
        values = super().measured(draw, **path)
        return {**values, "bias": values["bias"] + 1e-6 * self.grid}


class Unbounded(Ridge):
    """What is wrong here?"""

    level: float = parameter(1.0, "a level", least=0)

    def replace(self, **changes):
        changes.pop("level", None)
        return super().replace(**changes)


@pytest.mark.parametrize(
    ("law", "complaint"),
    [
        (Forgetful, "simulation lacks train_error"),
        (Restless, "seeds: "),
        (Boastful, "bias states an error of .* and changes by"),
        (SolverInTheStream, "bias depends on a solver option"),
        (Unbounded, "level = .* was accepted"),
    ],
)
def test_contract_catches_a_law_that_breaks_it(law, complaint):
    with pytest.raises(LawContractError, match=complaint):
        check_law(law(ratio=0.5), sizes=[20, 40], seeds=5)
