"""The study from end to end, in a folder: every finished fit is kept, so a study that was stopped goes on."""

import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

import plurigp
from plurigp.core.forms import list_form, mapping_form, record_form, text_form, whole_form
from plurigp.core.text import at, jsonable, show
from plurigp.core.types import DataError
from plurigp.data import Coder, Rows, Schema, infer_schema, to_rows
from plurigp.data.kinds import TIMES_TO_EVENT
from plurigp.data.pooling import pooled_schema
from plurigp.data.roles import with_roles
from plurigp.data.weights import row_weights
from plurigp.study.assemble import assemble_result
from plurigp.study.findings.survival import read_outcome
from plurigp.study.fits.config import AFTER_FITS, RULES, StudyConfig, config_toml
from plurigp.study.fits.learn import learn, rows_to_fit
from plurigp.study.fits.pool import Pool, available_cores
from plurigp.study.fits.progress import StudyProgress
from plurigp.study.fits.splits import group_ids
from plurigp.study.fits.store import errors_name, json_bytes, read_json, write_whole
from plurigp.study.result import MODEL_FOLDER, StudyResult

FITS_FOLDER, STARTED, CONFIG, SCHEMA = "fits", "study.json", "study.toml", "schema.toml"
MIN_ROWS = 60
FEWEST_PER_CLUSTER = 5  # rows on average
STARTED_FORMAT = 1
STARTED_FORM = record_form(
    {
        "format": whole_form(1, STARTED_FORMAT),
        "plurigp": text_form(1000),
        "settings": mapping_form(lambda *_: None, 1000),
        "schema": record_form({"columns": list_form(mapping_form(lambda *_: None, 100))}),
        "table": text_form(64),
    }
)


class Study:
    """From a table to tested subtypes: `Study(n_refits=30).fit(table)` is a StudyResult.

    Parameters
    ----------
    schema : as for PluriGP; None infers every column's kind.
    out : a folder for the results and every finished fit; a study that was stopped goes on from there. None keeps
        nothing on disk.
    n_jobs : worker processes of one thread each; None takes all cores; 0 runs the fits in this process.
    dask : the address of a Dask scheduler to run the fits on instead.
    verbose : show progress when standard error is a terminal.
    settings : the fields of StudyConfig.
    """

    def __init__(
        self,
        *,
        schema: Any = None,
        out: str | Path | None = None,
        n_jobs: int | None = None,
        dask: str | None = None,
        verbose: bool = False,
        **settings: Any,
    ) -> None:
        self.config = StudyConfig.from_dict(settings)
        self.schema, self.out, self.n_jobs, self.dask, self.verbose = schema, out, n_jobs, dask, verbose

    def fit(self, table: Any) -> StudyResult:
        """Run, or go on with, the study of this table."""
        rows = to_rows(table)
        schema = settled_schema(rows, self.schema, self.config)
        if self.out is not None:
            return self._run(rows, schema, Path(self.out))
        with tempfile.TemporaryDirectory() as folder:
            return replace(self._run(rows, schema, Path(folder) / "run"), folder=None)

    def _run(self, rows: Rows, schema: Schema, out: Path) -> StudyResult:
        """Everything into the folder; the result is the one that `load_study(out)` opens."""
        config, jobs = self.config, available_cores() if self.n_jobs is None else self.n_jobs
        frame = rows.frame.reset_index(drop=True)
        start_study(out, frame, schema, config)
        progress = StudyProgress(rows_to_fit(len(frame), config), bool(self.verbose))
        pool = Pool(out / FITS_FOLDER, schema, config, jobs, self.dask, progress)
        with progress.bar:
            maps = learn(pool, frame, config)
            progress.say("all fits done: comparing and describing the subtypes")
            pool.model(maps.best.name).save(out / MODEL_FOLDER)
            result = assemble_result(pool, maps, frame, schema, config, out)
            result.save(out)
        return result


