import pytest
import xarray as xr
from sweep_toys import ShrunkMean

from limitlab.lab import sweep
from limitlab.lab.store import open_result
from limitlab.lab.sweepfile import load_sweep, read_sweep, run_sweep
from limitlab.laws import Ridge

FULL = """
law = "ridge"
sizes = [20, 40]
seeds = 3
engine = "threads"
store = "{store}"
with_theory = true

[parameters]
noise = 0.5

[over]
ratio = "0.5:2:3log"
ridge = [0.1, 1]
"""


def written(tmp_path, text):
    path = tmp_path / "sweep.toml"
    path.write_text(text)
    return path


def test_a_file_runs_as_the_call_that_it_describes(tmp_path):
    result = run_sweep(written(tmp_path, FULL.format(store=tmp_path / "x.nc")))
    over = {"ratio": "0.5:2:3log", "ridge": [0.1, 1.0]}
    expected = sweep(Ridge(noise=0.5), over, sizes=[20, 40], seeds=3, with_theory=True)
    xr.testing.assert_identical(result, expected)
    xr.testing.assert_equal(open_result(tmp_path / "x.nc"), expected)


def test_engine_and_store_can_be_replaced(tmp_path):
    spec = load_sweep(written(tmp_path, FULL.format(store=tmp_path / "x.nc")))
    run_sweep(spec, engine=None, store=tmp_path / "y.nc")
    assert (tmp_path / "y.nc").exists()
    assert not (tmp_path / "x.nc").exists()


def test_the_least_that_a_file_needs(tmp_path):
    result = run_sweep(written(tmp_path, 'law = "Ridge"\n[over]\nratio = [0.5, 2]\n'))
    assert result.test_error.dims == ("ratio",)


def test_a_law_of_ones_own(tmp_path):
    spec = load_sweep(written(tmp_path, 'law = "sweep_toys:ShrunkMean"\n[over]\nrule = ["mean", "median"]\n'))
    assert isinstance(spec.make_law(), ShrunkMean)
    assert run_sweep(spec).rule.values.tolist() == ["mean", "median"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('law = "Ridge"\n[over\nratio = [1]', r"is not valid TOML: .*line 2"),
        ('law = "Ridge"\n\nsizes = [1,,2]', r"is not valid TOML: .*line 3"),
        ("", "the entry 'law' is missing"),
        ('law = "Ridge"', "the entry 'over' is missing"),
        ('law = "Ridge"\n[over]', r"over = \{\} is not allowed"),
        ('law = "Rigde"\n[over]\nratio = [1]', "there is no law 'Rigde': did you mean 'Ridge'"),
        ('law = "nowhere:Law"\n[over]\nratio = [1]', "there is no law 'nowhere:Law': its module is not loaded"),
        ('law = "math:pi"\n[over]\nratio = [1]', "'pi' is not a subclass"),
        ('law = "sweep_toys:Nothing"\n[over]\nratio = [1]', "there is no law 'sweep_toys:Nothing'"),
        ('law = "..:x"\n[over]\nratio = [1]', "there is no law '..:x': its module is not loaded"),
        ('law = "antigravity:x"\n[over]\nratio = [1]', "its module is not loaded"),
        ('law = ":x"\n[over]\nratio = [1]', "there is no law ':x'"),
        ("law = 3\n[over]\nratio = [1]", "law = 3 is not allowed"),
        ('law = "Ridge"\nsize = [10]\n[over]\nratio = [1]', "there is no entry 'size': did you mean 'sizes'"),
        ('law = "Ridge"\nsizes = "ten"\n[over]\nratio = [1]', "sizes = 'ten' is not allowed"),
        ('law = "Ridge"\nsizes = [10.5]\n[over]\nratio = [1]', r"sizes = \[10.5\] is not allowed"),
        ('law = "Ridge"\nseeds = true\n[over]\nratio = [1]', "seeds = True is not allowed"),
        ('law = "Ridge"\nengine = "proceses"\n[over]\nratio = [1]', "did you mean 'processes'"),
        ('law = "Ridge"\nengine = 0\n[over]\nratio = [1]', "at least 1"),
        ('law = "Ridge"\nstore = ""\n[over]\nratio = [1]', "store = '' is not allowed"),
        ('law = "Ridge"\nwith_theory = "yes"\n[over]\nratio = [1]', "with_theory = 'yes' is not allowed"),
        ('law = "Ridge"\n[over]\nratio = "0.1:10"', "over 'ratio': range '0.1:10'"),
        ('law = "Ridge"\n[over]\nratio = 3', "over = .* is not allowed"),
        ('law = "Ridge"\n[over]\nrato = [1]', "cannot sweep over 'rato'.*did you mean 'ratio'"),
        ('law = "Ridge"\n[over]\nratio = [1, -1]', "ratio = -1 is not allowed"),
        ('law = "Ridge"\n[over]\nratio = [nan]', "ratio = nan is not allowed"),
        ('law = "Ridge"\n[parameters]\nnoise = -1\n[over]\nratio = [1]', "noise = -1 is not allowed"),
        ('law = "Ridge"\n[parameters]\nnoice = 1\n[over]\nratio = [1]', "no parameter 'noice': did you mean 'noise'"),
        ('law = "Ridge"\nparameters = 3\n[over]\nratio = [1]', "parameters = 3 is not allowed"),
    ],
)
def test_mistakes_are_one_clear_line_with_the_name_of_the_file(tmp_path, text, complaint):
    with pytest.raises(ValueError, match=complaint) as caught:
        load_sweep(written(tmp_path, text))
    assert "sweep.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        load_sweep(tmp_path / "nothing.toml")
    with pytest.raises(ValueError, match="cannot be read: Is a directory"):
        load_sweep(tmp_path)
    (tmp_path / "picture.toml").write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(ValueError, match="is not a text file"):
        load_sweep(tmp_path / "picture.toml")


def test_read_sweep_takes_a_mapping():
    assert read_sweep({"law": "early-stopping", "over": {"ratio": [0.5]}}).law == "early-stopping"
