"""Build hook: adds the theory pages, whose equations the explorer shows, and the benchmarks, which `limitlab bench` runs, to a wheel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Pages(BuildHookInterface):  # type: ignore[type-arg]
    """Copies folders of the repository into the package when a wheel is built; an editable install reads them in the repository."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the folders before the package is built."""
        if version == "standard" and self.target_name == "wheel":
            for folder, home in (("docs/theory", "theory_pages"), ("benchmarks", "_benchmarks")):
                build_data["force_include"][str(Path(self.root) / folder)] = f"limitlab/{home}"
