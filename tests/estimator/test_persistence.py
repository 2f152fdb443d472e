"""Saved models: the same answers in another process, every corruption named, nothing of the rows inside, no pickle."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import plurigp
from plurigp import DataError, PluriGP
from plurigp.answers.pit import identity_maps
from plurigp.core.sealed import digest, sealed_json
from plurigp.estimator.persistence import ARRAYS, MANIFEST, MANIFEST_SEAL, write_model

SOURCE = Path(plurigp.__file__).parent
SECRET_ROW, SECRET_ID, SECRET_TEXT = "rowlabel-zebra", "patient-walrus", "seen on the ninth by dr quokka"
SECRET_NUMBER = 48.123456789


def _frame(n: int = 24) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "lab": rng.normal(50, 4, n),
            "stage": rng.choice(["early", "late", "middle"], n),
            "patient": [f"{SECRET_ID}-{i}" for i in range(n)],
            "note": [f"{SECRET_TEXT} {i}" for i in range(n)],
        },
        index=[f"{SECRET_ROW}-{i}" for i in range(n)],
    )
    frame.loc[frame.index[2], "lab"] = SECRET_NUMBER
    frame.loc[frame.index[5], ["lab", "stage"]] = None
    return frame


@pytest.fixture(scope="module")
def fitted() -> PluriGP:
    return PluriGP(n_components=2, n_inducing=4, max_epochs=2, n_quadrature={"gaussian": 5}, random_state=1).fit(
        _frame()
    )


@pytest.fixture(scope="module")
def saved(fitted, tmp_path_factory) -> Path:
    return fitted.save(tmp_path_factory.mktemp("models") / "nested" / "model")


@pytest.fixture
def folder(saved, tmp_path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(saved, tmp_path / "model"))


IN_A_NEW_PROCESS = """
import sys
import numpy as np
import pandas as pd
import plurigp
frame = pd.read_pickle(sys.argv[2])
model = plurigp.load(sys.argv[1])
mean, sd = model.transform(frame, return_std=True)
np.savez(sys.argv[3], mean=mean, sd=sd, score=model.score_samples(frame), lab=model.impute(frame)["lab"])
"""


def test_a_new_process_answers_with_the_same_bytes(fitted, saved, tmp_path):
    frame = _frame()
    frame.to_pickle(tmp_path / "frame.pkl")
    answers = tmp_path / "answers.npz"
    command = [sys.executable, "-c", IN_A_NEW_PROCESS, str(saved), str(tmp_path / "frame.pkl"), str(answers)]
    subprocess.run(command, check=True, timeout=300)
    mean, sd = fitted.transform(frame, return_std=True)
    expected = {"mean": mean, "sd": sd, "score": fitted.score_samples(frame), "lab": fitted.impute(frame)["lab"]}
    with np.load(answers) as found:
        for name, values in expected.items():
            assert found[name].tobytes() == np.asarray(values).tobytes(), name


def test_a_loaded_model_is_the_saved_one(fitted, saved, tmp_path):
    loaded = plurigp.load(saved)
    assert loaded.get_params() == fitted.get_params()
    assert loaded.schema_ == fitted.schema_
    assert loaded.elbo_ == fitted.elbo_
    assert loaded.n_iter_ == fitted.n_iter_
    assert loaded.stopped_ == fitted.stopped_
    pd.testing.assert_frame_equal(loaded.history_, fitted.history_)
    np.testing.assert_array_equal(loaded.lengthscales_, fitted.lengthscales_)
    np.testing.assert_array_equal(loaded.feature_names_in_, fitted.feature_names_in_)
    np.testing.assert_array_equal(loaded.get_feature_names_out(), fitted.get_feature_names_out())
    again = loaded.save(tmp_path / "again")
    for name in (ARRAYS, MANIFEST):
        assert (again / name).read_bytes() == (saved / name).read_bytes()


def test_pit_maps_are_kept_and_older_models_have_none(fitted, folder):
    """What was saved before there were any answers with the draws' own quantiles."""
    from plurigp.estimator.persistence import PIT_MAPS, read_model

    arrays, manifest = read_model(folder)
    manifest = {k: v for k, v in manifest.items() if k not in ("format", "arrays_sha256")}
    maps = identity_maps(2)
    maps[0] = maps[0] ** 2
    write_model(folder, arrays | {PIT_MAPS: maps}, manifest)
    np.testing.assert_array_equal(plurigp.load(folder).pit_maps_, maps)
    params = {k: v for k, v in manifest["params"].items() if k != "calibrate"}
    write_model(folder, {k: v for k, v in arrays.items() if k != PIT_MAPS}, manifest | {"params": params})
    np.testing.assert_array_equal(plurigp.load(folder).pit_maps_, identity_maps(2))
    for broken in (maps[:1], maps[:, ::-1]):
        write_model(folder, arrays | {PIT_MAPS: broken}, manifest)
        with pytest.raises(DataError, match="not a rising map per column; save the model again"):
            plurigp.load(folder)


