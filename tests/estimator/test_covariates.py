"""Covariates at the estimator: a map free of a batch effect, counterfactuals, saving, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from plurigp import DataError, PluriGP, load

N, LABS = 150, 6
SETTINGS = {"n_inducing": 12, "max_epochs": 60, "random_state": 0, "calibrate": False}
SHIFT = 2.5 * np.array([1, -1, 1, 1, -1, 1])


class World:
    """Two planted groups at two sites, which shift every lab; each patient's labs at the other site are known."""

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        self.group, at_b = rng.integers(0, 2, N), rng.random(N) < 0.5
        severity = np.where(self.group == 1, 1.5, -1.5) + 0.4 * rng.normal(size=N)
        own = severity[:, None] * rng.choice([-1, 1], LABS)
        self.other = own + np.where(at_b, 0, 1)[:, None] * SHIFT
        labs = own + np.where(at_b, 1, 0)[:, None] * SHIFT + 0.5 * rng.normal(size=(N, LABS))
        self.table = pd.DataFrame(labs, columns=[f"lab_{d}" for d in range(LABS)])
        self.table = self.table.assign(ill=np.where(self.group ^ (rng.random(N) < 0.1), "yes", "no"))
        self.table = self.table.assign(site=np.where(at_b, "B", "A"), age=rng.normal(60, 10, N))
        self.swapped = pd.DataFrame({"site": np.where(at_b, "A", "B")})


@pytest.fixture(scope="module")
def world() -> World:
    return World()


@pytest.fixture(scope="module")
def adjusted(world) -> PluriGP:
    return PluriGP(1, covariates=["site", "age"], **SETTINGS).fit(world.table)


def separation(model: PluriGP, table: pd.DataFrame, labels: np.ndarray) -> float:
    """Share of the variance of positions between two sets of rows."""
    x = model.transform(table)[:, 0]
    return float(np.corrcoef(x, labels)[0, 1] ** 2)


def test_the_map_shows_groups_and_not_sites(world, adjusted):
    site = (world.table["site"] == "B").to_numpy()
    plain = PluriGP(1, schema={"site": "aside", "age": "aside"}, **SETTINGS).fit(world.table)
    assert separation(plain, world.table, site) > 0.2
    assert separation(adjusted, world.table, site) < 0.05
    assert separation(adjusted, world.table, world.group) > 0.8


def test_the_same_patients_at_the_other_site(world, adjusted):
    """Expected labs lie near the truth, within their intervals mostly; the covariates not named stay as they are."""
    mean, low, high = adjusted.counterfactual(world.table, world.swapped, level=0.95)
    names = list(mean.columns[:LABS])
    assert np.abs(mean[names].to_numpy() - world.other).mean() < 0.35
    inside = (low[names].to_numpy() <= world.other) & (world.other <= high[names].to_numpy())
    assert 0.8 < inside.mean() <= 1
    assert low["ill"].isna().all()
    assert set(mean["ill"]) == {"yes", "no"}
    same = adjusted.counterfactual(world.table, world.table[["site", "age"]])
    pd.testing.assert_frame_equal(adjusted.counterfactual(world.table, world.table[["site"]]), same)
    assert np.abs(same[names].to_numpy() - mean[names].to_numpy()).mean() > 1.5


def test_gaps_scores_draws_and_new_rows_depend_on_the_site(world, adjusted):
    hidden = world.table.assign(lab_0=np.nan)
    elsewhere = hidden.assign(site=world.swapped["site"])
    assert np.abs(adjusted.impute(hidden)["lab_0"] - world.table["lab_0"]).mean() < 0.8
    assert np.abs(adjusted.impute(elsewhere)["lab_0"] - adjusted.impute(hidden)["lab_0"]).mean() > 1
    assert adjusted.score(world.table) > adjusted.score(world.table.assign(site=world.swapped["site"])) + 1
    drawn = {site: adjusted.sample(300, 0, {"site": site, "age": 60.0}) for site in ("A", "B")}
    assert drawn["B"]["lab_0"].mean() - drawn["A"]["lab_0"].mean() == pytest.approx(SHIFT[0], abs=0.6)
    at = {site: adjusted.inverse_transform(np.zeros((1, 1)), {"site": site, "age": 60.0}) for site in ("A", "B")}
    assert at["B"]["lab_1"].iloc[0] - at["A"]["lab_1"].iloc[0] == pytest.approx(SHIFT[1], abs=0.6)
    completed = adjusted.impute_draws(elsewhere.head(40), 1, random_state=0)[0]
    assert completed["lab_0"].notna().all()


def test_a_saved_model_knows_its_covariates(world, adjusted, tmp_path):
    opened = load(adjusted.save(tmp_path / "model"))
    assert opened.covariates == ["site", "age"]
    assert [column.name for column in opened.schema_.covariates] == ["site", "age"]
    np.testing.assert_array_equal(opened.transform(world.table), adjusted.transform(world.table))


def test_missing_covariates_are_an_error_or_a_column(world, adjusted):
    gap = world.table.assign(age=world.table["age"].where(world.table.index != 7))
    with pytest.raises(DataError, match="column 'age', row 7: a covariate has a gap"):
        adjusted.transform(gap)
    with pytest.raises(DataError, match="column 'age', row 7: a covariate has a gap"):
        PluriGP(1, covariates=["site", "age"], **SETTINGS).fit(gap)
    modelled = PluriGP(1, covariates=["site", "age"], covariates_missing="model", **SETTINGS | {"max_epochs": 1})
    modelled.fit(gap)
    assert [column.name for column in modelled.schema_.covariates] == ["site"]
    assert "age" in [column.name for column in modelled.schema_.used]


def test_what_needs_covariates_says_so(world, adjusted):
    with pytest.raises(DataError, match="this model needs its covariates"):
        adjusted.sample(2)
    with pytest.raises(DataError, match="this model needs its covariates"):
        adjusted.inverse_transform(np.zeros((1, 1)))
    with pytest.raises(DataError, match="column 'site', row 0"):
        adjusted.counterfactual(world.table, {"site": "C"})
    with pytest.raises(ValueError, match=r"level=2\.0 must lie between 0 and 1"):
        adjusted.counterfactual(world.table, {"site": "A"}, level=2.0)
    with pytest.raises(ValueError, match="covariates=3 must be a list"):
        PluriGP().set_params(covariates=3).fit(world.table)
    with pytest.raises(ValueError, match="covariates_missing='fill' is not one of"):
        PluriGP(covariates_missing="fill").fit(world.table)
