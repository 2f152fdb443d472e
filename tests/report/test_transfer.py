"""Whether groups transfer between studies: same population, another one, other columns."""

import json
from copy import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.mixture import GaussianMixture
from typer.testing import CliRunner

import plurigp.study
from plurigp import PluriGP, compare_studies
from plurigp.cli.app import app
from plurigp.core.types import DataError
from plurigp.study import Clusters
from plurigp.study.findings.mixture import Mixture, memberships
from plurigp.study.findings.transfer import measure_transfer

NAMES = [f"lab{d}" for d in range(6)]
CENTRES = np.random.default_rng(1).normal(size=(3, 6)) * 3


def cohort(seed: int, grouped: bool = True) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    group = rng.choice(3, 150, p=[0.5, 0.3, 0.2])
    values = (CENTRES[group] if grouped else 0.0) + rng.normal(size=(150, 6))
    return pd.DataFrame(values, columns=NAMES), group


def study_of(result, frame: pd.DataFrame):
    """A study of this table: a map of its own and a mixture of three on it; the rest is another's."""
    model = PluriGP(2, random_state=0, max_epochs=30, calibrate=False).fit(frame)
    mean, sd = model.transform(frame, return_std=True)
    fitted = GaussianMixture(3, random_state=0, n_init=3).fit(mean)
    order = np.argsort(-fitted.weights_)
    mixture = Mixture(fitted.weights_[order], fitted.means_[order], fitted.covariances_[order], np.arange(1, 4))
    subtype, probability = memberships(mixture, mean, sd)
    columns = pd.DataFrame({"column": NAMES, "kind": "gaussian", "used": True})
    shares = np.bincount(subtype, minlength=4)[1:] / len(frame)
    subtypes = pd.DataFrame({"subtype": [1, 2, 3], "share": shares})
    facts = result.facts | {"n_rows": len(frame)}
    clusters = Clusters(subtype, probability, mixture)
    return replace(result, fitted=model, clusters=clusters, columns=columns, subtypes=subtypes, facts=facts)


@pytest.fixture(scope="module")
def studies(result):
    tables = [cohort(1)[0], cohort(2)[0], cohort(3, grouped=False)[0]]
    return tables, [study_of(result, table) for table in tables]


def test_groups_of_one_population_transfer_both_ways(studies):
    tables, (a, b, _) = studies
    found = compare_studies(a, b, tables[1], tables[0])
    for one in (found.forward, found.backward):
        assert one.rand > 0.85
        assert one.low <= one.rand <= one.high
        assert (one.groups["verdict"] == "transfers").all()
        assert sorted(one.groups["nearest"]) == [1, 2, 3]
        assert one.groups["size"].sum() + one.outliers_first == one.n_rows == 150
    assert found.shares["share_first"].sum() == pytest.approx(1.0)
    assert found.shares["share_second"].to_numpy() == pytest.approx(found.shares["share_first"].to_numpy(), abs=0.15)
    assert "3 transfer to the second study's 150 patients" in repr(found)


def test_groups_do_not_transfer_to_a_cohort_without_them(studies):
    tables, (a, _, c) = studies
    found = compare_studies(a, c, tables[2]).forward
    assert found.rand < 0.5
    assert (found.groups["verdict"] != "transfers").any()


def test_labels_by_hand():
    first = np.array([1, 1, 1, 1, 2, 2, 0, 3])
    second = np.array([2, 2, 2, 1, 1, 1, 1, 0])
    probability = np.tile([0.6, 0.3, 0.1], (8, 1))
    found = measure_transfer(first, probability, second)
    line = found.groups.set_index("group")
    assert line.loc[1, "nearest"] == 2
    assert line.loc[1, "jaccard"] == pytest.approx(3 / 4)
    assert line.loc[2, "jaccard"] == pytest.approx(2 / 4)
    assert line["verdict"].tolist() == ["transfers", "transfers in part", "does not transfer"]
    assert line.loc[1, "certainty"] == pytest.approx(0.6)
    assert (found.outliers_first, found.outliers_second) == (1, 1)
    assert found.counts.loc[1, 2] == 3
    nobody = measure_transfer(np.zeros(4, int), np.full((4, 2), 0.1), np.ones(4, int))
    assert np.isnan(nobody.rand)
    assert nobody.groups["nearest"].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("kind", "finding"),
    [("aside", "only one of the studies uses 'lab5'"), ("student_t", "'lab5': is gaussian in one study and student_t")],
)
def test_studies_with_other_columns_are_refused(studies, kind, finding):
    tables, (a, b, _) = studies
    other = copy(b.fitted)
    other.schema_ = b.fitted.schema_.override({"lab5": kind})
    with pytest.raises(DataError, match=finding):
        compare_studies(a, replace(b, fitted=other), tables[1])


def test_a_table_that_was_not_studied_is_refused(studies):
    tables, (a, b, _) = studies
    with pytest.raises(DataError, match="not the table that was studied"):
        compare_studies(a, b, tables[1].iloc[:20])


def test_the_verb_says_the_same(studies, tmp_path, monkeypatch):
    tables, (a, b, _) = studies
    tables[1].to_csv(tmp_path / "b.csv", index=False)
    monkeypatch.setattr(plurigp.study, "load_study", lambda folder: {"a": a, "b": b}[folder.name])
    arguments = ["compare-studies", "a", "b", str(tmp_path / "b.csv")]
    said = CliRunner().invoke(app, arguments)
    assert said.exit_code == 0, said.output
    assert "adjusted Rand index" in said.output
    assert "transfers" in said.output
    facts = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).output)
    assert facts["second by first"]["rand"] == pytest.approx(compare_studies(a, b, tables[1]).forward.rand)
