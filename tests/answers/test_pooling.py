"""Rubin's rules against published output of R's mice, the formulas worked by hand, and the analyses they pool."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression, LogisticRegression

from plurigp import pool, pool_fits
from plurigp.answers.pooling import barnard_rubin, denominator_df

# mice::pool(with(mice(mammalsleep[, -1]), lm(sws ~ log10(bw) + odi))), as its authors' vignette "Convergence and
# pooling" prints it for two imputations of the table: m = 5, dfcom = 59; and its summary().
MICE = pd.DataFrame(
    [
        ["(Intercept)", 10.0739157, 0.71206627, 0.83964136, 1.7196359, 7.805051, 1.4149942, 0.5859203, 0.6625659],
        ["log10(bw)", -1.4513424, 0.10052200, 0.30175131, 0.4626236, 4.277824, 3.6022121, 0.7827132, 0.8424252],
        ["odi", -0.5504494, 0.08902854, 0.01146902, 0.1027914, 40.480414, 0.1545889, 0.1338909, 0.1737299],
        ["(Intercept)", 11.5358123, 0.62179318, 0.013395200, 0.63786742, 55.17044, 0.02585143, 0.02519997, 0.05871528],
        ["log10(bw)", -1.0908770, 0.08777820, 0.001202722, 0.08922146, 55.96750, 0.01644219, 0.01617622, 0.04954456],
        ["odi", -0.8745217, 0.07774184, 0.001686524, 0.07976567, 55.15415, 0.02603268, 0.02537217, 0.05889094],
    ],
    columns=["term", "estimate", "ubar", "b", "t", "df", "riv", "lambda", "fmi"],
)
MICE_SUMMARY = [  # std.error, statistic, p.value
    [1.3113489, 7.682102, 6.666925e-05],
    [0.6801644, -2.133811, 9.530451e-02],
    [0.3206109, -1.716876, 9.364526e-02],
    [0.7986660, 14.443850, None],  # printed as zero
    [0.2986996, -3.652087, 0.0005739797],
    [0.2824282, -3.096439, 0.0030767681],
]
DEVIATES = np.array([-1.2, -0.5, 0.1, 0.4, 1.2])  # m = 5 estimates of mean zero, made to have variance b


def estimates_with(mean: float, between: float) -> np.ndarray:
    return mean + DEVIATES * np.sqrt(between / DEVIATES.var(ddof=1))


@pytest.mark.parametrize("line", range(len(MICE)))
def test_pooling_gives_what_mice_prints(line):
    """To 1e-6, or to the last digit that is printed where those are fewer."""
    said = MICE.iloc[line]
    pooled = pool(estimates_with(said["estimate"], said["b"]), np.full(5, said["ubar"]), df_complete=59)
    found = pooled.frame.iloc[0]
    for ours, theirs in {"estimate": "estimate", "df": "df", "riv": "riv", "lambda": "lambda", "fmi": "fmi"}.items():
        assert found[ours] == pytest.approx(said[theirs], rel=1e-6), ours
    assert found["se"] ** 2 == pytest.approx(said["t"], rel=1e-6)
    se, t, p = MICE_SUMMARY[line]
    assert found["se"] == pytest.approx(se, rel=1e-6)
    assert found["t"] == pytest.approx(t, rel=1e-6)
    if p is not None:
        assert found["p"] == pytest.approx(p, rel=3e-6)  # the estimate's rounding, enlarged by the tail


def test_the_example_of_mice_s_pool_scalar_worked_by_hand():
    """pool.scalar(Q = c(-1.5457, -1.428), U = c(0.9723^2, 1.041^2), n = 25, k = 2)."""
    found = pool([-1.5457, -1.428], [0.9723**2, 1.041**2], df_complete=23).frame.iloc[0]
    b, ubar = 0.1177**2 / 2, (0.9723**2 + 1.041**2) / 2
    t = ubar + 1.5 * b
    lambda_ = 1.5 * b / t
    df = 1 / (lambda_**2 + 26 / (24 * 23 * (1 - lambda_)))
    r = 1.5 * b / ubar
    expected = {"estimate": -1.48685, "se": t**0.5, "riv": r, "df": df, "fmi": (r + 2 / (df + 3)) / (1 + r)}
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-12), name
    half = stats.t.ppf(0.975, df) * t**0.5
    assert found[["low", "high"]].tolist() == pytest.approx([-1.48685 - half, -1.48685 + half], rel=1e-12)


def test_degrees_of_freedom_at_their_limits():
    shares = np.array([0.0, 0.3])
    assert barnard_rubin(5, shares, np.inf).tolist() == [np.inf, pytest.approx(4 / 0.09)]  # Rubin's (1987)
    assert barnard_rubin(5, shares, 100)[0] == pytest.approx(101 / 103 * 100)  # no gap: the complete table's, nearly
    assert barnard_rubin(5, shares, 20)[1] < min(20, 4 / 0.09)


def test_nothing_missing_is_the_complete_analysis():
    found = pool([2.0, 2.0, 2.0], [0.25, 0.25, 0.25]).frame.iloc[0]
    assert found[["se", "t", "riv", "fmi"]].tolist() == pytest.approx([0.5, 4.0, 0.0, 0.0])
    assert found["p"] == pytest.approx(2 * stats.norm.sf(4))
    assert found["high"] == pytest.approx(2 + stats.norm.ppf(0.975) / 2)


# --- the joint test ---


@pytest.fixture
def analyses(rng):
    """Ten analyses of three terms with their covariances."""
    root = rng.normal(size=(3, 3))
    U = root @ root.T + np.eye(3)
    return rng.normal([1.0, 0.5, -1.0], 0.4, (10, 3)), np.stack([U * scale for scale in rng.uniform(0.9, 1.1, 10)])


def test_the_joint_test_of_one_term_is_its_t_test(analyses):
    Q, U = analyses
    pooled = pool(Q, U, df_complete=50, names=["a", "b", "c"])
    one = pooled.test("b")
    assert one.statistic == pytest.approx(pooled.frame.loc["b", "t"] ** 2)
    assert one.riv == pytest.approx(pooled.frame.loc["b", "riv"])


def test_the_joint_test_follows_its_formula(analyses):
    Q, U = analyses
    found = pool(Q, U).test(null=[1.0, 0.0, 0.0])
    W, B, q = U.mean(0), np.cov(Q.T), Q.mean(0) - [1.0, 0.0, 0.0]
    r = 1.1 * np.trace(B @ np.linalg.inv(W)) / 3
    assert found.statistic == pytest.approx(q @ np.linalg.inv((1 + r) * W) @ q / 3)
    assert found.df2 == pytest.approx(4 + (27 - 4) * (1 + (1 - 2 / 27) / r) ** 2)
    assert found.p == pytest.approx(stats.f.sf(found.statistic, 3, found.df2))


def test_the_joint_test_of_proportional_covariances_is_wald_s_with_the_total(rng):
    """Where B is a multiple of U, as D1 assumes, it is exact: q'T⁻¹q / k."""
    U = np.array([[2.0, 0.3], [0.3, 1.0]])
    deviations = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])  # covariance 4/3 I
    Q = np.array([0.7, -0.2]) + deviations @ np.linalg.cholesky(U).T
    pooled = pool(Q, np.stack([U] * 4))
    q, T = Q.mean(0), pooled.covariance.to_numpy()
    assert pooled.test().statistic == pytest.approx(q @ np.linalg.solve(T, q) / 2)


