"""From a table and PluriGP's parameters to a trained and calibrated model: plain functions on plain records."""

import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float
from sklearn.utils import check_random_state

from plurigp.answers.calibration import Calibration
from plurigp.answers.pit import identity_maps
from plurigp.answers.predictor import Predictor, in_precision, make_predictor
from plurigp.data import Coder, Schema
from plurigp.estimator.progress import FitProgress
from plurigp.inference.bound import BoundSpec
from plurigp.inference.compiling import jax_runtime
from plurigp.inference.gp.sparse import Posterior, zero_posterior
from plurigp.inference.model import Model, Settings, init_model
from plurigp.inference.schedule import Schedule, enough_epochs
from plurigp.inference.training import Epoch, Trained, TrainingTable, train
from plurigp.likelihoods.layout import Layout, arrange_columns, make_layout, n_shared, rules_of

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


def fit_model(frame: Any, coder: Coder, given: Mapping[str, Any]) -> FittedModel:
    """Train n_init times, keep the run with the best bound and calibrate it; `given` are PluriGP's parameters."""
    layout = make_layout(coder.schema)
    table = TrainingTable(*arrange_columns(layout, coder.coded_columns(frame), len(frame), given["dtype"]))
    settings = _settings(given, len(frame))
    seed = as_seed(given["random_state"])
    wanted = given["calibrate"] and given["encoder"] != "free"
    calibration = Calibration(layout, *table, coder.schema, seed) if wanted else None
    spec, schedule = _bound_spec(given, layout, table.seen), _schedule(given, len(frame))
    units = _units_by_kind(coder, layout, table.seen)
    with (
        _on_device(given["device"]),
        FitProgress(bool(given["verbose"]), schedule.max_epochs, len(frame), sum(units.values())) as progress,
    ):
        with jax_runtime():
            run = _best_run(given, coder.schema, settings, spec, schedule, table, seed, calibration, progress)
        model, q = jax.tree.map(np.asarray, (run.model, run.q))
        maps = identity_maps(len(layout.order))
        if calibration is not None:
            progress.calibrating()
            calibration.wait()
            maps = calibration.maps(as_predictor(model, q, layout, given))
    _warn_if_collapsed(run.epochs[-1])
    history = as_history([_history_row(layout, epoch, units) for epoch in run.epochs])
    elbo = float(run.bound.total) - sum(units.values())
    return FittedModel(coder, settings, model, q, maps, elbo, run.stopped, history)


def as_predictor(model: Model, q: Posterior, layout: Layout, given: Mapping[str, Any]) -> Predictor:
    """The predictor of a model that was fitted with these parameters."""
    return make_predictor(model, q, layout, rules_of(layout, _plain(given["n_quadrature"])), float(given["kl_weight"]))


