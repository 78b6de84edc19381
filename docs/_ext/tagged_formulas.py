"""Numbered formulas of several lines.

Sphinx puts `\\begin{split}` around every formula that contains a line break, and MathJax refuses a `\\tag` in there. Our line breaks
are in an environment of their own (aligned, cases, a matrix), so the formula can be an equation as it stands.
"""

from __future__ import annotations

from typing import Any


def stands_alone(formula: str) -> bool:
    """Whether a formula has its own number and line breaks."""
    return "\\tag{" in formula and "\\\\" in formula and "\\begin{equation}" not in formula


def process(app: Any, doctree: Any) -> None:
    """Make such a formula an equation that is left alone."""
    from docutils import nodes

    for node in doctree.findall(nodes.math_block):
        if stands_alone(node.astext()):
            node.children = [nodes.Text(f"\\begin{{equation}}\n{node.astext()}\n\\end{{equation}}")]
            node["no-wrap"] = node["nowrap"] = True


def setup(app: Any) -> dict[str, bool]:
    """Run after a page has been read."""
    app.connect("doctree-read", process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
