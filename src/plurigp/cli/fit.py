"""`plurigp fit`: from a table to a model folder."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plurigp.cli import interrupt
from plurigp.cli.errors import CommandError, about
from plurigp.cli.files import check_folder
from plurigp.cli.options import (
    Decimal,
    Exclude,
    Force,
    Json,
    Missing,
    PoolRareLevels,
    SchemaIn,
    Seed,
    Sep,
    TableOrFolderIn,
    declared_gaps,
    given,
    read_input,
    training_input,
)
from plurigp.cli.processes import SAVING_SECONDS, Coordinator, Processes, ProcessGroup, ProcessId, Shards, run_here
from plurigp.cli.roles import (
    ColumnWeight,
    Covariate,
    Missingness,
    ModelGappedCovariates,
    View,
    as_column_weights,
    as_views,
    covariates_missing,
)
from plurigp.cli.text import say, say_json, say_progress
from plurigp.core.memory import reuse_memory

if TYPE_CHECKING:
    from plurigp.estimator import PluriGP


def fit(  # long: its options
    table: TableOrFolderIn,
    out: Annotated[Path, typer.Option(metavar="MODEL_DIR", help="Folder for the model.")],
    schema: SchemaIn = None,
    components: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Latent dimensions.", show_default="2")
    ] = None,
    groups: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Groups of rows, learned with the map.", show_default="1")
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Maximum passes over the rows.", show_default="600, fewer for a long table"
        ),
    ] = None,
    seed: Seed = 0,
    kernel: Annotated[
        str | None, typer.Option(metavar="NAME", help="rbf, matern52, linear, or a sum such as linear+rbf.")
    ] = None,
    encoder: Annotated[str | None, typer.Option(metavar="NAME", help="factors, masked, paper or free.")] = None,
    inducing: Annotated[int | None, typer.Option(metavar="N", min=1, help="Inducing points.")] = None,
    batch_size: Annotated[int | None, typer.Option(metavar="N", min=1, help="Rows per training step.")] = None,
    processes: Processes = None,
    coordinator: Coordinator = None,
    process_id: ProcessId = None,
    shards: Shards = None,
    exclude: Exclude = None,
    weights: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column that says how often each row counts.")
    ] = None,
    covariate: Covariate = None,
    model_gapped_covariates: ModelGappedCovariates = False,
    missingness: Missingness = None,
    column_weight: ColumnWeight = None,
    view: View = None,
    pool_rare_levels: PoolRareLevels = None,
    sep: Sep = None,
    decimal: Decimal = None,
    missing: Missing = None,
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder that keeps training, so that it can go on if stopped.")
    ] = None,
    checkpoint_every: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="How often the --checkpoint is written.")
    ] = 30.0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the --checkpoint of a stopped fit.")] = False,
    force: Force = False,
    json: Json = False,
) -> None:
    """Train a model on a table and write it to a folder.

    Kinds are inferred as in `plurigp check`; --schema overrides them. Only observed cells enter the likelihood.
    Training stops when the bound no longer rises; a terminal shows its progress. The model folder holds JSON and
    arrays only, no code. With --checkpoint, training is kept every half minute and at Ctrl-C; the same command with
    --resume goes on from there and ends with the same model. TABLE may be a folder of Parquet files; of several
    --processes, each reads its rows only, and with --checkpoint they go on by themselves if one is killed.

    \b
    Example:
      plurigp fit patients.csv --components 5 --exclude outcome --seed 1 --out model
      plurigp fit patients.csv --checkpoint running --resume --out model
      plurigp fit registry/ --schema schema.toml --processes 4 --out model
    """
    check_folder(out, force)
    group = ProcessGroup(processes, coordinator, process_id)
    if group.starts_here and processes is not None:
        check_checkpoint(checkpoint, resume)
        run_here(processes, checkpoint)
        return
    quiet = json or not group.leads
    if not quiet:
        say_progress(f"reading {table} …")  # before the imports, which take a second or two
    options = given(n_components=components, n_groups=groups, max_epochs=epochs, random_state=seed, kernel=kernel,
                    encoder=encoder, n_inducing=inducing, batch_size=batch_size,
                    pool_rare_levels=pool_rare_levels, n_shards=shards or processes)  # fmt: skip
    check_request(out, options)
    check_checkpoint(checkpoint, resume)
    reuse_memory()
    group.join()
    from plurigp.data import infer_schema, to_rows
    from plurigp.data.missingness import add_missingness
    from plurigp.estimator import PluriGP
    from plurigp.estimator.checkpoints import remove_checkpoint

    rows, sample = training_input(table, sep, decimal, missing)
    if missingness is not None:
        if rows is not sample:
            raise CommandError(f"{table}: --missingness is for single files; add such columns to the folder's files.")
        rows = sample = to_rows(read_input(table, sep, decimal, missing))
    start = time.monotonic()
    with about(table):
        if missingness is not None:
            rows = sample = to_rows(add_missingness(declared_gaps(sample.frame, schema), missingness))
        settled = infer_schema(sample, schema).override(dict.fromkeys(exclude or [], "aside"))
        weighed = {"column_weights": as_column_weights(column_weight), "views": as_views(view, settled.names)}
        of_gaps = covariates_missing(model_gapped_covariates)
        roles = given(covariates=covariate, covariates_missing=of_gaps, **weighed)
        model = PluriGP(schema=settled, verbose=not quiet, **options, **roles)
        model.fit(rows, sample_weight=weights, checkpoint=checkpoint, checkpoint_every=checkpoint_every)
    answer = fit_summary(model, out, len(rows), time.monotonic() - start)
    if not group.leads:
        return
    model.set_params(verbose=False).save(out)
    if checkpoint is not None:
        remove_checkpoint(checkpoint)
    if json:
        say_json(answer)
    else:
        say_fit(answer)


def check_request(out: Path, options: dict[str, Any]) -> None:
    """Refuse what would fail later, before a large table is read: an unknown name, a folder that is no model's."""
    from plurigp.estimator.persistence import MANIFEST
    from plurigp.inference.encoder import ENCODERS
    from plurigp.inference.gp.kernels import parse_kernel

    if out.is_dir() and any(out.iterdir()) and not (out / MANIFEST).exists():
        raise CommandError(f"{out}: holds other files and no model; pass an empty or a new folder as --out.")
    if (encoder := options.get("encoder", ENCODERS[0])) not in ENCODERS:
        raise CommandError(f"--encoder {encoder!r} is not one of {', '.join(ENCODERS)}.")
    try:
        parse_kernel(options.get("kernel", "rbf"))
    except ValueError as error:
        raise CommandError(f"--{error}") from None


