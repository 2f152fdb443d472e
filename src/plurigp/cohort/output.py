"""The files beside a cohort's table: schema, attrition, quality page, SQL."""

from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from plurigp.cohort.build import BuiltCohort
from plurigp.core.files import whole_file, without_formulas

SIDE_FILES = ("schema.toml", "attrition.csv", "quality.html", "sql")


def side_file(table: Path, ending: str) -> Path:
    """`patients.schema.toml` beside `patients.parquet`."""
    stem = table.name.removesuffix(".gz")
    return table.with_name(f"{stem[: stem.rindex('.')] if '.' in stem else stem}.{ending}")


def write_side_files(built: BuiltCohort, table: Path, title: str) -> list[Path]:
    """Write them all; each is whole or not there."""
    texts = {
        "schema.toml": built.schema.to_toml(),
        "attrition.csv": without_formulas(built.quality.attrition).to_csv(index=False, lineterminator="\n"),
        "quality.html": quality_page(built, title),
        "sql": built.sql,
    }
    paths = [side_file(table, ending) for ending in SIDE_FILES]
    for path, ending in zip(paths, SIDE_FILES, strict=True):
        with whole_file(path) as part:
            part.write_text(texts[ending], encoding="utf-8")
    return paths


def quality_page(built: BuiltCohort, title: str) -> str:
    """Attrition and data quality as one HTML page without scripts; every value is escaped."""
    made = Environment(loader=PackageLoader("plurigp.cohort"), autoescape=True, undefined=StrictUndefined)
    made.trim_blocks = made.lstrip_blocks = True
    return made.get_template("quality.html.j2").render(
        title=title,
        quality=built.quality,
        shares=built.quality.shares,
        n_rows=built.quality.attrition["patients left"].iloc[-1],
        n_columns=len(built.schema.used),
        n_aside=len(built.schema.aside),
    )
