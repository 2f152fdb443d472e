"""PluriGP, scikit-learn's face of the model: it adapts tables and parameters; the work is done below."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from plurigp.answers.corrected import draw_gaps_given, expected_gaps, fill_gaps_with, gap_log_density
from plurigp.answers.counterfactual import expected_at
from plurigp.answers.delta import make_shift, shift_gaps
from plurigp.answers.density import effective_sample_size, log_density, reconstruction
from plurigp.answers.draws import draw_rows
from plurigp.answers.fill import values_at
from plurigp.answers.gaps import describe_gaps
from plurigp.answers.groups import group_probabilities
from plurigp.answers.latent import positions
from plurigp.answers.predictor import Predictor
from plurigp.core.types import DataError
from plurigp.data import ASIDE, KINDS, Coder, Rows, Schema, Table, infer_schema, is_parquet, read_table, to_rows
from plurigp.data.dataset import ParquetFolder, is_parquet_folder
from plurigp.data.pooling import pooled_schema
from plurigp.data.roles import covariate_frame, with_roles
from plurigp.data.weights import row_weights
from plurigp.estimator.checkpoints import Checkpoint
from plurigp.estimator.fitting import FittedModel, as_predictor, as_seed, fit_model
from plurigp.estimator.manifest import checked_coder
from plurigp.estimator.parameters import FOR_IMPUTATION, check_count, check_parameters
from plurigp.estimator.persistence import ARRAYS, MANIFEST, load_fitted, naming, read_model, save_fitted
from plurigp.estimator.tables import check_sharded, folder_table, sample_folder, training_table
from plurigp.inference.batches import TrainingTable
from plurigp.inference.prior import group_moments
from plurigp.likelihoods.layout import cell_bounds, make_layout
from plurigp.likelihoods.registry import import_families

CELLS_IN_TREES = (
    "the trees of the second stage hold values of single training cells, and so does the saved model; "
    "to share a model without cells, fit it with second_stage='none'"
)


class PluriGP(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A latent Gaussian-process map of a mixed table with gaps: one likelihood per column.

    Parameters
    ----------
    n_components : latent dimensions Q; "auto" chooses the number by how well factors predict hidden cells.
    n_groups : groups K of rows. With more than one, the prior of x is a Gaussian mixture, learned with the map, instead
        of N(0, I); `group_probabilities` says which group a row belongs to.
    schema : None to infer every column's kind; a dict ``{"column": "kind"}`` of overrides; a Schema; a TOML path.
    covariates : columns, such as site, batch or age, that are given and not modelled: every function gets a linear part
        in them, so that positions describe what they do not explain. Numbers are standardised, levels are indicators.
    covariates_missing : a covariate with gaps in the training table is an "error", or like others a column to "model".
    column_weights : {"column": weight}: how much a column's cells count in learning the map and in placing rows (1 if
        not named); scores are in full all the same.
    views : {"labs": [columns], "diagnoses": [columns]}: weights that let every view count as the one with fewest
        columns does, so that many columns of one sort do not drown a few of another.
    pool_rare_levels : levels of text that fewer rows have count as one level, "other", and are not kept by name.
    n_inducing : inducing points M (capped at the number of rows).
    kernel : "rbf", "matern52", "linear" or a sum such as "linear+rbf".
    encoder : "factors" (the factor-analysis posterior given the observed cells, corrected by networks), "masked"
        (networks with missingness indicators), "paper" (networks without) or "free" (no encoder).
    hiding : training hides up to this share of a row's cells from the encoder (never from the bound). "auto" is 0.1 for
        a table with hardly any gaps, whose encoder would not learn to place a row with some, and 0 otherwise.
    refine : optimise each row's q(x) by gradient steps, the model fixed; slow.
    calibrate : after training, hide cells of some rows, see where they rank among their draws, and correct the
        quantiles of `describe_gaps` by it, column by column; not for encoder="free" and not from a few cells.
    second_stage : "none", or "trees": after training, extra-trees and a ridge regression learn what the map
        leaves of every column from the row's other cells, and all answers about gaps are corrected by them. Filled
        values are better, training takes longer, and a saved model holds values of training cells: protect it as you
        protect the table. "auto", the default, is "trees" in `fit_impute` and "none" otherwise.
    n_quadrature : points J for all families, a dict by kind, or None for each family's own. Families with closed forms
        (gaussian, lognormal, poisson) do not use it in training; categorical takes it for each level's function, and
        None leaves the softmax its own adaptive choice.
    expectation : "quadrature" or "sampling" (the paper's ablation).
    kl_weight : η, the weight of KL(q(x)‖p(x)): 1 gives the ELBO, more pulls positions towards the prior.
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
    n_shards : parts of the table, equal in length, that are trained side by side on as many devices, of one process or
        of several that have joined. Every batch has equally many rows of each. The result depends on the number of
        shards and not on that of devices.
    random_state : seed; the same seed, machine and versions give the same bytes.
    verbose : show a progress line when standard error is a terminal.

    Examples
    --------
    >>> from plurigp import PluriGP
    >>> from plurigp.datasets import simulate
    >>> drawn = simulate(80, 2, {"gaussian": 3, "categorical": 1}, missing=0.1)
    >>> table = drawn.table
    >>> model = PluriGP(2, n_groups=2, max_epochs=3, random_state=0).fit(table)
    >>> x, sd = model.transform(table, return_std=True)
    >>> x.shape, model.group_probabilities(table).shape, model.inverse_transform(x[:3]).shape
    ((80, 2), (80, 2), (3, 4))
    >>> int(model.impute(table).isna().sum().sum()), len(model.impute_draws(table, n_draws=3, random_state=0))
    (0, 3)
    >>> model.describe_gaps(table, levels=[0.05, 0.95]).columns.tolist()
    ['row', 'column', 'kind', 'mean', 'sd', 'q5', 'q95', 'level', 'probability']
    >>> model.level_probabilities(table, "categorical_1").shape
    (80, 3)
    >>> model.score_samples(table).shape, type(model.score(table)), model.effective_sample_size(table).shape
    ((80,), <class 'float'>, (80,))
    >>> bool((model.score_cells(table, drawn.truth).notna() == table.isna()).all(axis=None))
    True
    >>> model.score_reconstruction(table).shape, model.sample(5, random_state=0).shape, model.save("small").name
    ((80, 4), (5, 4), 'small')
    >>> given = PluriGP(2, covariates=["gaussian_1"], max_epochs=3, random_state=0)
    >>> complete = table.dropna(subset=["gaussian_1"])
    >>> len(given.fit(complete).counterfactual(complete, {"gaussian_1": 0.0})) == len(complete)
    True
    >>> bool(PluriGP(2, max_epochs=3, second_stage="none", random_state=0).fit_impute(table).isna().any(axis=None))
    False
    """

    def __init__(  # long: scikit-learn wants every parameter named, and stored as it is
        self,
        n_components: int | str = 2,
        *,
        n_groups: int = 1,
        schema: Mapping[str, Any] | Schema | str | Path | None = None,
        covariates: Sequence[str] | None = None,
        covariates_missing: str = "error",
        column_weights: Mapping[str, float] | None = None,
        views: Mapping[str, Sequence[str]] | None = None,
        pool_rare_levels: int = 0,
        n_inducing: int = 50,
        kernel: str = "rbf",
        encoder: str = "factors",
        hiding: float | str = "auto",
        refine: bool = False,
        calibrate: bool = True,
        second_stage: str = "auto",
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
        n_shards: int = 1,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_groups = n_groups
        self.schema = schema
        self.covariates = covariates
        self.covariates_missing = covariates_missing
        self.column_weights = column_weights
        self.views = views
        self.pool_rare_levels = pool_rare_levels
        self.n_inducing = n_inducing
        self.kernel = kernel
        self.encoder = encoder
        self.hiding = hiding
        self.refine = refine
        self.calibrate = calibrate
        self.second_stage = second_stage
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
        self.n_shards = n_shards
        self.random_state = random_state
        self.verbose = verbose

    # --- fit ---

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        checkpoint: str | Path | None = None,
        checkpoint_every: float = 30.0,
    ) -> "PluriGP":
        """Learn the map from a table: a pandas or polars frame, a 2-D array, or the path of a file.

        A Parquet file is read one column at a time and never as a whole, so it may be larger than memory. Of a folder
        of Parquet files, a process reads its shards and a sample, from which kinds, levels and units are taken.
        `sample_weight` [N] says how often each row counts, or names the column that does, which is then set aside.

        With `checkpoint`, a folder, training is kept there every `checkpoint_every` seconds and when it is stopped;
        the same call goes on from it and ends with the same bytes. Delete the folder once the model is saved.
        """
        before = dict(self.__dict__)
        try:
            given = self.get_params(deep=False)
            check_parameters(given)
            kept = Checkpoint(checkpoint, checkpoint_every)
            self._store(fit_model(*self._coded(X, sample_weight), given, kept))
        except BaseException:  # a fit that fails, or is interrupted, leaves the old answers whole
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _coded(self, X: Any, sample_weight: Any) -> tuple[TrainingTable, Coder]:
        """The training rows; what their columns were parsed into goes when this returns."""
        folder = ParquetFolder(Path(X)) if is_parquet_folder(X) else X if isinstance(X, ParquetFolder) else None
        sampled = None if folder is None else sample_folder(folder)
        rows = self._rows(X if sampled is None else sampled.frame, reset=True)
        if len(rows) < 2:
            raise DataError("1 sample (row) is not enough to learn a map from; give at least 2 rows")
        if len(rows) < self.n_groups:
            raise DataError(f"n_groups={self.n_groups} is more than the table's {len(rows)} rows; give fewer groups")
        given = self.get_params(deep=False)
        check_sharded(given, folder is not None, sample_weight)
        weights, schema = row_weights(sample_weight, rows), infer_schema(rows, self.schema)
        if isinstance(sample_weight, str):
            schema = schema.override({sample_weight: {"kind": ASIDE, "reason": "row weights"}})
        schema = pooled_schema(rows, with_roles(schema, given, rows), self.pool_rare_levels)
        coder = Coder.fit(rows, schema, weights)
        if folder is None or sampled is None:
            return training_table(rows, coder, given, weights), coder
        return folder_table(folder, sampled, coder, given), coder

    def _store(self, fitted: FittedModel) -> None:
        self._fitted = fitted
        self._predictor = as_predictor(fitted.model, fitted.q, make_layout(fitted.coder.schema), self.get_params())
        self._n_features_out = fitted.settings.n_components
        self.coder_, self.schema_, self.model_ = fitted.coder, fitted.coder.schema, fitted.model
        self.pit_maps_, self.history_ = fitted.pit_maps, fitted.history
        self.second_stage_ = fitted.second_stage
        self.elbo_, self.stopped_, self.n_iter_ = fitted.elbo, fitted.stopped, len(fitted.history)
        self.lengthscales_ = np.exp(np.asarray(fitted.model.gp.kernel.log_lengthscales, float)[-1])
        groups = group_moments(fitted.model.prior, fitted.settings.n_components)
        self.group_weights_, self.group_means_, self.group_covariances_ = groups

    @property
    def predictor_(self) -> Predictor:
        """The Predictor that the functions of plurigp.answers are asked with; refined if refine=True."""
        check_is_fitted(self)
        made, refined = self._predictor, bool(self.refine)
        return made if made.refined == refined else replace(made, refined=refined)

    # --- tables ---

    def _rows(self, X: Any, reset: bool) -> Rows:
        """The table; after fit, its columns are found by name in any order, or by place where one side has none."""
        if isinstance(X, str | Path) and not (reset and is_parquet(X)):
            X = read_table(X)
        rows = to_rows(X)
        named = isinstance(X, Rows | Mapping) or not rows.in_memory
        named = named or (isinstance(X, list | tuple) and isinstance(X[0], Mapping))
        if not reset and hasattr(self, "feature_names_in_") and (named or _has_text_names(X)):
            return rows  # further columns are ignored; one that is missing is an error that names it
        try:
            validate_data(self, pd.DataFrame(columns=rows.columns) if named else X, reset=reset, skip_check_array=True)
        except ValueError as error:
            raise DataError(str(error)) from None
        return rows if reset else Rows(rows.frame.set_axis(self.schema_.names, axis=1))

    def _table(self, X: Any) -> Table:
        """The rows as this model codes them; a Table that its coder made is taken as it is."""
        check_is_fitted(self)
        return X if isinstance(X, Table) else self.coder_.table(self._rows(X, reset=False))

    def _empty(self, n_rows: int, covariates: Any = None) -> Table:
        names = [c.name for c in self.schema_.columns]
        frame = pd.DataFrame(index=range(n_rows), columns=names, dtype=object)
        if self.schema_.covariates:
            given = covariate_frame(self.schema_, covariates, n_rows)
            frame = frame.assign(**{str(name): given[name] for name in given})
        return self.coder_.table(frame)

    def _filled(self, X: Any, rows: Rows, coded: np.ndarray, fill_limits: bool) -> pd.DataFrame:
        filled = self.coder_.fill(rows, coded, fill_limits)
        return filled.set_axis(X.columns, axis=1) if isinstance(X, pd.DataFrame) else filled

    def _in_own_units(self, cells: np.ndarray, table: Table) -> pd.DataFrame:
        names = [column.name for column in self.schema_.used]
        return pd.DataFrame(cells - self.coder_.log_units, columns=names, index=table.index)

    # --- answers ---

    def transform(self, X: Any, return_std: bool = False) -> Any:
        """Latent means [N Q]; with return_std also their sd. A row's answer does not depend on the other rows."""
        mean, sd = positions(self.predictor_, self._table(X))
        return (mean, sd) if return_std else mean

    def group_probabilities(self, X: Any) -> np.ndarray:
        """p(group | the row's observed cells) [N K], the largest group first, as in `group_weights_`."""
        return group_probabilities(self.predictor_, self._table(X))

    def inverse_transform(self, X: Any, covariates: Any = None) -> pd.DataFrame:
        """The table expected at latent positions [N Q], in the columns' own units and levels.

        A model with covariates needs theirs: a frame of N rows, or one value of each for all rows.
        """
        check_is_fitted(self)
        x = np.asarray(X, float)
        if x.ndim != 2 or x.shape[1] != self._n_features_out:
            raise ValueError(f"latent positions have {self._n_features_out} columns; got an array of shape {x.shape}")
        if not np.isfinite(x).all():
            raise ValueError(f"latent positions, row {int(np.argmin(np.isfinite(x).all(1)))}: not finite; leave it out")
        index = X.index if isinstance(X, pd.DataFrame) else None
        return self.coder_.frame(values_at(self.predictor_, self._empty(len(x), covariates), x), index)

    def counterfactual(self, X: Any, covariates: Any, level: float | None = None, n_draws: int = 256) -> Any:
        """The table expected of the same rows with other covariates: {"site": "B"}, or a frame of as many rows.

        Positions are those of the rows as they are. With a level such as 0.95 also the lower and upper ends of the
        interval of every expected value; columns of levels have none.
        """
        table = self._table(X)
        check_count("n_draws", n_draws)
        if level is not None and not 0 < level < 1:
            raise ValueError(f"level={level!r} must lie between 0 and 1")
        own = None if isinstance(X, Table) else self._rows(X, reset=False)
        given = covariate_frame(self.schema_, covariates, len(table.seen), own)
        other = replace(table, covariates=self.coder_.covariate_values(given))
        ends = () if level is None else (0.5 - level / 2, 0.5 + level / 2)
        found = expected_at(self.predictor_, table, other, n_draws, ends)
        frames = [self.coder_.frame(part, table.index) for part in found]
        for frame in frames[1:]:
            frame[[column.name for column in self.schema_.used if column.levels]] = np.nan
        return frames[0] if level is None else tuple(frames)

    def impute(self, X: Any, fill_limits: bool = False, expected_levels: bool = False) -> pd.DataFrame:
        """The table with its gaps filled; observed cells and columns set aside come back untouched.

        With fill_limits, censored cells ("<0.5") become numbers within their bounds as well. With expected_levels, gaps
        in counts and in columns whose levels are numbers get their expected value (of least squared error) instead of a
        whole number or a level.
        """
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        table = self.coder_.table(rows)
        filled = self._filled(X, rows, fill_gaps_with(self.predictor_, self.second_stage_, table), fill_limits)
        return self._with_expected_levels(filled, rows, table) if expected_levels else filled

    def _with_expected_levels(self, filled: pd.DataFrame, rows: Rows, table: Table) -> pd.DataFrame:
        expected = expected_gaps(self.predictor_, self.second_stage_, table)
        for d, column in enumerate(self.schema_.used):
            counts = not column.levels and KINDS[column.kind].whole
            if counts or (column.levels and all(isinstance(level, Real) for level in column.levels)):
                levels = np.array(column.levels, float)
                own = cell_bounds(table)[0][:, d]
                known, means = (own, expected[d][:, 0]) if counts else (levels[own.astype(int)], expected[d] @ levels)
                numbers = np.where(table.seen[:, d], known, means)
                filled.isetitem(rows.columns.get_loc(column.name), numbers)  # type: ignore[arg-type]  # names are unique
        return filled

    def fit_impute(self, X: Any, fill_limits: bool = False) -> pd.DataFrame:
        """Fit to a table and fill its gaps. Parameters left at their defaults are set as that needs them:
        n_components="auto", kernel="linear+rbf", second_stage="trees"; second_stage="none" stays."""
        defaults = type(self)().get_params(deep=False)
        left = {name: value for name, value in FOR_IMPUTATION.items() if getattr(self, name) == defaults[name]}
        return self.set_params(**left).fit(X).impute(X, fill_limits)

    def impute_draws(
        self,
        X: Any,
        n_draws: int = 5,
        random_state: Any = None,
        fill_limits: bool = False,
        delta: Mapping[str, Any] | None = None,
    ) -> list[pd.DataFrame]:
        """Completed tables for multiple imputation: each fills all gaps of a row by one joint draw of x, f and y.

        With fill_limits, censored cells are drawn within their bounds as well. With delta, what fills a column's gaps
        is moved, as if gaps were not at random: ``{"crp": 0.5}`` by the column's own units, ``{"died": 0.5}`` by the
        log odds of yes (in probits for ordered levels), ``{"stage": {"late": 0.5}}`` by the log odds of a level.
        """
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        table = self.coder_.table(rows)
        check_count("n_draws", n_draws)
        seed, shift = as_seed(random_state), make_shift(self.predictor_.layout, self.coder_, delta or {})
        drawn = draw_gaps_given(self.predictor_, self.second_stage_, table, int(n_draws), seed, shift.functions)
        draws = np.concatenate([np.stack(list(chunk.draws)) for chunk in drawn], axis=1)
        coded = np.where(np.isnan(draws), cell_bounds(table)[0], draws)
        return [self._filled(X, rows, shift_gaps(self.coder_, table, one, shift), fill_limits) for one in coded]

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
        drawn = draw_gaps_given(self.predictor_, self.second_stage_, table, int(n_draws), as_seed(random_state))
        return describe_gaps(self.coder_, table, drawn, list(levels), self.pit_maps_)

    def level_probabilities(self, X: Any, column: Any) -> pd.DataFrame:
        """p(level | the row's observed cells) for every row and level of one column; the column's own cells count."""
        table = self._table(X)
        names = [used.name for used in self.schema_.used]
        if column not in names:
            raise DataError(f"column {column!r} is not used by this model; used: {names}")
        used = self.schema_[column]
        if not used.levels:
            raise DataError(f"column {column!r} is {used.kind} and has no levels; describe_gaps gives its quantiles")
        shares = expected_gaps(self.predictor_, self.second_stage_, table)[names.index(column)]
        return pd.DataFrame(shares[:, : len(used.levels)], columns=list(used.levels), index=table.index)

    def score_samples(self, X: Any) -> np.ndarray:
        """A lower bound on log p(observed cells) of every row, importance-weighted, in the columns' own units."""
        table = self._table(X)
        return log_density(self.predictor_, table) - table.seen @ self.coder_.log_units

    def effective_sample_size(self, X: Any) -> np.ndarray:
        """Effective number (of 64) of importance-weighted draws of each row's position [N].

        Near 1, the encoder misplaces the row and its answers are rough; `refine=True` helps.
        """
        return effective_sample_size(self.predictor_, self._table(X))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`."""
        return float(self.score_samples(X).mean())

    def score_cells(self, X: Any, truth: Any) -> pd.DataFrame:
        """log p(cell | the cells in X) for every cell that `truth` has and X has not; NaN elsewhere, own units."""
        shown, complete = self._table(X), self._table(truth)
        if len(complete.seen) != len(shown.seen):
            raise DataError(f"truth has {len(complete.seen)} rows where X has {len(shown.seen)}; give the same rows")
        cells = gap_log_density(self.predictor_, self.second_stage_, shown, complete)
        return self._in_own_units(np.where(shown.seen, np.nan, cells), shown)

    def score_reconstruction(self, X: Any) -> pd.DataFrame:
        """E log p of every observed cell under its own row's q(x), NaN at gaps, own units: the paper's score, which
        shows the encoder what is scored."""
        table = self._table(X)
        return self._in_own_units(reconstruction(self.predictor_, table), table)

    def sample(self, n_samples: int = 1, random_state: Any = None, covariates: Any = None) -> pd.DataFrame:
        """New rows drawn from the model, x from its prior, in the columns' own units and levels.

        A model with covariates needs theirs, as `inverse_transform` does.
        """
        check_is_fitted(self)
        check_count("n_samples", n_samples)
        table = self._empty(n_samples, covariates)
        return self.coder_.frame(draw_rows(self.predictor_, table, as_seed(random_state)))

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
        """Write the fitted model into a folder: arrays as safetensors, the rest as JSON, both hashed.

        The trees of a second stage hold values of single training cells; a warning says so.
        """
        check_is_fitted(self)
        if self.second_stage_ is not None:
            warnings.warn(CELLS_IN_TREES, UserWarning, stacklevel=2)
        features = getattr(self, "feature_names_in_", range(self.n_features_in_))
        return save_fitted(folder, self._fitted, self.get_params(), features)


def _has_text_names(X: Any) -> bool:
    """Whether the table, of any make, names its columns."""
    return hasattr(X, "columns") and all(isinstance(name, str) for name in X.columns)


def load(folder: str | Path, allow_imports: Iterable[str] = ()) -> PluriGP:
    """Open a model that `PluriGP.save` wrote; a family from outside is imported only from a module named here."""
    arrays, manifest = read_model(folder)
    import_families(manifest.get("families", {}), allow_imports)
    with naming(Path(folder) / MANIFEST):
        coder = checked_coder(manifest, PluriGP().get_params())
    est = PluriGP().set_params(**manifest["params"])
    with naming(Path(folder) / ARRAYS):
        fitted = load_fitted(coder, arrays, manifest)
    est.schema = fitted.coder.schema if manifest["schema_declared"] else None
    est.n_features_in_ = int(manifest["n_features_in"])
    if manifest["feature_names_in"]:
        est.feature_names_in_ = np.asarray(manifest["feature_names_in"], dtype=object)
    est._store(fitted)
    return est
