"""Columns side by side: the layout and its undoing, ragged categories, gaps, one program for any number of columns."""

from functools import cache
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from plurigp.data import KINDS, Column, Schema, Table
from plurigp.likelihoods import evaluate
from plurigp.likelihoods.base import expected_log_prob, mean_as_point, own_rule, predictive_log_prob, predictive_mean
from plurigp.likelihoods.evaluate import (
    cell_log_probs,
    column_starts,
    draws,
    encoder_features,
    expected_log_probs,
    points,
    predictive_log_probs,
    predictive_means,
    seen_features,
)
from plurigp.likelihoods.layout import arrange, make_layout, n_shared, rules_of
from plurigp.likelihoods.registry import LIKELIHOODS
from plurigp.likelihoods.rules import gauss_hermite


def column(kind: str, number: int, n_levels: int = 3) -> Column:
    extra = {"bernoulli": 2, "categorical": n_levels, "ordinal": n_levels}.get(kind, 0)
    levels = tuple(f"l{i}" for i in range(extra))
    return Column(f"{kind}{number}", kind, levels=levels, trials=7 if kind == "binomial" else None)


# Every kind, out of order, with an aside column and categories of three to eight levels among them.
SCHEMA = Schema(
    (
        column("poisson", 0),
        column("categorical", 0, 3),
        column("gaussian", 0),
        Column("id", "aside"),
        column("binomial", 0),
        column("categorical", 1, 8),
        column("gaussian_hetero", 0),
        column("bernoulli", 0),
        column("categorical", 2, 5),
        column("beta", 0),
        column("gaussian", 1),
        column("binomial", 1),
        column("categorical", 3, 4),
        column("gaussian_hetero", 1),
        column("categorical", 4, 6),
        column("categorical", 5, 7),
        column("lognormal", 0),
    )
)
SMALL = Schema((*(column(kind, 0) for kind in KINDS), column("categorical", 1, 5)))
DEAR = ("censored_gamma", "weibull", "zero_one_beta")
N = 6  # rows
LIMITED = ("censored_gaussian", "censored_lognormal", "censored_gamma", "weibull")


def cells(column: Column, rng: np.random.Generator, n: int) -> np.ndarray:
    """In-support values of a column [n W]."""
    if column.kind in ("gaussian", "gaussian_hetero", "student_t"):
        return rng.normal(size=(n, 1))
    if column.kind in ("lognormal", "gamma"):
        return np.exp(rng.normal(size=(n, 1)))
    if column.kind == "zero_lognormal":
        return np.stack([np.exp(rng.normal(size=n)) * (rng.random(n) < 0.6), np.zeros(n)], 1)
    if column.kind == "zero_one_beta":
        return np.stack([np.clip(rng.uniform(-0.3, 1.3, n), 0, 1), np.zeros(n)], 1)
    if column.kind in LIMITED:
        value = rng.normal(size=n) if column.kind == "censored_gaussian" else np.exp(rng.normal(size=n))
        low, high = KINDS[column.kind].stand_in[:2]
        what = rng.integers(0, 3, n)
        bounds = np.where(what == 1, low, value), np.where(what == 2, high, value)
        return np.stack([*bounds, np.zeros(n)], 1)
    if column.kind == "beta":
        return rng.uniform(0.05, 0.95, (n, 1))
    if column.kind in ("poisson", "negative_binomial", "zero_inflated_poisson"):
        return rng.poisson(3, (n, 1)).astype(float)
    if column.kind == "binomial":
        return np.stack([rng.integers(0, 8, n), np.full(n, 7)], 1).astype(float)
    return rng.integers(0, len(column.levels), (n, 1)).astype(float)


