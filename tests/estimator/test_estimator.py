"""PluriGP on one small table with every kind of column, gaps, an empty row and an empty column."""

import re

import jax
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import plurigp
from plurigp import DataError, PluriGP
from plurigp.data import KINDS, Coder, Table
from plurigp.estimator import fitting

N, EMPTY_ROW = 40, 7
SCHEMA = {
    "lab": "gaussian",
    "pressure": "gaussian_hetero",
    "cost": "lognormal",
    "diabetes": {"kind": "bernoulli", "levels": ["no", "yes"]},
    "hits": {"kind": "binomial", "trials": "shots"},
    "share": {"kind": "beta", "bounds": [0, 100]},
    "visits": "poisson",
    "ward": {"kind": "categorical", "levels": ["a", "b", "c"]},
    "stage": {"kind": "categorical", "levels": [1, 2, 3, 4, 5]},
    "patient": "aside",
}
KINDS_HERE = {kind if isinstance(kind, str) else kind["kind"] for kind in SCHEMA.values()} - {"aside"}
USED = [name for name, kind in SCHEMA.items() if kind != "aside"]
PARAMS = {
    "n_components": 2,
    "schema": SCHEMA,
    "n_inducing": 6,
    "batch_size": 20,
    "max_epochs": 6,
    "learning_rate": 0.05,
    "random_state": 3,
}


def complete_table() -> pd.DataFrame:
    """Every kind around one factor, no gaps."""
    rng = np.random.default_rng(11)
    x = rng.normal(size=N)
    shots = rng.integers(2, 9, N)
    levels = np.digitize(x + 0.5 * rng.normal(size=N), [-1, -0.3, 0.3, 1])
    return pd.DataFrame(
        {
            "patient": [f"P{i:03d}" for i in range(N)],
            "lab": 140 + 4 * x + rng.normal(size=N),
            "pressure": x + np.exp(0.3 * x) * rng.normal(size=N),
            "cost": np.exp(6 + x + 0.3 * rng.normal(size=N)),
            "diabetes": np.where(x + rng.normal(size=N) > 0, "yes", "no"),
            "hits": rng.binomial(shots, 1 / (1 + np.exp(-x))).astype(float),
            "shots": shots,
            "share": 100 * rng.beta(2 * np.exp(x), 2),
            "visits": rng.poisson(np.exp(1 + 0.5 * x)).astype(float),
            "ward": rng.choice(["a", "b", "c"], N),
            "stage": levels + 1.0,
            "nothing": np.full(N, np.nan),
        },
        index=[f"row {i}" for i in range(N)],
    )


def with_gaps(frame: pd.DataFrame, share: float, keep: int = 2) -> pd.DataFrame:
    """Gaps at random, but for `keep` cells of each column, and one row without a cell."""
    rng = np.random.default_rng(12)
    gaps = pd.DataFrame(rng.random(frame.shape) < share, index=frame.index, columns=frame.columns)
    gaps.iloc[:keep] = False
    gaps.iloc[EMPTY_ROW] = True
    gaps[["patient", "shots"]] = False
    return frame.mask(gaps)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return with_gaps(complete_table(), 0.2)


@pytest.fixture(scope="module")
def fitted(frame) -> PluriGP:
    return PluriGP(**PARAMS).fit(frame)


def test_refined_places_are_asked_for_and_given_back(fitted, frame):
    plain = fitted.transform(frame.iloc[:3])
    fitted.set_params(refine=True)
    refined = fitted.transform(frame.iloc[:3])
    fitted.set_params(refine=False)
    assert np.abs(refined - plain).max() > 1e-4
    np.testing.assert_array_equal(fitted.transform(frame.iloc[:3]), plain)


