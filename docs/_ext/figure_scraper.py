"""Collect the figures of a gallery script from its variables, because limitlab makes its figures without pyplot.

The index shows the left panel of a picture that is wider than twice its height: the whole would be too small to see anything.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_waiting: list[Figure] = []

SUBJECTS = [
    "double_descent",
    "early_stopping",
    "random_features",
    "local_averages",
    "model_collapse",
    "spiked_spectrum",
    "best_possible",
    "margins",
    "logistic_calibration",
    "implicit_bias",
    "uniform_convergence",
    "wide_network",
    "staircase",
    "quadratic_target",
    "landscapes",
    "two_layer_dynamics",
    "mean_field",
    "online_sgd",
    "streaming_sgd",
    "spiked_tensor",
    "xor",
    "alignment",
    "attention",
    "forecast",
    "scaling_fit",
]
"""The examples from least squares to networks and attention, then those on data of one's own."""


def by_subject(name: str) -> int:
    """The place of an example in the gallery; one that is not listed comes last."""
    short = name.removeprefix("plot_").removesuffix(".py")
    return SUBJECTS.index(short) if short in SUBJECTS else len(SUBJECTS)


def shows_data(axes: Axes) -> bool:
    """Whether an axes has something to see: a finite point, an image, a patch; lines that only mark a value do not count."""
    drawn = [line for line in axes.lines if line.get_transform() is axes.transData]
    points = any(np.isfinite(np.asarray(line.get_xydata(), dtype=float)).all(axis=1).any() for line in drawn)
    return points or bool(axes.images or axes.patches or axes.collections or axes.tables)


def without_data(figure: Figure) -> list[int]:
    """The places of a figure's visible axes in which nothing is drawn (axes that are switched off may be empty)."""
    return [place for place, axes in enumerate(figure.axes) if axes.get_visible() and axes.axison and not shows_data(axes)]


def scrape(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save every figure that the last block of code made, and return the markup that shows them."""
    from sphinx_gallery.scrapers import figure_rst

    saved = []
    names = block_vars["example_globals"]
    for figure in {id(value): value for value in names.values() if isinstance(value, Figure)}.values():
        if getattr(figure, "_shown_in_gallery", False):
            continue
        if without_data(figure):  # a later block may fill the axes that is empty
            _waiting.append(figure)
            continue
        path = next(block_vars["image_path_iterator"])
        figure.savefig(path, dpi=120)
        figure._shown_in_gallery = True  # type: ignore[attr-defined]
        saved.append(path)
    return figure_rst(saved, gallery_conf["src_dir"])


def check_shown(gallery_conf: dict[str, Any], example: str) -> None:
    """After an example: no figure of it may be left out because one of its axes stayed empty."""
    left = [figure for figure in _waiting if not getattr(figure, "_shown_in_gallery", False)]
    _waiting.clear()
    if left:
        raise ValueError(f"{example}: an axes of a figure has no data (axes {without_data(left[0])})")


def crop_thumbnails(app: Any) -> None:
    """After the gallery is made: thumbnails of wide pictures show their left panel."""
    from PIL import Image

    for path in Path(app.srcdir, "gallery", "images").glob("sphx_glr_plot_*_001.png"):
        thumbnail = path.parent / "thumb" / path.name.replace("_001.png", "_thumb.png")
        with Image.open(path) as picture:
            if picture.width > 2 * picture.height and thumbnail.exists():
                panel = picture.convert("RGB").crop((0, 0, picture.width // 2, picture.height))
                panel.thumbnail((400, 280))
                panel.save(thumbnail)


def setup(app: Any) -> dict[str, bool]:
    """Run after the gallery (whose priority is the default)."""
    app.connect("builder-inited", crop_thumbnails, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
