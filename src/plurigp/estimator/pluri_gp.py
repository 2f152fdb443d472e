"""PluriGP: the scikit-learn face, the only mutable object. It adapts; the work is done below."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

import plurigp
from plurigp.answers.calibration import Calibration
from plurigp.answers.density import cell_log_density, effective_sample_size, log_density, reconstruction
from plurigp.answers.draws import draw_given, draw_rows
from plurigp.answers.fill import fill_values, level_probabilities, values_at
from plurigp.answers.gaps import describe
from plurigp.answers.latent import positions
from plurigp.answers.pit import unchanged
from plurigp.answers.predictor import Predictor, make_predictor
from plurigp.core.text import jsonable
from plurigp.core.types import DataError
from plurigp.data import Coder, Rows, Schema, Table, infer_schema, is_parquet, read_table, to_rows
from plurigp.estimator.parameters import check_count, check_parameters
from plurigp.estimator.persistence import (
    RANK_MAPS,
    model_arrays,
    model_from_arrays,
    rank_maps_from,
    read_model,
    write_model,
)
from plurigp.estimator.progress import ProgressLine
from plurigp.inference.bound import BoundSpec
from plurigp.inference.compiling import compiled_work
from plurigp.inference.gp.sparse import Posterior, blank
from plurigp.inference.model import Model, Settings, init_model
from plurigp.inference.schedule import Schedule, enough_epochs
from plurigp.inference.training import Data, Epoch, Trained, train
from plurigp.likelihoods.layout import Layout, arrange_columns, make_layout, n_shared, rules_of
from plurigp.likelihoods.registry import import_families, outside_modules
from plurigp.likelihoods.rules import Rule

COLLAPSED = 0.05  # a sd of encoded means below this in every dimension is a collapsed map


class PluriGP(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A latent Gaussian-process map of a mixed table with gaps: one likelihood per column.

    Parameters
    ----------
    n_components : latent dimensions Q.
    schema : None to infer every column's kind; a dict ``{"column": "kind"}`` of overrides; a Schema; a TOML path.
    n_inducing : inducing points M (capped at the number of rows).
    kernel : "rbf", "matern52", "linear" or a sum such as "linear+rbf".
    encoder : "factors" (every cell seen is evidence, as in factor analysis, bent by networks), "masked" (networks that
        read which cells are there), "paper" (networks that do not) or "free" (no encoder).
    hiding : training hides up to this share of a row's cells from the encoder (never from the bound).
    refine : improve every row's place by steps of its own with the decoder frozen; slow.
    calibrate : after training, hide cells of some rows, see where they rank among their draws, and correct the
        quantiles of `describe_gaps` by it, column by column; not for encoder="free" and not from a few cells.
    n_quadrature : points J for all families, a dict by kind, or None for each family's own. Families with closed forms
        (gaussian, lognormal, poisson) do not use it in training; categorical takes it for each level's function, and
        None leaves the softmax its own adaptive choice.
    expectation : "quadrature" or "sampling" (the paper's ablation).
    kl_weight : η; 1 is the bound, more centres the embedding.
    kl_covariance_weight : weight of the covariance part of KL(q(v)‖p(v)) while training, in (0, 1], for either
        optimizer; 1 is the bound. Less (a cold posterior) predicts hidden cells a little better on most tables; the
        trained model's covariances are always those of the full KL.
    batch_size, max_epochs, learning_rate : the training run; at most 600 epochs, or 12,000 steps, if None; the rate
        falls to half of itself as training goes on.
    tol : nats per observed cell that ten epochs must gain for training to go on.
    n_init : restarts; the best bound is kept.
    optimizer : "natural" (natural gradients for q(v), Adam for the rest) or "adam" (Adam on everything).
    start : "informed" (by the table) or "random" (the paper's).
    dtype : "float32" or "float64" for training; answers are always computed in float64.
    device : a JAX platform name such as "cpu" or "gpu"; None for JAX's default.
    random_state : seed; the same seed, machine and versions give the same bytes.
    verbose : show a progress line when standard error is a terminal.
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        schema: Mapping[str, Any] | Schema | str | Path | None = None,
        n_inducing: int = 50,
        kernel: str = "rbf",
        encoder: str = "factors",
        hiding: float = 0.0,
        refine: bool = False,
        calibrate: bool = True,
        n_quadrature: int | Mapping[str, int] | None = None,
        expectation: str = "quadrature",
        kl_weight: float = 1.0,
        kl_covariance_weight: float = 0.4,
        batch_size: int = 500,
        max_epochs: int | None = None,
        tol: float = 3e-4,
        n_init: int = 1,
        learning_rate: float = 0.02,
        optimizer: str = "natural",
        start: str = "informed",
        dtype: str = "float32",
        device: str | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.schema = schema
        self.n_inducing = n_inducing
        self.kernel = kernel
        self.encoder = encoder
        self.hiding = hiding
        self.refine = refine
        self.calibrate = calibrate
        self.n_quadrature = n_quadrature
        self.expectation = expectation
        self.kl_weight = kl_weight
        self.kl_covariance_weight = kl_covariance_weight
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.tol = tol
        self.n_init = n_init
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.start = start
        self.dtype = dtype
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    # --- fit ---

    def fit(self, X: Any, y: Any = None) -> "PluriGP":
        """Learn the map from a table: a pandas or polars frame, a 2-D array, or the path of a Parquet file.

        A file is read one column at a time and never as a whole, so it may be larger than memory.
        """
        before = dict(self.__dict__)
        try:
            self._fit(X)
        except BaseException:  # a fit that fails, or is interrupted, leaves the old answers whole
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _fit(self, X: Any) -> None:
        check_parameters(self.get_params(deep=False))
        coder, layout, values, seen = self._coded(X)
        settings = self._settings(len(seen))
        seed = _seed(self.random_state)
        wanted = self.calibrate and self.encoder != "free"
        calibration = Calibration(layout, values, seen, coder.schema, seed) if wanted else None
        with self._device(), compiled_work():
            run, elbo = self._best_of(settings, coder.schema, layout, Data(values, seen), seed, calibration)
        self.coder_, self.schema_ = coder, coder.schema
        self._settings_ = settings
        self._take(layout, run)
        self._record(layout, seen, run, elbo)
        if calibration is not None:
            with self._device():
                self.rank_maps_ = calibration.maps(self._predictor)

    def _coded(self, X: Any) -> tuple[Coder, Layout, np.ndarray, np.ndarray]:
        """The training rows, in block order; what their columns were parsed into goes when this returns."""
        rows = self._rows(X, reset=True)
        if len(rows) < 2:
            raise DataError("1 sample (row) is not enough to learn a map from; give at least 2 rows")
        coder = Coder.fit(rows, infer_schema(rows, self.schema))
        layout = make_layout(coder.schema)
        return coder, layout, *arrange_columns(layout, coder.coded_columns(rows), len(rows), self.dtype)

    def _device(self) -> AbstractContextManager[Any]:
        if self.device is None:
            return nullcontext()
        try:
            return jax.default_device(jax.devices(self.device)[0])
        except RuntimeError:
            known = ", ".join(sorted({d.platform for d in jax.devices()}))
            raise ValueError(f"device={self.device!r} is not here; JAX finds: {known}") from None

    def _rules(self, layout: Layout) -> tuple[Rule, ...]:
        given = self.n_quadrature
        if isinstance(given, Mapping):
            return rules_of(layout, {kind: int(points) for kind, points in given.items()})
        return rules_of(layout, None if given is None else int(given))

    def _settings(self, n_rows: int) -> Settings:
        return Settings(
            n_components=int(self.n_components),
            n_inducing=int(min(self.n_inducing, n_rows)),
            kernel=self.kernel,
            encoder=self.encoder,
            start=self.start,
        )

    def _best_of(
        self,
        settings: Settings,
        schema: Schema,
        layout: Layout,
        data: Data,
        seed: int,
        calibration: Calibration | None,
    ) -> tuple[Trained, float]:
        """Train n_init times and keep the run with the best bound (in coded units)."""
        sampling = self.expectation == "sampling"
        spec = BoundSpec(
            layout,
            self._rules(layout),
            kl_weight=float(self.kl_weight),
            sampling=sampling,
            hiding=float(self.hiding),
            n_shared=n_shared(layout, data.seen) if self.optimizer == "natural" and not sampling else 0,
        )
        schedule = Schedule(
            max_epochs=int(self.max_epochs or enough_epochs(len(data.values), int(self.batch_size))),
            batch_size=int(self.batch_size),
            learning_rate=float(self.learning_rate),
            tol=float(self.tol),
            optimizer=self.optimizer,
            kl_covariance_weight=float(self.kl_covariance_weight),
        )
        runs = []
        for restart in range(self.n_init):
            model = init_model(seed + restart, settings, schema, layout, data.values, data.seen)
            beside = None
            if calibration is not None and restart == 0:
                untrained = blank(layout.n_functions, settings.n_inducing, self.dtype)
                beside = partial(calibration.compile_in_background, self._as_predictor(model, untrained, layout))
            model = jax.tree.map(lambda leaf: np.asarray(leaf, self.dtype), model)
            label = f"restart {restart + 1}/{self.n_init}  " if self.n_init > 1 else ""
            with ProgressLine(schedule.max_epochs, len(data.values), bool(self.verbose), label) as line:
                run = train(spec, model, data, schedule, seed + restart, _and_once(line, beside))
            runs.append((run, float(run.bound.total)))
        if calibration is not None:
            calibration.wait()
        return max(runs, key=lambda r: r[1])

    def _take(self, layout: Layout, run: Trained) -> None:
        self.model_ = jax.tree.map(np.asarray, run.model)
        self._q = jax.tree.map(np.asarray, run.q)
        self._n_features_out = int(self.n_components)
        self._build(layout)

    def _as_predictor(self, model: Model, q: Posterior, layout: Layout) -> Predictor:
        return make_predictor(model, q, layout, self._rules(layout), float(self.kl_weight))

    def _build(self, layout: Layout) -> None:
        self._predictor = self._as_predictor(self.model_, self._q, layout)
        self.rank_maps_ = unchanged(len(layout.order))
        self.lengthscales_ = np.exp(np.asarray(self.model_.gp.kernel.log_lengthscales, float)[-1])

    def _record(self, layout: Layout, seen: np.ndarray, run: Trained, elbo: float) -> None:
        by_kind = _units_by_kind(self.schema_, layout, seen, self.coder_.log_units)
        self.elbo_ = elbo - sum(by_kind.values())
        self.n_iter_ = len(run.epochs)
        self.stopped_ = run.stopped
        self.history_ = pd.DataFrame([_history_row(layout, e, by_kind) for e in run.epochs])
        self.history_.index = pd.RangeIndex(1, len(self.history_) + 1, name="epoch")
        if float(np.max(run.epochs[-1].spread)) < COLLAPSED:
            warnings.warn(
                "the latent map has collapsed: the encoded means hardly differ between rows; "
                "the columns may be unrelated, or try another random_state or start='informed'",
                RuntimeWarning,
                stacklevel=3,
            )

    # --- answers ---

    def _rows(self, X: Any, reset: bool) -> Rows:
        """The table; after fit, columns are matched by name, or by place where one side has no names."""
        X = X if reset or not is_parquet(X) else read_table(X)
        rows = to_rows(X)
        if not reset and rows.columns.tolist() == list(getattr(self, "feature_names_in_", ())):
            return rows
        named = isinstance(X, Rows | Mapping) or not rows.in_memory
        named = named or (isinstance(X, list | tuple) and isinstance(X[0], Mapping))
        validate_data(self, pd.DataFrame(columns=rows.columns) if named else X, reset=reset, skip_check_array=True)
        return rows if reset else Rows(rows.frame.set_axis(self.schema_.names, axis=1))

    def _table(self, X: Any) -> Table:
        """The rows as this model codes them; a Table that its coder made is taken as it is."""
        check_is_fitted(self)
        return X if isinstance(X, Table) else self.coder_.table(self._rows(X, reset=False))

    def transform(self, X: Any, return_std: bool = False) -> Any:
        """Latent means [N Q]; with return_std also their sd. A row's answer does not depend on the other rows."""
        table = self._table(X)
        mean, sd = positions(self._ready(), table)
        return (mean, sd) if return_std else mean

    def inverse_transform(self, X: Any) -> pd.DataFrame:
        """The table expected at latent positions [N Q], in the columns' own units and levels."""
        check_is_fitted(self)
        x = np.asarray(X, float)
        if x.ndim != 2 or x.shape[1] != self._n_features_out:
            raise ValueError(f"latent positions have {self._n_features_out} columns; got an array of shape {x.shape}")
        if not np.isfinite(x).all():
            raise ValueError(f"latent positions, row {int(np.argmin(np.isfinite(x).all(1)))}: not finite; leave it out")
        index = X.index if isinstance(X, pd.DataFrame) else None
        return self.coder_.frame(values_at(self._ready(), self._empty(len(x)), x), index)

    def impute(self, X: Any, fill_limits: bool = False) -> pd.DataFrame:
        """The table with its gaps filled; observed cells and columns set aside come back untouched.

        With fill_limits, cells known up to a limit ("<0.5") become numbers within it as well.
        """
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        filled = self.coder_.fill(rows, fill_values(self._ready(), self.coder_.table(rows)), fill_limits)
        return filled.set_axis(X.columns, axis=1) if isinstance(X, pd.DataFrame) else filled

    def impute_draws(
        self, X: Any, n_draws: int = 5, random_state: Any = None, fill_limits: bool = False
    ) -> list[pd.DataFrame]:
        """Completed tables for multiple imputation: each fills all gaps of a row by one joint draw of x, f and y.

        With fill_limits, cells known up to a limit are drawn within it as well.
        """
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        table = self.coder_.table(rows)
        check_count("n_draws", n_draws)
        chunks = draw_given(self._ready(), table, int(n_draws), _seed(random_state))
        coded = np.concatenate([np.stack(list(chunk.draws)) for chunk in chunks], axis=1)
        filled = [self.coder_.fill(rows, one, fill_limits) for one in coded]
        return [one.set_axis(X.columns, axis=1) if isinstance(X, pd.DataFrame) else one for one in filled]

    def describe_gaps(
        self, X: Any, levels: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95), n_draws: int = 200, random_state: Any = 0
    ) -> pd.DataFrame:
        """One line per gap: row (its place in X), column, kind, mean, sd and quantiles, or likeliest level.

        In the columns' own units, from `n_draws` draws of each row given its observed cells. Columns of levels have
        no mean: they have the likeliest level and its probability; see `level_probabilities` for all of them.
        Quantiles are calibrated (see `calibrate`); mean and sd are the draws' own.
        """
        table = self._table(X)
        check_count("n_draws", n_draws)
        if not all(0 < level < 1 for level in levels):
            raise ValueError(f"levels must lie between 0 and 1; got {list(levels)}")
        chunks = draw_given(self._ready(), table, int(n_draws), _seed(random_state))
        return describe(self.coder_, table, chunks, list(levels), self.rank_maps_)

    def level_probabilities(self, X: Any, column: Any) -> pd.DataFrame:
        """p(level | the row's observed cells) for every row and level of one column; the column's own cells count."""
        table = self._table(X)
        names = [used.name for used in self.schema_.used]
        if column not in names:
            raise DataError(f"column {column!r} is not used by this model; used: {names}")
        used = self.schema_[column]
        if not used.levels:
            raise DataError(f"column {column!r} is {used.kind} and has no levels; describe_gaps gives its quantiles")
        shares = level_probabilities(self._ready(), table, names.index(column))
        return pd.DataFrame(shares[:, : len(used.levels)], columns=list(used.levels), index=table.index)

    def score_samples(self, X: Any) -> np.ndarray:
        """A lower bound on log p(observed cells) of every row, importance-weighted, in the columns' own units."""
        table = self._table(X)
        return log_density(self._ready(), table) - table.seen @ self.coder_.log_units

    def effective_sample_size(self, X: Any) -> np.ndarray:
        """How many of the draws of a row's position carry its answers (of 64, by their importance weights) [N].

        Near 1, the encoder puts the row where its cells do not, and what is said of it is rough; `refine=True` helps.
        """
        table = self._table(X)
        return effective_sample_size(self._ready(), table)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`."""
        return float(self.score_samples(X).mean())

    def score_cells(self, X: Any, truth: Any) -> pd.DataFrame:
        """log p(cell | the cells in X) for every cell that `truth` has and X has not; NaN elsewhere, own units."""
        shown = self._table(X)
        complete = self._table(truth)
        if len(complete.seen) != len(shown.seen):
            raise DataError(f"truth has {len(complete.seen)} rows where X has {len(shown.seen)}; give the same rows")
        cells = cell_log_density(self._ready(), shown, complete) - self.coder_.log_units
        cells[shown.seen] = np.nan
        return pd.DataFrame(cells, columns=[c.name for c in self.schema_.used], index=shown.index)

    def score_reconstruction(self, X: Any) -> pd.DataFrame:
        """E log p of every observed cell under its own row's q(x), NaN at gaps, own units: the paper's score, which
        shows the encoder what is scored."""
        table = self._table(X)
        cells = reconstruction(self._ready(), table) - self.coder_.log_units
        return pd.DataFrame(cells, columns=[c.name for c in self.schema_.used], index=table.index)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> pd.DataFrame:
        """New rows drawn from the model, x ~ N(0, I), in the columns' own units and levels."""
        check_is_fitted(self)
        check_count("n_samples", n_samples)
        return self.coder_.frame(draw_rows(self._ready(), self._empty(n_samples), _seed(random_state)))

    def _ready(self) -> Predictor:
        made, refined = self._predictor, bool(self.refine)
        return made if made.refined == refined else replace(made, refined=refined)

    def _empty(self, n_rows: int) -> Table:
        names = [c.name for c in self.schema_.columns]
        return self.coder_.table(pd.DataFrame(index=range(n_rows), columns=names, dtype=object))

    # --- scikit-learn's boundary ---

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_predictor")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    # --- saving ---

    def save(self, folder: str | Path) -> Path:
        """Write the fitted model into a folder: arrays as safetensors, the rest as JSON, both hashed."""
        check_is_fitted(self)
        params = {k: v for k, v in self.get_params().items() if k != "schema"}
        if not isinstance(self.random_state, Integral):  # a generator cannot be kept
            params["random_state"] = None
        manifest = {
            "plurigp": plurigp.__version__,
            "jax": jax.__version__,
            "params": jsonable(params),
            "schema_declared": self.schema is not None,
            "settings": asdict(self._settings_),
            "coder": self.coder_.to_dict(),
            "families": outside_modules(c.kind for c in self.schema_.used),
            "feature_names_in": [str(n) for n in getattr(self, "feature_names_in_", [])],
            "n_features_in": int(self.n_features_in_),
            "elbo": self.elbo_,
            "stopped": self.stopped_,
            "history": [[name, column.tolist()] for name, column in self.history_.items()],
        }
        return write_model(folder, model_arrays(self.model_, self._q) | {RANK_MAPS: self.rank_maps_}, manifest)


def _and_once(line: ProgressLine, beside: Callable[[], None] | None) -> Callable[[int, Epoch], None]:
    """The progress line, and after the first epoch `beside`: sooner, it would compile while training does."""

    def on_epoch(n: int, epoch: Epoch) -> None:
        if n == 1 and beside is not None:
            beside()
        line(n, epoch)

    return on_epoch


def _seed(random_state: Any) -> int:
    """One number from whatever scikit-learn takes as random_state."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def _units_by_kind(schema: Schema, layout: Layout, seen: np.ndarray, log_units: np.ndarray) -> dict[str, float]:
    """Σ log units over the observed cells [N D] (block order) of each kind."""
    out: dict[str, float] = {}
    for place, d in enumerate(layout.order):
        kind = schema.used[d].kind
        out[kind] = out.get(kind, 0.0) + float(seen[:, place].sum() * log_units[d])
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


def load(folder: str | Path, allow_imports: Iterable[str] = ()) -> PluriGP:
    """Open a model that `PluriGP.save` wrote; a family from outside is imported only from a module named here."""
    arrays, manifest = read_model(folder)
    try:
        import_families(manifest.get("families", {}), allow_imports)
        est = PluriGP(**manifest["params"])
        est.coder_ = Coder.from_dict(manifest["coder"])
        est.schema_ = est.coder_.schema
        est.schema = est.schema_ if manifest["schema_declared"] else None
        est.n_features_in_ = int(manifest["n_features_in"])
        if manifest["feature_names_in"]:
            est.feature_names_in_ = np.asarray(manifest["feature_names_in"], dtype=object)
        est._settings_ = Settings(**manifest["settings"])
        layout = make_layout(est.schema_)
        est.model_, est._q = model_from_arrays(arrays, est._settings_, layout)
        est._n_features_out = est._settings_.n_components
        est.elbo_, est.stopped_ = float(manifest["elbo"]), str(manifest["stopped"])
        est.history_ = pd.DataFrame(dict(manifest["history"]))
        est.history_.index = pd.RangeIndex(1, len(est.history_) + 1, name="epoch")
        est.n_iter_ = len(est.history_)
    except (KeyError, TypeError) as error:
        raise DataError(f"{folder}: the manifest lacks or misstates {error}; save the model again") from None
    est._build(layout)
    est.rank_maps_ = rank_maps_from(arrays, est.rank_maps_)
    return est
