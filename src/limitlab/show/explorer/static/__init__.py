"""Pages with sliders on precomputed headline views, which need no server, no network and no library.

`write_pages` writes a page for every law and an index page. The documentation embeds the same live figures.
"""

from limitlab.show.explorer.static._frames import as_json, live_view, reduced
from limitlab.show.explorer.static._pages import (
    Summary,
    card,
    figure,
    gallery,
    live_views,
    numbers_of,
    resources_text,
    write_pages,
)

__all__ = [
    "Summary",
    "as_json",
    "card",
    "figure",
    "gallery",
    "live_view",
    "live_views",
    "numbers_of",
    "reduced",
    "resources_text",
    "write_pages",
]
