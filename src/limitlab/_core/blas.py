"""A limit of one BLAS thread per task.

There are two reasons for the limit. Workers that each start one thread per core compete for the cores. A matrix product that is
split over another number of threads may differ in its last bits, so that a result would depend on the machine and on the engine.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_users = 0
_limit: Any = None


@contextmanager
def single_threaded() -> Iterator[None]:
    """Make every BLAS call of this process use one thread within a block; blocks may nest and overlap between threads.

    >>> import numpy as np
    >>> with single_threaded():
    ...     product = np.ones((2, 2)) @ np.ones((2, 2))
    """
    global _users, _limit
    with _lock:
        if _users == 0:
            _limit = _all_libraries_to_one()
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limit.restore_original_limits()


def _all_libraries_to_one() -> Any:
    import numpy  # noqa: F401  (SciPy brings its own BLAS: a library must be loaded before it can be limited)
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1, user_api="blas")
