"""A study of visits: patients kept together, rows weighted, a site adjusted for, an outcome that guides the map."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from plurigp import DataError, Study, StudyResult, table_one
from plurigp.datasets import simulate_cohort
from plurigp.report.page import render_report
from plurigp.study.findings.design import Design
from plurigp.study.findings.weighted import contrast_of_means
from plurigp.study.fits.store import read_arrays

SETTINGS = {
    "n_components": (2,), "n_restarts": 1, "max_epochs": 4, "n_refits": 2, "n_permutations": 20, "max_subtypes": 3,
    "n_subtypes": 2, "mixture_inits": 2, "max_clusters": 5, "outlier_share": 0.01,
    "time": "days", "event": "died", "groups": "patient",
    "weights": "weight", "guides": {"days": 0.3, "lab_01": 0.5}, "model": {"covariates": ["site"]},
}  # fmt: skip


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    made = simulate_cohort(120, 2, n_binary=2, n_real=4, n_proportion=0, missing=0.1, random_state=4)
    rng = np.random.default_rng(0)
    visits = {
        "patient": rng.integers(0, 45, 120),
        "weight": rng.integers(1, 4, 120),
        "site": rng.choice(["A", "B"], 120),
    }
    return made.table.assign(**visits, days=np.ceil(rng.exponential(20, 120)), died=rng.random(120) < 0.6)


@pytest.fixture(scope="module")
def result(table, tmp_path_factory) -> StudyResult:
    return Study(out=tmp_path_factory.mktemp("visits") / "run", n_jobs=0, **SETTINGS).fit(table)


def test_no_patient_is_in_both_halves_of_any_split(result, table):
    fits = sorted(Path(result.folder / "fits").glob("refit-*.safetensors"))
    halves = [set(table["patient"].iloc[read_arrays(path)[0]["rows"]]) for path in fits]
    one, other = halves
    assert not one & other
    assert len(one | other) == table["patient"].nunique()


def test_columns_have_their_roles(result):
    columns = result.columns.set_index("column")
    reasons = {"patient": "groups of rows", "weight": "row weights"}
    assert columns.loc[list(reasons), "reason"].to_dict() == reasons
    assert not columns.loc[["patient", "weight", "site", "died"], "used"].any()
    assert [column.name for column in result.model.schema_.covariates] == ["site"]
    assert result.model.schema_["days"].kind == "weibull"
    assert (result.model.schema_["days"].weight, result.model.schema_["lab_01"].weight) == (0.3, 0.5)


def test_tests_of_a_guide_are_refused_with_the_reason(result):
    assert result.survival_tests.empty
    assert result.facts["time_column"] is None
    assert not {"days", "lab_01"} & set(result.characteristics["column"])
    assert not {"days", "lab_01"} & set(result.associations["column"])
    assert "lab_02" in set(result.associations["column"])
    refusals = [note for note in result.facts["notes"] if "tests of it are refused" in note]
    assert [note.split("'")[1] for note in refusals] == ["days", "lab_01"]


def test_wrong_roles_are_refused_before_the_first_fit(table):
    for changes, message in (
        ({"groups": "person"}, "groups = 'person': is not a column"),
        ({"weights": "lab_01"}, "column 'lab_01', row .*: a weight must be"),
        ({"guides": {"patient": 1.0}}, "guides: column 'patient' is set aside"),
        ({"guides": ["days"]}, "guides = .* must hold weights by column"),
    ):
        with pytest.raises(DataError, match=message):
            Study(n_jobs=0, **SETTINGS | changes).fit(table)


def test_statistics_count_weights_and_patients(result, table):
    """Shares of the population, and a contrast that is the weighted one of all rows with errors by patient."""
    subtype, weights = result.clusters.subtype, table["weight"].to_numpy(float)
    shares = result.subtypes["population_share"].to_numpy()
    expected = [weights[subtype == k].sum() / weights.sum() for k in (1, 2)]
    np.testing.assert_allclose(shares, expected, rtol=1e-9)
    assert (result.subtypes["population_low"] < shares).all()
    assert (shares < result.subtypes["population_high"]).all()
    lines = result.characteristics
    own = lines[(lines["rows"] == "all") & (lines["column"] == "lab_02") & (lines["subtype"] == 1)].iloc[0]
    seen = table["lab_02"].notna().to_numpy() & (subtype > 0)
    design = Design(weights[seen] / weights.mean(), table["patient"].to_numpy()[seen])
    cells = table["lab_02"].to_numpy(float)[seen]
    due = contrast_of_means(own["measure"], cells, subtype[seen] == 1, design)
    for name in ("inside", "outside", "estimate", "low", "high", "p"):
        assert own[name] == pytest.approx(getattr(due, name), rel=1e-9), name


def test_the_report_and_table_one_say_how_rows_count(result, table):
    page = render_report(result)
    assert "Of the population" in page
    assert "errors count patients" in page
    assert "Valleys count patients" in page
    assert "The map is adjusted for site: positions describe what this covariate does not explain" in page
    made = table_one(table, by=result)
    assert any("count patients" in note for note in made.notes)
    assert "weight" not in [column.column.name for column in made.columns]
