"""What the tests of the experiments share: their families are forgotten afterwards, and a small table."""

import numpy as np
import pandas as pd
import pytest

from plurigp.data import KINDS, Column, Schema
from plurigp.likelihoods import registry
from plurigp_paper.panel import PanelData


@pytest.fixture(autouse=True)
def only_known_families():
    """Kinds that a test declares are gone after it."""
    tables = (KINDS, registry.LIKELIHOODS, registry.OUTSIDE)
    before = [dict(table) for table in tables]
    yield
    for table, held in zip(tables, before, strict=True):
        table.clear()
        table.update(held)


@pytest.fixture
def small(rng: np.random.Generator) -> PanelData:
    """80 rows around one factor: two yes/no columns first, then two real ones."""
    n = 80
    factor = rng.normal(size=n)
    table = pd.DataFrame(
        {
            "a": factor + rng.normal(size=n) > 0,
            "b": factor - rng.normal(size=n) > 0.5,
            "c": 5 + 2 * factor + 0.4 * rng.normal(size=n),
            "d": -factor + 0.4 * rng.normal(size=n),
        }
    )
    kinds = {"a": "bernoulli", "b": "bernoulli", "c": "gaussian", "d": "gaussian"}
    levels = {"bernoulli": (False, True), "gaussian": ()}
    columns = [Column(name, kind, levels=levels[kind]) for name, kind in kinds.items()]
    return PanelData(table, Schema(tuple(columns)))
