"""The layers of the package: import contracts, private modules, cycles, and planted violations that the contracts catch."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

from markdown_blocks import ROOT

LINT = "from importlinter.cli import lint_imports_command; lint_imports_command(['--no-cache'])"


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the import contracts of a checkout; the package is that of the folder."""
    program = f"import sys; sys.path.insert(0, {str(folder / 'src')!r}); {LINT}"
    return subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """All imports of the package, those for type checking included."""
    return grimp.build_graph("limitlab", cache_dir=None)


def test_import_contracts_hold() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_package_is_under_contract() -> None:
    """The contract of the layers is exhaustive, so that a new package has to be given a place."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = (c for c in settings["tool"]["importlinter"]["contracts"] if c["type"] == "layers")
    source = ROOT / "src" / "limitlab"
    modules = {path.stem for path in source.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert contract["exhaustive"]
    assert modules - {"__init__", "__main__"} == set(contract["layers"])


VIOLATIONS = {
    "A package imports only from packages below it": ("numerics/roots.py", "from limitlab.laws.regression import ridge"),
    "Equations and experiments of a law": ("laws/regression/ridge.py", "from limitlab.lab import compare"),
    "Claims are imported by the figures": ("laws/regression/ridge.py", "from limitlab.laws.scaling import _claims"),
    "Figures are imported by no module": ("laws/regression/ridge.py", "from limitlab.laws.scaling import _figures"),
    "Equations draw no figures": ("_core/law.py", "import matplotlib.pyplot"),
    "No cycles between subjects": ("laws/spectra/marchenko_pastur.py", "from limitlab.laws.alignment import blocks\n"),
}
"""A planted import for every contract: a file and the line that is added to it."""
SECOND = {"No cycles between subjects": ("laws/alignment/blocks.py", "from limitlab.laws.spectra import marchenko_pastur")}
"""A second planted import where a violation takes two."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the contracts."""
    folder = tmp_path_factory.mktemp("planted")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__", "*.nb?", "data_files"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


@pytest.mark.parametrize("contract", VIOLATIONS)
def test_a_planted_import_breaks_its_contract(contract: str, copy: Path) -> None:
    planted = [VIOLATIONS[contract], *([SECOND[contract]] if contract in SECOND else [])]
    originals = {name: (copy / "src" / "limitlab" / name).read_text(encoding="utf-8") for name, _ in planted}
    try:
        for name, line in planted:
            (copy / "src" / "limitlab" / name).write_text(f"{originals[name]}\n{line}\n", encoding="utf-8")
        done = lint(copy)
    finally:
        for name, text in originals.items():
            (copy / "src" / "limitlab" / name).write_text(text, encoding="utf-8")
    words = " ".join(done.stdout.split())
    assert done.returncode == 1
    broken = words.partition("Broken contracts")[2]
    assert contract in broken, done.stdout


def private_part(module: str) -> str | None:
    """The package that owns the first private part of a module's name; None if no part is private."""
    parts = module.split(".")
    for position, part in enumerate(parts):
        if part.startswith("_") and part not in ("_core", "__main__"):
            return ".".join(parts[:position])
    return None


def test_private_modules_are_used_in_their_own_package_only(graph: grimp.ImportGraph) -> None:
    outside = {
        (module, user)
        for module in graph.modules
        if (owner := private_part(module)) is not None
        for user in graph.find_modules_that_directly_import(module)
        if user != owner and not user.startswith(f"{owner}.")
    }
    assert not outside


def packages_of(graph: grimp.ImportGraph) -> Iterator[tuple[str, str]]:
    """Edges between packages; every subject counts as one."""

    def package(module: str) -> str:
        parts = module.split(".")
        return ".".join(parts[: 3 if parts[1:2] == ["laws"] else 2])

    for module in graph.modules:
        for used in graph.find_modules_directly_imported_by(module):
            if package(module) != package(used) and used.startswith("limitlab."):
                yield package(module), package(used)


def in_cycles(after: dict[str, set[str]]) -> list[str]:
    """The nodes of a directed graph that can be reached from themselves."""

    def reachable(start: str) -> set[str]:
        seen: set[str] = set()
        todo = [start]
        while todo:
            for used in after.get(todo.pop(), set()) - seen:
                seen.add(used)
                todo.append(used)
        return seen

    return sorted(name for name in after if name in reachable(name))


def test_there_are_no_cycles_between_packages(graph: grimp.ImportGraph) -> None:
    """Imports for type checking count too."""
    after: dict[str, set[str]] = {}
    for user, used in packages_of(graph):
        if "limitlab" not in (user, used) and used != "limitlab.laws":
            after.setdefault(user, set()).add(used)
    assert in_cycles(after) == []


def test_there_are_no_cycles_between_modules(graph: grimp.ImportGraph) -> None:
    """Imports for type checking count too."""
    assert in_cycles({module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}) == []


def test_cycles_are_found() -> None:
    assert in_cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == ["a", "b", "c"]
