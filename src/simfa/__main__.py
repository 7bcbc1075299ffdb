"""The `simfa` program, also as `python -m simfa`.

This module imports nothing at first, so that Ctrl-C stops it without a traceback from its first moment on.
"""


def main() -> None:
    """Run the command line; Ctrl-C at any time exits with 130 and one line."""
    try:
        from simfa.cli import main as run

        run()
    except KeyboardInterrupt:
        import sys

        print("simfa: stopped; nothing was left half-written", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
