"""The cohort builder at size: 50 million events of 200,000 patients, 100 columns, beside hand-written SQL and pandas.

    python benchmarks/cohort.py --out /tmp/cohort            # all of it; the events take about 700 MB there
    python benchmarks/cohort.py --out /tmp/cohort --events 2000000 --repeats 1

Every contestant runs in a process of its own, one after the other within the run, and reports its seconds and its peak
memory. The hand-written SQL is what a person who knows DuckDB writes for this one table: same windows, units,
duplicates and medians, pivoted and written by DuckDB. pandas runs on a size that it can do.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pandas as pd

N_LABS, N_GROUPS, EVENTS_PER_PATIENT = 50, 50, 250
PANDAS_EVENTS = 2_000_000
LIMITS = {"threads": 2, "memory_limit": "2500MB"}
GENERATE = """
COPY (
  SELECT 1 + (i % {patients})::INTEGER AS patient,
    TIMESTAMP '2012-01-01' + to_minutes((hash(i, 1) % (6 * 525600))::INTEGER) AS time,
    CASE WHEN hash(i, 2) % 100 < 1 THEN 'ICD10/G20.' || (hash(i, 3) % 3)
         WHEN hash(i, 2) % 100 < 40 THEN 'ICD10/' || chr((65 + hash(i, 4) % 4)::INTEGER)
              || (10 + floor(90 * pow((hash(i, 5) % 1000) / 1000.0, 2)))::INTEGER || '.' || (hash(i, 6) % 9)
         WHEN hash(i, 2) % 100 < 95 THEN 'LOINC/' || (1000 + hash(i, 7) % {labs})
         ELSE 'Visit/OP' END AS code,
    CASE WHEN hash(i, 2) % 100 BETWEEN 40 AND 94
         THEN round(CASE WHEN hash(i, 8) % 5 = 0 THEN 0.1 ELSE 1 END * (50 + (hash(i, 9) % 10000) / 100.0), 2)
         END AS value,
    CASE WHEN hash(i, 2) % 100 BETWEEN 40 AND 94
         THEN CASE WHEN hash(i, 8) % 5 = 0 THEN 'g/dL' ELSE 'g/L' END END AS unit
  FROM (SELECT CASE WHEN r % 50 = 0 THEN r - 1 ELSE r END AS i FROM range({events}) t(r))
) TO '{file}' (FORMAT parquet, ROW_GROUP_SIZE 500000)
"""
BY_HAND = """
CREATE TEMP TABLE idx AS
SELECT patient, min(time::DATE) AS day FROM '{file}' WHERE code LIKE 'ICD10/G20%' GROUP BY patient;
CREATE TEMP TABLE lab AS
SELECT patient, code, median(value) AS m FROM (
  SELECT DISTINCT e.patient, e.code, e.time, CASE e.unit WHEN 'g/dL' THEN e.value * 10 ELSE e.value END AS value
  FROM '{file}' e JOIN idx i ON i.patient = e.patient
  WHERE e.code LIKE 'LOINC/%' AND e.unit IN ('g/L', 'g/dL')
    AND e.time::DATE BETWEEN i.day - INTERVAL 6 MONTH AND i.day + INTERVAL 6 MONTH
    AND CASE e.unit WHEN 'g/dL' THEN e.value * 10 ELSE e.value END BETWEEN 20 AND 400)
