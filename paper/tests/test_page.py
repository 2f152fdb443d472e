import pytest

from plurigp.core.types import DataError
from plurigp.study.fits.store import write_json
from plurigp_paper.claims import Claim, Finding
from plurigp_paper.page import read_results, write_page
from plurigp_paper.run import reproduce


def pair(wins: int, n: int = 30) -> dict:
    values = [[1.0] * n, [0.0] * wins + [2.0] * (n - wins)]
    return {"values": values, "wins": wins, "n": n, "median": 1.0, "lowest": -1.0, "highest": 1.0}


def panel(hidden: int) -> dict:
    keys = [f"all/{score}/{by}" for score in ("reconstruction", "cells", "density") for by in ("raw", "mass")]
    keys += [f"real/{score}/{other}" for score in ("reconstruction", "cells", "density") for other in (1, 3)]
    keys += [f"levels/{score}/{by}" for score in ("reconstruction", "cells") for by in ("raw", "mass")]
    return {key: pair(hidden if "cells" in key else 30) for key in keys}


@pytest.fixture
def simulated() -> dict:
    consensus = [{"subtype": 1, "size": 400, "index": 0.97, "permutation_threshold": 0.36, "permutation_p": 0.001}]
    line = {"Q": 6, "bound": 1.0, "cells": 0.5, "gap": 0.0, "gap_se": 0.1, "chosen": True, "reconstruction": 400.0,
            "density": 300.0}  # fmt: skip
    return {
        "sizes": {"n_splits": 30, "max_epochs": 120},
        "panel": {"shared": panel(30), "own": panel(28)},
        "floors": [0.05, 0.02],
        "floor_panel": {"0.05": panel(28), "0.02": panel(29)},
        "n_constant": 61,
        "epochs": [120, 80],
        "selection": [line],
        "clusters": {"consensus": consensus, "rand": {"tied": 0.95, "full": 0.93}, "n_paper": 9, "n_evidence": 3},
        "harder": {},
    }


def test_what_does_not_hold_comes_first_with_its_reason(tmp_path, simulated):
    (tmp_path / "paper").mkdir()
    write_json(tmp_path / "paper" / "simulated.json", simulated)
    text = write_page(tmp_path).read_text(encoding="utf-8")
    first = text.index("## Where a claim does not hold")
    assert first < text.index("## Composite against Gaussian for all")
    assert "28 of 30" in text[first:]
    assert "densities with probabilities" in text[first : text.index("## Composite")]
    assert "61 of the 392" in text
    assert "1 ended at the limit" in text
    assert set(read_results(tmp_path)) == {"simulated"}


def test_a_page_without_experiments_says_so(tmp_path):
    assert "No experiment is here yet" in reproduce("page", tmp_path, False).page.read_text(encoding="utf-8")


def test_an_unknown_experiment_is_refused(tmp_path):
    with pytest.raises(DataError, match="no experiment 'figure'"):
        reproduce("figure", tmp_path, False)


def test_a_subset_is_shown_but_does_not_decide():
    yes, no = Finding("all", "higher", True), Finding("some", "lower", False, subset=True)
    assert Claim("c", "says", (yes, no)).holds
    assert not Claim("c", "says", (yes, Finding("all", "lower", False, ours=True))).holds
