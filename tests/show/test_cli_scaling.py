"""`limitlab scaling-fit`: its table, JSON, files, exit codes and refusals."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from limitlab.show.cli import app


@pytest.fixture
def tables(tmp_path):
    rng = np.random.default_rng(0)

    def write(name, N, D, header):
        loss = (1.82 + 482 * N**-0.348 + 2085 * D**-0.366) * np.exp(0.01 * rng.standard_normal(N.size))
        rows = "\n".join(f"{n:.6g},{d:.6g},{value:.5f}" for n, d, value in zip(N, D, loss, strict=True))
        path = tmp_path / name
        path.write_text(f"{header}\n{rows}\n", encoding="utf-8")
        return str(path)

    N, D = (x.ravel() for x in np.meshgrid(np.geomspace(5e7, 1e10, 8), np.geomspace(1e9, 3e11, 6)))
    line = np.geomspace(5e7, 1e10, 24)
    return {"grid": write("grid.csv", N, D, "Params,tokens,val_loss"), "ray": write("ray.csv", line, 20 * line, "N,D,loss")}


def run(*arguments):
    return CliRunner().invoke(app, ["scaling-fit", *arguments])


def test_table_with_a_plan_and_files(tables, tmp_path):
    out, plot = tmp_path / "fit.csv", tmp_path / "fit.png"
    result = run(tables["grid"], "--compute", "1e22,1e24", "--out", str(out), "--plot", str(plot))
    assert result.exit_code == 0, result.output
    assert "beyond the largest run" in result.output
    assert out.read_text(encoding="utf-8").startswith("parameter,value,low,high")
    assert plot.stat().st_size > 10_000


def test_json_is_the_fit(tables):
    found = json.loads(run(tables["grid"], "--compute", "1e22", "--json").stdout)
    assert found["separable"] is True
    values = {row["parameter"]: float(row["value"]) for row in found["parameters"]}
    assert values["a"] == pytest.approx(0.348, abs=0.06)
    (plan,) = found["optimum"]
    assert plan["N_low"] < plan["N"] < plan["N_high"]


def test_a_ray_is_refused_a_plan(tables):
    result = run(tables["ray"], "--compute", "1e22")
    assert result.exit_code == 1
    assert "not determined by these data" in result.output
    assert run(tables["ray"]).exit_code == 0


def test_bad_input_is_one_line(tables, tmp_path):
    empty = tmp_path / "few.csv"
    empty.write_text("N,loss\n1,2\n2,3\n", encoding="utf-8")
    for arguments, message in (
        ((str(empty),), "has no column for data (D) or compute"),
        ((tables["grid"], "--size", "weights"), "has no column 'weights'"),
        ((str(tmp_path / "none.csv"),), "No such file"),
        ((tables["grid"], "--out", str(tmp_path / "fit.nc")), "must end in .csv"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2
        assert message in result.output
