"""The pages of the static explorer, one for every law, and an index with pictures and a search."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from limitlab._core.draws import identity
from limitlab._core.files import write_whole
from limitlab._core.law import Law
from limitlab._core.registry import all_laws, know_package, law_id, library_digest, package_of, packages, subject_of
from limitlab._core.results import package_version
from limitlab._core.typeset import typeset
from limitlab.errors import Refused
from limitlab.lab.progress import ProgressOption
from limitlab.lab.store import FORMAT, Cell, Cells
from limitlab.lab.tasks import RunResult, Task, run_tasks
from limitlab.show.explorer._address import described
from limitlab.show.explorer.static._frames import SECONDS, as_json, fewer_digits, live_view, with_used_axis

PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>$title</title>
<link rel="icon" href="data:,">
<style>$style</style>
</head>
<body class="ll-page">
<main>
$content
</main>
<script>$script</script>
</body>
</html>
""")


@dataclass(frozen=True)
class Summary:
    """Summary of the written pages, with their sizes in bytes and the laws without a page."""

    sizes: Mapping[str, int]
    seconds: Mapping[str, float]
    incomplete: Mapping[str, int]
    failed: Mapping[str, str]

    def line(self) -> str:
        """Return the summary as a sentence."""
        parts = [f"{len(self.sizes)} laws, {sum(self.sizes.values()) / 1e6:.1f} MB"]
        if self.incomplete:
            parts.append(f"{len(self.incomplete)} laws without some combinations of parameters")
        if self.failed:
            parts.append("no page for " + ", ".join(self.failed))
        return "; ".join(parts)


@dataclass(frozen=True)
class LiveTask:
    """The live figure of a law as a task."""

    law: type[Law]
    seconds: float

    @property
    def content(self) -> dict[str, Any]:
        """Return everything that the live figure depends on, with the source code."""
        package = self.package
        foreign = [packages()[package].digest()] if package else []
        about = {"part": "live", "law": identity(self.law), "revision": self.law.revision, "seconds": self.seconds}
        return {"format": FORMAT, **about, "source": [library_digest("show/cli", "show/report"), *foreign]}

    @property
    def package(self) -> str:
        """The package of another author to which the law belongs, or an empty text."""
        package = package_of(self.law)
        return package.name if package is not None else ""

    @property
    def where(self) -> str:
        """Return the task in words."""
        return f"law {law_id(self.law)}"

    def run(self) -> Cell:
        """Compute the live figure."""
        if self.package:
            know_package(self.package)  # a worker process has not loaded the package yet
        began = time.process_time()
        live = live_view(self.law, seconds=self.seconds)
        return Cell({"live": np.array(as_json(live)), "seconds": np.array(time.process_time() - began)})


def write_pages(
    folder: str | os.PathLike[str],
    laws: Sequence[type[Law]] | None = None,
    *,
    seconds: float = SECONDS,
    engine: Any = None,
    store: str | os.PathLike[str] | None = None,
    progress: ProgressOption = None,
) -> Summary:
    """Write a page with sliders for every law, and an index page.

    Parameters
    ----------
    folder
        The folder of the pages, which is made if it does not exist.
    laws
        Laws to include (default: all).
    seconds
        Limit of the processor time of every law. Combinations of parameters that exceed it are left out.
    engine
        Engine of the tasks, as in `limitlab.sweep`.
    store
        Folder for finished laws. A second run computes only what changed.
    progress
        Progress option, as in `limitlab.sweep`.

    Returns
    -------
    Summary
        Sizes of the pages, processor times, numbers of combinations that were left out, and laws that failed.

    Examples
    --------
    >>> import tempfile
    >>> from limitlab.laws import Ridge
    >>> folder = tempfile.mkdtemp()
    >>> write_pages(folder, [Ridge]).failed
    {}
    >>> sorted(path.name for path in Path(folder).iterdir())
    ['Ridge.html', 'index.html']
    """
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise Refused(f"--static {folder} is not allowed: it is a file; give the name of a folder")
    shown = list(all_laws().values()) if laws is None else list(laws)
    run = live_views(shown, seconds=seconds, engine=engine, store=store, progress=progress)
    target.mkdir(parents=True, exist_ok=True)
    sizes, times, incomplete, cards = {}, {}, {}, {}
    for law, cell in zip(shown, run.cells, strict=True):
        if cell is None:
            continue
        live = numbers_of(cell)
        page = law_page(law, live)
        write_whole(target / file_name(law), page)
        name = law_id(law)
        sizes[name], times[name] = len(page), float(cell.values["seconds"])
        if live["missing"]:
            incomplete[name] = len(live["missing"])
        cards[law] = card(law, live, file_name(law))
    write_whole(target / "index.html", index_page(cards))
    failed = {law_id(shown[position]): str(failure) for position, failure in run.failures.items()}
    return Summary(sizes, times, incomplete, failed)


def live_views(
    laws: Sequence[type[Law]],
    *,
    seconds: float = SECONDS,
    engine: Any = None,
    store: str | os.PathLike[str] | None = None,
    progress: ProgressOption = None,
) -> RunResult:
    """Return the live figures of laws as cells, which a store keeps; the parameters are those of `write_pages`."""
    if not seconds > 0:
        raise Refused(f"seconds = {seconds:g} is not allowed: must be above 0")
    tasks: list[Task] = [LiveTask(law, seconds) for law in laws]
    run = run_tasks(tasks, engine, Cells(store) if store is not None else None, progress, "computing the pages")
    if run.interrupted:
        stored = f"; they are stored in {str(store)!r}" if store is not None else ""
        raise KeyboardInterrupt(f"stopped after {run.done} of {len(tasks)} laws{stored}")
    return run


