"""Expectations over f ~ N(mean, var): closed forms meet the integral, quadrature meets more of it, draws meet both.

The reference is written apart from `rules.expect`: all nodes of a tensor grid at once, summed by NumPy.
"""

from functools import cache
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import gammaln, ndtr
from scipy import special, stats

from plurigp.data import Column
from plurigp.likelihoods.base import expected_log_prob, predictive_log_prob, predictive_mean
from plurigp.likelihoods.families.gaussian import FLOOR
from plurigp.likelihoods.registry import LIKELIHOODS
from plurigp.likelihoods.rules import expect, expect_by_sampling, gauss_hermite

N = 40  # cells per family


def grid(n_functions: int, n_nodes: int = 100, dense: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Nodes [G H] and weights [G] of a standard normal: Gauss–Hermite, or a fine trapezoid over ± 9 sd."""
    if dense:
        points = np.linspace(-9, 9, n_nodes)
        weights = np.exp(-(points**2) / 2)
    else:
        points, weights = np.polynomial.hermite_e.hermegauss(n_nodes)
    weights = weights / weights.sum()
    nodes = np.array(list(product(points, repeat=n_functions)))
    return nodes, np.prod(np.array(list(product(weights, repeat=n_functions))), axis=1)


@cache
def over_nodes(g):
    """g of every cell at every node: one program for all cells of one shape."""
    return jax.jit(jax.vmap(jax.vmap(g, (None, None, 0))))


@cache
def over_cells(what, like, n_quadrature):
    rule = like.rule(n_quadrature)
    return jax.jit(jax.vmap(lambda t, y, a, v: what(like, t, y, a, v, rule)))


class Reference:
    """E[log p], log E[p] and E[y] of cells whose moments are given, all by one grid."""

    def __init__(self, like, theta, y, mean, var, nodes, weights):
        self.like, self.theta, self.y, self.weights = like, theta, y, weights
        self.f = mean[:, None] + np.sqrt(var)[:, None] * nodes  # [n G H]

    def _over_nodes(self, g):
        return np.asarray(over_nodes(g)(self.theta, self.y, self.f))

    def expected_log_prob(self):
        return self._over_nodes(self.like.log_prob) @ self.weights

    def predictive_log_prob(self):
        return special.logsumexp(self._over_nodes(self.like.log_prob) + np.log(self.weights), axis=1)

    def predictive_mean(self):
        return np.einsum("ngr,g->nr", self._over_nodes(self.like.mean), self.weights)


def ours(what, like, theta, y, mean, var, n_quadrature=None):
    """One of base's three expectations over cells side by side."""
    return np.asarray(over_cells(what, like, n_quadrature or like.n_quadrature)(theta, y, mean, var))


def moments(rng, n_functions, top_var, spread=2.0):
    return rng.uniform(-spread, spread, (N, n_functions)), rng.uniform(0.01, top_var, (N, n_functions))


# --- closed forms ---


@pytest.mark.parametrize("top_var", [0.5, 4.0])
def test_gaussian_forms(families, rng, top_var):
    like = families["gaussian"].like
    mean, var = moments(rng, 1, top_var)
    theta = {"log_sd": rng.uniform(0.0, 0.7, N)}  # noise no narrower than the grid of 100 nodes can see
    y = rng.uniform(-3, 3, (N, 1))
    reference = Reference(like, theta, y, mean, var, *grid(1))
    for what in (expected_log_prob, predictive_log_prob, predictive_mean):
        np.testing.assert_allclose(
            ours(what, like, theta, y, mean, var), getattr(reference, what.__name__)(), rtol=1e-6, atol=1e-6
        )


@pytest.mark.parametrize("top_var", [0.5, 4.0])
def test_lognormal_forms(families, rng, top_var):
    like = families["lognormal"].like
    mean, var = moments(rng, 1, top_var)
    theta = {"log_sd": rng.uniform(0.0, 0.7, N)}
    y = np.exp(rng.uniform(-3, 3, (N, 1)))
    reference = Reference(like, theta, y, mean, var, *grid(1))
    for what in (expected_log_prob, predictive_log_prob, predictive_mean):
        np.testing.assert_allclose(
            ours(what, like, theta, y, mean, var), getattr(reference, what.__name__)(), rtol=1e-6, atol=1e-6
        )


def test_gaussian_predictive_with_little_noise(families, rng):
    like = families["gaussian"].like
    mean, var = moments(rng, 1, 9.0)
    theta = {"log_sd": rng.uniform(-4, -1, N)}
    y = mean + rng.normal(size=(N, 1))
    reference = Reference(like, theta, y, mean, var, *grid(1, 20_001, dense=True))
    np.testing.assert_allclose(
        ours(predictive_log_prob, like, theta, y, mean, var), reference.predictive_log_prob(), rtol=1e-6
    )


@pytest.mark.parametrize("kind", ["gaussian", "lognormal"])
@pytest.mark.parametrize("n_cells", [3, 20, 400])
def test_a_new_cells_density_knows_how_well_the_noise_is_known(families, rng, kind, n_cells):
    """Noise and q(f) both scaled by an inverse gamma with as many degrees of freedom as there are cells, integrated."""
    like = families[kind].like
    mean, var = moments(rng, 1, 2.0)
    theta = {"log_sd": rng.uniform(-1, 1, N), "n_cells": np.full(N, float(n_cells))}
    noise = FLOOR**2 + np.exp(2 * theta["log_sd"])
    y = mean + rng.uniform(-15, 15, (N, 1))
    share = np.exp(np.linspace(-12, 12, 40_001))  # of the variance, evenly spaced by its logarithm
    weight = stats.invgamma(n_cells / 2, scale=n_cells / 2).logpdf(share) + np.log(share) + np.log(24 / 40_000)
    total = (noise + var[:, 0])[:, None] * share
    exact = special.logsumexp(stats.norm.logpdf(y, mean, np.sqrt(total)) + weight, axis=1)
    if kind == "lognormal":
        exact, y = exact - y[:, 0], np.exp(y)
    np.testing.assert_allclose(ours(predictive_log_prob, like, theta, y, mean, var), exact, rtol=1e-6, atol=1e-6)


def test_far_from_all_it_has_seen_a_cell_costs_what_students_t_says(families):
    """And not the square of its distance: 233 sd away (a pixel blank in all images but one) costs 1,250, not 27,000."""
    like = families["gaussian"].like
    theta = {"log_sd": np.zeros(1), "n_cells": np.array([540.0])}
    cell = (np.array([[233.0]]), np.zeros((1, 1)), np.full((1, 1), 1e-9))
    sd = np.sqrt(1 + FLOOR**2)
    np.testing.assert_allclose(
        ours(predictive_log_prob, like, theta, *cell), stats.t.logpdf(233, 540, scale=sd), rtol=1e-7
    )
    assert like.start(np.zeros((7, 1)), Column("pixel", "gaussian")).theta["n_cells"] == 7


# Largest error of E[log p] of the two-function gaussian, relative to 1 + |E[log p]|, for variances up to so much.
HETERO_WITHIN = {0.25: 1e-6, 1.0: 2e-5, 4.0: 1e-4}


@pytest.mark.parametrize("top_var", HETERO_WITHIN)
def test_two_function_gaussian_is_the_integral_over_both(families, rng, top_var):
    """Log sds from far below the floor of the noise to far above it."""
    like = families["gaussian_hetero"].like
    mean = np.stack([rng.uniform(-2, 2, N), rng.uniform(-7, 3, N)], 1)
    var = rng.uniform(0.01, top_var, (N, 2))
    y = rng.uniform(-3, 3, (N, 1))
    integral = Reference(like, {}, y, mean, var, *grid(2, 401, dense=True)).expected_log_prob()
    off = np.abs(ours(expected_log_prob, like, {}, y, mean, var) - integral) / (1 + np.abs(integral))
    assert off.max() < HETERO_WITHIN[top_var]


def test_two_function_gaussian_slopes_near_the_floor(families, rng):
    """By the cell and by all four moments, in float64, as finite differences."""
    like = families["gaussian_hetero"].like
    rule = like.rule(like.n_quadrature)
    mean = np.stack([rng.uniform(-2, 2, N), rng.uniform(-7, 1, N)], 1)
    cells = np.concatenate([mean[:, :1] + rng.normal(0, 0.02, (N, 1)), mean, rng.uniform(0.01, 1, (N, 2))], 1)
    one = lambda c: expected_log_prob(like, {}, c[:1], c[1:3], c[3:], rule)  # noqa: E731
    value = jax.jit(jax.vmap(one))
    slopes = np.asarray(jax.jit(jax.vmap(jax.grad(one)))(jnp.asarray(cells)))
    scale = 1 + np.abs(np.asarray(value(jnp.asarray(cells))))
    for part, step in enumerate(1e-6 * np.eye(5)):
        by_hand = np.asarray(value(jnp.asarray(cells + step)) - value(jnp.asarray(cells - step))) / 2e-6
        np.testing.assert_array_less(np.abs(slopes[:, part] - by_hand), 1e-6 * scale + 1e-6 * np.abs(by_hand))


@pytest.mark.parametrize("top_var", [1.0, 4.0, 9.0])
def test_poisson_forms(families, rng, top_var):
    like = families["poisson"].like
    mean, var = moments(rng, 1, top_var)
    y = rng.poisson(np.exp(mean)).astype(float)
    reference = Reference(like, {}, y, mean, var, *grid(1))
    np.testing.assert_allclose(
        ours(expected_log_prob, like, {}, y, mean, var), reference.expected_log_prob(), rtol=1e-6, atol=1e-6
    )
    np.testing.assert_allclose(ours(predictive_mean, like, {}, y, mean, var), reference.predictive_mean(), rtol=1e-6)


@pytest.mark.parametrize("n_levels", [2, 3])
def test_categorical_forms(families, rng, n_levels):
    """Forty nodes for each of up to three functions are as good as exact at these variances."""
    like = families["categorical"].like
    mean, var = moments(rng, n_levels, 1.0)
    theta = {"n_levels": np.full(N, n_levels)}
    y = rng.integers(0, n_levels, (N, 1)).astype(float)
    reference = Reference(like, theta, y, mean, var, *grid(n_levels, 40))
    for what in (expected_log_prob, predictive_log_prob, predictive_mean):
        np.testing.assert_allclose(
            ours(what, like, theta, y, mean, var), getattr(reference, what.__name__)(), rtol=3e-6, atol=1e-6
        )


# --- quadrature at each family's own number of points ---

# Largest error in nats over the cells below, at the default J, against a fine trapezoid, for variances up to each
# of TOPS. Measured, then rounded up: a change that makes a rule coarser fails here.
TOPS = (0.25, 1.0, 4.0)
EXPECTED_WITHIN = {"bernoulli": (1e-9, 1e-5, 1e-3), "binomial": (1e-8, 1e-4, 1e-2), "beta": (1e-6, 1e-3, 0.1)}
PREDICTIVE_WITHIN = {
    "bernoulli": (1e-8, 1e-5, 2e-3),
    "binomial": (1e-4, 2e-2, 0.5),
    "beta": (5e-3, 0.2, 2.0),
    "poisson": (1e-3, 0.5, 3.0),
    "gaussian_hetero": (1e-7, 1e-3, 0.5),
}


def realistic(kind: str, rng: np.random.Generator, top_var: float):
    """Cells drawn from the model itself at f ~ N(mean, var), so that a cell is as surprising as cells are."""
    n_functions = 2 if kind == "gaussian_hetero" else 1
    mean, var = rng.uniform(-1.5, 1.5, (N, n_functions)), rng.uniform(0.05, top_var, (N, n_functions))
    f = mean + np.sqrt(var) * rng.normal(size=mean.shape)
    if kind == "bernoulli":
        return {}, (rng.random((N, 1)) < special.expit(f)).astype(float), mean, var
    if kind == "binomial":
        return {}, np.concatenate([rng.binomial(10, special.expit(f)), np.full((N, 1), 10)], 1) * 1.0, mean, var
    if kind == "beta":
        y = rng.beta(20 * special.ndtr(f), 20 * special.ndtr(-f)).clip(1e-4, 1 - 1e-4)
        return {"log_nu": np.full(N, np.log(20.0))}, y, mean, var
    if kind == "poisson":
        return {}, rng.poisson(np.exp(f)) * 1.0, mean, var
    return {}, f[:, :1] + np.exp(f[:, 1:]) * rng.normal(size=(N, 1)), mean, var


@pytest.mark.parametrize("kind", EXPECTED_WITHIN)
def test_default_rule_for_expected_log_prob(families, kind, rng):
    like = families[kind].like
    for top_var, within in zip(TOPS, EXPECTED_WITHIN[kind], strict=True):
        cells = realistic(kind, rng, top_var)
        reference = Reference(like, *cells, *grid(1, 4001, dense=True)).expected_log_prob()
        error = np.abs(ours(expected_log_prob, like, *cells) - reference).max()
        assert error < within


@pytest.mark.parametrize("kind", PREDICTIVE_WITHIN)
def test_default_rule_for_predictive_log_prob(families, kind, rng):
    like = families[kind].like
    for top_var, within in zip(TOPS, PREDICTIVE_WITHIN[kind], strict=True):
        cells = realistic(kind, rng, top_var)
        nodes = grid(2, 301, dense=True) if kind == "gaussian_hetero" else grid(1, 4001, dense=True)
        error = np.abs(ours(predictive_log_prob, like, *cells) - Reference(like, *cells, *nodes).predictive_log_prob())
        assert error.max() < within


@pytest.mark.parametrize("kind", [kind for kind, like in LIKELIHOODS.items() if like.single_precision])
def test_single_precision_is_enough_where_it_is_taken(families, kind, rng):
    """Densities within 1e-3 nats and means within 1e-5 of double precision, of cells that float32 holds."""
    like = families[kind].like
    cells = families[kind].draw(rng, 400)
    wide = {**cells.theta, **cells.facts}, cells.y, cells.f, rng.uniform(0.01, 1, cells.f.shape)
    narrow = [jax.tree.map(lambda leaf: leaf.astype(np.float32), part) for part in wide]
    wide = [jax.tree.map(lambda leaf: leaf.astype(float), part) for part in narrow]
    for what, within in ((predictive_log_prob, 1e-3), (predictive_mean, 1e-5)):
        exact, found = ours(what, like, *wide), ours(what, like, *narrow)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, exact, rtol=within, atol=within)


