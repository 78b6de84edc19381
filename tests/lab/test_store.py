import errno
import json
import os
import shutil
import subprocess
import sys
import warnings

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from sweep_toys import Decay, Fragile, ShrunkMean, tree

from limitlab._core.files import clean_leftovers, read_arrays, replacing, write_arrays, write_whole
from limitlab.lab import SweepError, SweepInterrupted, sweep
from limitlab.lab.store import Cell, Cells, DamagedCell, Store, open_result, pack, read_dataset, unpack
from limitlab.laws import Ridge

STORES = ["x.nc", "x.zarr", "x"]
OVER = {"shrink": [0.0, 0.5], "signal": [1.0, 2.0], "rule": ["mean", "median"], "weights": [(1.0,), (1.0, 2.0)]}


def count_runs(monkeypatch, law=ShrunkMean):
    calls = []
    experiment = law.experiment
    monkeypatch.setattr(law, "experiment", lambda self, *a, **k: calls.append(a) or experiment(self, *a, **k))
    return calls


@pytest.mark.parametrize("store", STORES)
def test_a_store_holds_what_sweep_returned(tmp_path, store):
    result = sweep(ShrunkMean(), OVER, sizes=[10, 20], seeds=2, store=tmp_path / store, with_theory=True)
    xr.testing.assert_identical(result, sweep(ShrunkMean(), OVER, sizes=[10, 20], seeds=2, with_theory=True))
    stored = open_result(tmp_path / store)
    xr.testing.assert_equal(result, stored)
    assert stored.attrs["law"] == "ShrunkMean"
    assert stored.shrink.attrs == result.shrink.attrs


@pytest.mark.parametrize("store", STORES)
def test_the_layout(tmp_path, store):
    sweep(ShrunkMean(), {"shrink": [0.0, 0.5]}, sizes=[10, 20], seeds=2, store=tmp_path / store)
    home = tmp_path / (store if store == "x" else f"{store}.cells")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted({store, home.name})
    cells = [path for path in (home / "cells").rglob("*") if path.is_file()]
    assert len(cells) == 4
    assert all(path.parent.name == path.stem[:2] and len(path.stem) == 64 and path.suffix == ".cell" for path in cells)
    manifest = json.loads((home / "sweep.json").read_text())
    assert manifest["law"] == "sweep_toys:ShrunkMean"
    assert manifest["over"] == {"shrink": [0.0, 0.5]}
    assert "shrink" not in manifest["parameters"]
    assert manifest["sizes"] == [10, 20]
    assert manifest["seeds"] == [0, 1]
    about, arrays = read_arrays(cells[0])
    assert arrays["value.excess_risk"].shape == (2,)
    assert about["content"]["parameters"]["signal"] == 1.0


@pytest.mark.parametrize("store", STORES)
def test_two_runs_give_the_same_bytes(tmp_path, store):
    for folder in ("a", "b"):
        sweep(
            ShrunkMean(),
            OVER,
            sizes=[10],
            seeds=3,
            store=tmp_path / folder / store,
            engine="threads" if folder == "b" else None,
        )
    assert tree(tmp_path / "a") == tree(tmp_path / "b")


@pytest.mark.parametrize("store", STORES)
def test_a_finished_sweep_is_not_run_again(tmp_path, store, monkeypatch):
    calls = count_runs(monkeypatch)
    first = sweep(ShrunkMean(), OVER, sizes=[10], seeds=2, store=tmp_path / store)
    before, runs = tree(tmp_path), len(calls)
    second = sweep(ShrunkMean(), OVER, sizes=[10], seeds=2, store=tmp_path / store)
    assert len(calls) == runs
    xr.testing.assert_identical(first, second)
    assert tree(tmp_path) == before


