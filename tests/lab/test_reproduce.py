"""A saved result is computed again from its provenance, and nothing in it is ever run."""

import json
import pickle

import numpy as np
import pytest
import xarray as xr

import limitlab as ll
from limitlab.lab import read_result, reproduce
from limitlab.laws import Distillation, EarlyStopping, Ridge


def saved(result, path):
    result.to_netcdf(path, engine="h5netcdf")
    return path


@pytest.mark.parametrize(
    "make",
    [
        lambda: Ridge(ratio=2.0, noise=0.3).theory(),
        lambda: EarlyStopping(times=(0.5, 1.0)).theory(),
        lambda: ll.sweep(Ridge(), {"ratio": [0.5, 2.0], "ridge": [0.1, 1.0]}),
        lambda: Ridge(ratio=2.0).simulate(20, 3),
        lambda: EarlyStopping().simulate_batch(20, [1, 5]),
        lambda: ll.sweep(
            EarlyStopping(), {"noise": [0.1, 0.2], "times": [0.5, 1.0]}, sizes=[10, 20], seeds=[4, 2], with_theory=True
        ),
    ],
)
def test_the_same_numbers_to_the_last_bit(make, tmp_path):
    found = reproduce(saved(make(), tmp_path / "x.nc"))
    assert found.verdict == "bitwise"
    assert found.matches
    assert "the same to the last bit" in str(found)


@pytest.mark.parametrize("store", ["x.nc", "x.zarr", "x"])
def test_stores(tmp_path, store):
    law = Ridge(eigenvalues=(1.0, 2.0), weights=(0.5, 0.5), signal_energy=(1.0, 1.0))
    ll.sweep(
        law, {"eigenvalues": [(1.0, 4.0), (1.0, 9.0)], "ridge": [0.1, 1.0]}, sizes=[12], seeds=2, store=tmp_path / store
    )
    assert reproduce(tmp_path / store).verdict == "bitwise"


def test_a_comparison(tmp_path):
    ll.compare(Ridge(ratio=0.5), sizes=[10, 20], seeds=[3, 4, 9], store=tmp_path / "x.nc")
    assert reproduce(tmp_path / "x.nc").verdict == "bitwise"


def test_what_was_changed_is_found(tmp_path):
    result = Ridge().theory()
    rounded = result.copy(deep=True)
    rounded["test_error"] = rounded.test_error * (1 + 1e-15)
    assert reproduce(saved(rounded, tmp_path / "a.nc")).verdict in ("rounding", "bitwise")
    near = Distillation().theory()
    near["excess_risk"].values = near.excess_risk.values + 0.9 * near.excess_risk.attrs["numerical_error"]
    assert reproduce(saved(near, tmp_path / "b.nc")).verdict in ("rounding", "accuracy")
    far = result.copy(deep=True)
    far["test_error"] = far.test_error * 1.001
    found = reproduce(saved(far, tmp_path / "c.nc"))
    assert found.verdict == "differs"
    assert not found.matches
    assert found.differences["test_error"] == pytest.approx(1e-3, rel=0.01)
    old = result.assign_attrs(version="0.0.1", revision=7)
    words = str(reproduce(saved(old, tmp_path / "d.nc")))
    assert "Saved by limitlab 0.0.1, revision 7" in words


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        (dict(law="os:system"), "there is no law 'os:system'"),
        (dict(law="Nothing"), "give its file with --laws"),
        (dict(parameters="[1"), "its parameters are not readable"),
        (dict(parameters="[1]"), "its parameters are not readable"),
        (dict(parameters='{"ratio": -1}'), "ratio = -1"),
        (dict(parameters="[" * 50_000), "its parameters are not readable"),
        (dict(kind="figure"), "law, parameters and kind"),
        (dict(law="ConvexLoss", parameters='{"activation": "numpy:tanh#12345678"}'), "pass the function itself"),
    ],
)
def test_what_cannot_be_computed_again_is_one_sentence(tmp_path, changes, complaint):
    file = saved(Ridge().theory().assign_attrs(changes), tmp_path / "x.nc")
    with pytest.raises(ValueError, match=complaint) as caught:
        reproduce(file)
    assert "\n" not in str(caught.value)


def test_other_files(tmp_path):
    for name, content in (("x.csv", b"a\n1"), ("x.json", b"{}"), ("y.json", b"["), ("x.nc", b"no"), ("x.txt", b"no")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=r"provenance|not the JSON|unreadable"):
            reproduce(tmp_path / name)
    with pytest.raises(ValueError, match="does not exist"):
        reproduce(tmp_path / "nothing.nc")


class Bomb:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return (exec, ("raise SystemExit('code was run')",))


def test_nothing_is_unpickled(tmp_path):
    folder = tmp_path / "x.zarr"
    Ridge().theory().to_zarr(folder, zarr_format=2)
    meta = json.loads((folder / "test_error" / ".zarray").read_text())
    meta.update(dtype="|O", filters=[{"id": "pickle", "protocol": 5}], compressor=None, fill_value=None)
    (folder / "test_error" / ".zarray").write_text(json.dumps(meta))
    (folder / "test_error" / "0").write_bytes(pickle.dumps(np.array([Bomb()], dtype=object)))
    with pytest.raises(ValueError, match="unreadable"):
        read_result(folder)


def test_json_of_a_command(tmp_path):
    from limitlab._core.page import describe_result, jsonable

    law = Ridge(ratio=1.0, ridge=0.0)
    (tmp_path / "x.json").write_text(json.dumps(jsonable(describe_result(law.theory()))))
    assert isinstance(read_result(tmp_path / "x.json"), xr.Dataset)
    assert reproduce(tmp_path / "x.json").verdict == "bitwise"  # infinities too
