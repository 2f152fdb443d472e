"""`plurigp check`: the kind of every column, with its reason."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from plurigp.cli.errors import about
from plurigp.cli.files import check_file
from plurigp.cli.text import say, say_json, say_table
from plurigp.core.files import whole_file

if TYPE_CHECKING:
    import pandas as pd

    from plurigp.data import Column, Rows, Schema


def run_check(
    path: Path, overrides: Path | None, write: Path | None, force: bool, json: bool, compare: bool = False
) -> None:
    """Infer, check every cell, print, and write the schema if asked; with `compare`, judge other kinds as well."""
    from plurigp.data import Coder, infer_schema, read_table, to_rows

    if write is not None:
        check_file(write, force)
    frame = read_table(path)
    with about(path):
        rows = to_rows(frame)
        schema = Coder.fit(rows, infer_schema(rows, overrides)).schema
    if write is not None:
        with whole_file(write) as part:
            part.write_text(schema.to_toml(), encoding="utf-8")
    compared = _compared(path, rows, schema) if compare else {}
    if json:
        say_json(as_json(path, frame, schema) | ({"compared": compared} if compare else {}))
        return
    show_schema(frame, schema)
    if compare:
        show_compared(compared)
    if write is not None:
        say(f"wrote {write}: edit it and hand it back with --schema {write}")


def _compared(path: Path, rows: "Rows", schema: "Schema") -> dict[str, Any]:
    from dataclasses import asdict

    from plurigp.estimator.compare import compare_kinds

    with about(path):
        return {name: asdict(found) for name, found in compare_kinds(rows, schema).items()}


def show_compared(compared: dict[str, Any]) -> None:
    """What each candidate loses against the kind that predicts hidden cells best."""
    rows = []
    for name, found in compared.items():
        others = [kind for kind in found["scores"] if kind != found["recommended"]]
        losses = (f"{kind} −{found['gains'][kind]:.3f} ± {found['errors'][kind]:.3f}" for kind in others)
        rows.append((short(name), found["kind"], found["recommended"], ", ".join(losses)))
    say("")
    say_table(("column", "kind", "recommended", "the others, in nats per hidden cell"), rows)
    n_other = sum(found["kind"] != found["recommended"] for found in compared.values())
    say(f"{len(compared)} columns compared; for {n_other} another kind predicts better")


def show_schema(frame: "pd.DataFrame", schema: "Schema") -> None:
    """The schema as a table on stdout, and what it amounts to in one line."""
    from plurigp.data.schema import detail

    rows = [(short(c.name), c.kind, detail(c), f"{gaps(frame, c):.1%}", c.reason) for c in schema.columns]
    say_table(("column", "kind", "detail", "gaps", "reason"), rows, right=("gaps",))
    say(f"{len(frame)} rows; {len(schema.used)} columns used, {len(schema.aside)} set aside")


def short(name: str, width: int = 40) -> str:
    """A name cut to the width of a table's column."""
    return name if len(name) <= width else name[: width - 1] + "…"


def gaps(frame: "pd.DataFrame", column: "Column") -> float:
    """The share of cells without a value."""
    return float(frame[column.name].isna().mean()) if len(frame) else 0.0


def as_json(path: Path, frame: "pd.DataFrame", schema: "Schema") -> dict[str, Any]:
    """The same for a script: the schema's own fields, and the gaps."""
    saved = schema.to_dict()["columns"]
    columns = [entry | {"gaps": gaps(frame, c)} for entry, c in zip(saved, schema.columns, strict=True)]
    return {"table": str(path), "rows": len(frame), "columns": columns}
