"""Pictures where people read: every figure has one on a theory page, the gallery draws something, the notebooks run."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib
import pytest
from matplotlib.figure import Figure

from limitlab.lab.figures import all_figures
from markdown_blocks import ROOT, Block, blocks

matplotlib.use("Agg")
DOCS = ROOT / "docs"
PICTURES = DOCS / "figures"
THEORY = sorted(page for page in (DOCS / "theory").glob("*.md") if page.stem != "index")
EXAMPLES = sorted((DOCS / "examples").glob("plot_*.py"))
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
LARGEST = 120_000  # bytes


def extension(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DOCS / "_ext" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pictures_of(page: Path) -> dict[str, Block]:
    """The figures that a page shows, by id."""
    text = page.read_text(encoding="utf-8")
    shown = re.findall(r"^```\{figure\} \.\./figures/([\w-]+)\.png$", text, re.MULTILINE)
    return dict(zip(shown, [block for block in blocks(page) if block.language == "{figure}"], strict=True))


# -- theory pages --------------------------------------------------------------------------------------------------------


def test_every_figure_has_a_picture_that_is_small() -> None:
    missing = [name for name in all_figures() if not (PICTURES / f"{name}.png").exists()]
    assert not missing, f"python docs/_ext/render_figures.py {' '.join(missing)}"
    large = {path.name: path.stat().st_size for path in PICTURES.glob("*.png") if path.stat().st_size > LARGEST}
    assert not large


def test_every_picture_is_of_a_figure() -> None:
    assert {path.stem for path in PICTURES.glob("*.png")} <= set(all_figures())


@pytest.mark.parametrize("page", THEORY, ids=lambda page: page.stem)
def test_every_theory_page_shows_a_picture_and_says_what_it_is(page: Path) -> None:
    shown = pictures_of(page)
    assert shown, f"{page.name} shows no figure"
    for name, block in shown.items():
        caption = re.sub(r"^:\w+:.*$", "", block.text, flags=re.MULTILINE).strip()
        assert len(caption) > 40, f"{name}: the caption must say what one sees"
        assert not re.search(r"\b[A-Z]\d{1,2}\b|`", caption), f"{name}: a label or an id in the caption: {caption}"


def test_every_figure_is_shown_on_a_theory_page() -> None:
    shown = {name for page in THEORY for name in pictures_of(page)}
    assert set(all_figures()) == shown


def test_a_picture_is_drawn(tmp_path: Path) -> None:
    seconds, size = extension("render_figures").render("hermite-series", tmp_path)
    assert (tmp_path / "hermite-series.png").stat().st_size == size < LARGEST
    assert 0 < seconds < 60


# -- gallery -------------------------------------------------------------------------------------------------------------


def test_an_axes_without_data_is_found() -> None:
    without_data = extension("figure_scraper").without_data
    figure = Figure()
    line, marked, infinite, off, image = figure.subplots(1, 5)
    line.plot([0, 1], [0, 1])
    marked.axhline(1.0)
    infinite.plot([0, 1], [float("nan"), float("nan")])
    off.set_axis_off()
    image.imshow([[0, 1]])
    assert without_data(figure) == [1, 2]


def figures_in(names: dict[str, Any]) -> list[Figure]:
    return list({id(value): value for value in names.values() if isinstance(value, Figure)}.values())


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_draws_something_in_every_axes(example: Path) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(example.read_text(encoding="utf-8"), str(example), "exec"), names)
    figures = figures_in(names)
    assert figures
    assert not any(extension("figure_scraper").without_data(figure) for figure in figures)


# -- notebooks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_from_top_to_bottom(notebook: Path) -> None:
    """The code cells in order, as Jupyter would run them, and a picture from most of them."""
    from matplotlib import pyplot

    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    assert sum("✎" in "".join(cell["source"]) for cell in cells) >= 3, "exercises"
    names: dict[str, Any] = {"__name__": "__main__"}
    try:
        for number, cell in enumerate(cells):
            if cell["cell_type"] == "code":
                assert not cell["outputs"], "notebooks are kept without outputs"
                exec(compile("".join(cell["source"]), f"{notebook.name}, cell {number}", "exec"), names)
        figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
        assert len(figures) >= 2
        assert not any(extension("figure_scraper").without_data(figure) for figure in figures)
    finally:
        pyplot.close("all")


def test_there_are_three_notebooks() -> None:
    assert len(NOTEBOOKS) >= 3


# -- formulas ------------------------------------------------------------------------------------------------------------


def test_a_numbered_formula_of_several_lines_is_an_equation_of_its_own() -> None:
    """MathJax shows "tag not allowed in split environment" in place of such a formula otherwise."""
    nodes = pytest.importorskip("docutils.nodes", reason="the docs extra is not installed")
    utils = pytest.importorskip("docutils.utils")
    page = utils.new_document("page")
    for formula in (r"\begin{aligned}a\\b\end{aligned}\tag{1}", r"a \tag{2}", r"\begin{cases}a\\b\end{cases}"):
        page += nodes.math_block(formula, formula)
    extension("tagged_formulas").process(None, page)
    assert [node.get("no-wrap", False) for node in page] == [True, False, False]
    assert page[0].astext().startswith("\\begin{equation}")
