"""Every law keeps the contract (`limitlab.testing.check_law`), at its defaults."""

import pytest

from limitlab.lab.registry import all_laws
from limitlab.testing import LawContractError, check_law


@pytest.mark.parametrize("name", all_laws())
def test_law_keeps_its_contract(name):
    checks = check_law(all_laws()[name]())
    assert "agreement" in checks


def test_contract_catches_a_law_that_breaks_it():
    from limitlab.laws import Ridge

    class Broken(Ridge):
        """What is wrong here?"""

        def experiment(self, size, seed, **path):
            values = dict(super().experiment(size, seed, **path))
            values.pop("train_error")
            return values

    with pytest.raises(LawContractError, match="simulation lacks train_error"):
        check_law(Broken(ratio=0.5), sizes=[20, 40], seeds=5)
