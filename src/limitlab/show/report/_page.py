"""Functions that make the HTML of the report, with inline style, script and figures.

The page loads nothing from other files or servers.
"""

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

    from limitlab.lab.claims import Record


WIDEST, SHARPEST = 1100, 96
"""Largest width in pixels, and largest number of pixels per inch, of a picture on the page."""
FEW_COLOURS, MANY_COLOURS = 64, 256
"""Number of colours of a picture with lines and points, and of a picture with shaded areas."""


@dataclass(frozen=True)
class Picture:
    """A figure as data. The page contains it once, and several cards can show it."""

    name: str
    caption: str
    source: str
    width: int
    height: int

    def definition(self) -> str:
        """Return the data of the picture as HTML, for the end of the page."""
        return f'<image id="picture-{self.name}" href="{self.source}" width="{self.width}" height="{self.height}"/>'

    def shown(self) -> str:
        """Return the picture with its caption as HTML, for a card."""
        return (
            f'<figure style="max-width:{round(self.width / 16, 1)}rem"><svg viewBox="0 0 {self.width} {self.height}" role="img" '
            f'aria-label="{escape(self.caption)}"><use href="#picture-{self.name}"/></svg>'
            f"<figcaption>{typeset(self.caption)}</figcaption></figure>"
        )


