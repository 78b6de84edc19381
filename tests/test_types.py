"""The types that a user's type checker sees: mypy finds `py.typed` and the export stubs, and no public result is `Any`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import limitlab

SCRIPT = """
import limitlab
from limitlab.laws import Ridge
from limitlab.lab import below, claim

law = limitlab.laws.Ridge(ratio=2.0, ridge=0.1)
comparison = limitlab.compare(law)
X, y = limitlab.models.datasets.prepared("diabetes")
forecast = limitlab.Forecast().fit(X, y)
fit = limitlab.applied.scaling_fit([1e6, 1e7], [1e8, 1e9], [3.0, 2.5])

reveal_type(law)  # Ridge
reveal_type(Ridge(ratio=2.0))  # Ridge
reveal_type(law.ratio)  # float
reveal_type(law.theory())  # Dataset
reveal_type(law.simulate(size=100, seed=0))  # Dataset
reveal_type(law.replace(ridge=0.2))  # Ridge
reveal_type(Ridge.check_points())  # Ridge
reveal_type(law.cost(100))  # Cost
reveal_type(comparison)  # Comparison
reveal_type(comparison.verdict)  # 'agree'
reveal_type(comparison.passed)  # bool
reveal_type(comparison.table())  # DataFrame
reveal_type(comparison.plot())  # Figure
reveal_type(limitlab.sweep(law, over={"ratio": [0.5, 2.0]}))  # Dataset
reveal_type(limitlab.optimal(law, over="ridge", minimise="test_error"))  # Dataset
reveal_type(limitlab.plan(law, target={"test_error": 0.3}, solve_for="ratio"))  # Dataset
reveal_type(limitlab.verify(["J5"]))  # Record
reveal_type(limitlab.figure("ridge-path"))  # Figure
reveal_type(limitlab.reproduce("result.json"))  # Reproduction
reveal_type(limitlab.stop(law))  # StoppingPlan
reveal_type(limitlab.stop(law, over={"noise": [0.5, 1.0]}))  # Dataset
reveal_type(limitlab.explore(law))  # Viewable
reveal_type(limitlab.load_laws("my_laws.py"))  # Law
reveal_type(X)  # ndarray
reveal_type(forecast)  # Forecast
reveal_type(forecast.learning_curve(n=[50, 400]))  # Dataset
reveal_type(forecast.predict(X))  # ndarray
reveal_type(limitlab.ForecastClassifier().fit(X, y))  # ForecastClassifier
reveal_type(fit)  # ScalingFit
reveal_type(fit.interval("a"))  # tuple[float, float]
reveal_type(limitlab.applied.sample_size(20, auc=0.8, prevalence=0.2))  # SampleSize
reveal_type(limitlab.plotting.new_figure())  # Figure
reveal_type(limitlab.testing.check_law(law))  # list[str]
reveal_type(below("error", 0.1, 0.2))  # Criterion
reveal_type(claim("X1", "Area", "Statement"))  # Claim
reveal_type(limitlab.__version__)  # str
"""
"""A user's script. The comment after a call is a word of the expected type."""


@pytest.mark.slow  # mypy reads limitlab and its dependencies: 20 s without a cache
def test_no_public_result_is_any(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = true\n")  # not the configuration of limitlab
    # on PYTHONPATH mypy treats limitlab like an installed package: without py.typed every name would be Any
    environment = {**os.environ, "PYTHONPATH": str(Path(str(limitlab.__file__)).parents[1])}
    environment.pop("MYPYPATH", None)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), script.name],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    revealed = {
        int(line): words
        for line, words in re.findall(r'^script\.py:(\d+): note: Revealed type is "(.*)"$', done.stdout, re.M)
    }
    asked = {number: line for number, line in enumerate(SCRIPT.splitlines(), 1) if line.startswith("reveal_type(")}
    assert revealed.keys() == asked.keys()
    wrong = {
        line: revealed[number]
        for number, line in asked.items()
        if line.split("  # ")[1] not in revealed[number] or re.search(r"(^|-> )Any$", revealed[number])
    }
    assert wrong == {}
