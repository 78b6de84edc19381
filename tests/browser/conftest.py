"""A real browser for the tests of pages: the system's Chromium, driven by Playwright. Without either the tests are skipped, and say so.

`.ci/browser` installs both. Chromium is started once; every test gets contexts of its own (`browser.new_context()`), which share nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
HOW = "`.ci/browser` installs it"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder is marked `browser`."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium (a Playwright `Browser`), one for the whole run."""
    sync_api = pytest.importorskip("playwright.sync_api", reason=f"Playwright is not installed: {HOW}")
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip(f"there is no Chromium on this machine: {HOW}")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=["--disable-gpu", "--disable-dev-shm-usage"])
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page of its own, on a laptop's screen; an error in its scripts fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 720}, accept_downloads=True)
    shown, errors = context.new_page(), []
    shown.on("pageerror", lambda error: errors.append(str(error)))
    shown.set_default_timeout(20_000)
    yield shown
    context.close()
    assert not errors, errors
