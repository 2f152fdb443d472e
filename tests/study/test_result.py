import json
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest

from plurigp.core.sealed import digest
from plurigp.core.types import DataError
from plurigp.study import load_study
from plurigp.study.findings.mixture import memberships
from plurigp.study.fits.store import read_arrays, read_json, write_arrays, write_json
from plurigp.study.result import RESULT_FORMAT


def test_a_saved_study_comes_back_whole(small_result, tmp_path):
    again = load_study(small_result.save(tmp_path / "run"))
    for name, frame in small_result.frames().items():
        pd.testing.assert_frame_equal(again.frames()[name], frame, check_dtype=name != "survival")
    for part in ("latent", "clusters", "consensus", "nulls", "valleys"):
        for field in fields(getattr(small_result, part)):
            if field.name != "mixture":
                before, after = (getattr(getattr(r, part), field.name) for r in (small_result, again))
                np.testing.assert_array_equal(before, after)
    for name in ("weights", "means", "covariances", "subtype"):
        before, after = (getattr(result.clusters.mixture, name) for result in (small_result, again))
        np.testing.assert_array_equal(before, after)
    assert "separations" in again.frames()
    assert again.facts["title"] == "a <b>title</b>"
    assert again.facts["structure_p"] is None


def test_an_interval_without_an_end_comes_back(small_result, tmp_path):
    ends = small_result.characteristics.assign(low=-np.inf, high=np.inf, inside=np.nan)
    again = load_study(replace(small_result, characteristics=ends).save(tmp_path / "run"))
    pd.testing.assert_frame_equal(again.characteristics, ends)


def test_a_result_of_before_a_setting_has_its_default(small_result, tmp_path):
    """Found by fuzzing: the report asks for settings that an older result, or a changed one, does not have."""
    path = small_result.save(tmp_path) / "result.json"
    content = read_json(path, RESULT_FORMAT)
    del content["config"]["outlier_share"], content["config"]["min_count"]
    write_json(path, content)
    assert load_study(tmp_path).config == small_result.config


def test_saving_twice_gives_the_same_bytes(small_result, tmp_path):
    first = small_result.save(tmp_path / "a")
    second = replace(load_study(first), folder=None).save(tmp_path / "b")
    for path in sorted(p for p in first.rglob("*") if p.is_file()):
        assert path.read_bytes() == (second / path.relative_to(first)).read_bytes(), path.name


def test_csv_files_run_no_formula(small_result, tmp_path):
    text = (small_result.save(tmp_path) / "tables" / "characteristics.csv").read_text()
    assert "'=cmd()" in text
    assert "\n=cmd" not in text
    assert "\n+1+1" not in text


def test_result_json_names_no_row(small_result, tmp_path):
    content = json.loads((small_result.save(tmp_path) / "result.json").read_text())
    assert set(content) == {"format", "facts", "config", "seeds", "versions", "frames", "files", "sha256"}


@pytest.mark.parametrize("name", ["result.json", "arrays.safetensors", "assignments.csv", "latent.csv"])
def test_a_broken_folder_is_named(small_result, tmp_path, name):
    folder = small_result.save(tmp_path)
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:40])
    with pytest.raises(DataError, match="run the study again"):
        load_study(folder)
    (folder / name).unlink()
    with pytest.raises(DataError, match=name):
        load_study(folder)


@pytest.mark.parametrize(("version", "message"), [(1, "was written by an older plurigp"), (99, "is newer than this")])
def test_another_format_is_refused(small_result, tmp_path, version, message):
    """Before its arrays are looked at: an older study has no valleys, and would seem broken."""
    folder = small_result.save(tmp_path)
    content = read_json(folder / "result.json", RESULT_FORMAT)
    write_json(folder / "result.json", content | {"format": version})
    (folder / "arrays.safetensors").unlink()
    with pytest.raises(DataError, match=rf"result\.json: .*{message}"):
        load_study(folder)


def test_a_result_without_valleys_is_named(small_result, tmp_path):
    folder = small_result.save(tmp_path)
    arrays, _ = read_arrays(folder / "arrays.safetensors")
    kept = {name: array for name, array in arrays.items() if name != "valleys.depth"}
    write_arrays(folder / "arrays.safetensors", kept)
    with pytest.raises(DataError, match=r"arrays\.safetensors: was changed.*; run the study again"):
        load_study(folder)
    content = read_json(folder / "result.json", RESULT_FORMAT)
    hashes = {"arrays.safetensors": digest((folder / "arrays.safetensors").read_bytes())}
    write_json(folder / "result.json", content | {"files": content["files"] | hashes})
    with pytest.raises(DataError, match=r"arrays\.safetensors: array 'valleys\.depth' is missing; run the study again"):
        load_study(folder)


@pytest.mark.parametrize(
    ("name", "value"),
    [("groups", 7), ("weights", ["w"]), ("level", "x"), ("n_refits", 2.5), ("title", None), ("guides", [])],
)
def test_a_signed_setting_of_another_type_is_named(small_result, tmp_path, name, value):
    folder = small_result.save(tmp_path)
    content = read_json(folder / "result.json", RESULT_FORMAT)
    write_json(folder / "result.json", content | {"config": content["config"] | {name: value}})
    with pytest.raises(DataError, match=rf"result\.json: field 'config\.{name}' must be ") as caught:
        load_study(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["inf", "-inf", 1.7e308])
@pytest.mark.parametrize("name", ["gain", "se"])
def test_a_signed_score_that_no_axis_can_hold_is_named(small_result, tmp_path, name, value):
    """The report would compute the ends of an axis from it, which are then not finite."""
    score = {"column": ["a"], "kind": ["beta"], "cells": [9], "model": 1.0, "marginal": 0.5, "gain": 0.5, "se": 0.1}
    folder = replace(small_result, predictions=pd.DataFrame(score)).save(tmp_path)
    content = read_json(folder / "result.json", RESULT_FORMAT)
    frame = content["frames"]["predictions"]
    frame["cells"][frame["names"].index(name)] = [value]
    write_json(folder / "result.json", content)
    with pytest.raises(DataError, match=rf"result\.json: field 'frames\.predictions\.{name}\[0\]' must be"):
        load_study(folder)


def test_tables_by_name(small_result):
    assert small_result.table() is small_result.subtypes
    with pytest.raises(KeyError, match="no table 'x'"):
        small_result.table("x")


def test_memberships_widen_with_the_uncertainty_of_a_position(small_result):
    mixture = small_result.clusters.mixture
    x = np.array([[-2.0, 0.0], [0.0, 9.0]])
    subtype, sharp = memberships(mixture, x)
    _, wide = memberships(mixture, x, np.full((2, 2), 3.0))
    np.testing.assert_array_equal(subtype, [1, 0])
    assert sharp[0, 0] > wide[0, 0] > 0.5
    _, same = memberships(mixture, x, np.zeros((2, 2)))
    np.testing.assert_allclose(sharp, same, rtol=1e-12)
