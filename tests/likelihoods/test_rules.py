"""Rules are rules of a standard normal: weights, moments, polynomials, more than one function."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import factorial2

from plurigp.likelihoods.rules import REACH, even, expect, expect_with_slopes, gauss_hermite, log_expect


@pytest.mark.parametrize("n", [1, 2, 3, 5, 10, 20, 32, 100])
def test_weights_sum_to_one_and_the_variance_is_one(n):
    rule = gauss_hermite(n)
    points, weights = np.array(rule.points), np.array(rule.weights)
    assert len(points) == n
    assert weights.sum() == pytest.approx(1, abs=1e-14)
    assert (weights > 0).all()
    assert weights @ points == pytest.approx(0, abs=1e-13)
    if n > 1:  # the paper's code forgets a √2 and gets one half
        assert weights @ points**2 == pytest.approx(1, abs=1e-13)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 10, 20])
def test_exact_for_polynomials_up_to_degree_2n_minus_1(n):
    rule = gauss_hermite(n)
    for degree in range(2 * n):
        moment = 0.0 if degree % 2 else float(factorial2(degree - 1)) if degree else 1.0
        terms = np.array(rule.weights) * np.array(rule.points) ** degree
        assert terms.sum() == pytest.approx(moment, abs=1e-12 * max(np.abs(terms).sum(), 1))
    above = np.array(rule.weights) @ np.array(rule.points) ** (2 * n)
    assert above < float(factorial2(2 * n - 1)) * (1 - 1e-7)  # and no further


EVEN_TOLERANCE = {1: 1.0, 2: 1e-13, 3: 0.08, 4: 6e-3, 5: 6e-3, 6: 2e-3, 7: 6e-4, 8: 2e-4}  # of the second moment


@pytest.mark.parametrize("n", [*range(1, 40), 48, 64, 96, 200])
def test_even_points_are_a_rule_of_a_standard_normal_however_few(n):
    rule = even(n)
    points, weights = np.array(rule.points), np.array(rule.weights)
    assert len(points) == n
    assert weights.sum() == pytest.approx(1, abs=1e-14)
    assert weights @ points == pytest.approx(0, abs=1e-13)
    assert weights @ points**2 == pytest.approx(1, abs=EVEN_TOLERANCE.get(n, 1e-4 if n < 16 else 2e-7))
    assert np.abs(points).max() <= REACH


def test_few_even_points_are_those_of_gauss_hermite():
    assert [even(n) for n in (1, 2)] == [gauss_hermite(n) for n in (1, 2)]


@pytest.mark.parametrize("n", [32, 48, 64, 96])
def test_even_rules_that_families_use_reach_as_far_as_any(n):
    points = np.linspace(-REACH, REACH, n)
    weights = np.exp(-(points**2) / 2)
    assert even(n) == (tuple(points.tolist()), tuple((weights / weights.sum()).tolist()), False)


def test_expect_takes_mean_and_variance():
    mean, var, rule = jnp.array([1.5]), jnp.array([4.0]), gauss_hermite(5)
    assert float(expect(lambda f: f[0], mean, var, rule)) == pytest.approx(1.5)
    assert float(expect(lambda f: f[0] ** 2, mean, var, rule)) == pytest.approx(1.5**2 + 4)
    assert float(expect(lambda f: jnp.exp(f[0]), mean, var, gauss_hermite(40))) == pytest.approx(np.exp(1.5 + 2))


def test_expect_over_two_functions_that_are_independent():
    mean, var, rule = jnp.array([1.0, -2.0]), jnp.array([4.0, 9.0]), gauss_hermite(4)
    assert float(expect(lambda f: f[0] * f[1], mean, var, rule)) == pytest.approx(-2)
    assert float(expect(lambda f: f[0] ** 2 * f[1] ** 2, mean, var, rule)) == pytest.approx(5 * 13)


def test_log_expect_is_the_log_of_expect_and_survives_tiny_densities():
    mean, var, rule = jnp.array([0.3]), jnp.array([0.8]), gauss_hermite(15)
    log_g = lambda f: -jnp.abs(f[0]) - 1  # noqa: E731
    plain = jnp.log(expect(lambda f: jnp.exp(log_g(f)), mean, var, rule))
    assert float(log_expect(log_g, mean, var, rule)) == pytest.approx(float(plain), rel=1e-12)
    far = log_expect(lambda f: log_g(f) - 5000, mean, var, rule)
    assert float(far) == pytest.approx(float(plain) - 5000, rel=1e-12)


def test_log_expect_stays_in_the_precision_of_its_arguments():
    mean, var = jnp.array([0.3], jnp.float32), jnp.array([0.8], jnp.float32)
    assert log_expect(lambda f: -f[0], mean, var, gauss_hermite(4)).dtype == jnp.float32


def test_slopes_by_the_variance():
    """∂/∂v E[g] = ½ E[g″], here 3 for g = f³ at mean 1: ½ E[6 f]."""
    slope = jax.grad(lambda v: expect(lambda f: f[0] ** 3, jnp.array([1.0]), v, gauss_hermite(6)))(jnp.array([2.0]))
    assert float(slope[0]) == pytest.approx(3.0)


def test_slopes_of_the_same_sweep_are_those_of_the_sum_written_out():
    """By what is learned, by mean and by variance, also vmapped; facts and cells have none and may be whole numbers."""
    rule, data = gauss_hermite(15), (jnp.array(3), jnp.array([0.4]))
    theta, mean, var = {"a": jnp.array(0.7)}, jnp.array([0.3]), jnp.array([0.8])

    def g(theta, data, f):
        return jnp.log1p(jnp.exp(theta["a"] * f[0])) * data[0] + data[1][0] * jnp.sin(f[0])

    def written_out(theta, mean, var):
        at = mean + jnp.sqrt(var) * jnp.asarray(rule.points)[:, None]
        return sum(w * g(theta, data, f) for w, f in zip(rule.weights, at, strict=True))

    def one_sweep(theta, mean, var):
        return expect_with_slopes(g, rule, theta, data, mean, var)

    theirs = jax.value_and_grad(written_out, argnums=(0, 1, 2))(theta, mean, var)
    ours = jax.value_and_grad(one_sweep, argnums=(0, 1, 2))(theta, mean, var)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), ours, theirs)
    many = jax.vmap(jax.grad(one_sweep, argnums=1), in_axes=(None, 0, None))(theta, mean * jnp.ones((4, 1)), var)
    np.testing.assert_allclose(many, np.tile(theirs[1][1], (4, 1)), rtol=1e-12)