def test_more_seeds_sizes_and_values_reuse_what_is_there(tmp_path, monkeypatch):
    calls = count_runs(monkeypatch)
    store = tmp_path / "x.nc"
    sweep(ShrunkMean(), {"signal": [1.0, 2.0]}, sizes=[10], seeds=2, store=store)
    assert len(calls) == 4
    sweep(ShrunkMean(), {"signal": [1.0, 2.0]}, sizes=[10], seeds=3, store=store)
    assert len(calls) == 6
    sweep(ShrunkMean(), {"signal": [1.0, 2.0]}, sizes=[10, 20], seeds=3, store=store)
    assert len(calls) == 12
    sweep(ShrunkMean(), {"signal": [1.0, 2.0, 3.0], "rule": ["mean", "median"]}, sizes=[10], seeds=2, store=store)
    assert len(calls) == 12 + 8  # three signals by two rules by two seeds, of which two signals with one rule are there
    fresh = sweep(ShrunkMean(), {"signal": [1.0, 2.0, 3.0], "rule": ["mean", "median"]}, sizes=[10], seeds=2)
    xr.testing.assert_equal(open_result(store), fresh)


def test_failed_tasks_are_the_only_ones_run_again(tmp_path, monkeypatch):
    calls = count_runs(monkeypatch, Fragile)
    store = tmp_path / "x.nc"
    with pytest.raises(SweepError, match=r"1 of 4 tasks failed; the finished ones .*x\.nc\.cells"):
        sweep(Fragile(), {"level": [0, 1, 2, 3]}, sizes=[5], seeds=1, store=store)
    assert not store.exists()  # the result is written only when it is whole
    with pytest.raises(SweepError):
        sweep(Fragile(), {"level": [0, 1, 2, 3]}, sizes=[5], seeds=1, store=store)
    assert len(calls) == 5


def test_theory_can_be_stored(tmp_path):
    result = sweep(Decay(), {"speed": [1.0, 2.0], "times": [0.0, 1.0], "level": [0.1, 0.2]}, store=tmp_path / "x.nc")
    again = sweep(Decay(), {"speed": [1.0, 2.0], "times": [0.0, 1.0], "level": [0.1, 0.2]}, store=tmp_path / "x.nc")
    xr.testing.assert_identical(result, again)
    xr.testing.assert_equal(result, open_result(tmp_path / "x.nc"))


def test_an_interrupt_keeps_what_is_finished(tmp_path, monkeypatch):
    experiment = ShrunkMean.experiment
    calls = []

    def interrupted(self, *arguments, **path):
        calls.append(arguments)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return experiment(self, *arguments, **path)

    monkeypatch.setattr(ShrunkMean, "experiment", interrupted)
    over = {"signal": [1.0, 2.0, 3.0]}
    with pytest.raises(
        SweepInterrupted, match=r"stopped after 3 of 6 tasks; .* the same command runs only the rest"
    ) as caught:
        sweep(ShrunkMean(), over, sizes=[10], seeds=2, store=tmp_path / "x")
    assert isinstance(caught.value, KeyboardInterrupt)
    assert int(np.isfinite(caught.value.partial.mean_bias).sum()) == 3
    result = sweep(ShrunkMean(), over, sizes=[10], seeds=2, store=tmp_path / "x")
    assert len(calls) == 4 + 3
    xr.testing.assert_identical(result, sweep(ShrunkMean(), over, sizes=[10], seeds=2))


# -- damage -------------------------------------------------------------------------------------------------------------


def damage(path, how):
    content = path.read_bytes()
    middle = len(content) // 2
    path.write_bytes(
        {
            "truncated": content[:middle],
            "empty": b"",
            "garbage": os.urandom(500),
            "one bit": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
            "longer": content + b"\0",
        }[how]
    )


@pytest.mark.parametrize("how", ["truncated", "empty", "garbage", "one bit", "longer"])
def test_a_damaged_cell_is_noticed_and_computed_again(tmp_path, how, monkeypatch):
    over = {"signal": [1.0, 2.0]}
    sweep(ShrunkMean(), over, sizes=[10], seeds=2, store=tmp_path / "x.nc")
    before = tree(tmp_path)
    damage(sorted((tmp_path / "x.nc.cells" / "cells").rglob("*.cell"))[1], how)
    calls = count_runs(monkeypatch)
    with pytest.warns(DamagedCell, match="is damaged and is computed again"):
        sweep(ShrunkMean(), over, sizes=[10], seeds=2, store=tmp_path / "x.nc")
    assert len(calls) == 1
    assert tree(tmp_path) == before


