"""Pages with sliders on precomputed headline views, which need no server, no network and no library.

`write_pages` writes a page for every law and an index page. The documentation embeds the same live figures.
"""

from limitlab.show.explorer.static._pages import write_pages

__all__ = ["write_pages"]
