"""Figures in the terminal, drawn with braille characters.

Each character has two columns and four rows of dots. The numbers, scales and labels are those of the figure, so that every command with
`--plot` can draw in the terminal. Every curve has a letter, which the list below the panel explains.
"""

from __future__ import annotations

import math
import re
import shutil
import string
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from limitlab._core.page import number, plain_symbol
from limitlab.show.cli._app import say

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
HEIGHT, WIDEST = 18, 100
"""Rows of characters of a panel, and its largest width in characters."""
DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""The bits of the dots of a braille character, by row and column."""
BLANK = 0x2800
SHADES = ("blue", "red", "green", "magenta", "yellow", "cyan", "white")


@dataclass(frozen=True)
class Curve:
    """The numbers of one artist of a panel."""

    label: str
    x: Array
    y: Array
    kind: str


def print_figure(figure: Figure) -> None:
    """Print the panels of a figure with braille characters, with the colours of a terminal if there is one."""
    width = min(shutil.get_terminal_size().columns, WIDEST)
    title = figure.get_suptitle()
    if title:
        say(plain(title), bold=True)
    from rich.console import Console

    from limitlab.plotting.output import COLOUR_BAR, plotted_data

    console = Console(width=width, highlight=False, soft_wrap=True)
    rows = plotted_data(figure)
    panels = [axes for axes in figure.axes if axes.get_label() != COLOUR_BAR]
    for position, axes in enumerate(panels, 1):
        if axes.get_title(loc="left"):
            say(plain(axes.get_title(loc="left")))
        for line in panel(axes, [row for row in rows if row["panel"] == position], width - 1):
            console.print(line if sys.stdout.isatty() else line.plain, markup=False)


def panel(axes: Axes, rows: Sequence[dict[str, Any]], width: int, height: int = HEIGHT) -> list[Text]:
    """Return one panel as lines of text, with the label of the vertical axis above and that of the horizontal axis below."""
    curves = curves_of(rows)
    low, high = axes.get_ylim()
    left, right = horizontal_range(axes, curves)
    ends = [f"{number(float(f'{value:.3g}'))} " for value in (high, low)]
    margin = max(map(len, ends))
    columns = width - margin - 2
    grid = Grid(columns, height)
    shown: dict[str, int] = {}
    seen: dict[str, int] = {}
    drawn: list[tuple[int, Array, Array]] = []
    for curve in curves:
        seen[curve.kind] = seen.get(curve.kind, -1) + 1  # an unlabelled curve belongs to the line with the same number
        index = shown.setdefault(curve.label, len(shown)) if curve.label else seen[curve.kind]
        x = place(curve.x, left, right, axes.get_xscale() == "log") * (2 * columns - 1)
        y = (1 - place(curve.y, low, high, axes.get_yscale() == "log")) * (4 * height - 1)
        grid.draw(x, y, index, curve.kind)
        drawn += [(index, x, y)] if curve.kind == "line" and curve.label else []
    for (index, _, _), spot in zip(drawn, free_places([(x, y) for _, x, y in drawn]), strict=True):
        grid.mark(*spot, letter(index), index)
    lines = [Text(plain(axes.get_ylabel()))] if axes.get_ylabel() else []
    for row in range(height):
        head = ends[0] if row == 0 else ends[1] if row == height - 1 else ""
        lines.append(Text(head.rjust(margin) + "│") + grid.text(row))
    lines.append(Text(" " * margin + "└" + "─" * columns))
    first, last = (number(float(f"{value:.3g}")) for value in (left, right))
    words = plain(axes.get_xlabel())
    gap = columns - len(first) - len(last) - len(words)
    between = words.center(max(columns - len(first) - len(last), 0)) if gap >= 2 else " " * (gap + len(words))
    lines.append(Text(" " * (margin + 1) + first + between + last))
    if words and gap < 2:
        lines.append(Text(words))
    named = [(letter(index), label, SHADES[index % len(SHADES)]) for label, index in shown.items() if label]
    if named:
        lines.append(Text("   ").join(Text(f"{mark} {label}", style=shade) for mark, label, shade in named))
    return lines


def horizontal_range(axes: Axes, curves: Sequence[Curve]) -> tuple[float, float]:
    """Return the smallest and the largest value of the curves on the horizontal axis, or the ends of an axis without values."""
    values = np.concatenate([curve.x for curve in curves] or [np.array([])])
    values = values[np.isfinite(values) & ((values > 0) | (axes.get_xscale() != "log"))]
    if not values.size or values.min() == values.max():
        left, right = axes.get_xlim()
        return float(left), float(right)
    return float(values.min()), float(values.max())


def curves_of(rows: Sequence[dict[str, Any]]) -> list[Curve]:
    """Return the lines, points and bars of a panel. Curves without a label have the label of the curve of the same colour."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    number_of, before = 0, ("", "", "")
    for row in rows:
        key = (row["kind"], row.get("label", ""), row.get("colour", ""))
        number_of += key != before
        before = key
        if row["kind"] != "reference":
            groups.setdefault((number_of, *key), []).append(row)
    by_colour = {colour: label for _, _, label, colour in groups if label and colour}
    curves = []
    for (_, kind, label, colour), members in groups.items():
        x, y = (np.array([np.nan if row[name] == "" else row[name] for row in members]) for name in "xy")
        curves.append(Curve(plain(label or by_colour.get(colour, "")), x, y, kind))
    return curves


