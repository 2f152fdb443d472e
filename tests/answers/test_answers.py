"""What a trained model answers: against brute-force integrals, and never dependent on the other rows of a call."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit, logsumexp

from plurigp.answers.density import cell_log_density, effective_sample_size, log_density, reconstruction
from plurigp.answers.draws import draw_given, draw_rows
from plurigp.answers.fill import fill_values, values_at
from plurigp.answers.latent import N_PROPOSALS, REFINE_DRAWS, latent, warn_of_few_draws
from plurigp.answers.predictor import Predictor, make_predictor, standard_draws
from plurigp.data import Coder, Table, infer_schema
from plurigp.inference.encoder import LatentNormal, independent, kl_x
from plurigp.inference.gp.linalg import packed_eye
from plurigp.inference.gp.sparse import Natural, moments, posterior_of, project
from plurigp.inference.model import Settings, init_model
from plurigp.inference.prior import MixturePrior, kl_to_prior, mixture_of
from plurigp.likelihoods import evaluate
from plurigp.likelihoods.families.gaussian import FLOOR
from plurigp.likelihoods.layout import arrange, first_slots, make_layout, rules_of

N = 16
MANY = 4000
SCHEMA = {"lab": "gaussian", "mark": {"kind": "bernoulli", "levels": [0, 1]}, "visits": "poisson"}
GRID = np.linspace(-9, 9, 3001)


def _frame(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    x = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "visits": rng.poisson(np.exp(0.5 + 0.5 * x)).astype(float),
            "lab": x + 0.5 * rng.normal(size=n),
            "mark": (x + rng.normal(size=n) > 0).astype(float),
        }
    )
    frame = frame.mask(rng.random(frame.shape) < 0.2)
    frame.iloc[3] = np.nan
    return frame


def _predictor(table: Table, n_components: int, encoder: str = "masked") -> Predictor:
    """An untrained model with a q(v) away from its prior and a wide q(x), so that no importance weight is wild."""
    layout = make_layout(table.schema)
    values, seen = arrange(layout, table)
    settings = Settings(n_components=n_components, n_inducing=6, encoder=encoder, lengthscale=2.0)
    rng = np.random.default_rng(6)
    with jax.enable_x64(True):
        model = init_model(0, settings, table.schema, layout, values, seen)
        model = eqx.tree_at(lambda m: m.gp.log_scale, model, jnp.full(layout.n_functions, -0.3))
        if encoder != "free":
            e = model.encoder
            wide = (0.2 * e.linear, jnp.full(n_components, 4.0))
            model = eqx.tree_at(lambda m: (m.encoder.linear, m.encoder.net_sd.b2), model, wide)
        Lam = np.tile(20 * packed_eye(6, float), (layout.n_functions, 1))
        q = posterior_of(Natural(jnp.asarray(20 * rng.normal(size=(layout.n_functions, 6))), jnp.asarray(Lam)))
    return make_predictor(model, q, layout, rules_of(layout, None))


@pytest.fixture(scope="module")
def table() -> Table:
    frame = _frame(N)
    return Coder.fit(frame, infer_schema(frame, SCHEMA)).table(frame)


WEIGHTS, MEANS, VARIANCES = np.array([0.8, 0.2]), np.array([-0.6, 1.5]), np.array([0.5, 0.2])  # of two groups
MIXTURE = mixture_of(WEIGHTS, MEANS[:, None], VARIANCES[:, None, None], np.float64)


def with_prior(predictor: Predictor, prior: MixturePrior | None) -> Predictor:
    return replace(predictor, model=replace(predictor.model, prior=prior))


@pytest.fixture(scope="module", params=[None, MIXTURE], ids=["normal", "mixture"])
def line(table, request) -> Predictor:
    """Q = 1, where integrals over x are sums over a grid; under either prior of x."""
    return with_prior(_predictor(table, 1), request.param)


def _log_prior(predictor: Predictor) -> np.ndarray:
    """log p(x) on the grid, by SciPy."""
    if predictor.model.prior is None:
        return stats.norm.logpdf(GRID)
    return np.log(stats.norm.pdf(GRID[:, None], MEANS, np.sqrt(VARIANCES)) @ WEIGHTS)


@pytest.fixture(scope="module")
def plane(table) -> Predictor:
    return _predictor(table, 2)


def _rows(table: Table, rows: slice | list[int]) -> Table:
    return Table(table.values[rows], table.seen[rows], table.schema, table.index[rows])


def _function_moments(predictor, x):
    """Mean and variance of every function at every x, [P B]."""
    with jax.enable_x64(True):
        f_mean, f_var = moments(predictor.model.gp, predictor.q, project(predictor.model.gp, jnp.asarray(x)))
    return np.asarray(f_mean), np.asarray(f_var)


def _grid_log_probs(predictor: Predictor, table: Table) -> np.ndarray:
    """log ∫ p(y_nd|f) q(f|x) df [N D grid] in schema order, by SciPy's densities and a sum over f."""
    f_mean, f_var = _function_moments(predictor, GRID[:, None])
    place = {predictor.layout.order[at]: at for at in range(3)}  # one function per column, in block order
    kinds = [column.kind for column in table.schema.used]
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    out = np.zeros((len(table.values), 3, len(GRID)))
    for d, kind in enumerate(kinds):
        mean, var = f_mean[place[d]], f_var[place[d]]
        y = table.values[:, d, None]
        if kind == "gaussian":
            theta = predictor.model.thetas[[b.likelihood.kind for b in predictor.layout.blocks].index("gaussian")]
            scale = np.sqrt(var + FLOOR**2 + np.exp(2 * theta["log_sd"]))
            out[:, d] = stats.t.logpdf(y, theta["n_cells"], mean, scale)
            continue
        f = mean + np.sqrt(var) * nodes[:, None]  # [J grid]
        if kind == "bernoulli":
            cells = stats.bernoulli.logpmf(y[..., None], expit(f)[None])
        else:
            cells = stats.poisson.logpmf(y[..., None], np.exp(f)[None])
        out[:, d] = logsumexp(cells, axis=1, b=(weights / weights.sum())[None, :, None])
    return out


