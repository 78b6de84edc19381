"""The weights of two Gaussians over time, as a GIF and as a page."""

import pytest
from PIL import Image

from limitlab.laws.mean_field._figures import weight_animation


def test_gif(tmp_path):
    path = weight_animation(tmp_path / "weights.gif", width=20, frames=3, horizon=0.2)
    with Image.open(path) as image:
        assert image.n_frames == 3


def test_page(tmp_path):
    page = weight_animation(tmp_path / "weights.html", width=20, frames=2, horizon=0.1).read_text(encoding="utf-8")
    assert "data:image/png;base64" in page


def test_other_names_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"\.gif or \.html"):
        weight_animation(tmp_path / "weights.avi")
