"""Other packages, each in an environment of its own: `python benchmarks/peers.py [NAME ...] [--where FOLDER]`.

Makes a virtual environment per peer with pip (in a temporary folder, or in FOLDER, where it is kept), runs the same work there and here,
one after the other three times, and prints how many times faster limitlab is. A peer that cannot be installed says why.
`neural-tangents` is measured by `bench_tangent_kernel.py --peer`, which this script calls.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy is imported, and for the peers
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

TIMES = """
import json, time
def best(work, repeats):
    work()
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    print(json.dumps(min(seconds)))
"""


@dataclass(frozen=True)
class Peer:
    """A package, the program that does the work with it (and prints its seconds), and the same work with limitlab."""

    packages: tuple[str, ...]
    what: str
    program: str
    ours: Callable[[], object]


def sgd() -> object:
    """Full-vector SGD: as many samples as the peer's loop."""
    from limitlab.models.activations import Activation
    from limitlab.models.online import TeacherStudent, full_overlap_paths

    model = TeacherStudent(Activation("square"), Activation("square"))
    return full_overlap_paths([np.random.default_rng(s) for s in range(20)], model, 0.3, 1000, 0.02, [100])


def density() -> object:
    """The Marchenko-Pastur density and distribution function at 200,000 points."""
    from limitlab.laws import MarchenkoPastur

    law, x = MarchenkoPastur(ratio=0.5), np.linspace(0.05, 3.0, 200_000)
    return law.density(x), law.cdf(x)


def logistic() -> object:
    """Twenty logistic regressions of 1,000 samples with 100 features."""
    from limitlab.models.logistic import fit_logistic

    rng = np.random.default_rng(0)
    for _ in range(20):
        x = rng.standard_normal((1000, 100))
        fit_logistic(x, rng.random(1000) < 1 / (1 + np.exp(-x[:, 0])))
    return None


PEERS = {
    "torch": Peer(
        ("torch", "numpy"),
        "PyTorch's SGD, one sample at a time (N = 1000)",
        """
import torch
torch.set_num_threads(1); torch.manual_seed(0)
def work():
    x = torch.nn.Parameter(torch.nn.functional.normalize(torch.randn(1000), dim=0))
    optimiser = torch.optim.SGD([x], lr=0.02 / 1000)
    for _ in range(2000):
        a = torch.randn(1000)
        optimiser.zero_grad()
        ((a[0] ** 2 - (a @ x) ** 2) ** 2).backward()
        optimiser.step()
        with torch.no_grad():
            x /= x.norm()
best(work, 2)
""",
        sgd,
    ),
    "scikit-rmt": Peer(
        ("scikit-rmt",),
        "scikit-rmt's Marchenko-Pastur density and distribution function (200,000 points)",
        """
import numpy as np
from skrmt.ensemble.spectral_law import MarchenkoPasturDistribution
law, x = MarchenkoPasturDistribution(ratio=0.5, beta=1, sigma=1.0), np.linspace(0.05, 3.0, 200_000)
best(lambda: (law.pdf(x), law.cdf(x)), 3)
""",
        density,
    ),
    "statsmodels": Peer(
        ("statsmodels",),
        "statsmodels' Logit (20 fits, n = 1000, p = 100)",
        """
import numpy as np
import statsmodels.api as sm
def work():
    rng = np.random.default_rng(0)
    for _ in range(20):
        x = rng.standard_normal((1000, 100))
        sm.Logit(rng.random(1000) < 1 / (1 + np.exp(-x[:, 0])), sm.add_constant(x)).fit(disp=0, tol=1e-9)
best(work, 3)
""",
        logistic,
    ),
}


def ratio(peer: Peer, home: Path) -> float | str:
    """How many times faster we are; or why the peer cannot be asked."""
    python = home / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    done = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", *peer.packages], capture_output=True, text=True, check=False
    )
    if done.returncode:
        return "cannot be installed here: " + (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    theirs, ours = [], []
    peer.ours()
    for _ in range(3):  # one after the other, so that a busy machine is busy for both
        run = subprocess.run(
            [python, "-c", TIMES + peer.program], capture_output=True, text=True, env=environment, check=False
        )
        if run.returncode:
            return "does not run here: " + (run.stderr.strip().splitlines() or ["no reason given"])[-1]
        theirs.append(float(json.loads(run.stdout.strip().splitlines()[-1])))
        start = time.process_time()
        peer.ours()
        ours.append(time.process_time() - start)
    return min(theirs) / min(ours)


def neural_tangents() -> float | str:
    """What the benchmark of the tangent kernel finds with --peer."""
    command = [sys.executable, str(Path(__file__).with_name("bench_tangent_kernel.py")), "--peer"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    for line in run.stdout.splitlines():
        if "neural-tangents" in line and "times faster" in line:
            return float(line.split("|")[2].split()[0])
    return "cannot be asked here: " + (run.stdout + run.stderr).strip().splitlines()[-1]


def main() -> None:
    """Print a table of the peers that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[*PEERS, "neural-tangents"], help=", ".join([*PEERS, "neural-tangents"]))
    parser.add_argument("--where", type=Path, help="folder in which the environments are kept")
    asked = parser.parse_args()
    print("| peer | limitlab is so many times faster |\n|---|---:|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.names:
            found = (
                neural_tangents() if name == "neural-tangents" else ratio(PEERS[name], (asked.where or Path(folder)) / name)
            )
            what = "neural-tangents 0.6.5, jitted (n = 1000)" if name == "neural-tangents" else PEERS[name].what
            print(f"| {what} | {found if isinstance(found, str) else format(found, '.3g')} |", flush=True)


if __name__ == "__main__":
    main()
