"""`python hears_ctrl_c.py COMMAND...`: limitlab as a process that Ctrl-C reaches.

A child of a process that ignores SIGINT (nohup, a background job) would ignore it too, and so would the test that sends it.
"""

import signal
import sys

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from limitlab.show.cli import main

    sys.argv[0] = "limitlab"
    main()