def as_bytes(model: PluriGP) -> bytes:
    """All that was learned."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves((model.model_, model._fitted.q))]
    return b"".join(leaf.tobytes() for leaf in leaves) + np.float64(model.elbo_).tobytes()


# --- fit ---


def test_every_kind_is_used_and_the_rest_set_aside(fitted):
    assert {column.kind for column in fitted.schema_.used} == KINDS_HERE
    assert {column.name for column in fitted.schema_.aside} == {"patient", "shots", "nothing"}
    assert fitted.schema_["nothing"].reason == "no observed cell"


def test_what_a_fit_leaves(fitted):
    assert np.isfinite(fitted.elbo_)
    assert fitted.n_iter_ == len(fitted.history_) == 6
    assert fitted.stopped_ == "max_epochs"
    assert fitted.lengthscales_.shape == (2,)
    assert (fitted.lengthscales_ > 0).all()
    assert fitted.n_features_in_ == 12
    assert list(fitted.get_feature_names_out()) == ["plurigp0", "plurigp1"]


def test_the_history_holds_the_parts_of_the_bound(fitted):
    history = fitted.history_
    fits = [f"expected_log_prob_{kind}" for kind in KINDS_HERE]
    assert set(history.columns) == {"bound", *fits, "kl_x", "kl_u", "spread", "jitter"}
    assert list(history.index) == [1, 2, 3, 4, 5, 6]
    assert np.isfinite(history.to_numpy()).all()
    np.testing.assert_allclose(history["bound"], history[fits].sum(axis=1) - history["kl_x"] - history["kl_u"])
    assert history["bound"].iloc[-1] > history["bound"].iloc[0]


def test_the_bound_lies_below_the_density(fitted, frame):
    assert fitted.elbo_ < fitted.score_samples(frame).sum()
    assert abs(fitted.elbo_ - fitted.history_["bound"].iloc[-1]) < 0.2 * abs(fitted.elbo_)


def test_one_seed_gives_one_model(fitted, frame):
    again = PluriGP(**PARAMS)
    x = again.fit_transform(frame)
    assert as_bytes(again) == as_bytes(fitted)
    assert x.tobytes() == fitted.transform(frame).tobytes()
    pd.testing.assert_frame_equal(again.history_, fitted.history_, check_exact=True)
    other = PluriGP(**{**PARAMS, "random_state": 4}).fit(frame)
    assert as_bytes(other) != as_bytes(fitted)


def test_a_gap_is_a_gap_in_whatever_form(fitted, frame):
    """What lies under a gap (NaN, None, pd.NA) reaches no byte of the model."""
    as_none = frame.astype(object).where(frame.notna(), None)
    nullable = frame.convert_dtypes()
    assert nullable["visits"].isna().any()
    for other in (as_none, nullable, pl.from_pandas(frame)):
        assert as_bytes(PluriGP(**PARAMS).fit(other)) == as_bytes(fitted)


def test_the_value_stored_under_a_gap_changes_no_byte(fitted, frame, monkeypatch):
    def altered(coder: Coder, rows: pd.DataFrame) -> Table:
        table, slot = code(coder, rows), 0
        for d, column in enumerate(table.schema.used):
            seen = table.seen[:, d]
            table.values[~seen, slot] = table.values[seen, slot].max()  # any other value that the kind allows
            slot += KINDS[column.kind].n_slots
        return table

    code = Coder.table
    assert (altered(fitted.coder_, frame).values != code(fitted.coder_, frame).values).sum() > 50
    monkeypatch.setattr(Coder, "table", altered)
    assert as_bytes(PluriGP(**PARAMS).fit(frame)) == as_bytes(fitted)


def test_a_unit_shifts_the_score_by_its_logarithm(fitted, frame):
    """In units 1,024 times smaller (an exact factor in binary) the map is the same and the density 1,024 times less."""
    scaled = frame.assign(lab=1024 * frame["lab"])
    other = PluriGP(**PARAMS).fit(scaled)
    np.testing.assert_array_equal(other.transform(scaled), fitted.transform(frame))
    n_seen = frame["lab"].notna()
    np.testing.assert_allclose(
        other.score_samples(scaled), fitted.score_samples(frame) - np.log(1024) * n_seen, atol=1e-9
    )
    np.testing.assert_allclose(other.elbo_, fitted.elbo_ - np.log(1024) * n_seen.sum())
    name = "expected_log_prob_gaussian"
    np.testing.assert_allclose(other.history_[name], fitted.history_[name] - np.log(1024) * n_seen.sum())


@pytest.mark.parametrize("share", [0.0, 0.5, 0.95])
def test_training_is_finite_with_many_gaps(share):
    table = with_gaps(complete_table(), share)
    model = PluriGP(**PARAMS).fit(table)
    assert np.isfinite(model.history_.to_numpy()).all()
    mean, sd = model.transform(table, return_std=True)
    assert np.isfinite(mean).all()
    assert (sd > 0).all()
    assert np.isfinite(model.score_samples(table)).all()
    assert model.impute(table)[USED].notna().all(axis=None)


def test_a_fit_that_fails_leaves_the_old_answers(fitted, frame):
    model = clone(fitted).fit(frame)
    before = model.transform(frame)
    model.set_params(schema={**SCHEMA, "lab": "poisson"})
    with pytest.raises(DataError):
        model.fit(frame)
    np.testing.assert_array_equal(model.transform(frame), before)


# --- answers ---


def test_transform_gives_means_and_deviations(fitted, frame):
    mean, sd = fitted.transform(frame, return_std=True)
    assert mean.shape == sd.shape == (N, 2)
    np.testing.assert_array_equal(fitted.transform(frame), mean)
    assert (sd > 0).all()
    assert sd.mean() < 1  # the prior's: the cells have told something


def test_a_row_alone_gets_the_same_answer(fitted, frame):
    mean, sd = fitted.transform(frame, return_std=True)
    scores, filled = fitted.score_samples(frame), fitted.impute(frame)
    for row in (0, EMPTY_ROW, 23):
        alone = frame.iloc[[row]]
        for one, all_rows in zip(fitted.transform(alone, return_std=True), (mean, sd), strict=True):
            np.testing.assert_allclose(one[0], all_rows[row], rtol=0, atol=1e-7)
        score = fitted.score_samples(alone)[0]
        np.testing.assert_allclose(score, scores[row], rtol=1e-6, atol=1e-6)  # moments of f are float32 inside
        pd.testing.assert_frame_equal(fitted.impute(alone), filled.iloc[[row]], rtol=1e-6, atol=1e-6)


def test_impute_fills_gaps_and_nothing_else(fitted, frame):
    filled = fitted.impute(frame)
    assert filled[USED].notna().all(axis=None)
    assert list(filled.columns) == list(frame.columns)
    assert filled.index.equals(frame.index)
    for name in frame.columns:
        seen = frame[name].notna()
        assert filled[name].dtype == frame[name].dtype
        if frame[name].dtype == np.float64:
            assert filled[name][seen].to_numpy().tobytes() == frame[name][seen].to_numpy().tobytes()
        assert filled[name][seen].equals(frame[name][seen])
    pd.testing.assert_frame_equal(filled[["patient", "shots", "nothing"]], frame[["patient", "shots", "nothing"]])
    assert (filled["hits"] <= frame["shots"]).all()
    _in_support(filled)


def _in_support(table: pd.DataFrame) -> None:
    assert (table["cost"] > 0).all()
    assert table["diabetes"].isin(["no", "yes"]).all()
    assert table["share"].between(0, 100).all()
    assert (table["visits"] == table["visits"].round()).all()
    assert (table["visits"] >= 0).all()
    assert table["ward"].isin(["a", "b", "c"]).all()
    assert table["stage"].isin([1, 2, 3, 4, 5]).all()


def test_inverse_transform_gives_a_table(fitted, frame):
    x = fitted.transform(frame)
    table = fitted.inverse_transform(x)
    assert sorted(table.columns) == sorted(USED)
    assert len(table) == N
    _in_support(table)
    there = fitted.set_output(transform="pandas").transform(frame)
    fitted.set_output(transform="default")
    pd.testing.assert_frame_equal(fitted.inverse_transform(there), table.set_axis(frame.index))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros((3, 3)), "have 2 columns; got an array of shape (3, 3)"),
        (np.zeros(2), "have 2 columns; got an array of shape (2,)"),
        ([[0.0, 0.0], [np.nan, 0.0]], "row 1: not finite"),
    ],
)
def test_inverse_transform_refuses_other_shapes(fitted, x, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        fitted.inverse_transform(x)


def test_scores(fitted, frame):
    scores = fitted.score_samples(frame)
    assert scores.shape == (N,)
    assert fitted.score(frame) == scores.mean()
    assert abs(scores[EMPTY_ROW]) < 0.5  # a row without a cell has density one


def test_cells_are_scored_where_hidden_and_known(fitted, frame):
    cells = fitted.score_cells(frame, complete_table())
    hidden = frame[USED].isna()
    assert cells.index.equals(frame.index)
    np.testing.assert_array_equal(cells[USED].notna(), hidden)
    assert fitted.score_cells(frame, frame).isna().all(axis=None)
    discrete = ["diabetes", "hits", "visits", "ward", "stage"]
    assert (cells[discrete].to_numpy()[hidden[discrete]] < 0).all()
    with pytest.raises(DataError, match="truth has 3 rows where X has 40; give the same rows"):
        fitted.score_cells(frame, complete_table()[:3])


def test_samples_look_like_the_table(fitted, frame):
    drawn = fitted.sample(30, random_state=1)
    assert drawn.shape == (30, len(USED))
    _in_support(drawn)
    for name in USED:
        assert drawn[name].dtype == frame[name].dtype
    pd.testing.assert_frame_equal(drawn, fitted.sample(30, random_state=1))
    assert not drawn.equals(fitted.sample(30, random_state=2))
    with pytest.raises(ValueError, match="n_samples=0 must be a whole number of at least 1"):
        fitted.sample(0)


def test_set_output(fitted, frame):
    model = clone(fitted).fit(frame)
    as_pandas = model.set_output(transform="pandas").transform(frame)
    assert list(as_pandas.columns) == ["plurigp0", "plurigp1"]
    assert as_pandas.index.equals(frame.index)
    as_polars = model.set_output(transform="polars").transform(frame)
    assert isinstance(as_polars, pl.DataFrame)
    np.testing.assert_array_equal(as_polars.to_numpy(), as_pandas.to_numpy())


def test_tables_of_every_make_get_the_same_answer(fitted, frame):
    expected = fitted.transform(frame)
    columns = {name: frame[name].tolist() for name in frame}
    records = frame.to_dict("records")
    for table in (pl.from_pandas(frame), columns, records):
        np.testing.assert_array_equal(fitted.transform(table), expected)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        np.testing.assert_array_equal(fitted.transform(frame.to_numpy(dtype=object)), expected)


def test_without_names_columns_are_taken_by_place(fitted, frame):
    unnamed = frame.set_axis(range(12), axis=1)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        filled = fitted.impute(unnamed)
    assert list(filled.columns) == list(range(12))
    pd.testing.assert_frame_equal(filled.set_axis(frame.columns, axis=1), fitted.impute(frame))


def test_other_columns_are_an_error(fitted, frame):
    with pytest.raises(DataError, match="column 'lab' is missing from the table; add it"):
        fitted.transform(frame.drop(columns="lab"))
    with pytest.raises(DataError, match=r"column 'lab' is missing .* Did you mean 'lap'\?"):
        fitted.transform(frame.rename(columns={"lab": "lap"}))


@pytest.mark.parametrize(
    ("name", "cell", "message"),
    [
        ("ward", "d", "column 'ward', row 2: .*'d'"),
        ("visits", -1.0, "column 'visits', row 2: "),
        ("share", 120.0, "column 'share', row 2: "),
        ("hits", 99.0, "column 'hits', row 2: more successes than trials"),
        ("lab", np.inf, "column 'lab', row 2: "),
        ("cost", 0.0, "column 'cost', row 2: "),
    ],
)
def test_a_cell_that_cannot_be_is_named(fitted, frame, name, cell, message):
    wrong = frame.copy()
    wrong.loc["row 2", name] = cell
    with pytest.raises(DataError, match=message) as caught:
        fitted.transform(wrong)
    assert "\n" not in str(caught.value)


# --- parameters ---


@pytest.mark.parametrize(
    "method", ["transform", "inverse_transform", "impute", "score_samples", "score", "sample", "score_cells"]
)
def test_nothing_is_answered_before_fit(method, frame):
    arguments = {"sample": (), "score_cells": (frame, frame)}.get(method, (frame,))
    with pytest.raises(NotFittedError):
        getattr(PluriGP(), method)(*arguments)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_components": 0}, "n_components=0 must be a whole number of at least 1"),
        ({"n_components": 2.0}, "n_components=2.0 must be a whole number"),
        ({"n_components": True}, "n_components=True must be a whole number"),
        ({"n_inducing": -1}, "n_inducing=-1 must be"),
        ({"batch_size": 0}, "batch_size=0 must be"),
        ({"max_epochs": 0}, "max_epochs=0 must be"),
        ({"n_init": 0}, "n_init=0 must be"),
        ({"kernel": "cubic"}, "'cubic' is not one of rbf, matern52, linear"),
        ({"kernel": "rbf+"}, "'' is not one of rbf"),
        ({"encoder": "deep"}, "encoder='deep' is not one of factors, masked, paper, free"),
        ({"expectation": "exact"}, "expectation='exact' is not one of quadrature, sampling"),
        ({"optimizer": "sgd"}, "optimizer='sgd' is not one of natural, adam"),
        ({"start": "warm"}, "start='warm' is not one of informed, random"),
        ({"dtype": "float16"}, "dtype='float16' is not one of float32, float64"),
        ({"dtype": np.float32}, "is not one of float32, float64"),
        ({"kl_weight": -1.0}, "kl_weight=-1.0 must be a number at least 0"),
        ({"calibrate": "yes"}, "calibrate='yes' must be True or False"),
        ({"hiding": 1.0}, "hiding=1.0 must be a number of at least 0 and below 1, or 'auto'"),
        ({"kl_weight": np.nan}, "kl_weight=nan must be a number at least 0"),
        ({"tol": "none"}, "tol='none' must be a number at least 0"),
        ({"learning_rate": 0}, "learning_rate=0 must be a number above 0"),
        ({"learning_rate": np.inf}, "learning_rate=inf must be a number above 0"),
        ({"n_quadrature": 0}, "n_quadrature=0 must be a whole number"),
        ({"n_quadrature": {"beta": 0}}, "n_quadrature['beta']=0 must be a whole number"),
        ({"n_quadrature": {"betta": 5}}, "n_quadrature: 'betta' is not one of gaussian"),
        ({"device": "abacus"}, "device='abacus' is not here; JAX finds: cpu"),
        ({"random_state": "lucky"}, "'lucky' cannot be used to seed"),
        ({"schema": {"lap": "gaussian"}}, "which is not in the table"),
        ({"schema": {**SCHEMA, "lab": "normal"}}, "unknown kind 'normal'"),
        ({"schema": 5}, "a schema is a mapping, a Schema or the path"),
    ],
)
def test_a_wrong_parameter_is_named(frame, params, message):
    model = PluriGP(**PARAMS)
    for name, value in params.items():
        setattr(model, name, value)  # past the type checks under test
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        model.fit(frame)
    assert "\n" not in str(caught.value)


def test_one_row_is_not_a_table(frame):
    with pytest.raises(DataError, match="1 sample"):
        PluriGP(**PARAMS).fit(frame[:1])


# --- the options, on a smaller table; several at once, since each costs a compilation ---

SMALL_SCHEMA = {"lab": "gaussian", "diabetes": {"kind": "bernoulli", "levels": ["no", "yes"]}, "visits": "poisson"}
SMALL = {
    "n_components": 2,
    "schema": SMALL_SCHEMA,
    "n_inducing": 5,
    "batch_size": 20,
    "max_epochs": 4,
    "learning_rate": 0.05,
    "random_state": 0,
}
ADAM = {"optimizer": "adam", "start": "random", "dtype": "float64", "device": "cpu"}


@pytest.fixture(scope="module")
def small() -> pd.DataFrame:
    return with_gaps(complete_table(), 0.2)[list(SMALL_SCHEMA)]


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "matern52", "encoder": "paper", "n_quadrature": 4, "n_inducing": 100},
        {"kernel": "linear", "encoder": "free", "n_quadrature": {"bernoulli": 5}},
        {"kernel": "linear+rbf", "expectation": "sampling", "n_init": 2},
        ADAM,
    ],
    ids=lambda options: ",".join(map(str, options.values())),
)
def test_options(small, options):
    model = PluriGP(**{**SMALL, **options}).fit(small)
    assert model.model_.gp.Z.shape == (min(options.get("n_inducing", 5), N), 2)
    assert np.isfinite(model.history_.to_numpy()).all()
    assert np.isfinite(model.elbo_)
    dtype = np.dtype(options.get("dtype", "float32"))
    assert {leaf.dtype for leaf in jax.tree.leaves((model.model_, model._fitted.q))} == {dtype}
    few = small[:12]
    mean, sd = model.transform(few, return_std=True)
    assert mean.dtype == sd.dtype == np.float64
    assert np.isfinite(mean).all()
    alone = model.transform(few[4:5])
    np.testing.assert_allclose(alone[0], mean[4], rtol=0, atol=1e-7)
    assert np.isfinite(model.score(few))
    assert model.impute(few).notna().all(axis=None)


def test_restarts_keep_the_best_bound(small):
    seed = 5  # one whose first run is not its best
    bounds = [PluriGP(**{**SMALL, **ADAM, "random_state": seed}, n_init=n).fit(small).elbo_ for n in (1, 2, 4)]
    assert bounds == sorted(bounds)
    assert bounds[0] < bounds[-1]


def test_a_parquet_file_gives_the_same_model(small, tmp_path):
    """By its path: read column by column, trained to the same bytes, and answered from the file too."""
    small.to_parquet(tmp_path / "table.parquet", index=False)
    ours = PluriGP(**SMALL).fit(tmp_path / "table.parquet")
    theirs = PluriGP(**SMALL).fit(small.reset_index(drop=True))
    assert ours.elbo_ == theirs.elbo_
    assert list(ours.feature_names_in_) == list(small.columns)
    np.testing.assert_array_equal(ours.transform(str(tmp_path / "table.parquet")), theirs.transform(small))


@pytest.mark.slow
def test_every_other_kind_too(tmp_path):
    """What the table above lacks: fitted, filled in its own support, drawn, saved and reopened."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=60)
    frame = pd.DataFrame(
        {
            "tails": x + 0.3 * rng.standard_t(3, 60),
            "dose": rng.gamma(3, np.exp(x) / 3),
            "falls": rng.poisson(rng.gamma(2, np.exp(1 + x) / 2)).astype(float),
            "seizures": rng.poisson(np.exp(1 + x)) * (rng.random(60) > 0.3).astype(float),
            "grade": np.digitize(x + 0.5 * rng.normal(size=60), [-1, 0, 1]) + 1.0,
            "lab": np.where(x < -0.5, "<-0.5", x.round(5).astype(str)),
            "crp": np.where(x < -0.5, "<0.6", np.exp(x).round(5).astype(str)),
            "virus": np.where(x > 0.5, ">1.6", np.exp(x).round(5).astype(str)),
            "months": np.exp(np.minimum(x, 0.7)),
            "slide": np.clip(0.5 + 0.4 * x, 0, 1),
            "alcohol": np.where(x < -0.5, 0, np.exp(x)),
        }
    ).astype({"lab": "str", "crp": "str", "virus": "str"})
    kinds = ("student_t", "gamma", "negative_binomial", "zero_inflated_poisson", "ordinal", "censored_gaussian",
             "censored_lognormal", "censored_gamma", "weibull", "zero_one_beta",
             "zero_lognormal")  # fmt: skip
    schema = dict(zip(frame, kinds, strict=True))
    assert KINDS_HERE | set(schema.values()) == set(KINDS)
    shown = frame.mask(rng.random(frame.shape) < 0.2)
    model = PluriGP(1, schema=schema, n_inducing=6, max_epochs=5, random_state=0).fit(shown)
    assert np.isfinite(model.history_.to_numpy()).all()
    shown, frame = shown[:16], frame[:16]  # the smaller chunk
    for table in (model.impute(shown), model.sample(40, random_state=1)):
        assert table.notna().all(axis=None)
        assert (table["dose"] > 0).all()
        assert (table["months"] > 0).all()
        assert table["slide"].between(0, 1).all()
        for name in ("falls", "seizures"):
            assert (table[name] >= 0).all()
            assert (table[name] == table[name].round()).all()
        assert set(table["grade"]) <= {1.0, 2.0, 3.0, 4.0}
    filled, numbers = model.impute(shown), model.impute(shown, fill_limits=True)
    for name, limit in (("lab", -0.5), ("crp", 0.6), ("virus", 1.6)):
        limited = shown[name].str.startswith(("<", ">"), na=False)
        assert (filled[name][limited] == shown[name][limited]).all()  # as the user wrote it
        inside = numbers[name][limited] <= limit if name != "virus" else numbers[name][limited] >= limit
        assert inside.all()
    again = plurigp.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.transform(shown), model.transform(shown))
    assert np.isfinite(model.score_cells(shown, frame).to_numpy()[shown.isna().to_numpy()]).all()


