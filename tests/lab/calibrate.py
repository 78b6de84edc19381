"""How often does `compare` raise a false alarm, and how often does it miss a fault? Measured, with intervals.

    python tests/lab/calibrate.py            both tables as Markdown (minutes)

False alarms: sound laws at their check points, compared again and again with seeds that nobody shares, at a level of 5 % (at the default
level of 0.1 % one would have to wait for thousands of comparisons to see one). Draws are added as always, so that the looks are tested too.
Power: the same laws with one observable predicted 5 % too large, at the default level.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import beta

from limitlab._core.registry import find_law
from limitlab.lab import compare
from limitlab.laws import Law

LEVEL = 0.05
CHEAP = {  # law: comparisons at each of its check points
    "NearestNeighbours": (0, 300),
    "Ridge": (300, 200),
    "EarlyStopping": (200, 200),
    "OnlinePCA": (300,),
    "SpikedTensor": (150, 150),
    "EquiangularTokens": (200, 200),
}
FAULTY = {  # law: the observable that is predicted 5 % too large at the first check point
    "Ridge": "train_error",
    "EarlyStopping": "variance",
    "RandomFeaturesRidge": "bias",
    "NearestNeighbours": "squared_bias",
    "OnlinePCA": "overlap",
    "OnlineSingleIndex": "overlap",
    "SpikedTensor": "residual",
    "EquiangularTokens": "overlap",
    "SampleCovariance": "second_moment",
    "MaxMargin": "classification_error",
}


def own_seeds(number: int, count: int) -> range:
    """The first seeds of comparison `number`: a million apart, so that no added draw is shared."""
    return range(10**6 * (number + 1), 10**6 * (number + 1) + count)


def false_alarms(budget: float = 5.0, share: float = 1.0) -> Iterator[tuple[str, int, Counter[str]]]:
    """Law, number of comparisons and their verdicts, at the level of 5 %."""
    for name, repeats in CHEAP.items():
        kind, verdicts, total = find_law(name), Counter[str](), 0
        for point, count in zip(kind.check_points(), repeats, strict=False):
            for number in range(int(share * count)):
                seeds = own_seeds(number, kind.simulation.draws)
                verdicts[compare(point, seeds=seeds, budget=budget, level=LEVEL, progress=False).verdict] += 1
                total += 1
        yield name, total, verdicts


def five_percent_off(law: Law, observable: str) -> Law:
    """The law with one observable predicted 5 % too large; its experiment, and the draws of it, stay the same."""

    def predicted(self: Any, **arguments: Any) -> dict[str, Any]:
        values = dict(type(law).predicted(self, **arguments))
        return {**values, observable: 1.05 * np.asarray(values[observable])}

    faulty: Any = type(
        type(law).__name__, (type(law),), {"predicted": predicted, "__doc__": "A fault.", "__module__": __name__}
    )
    return faulty(**dict(law))  # type: ignore[no-any-return]


def power(budget: float = 20.0, repeats: int = 20) -> Iterator[tuple[str, str, Counter[str]]]:
    """Law, faulty observable and the verdicts of repeated comparisons at the default level."""
    for name, observable in FAULTY.items():
        law = five_percent_off(find_law(name).check_points()[0], observable)
        seeds = [own_seeds(number, law.simulation.draws) for number in range(repeats)]
        verdicts = Counter(compare(law, seeds=some, budget=budget, progress=False).verdict for some in seeds)
        yield name, observable, verdicts


def interval(hits: int, total: int, confidence: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's interval of a probability."""
    tail = (1 - confidence) / 2
    low = float(beta.ppf(tail, hits, total - hits + 1)) if hits else 0.0
    return low, float(beta.ppf(1 - tail, hits + 1, total - hits)) if hits < total else 1.0


def main() -> None:
    """Both tables."""
    print("| law | null comparisons | disagree | underpowered |\n|---|---:|---:|---:|")
    alarms = comparisons = 0
    for name, total, verdicts in false_alarms():
        alarms, comparisons = alarms + verdicts["disagree"], comparisons + total
        print(f"| {name} | {total} | {verdicts['disagree']} | {verdicts['underpowered']} |", flush=True)
    low, high = interval(alarms, comparisons)
    print(f"| all | {comparisons} | {alarms} = {alarms / comparisons:.2%} (95 %: {low:.2%} to {high:.2%}) | |")
    print("\n| law | 5 % off | caught of 20 | underpowered |\n|---|---|---:|---:|")
    for name, observable, verdicts in power():
        print(f"| {name} | {observable} | {verdicts['disagree']} | {verdicts['underpowered']} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
