"""The explorer's page: the model, the points of the map and our scripts in one HTML file under a strict policy."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

import plurigp
from plurigp.core.files import whole_file
from plurigp.core.text import jsonable, printable
from plurigp.core.types import DataError
from plurigp.data import to_frame
from plurigp.estimator import PluriGP
from plurigp.explore.explain import explanation
from plurigp.explore.export import model_content, packed
from plurigp.explore.rows import (
    AUTO_BINS,
    MIN_REGION,
    MOST_POINTS,
    RowPoints,
    View,
    binned,
    in_populated_regions,
    jittered,
    points_content,
    principal_view,
    table_order,
    view_content,
    view_of_study,
)
from plurigp.report.map import certainty, studied_cells
from plurigp.report.page import content_policy, html_json
from plurigp.report.theme import COLOURS, GREY
from plurigp.report.words import parts_of
from plurigp.study import StudyResult

SCRIPTS = (
    *("special", "random", "quadrature", "families", "counts", "censored", "coding", "trained", "answers"),  # numbers
    *("sets", "dom", "valuelist", "planes", "drawing", "marks", "atlas", "form", "sharing"),  # parts of the page
    *("comparison", "explaining", "world", "colouring", "pointpanel", "placepanel", "comparepanel", "app"),
)
FEWEST_FOLLOWED = 5  # patients under observation, at which an outcome curve ends


@dataclass(frozen=True)
class Privacy:
    """What of the rows the page may show: positions alone; with noise, or as counts in bins, where asked for."""

    jitter: float = 0.0  # sd of the noise, in sds of the rows
    bins: int | None = None  # along each side of the view


def render_explorer(
    source: StudyResult | PluriGP,
    title: str | None = None,
    rows: Any = None,
    include_rows: Any = None,
    privacy: Privacy | None = None,
) -> str:
    """The page of a study or of a model.

    rows: for a model, a table whose rows are drawn on the map, positions alone. include_rows: the table (for a study,
    the studied one) whose row numbers and cells the page is to hold.
    """
    content = explorer_content(source, rows, include_rows, privacy or Privacy())
    study_title = source.facts["title"] if isinstance(source, StudyResult) else None
    scripts, css = [static(f"{name}.js") for name in SCRIPTS], static("explorer.css")
    return page_template().render(
        title=printable(title or study_title or "Map of patients", 200),
        policy=content_policy(scripts, (css,)).replace("style-src-attr 'unsafe-inline'; ", ""),
        css=Markup(css),
        scripts=[Markup(script) for script in scripts],
        content=Markup(html_json(content)),
        facts=content["facts"],
        made_by=plurigp.__version__,
    )


def write_explorer(source: StudyResult | PluriGP, path: str | Path, **options: Any) -> Path:
    """Render and write; see `render_explorer` for the options."""
    page = render_explorer(source, **options)
    with whole_file(Path(path)) as part:
        part.write_text(page, encoding="utf-8")
    return Path(path)


def explorer_content(source: StudyResult | PluriGP, rows: Any, include_rows: Any, privacy: Privacy) -> dict[str, Any]:
    """All that the page's scripts read."""
    study = source if isinstance(source, StudyResult) else None
    model: PluriGP = study.model if study is not None else source  # type: ignore[assignment]
    content = model_content(model) | {"groups": None if study is None else _study_groups(study)}
    if study is not None and rows is not None:
        raise DataError("a study has its own rows; give a table of rows for a single model only.")
    table = rows if include_rows is None else include_rows
    cells = None if include_rows is None else _shown_cells(source, include_rows)
    points, view = _study_points(study) if study is not None else _model_points(model, table)
    n_rows = 0 if points is None else len(points.x)
    if points is not None and cells is None:
        points = _protected(points, view, privacy)
    shown = None if points is None else points_content(points, view, n_rows)
    return {
        "model": content,
        "map": shown or {"n_rows": 0, "n_shown": 0, **view_content(view)},
        "rows": None if cells is None or points is None else _rows_content(points, cells),
        "survival": [] if study is None else _survival(study),
        "explain": explanation(model.predictor_, None if points is None else points.x),
        "facts": _facts(study, model, n_rows, points, cells is not None)
        | {"jitter": privacy.jitter, "approximate_view": view.axes is None},
        "colours": [*COLOURS],
        "grey": GREY,
    }


# --- rows ---


def _study_points(study: StudyResult) -> tuple[RowPoints, View]:
    latent, n = study.latent, len(study.latent.mean)
    one = np.ones(n, int)
    parts = (latent.mean, latent.view, study.clusters.subtype, certainty(study), latent.gaps, one, np.arange(n))
    return RowPoints(*parts), view_of_study(latent.mean, latent.view)