class Case:
    """A table, the moments of its functions and thetas, all drawn at random."""

    def __init__(self, schema: Schema, rng: np.random.Generator, n: int = N):
        self.schema, self.layout = schema, make_layout(schema)
        values = np.concatenate([cells(c, rng, n) for c in schema.used], 1)
        seen = rng.random((n, len(schema.used))) < 0.7
        self.table = Table(values, seen, schema, pd.RangeIndex(n))
        self.values, self.seen = arrange(self.layout, self.table)
        self.f_mean = rng.normal(size=(self.layout.n_functions, n))
        self.f_var = rng.uniform(0.05, 1.5, (self.layout.n_functions, n))
        self.thetas = tuple(
            {
                name: rng.uniform(0.0, 1.0, (b.n_columns, 1) if name == "log_gaps" else b.n_columns)  # three levels
                for name in THETA.get(b.likelihood.kind, ())
            }
            for b in self.layout.blocks
        )
        self.rules = rules_of(self.layout, {"beta": 6, "bernoulli": 5, "binomial": 5, "poisson": 6})

    def arrays(self) -> tuple:
        """What the functions of a whole table take."""
        return self.values, self.seen, self.f_mean, self.f_var

    def one_by_one(self):
        """(block number, column of the block, schema column, its functions, its slots), in block order."""
        at = 0
        for number, block in enumerate(self.layout.blocks):
            n_slots = KINDS[block.likelihood.kind].n_slots
            for c in range(block.n_columns):
                column = self.schema.used[self.layout.order[block.columns[0] + c]]
                functions = slice(at, at + block.n_functions[c])
                slot = block.slots[0] + c * n_slots
                yield number, c, column, functions, slice(slot, slot + n_slots)
                at = functions.stop


THETA = {
    "gaussian": ("log_sd",),
    "lognormal": ("log_sd",),
    "zero_lognormal": ("log_sd",),
    "beta": ("log_nu",),
    "student_t": ("log_scale", "log_df"),
    "gamma": ("log_shape",),
    "negative_binomial": ("log_r",),
    "zero_inflated_poisson": ("logit_zero",),
    "ordinal": ("first_cut", "log_gaps"),
    "censored_gaussian": ("log_sd",),
    "censored_lognormal": ("log_sd",),
    "censored_gamma": ("log_shape",),
    "weibull": ("log_shape",),
    "zero_one_beta": ("log_nu", "low_cut", "log_gap"),
}


@pytest.fixture
def case(rng) -> Case:
    return Case(SCHEMA, rng)


@pytest.fixture(params=["usual", pytest.param("every", marks=pytest.mark.slow)])
def small(rng, request) -> Case:
    """A column of every kind, and a wider category; those that take long to compile only among the slow tests."""
    kept = (c for c in SMALL.columns if request.param == "every" or c.kind not in DEAR)
    return Case(Schema(tuple(kept)), rng)


def test_layout_covers_every_column_slot_and_function_once(case):
    layout = case.layout
    assert sorted(layout.order) == list(range(len(SCHEMA.used)))
    assert sorted(layout.slot_order) == list(range(case.table.values.shape[1]))
    for part in ("columns", "slots", "functions"):
        edges = [getattr(b, part) for b in layout.blocks]
        assert edges[0][0] == 0
        assert all(left[1] == right[0] for left, right in pairwise(edges))
    assert layout.n_functions == sum(LIKELIHOODS[c.kind].n_functions(c) for c in SCHEMA.used)


def test_a_block_holds_one_family_and_widths_within_a_factor_of_two(case):
    kinds = [b.likelihood.kind for b in case.layout.blocks]
    assert kinds == [*sorted(kinds[:-2]), "gaussian", "lognormal"]  # constant curvature last
    assert kinds.count("categorical") == 2  # three and four levels; five to eight
    for number, _, column, _, _ in case.one_by_one():
        block = case.layout.blocks[number]
        assert column.kind == block.likelihood.kind
        assert block.width < 2 * min(block.n_functions) or column.kind != "categorical"


@pytest.mark.parametrize("kind", list(KINDS))
def test_constant_curvature_is_what_it_says(kind, rng):
    """∂E[log p]/∂v of a column is the same for any value and moments of f, for the families that say so alone."""
    case = Case(Schema((column(kind, 0),)), rng)

    def total(f_var):
        everything = np.ones_like(case.seen)
        cells = expected_log_probs(case.layout, case.thetas, case.values, everything, case.f_mean, f_var, case.rules)
        return cells[0].sum()

    by_var = np.asarray(jax.jit(jax.grad(total))(case.f_var))
    assert np.allclose(by_var, by_var[:, :1], rtol=1e-5) == LIKELIHOODS[kind].constant_curvature


def common(kinds: str, gaps: str = "") -> int:
    """n_shared of a table with a column of each of these kinds, and a single gap in each of the second."""
    schema = Schema(tuple(column(kind, number) for number, kind in enumerate(kinds.split())))
    seen = np.ones((N, len(schema.used)), bool)
    for number in gaps.split():
        seen[N - 1, int(number)] = False
    layout = make_layout(schema)
    return n_shared(layout, seen[:, list(layout.order)])


