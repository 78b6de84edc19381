"""Imported by the fork server of the explorer, so that new worker processes have all laws loaded."""

from __future__ import annotations

import warnings

from limitlab._core.registry import all_laws
from limitlab.show.explorer import _work as work

with warnings.catch_warnings():  # the server has already warned about packages that cannot be imported
    warnings.simplefilter("ignore", UserWarning)
    LAWS = all_laws()
JOBS = work.JOBS
