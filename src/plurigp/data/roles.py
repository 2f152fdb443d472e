"""What columns are in the model besides their kinds: covariates, and how much they count, alone or by views."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from plurigp.core.text import at, listing, nearest, show
from plurigp.core.types import DataError
from plurigp.data.column import ASIDE, Column, checked_settings
from plurigp.data.kinds import PLAIN_LEVELS, PLAIN_NUMBERS, kind_of
from plurigp.data.rows import Rows
from plurigp.data.schema import Schema, check_names


def with_roles(schema: Schema, given: Mapping[str, Any], rows: Rows) -> Schema:
    """The schema with the roles that PluriGP's parameters give to columns.

    With covariates_missing="model", a covariate that has gaps in these rows is modelled as any other column.
    """
    named = set(given.get("covariates") or ())
    for name in named:
        _check_known(schema, name, "covariates")
    columns = [replace(c, covariate=True) if c.name in named else c for c in schema]
    for column in columns:
        _check_covariate(column)
    if given.get("covariates_missing", "error") == "model":
        gaps = {c.name for c in columns if c.covariate and not rows.column_cells(c).seen.all()}
        columns = [replace(c, covariate=False) if c.name in gaps else c for c in columns]
    schema = Schema(tuple(columns))
    return _with_weights(schema, given.get("column_weights") or {}, given.get("views") or {})


def _check_covariate(column: Column) -> None:
    if column.covariate and column.kind == ASIDE:
        reason = f" ({column.reason})" if column.reason else ""
        finding = f"{at(column.name)}: is set aside{reason} and no covariate"
        raise DataError(f"{finding}; declare its kind or do not name it.")
    if column.covariate and (kind_of(column).has_bounds or column.companion is not None):
        finding = f"{at(column.name)}: is {column.kind}, whose cells are not single known values, and no covariate"
        raise DataError(f'{finding}; declare it "{PLAIN_NUMBERS}" or "{PLAIN_LEVELS}".')


def _with_weights(schema: Schema, column_weights: Mapping[str, Any], views: Mapping[str, Any]) -> Schema:
    """A column in a view counts times the weight that balances its view."""
    given = {name: _checked_weight(schema, name, weight) for name, weight in column_weights.items()}
    balance = balanced_weights(schema, views)
    weights = {name: given.get(name, 1.0) * balance.get(name, 1.0) for name in {**given, **balance}}
    columns = (replace(c, weight=weights[c.name]) if c.name in weights else c for c in schema)
    return Schema(tuple(columns))


def balanced_weights(schema: Schema, views: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """{column: weight}: every view counts as the one with fewest columns does, whose own keep the weight 1.

    No weight exceeds 1, so that no cell counts as more than was observed.
    """
    used = {column.name for column in schema.used}
    members: dict[str, list[str]] = {}
    owner: dict[str, str] = {}
    for view, names in views.items():
        for name in names:
            _check_known(schema, name, f"view {show(view)}")
            if name in owner:
                both = f"{show(owner[name])} and {show(view)}"
                raise DataError(f"{at(name)}: is in views {both}; leave it in one of them.")
            owner[name] = view
        members[view] = [name for name in names if name in used]
        if not members[view]:
            raise DataError(f"view {show(view)}: none of its columns is used by the model; leave the view out.")
    fewest = min(map(len, members.values()), default=0)
    return {name: fewest / len(names) for names in members.values() for name in names}


def _checked_weight(schema: Schema, name: str, weight: Any) -> float:
    _check_known(schema, name, "column_weights")
    return float(checked_settings(name, {"weight": weight})["weight"])


def _check_known(schema: Schema, name: str, source: str) -> None:
    if name not in schema:
        hint = nearest(name, schema.names)
        raise DataError(f"{source} names {at(name)}, which is not in the table; correct the name.{hint}")


def covariate_frame(schema: Schema, given: Any, n_rows: int, own: Rows | None = None) -> pd.DataFrame:
    """Covariates of n_rows, from a frame of as many rows or one value of each for all; others as in `own`, if given."""
    names = [column.name for column in schema.covariates]
    if not names:
        raise DataError("this model has no covariates; fit it with covariates=[...] to adjust for them.")
    if given is None:
        raise DataError(f"this model needs its covariates ({listing(map(show, names))}); pass covariates=...")
    values: dict[str, Any] = {str(name): given[name] for name in given}
    for name in values:
        if name in schema and name not in names:
            known = listing(map(show, names))
            raise DataError(f"{at(name)}: is no covariate of this model; its covariates: {known}. Correct the name.")
    check_names(values, tuple(names), "covariates")
    columns = {}
    for name in names:
        if name not in values and own is None:
            raise DataError(f"{at(name)}: is a covariate of this model without a value; add it to covariates.")
        cells = values[name] if own is None or name in values else own[name]
        if isinstance(cells, str) or np.ndim(cells) == 0:
            columns[name] = pd.Series([cells] * n_rows)
        elif len(cells) != n_rows:
            raise DataError(f"{at(name)}: covariates have {len(cells)} rows where {n_rows} are asked; give as many.")
        else:
            columns[name] = pd.Series(cells).reset_index(drop=True)
    return pd.DataFrame(columns)
