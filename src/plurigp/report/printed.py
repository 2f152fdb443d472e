"""A finished Table 1 and its forms: CSV, HTML, Markdown and Word. Names and levels are hostile text."""

import os
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from plurigp.core.files import whole_file, without_formulas
from plurigp.core.types import DataError
from plurigp.data import Column
from plurigp.study.findings.descriptives import ColumnFigures, GroupFigures, is_known

MARKDOWN = re.compile(r"([\\`*_{}\[\]#|~])")
STYLE = (
    "body{font:15px/1.45 system-ui,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;color:#1c2430;margin:2rem}"
    "table{border-collapse:collapse;border-top:2px solid #1c2430;border-bottom:2px solid #1c2430}"
    "caption{text-align:left;font-weight:600;padding:0 0 .5rem}"
    "th,td{padding:.28rem .8rem;text-align:right;vertical-align:top;white-space:nowrap}"
    "thead th{border-bottom:1px solid #1c2430;vertical-align:bottom}"
    "th:first-child,td:first-child{text-align:left;white-space:normal;min-width:16rem}th.text,td.text{text-align:left}"
    "tbody th{font-weight:400}tbody tr.level th{padding-left:2rem}"
    ".how{color:#56606e}.notes{color:#56606e;font-size:.88rem;max-width:60rem;padding-left:1.1rem}"
)


@dataclass(frozen=True)
class TableLine:
    """One printed line: a column, or a level of the column above it."""

    label: str
    how: str  # what the cells say; empty for a level
    is_level: bool
    missing: str
    cells: tuple[str, ...]  # everybody, then every group
    smd: str
    p: str
    test: str


