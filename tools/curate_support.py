"""Make the bundled SUPPORT table from the published support2.csv: python tools/curate_support.py PATH_TO_SUPPORT2_CSV

The published file is that of the Vanderbilt biostatistics repository: 9,105 patients, 47 columns and a row number.
What is done to it, and why:

rows      All 9,105, in the published order. The row number is dropped.
gaps      Every gap stays a gap. The "normal values" that are often filled in for albumin, bilirubin and others are not.
names     Clear ones; src/plurigp/datasets/support_columns.py lists name, published name, unit, meaning and kind.
numbers   Many published values were cut to 12 binary digits after the first (10.1 became 10.0996094). Each is
          written as the shortest decimal that it can stand for, less than 1/4096 of itself away.
          Age is rounded to 0.01 years, money to the dollar.
units     As published. No logarithm, no clipping. Odd values stay: heart rate 0 (83 rows), respiratory rate 0 (65),
          mean blood pressure 0 (51), white blood cells 0 (10), urine output 0 (93) or below 10 mL (22,
          perhaps litres), albumin 29 g/dL (1): we cannot know which are errors.
yes/no    diabetes and dementia 0/1 become no/yes.
dnr       It mixes times. "before study admission" is known at baseline: the table's do_not_resuscitate. "after" is
          an outcome: later_do_not_resuscitate. Its day (dnrday) is an outcome or, without an order, the day of
          discharge or death: left out.
Left out of the table, kept as scores (they would count the same facts twice):
          sps, aps        calculated from the vital signs and lab values of day 3
          surv2m, surv6m  the study's own survival model, calculated from baseline values; fitted to the outcome
          prg6m           the physician's six-month estimate: some 400 values are exactly the cube of the two-month
                          one, so presumably filled in by a formula. The two-month estimate stays in the table. It is an
                          opinion about the outcome, formed at baseline: drop it before asking whether subtypes that
                          were found without any prognosis differ in survival.
Kept as outcomes: death, d.time, hospdead, slos, sfdm2, charges, totcst, and avtisst (treatment on days 3 to 25).
Left out altogether:
          dzclass         a function of dzgroup
          adlsc           adls and adlp made one, with the gaps filled in
          totmcst         a second costing: 38 % missing, with negative values
          hday            days in hospital before study entry: a count with a variance 19 times its mean and a
                          maximum of 148, which neither poisson nor gaussian describes. A negative binomial would.
"""

import gzip
import hashlib
import sys
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from plurigp.datasets.support_columns import FIELDS  # noqa: E402  # the checkout beside this script, installed or not

FOLDER = ROOT / "src" / "plurigp" / "datasets"
ROUNDED = {"age": 2, "charges": 0, "cost": 0}
NO_YES = {0: "no", 1: "yes"}
RECODED = {
    "diabetes": NO_YES,
    "dementia": NO_YES,
    "do_not_resuscitate": {"no dnr": "no", "dnr after sadm": "no", "dnr before sadm": "yes"},
    "later_do_not_resuscitate": {"no dnr": 0, "dnr after sadm": 1, "dnr before sadm": 0},
    "function_2_months": {
        "no(M2 and SIP pres)": "no marked limits",
        "adl>=4 (>=5 if sur)": "limits in daily activities",
        "SIP>=30": "sickness impact 30 or more",
        "Coma or Intub": "coma or intubated",
        "<2 mo. follow-up": "died",
    },
}


def shortest_decimal(values: np.ndarray) -> np.ndarray:
    """Undo the cut to 12 binary digits after the first: the shortest decimal that is cut to each value."""
    result = values.copy()
    step = np.ldexp(1.0, np.frexp(values)[1] - 13)  # a value 2^e to 2^(e+1) was cut to a multiple of 2^(e-12)
    for digits in range(8, -1, -1):
        power = 10.0**digits
        above = np.round(np.ceil(values * power - 1e-6) / power, digits) + 0.0  # no negative zero
        result = np.where(np.abs(above - values) < step, above, result)
    return result


def recode(column: pd.Series, values: dict) -> pd.Series:
    """Each value by its new name; a value without one stops the work, lest it become a gap."""
    unknown = set(column.dropna()) - set(values)
    if unknown:
        raise ValueError(f"column {column.name!r}: no recoding for {sorted(map(str, unknown))}")
    return column.map(values, na_action="ignore")


def curate(published: pd.DataFrame) -> pd.DataFrame:
    """The published frame as the bundled one: columns chosen and renamed, numbers restored, gaps kept."""
    frame = {}
    for field in FIELDS:
        column = published[field.source]
        if field.name in RECODED:
            column = recode(column, RECODED[field.name])
        elif field.name in ROUNDED:
            column = column.round(ROUNDED[field.name])
        elif field.dtype == "float64":
            column = pd.Series(shortest_decimal(column.to_numpy(float)), index=column.index)
        frame[field.name] = column
    return pd.DataFrame(frame)


def to_bytes(frame: pd.DataFrame) -> bytes:
    """The frame as CSV, whole numbers without a point, compressed with no name and no time: equal in, equal out."""
    text = frame.apply(_text).to_csv(index=False, lineterminator="\n")
    return gzip.compress(text.encode("utf-8"), compresslevel=9, mtime=0)


def _text(column: pd.Series) -> pd.Series:
    if not pd.api.types.is_numeric_dtype(column):
        return column
    return column.map(lambda value: "" if pd.isna(value) else np.format_float_positional(value, trim="-"))


def dictionary() -> str:
    """The data dictionary as a Markdown table, one line per column."""
    lines = ["| column | published as | role | kind | unit | meaning |", "|---|---|---|---|---|---|"]
    lines += [f"| {f.name} | {f.source} | {f.role} | {f.kind} | {f.unit} | {f.meaning} |" for f in FIELDS]
    return "\n".join(lines) + "\n"


def main(path: str) -> None:
    raw = to_bytes(curate(pd.read_csv(path, skipinitialspace=True)))
    (FOLDER / "support.csv.gz").write_bytes(raw)
    (FOLDER / "support.sha256").write_text(f"{hashlib.sha256(raw).hexdigest()}  support.csv.gz\n", encoding="utf-8")
    page = FOLDER / "ATTRIBUTION.md"
    story, heading, _ = page.read_text(encoding="utf-8").partition("## Data dictionary\n")
    page.write_text(f"{story}{heading}\n{dictionary()}", encoding="utf-8")
    print(f"support.csv.gz: {len(raw)} bytes")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/curate_support.py PATH_TO_SUPPORT2_CSV")
    main(sys.argv[1])