def test_only_the_last_blocks_of_constant_curvature_share_a_basis():
    assert common("gaussian bernoulli gaussian categorical") == 2
    assert common("gaussian lognormal poisson gaussian") == 3
    assert common("gaussian gaussian") == 2  # nothing else in the table
    assert common("bernoulli gaussian_hetero poisson") == 0
    assert common("gaussian bernoulli", gaps="1") == 1  # a gap elsewhere does not matter


def test_one_gap_makes_a_blocks_functions_their_own():
    assert common("gaussian bernoulli gaussian", gaps="0") == 0
    assert common("gaussian bernoulli gaussian", gaps="2") == 0
    assert common("gaussian gaussian lognormal", gaps="0") == 1  # the lognormal comes after it
    assert common("gaussian gaussian lognormal", gaps="2") == 0  # and nothing before a gap counts


def test_order_undoes_the_arrangement(case):
    values, seen = np.empty_like(case.values), np.empty_like(case.seen)
    values[:, list(case.layout.slot_order)] = case.values
    seen[:, list(case.layout.order)] = case.seen
    np.testing.assert_array_equal(values, case.table.values)
    np.testing.assert_array_equal(seen, case.table.seen)


def test_cells_hold_their_own_values_and_functions(case):
    first_slot = np.concatenate([[0], np.cumsum([KINDS[c.kind].n_slots for c in SCHEMA.used])])
    for number, c, column, functions, _ in case.one_by_one():
        block = case.layout.blocks[number]
        place = [u.name for u in SCHEMA.used].index(column.name)
        theirs = case.table.values[:, first_slot[place] : first_slot[place + 1]]
        np.testing.assert_array_equal(evaluate._cell_values(block, jnp.asarray(case.values).T)[c].T, theirs)
        f = list(evaluate._functions(case.layout, jnp.asarray(case.f_mean)))[number][c]
        n = block.n_functions[c]
        np.testing.assert_array_equal(f[:n], case.f_mean[functions])
        np.testing.assert_array_equal(f[n:], 0)


def test_expected_log_probs_are_a_double_loop_over_cells(case):
    """Rows by columns in plain Python, each cell alone and unpadded: three to eight levels share two blocks."""
    blocks = jax.jit(lambda *a: expected_log_probs(case.layout, case.thetas, *a, case.rules))(*case.arrays())
    for number, c, column, functions, slots in case.one_by_one():
        block, rule = case.layout.blocks[number], case.rules[number]
        theta = {k: v[c] for k, v in case.thetas[number].items()} | {"n_levels": functions.stop - functions.start}
        one = jax.jit(lambda y, a, v, like=block.likelihood, t=theta, r=rule: expected_log_prob(like, t, y, a, v, r))
        for n in range(N):
            expected = 0.0
            if case.seen[n, block.columns[0] + c]:
                expected = one(case.values[n, slots], case.f_mean[functions, n], case.f_var[functions, n])
            within = 1e-6 if column.kind == "categorical" else 1e-10  # narrow cells of a block take the coarse grid
            assert float(blocks[number][n, c]) == pytest.approx(float(expected), rel=within, abs=1e-12), column.name


@pytest.mark.slow
def test_predictions_are_those_of_every_cell_alone(small):
    """Log density and mean of each cell, and the point value that a gap is filled with."""
    values, seen, f_mean, f_var = small.arrays()
    density = jax.jit(lambda *a: predictive_log_probs(small.layout, small.thetas, *a, small.rules))(*small.arrays())
    means = jax.jit(lambda y, a, v: predictive_means(small.layout, small.thetas, y, a, v, small.rules))(
        values, f_mean, f_var
    )
    filled = np.asarray(points(small.layout, means))
    assert density.shape == filled.shape == seen.shape
    for number, c, column, functions, slots in small.one_by_one():
        block, rule = small.layout.blocks[number], small.rules[number]
        like, d = block.likelihood, block.columns[0] + c
        theta = {k: jnp.asarray(v[c]) for k, v in small.thetas[number].items()}
        theta["n_levels"] = functions.stop - functions.start

        def alone(what, like=like, theta=theta, rule=rule, slots=slots, functions=functions):
            over_rows = jax.jit(jax.vmap(lambda y, a, b: what(like, theta, y, a, b, rule)))
            return np.asarray(over_rows(values[:, slots], f_mean[functions].T, f_var[functions].T))

        within = 1e-5 if like.single_precision or column.kind == "categorical" else 1e-10  # predicted in float32
        expected = np.where(seen[:, d], alone(predictive_log_prob), 0)
        np.testing.assert_allclose(density[:, d], expected, rtol=within, atol=within, err_msg=column.name)
        mean = alone(predictive_mean)
        np.testing.assert_allclose(means[number][:, c, : mean.shape[1]], mean, rtol=within, atol=within)
        if column.kind == "categorical":
            np.testing.assert_array_equal(filled[:, d], mean.argmax(1))
        elif column.kind == "ordinal":  # the median level
            np.testing.assert_array_equal(filled[:, d], (np.cumsum(mean, 1) >= 0.5).argmax(1))
        elif like.point is mean_as_point:
            np.testing.assert_allclose(filled[:, d], mean[:, 0], rtol=max(within, 1e-7))
        else:
            np.testing.assert_array_equal(filled[:, d], np.round(mean[:, 0]))