@pytest.mark.parametrize("kind", ["bernoulli", "binomial", "beta"])
def test_predictive_mean_of_the_quadrature_families(families, kind, rng):
    like = families[kind].like
    cells = realistic(kind, rng, 4.0)
    reference = Reference(like, *cells, *grid(1, 4001, dense=True)).predictive_mean()
    np.testing.assert_allclose(ours(predictive_mean, like, *cells), reference, atol=2e-3 * cells[1].max())


@pytest.mark.parametrize(
    "kind", ["bernoulli", "poisson", "categorical", "gaussian_hetero", "gaussian", "lognormal", "binomial"]
)
def test_slopes_of_the_expectation_are_finite_differences(families, kind, rng):
    family = families[kind]
    like, n_functions = family.like, min(family.n_functions, 4)
    mean, var = moments(rng, n_functions, 2.0)
    y = np.stack([rng.integers(0, 2, N), np.full(N, 3)], 1)[:, : 2 if kind == "binomial" else 1].astype(float)
    y = y + 0.5 if kind == "lognormal" else y
    theta = {**family.theta, "n_levels": n_functions}
    rule = like.rule(like.n_quadrature)
    within = 3e-5 if kind == "categorical" else 2e-6  # the softmax slope is the integral's, not its trapezoid's
    value = jax.jit(jax.vmap(lambda y, a, v: expected_log_prob(like, theta, y, a, v, rule)))
    by_mean, by_var = jax.jit(
        jax.vmap(jax.grad(lambda y, a, v: expected_log_prob(like, theta, y, a, v, rule), argnums=(1, 2)))
    )(y, mean, var)
    for h in range(n_functions):
        step = 1e-5 * np.eye(n_functions)[h]
        np.testing.assert_allclose(
            by_mean[:, h], (value(y, mean + step, var) - value(y, mean - step, var)) / 2e-5, rtol=1e-5, atol=within
        )
        np.testing.assert_allclose(
            by_var[:, h], (value(y, mean, var + step) - value(y, mean, var - step)) / 2e-5, rtol=1e-5, atol=within
        )


