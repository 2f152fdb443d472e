"""A filled text file: observed cells keep their spelling, only gaps are written."""

from pathlib import Path
from typing import TYPE_CHECKING

from plurigp.cli.errors import CommandError

if TYPE_CHECKING:
    import pandas as pd

    from plurigp.data.dialect import TextDialect


def spelling(path: Path, out: Path, sep: str | None, decimal: str | None) -> "TextDialect | None":
    """How the file spells its cells; None where they cannot keep it: standard input, decimal commas, Parquet."""
    from plurigp.core.files import SEPARATORS
    from plurigp.data import is_parquet
    from plurigp.data.read import STANDARD_INPUT, text_dialect

    if str(path) == STANDARD_INPUT or not path.name.lower().endswith(tuple(SEPARATORS)) or is_parquet(out):
        return None
    dialect = text_dialect(path, sep, decimal)
    return dialect if dialect.decimal == "." else None


def filled_text(path: Path, frame: "pd.DataFrame", filled: "pd.DataFrame", sep: str = ",") -> "pd.DataFrame":
    """The file at `path` as text, with the cells that are gaps in `frame` spelled from `filled`."""
    import pandas as pd

    text = pd.read_csv(  # rows and cells are split as in `read_table`
        path, sep=sep, dtype=str, keep_default_na=False, skipinitialspace=True, index_col=False, encoding="utf-8-sig"
    )
    if text.shape != frame.shape:
        raise CommandError(f"{path}: changed while it was being read; run the command again.")
    text.columns = frame.columns
    for place in range(frame.shape[1]):
        was, now = frame.iloc[:, place], filled.iloc[:, place]
        seen = was.notna().to_numpy()
        gaps = ~seen & now.notna().to_numpy()
        if gaps.any():
            column = text.iloc[:, place].to_numpy(dtype=object, copy=True)
            column[gaps] = spelled(now[gaps].tolist(), was[seen].tolist(), column[seen].tolist())
            text.isetitem(place, column)
    return text


def spelled(values: list, seen: list, texts: list[str]) -> list[str]:
    """Each value as the column itself spells it: 3 rather than 3.0 among whole numbers, true rather than True."""
    known = {value: text for value, text in zip(seen, texts, strict=True) if isinstance(value, bool)}
    if all(text.strip().lstrip("+-").isdigit() for text in texts):
        values = [int(value) if isinstance(value, float) and value.is_integer() else value for value in values]
    return [known.get(value) or str(value) for value in values]
