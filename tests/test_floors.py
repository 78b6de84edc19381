"""A floor imports only from the floors below it (contracts in pyproject.toml)."""

from __future__ import annotations

import subprocess
import sys
import tomllib

from markdown_blocks import ROOT

LINT = "from importlinter.cli import lint_imports_command; lint_imports_command(['--no-cache'])"


def test_import_contracts_hold() -> None:
    done = subprocess.run([sys.executable, "-c", LINT], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_floor_is_under_contract() -> None:
    """A new top-level module has to be given a floor: the contract is exhaustive."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = (c for c in settings["tool"]["importlinter"]["contracts"] if c["type"] == "layers")
    source = ROOT / "src" / "limitlab"
    modules = {path.stem for path in source.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert contract["exhaustive"]
    floors = {floor.strip("() ") for layer in contract["layers"] for floor in layer.split("|")}
    assert modules - {"__init__", "__main__"} == floors
