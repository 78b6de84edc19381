"""The inputs of the kinds `commands` and `errors` of `snapshot.py`: calls of the command line, and calls that must be refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

COMMANDS = """
guide laws show cite predict simulate compare sweep reproduce plan optimal stop sample-size forecast scaling-fit verify figure report
explore bench
"""
LAW_COMMANDS = ("predict", "simulate", "compare", "plan", "optimal", "stop")
CALLS = (
    "laws",
    "figure --list",
    "cite ridge",
    "predict ridge --ratio 2 --ridge 0.1 --noise 0.5",
    "predict ridge --ratio 0.1:10:8log --ridge 0,0.1 --out p.csv --plot p.svg",
    "predict ridge --ratio 0.5,2 --best",
    "predict marchenko-pastur --ratio 0.5",
    "predict max-margin --ratio 0.3,0.7",
    "predict early-stopping --ratio 0.8 --times 0.1,1,10",
    "predict two-layer-dynamics --out p.csv",
    "predict nearest-neighbours --samples 5,10:100:4log",
    "predict logistic-calibration --ratio 0.1",
    "simulate ridge --ratio 0.5,2 --size 40 --seeds 3 --out s.csv --plot s.svg",
    "simulate nearest-neighbours --size 20 --seed 5",
    "simulate early-stopping --size 30 --seeds 2 --observables test_error",
    "compare ridge --size 20,40,80 --seeds 8 --out c.csv --plot c.svg",
    "compare ridge --ratio 2 --size 20,40 --seeds 2",
    "compare nearest-neighbours --size 10,20,40 --seeds 10 --engine threads",
    "plan ridge --noise 0.5 --target test_error=0.4 --solve-for ratio --plot a.svg",
    "plan ridge --noise 0.5 --target test_error=0.01 --solve-for ratio",
    "optimal ridge --ratio 2 --noise 0.5 --over ridge --minimise test_error --out o.csv",
    "stop early-stopping --ratio 0.8 --noise 0.5,1 --out t.csv --plot t.svg",
    "stop --width 20 --sample-ratio 10",
    "sample-size --predictors 20 --auc 0.8 --prevalence 0.2 --plot n.svg",
    "sample-size --pilot pilot.csv --target died --predictors 5",
    "forecast houses.csv --target price --n 20:300:5log --splits 2 --error 0.3 --out f.csv --plot f.svg",
    "forecast houses.csv --target kind --kernel relu-nngp --n 20,60",
    "forecast houses.csv --target price --groups shop --kernel rbf --n 20,60",
    "forecast houses.csv --target price --time size --kernel linear --n 20,60",
    "scaling-fit runs.csv --compute 1e22,1e24 --out r.csv --plot r.svg",
    "scaling-fit ray.csv --compute 1e22",
    "verify J3 J5 --out v.md",
    "sweep sweep.toml --out w.csv --plot w.svg",
    "sweep sweep.toml --store kept && sweep sweep.toml --store kept",
    "sweep sweep.toml --store kept.nc && reproduce kept.nc",
    "predict ridge --ratio 2 --out p.nc && reproduce p.nc",
    "simulate ridge --size 30 --seeds 2 --out s.nc && reproduce s.nc",
    "compare ridge --size 20,40 --seeds 3 --out c.nc && reproduce c.nc",
    "figure ridge-double-descent --out d.svg --format svg,png",
    "figure J5 --no-data",
    "guide --have model --want stop --model network",
    "guide --have data --want more-data --model linear",
    "guide --have study --want how-much --model logistic",
    "report --laws marchenko-pastur --workers 1 --fresh",
    "sweep sweep.toml --dry-run --json",
    "--version",
)
"""Each is run as it stands and with --json."""
COMPLETIONS = "predict ri|predict ridge --no|figure ridge|figure |verify J|verify |predict |sw|simulate Mar"
"""Beginnings of a command line at which the Tab key is pressed."""


def command_lines(laws: list[str]) -> Iterator[str]:
    """Every call of the command line that is recorded."""
    yield from ("--help", "")
    yield from (f"{command} --help" for command in COMMANDS.split())
    yield from (f"{command} {law} --help" for law in ("ridge", "two-layer-dynamics") for command in LAW_COMMANDS)
    yield from (f"predict {law} --help" for law in laws)
    yield from (f"show {law}{flag}" for law in laws for flag in ("", " --json"))
    yield from (f"cite {law} --json" for law in laws)
    for call in CALLS:
        yield call
        if "--version" not in call and "--json" not in call:
            yield f"{call} --json"


def completion(words: str) -> dict[str, str]:
    """The environment variables with which a shell asks what the Tab key offers."""
    count = len(words.split()) + words.endswith(" ")
    return {"_LIMITLAB_COMPLETE": "complete_bash", "COMP_WORDS": f"limitlab {words}", "COMP_CWORD": str(count)}


def write_inputs(folder: Path) -> set[Path]:
    """Small tables and sweep files, as inputs of commands."""
    import numpy as np

    rng = np.random.default_rng(0)

    def table(header: str, *columns: Any) -> str:
        return "\n".join([header, *(",".join(str(value) for value in row) for row in zip(*columns, strict=True))]) + "\n"

    size, city = rng.uniform(0, 1, 120).round(6), rng.choice(["A", "B", "C", "D"], 120)
    price = (size + 0.5 * (city == "B") + 0.2 * rng.standard_normal(120)).round(6)
    x = rng.standard_normal((200, 5)).round(6)
    died = (rng.uniform(size=200) < 1 / (1 + np.exp(1 - x @ np.full(5, 0.5)))).astype(int)
    n, d = (grid.ravel() for grid in np.meshgrid(np.geomspace(5e7, 1e10, 6), np.geomspace(1e9, 3e11, 5)))
    line = np.geomspace(5e7, 1e10, 20)
    loss = [1.82 + 482 * a**-0.348 + 2085 * b**-0.366 for a, b in ((n, d), (line, 20 * line))]
    noisy = [(one * np.exp(0.01 * rng.standard_normal(one.size))).round(6) for one in loss]
    texts = {
        "houses.csv": table(
            "size,city,shop,price,kind", size, city, np.arange(120) % 17, price, np.where(price > 0.8, "dear", "cheap")
        ),
        "pilot.csv": table("a,b,c,d,e,died", *x.T, died),
        "runs.csv": table("Params,tokens,val_loss", n, d, noisy[0]),
        "ray.csv": table("N,D,loss", line, 20 * line, noisy[1]),
        "constant.csv": table("a,b", size, np.ones(120)),
        "few.csv": "N,loss\n1,2\n2,3\n",
        "empty.csv": "",
        "sweep.toml": 'law = "NearestNeighbours"\nsizes = [10, 20]\nseeds = 3\n[over]\nneighbours = [1, 2]\n',
        "bad1.toml": "law = ",
        "bad2.toml": "law = 'Ridgy'\n[over]\nratio=[1]",
        "bad3.toml": "law = 'Ridge'\n[over]\nrtio=[1]",
        "bad4.toml": "law = 'Ridge'\n[over]\nratio='1:2'",
        "bad5.toml": "law = 'Ridge'\n",
        "bad6.toml": "law = 'Ridge'\nsize = 3\n[over]\nratio=[1]",
        "bad7.toml": "law = 'Ridge'\nengine = 'proceses'\n[over]\nratio=[1]",
        "bad8.toml": "law = 'Ridge'\nsizes = ['a']\n[over]\nratio=[1]",
        "taken.nc": "something else",
    }
    for name, content in texts.items():
        (folder / name).write_text(content, encoding="utf-8")
    return {folder / name for name in texts}


def names(internals: SimpleNamespace) -> dict[str, Any]:
    """The names that the expressions of `BAD_CALLS` use."""
    import numpy as np

    import limitlab as ll

    x, y = np.random.default_rng(0).standard_normal((2, 30, 3))
    spectrum = ll.Forecast.from_spectrum([1.0, 0.5], [1.0, 1.0], 100)
    common = {"L": ll.laws, "A": ll.applied, "F": ll.Forecast, "np": np, "nan": math.nan, "inf": math.inf}
    return {**vars(ll), **vars(internals), **common, "ll": ll, "R": ll.laws.Ridge(), "x": x, "y": y[:, 0], "S": spectrum}


BAD_CALLS = """
L.Ridge(ratio=-1)
L.Ridge(ratio=0, ridge=-5, noise=nan)
L.Ridge(2.0)
L.Ridge(2.0, 0.1)
L.Ridge(signal=1.0)
L.Ridge(rtio=1.0)
L.Ridge(ratio='2')
L.Ridge(ratio=None)
L.Ridge(ratio=True)
L.Ridge(ratio=[1.0, 2.0])
L.Ridge(eigenvalues=())
L.Ridge(eigenvalues=(1.0, 2.0))
L.Ridge(eigenvalues=(1.0, nan), weights=(0.5, 0.5))
L.Ridge(ratio=10**400)
L.Ridge().replace(ridg=1)
L.Ridge.model_validate_json('{"ratio": "a"}')
R.nothing
L.Ridgy
ll.Ridge
ll.nothing
setattr(R, 'ratio', 3.0)
setattr(L.Ridge, '__doc__', 'x')
L.EarlyStopping(time=1.0)
L.EarlyStopping(times=())
L.EarlyStopping(times=(-1.0,))
L.TwoLayerDynamics(steps=5)
L.NearestNeighbours(samples=2.5)
L.Network()
R.evaluate(rati=[1.0])
R.evaluate(ratio=[-1.0])
R.evaluate(ratio=[1.0, 2.0], ridge=[1.0, 2.0, 3.0])
R.evaluate(ratio=['a'])
R.evaluate(eigenvalues=[1.0])
R.experiment(20, 1, ratio=[1.0])
R.simulate(1, 0)
R.simulate(2.5, 0)
R.simulate('20', 0)
R.simulate(True, 0)
R.simulate(20, -1)
R.simulate(20, 'a')
R.simulate(10**7, 1)
R.simulate_batch(20, [])
R.replace(ratio=inf).simulate(20, 1)
R.cost(0)
R.rates('nothing')
L.parameter()
L.observable(1, 2, 3)
L.shared('nothing')
find_law('ridgy')
find_law('')
find_law('law')
find_claims(['Z99'])
find_claims(['J'])
find_figure('nothing')
find_figure('ridge-doubl-descent')
find_figure('M99')
ll.figure('nothing')
ll.compare(R, sizes=[1])
ll.compare(R, sizes=[])
ll.compare(R, sizes='a')
ll.compare(R, seeds=1)
ll.compare(R, seeds=[1, 1])
ll.compare(R, [20], 2, level=2.0)
ll.compare(R, [20], 2, resolution=-1.0)
ll.compare(R, [20], 2, budget=nan)
ll.compare(R, [20], 2, observables=['nothing'])
ll.compare(R, [20], 2, engine='proceses')
ll.compare(R, [20], 2, engine=-1)
ll.compare('ridge')
ll.compare(R, [20], 2, store='taken.nc')
ll.sweep(R, {})
ll.sweep(R, {'rtio': [1.0]})
ll.sweep(R, {'ratio': []})
ll.sweep(R, {'ratio': [-1.0]})
ll.sweep(R, {'ratio': 'abc'})
ll.sweep(R, {'ratio': '1:2'})
ll.sweep(R, {'ratio': '0:2:5log'})
ll.sweep(R, {'ratio': [1.0, 1.0]})
ll.sweep(R, {'ratio': [1.0]}, sizes=[20], engine='dask')
ll.sweep(R, {'ratio': [1.0]}, sizes=[20], engine=0)
ll.sweep(R, {'ratio': [1.0]}, sizes=[20], engine=3.5)
ll.sweep(R, {'ratio': [1.0]}, sizes=[20], engine='tcp://nowhere.invalid:1x')
ll.sweep(R, {'ratio': [1.0]}, sizes=[20], seeds=0)
ll.sweep(R, {'ratio': [1.0]}, seeds=3)
ll.sweep(R, {'ratio': [1.0]}, sizes=[20], seeds=2, store='taken.nc')
ll.sweep(R, {'ratio': [1.0]}, sizes=[20], seeds=2, store='/proc/nothing/x.nc')
ll.sweep(L.Ridge, {'ratio': [1.0]})
ll.reproduce('taken.nc')
ll.reproduce('nothing.nc')
ll.reproduce('houses.csv')
ll.plan(R, {'nothing': 1.0}, 'ratio')
ll.plan(R, {'test_error': nan}, 'ratio')
ll.plan(R, {'test_error': 0.5}, 'nothing')
ll.plan(R, {'test_error': -1.0}, 'ratio')
ll.plan(R, {}, 'ratio')
ll.plan(R, {'test_error': 0.5}, 'ratio', (3.0, 1.0))
ll.plan(R, {'test_error': 0.5}, 'ratio', prefer='best')
ll.plan(R, {'test_error': 0.5}, 'eigenvalues')
ll.optimal(R, 'nothing')
ll.optimal(R, 'ridge', 'nothing')
ll.optimal(R, 'ridge', 'test_error', (-1.0, 1.0))
ll.optimal(L.WideNetwork())
ll.stop(R)
ll.stop(L.EarlyStopping(), end=-1.0)
ll.stop(L.EarlyStopping(), slack=-1.0)
ll.stop(L.EarlyStopping(), over={'rtio': [1.0]})
F('nothing').fit(x, y)
F(ridge=-1).fit(x, y)
F(ridge='worst').fit(x, y)
F(task='ranking').fit(x, y)
F(method='magic').fit(x, y)
F(dtype='int8').fit(x, y)
F(rank=1).fit(x, y)
F().fit(x, y[:-1])
F().fit(x, None)
F().fit(x, np.ones(30))
F().fit(np.full((30, 3), nan), y)
F().fit(x, np.where(y > 0, y, inf))
F().fit(x[:1], y[:1])
F().fit(x[:, 0], y)
F().fit(np.zeros((30, 0)), y)
F().fit(x, y + 1j)
F().fit(x, y, groups=np.zeros(30))
F('precomputed').fit(x, y)
F().predict_error(10)
F().fit(x, y).predict_error(0)
F().fit(x, y).predict_error(nan)
F().fit(x, y).learning_curve([10], metric='auc')
F().fit(x, y).learning_curve([10], band=2.0)
F().fit(x, y).samples_for(-1.0)
F().fit(x, y).measure([100])
F(nothing=1)
F.from_spectrum([1.0], [1.0, 2.0], 10)
F.from_spectrum([-1.0], [1.0], 10)
F.from_spectrum([1.0], [1.0], 0)
S.measure([10])
S.predict_error(10, corrected=True)
ll.ForecastClassifier().fit(x, np.zeros(30))
A.scaling_fit([1.0, 2.0], [1.0, 2.0], [1.0, 2.0])
A.scaling_fit(np.arange(1.0, 11), np.arange(1.0, 10), np.ones(10))
A.scaling_fit(-np.arange(1.0, 11), np.arange(1.0, 11), np.ones(10))
A.scaling_fit(np.arange(1.0, 11), np.arange(1.0, 11), np.full(10, nan))
A.scaling_fit(np.arange(1.0, 11), np.arange(1.0, 11), np.ones(10), level=2.0)
A.scaling_fit(np.arange(1.0, 11), None, np.ones(10))
A.scaling_fit(np.arange(1.0, 11), np.arange(1.0, 11), np.ones(10), flops=-1.0)
A.sample_size()
A.sample_size(0, 0.8, 0.2)
A.sample_size(20, 0.4, 0.2)
A.sample_size(20, 0.8, 1.2)
A.sample_size(20, 0.8, nan)
A.sample_size(20, 0.8, 0.2, calibration_slope=1.5)
A.sample_size(20, 0.8, 0.2, auc_loss=-0.1)
A.sample_size(20, 0.8, 0.2, risk_no_fit=0)
A.sample_size(20.5, 0.8, 0.2)
A.sample_size(pilot='nothing.csv', target='died')
A.sample_size(pilot='pilot.csv', target='nothing')
A.spectrum()
A.nothing
L.nngp(x, layers=0)
L.nngp(x, activation='nothing')
L.nngp(x, x[:, :2])
L.nngp(x[0])
L.nngp(np.full((2, 2), nan))
L.ntk(x, weight_std=-1.0)
L.ntk(x, bias_std=nan)
L.ntk(x, dtype='int32')
L.dual('relu', -1.0, 1.0, 0.0)
L.dual('relu', 1.0, 1.0, 2.0)
L.dual('nothing', 1.0, 1.0, 0.0)
L.dual(3, 1.0, 1.0, 0.0)
L.conv_ntk(x, x, depth=0)
L.conv_ntk(x, x, filter=2)
L.resnet_ntk(x, blocks=-1)
L.fully_connected(layers=-1)
L.convolutional(readout='nothing')
L.kernel_gradient_flow(x, y, y, [1.0])
L.kernel_gradient_flow(np.eye(30), y, y, [-1.0])
L.gegenbauer_coefficients('relu', 1, 3)
L.gegenbauer_coefficients('nothing', 10, 3)
L.separability_threshold('nothing', 0.5)
L.kernel_floor(-1.0, 1.0, 1.0, 0.1)
L.hessian_inertia(0, 1, 1)
L.rademacher_linear(x, -1.0)
L.saddle_index([1.0], 0, [0])
L.dichotomies(-1, 3)
L.degree_two_step(-1.0)
L.poisson_radius(-1.0, 1.0)
L.width_double_descent([])
L.empirical_ntk(None, None, x)
all_claims()['J5'].run(quick=True, nothing=1)
""".strip().splitlines()

BAD_COMMANDS = """
predict ridge --ratio -1
predict ridge --ratio nan
predict ridge --ratio abc
predict ridge --signal 1
predict nearest-neighbours --samples 2.5
predict ridge --jsn
predict ridge --ratio 1:2
predict ridge --rtio 2
predict ridge --ratio
predict ridge 2
predict ridge --ratio 1 --ratio 2
predict ridge --eigenvalues 1,2
predict ridge --eigenvalues [1
predict ridgy
predict --ratio 2
predict
predict ridge --observables tst_error
predict ridge --plot x.png
predict ridge --ratio 1,2 --plot x.jpeg
predict ridge --out x.xlsx
predict ridge --out /no/such/folder/x.csv
predict wide-network --best
compare ridge --ratio 1,2
compare ridge --size 10,x
compare ridge --size 1
compare ridge --seeds 1
compare ridge --seeds many
compare ridge --engine proceses
simulate ridge --size 0
simulate ridge --seeds 0
simulate ridge --seed -1
simulate ridge --size 10000000
plan ridge --solve-for ratio
plan ridge --target test_error --solve-for ratio
plan ridge --target nothing=1 --solve-for ratio
plan ridge --target test_error=1 --solve-for ratio --bounds 1
plan ridge --target test_error=1 --solve-for ratio --prefer best
optimal ridge --minimise nothing
stop ridge
sweep nothing.toml
sweep bad1.toml
sweep bad2.toml
sweep bad3.toml
sweep bad4.toml
sweep bad5.toml
sweep bad6.toml
sweep bad7.toml
sweep bad8.toml
sweep sweep.toml --store taken.nc
sweep sweep.toml --laws nothing.py
sweep sweep.toml --dry-run --workers 0
reproduce nothing.nc
reproduce taken.nc
verify Z99
verify J5 --out v.txt
figure
figure no-such-figure
figure ridge-double-descent --out a.gif
figure ridge-double-descent --format png,gif
report --out /no/such/folder/report.html
report --laws ridgy
show nothing
cite nothing
guide --have nothing
guide
forecast
forecast houses.csv
forecast houses.csv --target nothing
forecast houses.csv --target kind --task regression
forecast houses.csv --target price --metric error
forecast houses.csv --target price --band 2
forecast houses.csv --target price --n 5:1
forecast houses.csv --target price --ridge x
forecast houses.csv --target price --groups city --time size
forecast constant.csv --target b
forecast empty.csv --target b
forecast nothing.csv --target b
scaling-fit few.csv
scaling-fit houses.csv
scaling-fit nothing.csv
scaling-fit runs.csv --out r.nc
sample-size
sample-size --predictors 20 --auc 0.3 --prevalence 0.2
sample-size --pilot pilot.csv --target nothing
explore ridgy --no-show --port 0
bench no-such-benchmark
predikt ridge
--frobnicate
--memory 1KB simulate ridge --size 200
--time 1x predict ridge
""".strip().splitlines()