def test_a_collapsed_map_is_announced(small):
    """A heavy kl_weight presses every row onto the prior."""
    model = PluriGP(**{**SMALL, "max_epochs": 60}, kl_weight=1e4)
    with pytest.warns(RuntimeWarning, match="latent map has collapsed"):
        model.fit(small)


# --- a fit that fails ---


@pytest.mark.parametrize("what", ["another table without a usable column", "interrupted", "calibration"])
def test_a_fit_that_fails_leaves_the_old_answers_whole(mixed_frame, monkeypatch, what):
    model = PluriGP(1, n_inducing=8, max_epochs=2, random_state=0).fit(mixed_frame)
    before, names = model.transform(mixed_frame), model.feature_names_in_.tolist()
    state = dict(model.__dict__)
    new, error = pd.DataFrame(np.random.default_rng(0).normal(size=(250, 2)), columns=["a", "b"]), KeyboardInterrupt
    if what == "interrupted":
        monkeypatch.setattr("plurigp.estimator.fitting.train", raising(KeyboardInterrupt()))
    elif what == "calibration":  # the last thing that a fit does
        monkeypatch.setattr("plurigp.answers.calibration.Calibration.maps", raising(KeyboardInterrupt()))
    else:
        new, error = pd.DataFrame({"a": ["x"] * 120, "b": ["y"] * 120}), DataError
    with pytest.raises(error):
        model.fit(new)
    assert model.__dict__.keys() == state.keys()
    assert all(model.__dict__[name] is value for name, value in state.items())
    assert model.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(model.transform(mixed_frame), before)


