"""The experiments from end to end: on a handful of digits, and (slow) as `--quick` runs them."""

import pytest

from plurigp_paper import simulated
from plurigp_paper.page import read_results
from plurigp_paper.run import reproduce

TINY = simulated.Sizes(
    n_per_digit=20, n_components=2, n_splits=1, max_epochs=2, grid=(2,), n_restarts=1, n_few=1, study_epochs=2,
    n_refits=2, n_references=0, harder=(),
)  # fmt: skip


@pytest.mark.slow
def test_a_handful_of_digits_goes_all_the_way_and_is_not_done_again(tmp_path):
    first = simulated.run(tmp_path, TINY, quiet=True)
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "paper" / "fits").rglob("panel-*.json")}
    assert len(files) == 12
    simulated.run(tmp_path, TINY, quiet=True)
    assert {path: path.stat().st_mtime_ns for path in files} == files
    assert read_results(tmp_path)["simulated"]["panel"] == first["panel"]
    text = reproduce("page", tmp_path, quick=False).page.read_text(encoding="utf-8")
    for figure in ("simulated-map.svg", "simulated-digits.svg", "simulated-panel-shared-reconstruction-real.svg"):
        assert (tmp_path / "paper" / figure).exists()
        assert figure in text


@pytest.mark.slow
def test_the_quick_run_has_the_direction_of_each_claim(tmp_path):
    found = reproduce("simulated", tmp_path, quick=True, quiet=True)
    assert found.page.exists()
    assert len(found.claims) == 4
    assert len(found.directions) == 10
    assert all(found.directions.values()), found.directions