def test_a_cell_under_a_wrong_name_is_not_believed(tmp_path):
    sweep(ShrunkMean(), {"signal": [1.0, 2.0]}, sizes=[10], seeds=1, store=tmp_path / "x.nc")
    before = tree(tmp_path)
    one, two = sorted((tmp_path / "x.nc.cells" / "cells").rglob("*.cell"))
    shutil.copy(one, two)
    with pytest.warns(DamagedCell):
        sweep(ShrunkMean(), {"signal": [1.0, 2.0]}, sizes=[10], seeds=1, store=tmp_path / "x.nc")
    assert tree(tmp_path) == before


def test_a_lost_result_is_assembled_again_from_the_cells(tmp_path, monkeypatch):
    sweep(ShrunkMean(), {"signal": [1.0, 2.0]}, sizes=[10], seeds=2, store=tmp_path / "x.nc")
    before = tree(tmp_path)
    (tmp_path / "x.nc").write_bytes(b"not netCDF")
    with pytest.raises(ValueError, match="is unreadable"):
        open_result(tmp_path / "x.nc")
    calls = count_runs(monkeypatch)
    sweep(ShrunkMean(), {"signal": [1.0, 2.0]}, sizes=[10], seeds=2, store=tmp_path / "x.nc")
    assert not calls
    assert tree(tmp_path) == before


@given(
    st.dictionaries(
        st.sampled_from(["a", "about", "b.c", "order"]),
        st.lists(st.floats(allow_nan=False), min_size=0, max_size=4),
        min_size=1,
    ),
    st.integers(0, 10_000),
)
@settings(deadline=None, max_examples=40)
def test_cells_survive_packing_and_every_flipped_bit_is_noticed(arrays, position):
    cell = Cell(
        {name: np.array(value) for name, value in arrays.items()}, {name: ("x",) for name in arrays}, {}, {"a": 1e-9}
    )
    content = pack(cell, "key", {"law": "Toy"})
    back = unpack(content, "key")
    assert list(back.values) == list(arrays)
    assert all(np.array_equal(back.values[name], cell.values[name]) for name in arrays)
    assert (back.dims, back.errors) == (cell.dims, cell.errors)
    at = position % len(content)
    assert unpack(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :], "key") is None
    assert unpack(content[:at], "key") is None


def test_cells_are_held_in_memory_up_to_a_number_of_bytes(tmp_path, monkeypatch):
    keys, cell = [f"{number:02x}" * 32 for number in range(4)], Cell({"risk": np.zeros(100)})
    monkeypatch.setattr("limitlab.lab.store.MEMORY", 2 * cell.nbytes)
    cells = Cells(tmp_path)
    for key in keys:
        cells.write(key, cell, {})
    for key in keys:
        cells.path(key).unlink()
    assert [cells.read(key) is cell for key in keys] == [True, True, False, False]
    without_folder = Cells()
    for key in keys:
        without_folder.write(key, cell, {})
    assert all(without_folder.read(key) is cell for key in keys)


# -- files --------------------------------------------------------------------------------------------------------------


def test_leftovers_of_dead_processes_are_removed_and_others_stay(tmp_path):
    child = subprocess.run(
        [
            sys.executable,
            "-c",
            "import os, sys; from pathlib import Path; from limitlab._core.files import replacing\n"
            "block = replacing(Path(sys.argv[1])); block.__enter__().write_text('half'); os._exit(9)",
            str(tmp_path / "x.nc"),
        ],
        check=False,
    )
    assert child.returncode == 9
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".x.nc.")
    foreign = tmp_path / ".x.nc.00000000-1-00000000-00000000.tmp"
    foreign.write_text("another machine writes this now")
    unrelated = tmp_path / ".x.nc.swp"
    unrelated.write_text("an editor's")
    with replacing(tmp_path / "x.nc") as mine:
        mine.write_text("mine")
        assert clean_leftovers(tmp_path, "x.nc") == 1
        assert mine.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([foreign.name, unrelated.name, "x.nc"])
    os.utime(foreign, (0, 0))
    assert clean_leftovers(tmp_path, "x.nc") == 1


