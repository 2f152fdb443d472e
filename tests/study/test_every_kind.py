"""A study of a table with every kind, limits in every form: it ends, its null is one, its lines are right.

What the lines should be is written out here with SciPy, apart from the code that made them.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from plurigp import Study, load_study
from plurigp.data import KINDS, to_rows
from plurigp.report.page import render_report
from plurigp.study.findings.null import structureless_table

N = 150
INF = np.inf
SETTINGS = {
    "min_count": 1,  # every count as it is
    "n_components": (2,), "n_restarts": 1, "max_epochs": 2, "n_refits": 2, "n_references": 1, "n_permutations": 20,
    "max_subtypes": 2, "n_subtypes": 2, "mixture_inits": 2, "max_clusters": 4, "level": 0.4, "test_share": 1 / 6,
    "selection_rows": 90, "model": {"calibrate": False, "n_inducing": 6},  # 75 rows a batch, 15 held out: few programs
}  # fmt: skip


def table() -> tuple[pd.DataFrame, dict]:
    """Two groups, and a column or two of every kind that tell them apart; a tenth of the cells are gaps."""
    rng = np.random.default_rng(7)
    g = (np.arange(N) % 2).astype(float)
    made, declared = {}, {}

    def normal(shift=1.5, sd=1.0):
        return shift * g + rng.normal(0, sd, N)

    def limits(value):
        """Bounds: the lowest fifth below a limit, the highest tenth above one, some of the others in an interval."""
        below, above = np.quantile(value, [0.2, 0.9]).round(2)
        low, high = value.copy(), value.copy()
        coarse = rng.random(N) < 0.15
        low[coarse], high[coarse] = np.floor(value[coarse] * 4) / 4, np.floor(value[coarse] * 4) / 4 + 0.25
        low[value < below], high[value < below] = -INF, below
        low[value > above], high[value > above] = above, INF
        return low, high

    def spelled(low, high):
        return [
            repr(a) if a == b else f"<{b}" if a == -INF else f">{a}" if b == INF else f"{a}-{b}"
            for a, b in zip(low.tolist(), high.tolist(), strict=True)
        ]

    plain = {
        "gaussian": normal(),
        "gaussian_hetero": normal() * (1 + g),
        "student_t": 1.5 * g + rng.standard_t(3, N),
        "gamma": rng.gamma(3, np.exp(g)),
        "lognormal": np.exp(normal()),
        "zero_lognormal": np.where(rng.random(N) < 0.3 + 0.4 * g, np.exp(normal()), 0.0),
        "bernoulli": np.where(rng.random(N) < 0.25 + 0.5 * g, "yes", "no"),
        "beta": rng.beta(2 + 3 * g, 3),
        "zero_one_beta": np.where(rng.random(N) < 0.15, 0.0, np.where(rng.random(N) < 0.2 * g, 1.0, rng.beta(2, 2, N))),
        "poisson": rng.poisson(2 + 3 * g).astype(float),
        "negative_binomial": rng.negative_binomial(2, 0.4 - 0.2 * g).astype(float),
        "zero_inflated_poisson": (rng.poisson(3 + 2 * g) * (rng.random(N) < 0.7)).astype(float),
        "ordinal": np.digitize(normal(), [-0.5, 0.7, 2]).astype(float),
        "categorical": np.array(["a", "b", "c"])[np.digitize(normal(), [0, 1.2])],
    }
    for kind, cells in plain.items():
        made[kind], declared[kind] = cells, kind
    made["binomial"], made["trials"] = rng.binomial(6, 0.3 + 0.4 * g).astype(float), np.full(N, 6)
    declared["binomial"] = {"kind": "binomial", "trials": "trials"}
    for kind, value in (
        ("censored_gaussian", lambda: normal().round(3)),
        ("censored_lognormal", lambda: np.exp(normal()).round(3)),
        ("censored_gamma", lambda: (rng.gamma(3, np.exp(g)) + 0.01).round(3)),
    ):
        made[f"{kind} text"], declared[f"{kind} text"] = spelled(*limits(value())), kind
        low, high = limits(value())
        made[f"{kind} low"], made[f"{kind} high"] = (np.where(np.isinf(b), np.nan, b) for b in (low, high))
        declared[f"{kind} low"] = {"kind": kind, "upper": f"{kind} high"}
    time, end = 10 * np.exp(g) * rng.weibull(2, N), rng.exponential(40, N)
    made["weibull"], made["died"] = np.minimum(time, end), np.where(time <= end, "yes", "no")
    declared["weibull"] = {"kind": "weibull", "event": "died"}
    time, end = 10 * np.exp(g) * rng.weibull(2, N), rng.exponential(40, N)
    made["weibull text"] = [repr(t) if t <= e else f">{e}" for t, e in zip(time.tolist(), end.tolist(), strict=True)]
    declared["weibull text"] = "weibull"
    frame = pd.DataFrame(made)
    for name, about in declared.items():
        gaps = rng.random(N) < 0.1
        both = [name, about["upper"]] if isinstance(about, dict) and "upper" in about else [name]
        frame.loc[gaps, both] = None
    return frame, declared


FRAME, DECLARED = table()


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    out = tmp_path_factory.mktemp("every_kind") / "run"
    return Study(out=out, schema=DECLARED, n_jobs=0, **SETTINGS).fit(FRAME)


def test_every_kind_is_in_the_table(result):
    assert {column.kind for column in result.model.schema_.used} == set(KINDS)
    assert set(result.characteristics["column"]) == {column.name for column in result.model.schema_.used}


def test_the_report_has_words_for_all_of_them(result):
    page = render_report(load_study(result.folder))
    for kind in KINDS.values():
        assert kind.label in page
        assert f">{kind.name}<" not in page or kind.name in FRAME.columns


def test_no_cell_of_a_structureless_table_is_the_real_one_beyond_chance(result):
    drawn = structureless_table(result.model, FRAME, 11)
    for column in result.model.schema_.used:
        real, new = to_rows(FRAME).observed(column), to_rows(drawn).observed(column)
        np.testing.assert_array_equal(real.seen, new.seen)
        pairs = [np.stack([cells.low, cells.high], axis=1)[real.seen] for cells in (real, new)]
        assert_independent(column.name, *pairs)
    for name in ("died", *(f"{kind} high" for kind in KINDS if f"{kind} high" in FRAME)):
        numbers = [pd.factorize(pd.concat([FRAME[name], drawn[name]]))[0].reshape(2, N)[row] for row in (0, 1)]
        both = (numbers[0] >= 0) & (numbers[1] >= 0)
        assert_independent(name, *(part[both, None].astype(float) for part in numbers))
    assert drawn["trials"].equals(FRAME["trials"])


def assert_independent(name, real, new):
    """As many equal cells as between shuffled rows, up to four standard errors."""
    codes = np.unique(np.concatenate([real, new]), axis=0, return_inverse=True)[1].ravel()
    first, second = codes[: len(real)], codes[len(real) :]
    p = float(sum((first == c).mean() * (second == c).mean() for c in np.unique(codes)))
    n = len(real)
    assert (first == second).sum() <= n * p + 4 * np.sqrt(n * p * (1 - p)), name


# --- every line of the characteristics, once more ---


def standardised(a, b):
    return (a.mean() - b.mean()) / np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 2)


def t_test(a, b, back=lambda v: v):
    found = stats.ttest_ind(a, b, equal_var=False)
    interval = found.confidence_interval(0.95)
    means = back(a.mean()), back(b.mean())
    return [*means, a.mean() - b.mean(), *interval, found.statistic, found.pvalue, standardised(a, b)]


def by_z(a, b, estimate, se):
    z = estimate / se
    interval = stats.norm.interval(0.95, estimate, se)
    return [a.mean(), b.mean(), estimate, *interval, z, 2 * stats.norm.sf(abs(z)), standardised(a, b)]


def odds(a, b):
    counts = np.array([a.sum(), (1 - a).sum(), b.sum(), (1 - b).sum()]) + 0.5
    return by_z(a, b, np.log(counts) @ [1, -1, -1, 1], np.sqrt((1 / counts).sum()))


def rates(a, b):
    means = [(x.sum() + 0.5) / len(x) for x in (a, b)]
    var = sum(max(x.var(ddof=1), m) / len(x) / m**2 for x, m in zip((a, b), means, strict=True))
    return by_z(a, b, np.log(means[0] / means[1]), np.sqrt(var))


def censored_loss(mean, log_sd, low, high):
    sd = np.exp(log_sd)
    with np.errstate(divide="ignore"):
        between = np.log(stats.norm.cdf(high, mean, sd) - stats.norm.cdf(low, mean, sd))
    return -np.where(low == high, stats.norm.logpdf(low, mean, sd), between).sum()


def smallest(loss, start):
    """By a simplex search."""
    found = optimize.minimize(
        loss, start, method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10, "maxiter": 3000}
    )
    return found.x, found.fun


def variance_of_mean(m, s, low, high, e=1e-3):
    """By numerical second derivatives."""

    def loss(da, db):
        return censored_loss(m + da * e, s + db * e, low, high)

    mm, ss = loss(1, 0) - 2 * loss(0, 0) + loss(-1, 0), loss(0, 1) - 2 * loss(0, 0) + loss(0, -1)
    ms = (loss(1, 1) - loss(1, -1) - loss(-1, 1) + loss(-1, -1)) / 4
    return e**2 * ss / (mm * ss - ms**2)


def censored_t(line, a, b, back=lambda v: v):
    """Likelihood ratios: of no difference, and at both ends of the line's interval, where t is the critical one."""
    n = np.array([len(a[0]), len(b[0])])
    (x, fit_a), (y, fit_b) = (smallest(lambda v, own=own: censored_loss(*v, *own), [0.5, 0.0]) for own in (a, b))
    parts = np.array([variance_of_mean(*x, *a), variance_of_mean(*y, *b)]) * n / (n - 1)
    degrees = parts.sum() ** 2 / (parts**2 / (n - 1)).sum()
    difference = x[0] - y[0]

    def t_of(d):
        start = [(x[0] - d + y[0]) / 2, x[1], y[1]]
        both = smallest(lambda v: censored_loss(v[0] + d, v[1], *a) + censored_loss(v[0], v[2], *b), start)[1]
        return np.sqrt(degrees * np.expm1(2 * (both - fit_a - fit_b) / (degrees + 2)))

    for end in (line["low"], line["high"]):
        assert t_of(end) == pytest.approx(stats.t.ppf(0.975, degrees), rel=1e-3)
    assert line["low"] < difference < line["high"]
    t = np.sign(difference) * t_of(0.0)
    sd = np.sqrt((np.exp([2 * x[1], 2 * y[1]]) * n / (n - 1)).mean())
    p = 2 * stats.t.sf(abs(t), degrees)
    return [back(x[0]), back(y[0]), difference, line["low"], line["high"], t, p, difference / sd]


