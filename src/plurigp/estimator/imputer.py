"""PluriImputer: the gaps of a table filled inside scikit-learn's pipelines."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types as pdt
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from plurigp.data import Schema
from plurigp.estimator.parameters import FOR_IMPUTATION
from plurigp.estimator.pluri_gp import PluriGP

LEVELS = ("expected", "likeliest")


class PluriImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Fills the gaps of numeric and mixed tables by a PluriGP with its second stage; see there for the parameters.

    Parameters
    ----------
    levels : what fills a gap of a count or of a column whose levels are numbers, such as 0 and 1: "expected", the mean,
        as scikit-learn's imputers do, or "likeliest", a whole number or one of the levels. Levels that are text are
        always the likeliest.
    add_indicator : append a column of zeros and ones for every column that had gaps in fit: 1 where it has one.

    The fitted PluriGP is `model_`: ask it for intervals, draws and probabilities.
    """

    def __init__(
        self,
        n_components: int | str = FOR_IMPUTATION["n_components"],
        *,
        schema: Mapping[str, Any] | Schema | str | Path | None = None,
        kernel: str = FOR_IMPUTATION["kernel"],
        second_stage: str = FOR_IMPUTATION["second_stage"],
        levels: str = "expected",
        add_indicator: bool = False,
        max_epochs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.schema = schema
        self.kernel = kernel
        self.second_stage = second_stage
        self.levels = levels
        self.add_indicator = add_indicator
        self.max_epochs = max_epochs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> "PluriImputer":
        """Learn a map, and what it leaves, from a table with gaps."""
        if self.levels not in LEVELS:
            raise ValueError(f"levels={self.levels!r} is not one of {', '.join(LEVELS)}")
        validate_data(self, X, skip_check_array=True)
        own = ("n_components", "schema", "kernel", "second_stage", "max_epochs", "random_state", "verbose")
        self.model_ = PluriGP(**{name: getattr(self, name) for name in own}).fit(X)
        gaps = self._gaps(X)
        self.indicator_features_ = np.flatnonzero(gaps.any(0)) if self.add_indicator else np.array([], int)
        return self

    def transform(self, X: Any) -> Any:
        """The table with its gaps filled: a frame for a frame, an array for an array."""
        check_is_fitted(self)
        validate_data(self, X, reset=False, skip_check_array=True)
        filled = self.model_.impute(X, expected_levels=self.levels == "expected")
        names = self.get_feature_names_out()
        gaps = self._gaps(X)[:, self.indicator_features_]
        out = pd.concat([filled, pd.DataFrame(gaps.astype(float), index=filled.index)], axis=1).set_axis(names, axis=1)
        if isinstance(X, pd.DataFrame):
            return out
        return out.to_numpy(float if all(pdt.is_numeric_dtype(kind) for kind in out.dtypes) else object)

    def _gaps(self, X: Any) -> Any:
        """Which cells are gaps [N D], values that the schema declares missing included."""
        schema = self.model_.schema_
        return schema.with_gaps(pd.DataFrame(X).set_axis(list(schema.names), axis=1)).isna().to_numpy()

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The columns' names, and missingindicator_<name> for every indicator."""
        names = super().get_feature_names_out(input_features)
        return np.array([*names, *(f"missingindicator_{names[d]}" for d in self.indicator_features_)], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = PluriGP().__sklearn_tags__().input_tags
        tags.transformer_tags.preserves_dtype = []
        return tags