def test_the_papers_three_points_are_too_few_for_beta():
    """Design §2, where Φ is clipped at 1e-6: −9.08 at J = 3 where the truth is −7.60."""

    def log_prob(f):
        mu = jnp.clip(ndtr(f[0]), 1e-6, 1 - 1e-6)
        a, b = 20 * mu, 20 * (1 - mu)
        return gammaln(20.0) - gammaln(a) - gammaln(b) + (a - 1) * jnp.log(0.3) + (b - 1) * jnp.log(0.7)

    at = {n: float(expect(log_prob, jnp.array([-2.0]), jnp.array([4.0]), gauss_hermite(n))) for n in (3, 20, 60)}
    assert at[60] == pytest.approx(-7.60, abs=0.005)
    assert at[3] == pytest.approx(-9.08, abs=0.005)
    assert at[20] == pytest.approx(at[60], abs=0.05)


# --- by sampling ---


def test_sampling_converges_to_quadrature(families, rng):
    """The mean error over many cells falls like 1/√J, and is unbiased."""
    like = families["bernoulli"].like
    mean, var, y = jnp.array([0.7]), jnp.array([2.0]), jnp.array([1.0])
    log_prob = lambda f: like.log_prob({}, y, f)  # noqa: E731
    truth = float(expect(log_prob, mean, var, gauss_hermite(60)))
    many = jax.jit(jax.vmap(lambda noise: expect_by_sampling(log_prob, mean, var, noise)))
    errors = {}
    for n_draws in (4, 64):
        noise = jnp.asarray(rng.normal(size=(4000, n_draws, 1)))
        errors[n_draws] = np.asarray(many(noise)) - truth
        assert abs(errors[n_draws].mean()) < 4 * errors[n_draws].std() / np.sqrt(4000)
    assert errors[4].std() / errors[64].std() == pytest.approx(4.0, rel=0.1)


