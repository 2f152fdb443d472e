"""`plurigp explore`: a study, a single model, and what is refused before any work."""

import pytest
from typer.testing import CliRunner

from plurigp import PluriGP
from plurigp.cli.app import app
from plurigp.datasets import simulate


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    table = simulate(n_rows=150, columns={"gaussian": 3}, missing=0.1).table
    PluriGP(2, max_epochs=1, n_inducing=10, calibrate=False, random_state=0).fit(table).save(folder / "model")
    table.to_csv(folder / "rows.csv", index=False)
    return folder


def run(*words):
    return CliRunner().invoke(app, ["explore", *map(str, words)])


def test_a_single_model(made, tmp_path):
    out = tmp_path / "explorer.html"
    done = run(made / "model", "--out", out, "--title", "Our <patients>")
    assert done.exit_code == 0, done.output
    assert "open it in a browser" in done.output
    assert "<title>Our &lt;patients&gt;</title>" in out.read_text()
    again = run(made / "model", "--out", out)
    assert again.exit_code == 1
    assert "already exists; pass --force" in again.output
    assert run(made / "model", "--out", out, "--rows", made / "rows.csv", "--bins", "5", "--force").exit_code == 0
    assert "Each mark stands for several patients" in out.read_text()


def test_rows_are_announced(made, tmp_path):
    out = tmp_path / "explorer.html"
    done = run(made / "model", "--out", out, "--include-rows", made / "rows.csv")
    assert done.exit_code == 0, done.output
    assert "treat it as you treat the table" in done.output
    assert "Contains patient data" in out.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rows", "rows.csv", "--include-rows", "rows.csv"], "both name a table"),
        (["--include-rows", "rows.csv", "--jitter", "0.1"], "leave out --jitter"),
        (["--jitter", "0.1", "--bins", "9"], "give one of the two"),
    ],
)
def test_options_that_contradict_each_other(made, tmp_path, words, said):
    words = [made / word if word.endswith(".csv") else word for word in words]
    done = run(made / "model", "--out", tmp_path / "e.html", *words)
    assert done.exit_code == 1
    assert said in done.output
    assert not (tmp_path / "e.html").exists()


def test_a_model_folder_needs_out_and_other_folders_are_named(made, tmp_path):
    assert "--out FILE" in run(made / "model").output
    missing = run(tmp_path / "nothing", "--out", tmp_path / "e.html")
    assert missing.exit_code == 1
    assert "no such model folder" in missing.output


def test_a_column_that_is_missing_is_named(made, tmp_path):
    (tmp_path / "rows.csv").write_text("gaussian_1,gaussian_2\n1,2\n")
    done = run(made / "model", "--out", tmp_path / "e.html", "--rows", tmp_path / "rows.csv")
    assert done.exit_code == 1
    assert "gaussian_3" in done.output
