"""`plurigp fit`: from a table to a model folder."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plurigp.cli.errors import CommandError, about
from plurigp.cli.files import check_folder
from plurigp.cli.text import say, say_json, say_progress

if TYPE_CHECKING:
    from plurigp.estimator import PluriGP


def run_fit(
    path: Path, out: Path, overrides: Path | None, exclude: list[str], options: dict[str, Any], force: bool, json: bool
) -> None:
    """Read, settle the schema, train, save, and say what came of it."""
    check_folder(out, force)
    if not json:
        say_progress(f"reading {path} …")  # before the imports, which take a second or two
    check_request(out, options)
    from plurigp.data import infer_schema, is_parquet, read_table, to_rows
    from plurigp.estimator import PluriGP

    rows = to_rows(path if is_parquet(path) else read_table(path))
    start = time.monotonic()
    with about(path):
        schema = infer_schema(rows, overrides).override(dict.fromkeys(exclude, "aside"))
        model = PluriGP(schema=schema, verbose=not json, **options).fit(rows)
    answer = summary(model, out, len(rows), time.monotonic() - start)
    model.set_params(verbose=False).save(out)
    if json:
        say_json(answer)
    else:
        show(answer)


def check_request(out: Path, options: dict[str, Any]) -> None:
    """Refuse what would fail later, before a large table is read: an unknown name, a folder that is no model's."""
    from plurigp.estimator.persistence import MANIFEST
    from plurigp.inference.encoder import ENCODERS
    from plurigp.inference.gp.kernels import parse_kernel

    if out.is_dir() and any(out.iterdir()) and not (out / MANIFEST).exists():
        raise CommandError(f"{out}: holds other files and no model; name an empty or a new folder.")
    if (encoder := options.get("encoder", ENCODERS[0])) not in ENCODERS:
        raise CommandError(f"--encoder {encoder!r} is not one of {', '.join(ENCODERS)}.")
    try:
        parse_kernel(options.get("kernel", "rbf"))
    except ValueError as error:
        raise CommandError(f"--{error}") from None


def summary(model: "PluriGP", out: Path, n_rows: int, seconds: float) -> dict[str, Any]:
    """What a script wants to know of a fit."""
    return {
        "model": str(out),
        "rows": n_rows,
        "used": [column.name for column in model.schema_.used],
        "aside": [column.name for column in model.schema_.aside],
        "epochs": int(model.n_iter_),
        "bound": float(model.elbo_),
        "bound_per_row": float(model.elbo_) / n_rows,
        "lengthscales": [float(length) for length in model.lengthscales_],
        "seconds": round(seconds, 3),
    }


def show(answer: dict[str, Any]) -> None:
    """The same for a person."""
    rows, used, epochs = answer["rows"], len(answer["used"]), answer["epochs"]
    say(f"trained on {rows} rows and {used} columns: {epochs} epochs in {answer['seconds']:.1f} s")
    if answer["aside"]:
        say(f"set aside: {', '.join(answer['aside'])}")
    say(f"bound: {answer['bound_per_row']:.4f} nats per row")
    say(f"wrote the model to {answer['model']}")
