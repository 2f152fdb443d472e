"""The range of conclusions over deltas: as figures, and in the report."""

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import pytest

from plurigp import DataError, PluriGP
from plurigp.estimator.sensitivity import Sensitivity
from plurigp.report import render_report, subtype_sensitivity
from plurigp.report.tables import sensitivity_table
from plurigp.study import Clusters
from plurigp.study.findings.mixture import Mixture

GROUP = np.arange(120) % 2
N_HIDDEN = 24  # of the lab's cells, all in group 1


def found_with(terms: dict[str, list[tuple[float, float, float]]], name: str = "lab") -> Sensitivity:
    """Estimates and intervals of terms for deltas 0, 1, …"""
    lines = [
        {name: float(delta), "term": term, "estimate": estimate, "low": low, "high": high, "p": 0.5}
        for term, own in terms.items()
        for delta, (estimate, low, high) in enumerate(own)
    ]
    return Sensitivity(pd.DataFrame(lines), (name,))


@pytest.fixture(scope="module")
def study(result):
    """Two subtypes that differ by one unit of `lab`; a fifth of its cells is hidden in the first."""
    rng = np.random.default_rng(0)
    lab = 5 - 1.0 * GROUP + 0.5 * rng.normal(size=120)
    table = pd.DataFrame({"lab": lab, "other": lab + 0.5 * rng.normal(size=120)})
    table["mark"] = np.where(rng.random(120) < 0.3 + 0.4 * GROUP, "yes", "no")
    table["stage"] = rng.choice(["a", "b", "c"], 120)
    table.loc[np.flatnonzero(GROUP == 0)[:N_HIDDEN], "lab"] = np.nan
    table.loc[5:15, ["mark", "stage"]] = np.nan
    settings = {"max_epochs": 20, "calibrate": False, "n_inducing": 8, "random_state": 0}
    model = PluriGP(1, schema={"stage": "categorical"}, **settings).fit(table)
    clusters = Clusters(
        GROUP + 1, np.eye(2)[GROUP], Mixture(np.ones(2) / 2, np.zeros((2, 1)), np.ones((2, 1, 1)), np.arange(1, 3))
    )
    columns = pd.DataFrame({"column": list(table), "kind": "gaussian", "used": True})
    facts = result.facts | {"n_rows": 120}
    return replace(result, fitted=model, clusters=clusters, columns=columns, facts=facts, folder=None), table


def test_a_delta_moves_the_difference_by_the_share_of_hidden_cells(study):
    found = subtype_sensitivity(*study, {"lab": [0.0, 1.0]}, n_draws=50)
    first = found.frame[found.frame["term"] == "lab, subtype 1 against others"].set_index("lab")["estimate"]
    assert first[0.0] == pytest.approx(1.0, abs=0.3)
    assert first[1.0] - first[0.0] == pytest.approx(N_HIDDEN / 60)
    second = found.frame[found.frame["term"] == "lab, subtype 2 against others"].set_index("lab")["estimate"]
    np.testing.assert_allclose(second, -first)


def test_levels_are_compared_by_their_shares(study):
    found = subtype_sensitivity(*study, {"mark": [0.0, 3.0], "stage": {"c": [0.0, 3.0]}}, n_draws=3)
    assert found.ranges().index.tolist() == [
        f"{label}, subtype {k} against others" for label in ("mark: yes", "stage: c") for k in (1, 2)
    ]
    assert found.ranges()["n_settings"].eq(4).all()
    assert found.frame["estimate"].abs().max() <= 1


def test_what_is_refused(study):
    result, table = study
    with pytest.raises(DataError, match="column 'crp' is not used by the study"):
        subtype_sensitivity(result, table, {"crp": [0.0]})
    with pytest.raises(DataError, match="not the table that was studied"):
        subtype_sensitivity(result, table.iloc[:50], {"lab": [0.0]})


def test_the_report_shows_ranges_and_what_depends_on_delta(result):
    found = found_with({"firm": [(1.0, 0.5, 1.5), (0.8, 0.3, 1.2)], "fragile": [(0.4, 0.1, 0.7), (0.2, -0.1, 0.5)]})
    page = unescape(render_report(result, sensitivity=found))
    assert "If values are not missing at random" in page
    assert "Deltas tried: lab 0, 1." in page
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in sensitivity_table(found).rows}
    assert rows["firm"] == ["+0.800 to +1.000", "+0.300 to +1.500", "2 of 2", "the same for all"]
    assert rows["fragile"][2:] == ["1 of 2", "depends on delta"]
    assert "If values are not missing at random" not in render_report(result)


def test_names_are_escaped(result, hostile):
    terms = {name: [(1.0, 0.5, 1.5)] for name in hostile}
    page = render_report(result, sensitivity=found_with(terms, name=hostile[0]))
    table = re.search(r'<table id="table-sensitivity">.*?</table>', page, re.DOTALL)[0]
    tags = set(re.findall(r"</?(\w+)", table))
    assert tags <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "button"}
