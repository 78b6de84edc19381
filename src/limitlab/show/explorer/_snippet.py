"""Python code that reproduces a view without the explorer."""

from __future__ import annotations

from typing import Any

from limitlab._core.draws import is_builtin, plain_parameters
from limitlab._core.law import Law
from limitlab._core.registry import package_of
from limitlab.errors import Refused
from limitlab.show.explorer._address import FEW_POINTS, POINTS, Axis, State, controls_of, dimension, live

EXPERIMENT_POINTS = 9
"""Number of points of a curve with experiments."""


def snippet(state: State, law: Law, measured: bool = False) -> str:
    """Return the code for a state, with experiments if `measured` is true.

    >>> from limitlab.laws import Ridge
    >>> from limitlab.show.explorer._address import start
    >>> print(snippet(start(Ridge), Ridge()))
    import limitlab as ll
    import matplotlib.pyplot as plt
    import numpy as np
    <BLANKLINE>
    law = ll.laws.Ridge()
    limit = ll.sweep(law, over={"ratio": np.geomspace(0.01, 100.0, 161)})
    plt.plot(limit["ratio"], limit["test_error"], label="test_error")
    plt.xlabel("ratio"); plt.xscale("log"); plt.legend(); plt.show()
    <BLANKLINE>
    """
    body = {"curve": _curve, "phase": _phase, "compare": _compare, "plan": _plan, "forecast": _forecast}[state.mode]
    lines = body(state, law, measured)
    if state.mode != "forecast":
        lines = [made(law), *lines]
    text = "\n".join(lines)
    builtin = is_builtin(type(law))
    imports = ["import limitlab as ll"]
    imports += ["import matplotlib.pyplot as plt"] if "plt." in text else []
    imports += ["import numpy as np"] if "np." in text else []
    if not builtin:
        package = package_of(type(law))
        source = package.source if package is not None else ""
        imports += [f'll.load_laws("{source}")  # the path of your file or folder'] if source else []
        imports += [f"from {type(law).__module__} import {type(law).__name__}"]
    return "\n".join([*imports, "", text, ""])


def made(law: Law) -> str:
    """Return the line that makes a law, with the parameters that differ from the defaults.

    >>> from limitlab.laws import Ridge
    >>> made(Ridge(ratio=3.0, eigenvalues=(1, 4), weights=(0.5, 0.5), signal_energy=(1, 1)))
    'law = ll.laws.Ridge(ratio=3.0, eigenvalues=[1.0, 4.0], weights=[0.5, 0.5], signal_energy=[1.0, 1.0])'
    """
    now, default = plain_parameters(law), plain_parameters(type(law)())
    arguments = ", ".join(f"{name}={_literal(value)}" for name, value in now.items() if value != default[name])
    home = "ll.laws." if is_builtin(type(law)) else ""
    return f"law = {home}{type(law).__name__}({arguments})"


def range_text(law: Law, along: Axis, points: int | None = None) -> str:
    """Return the values of an axis as an expression."""
    count = points or (POINTS if live(type(law), along.name) else FEW_POINTS)
    text = f"np.{'geomspace' if along.log else 'linspace'}({along.low!r}, {along.high!r}, {count})"
    return f"np.unique(np.round({text}))" if controls_of(type(law))[along.name].whole else text


def _curve(state: State, law: Law, measured: bool) -> list[str]:
    name, dim = state.x.name, dimension(type(law), state.x.name)
    lines = [f'limit = ll.sweep(law, over={{"{name}": {range_text(law, state.x)}}})']
    lines += [f'plt.plot(limit["{dim}"], limit["{shown}"], label="{shown}")' for shown in state.observables]
    if measured:
        few = range_text(law, state.x, EXPERIMENT_POINTS)
        lines.append(
            f'draws = ll.sweep(law, over={{"{name}": {few}}}, sizes={state.size}, seeds={state.draws}).squeeze("size")'
        )
        for shown in state.observables:
            error = f'draws["{shown}"].std("seed", ddof=1) / {state.draws}**0.5'
            bars = f', yerr={error}, fmt="o"' if state.draws > 1 else ', fmt="o"'
            lines.append(f'plt.errorbar(draws["{dim}"], draws["{shown}"].mean("seed"){bars})')
    log = ' plt.xscale("log");' if state.x.log else ""
    return [*lines, f'plt.xlabel("{dim}");{log} plt.legend(); plt.show()']


def _phase(state: State, law: Law, measured: bool) -> list[str]:
    if state.y is None:
        raise Refused(f"{state.law} has a single numerical parameter, and a phase diagram needs two: choose another law")
    over = ", ".join(f'"{along.name}": {range_text(law, along, state.grid)}' for along in (state.x, state.y))
    across, up = dimension(type(law), state.x.name), dimension(type(law), state.y.name)
    scales = "".join(f", {side}scale='log'" for side, along in (("x", state.x), ("y", state.y)) if along.log)
    return [
        f"limit = ll.sweep(law, over={{{over}}})",
        f'limit["{state.observables[0]}"].plot(x="{across}", y="{up}"{scales}); plt.show()',
    ]


def _compare(state: State, law: Law, measured: bool) -> list[str]:
    return ["result = ll.compare(law)", "print(result)"]


def _plan(state: State, law: Law, measured: bool) -> list[str]:
    target = f'{{"{state.observables[0]}": {state.target if state.target is not None else 0.5!r}}}'
    bounds = f"({state.x.low!r}, {state.x.high!r})"
    return [
        f'answer = ll.plan(law, target={target}, solve_for="{state.x.name}", bounds={bounds})',
        f'print(float(answer["{state.x.name}"]))',
    ]


def _forecast(state: State, law: Law, measured: bool) -> list[str]:
    return [
        "from limitlab.applied.forecast.tables import read_table",
        'table = read_table("your.csv", "your_column")  # insert your file and its target; the explorer does not store uploads',
        'model = ll.Forecast("auto", ridge="best", intercept=1.0, task="classification" if table.labels else "regression")',
        "model.fit(table.X, table.y)",
        "rows = len(table.X)",
        "print(model.learning_curve(np.unique(np.round(np.geomspace(max(2, rows / 50), 2 * rows, 12)))))",
    ]


def _literal(value: Any) -> str:
    """Return a JSON value as Python code. Infinity is a text in JSON."""
    if value in ("Infinity", "-Infinity"):
        return f'float("{"-" if value.startswith("-") else ""}inf")'
    if isinstance(value, list):
        return "[" + ", ".join(map(_literal, value)) + "]"
    return repr(value)