def as_seed(random_state: Any) -> int:
    """One number from whatever scikit-learn takes as random_state."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def as_history(rows: Any) -> pd.DataFrame:
    """A line per epoch, from rows or columns."""
    history = pd.DataFrame(rows)
    return history.set_index(pd.RangeIndex(1, len(history) + 1, name="epoch"))


def _best_run(  # nine parameters: every piece of a fit meets here, once
    given: Mapping[str, Any],
    schema: Schema,
    settings: Settings,
    spec: BoundSpec,
    schedule: Schedule,
    table: TrainingTable,
    seed: int,
    calibration: Calibration | None,
    progress: FitProgress,
) -> Trained:
    runs = []
    for restart in range(given["n_init"]):
        progress.compiling(f"run {restart + 1}/{given['n_init']}" if given["n_init"] > 1 else "epoch")
        model = init_model(seed + restart, settings, schema, spec.layout, *table)
        in_background = None
        if calibration is not None and restart == 0:
            untrained = zero_posterior(spec.layout.n_functions, settings.n_inducing, given["dtype"])
            predictor = as_predictor(model, untrained, spec.layout, given)
            in_background = partial(calibration.compile_in_background, predictor)
        on_epoch = _after_first_epoch(in_background, progress)
        runs.append(train(spec, in_precision(model, given["dtype"]), table, schedule, seed + restart, on_epoch))
    return max(runs, key=lambda run: float(run.bound.total))


def _after_first_epoch(in_background: Callable[[], None] | None, progress: FitProgress) -> Callable[[int, Epoch], None]:
    """Progress, and work that starts after the first epoch: sooner, it would compile while training does."""

    def on_epoch(n: int, epoch: Epoch) -> None:
        if n == 1 and in_background is not None:
            in_background()
        progress(n, epoch)

    return on_epoch


# --- parameters as the layers below take them ---


def _settings(given: Mapping[str, Any], n_rows: int) -> Settings:
    n_components, n_inducing = int(given["n_components"]), int(min(given["n_inducing"], n_rows))
    return Settings(n_components, n_inducing, given["kernel"], given["encoder"], start=given["start"])


def _bound_spec(given: Mapping[str, Any], layout: Layout, seen: np.ndarray) -> BoundSpec:
    sampling = given["expectation"] == "sampling"
    return BoundSpec(
        layout,
        rules_of(layout, _plain(given["n_quadrature"])),
        kl_weight=float(given["kl_weight"]),
        sampling=sampling,
        hiding=float(given["hiding"]),
        n_shared=n_shared(layout, seen) if given["optimizer"] == "natural" and not sampling else 0,
    )


def _schedule(given: Mapping[str, Any], n_rows: int) -> Schedule:
    batch_size = int(given["batch_size"])
    return Schedule(
        max_epochs=int(given["max_epochs"] or enough_epochs(n_rows, batch_size)),
        batch_size=batch_size,
        learning_rate=float(given["learning_rate"]),
        tol=float(given["tol"]),
        optimizer=given["optimizer"],
        kl_covariance_weight=float(given["kl_covariance_weight"]),
    )


def _plain(n_quadrature: Any) -> int | dict[str, int] | None:
    """Python's own integers instead of NumPy's."""
    if isinstance(n_quadrature, Mapping):
        return {kind: int(points) for kind, points in n_quadrature.items()}
    return None if n_quadrature is None else int(n_quadrature)


def _on_device(device: str | None) -> AbstractContextManager[Any]:
    if device is None:
        return nullcontext()
    try:
        return jax.default_device(jax.devices(device)[0])
    except RuntimeError:
        known = ", ".join(sorted({d.platform for d in jax.devices()}))
        raise ValueError(f"device={device!r} is not here; JAX finds: {known}") from None


# --- what is told of a run ---


def _units_by_kind(coder: Coder, layout: Layout, seen: np.ndarray) -> dict[str, float]:
    """Σ log units over the observed cells [N D] (block order) of each kind: from coded to own units."""
    out: dict[str, float] = {}
    for place, d in enumerate(layout.order):
        kind = coder.schema.used[d].kind
        out[kind] = out.get(kind, 0.0) + float(seen[:, place].sum() * coder.log_units[d])
    return out


def _history_row(layout: Layout, epoch: Epoch, units: dict[str, float]) -> dict[str, float]:
    """The bound's parts of one epoch, in the columns' own units."""
    fit = {kind: -share for kind, share in units.items()}
    for block, value in zip(layout.blocks, epoch.bound.expected_log_prob, strict=True):
        fit[block.likelihood.kind] += float(value)
    kl_x, kl_u = float(epoch.bound.kl_x), float(epoch.bound.kl_u)
    return {
        "bound": sum(fit.values()) - kl_x - kl_u,
        **{f"expected_log_prob_{kind}": value for kind, value in fit.items()},
        "kl_x": kl_x,
        "kl_u": kl_u,
        "spread": float(np.min(epoch.spread)),
        "jitter": float(epoch.jitter),
    }


def _warn_if_collapsed(last: Epoch) -> None:
    if float(np.max(last.spread)) < COLLAPSED:
        warnings.warn(
            "the latent map has collapsed: the encoded means hardly differ between rows; "
            "the columns may be unrelated, or try another random_state or start='informed'",
            RuntimeWarning,
            stacklevel=5,  # the line that called PluriGP.fit
        )
