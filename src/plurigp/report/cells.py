"""The cells of single rows, only where somebody asks for them and only from the very table that was studied."""

import hashlib
from typing import Any

import pandas as pd

from plurigp.core.types import DataError
from plurigp.data import to_frame
from plurigp.study import StudyResult
from plurigp.study.fits.store import read_json
from plurigp.study.run import STARTED


def studied_cells(result: StudyResult, table: Any) -> pd.DataFrame:
    """The used columns of the study's table; another table is refused."""
    frame = to_frame(table).reset_index(drop=True)
    names = [str(name) for name in result.columns["column"]]
    same = len(frame) == result.facts["n_rows"] and set(names) <= set(map(str, frame.columns))
    if same and result.folder is not None:
        text = frame[names].to_csv(index=False)
        same = hashlib.sha256(text.encode()).hexdigest() == read_json(result.folder / STARTED).get("table")
    if not same:
        raise DataError("this is not the table that was studied, cell by cell; give the very same one.")
    return frame[[str(name) for name in result.columns.loc[result.columns["used"].astype(bool), "column"]]]
