"""Coverage-guided fuzzing of all that reads bytes from outside: tables, schema files, settings, models and studies.

    python tools/fuzz.py table --seconds 900          also: schema, settings, model, study
    python tools/fuzz.py model --corpus found/        keep the inputs that reach new code

An input of the last two is the name of one file of a saved model or study, a line break, and what takes its place. Most
are changed by their structure (a field, an array, a cell) and some by their bytes; hashes are put right, so that what
comes after them is reached. A model that loads has to answer, a study that loads to be reported.

Needs atheris (pip install atheris), which no extra brings along: it is for Linux alone. An input is read, or refused by
a DataError in one line; anything else ends the run and leaves the input in a file crash-*. Inputs that once failed are
in tests/trust/corpus and are read by every test run.
"""

import argparse
import importlib.util
import random
import shutil
import sys
import tempfile
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

TRUST = Path(__file__).parents[1] / "tests" / "trust"
CORPUS = TRUST / "corpus"
MAX_BYTES = {"model": 200_000, "study": 1_000_000}  # of an input; others have OTHERS at most
OTHERS = 20_000
SHARE_OF_TAKEN, KEPT = 0.8, 300  # how often an input that was taken is changed, and of how many a file
SHARE_OF_BYTES = 0.25  # of the changes to a model or study that know nothing of its structure
READERS = ("tomllib", "plurigp.data.schema", "plurigp.estimator.pluri_gp", "plurigp.study", "plurigp.report")
FILES = {
    "model": ("model.json", "model.safetensors"),
    "study": ("result.json", "study.json", "arrays.safetensors", "assignments.csv", "latent.csv"),
}


def read_any_table(folder: Path, raw: bytes) -> None:
    """A text file, coded by the schema that is inferred from it."""
    from plurigp.data import Coder, infer_schema, read_table

    (folder / "table.csv").write_bytes(raw)
    frame = read_table(folder / "table.csv")
    Coder.fit(frame, infer_schema(frame)).table(frame)


def read_any_schema(folder: Path, raw: bytes) -> None:
    from plurigp.data.schema import load_schema

    (folder / "schema.toml").write_bytes(raw)
    load_schema(folder / "schema.toml")


def read_any_settings(folder: Path, raw: bytes) -> None:
    from plurigp.study import read_config

    (folder / "study.toml").write_bytes(raw)
    read_config(folder / "study.toml")


# --- models and studies ---


