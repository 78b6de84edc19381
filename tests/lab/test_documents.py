"""The lecture notes item by item: the data, the declarations of claims and figures, statuses, pages and searches."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from limitlab._core.lazy import index
from limitlab._core.page import as_json, html, markdown, text
from limitlab._core.registry import all_laws
from limitlab._core.typeset import parts
from limitlab.lab import Item, all_claims, all_figures, claim, documents
from limitlab.lab._documents_page import anchor
from limitlab.lab.check import Check
from limitlab.lab.claims import items_of_claims
from limitlab.lab.documents import KINDS, STATUSES, Document, ItemList, _content, assembled
from limitlab.lab.figures import items_of_figures
from markdown_blocks import ROOT

DOCUMENTS = documents()
SIZES = {"L": 20, "D": 26, "J": 70, "M": 21, "T": 12}


# -- the data ------------------------------------------------------------------------------------------------------------


def test_every_item_of_every_document_is_listed_once() -> None:
    assert {document.key: len(document.items) for document in DOCUMENTS} == SIZES
    ids = [item.id for item in DOCUMENTS.items]
    assert ids == [f"{key}-{number}" for key, size in SIZES.items() for number in range(1, size + 1)]


def test_entries_have_known_fields_only() -> None:
    """A misspelt field would be ignored without a message."""
    for document in _content():
        assert set(document) == {"key", "name", "title", "author", "form", "chapter"}
        for chapter in document["chapter"]:
            assert set(chapter) <= {"number", "title", "item"}
            for item in chapter["item"]:
                assert {"id", "kind", "phrase", "says"} <= set(item) <= {"id", "kind", "phrase", "says", "missing", "open"}


@pytest.mark.parametrize("item", DOCUMENTS.items, ids=lambda item: item.id)
def test_an_item_has_a_phrase_a_kind_and_sentences(item: Item) -> None:
    assert item.kind in KINDS
    assert item.phrase.strip() == item.phrase != ""
    assert re.fullmatch(r"[A-Z].*\.", item.says)
    assert re.fullmatch(r"([A-Z].*\.)?", item.missing)
    assert (item.kind == "open question") == item.is_open
    if item.status in ("part", "missing"):
        assert item.missing, f"{item.id} is {item.status}: say which part is not executed"


def test_no_plain_mathematics_is_left_in_the_sentences() -> None:
    left = re.compile(r"\^|\bsqrt\(|->|<=|>=|\b(?:alpha|beta|gamma|delta|kappa|lambda|sigma|tau|psi|rho|eta)\b|\w\*\w|_")
    for item in DOCUMENTS.items:
        for sentence in (item.says, item.missing):
            prose = "".join(part for part in parts(re.sub(r"`[^`]*`", "", sentence)) if isinstance(part, str))
            assert not left.search(prose), sentence


def test_names_of_code_in_the_sentences_exist() -> None:
    named = {name for item in DOCUMENTS.items for name in re.findall(r"`([^`]*)`", item.says + item.missing)}
    known = set((ROOT / "tests" / "public_names.txt").read_text(encoding="utf-8").split()) | set(all_figures())
    assert named
    assert named <= known


def test_the_chapters_of_the_course_notes_have_numbers() -> None:
    numbers = {document.key: [chapter.number for chapter in document.chapters] for document in DOCUMENTS}
    assert numbers["J"] == [4, 5, 6, 7, 8, 9, 11, 12, 13, 14]
    assert all(number is None for key, listed in numbers.items() if key != "J" for number in listed)


def test_the_data_are_part_of_the_package() -> None:
    assert (files("limitlab") / "lab" / "documents.toml").is_file()


# -- declarations --------------------------------------------------------------------------------------------------------


def test_items_of_claims_and_figures_exist_and_are_in_the_index() -> None:
    known = {item.id for item in DOCUMENTS.items}
    for names in (items_of_claims(), items_of_figures()):
        for name, items in names.items():
            assert set(items) <= known, name
            assert len(set(items)) == len(items), name
    builtin = {claim_id: stated.items for claim_id, stated in all_claims().items() if not stated.package}
    assert {claim_id: tuple(entry["items"]) for claim_id, entry in index()["claims"].items()} == builtin


def test_every_claim_of_a_document_names_an_item() -> None:
    """The ids of claims of a document begin with its key."""
    silent = [claim_id for claim_id, items in items_of_claims().items() if claim_id[0] in SIZES and not items]
    assert silent == []


def test_tables_of_items_name_figures_of_their_module() -> None:
    from importlib import import_module

    for module in {entry["module"] for entry in index()["figures"].values()}:
        loaded = import_module(module)
        assert set(getattr(loaded, "ITEMS", {})) <= set(loaded.FIGURES), module


def test_the_laws_of_an_item_are_those_of_its_claims() -> None:
    laws = all_laws()
    claims = all_claims()
    for item in DOCUMENTS.items:
        assert set(item.laws) == {law for claim_id in item.claims for law in claims[claim_id].laws} <= set(laws)


def test_a_claim_names_its_items() -> None:
    @claim("X1", "Arithmetic", items=("J-48", "J-49"))
    def sums(check: Check) -> None:
        """Two and two make four."""
        check.equal("2 + 2", 2 + 2, 4)

    assert sums.items == ("J-48", "J-49")
    assert "items: J-48, J-49" in text(sums.page())
    with pytest.raises(ValueError, match=r"items = 'J-48' of claim 'X1'.*tuple of ids"):
        claim("X1", "Arithmetic", items="J-48")  # type: ignore[arg-type]


def test_an_item_that_no_document_has_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the claim X1 names the item 'J-480'.*did you mean 'J-48'"):
        assembled({"X1": ("J-480",)}, {}, {})
    with pytest.raises(ValueError, match="the figure sums names the item 'K-1'"):
        assembled({}, {}, {"sums": ("K-1",)})


# -- statuses ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claims", "figures", "missing", "is_open", "status"),
    [
        (("X1",), (), "", False, "full"),
        ((), ("sums",), "", False, "full"),
        (("X1",), ("sums",), "A part is not executed.", False, "part"),
        ((), ("sums",), "A part is not executed.", False, "part"),
        ((), (), "Nothing is executed.", False, "missing"),
        ((), (), "", False, "missing"),
        ((), (), "No experiment covers it.", True, "open"),
        (("X1",), ("sums",), "", True, "open"),
    ],
)
def test_the_status_follows_from_claims_figures_and_the_missing_part(
    claims: tuple[str, ...], figures: tuple[str, ...], missing: str, is_open: bool, status: str
) -> None:
    item = Item("X-1", "Notes", "chapter 1", "theorem", "Theorem 1", "It holds.", missing, is_open, (), claims, figures)
    assert item.status == status
    assert item.data()["status"] == status


def test_without_claims_and_figures_every_item_is_missing_or_open() -> None:
    bare = assembled({}, {}, {})
    assert bare.counts == {"full": 0, "part": 0, "missing": 143, "open": 6}
    one = assembled({"J3": ("J-5",)}, {"J3": ("NearestNeighbours",)}, {})
    item = one.find("J-5")
    assert isinstance(item, Item)
    assert (item.status, item.laws) == ("full", ("NearestNeighbours",))


def test_counts_add_up() -> None:
    for listed in (DOCUMENTS, *DOCUMENTS, *DOCUMENTS.chapters):
        assert list(listed.counts) == list(STATUSES)
        assert sum(listed.counts.values()) == len(listed.items)


# -- searches and pages --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("J", "Mathematics of Deep Learning"),
        ("mean field", "Mean Field Theory and Tangent Kernel Theory of Neural Networks"),
        ("thermodynamic", "Thermodynamic limits for neural networks"),
        ("13", "Notes, chapter 13: Spectral alignment"),
        ("Chapter 4", "Notes, chapter 4: Implicit regularization"),
        ("pure noise", "Dynamics, Dynamics in pure noise"),
    ],
)
def test_a_document_or_chapter_is_found(words: str, title: str) -> None:
    found = DOCUMENTS.find(words)
    assert isinstance(found, Document | ItemList)
    assert found.title == title


def test_items_are_found_by_id_claim_figure_status_and_word() -> None:
    item = DOCUMENTS.find("j-48")
    assert isinstance(item, Item)
    assert item.id == "J-48"
    by_claim, by_figure, by_status, by_word = (DOCUMENTS.find(words) for words in ("j22", "alignment-xor", "part", "ReLU"))
    assert isinstance(by_claim, ItemList)
    assert all("J22" in item.claims for item in by_claim.items)
    assert isinstance(by_figure, ItemList)
    assert [item.id for item in by_figure.items] == ["J-57"]
    assert isinstance(by_status, ItemList)
    assert len(by_status.items) == DOCUMENTS.counts["part"]
    assert isinstance(by_word, ItemList)
    assert [item.id for item in by_word.items] == ["T-12"]
    theorem = DOCUMENTS.find("theorem 8.6")
    assert isinstance(theorem, ItemList)
    assert [item.id for item in theorem.items] == ["J-20"]


def test_words_that_match_nothing_are_refused_with_a_hint() -> None:
    with pytest.raises(ValueError, match=r"'J-481'.*did you mean 'J-48'"):
        DOCUMENTS.find("J-481")
    with pytest.raises(ValueError, match="the words are missing"):
        DOCUMENTS.find("  ")


def test_a_chapter_is_rendered_with_its_missing_parts() -> None:
    chapter = DOCUMENTS.find("13")
    assert isinstance(chapter, ItemList)
    page = chapter.page()
    assert list(page.tables[0].rows[0]) == ["item", "place", "says", "status", "law", "claim", "figure"]
    for rendered in (text(page), markdown(page), html(page), as_json(page)):
        assert all(item.id in rendered for item in chapter.items)
    gaps = [item for item in chapter.items if item.missing]
    assert gaps
    assert all(f"{item.id} ({item.status}): {item.missing}" in text(page) for item in gaps)


@pytest.mark.parametrize("words", ["", "J", "J-48"])
def test_documents_and_items_are_rendered(words: str) -> None:
    described = DOCUMENTS.find(words) if words else DOCUMENTS
    page = described.page()
    assert page.title in text(page)
    assert html(page).startswith("<div>")
    assert as_json(page).startswith("{")


# -- the page ------------------------------------------------------------------------------------------------------------


def test_the_page_has_a_row_for_every_item_and_links_for_what_covers_it() -> None:
    page = (ROOT / "docs" / "documents.md").read_text(encoding="utf-8")
    laws = all_laws()
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in page.splitlines() if re.match(r"\| [LDJMT]-\d", line)}
    assert list(rows) == [item.id for item in DOCUMENTS.items]
    for item in DOCUMENTS.items:
        row = rows[item.id]
        assert len(re.findall(r"(?<!\\)\|", row)) == 7, row
        assert f" | {item.status} | " in row
        assert all(f"[`{law}`](theory/{laws[law].page}.md)" in row for law in item.laws)
        assert all(f"[{figure}](figures/{figure}.png)" in row for figure in item.figures)
        assert all(f"[{claim_id}](" in row for claim_id in item.claims)


@pytest.mark.parametrize(("page", "folder"), [("README.md", "docs/"), ("docs/index.md", "")])
def test_readme_and_first_page_link_every_chapter(page: str, folder: str) -> None:
    linked = (ROOT / page).read_text(encoding="utf-8")
    for chapter in DOCUMENTS.chapters:
        assert f"]({folder}documents.md#{anchor(chapter.title)})" in linked, chapter.title
