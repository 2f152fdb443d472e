"""fit, transform, impute, score and sample, on one small model trained by the command line itself."""

import csv
import gzip
import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from plurigp.cli.app import app
from plurigp.cli.filled import filled_text, spelled
from plurigp.estimator.parameters import FOR_IMPUTATION

N_ROWS = 60


def run(*args):
    return CliRunner().invoke(app, [str(arg) for arg in args])


def table_text() -> str:
    """A file with an id, a real, a yes/no, a truth value and a count; gaps in every spelling, numbers in odd ones."""
    rng = np.random.default_rng(3)
    gaps = ["", "NA", "?", "-"]
    rows = ["patient,albumin,diabetes,smoker,visits,outcome"]
    for i, f in enumerate(rng.normal(size=N_ROWS)):
        real = f"{3.5 + 0.5 * f:.3f}0" if i % 2 else f"+{3.5 + 0.5 * f:.2f}"
        cells = [real, "yes" if f > 0 else "no", "true" if f > rng.normal() else "false", str(rng.poisson(np.exp(f)))]
        cells = [gaps[i % 4] if rng.random() < 0.15 else cell for cell in cells]
        rows.append(",".join([f"=P{i}", *cells, str(i % 2)]))
    return "\n".join(rows) + "\n"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a table and a model of it."""
    folder = tmp_path_factory.mktemp("verbs")
    (folder / "t.csv").write_text(table_text())
    small = ("--epochs", 3, "--inducing", 8, "--batch-size", 60, "--seed", 1, "--exclude", "outcome")
    result = run("fit", folder / "t.csv", "--out", folder / "model", *small, "--json")
    assert result.exit_code == 0, result.stderr
    (folder / "fit.json").write_text(result.stdout)
    return folder


@pytest.fixture
def frame(home):
    return pd.read_csv(home / "t.csv", na_values=["?", "-"])


def test_fit_answers_in_json(home):
    answer = json.loads((home / "fit.json").read_text())
    assert answer["rows"] == N_ROWS
    assert answer["used"] == ["albumin", "diabetes", "smoker", "visits"]
    assert answer["aside"] == ["patient", "outcome"]
    assert answer["epochs"] == 3
    assert len(answer["lengthscales"]) == 2
    assert answer["bound_per_row"] == pytest.approx(answer["bound"] / N_ROWS)


def test_model_folder_holds_no_pickle_and_no_leftovers(home):
    assert sorted(path.name for path in (home / "model").iterdir()) == ["model.json", "model.safetensors"]
    assert not [path for path in home.iterdir() if path.name.startswith(".")]


def test_fit_with_groups_says_how_large_they_are(home, tmp_path):
    small = ("--groups", 2, "--epochs", 3, "--inducing", 8, "--seed", 1, "--exclude", "outcome")
    result = run("fit", home / "t.csv", "--out", tmp_path / "model", *small)
    assert result.exit_code == 0, result.stderr
    assert re.search(r"groups: \d+%, \d+% of the rows", result.stdout + result.stderr)
    assert json.loads((home / "fit.json").read_text())["group_weights"] == [1.0]


def test_fit_weighs_rows_by_a_column(home, tmp_path):
    small = ("--weights", "outcome", "--epochs", 3, "--inducing", 8, "--seed", 1, "--json")
    result = run("fit", home / "t.csv", "--out", tmp_path / "model", *small)
    assert result.exit_code == 0, result.stderr
    answer, plain = json.loads(result.stdout), json.loads((home / "fit.json").read_text())
    assert answer["aside"] == ["patient", "outcome"]
    assert answer["bound"] > plain["bound"]  # every other row counts nothing
    refused = run("fit", home / "t.csv", "--out", tmp_path / "no", "--weights", "albumin", "--epochs", 1)
    assert refused.exit_code != 0
    assert "albumin" in refused.stderr
    assert "a weight must be" in refused.stderr


def test_fit_and_sample_with_a_covariate(home, tmp_path):
    small = ("--epochs", 3, "--inducing", 8, "--batch-size", 60, "--seed", 1, "--covariate", "outcome")
    more = ("--column-weight", "visits=0.5", "--view", "own=albumin,diabetes", "--view", "rest=smoker")
    result = run("fit", home / "t.csv", "--out", tmp_path / "model", *small, *more)
    assert result.exit_code == 0, result.stderr
    assert "adjusted for: outcome" in result.stdout + result.stderr
    drawn = tmp_path / "drawn.csv"
    assert "needs its covariates" in run("sample", tmp_path / "model", "--rows", 5, "--out", drawn).stderr
    result = run("sample", tmp_path / "model", "--rows", 5, "--at", "outcome=1", "--out", drawn)
    assert result.exit_code == 0, result.stderr
    assert list(pd.read_csv(drawn)) == ["albumin", "diabetes", "smoker", "visits"]
    assert run("transform", tmp_path / "model", home / "t.csv", "--out", tmp_path / "x.csv").exit_code == 0
    for at in (0, 1):
        to = tmp_path / f"at_{at}.csv"
        result = run("counterfactual", tmp_path / "model", home / "t.csv", "--at", f"outcome={at}", "--out", to)
        assert result.exit_code == 0, result.stderr
    one, other = (pd.read_csv(tmp_path / f"at_{at}.csv") for at in (0, 1))
    assert len(one) == N_ROWS
    assert (one["albumin"] != other["albumin"]).all()
    to, asked = tmp_path / "ends.csv", ("--at", "outcome=1", "--level")
    result = run("counterfactual", tmp_path / "model", home / "t.csv", *asked, 0.9, "--out", to)
    ends = pd.read_csv(to)
    assert list(ends)[:3] == ["albumin", "albumin (low)", "albumin (high)"]
    assert "diabetes (low)" not in ends  # of levels
    assert ends["albumin (low)"].lt(ends["albumin (high)"]).all()
    wide = run("counterfactual", tmp_path / "model", home / "t.csv", *asked, 90, "--out", tmp_path / "no.csv")
    assert "--level 90: must lie between 0 and 1" in wide.stderr
    refused = run("counterfactual", home / "model", home / "t.csv", "--at", "outcome=1", "--out", tmp_path / "no.csv")
    assert "has no covariates" in refused.stderr
    manifest = json.loads((tmp_path / "model" / "model.json").read_text())
    weights = {c["name"]: c["weight"] for c in manifest["coder"]["schema"]["columns"]}
    assert weights["visits"] == weights["albumin"] == 0.5


def test_fit_with_one_seed_is_repeatable(home, tmp_path):
    small = ("--epochs", 3, "--inducing", 8, "--batch-size", 60, "--seed", 1, "--exclude", "outcome")
    result = run("fit", home / "t.csv", "--out", tmp_path / "model", *small)
    assert result.exit_code == 0, result.stderr
    assert "set aside: patient, outcome" in result.stdout
    for name in ("model.safetensors",):
        assert (tmp_path / "model" / name).read_bytes() == (home / "model" / name).read_bytes()
    assert run("fit", home / "t.csv", "--out", tmp_path / "model", *small).exit_code == 1
    assert run("fit", home / "t.csv", "--out", tmp_path / "model", *small, "--force").exit_code == 0


def test_transform(home, tmp_path):
    result = run("transform", home / "model", home / "t.csv", "--std", "--out", tmp_path / "x.csv")
    assert result.exit_code == 0, result.stderr
    latent = pd.read_csv(tmp_path / "x.csv")
    assert latent.columns.tolist() == ["row", "plurigp0", "plurigp1", "plurigp0_sd", "plurigp1_sd"]
    assert latent["row"].tolist() == list(range(N_ROWS))
    assert (latent[["plurigp0_sd", "plurigp1_sd"]] > 0).all(axis=None)
    assert run("transform", home / "model", home / "t.csv", "--out", tmp_path / "x.parquet").exit_code == 0
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "x.parquet"), latent.iloc[:, :3])


def test_columns_in_any_order_extra_ones_and_missing_ones(home, tmp_path, frame):
    frame = frame[["visits", "smoker", "diabetes", "albumin"]].assign(extra="x")
    frame.to_csv(tmp_path / "other.csv", index=False)
    for table, out in ((home / "t.csv", "a.csv"), (tmp_path / "other.csv", "b.csv")):
        result = run("transform", home / "model", table, "--out", tmp_path / out)
        assert result.exit_code == 0, result.stderr
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    result = run("impute", home / "model", tmp_path / "other.csv", "--out", tmp_path / "filled.csv")
    assert result.exit_code == 0, result.stderr
    assert pd.read_csv(tmp_path / "filled.csv").columns.tolist() == frame.columns.tolist()


def cells(text: str) -> list[list[str]]:
    return list(csv.reader(text.splitlines()))


@pytest.mark.parametrize("name", ["filled.csv", "filled.tsv.gz"])
def test_impute_keeps_every_observed_cell_to_the_letter(home, tmp_path, frame, name):
    result = run("impute", home / "model", home / "t.csv", "--out", tmp_path / name)
    assert result.exit_code == 0, result.stderr
    raw = (tmp_path / name).read_bytes()
    text = gzip.decompress(raw).decode().replace("\t", ",") if name.endswith("gz") else raw.decode()
    before, after = cells((home / "t.csv").read_text()), cells(text)
    gaps = frame.isna().to_numpy()
    for i, (old, new) in enumerate(zip(before[1:], after[1:], strict=True)):
        for d, (was, now) in enumerate(zip(old, new, strict=True)):
            assert (now != was) if gaps[i, d] else (now == was)
    filled = pd.DataFrame(after[1:], columns=after[0])
    assert set(filled["diabetes"]) == {"yes", "no"}
    assert set(filled["smoker"]) == {"true", "false"}
    assert filled["visits"].str.isdigit().all()
    assert filled["albumin"].astype(float).notna().all()
    assert f"filled {gaps.sum()} gaps in 4 columns" in result.stdout


def test_impute_without_a_model_trains_one_on_the_table(home, tmp_path, frame, monkeypatch):
    monkeypatch.setitem(FOR_IMPUTATION, "max_epochs", 3)
    result = run("impute", home / "t.csv", "--exclude", "outcome", "--seed", 1, "--out", tmp_path / "f.csv")
    assert result.exit_code == 0, result.stderr
    filled = pd.read_csv(tmp_path / "f.csv", dtype=str)
    text = pd.read_csv(home / "t.csv", dtype=str, keep_default_na=False)
    seen = frame.notna()
    assert not filled[["albumin", "diabetes", "smoker", "visits"]].isna().any().any()
    assert all((filled[name] == text[name])[seen[name]].all() for name in frame)
    refused = run("impute", home / "model", home / "t.csv", "--exclude", "outcome", "--out", tmp_path / "g.csv")
    assert refused.exit_code != 0
    assert "a model has its columns" in refused.stderr


def test_impute_spreadsheet_safe(home, tmp_path):
    result = run("impute", home / "model", home / "t.csv", "--out", tmp_path / "f.csv", "--spreadsheet-safe")
    assert result.exit_code == 0, result.stderr
    filled = pd.read_csv(tmp_path / "f.csv", dtype=str)
    assert filled["patient"].str.startswith("'=P").all()
    assert filled["albumin"].str.startswith("+").any()


def test_impute_writes_completed_tables(home, tmp_path, frame):
    args = ("impute", home / "model", home / "t.csv", "--out", tmp_path / "c.csv", "--draws", 3, "--seed", 4)
    result = run(*args)
    assert result.exit_code == 0, result.stderr
    tables = [pd.read_csv(tmp_path / f"c-{n}.csv") for n in (1, 2, 3)]
    seen = frame["albumin"].notna()
    for table in tables:
        assert table[["albumin", "diabetes", "smoker", "visits"]].notna().all().all()
        assert (table["albumin"][seen] == frame["albumin"][seen]).all()
    assert (tables[0]["albumin"] != tables[1]["albumin"]).any()
    again = run(*args)
    assert again.exit_code == 1
    assert "c-1.csv: already exists" in again.stderr


def test_gaps_are_described_one_per_line(home, tmp_path, frame):
    result = run("gaps", home / "model", home / "t.csv", "--out", tmp_path / "g.csv", "--draws", 40)
    assert result.exit_code == 0, result.stderr
    lines = pd.read_csv(tmp_path / "g.csv")
    assert len(lines) == frame[["albumin", "diabetes", "smoker", "visits"]].isna().sum().sum()
    real = lines[lines["column"] == "albumin"]
    assert (real["q5"] < real["q95"]).all()
    named = lines[lines["column"] == "diabetes"]
    assert set(named["level"]) <= {"yes", "no"}
    assert named["probability"].between(0.5, 1).all()


def test_impute_moves_draws_by_delta(home, tmp_path, frame):
    args = ("impute", home / "model", home / "t.csv", "--draws", 1, "--seed", 4)
    assert run(*args, "--out", tmp_path / "c.csv").exit_code == 0
    result = run(*args, "--delta", "albumin=2.5", "--out", tmp_path / "d.csv")
    assert result.exit_code == 0, result.stderr
    moved = pd.read_csv(tmp_path / "d-1.csv")["albumin"] - pd.read_csv(tmp_path / "c-1.csv")["albumin"]
    assert moved.to_numpy() == pytest.approx(np.where(frame["albumin"].isna(), 2.5, 0.0), abs=1e-9)


@pytest.mark.parametrize(
    ("options", "finding"),
    [
        (("--delta", "albumin=1"), "say how many with --draws"),
        (("--draws", 1, "--delta", "albumin"), "write COLUMN=AMOUNT"),
        (("--draws", 1, "--delta", "albumin=much"), "write COLUMN=AMOUNT"),
        (("--draws", 1, "--delta", "nobody:late=1"), "column 'nobody' is not used by this model"),
    ],
)
def test_deltas_that_mean_nothing_are_refused(home, tmp_path, options, finding):
    result = run("impute", home / "model", home / "t.csv", "--out", tmp_path / "f.csv", *options)
    assert result.exit_code == 1
    assert finding in result.stderr


def test_impute_to_parquet(home, tmp_path, frame):
    assert run("impute", home / "model", home / "t.csv", "--out", tmp_path / "f.parquet").exit_code == 0
    filled = pd.read_parquet(tmp_path / "f.parquet")
    assert filled.notna().all(axis=None)
    seen = frame["albumin"].notna()
    assert filled.loc[seen, "albumin"].tolist() == frame.loc[seen, "albumin"].tolist()


def test_score(home):
    result = run("score", home / "model", home / "t.csv", "--json")
    answer = json.loads(result.stdout)
    assert answer["rows"] == N_ROWS
    assert answer["per_row"] * N_ROWS == pytest.approx(answer["per_cell"] * answer["cells"])
    shown = run("score", home / "model", home / "t.csv")
    assert f"{answer['per_cell']:.4f}" in shown.stdout
    assert f"{N_ROWS} rows, {answer['cells']} observed cells" in shown.stdout


def test_score_without_an_observed_cell(home, tmp_path):
    (tmp_path / "t.csv").write_text("albumin,diabetes,smoker,visits\nNA,NA,NA,NA\n")
    result = run("score", home / "model", tmp_path / "t.csv", "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["per_cell"] is None


def test_sample(home, tmp_path):
    for out in ("a.csv", "b.csv"):
        result = run("sample", home / "model", "--rows", 25, "--seed", 1, "--out", tmp_path / out)
        assert result.exit_code == 0, result.stderr
    drawn = pd.read_csv(tmp_path / "a.csv")
    assert drawn.shape == (25, 4)
    assert drawn["albumin"].nunique() == 25
    assert set(drawn["diabetes"]) <= {"yes", "no"}
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


BAD_ROWS = {
    "level unseen in fit": ("3.5,maybe,true,2", "'diabetes', row 0"),
    "negative count": ("3.5,yes,true,-2", "'visits', row 0"),
    "half a count": ("3.5,yes,true,2.5", "'visits', row 0"),
    "text where numbers were": ("high,yes,true,2", "'albumin', row 0"),
    "infinity": ("inf,yes,true,2", "'albumin', row 0"),
    "number where truth was": ("3.5,yes,7,2", "'smoker', row 0"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_bad_new_rows(home, tmp_path, case):
    row, words = BAD_ROWS[case]
    (tmp_path / "new.csv").write_text(f"albumin,diabetes,smoker,visits\n{row}\n")
    result = run("transform", home / "model", tmp_path / "new.csv", "--out", tmp_path / "x.csv")
    assert result.exit_code == 1, result.stdout
    assert result.stderr.startswith(f"error: {tmp_path / 'new.csv'}: column ")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "x.csv").exists()


def test_column_missing_at_transform(home, tmp_path):
    (tmp_path / "new.csv").write_text("albumin,smoker,visits\n3.5,true,1\n")
    result = run("transform", home / "model", tmp_path / "new.csv", "--out", tmp_path / "x.csv")
    assert result.exit_code == 1
    assert "new.csv: column 'diabetes' is missing" in result.stderr


@pytest.mark.parametrize(
    ("file", "damage"),
    [
        ("model.json", lambda content: content[:100]),
        ("model.json", lambda content: content.replace(b'"format": 1', b'"format": 99')),
        ("model.json", lambda content: content.replace(b"albumin", b"globulin")),
        ("model.json", lambda content: b"[]"),
        ("model.safetensors", lambda content: content[:-8]),
        ("model.safetensors", lambda content: b""),
        ("model.safetensors", lambda content: content[:-1] + bytes([content[-1] ^ 1])),
    ],
)
def test_corrupt_model(home, tmp_path, file, damage):
    shutil.copytree(home / "model", tmp_path / "model")
    path = tmp_path / "model" / file
    path.write_bytes(damage(path.read_bytes()))
    result = run("score", tmp_path / "model", home / "t.csv")
    assert result.exit_code == 1, result.stdout
    assert result.stderr.startswith(f"error: {tmp_path / 'model'}")
    assert result.stderr.count("\n") == 1


def test_spelling_follows_the_column():
    assert spelled([3.0, 2.5], [1.0, 4.0], ["1", "+4"]) == ["3", "2.5"]
    assert spelled([3.0], [1.5], ["1.5"]) == ["3.0"]
    assert spelled([True, False], [True, True], ["TRUE", "TRUE"]) == ["TRUE", "False"]
    assert spelled(["a"], ["b"], ["b"]) == ["a"]


def test_text_keeps_quotes_breaks_and_spaces(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a, b\n"x, ""y""\nz",007\n,1e3 \n')
    frame = pd.DataFrame({"a": ['x, "y"\nz', None], "b": [7.0, 1000.0]})
    filled = frame.assign(a=["x", "w"])
    assert filled_text(path, frame, filled).to_numpy().tolist() == [['x, "y"\nz', "007"], ["w", "1e3 "]]


@pytest.mark.parametrize(
    ("sep", "decimal", "options"), [(";", ",", ()), (";", ".", ()), ("|", ",", ("--sep", "|", "--decimal", ","))]
)
def test_other_separators_and_decimal_marks_give_the_same_answers(home, tmp_path, sep, decimal, options):
    text = (home / "t.csv").read_text().replace(",", sep).replace(".", decimal)
    (tmp_path / "other.csv").write_text(text)
    for verb in ("transform", "impute"):
        for table, more, out in ((home / "t.csv", (), "a.csv"), (tmp_path / "other.csv", options, "b.csv")):
            result = run(verb, home / "model", table, *more, "--out", tmp_path / f"{verb}-{out}")
            assert result.exit_code == 0, result.stderr
    assert (tmp_path / "transform-a.csv").read_bytes() == (tmp_path / "transform-b.csv").read_bytes()
    a, b = (pd.read_csv(tmp_path / f"impute-{out}.csv").astype({"smoker": str}) for out in ("a", "b"))
    pd.testing.assert_frame_equal(a, b, check_dtype=False)  # 3 or 3.0: decimal commas are not written


def test_standard_input(home, tmp_path):
    text = (home / "t.csv").read_bytes()
    result = CliRunner().invoke(app, ["impute", str(home / "model"), "-", "--out", str(tmp_path / "f.csv")], input=text)
    assert result.exit_code == 0, result.stderr
    assert pd.read_csv(tmp_path / "f.csv")["albumin"].notna().all()
    assert (
        run("score", home / "model", home / "t.csv").stdout
        in CliRunner().invoke(app, ["score", str(home / "model"), "-"], input=text).stdout
    )
    bad = CliRunner().invoke(app, ["score", str(home / "model"), "-"], input=b"albumin,visits\n1,x\n")
    assert bad.stderr.startswith("error: standard input: column 'diabetes' is missing")


def test_sample_of_more_rows_than_memory_holds_is_refused(home, tmp_path):
    result = run("sample", home / "model", "--rows", 10**9, "--out", tmp_path / "s.csv")
    assert result.exit_code == 1
    assert "--rows 1000000000 is more than the 25,000,000 rows" in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "s.csv").exists()


def test_a_manifest_of_many_megabytes_is_refused_unread(home, tmp_path):
    shutil.copytree(home / "model", tmp_path / "model")
    (manifest,) = (tmp_path / "model").glob("*.json")
    with manifest.open("ab") as file:
        file.truncate(90_000_000)
    result = run("score", tmp_path / "model", home / "t.csv")
    assert result.exit_code == 1
    assert "is larger than 50 MB" in result.stderr
