"""Details of pages: a figure's caption is also what a screen reader says, a single panel is not blown up to the width of the page, and
examples end with their last line (doctest wants an empty one below)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

SEVERAL_PANELS = 1200  # pixels


def complete(app: Any, doctree: Any) -> None:
    """Give every figure its caption as alternative text and a width that fits it; take empty lines from the ends of blocks."""
    from docutils import nodes
    from PIL import Image

    for figure in doctree.findall(nodes.figure):
        for image in figure.findall(nodes.image):
            captions = [node.astext() for node in figure.findall(nodes.caption)]
            if captions and "alt" not in image:
                image["alt"] = captions[0]
            path = Path(app.srcdir) / image["uri"]
            if path.suffix == ".png" and path.exists() and "width" not in image:
                image["width"] = "100%" if Image.open(path).width > SEVERAL_PANELS else "70%"
    for block in doctree.findall(nodes.literal_block):
        if block.rawsource == block.astext() != block.astext().rstrip("\n"):
            block.rawsource = block.astext().rstrip("\n")
            block[:] = [nodes.Text(block.rawsource)]


def setup(app: Any) -> dict[str, bool]:
    """Run after a page has been read."""
    app.connect("doctree-read", complete)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
