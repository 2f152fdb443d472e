"""The two softmax integrals against brute force, against an exact one-dimensional form, and under padding."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, logsumexp, softmax

from plurigp.likelihoods import softmax as library
from plurigp.likelihoods.softmax import expected_logsumexp, expected_softmax, lse_and_gradient

N_DRAWS, CHUNK = 2_000_000, 100_000
WIDTH = 12  # levels of the widest case; the others are padded up to it
VARIANCES = ("0.05", "1", "4", "9", "mixed")  # mixed: one level at 9, the others anywhere below


def _padded(levels: np.ndarray) -> np.ndarray:
    return np.concatenate([levels, np.zeros(WIDTH - len(levels))])


@jax.jit
def _integrals(mean, var, level):
    """Value, both slopes, and the probabilities."""
    value, slopes = jax.value_and_grad(expected_logsumexp, argnums=(0, 1))(mean, var, level)
    return value, *slopes, expected_softmax(mean, var, level)


def integrals(mean: np.ndarray, var: np.ndarray) -> list[np.ndarray]:
    """The four results for K levels, computed at width WIDTH."""
    K = len(mean)
    var = np.where(np.arange(WIDTH) < K, _padded(var), 1e-10)
    out = _integrals(_padded(mean), var, np.arange(WIDTH) < K)
    return [np.asarray(out[0]), *(np.asarray(part)[:K] for part in out[1:])]


class Draws(NamedTuple):
    """Monte Carlo means and their standard errors: log Σ e^f, p_k, ½ p_k (1 − p_k)."""

    mean: tuple[np.ndarray, ...]
    error: tuple[np.ndarray, ...]


def brute_force(mean: np.ndarray, var: np.ndarray, seed: int) -> Draws:
    """Two million draws, a chunk at a time."""
    rng = np.random.default_rng(seed)
    sd = np.sqrt(var).astype(np.float32)
    sums = [np.zeros(()), np.zeros(len(mean)), np.zeros(len(mean))]
    squares = [np.zeros(()), np.zeros(len(mean)), np.zeros(len(mean))]
    for _ in range(N_DRAWS // CHUNK):
        f = mean.astype(np.float32) + sd * rng.standard_normal((CHUNK, len(mean)), dtype=np.float32)
        top = f.max(1, keepdims=True)
        e = np.exp(f - top)
        total = e.sum(1, keepdims=True)
        p = e / total
        for i, part in enumerate(((top + np.log(total))[:, 0], p, 0.5 * p * (1 - p))):
            sums[i] += part.sum(0, dtype=float)
            squares[i] += (part.astype(float) ** 2).sum(0)
    means = tuple(s / N_DRAWS for s in sums)
    variances = (np.maximum(q / N_DRAWS - m**2, 0) for q, m in zip(squares, means, strict=True))
    return Draws(means, tuple(np.sqrt(v / N_DRAWS) for v in variances))


def moments(K: int, variance: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([K, VARIANCES.index(variance)])
    mean = rng.uniform(-2, 2, K)
    if variance == "mixed":
        var = rng.uniform(0.05, 9, K)
        var[0] = 9
        return mean, var
    return mean, rng.uniform(0.5, 1, K) * float(variance)


def check_against_brute_force(K: int, variance: str) -> None:
    mean, var = moments(K, variance)
    value, by_mean, by_var, probability = integrals(mean, var)
    draws = brute_force(mean, var, seed=K)
    (lse, p, pq), (lse_error, p_error, pq_error) = draws
    rounding = 1e-6  # of the float32 draws
    assert abs(value - lse) < 4 * lse_error + rounding
    np.testing.assert_array_less(np.abs(by_mean - p), 4 * p_error + rounding, err_msg="∂/∂a = E[p]")
    np.testing.assert_array_less(np.abs(by_var - pq), 4 * pq_error + rounding, err_msg="∂/∂v = ½ E[p (1 − p)]")
    np.testing.assert_array_less(np.abs(probability - p), 4 * p_error + rounding, err_msg="E[softmax]")


@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("K", [2, 4, 12])
def test_softmax_is_brute_force(K, variance):
    check_against_brute_force(K, variance)


@pytest.mark.slow
@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("K", [3, 5, 6, 7, 8, 9, 10, 11])
def test_softmax_is_brute_force_for_the_other_widths(K, variance):
    check_against_brute_force(K, variance)


def exact_two(mean: np.ndarray, var: np.ndarray) -> tuple[float, float, float]:
    """Two levels are one normal difference d: log Σ e^f = f₁ + softplus(d); a fine trapezoid does the rest."""
    t = np.linspace(-12, 12, 20_001)
    weight = np.exp(-(t**2) / 2)
    weight /= weight.sum()
    d = mean[1] - mean[0] + np.sqrt(var.sum()) * t
    return mean[0] + weight @ np.logaddexp(0, d), weight @ expit(-d), 0.5 * weight @ (expit(d) * expit(-d))


# (variances up to, value, by_mean, by_var, probability)
@pytest.mark.parametrize(
    ("top", "within"),
    [(0.01, (1e-6, 1e-6, 2e-4, 1e-6)), (1.0, (3e-6, 1e-6, 1e-5, 1e-6)), (4.0, (1e-5, 2e-5, 1e-5, 2e-5))],
)
def test_two_levels_are_exact(rng, top, within):
    """Far below Monte Carlo's error: the tolerances are what was measured, rounded up."""
    for _ in range(50):
        mean, var = rng.uniform(-3, 3, 2), rng.uniform(0.3 * top, top, 2)
        value, by_mean, by_var, probability = integrals(mean, var)
        exact = exact_two(mean, var)
        errors = [value - exact[0], by_mean[0] - exact[1], by_var[0] - exact[2], probability[0] - exact[1]]
        np.testing.assert_array_less(np.abs(errors), within)


