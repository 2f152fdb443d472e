"""PluriGP with groups: planted ones are found, every answer works, and the model is saved with its mixture."""

import warnings

import jax
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import plurigp
from plurigp import DataError, PluriGP
from plurigp.estimator.persistence import read_model, write_model
from plurigp.study.findings.null import structureless_table

N = 150
SCHEMA = {
    "lab": "gaussian",
    "pressure": "gaussian",
    "weight": "gaussian",
    "diabetes": {"kind": "bernoulli", "levels": ["no", "yes"]},
    "visits": "poisson",
}
PARAMS = {"n_components": 2, "schema": SCHEMA, "n_inducing": 10, "max_epochs": 150, "random_state": 3}


def planted() -> tuple[pd.DataFrame, np.ndarray]:
    """A third of the rows lies apart from the others; a tenth of the cells is hidden, and one row is empty."""
    rng = np.random.default_rng(21)
    group = (rng.random(N) < 1 / 3).astype(int)
    x = np.array([[-0.7, 0], [1.4, 0]])[group] + rng.normal(size=(N, 2)) * [0.3, 1]
    frame = pd.DataFrame(
        {
            "lab": 140 + 4 * x[:, 0] + rng.normal(size=N),
            "pressure": 80 + 10 * x[:, 0] - 5 * x[:, 1] + 3 * rng.normal(size=N),
            "weight": 70 + 8 * x[:, 1] + 2 * rng.normal(size=N),
            "diabetes": np.where(2 * x[:, 0] + rng.logistic(size=N) > 0, "yes", "no"),
            "visits": rng.poisson(np.exp(1 + 0.5 * x[:, 0])).astype(float),
        }
    )
    frame = frame.mask(rng.random(frame.shape) < 0.1)
    frame.iloc[5] = None
    return frame, group


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return planted()[0]


@pytest.fixture(scope="module")
def fitted(frame) -> PluriGP:
    return PluriGP(**PARAMS, n_groups=2).fit(frame)


@pytest.fixture(scope="module")
def plain(frame) -> PluriGP:
    return PluriGP(**PARAMS).fit(frame)


def as_bytes(model: PluriGP) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves((model.model_, model._fitted.q, model.elbo_))]


def test_planted_groups_are_found_and_raise_the_bound(fitted, plain, frame):
    assert fitted.elbo_ > plain.elbo_ + 0.1 * N
    probability, group = fitted.group_probabilities(frame), planted()[1]
    assert probability.shape == (N, 2)
    np.testing.assert_allclose(probability.sum(1), 1)
    known = np.arange(N) != 5
    assert (probability.argmax(1) == group)[known].mean() > 0.95
    np.testing.assert_allclose(fitted.group_weights_, [2 / 3, 1 / 3], atol=0.08)
    np.testing.assert_allclose(probability[5], fitted.group_weights_, atol=0.15)  # the empty row
    confident = probability.max(1) > 0.99
    assert (probability.argmax(1) == group)[confident & known].mean() > 0.98


def test_what_a_fit_with_groups_leaves(fitted, plain):
    assert (fitted.group_weights_.shape, fitted.group_means_.shape) == ((2,), (2, 2))
    assert fitted.group_covariances_.shape == (2, 2, 2)
    assert np.linalg.eigvalsh(fitted.group_covariances_).min() > 0
    assert fitted.group_weights_.sum() == pytest.approx(1)
    assert fitted.n_iter_ == len(fitted.history_) <= 150
    assert plain.model_.prior is None
    assert (plain.group_weights_.tolist(), plain.group_means_.tolist()) == ([1.0], [[0.0, 0.0]])
    np.testing.assert_array_equal(plain.group_covariances_[0], np.eye(2))


def test_the_bound_lies_below_the_density(fitted, frame):
    assert fitted.elbo_ < fitted.score_samples(frame).sum()


def test_the_first_epochs_are_those_of_a_fit_without_groups(fitted, plain):
    """Until they start, the groups are N(0, I); float32 rounds the same bound in another order."""
    first, other = (model.history_["bound"].to_numpy()[:5] for model in (fitted, plain))
    np.testing.assert_allclose(first, other, rtol=1e-4)


def test_one_seed_gives_one_model(frame):
    short = {**PARAMS, "max_epochs": 9, "calibrate": False, "n_groups": 2}
    one, two = (PluriGP(**short).fit(frame) for _ in range(2))
    assert as_bytes(one) == as_bytes(two)
    np.testing.assert_array_equal(one.group_probabilities(frame), two.group_probabilities(frame))


