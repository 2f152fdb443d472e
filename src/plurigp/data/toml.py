"""A schema as TOML that a person edits, and back. Reading is tomllib's; writing is a few lines."""

import re
import tomllib

from plurigp.core.text import show
from plurigp.core.types import DataError
from plurigp.data.column import ASIDE, Column, Level
from plurigp.data.kinds import KINDS, kind_of

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def dumps(columns: tuple[Column, ...]) -> str:
    """One [[column]] table per column: the reason as a comment, and only the settings that its kind has."""
    head = ["# One [[column]] per column of the table. Change kind where the choice is wrong.", "# Kinds:"]
    head += [f"#   {kind.name}: {kind.about}" for kind in KINDS.values()]
    head += [f"#   {ASIDE}: not used by the model", ""]
    return "\n".join(head + [_block(column) for column in columns])


def _block(column: Column) -> str:
    lines = [f"# {_string(column.reason)[1:-1]}"] if column.reason else []
    lines += ["[[column]]", f"name = {_string(column.name)}", f"kind = {_string(column.kind)}"]
    fields = () if column.kind == ASIDE else kind_of(column).settings
    if "levels" in fields and column.levels:
        lines.append(f"levels = [{', '.join(_value(level) for level in column.levels)}]")
    if "trials" in fields and column.trials is not None:
        lines.append(f"trials = {_value(column.trials)}")
    if "bounds" in fields and column.bounds is not None:
        lines.append(f"bounds = [{_value(column.bounds[0])}, {_value(column.bounds[1])}]")
    for key in ("upper", "event"):
        if key in fields and getattr(column, key) is not None:
            lines.append(f"{key} = {_value(getattr(column, key))}")
    return "\n".join(lines) + "\n"


def _value(value: Level) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _string(value) if isinstance(value, str) else repr(value)


def _string(text: str) -> str:
    """A TOML basic string: quotes, backslashes and control characters escaped."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise DataError(f"{show(text)} is not valid Unicode and cannot be written as TOML; rename it.") from None
    return '"' + "".join(_escape(char) for char in text) + '"'


def _escape(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    hidden = ord(char) < 0x20 or 0x7F <= ord(char) <= 0x9F or char in "\u2028\u2029\ufeff"
    return f"\\u{ord(char):04X}" if hidden else char


def loads(text: str, source: str) -> dict:
    """The parsed file; what is not TOML is an error with its line."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        finding = str(error)
        if not re.search(r"line \d+", finding):
            finding += f" (line {text.count(chr(10)) + 1})"
        raise DataError(f"{source}: not valid TOML: {finding}. Correct that line.") from None
