"""The pictures of the theory pages, docs/figures/ID.png: every registered figure, drawn from small experiments.

They are kept in the repository because drawing all of them takes a while. After a figure was changed:

    python docs/_ext/render_figures.py ridge-path optimal-ridge     # these
    python docs/_ext/render_figures.py --missing                    # those that have no picture yet
    python docs/_ext/render_figures.py --workers 2                  # all, two at a time

A figure that takes more than `--limit` seconds of processor time is given up and named at the end.
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import matplotlib

matplotlib.use("Agg")
from matplotlib.figure import Figure
from PIL import Image, ImageColor

from limitlab.lab.figures import all_figures, find_figure
from limitlab.lab.figures import figure as make_figure
from limitlab.plotting.output import rendered
from limitlab.plotting.style import COLOURS

PICTURES = Path(__file__).resolve().parents[1] / "figures"
LARGEST = 110_000  # bytes
WIDEST = 1600  # pixels: twice the width of a page's column


def picture(figure: Figure, largest: int = LARGEST) -> bytes:
    """The figure as a PNG with a palette, the richest one with which it stays below `largest` bytes."""
    for width in (WIDEST, 1200, 900):
        image = Image.open(io.BytesIO(rendered(figure, "png", dpi=min(150, width / figure.get_figwidth())))).convert("RGB")
        for colours in (192, 96, 48, 24):
            buffer = io.BytesIO()
            reduced = image.quantize(palette=_palette(image, colours), dither=Image.Dither.NONE)
            reduced.save(buffer, format="png", optimize=True)
            if buffer.tell() <= largest:
                return buffer.getvalue()
    raise ValueError(f"the picture has more than {largest} bytes even with few colours: draw less in it")


def _palette(image: Image.Image, colours: int) -> Image.Image:
    """White, the colours of our lines and of their thin edges, and those that represent the rest best: a map would take them all."""
    lines = [ImageColor.getrgb(name)[:3] for name in COLOURS]
    kept = [(255, 255, 255), *lines, *(tuple((level + 255) // 2 for level in line) for line in lines)]
    best = image.quantize(colours - len(kept), method=Image.Quantize.MEDIANCUT, kmeans=1).getpalette() or []
    found = [best[start : start + 3] for start in range(0, 3 * (colours - len(kept)), 3)]
    dark = [colour for colour in found if colour and min(colour) <= 245]  # nearly white would take the place of white
    holder = Image.new("P", (1, 1))
    holder.putpalette([level for colour in (*kept, *dark) for level in colour])
    return holder


def give_up(*_: Any) -> None:
    """Called when a figure has used up its processor time."""
    raise TimeoutError("over the limit of processor time")


def render(name: str, folder: Path, quick: bool = True, limit: float = 60.0) -> tuple[float, int]:
    """Draw a figure into `folder`; its processor time in seconds and its size in bytes."""
    signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, limit)
    started = time.process_time()
    try:
        data = picture(make_figure(name, quick))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.png").write_bytes(data)
    return time.process_time() - started, len(data)


def main() -> int:
    """Draw what the command line asks for; 1 if a figure is left out."""
    parser = argparse.ArgumentParser(description="Draw the pictures of the theory pages.")
    parser.add_argument("ids", nargs="*", help="ids of figures (default: all)")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of processor time per figure")
    parser.add_argument("--full", action="store_true", help="from the larger experiments")
    parser.add_argument("--missing", action="store_true", help="only figures without a picture")
    parser.add_argument("--folder", type=Path, default=PICTURES, help="where the pictures go")
    asked = parser.parse_args()
    names = [find_figure(name) for name in asked.ids] or list(all_figures())
    if asked.missing:
        names = [name for name in names if not (asked.folder / f"{name}.png").exists()]
    failed = []
    with ProcessPoolExecutor(asked.workers, mp_context=get_context("spawn")) as pool:
        tasks = {pool.submit(render, name, asked.folder, not asked.full, asked.limit): name for name in names}
        for count, task in enumerate(as_completed(tasks), 1):
            name = tasks[task]
            try:
                seconds, size = task.result()
                print(f"[{count}/{len(names)}] {name}: {seconds:.1f} s, {size / 1000:.0f} kB", flush=True)
            except Exception as error:
                failed.append(name)
                print(f"[{count}/{len(names)}] {name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    if failed:
        print("left out: " + " ".join(failed), file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
