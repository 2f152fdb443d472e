"""What people may set on PluriGP; anything else is an error that names the parameter."""

from collections.abc import Callable, Mapping
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
    "second_stage": ("none", "trees"),
    "dtype": ("float32", "float64"),
}
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
    "hiding": (lambda value: 0 <= value < 1, "of at least 0 and below 1"),
}


def check_parameters(given: Mapping[str, Any]) -> None:
    """Every parameter but the schema, which is checked against the table."""
    parse_kernel(str(given["kernel"]))
    for name, known in CHOICES.items():
        if not isinstance(given[name], str) or given[name] not in known:
            raise ValueError(f"{name}={given[name]!r} is not one of {', '.join(known)}")
    for name in ("n_groups", "n_inducing", "batch_size", "n_init"):
        check_count(name, given[name])
    for name, chosen in {"n_components": "auto", "max_epochs": None}.items():
        if given[name] != chosen:
            check_count(name, given[name])
    for name, (allows, text) in RANGES.items():
        if not _is_number(given[name], Real) or not allows(given[name]):
            raise ValueError(f"{name}={given[name]!r} must be a number {text}")
    for name in ("calibrate", "refine"):
        if not isinstance(given[name], bool | np.bool_):
            raise ValueError(f"{name}={given[name]!r} must be True or False")
    if given["device"] is not None and not isinstance(given["device"], str):
        raise ValueError(f"device={given['device']!r} must be the name of a platform or None")
    if isinstance(given["n_quadrature"], Mapping):
        check_kinds("n_quadrature", given["n_quadrature"])
        for kind, points in given["n_quadrature"].items():
            check_count(f"n_quadrature[{kind!r}]", points)
    elif given["n_quadrature"] is not None:
        check_count("n_quadrature", given["n_quadrature"])


def check_count(name: str, value: Any) -> None:
    """A whole number of at least one."""
    if not _is_number(value, Integral) or value < 1:
        raise ValueError(f"{name}={value!r} must be a whole number of at least 1")


def _is_number(value: object, of: type) -> bool:
    return isinstance(value, of) and not isinstance(value, bool)
