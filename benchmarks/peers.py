"""Other packages, each in an environment of its own: `python benchmarks/peers.py [NAME ...] [--where FOLDER]`.

pip makes a virtual environment per peer, once: it is kept in FOLDER (the user's cache unless told otherwise) and used again. The
same work is then done there and here, one after the other, in processor time of one thread, and the results must agree.
Making the environment is not measured; a peer that cannot be installed says so in its row.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy is imported, and for the peers
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import argparse
import functools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from timing import progress

ROUNDS = 3
INSTALL_SECONDS = 900

ENVIRONMENTS: dict[str, tuple[str, ...]] = {
    "scikit-rmt": ("scikit-rmt",),
    "statsmodels": ("statsmodels",),
    "scikit-learn": ("scikit-learn",),
    "torch": ("torch", "numpy"),
    "neural-tangents": ("neural-tangents==0.6.5", "jax==0.4.30", "jaxlib==0.4.30", "numpy<2", "scipy<1.14"),
}

HARNESS = """
import json, sys, time
import numpy as np
def best(work, repeats):
    found, seconds = work(), []
    for _ in range(repeats):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    np.save(sys.argv[1], np.asarray(found))
    print(json.dumps(min(seconds)))
"""


@dataclass(frozen=True)
class Task:
    """Work that a peer and limitlab both do.

    Attributes
    ----------
    peer
        One of the environments.
    what
        What the peer does, in words.
    program
        Ends in `best(work, repeats)`, where `work()` returns numbers.
    ours
        The same with limitlab.
    agreement
        The largest difference allowed, relative to the largest number; None for random results.
    remark
        What a reader of the ratio should know.
    part
        What is compared of a result.
    """

    peer: str
    what: str
    program: str
    ours: Callable[[], Any]
    agreement: float | None = None
    remark: str = ""
    part: Callable[[Any], Any] = np.asarray


# -- our side ---------------------------------------------------------------------------------------------------------

SIZE, SEEDS, STEPS, STEP = 1000, 100, 100, 0.02


def sgd() -> Any:
    """Full-vector SGD, 100 seeds at once."""
    from limitlab.models.activations import Activation
    from limitlab.models.online import TeacherStudent, full_overlap_paths

    model = TeacherStudent(Activation("square"), Activation("square"))
    return full_overlap_paths([np.random.default_rng(s) for s in range(SEEDS)], model, 0.3, SIZE, STEP, [STEPS])


def density() -> Any:
    """The Marchenko-Pastur density and distribution function at 200,000 points."""
    from limitlab.laws import MarchenkoPastur

    law, x = MarchenkoPastur(ratio=0.5), np.linspace(0.05, 3.0, 200_000)
    return law.density(x), law.cdf(x)


def logistic() -> Any:
    """Twenty logistic regressions of 1,000 samples with 100 features: intercepts and coefficients."""
    from limitlab.models.logistic import fit_logistic

    fits = (fit_logistic(x, y) for x, y in logistic_data())
    return [np.r_[fit.intercept, fit.coefficients] for fit in fits]


@functools.cache
def logistic_data() -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(0)
    inputs = []
    for _ in range(20):
        x = rng.standard_normal((1000, 100))
        inputs.append((x, rng.random(1000) < 1 / (1 + np.exp(-x[:, 0]))))
    return inputs


def ridge_path() -> Any:
    """Coefficients of ridge regression at 100 penalties."""
    from limitlab.applied.forecast._measure import RidgePath

    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 300))
    return RidgePath(X, X[:, 0] + rng.standard_normal(600)).coefficients(np.geomspace(1e-3, 1e3, 100))


def tangent_kernel() -> Any:
    """The tangent kernel of three layers of relu on 1,000 inputs in 784 dimensions."""
    from limitlab.laws import ntk

    return ntk(kernel_inputs())


@functools.cache
def kernel_inputs() -> Any:
    return np.random.default_rng(0).standard_normal((1000, 784))


def off_diagonal(kernel: Any) -> Any:
    """A symmetric kernel without its diagonal, where a recursion through angles loses half of its digits."""
    return np.triu(np.asarray(kernel), 1)


# -- their side -------------------------------------------------------------------------------------------------------

LOGISTIC = """
rng = np.random.default_rng(0)
data = []
for _ in range(20):
    x = rng.standard_normal((1000, 100))
    data.append((x, rng.random(1000) < 1 / (1 + np.exp(-x[:, 0]))))