def test_small_sample_degrees_of_freedom_reach_the_large_sample_ones():
    large = denominator_df(10, 5, 0.15, np.inf)
    assert denominator_df(10, 5, 0.15, 1e9) == pytest.approx(large, rel=1e-4)
    small = [denominator_df(10, 5, 0.15, df) for df in (50, 200, 1000)]
    assert small == sorted(small)
    assert small[0] < 50
    assert small[-1] < large
    assert denominator_df(10, 5, 1e-12, 200) == pytest.approx(201 / 203 * 200)
    assert denominator_df(10, 5, 0.0, np.inf) == np.inf
    assert denominator_df(2, 3, 0.5, 100) == pytest.approx(3 * (4 / 3) * 9 / 2)  # k (m − 1) ≤ 4
    assert denominator_df(2, 3, 0.0, 100) == np.inf
    with pytest.raises(ValueError, match="too few for a joint test"):
        denominator_df(10, 5, 2.0, 8)


# --- analyses of completed tables ---


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(150, 2))
    y = 1 + x @ [0.5, -0.8] + rng.normal(size=150)
    made = []
    for _ in range(4):
        frame = pd.DataFrame(x, columns=["age", "dose"]).assign(y=y, ill=(y > 1).astype(int))
        frame.loc[:20, "age"] = rng.normal(size=21)
        made.append(frame)
    return made


def test_statsmodels_results_are_pooled_with_their_covariances(tables):
    sm = pytest.importorskip("statsmodels.formula.api")
    fits = [sm.ols("y ~ age + dose", table).fit() for table in tables]
    pooled = pool_fits(lambda table: sm.ols("y ~ age + dose", table).fit(), tables)
    by_hand = pool([fit.params for fit in fits], [fit.cov_params() for fit in fits], df_complete=147)
    pd.testing.assert_frame_equal(pooled.frame, by_hand.frame)
    assert pooled.frame.index.tolist() == ["Intercept", "age", "dose"]
    assert pooled.test(["age", "dose"]).df1 == 2
    assert "pooled over 4 completed tables" in repr(pooled)
    assert "<table" in pooled._repr_html_()


