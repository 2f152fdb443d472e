"""No small count leaves a study: changed, pooled or left out."""

import numpy as np
import pandas as pd
import pytest

from plurigp.data import Column, Schema
from plurigp.data.rows import CellBounds
from plurigp.study.findings.characterise import characteristic_frame, missingness_frame
from plurigp.study.findings.disclosure import pooled_bins, protected_counts, public_detail, without_few_cells


@pytest.mark.parametrize(
    ("inside", "outside", "shown"),
    [
        ((2, 40), (30, 60), (5, 30)),  # few say yes where many were expected
        ((38, 40), (30, 60), (35, 30)),  # few say no
        ((30, 40), (1, 60), (30, 5)),
        ((0, 40), (30, 60), (0, 30)),  # nobody is no patient
        ((20, 40), (30, 60), (20, 30)),
        ((1, 40), (2, 60), None),  # three in all
        ((40, 40), (57, 60), None),
        ((3, 7), (30, 60), None),  # too few to say yes or no
        ((1, 100), (4, 400), None),  # as five of each these would differ, and they do not
        ((4, 20), (6, 400), None),  # more than expected: five would be more still
    ],
)
def test_small_counts_are_shown_as_five_where_more_were_expected_or_not_at_all(inside, outside, shown):
    group = np.repeat([1, 2], [inside[1], outside[1]])
    flags = np.concatenate([np.arange(n) < yes for yes, n in (inside, outside)]).astype(float)
    column = Column("smoker", "bernoulli", levels=("no", "yes"))
    lines = characteristic_frame(Schema((column,)), {"smoker": CellBounds(flags, flags)}, lambda _: group, 2, "all")
    counts = [(round(line.inside * line.n_inside), round(line.outside * line.n_outside)) for line in lines.itertuples()]
    assert counts == ([] if shown is None else [shown, shown[::-1]])


def released(counts: np.ndarray, least: int) -> pd.DataFrame:
    """The lines of a column of which each group [K] has so many rows of every level [K L]."""
    K, L = counts.shape
    places = np.repeat(np.tile(np.arange(L), K), counts.ravel()).astype(float)
    group = np.repeat(np.arange(1, K + 1), counts.sum(1))
    column = Column("ward", "categorical", levels=tuple(f"level {place}" for place in range(L)))
    lines = characteristic_frame(
        Schema((column,)), {"ward": CellBounds(places, places)}, lambda _: group, K, "all", least
    )
    lines["yes"] = (lines["inside"] * lines["n_inside"]).round().astype(int)
    lines["yes_outside"] = (lines["outside"] * lines["n_outside"]).round().astype(int)
    return lines


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([[50, 47, 3], [40, 30, 30]], [[52, 47, 1], [40, 30, 30]]),  # the group's size less the other levels
        ([[60, 40], [70, 30], [97, 3]], [[60, 40], [70, 30], [99, 1]]),  # all rows less the other groups
        ([[60, 40], [70, 30], [96, 4]], [[60, 40], [70, 30], [98, 2]]),
    ],
)
def test_no_sum_and_no_difference_of_what_is_shown_tells_a_small_count(first, second):
    """Two tables that differ in a count below five, and in the commonest level of its group, look the same."""
    shown, other = (released(np.array(counts), 5) for counts in (first, second))
    told = ["subtype", "level", "n_inside", "n_outside", "inside", "outside", "estimate", "p"]
    pd.testing.assert_frame_equal(shown[told], other[told])
    for lines in (shown, other):
        cells = lines[["yes", "yes_outside"]].to_numpy()
        rest = lines[["n_inside", "n_outside"]].to_numpy() - cells
        assert not np.isin([cells, rest], [1, 2, 3, 4]).any()


def test_groups_keep_their_sizes_and_large_counts_and_come_closer_to_each_other(rng):
    for _ in range(300):
        counts = rng.integers(0, rng.choice([4, 12, 60]), (rng.integers(2, 6), rng.integers(2, 7)))
        shown = protected_counts(counts, 5)
        small = (counts > 0) & (counts < 5)
        np.testing.assert_array_equal(shown.sum(1), counts.sum(1))
        assert (shown >= 0).all()
        commonest = np.arange(counts.shape[1]) == counts.argmax(1)[:, None]
        np.testing.assert_array_equal(shown[~small & ~commonest], counts[~small & ~commonest])
        assert shown[small & ~commonest].min(initial=5) >= 1
        np.testing.assert_array_equal(protected_counts(counts, 1), counts)


def test_everything_is_shown_where_one_row_is_enough():
    lines = released(np.array([[39, 1], [58, 2]]), 1).set_index(["subtype", "level"])
    assert lines.loc[(1, "level 1"), ["yes", "yes_outside"]].tolist() == [1, 2]


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
