"""Figures of the gallery: the house style makes them without pyplot, so they are taken from the example's variables."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst


def scrape(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save every figure that the last block of code made, and return the markup that shows them."""
    saved = []
    names = block_vars["example_globals"]
    for figure in {id(value): value for value in names.values() if isinstance(value, Figure)}.values():
        if getattr(figure, "_shown_in_gallery", False):
            continue
        path = next(block_vars["image_path_iterator"])
        figure.savefig(path, dpi=120)
        figure._shown_in_gallery = True  # type: ignore[attr-defined]
        saved.append(path)
    return figure_rst(saved, gallery_conf["src_dir"])
