"""`plurigp explore`: the page that carries a trained model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plurigp.cli.errors import CommandError, about
from plurigp.cli.files import check_file
from plurigp.cli.options import Force
from plurigp.cli.text import say

if TYPE_CHECKING:
    from plurigp.estimator import PluriGP
    from plurigp.study import StudyResult

EXPLORER = "explorer.html"


def explore(  # long: its options
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A folder written by `plurigp study` or by `plurigp fit`.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to write the page.", show_default="FOLDER/explorer.html for a study"),
    ] = None,
    rows: Annotated[
        Path | None,
        typer.Option(metavar="TABLE", help="For a single model: draw these rows on the map, their positions only."),
    ] = None,
    include_rows: Annotated[
        Path | None,
        typer.Option(metavar="TABLE", help="Put the row numbers and cells of this table into the page; it says so."),
    ] = None,
    jitter: Annotated[
        float, typer.Option(metavar="SD", min=0.0, max=10.0, help="Move every position at random, in sds of the rows.")
    ] = 0.0,
    bins: Annotated[
        int | None,
        typer.Option(metavar="N", min=2, max=1000, help="Draw counts in N by N bins instead of single rows."),
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the page.")] = None,
    force: Force = False,
) -> None:
    """Write the map as an interactive page for any browser.

    The page holds the trained model itself. It places a patient from whatever is known, shows what a patient at any
    point would look like, compares groups and explains the dimensions. It needs no server, no network and no
    installation, and sends nothing. It shows where rows lie, without row numbers and cells, and draws none in regions
    with fewer than five of them; --jitter and --bins blur positions further, --include-rows adds the table.

    \b
    Example:
      plurigp explore run                                              a study: writes run/explorer.html
      plurigp explore model --rows patients.csv --out explorer.html    a single model, and rows to draw
    """
    check_options(rows, include_rows, jitter, bins)
    path = check_target(folder, out, force)
    from plurigp.data import read_table
    from plurigp.explore import Privacy, write_explorer

    source = open_source(folder)
    given = rows if include_rows is None else include_rows
    with about(folder if given is None else given):
        options = {
            "rows": None if rows is None else read_table(rows),
            "include_rows": None if include_rows is None else read_table(include_rows),
        }
        write_explorer(source, path, title=title, privacy=Privacy(jitter, bins), **options)
    say(f"wrote {path} ({path.stat().st_size / 1e6:.1f} MB); open it in a browser")
    if include_rows is not None:
        say("it holds row numbers and cells of the table: treat it as you treat the table")


def check_options(rows: Path | None, include_rows: Path | None, jitter: float, bins: int | None) -> None:
    """Refuse what contradicts itself."""
    if rows is not None and include_rows is not None:
        raise CommandError("--rows and --include-rows both name a table; --include-rows alone draws its rows as well.")
    if include_rows is not None and (jitter > 0 or bins is not None):
        raise CommandError("--include-rows shows the rows as they are; leave out --jitter and --bins, or leave it out.")
    if jitter > 0 and bins is not None:
        raise CommandError("--jitter moves single rows and --bins draws none; give one of the two.")


def check_target(folder: Path, out: Path | None, force: bool) -> Path:
    """Where the page goes: into a study's folder by default, where it is rewritten; never into a model's."""
    from plurigp.study.result import RESULT_FILE

    if out is None and not (folder / RESULT_FILE).exists():
        raise CommandError(f"{folder}: is not the folder of a study; say where to write the page with --out FILE.")
    path = folder / EXPLORER if out is None else out
    check_file(path, force or out is None)
    return path


def open_source(folder: Path) -> "StudyResult | PluriGP":
    """The study, or the model, that a folder holds."""
    from plurigp.estimator import load
    from plurigp.study import load_study
    from plurigp.study.result import RESULT_FILE

    return load_study(folder) if (folder / RESULT_FILE).exists() else load(folder)
