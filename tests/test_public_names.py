"""The public names are a promise. `tests/public_names.txt` lists them; every one can be used and explains itself.

`python -m limitlab._core.index` writes that list, the export stubs and the index of laws, claims and figures.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest

import limitlab
from limitlab._core import index, lazy
from limitlab.lab.claims import all_claims
from limitlab.lab.figures import all_figures
from markdown_blocks import ROOT

NAMES = Path(__file__).with_name("public_names.txt").read_text(encoding="utf-8").split()
API = (
    *(
        "limitlab.laws.nngp",
        "limitlab.laws.kernel_gradient_flow",
        "limitlab.laws.width_double_descent",
        "limitlab.laws.gaps",
    ),
    *("limitlab.models.activations.hermite", "limitlab.models.attention.flow", "limitlab.models.datasets.prepared"),
    *("limitlab.numerics.gaussian.hermite_coefficients", "limitlab.testing.check_law", "limitlab.applied.scaling_fit"),
    *("limitlab.applied.sample_size", "limitlab.applied.spectrum", "limitlab.applied.check_gap", "limitlab.Forecast"),
)
"""Some of the names that other programs call; all of them are in the list."""


def value_of(name: str) -> Any:
    """The object behind a public name."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def test_the_generated_lists_are_current() -> None:
    """If this fails: run `python -m limitlab._core.index` and look at what it changes."""
    stale = [str(path) for path, content in index.outputs().items() if path.read_text(encoding="utf-8") != content]
    assert not stale


def test_names_that_other_programs_call_are_promised() -> None:
    assert set(API) <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_can_be_used_and_explains_itself(name: str) -> None:
    value = value_of(name)
    assert value is not None
    if inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value):
        assert (inspect.getdoc(value) or "").strip(), f"{name} has no docstring"
    if inspect.isclass(value):
        own = ((key, member) for key, member in vars(value).items() if not key.startswith("_"))
        silent = [
            key
            for key, member in own
            if isinstance(member, (property, classmethod, staticmethod)) or inspect.isfunction(member)
            if not (inspect.getdoc(getattr(value, key)) or "").strip()
        ]
        assert not silent, f"{name}: no docstring on {', '.join(silent)}"


def test_the_index_knows_every_law_claim_and_figure() -> None:
    """Everything that the modules define is in the index, and the index names nothing else."""
    assert set(lazy.index()["claims"]) == {claim for claim, one in all_claims().items() if not one.package}
    assert set(lazy.index()["figures"]) == {name for name in all_figures() if ":" not in name}


def test_unknown_names_are_attribute_errors_with_a_hint() -> None:
    with pytest.raises(AttributeError, match="no_such_verb"):
        limitlab.no_such_verb  # noqa: B018
    with pytest.raises(AttributeError, match=r"limitlab\.laws\.Ridge"):
        limitlab.Ridge  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean 'Ridge'"):
        limitlab.laws.Rigde  # noqa: B018


def pages() -> list[Path]:
    """README, the documentation and its examples and notebooks."""
    suffixes = (".md", ".py", ".ipynb")
    made = {"_build", "_ext", "gallery", "generated"}
    found = (path for path in sorted((ROOT / "docs").rglob("*")) if path.suffix in suffixes)
    return [ROOT / "README.md", *(path for path in found if not made & set(path.relative_to(ROOT).parts))]


def test_pages_and_examples_import_only_promised_names() -> None:
    wrong = []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if page.suffix == ".ipynb":
            text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
        for module, names in re.findall(r"(?m)^[ >.]*from (limitlab[\w.]*) import (\([^)]*\)|[^\n(]+)", text):
            listed = (name.split(" as ")[0].strip(" .>\n") for name in re.sub(r"#.*", "", names).strip("()").split(","))
            wrong += [f"{page.name}: {module}.{name}" for name in listed if name and f"{module}.{name}" not in NAMES]
    assert not wrong