"""

TASKS = (
    Task(
        "scikit-rmt",
        "Marchenko-Pastur density and distribution function (200,000 points)",
        """
from skrmt.ensemble.spectral_law import MarchenkoPasturDistribution
def work():
    law, x = MarchenkoPasturDistribution(ratio=0.5, beta=1, sigma=1.0), np.linspace(0.05, 3.0, 200_000)
    return law.pdf(x), law.cdf(x)
best(work, 5)
""",
        density,
        1e-10,
        "the same closed forms in NumPy on both sides",
    ),
    Task(
        "statsmodels",
        "`Logit.fit` (20 fits, n = 1000, p = 100)",
        LOGISTIC
        + """
import statsmodels.api as sm
def work():
    return [sm.Logit(y, np.c_[np.ones(len(x)), x]).fit(disp=0, tol=1e-9).params for x, y in data]
best(work, 2)
""",
        logistic,
        1e-6,
        "Newton's method on both sides; theirs also gives standard errors",
    ),
    Task(
        "scikit-learn",
        "`LogisticRegression`, no penalty, `newton-cholesky` (20 fits, n = 1000, p = 100)",
        LOGISTIC
        + """
from sklearn.linear_model import LogisticRegression
def fit(x, y):
    found = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-9, max_iter=200).fit(x, y)
    return np.r_[found.intercept_, found.coef_[0]]
best(lambda: [fit(x, y) for x, y in data], 2)
""",
        logistic,
        1e-6,
        "Newton's method on both sides",
    ),
    Task(
        "scikit-learn",
        "`ridge_regression`, default solver, at 100 penalties (n = 600, p = 300)",
        """
from sklearn.linear_model import ridge_regression
rng = np.random.default_rng(0)
X = rng.standard_normal((600, 300))
y = X[:, 0] + rng.standard_normal(600)
best(lambda: [ridge_regression(X, y, 600 * ridge) for ridge in np.geomspace(1e-3, 1e3, 100)], 2)
""",
        ridge_path,
        1e-8,
        "one factorisation for all penalties here, one for each there",
    ),
    Task(
        "torch",
        f"SGD of PyTorch, one sample at a time (N = {SIZE}, {STEPS} x {SEEDS} samples; 2,000 are timed, the time is linear in them)",
        f"""
import torch
torch.set_num_threads(1); torch.manual_seed(0)
def work():
    x = torch.nn.Parameter(torch.nn.functional.normalize(torch.randn({SIZE}), dim=0))
    optimiser = torch.optim.SGD([x], lr={STEP} / {SIZE})
    for _ in range(2000):
        a = torch.randn({SIZE})
        optimiser.zero_grad()
        ((a[0] ** 2 - (a @ x) ** 2) ** 2).backward()
        optimiser.step()
        with torch.no_grad():
            x /= x.norm()
    return x.detach().numpy()
start = time.process_time(); work(); first = time.process_time() - start
start = time.process_time(); found = work(); second = time.process_time() - start
np.save(sys.argv[1], found)
print(json.dumps(min(first, second) * {STEPS * SEEDS} / 2000))
""",
        sgd,
        None,
        "the simplest loop; single precision on both sides",
    ),
    Task(
        "torch",
        f"the same in PyTorch for {SEEDS} seeds at once, gradient by hand (N = {SIZE}, {STEPS} steps)",
        f"""
import torch
torch.set_num_threads(1); torch.manual_seed(0)
@torch.no_grad()
def work():
    x = torch.nn.functional.normalize(torch.randn({SEEDS}, {SIZE}), dim=1)
    for _ in range({STEPS}):
        a = torch.randn({SEEDS}, {SIZE})
        w = (a * x).sum(dim=1)
        x.addcmul_(a, (4 * {STEP} / {SIZE} * (a[:, 0] ** 2 - w**2) * w)[:, None])
        x /= x.norm(dim=1, keepdim=True)
    return x.numpy()
