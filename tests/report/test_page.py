import json
import re
from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import pytest

from plurigp.core.types import DataError
from plurigp.report import render_report, report_figures, write_report
from plurigp.report.page import html_json, plotly_js, source_hash

NAMES = {"gaps", "selection", "map", "sizes", "number", "consensus", "cdf", "permuted", "valley",
         "characteristics", "survival", "predictions", "calibration", "training"}  # fmt: skip


def data_of(page):
    """The figures embedded in a page, by name."""
    found = re.findall(r'<script type="application/json" id="figure-(\w+)">(.*?)</script>', page, re.DOTALL)
    return {name: json.loads(text) for name, text in found}


def without_scripts(page):
    return re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


def test_every_figure_and_section_is_there(result):
    page = render_report(result)
    assert set(data_of(page)) == NAMES
    for section in ("summary", "map", "characteristics", "outcome", "robustness", "data", "quality", "methods"):
        assert f'<section id="{section}"' in page


def test_a_table_of_paper_size_makes_a_small_file(of_paper_size, tmp_path):
    path = write_report(of_paper_size, tmp_path / "report.html")
    assert path.stat().st_size < 7e6
    assert path.read_bytes() == write_report(of_paper_size, tmp_path / "again.html").read_bytes()


def test_a_continuum_is_described_in_strata(graded):
    """Every figure and table is there, and nothing on the page calls a stratum a subtype."""
    page = render_report(graded)
    figures = data_of(page)
    assert set(figures) == NAMES
    body = unescape(re.sub(r"<[^>]*>", " ", re.sub(r"<style.*?</style>", "", without_scripts(page), flags=re.DOTALL)))
    assert "no subtypes were detected; treated as a continuum, described by three strata" in body
    assert "The strata are no evidence of subtypes" in body
    assert "part of a continuum" in body
    assert "tentative" not in body
    assert not re.findall(
        r"(?i)\b(?:the|each|all|per|by|a|some) subtypes? (?!study)|subtype \d", body.split("Methods")[0]
    )
    assert "ubtype" not in json.dumps(figures)
    assert [trace["name"] for trace in figures["map"]["data"]] == ["Outliers", "Stratum 1", "Stratum 2", "Stratum 3"]
    assert figures["map"]["choices"][0]["label"] == "Stratum"


def test_one_group_has_no_comparisons(lone):
    page = render_report(lone)
    assert {"sizes", "consensus", "characteristics", "permuted", "valley"}.isdisjoint(data_of(page))
    assert "120 patients: treated as one group." in page


def test_no_outcome_no_permutations_no_choice(result):
    bare = {name: result.frames()[name].head(0) for name in ("survival", "risks", "survival_tests", "calibration")}
    nulls = replace(result.nulls, permutation=np.zeros((0, 3)))
    table = result.subtypes.assign(permutation_threshold=np.nan, permutation_p=np.nan, robust=True)
    facts = result.facts | {"n_permutations": 0, "n_robust": 3, "time_column": None, "event_column": None}
    page = render_report(
        replace(result, facts=facts, nulls=nulls, subtypes=table, selection=result.selection.head(1), **bare)
    )
    assert {"survival", "calibration", "permuted", "selection"}.isdisjoint(data_of(page))
    assert page.count("✓ stands apart</span>") == 3
    assert "label permutations" not in page
    assert "tentative" not in page


def test_a_study_that_found_no_cluster_large_enough(lone):
    n = lone.facts["n_rows"]
    clusters = replace(lone.clusters, subtype=np.zeros(n, int), probability=np.zeros((n, 0)))
    config = lone.config | {"n_subtypes": "evidence"}
    facts = lone.facts | {"choice": "evidence", "structure_p": None, "pac": None, "n_strata": 0, "n_outliers": n}
    empty = {name: frame.head(0) for name, frame in lone.frames().items() if name != "columns"}
    page = render_report(replace(lone, facts=facts, config=config, clusters=clusters, **empty))
    assert "120 patients: no subtypes were detected; treated as one group." in page
    assert "so there is no other group" in page
    assert set(data_of(page)) == {"gaps", "map"}


def test_structureless_tables_are_counted_where_they_were_drawn(result, graded):
    assert "tructureless" not in render_report(result).replace(plotly_js(), "")
    nulls = replace(graded.nulls, reference=np.array([0.5, 0.04, 0.9]))
    page = render_report(replace(graded, nulls=nulls, facts=graded.facts | {"n_references": 3}))
    assert "Of 3 structureless tables drawn from the map, 1 showed groups at the level of 5%." in page
    assert "drawn from the fitted model with a single Gaussian" in page