def _model_points(model: PluriGP, table: Any) -> tuple[RowPoints | None, View]:
    """The rows of a table that was given; a model alone has none, and is seen along its most relevant dimensions."""
    Q = model.predictor_.n_components
    if table is None:
        first = np.argsort(model.lengthscales_, kind="stable")[:2]
        axes = np.zeros((Q, 2))
        axes[first, np.arange(len(first))] = 1
        return None, View(np.zeros(Q), axes)
    frame = model.schema_.matching(to_frame(table))
    x = np.asarray(model.transform(frame), float)
    shares = model.group_probabilities(frame) if model.n_groups > 1 else np.ones((len(x), 1))
    group = shares.argmax(1) + 1 if model.n_groups > 1 else np.zeros(len(x), int)
    used = [column.name for column in model.schema_.used]
    gaps = frame[used].isna().to_numpy().mean(1)
    view, one = principal_view(x), np.ones(len(x), int)
    flat = (x - view.centre) @ view.axes
    return RowPoints(x, flat, group, shares.max(1), gaps, one, np.arange(len(x))), view


def _protected(points: RowPoints, view: View, privacy: Privacy) -> RowPoints:
    """Only rows in populated regions, as counts where there are too many or where that is asked for."""
    if privacy.bins is not None or len(points.x) > MOST_POINTS:
        return binned(points, privacy.bins or AUTO_BINS)
    kept = points.take(in_populated_regions(points.x, points.flat))
    if privacy.jitter > 0 and len(kept.x):
        return jittered(kept, view, privacy.jitter, np.random.default_rng())  # not repeatable: noise must stay noise
    return kept


def _shown_cells(source: StudyResult | PluriGP, table: Any) -> pd.DataFrame:
    if isinstance(source, StudyResult):
        return studied_cells(source, table)
    frame = source.schema_.matching(to_frame(table)).reset_index(drop=True)
    return frame[[column.name for column in source.schema_.used]]


def _rows_content(points: RowPoints, cells: pd.DataFrame) -> dict[str, Any]:
    """Row numbers, and the used cells as text, in the order of the points."""
    order = table_order(points)
    texts = cells.astype("string").iloc[order]
    columns = [[None if pd.isna(cell) else printable(cell, 80) for cell in texts[name]] for name in texts]
    return {"number": packed((order + 1).astype(np.uint32)), "cells": columns}


# --- the study ---


def _study_groups(study: StudyResult) -> dict[str, Any]:
    mixture, word = study.clusters.mixture, parts_of(study.facts)
    arrays = {name: packed(getattr(mixture, name)) for name in ("weights", "means", "covariances")}
    names = [word.number(k + 1) for k in range(study.clusters.n_strata)]
    return {"names": names, "subtype": np.asarray(mixture.subtype).tolist(), "by_means": study.by_means, **arrays}


def _survival(study: StudyResult) -> list[dict[str, Any]]:
    """One outcome curve per group that has one; 0 is everybody."""
    if study.survival.empty:
        return []
    followed = study.survival[study.survival["at_risk"] >= FEWEST_FOLLOWED]
    curves = {k: followed[followed["subtype"] == k] for k in sorted(set(followed["subtype"].tolist()))}
    parts = ("time", "survival", "low", "high")
    return [{"group": k, **{name: jsonable(part[name].tolist()) for name in parts}} for k, part in curves.items()]


def _facts(
    study: StudyResult | None, model: PluriGP, n_rows: int, points: RowPoints | None, with_rows: bool
) -> dict[str, Any]:
    """What the page says of itself."""
    word = None if study is None else parts_of(study.facts)
    return {
        "n_rows": n_rows,
        "n_shown": 0 if points is None else int(points.count.sum()),
        "n_columns": len(model.schema_.used),
        "min_region": MIN_REGION,
        "with_rows": with_rows,
        "binned": bool(points is not None and (points.count > 1).any()),
        "group": "group" if word is None else word.one,
        "groups": "groups" if word is None else word.many,
        "continuum": study is not None and not study.facts["structured"],
        "time": None if study is None else study.facts.get("time_column"),
    }


# --- the page ---


@lru_cache(maxsize=1)
def page_template() -> Template:
    """Every value is escaped, and an unknown name is an error."""
    made = Environment(loader=PackageLoader("plurigp.explore", "static"), autoescape=True, undefined=StrictUndefined)
    made.trim_blocks = made.lstrip_blocks = True
    return made.get_template("explorer.html.j2")


def static(name: str) -> str:
    """A script or style sheet of ours."""
    return (Path(__file__).parent / "static" / name).read_text(encoding="utf-8")
