"""Figures of pages: their caption is also what a screen reader says, and a single panel is not blown up to the width of the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def complete(app: Any, doctree: Any) -> None:
    """Give every figure its caption as alternative text, and a width that fits its shape."""
    from docutils import nodes
    from PIL import Image

    for figure in doctree.findall(nodes.figure):
        for image in figure.findall(nodes.image):
            captions = [node.astext() for node in figure.findall(nodes.caption)]
            if captions and "alt" not in image:
                image["alt"] = captions[0]
            path = Path(app.srcdir) / image["uri"]
            if path.suffix == ".png" and path.exists() and "width" not in image:
                width, height = Image.open(path).size
                image["width"] = "100%" if width > 1.9 * height else "70%"


def setup(app: Any) -> dict[str, bool]:
    """Run after a page has been read."""
    app.connect("doctree-read", complete)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
