"""Clusters by name: a Dask scheduler's address, workers on this machine, jobs of Slurm.

    "tcp://10.0.0.5:8786"   a scheduler that is running already (tls:// and ws:// likewise)
    "local-cluster"         a scheduler and one worker per core on this machine; "local-cluster:2" for so many
    "slurm:FILE"            workers as jobs of Slurm, as a TOML file says (`SlurmFile`)

A cluster that is named is opened for one run and closed after it. The scheduler may lose workers: Dask runs their tasks again elsewhere.
What does not come back, a scheduler that is gone or a cluster without workers, is said within seconds.
"""

from __future__ import annotations

import importlib.util
import logging
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from limitlab.errors import did_you_mean

if TYPE_CHECKING:
    from concurrent.futures import Executor

__all__ = ["EngineError"]

SCHEMES = ("tcp://", "tls://", "ws://", "wss://", "ucx://", "inproc://")
LOCAL, SLURM = "local-cluster", "slurm:"
CONNECT_SECONDS = 5.0
"""How long a scheduler may take to answer."""
WORKER_SECONDS = 15.0
"""How long a scheduler may be without any worker before we say so; a Slurm file has its own number."""
RETRIES = 3
"""How often a task that did not reach its end for no fault of its own is tried again."""


class EngineError(RuntimeError):
    """The engine itself failed, not a task."""


