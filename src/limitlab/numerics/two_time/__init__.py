"""Causal integrators for two-time (Volterra) systems, with triangular histories, memory integrals and extrapolation.

- `march` integrates a `TwoTimeSystem` on a uniform grid, with the whole history or a thinned history.
- `extrapolate` combines marches with N, 2N, 4N, ... steps and estimates the error.
- `limitlab.numerics.two_time.examples` has a system with a known solution, as a pattern for new systems.
"""

from limitlab.numerics.two_time._marching import Extrapolated as Extrapolated
from limitlab.numerics.two_time._marching import Flow as Flow
from limitlab.numerics.two_time._marching import Progress as Progress
from limitlab.numerics.two_time._marching import Solution as Solution
from limitlab.numerics.two_time._marching import TwoTimeSystem as TwoTimeSystem
from limitlab.numerics.two_time._marching import at_times as at_times
from limitlab.numerics.two_time._marching import extrapolate as extrapolate
from limitlab.numerics.two_time._marching import interpolate as interpolate
from limitlab.numerics.two_time._marching import march as march
from limitlab.numerics.two_time._marching import memory_bytes as memory_bytes
from limitlab.numerics.two_time._marching import romberg_table as romberg_table
from limitlab.numerics.two_time._memory import History as History
from limitlab.numerics.two_time._memory import WholeHistory as WholeHistory
from limitlab.numerics.two_time._thinned import ThinnedHistory as ThinnedHistory

__all__ = [
    "Extrapolated",
    "Flow",
    "History",
    "Progress",
    "Solution",
    "ThinnedHistory",
    "TwoTimeSystem",
    "WholeHistory",
    "at_times",
    "extrapolate",
    "interpolate",
    "march",
    "memory_bytes",
    "romberg_table",
]
