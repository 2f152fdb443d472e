"""Damaged files are refused by name before use; files whose hashes were put right load and answer, or are refused."""

import json
import resource
import shutil
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import plurigp
from plurigp import DataError, Study, load_study
from plurigp.core.forms import FormError
from plurigp.core.sealed import digest, packed_arrays, sealed_arrays, sealed_json, unpacked_arrays
from plurigp.report import render_report
from plurigp.study.fits.pool import check_finished
from plurigp.study.fits.store import read_arrays
from plurigp.study.fits.tasks import Finished, Task
from plurigp.study.run import read_started

LONG = (pytest.mark.trust, pytest.mark.timeout(7200))
FLIPS = [pytest.param(40, id="some"), pytest.param(1000, id="1000", marks=LONG)]
MUTATIONS = [pytest.param(30, id="some"), pytest.param(5000, id="5000", marks=LONG)]
FITS = [pytest.param(4, id="some"), pytest.param(1000, id="1000", marks=LONG)]
MAX_SECONDS = 30  # of computing, for a single one
MAX_GROWTH = 2**20  # kilobytes of memory that a whole run of mutations may take beyond what it had


def read_back(folder: Path, file: Path) -> None:
    """What the library does with a file of a study's or a model's folder before it uses it."""
    if file.name.startswith("model."):
        plurigp.load(file.parent)
    elif file.parent.name == "fits":
        read_arrays(file, "delete it")
    elif file.name == "study.json":
        read_started(folder)
    else:
        load_study(folder)


def files_read_back(folder: Path) -> list[Path]:
    """Tables for people, and the two files to edit, are written but never read back."""
    kept = [path for path in sorted(folder.rglob("*")) if path.suffix in (".json", ".safetensors")]
    return kept + list(folder.glob("*.csv"))


def refusal(read, folder: Path, file: Path, raw: bytes) -> str | None:
    """The line by which the damaged file is refused; None where it was read. The file is whole again afterwards."""
    whole = file.read_bytes()
    file.write_bytes(raw)
    try:
        read(folder, file)
    except DataError as error:
        return str(error)
    finally:
        file.write_bytes(whole)
    return None


@pytest.mark.parametrize("count", FLIPS)
@pytest.mark.parametrize("which", ["model_copy", "study_copy"])
def test_a_flipped_bit_is_found_and_its_file_named(which, count, request, damage, chance):
    folder = request.getfixturevalue(which)
    files = files_read_back(folder)
    for _ in range(count):
        file = chance.choice(files)
        line = refusal(read_back, folder, file, damage.flipped(file.read_bytes(), chance))
        assert line is not None, file.name
        assert file.name in line
        assert "\n" not in line


@pytest.mark.parametrize("every", [pytest.param(20, id="some"), pytest.param(1, id="100", marks=LONG)])
@pytest.mark.parametrize("which", ["model_copy", "study_copy"])
def test_a_file_cut_short_is_found_and_named(which, every, request, damage):
    folder = request.getfixturevalue(which)
    for file in files_read_back(folder):
        for raw in list(damage.cuts(file.read_bytes()))[::every]:
            line = refusal(read_back, folder, file, raw)
            assert line is not None, (file.name, len(raw))
            assert file.name in line


def test_a_damaged_fit_ends_a_resumed_study_before_anything_is_fitted(study_copy, secret_table, settings, monkeypatch):
    """It is named, and deleting it is the remedy: only that fit is repeated."""
    monkeypatch.setattr("plurigp.study.fits.pool.run_task", None)
    file = study_copy / "fits" / "refit-001.safetensors"
    raw = bytearray(file.read_bytes())
    raw[-3] ^= 16
    file.write_bytes(raw)
    with pytest.raises(DataError, match=r"refit-001\.safetensors: was changed.*; delete it and run the study again"):
        Study(out=study_copy, n_jobs=0, **settings).fit(secret_table)


def test_a_damaged_model_of_a_fit_is_named_with_what_to_delete(study_copy, secret_table, settings):
    file = study_copy / "fits" / "map-0" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"map-0/model\.safetensors: was changed.*; delete the folder .*map-0 and run"):
        Study(out=study_copy, n_jobs=0, **settings).fit(secret_table)
    shutil.rmtree(file.parent)
    assert Study(out=study_copy, n_jobs=0, **settings).fit(secret_table).facts["n_rows"] == len(secret_table)


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def answers(folder: Path, rows: pd.DataFrame) -> None:
    """A model loads and answers, or a file of its own is named.

    What a loaded model refuses names the table's column: its schema says other things, but says them in order.
    """
    try:
        model = plurigp.load(folder)
    except DataError as error:
        assert f"{folder}/model." in str(error)
        raise
    assert np.isfinite(model.transform(rows)).all()
    assert len(model.impute(rows)) == len(rows)


