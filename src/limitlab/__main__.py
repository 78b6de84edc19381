"""`python -m limitlab` is the command `limitlab`."""

from limitlab.show.cli import main

if __name__ == "__main__":
    main()
