"""log p(y|f) of every family: SciPy's number, the right slopes, and nothing infinite in float32."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate

from plurigp.data import KINDS
from plurigp.likelihoods.base import expected_log_prob, predictive_log_prob, predictive_mean
from plurigp.likelihoods.families.gaussian import FLOOR
from plurigp.likelihoods.registry import LIKELIHOODS

N_CELLS = 1000
STEP = 1e-5  # of the finite differences


def _slope(log_prob, cells, part: str, name: object, place: tuple[int, ...] = ()) -> np.ndarray:
    """∂ log p by one function or one parameter of every cell, by central differences."""
    sides = []
    for sign in (1, -1):
        theta, f = {k: v.copy() for k, v in cells.theta.items()}, cells.f.copy()
        if part == "f":
            f[:, name] += sign * STEP
        else:
            theta[name][(slice(None), *place)] += sign * STEP
        sides.append(np.asarray(log_prob(theta, cells.facts, cells.y, f)))
    return (sides[0] - sides[1]) / (2 * STEP)


def test_the_families_are_those_of_the_data_layer():
    assert set(LIKELIHOODS) == set(KINDS)
    assert all(LIKELIHOODS[kind].kind == kind for kind in KINDS)


def test_log_density_is_scipys(family, rng):
    cells = family.draw(rng, N_CELLS)
    ours = family.log_prob()(*cells)
    np.testing.assert_allclose(ours, family.scipy(cells), rtol=1e-10, atol=1e-12)


def test_slopes_by_functions_are_finite_differences(family, rng):
    cells = family.draw(rng, N_CELLS)
    one = lambda theta, facts, y, f: family.like.log_prob({**theta, **facts}, y, f)  # noqa: E731
    slopes = np.asarray(jax.jit(jax.vmap(jax.grad(one, argnums=3)))(*cells))
    log_prob = family.log_prob()
    for h in range(family.n_functions):
        expected = _slope(log_prob, cells, "f", h)
        scale = 1 + np.abs(np.asarray(log_prob(*cells)))  # rounding of a difference of two numbers of that size
        np.testing.assert_array_less(np.abs(slopes[:, h] - expected) / scale, 1e-6 * (1 + np.abs(expected)))


def test_slopes_by_theta_are_finite_differences(family, rng):
    cells = family.draw(rng, N_CELLS)
    one = lambda theta, facts, y, f: family.like.log_prob({**theta, **facts}, y, f)  # noqa: E731
    slopes = jax.jit(jax.vmap(jax.grad(one)))(*cells)
    for name in cells.theta:
        scale = 1 + np.abs(np.asarray(family.log_prob()(*cells)))
        for place in np.ndindex(cells.theta[name].shape[1:]):  # of a vector per column, such as an ordinal's gaps
            expected = _slope(family.log_prob(), cells, "theta", name, place)
            ours = np.asarray(slopes[name])[(slice(None), *place)]
            np.testing.assert_array_less(np.abs(ours - expected) / scale, 1e-6 * (1 + np.abs(expected)))


@pytest.mark.parametrize("log_sd", np.log([1e-6, 4.5e-5, 2.5e-3, 1e-2, 1.0, 1e3]))
def test_two_function_gaussian_is_a_density_at_every_log_sd(families, log_sd):
    """It integrates to one, and its deviation is the sampler's."""
    family = families["gaussian_hetero"]
    f, sd = np.array([[0.3, log_sd]]), np.hypot(FLOOR, np.exp(log_sd))
    y = 0.3 + sd * np.linspace(-12, 12, 4801)
    density = np.exp(family.log_prob()({}, {}, jnp.asarray(y)[:, None], jnp.tile(f, (len(y), 1))))
    assert integrate.simpson(density, x=y) == pytest.approx(1, abs=1e-9)
    assert integrate.simpson((y - 0.3) ** 2 * density, x=y) == pytest.approx(sd**2, rel=1e-9)
    drawn = family.like.sample(np.random.default_rng(0), {}, np.zeros((4000, 1)), np.tile(f, (4000, 1)))
    assert drawn.std() == pytest.approx(sd, rel=0.05)


def _extremes(n_functions: int) -> tuple[np.ndarray, np.ndarray]:
    """Means in [−6, 6] and variances up to 9, corners first."""
    rng = np.random.default_rng(3)
    mean = rng.uniform(-6, 6, (64, n_functions))
    var = rng.uniform(0, 9, (64, n_functions))
    for i, (a, v) in enumerate([(-6, 9), (6, 9), (0, 9), (-6, 1e-10), (6, 1e-10), (0, 1e-10)]):
        mean[i], var[i] = a, v
    mean[6:12, ::2], var[6:12] = -6, 9
    mean[6:12, 1::2] = 6
    return mean.astype(np.float32), var.astype(np.float32)


