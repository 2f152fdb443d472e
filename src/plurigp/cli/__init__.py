"""The command line. Nothing heavy is imported before a verb runs, so `plurigp --help` answers at once."""

import sys


def main() -> None:
    """Run the verb that the command line asks for and exit with its code."""
    from plurigp.cli import interrupt

    interrupt.listen()
    try:
        _run()
    finally:
        if interrupt.heard():
            interrupt.end()


def _run() -> None:
    from plurigp.cli.app import app

    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")
    app(prog_name="plurigp")
