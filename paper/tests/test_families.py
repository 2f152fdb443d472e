import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from plurigp.likelihoods.base import expected_log_prob, predictive_log_prob
from plurigp.likelihoods.families.gaussian import FLOOR, gaussian
from plurigp.likelihoods.registry import LIKELIHOODS
from plurigp.likelihoods.rules import gauss_hermite
from plurigp_paper.families import Mass, NoiseModel, declare, declare_halved, halved, tied

RULE = gauss_hermite(20)
Y, MEAN, VAR = jnp.array([0.7]), jnp.array([0.2]), jnp.array([0.3])


@pytest.mark.parametrize("form", [expected_log_prob, predictive_log_prob])
def test_with_the_librarys_floor_it_is_the_librarys_gaussian(form):
    theta = {"log_sd": jnp.array(-0.4)}
    ours = LIKELIHOODS[declare(NoiseModel(FLOOR))]
    np.testing.assert_allclose(form(ours, theta, Y, MEAN, VAR, RULE), form(gaussian, theta, Y, MEAN, VAR, RULE))


def test_no_noise_falls_below_the_floor():
    assert float(NoiseModel(0.2).var({"log_sd": -50.0})) == pytest.approx(0.04)


def test_a_shared_noise_is_one_for_all_columns():
    like = LIKELIHOODS[declare(NoiseModel(0.1, shared=True))]
    theta = {"log_sd": jnp.array([-1.0, 0.0, 0.4])}
    cells = [jnp.full((3, 1, 2), value) for value in (0.7, 0.2, 0.3)]
    for block, one in ((like.block_expected_log_prob, like.expected_log_prob),
                       (like.block_predictive_log_prob, like.predictive_log_prob)):  # fmt: skip
        expected = one({"log_sd": jnp.array(-0.2)}, Y, MEAN, VAR, RULE)
        np.testing.assert_allclose(block(theta, *cells, RULE), np.full((3, 2), expected), rtol=1e-6)
    slopes = jax.grad(lambda t: like.block_expected_log_prob({"log_sd": t}, *cells, RULE).sum())(theta["log_sd"])
    np.testing.assert_allclose(slopes, slopes[0], rtol=1e-6)
    np.testing.assert_allclose(tied(theta)["log_sd"], -0.2, rtol=1e-6)


def test_mass_of_both_levels_is_one_and_the_normal_cdf():
    noise = NoiseModel(0.1)
    like = Mass(noise).likelihood()
    theta = {"log_sd": jnp.array(-1.0), "cut": jnp.array(0.5)}
    logs = [float(predictive_log_prob(like, theta, jnp.array([y]), MEAN, VAR, RULE)) for y in (0.0, 1.0)]
    sd = np.sqrt(0.1**2 + np.exp(-2.0) + 0.3)
    np.testing.assert_allclose(np.exp(logs[0]), stats.norm.cdf(0.5, 0.2, sd), rtol=1e-5)
    assert np.exp(logs).sum() == pytest.approx(1, abs=1e-6)


def test_expected_mass_meets_the_integral(rng):
    like = Mass(NoiseModel(0.1)).likelihood()
    theta = {"log_sd": jnp.array(-1.0), "cut": jnp.array(0.5)}
    f = 0.2 + np.sqrt(0.3) * rng.normal(size=400_000)
    sampled = stats.norm.logsf(0.5, f, np.sqrt(0.01 + np.exp(-2.0))).mean()
    np.testing.assert_allclose(expected_log_prob(like, theta, jnp.array([1.0]), MEAN, VAR, RULE), sampled, atol=0.02)


def test_without_the_root_half_of_the_variance_is_integrated():
    points, weights = (np.array(part) for part in halved(10)[:2])
    assert weights.sum() == pytest.approx(1)
    assert weights @ points**2 == pytest.approx(0.5)


def test_declaring_twice_is_declaring_once():
    assert declare(NoiseModel(0.3, unit=0.25)) == declare(NoiseModel(0.3, unit=0.25))
    assert LIKELIHOODS[declare_halved("beta")] is LIKELIHOODS[declare_halved("beta")]