best(work, 2)
""",
        sgd,
        None,
        "the fastest program in PyTorch that we found; single precision on both sides",
    ),
    Task(
        "neural-tangents",
        "infinite tangent kernel, jitted (n = 1000, d = 784, 3 layers of relu, double precision)",
        """
import jax
jax.config.update("jax_enable_x64", True)
from neural_tangents import stax
X = np.random.default_rng(0).standard_normal((1000, 784))
_, _, kernel = stax.serial(stax.Dense(1), stax.Relu(), stax.Dense(1), stax.Relu(), stax.Dense(1))
run = jax.jit(lambda x: kernel(x, None, "ntk"))
best(lambda: run(X).block_until_ready(), 5)
""",
        tangent_kernel,
        1e-9,
        "the same recursion, compiled on both sides; compilation is not measured",
        off_diagonal,
    ),
)


# -- measuring --------------------------------------------------------------------------------------------------------


def environment(peer: str, folder: Path) -> Path | str:
    """The Python of a peer's environment, made if there is none; or why there cannot be one."""
    home = folder / peer
    done = home / "installed.json"
    if done.exists() and json.loads(done.read_text()) == list(ENVIRONMENTS[peer]):
        return home / "bin" / "python"
    print(f"  installing {peer} (not measured) ...", file=sys.stderr, flush=True)
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True, capture_output=True, text=True)
        command = [home / "bin" / "python", "-m", "pip", "install", "--quiet", *ENVIRONMENTS[peer]]
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        return f"could not be installed within {INSTALL_SECONDS / 60:g} minutes"
    except subprocess.CalledProcessError as error:
        return "could not be installed: " + last_line(error.stderr)
    done.write_text(json.dumps(list(ENVIRONMENTS[peer])))
    return home / "bin" / "python"


def last_line(text: str) -> str:
    """What a program said last."""
    return (text.strip().splitlines() or ["no reason given"])[-1]


def ratio(task: Task, folder: Path) -> float | str:
    """How many times faster we are; or why the peer cannot be asked."""
    python = environment(task.peer, folder)
    if isinstance(python, str):
        return python
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"XLA_FLAGS": flags}
    expected = task.ours()
    theirs, ours = [], []
    with tempfile.TemporaryDirectory() as place:
        result = Path(place) / "result.npy"
        for _ in range(ROUNDS):  # one after the other, so that a busy machine is busy for both
            command = [python, "-c", HARNESS + task.program, result]
            run = subprocess.run(command, capture_output=True, text=True, env=variables, check=False)
            if run.returncode:
                return "does not run here: " + last_line(run.stderr)
            theirs.append(float(json.loads(last_line(run.stdout))))
            for _ in range(2):
                start = time.process_time()
                task.ours()
                ours.append(time.process_time() - start)
        found = np.load(result)
    if task.agreement is not None:
        numbers = task.part(expected)
        gap = float(np.abs(task.part(found) - numbers).max() / np.abs(numbers).max())
        if not gap < task.agreement:
            return f"not comparable: the results differ by {gap:.2g}"
    return min(theirs) / min(ours)


def row(task: Task, found: float | str) -> str:
    """A row of the table; where the peer is faster, it says so."""
    agreement = "random" if task.agreement is None else f"{task.agreement:.0e}"
    if isinstance(found, str):
        return f"| {task.peer} | {task.what} | - | {agreement} | {found} |"
    remark = ("the peer is faster: " if found < 1 else "") + task.remark
    return f"| {task.peer} | {task.what} | {found:.3g} | {agreement} | {remark} |"


def main() -> None:
    """Print a table of the peers that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(ENVIRONMENTS))
    parser.add_argument("--where", type=Path, help="folder in which the environments are kept")
    asked = parser.parse_args()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "limitlab" / "peers"
    print(
        "| package | task | time of the package over that of limitlab | results agree to | remark |\n|---|---|---:|---:|---|",
        flush=True,
    )
    for task in TASKS:
        if not asked.names or task.peer in asked.names:
            print(row(task, ratio(task, (asked.where or cache))), flush=True)
            progress(f"{task.peer}, {task.what}")


if __name__ == "__main__":
    main()