def test_a_declared_schema_is_kept_for_a_refit(fitted, tmp_path):
    params = {**fitted.get_params(), "max_epochs": 1, "schema": {"stage": "categorical"}}
    loaded = plurigp.load(PluriGP(**params).fit(_frame()).save(tmp_path / "model"))
    assert loaded.schema == loaded.schema_


def test_only_two_files_and_no_leftovers(saved):
    assert sorted(p.name for p in saved.iterdir()) == sorted([ARRAYS, MANIFEST])
    assert [p.name for p in saved.parent.iterdir()] == ["model"]


def test_saving_again_replaces_the_model(fitted, folder):
    (folder / ARRAYS).write_bytes(b"old")
    fitted.save(folder)
    assert plurigp.load(folder).elbo_ == fitted.elbo_


def test_nothing_of_the_rows_is_saved(saved):
    content = b"".join(p.read_bytes() for p in saved.iterdir())
    for secret in (SECRET_ROW, SECRET_ID, SECRET_TEXT, str(SECRET_NUMBER)):
        assert secret.encode() not in content
    assert np.float64(SECRET_NUMBER).tobytes() not in content
    assert np.float32(SECRET_NUMBER).tobytes() not in content


def test_no_reason_quotes_a_number_of_a_column(saved):
    """Not even the smallest and largest: they are single patients' values."""
    reasons = [column["reason"] for column in json.loads((saved / MANIFEST).read_text())["coder"]["schema"]["columns"]]
    assert any(reasons)
    for value in _frame()["lab"].dropna():
        assert not any(f"{value:.{digits}g}" in reason for digits in range(2, 8) for reason in reasons)


# --- damage ---


