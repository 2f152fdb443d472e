"""No small count leaves a study: raised, pooled or left out."""

import numpy as np
import pandas as pd
import pytest

from plurigp.data import Column, Schema
from plurigp.data.rows import CellBounds
from plurigp.study.findings.characterise import characteristic_frame, missingness_frame
from plurigp.study.findings.disclosure import pooled_bins, public_detail, raised, without_few_cells


def flags(yes: int, n: int) -> np.ndarray:
    return np.arange(n) < yes


@pytest.mark.parametrize(
    ("inside", "outside", "shown"),
    [
        ((2, 40), (30, 60), (5, 30)),  # few say yes
        ((38, 40), (30, 60), (35, 30)),  # few say no
        ((30, 40), (1, 60), (30, 5)),
        ((0, 40), (30, 60), (0, 30)),  # nobody is no patient
        ((20, 40), (30, 60), (20, 30)),
        ((1, 40), (2, 60), None),  # three in all
        ((40, 40), (57, 60), None),
        ((3, 7), (30, 60), None),  # too small to raise both yes and no
    ],
)
def test_small_counts_are_raised_or_not_shown(inside, outside, shown):
    found = raised(flags(*inside), flags(*outside), 5)
    assert (None if found is None else tuple(int(side.sum()) for side in found)) == shown


def test_everything_is_shown_where_one_row_is_enough():
    found = raised(flags(1, 40), flags(2, 60), 1)
    assert [int(side.sum()) for side in found] == [1, 2]


def levels(counts: dict[str, int]) -> tuple[Column, CellBounds]:
    places = np.repeat(np.arange(len(counts)), list(counts.values())).astype(float)
    return Column("ward", "categorical", f"{len(counts)} levels: a, b", tuple(counts)), CellBounds(places, places)


def test_rare_levels_have_no_line_and_no_name():
    column, cells = levels({"north": 40, "south": 56, "hospice": 3, "cell": 1})
    group = np.arange(len(cells)) % 2 + 1
    lines = characteristic_frame(Schema((column,)), {"ward": cells}, lambda _: group, 2, "all")
    assert set(lines["level"]) == {"north", "south"}
    all_of_them = characteristic_frame(Schema((column,)), {"ward": cells}, lambda _: group, 2, "all", 1)
    assert set(all_of_them["level"]) == set(column.levels)
    detail, reason = public_detail(column, cells, 5)
    assert detail == "'north', 'south' and 2 levels of fewer than 5 rows"
    assert reason == "4 levels"
    assert public_detail(column, cells, 1) == ("'north', 'south', 'hospice', 'cell'", column.reason)
    assert public_detail(*levels({"a": 3, "b": 4}), 5)[0] == "2 levels of fewer than 5 rows"


def test_a_share_of_gaps_tells_of_five_rows_at_least():
    cells = CellBounds(*[np.where(np.isin(np.arange(100), [0, 2, 4, *range(1, 80, 2)]), np.nan, 1.0)] * 2)
    column = Column("lab", "gaussian")
    group = np.arange(100) % 2 + 1
    shares = missingness_frame(Schema((column,)), {"lab": cells}, group, 2).set_index("subtype")
    assert shares.loc[1, "inside"] == 5 / 50  # three gaps
    assert shares.loc[2, "inside"] == 40 / 50


def test_bins_of_few_cells_are_pooled_by_kind():
    table = pd.DataFrame(
        {
            "column": ["a", "b", "c", "d"],
            "kind": ["bernoulli", "bernoulli", "bernoulli", "ordinal"],
            "predicted": [0.12, 0.14, 0.15, 0.5],
            "observed": [0.0, 1.0, 0.2, 0.5],
            "cells": [2, 3, 10, 4],
        }
    )
    found = pooled_bins(table, 5)
    assert found["column"].tolist() == ["c", ""]
    assert found["cells"].tolist() == [10, 5]
    assert found["observed"].tolist() == [0.2, 0.6]
    pd.testing.assert_frame_equal(pooled_bins(table, 1), table)
    assert len(pooled_bins(table.tail(1), 5)) == 0


def test_scores_of_few_cells_are_not_known():
    scores = pd.DataFrame(
        {"column": ["a", "b"], "cells": [4, 5], "model": 1.0, "marginal": 2.0, "gain": 3.0, "se": 4.0}
    )
    found = without_few_cells(scores, 5)
    assert found["gain"].isna().tolist() == [True, False]
    assert found["cells"].tolist() == [4, 5]
