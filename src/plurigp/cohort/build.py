"""From a specification to a table, step by step."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from plurigp.cohort.assemble import Cells, assemble_table, fetch_people, outcome_notes
from plurigp.cohort.counts import count_events, find_present, first_events
from plurigp.cohort.engines import Engine
from plurigp.cohort.matching import Matching
from plurigp.cohort.parse import read_specification
from plurigp.cohort.population import (
    AttritionStep,
    apply_rules,
    find_candidates,
    keep_with_values,
    untimed_index_events,
)
from plurigp.cohort.quality import Quality, attrition_table, check_units, limited_lists, quality_tables
from plurigp.cohort.sources import Records, open_records
from plurigp.cohort.specification import Specification
from plurigp.cohort.stores import open_store
from plurigp.cohort.values import MEASURED, collect_values, value_cells
from plurigp.core.text import printable
from plurigp.core.types import DataError
from plurigp.data import Schema


@dataclass(frozen=True)
class BuiltCohort:
    """The table, its schema, how it came about, and the SQL that was run."""

    table: pd.DataFrame
    schema: Schema
    attrition: tuple[AttritionStep, ...]
    quality: Quality
    sql: str


def build_cohort(
    specification: Specification | str | os.PathLike,
    memory: str | None = None,
    threads: int | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> BuiltCohort:
    """One row per patient, as the specification (or its file) says.

    `memory` ("4GB") and `threads` limit DuckDB; `progress` hears a line before each step.
    """
    spec = specification if isinstance(specification, Specification) else read_specification(Path(specification))
    started = time.monotonic()

    def step(line: str) -> None:
        progress(f"{time.monotonic() - started:6.1f} s  {line}")

    step("opening the source")
    store = open_store(spec.source, memory, threads)
    try:
        return _build(store.engine, open_records(store, spec.source), spec, step)
    finally:
        store.engine.close()


def _build(engine: Engine, records: Records, spec: Specification, step: Callable[[str], None]) -> BuiltCohort:
    _check_birth(records, spec)
    for title, statement in records.preparations:
        engine.run(title, statement)
    step("looking up codes")
    matching = Matching(engine, records, spec)
    step("finding index events")
    steps = find_candidates(engine, records, spec, matching)
    notes = untimed_index_events(engine) + matching.untimed_events()
    steps += apply_rules(engine, spec)
    step("collecting values")
    seen = collect_values(engine, spec, matching)
    check_units(spec, seen, spec.suppress_below)
    steps += keep_with_values(engine, spec, MEASURED)
    if steps[-1].n_left == 0:
        raise DataError(f"no patient is left: {_told(steps, spec.suppress_below)}; loosen a rule or correct it.")
    step("taking medians and other statistics")
    values = value_cells(engine, spec, limited_lists(seen))
    step("finding codes that are present")
    present = find_present(engine, spec, matching)
    step("counting events and following outcomes")
    cells = Cells(
        fetch_people(engine),
        present,
        count_events(engine, spec, matching),
        values,
        first_events(engine, spec, matching),
    )
    step("putting the table together")
    table, schema = assemble_table(spec, cells)
    quality = quality_tables(engine, spec, records, matching, seen, steps, table, schema)
    quality.notes[:0] = notes + outcome_notes(spec, cells)
    return BuiltCohort(table, schema, tuple(steps), quality, script(engine.log, spec))


def _check_birth(records: Records, spec: Specification) -> None:
    """Age and sex cannot come from a source that does not know them."""
    known = {role for _, role, _ in records.recognised}
    asks_age = spec.eligibility.age or any(f.statistic == "age" for f in spec.measured("demographic"))
    births = {"birth", "birth_year", "birth_datetime", "year_of_birth"}
    if spec.source.form == "long" and asks_age and not births & known:
        raise DataError("age is asked for, but the source has no table patients with a date of birth; add one.")
    if (
        spec.source.form == "long"
        and any(f.statistic == "sex" for f in spec.measured("demographic"))
        and "sex" not in known
    ):
        raise DataError("sex is asked for, but the source has no table patients with that column; add one.")


def _told(steps: list[AttritionStep], fewest: int) -> str:
    rows = attrition_table(steps, fewest).itertuples(index=False)
    return ", ".join(f"{row[0]}: {row[1]}" for row in rows)


def script(log: list[tuple[str, str]], spec: Specification) -> str:
    """All statements with their titles, to be read; first, which code list has which number."""
    lists = [f"list {number}: {name}" for number, (name, _) in enumerate(spec.code_lists)]
    head = "\n".join(f"-- {printable(' '.join(line.split()))}" for line in lists)
    return "\n\n".join([head, *(f"-- {printable(title)}\n{statement};" for title, statement in log)]) + "\n"
