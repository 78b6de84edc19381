"""Parameters that were renamed: the old name is refused with the new one, wherever a name can be given."""

import re

import pytest

from limitlab import laws
from limitlab._core.vocabulary import FORMER_NAMES
from limitlab.laws import Law

RENAMED = [
    ("EarlyStopping", "time", "times"),
    ("EarlyStopping", "signal", "signal_energy"),
    ("Ridge", "signal", "signal_energy"),
    ("FirstOrderDynamics", "signal", "signal_energy"),
    ("OnlineSingleIndex", "start", "start_overlap"),
    ("OnlinePCA", "start", "start_overlap"),
    ("OnlineMixture", "start", "start_overlap"),
    ("TwoLayerDynamics", "steps", "solver_steps"),
    ("InterpolationTransition", "steps", "solver_steps"),
    ("InterpolationTransition", "ratio", "samples_per_weight"),
    ("AdiabaticGrowth", "ratio", "samples_per_weight"),
    ("MiddleRegime", "ratio", "samples_per_weight"),
    ("ResidualFlow", "noise", "weight_noise"),
]


def every_law() -> list[type[Law]]:
    found = [getattr(laws, name) for name in laws.__all__]
    return [kind for kind in found if isinstance(kind, type) and issubclass(kind, Law) and kind is not Law]


@pytest.mark.parametrize(("name", "old", "new"), RENAMED, ids=lambda word: word)
def test_old_names_are_refused_with_the_new_ones(name: str, old: str, new: str) -> None:
    kind = getattr(laws, name)
    assert new in kind.parameters()
    assert old not in kind.parameters()
    value, said = kind.parameters()[new].default, re.escape(f"{name} has no parameter {old!r}: it is called {new!r} now")
    law = kind()
    for attempt in (
        lambda: kind(**{old: value}),
        lambda: law.replace(**{old: value}),
        lambda: law.evaluate(**{old: [value]}),
        lambda: law.experiment(50, 0, **{old: [value]}),
    ):
        with pytest.raises(ValueError, match=said):
            attempt()
    assert law.replace(**{new: value}) == law


def test_the_table_is_complete() -> None:
    """The vocabulary has exactly these former names, and each of them leads to a parameter of the laws that had it."""
    assert {(old, new) for _, old, new in RENAMED} == set(FORMER_NAMES.items())
    refused = {(kind.__name__, old, kind.former_name(old)) for kind in every_law() for old in FORMER_NAMES}
    assert set(RENAMED) <= refused


def test_other_unknown_names_are_refused_with_close_ones() -> None:
    with pytest.raises(ValueError, match=r"Ridge has no parameter 'rigde': did you mean 'ridge'\?"):
        laws.Ridge(rigde=0.1)
