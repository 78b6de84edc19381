"""Runs the sweep file given on the command line, as a process that tests can kill."""

import sys

from limitlab.lab.sweep import SweepInterrupted
from limitlab.lab.sweepfile import load_sweep, run_sweep

if __name__ == "__main__":
    try:
        run_sweep(load_sweep(sys.argv[1]))
    except SweepInterrupted as stopped:
        print(stopped)
        sys.exit(130)
