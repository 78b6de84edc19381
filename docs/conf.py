"""Sphinx configuration. Build with `sphinx-build -W docs docs/_build`; the build needs no network."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

os.environ["MPLBACKEND"] = "Agg"
sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "limitlab"
author = "The limitlab developers"
copyright = "The limitlab developers"
version = release = installed_version("limitlab")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # formulas without a network, for readers too
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.bibtex",
    "laws_table",  # what pages say of laws and names, from the declarations
    "live_figures",  # headline views with sliders on theory pages, and the cards of all laws
    "law_parameters",  # a law's parameters, from its metadata
    "plain_docstrings",  # our docstrings are plain text with code in backticks
    "short_entries",  # what entries share is said once, types are short
    "figure_words",  # figures say what they show
    "tagged_formulas",  # numbered formulas of several lines
    "set_tables",  # formulas in the tables that commands wrote
    "figure_scraper",  # pictures of the gallery
    "author_year_labels",  # sources are listed by the names and years with which pages cite them
]
exclude_patterns = ["_build", "examples", "**/README.*", "**/*.ipynb"]
suppress_warnings = [
    "config.cache",  # sphinx-gallery keeps objects in its settings
    "ref.python",  # a field name such as test_error that several classes have is not a link
]

# -- Markdown -----------------------------------------------------------------------------------------------------------
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
myst_dmath_double_inline = True

# -- reference ----------------------------------------------------------------------------------------------------------
autosummary_generate = True
autodoc_typehints = "description"
autodoc_type_aliases = {name: name for name in ("Array", "ArrayLike", "Values")}
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_custom_sections = ["Class attributes"]
default_role = "code"

# -- sources ------------------------------------------------------------------------------------------------------------
bibtex_bibfiles = ["../src/limitlab/references.bib"]
bibtex_reference_style = "author_year"
bibtex_default_style = "named"

# -- gallery ------------------------------------------------------------------------------------------------------------
sphinx_gallery_conf = {
    "examples_dirs": ["examples"],
    "gallery_dirs": ["gallery"],
    "image_scrapers": ["figure_scraper.scrape"],
    "reset_modules": ("matplotlib", "figure_scraper.check_shown"),
    "reset_modules_order": "after",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "within_subsection_order": "figure_scraper.by_subject",
    "abort_on_example_error": True,
}

# -- pages --------------------------------------------------------------------------------------------------------------
html_theme = "furo"
html_title = f"limitlab {version}"
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["formulas.css"]
html_js_files = ["fit_formulas.js"]