def test_a_sweep_cleans_up_after_killed_ones(tmp_path):
    sweep(ShrunkMean(), {"signal": [1.0, 2.0]}, sizes=[10], seeds=2, store=tmp_path / "x.zarr")
    before = tree(tmp_path)
    dead = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
    )
    with replacing(tmp_path.parent / "sample") as sample:
        sample.write_text("")
        name = sample.name.split(".", 2)[2].replace(f"-{os.getpid()}-", f"-{int(dead.stdout)}-")
    (tmp_path / f".x.zarr.{name}").mkdir()
    (tmp_path / f".x.zarr.{name}" / "half").write_text("half")
    (tmp_path / "x.zarr.cells" / f".sweep.json.{name}").write_text("half")
    cell = next((tmp_path / "x.zarr.cells" / "cells").rglob("*.cell"))
    cell.with_name(f".{cell.name}.{name}").write_text("half")
    sweep(ShrunkMean(), {"signal": [1.0, 2.0]}, sizes=[10], seeds=2, store=tmp_path / "x.zarr")
    assert tree(tmp_path) == before


def test_a_failed_write_leaves_nothing_behind(tmp_path):
    write_whole(tmp_path / "x", b"old")

    def write_half():
        with replacing(tmp_path / "x") as temporary:
            temporary.write_bytes(b"half")
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        write_half()
    assert tree(tmp_path) == {"x": b"old"}


def test_a_directory_takes_the_place_of_a_directory(tmp_path):
    for content in ("old", "new"):
        with replacing(tmp_path / "d") as temporary:
            temporary.mkdir()
            (temporary / content).write_text(content)
    assert tree(tmp_path) == {"d/new": b"new"}


# -- bad stores ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def made(tmp_path):
    sweep(ShrunkMean(), {"signal": [1.0, 2.0]}, sizes=[10], seeds=1, store=tmp_path / "x.nc")
    return tmp_path / "x.nc"


@pytest.mark.parametrize(
    ("law", "over", "complaint"),
    [
        (Fragile(), {"level": [0, 1]}, "holds law = 'sweep_toys:ShrunkMean', not 'sweep_toys:Fragile'"),
        (ShrunkMean(noise=2.0), {"signal": [1.0]}, r"at noise = 1\.0, not 2\.0"),
    ],
)
def test_a_store_of_another_sweep_is_refused(made, law, over, complaint):
    before = tree(made.parent)
    with pytest.raises(ValueError, match=complaint + ": choose another store"):
        sweep(law, over, sizes=[10], seeds=1, store=made)
    assert tree(made.parent) == before


MANIFESTS = [b"", b"{", b"[]", b"{}", b"\xff\xfe", b'{"format": 3}', b"[" * 100_000]
MANIFESTS += [b'{"format": 3, "what": "sweep", "law": "x", "parameters": [], "over": {}}', b'{"format": {}, "what": 1}']


@pytest.mark.parametrize("content", [*MANIFESTS, "missing", "folder"])
def test_a_damaged_manifest_is_written_anew(made, content, monkeypatch):
    before = tree(made.parent)
    manifest = made.with_name("x.nc.cells") / "sweep.json"
    manifest.unlink()
    if content == "folder":
        manifest.mkdir()
    elif content != "missing":
        manifest.write_bytes(content)
    calls = count_runs(monkeypatch)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sweep(ShrunkMean(), {"signal": [1.0, 2.0]}, sizes=[10], seeds=1, store=made)
    assert content == "missing" or any(issubclass(one.category, DamagedCell) for one in caught)
    assert not calls  # the cells were still good
    assert tree(made.parent) == before