def test_no_variance_is_plain_logsumexp_and_softmax(rng):
    mean = rng.uniform(-5, 5, 7)
    value, by_mean, _, probability = integrals(mean, np.full(7, 1e-10))
    assert value == pytest.approx(logsumexp(mean), abs=1e-6)
    np.testing.assert_allclose(by_mean, softmax(mean), atol=1e-6)
    np.testing.assert_allclose(probability, softmax(mean), atol=1e-6)


@pytest.mark.parametrize("K", [2, 5, 12])
def test_probabilities_and_slopes_sum_to_one(rng, K):
    for top in (0.1, 2.0, 9.0):
        _, by_mean, _, probability = integrals(rng.uniform(-4, 4, K), rng.uniform(0.05, top, K))
        assert probability.sum() == pytest.approx(1, abs=1e-12)
        assert (probability >= 0).all()
        assert by_mean.sum() == pytest.approx(1, abs=1e-9)


def test_padded_levels_change_nothing(rng):
    """Whatever numbers the padding holds: the same as without it."""
    mean, var = rng.uniform(-3, 3, 5), rng.uniform(0.1, 6, 5)
    alone = [np.asarray(part) for part in _integrals(mean, var, np.ones(5, bool))]
    for filler in ((0.0, 1e-10), (50.0, 9.0), (-50.0, 100.0)):
        padded = [np.concatenate([part, np.full(3, fill)]) for part, fill in zip((mean, var), filler, strict=True)]
        value, by_mean, by_var, probability = _integrals(*padded, np.arange(8) < 5)
        assert float(value) == pytest.approx(float(alone[0]), abs=1e-12)
        for ours, theirs in zip((by_mean, by_var, probability), alone[1:], strict=True):
            np.testing.assert_allclose(ours[:5], theirs, rtol=1e-10, atol=1e-13)
            np.testing.assert_array_equal(ours[5:], 0)


