"""The page itself: inline style and script, small pieces of HTML, figures as data. Nothing is loaded from elsewhere."""

from __future__ import annotations

import base64
import io
import json
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from importlib import resources
from importlib.metadata import PackageNotFoundError, distribution, requires, version
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from limitlab._core.page import Verdict, cell_html
from limitlab._core.typeset import typeset
from limitlab.lab.engines import available_cores

if TYPE_CHECKING:
    from matplotlib.figure import Figure


WIDEST, SHARPEST = 1100, 96
"""Of a picture inside the page: pixels across, and pixels per inch, at most."""
FEW_COLOURS, MANY_COLOURS = 64, 256
"""Colours of a picture of lines and points, and of one with shaded areas."""


@dataclass(frozen=True)
class Picture:
    """A drawn figure as data: it stands once in the page, and every card that needs it shows it from there."""

    name: str
    caption: str
    source: str
    width: int
    height: int

    def definition(self) -> str:
        """The picture itself, in the store of pictures at the end of the page."""
        return f'<image id="picture-{self.name}" href="{self.source}" width="{self.width}" height="{self.height}"/>'

    def shown(self) -> str:
        """The picture with its caption, where it is looked at."""
        return (
            f'<figure style="max-width:{round(self.width / 16, 1)}rem"><svg viewBox="0 0 {self.width} {self.height}" role="img" '
            f'aria-label="{escape(self.caption)}"><use href="#picture-{self.name}"/></svg>'
            f"<figcaption>{typeset(self.caption)}</figcaption></figure>"
        )


@dataclass(frozen=True)
class Card:
    """A claim, a law or a figure that unfolds: its title, its verdict, what it says, and whether it failed or stayed undecided.

    Attributes
    ----------
    anchor, group
        Its place on the page.
    title, lead
        What stands beside the verdict while it is folded; the lead is HTML.
    body
        What unfolds, HTML.
    verdict
        The word of its badge.
    words
        What the search looks through.
    seconds
        Time that it took.
    """

    anchor: str
    group: str
    title: str
    lead: str
    body: str
    verdict: str = ""
    failed: bool = False
    undecided: bool = False
    words: str = ""
    seconds: float = 0.0

    def html(self) -> str:
        """The card, folded."""
        mark = badge(self.verdict) if self.verdict else ""
        return (
            f'<details class="card" id="{self.anchor}"><summary><strong>{escape(self.title)}</strong> {mark} '
            f'<span class="lead">{self.lead}</span></summary><div class="inside">{self.body}</div></details>'
        )


PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>$style</style>
</head>
<body>
<main>
$content
</main>
<svg class="pictures" width="0" height="0" aria-hidden="true"><defs>$pictures</defs></svg>
<script>$script</script>
</body>
</html>
""")


def page(title: str, parts: Sequence[str], pictures: Iterable[Picture]) -> str:
    """The whole page from its parts, in their order, and the store of its pictures."""
    inline = resources.files(__package__)
    return PAGE.substitute(
        title=escape(title),
        style=inline.joinpath("style.css").read_text(encoding="utf-8"),
        script=inline.joinpath("page.js").read_text(encoding="utf-8"),
        content="\n".join(parts),
        pictures="".join(one.definition() for one in pictures),
    )


def section(heading: str, cards: Sequence[Card], intro: str = "") -> str:
    """Cards under a heading, and under the headings of their groups where there are several."""
    parts = [f'<section id="{slug(heading)}"><h2>{escape(heading)}</h2>{intro}']
    group = ""
    several = len({card.group for card in cards}) > 1
    for card in cards:
        if several and card.group != group:
            group = card.group
            parts.append(f"<h3>{escape(group)}</h3>")
        parts.append(card.html())
    return "".join([*parts, "</section>"])


def slug(text: str) -> str:
    """A name for an anchor.

    >>> slug("Theory against simulation")
    'theory-against-simulation'
    """
    return "-".join("".join(letter if letter.isalnum() else " " for letter in text.lower()).split())


MEANINGS = {
    "pass": "every criterion holds, and they settle the claim",
    "consistent": "nothing was found against the claim, but only the full check decides",
    "fail": "a criterion does not hold",
    "not implemented": "nobody checks this yet",
    "agree": "no observable is off by more than its error budget, and every budget is small enough to tell",
    "disagree": "an observable is off by more than its error budget",
    "underpowered": "too few draws, or too small sizes, to tell",
    "broken": "the check itself broke",
}
"""What the words of the badges mean."""


def badge(word: str) -> str:
    """A word in the colour of what it means.

    >>> badge("not implemented")
    '<span class="badge not-implemented">not implemented</span>'
    """
    return f'<span class="badge {slug(word)}">{escape(word)}</span>'


def legend(words: Iterable[str]) -> str:
    """What the words of the badges mean."""
    return folded("What the verdicts mean", definitions({word: MEANINGS[word] for word in words if word in MEANINGS}))


def table(rows: Sequence[Mapping[str, Any]], kind: str = "") -> str:
    """Rows as a table of the style `kind`; a verdict is shown as a badge."""
    if not rows:
        return ""
    head = "".join(f"<th{_align(value)}>{escape(name)}</th>" for name, value in rows[0].items())
    body = "".join("<tr>" + "".join(_cell(value) for value in row.values()) + "</tr>" for row in rows)
    style = f' class="{kind}"' if kind else ""
    return f'<div class="scroll"><table{style}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(value: Any) -> str:
    return f"<td{_align(value)}>{badge(value) if isinstance(value, Verdict) else cell_html(value)}</td>"


def _align(value: Any) -> str:
    return ' class="number"' if isinstance(value, (int, float)) and not isinstance(value, bool) else ""


def definitions(pairs: Mapping[str, str]) -> str:
    """A list of terms and (escaped) texts; empty texts are left out."""
    items = "".join(f"<dt>{escape(term)}</dt><dd>{text}</dd>" for term, text in pairs.items() if text)
    return f"<dl>{items}</dl>"


def folded(title: str, inside: str) -> str:
    """What is there for who wants it."""
    return f"<details><summary>{escape(title)}</summary>{inside}</details>" if inside else ""


def problem(error: BaseException | str) -> str:
    """What went wrong in a card, in place of what it would have shown."""
    words = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    return f'<p class="problem">This part failed: {escape(words)}</p>'


def drawn(name: str, figure: Figure, caption: str) -> Picture:
    """A figure as small data: no more pixels than a page shows, few colours, WebP without loss."""
    from matplotlib.collections import QuadMesh
    from PIL import Image

    from limitlab.plotting.output import pixels

    shown = pixels(figure, dpi=min(SHARPEST, WIDEST / figure.get_figwidth()))
    shaded = any(axes.images or any(isinstance(part, QuadMesh) for part in axes.collections) for axes in figure.axes)
    colours = MANY_COLOURS if shaded else FEW_COLOURS
    plain = Image.fromarray(shown).convert("RGB")
    # by coverage: the colour of a few points must not give way to one more shade of a large area
    image = plain.quantize(colours, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).convert("RGB")
    small = io.BytesIO()
    image.save(small, "WEBP", lossless=True, method=4)
    source = f"data:image/webp;base64,{base64.b64encode(small.getvalue()).decode()}"
    return Picture(name, caption, source, *image.size)


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