def test_a_manifest_of_something_else_is_one_clear_line(tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "sweep.json").write_text('{"mine": 1}')
    with pytest.raises(ValueError, match=r"store '.*x' is unreadable") as caught:
        sweep(ShrunkMean(), {"signal": [1.0, 2.0]}, sizes=[10], seeds=1, store=tmp_path / "x")
    assert "\n" not in str(caught.value)


def forged(path):
    """A file of arrays that is whole and does not describe a cell."""
    write_arrays(path, {}, {"key": path.stem, "dims": 3, "errors": None})


def a_folder(path):
    path.unlink()
    path.mkdir()


def a_file_above(path):
    shutil.rmtree(path.parent)
    path.parent.write_text("a file")


@pytest.mark.parametrize("damage", [forged, a_folder, a_file_above])
def test_damage_of_other_kinds_is_computed_again(made, damage):
    before = tree(made.parent)
    damage(sorted((made.with_name("x.nc.cells") / "cells").rglob("*.cell"))[0])
    with pytest.warns(DamagedCell, match="is computed again"):
        sweep(ShrunkMean(), {"signal": [1.0, 2.0]}, sizes=[10], seeds=1, store=made)
    assert tree(made.parent) == before


def test_old_cells_do_not_pass_for_new_ones(made, monkeypatch):
    from limitlab.lab import store as cells

    now = sweep(ShrunkMean(), {"signal": [1.0, 2.0]}, sizes=[10], seeds=1, store=made).attrs["version"]
    monkeypatch.setattr(cells, "package_version", lambda: "99.0")
    monkeypatch.setattr(cells.Cell.__dataclass_fields__["version"], "default_factory", lambda: "99.0")
    mixed = [cells.Cell({}, version="99.0"), cells.Cell({}, version=now)]
    assert cells.versions_of(mixed) == ", ".join(sorted([now, "99.0"]))
    again = sweep(ShrunkMean(), {"signal": [1.0, 2.0]}, sizes=[10], seeds=1, store=made)
    assert again.attrs["version"] == now  # every cell was computed by that version, whoever assembles them