def settled_schema(table: Any, given: Any, config: StudyConfig) -> Schema:
    """Kinds and levels from the whole table, so that every refit knows all levels; outcomes are set aside.

    Warns of counts out of scale by their rows in the whole table, which the fits do not know.
    """
    rows = to_rows(table)
    if len(rows) < MIN_ROWS:
        raise DataError(f"{len(rows)} rows are too few for a study, which halves them; give at least {MIN_ROWS}.")
    most = len(rows) // 2 // FEWEST_PER_CLUSTER
    if config.n_subtypes not in RULES and int(config.n_subtypes) > most:
        raise DataError(
            f"n_subtypes = {config.n_subtypes} is too many for {len(rows)} rows: half of them, in so many clusters, "
            f"are fewer than {FEWEST_PER_CLUSTER} each; ask for at most {most}."
        )
    schema = with_roles(infer_schema(rows, given), config.model, rows)
    schema = pooled_schema(rows, schema, config.pool_rare_levels)
    schema = schema.override(_judges(rows, config) | _set_aside(rows, config))
    schema = Coder.fit(rows, with_roles(schema, {"column_weights": config.guides}, rows)).schema
    unused = [name for name in config.guides if not schema[name].used]
    if unused:
        raise DataError(f"guides: {at(unused[0])} is set aside and cannot guide the map; declare its kind.")
    return schema


def _judges(rows: Rows, config: StudyConfig) -> dict[str, Any]:
    """The outcome's columns: set aside, or modelled as the time to an event where the outcome guides the map."""
    if config.time is None or config.event is None:
        return {}
    read_outcome(rows.frame, config.time, config.event)
    if config.time in config.guides:
        return {
            config.time: {"kind": TIMES_TO_EVENT, "event": config.event, "reason": "an outcome that guides the map"}
        }
    return dict.fromkeys((config.time, config.event), _aside("an outcome, kept for judging subtypes"))


def _set_aside(rows: Rows, config: StudyConfig) -> dict[str, Any]:
    """Columns that name groups of rows or weigh them, checked before the first fit."""
    group_ids(rows.frame, config.groups)
    row_weights(config.weights, rows)
    reasons = {config.groups: "groups of rows", config.weights: "row weights"}
    return {name: _aside(reason) for name, reason in reasons.items() if name is not None}


def _aside(reason: str) -> dict[str, str]:
    return {"kind": "aside", "reason": reason}


def table_hash(frame: pd.DataFrame) -> str:
    """By which a folder knows the table it studied."""
    return hashlib.sha256(frame.to_csv(index=False).encode()).hexdigest()


def start_study(out: Path, frame: pd.DataFrame, schema: Schema, config: StudyConfig) -> None:
    """Say in the folder which study it holds; another study's folder is refused."""
    about = jsonable(
        {
            "format": STARTED_FORMAT,
            "plurigp": plurigp.__version__,
            "settings": config.to_dict(),
            "schema": schema.to_dict(),
            "table": table_hash(frame[list(schema.names)]),
        }
    )
    if (out / STARTED).exists():
        if (another := _differing_part(read_started(out), about)) is not None:
            raise DataError(f"{out}: holds a study with another {another}; go on with the same, or name a new folder.")
    elif out.exists() and any(not path.name.endswith(".part") for path in out.iterdir()):
        raise DataError(f"{out}: holds other files and no study; name an empty or a new folder.")
    out.mkdir(parents=True, exist_ok=True)
    for unfinished in out.rglob(".*.part"):  # of a study that was stopped while writing
        unfinished.unlink()
    texts = {CONFIG: config_toml(config).encode(), SCHEMA: schema.to_toml().encode(), STARTED: json_bytes(about)}
    write_whole({out / name: content for name, content in texts.items()})


def read_started(out: Path) -> dict[str, Any]:
    """What the folder says of the study in it, checked."""
    path = out / STARTED
    held = read_json(path, STARTED_FORMAT)
    with errors_name(path):
        STARTED_FORM(held, "")
    return held


def _differing_part(held: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """In words, the first setting, column or table that is not the same; settings that need no fit may differ."""
    for name, value in now["settings"].items():
        if name not in AFTER_FITS and held["settings"].get(name) != value:
            return f"setting: {name} was {show(held['settings'].get(name))} and is now {show(value)}"
    before, after = ({column.get("name"): column for column in part["schema"]["columns"]} for part in (held, now))
    for name in before.keys() | after.keys():
        if before.get(name) != after.get(name):
            return f"schema: {at(name)} is declared or read otherwise"
    if held["schema"] != now["schema"]:
        return "schema: the columns are in another order"
    if held["table"] != now["table"]:
        return "table: some of its cells, rows or columns differ"
    return None if held["plurigp"] == now["plurigp"] else f"plurigp: it was {show(held['plurigp'])}"
