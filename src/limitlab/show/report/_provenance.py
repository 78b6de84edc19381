"""What made the page: versions, commit, machine. Never where, or by whom."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from html import escape
from importlib.metadata import PackageNotFoundError, distribution, requires, version
from importlib.resources import files
from pathlib import Path

from limitlab.lab.engines import available_cores
from limitlab.show.report._page import definitions, folded


def provenance(quick: bool, seconds: float) -> str:
    """Everything that the numbers of the page may depend on."""
    facts = {
        "Version": escape(f"limitlab {version('limitlab')}"),
        "Commit": escape(commit() or "not known (installed without its history)"),
        "Date": now().strftime("%d %B %Y, %H:%M UTC"),
        "Experiments": "quick: small sizes" if quick else "full: the sizes that decide",
        "Time": f"{seconds:.0f} s for what was not known before" if seconds else "",
        "Machine": escape(machine()),
        "Made by": f"<code>limitlab report {'--quick' if quick else '--full'}</code>",
    }
    names = ", ".join(f"{name}&nbsp;{found}" for name, found in versions().items())
    return definitions(facts) + folded("Versions of everything", f"<p>Python&nbsp;{platform.python_version()}, {names}</p>")


def versions() -> dict[str, str]:
    """The versions of the packages that limitlab declares, and of those found with them.

    >>> "numpy" in versions()
    True
    """
    found: dict[str, str] = {}
    for line in requires("limitlab") or ():
        name = re.split(r"[^\w.-]", line, maxsplit=1)[0]
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return dict(sorted(found.items()))


def commit() -> str:
    """The commit of the source, with a mark if it was changed since; empty where there is no history."""
    origin = distribution("limitlab").read_text("direct_url.json")
    installed = json.loads(origin).get("vcs_info", {}).get("commit_id", "") if origin else ""
    root = Path(str(files("limitlab"))).parents[1]
    if installed or not (root / ".git").exists():
        return installed
    asked = dict(cwd=root, capture_output=True, text=True, check=True, timeout=10)
    try:
        head = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], **asked).stdout.strip()  # type: ignore[call-overload]
        dirty = subprocess.run(["git", "status", "--porcelain", "src"], **asked).stdout.strip()  # type: ignore[call-overload]
    except (OSError, subprocess.SubprocessError):
        return ""
    return f"{head}{' with changes' if dirty else ''}"


def machine() -> str:
    """Processor, cores and system; no name of the machine."""
    info = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*:\s*(.+)", info.read_text()) if info.exists() else None
    processor = model[1] if model else platform.processor() or platform.machine()
    return f"{processor}, {available_cores()} cores, {platform.system()} {platform.machine()}"


def now() -> datetime:
    """The present time, or SOURCE_DATE_EPOCH where a reproducible build sets it."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH")
    return datetime.fromtimestamp(int(fixed), UTC) if fixed else datetime.now(UTC)