def reports(folder: Path) -> None:
    """A result loads and is reported, or a file of its own is named."""
    try:
        assert "</html>" in render_report(load_study(folder))
    except DataError as error:
        assert str(folder) in str(error)
        raise


def outcomes(count: int, changed: Callable[[int], tuple[Path, str]], use: Callable[[Path], None]) -> Counter[str]:
    """What became of so many changed folders: used, refused in one line, or a finding; each in bounded time."""
    found: Counter[str] = Counter()
    for number in range(count):
        folder, what = changed(number)
        started = time.process_time()
        with warnings.catch_warnings(action="ignore"):
            try:
                use(folder)
                became = "used"
            except DataError as error:
                became = f"change {number} to {what}: several lines" if "\n" in str(error) else "refused"
            except Exception as error:
                became = f"change {number} to {what}: {type(error).__name__}: {error}"
        found[became if time.process_time() - started < MAX_SECONDS else f"change {number} to {what}: slow"] += 1
        shutil.rmtree(folder)
    print(dict(found))
    return found


@pytest.mark.parametrize("count", MUTATIONS)
def test_a_signed_change_to_a_model_loads_and_answers_or_is_refused(
    count, model_folder, used_table, tmp_path, damage, chance
):
    def changed(number: int) -> tuple[Path, str]:
        folder = Path(shutil.copytree(model_folder, tmp_path / str(number)))
        return folder, damage.mutate_model(folder, chance)

    before, rows = peak(), used_table.head(3)
    found = outcomes(count, changed, lambda folder: answers(folder, rows))
    assert set(found) == {"used", "refused"}
    assert peak() - before < MAX_GROWTH
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("count", MUTATIONS)
def test_a_signed_change_to_a_result_is_reported_or_refused(count, study_folder, tmp_path, damage, chance, monkeypatch):
    monkeypatch.setattr("plurigp.report.page.plotly_js", lambda: "")  # four megabytes that are the same in every page
    needed = shutil.ignore_patterns("fits", "tables")

    def changed(number: int) -> tuple[Path, str]:
        folder = Path(shutil.copytree(study_folder, tmp_path / str(number), ignore=needed))
        return folder, damage.mutate_result(folder, chance)

    before = peak()
    found = outcomes(count, changed, reports)
    assert set(found) == {"used", "refused"}
    assert peak() - before < MAX_GROWTH
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("count", FITS)
def test_a_signed_change_to_a_finished_fit_is_used_or_refused(
    count, study_folder, secret_table, settings, tmp_path, damage, chance
):
    """By a study that goes on; a fit that is refused is named, and deleting it is the remedy."""

    def changed(number: int) -> tuple[Path, str]:
        folder = Path(shutil.copytree(study_folder, tmp_path / str(number)))
        return folder, damage.mutate_fit(folder, chance)

    def go_on(folder: Path) -> None:
        try:
            Study(out=folder, n_jobs=0, **settings).fit(secret_table)
        except DataError as error:
            assert "fits/" in str(error)
            assert "delete it and run the study again" in str(error)
            raise

    assert set(outcomes(count, changed, go_on)) <= {"used", "refused"}


FIT_CHANGES = {
    "no counts": lambda arrays: arrays.pop("between.widths"),
    "counts of another shape": lambda arrays: arrays.update({"between.middle": arrays["between.middle"].ravel()}),
    "one place fewer": lambda arrays: arrays.update({"between.histogram": arrays["between.histogram"][..., 1:]}),
    "another number of clusters": lambda arrays: arrays.update({"between.flank": arrays["between.flank"][1:, 1:]}),
    "a scalar": lambda arrays: arrays.update({"between.middle": np.array(1.0)}),
    "rows of another half": lambda arrays: arrays.update({"rows": arrays["rows"] + 1}),
    "a row that is not there": lambda arrays: arrays.update({"rows": np.full_like(arrays["rows"], -(2**63))}),
    "a cluster that is not there": lambda arrays: arrays.update({"labels": arrays["labels"] + 50}),
    "truth values": lambda arrays: arrays.update({"labels": arrays["labels"] > 0}),
    "half a cluster": lambda arrays: arrays.update({"labels": arrays["labels"] + 0.5}),
}


@pytest.mark.parametrize("change", FIT_CHANGES)
@pytest.mark.parametrize("as_the_map", [True, False])
def test_a_half_map_that_the_study_cannot_use_is_refused(change, as_the_map, study_folder):
    arrays, facts = read_arrays(study_folder / "fits" / "refit-000.safetensors")
    shares = np.ones((len(arrays["labels"]), len(arrays["between.middle"]))) if as_the_map else None
    task = Task("refit-000", 2, arrays["rows"], shares=shares)
    check_finished(task, Finished(arrays, facts))
    changed = dict(arrays)
    FIT_CHANGES[change](changed)
    with pytest.raises(FormError, match=r"array '(between|rows|labels)"):
        check_finished(task, Finished(changed, facts))