def raising(error):
    def call(*_, **__):
        raise error

    return call


@pytest.mark.parametrize("weight", [0.0, -1.0, 1.5, float("nan")])
def test_a_covariance_weight_that_cannot_be(mixed_frame, weight):
    with pytest.raises(ValueError, match="kl_covariance_weight"):
        PluriGP(kl_covariance_weight=weight).fit(mixed_frame)


def test_the_effective_sample_size_of_every_row(mixed_frame):
    model = PluriGP(1, n_inducing=8, max_epochs=2, random_state=0, calibrate=False).fit(mixed_frame)
    sizes = model.effective_sample_size(mixed_frame)
    assert sizes.shape == (120,)
    assert ((sizes >= 1) & (sizes <= 64)).all()
    np.testing.assert_allclose(model.effective_sample_size(mixed_frame[:3]), sizes[:3], rtol=1e-6)


@pytest.mark.parametrize("seed", [0, 5])
def test_a_default_fit_of_a_small_table_ends(mixed_frame, seed):
    """Its categories become so clear that functions far from every inducing point have variances beyond 100."""
    model = PluriGP(random_state=seed, calibrate=False).fit(mixed_frame)
    assert np.isfinite(model.elbo_)
    assert np.isfinite(model.transform(mixed_frame)).all()