def test_density_approaches_the_integral(line, table):
    cells = _grid_log_probs(line, table)
    rows = (cells * table.seen[:, :, None]).sum(1) + _log_prior(line)
    exact = logsumexp(rows, axis=1) + np.log(GRID[1] - GRID[0])
    few, many = (log_density(line, table, n_draws=n) for n in (64, MANY))
    np.testing.assert_allclose(many, exact, atol=0.02)
    np.testing.assert_allclose(few, exact, atol=0.2)


def test_an_empty_row_has_density_one(line, table):
    assert not table.seen[3].any()
    assert abs(log_density(line, table, n_draws=MANY)[3]) < 0.02


def test_a_hidden_cell_is_scored_by_the_cells_shown(line, table):
    """∫ p(y_d|x) p(x|shown) dx by a sum over the grid; draws are weighted, so that q(x) need not be exact."""
    shown = Table(table.values, table.seen & [True, False, True], table.schema, table.index)
    cells = _grid_log_probs(line, table)
    rows = (cells * shown.seen[:, :, None]).sum(1) + _log_prior(line)
    weights = rows - logsumexp(rows, axis=1, keepdims=True)
    exact = logsumexp(cells + weights[:, None], axis=2)
    ours = cell_log_density(line, shown, table, n_draws=MANY)
    np.testing.assert_allclose(ours[table.seen], exact[table.seen], atol=0.02)


def test_what_fills_a_gap_is_the_mean_given_the_cells_seen(line, table):
    """E[y_d | seen] of the real column by a sum over the grid."""
    d = [column.kind for column in table.schema.used].index("gaussian")
    shown = Table(table.values, table.seen & (np.arange(3) != d), table.schema, table.index)
    rows = (_grid_log_probs(line, table) * shown.seen[:, :, None]).sum(1) + _log_prior(line)
    f_mean = _function_moments(line, GRID[:, None])[0][line.layout.order.index(d)]
    exact = np.exp(rows - logsumexp(rows, axis=1, keepdims=True)) @ f_mean
    np.testing.assert_allclose(fill_values(line, shown, n_draws=MANY)[:, d], exact, atol=0.02)