def place(values: Array, low: float, high: float, logarithmic: bool) -> Array:
    """Return positions between the ends of an axis as shares of its length.

    >>> place(np.array([1.0, 10.0]), 1.0, 100.0, True).tolist()
    [0.0, 0.5]
    """
    with np.errstate(all="ignore"):
        ends = np.log([low, high]) if logarithmic else np.array([low, high])
        return ((np.log(values) if logarithmic else values) - ends[0]) / (ends[1] - ends[0])


def free_places(curves: Sequence[tuple[Array, Array]]) -> list[tuple[float, float]]:
    """Return a position on every curve, which is as far as possible from the other curves.

    >>> x = np.array([0.0, 1.0, 2.0])
    >>> free_places([(x, np.array([0.0, 3.0, 1.0])), (x, np.array([0.0, 0.0, 1.0]))])
    [(1.0, 3.0), (1.0, 0.0)]
    """
    places = []
    for number_of, (x, y) in enumerate(curves):
        fits = np.isfinite(x) & np.isfinite(y)
        if not fits.any():
            places.append((math.nan, math.nan))
            continue
        distances = np.full(int(fits.sum()), math.inf)
        for position, (a, b) in enumerate(curves):
            there = np.isfinite(a) & np.isfinite(b)
            if position != number_of and there.any():
                distances = np.minimum(distances, np.abs(np.interp(x[fits], a[there], b[there]) - y[fits]))
        best = int(np.argmax(distances)) if np.isfinite(distances).all() else -1
        places.append((float(x[fits][best]), float(y[fits][best])))
    return places


def letter(index: int) -> str:
    """Return the letter of a curve."""
    return string.ascii_lowercase[index % 26]


def plain(label: str) -> str:
    r"""Return a label of a figure as text, without the marks of mathematics.

    >>> plain(r"test error $E_{\mathrm{test}}$, $\lambda$ $=$ 0.1")
    'test error E_test, λ = 0.1'
    """
    return re.sub(r"\$([^$]*)\$", lambda match: plain_symbol(match[1]), label)


class Grid:
    """Braille characters with the number of the curve that was last drawn in each of them."""

    def __init__(self, columns: int, rows: int) -> None:
        self.bits = np.zeros((rows, columns), dtype=int)
        self.owner = np.zeros((rows, columns), dtype=int)
        self.marks: dict[tuple[int, int], str] = {}

    def draw(self, x: Array, y: Array, index: int, kind: str) -> None:
        """Draw a line or the tops of bars as dots, or points as circles."""
        inside = np.isfinite(x) & np.isfinite(y)
        if kind not in ("line", "bars"):
            for column, row in zip(x[inside], y[inside], strict=True):
                self.mark(column, row, "o", index)
            return
        for start in range(len(x) - 1):
            if inside[start] and inside[start + 1]:
                steps = int(max(abs(x[start + 1] - x[start]), min(abs(y[start + 1] - y[start]), 4 * len(self.bits)))) + 1
                across, down = (np.linspace(each[start], each[start + 1], steps + 1) for each in (x, y))
                self.dots(across, down, index)

    def dots(self, x: Array, y: Array, index: int) -> None:
        """Set the dots at positions, which are counted from the upper left corner."""
        column, row = np.round(x).astype(int), np.round(y).astype(int)
        rows, columns = self.bits.shape
        fits = (column >= 0) & (column < 2 * columns) & (row >= 0) & (row < 4 * rows)
        column, row = column[fits], row[fits]
        np.bitwise_or.at(self.bits, (row // 4, column // 2), DOTS[row % 4, column % 2])
        self.owner[row // 4, column // 2] = index

    def mark(self, x: float, y: float, character: str, index: int) -> None:
        """Write a character at a position. A letter is never replaced by a point."""
        rows, columns = self.bits.shape
        if not (np.isfinite(x) and np.isfinite(y)):
            return
        spot = round(y) // 4, round(x) // 2
        if 0 <= spot[0] < rows and 0 <= spot[1] < columns and not (character == "o" and self.marks.get(spot, "o") != "o"):
            self.marks[spot] = character
            self.owner[spot] = index

    def text(self, row: int) -> Text:
        """Return one row of characters with their colours."""
        line = Text()
        for column, bits in enumerate(self.bits[row].tolist()):
            character = self.marks.get((row, column)) or (chr(BLANK + bits) if bits else " ")
            line.append(character, style=SHADES[int(self.owner[row, column]) % len(SHADES)] if character != " " else None)
        return line
