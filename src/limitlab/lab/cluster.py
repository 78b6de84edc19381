"""Clusters by name, which are the address of a Dask scheduler, workers on this machine, or jobs of Slurm.

    "tcp://10.0.0.5:8786"   a running scheduler (also tls:// and ws://)
    "local-cluster"         a scheduler and one worker per core on this machine; "local-cluster:2" for two workers
    "slurm:FILE"            workers as jobs of Slurm, described by a TOML file (`SlurmFile`)

Such a cluster is opened for one run and closed after the run. If the scheduler loses workers, Dask runs their tasks
on other workers. If the scheduler has stopped or has lost all workers, `EngineError` is raised within seconds.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import time
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from limitlab.errors import Refused, did_you_mean

__all__ = ["EngineError"]

SCHEMES = ("tcp://", "tls://", "ws://", "wss://", "ucx://", "inproc://")
LOCAL, SLURM = "local-cluster", "slurm:"
CONNECT_SECONDS = 5.0
"""Seconds in which a scheduler must answer."""
WORKER_SECONDS = 15.0
"""Seconds without any worker after which an error is raised. A Slurm file sets another number."""
RETRIES = 3
"""How often a task is tried again if it was lost together with its worker."""


class EngineError(RuntimeError):
    """The error for an engine that failed, as opposed to a task that failed."""


class SlurmFile(BaseModel):
    """The content of the file of `slurm:FILE`, with the properties of one job and the number of jobs.

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
        """Return the arguments of `dask_jobqueue.SLURMCluster`, for one worker process per core and one thread per library."""
        pinned = [f"export {name}=1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")]
        arguments = dict(
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
        return {name: value for name, value in arguments.items() if value is not None}


def read_slurm(path: str | Path) -> SlurmFile:
    """Return the content of a Slurm file; raise ValueError with a one-line message if the file is wrong."""
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise Refused(f"Slurm file {str(path)!r} cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refused(f"Slurm file {str(path)!r} is not valid TOML: {error}") from None
    except RecursionError:
        raise Refused(f"Slurm file {str(path)!r} cannot be read: its lists or tables are nested too deeply") from None
    known = SlurmFile.model_fields
    for name in content:
        if name not in known:
            raise Refused(f"Slurm file {str(path)!r}: there is no entry {name!r}: {did_you_mean(name, known)}")
    try:
        return SlurmFile.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        entry = str(first["loc"][0])
        problem = (
            "is missing" if first["type"] == "missing" else f"= {content[entry]!r} is not allowed: {first['msg'].lower()}"
        )
        raise Refused(f"Slurm file {str(path)!r}: the entry {entry!r} {problem} ({known[entry].description})") from None


def names_a_cluster(engine: Any) -> bool:
    """Return whether an engine is the name of a cluster.

    >>> names_a_cluster("local-cluster:2"), names_a_cluster("processes")
    (True, False)
    """
    return isinstance(engine, str) and (engine.startswith((*SCHEMES, SLURM)) or engine.partition(":")[0] == LOCAL)


def check_cluster(engine: str) -> None:
    """Raise ValueError for a name that cannot be a cluster, before anything is started."""
    if engine.startswith(SLURM):
        read_slurm(engine.removeprefix(SLURM))
    elif engine.startswith(SCHEMES):
        address = engine.partition("://")[2]
        if engine.startswith(("tcp", "tls", "ucx")) and not address.rpartition(":")[2].isdecimal():
            raise Refused(
                f"engine = {engine!r} is not allowed: a scheduler's address ends in a port, such as tcp://host:8786"
            )
    else:
        _local_workers(engine)
    if importlib.util.find_spec("distributed") is None:
        raise Refused(f"engine = {engine!r} needs Dask: pip install 'limitlab[cluster]'")


def _local_workers(engine: str) -> int | None:
    number = engine.partition(":")[2]
    if engine != LOCAL and (not number.isdecimal() or int(number) < 1):
        raise Refused(f"engine = {engine!r} is not allowed: write {LOCAL}, or {LOCAL}:2 for two workers")
    return int(number) if number else None


@contextmanager
def opened(engine: str, cores: int) -> Iterator[Any]:
    """Open a client of the cluster of this name, with at least one worker, and close everything at the end."""
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
                    silence_logs=logging.CRITICAL,  # the tasks of a lost worker run again
                )
            )
        try:
            client = stack.enter_context(dask.Client(target, timeout=CONNECT_SECONDS, set_as_default=False))
        except (OSError, TimeoutError):
            raise EngineError(
                f"no Dask scheduler answers at {engine!r} (waited {CONNECT_SECONDS:g} s); start it, or correct the address"
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
    """Return the client as an executor.

    Tasks have unique names (not hashes of their content) and are tried again.
    """
    wait_for_a_worker(client, WORKER_SECONDS)
    executor: Executor = client.get_executor(pure=False, retries=RETRIES)
    return executor


def wait_for_a_worker(client: Any, patience: float) -> None:
    """Return as soon as the client has a worker.

    EngineError is raised if no worker appears in time, or if the scheduler has stopped.
    """
    end = time.monotonic() + patience
    while not _workers(client):
        if time.monotonic() > end:
            raise EngineError(
                f"the Dask scheduler at {_address(client)} has no workers (waited {patience:g} s): start some, "
                "such as `dask worker ADDRESS --nthreads 1`"
            )
        time.sleep(0.1)


def watch(client: Any) -> Callable[[], None]:
    """Return a function that raises EngineError if the scheduler has stopped, or has had no workers for too long."""
    latest = [time.monotonic()]

    def check() -> None:
        if _workers(client):
            latest[0] = time.monotonic()
        elif time.monotonic() - latest[0] > WORKER_SECONDS:
            raise EngineError(f"the Dask cluster at {_address(client)} lost all its workers and got no new ones")

    return check


def _workers(client: Any) -> int:
    """Return the number of workers of the scheduler; raise EngineError if the scheduler has stopped."""
    if getattr(client, "status", "running") not in ("running", "newly-created"):
        raise EngineError(f"the Dask scheduler at {_address(client)} has stopped ({client.status}): start it again")
    try:
        return len(client.sync(client.scheduler.identity, callback_timeout=CONNECT_SECONDS)["workers"])
    except EngineError:
        raise
    except Exception as error:
        raise EngineError(
            f"the Dask scheduler at {_address(client)} does not answer ({type(error).__name__}); start it, or correct the address"
        ) from None


def _address(client: Any) -> str:
    return repr(getattr(getattr(client, "scheduler", None), "address", "") or "an unknown address")
