"""What people may set on PluriGP; anything else is an error that names the parameter."""

from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from plurigp.inference.encoder import ENCODERS
from plurigp.inference.gp.kernels import parse_kernel
from plurigp.likelihoods.registry import check_kinds

CHOICES = {
    "encoder": ENCODERS,
    "expectation": ("quadrature", "sampling"),
    "optimizer": ("natural", "adam"),
    "start": ("informed", "random"),
    "second_stage": ("auto", "none", "trees"),
    "dtype": ("float32", "float64"),
    "covariates_missing": ("error", "model"),
}
MAX_QUADRATURE = 200  # points, beyond which rules are no more exact and their computation overflows
FOR_IMPUTATION: dict[str, Any] = {
    "n_components": "auto",
    "kernel": "linear+rbf",
    "second_stage": "trees",
}  # what fills gaps best
RANGES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "kl_weight": (lambda value: 0 <= value < np.inf, "at least 0"),
    "tol": (lambda value: 0 <= value < np.inf, "at least 0"),
    "learning_rate": (lambda value: 0 < value < np.inf, "above 0"),
    "kl_covariance_weight": (lambda value: 0 < value <= 1, "above 0 and of at most 1"),
    "hiding": (lambda value: 0 <= value < 1, "of at least 0 and below 1, or 'auto'"),
}


def check_parameters(given: Mapping[str, Any]) -> None:
    """Every parameter but the schema, which is checked against the table."""
    parse_kernel(str(given["kernel"]))
    for name, known in CHOICES.items():
        if not isinstance(given[name], str) or given[name] not in known:
            raise ValueError(f"{name}={given[name]!r} is not one of {', '.join(known)}")
    for name in ("n_groups", "n_inducing", "batch_size", "n_init", "n_shards"):
        check_count(name, given[name])
    for name, otherwise in {"n_components": "auto", "max_epochs": None, "pool_rare_levels": 0}.items():
        if given[name] != otherwise:
            check_count(name, given[name])
    for name, (allows, text) in RANGES.items():
        if name == "hiding" and isinstance(given[name], str) and given[name] == "auto":
            continue
        if not _is_number(given[name], Real) or not allows(given[name]):
            raise ValueError(f"{name}={given[name]!r} must be a number {text}")
    for name in ("calibrate", "refine"):
        if not isinstance(given[name], bool | np.bool_):
            raise ValueError(f"{name}={given[name]!r} must be True or False")
    if given["device"] is not None and not isinstance(given["device"], str):
        raise ValueError(f"device={given['device']!r} must be the name of a platform or None")
    _check_roles(given)
    if isinstance(given["n_quadrature"], Mapping):
        check_kinds("n_quadrature", given["n_quadrature"])
        for kind, points in given["n_quadrature"].items():
            _check_points(f"n_quadrature[{kind!r}]", points)
    elif given["n_quadrature"] is not None:
        _check_points("n_quadrature", given["n_quadrature"])


def _check_points(name: str, value: Any) -> None:
    check_count(name, value)
    if value > MAX_QUADRATURE:
        raise ValueError(f"{name}={value!r} must be at most {MAX_QUADRATURE}")


def _check_roles(given: Mapping[str, Any]) -> None:
    """Columns' roles by their form; whether the columns are there is checked against the table."""
    for name, example in {"column_weights": '{"lab": 0.5}', "views": '{"labs": ["crp", "albumin"]}'}.items():
        if given[name] is not None and not isinstance(given[name], Mapping):
            raise ValueError(f"{name}={given[name]!r} must be a mapping such as {example}, or None")
    lists = {f"views[{view!r}]": names for view, names in (given["views"] or {}).items()}
    lists |= {} if given["covariates"] is None else {"covariates": given["covariates"]}
    for name, columns in lists.items():
        names = [] if isinstance(columns, str) or not isinstance(columns, Iterable) else list(columns)
        if not names or not all(isinstance(column, str) for column in names):
            raise ValueError(f"{name}={columns!r} must be a list of column names")


def check_count(name: str, value: Any) -> None:
    """A whole number of at least one."""
    if not _is_number(value, Integral) or value < 1:
        raise ValueError(f"{name}={value!r} must be a whole number of at least 1")


def _is_number(value: object, of: type) -> bool:
    return isinstance(value, of) and not isinstance(value, bool)
