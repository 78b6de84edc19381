"""A module that only the process imports from which `CappedWorkers` forks its workers.

This process has nothing to write at its end. It skips the end of the interpreter, which takes a second after many imports.
"""

import atexit
import os

__all__: list[str] = []

atexit.register(os._exit, 0)