def numbers_of(cell: Cell) -> dict[str, Any]:
    """Return the live figure in a cell."""
    return dict(json.loads(str(cell.values["live"])))


def file_name(law: type[Law]) -> str:
    """Return the name of the file of a law.

    >>> from limitlab.laws import RandomFeaturesRidge
    >>> file_name(RandomFeaturesRidge)
    'RandomFeaturesRidge.html'
    """
    return law_id(law).replace(":", "-") + ".html"


# -- HTML ---------------------------------------------------------------------------------------------------------------


def law_page(law: type[Law], live: Mapping[str, Any]) -> bytes:
    """Return the page of a law."""
    name = law_id(law)
    content = f"""<nav><a href="index.html">All laws</a></nav>
<h1>{live["question"]}</h1>
{figure(live)}
{left_out(live)}
<p class="ll-soft"><code>{escape(name)}</code> in limitlab {escape(package_version())}. The lines are predictions for infinite size and the
points are simulations of finite size. <code>limitlab explore {escape(name)}</code> starts the explorer with all parameters, and
<code>limitlab show {escape(name)}</code> prints the equations.</p>"""
    return _page(f"{live['finding']} - {name}", content)


def left_out(live: Mapping[str, Any]) -> str:
    """Return sentences about the values and combinations that a live figure leaves out, as HTML."""
    values: dict[tuple[str, str], list[str]] = {}
    for name, value, reason in live["left_out"]:
        values.setdefault((name, reason), []).append(value)
    items = [f"{name.replace('_', ' ')} = {', '.join(group)}: {reason}" for (name, reason), group in values.items()]
    reasons = Counter(live["missing"].values())
    items += [f"{count} of {_combinations(live)} combinations of values: {reason}" for reason, count in reasons.items()]
    if not items:
        return ""
    rows = "".join(f"<li>{typeset(item)}</li>" for item in items)
    return f'<details class="ll-soft"><summary>Values that were left out</summary><ul>{rows}</ul></details>'


def _combinations(live: Mapping[str, Any]) -> int:
    return len(live["frames"]) + len(live["missing"])


def index_page(cards: Mapping[type[Law], str]) -> bytes:
    """Return the page with pictures of all laws by subject, and a search."""
    content = f"""<h1>Laws of learning</h1>
<p class="ll-soft">Each picture opens a page with sliders. Lines are predictions for infinite size, and points are simulations of
finite size.</p>
{gallery(cards)}"""
    return _page("Laws of learning", content)


def gallery(cards: Mapping[type[Law], str]) -> str:
    """Return the cards of laws by subject as HTML, with a search field."""
    by_subject: dict[str, list[str]] = {}
    for law, words in cards.items():
        by_subject.setdefault(subject_of(law), []).append(words)
    groups = "".join(
        f'<section class="ll-group"><h2>{escape(subject)}</h2><div class="ll-cards">{"".join(items)}</div></section>'
        for subject, items in sorted(by_subject.items())
    )
    return f"""<div class="ll-gallery"><p class="ll-find"><label for="ll-search">Find a law</label>
<input id="ll-search" type="search" placeholder="for example noise, network, eigenvalue" autocomplete="off"></p>
<p class="ll-soft" role="status">{len(cards)} laws</p>{groups}</div>"""


def card(law: type[Law], live: Mapping[str, Any], link: str) -> str:
    """Return the card of a law as HTML, with picture, question and link."""
    return (
        f'<a class="ll-card" href="{escape(link)}" data-words="{escape(described(law) + " " + live["finding"].lower())}">'
        f'<span class="ll-thumb" data-alt="{escape(live["finding"])}">{_data(thumbnail(live))}</span>'
        f"<b>{escape(live['finding'])}</b><span>{live['question']}</span><code>{escape(law_id(law))}</code></a>"
    )


def thumbnail(live: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a live figure that a thumbnail draws, which is its first panel at the declared values."""
    frame = live["frames"][live["start"]]

    def of_first_panel(kind: str) -> list[Any]:
        return [entry for entry in frame.get(kind, ()) if live["styles"][entry[0]]["panel"] == 0]

    lines = [[style, places, fewer_digits(values)] for style, places, values in of_first_panel("l")]
    rest = {kind: [[style, *map(fewer_digits, values)] for style, *values in of_first_panel(kind)] for kind in ("p", "h")}
    shown = {"l": lines, "r": frame["r"][:1], **{kind: entries for kind, entries in rest.items() if entries}}
    styles = [{key: style[key] for key in ("kind", "colour", "dashes", "panel")} for style in live["styles"]]
    same = {key: live[key] for key in ("log", "start", "places", "axis")}
    return with_used_axis({**same, "styles": styles, "frames": {live["start"]: shown}})


def figure(live: Mapping[str, Any]) -> str:
    """Return a live figure as HTML, which the script of the page draws."""
    return (
        f'<figure class="ll-figure"><figcaption><b>{escape(live["finding"])}</b></figcaption>'
        f"<noscript>The figure needs JavaScript.</noscript>{_data(live)}</figure>"
    )


def resources_text(name: str) -> str:
    """Return the text of `live.js` or `live.css`."""
    return (files(__package__ or "limitlab.show.explorer.static") / name).read_text(encoding="utf-8")


def _data(live: Mapping[str, Any]) -> str:
    """Return plain values as an element of a page; a text cannot end the element."""
    text = as_json(live).replace("<", "\\u003c")
    return f'<script type="application/json">{text}</script>'


def _page(title: str, content: str) -> bytes:
    script, style = resources_text("live.js"), resources_text("live.css")
    return PAGE.substitute(title=escape(title), style=style, content=content, script=script).encode()
