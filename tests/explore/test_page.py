"""The page as a file: its policy, what it holds of the rows, what it refuses, and hostile text."""

import base64
import copy
import json
import re
from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import pytest

from plurigp import PluriGP
from plurigp.core.types import DataError
from plurigp.data import KINDS
from plurigp.explore import Privacy, render_explorer, write_explorer
from plurigp.explore.page import SCRIPTS, static
from plurigp.explore.rows import MIN_REGION
from plurigp.report.page import source_hash


def content_of(page: str) -> dict:
    return json.loads(re.search(r'id="content">(.*?)</script>', page, re.DOTALL)[1])


def unpacked(array: dict) -> np.ndarray:
    return np.frombuffer(base64.b64decode(array["data"]), f"<{array['dtype']}")


def every_array(part) -> list[np.ndarray]:
    if isinstance(part, dict):
        inner = [found for value in part.values() for found in every_array(value)]
        return [unpacked(part)] if set(part) == {"dtype", "data"} else inner
    return [found for value in part for found in every_array(value)] if isinstance(part, list) else []


def every_number(part) -> set[float]:
    if isinstance(part, dict | list):
        return set().union(*map(every_number, part.values() if isinstance(part, dict) else part))
    return {float(part)} if isinstance(part, int | float) else set()


@pytest.fixture(scope="module")
def page(study):
    return render_explorer(study)


# --- the file ---


def test_only_our_scripts_run_and_nothing_is_fetched(page):
    policy = unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1])
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert scripts == [static(f"{name}.js") for name in SCRIPTS]
    assert set(re.search(r"script-src ([^;]*)", policy)[1].split()) == set(map(source_hash, scripts))
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    assert source_hash(style) in policy
    body = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r'(src|href)=(?!"#)|\son\w+=|\sstyle=', body)


def test_the_scripts_are_small_and_run_no_text():
    sources = {name: static(f"{name}.js") for name in SCRIPTS}
    for name, source in sources.items():
        assert len(source.splitlines()) <= 350, name
        assert max(map(len, source.splitlines())) <= 140, name
        assert not re.search(r"\beval\b|new Function|innerHTML|outerHTML|insertAdjacentHTML", source), name
        assert not re.search(r"\bfetch\b|XMLHttpRequest|WebSocket|sendBeacon|import\(|localStorage", source), name
        assert "</script" not in source.lower(), name
    assert sum(map(len, sources.values())) < 150_000


def test_the_scripts_know_every_kind_and_every_coding():
    families = static("families.js") + static("counts.js") + static("censored.js")
    coding = static("coding.js")
    for kind in KINDS.values():
        assert re.search(rf"\b{kind.name}\b", families), kind.name
        assert re.search(rf"\b{kind.code.__name__}\b", coding), kind.code.__name__
        assert re.search(rf"\b{kind.decode.__name__}\b", coding), kind.decode.__name__


def test_the_same_study_gives_the_same_bytes(study, page):
    assert render_explorer(study) == page


# --- what it holds of the rows ---