def test_column_weights_are_powers_of_the_likelihood_that_places_a_row(table):
    """Filled cells and scores of cells given those shown, by a sum over the grid; a row's own density stays in full."""
    line = _predictor(table, 1)
    powers = np.array([0.3, 2.5, 0.05])  # schema order
    layout = replace(line.layout, column_weights=tuple(powers[list(line.layout.order)].tolist()))
    weighed = replace(line, layout=layout)
    d = [column.kind for column in table.schema.used].index("gaussian")
    shown = Table(table.values, table.seen & (np.arange(3) != d), table.schema, table.index)
    cells = _grid_log_probs(line, table)
    rows = (powers[:, None] * cells * shown.seen[:, :, None]).sum(1) + _log_prior(line)
    weights = rows - logsumexp(rows, axis=1, keepdims=True)
    f_mean = _function_moments(line, GRID[:, None])[0][layout.order.index(d)]
    np.testing.assert_allclose(fill_values(weighed, shown, n_draws=MANY)[:, d], np.exp(weights) @ f_mean, atol=0.03)
    ours, exact = cell_log_density(weighed, shown, table, n_draws=MANY), logsumexp(cells + weights[:, None], axis=2)
    np.testing.assert_allclose(ours[table.seen], exact[table.seen], atol=0.03)
    np.testing.assert_allclose(log_density(weighed, table), log_density(line, table), rtol=1e-12)
    assert (effective_sample_size(weighed, table) != effective_sample_size(line, table)).any()


def drawn(predictor, table, n_draws, columns=None):
    """All draws of all rows [S N D]."""
    chunks = draw_given(predictor, table, n_draws, 0, columns)
    return np.concatenate([np.stack(list(chunk.draws)) for chunk in chunks], axis=1)


@pytest.mark.parametrize("columns", [[0], [0, 2], None])
def test_gaps_of_the_columns_asked_for_are_drawn_and_nothing_else(line, table, columns):
    gaps = np.random.default_rng(0).random(table.seen.shape) < 0.5
    some = drawn(line, table.hidden(gaps), 3, columns)
    asked = gaps | ~table.seen
    if columns is not None:
        asked[:, [d for d in range(asked.shape[1]) if d not in columns]] = False
    assert asked.any()
    np.testing.assert_array_equal(np.isfinite(some), np.broadcast_to(asked, some.shape))


def test_a_table_without_gaps_has_nothing_to_draw(line, table):
    assert np.isnan(drawn(line, replace(table, seen=np.ones_like(table.seen)), 2)).all()


def test_draws_have_the_density_that_cells_are_scored_by(line, table):
    """Two cells tell the noise: both have the heavy tails of Student's t, and one distribution function."""
    d = [column.kind for column in table.schema.used].index("gaussian")
    number = [b.likelihood.kind for b in line.layout.blocks].index("gaussian")
    few = eqx.tree_at(lambda p: p.model.thetas[number]["n_cells"], line, np.full(1, 2.0))
    shown = Table(table.values, table.seen & (np.arange(3) != d), table.schema, table.index)
    draws = np.sort(drawn(few, shown, 4000)[:, 0, d])
    at = np.concatenate([-np.geomspace(1e3, 3, 100), np.linspace(-3, 3, 200)[1:-1], np.geomspace(3, 1e3, 100)])
    values, seen = (np.repeat(part[:1], len(at), axis=0) for part in (table.values, table.seen))
    rows = Table(values, seen, table.schema, pd.RangeIndex(len(at)))
    hidden = replace(rows, seen=rows.seen & (np.arange(3) != d))
    complete = replace(rows, values=rows.values.copy(), seen=hidden.seen | (np.arange(3) == d))
    complete.values[:, first_slots(table.schema.used)[d]] = at
    density = np.exp(cell_log_density(few, hidden, complete, n_draws=N_PROPOSALS)[:, d])
    below = np.concatenate([[0], np.cumsum(np.diff(at) * (density[1:] + density[:-1]) / 2)])
    share = np.searchsorted(draws, at) / len(draws)
    assert below[-1] == pytest.approx(1, abs=0.01)
    assert np.abs(share - below).max() < 0.03
    assert np.mean(np.abs(draws) > 5) > 0.01  # a normal of this sd would have next to none