def hazards(a, b):
    sides = [stats.CensoredData(uncensored=low[low == high], right=low[low < high]) for low, high in (a, b)]
    found, curves = stats.logrank(*sides), [stats.ecdf(side).sf for side in sides]
    medians = [c.quantiles[c.probabilities <= 0.5][0] if (c.probabilities <= 0.5).any() else np.nan for c in curves]
    time, event = np.concatenate([a[0], b[0]]), np.concatenate([a[0] == a[1], b[0] == b[1]])
    own = np.arange(len(time)) < len(a[0])
    excess = sum(own[event & (time == t)].sum() - (event & (time == t)).sum() * own[time >= t].mean()
                 for t in np.unique(time[event]))  # fmt: skip
    se = abs(found.statistic / excess)  # z = (O − E)/√V, so √V = (O − E)/z, and the estimate's se is 1/√V
    estimate = excess * se**2
    interval = stats.norm.interval(0.95, estimate, se)
    z = np.sign(excess) * abs(found.statistic)
    return [*medians, estimate, *interval, z, found.pvalue, -estimate * np.sqrt(6) / np.pi]


def bounds(name, rows):
    """Lower and upper bounds of a column's observed cells in some rows, read here and by hand."""
    cells = FRAME.loc[rows, name]
    if name.endswith(" low"):
        low, high = cells, FRAME.loc[rows, name.replace(" low", " high")]
        known = low.notna() | high.notna()
        return low[known].fillna(-INF).to_numpy(), high[known].fillna(INF).to_numpy()
    if name == "weibull":
        known = cells.notna()
        died = FRAME.loc[rows, "died"][known] == "yes"
        return cells[known].to_numpy(), np.where(died, cells[known], INF)
    found = []
    for text in cells.dropna():
        a, _, b = (
            text.partition("-") if "e-" not in text and text.count("-") == 1 and text[0] != "-" else (text, "", "")
        )
        if text[0] in "<>":
            found.append((-INF, float(text[1:])) if text[0] == "<" else (float(text[1:]), INF))
        elif text.count("-") > 1 or b:
            cut = text.index("-", 1)
            found.append((float(text[:cut]), float(text[cut + 1 :])))
        else:
            found.append((float(a), float(a)))
    return tuple(np.array(found).T)