GROUP BY patient, code;
CREATE TEMP TABLE dx AS
SELECT DISTINCT e.patient, substr(e.code, 7, 3) AS grp FROM '{file}' e JOIN idx i ON i.patient = e.patient
WHERE e.code LIKE 'ICD10/%' AND e.time::DATE BETWEEN i.day - INTERVAL 6 MONTH AND i.day + INTERVAL 42 MONTH;
CREATE TEMP TABLE top AS SELECT grp FROM dx GROUP BY grp ORDER BY count(*) DESC, grp LIMIT {groups};
CREATE TEMP TABLE wide_lab AS SELECT patient, {lab_columns} FROM lab GROUP BY patient;
CREATE TEMP TABLE wide_dx AS
PIVOT (SELECT d.* FROM dx d SEMI JOIN top USING (grp)) ON grp USING count(*) > 0 GROUP BY patient;
COPY (SELECT * FROM idx LEFT JOIN wide_dx USING (patient) LEFT JOIN wide_lab USING (patient) ORDER BY patient)
TO '{out}' (FORMAT parquet);
"""


def specification(file: Path) -> str:
    labs = "\n".join(
        f'  {{ name = "lab_{n}", codes = ["LOINC/{1000 + n}"], value = "median", window = ["-6 months", "6 months"], '
        'unit = "g/L", convert = { "g/dL" = 10 }, range = [20, 400], kind = "gaussian" },'
        for n in range(N_LABS)
    )
    groups = (
        f'  {{ name = "dx", codes = ["ICD10/*"], group = 3, window = ["-6 months", "42 months"], top = {N_GROUPS} }},'
    )
    return (
        f'feature = [\n{groups}\n{labs}\n]\n[source]\nform = "long"\npath = "{file}"\n[index]\ncodes = ["ICD10/G20*"]\n'
    )


def generate(file: Path, n_events: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        patients = max(1, n_events // EVENTS_PER_PATIENT)
        with duckdb.connect() as connection:
            connection.execute("SET preserve_insertion_order = false")
            connection.execute(GENERATE.format(events=n_events, patients=patients, labs=N_LABS, file=file))


def run_builder(file: Path, out: Path) -> None:
    from plurigp.cohort import build_cohort, parse_specification

    built = build_cohort(parse_specification(specification(file)), LIMITS["memory_limit"], LIMITS["threads"])
    built.table.to_parquet(out, index=False)


def run_by_hand(file: Path, out: Path) -> None:
    lab_columns = ", ".join(f"any_value(m) FILTER (code = 'LOINC/{1000 + n}') AS lab_{n}" for n in range(N_LABS))
    with duckdb.connect(config=LIMITS | {"temp_directory": str(out.parent / "spill")}) as connection:
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(BY_HAND.format(file=file, out=out, groups=N_GROUPS, lab_columns=lab_columns))


def run_pandas(file: Path, out: Path) -> None:
    events = pd.read_parquet(file)
    events["day"] = events["time"].dt.normalize()
    index = events.loc[events["code"].str.startswith("ICD10/G20")].groupby("patient")["day"].min().rename("index")
    events = events.merge(index, left_on="patient", right_index=True)
    start, late, end = (events["index"] + pd.DateOffset(months=n) for n in (-6, 42, 6))
    dx = events[events["code"].str.startswith("ICD10/") & (events["day"] >= start) & (events["day"] <= late)]
    dx = dx.assign(grp=dx["code"].str[6:9])[["patient", "grp"]].drop_duplicates()
    kept = (
        dx["grp"].value_counts().sort_index(kind="stable").sort_values(ascending=False, kind="stable").index[:N_GROUPS]
    )
    wide = pd.crosstab(dx["patient"], dx["grp"])[sorted(kept)].astype(bool).reindex(index.index, fill_value=False)
    labs = events[events["code"].str.startswith("LOINC/") & (events["day"] >= start) & (events["day"] <= end)]
    labs = labs.assign(value=labs["value"].where(labs["unit"] != "g/dL", labs["value"] * 10))
    labs = labs[labs["value"].between(20, 400)].drop_duplicates(["patient", "code", "time", "value"])
    medians = labs.groupby(["patient", "code"])["value"].median().unstack()
    wide.join(medians).reset_index().to_parquet(out, index=False)


CONTESTANTS = {"cohort builder": run_builder, "SQL by hand": run_by_hand, "pandas": run_pandas}


def peak_memory() -> float:
    """Of this process alone, in GB; getrusage would count the parent's pages before exec too."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 2**20


def measured(name: str, file: Path, out: Path) -> dict:
    """One contestant in a process of its own."""
    command = [sys.executable, __file__, "--contestant", name, "--file", str(file), "--out", str(out)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def race(names: list[str], file: Path, folder: Path, repeats: int) -> dict[str, dict]:
    """Best seconds and largest peak of each, in turns."""
    best: dict[str, dict] = {}
    for _ in range(repeats):
        for name in names:
            one = measured(name, file, folder / f"{name.replace(' ', '_')}.parquet")
            old = best.get(name, one)
            best[name] = {
                "seconds": min(one["seconds"], old["seconds"]),
                "peak_gb": max(one["peak_gb"], old["peak_gb"]),
            }
    return best


def same_tables(folder: Path, other: str) -> bool:
    """Whether the builder's table holds the same numbers as another contestant's."""
    ours = pd.read_parquet(folder / "cohort_builder.parquet").set_index("patient").sort_index()
    theirs = pd.read_parquet(folder / f"{other.replace(' ', '_')}.parquet").set_index("patient").sort_index()
    theirs.columns = [f"lab_{int(c[6:]) - 1000}" if c.startswith("LOINC/") else c for c in theirs.columns]
    labs = [f"lab_{n}" for n in range(N_LABS)]
    groups = [c for c in ours.columns if c.startswith("dx_")]
    present = theirs[[c.removeprefix("dx_") for c in groups]].astype("boolean").fillna(False).to_numpy(bool)
    close = (abs(ours[labs] - theirs[labs]) < 1e-6) | (ours[labs].isna() & theirs[labs].isna())
    return bool(close.all(axis=None) and (ours[groups].to_numpy(bool) == present).all())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--events", type=int, default=50_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--contestant", choices=CONTESTANTS)
    parser.add_argument("--file", type=Path)
    asked = parser.parse_args()
    if asked.contestant:
        started = time.perf_counter()
        CONTESTANTS[asked.contestant](asked.file, asked.out)
        print(json.dumps({"seconds": time.perf_counter() - started, "peak_gb": peak_memory()}))
        return 0
    print("| events | contestant | seconds | builder ÷ contestant | peak memory, GB | same table |")
    print("|---|---|---|---|---|---|")
    for n_events, names in ((asked.events, ["cohort builder", "SQL by hand"]), (PANDAS_EVENTS, list(CONTESTANTS))):
        file = asked.out / f"events_{n_events}.parquet"
        generate(file, n_events)
        found = race(names, file, asked.out, asked.repeats)
        for name, one in found.items():
            ratio = found["cohort builder"]["seconds"] / one["seconds"]
            same = "" if name == "cohort builder" else "yes" if same_tables(asked.out, name) else "NO"
            print(
                f"| {n_events:,} | {name} | {one['seconds']:.1f} | {ratio:.2f} | {one['peak_gb']:.2f} | {same} |",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
