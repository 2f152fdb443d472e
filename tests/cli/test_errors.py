import warnings

import pytest
import typer

from plurigp.cli.errors import CommandError, one_line_errors
from plurigp.core.types import DataError


def failing(error: BaseException) -> int:
    """The exit code that an error leads to."""
    with pytest.raises(typer.Exit) as caught, one_line_errors():
        raise error
    return caught.value.exit_code


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (DataError("column 'age', row 3: not a number"), 1, "error: column 'age', row 3: not a number"),
        (CommandError("out.csv: already exists"), 1, "error: out.csv: already exists"),
        (FileNotFoundError(2, "No such file or directory", "a.csv"), 1, "error: a.csv: No such file or directory"),
        (OSError(28, "No space left on device"), 1, "error: No space left on device"),
        (ZeroDivisionError("by\nzero"), 70, "internal error: ZeroDivisionError: by\\nzero; rerun with PLURIGP_DEBUG=1"),
        (AssertionError(), 70, "internal error: AssertionError: AssertionError; rerun"),
    ],
)
def test_one_line_and_a_code(capsys, error, code, line):
    assert failing(error) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith(line)


def test_memory_error_has_a_remedy(capsys):
    assert failing(MemoryError("Unable to allocate 8 TiB")) == 1
    assert "--batch-size" in capsys.readouterr().err


def test_traceback_on_request(capsys, monkeypatch):
    monkeypatch.setenv("PLURIGP_DEBUG", "1")
    assert failing(ZeroDivisionError("x")) == 70
    assert "Traceback" in capsys.readouterr().err


def test_exit_and_broken_pipe_pass_through():
    with pytest.raises(BrokenPipeError), one_line_errors():
        raise BrokenPipeError
    with pytest.raises(typer.Exit), one_line_errors():
        raise typer.Exit(3)


@pytest.mark.filterwarnings("default::UserWarning")
def test_warning_is_a_line(capsys):
    with one_line_errors():
        warnings.warn("the map has\ncollapsed", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "warning: the map has\\ncollapsed\n"
