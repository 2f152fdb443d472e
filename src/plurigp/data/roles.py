"""What columns are in the model besides their kinds: how much they count, alone or by views."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from plurigp.core.text import at, nearest, show
from plurigp.core.types import DataError
from plurigp.data.column import checked_settings
from plurigp.data.schema import Schema


def with_roles(schema: Schema, given: Mapping[str, Any]) -> Schema:
    """The schema with the roles that PluriGP's parameters give to columns."""
    return _with_weights(schema, given.get("column_weights") or {}, given.get("views") or {})


def _with_weights(schema: Schema, column_weights: Mapping[str, Any], views: Mapping[str, Any]) -> Schema:
    """A column in a view counts times the weight that balances its view."""
    given = {name: _checked_weight(schema, name, weight) for name, weight in column_weights.items()}
    balance = balanced_weights(schema, views)
    weights = {name: given.get(name, 1.0) * balance.get(name, 1.0) for name in {**given, **balance}}
    columns = (replace(c, weight=weights[c.name]) if c.name in weights else c for c in schema)
    return Schema(tuple(columns)) if weights else schema


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
