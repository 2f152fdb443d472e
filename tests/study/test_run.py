import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import plurigp
from plurigp import Study, load_study
from plurigp.core.types import DataError
from plurigp.data.scale import OutOfScaleWarning
from plurigp.datasets import simulate_cohort
from plurigp.study.findings.null import structureless_table
from plurigp.study.findings.valley import HISTOGRAM, Counts
from plurigp.study.fits.store import read_arrays, read_json, write_json
from plurigp.study.fits.tasks import TRACED

SETTINGS = {
    "n_components": (2,), "n_restarts": 1, "max_epochs": 4, "n_refits": 4, "n_references": 2, "n_permutations": 50,
    "max_subtypes": 3, "n_subtypes": 2, "mixture_inits": 2, "max_clusters": 5, "time": "days", "event": "died",
    "horizons": (10.0,), "level": 0.4,
}  # fmt: skip


def cohort() -> pd.DataFrame:
    """120 rows in two subtypes, of which the second dies earlier; a hostile name and hostile levels."""
    made = simulate_cohort(120, 2, n_binary=2, n_real=5, n_proportion=0, missing=0.1, random_state=4)
    rng = np.random.default_rng(0)
    died = rng.random(120) < np.where(made.subtype == 1, 0.9, 0.3)
    table = made.table.assign(days=np.ceil(rng.exponential(20, 120)), died=died)
    return table.rename(columns={"diagnosis_01": "=cmd()", "lab_02": "self"})


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small study, which loads none of the models that it has just fitted."""
    out = tmp_path_factory.mktemp("study") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("plurigp.study.fits.pool.load", None)
        patch.setattr("plurigp.study.result.load", None)
        assert Study(out=out, n_jobs=0, **SETTINGS).fit(cohort()).model.n_components == 2
    return out


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_the_folder_holds_everything(finished):
    names = contents(finished)
    for name in ("result.json", "assignments.csv", "latent.csv", "study.toml", "schema.toml", "model/model.json"):
        assert name in names
    assert not [name for name in names if name.endswith(".part")]
    rows = pd.read_csv(finished / "assignments.csv")
    assert list(rows.columns) == ["row", "subtype", "p_1", "p_2", "outlier"]
    assert rows["row"].tolist() == list(range(120))


def test_what_was_found(finished):
    result = load_study(finished)
    assert result.facts["n_subtypes"] == result.facts["n_strata"] == 2
    assert result.facts["choice"] == "given"
    assert result.subtypes["size"].sum() + result.facts["n_outliers"] == 120
    assert set(result.characteristics["rows"]) == {"all", "split"}
    assert not {"days", "died"} & set(result.characteristics["column"])
    assert result.consensus.matrix.shape == (120, 120)
    assert result.nulls.permutation.shape == (50, 2)
    assert result.nulls.reference.shape == (2,)
    assert ((result.nulls.reference > 0) & (result.nulls.reference <= 1)).all()
    assert result.clusterings["n_clusters"].tolist() == [1, 2, 3]
    assert result.clusterings["gain"][0] == 0
    assert result.clusterings["chosen"].tolist() == [False, True, False]
    assert len(result.risks) == 3
    assert result.predictions["cells"].sum() == result.facts["hidden_cells"] > 0
    assert result.calibration["predicted"].between(0, 1).all()
    assert set(result.traces["fit"]) == {"select-02-0", "map-0", "refit-000", "refit-001", "refit-002", "refit-003"}


def test_whether_strata_are_groups_is_said_once(finished):
    """In the facts, by stratum and by pair of strata, all from the valleys between them."""
    result = load_study(finished)
    facts, strata, (pair,) = result.facts, result.subtypes, result.separations.to_dict("records")
    assert (pair["subtype"], pair["other"]) == (1, 2)
    assert pair["p"] == result.valleys.p[0, 1] == facts["structure_p"]
    assert facts["structured"] == pair["apart"] == (facts["n_groups"] == 2) == (pair["p"] <= SETTINGS["level"])
    assert strata["group"].max() == facts["n_groups"]
    assert set(strata["kind"]) <= {"group", "part of a continuum", "remainder"}
    assert (strata["kind"] == "part of a continuum").all() == (not facts["structured"])
    assert facts["n_robust"] == strata["robust"].sum()
    for name in ("separation", "depth"):
        np.testing.assert_array_equal(strata[name], [pair[name]] * 2)
    np.testing.assert_array_equal(strata["valley_p"], [pair["p"]] * 2)
    assert strata["nearest"].tolist() == [2, 1]
    assert np.isfinite([facts["unseen_gain"], *strata["unseen_gain"], *strata["agreement"]]).all()
    assert result.valleys.histogram.shape == (2, 2, len(HISTOGRAM) - 1)


def test_what_half_maps_leave_on_disk(finished):
    """Labels and gains of all rows and counts between clusters; no position and no cell."""
    arrays, facts = read_arrays(finished / "fits" / "refit-001.safetensors")
    counted = {f"between.{name}" for name in Counts._fields}
    assert set(arrays) == {"labels", "gains", "rows"} | counted | {f"trace.{name}" for name in TRACED}
    assert arrays["labels"].shape == arrays["gains"].shape == (120,)
    assert set(arrays["labels"]) <= {0, 1}
    assert "group_gain" not in facts
    for name in ("select-02-0", "map-0"):
        assert read_arrays(finished / "fits" / f"{name}.safetensors")[1]["group_gain"] >= 0


def test_result_json_holds_no_cell_of_a_number_column(finished):
    text = (finished / "result.json").read_text()
    for value in cohort()["lab_01"].dropna():
        assert repr(float(value)) not in text
    assert "log odds ratio" in text


def test_half_maps_are_complementary(finished):
    first, second = (read_arrays(finished / "fits" / f"refit-00{r}.safetensors")[0]["rows"] for r in (0, 1))
    np.testing.assert_array_equal(np.sort(np.concatenate([first, second])), np.arange(120))


def test_new_rows_are_placed_from_the_folder_alone(finished, tmp_path):
    alone = shutil.copytree(finished, tmp_path / "elsewhere")
    shutil.rmtree(alone / "fits")
    result = load_study(alone)
    rows = cohort().drop(columns=["days", "died"])
    placed = result.assign(rows.assign(days=None, died=None))
    np.testing.assert_array_equal(placed["subtype"].isin([0, 1, 2]), True)
    np.testing.assert_allclose(placed[["x1", "x2"]], result.latent.mean, atol=1e-6)
    np.testing.assert_allclose(placed[["p_1", "p_2"]], result.clusters.probability, atol=1e-6)
    vague = result.assign(pd.DataFrame({name: [None] for name in cohort().columns}))
    assert np.isfinite(vague.drop(columns="outlier").to_numpy(float)).all()


def test_a_label_is_the_likeliest_of_its_probabilities(finished):
    """In the study and for its own rows placed again; the two agree row by row."""
    saved = pd.read_csv(finished / "assignments.csv")
    placed = load_study(finished).assign(cohort())
    for rows in (saved, placed):
        shares = rows[["p_1", "p_2"]].to_numpy()
        np.testing.assert_array_equal(rows["subtype"], np.column_stack([1 - shares.sum(1), shares]).argmax(1))
    np.testing.assert_array_equal(placed["subtype"], saved["subtype"])
    np.testing.assert_allclose(placed[["p_1", "p_2"]], saved[["p_1", "p_2"]], atol=1e-12)
    sizes = saved["subtype"].value_counts()
    assert sizes[1] >= sizes[2]


def test_a_stopped_study_ends_with_the_same_bytes(finished, tmp_path):
    stopped = shutil.copytree(finished, tmp_path / "run")
    for name in ("result.json", "assignments.csv", "fits/refit-001.safetensors", "fits/map-0.safetensors"):
        (stopped / name).unlink()
    shutil.rmtree(stopped / "tables")
    (stopped / "fits" / ".refit-001.safetensors.1.part").write_bytes(b"half")
    kept = (stopped / "fits" / "refit-002.safetensors").stat().st_mtime_ns
    Study(out=stopped, n_jobs=0, **SETTINGS).fit(cohort())
    assert contents(stopped) == contents(finished)
    assert (stopped / "fits" / "refit-002.safetensors").stat().st_mtime_ns == kept


@pytest.mark.parametrize("change", [{"n_refits": 6}, {"schema": {"lab_01": "aside"}}, {"table": True}])
def test_another_study_does_not_go_on_in_the_folder(finished, change):
    table = cohort().iloc[1:] if change.pop("table", False) else cohort()
    with pytest.raises(DataError, match="holds a study with another"):
        Study(out=finished, n_jobs=0, **(SETTINGS | change)).fit(table)


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.docx").write_text("")
    with pytest.raises(DataError, match="holds other files and no study"):
        Study(out=tmp_path, n_jobs=0, **SETTINGS).fit(cohort())


def test_a_count_out_of_scale_is_said_once():
    """To the caller by its row in the table, not in every half; in the result, which names no row, by its column."""
    table = cohort().assign(visits=np.random.default_rng(0).poisson(3, 120))
    table.loc[97, "visits"] = 1_234_567_890
    settings = SETTINGS | {"n_refits": 2, "n_references": 0, "n_permutations": 0}
    with pytest.warns(OutOfScaleWarning) as said:
        result = Study(n_jobs=0, schema={"visits": "poisson"}, **settings).fit(table)
    assert [str(warning.message).split(":")[0] for warning in said] == ["column 'visits', row 97"]
    assert [note.split(":")[0] for note in result.facts["notes"]] == ["column 'visits'"]


def test_too_few_rows():
    with pytest.raises(DataError, match="30 rows are too few"):
        Study(n_jobs=0).fit(cohort().head(30))


def test_more_subtypes_than_rows_allow():
    with pytest.raises(DataError, match=r"n_subtypes = 13 is too many for 120 rows: .*; ask for at most 12"):
        Study(n_jobs=0, n_subtypes=13).fit(cohort())


def test_without_structure_strata_describe_the_map_and_nothing_is_on_disk(monkeypatch):
    monkeypatch.setattr("plurigp.study.subtypes.separate_groups", lambda p, level: (np.zeros(len(p), int), 0.7))
    settings = SETTINGS | {"n_subtypes": "evidence", "max_subtypes": 2}
    result = Study(n_jobs=0, **settings).fit(cohort())
    assert result.folder is None
    facts = result.facts
    assert (facts["structured"], facts["n_subtypes"], facts["n_strata"], facts["n_robust"]) == (False, 1, 2, 0)
    assert result.clusters.n_strata == len(result.subtypes) == 2
    assert not result.subtypes["robust"].any()
    assert (facts["n_groups"], facts["structure_p"], facts["choice"]) == (1, 0.7, "evidence")
    assert set(result.subtypes["kind"]) == {"part of a continuum"}
    assert not result.separations["apart"].any()
    assert result.clusterings["chosen"].tolist() == [False, True]
    assert set(result.characteristics["rows"]) == {"all", "split"}
    assert set(result.survival["subtype"]) == set(result.risks["subtype"]) == {0, 1, 2}
    assert len(result.survival_tests) == 1
    placed = result.assign(cohort().head(3))
    np.testing.assert_allclose(placed[["p_1", "p_2"]].sum(axis=1), 1, atol=1e-6)


def test_one_group_asked_for_is_not_cut(finished, tmp_path):
    alone = Study(out=other_settings(finished, tmp_path, n_subtypes=1), n_jobs=0, **(SETTINGS | {"n_subtypes": 1}))
    result = alone.fit(cohort())
    assert result.facts["n_subtypes"] == result.facts["n_strata"] == result.facts["n_groups"] == 1
    assert (result.facts["structured"], result.facts["structure_p"]) == (False, 1)
    assert len(result.characteristics) == len(result.survival_tests) == len(result.separations) == 0
    assert result.facts["unseen_gain"] == pytest.approx(0, abs=1e-6)


def other_settings(finished: Path, tmp_path: Path, **settings) -> Path:
    """A copy of the folder that says it holds a study with other settings, and has its maps; half maps it has not."""
    other = shutil.copytree(finished, tmp_path / "run")
    about = read_json(other / "study.json", 1)
    about["settings"] |= settings
    write_json(other / "study.json", about)
    for path in other.glob("fits/re*.safetensors"):
        path.unlink()
    return other


def test_the_papers_rule(finished, tmp_path):
    other = other_settings(finished, tmp_path, n_subtypes="paper")
    result = Study(out=other, n_jobs=0, **(SETTINGS | {"n_subtypes": "paper"})).fit(cohort())
    assert result.facts["n_subtypes"] == result.facts["n_paper_clusters"]
    assert len(result.clusters.mixture.weights) == 5
    assert len(result.subtypes) == result.facts["n_strata"] == result.facts["n_paper_clusters"]
    assert len(result.valleys.p) == len(result.subtypes)


def test_structureless_tables_keep_the_gaps_and_the_kinds(finished):
    table = cohort()
    model = load_study(finished).model
    drawn = structureless_table(model, table, 1)
    assert drawn.isna().equals(table.isna())
    assert list(drawn.columns) == list(table.columns)
    assert drawn["days"].equals(table["days"])
    model.coder_.table(drawn)
    assert not drawn["lab_01"].equals(table["lab_01"])
    pd.testing.assert_frame_equal(drawn, structureless_table(model, table, 1))


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from test_run import SETTINGS, cohort
from plurigp import Study
if __name__ == "__main__":
    Study(out=sys.argv[1], n_jobs=int(sys.argv[2]), **SETTINGS).fit(cohort())
"""


def process(tmp_path: Path, out: Path, jobs: int) -> subprocess.Popen:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parent)))
    source = str(Path(plurigp.__file__).parents[1])
    return subprocess.Popen([sys.executable, str(script), str(out), str(jobs)], env=os.environ | {"PYTHONPATH": source})


@pytest.mark.slow
def test_processes_do_not_change_the_bytes(tmp_path):
    assert process(tmp_path, tmp_path / "one", 1).wait() == 0
    assert process(tmp_path, tmp_path / "two", 2).wait() == 0
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


@pytest.mark.slow
def test_killed_at_random_moments(tmp_path):
    started = time.perf_counter()
    assert process(tmp_path, tmp_path / "whole", 1).wait() == 0
    seconds = time.perf_counter() - started
    rng = np.random.default_rng(0)
    for number, moment in enumerate(rng.uniform(0.1, 0.95, 3) * seconds):
        running = process(tmp_path, tmp_path / f"killed-{number}", 1)
        time.sleep(moment)
        running.kill()
        running.wait()
        assert process(tmp_path, tmp_path / f"killed-{number}", 1).wait() == 0
        assert contents(tmp_path / f"killed-{number}") == contents(tmp_path / "whole")
