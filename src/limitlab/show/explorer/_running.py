"""One visitor's job: at most one at a time, the latest wins, and it can be cancelled."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import panel as pn

from limitlab.show.explorer.jobs import Message, Pool

PATIENCE = 0.5
"""Seconds that a curve may still take before a newer one ends it: a slider that is moved should not restart a worker at every step."""


@dataclass
class Job:
    """What to compute and whom to tell."""

    name: str
    request: dict[str, Any]
    tell: Callable[[Message], None]
    began: float = field(default_factory=time.monotonic)


class Runner:
    """Runs the jobs of one page.

    Parameters
    ----------
    pool
        Where they run.
    on_running
        Called with (running, done, total) as a job starts, advances and ends.
    """

    def __init__(self, pool: Pool, on_running: Callable[..., None]):
        self._pool, self._on_running = pool, on_running
        self._document = pn.state.curdoc
        self._task: asyncio.Task[None] | None = None
        self._job: Job | None = None
        self._next: Job | None = None

    @property
    def running(self) -> bool:
        """Whether a job is under way."""
        return self._task is not None and not self._task.done()

    def start(self, name: str, tell: Callable[[Message], None], /, **request: Any) -> None:
        """Start a job in place of the present one; a quick curve is let finish first."""
        job = Job(name, request, tell)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # no page is served (a script): do it here and now
            self._job = job
            asyncio.run(self._follow(job))
            return
        if self.running and self._job is not None and self._job.name == name == "curve":
            left = PATIENCE - (time.monotonic() - self._job.began)
            if left > 0:
                self._next = job
                loop.call_later(left, self._hurry, self._job)
                return
        self._stop()
        self._begin(job)

    def cancel(self) -> None:
        """Stop the present job, because the visitor says so; it is told."""
        job, self._next = self._job if self.running else None, None
        self._stop()
        if job is not None:
            self._on_running(False)
            job.tell(Message("refused", "cancelled"))

    def close(self) -> None:
        """The visitor left."""
        self._next = None
        self._stop()

    def _begin(self, job: Job) -> None:
        job.began = time.monotonic()
        self._job = job
        self._task = asyncio.get_running_loop().create_task(self._follow(job))

    def _stop(self) -> None:
        if self.running and self._task is not None:
            self._task.cancel()
        self._task, self._job = None, None

    def _hurry(self, slow: Job) -> None:
        """A newer curve has waited long enough."""
        if self._job is slow and self._next is not None:
            job, self._next = self._next, None
            self._stop()
            self._begin(job)

    async def _follow(self, job: Job) -> None:
        stream = self._pool.run(job.name, **job.request)
        try:
            self._later(job, lambda: self._on_running(True))
            async for message in stream:
                self._later(job, functools.partial(self._heard, job, message))
        finally:
            await stream.aclose()  # type: ignore[attr-defined]
        self._later(job, self._follow_up)

    def _follow_up(self) -> None:
        """Start what waited for the job that has just been heard."""
        if self._next is not None:
            job, self._next = self._next, None
            self._begin(job)

    def _heard(self, job: Job, message: Message) -> None:
        if message.kind in ("result", "refused"):
            self._on_running(False)
        else:
            self._on_running(True, message.done, message.total)
        job.tell(message)

    def _later(self, job: Job, action: Callable[[], None]) -> None:
        """Change the page where that is allowed: with its lock, in the order of the messages; a stopped job is silent."""

        def act() -> None:
            if self._job is job:
                action()

        if self._served():
            self._document.add_next_tick_callback(act)
        else:
            act()

    def _served(self) -> bool:
        return self._document is not None and self._document.session_context is not None
