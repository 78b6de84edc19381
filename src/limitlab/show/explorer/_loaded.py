"""What a worker of the explorer has at hand when it starts: every law. Imported once, by the process that workers are forked from."""

from __future__ import annotations

import warnings

from limitlab._core.registry import all_laws
from limitlab.show.explorer import _work as work

with warnings.catch_warnings():  # the server has already warned about packages that cannot be imported
    warnings.simplefilter("ignore", UserWarning)
    LAWS = all_laws()
JOBS = work.JOBS
