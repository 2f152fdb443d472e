"""The command line. Heavy modules are imported when a verb runs, so that `plurigp --help` is quick."""

import os
import sys


def main() -> None:
    """Run the command line and exit with its code."""
    from plurigp.cli import interrupt

    interrupt.install()
    try:
        from plurigp.cli.app import app

        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:  # closed by the caller: what is said goes nowhere
                setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # as long as the process
        for stream in (sys.stdout, sys.stderr):
            if reconfigure := getattr(stream, "reconfigure", None):
                reconfigure(errors="backslashreplace")
        app(prog_name="plurigp")
    finally:
        if interrupt.was_interrupted():
            interrupt.terminate()
