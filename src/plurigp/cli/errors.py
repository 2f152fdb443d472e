"""What goes wrong becomes one line on stderr and an exit code; a traceback is shown only on request.

Exit codes: 0 done, 1 something is wrong with the data or the request, 2 usage, 70 a fault of ours, 130 interrupted.
"""

import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from plurigp.cli.interrupt import end, heard
from plurigp.core.text import printable

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
            end()
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if heard():
                end()
            if os.environ.get("PLURIGP_DEBUG"):
                traceback.print_exc()
            if is_ours(error):
                raise _failed(f"error: {message(error)}", FAILED) from None
            hint = "rerun with PLURIGP_DEBUG=1 for the traceback"
            raise _failed(f"internal error: {type(error).__name__}: {message(error)}; {hint}", INTERNAL) from None


@contextmanager
def about(path: Path) -> Iterator[None]:
    """Put the file's name before an error about its data, unless it is named there already."""
    from plurigp.core.types import DataError

    try:
        yield
    except DataError as error:
        if str(path) in str(error):
            raise
        raise CommandError(f"{path}: {error}") from error


def is_ours(error: Exception) -> bool:
    """Whether the user can mend it: bad data, a bad parameter, a file, memory. Imports nothing for it."""
    known = (("plurigp.core.types", "DataError"), ("sklearn.utils._param_validation", "InvalidParameterError"))
    loaded = [getattr(sys.modules.get(module), name, None) for module, name in known]
    return isinstance(error, (CommandError, OSError, MemoryError, FloatingPointError, *filter(None, loaded)))


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