def test_every_answer_works(fitted, frame):
    few = frame[:20]
    filled = fitted.impute(few)
    assert filled.notna().all(axis=None)
    assert all(table.notna().all(axis=None) for table in fitted.impute_draws(few, 2, random_state=0))
    gaps = fitted.describe_gaps(few, n_draws=20)
    assert len(gaps) == few.isna().sum().sum()
    assert np.isfinite(fitted.level_probabilities(few, "diabetes").to_numpy()).all()
    assert np.isfinite(fitted.score_samples(few)).all()
    assert np.isfinite(fitted.score_reconstruction(few).to_numpy()[few.notna()]).all()
    together, alone = fitted.group_probabilities(few), fitted.group_probabilities(few[4:5])
    np.testing.assert_allclose(alone[0], together[4], atol=1e-9)
    fitted.set_params(refine=True)
    refined = fitted.group_probabilities(few)
    fitted.set_params(refine=False)
    np.testing.assert_allclose(refined, together, atol=0.3)


def test_samples_have_the_groups_and_structureless_tables_have_not(fitted, frame):
    """Two modes in the column that the groups differ in: Sarle's coefficient exceeds 5/9 only with them."""
    sampled = fitted.sample(3000, random_state=0)
    pd.testing.assert_frame_equal(sampled, fitted.sample(3000, random_state=0))
    shares = fitted.group_probabilities(sampled).mean(0)
    np.testing.assert_allclose(shares, fitted.group_weights_, atol=0.05)
    assert stats.ks_2samp(sampled["lab"], frame["lab"].dropna()).pvalue > 0.01
    many = pd.concat([frame] * 10, ignore_index=True)
    without = structureless_table(fitted, many, seed=1)

    def bimodality(column: pd.Series) -> float:
        known = column.dropna().to_numpy(float)
        return (stats.skew(known) ** 2 + 1) / stats.kurtosis(known, fisher=False)

    assert bimodality(sampled["lab"]) > 5 / 9 > bimodality(without["lab"])


@pytest.mark.parametrize(
    "options",
    [{"encoder": "free", "kernel": "linear"}, {"optimizer": "adam", "dtype": "float64", "max_epochs": 1}],
    ids=["free", "adam"],
)
def test_options(frame, options):
    model = PluriGP(**{**PARAMS, "max_epochs": 5, "n_groups": 3, **options}).fit(frame[:60])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # few effective draws after so few epochs
        probability = model.group_probabilities(frame[:60])
    np.testing.assert_allclose(probability.sum(1), 1)
    assert (np.diff(model.group_weights_) <= 0).all()
    dtype = np.dtype(options.get("dtype", "float32"))
    assert {leaf.dtype for leaf in jax.tree.leaves(model.model_)} == {dtype}


def test_a_saved_model_keeps_its_groups(fitted, frame, tmp_path):
    loaded = plurigp.load(fitted.save(tmp_path / "model"))
    assert loaded.n_groups == 2
    for name in ("group_weights_", "group_means_", "group_covariances_"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(fitted, name))
    np.testing.assert_array_equal(loaded.group_probabilities(frame), fitted.group_probabilities(frame))
    again = loaded.save(tmp_path / "again")
    assert (again / "model.safetensors").read_bytes() == (tmp_path / "model" / "model.safetensors").read_bytes()


def test_a_model_from_before_there_were_groups_is_read(plain, frame, tmp_path):
    arrays, manifest = read_model(plain.save(tmp_path / "model"))
    assert not any(name.startswith("prior") for name in arrays)
    older = {name: value for name, value in manifest.items() if name not in ("format", "arrays_sha256")}
    for part in ("params", "settings"):
        older[part] = {name: value for name, value in manifest[part].items() if name != "n_groups"}
    write_model(tmp_path / "model", arrays, older)
    loaded = plurigp.load(tmp_path / "model")
    assert loaded.n_groups == 1
    np.testing.assert_array_equal(loaded.transform(frame), plain.transform(frame))


@pytest.mark.parametrize("damage", ["missing", "shape"])
def test_a_damaged_mixture_is_named(fitted, tmp_path, damage):
    arrays, manifest = read_model(fitted.save(tmp_path / "model"))
    manifest = {name: value for name, value in manifest.items() if name not in ("format", "arrays_sha256")}
    roots = arrays.pop("prior.roots")
    if damage == "shape":
        arrays |= {"prior.means": arrays["prior.means"][:, :1], "prior.roots": roots[:, :1, :1]}
    write_model(tmp_path / "model", arrays, manifest)
    with pytest.raises(DataError, match=r"'prior\.(means|roots)'.*save the model again"):
        plurigp.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("n_groups", "message"),
    [
        (0, "n_groups=0 must be a whole number of at least 1"),
        (2.0, "n_groups=2.0 must be a whole number"),
        (N + 1, f"n_groups={N + 1} is more than the table's {N} rows; give fewer groups"),
    ],
)
def test_a_wrong_number_of_groups_is_named(frame, n_groups, message):
    model = PluriGP(**PARAMS)
    model.n_groups = n_groups  # past the type checks under test
    with pytest.raises(ValueError, match=message):
        model.fit(frame)