class SlurmFile(BaseModel):
    """What `slurm:FILE` reads: how one job looks, and how many of them.

    >>> SlurmFile(jobs=20, cores=8, memory="32GB", queue="cpu").arguments()["processes"]
    8
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    jobs: int = Field(default=1, ge=1, description="number of Slurm jobs")
    cores: int = Field(ge=1, description="cores of one job; each is a worker of one thread")
    memory: str = Field(pattern=r"^\d+(\.\d+)?\s*[kKMGT]i?B$", description="memory of one job, such as 32GB")
    walltime: str = Field(
        default="01:00:00", pattern=r"^(\d+-)?\d{1,2}:\d{2}(:\d{2})?$", description="longest time of one job, HH:MM:SS"
    )
    queue: str | None = Field(default=None, description="partition")
    account: str | None = Field(default=None, description="account that is charged")
    interface: str | None = Field(default=None, description="network interface of the nodes, such as ib0")
    python: str | None = Field(default=None, description="the python of the environment on the nodes")
    folder: str | None = Field(default=None, description="scratch folder of the workers on the nodes")
    logs: str | None = Field(default=None, description="folder for the logs of the jobs")
    directives: list[str] = Field(default_factory=list, description="further #SBATCH lines, such as --constraint=avx512")
    before: list[str] = Field(default_factory=list, description="shell lines that run before a worker starts")
    wait: float = Field(default=600.0, gt=0, description="seconds to wait for the first worker")

    def arguments(self) -> dict[str, Any]:
        """What `dask_jobqueue.SLURMCluster` takes: one worker process of one thread per core, libraries pinned to one thread."""
        pinned = [f"export {name}=1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")]
        given = dict(
            cores=self.cores,
            processes=self.cores,
            memory=self.memory,
            walltime=self.walltime,
            queue=self.queue,
            account=self.account,
            interface=self.interface,
            python=self.python,
            local_directory=self.folder,
            log_directory=self.logs,
            job_extra_directives=self.directives,
            job_script_prologue=[*pinned, *self.before],
        )
        return {name: value for name, value in given.items() if value is not None}


def read_slurm(path: str | Path) -> SlurmFile:
    """A Slurm file, checked; what is wrong with it is said in one line."""
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"Slurm file {str(path)!r} cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"Slurm file {str(path)!r} is not valid TOML: {error}") from None
    known = SlurmFile.model_fields
    for name in content:
        if name not in known:
            raise ValueError(f"Slurm file {str(path)!r}: there is no entry {name!r}: {did_you_mean(name, known)}")
    try:
        return SlurmFile.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        entry = str(first["loc"][0])
        said = "is missing" if first["type"] == "missing" else f"= {content[entry]!r} is not allowed: {first['msg'].lower()}"
        raise ValueError(f"Slurm file {str(path)!r}: the entry {entry!r} {said} ({known[entry].description})") from None


def names_a_cluster(engine: Any) -> bool:
    """Whether an engine is the name of a cluster.

    >>> names_a_cluster("local-cluster:2"), names_a_cluster("processes")
    (True, False)
    """
    return isinstance(engine, str) and (engine.startswith((*SCHEMES, SLURM)) or engine.partition(":")[0] == LOCAL)


def check_cluster(engine: str) -> None:
    """Refuse in one line a name that cannot be a cluster, before anything is started."""
    if engine.startswith(SLURM):
        read_slurm(engine.removeprefix(SLURM))
    elif engine.startswith(SCHEMES):
        address = engine.partition("://")[2]
        if engine.startswith(("tcp", "tls", "ucx")) and not address.rpartition(":")[2].isdecimal():
            raise ValueError(
                f"engine = {engine!r} is not allowed: a scheduler's address ends in a port, such as tcp://host:8786"
            )
    else:
        _local_workers(engine)
    if importlib.util.find_spec("distributed") is None:
        raise ValueError(f"engine = {engine!r} needs Dask: pip install 'limitlab[cluster]'")


def _local_workers(engine: str) -> int | None:
    number = engine.partition(":")[2]
    if engine != LOCAL and (not number.isdecimal() or int(number) < 1):
        raise ValueError(f"engine = {engine!r} is not allowed: write {LOCAL}, or {LOCAL}:2 for two workers")
    return int(number) if number else None


# -- open, use, watch -----------------------------------------------------------------------------------------------------


@contextmanager
def opened(engine: str, cores: int) -> Iterator[Any]:
    """A client of the cluster of this name, with at least one worker; closed, with what was started for it, at the end."""
    dask: Any = importlib.import_module("distributed")
    with ExitStack() as stack:
        patience = WORKER_SECONDS
        if engine.startswith(SLURM):
            wanted = read_slurm(engine.removeprefix(SLURM))
            target, patience = stack.enter_context(_slurm_cluster(wanted)), wanted.wait
            target.scale(jobs=wanted.jobs)
        elif engine.startswith(SCHEMES):
            target = engine
        else:
            workers = _local_workers(engine) or cores
            target = stack.enter_context(
                dask.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    processes=True,
                    dashboard_address=None,
                    silence_logs=logging.CRITICAL,  # a worker that is lost is not news: its tasks run again
                )
            )
        try:
            client = stack.enter_context(dask.Client(target, timeout=CONNECT_SECONDS, set_as_default=False))
        except (OSError, TimeoutError):
            raise EngineError(
                f"no Dask scheduler answers at {engine!r} (waited {CONNECT_SECONDS:g} s): is it running?"
            ) from None
        wait_for_a_worker(client, patience)
        yield client


def _slurm_cluster(wanted: SlurmFile) -> Any:
    try:
        jobqueue: Any = importlib.import_module("dask_jobqueue")
    except ImportError:
        raise EngineError("engine 'slurm:FILE' needs dask-jobqueue: pip install 'limitlab[cluster]'") from None
    return jobqueue.SLURMCluster(**wanted.arguments())


def executor_of(client: Any) -> Executor:
    """The client as an executor. Tasks have names of their own (not hashes of their content) and are tried again."""
    wait_for_a_worker(client, WORKER_SECONDS)
    executor: Executor = client.get_executor(pure=False, retries=RETRIES)
    return executor


def wait_for_a_worker(client: Any, patience: float) -> None:
    """Return when the client has a worker; say so when it has none, or no scheduler."""
    end = time.monotonic() + patience
    while not _workers(client):
        if time.monotonic() > end:
            raise EngineError(
                f"the Dask scheduler at {_address(client)} has no workers (waited {patience:g} s): start some, "
                "such as `dask worker ADDRESS --nthreads 1`"
            )
        time.sleep(0.1)


def watch(client: Any) -> Callable[[], None]:
    """A function that raises when the client's scheduler has been gone, or without workers, for too long."""
    seen = [time.monotonic()]

    def check() -> None:
        if _workers(client):
            seen[0] = time.monotonic()
        elif time.monotonic() - seen[0] > WORKER_SECONDS:
            raise EngineError(f"the Dask cluster at {_address(client)} lost all its workers and got no new ones")

    return check


def _workers(client: Any) -> int:
    """How many workers the scheduler has; raises where there is no scheduler."""
    if getattr(client, "status", "running") not in ("running", "newly-created"):
        raise EngineError(f"the Dask scheduler at {_address(client)} is gone ({client.status}): start it again")
    try:
        return len(client.sync(client.scheduler.identity, callback_timeout=CONNECT_SECONDS)["workers"])
    except EngineError:
        raise
    except Exception as error:
        raise EngineError(
            f"the Dask scheduler at {_address(client)} does not answer ({type(error).__name__}): is it running?"
        ) from None


def _address(client: Any) -> str:
    return repr(getattr(getattr(client, "scheduler", None), "address", "") or "an unknown address")
