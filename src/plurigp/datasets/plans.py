"""A column to be drawn, and what it takes to draw one of a kind."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

EDGE = 1e-9  # a beta draw may underflow to 0 or round to 1; it is kept this far inside


@dataclass(frozen=True, eq=False)
class Plan:
    """One column to be drawn: its kind, b and s of its H functions, its theta, and levels or trials if it has any."""

    name: str
    kind: str
    bias: np.ndarray  # [H]
    scale: np.ndarray  # [H]
    theta: dict[str, Any] = field(default_factory=dict)
    levels: tuple = ()
    trials: int | None = None


@dataclass(frozen=True)
class Family:
    """A kind to simulate: `plan` draws a column's parameters, `sample` its cells from f [N H]."""

    plan: Callable[[np.random.Generator, str, int, int], Plan]  # (rng, name, n_levels, trials)
    sample: Callable[[np.random.Generator, np.ndarray, Plan], np.ndarray]
    dtype: str