EXTREME_CELLS = {
    "gaussian": [(-8,), (0,), (8,)],
    "gaussian_hetero": [(-8,), (0,), (8,)],
    "lognormal": [(1e-30,), (1e-3,), (1,), (1e4,), (1e30,)],
    "zero_lognormal": [(0, 0), (1e-30, 0), (1, 0), (1e30, 0)],
    "censored_gaussian": [(-8, -8, 0), (-1e9, 0.3, 0), (-1e9, -8, 0), (8, 1e9, 0), (-1, 2, 0), (0.3, 0.3001, 0)],
    "censored_lognormal": [(1, 1, 0), (1e-30, 1e-3, 0), (1e3, 1e30, 0), (0.5, 2, 0)],
    "censored_gamma": [(1, 1, 0), (1e-30, 1e-3, 0), (1e3, 1e30, 0), (0.5, 2, 0), (1e-30, 1e30, 0)],
    "weibull": [(1, 1, 0), (1e-30, 1e-3, 0), (100, 1e30, 0), (0.5, 2, 0), (1e-30, 1e30, 0)],
    "bernoulli": [(0,), (1,)],
    "binomial": [(0, 1), (0, 300), (300, 300), (7, 10)],
    "beta": [(1e-6,), (0.3,), (1 - 1e-6,)],
    "zero_one_beta": [(0, 0), (1, 0), (1e-6, 0), (0.3, 0), (1 - 1e-6, 0)],
    "poisson": [(0,), (3,), (10_000,)],
    "categorical": [(0,), (4,)],
    "student_t": [(-1e4,), (0,), (8,)],
    "gamma": [(1e-30,), (1e-3,), (1,), (1e4,)],
    "negative_binomial": [(0,), (3,), (10_000,)],
    "zero_inflated_poisson": [(0,), (3,), (10_000,)],
    "ordinal": [(0,), (2,), (4,)],
}
NEW = {
    "student_t": [[-8.0], [0.0], [1.5], [8.0]],
    "gamma": [[0.05], [1.0], [6.0]],
    "censored_gaussian": [[0.4, 0.4, 0.0], [-1e9, 0.3, 0.0], [1.0, 1e9, 0.0], [-1.0, 2.0, 0.0], [0.3, 0.31, 0.0]],
    "censored_lognormal": [[0.4, 0.4, 0.0], [1e-30, 1.3, 0.0], [2.0, 1e30, 0.0], [0.5, 2.0, 0.0]],
    "censored_gamma": [[0.4, 0.4, 0.0], [1e-30, 1.3, 0.0], [2.0, 1e30, 0.0], [0.5, 2.0, 0.0]],
    "weibull": [[0.4, 0.4, 0.0], [1e-30, 1.3, 0.0], [2.0, 1e30, 0.0], [0.5, 2.0, 0.0]],
    "zero_one_beta": [[0.0, 0.0], [1.0, 0.0], [0.3, 0.0], [0.99, 0.0]],
    "negative_binomial": [[0.0], [3.0], [40.0]],
    "zero_inflated_poisson": [[0.0], [3.0], [40.0]],
    "ordinal": [[0.0], [1.0], [2.0], [4.0]],
}


DEAR = ("zero_one_beta",)  # three quarters of a minute


@pytest.mark.parametrize("kind", [pytest.param(k, marks=pytest.mark.slow) if k in DEAR else k for k in NEW])
def test_the_familys_own_rule_is_right_to_six_digits(families, kind):
    """Means in [−6, 6] and variances up to 9, against the plain density at four thousand points."""
    family = families[kind]
    like, theta = family.like, {name: jnp.asarray(value) for name, value in family.theta.items()}
    mean, var = (jnp.asarray(part, float) for part in _extremes(1))  # slopes given by hand take no NumPy arrays
    t = np.linspace(-12, 12, 4001)  # far enough for E[e^f] at a variance of 9
    w = np.exp(-(t**2) / 2) / np.exp(-(t**2) / 2).sum()

    @jax.jit
    def both(y):
        ours = jax.vmap(lambda a, v: expected_log_prob(like, theta, y, a, v, like.rule(like.n_quadrature)))(mean, var)
        at = mean[:, 0, None] + jnp.sqrt(var[:, 0, None]) * t
        return ours, jax.vmap(jax.vmap(lambda f: like.log_prob(theta, y, f[None])))(at) @ w

    for value in NEW[kind]:
        ours, exact = both(jnp.asarray(value))
        np.testing.assert_allclose(ours, exact, rtol=1e-6, atol=1e-6, err_msg=str(value))


@pytest.mark.parametrize("what", [expected_log_prob, predictive_log_prob, predictive_mean])
def test_float32_stays_finite_and_float32(family, what):
    mean, var = _extremes(family.n_functions)
    rule = family.like.rule(family.like.n_quadrature)
    theta = _float32_theta(family)
    over_cells = jax.jit(jax.vmap(lambda y, mean, var: what(family.like, theta, y, mean, var, rule), (None, 0, 0)))
    for y in EXTREME_CELLS[family.kind]:
        values = over_cells(jnp.asarray(y, jnp.float32), mean, var)
        assert np.isfinite(values).all(), y
        assert values.dtype == jnp.float32, f"{what.__name__} leaves float32 for {values.dtype}"


def test_float32_slopes_stay_finite(family):
    """By theta and by both moments of f, as training takes them."""
    mean, var = _extremes(family.n_functions)
    rule = family.like.rule(family.like.n_quadrature)
    facts = {k: v for k, v in _float32_theta(family).items() if k not in family.theta}
    learned = {k: jnp.asarray(v, jnp.float32) for k, v in family.theta.items()}

    def one(theta, mean, var, y):
        return expected_log_prob(family.like, {**theta, **facts}, y, mean, var, rule)

    slopes = jax.jit(jax.vmap(jax.grad(one, argnums=(0, 1, 2)), (None, 0, 0, None)))
    for y in EXTREME_CELLS[family.kind]:
        for leaf in jax.tree.leaves(slopes(learned, mean, var, jnp.asarray(y, jnp.float32))):
            assert leaf.dtype == jnp.float32
            assert np.isfinite(leaf).all(), y


def _float32_theta(family) -> dict:
    facts = {"n_levels": 5} if family.kind == "categorical" else {}
    return {**{k: jnp.asarray(v, jnp.float32) for k, v in family.theta.items()}, **facts}


def test_families_can_be_pickled(family):
    assert pickle.loads(pickle.dumps(family.like)) == family.like
