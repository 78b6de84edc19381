"""Tokens moving on the sphere, as a GIF and as a page."""

import pytest
from PIL import Image

from limitlab.laws.attention._figures import sphere_animation, sphere_paths


def test_gif(tmp_path):
    path = sphere_animation(tmp_path / "tokens.gif", tokens=5, frames=3, horizon=2.0)
    with Image.open(path) as image:
        assert image.n_frames == 3


def test_page(tmp_path):
    page = sphere_animation(tmp_path / "tokens.html", tokens=5, frames=2, horizon=2.0).read_text(encoding="utf-8")
    assert "data:image/png;base64" in page


def test_other_names_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"\.gif or \.html"):
        sphere_animation(tmp_path / "tokens.avi")


def test_paths_start_where_they_are_drawn():
    paths = sphere_paths(4, 9.0, [0.0, 1.0], seed=3)
    assert (paths[0] != sphere_paths(4, 9.0, [0.0], seed=4)[0]).any()
