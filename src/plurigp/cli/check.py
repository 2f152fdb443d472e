"""`plurigp check`: the kind of every column, with its reason."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plurigp.cli.errors import about
from plurigp.cli.files import check_file
from plurigp.cli.options import Decimal, Force, Json, Missing, SchemaIn, Sep, TableIn, read_input
from plurigp.cli.text import say, say_json, say_table
from plurigp.core.files import whole_file
from plurigp.core.text import printable

if TYPE_CHECKING:
    import pandas as pd

    from plurigp.data import Rows, Schema

NAME_WIDTH = 40  # characters of a column's name in a table on the terminal


def check(
    table: TableIn,
    schema: SchemaIn = None,
    write: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the schema as an editable file.")] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Fit the alternative kinds too and report which predicts best.")
    ] = False,
    force: Force = False,
    sep: Sep = None,
    decimal: Decimal = None,
    missing: Missing = None,
    json: Json = False,
) -> None:
    """Show the kind of every column and the reason.

    Infers a kind for every column (such as gaussian, bernoulli, poisson, beta or categorical; aside if it is not
    modelled), checks every cell against it, and prints kind, detail, share of gaps and reason. --write saves the
    schema; edit it and pass it with --schema. --compare fits each column under every suitable kind, which takes a few
    minutes for a large table, and names the kind that predicts held-out cells best.

    \b
    Example:
      plurigp check patients.csv --write schema.toml
    """
    from plurigp.data import Coder, infer_schema, to_rows

    if write is not None:
        check_file(write, force)
    rows = to_rows(read_input(table, sep, decimal, missing))
    with about(table):
        coder = Coder.fit(rows, infer_schema(rows, schema))
        if write is not None:
            with whole_file(write) as part:
                part.write_text(coder.schema.to_toml(suspected(rows, coder.schema)), encoding="utf-8")
        facts = schema_facts(table, rows, coder.schema, compare)
    if json:
        say_json(facts)
        return
    say_schema(rows.frame, coder.schema)
    if compare:
        say_comparison(facts["compared"])
    if write is not None:
        say(f"wrote {write}: edit it and pass it with --schema {write}")


def suspected(rows: "Rows", schema: "Schema") -> dict[str, list[float]]:
    """By column, the numbers that seem to stand for gaps."""
    from plurigp.data.sentinels import suspected_codes

    return {column.name: suspected_codes(column, rows.numbers(column)[:, 0]) for column in schema.used}


def say_comparison(compared: dict[str, Any]) -> None:
    """What each candidate loses against the kind that predicts held-out cells best."""
    rows = []
    for name, found in compared.items():
        others = [kind for kind in found["scores"] if kind != found["recommended"]]
        losses = (f"{kind} −{found['gains'][kind]:.3f} ± {found['errors'][kind]:.3f}" for kind in others)
        rows.append((printable(name, NAME_WIDTH), found["kind"], found["recommended"], ", ".join(losses)))
    say("")
    say_table(("column", "kind", "recommended", "loss of the others (nats per held-out cell)"), rows)
    n_other = sum(found["kind"] != found["recommended"] for found in compared.values())
    say(f"{len(compared)} columns compared; another kind predicts better for {n_other}")


def say_schema(frame: "pd.DataFrame", schema: "Schema") -> None:
    """The schema as a table on stdout, with a line of totals."""
    from plurigp.data.schema import detail

    gaps = schema.with_gaps(frame).isna().mean()
    rows = [(printable(c.name, NAME_WIDTH), c.kind, detail(c), f"{gaps[c.name]:.1%}", c.reason) for c in schema.columns]
    say_table(("column", "kind", "detail", "gaps", "reason"), rows, right=("gaps",))
    say(f"{len(frame)} rows; {len(schema.used)} columns used, {len(schema.aside)} set aside")


def schema_facts(path: Path, rows: "Rows", schema: "Schema", compare: bool) -> dict[str, Any]:
    """The schema's own fields, the share of gaps and the comparison of kinds where asked for, for JSON."""
    gaps = schema.with_gaps(rows.frame).isna().mean()
    columns = [entry | {"gaps": float(gaps[entry["name"]])} for entry in schema.to_dict()["columns"]]
    facts: dict[str, Any] = {"table": str(path), "rows": len(rows), "columns": columns}
    if compare:
        from plurigp.estimator.compare import compare_kinds

        facts["compared"] = {name: asdict(found) for name, found in compare_kinds(rows, schema).items()}
    return facts
