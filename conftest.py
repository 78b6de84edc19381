"""A fixture for tests and doctests: laws that one of them loads are unknown to the next."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _loaded_laws_are_unloaded() -> Iterator[None]:
    """Restore the list of loaded packages after every test and doctest."""
    from limitlab._core import registry

    before = dict(registry._LOADED)
    yield
    registry._LOADED.clear()
    registry._LOADED.update(before)
