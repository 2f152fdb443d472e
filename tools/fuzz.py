"""Coverage-guided fuzzing of all that reads bytes from outside: tables, schema and study files, models.

    python tools/fuzz.py table --seconds 900          also: schema, study, model
    python tools/fuzz.py model --corpus found/        keep the inputs that reach new code

Needs atheris (pip install atheris), which no extra brings along: it is for Linux alone. An input is read, or refused by
a DataError in one line; anything else ends the run and leaves the input in a file crash-*. Inputs that once failed are
in tests/trust/corpus and are read by every test run.
"""

import argparse
import json
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path

CORPUS = Path(__file__).parents[1] / "tests" / "trust" / "corpus"
MAX_BYTES = 20_000
READERS = ("tomllib", "plurigp.data.schema", "plurigp.estimator.pluri_gp", "plurigp.study")


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


def read_any_study(folder: Path, raw: bytes) -> None:
    from plurigp.study import read_config

    (folder / "study.toml").write_bytes(raw)
    read_config(folder / "study.toml")


@cache
def _whole_model() -> Path:
    import numpy as np
    import pandas as pd

    from plurigp import PluriGP

    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=20), "b": rng.choice(["x", "y", "z"], 20), "c": rng.poisson(2, 20)})
    folder = Path(tempfile.mkdtemp()) / "model"
    return PluriGP(2, n_inducing=4, max_epochs=1, calibrate=False, random_state=0).fit(table).save(folder)


def load_any_model(folder: Path, raw: bytes) -> None:
    """The bytes take the place of the arrays, or of the manifest; hashes are put right where they can be."""
    import plurigp
    from plurigp.core.sealed import digest, sealed_json

    model = Path(shutil.copytree(_whole_model(), folder / "model", dirs_exist_ok=True))
    manifest = json.loads((model / "model.json").read_text())
    if raw[:1] != b"{":
        (model / "model.safetensors").write_bytes(raw)
        body = {**manifest, "arrays_sha256": digest(raw)}
    else:
        try:
            body = json.loads(raw)
            body = body if isinstance(body, dict) else manifest
        except (ValueError, RecursionError):
            body = {}
    body.pop("manifest_sha256", None)
    try:
        text = sealed_json(body, "manifest_sha256").encode()
    except (ValueError, RecursionError):  # infinities: nothing can put their hash right
        text = raw
    (model / "model.json").write_bytes(text if body else raw)
    plurigp.load(model)


TARGETS: dict[str, Callable[[Path, bytes], None]] = {
    "table": read_any_table,
    "schema": read_any_schema,
    "study": read_any_study,
    "model": load_any_model,
}


def read_or_refuse(target: str, folder: Path, raw: bytes) -> None:
    """Reads it, or has it refused in one line; every other error passes through."""
    from plurigp import DataError

    with warnings.catch_warnings(action="ignore"):
        try:
            TARGETS[target](folder, raw)
        except DataError as error:
            assert "\n" not in str(error), error


def seeds(target: str) -> list[bytes]:
    """What mutation starts from: files that are whole, and those that once failed."""
    kept = [path.read_bytes() for path in sorted((CORPUS / target).glob("*"))]
    if target == "model":
        kept += [(_whole_model() / name).read_bytes() for name in ("model.json", "model.safetensors")]
    return kept


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
    options = [f"-max_total_time={given.seconds}", f"-max_len={MAX_BYTES}", "-timeout=30", "-rss_limit_mb=4000"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], lambda raw: read_or_refuse(given.target, folder, raw))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
