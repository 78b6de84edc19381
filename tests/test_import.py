"""The import budget: which libraries are loaded by importing limitlab, by its help page, by a law of every subject, by a prediction."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {"jax", "matplotlib", "sklearn", "numba", "panel", "distributed"}
PLAIN = (
    *("MarchenkoPastur", "Ridge", "MaxMargin", "LeastSquaresDescent", "Staircase", "UniformConvergence"),
    *("LinearNetwork", "TwoGaussians", "OnlineSingleIndex", "MixtureAlignment", "EquiangularTokens"),
)
COMPILED = ("KernelGradientFlow", "TwoLayerDynamics", "PowerLawScaling")
LAWS: dict[str, set[str]] = {**{law: set() for law in PLAIN}, **{law: {"numba"} for law in COMPILED}}
"""A law of every subject, with the heavy libraries that its module may load."""


def fresh(statement: str) -> tuple[float, set[str]]:
    """Seconds that a statement takes in a new interpreter, and the top-level modules loaded after it."""
    program = (
        "import sys, time\n"
        "start = time.perf_counter()\n"
        f"{statement}\n"
        "seconds = time.perf_counter() - start\n"
        "import json\n"
        "print('\\n' + json.dumps([seconds, sorted({name.split('.')[0] for name in sys.modules})]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    seconds, modules = json.loads(done.stdout.splitlines()[-1])
    return float(seconds), set(modules)


def test_importing_limitlab_loads_no_numerical_library() -> None:
    _, modules = fresh("import limitlab")
    assert not modules & (HEAVY | {"numpy", "scipy", "xarray", "pandas", "pydantic", "typer"})


def test_the_help_page_loads_no_law() -> None:
    _, modules = fresh("from limitlab.show.cli import app; app(['--help'], standalone_mode=False)")
    assert not modules & (HEAVY | {"scipy", "xarray", "pandas", "pydantic"})


@pytest.mark.parametrize(("law", "allowed"), LAWS.items(), ids=LAWS)
def test_a_law_loads_only_what_it_needs(law: str, allowed: set[str]) -> None:
    _, modules = fresh(f"import limitlab; limitlab.laws.{law}.check_points()")
    assert not modules & (HEAVY - allowed)


def test_a_prediction_loads_no_heavy_library() -> None:
    _, modules = fresh(
        "from limitlab.show.cli import app; app(['predict', 'ridge', '--ratio', '0.5,2'], standalone_mode=False)"
    )
    assert not modules & HEAVY


def test_import_costs_little_beyond_its_foundations() -> None:
    """Interleaved and best of three, as a ratio: other work on the machine slows both sides alike."""
    ours, foundations = [], []
    for _ in range(3):
        foundations.append(fresh("import numpy, xarray, pydantic")[0])
        ours.append(fresh("import limitlab.laws; limitlab.laws.Law")[0])
    assert min(ours) < 2 * min(foundations)
    assert min(fresh("import limitlab")[0] for _ in range(3)) < min(foundations) / 3