def logs(pair):
    low, high = pair
    return np.log(np.where(low == -INF, 1, low)) + np.where(low == -INF, -INF, 0), np.log(high)


def expected(line, name, kind, level, inside, outside):
    """[inside, outside, estimate, low, high, statistic, p, effect]."""
    if kind in ("censored_lognormal", "censored_gamma"):
        return censored_t(line, logs(bounds(name, inside)), logs(bounds(name, outside)), np.exp)
    if kind == "censored_gaussian":
        return censored_t(line, bounds(name, inside), bounds(name, outside))
    if kind == "weibull":
        return hazards(bounds(name, inside), bounds(name, outside))
    a, b = (FRAME.loc[rows, name].dropna().to_numpy() for rows in (inside, outside))
    if kind in ("bernoulli", "categorical"):
        return odds((a == level).astype(float), (b == level).astype(float))
    a, b = a.astype(float), b.astype(float)
    if kind in ("lognormal", "gamma"):
        return t_test(np.log(a), np.log(b), np.exp)
    if kind == "zero_lognormal" and level == "any":
        return odds((a > 0).astype(float), (b > 0).astype(float))
    if kind == "zero_lognormal":
        return t_test(np.log(a[a > 0]), np.log(b[b > 0]), np.exp)
    if kind in ("poisson", "negative_binomial", "zero_inflated_poisson"):
        return rates(a, b)
    return t_test(a / 6, b / 6) if kind == "binomial" else t_test(a, b)