def test_statsmodels_results_without_names_are_pooled_too(tables):
    api = pytest.importorskip("statsmodels.api")
    pooled = pool_fits(
        lambda table: api.Logit(table["ill"].to_numpy(), api.add_constant(table[["age"]].to_numpy())).fit(disp=0),
        tables,
    )
    assert pooled.frame.index.tolist() == ["const", "x1"]
    assert pooled.df_complete == 148


def test_a_scikit_learn_estimator_gets_bootstrap_variances(tables):
    def fit(table):
        return LinearRegression().fit(table[["age", "dose"]], table["y"])

    pooled = pool_fits(fit, tables, n_bootstrap=60)
    known = pool_fits(_least_squares, tables)
    assert pooled.frame.index.tolist() == ["intercept", "age", "dose"]
    assert pooled.frame["estimate"].to_numpy() == pytest.approx(known.frame["estimate"].to_numpy())
    assert pooled.frame["se"].to_numpy() == pytest.approx(known.frame["se"].to_numpy(), rel=0.3)
    pd.testing.assert_frame_equal(pooled.frame, pool_fits(fit, tables, n_bootstrap=60).frame)  # repeats


def _least_squares(table):
    X = np.column_stack([np.ones(len(table)), table[["age", "dose"]]])
    b = np.linalg.solve(X.T @ X, X.T @ table["y"])
    var = ((table["y"] - X @ b) ** 2).sum() / (len(table) - 3)
    return b, var * np.linalg.inv(X.T @ X), len(table) - 3


def test_plain_numbers_are_pooled(tables):
    def mean(table):
        return table["y"].mean(), table["y"].var() / len(table)

    pooled = pool_fits(mean, tables, df_complete=149)
    assert pooled.frame["estimate"].iloc[0] == pytest.approx(tables[0]["y"].mean())
    assert pooled.frame["df"].iloc[0] == pytest.approx(150 / 152 * 149)


def test_terms_in_another_order_are_matched_by_name():
    one, two = pd.Series([1.0, 2.0], ["a", "b"]), pd.Series([2.2, 1.2], ["b", "a"])
    variances = [pd.Series([0.1, 0.2], ["a", "b"]), pd.Series([0.2, 0.1], ["b", "a"])]
    found = pool([one, two], variances).frame
    assert found["estimate"].to_dict() == pytest.approx({"a": 1.1, "b": 2.1})
    assert found["within"].to_dict() == pytest.approx({"a": 0.1, "b": 0.2})
    assert pool(pd.DataFrame([one, two]), [[0.1, 0.2]] * 2).frame.index.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("call", "finding"),
    [
        (lambda: pool([1.0], [1.0]), "at least 2 completed tables"),
        (lambda: pool([1.0, 2.0], [1.0, 2.0, 3.0]), "variances must have shape"),
        (lambda: pool([1.0, 2.0], [1.0, -2.0]), "not be negative"),
        (lambda: pool([1.0, np.nan], [1.0, 2.0]), "estimates of completed table 1: not finite"),
        (lambda: pool([1.0, 2.0], [1.0, 2.0], names=["a", "b"]), "2 names for 1"),
        (lambda: pool([1.0, 2.0], [1.0, 2.0], df_complete=0), "df_complete must be above 0"),
        (lambda: pool([1.0, 2.0], [1.0, 2.0], level=95), "level must lie between 0 and 1"),
        (lambda: pool([[1.0, 2.0]] * 2, [[1.0, 2.0]] * 2).test(), "needs covariances"),
        (lambda: pool([pd.Series([1.0], ["a"]), pd.Series([1.0], ["b"])], [[1.0]] * 2), "differ in their terms"),
        (lambda: pool_fits(lambda table: 1.0, [pd.DataFrame({"a": [1]})]), "at least 2 completed tables"),
    ],
)
def test_what_cannot_be_pooled_is_refused(call, finding):
    with pytest.raises(ValueError, match=finding):
        call()


def test_unknown_terms_and_several_outputs_are_refused(tables):
    with pytest.raises(KeyError, match="Did you mean 'dose'"):
        pool_fits(_named, tables).test(["doses"])
    three = np.arange(150) % 3
    with pytest.raises(ValueError, match="several outputs"):
        pool_fits(lambda table: LogisticRegression().fit(table[["age"]], three), tables)


def _named(table):
    b, covariance, df = _least_squares(table)
    names = ["one", "age", "dose"]
    return pd.Series(b, names), pd.DataFrame(covariance, names, names), df
