import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from plurigp.cli.app import app
from plurigp.cli.study import verdict

run = CliRunner().invoke
QUICK = """
n_components = [2]
n_restarts = 1
max_epochs = 3
n_refits = 2
n_references = 1
n_permutations = 20
max_subtypes = 3
mixture_inits = 1
max_clusters = 4
"""


@pytest.fixture
def patients(tmp_path, rng, monkeypatch):
    """A table of five lab values of two kinds of patients, a quick configuration; no browser to draw figures with."""
    monkeypatch.setenv("PLURIGP_BROWSER", "none")
    values = rng.normal(size=(80, 1)) + rng.normal(size=(80, 5)) + 6 * (np.arange(80) < 35)[:, None]
    frame = pd.DataFrame(values, columns=["albumin", "sodium", "urea", "ph", "glucose"])
    frame.mask(rng.random(frame.shape) < 0.1).to_csv(tmp_path / "patients.csv", index=False)
    (tmp_path / "study.toml").write_text(QUICK)
    return tmp_path


def table(folder):
    return folder / "patients.csv"


def study(folder, *options):
    return run(app, ["study", str(table(folder)), "--out", str(folder / "run"), "--jobs", "0", *options])


@pytest.mark.slow
def test_a_study_and_going_on(patients):
    options = ("--config", str(patients / "study.toml"), "--subtypes", "2", "--seed", "3")
    first = study(patients, *options)
    assert first.exit_code == 0, first.output
    assert "latent dimensions: 2" in first.stdout
    assert "(valleys: p" in first.stdout
    assert "Agreement" in first.stdout
    assert "Of 1 structureless table drawn from the map, " in first.stdout
    again = study(patients, *options, "--json")
    assert again.exit_code == 0, again.output
    facts = json.loads(again.stdout)
    assert facts["n_subtypes"] == facts["n_strata"] == 2
    assert (patients / "run" / "assignments.csv").exists()
    assert f"wrote {patients / 'run' / 'report.html'}" in first.stdout
    shown = run(
        app, ["report", str(patients / "run"), "--title", "<b>Ours</b>", "--include-rows", str(table(patients))]
    )
    assert shown.exit_code == 0, shown.output
    page = (patients / "run" / "report.html").read_text(encoding="utf-8")
    assert "<h1>&lt;b&gt;Ours&lt;/b&gt;</h1>" in page
    assert '"label":"albumin"' in page
    other = study(patients, *options, "--refits", "4")
    assert other.exit_code == 1
    assert "another settings" in other.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--time", "days"), "time and event go together"),
        (("--refits", "3"), "must be even"),
        (("--time", "days", "--event", "died"), "column 'days' is to hold an outcome"),
        (("--exclude", "albumen"), "Did you mean 'albumin'"),
        (("--config", "nowhere.toml"), "nowhere.toml: cannot be read"),
    ],
)
def test_bad_requests_are_one_line(patients, options, message):
    result = study(patients, *options)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (patients / "run").exists()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('[model]\nkernl = "rbf"', "Did you mean 'kernel'?"),
        ('[model]\nkernel = "rfb"', "error: model: kernel='rfb': 'rfb' is not one of"),
        ('horizons = ["soon"]', "error: horizons: 'soon' must be a number above 0"),
        ("n_subtypes = 9", "n_subtypes = 9 is too many for 80 rows"),
    ],
)
def test_a_wrong_setting_is_found_before_the_first_fit(patients, lines, message):
    (patients / "study.toml").write_text(lines)
    result = study(patients, "--config", str(patients / "study.toml"))
    assert result.exit_code == 1, result.output
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (patients / "run").exists()


def found(group, p=(), choice="evidence", references=()):
    """What a verdict asks of a result: strata of equal size in these groups, with these p-values of valleys."""
    K = len(group)
    first, second = np.triu_indices(K, 1)
    pairs = pd.DataFrame({"subtype": first + 1, "other": second + 1, "p": p, "apart": False}) if p else pd.DataFrame()
    facts = {"structured": max(group) > 1, "choice": choice, "structure_p": 0.15, "level": 0.05, "n_strata": K}
    strata = pd.DataFrame({"subtype": np.arange(1, K + 1), "share": 1 / K, "group": group})
    return facts, strata, pairs, np.array(references)


CONTINUUM = "no subtypes were detected; treated as a continuum, described by"


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (
            found([1, 2, 3]),
            ["three subtypes, each standing apart from the others (valleys: p = 0.15)"],
        ),
        (found([1, 1, 1]), [f"{CONTINUUM} three strata (valleys: p = 0.15)"]),
        (found([1, 1], choice="given"), [f"{CONTINUUM} two requested strata (valleys: p = 0.15)"]),
        (found([1], choice="given"), ["treated as one group"]),
        (found([1]), ["no subtypes were detected; treated as one group"]),
        (
            found([1, 1, 1], p=[0.4, 0.5, 1e-9], references=[0.5, 0.9]),
            [
                f"{CONTINUUM} three strata (valleys: p = 0.15)",
                "There is a valley between strata 2 and 3, but stratum 1 joins them.",
                "Of 2 structureless tables drawn from the map, none showed groups at the level of 5%.",
            ],
        ),
    ],
)
def test_the_verdict_in_a_few_lines(parts, said):
    assert verdict(*parts) == said