@pytest.fixture(scope="module")
def canaries():
    """A thousand cells and as many ids that nobody else has, among cells that many share."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({
        "patient": [f"CANARY-{i:04d}-{rng.integers(1 << 40):x}" for i in range(1000)],
        "weight": 70 + 13.7 * rng.normal(size=1000),
        "height": 170 + 9.1 * rng.normal(size=1000),
        "sex": rng.choice(["f", "m"], 1000),
        "note": [f"note canary {rng.integers(1 << 40):x} of a long visit" for _ in range(1000)],
    })  # fmt: skip
    table["height"] += 0.3 * (table["weight"] - 70)
    return table


@pytest.fixture(scope="module")
def canary_model(canaries):
    return PluriGP(2, max_epochs=2, n_inducing=20, calibrate=False, random_state=0).fit(canaries)


def test_no_cell_and_no_id_is_in_the_file_by_default(canaries, canary_model):
    page = render_explorer(canary_model, rows=canaries)
    assert "CANARY" not in page
    assert "canary" not in page
    content = content_of(page)
    numbers = every_number(content)
    floats = np.concatenate([array.astype(float) for array in every_array(content)])
    for name in ("weight", "height"):
        cells = canaries[name].to_numpy()
        assert not numbers & set(cells)
        assert not np.isin(cells, floats).any()
        assert not np.isin(cells.astype(np.float32), floats.astype(np.float32)).any()
        assert not any(repr(float(cell)) in page for cell in cells)


def test_points_are_not_in_the_order_of_the_table(canaries, canary_model):
    x = unpacked(content_of(render_explorer(canary_model, rows=canaries))["map"]["x"]).reshape(-1, 2)
    assert (np.diff(x[:, 0]) >= 0).all()


def test_rows_in_sparse_regions_are_not_drawn(canaries, canary_model):
    content = content_of(render_explorer(canary_model, rows=canaries))
    assert content["facts"]["n_rows"] == 1000
    assert 800 < content["facts"]["n_shown"] < 1000
    assert content_of(render_explorer(canary_model, rows=canaries.head(4)))["facts"]["n_shown"] == 0


def test_bins_hold_at_least_five_rows(canaries, canary_model):
    drawn = content_of(render_explorer(canary_model, rows=canaries, privacy=Privacy(bins=12)))
    counts = unpacked(drawn["map"]["count"])
    assert counts.min() >= MIN_REGION
    assert counts.sum() == drawn["facts"]["n_shown"] <= 1000


def test_more_rows_than_can_be_drawn_are_counted_in_bins(canaries, canary_model, monkeypatch):
    monkeypatch.setattr("plurigp.explore.page.MOST_POINTS", 500)
    monkeypatch.setattr("plurigp.explore.page.AUTO_BINS", 10)
    drawn = content_of(render_explorer(canary_model, rows=canaries))
    assert drawn["facts"]["binned"]
    assert unpacked(drawn["map"]["count"]).min() >= MIN_REGION


def test_jitter_moves_every_row_anew(canaries, canary_model):
    pages = [content_of(render_explorer(canary_model, rows=canaries, privacy=Privacy(jitter=0.2))) for _ in range(2)]
    assert pages[0]["map"]["x"] != pages[1]["map"]["x"]
    assert pages[0]["facts"]["jitter"] == 0.2


def test_rows_are_there_where_asked_for(canaries, canary_model):
    page = render_explorer(canary_model, include_rows=canaries)
    content = content_of(page)
    assert "Contains patient data" in page
    numbers = unpacked(content["rows"]["number"])
    assert sorted(numbers) == list(range(1, 1001))
    assert float(content["rows"]["cells"][0][7]) == canaries["weight"][numbers[7] - 1]
    assert "CANARY" not in page  # a column that the model does not use


def test_another_table_than_the_studied_one_is_refused(study, simulation):
    with pytest.raises(DataError, match="not the table that was studied"):
        render_explorer(study, include_rows=simulation.table.head(20))
    with pytest.raises(DataError, match="a study has its own rows"):
        render_explorer(study, rows=simulation.table)


# --- what it refuses ---


def test_models_that_a_page_cannot_follow_are_refused_by_name(model, simulation):
    free = PluriGP(2, encoder="free", max_epochs=1, n_inducing=10).fit(simulation.table[["gaussian_1", "gaussian_2"]])
    with pytest.raises(DataError, match=r"no encoder .*encoder='factors'"):
        render_explorer(free)
    weighed = PluriGP(2, column_weights={"gaussian_1": 0.5}, max_epochs=1, n_inducing=10, calibrate=False)
    with pytest.raises(DataError, match=r"weighs its columns .*without weights"):
        render_explorer(weighed.fit(simulation.table[["gaussian_1", "gaussian_2"]]))
    given = PluriGP(2, covariates=["gaussian_2"], max_epochs=1, n_inducing=10, calibrate=False)
    with pytest.raises(DataError, match=r"column 'gaussian_2': is a covariate.*without covariates"):
        render_explorer(given.fit(simulation.truth[["gaussian_1", "gaussian_2"]]))
    refined = copy.copy(model).set_params(refine=True)
    with pytest.raises(DataError, match=r"refine=True .*set_params"):
        render_explorer(refined)


def test_a_kind_from_outside_is_refused_by_name(canary_model, monkeypatch):
    monkeypatch.setattr("plurigp.likelihoods.registry.OUTSIDE", {"gaussian": "their_families"})
    with pytest.raises(DataError, match=r"column 'weight': kind 'gaussian' comes from 'their_families'"):
        render_explorer(canary_model)


# --- groups and outcome ---


def test_a_model_alone_has_a_page_too(model):
    content = content_of(render_explorer(model))
    assert content["map"]["n_rows"] == 0
    assert content["model"]["groups"] is None
    assert np.isclose(sum(content["explain"]["shares"]), 1)


def test_curves_end_where_few_are_followed(study, page):
    assert [curve["group"] for curve in content_of(page)["survival"]] == [0, 1, 2]
    few = replace(study, survival=study.survival.assign(at_risk=[40, 40, 4] * 3))
    assert [curve["time"] for curve in content_of(render_explorer(few))["survival"]] == [[0.0, 50.0]] * 3


def test_it_is_written_whole(study, tmp_path):
    assert write_explorer(study, tmp_path / "explorer.html", title="T").read_text().startswith("<!doctype html>")
    assert list(tmp_path.iterdir()) == [tmp_path / "explorer.html"]
