import pytest
from typer.testing import CliRunner

from plurigp.cli.app import app
from plurigp.cli.options import delta_ranges

run = CliRunner().invoke


def test_what_is_no_study_is_named(tmp_path):
    answer = run(app, ["report", str(tmp_path)])
    assert answer.exit_code == 1
    assert "give the folder of a finished study" in answer.stderr
    assert not list(tmp_path.iterdir())


def test_a_pdf_without_a_browser_names_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv("PLURIGP_BROWSER", "no-such-browser")
    answer = run(app, ["report", str(tmp_path), "--pdf"])
    assert answer.exit_code == 1
    assert "install one" in answer.stderr
    assert "print it to PDF" in answer.stderr


@pytest.mark.parametrize("words", ["RUN_FOLDER", "--include-rows", "--pdf"])
def test_help_names_the_options(words):
    assert words in run(app, ["report", "--help"]).stdout


def test_amounts_of_one_column_are_its_range():
    given = ["crp=5", "stage:late=0.5", "crp=-5", "stage:early=1"]
    assert delta_ranges(given, ["crp", "stage"]) == {
        "crp": [-5.0, 0.0, 5.0],
        "stage": {"late": [0.0, 0.5], "early": [0.0, 1.0]},
    }