def test_effective_draws_are_counted_and_missed(line, table, monkeypatch):
    """All of them where the weights are even; one where the encoder puts rows far from where their cells do."""
    nothing = replace(table, seen=np.zeros_like(table.seen))
    prior = eqx.tree_at(lambda p: p.model, line, line.model)
    sizes = effective_sample_size(prior, nothing, 32)
    assert sizes.shape == (len(table.seen),)
    assert (sizes > 1).all()
    assert (sizes <= 32 + 1e-9).all()
    with pytest.warns(RuntimeWarning, match="effective draws"):
        warn_of_few_draws(np.ones(10))
    warn_of_few_draws(np.full(10, 2.0))


def test_draws_given_a_row_are_draws_from_its_posterior(line, table):
    """Their mean and sd of a hidden real cell against the grid."""
    d = [column.kind for column in table.schema.used].index("gaussian")
    shown = Table(table.values, table.seen & (np.arange(3) != d), table.schema, table.index)
    draws = drawn(line, shown, 2000)[:, :, d]
    rows = (_grid_log_probs(line, table) * shown.seen[:, :, None]).sum(1) + _log_prior(line)
    weights = np.exp(rows - logsumexp(rows, axis=1, keepdims=True))
    f_mean, f_var = (part[line.layout.order.index(d)] for part in _function_moments(line, GRID[:, None]))
    theta = line.model.thetas[[b.likelihood.kind for b in line.layout.blocks].index("gaussian")]
    noise = float((FLOOR**2 + np.exp(2 * theta["log_sd"]))[0])
    mean = weights @ f_mean
    n = float(theta["n_cells"][0])
    sd = np.sqrt(weights @ (f_mean**2 + (f_var + noise) * n / (n - 2)) - mean**2)  # of Student's t
    np.testing.assert_allclose(draws.mean(0), mean, atol=0.1)
    np.testing.assert_allclose(draws.std(0), sd, rtol=0.1)


def test_cells_without_truth_have_no_density(line, table):
    cells = cell_log_density(line, table, table)
    np.testing.assert_array_equal(np.isnan(cells), ~table.seen)


def test_the_value_under_a_gap_does_not_matter(plane, table):
    other = np.where(table.seen, table.values, 1.0)  # one slot per column here
    altered = Table(other, table.seen, table.schema, table.index)
    assert (other != table.values).any()
    np.testing.assert_array_equal(latent(plane, table).mean, latent(plane, altered).mean)
    np.testing.assert_array_equal(log_density(plane, table), log_density(plane, altered))


@pytest.mark.parametrize("n_draws", [1, 2, 7, 64])
def test_draws_are_antithetic_and_standard(n_draws):
    draws = standard_draws(n_draws, 3)
    assert draws.shape == (n_draws, 3)
    np.testing.assert_array_equal(draws, standard_draws(n_draws, 3))
    pairs = n_draws // 2
    half = (n_draws + 1) // 2
    np.testing.assert_array_equal(draws[half:], -draws[:pairs])
    if n_draws > 2 and n_draws % 2 == 0:
        np.testing.assert_allclose(draws.mean(0), 0, atol=1e-12)
        np.testing.assert_allclose((draws**2).mean(0), 1)


