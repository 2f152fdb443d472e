"""Draws follow SciPy's distribution: Kolmogorov–Smirnov for densities, chi-square for masses."""

import numpy as np
import pytest
from scipy import special, stats

from plurigp.likelihoods.families.beta import EDGE
from plurigp.likelihoods.families.gaussian import FLOOR
from plurigp.likelihoods.registry import LIKELIHOODS

N_DRAWS = 20_000
P_VALUE = 1e-3  # fixed seeds: a test that passes once passes always


def draws(kind: str, theta: dict, y, f, seed: int = 0) -> np.ndarray:
    """Independent draws of one cell."""
    theta = {name: np.asarray([value]) for name, value in theta.items()}  # one column, as in a block
    cells = [np.broadcast_to(np.asarray(part, float), (N_DRAWS, 1, len(part))) for part in (y, f)]
    out = LIKELIHOODS[kind].sample(np.random.default_rng(seed), theta, *cells)
    assert out.shape == (N_DRAWS, 1)
    assert out.dtype == np.float64
    return out[:, 0]


def chi_square(counts: np.ndarray, mass: np.ndarray) -> float:
    """The p-value of counts per value, values with fewer than ten expected draws taken together."""
    expected = N_DRAWS * np.append(mass, max(1 - mass.sum(), 0))
    counts = np.append(counts, N_DRAWS - counts.sum())
    order = np.argsort(-expected)
    kept = order[expected[order] >= 10]
    rest = order[expected[order] < 10]
    observed, expected = np.append(counts[kept], counts[rest].sum()), np.append(expected[kept], expected[rest].sum())
    if expected[-1] < 1e-9:
        assert observed[-1] == 0
        observed, expected = observed[:-1], expected[:-1]
    return stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue


def assert_masses(values: np.ndarray, top: int, pmf) -> None:
    assert (values == np.round(values)).all()
    assert (values >= 0).all()
    support = np.arange(top + 1)
    counts = np.bincount(np.minimum(values, top + 1).astype(int), minlength=top + 2)[:-1]
    assert chi_square(counts, pmf(support)) > P_VALUE


@pytest.mark.parametrize(("log_sd", "f"), [(-1.0, 2.0), (0.5, -3.0), (-9.0, 0.2)])
def test_gaussian(log_sd, f):
    got = draws("gaussian", {"log_sd": log_sd}, [0.0], [f])
    sd = np.sqrt(FLOOR**2 + np.exp(2 * log_sd))
    assert stats.kstest(got, stats.norm(f, sd).cdf).pvalue > P_VALUE


@pytest.mark.parametrize(("log_sd", "f"), [(-1.0, 2.0), (0.5, -3.0)])
def test_lognormal(log_sd, f):
    got = draws("lognormal", {"log_sd": log_sd}, [1.0], [f])
    sd = np.sqrt(FLOOR**2 + np.exp(2 * log_sd))
    assert stats.kstest(got, stats.lognorm(sd, scale=np.exp(f)).cdf).pvalue > P_VALUE


@pytest.mark.parametrize("f", [(2.0, -1.0), (-1.0, 0.7), (0.3, -9.0)])
def test_two_function_gaussian(f):
    got = draws("gaussian_hetero", {}, [0.0], f)
    assert stats.kstest(got, stats.norm(f[0], np.hypot(FLOOR, np.exp(f[1]))).cdf).pvalue > P_VALUE


@pytest.mark.parametrize(("nu", "f"), [(20.0, -0.5), (2.0, 0.3), (100.0, 1.5), (1.0, -0.2)])
def test_beta(nu, f):
    got = draws("beta", {"log_nu": np.log(nu)}, [0.5], [f])
    mu = EDGE + (1 - 2 * EDGE) * special.ndtr(f)
    assert ((got > 0) & (got < 1)).all()
    assert stats.kstest(got, stats.beta(nu * mu, nu * (1 - mu)).cdf).pvalue > P_VALUE


@pytest.mark.parametrize(("log_scale", "log_df", "f"), [(-1.0, 1.0, 2.0), (0.5, 3.0, -3.0)])
def test_student_t(log_scale, log_df, f):
    got = draws("student_t", {"log_scale": log_scale, "log_df": log_df}, [0.0], [f])
    scale = np.sqrt(FLOOR**2 + np.exp(2 * log_scale))
    assert stats.kstest(got, stats.t(1 + np.exp(log_df), f, scale).cdf).pvalue > P_VALUE


@pytest.mark.parametrize(("log_shape", "f"), [(-1.0, 0.5), (0.0, -2.0), (3.0, 1.0)])
def test_gamma(log_shape, f):
    got = draws("gamma", {"log_shape": log_shape}, [1.0], [f])
    assert stats.kstest(got, stats.gamma(np.exp(log_shape), scale=np.exp(f - log_shape)).cdf).pvalue > P_VALUE


BOUNDS = [(-1e9, 1e9), (-1e9, 0.5), (2.0, 1e9), (0.5, 2.0), (12.0, 1e9)]  # the last one far out in the tail


@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_censored_gaussian_stays_inside_its_bounds(low, high):
    got = draws("censored_gaussian", {"log_sd": 0.0}, [low, high, 0.0], [1.0])
    sd = np.sqrt(FLOOR**2 + 1)
    assert ((got >= low) & (got <= high)).all()
    assert stats.kstest(got, stats.truncnorm((low - 1) / sd, (high - 1) / sd, 1.0, sd).cdf).pvalue > P_VALUE