def test_sampling_takes_the_given_draws_and_nothing_else():
    """Two functions, two draws, by hand."""
    noise = jnp.array([[1.0, -1.0], [0.5, 2.0]])
    mean, var = jnp.array([1.0, 2.0]), jnp.array([4.0, 9.0])
    by_hand = ((1 + 2 * 1.0) * (2 + 3 * -1.0) + (1 + 2 * 0.5) * (2 + 3 * 2.0)) / 2
    assert float(expect_by_sampling(lambda f: f[0] * f[1], mean, var, noise)) == pytest.approx(by_hand, rel=1e-12)


def test_predictive_is_a_density(families):
    """exp(predictive) sums to one over the counts of a binomial and over the levels of a category."""
    binomial, categorical = families["binomial"].like, families["categorical"].like
    y = jnp.stack([jnp.arange(N), jnp.full(N, N - 1)], 1).astype(float)
    mean, var = jnp.full((N, 1), 0.4), jnp.full((N, 1), 1.5)
    assert np.exp(ours(predictive_log_prob, binomial, {}, y, mean, var)).sum() == pytest.approx(1, abs=1e-12)
    y, mean, var = jnp.arange(3.0)[:, None], jnp.tile(jnp.array([1.0, 0, -2]), (3, 1)), jnp.full((3, 3), 2.0)
    total = np.exp(ours(predictive_log_prob, categorical, {"n_levels": jnp.full(3, 3)}, y, mean, var)).sum()
    assert total == pytest.approx(1, abs=1e-12)


def test_gaussian_predictive_is_scipys(families, rng):
    like = families["gaussian"].like
    mean, var = moments(rng, 1, 4.0)
    y = rng.normal(size=(N, 1))
    theta = {"log_sd": np.full(N, -1.0)}
    sd = np.sqrt(0.01**2 + np.exp(-2.0) + var[:, 0])
    np.testing.assert_allclose(
        ours(predictive_log_prob, like, theta, y, mean, var), stats.norm.logpdf(y[:, 0], mean[:, 0], sd), rtol=1e-12
    )