NUMBERS = ["inside", "outside", "estimate", "low", "high", "statistic", "p", "effect"]


def test_every_line_is_what_scipy_says(result):
    lines = result.characteristics[result.characteristics["rows"] == "all"]
    subtype = result.clusters.subtype
    n_lines = {"zero_lognormal": 2, "categorical": 3}
    kinds = {column.name: column.kind for column in result.model.schema_.used}
    assert len(lines) == 2 * sum(n_lines.get(kind, 1) for kind in kinds.values())
    for line in lines.to_dict("records"):
        inside, outside = subtype == line["subtype"], (subtype > 0) & (subtype != line["subtype"])
        wanted = expected(line, line["column"], line["kind"], line["level"], inside, outside)
        found = [line[name] for name in NUMBERS]
        np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-5, err_msg=f"{line['column']} {line['level']}")
    np.testing.assert_allclose(lines["q"], stats.false_discovery_control(lines["p"]))


def test_gaps_are_counted_by_cells_and_not_by_columns(result):
    shares = result.columns.set_index("column")["gap_share"]
    for kind in ("censored_gaussian", "censored_lognormal", "censored_gamma"):
        both = FRAME[f"{kind} low"].isna() & FRAME[f"{kind} high"].isna()
        assert shares[f"{kind} low"] == pytest.approx(both.mean())
