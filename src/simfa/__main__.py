"""`python -m simfa` is the same program as `simfa`."""

from simfa.cli import main

if __name__ == "__main__":
    main()
