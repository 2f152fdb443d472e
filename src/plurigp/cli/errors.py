"""An error becomes one line on stderr and an exit code; PLURIGP_DEBUG=1 adds the traceback.

Exit codes: 0 done, 1 bad data or a bad request, 2 wrong usage, 70 internal error, 130 interrupted.
"""

import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from plurigp.cli.interrupt import terminate, was_interrupted
from plurigp.core.text import printable
from plurigp.core.types import DataError

FAILED, INTERNAL = 1, 70


class CommandError(Exception):
    """The command cannot be carried out as asked; the message names what is wrong and the remedy."""


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn every error inside into its line and exit code, and every warning into a line."""
    with warnings.catch_warnings():
        warnings.showwarning = _warn
        try:
            yield
        except KeyboardInterrupt:
            terminate()
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if was_interrupted():
                terminate()
            if os.environ.get("PLURIGP_DEBUG"):
                traceback.print_exc()
            if is_user_error(error):
                raise _failed(f"error: {message(error)}", FAILED) from None
            hint = "rerun with PLURIGP_DEBUG=1 for the traceback"
            raise _failed(f"internal error: {type(error).__name__}: {message(error)}; {hint}", INTERNAL) from None


@contextmanager
def about(path: Path) -> Iterator[None]:
    """Put the file's name before an error about its data, unless the message has it."""
    try:
        yield
    except DataError as error:
        source = "standard input" if str(path) == "-" else str(path)
        if source in str(error):
            raise
        raise CommandError(f"{source}: {error}") from error


def is_user_error(error: Exception) -> bool:
    """Whether the user can correct it: data, a parameter, a file, memory. Imports nothing to find out."""
    invalid = getattr(sys.modules.get("sklearn.utils._param_validation"), "InvalidParameterError", DataError)
    return isinstance(error, (CommandError, DataError, invalid, OSError, MemoryError, FloatingPointError))


def message(error: Exception) -> str:
    """The error in one line, with the file in front where the system names one."""
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}. Use a smaller --batch-size or fewer columns."
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    return str(error) or type(error).__name__


def _failed(line: str, code: int) -> typer.Exit:
    print(printable(line), file=sys.stderr)
    return typer.Exit(code)


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    print(printable(f"warning: {message}"), file=sys.stderr)