def test_cell_log_probs_are_every_familys_own(small):
    case, f = small, small.f_mean[:, 0]
    ours = np.asarray(jax.jit(lambda y, f: cell_log_probs(case.layout, case.thetas, y, f))(case.values, f))
    for number, c, column, functions, slots in case.one_by_one():
        block = case.layout.blocks[number]
        theta = {k: jnp.asarray(v[c]) for k, v in case.thetas[number].items()}
        theta["n_levels"] = functions.stop - functions.start
        one = lambda y, t=theta, b=block, fs=functions: b.likelihood.log_prob(t, y, jnp.asarray(f[fs]))  # noqa: E731
        np.testing.assert_allclose(
            ours[:, block.columns[0] + c],
            jax.jit(jax.vmap(one))(case.values[:, slots]),
            rtol=1e-12,
            atol=1e-12,
            err_msg=column.name,
        )


# --- gaps ---


def test_gaps_give_zero_and_zero_slopes(small):
    """With the stand-ins that a Table holds; NaN anywhere fails, and so does a slope that leaks."""
    stand_ins = np.concatenate([KINDS[c.kind].stand_in for c in small.schema.used])[list(small.layout.slot_order)]

    def total(f_mean, f_var, thetas, values, seen):
        return sum(b.sum() for b in expected_log_probs(small.layout, thetas, values, seen, f_mean, f_var, small.rules))

    slopes_of = jax.jit(jax.value_and_grad(total, argnums=(0, 1, 2)))
    known = small.seen
    empty = np.tile(stand_ins, (N, 1)), np.zeros_like(known)
    value, slopes = slopes_of(small.f_mean, small.f_var, small.thetas, *empty)
    assert float(value) == 0
    for leaf in jax.tree.leaves(slopes):
        np.testing.assert_array_equal(leaf, 0)
    value, (by_mean, by_var, _) = slopes_of(small.f_mean, small.f_var, small.thetas, empty[0], known)
    assert np.isfinite(value)
    for number, c, column, functions, _ in small.one_by_one():
        gaps = ~known[:, small.layout.blocks[number].columns[0] + c]
        np.testing.assert_array_equal(np.asarray(by_mean)[functions, gaps], 0)
        np.testing.assert_array_equal(np.asarray(by_var)[functions, gaps], 0)
        if column.kind not in (*LIMITED, "zero_lognormal"):  # stand-ins and zero amounts say nothing of f
            assert (np.asarray(by_mean)[functions, ~gaps] != 0).all()
    without_variance = slopes_of(small.f_mean, np.zeros_like(small.f_var), small.thetas, small.values, known)
    for leaf in jax.tree.leaves(without_variance):
        assert np.isfinite(leaf).all()


# --- size of the program ---


def n_equations(jaxpr) -> int:
    """All equations of a jaxpr, those inside loops and calls too."""
    inner = [p for e in jaxpr.eqns for p in jax.tree.leaves(list(e.params.values()), is_leaf=_is_jaxpr) if _is_jaxpr(p)]
    return len(jaxpr.eqns) + sum(n_equations(getattr(p, "jaxpr", p)) for p in inner)


def _is_jaxpr(leaf: object) -> bool:
    return hasattr(leaf, "eqns") or hasattr(leaf, "jaxpr")


@pytest.mark.parametrize("kind", list(KINDS))
def test_784_columns_are_the_same_program_as_8(kind, rng):
    sizes = []
    for n_columns in (8, 784):
        case = Case(Schema(tuple(column(kind, i) for i in range(n_columns))), rng, n=2)

        def total(thetas, f_mean, f_var, case=case):
            cells = expected_log_probs(case.layout, thetas, case.values, case.seen, f_mean, f_var, case.rules)
            return sum(b.sum() for b in cells)

        traced = jax.make_jaxpr(jax.grad(total, argnums=(0, 1, 2)))(case.thetas, case.f_mean, case.f_var)
        sizes.append(n_equations(traced.jaxpr))
    assert sizes[0] > 10
    assert sizes[0] == sizes[1]


