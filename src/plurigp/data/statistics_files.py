"""Tables of spreadsheets and statistics programs (Excel, Stata, SPSS), read by pandas."""

import warnings
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from plurigp.core.text import listing, show
from plurigp.core.types import DataError

NEEDED = {".xlsx": ("openpyxl", "excel"), ".sav": ("pyreadstat", "spss"), ".zsav": ("pyreadstat", "spss")}
PROGRAMS = {".xlsx": "Excel", ".dta": "Stata", ".sav": "SPSS", ".zsav": "SPSS"}
MAX_UNZIPPED = 2**31  # bytes of a workbook, which is a zip file


def read_statistics_file(path: Path, suffix: str, source: str) -> pd.DataFrame:
    """The one table in the file; value labels become levels, and the program's own missing values gaps."""
    module, extra = NEEDED.get(suffix, ("pandas", ""))
    if find_spec(module) is None:
        raise DataError(
            f"{source}: {PROGRAMS[suffix]} files need {module}; install it with pip install plurigp[{extra}]."
        )
    try:
        with warnings.catch_warnings(action="ignore"):  # about formatting that is of no concern here
            if suffix == ".xlsx":
                return _sheet(path, source)
            return pd.read_stata(path) if suffix == ".dta" else pd.read_spss(path)
    except (DataError, MemoryError):
        raise
    except Exception as error:  # each of these libraries has errors of its own
        finding = f"not a readable {PROGRAMS[suffix]} file ({type(error).__name__})"
        raise DataError(f"{source}: {finding}; open it there and save it as CSV.") from None


def _sheet(path: Path, source: str) -> pd.DataFrame:
    """The only sheet of a workbook that holds cells."""
    with zipfile.ZipFile(path) as parts:
        if sum(part.file_size for part in parts.infolist()) > MAX_UNZIPPED:
            raise DataError(f"{source}: unpacks to more than {MAX_UNZIPPED // 2**30} GB; save the table as CSV.")
    sheets = {name: frame for name, frame in pd.read_excel(path, sheet_name=None).items() if frame.shape[1]}
    if len(sheets) != 1:
        found = f"{len(sheets)} sheets with cells ({listing(show(name) for name in sheets)})" if sheets else "no cells"
        raise DataError(f"{source}: {found}; leave the one sheet that holds the table, names in its first row.")
    frame = next(iter(sheets.values()))
    unnamed = [place + 1 for place, name in enumerate(frame.columns) if str(name).startswith("Unnamed: ")]
    if unnamed:
        raise DataError(f"{source}: column {unnamed[0]} has no name; name it, or remove what lies outside the table.")
    return frame
