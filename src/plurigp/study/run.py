"""The study from end to end, in a folder: every finished fit is kept, so a study that was stopped goes on."""

import hashlib
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

import plurigp
from plurigp.core.files import whole_file
from plurigp.core.text import at, jsonable
from plurigp.core.types import DataError
from plurigp.data import Coder, Rows, Schema, infer_schema, to_rows
from plurigp.data.roles import with_roles
from plurigp.data.weights import row_weights
from plurigp.study.assemble import assemble_result
from plurigp.study.findings.survival import read_outcome
from plurigp.study.fits.config import RULES, StudyConfig, config_toml
from plurigp.study.fits.learn import learn, rows_to_fit
from plurigp.study.fits.pool import Pool, available_cores
from plurigp.study.fits.progress import StudyProgress
from plurigp.study.fits.splits import group_ids
from plurigp.study.fits.store import read_json, write_json
from plurigp.study.result import MODEL_FOLDER, StudyResult

FITS_FOLDER, STARTED, CONFIG, SCHEMA = "fits", "study.json", "study.toml", "schema.toml"
MIN_ROWS = 60
FEWEST_PER_CLUSTER = 5  # rows on average


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
        return {config.time: {"kind": "weibull", "event": config.event, "reason": "an outcome that guides the map"}}
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
    about = {
        "plurigp": plurigp.__version__,
        "settings": config.to_dict(),
        "schema": schema.to_dict(),
        "table": table_hash(frame[list(schema.names)]),
    }
    if (out / STARTED).exists():
        held = read_json(out / STARTED)
        for part, now in about.items():
            if held.get(part) != jsonable(now):
                raise DataError(f"{out}: holds a study with another {part}; go on with the same, or name a new folder.")
    elif out.exists() and any(not path.name.endswith(".part") for path in out.iterdir()):
        raise DataError(f"{out}: holds other files and no study; name an empty or a new folder.")
    out.mkdir(parents=True, exist_ok=True)
    for unfinished in out.rglob(".*.part"):  # of a study that was stopped while writing
        unfinished.unlink()
    write_json(out / STARTED, about)
    for name, content in ((CONFIG, config_toml(config)), (SCHEMA, schema.to_toml())):
        with whole_file(out / name) as path:
            path.write_text(content, encoding="utf-8")
