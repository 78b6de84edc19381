"""The plain description of a result: one page, four renderings."""

from __future__ import annotations

import json

import numpy as np
import pytest

from limitlab._core.page import Code, Described, Page, Table, Tex, Verdict, Words, as_json, html, markdown, text

ROWS = [
    {"observable": "test_error", "verdict": Verdict("agree"), "half_width": 0.123456, "symbol": Tex(r"\lambda")},
    {"observable": "a|b <i>", "verdict": Verdict("disagree"), "half_width": np.inf, "symbol": Tex("")},
]
PAGE = Page(
    "Ridge",
    {"status": "theorem", "empty": "", "check": Code("limitlab verify J5")},
    [Table(ROWS, "error budget", digits={"half_width": 2}, units={"half_width": "s"})],
    ["p/n -> gamma & more."],
    "disagree",
)


def test_text_aligns_columns_and_leaves_out_empty_facts() -> None:
    lines = text(PAGE).splitlines()
    assert lines[:3] == ["Ridge", "status: theorem", "check: limitlab verify J5"]
    assert lines[3] == "error budget"
    assert lines[4].split("  ")[0] == "observable"
    assert "half width [s]" in lines[4]
    assert lines[5].split() == ["test_error", "agree", "0.12", "λ"]
    assert lines[6].index("disagree") == lines[5].index("agree")
    assert lines[7] == "disagree: p/n -> gamma & more."
    assert str(PAGE) == text(PAGE)


def test_html_escapes_texts_and_sets_formulas() -> None:
    shown = html(PAGE)
    assert "a|b &lt;i&gt;" in shown
    assert "<code>limitlab verify J5</code>" in shown
    assert "empty" not in shown
    assert "<td>0.12</td>" in shown
    assert "<math>" in shown
    assert "color:#b3261e" in shown
    assert PAGE._repr_html_() == shown


def test_markdown_keeps_the_cells_of_a_row_apart() -> None:
    lines = markdown(PAGE).splitlines()
    assert lines[0] == "**Ridge** **disagree**"
    assert r"| a\|b <i> | **disagree** | inf |  |" in lines
    assert "- check: limitlab verify J5" in lines


def test_json_is_strict_and_keeps_every_digit() -> None:
    plain = json.loads(as_json(PAGE))
    assert [row["half_width"] for row in plain["tables"][0]["rows"]] == [0.123456, "inf"]
    assert plain["verdict"] == "disagree"
    assert json.loads(as_json(Page("x", data={"a": np.arange(2), "b": np.nan}))) == {"a": [0, 1], "b": "nan"}


def test_a_result_describes_itself() -> None:
    class Result(Described):
        def page(self) -> Page:
            return Page("result", sentences=[Words("k^2")])

    assert "<math>" in Result()._repr_html_()
    with pytest.raises(NotImplementedError, match="Nothing does not define page"):
        type("Nothing", (Described,), {})().page()
