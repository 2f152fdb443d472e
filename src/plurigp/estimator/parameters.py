"""What people may set on PluriGP; anything else is an error that names the parameter."""

from collections.abc import Mapping
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
    "dtype": ("float32", "float64"),
}
SWITCHES = ("calibrate", "refine")
COUNTS = ("n_components", "n_inducing", "batch_size", "n_init")
AMOUNTS = {"kl_weight": "at least 0", "tol": "at least 0", "learning_rate": "above 0"}


def check_parameters(given: Mapping[str, Any]) -> None:
    """Every parameter but the schema, which is checked against the table."""
    parse_kernel(str(given["kernel"]))
    for name, known in CHOICES.items():
        if not isinstance(given[name], str) or given[name] not in known:
            raise ValueError(f"{name}={given[name]!r} is not one of {', '.join(known)}")
    for name in COUNTS:
        check_count(name, given[name])
    if given["max_epochs"] is not None:
        check_count("max_epochs", given["max_epochs"])
    for name, low in AMOUNTS.items():
        value = given[name]
        if not _is_number(value, Real) or not 0 <= value < np.inf or (low == "above 0" and value == 0):
            raise ValueError(f"{name}={value!r} must be a number {low}")
    weight = given["kl_covariance_weight"]
    if not _is_number(weight, Real) or not 0 < weight <= 1:
        raise ValueError(f"kl_covariance_weight={weight!r} must be a number above 0 and of at most 1")
    if not _is_number(given["hiding"], Real) or not 0 <= given["hiding"] < 1:
        raise ValueError(f"hiding={given['hiding']!r} must be a number of at least 0 and below 1")
    for name in SWITCHES:
        if not isinstance(given[name], bool | np.bool_):
            raise ValueError(f"{name}={given[name]!r} must be True or False")
    if given["device"] is not None and not isinstance(given["device"], str):
        raise ValueError(f"device={given['device']!r} must be the name of a platform or None")
    _check_quadrature(given["n_quadrature"])


def _check_quadrature(given: Any) -> None:
    if isinstance(given, Mapping):
        check_kinds("n_quadrature", given)
        for kind, points in given.items():
            check_count(f"n_quadrature[{kind!r}]", points)
    elif given is not None:
        check_count("n_quadrature", given)


def check_count(name: str, value: Any) -> None:
    """A whole number of at least one."""
    if not _is_number(value, Integral) or value < 1:
        raise ValueError(f"{name}={value!r} must be a whole number of at least 1")


def _is_number(value: object, of: type) -> bool:
    return isinstance(value, of) and not isinstance(value, bool)
