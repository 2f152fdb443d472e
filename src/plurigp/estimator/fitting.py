"""From a table and PluriGP's parameters to a trained and calibrated model: plain functions on plain records."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float
from sklearn.utils import check_random_state

from plurigp.answers.calibration import Calibration
from plurigp.answers.pit import identity_maps
from plurigp.answers.predictor import Predictor, in_precision, make_predictor
from plurigp.answers.second_stage import SecondStage, fit_second_stage
from plurigp.core.text import at
from plurigp.data import Coder
from plurigp.estimator.checkpoints import Checkpoint
from plurigp.estimator.components import choose_components
from plurigp.estimator.progress import FitProgress
from plurigp.inference.batches import TrainingTable
from plurigp.inference.bound import BoundSpec
from plurigp.inference.compiling import forget_programs_in_time, jax_runtime
from plurigp.inference.divergence import Diverged
from plurigp.inference.gp.linalg import JITTER
from plurigp.inference.gp.sparse import Posterior, zero_posterior
from plurigp.inference.model import Model, Settings, init_model
from plurigp.inference.schedule import Schedule, enough_epochs
from plurigp.inference.steps import EpochMetrics
from plurigp.inference.training import Trained, train
from plurigp.likelihoods.layout import Layout, arranged_back, make_layout, n_shared, rules_of
from plurigp.likelihoods.rules import Rule

SEES_GAPS = ("factors", "masked")  # encoders that take missingness into account; the paper's is trained as in the paper
FEW_GAPS = 0.05  # share of cells: with fewer, the encoder has to be shown what a gap is
AUTO_HIDING = 0.1  # the largest share hidden from a row then
QUICK_CELLS = 2**13  # of a table whose whole training takes less time than compilation saves
COLLAPSED = 0.05  # a sd of encoded means below this in every dimension is a collapsed map


@dataclass(frozen=True, eq=False)
class FittedModel:
    """What a fit learns and a saved model holds."""

    coder: Coder
    settings: Settings
    model: Model
    q: Posterior
    pit_maps: Float[np.ndarray, "D K"]
    elbo: float  # like the history in the columns' own units
    stopped: str
    history: pd.DataFrame
    second_stage: SecondStage | None = None


def fit_model(table: TrainingTable, coder: Coder, given: Mapping[str, Any], checkpoint: Checkpoint) -> FittedModel:
    """Train n_init times, keep the run with the best bound and calibrate it; `given` are PluriGP's parameters."""
    forget_programs_in_time()
    layout, n_rows, n_seen = make_layout(coder.schema), table.n_rows, table.count_seen()
    given = {**given, "n_components": _n_components(given, layout, table)}
    settings, schedule = _settings(given, n_rows), _schedule(given, n_rows)
    spec, units = _bound_spec(given, layout, n_seen, table), _units_by_kind(coder, layout, table.count_cells())
    seed, shift = checkpoint.bind(given, coder, table, as_seed(given["random_state"])), sum(units.values())
    sample = table.sample.values, table.sample.seen
    wanted = given["calibrate"] and given["encoder"] != "free"
    calibration = Calibration(layout, *sample, coder.schema, seed) if wanted else None
    progress = FitProgress(bool(given["verbose"]), int(given["n_init"]), schedule.max_epochs, n_rows, shift)
    runs: list[Trained] = []

    def on_epoch(n: int, epoch: EpochMetrics) -> None:
        if n == first_epoch and calibration is not None:  # sooner, it would compile while training does
            untrained = zero_posterior(layout.n_functions, start.n_basis, given["dtype"])
            calibration.compile_in_background(as_predictor(start, untrained, layout, given))
        progress(n, epoch)

    with _on_device(given["device"]), progress.lines:
        with jax_runtime(), checkpoint.saved_when_stopped(), _diverged_columns_named(coder, layout):
            for number in range(given["n_init"]):
                progress.phase("compiling")
                start = init_model(seed + number, settings, coder.schema, layout, *sample, table.weights)
                model = in_precision(start, given["dtype"])
                resumed = checkpoint.resume(number + 1, spec, model, schedule.optimizer)
                first_epoch = 1 if resumed is None else len(resumed.epochs) + 1
                runs.append(train(spec, model, table, schedule, seed + number, on_epoch, resumed, checkpoint.keep))
                checkpoint.save()
        run = max(runs, key=lambda run: float(run.bound.total))
        model, q = jax.tree.map(np.asarray, (run.model, run.q))
        maps = identity_maps(len(layout.order))
        if calibration is not None:
            progress.phase("calibrating")
            maps = calibration.maps(as_predictor(model, q, layout, given))
        stage = None
        if given["second_stage"] == "trees":
            progress.phase("second stage")
            stage = _second_stage(as_predictor(model, q, layout, given), table, coder, seed, maps)
    _warn_if_collapsed(run.epochs[-1])
    _warn_if_jittered(run.epochs)
    history = as_history([_history_row(layout, epoch, units) for epoch in run.epochs])
    return FittedModel(coder, settings, model, q, maps, float(run.bound.total) - shift, run.stopped, history, stage)


