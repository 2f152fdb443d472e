import numpy as np
import pandas as pd
import pytest

from plurigp import PluriGP
from plurigp.data import Coder, infer_schema
from plurigp.study.findings.characterise import (
    association_frame,
    characteristic_frame,
    missingness_frame,
    read_values,
    split_groups,
)
from plurigp.study.findings.contrasts import benjamini_hochberg, log_odds_ratio, log_rate_ratio, welch
from plurigp.study.findings.mixture import Mixture


@pytest.fixture
def table(mixed_frame):
    """The mixed table, its schema, its numbers, and two groups with some rows left out."""
    schema = Coder.fit(mixed_frame, infer_schema(mixed_frame)).schema
    group = np.where(np.arange(120) < 10, 0, 1 + (mixed_frame["albumin"].fillna(3.5) > 3.5).to_numpy())
    return mixed_frame, schema, read_values(mixed_frame, schema), group


def test_every_kind_gets_its_measure(table):
    _, schema, values, group = table
    found = characteristic_frame(schema, values, lambda name: group, 2, "all")
    kinds = found.groupby("column")["measure"].unique().map(list)
    assert kinds["diabetes"] == ["log odds ratio"]
    assert kinds["visits"] == ["log rate ratio"]
    assert kinds["albumin"] == ["mean difference"]
    assert set(found.loc[found["column"] == "stage", "level"]) == {"early", "middle", "late"}
    assert "patient" not in set(found["column"])
    np.testing.assert_allclose(found["q"], benjamini_hochberg(found["p"].to_numpy()))


def test_lines_are_the_contrasts_of_their_cells(table):
    frame, schema, values, group = table
    found = characteristic_frame(schema, values, lambda name: group, 2, "all").set_index(["column", "subtype", "level"])

    def sides(column):
        inside = column[(group == 1) & column.notna()]
        return inside.to_numpy(float), column[(group == 2) & column.notna()].to_numpy(float)

    assert found.loc[("albumin", 1, ""), "statistic"] == pytest.approx(welch(*sides(frame["albumin"])).statistic)
    assert found.loc[("visits", 1, ""), "estimate"] == pytest.approx(log_rate_ratio(*sides(frame["visits"])).estimate)
    yes = frame["diabetes"].map({"yes": 1.0, "no": 0.0})
    assert found.loc[("diabetes", 1, "yes"), "estimate"] == pytest.approx(log_odds_ratio(*sides(yes)).estimate)
    late = frame["stage"].map({"early": 0.0, "middle": 0.0, "late": 1.0})
    assert found.loc[("stage", 1, "late"), "p"] == pytest.approx(log_odds_ratio(*sides(late)).p)


def test_associations_and_missingness(table):
    frame, schema, values, group = table
    found = association_frame(schema, values, lambda name: group, "all").set_index("column")
    assert found.loc["stage", "measure"] == "Cramér's V"
    assert found.loc["albumin", "effect"] > 0.5
    gaps = missingness_frame(schema, values, group, 2).set_index(["column", "subtype"])
    inside = frame.loc[group == 1, "visits"].isna().mean()
    assert gaps.loc[("visits", 1), "inside"] == pytest.approx(inside)


def test_no_subtypes_give_empty_frames_with_columns(table):
    _, schema, values, group = table
    assert list(characteristic_frame(schema, values, lambda name: group, 0, "all").columns)[:4] == [
        "rows", "subtype", "column", "kind",
    ]  # fmt: skip


def test_a_share_of_trials():
    frame = pd.DataFrame({"passed": [1, 2, None, 4], "of": [2, 4, 5, 4]})
    schema = infer_schema(frame, {"passed": {"kind": "binomial", "trials": "of"}})
    np.testing.assert_allclose(read_values(frame, schema)["passed"].low, [0.5, 0.5, np.nan, 1.0])


def test_nothing_of_the_tested_column_places_its_rows(rng):
    """Whatever both bounds, or a time and its event, are: rows placed without them stay where they are."""
    factor = rng.normal(size=80)
    low, days = factor + 0.2 * rng.normal(size=80), np.exp(factor + rng.normal(size=80))
    frame = pd.DataFrame(
        {"low": low, "high": low + rng.choice([0.0, 1.0], 80), "days": days, "died": rng.integers(0, 2, 80),
         "lab": factor + 0.5 * rng.normal(size=80), "other": -factor + 0.5 * rng.normal(size=80)}
    )  # fmt: skip
    kinds = {"low": {"kind": "censored_gaussian", "upper": "high"}, "days": {"kind": "weibull", "event": "died"}}
    model = PluriGP(1, schema=kinds, n_inducing=8, max_epochs=20, calibrate=False, random_state=0).fit(frame)
    x = model.transform(frame)
    cut = Mixture(np.array([0.5, 0.5]), np.quantile(x, [[0.3], [0.7]]), np.full((2, 1, 1), 0.3), np.array([1, 2]))
    moved = frame.assign(low=frame["low"].to_numpy()[::-1], high=frame["low"].to_numpy()[::-1] + 3)
    ended = frame.assign(days=frame["days"] * 5, died=1 - frame["died"])
    for name, changed in (("low", moved), ("days", ended)):
        groups = [split_groups(model, rows, cut) for rows in (frame, changed)]
        np.testing.assert_array_equal(groups[0](name), groups[1](name))
        assert (groups[0]("lab") != groups[1]("lab")).any()  # which the change does reach elsewhere