def test_a_text_file_gives_the_same_model(small, tmp_path):
    small.to_csv(tmp_path / "table.csv", index=False)
    table = plurigp.read_table(tmp_path / "table.csv")
    theirs = PluriGP(**SMALL).fit(table)
    ours = PluriGP(**SMALL).fit(str(tmp_path / "table.csv"))
    assert ours.elbo_ == theirs.elbo_
    assert list(ours.feature_names_in_) == list(small.columns)
    np.testing.assert_array_equal(ours.transform(tmp_path / "table.csv"), theirs.transform(table))
    with pytest.raises(DataError, match=r"none\.csv: no such file"):
        PluriGP(**SMALL).fit("none.csv")


def test_columns_are_found_by_name_in_any_order(fitted, frame):
    """As on the command line: further columns are ignored, and come back untouched where a table is filled."""
    for other in (frame[frame.columns[::-1]], frame.assign(extra=1.0), frame.to_dict("list")):
        np.testing.assert_array_equal(fitted.transform(other), fitted.transform(frame))
    filled = fitted.impute(frame[frame.columns[::-1]].assign(extra=range(len(frame))))
    assert list(filled.columns) == [*frame.columns[::-1], "extra"]
    assert filled["extra"].tolist() == list(range(len(frame)))
    pd.testing.assert_frame_equal(filled[list(frame.columns)], fitted.impute(frame))
    used = fitted.schema_.used[0].name
    with pytest.raises(DataError, match=rf"column '{used}' is missing from the table"):
        fitted.transform(frame.drop(columns=used))