def test_a_shift_of_all_levels_shifts_the_value_alone(rng):
    mean, var = rng.uniform(-3, 3, 6), rng.uniform(0.1, 4, 6)
    here, there = integrals(mean, var), integrals(mean + 100, var)
    assert there[0] - here[0] == pytest.approx(100, abs=1e-9)
    for ours, theirs in zip(here[1:], there[1:], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_bounds_that_always_hold(rng):
    """Jensen from below, log E[Σ e^f] from above."""
    for _ in range(20):
        mean, var = rng.uniform(-6, 6, 9), rng.uniform(0.05, 9, 9)
        value = integrals(mean, var)[0]
        assert logsumexp(mean) - 1e-4 < value < logsumexp(mean + var / 2) + 1e-4


def test_float32_is_close_to_float64(rng):
    mean, var = rng.uniform(-6, 6, 12), rng.uniform(0.05, 9, 12)
    wide = _integrals(mean, var, np.ones(12, bool))
    narrow = _integrals(jnp.asarray(mean, jnp.float32), jnp.asarray(var, jnp.float32), np.ones(12, bool))
    for ours, theirs in zip(narrow, wide, strict=True):
        assert ours.dtype == jnp.float32
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("var", [1e-6, 1e-4, 1e-2])
def test_float32_slope_by_a_small_variance(rng, var):
    """½ p (1 − p) to a hundredth even where √var is near float32's rounding."""
    mean = rng.uniform(-2, 2, 4)
    by_var = np.asarray(_integrals(jnp.asarray(mean, jnp.float32), jnp.full(4, var, jnp.float32), np.ones(4, bool))[2])
    p = softmax(mean)
    np.testing.assert_allclose(by_var, 0.5 * p * (1 - p), rtol=0.02, atol=2e-3)


def test_cells_side_by_side_are_the_same_cells(rng):
    """Levels first, cells last: any number of cells at once."""
    mean, var = rng.uniform(-3, 3, (4, 3, 5)), rng.uniform(0.1, 4, (4, 3, 5))
    level = np.broadcast_to(np.arange(4)[:, None, None] < 3, (4, 3, 5))
    value, probability = jax.jit(lambda *a: (expected_logsumexp(*a), expected_softmax(*a)))(mean, var, level)
    assert value.shape == (3, 5)
    for i in range(3):
        for j in range(5):
            one = _integrals(mean[:, i, j], var[:, i, j], level[:, i, j])
            assert float(value[i, j]) == pytest.approx(float(one[0]), abs=1e-12)
            np.testing.assert_allclose(probability[:, i, j], one[3], atol=1e-12)


@pytest.mark.parametrize("share", [0.0, 0.03, 0.5], ids=["none wide", "few wide", "many wide"])
def test_each_cell_takes_its_own_grid(rng, share):
    """Whatever its neighbours: narrow cells agree with the fine grid to 1e-5, wide ones are the fine grid's."""
    n, K = 200, 5
    mean, var = rng.normal(size=(K, n)), rng.uniform(0.01, 1.0, (K, n))
    wide = rng.random(n) < share
    var[:, wide] = rng.uniform(1.5, 6.0, (K, wide.sum()))
    level = np.ones((K, n), bool)
    together = jax.jit(library.lse_and_gradient)(mean, var, level)
    fine = jax.jit(partial(library._lse_and_gradient, grid=library.FINE))(mean, var, level)
    coarse = jax.jit(partial(library._lse_and_gradient, grid=library.COARSE))(mean, var, level)
    for ours, best, quick in zip(together, fine, coarse, strict=True):
        np.testing.assert_allclose(ours[..., wide], best[..., wide], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(ours[..., ~wide], quick[..., ~wide], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(ours, best, atol=3e-5)
    probability = jax.jit(library.expected_softmax)(mean, var, level)
    best = jax.jit(partial(library._expected_softmax, grid=library.FINE))(mean, var, level)
    np.testing.assert_allclose(probability, best, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("var", [30.0, 100.0, 150.0, 400.0])
def test_wide_levels_far_apart_stay_finite_and_near(var, dtype):
    """A function far from every inducing point: right to a twentieth of its sd, and never infinite times zero."""
    mean = np.array([-11.0, 1.1, 12.2])
    f = mean[:, None] + np.sqrt(var) * np.random.default_rng(0).normal(size=(3, 200_000))
    expected = np.logaddexp.reduce(f).mean()
    a, v = (jnp.asarray(np.tile(part[:, None], (1, 40)), dtype) for part in (mean, np.full(3, var)))
    value, by_mean, by_var = jax.jit(lse_and_gradient)(a, v, jnp.ones((3, 40), bool))
    probability = jax.jit(expected_softmax)(a, v, jnp.ones((3, 40), bool))
    for part in (value, by_mean, by_var, probability):
        assert np.isfinite(np.asarray(part)).all()
    np.testing.assert_allclose(value, expected, atol=np.sqrt(var) / 20)
    np.testing.assert_allclose(probability[:, 0], np.exp(f - np.logaddexp.reduce(f)).mean(1), atol=0.12)
