"""Nothing of single rows leaves a fit or a study, beyond what docs/trust.md lists."""

import base64
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy

import plurigp
from plurigp import PluriGP, Study, load_study
from plurigp.explore import write_explorer
from plurigp.report import write_report

CANARY = re.compile(rb"canary\d{5}zq")
RARE_LEVELS = {b"canary90001zq", b"canary90002zq"}
WITH_LEVELS = {"model.json", "study.json", "schema.toml", "explorer.html"}  # these list the levels of every column
BASE64 = re.compile(rb"(?:[A-Za-z0-9+/]{4}){8,}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")  # of 24 bytes and more
LONG = (pytest.mark.trust, pytest.mark.timeout(3600))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check_text(folder: Path) -> None:
    for name, raw in contents(folder).items():
        found = set(CANARY.findall(raw))
        assert found <= (RARE_LEVELS if Path(name).name in WITH_LEVELS else set()), name
        assert str(folder.parent).encode() not in raw, name


def stored_numbers(name: str, raw: bytes) -> np.ndarray:
    """All that a file holds in binary: the arrays of safetensors, and what a page carries in base64."""
    if name.endswith(".safetensors"):
        arrays = list(safetensors.numpy.load(raw).values())
    else:
        blobs = [base64.b64decode(blob) for blob in BASE64.findall(raw)]
        arrays = [np.frombuffer(blob[: len(blob) // 8 * 8], dtype) for blob in blobs for dtype in ("<f4", "<f8")]
    with np.errstate(invalid="ignore"):  # signalling NaN, in what is no array of numbers
        return np.concatenate([np.asarray(array, np.float64).ravel() for array in arrays] or [np.empty(0)])


def check_numbers(folder: Path, numbers: np.ndarray) -> None:
    """No measurement, as text or in binary, in either precision."""
    secret = numbers[np.isfinite(numbers)]
    forms = np.concatenate([secret, secret.astype(np.float32)])
    for name, raw in contents(folder).items():
        assert not np.isin(stored_numbers(name, raw), forms).any(), name
        for value in secret:
            spelled = (repr(float(value)), f"{value:.10g}", f"{value:.7g}")
            assert not any(form.encode() in raw for form in spelled), name


def test_the_search_for_numbers_finds_them(tmp_path):
    """In an array, in base64 and spelled out: each alone is enough."""
    secret = np.array([52.501909, 0.925559])
    array = np.array([1.0, secret[1], 2.0], np.float32)
    page = b'{"data": "' + base64.b64encode(np.append(array, np.zeros(9, np.float32)).tobytes()) + b'"}'
    for name, raw in [
        ("a.safetensors", safetensors.numpy.save({"a": array})),
        ("b.html", page),
        ("c.csv", b"52.501909"),
    ]:
        folder = tmp_path / name[0]
        folder.mkdir()
        (folder / name).write_bytes(raw)
        with pytest.raises(AssertionError, match=name):
            check_numbers(folder, secret)


def test_a_model_folder_holds_no_row(model_folder, used_table):
    check_text(model_folder)
    check_numbers(model_folder, used_table[["lab_0", "lab_1", "lab_2", "lab_3", "share"]].to_numpy().ravel())


def test_a_study_folder_with_its_pages_holds_no_row(study_copy, secret_table):
    result = load_study(study_copy)
    write_report(result, study_copy / "report.html")
    write_explorer(result, study_copy / "explorer.html")
    check_text(study_copy)
    check_numbers(study_copy, secret_table[["lab_0", "lab_1", "lab_2", "lab_3", "share"]].to_numpy().ravel())


@pytest.mark.parametrize("n", [pytest.param(1000, marks=LONG)])
def test_a_thousand_secrets_stay_in_the_table(n, secret_table, settings, tmp_path):
    """Ids, free text, row labels and measurements of so many patients, each of its own."""
    table = pd.concat([secret_table] * -(-n // len(secret_table))).head(n)
    rng = np.random.default_rng(1)
    for name in ("lab_0", "lab_1", "lab_2", "lab_3"):
        table[name] = table[name] + rng.normal(0, 1, n)
    table["patient"], table["note"] = ([f"{word} canary{start + k:05d}zq" for k in range(n)]
                                       for word, start in (("id", 0), ("seen by dr", 20_000)))  # fmt: skip
    table["ward"] = np.where(rng.random(n) < 0.5, "north", "south")
    table.index = [f"canary{40_000 + k:05d}zq" for k in range(n)]
    out = tmp_path / "run"
    result = Study(out=out, n_jobs=0, **settings).fit(table)
    write_report(result, out / "report.html")
    write_explorer(result, out / "explorer.html")
    check_text(out)
    check_numbers(out, table[["lab_0", "lab_1", "lab_2", "lab_3"]].to_numpy().ravel())


def test_rare_levels_are_named_in_no_table_and_on_no_page(study_copy):
    """Two rows have one of them, one row the other; the word about it is on the page."""
    page = write_report(load_study(study_copy), study_copy / "report.html").read_text()
    assert "2 levels of fewer than 5 rows" in (study_copy / "tables" / "columns.csv").read_text()
    assert "no count of fewer than 5 patients is shown: where more were expected it is shown as 5" in page
    for name in ("report.html", "result.json", *(f"tables/{path.name}" for path in study_copy.glob("tables/*"))):
        assert not CANARY.search((study_copy / name).read_bytes()), name


def test_files_are_as_open_as_the_umask_says(model_folder, used_table, tmp_path):
    before = os.umask(0o077)
    try:
        saved = plurigp.load(model_folder).save(tmp_path / "model")
        modes = {path.stat().st_mode & 0o777 for path in saved.iterdir()}
    finally:
        os.umask(before)
    assert modes == {0o600}


def test_errors_name_place_and_not_the_neighbours(model_folder, used_table):
    """A cell that does not fit is quoted where it is a level; nothing else of its row is."""
    rows = used_table.head(3).astype({"ward": object})
    rows.iloc[1, rows.columns.get_loc("ward")] = "unheard of"
    with pytest.raises(plurigp.DataError, match=r"column 'ward', row 1: level 'unheard of' was not seen") as caught:
        plurigp.load(model_folder).transform(rows)
    said = str(caught.value).replace("canary90001zq", "").replace("canary90002zq", "")  # levels of the model
    assert not CANARY.search(said.encode())


def test_progress_tells_nothing_of_the_rows(used_table, capfd):
    PluriGP(2, n_inducing=4, max_epochs=1, calibrate=False, random_state=0, verbose=True).fit(used_table)
    said = "".join(capfd.readouterr())
    assert not CANARY.search(said.encode())
