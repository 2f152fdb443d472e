"""The data layer: tables of every make, the kinds of their columns, and the coded numbers the model takes."""

from plurigp.data.column import ASIDE, Column
from plurigp.data.frames import to_frame
from plurigp.data.infer import infer_schema
from plurigp.data.kinds import KINDS, Kind
from plurigp.data.read import read_table
from plurigp.data.rows import Rows, is_parquet, to_rows
from plurigp.data.schema import Schema
from plurigp.data.table import Coder, Table

__all__ = [
    "ASIDE",
    "KINDS",
    "Coder",
    "Column",
    "Kind",
    "Rows",
    "Schema",
    "Table",
    "infer_schema",
    "is_parquet",
    "read_table",
    "to_frame",
    "to_rows",
]