# --- rules, draws, features, starts ---


def test_rules_follow_the_family_unless_told(case):
    kinds = [b.likelihood.kind for b in case.layout.blocks]
    n = lambda rules: dict(zip(kinds, (len(r.points) for r in rules), strict=True))  # noqa: E731
    assert n(rules_of(case.layout, None)) == {k: LIKELIHOODS[k].n_quadrature for k in kinds}
    assert set(n(rules_of(case.layout, 3)).values()) == {3}
    assert n(rules_of(case.layout, {"beta": 7}))["beta"] == 7
    assert n(rules_of(case.layout, {"beta": 7}))["bernoulli"] == LIKELIHOODS["bernoulli"].n_quadrature


def test_a_number_of_points_counts_for_categories(rng):
    """Both forms, a block's and one cell's, by J points for each level; without a number as if no rule were there."""
    like, levels = LIKELIHOODS["categorical"], tuple("abcd")
    layout = make_layout(Schema((Column("stage", "categorical", levels=levels),)))
    assert rules_of(layout, None) == (own_rule(like),)
    assert rules_of(layout, 10) == rules_of(layout, {"categorical": 10}) == (gauss_hermite(10),)
    assert rules_of(layout, {"beta": 3}) == rules_of(layout, None)  # known, and not in this table
    mean, var = rng.normal(size=(4, N)), rng.uniform(0.5, 6, (4, N))
    values, seen = rng.integers(0, 4, (N, 1)).astype(float), np.ones((N, 1), bool)

    @cache
    def block_form(n_quadrature):
        rules = rules_of(layout, n_quadrature)

        @jax.jit
        def all_three(values, seen, mean, var):
            arrays = (values, seen, mean, var, rules)
            return (
                expected_log_probs(layout, ({},), *arrays)[0][:, 0],
                predictive_log_probs(layout, ({},), *arrays)[:, 0],
                predictive_means(layout, ({},), values, mean, var, rules)[0][:, 0, 0],
            )

        return [np.asarray(part) for part in all_three(values, seen, mean, var)]

    def cell_form(rule):
        theta = {"n_levels": jnp.asarray(4)}
        what = (expected_log_prob, predictive_log_prob, predictive_mean)

        def one_cell(y, a, v):
            return [one(like, theta, y, a, v, rule) for one in what]

        log_prob, density, mean_ = jax.jit(jax.vmap(one_cell, -1, -1))(values.T, mean, var)
        return [np.asarray(log_prob), np.asarray(density), np.asarray(mean_)[0]]

    best = block_form(40)
    for J, within in ((1, 2.0), (3, 0.5), (6, 0.1), (20, 2e-3)):
        for block, cell, exact in zip(block_form(J), cell_form(gauss_hermite(J)), best, strict=True):
            np.testing.assert_allclose(block, cell, atol=2e-6)
            assert np.abs(block - exact).max() < within
    off = [np.abs(block_form(J)[0] - best[0]).max() for J in (1, 3, 6, 20)]
    assert off[0] > 3 * off[1] > 9 * off[2] > 27 * off[3]
    for block, cell, exact in zip(block_form(None), cell_form(own_rule(like)), best, strict=True):
        np.testing.assert_allclose(block, cell, atol=3e-5)
        np.testing.assert_allclose(block, exact, atol=1e-3)


def test_slopes_of_categories_by_few_points_are_finite_differences(rng):
    layout = make_layout(Schema((Column("stage", "categorical", levels=tuple("abcd")),)))
    mean, var = rng.normal(size=(4, N)), rng.uniform(0.2, 1, (4, N))
    values, seen = rng.integers(0, 4, (N, 1)).astype(float), np.ones((N, 1), bool)
    total = lambda a, v: expected_log_probs(layout, ({},), values, seen, a, v, rules_of(layout, 5))[0].sum()  # noqa: E731
    slopes = jax.jit(jax.grad(total, argnums=(0, 1)))(jnp.asarray(mean), jnp.asarray(var))
    for slope, way in zip(slopes, ((1, 0), (0, 1)), strict=True):
        step = 1e-5 * rng.normal(size=mean.shape)
        up, down = (total(mean + side * way[0] * step, var + side * way[1] * step) for side in (1, -1))
        assert float((slope * step).sum()) == pytest.approx(float(up - down) / 2, abs=3e-9)


