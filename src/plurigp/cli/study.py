"""`plurigp study`: from a table to a folder of subtypes, their robustness and what distinguishes them."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plurigp.cli.errors import CommandError, about
from plurigp.cli.report import REPORT, write_page
from plurigp.cli.text import say, say_json, say_table

if TYPE_CHECKING:
    import pandas as pd

    from plurigp.study import StudyResult


def run_study(
    path: Path,
    out: Path,
    config: Path | None,
    schema: Path | None,
    exclude: list[str],
    options: dict[str, Any],
    n_jobs: int | None,
    dask: str | None,
    json: bool,
) -> None:
    """Read, settle, run or go on, and say what came of it; options given here win over the configuration file."""
    if out.exists() and not out.is_dir():
        raise CommandError(f"{out}: is a file; --out must name a folder.")
    from plurigp.data import infer_schema, read_table, to_rows
    from plurigp.study import Study, read_config

    settings = ({} if config is None else read_config(config)) | options
    study = Study(out=out, n_jobs=n_jobs, dask=dask, verbose=not json, **settings)
    rows = to_rows(read_table(path))
    with about(path):
        study.schema = infer_schema(rows, schema).override(dict.fromkeys(exclude, "aside"))
        result = study.fit(rows)
    written = write_page(result, out / REPORT, out)
    if json:
        say_json({"study": str(out), "report": str(out / REPORT), **result.facts})
    else:
        show(result, out, written)


def show(result: "StudyResult", out: Path, written: list[str]) -> None:
    """The findings in a few lines and two tables."""
    from plurigp.report.words import parts_of
    from plurigp.study.findings.robustness import untested

    facts = result.facts
    say(f"{facts['n_rows']} rows, {facts['n_columns']} columns, {facts['gap_share']:.0%} of cells are gaps")
    say(f"latent dimensions: {facts['n_components']}")
    say(verdict(facts, result.clusters.n_strata))
    part = parts_of(facts).one
    if result.clusters.n_strata > 1:
        show_subtypes(result.subtypes, part, bool(untested(facts)))
    for line in result.risks.to_dict("records"):
        who = f"{part} {line['subtype']}" if line["subtype"] else "everybody"
        say(f"risk by {line['time']:g}, {who}: {risk(line)}")
    say(f"wrote {out}: result.json, assignments.csv, latent.csv, tables/ and model/")
    for report in written:
        say(report)


def risk(line: dict[Any, Any]) -> str:
    """A risk with its interval, or that it is not known."""
    if math.isnan(line["risk"]):
        return "not followed so long"
    return f"{line['risk']:.1%} ({line['low']:.1%} to {line['high']:.1%})"


def verdict(facts: dict[str, Any], n: int) -> str:
    """Whether there is structure, in one sentence; n strata describe the map."""
    from plurigp.study.findings.robustness import untested

    R, remedy = facts["n_references"], untested(facts)
    if facts["structured"] is None:
        had = "1 structureless table" if R == 1 else f"{R} structureless tables"
        return f"{n} clusters; whether they are robust was not tested, which takes {remedy} or more: there were {had}"
    if not facts["structured"]:
        found = f"no structure beyond what {R} structureless tables show as well (p = {facts['structure_p']:.3g})"
        asked = "" if facts["choice"] == "stability" else " asked for"
        described = f"; the {n} strata{asked} describe the continuum and are no subtypes" if n > 1 else ""
        return f"a continuum: {found}{described}"
    beyond = f"their half maps agree better than those of {R} structureless tables (p = {facts['structure_p']:.3g})"
    robust = f"not tested for robustness, which takes {remedy}" if remedy else f"{facts['n_robust']} of them robust"
    return f"{n} subtypes, {robust}; {beyond}"


def show_subtypes(subtypes: "pd.DataFrame", part: str, not_tested: bool = False) -> None:
    """Size and robustness of each part, a subtype or a stratum."""
    head = (part, "rows", "share", "consensus", "shuffled", "agreement", "structureless", "robust")
    rows = [
        (r.subtype, r.size_, f"{r.share:.1%}", f"{r.index_:.3f}", f"{r.permutation_threshold:.3f}",
         f"{r.agreement:.3f}", f"{r.reference_threshold:.3f}",
         "not tested" if not_tested else "yes" if r.robust else "no")
        for r in subtypes.rename(columns={"size": "size_", "index": "index_"}).itertuples(index=False)
    ]  # fmt: skip
    say_table(head, rows, right=head[:-1])
