"""The comparison of a correct law raises no alarm. Wrong laws are the subject of tests/faults."""

import pytest

import limitlab as ll
from limitlab.laws import EarlyStopping, MarchenkoPastur, NearestNeighbours, Ridge

SOUND = [
    Ridge(ratio=0.5, ridge=0.2, noise=0.7),
    Ridge(ratio=2.0, ridge=0.1, noise=0.7, eigenvalues=(0.5, 2.0), weights=(0.5, 0.5), signal_energy=(0.5, 0.5)),
    EarlyStopping(ratio=0.5, noise=0.5, times=(0.5, 2.0, 8.0)),
    MarchenkoPastur(ratio=0.2),
    NearestNeighbours(samples=200, neighbours=5, dimension=2, smoothness=1.0, amplitude=1.5, noise=0.5),
]


@pytest.mark.parametrize("law", SOUND, ids=lambda law: f"{type(law).__name__}-{getattr(law, 'ratio', '')}")
def test_unmodified_law_raises_no_alarm_for_twenty_seeds(law):
    seeds = [range(1000 * number, 1000 * number + 20) for number in range(20)]
    verdicts = {some.start: ll.compare(law, law.simulation.sizes[:2], some) for some in seeds}
    assert not {seed: result.explanation for seed, result in verdicts.items() if result.verdict == "disagree"}
