"""The report: one HTML file without network, whose scripts are allowed by their hashes alone."""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

import plurigp
from plurigp.core.files import whole_file
from plurigp.estimator.sensitivity import Sensitivity
from plurigp.report import words
from plurigp.report.figures import model_figures
from plurigp.report.map import MOST_POINTS, map_figure, studied_cells
from plurigp.report.subtype_figures import subtype_figures
from plurigp.report.summary import summary_facts
from plurigp.report.tables import page_tables
from plurigp.report.theme import Figure
from plurigp.study import StudyResult

EMPTY_STYLE = ""  # plotly.js adds one empty style element and fills it by script
FURTHER_STYLE = re.compile(r'getElementById\("([0-9a-f]{64})"\)')  # and others, unless an element has their name
UNSAFE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def render_report(
    result: StudyResult,
    title: str | None = None,
    table: Any = None,
    explorer: str | None = None,
    sensitivity: Sensitivity | None = None,
) -> str:
    """The whole page; the table that was studied, where it is given, adds row numbers and its columns to the map, the
    name of an explorer that lies beside it a link, and a sensitivity the range of conclusions over its deltas."""
    cells = None if table is None else studied_cells(result, table)
    figures = {figure.name: figure for figure in report_figures(result, cells)}
    plotly, own, css = plotly_js(), text_of("report.js"), text_of("report.css")
    return template().render(
        **summary_facts(result),
        result=result,
        title=words.shown(title or result.facts["title"] or "Subtype study", 200),
        policy=content_policy((plotly, own), (css, EMPTY_STYLE)),
        css=Markup(css),
        scripts=[Markup(plotly), Markup(own)],
        taken_names=FURTHER_STYLE.findall(plotly),
        figures=figures,
        json_of=lambda name: Markup(html_json(figures[name].plain())),
        tables=page_tables(result, sensitivity),
        settings={name: words.shown(json.dumps(v, ensure_ascii=False), 300) for name, v in result.config.items()},
        made_by=plurigp.__version__,
        shown_points=min(MOST_POINTS, result.facts["n_rows"]),
        with_rows=cells is not None,
        explorer=explorer,
    )


def write_report(
    result: StudyResult,
    path: str | Path,
    title: str | None = None,
    table: Any = None,
    explorer: str | None = None,
    sensitivity: Sensitivity | None = None,
) -> Path:
    """Render and write; the same result gives the same bytes."""
    page = render_report(result, title, table, explorer, sensitivity)
    with whole_file(Path(path)) as part:
        part.write_text(page, encoding="utf-8")
    return Path(path)


def report_figures(result: StudyResult, cells: pd.DataFrame | None = None) -> list[Figure]:
    """Every figure that the result has something for."""
    made = [map_figure(result, cells), *subtype_figures(result), *model_figures(result)]
    return [figure for figure in made if figure is not None]


def html_json(content: Any) -> str:
    """JSON that no HTML parser reads as anything else."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(UNSAFE)


def content_policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """The content-security policy: these scripts and style sheets by hash, pictures from memory, nothing else."""
    return (
        f"default-src 'none'; script-src {' '.join(map(source_hash, scripts))}; "
        f"style-src {' '.join(map(source_hash, styles))}; style-src-attr 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def source_hash(source: str) -> str:
    """The hash by which a policy allows a script or a style sheet."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


@lru_cache(maxsize=1)
def plotly_js() -> str:
    """The plotting library that comes with the installed package."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs()).replace("\r\n", "\n").replace("\r", "\n")


@lru_cache(maxsize=1)
def template() -> Template:
    """The page's template; every value is escaped, and an unknown name is an error."""
    made = Environment(loader=PackageLoader("plurigp.report"), autoescape=True, undefined=StrictUndefined)
    made.trim_blocks = made.lstrip_blocks = True
    filters = (words.counted, words.in_words, words.number, words.p_is, words.percent, words.shown, words.signed)
    made.filters.update({function.__name__: function for function in filters})
    made.globals.update(parts_of=words.parts_of, is_continuum=words.is_continuum)
    return made.get_template("report.html.j2")


def text_of(name: str) -> str:
    """A file beside the templates."""
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")
