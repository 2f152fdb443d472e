"""SUPPORT: 9,105 seriously ill hospital patients, a real mixed table with gaps, its outcomes kept apart."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from io import BytesIO

import pandas as pd

from plurigp.data.schema import Column, Schema
from plurigp.datasets.support_columns import BASELINE, FIELDS, OUTCOMES, SCORES, SupportColumn


@dataclass(frozen=True, eq=False)
class Support:
    """The SUPPORT patients: `table` to learn from, `schema` naming its kinds, and what must stay out of it.

    `outcomes` happened after baseline; `scores` are calculated from baseline values. Rows agree across all three.
    """

    table: pd.DataFrame
    schema: Schema
    outcomes: pd.DataFrame
    scores: pd.DataFrame
    dictionary: pd.DataFrame
    attribution: str


def load_support() -> Support:
    """The bundled SUPPORT table with its gaps, kinds, outcomes, data dictionary and attribution."""
    frame = _bundled().copy()
    table = frame[[field.name for field in BASELINE]]
    outcomes = frame[[field.name for field in OUTCOMES]]
    return Support(
        table=table,
        schema=Schema(tuple(_column(field, table) for field in BASELINE)),
        outcomes=outcomes.assign(died_within_180_days=died_within(outcomes["died"], outcomes["follow_up_days"], 180)),
        scores=frame[[field.name for field in SCORES]],
        dictionary=_dictionary(),
        attribution=(files(__package__) / "ATTRIBUTION.md").read_text(encoding="utf-8"),
    )


def died_within(died: pd.Series, follow_up_days: pd.Series, days: int) -> pd.Series:
    """Death by that day: yes, no, or a gap where a living patient was not followed that long."""
    answer = (died & (follow_up_days <= days)).astype("boolean")
    return answer.mask(~died & (follow_up_days < days))


@cache
def _bundled() -> pd.DataFrame:
    raw = (files(__package__) / "support.csv.gz").read_bytes()
    frame = pd.read_csv(BytesIO(raw), compression="gzip", keep_default_na=False, na_values=[""])
    return pd.DataFrame({field.name: _typed(frame[field.name], field) for field in FIELDS})


def _typed(series: pd.Series, field: SupportColumn) -> pd.Series:
    """A column of the file in the dtype its field asks for; text is left as the reader made it."""
    if field.dtype == "str":
        return series
    if field.dtype != "category":
        return series.astype(pd.api.types.pandas_dtype(field.dtype))
    text = series.astype("Int64").astype("string") if pd.api.types.is_numeric_dtype(series) else series
    return text.astype(pd.CategoricalDtype(list(field.levels), ordered=True))


def _column(field: SupportColumn, table: pd.DataFrame) -> Column:
    dtype = str(table[field.name].dtype)
    return Column(field.name, field.kind, field.reason, field.levels, field.trials, dtype=dtype)


def _dictionary() -> pd.DataFrame:
    names = {"name": "column", "source": "published_as"}
    parts = ("name", "source", "role", "kind", "unit", "meaning")
    return pd.DataFrame({names.get(part, part): [getattr(field, part) for field in FIELDS] for part in parts})