def test_a_complete_store_on_a_disk_that_can_only_be_read(made, monkeypatch):
    expected = sweep(ShrunkMean(), {"signal": [1.0, 2.0]}, sizes=[10], seeds=1)

    def refused(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    for name in ("write_whole", "replacing", "clean_leftovers"):
        monkeypatch.setattr(f"limitlab.lab.store.{name}", refused)
    found = sweep(ShrunkMean(), {"signal": [1.0, 2.0]}, sizes=[10], seeds=1, store=made)
    xr.testing.assert_identical(found, expected)
    with pytest.raises(OSError, match="cannot write store"):  # what is not there cannot be kept
        sweep(ShrunkMean(), {"signal": [1.0, 2.0, 3.0]}, sizes=[10], seeds=1, store=made)


@pytest.mark.parametrize("other", [2, 99])
def test_a_store_of_another_format_is_refused_and_not_touched(made, other):
    manifest = made.with_name("x.nc.cells") / "sweep.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "format": other}))
    before = tree(made.parent)
    with pytest.raises(ValueError, match=f"store '.*' has format {other}, .*choose another store") as refused:
        sweep(ShrunkMean(), {"signal": [1.0, 2.0]}, sizes=[10], seeds=1, store=made)
    assert "\n" not in str(refused.value)
    assert tree(made.parent) == before


def test_a_store_of_a_comparison_is_refused(tmp_path):
    from limitlab.lab import compare

    compare(ShrunkMean(), sizes=[10, 20], seeds=3, store=tmp_path / "x.nc")
    with pytest.raises(ValueError, match="holds what = 'comparison', not 'sweep'"):
        sweep(ShrunkMean(), {"signal": [1.0]}, sizes=[10], seeds=1, store=tmp_path / "x.nc")


def test_a_raised_revision_does_not_meet_old_cells(made, monkeypatch):
    calls = count_runs(monkeypatch)
    monkeypatch.setattr(ShrunkMean, "revision", 2)
    sweep(ShrunkMean(), {"signal": [1.0, 2.0]}, sizes=[10], seeds=1, store=made)
    assert len(calls) == 2


def test_another_version_is_mentioned(made):
    manifest = made.with_name("x.nc.cells") / "sweep.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "version": "0.0.1"}))
    with pytest.warns(UserWarning, match=r"by limitlab 0\.0\.1"):
        sweep(ShrunkMean(), {"signal": [1.0, 2.0]}, sizes=[10], seeds=1, store=made)


@pytest.mark.parametrize("store", STORES)
def test_what_no_sweep_made_is_not_touched(tmp_path, store):
    precious = tmp_path / store / "precious" if store != "x.nc" else tmp_path / store
    precious.parent.mkdir(exist_ok=True)
    precious.write_text("precious")
    with pytest.raises(ValueError, match="was not made by a sweep"):
        sweep(ShrunkMean(), {"signal": [1.0]}, sizes=[10], seeds=1, store=tmp_path / store)
    assert precious.read_text() == "precious"


@pytest.mark.parametrize("store", STORES)
def test_an_unwritable_path_is_one_clear_line(tmp_path, store):
    (tmp_path / "file").write_text("a file, not a folder")
    with pytest.raises(OSError, match="cannot write store") as caught:
        sweep(ShrunkMean(), {"signal": [1.0]}, sizes=[10], seeds=1, store=tmp_path / "file" / store)
    assert "\n" not in str(caught.value)
    assert "Errno" not in str(caught.value)


def test_cells_of_a_store_are_forced_to_disk_and_those_of_a_cache_are_not(tmp_path, monkeypatch):
    forced = []
    monkeypatch.setattr("limitlab._core.files.force_to_disk", forced.append)
    for lasting in (True, False):
        Cells(tmp_path / str(lasting), lasting=lasting).write("ab" * 32, Cell({"risk": np.array(1.0)}), {})
        assert Cells(tmp_path / str(lasting)).read("ab" * 32).values["risk"] == 1.0
    assert [path.parent.parent.name for path in forced] == ["True"]


def test_a_full_disk_keeps_what_is_finished(tmp_path, monkeypatch):
    from limitlab.lab import store

    writes = []

    def full(path, content, forced=True):
        if len(writes) == 2:  # the manifest, one cell, and then no room
            raise OSError(28, "No space left on device")
        write_whole(path, content, forced)
        writes.append(path)

    with monkeypatch.context() as patch:
        patch.setattr(store, "write_whole", full)
        with pytest.raises(OSError, match=r"cannot write store '.*': No space left on device"):
            sweep(ShrunkMean(), {"signal": [1.0, 2.0]}, sizes=[10], seeds=1, store=tmp_path / "x")
    calls = count_runs(monkeypatch)
    sweep(ShrunkMean(), {"signal": [1.0, 2.0]}, sizes=[10], seeds=1, store=tmp_path / "x")
    assert len(calls) == 1


def test_an_empty_name_is_refused():
    with pytest.raises(ValueError, match="store = '' is not allowed"):
        Store("")


def test_an_unfinished_store_has_no_result(tmp_path):
    with pytest.raises(ValueError, match="has no result yet"):
        open_result(tmp_path / "x.nc")


def test_an_empty_folder_can_become_a_store(tmp_path):
    (tmp_path / "x").mkdir()
    sweep(ShrunkMean(), {"signal": [1.0]}, sizes=[10], seeds=1, store=tmp_path / "x")
    assert (tmp_path / "x" / "result.nc").exists()


def test_no_warnings_from_the_file_formats(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for store in STORES:
            sweep(ShrunkMean(), OVER, sizes=[10], seeds=1, store=tmp_path / store)


def test_a_damaged_file_is_one_sentence_and_nothing_else(tmp_path, capsys):
    place = tmp_path / "r.nc"
    Ridge().theory().to_netcdf(place, engine="h5netcdf")
    whole = place.read_bytes()
    for cut in (100, len(whole) // 2, len(whole) - 400):
        place.write_bytes(whole[:cut] + bytes(len(whole) - cut))
        with pytest.raises(ValueError, match=r"is unreadable: it is damaged"):
            read_dataset(place)
    assert capsys.readouterr().err == ""
