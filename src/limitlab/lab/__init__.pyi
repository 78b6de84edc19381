# Written by `python -m limitlab._core.index`; do not edit.
"""Functions for any law, such as sweeps, comparisons, plans, claims, figures and stored results."""

from .check import Check as Check
from .claims import Claim as Claim
from ._compare import Comparison as Comparison
from .check import Criterion as Criterion
from .store import DamagedCell as DamagedCell
from .documents import Document as Document
from .documents import Documents as Documents
from .cluster import EngineError as EngineError
from .documents import Item as Item
from .documents import ItemList as ItemList
from .claims import Outcome as Outcome
from .claims import Record as Record
from ._reproduce import Reproduction as Reproduction
from .judging import Row as Row
from ._sweep import SweepError as SweepError
from ._sweep import SweepInterrupted as SweepInterrupted
from .sweepfile import SweepSpec as SweepSpec
from .tasks import TasksFailed as TasksFailed
from .claims import all_claims as all_claims
from .figures import all_figures as all_figures
from .figures import animate as animate
from .store import caching as caching
from .claims import claim as claim
from .claims import claims_of as claims_of
from ._compare import compare as compare
from .figures import describe_figures as describe_figures
from .documents import documents as documents
from .figures import figure as figure
from .claims import find_claims as find_claims
from .figures import find_figure as find_figure
from .check import largest as largest
from .sweepfile import load_sweep as load_sweep
from .check import log_slope as log_slope
from .store import open_result as open_result
from ._plan import optimal as optimal
from ._plan import plan as plan
from ._reproduce import read_result as read_result
from .sweepfile import read_sweep as read_sweep
from ._reproduce import reproduce as reproduce
from .sweepfile import run_sweep as run_sweep
from .check import sigmas as sigmas
from .check import smallest as smallest
from .check import standard_error as standard_error
from ._sweep import sweep as sweep
from .claims import verify as verify

__all__ = [
    "Check",
    "Claim",
    "Comparison",
    "Criterion",
    "DamagedCell",
    "Document",
    "Documents",
    "EngineError",
    "Item",
    "ItemList",
    "Outcome",
    "Record",
    "Reproduction",
    "Row",
    "SweepError",
    "SweepInterrupted",
    "SweepSpec",
    "TasksFailed",
    "all_claims",
    "all_figures",
    "animate",
    "caching",
    "claim",
    "claims_of",
    "compare",
    "describe_figures",
    "documents",
    "figure",
    "find_claims",
    "find_figure",
    "largest",
    "load_sweep",
    "log_slope",
    "open_result",
    "optimal",
    "plan",
    "read_result",
    "read_sweep",
    "reproduce",
    "run_sweep",
    "sigmas",
    "smallest",
    "standard_error",
    "sweep",
    "verify",
]
