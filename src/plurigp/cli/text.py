"""Output on the terminal. Names and levels come from tables, so they are treated as hostile text."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def printable(text: object) -> str:
    """The text in one line, with control characters, line breaks and direction marks shown as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def say(line: str) -> None:
    """One line on stdout."""
    print(printable(line))


def say_progress(line: str) -> None:
    """One line on stderr if that is a terminal."""
    if sys.stderr is not None and sys.stderr.isatty():
        print(printable(line), file=sys.stderr, flush=True)


def say_json(answer: Mapping[str, Any]) -> None:
    """The answer as one JSON object on stdout; a number that is not finite becomes null."""
    finite = json.loads(json.dumps(answer), parse_constant=lambda _: None)
    print(json.dumps(finite, indent=2, allow_nan=False))


def say_table(head: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[str] = ()) -> None:
    """A table on stdout; the columns in `right` are aligned right. Cells are never read as markup."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in head:
        table.add_column(Text(name), justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    width = None if sys.stdout.isatty() else 140
    Console(file=sys.stdout, width=width, highlight=False).print(table)