@pytest.mark.parametrize(
    ("kind", "theta", "law"),
    [
        ("censored_lognormal", {"log_sd": 0.0}, stats.lognorm(np.sqrt(FLOOR**2 + 1), scale=np.exp(0.5))),
        ("censored_gamma", {"log_shape": 0.7}, stats.gamma(np.exp(0.7), scale=np.exp(0.5 - 0.7))),
        ("weibull", {"log_shape": 0.4}, stats.weibull_min(np.exp(0.4), scale=np.exp(0.5))),
    ],
)
@pytest.mark.parametrize(("low", "high"), [(1e-30, 1e30), (1e-30, 0.7), (3.0, 1e30), (0.7, 3.0)])
def test_positive_families_stay_inside_their_bounds(kind, theta, law, low, high):
    got = draws(kind, theta, [low, high, 0.0], [0.5])
    assert ((got >= low) & (got <= high)).all()
    below, above = law.cdf(low), law.cdf(high)
    assert stats.kstest(got, lambda y: (law.cdf(y) - below) / (above - below)).pvalue > P_VALUE


@pytest.mark.parametrize("kind", ["censored_gaussian", "censored_lognormal", "censored_gamma", "weibull"])
def test_a_known_value_is_given_back(kind):
    theta = {"log_sd": 0.0} if kind in ("censored_gaussian", "censored_lognormal") else {"log_shape": 0.0}
    np.testing.assert_array_equal(draws(kind, theta, [0.8, 0.8, 0.0], [-2.0]), 0.8)


@pytest.mark.parametrize("f", [-1.0, 0.2, 1.0])
def test_zero_one_beta(f):
    got = draws("zero_one_beta", {"log_nu": 2.0, "low_cut": -1.0, "log_gap": 0.7}, [0.5, 0.0], [f])
    zero, one = special.ndtr(-1 - f), special.ndtr(f + 1 - np.exp(0.7))
    counts = np.array([(got == 0).sum(), (got == 1).sum()])
    assert chi_square(counts, np.array([zero, one])) > P_VALUE
    mu, nu = EDGE + (1 - 2 * EDGE) * special.ndtr(f), np.exp(2.0)
    inside = got[(got > 0) & (got < 1)]
    assert stats.kstest(inside, stats.beta(nu * mu, nu * (1 - mu)).cdf).pvalue > P_VALUE


@pytest.mark.parametrize("f", [-1.0, 1.5])
def test_zero_lognormal(f):
    got = draws("zero_lognormal", {"log_sd": -0.5}, [0.0, 0.0], [f, 0.4])
    assert chi_square(np.array([(got == 0).sum()]), np.array([special.expit(-f)])) > P_VALUE
    sd = np.sqrt(FLOOR**2 + np.exp(-1.0))
    assert stats.kstest(got[got > 0], stats.lognorm(sd, scale=np.exp(0.4)).cdf).pvalue > P_VALUE


@pytest.mark.parametrize(("log_r", "f"), [(-0.5, 1.0), (1.5, 2.0)])
def test_negative_binomial(log_r, f):
    law = stats.nbinom(np.exp(log_r), special.expit(log_r - f))
    assert_masses(draws("negative_binomial", {"log_r": log_r}, [0.0], [f]), 60, law.pmf)


@pytest.mark.parametrize(("logit_zero", "f"), [(-1.0, 1.0), (1.0, 0.0)])
def test_zero_inflated_poisson(logit_zero, f):
    zero = special.expit(logit_zero)
    got = draws("zero_inflated_poisson", {"logit_zero": logit_zero}, [0.0], [f])
    assert_masses(got, 20, lambda k: zero * (k == 0) + (1 - zero) * stats.poisson.pmf(k, np.exp(f)))


@pytest.mark.parametrize("f", [-2.0, 0.3, 3.0])
def test_ordinal(f):
    theta = {"first_cut": -1.0, "log_gaps": np.array([0.1, -0.4, 0.2])}
    cuts = np.concatenate([[-np.inf], np.cumsum([-1.0, *np.exp(theta["log_gaps"])]), [np.inf]])
    assert_masses(draws("ordinal", theta, [0.0], [f]), 4, lambda k: np.diff(special.ndtr(cuts - f))[k])


@pytest.mark.parametrize("f", [-3.0, 0.4, 2.0])
def test_bernoulli(f):
    assert_masses(draws("bernoulli", {}, [0.0], [f]), 1, stats.bernoulli(special.expit(f)).pmf)


@pytest.mark.parametrize(("trials", "f"), [(1, 0.3), (10, -1.0), (200, 1.2)])
def test_binomial(trials, f):
    got = draws("binomial", {}, [0.0, trials], [f])
    assert_masses(got, trials, stats.binom(trials, special.expit(f)).pmf)


@pytest.mark.parametrize("f", [-2.0, 1.0, 4.0])
def test_poisson(f):
    assert_masses(draws("poisson", {}, [0.0], [f]), int(np.exp(f) * 2 + 20), stats.poisson(np.exp(f)).pmf)


@pytest.mark.parametrize("n_levels", [2, 3, 6])
def test_categorical_never_draws_the_padding(n_levels):
    f = np.array([0.5, -1.0, 2.0, 0.0, 1.0, -2.0, 9.0, 9.0])
    got = draws("categorical", {"n_levels": n_levels}, [0.0], f)
    probability = special.softmax(f[:n_levels])
    assert_masses(got, n_levels - 1, lambda k: probability[k])


def test_seeds_matter():
    a, b = (draws("gaussian", {"log_sd": 0.0}, [0.0], [0.0], seed) for seed in (1, 2))
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.04