def _second_stage(
    predictor: Predictor, table: TrainingTable, coder: Coder, seed: int, maps: Float[np.ndarray, "D K"]
) -> SecondStage | None:
    """Its draws are calibrated by themselves: the maps of its columns become the identity, in place."""
    stage = fit_second_stage(predictor, arranged_back(predictor.layout, *table.sample[:2], coder.schema), seed)
    if stage is not None:
        maps[stage.columns] = identity_maps(len(stage.columns))
    return stage


def as_predictor(model: Model, q: Posterior, layout: Layout, given: Mapping[str, Any]) -> Predictor:
    """The predictor of a model that was fitted with these parameters."""
    return make_predictor(model, q, layout, _rules(given, layout), float(given["kl_weight"]))


def as_seed(random_state: Any) -> int:
    """One number from whatever scikit-learn takes as random_state."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def as_history(rows: Any) -> pd.DataFrame:
    """A line per epoch, from rows or columns."""
    history = pd.DataFrame(rows)
    return history.set_index(pd.RangeIndex(1, len(history) + 1, name="epoch"))


# --- parameters as the layers below take them ---


def _n_components(given: Mapping[str, Any], layout: Layout, table: TrainingTable) -> int:
    if given["n_components"] != "auto":
        return int(given["n_components"])
    with jax_runtime():
        return choose_components(layout, table, as_seed(given["random_state"]))


def _settings(given: Mapping[str, Any], n_rows: int) -> Settings:
    n_components, n_inducing = int(given["n_components"]), int(min(given["n_inducing"], n_rows))
    shape = {"start": given["start"], "n_groups": int(given["n_groups"])}
    return Settings(n_components, n_inducing, given["kernel"], given["encoder"], **shape)


def _rules(given: Mapping[str, Any], layout: Layout) -> tuple[Rule, ...]:
    points = given["n_quadrature"]
    if isinstance(points, Mapping):
        return rules_of(layout, {kind: int(n) for kind, n in points.items()})
    return rules_of(layout, None if points is None else int(points))


def _bound_spec(given: Mapping[str, Any], layout: Layout, n_seen: np.ndarray, table: TrainingTable) -> BoundSpec:
    sampling = given["expectation"] == "sampling"
    shared = n_shared(layout, n_seen[None] == table.n_rows) if given["optimizer"] == "natural" and not sampling else 0
    hiding = _hiding(given, float(n_seen.sum()) / (table.n_rows * len(n_seen)))
    quick = table.n_rows * layout.n_slots <= QUICK_CELLS
    rules, kl_weight = _rules(given, layout), float(given["kl_weight"])
    return BoundSpec(layout, rules, kl_weight, 1, sampling, hiding, shared, quick, table.mesh)


def _hiding(given: Mapping[str, Any], seen_share: float) -> float:
    """One of two shares: it is part of the compiled program, which tables of one shape have in common."""
    if given["hiding"] != "auto":
        return float(given["hiding"])
    return AUTO_HIDING if given["encoder"] in SEES_GAPS and seen_share > 1 - FEW_GAPS else 0.0


def _schedule(given: Mapping[str, Any], n_rows: int) -> Schedule:
    batch_size = int(given["batch_size"])
    max_epochs = int(given["max_epochs"] or enough_epochs(n_rows, batch_size))
    amounts = {name: float(given[name]) for name in ("learning_rate", "tol", "kl_covariance_weight")}
    return Schedule(max_epochs, batch_size, optimizer=given["optimizer"], **amounts)


def _on_device(device: str | None) -> AbstractContextManager[Any]:
    if device is None:
        return nullcontext()
    try:
        return jax.default_device(jax.devices(device)[0])
    except RuntimeError:
        known = ", ".join(sorted({d.platform for d in jax.devices()}))
        raise ValueError(f"device={device!r} is not here; JAX finds: {known}") from None


# --- what is told of a run ---


def _units_by_kind(coder: Coder, layout: Layout, n_cells: np.ndarray) -> dict[str, float]:
    """Σ log units over the observed cells of each kind, n_cells [D] in block order: from coded to own units."""
    out: dict[str, float] = {}
    n_cells = n_cells if layout.column_weights is None else n_cells * np.asarray(layout.column_weights)
    for place, d in enumerate(layout.order):
        kind = coder.schema.used[d].kind
        out[kind] = out.get(kind, 0.0) + float(n_cells[place] * coder.log_units[d])
    return out


def _history_row(layout: Layout, epoch: EpochMetrics, units: dict[str, float]) -> dict[str, float]:
    """The bound's parts of one epoch, in the columns' own units."""
    fit = {kind: -share for kind, share in units.items()}
    for block, value in zip(layout.blocks, epoch.bound.expected_log_prob, strict=True):
        fit[block.likelihood.kind] += float(value)
    kl_x, kl_u = float(epoch.bound.kl_x), float(epoch.bound.kl_u)
    parts = {f"expected_log_prob_{kind}": value for kind, value in fit.items()} | {"kl_x": kl_x, "kl_u": kl_u}
    checks = {"spread": float(np.min(epoch.spread)), "jitter": float(epoch.jitter)}
    return {"bound": sum(fit.values()) - kl_x - kl_u, **parts, **checks}


@contextmanager
def _diverged_columns_named(coder: Coder, layout: Layout) -> Iterator[None]:
    """A run that diverged says at which column."""
    try:
        yield
    except Diverged as error:
        column = coder.schema.used[layout.order[error.column]]
        raise FloatingPointError(
            f"{at(column.name)} ({column.kind}): training diverged in epoch {error.epoch} (jitter {error.jitter:.1e}), "
            "however small the steps; correct extreme values of the column or make them gaps, declare another kind, "
            "or try dtype='float64'"
        ) from None


def _warn_if_jittered(epochs: list[EpochMetrics]) -> None:
    """Jitter is raised where the kernel matrix is not positive definite; history_ has it for every epoch."""
    highest = max(float(epoch.jitter) for epoch in epochs)
    if highest > 1.01 * JITTER:  # averages over an epoch's steps, in the model's precision
        warnings.warn(
            f"the kernel matrix was close to singular: jitter was raised to {highest:.1e} in some epochs (history_ has "
            "all); use fewer inducing points, or dtype='float64'",
            RuntimeWarning,
            stacklevel=4,  # the line that called PluriGP.fit
        )


def _warn_if_collapsed(last: EpochMetrics) -> None:
    if float(np.max(last.spread)) < COLLAPSED:
        warnings.warn(
            "the latent map has collapsed: the encoded means hardly differ between rows; "
            "the columns may be unrelated, or try another random_state or start='informed'",
            RuntimeWarning,
            stacklevel=4,  # the line that called PluriGP.fit
        )