@pytest.mark.parametrize(
    ("given", "seen_share", "hidden"),
    [
        ({}, 1.0, 0.1),
        ({}, 0.9, 0.0),
        ({"encoder": "paper"}, 1.0, 0.0),
        ({"hiding": 0.0}, 1.0, 0.0),
        ({"hiding": 0.3}, 0.5, 0.3),
    ],
)
def test_cells_are_hidden_from_the_encoder_where_a_table_has_hardly_any_gaps(given, seen_share, hidden):
    assert fitting._hiding(PluriGP(**given).get_params(), seen_share) == hidden


def test_a_complete_table_teaches_the_encoder_what_a_gap_is():
    """Few rows of columns that nearly repeat each other, none with a gap: rows with gaps are placed better for it."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(160, 2))
    table = pd.DataFrame(x @ rng.normal(size=(2, 10)) + 0.05 * rng.normal(size=(160, 10))).add_prefix("lab_")
    train, new = table.iloc[:80], table.iloc[80:].reset_index(drop=True)
    gaps = new.mask(rng.random(new.shape) < 0.3)

    def error(**given):
        filled = PluriGP(5, max_epochs=300, calibrate=False, random_state=0, **given).fit(train).impute(gaps)
        return float(((filled - new) ** 2).to_numpy().mean())

    assert error() < 0.85 * error(hiding=0.0)  # 0.74, 0.74 and 0.68 with seeds 0, 1 and 2
