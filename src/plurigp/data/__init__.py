"""The data layer: tables of every make, the kinds of their columns, and the coded numbers the model takes.

Examples
--------
>>> import numpy as np
>>> from plurigp.data import ASIDE, KINDS, Coder, infer_schema, is_parquet, read_table, to_frame, to_rows
>>> rng = np.random.default_rng(0)
>>> frame = to_frame({"id": [f"P{i}" for i in range(30)], "lab": rng.normal(size=30), "visits": rng.poisson(2, 30)})
>>> frame.to_csv("few.csv", index=False)
>>> schema = infer_schema(read_table("few.csv"))  # a Schema: one Column for every column
>>> [(column.name, column.kind) for column in schema]
[('id', 'aside'), ('lab', 'gaussian'), ('visits', 'poisson')]
>>> schema["id"].kind == ASIDE, KINDS["poisson"].label  # a Kind: everything that is known of it
(True, 'count')
>>> rows = to_rows(frame)  # Rows; the path of a Parquet file stays a file that is read column by column
>>> len(rows), is_parquet("patients.parquet")
(30, True)
>>> coder = Coder.fit(rows, schema)
>>> table = coder.table(rows)  # a Table: coded values, and which cells are seen
>>> table.seen.shape, bool(table.seen.all())
((30, 2), True)
"""

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
