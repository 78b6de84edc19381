"""One name, one quantity: two laws that use a name declare the same meaning, and unknown names are refused everywhere."""

import pytest

from limitlab._core.declaration import KINDS, VOCABULARY
from limitlab._core.registry import all_laws
from limitlab.laws import MaxMargin


def declarations():
    """(law, name, meta) of every parameter."""
    return [(law, name, meta) for law, kind in all_laws().items() for name, meta in kind.parameters().items()]


def test_a_name_has_one_meaning():
    meanings = {}
    for law, name, meta in declarations():
        meanings.setdefault(name, {}).setdefault(meta.description, []).append(law)
    assert not {name: found for name, found in meanings.items() if len(found) > 1}


def test_an_observable_has_one_meaning():
    meanings = {}
    for law, kind in all_laws().items():
        for name, meta in kind.all_outputs().items():
            meanings.setdefault(name, {}).setdefault(meta.long_name, []).append(law)
    assert not {name: found for name, found in meanings.items() if len(found) > 1}


def test_an_observable_that_several_laws_have_is_in_the_vocabulary():
    users = {}
    for law, kind in all_laws().items():
        for name in kind.outputs():
            users.setdefault(name, []).append(law)
    pairs = {name for name in users if name.endswith("_gap") or name.startswith("linear_")}  # made from shared ones
    assert not {name: laws for name, laws in users.items() if len(laws) > 1 and name not in VOCABULARY and name not in pairs}


def test_names_of_the_conventions():
    for law, name, meta in declarations():
        where = f"{law}.{name}"
        assert name != "time", where
        assert name != "start" or law == "LinearNetwork", where  # what starts is named: start_overlap, start_mean, ...
        assert meta.kind in KINDS, where
        assert (name == "times") == (meta.kind == "coordinate" and meta.dimension == "time"), where
        if name in ("solver_steps", "tolerance", "refinement"):
            assert meta.kind == "solver", where
        starts = {
            "noise": "standard deviation",
            "ratio": "features per sample",
            "signal": "norm",
            "signal_energy": "squared norm",
        }
        assert meta.description.startswith(starts.get(name, "")), where


@pytest.mark.parametrize("name", all_laws())
def test_unknown_names_are_refused_everywhere(name):
    law = all_laws()[name]()
    for call in (law.evaluate, lambda **grid: law.experiment(law.simulation.sizes[0], 0, **grid)):
        with pytest.raises(ValueError, match=f"{name} has no parameter 'rtaio'"):
            call(rtaio=5)


def test_an_undeclared_array_is_refused_by_name():
    with pytest.raises(ValueError, match="MaxMargin takes one value of ratio at a time"):
        MaxMargin().evaluate(ratio=[1, 3])
    with pytest.raises(ValueError, match="did you mean 'ratio'"):
        MaxMargin().evaluate(rtaio=5)