def _flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def _edit(path: Path, **changes: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def _resign(path: Path, drop: str = "", **changes: object) -> None:
    """An edit by someone who knows how the hash is made."""
    body = {**json.loads(path.read_text()), **changes}
    body = {k: v for k, v in body.items() if k not in ("manifest_sha256", drop)}
    path.write_text(sealed_json(body, MANIFEST_SEAL))


NOT_OURS = "not JSON as plurigp writes it; save the model again"
DAMAGES = {
    "no folder": (lambda f: shutil.rmtree(f), "no such model folder; give the folder"),
    "a file": (lambda f: (shutil.rmtree(f), f.write_text("")), "no such model folder; give the folder"),
    "an empty folder": (lambda f: (shutil.rmtree(f), f.mkdir()), "model.json is missing.*save it again"),
    "manifest missing": (lambda f: (f / MANIFEST).unlink(), "model.json is missing.*save it again"),
    "arrays missing": (lambda f: (f / ARRAYS).unlink(), "model.safetensors is missing.*save it again"),
    "arrays: flipped bit": (lambda f: _flip(f / ARRAYS, -9), "changed or cut short.*save the model again"),
    "arrays: flipped header": (lambda f: _flip(f / ARRAYS, 12), "changed or cut short.*save the model again"),
    "arrays: cut short": (
        lambda f: (f / ARRAYS).write_bytes((f / ARRAYS).read_bytes()[:-8]),
        "changed or cut short.*save the model again",
    ),
    "arrays: empty": (lambda f: (f / ARRAYS).write_bytes(b""), "changed or cut short.*save the model again"),
    "arrays: not safetensors": (
        lambda f: ((f / ARRAYS).write_bytes(b"junk"), _resign(f / MANIFEST, arrays_sha256=digest(b"junk"))),
        "not a safetensors file; save the model again",
    ),
    "manifest: edited": (lambda f: _edit(f / MANIFEST, elbo=0.0), "was changed or cut short.*save the model again"),
    "manifest: a NaN": (
        lambda f: _edit(f / MANIFEST, elbo=float("nan")),
        NOT_OURS,
    ),
    "manifest: cut short": (
        lambda f: (f / MANIFEST).write_bytes((f / MANIFEST).read_bytes()[:-30]),
        NOT_OURS,
    ),
    "manifest: empty": (lambda f: (f / MANIFEST).write_text(""), NOT_OURS),
    "manifest: a list": (
        lambda f: (f / MANIFEST).write_text("[]"),
        NOT_OURS,
    ),
    "manifest: not text": (lambda f: (f / MANIFEST).write_bytes(b"\xff\xfe\x00"), NOT_OURS),
    "manifest: nested": (lambda f: (f / MANIFEST).write_text("[" * 10**5), NOT_OURS),
    "manifest: another program's": (
        lambda f: (f / MANIFEST).write_text('{"format": 1}'),
        "holds no hash of its content",
    ),
    "a newer format": (lambda f: _edit(f / MANIFEST, format=2), "format 2 is newer.*upgrade plurigp"),
    "a parameter too many": (
        lambda f: _resign(f / MANIFEST, params={"n_dimensions": 2}),
        r"field 'params\.n_dimensions' is not known.*save the model again",
    ),
    "an entry missing": (
        lambda f: _resign(f / MANIFEST, drop="coder"),
        "field 'coder' is missing; save the model again",
    ),
    "the arrays' hash missing": (
        lambda f: _resign(f / MANIFEST, drop="arrays_sha256"),
        "field 'arrays_sha256' is missing",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_named_in_one_line_with_a_remedy(folder, damage):
    act, pattern = DAMAGES[damage]
    act(folder)
    with pytest.raises(DataError, match=pattern) as caught:
        plurigp.load(folder)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


def test_an_array_missing_is_named(fitted, folder):
    from plurigp.estimator.persistence import model_arrays, read_model

    _, manifest = read_model(folder)
    arrays = model_arrays(fitted.model_, fitted._fitted.q)
    del arrays["gp.Z"]
    write_model(folder, arrays, {k: v for k, v in manifest.items() if k not in ("format", "arrays_sha256")})
    with pytest.raises(DataError, match=r"array 'gp\.Z' is missing; save the model again"):
        plurigp.load(folder)


def test_an_array_of_another_shape_is_named(fitted, folder):
    from plurigp.estimator.persistence import model_arrays, read_model

    _, manifest = read_model(folder)
    arrays = model_arrays(fitted.model_, fitted._fitted.q)
    arrays["q.m"] = arrays["q.m"][:, 1:]
    write_model(folder, arrays, {k: v for k, v in manifest.items() if k not in ("format", "arrays_sha256")})
    with pytest.raises(DataError, match=r"array '[\w.]+' \([\d×]+\) does not fit the others; save the model again"):
        plurigp.load(folder)


def test_other_peoples_files_are_left_alone(fitted, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(DataError, match="holds other files and no model; choose an empty or a new folder"):
        fitted.save(tmp_path)
    with pytest.raises(DataError, match="is a file; a model is saved into a folder of its own"):
        fitted.save(tmp_path / "thesis.txt")
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


def test_an_unfitted_model_cannot_be_saved(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        PluriGP().save(tmp_path / "model")


# --- no pickle ---

UNSAFE = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
OWN_WORKERS = {"Parallel", "delayed", "parallel_config"}  # what they exchange never comes from a file
UNSAFE_CALLS = {"read_pickle", "to_pickle", "eval", "exec"}


def _unsafe(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names if a.name.split(".")[0] in UNSAFE]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in UNSAFE:
            names = {a.name for a in node.names}
            found += [] if node.module == "joblib" and names <= OWN_WORKERS else [str(node.module)]
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            found.append("allow_pickle")
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            found += [name] if name in UNSAFE_CALLS else []
    return found


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_no_module_unpickles(path):
    assert _unsafe(ast.parse(path.read_text(encoding="utf-8"))) == []


def test_work_may_be_handed_to_processes_of_our_own():
    assert _unsafe(ast.parse("from joblib import Parallel, delayed")) == []
    assert _unsafe(ast.parse("from joblib import Parallel, load")) == ["joblib"]


def test_the_scan_would_find_them():
    code = "import pickle\nfrom joblib import load\nnp.load(f, allow_pickle=True)\npd.read_pickle(f)"
    assert sorted(_unsafe(ast.parse(code))) == ["allow_pickle", "joblib", "pickle", "read_pickle"]


def test_a_save_that_was_killed_can_be_saved_to_again(fitted, tmp_path, monkeypatch):
    """After the first of its two files was in place, and with a part of the other left behind."""
    folder, replace, calls = tmp_path / "killed", os.replace, []

    def killed_at_the_second(source, target):
        calls.append(target)
        if len(calls) == 2:
            raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed_at_the_second)
        with pytest.raises(KeyboardInterrupt):
            fitted.save(folder)
    with pytest.raises(DataError, match="is missing, so this is not a complete model"):
        plurigp.load(folder)
    (folder / ".model.safetensors.1.part").touch()
    fitted.save(folder)
    assert plurigp.load(folder).elbo_ == fitted.elbo_