def check_checkpoint(folder: Path | None, resume: bool) -> None:
    """Refuse to go on from nowhere, or to go on unasked; prepare Ctrl-C to say how to go on."""
    if folder is None:
        if resume:
            raise CommandError("--resume needs the folder to go on from; pass it as --checkpoint DIR.")
        return
    from plurigp.estimator.checkpoints import has_checkpoint

    if has_checkpoint(folder) and not resume:
        raise CommandError(f"{folder}: holds the checkpoint of a fit; pass --resume to go on, or name another folder.")

    def advice() -> str:
        if not has_checkpoint(folder):
            return " before the first checkpoint; start again"
        return f"; the same command with --resume goes on from {folder}"

    interrupt.prepare(SAVING_SECONDS, advice)


def fit_summary(model: "PluriGP", out: Path, n_rows: int, seconds: float) -> dict[str, Any]:
    """The facts of a fit, for JSON."""
    return {
        "model": str(out),
        "rows": n_rows,
        "used": [column.name for column in model.schema_.used],
        "aside": [column.name for column in model.schema_.aside],
        "covariates": [column.name for column in model.schema_.covariates],
        "epochs": int(model.n_iter_),
        "bound": float(model.elbo_),
        "bound_per_row": float(model.elbo_) / n_rows,
        "lengthscales": [float(length) for length in model.lengthscales_],
        "group_weights": [float(weight) for weight in model.group_weights_],
        "seconds": round(seconds, 3),
    }


def say_fit(answer: dict[str, Any]) -> None:
    """The same for a person."""
    used, took = len(answer["used"]), f"{answer['epochs']} epochs in {answer['seconds']:.1f} s"
    say(f"trained on {answer['rows']} rows and {used} columns: {took}")
    if answer["aside"]:
        say(f"set aside: {', '.join(answer['aside'])}")
    if answer["covariates"]:
        say(f"adjusted for: {', '.join(answer['covariates'])}")
    say(f"bound (ELBO): {answer['bound_per_row']:.4f} nats per row")
    if len(answer["group_weights"]) > 1:
        say(f"groups: {', '.join(f'{weight:.0%}' for weight in answer['group_weights'])} of the rows")
    say(f"wrote the model to {answer['model']}")