@pytest.mark.parametrize(
    ("choice", "gain", "said"),
    [
        ("evidence", 0.41, "The number with the most evidence is chosen (orange diamond)."),
        ("evidence", -0.02, "One cluster has the most evidence. To look for valleys the map is divided all the same"),
        ("paper", 0.41, "The number is the one of the paper’s mixture (orange diamond)."),
    ],
)
def test_why_this_number(result, choice, gain, said):
    tried = result.clusterings.assign(gain=gain)
    page = render_report(replace(result, clusterings=tried, facts=result.facts | {"choice": choice}))
    assert said in unescape(page)
    assert "The paper’s mixture would give 5." in unescape(page)


def test_nothing_is_fetched_and_scripts_are_allowed_by_hash_alone(result):
    page = render_report(result)
    policy = unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page).group(1))
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    scripts = re.search(r"script-src ([^;]*)", policy).group(1).split()
    assert set(scripts) == {source_hash(text) for text in re.findall(r"<script>(.*?)</script>", page, re.DOTALL)}
    styles = re.search(r"style-src ([^;]*)", policy).group(1).split()
    assert source_hash(re.search(r"<style>(.*?)</style>", page, re.DOTALL).group(1)) in styles
    own = page.replace(plotly_js(), "")
    assert not re.search(r'(src|href)=(?!"#)', own)
    assert not re.search(r"\son\w+=|\sstyle=", without_scripts(own))
    assert "\r" not in plotly_js()
    assert "</script" not in plotly_js().lower()


def test_json_cannot_leave_its_element():
    text = html_json({"a": "</script><!--\u2028\u2029&"})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"a": "</script><!--\u2028\u2029&"}


@pytest.mark.parametrize("made", ["hostile_result", "hostile_graded"])
def test_hostile_names_are_text(hostile, made, request):
    page = render_report(request.getfixturevalue(made))
    assert len(hostile) == len(set(hostile)) == 50
    body = without_scripts(page)
    assert page.count("<script>") == 2
    for tag in ("<img", "<svg", "<iframe", "<math", "<input", "<b>", "<extra"):
        assert tag not in body.lower()
    literal = unescape(body)
    for name in hostile:
        if name.isprintable():
            assert name[:100] in literal
    ticks = [unescape(text) for text in data_of(page)["gaps"]["layout"]["yaxis"]["ticktext"]]
    assert "<b>bold</b>" in ticks
    assert not any("<" in text for text in data_of(page)["gaps"]["layout"]["yaxis"]["ticktext"])


def test_no_rows_and_no_cells_unless_asked(result):
    figure = data_of(render_report(result))["map"]
    assert [choice["label"] for choice in figure["choices"]] == [
        "Subtype",
        "Certainty of assignment",
        "Share of missing values",
    ]
    assert not any("row" in text for trace in figure["data"] for text in trace["text"])
    for trace in figure["data"]:
        assert trace["x"] == sorted(trace["x"])  # not the table's order


def test_rows_and_cells_where_asked(result):
    frame = pd.DataFrame({name: np.arange(120.0) for name in result.columns["column"]})
    frame["diagnosis_01"] = np.where(frame["lab_01"] > 60, "<b>yes</b>", "no")
    page = render_report(result, table=frame)
    figure = data_of(page)["map"]
    assert "Contains patient data" in page
    labels = [choice["label"] for choice in figure["choices"]]
    assert "lab_01" in labels
    assert "days" not in labels
    levels = figure["choices"][labels.index("diagnosis_01")]["coloraxis"]["colorbar"]["ticktext"]
    assert set(levels) == {"&lt;b&gt;yes&lt;/b&gt;", "no"}
    assert re.search(r"row \d+", figure["data"][0]["text"][0])
    with pytest.raises(DataError, match="not the table that was studied"):
        render_report(result, table=frame.head(50))


def test_a_large_table_is_shown_in_blocks(of_paper_size):
    figures = {figure.name: figure for figure in report_figures(of_paper_size)}
    assert len(figures["consensus"].data[0]["z"]) == 200
    assert "Large tables are shown as means" in render_report(of_paper_size)


def test_every_figure_is_a_plot_of_the_result(result):
    names = {figure.name for figure in report_figures(result)}
    assert set(dir(result.plot)) == names
    for name in names:
        figure = getattr(result.plot, name)()
        assert len(figure.data) > 0, name
        assert figure.layout.height > 100, name
    unknown = "nothing"
    with pytest.raises(AttributeError, match=r"this study has no figure 'nothing'; it has .*consensus"):
        getattr(result.plot, unknown)
