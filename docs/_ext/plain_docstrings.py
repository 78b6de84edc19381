"""Docstrings are written for people who read the source; this makes Sphinx show them as written.

The docstring of a module is laid out by hand like a section of a paper (setting, limit, result with equations in ASCII), so
it is shown verbatim. Elsewhere a vertical bar is a norm or an absolute value and a star a product: reStructuredText must not
take them for markup.
"""

from __future__ import annotations

import re
from typing import Any

_CODE = re.compile(r"(``.*?``|`[^`]*`)")
_MARKUP = re.compile(r"[|*]|(?<=\w)_(?=\W|$)")


def verbatim(lines: list[str]) -> list[str]:
    """The first line as text, the rest as a literal block."""
    text = "\n".join(lines).strip().split("\n")
    title, rest = text[0], "\n".join(text[1:]).strip("\n")
    block = [".. code-block:: text", "", *("   " + line for line in rest.split("\n")), ""] if rest else []
    return [protect(title), "", *block]


def protect(line: str) -> str:
    """A line of prose with `|`, `*` and trailing underscores taken literally outside of code."""
    parts = _CODE.split(line)  # code is at the odd places
    parts[::2] = [_MARKUP.sub(r"\\\g<0>", part) for part in parts[::2]]
    return "".join(parts)


def process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Rewrite a docstring in place before it is parsed."""
    if what == "module":
        lines[:] = verbatim(lines)
        return
    in_code = False
    for index, line in enumerate(lines):
        in_code = line.lstrip().startswith(">>>") or (in_code and bool(line.strip()))
        if not in_code and not line.lstrip().startswith((":", "..")):
            lines[index] = protect(line)


def skip(app: Any, what: str, name: str, obj: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out the methods that scikit-learn adds to every estimator (`set_fit_request`, ...): they are its own, not ours."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


def setup(app: Any) -> dict[str, bool]:
    """Run before napoleon reads the sections (priority below its default of 500)."""
    app.connect("autodoc-process-docstring", process, priority=400)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
