"""The `simfa` program, also as `python -m simfa`.

This module imports nothing at first, so that Ctrl-C stops it without a traceback from its first moment on.
"""


def main() -> None:
    """Run the command line; Ctrl-C at any time exits with 130 and one line, SIGTERM and SIGHUP with 143 and 129."""
    code = 130
    try:
        import signal

        def stop(number: int, _: object) -> None:
            nonlocal code
            code = 128 + number
            raise KeyboardInterrupt

        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, stop)
        from simfa.cli import main as run

        run()
    except KeyboardInterrupt:
        import sys

        print("simfa: stopped; nothing was left half-written", file=sys.stderr)
        sys.exit(code)


if __name__ == "__main__":
    main()