def test_a_map_without_what_it_is_chosen_by_is_refused(study_folder):
    arrays, facts = read_arrays(study_folder / "fits" / "map-0.safetensors")
    task = Task("map-0", 2, np.arange(len(arrays["mean"])))
    check_finished(task, Finished(arrays, facts))
    for gain in (None, "x"):
        with pytest.raises(FormError, match="group_gain"):
            check_finished(task, Finished(arrays, {**facts, "group_gain": gain}))
    with pytest.raises(FormError, match="group_gain"):
        check_finished(task, Finished(arrays, {k: v for k, v in facts.items() if k != "group_gain"}))


def test_a_half_map_of_another_table_is_named(study_copy, secret_table, settings):
    """Each is right by itself; together they are not."""
    path = study_copy / "fits" / "refit-001.safetensors"
    arrays, facts = read_arrays(path)
    longer = {name: np.concatenate([arrays[name], arrays[name][:1]]) for name in ("labels", "gains")}
    path.write_bytes(sealed_arrays(arrays | longer, facts))
    finding = r"refit-001\.safetensors: its arrays labels do not fit those of refit-000; delete it and run the study"
    with pytest.raises(DataError, match=finding):
        Study(out=study_copy, n_jobs=0, **settings).fit(secret_table)


@pytest.mark.parametrize("dtype", ["BF16", "F8_E4M3", "F8_E5M2"])
def test_arrays_of_a_dtype_that_is_never_written_are_named(dtype, model_copy, damage):
    arrays, manifest = model_copy / "model.safetensors", model_copy / "model.json"
    raw = damage.of_other_dtype(arrays.read_bytes(), dtype)
    arrays.write_bytes(raw)
    body = json.loads(manifest.read_text()) | {"arrays_sha256": digest(raw)}
    body.pop("manifest_sha256")
    manifest.write_text(sealed_json(body, "manifest_sha256"))
    with pytest.raises(DataError, match=rf"model\.safetensors: array '.*' has dtype '{dtype}', which plurigp never"):
        plurigp.load(model_copy)


def signed(folder: Path, **fields) -> None:
    """Fields of the manifest replaced, and its hash put right."""
    manifest = folder / "model.json"
    body = json.loads(manifest.read_text()) | fields
    body.pop("manifest_sha256")
    manifest.write_text(sealed_json(body, "manifest_sha256"))


@pytest.mark.parametrize("numbers", [7, None, "x", {}])
def test_a_history_without_numbers_is_named(numbers, model_copy):
    history = json.loads((model_copy / "model.json").read_text())["history"]
    signed(model_copy, history=[[history[0][0], numbers], *history[1:]])
    with pytest.raises(DataError, match=r"model\.json: field 'history\[0\]\[1\]'"):
        plurigp.load(model_copy)


def test_parameters_of_a_family_that_are_no_numbers_are_named(model_copy):
    arrays = unpacked_arrays((model_copy / "model.safetensors").read_bytes())
    name = next(name for name in sorted(arrays) if name.startswith("theta."))
    raw = packed_arrays(arrays | {name: arrays[name].astype(bool)})
    (model_copy / "model.safetensors").write_bytes(raw)
    signed(model_copy, arrays_sha256=digest(raw))
    with pytest.raises(DataError, match=rf"model\.safetensors: array '{name}' does not hold floating-point numbers"):
        plurigp.load(model_copy)


@pytest.mark.parametrize(
    ("name", "value"),
    [("encoder.log_precision", 127.0), ("encoder.scale", 0.0), ("encoder.net_sd.b2", 1e6), ("gp.log_scale", 1e6)],
)
def test_a_model_that_has_no_number_for_an_answer_says_so(name, value, model_copy, used_table, damage):
    """Found by fuzzing: its arrays are finite, but positions and filled gaps were NaN without a word."""
    arrays = unpacked_arrays((model_copy / "model.safetensors").read_bytes())
    arrays[name] = arrays[name].copy()
    arrays[name][0] = value
    damage.put_in_model(model_copy, "model.safetensors", packed_arrays(arrays))
    model = plurigp.load(model_copy)
    with pytest.raises(DataError, match=r"row \d: the model has no number for an answer.*; fit it anew"):
        model.impute(used_table.head(10))


def test_a_whole_number_for_a_parameter_is_taken(model_copy):
    params = json.loads((model_copy / "model.json").read_text())["params"]
    signed(model_copy, params=params | {"tol": 1})
    assert plurigp.load(model_copy).tol == 1