@dataclass(frozen=True, eq=False, repr=False)
class TableOne:
    """A finished Table 1. `figures` has every number unrounded; `lines` what is printed; `notes` the footnotes."""

    title: str
    groups: tuple[str, ...]
    sizes: tuple[int, ...]  # everybody in a group, then every group
    columns: tuple[ColumnFigures, ...]
    lines: tuple[TableLine, ...]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return self.frame.to_string(index=False)

    def _repr_html_(self) -> str:
        return self._html_table()

    @property
    def heads(self) -> list[str]:
        """The printed column heads."""
        sizes = [f"{name} (n = {n:,})" for name, n in zip(("Overall", *self.groups), self.sizes, strict=True)]
        compared = ["SMD", "p", "Test"] if len(self.groups) > 1 else []
        return ["Characteristic", "Missing", *sizes, *compared]

    @property
    def frame(self) -> pd.DataFrame:
        """What is printed, one line per column or level."""
        return pd.DataFrame([self._cells(line) for line in self.lines], columns=pd.Index(self.heads))

    @property
    def figures(self) -> pd.DataFrame:
        """One line per column, level and group ("" is everybody): n, missing, count, share, mean, sd, q1, median, q3,
        smd, test and p; quantiles known up to limits only are NaN."""
        found = []
        for column in self.columns:
            for name, own in zip(("", *self.groups), (column.overall, *column.groups), strict=True):
                shared = {"column": column.column.name, "kind": column.column.kind, "group": name}
                compared = {"smd": column.smd, "test": column.test, "p": column.p}
                found += [shared | line | compared for line in _figure_lines(column.column, own)]
        return pd.DataFrame(found)

    def to_csv(self, path: str | os.PathLike | None = None) -> str:
        """As CSV text, also written to `path` if given; text that a spreadsheet would run gets an apostrophe."""
        text = without_formulas(self.frame).to_csv(index=False, lineterminator="\n")
        return _written(text, path)

    def to_markdown(self, path: str | os.PathLike | None = None) -> str:
        """As a Markdown table with its title and notes; marks in names are escaped."""
        rows = [self.heads, ["---", *["---:"] * (len(self.heads) - 1)]]
        rows += [[*self._cells(line)] for line in self.lines]
        body = [" | ".join(row if n == 1 else map(_markdown, row)) for n, row in enumerate(rows)]
        lines = [f"**{_markdown(self.title)}**", "", *(f"| {row} |" for row in body), ""]
        return _written("\n".join([*lines, *(f"- {_markdown(note)}" for note in self.notes), ""]), path)

    def to_html(self, path: str | os.PathLike | None = None) -> str:
        """As one HTML page without scripts or network."""
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        page = (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(self.title)}</title>'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>\n'
            f'<body>{self._html_table()}\n<ul class="notes">{notes}</ul></body></html>\n'
        )
        return _written(page, path)

    def to_docx(self, path: str | os.PathLike) -> None:
        """As a Word document."""
        try:
            from docx import Document
            from docx.enum.section import WD_ORIENT
            from docx.shared import Pt
        except ModuleNotFoundError:
            raise DataError("Word files need python-docx; install it with pip install 'plurigp[docx]'.") from None
        document = Document()
        section = document.sections[0]
        section.orientation = WD_ORIENT.LANDSCAPE
        section.page_width, section.page_height = section.page_height, section.page_width
        document.add_paragraph(self.title).runs[0].bold = True
        table = document.add_table(rows=1 + len(self.lines), cols=len(self.heads), style="Light List")
        for row, texts in zip(table.rows, [self.heads, *map(self._cells, self.lines)], strict=True):
            for cell, text in zip(row.cells, texts, strict=True):
                cell.text = text
                cell.paragraphs[0].paragraph_format.space_after = Pt(0)
                cell.paragraphs[0].runs[0].font.size = Pt(8)
        for note in self.notes:
            document.add_paragraph(note, style="List Bullet").runs[0].font.size = Pt(8)
        with whole_file(Path(path)) as part:
            document.save(str(part))

    def _cells(self, line: TableLine) -> list[str]:
        """The line's texts under the heads; a level is indented."""
        name = f"   {line.label}" if line.is_level else f"{line.label}, {line.how}" if line.how else line.label
        compared = [line.smd, line.p, line.test] if len(self.groups) > 1 else []
        return [name, line.missing, *line.cells, *compared]

    def _html_table(self) -> str:
        heads = "".join(f'<th scope="col"{_side(head)}>{escape(head)}</th>' for head in self.heads)
        rows = []
        for line in self.lines:
            how = f'<span class="how">, {escape(line.how)}</span>' if line.how else ""
            cells = zip(self.heads[1:], self._cells(line)[1:], strict=True)
            row = "".join(f"<td{_side(head)}>{escape(cell)}</td>" for head, cell in cells)
            mark = ' class="level"' if line.is_level else ""
            rows.append(f'<tr{mark}><th scope="row">{escape(line.label)}{how}</th>{row}</tr>')
        body = "\n".join(rows)
        head = f"<caption>{escape(self.title)}</caption><thead><tr>{heads}</tr></thead>"
        return f"<table>{head}\n<tbody>{body}</tbody></table>"


def _figure_lines(column: Column, own: GroupFigures) -> list[dict[str, Any]]:
    base = {"n": own.n, "missing": own.missing}
    nothing = dict.fromkeys(("mean", "sd", "q1", "median", "q3"), np.nan)
    if own.counts:
        shares = own.shares if own.n else [0.0] * len(own.counts)
        counted = zip(column.levels, own.counts, shares, strict=True)
        return [{"level": str(level), **base, "count": c, "share": share, **nothing} for level, c, share in counted]
    known = [quantile.low if is_known(quantile) else np.nan for quantile in own.quantiles] or [np.nan] * 3
    middle = known[1] if own.quantiles else own.median_time
    numbers = {"mean": own.mean, "sd": own.sd, "q1": known[0], "median": middle, "q3": known[2]}
    return [{"level": "", **base, "count": own.events, "share": np.nan, **numbers}]


# --- texts and files ---


def _side(head: str) -> str:
    return ' class="text"' if head == "Test" else ""


def _markdown(text: str) -> str:
    """The text as Markdown shows it: its marks escaped, and neither tags nor leading blanks lost."""
    safe = MARKDOWN.sub(r"\\\1", escape(text, quote=False))
    return f"&emsp;{safe.lstrip()}" if text.startswith("   ") else safe


def _written(text: str, path: str | os.PathLike | None) -> str:
    if path is not None:
        with whole_file(Path(path)) as part:
            part.write_text(text, encoding="utf-8")
    return text
