"""Build hook: stubs of the packages whose exports are found in their files, so that type checkers see the same names as readers; and
the theory pages, whose equations the explorer shows, and the benchmarks, which `limitlab bench` runs."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOUND = ("laws",)
"""Packages of limitlab that export what the `__all__` of their files name."""


class Stubs(BuildHookInterface):  # type: ignore[type-arg]
    """Writes `__init__.pyi` beside `__init__.py`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before the package is built (or installed as editable)."""
        source = Path(self.root) / "src" / "limitlab"
        exports = _load(source)
        for name in FOUND:
            homes = exports.found(f"limitlab.{name}", [str(source / name)])
            (source / name / "__init__.pyi").write_text(exports.stub(f"limitlab.{name}", homes), encoding="utf-8")
            build_data.setdefault("artifacts", []).append(f"src/limitlab/{name}/__init__.pyi")
        if version == "standard" and self.target_name == "wheel":  # an editable install reads them where they stand
            for folder, home in (("docs/theory", "theory_pages"), ("benchmarks", "_benchmarks")):
                build_data["force_include"][str(Path(self.root) / folder)] = f"limitlab/{home}"


def _load(source: Path) -> Any:
    """`limitlab._core.exports` without importing the rest of the package, which need not be installed yet."""
    for name in ("limitlab.errors", "limitlab._core.exports"):
        spec = importlib.util.spec_from_file_location(name, source / f"{name.rpartition('.')[2]}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules["limitlab._core.exports"]