@cache
def trust_tests(name: str) -> ModuleType:
    """A module of tests/trust: what it damages, and how."""
    spec = importlib.util.spec_from_file_location(name, TRUST / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def whole_folder(target: str) -> Path:
    """A model or a study as it was saved."""
    from plurigp import PluriGP, Study

    trust, folder = trust_tests("conftest"), Path(tempfile.mkdtemp()) / target
    table = trust.make_secret_table()
    if target == "model":
        PluriGP(**trust.MODEL).fit(table.drop(columns=["days", "died"])).save(folder)
    else:
        Study(out=folder, n_jobs=0, **trust.STUDY).fit(table)
    return folder


def damaged_copy(target: str, folder: Path, raw: bytes) -> tuple[Path, str]:
    """A copy of the whole folder in which the input has taken the place of one file, and which one."""
    first, _, content = raw.partition(b"\n")
    name = next((name for name in FILES[target] if name.encode() == first), FILES[target][0])
    copy = folder / target
    copy.mkdir(exist_ok=True)
    for own in FILES[target]:
        shutil.copy(whole_folder(target) / own, copy)
    put = trust_tests("damage").put_in_model if target == "model" else trust_tests("damage").put_in_study
    put(copy, name, content)
    return copy, name


def load_any_model(folder: Path, raw: bytes) -> None:
    import numpy as np

    import plurigp

    copy, _ = damaged_copy("model", folder, raw)
    model = plurigp.load(copy)
    rows = trust_tests("conftest").make_secret_table().head(3)
    assert np.isfinite(model.transform(rows)).all()
    assert len(model.impute(rows)) == len(rows)


def load_any_study(folder: Path, raw: bytes) -> None:
    from plurigp import load_study
    from plurigp.report import page, render_report
    from plurigp.study.run import read_started

    copy, name = damaged_copy("study", folder, raw)
    if name == "study.json":
        read_started(copy)
    else:
        with patch.object(page, "plotly_js", str):  # four megabytes that are the same in every page
            assert "</html>" in render_report(load_study(copy))


def changed(taken: Mapping[bytes, Sequence[bytes]], raw: bytes, max_size: int, seed: int) -> bytes:
    """One more change to an input, by the structure of the file that it names or by its bytes.

    Mostly to one that was taken, by name of its file: what is wrong with another would hide all further changes.
    """
    import atheris

    rng = random.Random(seed)
    raw = rng.choice(taken[rng.choice(sorted(taken))]) if rng.random() < SHARE_OF_TAKEN else raw
    first, mark, content = raw.partition(b"\n")
    if rng.random() > SHARE_OF_BYTES:
        try:
            after = trust_tests("damage").mutated_content(first.decode(), content, rng)
            return first + mark + after if len(first) + 1 + len(after) <= max_size else raw
        except Exception:  # what earlier changes have left has no structure any more
            pass
    return first + mark + bytes(atheris.Mutate(content, max_size - len(first) - 1))


TARGETS: dict[str, Callable[[Path, bytes], None]] = {
    "table": read_any_table,
    "schema": read_any_schema,
    "settings": read_any_settings,
    "model": load_any_model,
    "study": load_any_study,
}


def read_or_refuse(target: str, folder: Path, raw: bytes) -> bool:
    """Reads it, or has it refused in one line, and says which; every other error passes through."""
    from plurigp import DataError

    with warnings.catch_warnings(action="ignore"):
        try:
            TARGETS[target](folder, raw)
        except DataError as error:
            assert "\n" not in str(error), error
            return False
    return True


def seeds(target: str) -> list[bytes]:
    """What mutation starts from: files that are whole, and those that once failed."""
    kept = [path.read_bytes() for path in sorted((CORPUS / target).glob("*"))]
    whole = [f"{name}\n".encode() + (whole_folder(target) / name).read_bytes() for name in FILES.get(target, ())]
    return kept + whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--corpus", type=Path, help="a folder for inputs that reach new code")
    given = parser.parse_args()
    import atheris

    with atheris.instrument_imports(include=["plurigp", "tomllib"]):  # the package itself imports on demand
        for name in READERS:
            import_module(name)
    corpus = given.corpus or Path(tempfile.mkdtemp())
    corpus.mkdir(parents=True, exist_ok=True)
    for number, raw in enumerate(seeds(given.target)):
        (corpus / f"seed-{number}").write_bytes(raw)
    folder = Path(tempfile.mkdtemp())
    options = [f"-max_total_time={given.seconds}", f"-max_len={MAX_BYTES.get(given.target, OTHERS)}", "-timeout=60"]
    taken = {name.encode(): deque[bytes]([], KEPT) for name in FILES.get(given.target, ())}
    for raw in seeds(given.target) if taken else ():
        taken[raw.partition(b"\n")[0]].append(raw)
    own = {"custom_mutator": partial(changed, taken)} if given.target in FILES else {}
    arguments = [
        sys.argv[0],
        *options,
        "-rss_limit_mb=4000",
        *(["-len_control=0", "-reduce_inputs=0"] if own else []),
        str(corpus),
    ]

    def one_input(raw: bytes) -> None:
        same = taken.get(raw.partition(b"\n")[0])
        if read_or_refuse(given.target, folder, raw) and same is not None and raw not in same:
            same.append(raw)

    atheris.Setup(arguments, one_input, **own)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