@dataclass(frozen=True)
class Card:
    """A claim, a law or a figure on the page, as a block that a reader can unfold.

    Attributes
    ----------
    anchor, group
        Anchor of the card, and heading of its group.
    title, lead
        Texts next to the verdict of the folded card; the lead is HTML.
    body, after
        Content of the unfolded card, HTML. Links to other parts of the page are added between the two parts.
    verdict
        The word on the badge.
    words
        The text that the search uses, in small letters.
    seconds
        Time of the computation.
    finding, thumbnail
        What the small picture of a law shows, and the picture as an address with its data.
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
    finding: str = ""
    thumbnail: str = ""
    after: str = ""

    def html(self) -> str:
        """Return the folded card as HTML."""
        mark = badge(self.verdict) if self.verdict else ""
        words = f' data-words="{escape(self.words)}"' if self.words else ""
        return (
            f'<details class="card" id="{self.anchor}"{words}><summary><strong>{escape(self.title)}</strong> {mark} '
            f'<span class="lead">{self.lead}</span></summary><div class="inside">{self.body}{self.after}</div></details>'
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
    """Return the page with its parts and pictures as HTML."""
    inline = resources.files(__package__)
    return PAGE.substitute(
        title=escape(title),
        style=inline.joinpath("style.css").read_text(encoding="utf-8"),
        script=inline.joinpath("page.js").read_text(encoding="utf-8"),
        content="\n".join(parts),
        pictures="".join(picture.definition() for picture in pictures),
    )


def section(heading: str, cards: Sequence[Card], intro: str = "") -> str:
    """Return cards under a heading, and under the headings of their groups if there are several, as HTML."""
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
    """Return the anchor of a text.

    >>> slug("Theory against simulation")
    'theory-against-simulation'
    """
    return "-".join("".join(letter if letter.isalnum() else " " for letter in text.lower()).split())


MEANINGS = {
    "pass": "every criterion holds, and the check can decide the claim",
    "consistent": "the quick check passed, but it would also pass if the statement were slightly wrong; only the full check decides",
    "fail": "a criterion does not hold",
    "not implemented": "there is no check of this claim yet",
    "agree": "the gap of every observable is within its error budget, and every budget is below the resolution",
    "disagree": "the gap of an observable exceeds its error budget",
    "underpowered": "the draws are too few, or the sizes too small, for a decision",
    "broken": "the check raised an error",
}
"""Meanings of the words on the badges."""


def badge(word: str) -> str:
    """Return a verdict as a coloured badge, HTML.

    >>> badge("not implemented")
    '<span class="badge not-implemented">not implemented</span>'
    """
    return f'<span class="badge {slug(word)}">{escape(word)}</span>'


def verdict_of(record: Record) -> str:
    """Return the word on the badge of a claim, which is its status or the reason why it is undecided.

    A claim that fails only because a comparison had too few draws is "underpowered".
    """
    if record.status != "fail":
        return record.status
    if record.outcome is None:
        return "broken"
    failed = [criterion for criterion in record.outcome.criteria if not criterion.holds]
    return "underpowered" if failed and all(criterion.value == "underpowered" for criterion in failed) else "fail"


def legend(words: Iterable[str]) -> str:
    """Return the meanings of the words on the badges, as HTML."""
    return folded("What the verdicts mean", definitions({word: MEANINGS[word] for word in words if word in MEANINGS}))


def table(rows: Sequence[Mapping[str, Any]], kind: str = "") -> str:
    """Return rows as an HTML table of the style `kind`, with verdicts as badges."""
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
    """Return terms and (escaped) texts as an HTML list. Empty texts are left out."""
    items = "".join(f"<dt>{escape(term)}</dt><dd>{text}</dd>" for term, text in pairs.items() if text)
    return f"<dl>{items}</dl>"


def folded(title: str, inside: str) -> str:
    """Return a folded block as HTML."""
    return f"<details><summary>{escape(title)}</summary>{inside}</details>" if inside else ""


def problem(error: BaseException | str) -> str:
    """Return an error as HTML, as a replacement for the content of a card."""
    words = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    return f'<p class="problem">This part failed: {escape(words)}</p>'


def drawn(name: str, figure: Figure, caption: str, dpi: float | None = None) -> Picture:
    """Return a figure as small data, with limited resolution, few colours and lossless WebP compression."""
    from matplotlib.collections import QuadMesh
    from PIL import Image

    from limitlab.plotting.output import pixels

    shown = pixels(figure, dpi=dpi or min(SHARPEST, WIDEST / figure.get_figwidth()))
    shaded = any(axes.images or any(isinstance(part, QuadMesh) for part in axes.collections) for axes in figure.axes)
    colours = MANY_COLOURS if shaded else FEW_COLOURS
    plain = Image.fromarray(shown).convert("RGB")
    # reduce colours by coverage, so that the colour of a few points is not lost to a shade of a large area
    image = plain.quantize(colours, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).convert("RGB")
    small = io.BytesIO()
    image.save(small, "WEBP", lossless=True, method=4)
    source = f"data:image/webp;base64,{base64.b64encode(small.getvalue()).decode()}"
    return Picture(name, caption, source, *image.size)


def provenance(quick: bool, seconds: float) -> str:
    """Return everything that the numbers of the page may depend on, as HTML."""
    facts = {
        "Version": escape(f"limitlab {version('limitlab')}"),
        "Commit": escape(commit() or "not known (installed without its history)"),
        "Date": now().strftime("%d %B %Y, %H:%M UTC"),
        "Experiments": "quick (small sizes)" if quick else "full (sizes that can decide every claim)",
        "Time": f"{seconds:.0f} s for results that were not stored" if seconds else "",
        "Machine": escape(machine()),
        "Made by": f"<code>limitlab report {'--quick' if quick else '--full'}</code>",
    }
    names = ", ".join(f"{name}&nbsp;{number}" for name, number in versions().items())
    return definitions(facts) + folded("Versions of everything", f"<p>Python&nbsp;{platform.python_version()}, {names}</p>")


def versions() -> dict[str, str]:
    """Return the versions of the packages that limitlab declares, and of their dependencies.

    >>> "numpy" in versions()
    True
    """
    installed: dict[str, str] = {}
    for line in requires("limitlab") or ():
        name = re.split(r"[^\w.-]", line, maxsplit=1)[0]
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            continue
    return dict(sorted(installed.items()))


def commit() -> str:
    """Return the commit of the source, with a mark if files were changed, or an empty text without a history."""
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
    """Return processor, number of cores and system, without the name of the machine."""
    info = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*:\s*(.+)", info.read_text()) if info.exists() else None
    processor = model[1] if model else platform.processor() or platform.machine()
    return f"{processor}, {available_cores()} cores, {platform.system()} {platform.machine()}"


def now() -> datetime:
    """Return the present time, or SOURCE_DATE_EPOCH if a reproducible build sets it."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH")
    return datetime.fromtimestamp(int(fixed), UTC) if fixed else datetime.now(UTC)
