"""Delta adjustment of filled gaps, and the range of conclusions over deltas."""

import numpy as np
import pandas as pd
import pytest

from plurigp import PluriGP, sensitivity
from plurigp.core.types import DataError

SCHEMA = {
    "crp": "lognormal",
    "stage": {"kind": "categorical", "levels": ["early", "late", "middle"]},
    "grade": {"kind": "ordinal", "levels": [1, 2, 3]},
}


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(8)
    factor = rng.normal(size=160)
    frame = pd.DataFrame(
        {
            "albumin": 3.5 + 0.5 * factor + 0.2 * rng.normal(size=160),
            "crp": np.exp(factor + 0.3 * rng.normal(size=160)),
            "ill": np.where(factor + rng.normal(size=160) > 0, "yes", "no"),
            "visits": rng.poisson(np.exp(1.0 + 0.5 * factor)).astype(float),
            "ejection": 1 / (1 + np.exp(-factor - 0.3 * rng.normal(size=160))),
            "stage": np.array(["early", "middle", "late"])[np.digitize(factor + rng.normal(size=160), [-0.5, 0.5])],
            "grade": np.digitize(factor + rng.normal(size=160), [-0.5, 0.5]) + 1.0,
        }
    )
    shown = frame.mask(rng.random(frame.shape) < 0.25)
    return shown, PluriGP(1, schema=SCHEMA, random_state=0, max_epochs=30, calibrate=False).fit(shown)


def draws(case, delta=None, n=3):
    shown, model = case
    return model.impute_draws(shown, n, random_state=4, delta=delta)


def test_numbers_in_gaps_move_by_their_own_units_and_nothing_else_moves(case):
    shown, _ = case
    for before, after in zip(draws(case), draws(case, {"albumin": 0.5}), strict=True):
        gaps = shown["albumin"].isna()
        moved = after["albumin"] - before["albumin"]
        assert moved[gaps].to_numpy() == pytest.approx(0.5)
        assert (moved[~gaps] == 0).all()
        pd.testing.assert_frame_equal(before.drop(columns="albumin"), after.drop(columns="albumin"))


@pytest.mark.parametrize(("name", "amount"), [("crp", 2.0), ("ejection", 0.05), ("visits", 3)])
def test_other_numbers_move_by_their_own_units_within_their_domain(case, name, amount):
    shown, _ = case
    gaps = shown[name].isna()
    for before, after in zip(draws(case), draws(case, {name: amount}), strict=True):
        expected = np.minimum(before[name] + amount, 1.0) if name == "ejection" else before[name] + amount
        assert after[name][gaps].to_numpy() == pytest.approx(expected[gaps].to_numpy())


def test_a_value_that_would_leave_its_domain_stays_at_the_edge(case):
    tables = draws(case, {"crp": -1e6, "visits": -1e6, "ejection": 5.0})
    gaps = case[0].isna()
    for table in tables:
        assert (table["crp"] > 0).all()
        assert table["crp"][gaps["crp"]].max() < 0.01
        assert (table["visits"][gaps["visits"]] == 0).all()
        assert (table["ejection"][gaps["ejection"]] == 1).all()


def test_levels_move_by_their_log_odds(case):
    """Pooled over gaps and draws, the odds change by about e^delta; a far delta fills every gap with one level."""
    gaps = case[0].isna()
    shares = [
        np.mean([(table["ill"][gaps["ill"]] == "yes").mean() for table in draws(case, {"ill": delta}, 40)])
        for delta in (-1.0, 0.0, 1.0)
    ]
    assert shares == sorted(shares)
    assert shares[2] - shares[0] > 0.2
    far = draws(case, {"ill": 50.0, "grade": -50.0, "stage": {"late": 50.0}})[0]
    assert set(far["ill"][gaps["ill"]]) == {"yes"}
    assert set(far["grade"][gaps["grade"]]) == {1}
    assert set(far["stage"][gaps["stage"]]) == {"late"}


@pytest.mark.parametrize(
    ("delta", "finding"),
    [
        ({"albumine": 1.0}, "Did you mean 'albumin'"),
        ({"stage": 1.0}, "is a category; name levels"),
        ({"stage": {"never": 1.0}}, "has no level 'never'"),
        ({"albumin": "much"}, "'much' is not a number"),
        ({"albumin": np.inf}, "is not a number"),
    ],
)
def test_deltas_that_mean_nothing_are_refused(case, delta, finding):
    with pytest.raises(DataError, match=finding):
        draws(case, delta)


# --- the range of conclusions ---


def means(table):
    numbers = table[["albumin", "visits"]].astype(float) - [3.5, 0.0]
    return numbers.mean(), numbers.var() / len(table), len(table) - 1


@pytest.fixture(scope="module")
def found(case):
    shown, model = case
    return sensitivity(model, shown, means, {"albumin": [-1.0, 0.0, 1.0]}, n_draws=3)


def test_estimates_follow_delta_and_others_stay(case, found):
    by_term = found.frame.set_index(["term", "albumin"])["estimate"]
    share = case[0]["albumin"].isna().mean()
    assert by_term["albumin"].diff().dropna().to_numpy() == pytest.approx(share)
    assert by_term["visits"].nunique() == 1


def test_the_range_says_whether_the_conclusion_holds(found):
    ranges = found.ranges()
    assert ranges.loc["visits", "same_conclusion"]
    assert not ranges.loc["albumin", "same_conclusion"]
    assert ranges.loc["albumin", "estimate_min"] < 0 < ranges.loc["albumin", "estimate_max"]
    assert ranges.loc["visits", "n_outside"] == ranges.loc["visits", "n_settings"] == 3
    assert "same_conclusion" in repr(found)


def test_the_tipping_point_is_the_nearest_other_conclusion(found):
    assert set(found.tipping_point("albumin")["albumin"]) <= {-1.0, 1.0}
    assert found.tipping_point("visits").empty
    with pytest.raises(ValueError, match="was not analysed"):
        found.tipping_point("weight")


def test_deltas_of_levels_and_of_several_columns_are_combined(case):
    shown, model = case
    found = sensitivity(model, shown, means, {"ill": [0, 1], "stage": {"late": [0, 1, 2]}}, n_draws=2)
    assert found.deltas == ("ill", "stage: late")
    assert len(found.frame) == 2 * 3 * 2
    with pytest.raises(DataError, match="0 combinations"):
        sensitivity(model, shown, means, {"ill": []})
