"""The command line. Heavy modules are imported when a verb runs, so that `plurigp --help` is quick."""

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    from plurigp.cli import interrupt

    interrupt.install()
    try:
        from plurigp.cli.app import app

        for stream in (sys.stdout, sys.stderr):
            if reconfigure := getattr(stream, "reconfigure", None):
                reconfigure(errors="backslashreplace")
        app(prog_name="plurigp")
    finally:
        if interrupt.was_interrupted():
            interrupt.terminate()