def test_a_kind_that_is_not_known_is_named_with_the_nearest(case):
    with pytest.raises(ValueError, match=r"n_quadrature: 'categorial' is not one of .* Did you mean 'categorical'\?"):
        rules_of(case.layout, {"categorial": 5})


@pytest.mark.slow
def test_sampling_is_unbiased_for_every_family(small):
    """The mean over many keys of the sampled expectation is the quadrature's, cell by cell."""
    n_keys = 1000
    arrays = (small.values, np.ones_like(small.seen), small.f_mean, 0.2 * small.f_var)
    rules = rules_of(small.layout, 3)  # three draws
    keys = jax.random.split(jax.random.key(0), n_keys)

    def sampled_once(key):
        def normals(block, shape):
            return jax.random.normal(jax.random.fold_in(key, block), shape, small.f_mean.dtype)

        return expected_log_probs(small.layout, small.thetas, *arrays, rules, normals)

    sampled = jax.jit(lambda: jax.lax.map(sampled_once, keys))()
    exact = jax.jit(lambda: expected_log_probs(small.layout, small.thetas, *arrays, rules_of(small.layout, None)))()
    for many, one in zip(sampled, exact, strict=True):
        error = np.asarray(many).std(0) / np.sqrt(n_keys)
        np.testing.assert_array_less(np.abs(np.asarray(many).mean(0) - one), 5 * error + 1e-5)


def test_draws_are_in_support_and_differ_between_cells(small):
    drawn = draws(small.layout, small.thetas, small.values, np.zeros_like(small.f_mean.T), np.random.default_rng(1))
    assert drawn.shape == small.seen.shape
    for number, c, column, _, slots in small.one_by_one():
        y = drawn[:, small.layout.blocks[number].columns[0] + c]
        if column.kind in LIMITED:
            low, high = small.values[:, slots][:, :2].T
            assert ((low <= y) & (y <= high)).all()
        elif column.kind == "zero_one_beta":
            assert ((y >= 0) & (y <= 1)).all()
        elif column.kind == "zero_lognormal":
            assert (y >= 0).all()
        elif LIKELIHOODS[column.kind].point is mean_as_point:
            assert len(np.unique(y)) == N
        else:
            top = {"binomial": 7}.get(column.kind, len(column.levels) - 1 if column.levels else np.inf)
            assert ((y == np.round(y)) & (y >= 0) & (y <= top)).all()


def test_features_and_their_seen_lie_in_the_same_order(case):
    features = np.asarray(encoder_features(case.layout, jnp.asarray(case.values)))
    seen = np.asarray(seen_features(case.layout, jnp.asarray(case.seen)))
    assert features.shape == seen.shape
    at = 0
    for number, c, column, _, slots in case.one_by_one():
        block = case.layout.blocks[number]
        width = block.width if column.kind == "categorical" else 1
        own = case.seen[:, block.columns[0] + c]
        np.testing.assert_array_equal(seen[:, at : at + width], np.repeat(own[:, None], width, axis=1))
        if column.kind == "categorical":
            one_hot = np.eye(width)[case.values[:, slots][:, 0].astype(int)]
            np.testing.assert_array_equal(features[:, at : at + width], one_hot)
        at += width
    assert at == features.shape[1]


def test_starts_come_from_the_observed_cells_alone(case):
    bias, thetas = column_starts(SCHEMA, case.layout, case.values, case.seen)
    assert bias.shape == (case.layout.n_functions,)
    hidden = case.values.copy()
    for number, c, _, _, slots in case.one_by_one():
        gaps = ~case.seen[:, case.layout.blocks[number].columns[0] + c]
        hidden[np.ix_(gaps, range(slots.start, slots.stop))] = 1.0
    again, thetas_again = column_starts(SCHEMA, case.layout, hidden, case.seen)
    np.testing.assert_array_equal(bias, again)
    jax.tree.map(np.testing.assert_array_equal, thetas, thetas_again)


def test_starts_of_an_empty_column_do_not_look_under_its_gaps(case):
    seen = np.zeros_like(case.seen)
    other = case.values.copy()
    for _, _, column, _, slots in case.one_by_one():
        other[:, slots.start] = 0.9 if column.kind == "beta" else 1.0
    one, two = (column_starts(SCHEMA, case.layout, v, seen)[0] for v in (case.values, other))
    np.testing.assert_array_equal(one, two)