def test_chunk_sizes_do_not_matter(plane, table, monkeypatch):
    def answers():
        q = latent(plane, table)
        return q.mean, q.sd, fill_values(plane, table), log_density(plane, table)

    usual = answers()
    monkeypatch.setattr("plurigp.answers.predictor.CHUNK_SIZES", (3, 7))
    for one, other in zip(usual, answers(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def _row_bounds(predictor: Predictor, table: Table, q: LatentNormal) -> np.ndarray:
    """What refinement raises: the bound of every row at fixed draws, the decoder frozen."""
    values, seen = arrange(predictor.layout, table)
    noise = standard_draws(REFINE_DRAWS, q.mean.shape[1])
    gp, posterior, thetas = predictor.model.gp, predictor.q, predictor.model.thetas

    @jax.jit
    def bounds(q: LatentNormal) -> jax.Array:
        def one_draw(z: jax.Array) -> jax.Array:
            f = moments(gp, posterior, project(gp, q.at(z[None, None])[0]))
            cells = evaluate.expected_log_probs(predictor.layout, thetas, values, seen, *f, predictor.rules)
            return jnp.concatenate(cells, 1).sum(1)

        return jax.lax.map(one_draw, noise).mean(0) - kl_to_prior(predictor.model.prior, q)

    with jax.enable_x64(True):
        return np.asarray(bounds(q))


def test_reconstruction_is_the_bound_without_its_penalty(plane, table):
    q = latent(plane, table)
    with jax.enable_x64(True):
        expected = _row_bounds(plane, table, q) + np.asarray(kl_x(q))
    cells = reconstruction(plane, table, REFINE_DRAWS)
    np.testing.assert_array_equal(np.isnan(cells), ~table.seen)
    np.testing.assert_allclose(np.nansum(cells, axis=1), expected, rtol=1e-9, atol=1e-9)


def test_refining_raises_the_bound_of_every_row(plane, table):
    before = _row_bounds(plane, table, latent(plane, table))
    after = _row_bounds(plane, table, latent(replace(plane, refined=True), table))
    assert (after > before - 1e-3).all()
    assert (after - before).mean() > 0.1


def test_refining_under_a_mixture_raises_its_bound(plane, table):
    """That of the mixture, which is not that of N(0, I)."""
    means, covariances = np.array([[-1.0, 0.5], [1.5, 0.0]]), np.tile(0.3 * np.eye(2), (2, 1, 1))
    mixed = replace(with_prior(plane, mixture_of(WEIGHTS, means, covariances, np.float64)), refined=True)
    q = latent(mixed, table)
    assert (_row_bounds(mixed, table, q) > _row_bounds(mixed, table, latent(plane, table)) - 1e-3).all()
    other = latent(replace(plane, refined=True), table)
    assert (_row_bounds(mixed, table, q) - _row_bounds(mixed, table, other)).mean() > 0.1


def test_refined_rows_do_not_touch_each_other(plane, table):
    together = latent(replace(plane, refined=True), table)
    for row in (0, 3, 11):
        alone = latent(replace(plane, refined=True), _rows(table, [row]))
        np.testing.assert_allclose(alone.mean[0], together.mean[row], atol=1e-7)
        np.testing.assert_allclose(alone.sd[0], together.sd[row], atol=1e-7)


def test_without_an_encoder_rows_are_placed_by_refinement(table):
    free = _predictor(table, 2, encoder="free")
    start = independent(np.zeros((N, 2)), np.full((N, 2), 0.5))
    placed = latent(free, table)
    assert (_row_bounds(free, table, placed) > _row_bounds(free, table, start)).all()
    np.testing.assert_allclose(placed.mean[3], 0, atol=1e-3)  # an empty row goes to the prior
    np.testing.assert_allclose(placed.sd[3], 1, atol=1e-2)


def test_drawn_rows_have_the_moments_of_the_model(line, table):
    n = 5000
    empty = Table(np.zeros((n, 3)), np.zeros((n, 3), bool), table.schema, pd.RangeIndex(n))
    rows = draw_rows(line, empty, seed=1)
    np.testing.assert_array_equal(rows, draw_rows(line, empty, seed=1))
    assert (rows != draw_rows(line, empty, seed=2)).any()
    weights = np.exp(_log_prior(line)) * (GRID[1] - GRID[0])
    f_mean, f_var = _function_moments(line, GRID[:, None])
    place = {line.layout.order[at]: at for at in range(3)}
    for d, column in enumerate(table.schema.used):
        mean, var = f_mean[place[d]], f_var[place[d]]
        f = mean + np.sqrt(var) * np.linspace(-6, 6, 401)[:, None]
        of_f = {"gaussian": f, "bernoulli": expit(f), "poisson": np.exp(f)}[column.kind]
        share = stats.norm.pdf(np.linspace(-6, 6, 401)) * 12 / 400
        expected = (share @ of_f) @ weights
        assert abs(rows[:, d].mean() - expected) < 5 * rows[:, d].std() / np.sqrt(n)


def test_values_at_a_position_do_not_depend_on_the_others(plane, table):
    x = np.random.default_rng(0).normal(size=(N, 2))
    together = values_at(plane, table, x)
    alone = values_at(plane, _rows(table, [7]), x[[7]])
    np.testing.assert_allclose(alone[0], together[7], atol=1e-9)
