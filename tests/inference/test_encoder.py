"""q(x): what an encoder may see, a row that does not care about its neighbours, and the penalty."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from plurigp.inference.encoder import (
    Encoder,
    FactorEncoder,
    FreeRows,
    LatentNormal,
    Network,
    independent,
    kl_x,
    make_network,
    position_sums,
    soft_clip,
)

E, D, Q, B = 5, 4, 2, 7  # the last column has two features


def make_encoder(sees_gaps: bool, seed: int = 0) -> Encoder:
    rng = np.random.default_rng(seed)
    indicator_columns = tuple(range(D)) if sees_gaps else ()
    n_in = E + len(indicator_columns)
    encoder = Encoder(
        indicator_columns,
        jnp.asarray(rng.normal(size=E), jnp.float32),
        jnp.asarray(rng.uniform(0.5, 2, E), jnp.float32),
        jnp.asarray(rng.normal(size=(E, Q)), jnp.float32),
        jnp.asarray(rng.normal(size=Q), jnp.float32),
        make_network(rng, n_in, 6, Q),
        make_network(rng, n_in, 6, Q),
    )
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), encoder)


def roots(q: LatentNormal):
    return q.stretch[:, :, None] * q.base


def make_factors(seed: int = 0, networks: float = 1.0) -> FactorEncoder:
    rng = np.random.default_rng(seed)
    encoder = FactorEncoder(
        tuple(range(D)),
        rng.normal(size=E),
        rng.uniform(0.5, 2, E),
        rng.normal(size=(E, Q)),
        rng.normal(size=E),
        make_network(rng, E + D, 6, Q, scale=networks),
        make_network(rng, E + D, 6, Q, scale=networks),
    )
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), encoder)


KINDS = {"masked": lambda: make_encoder(True), "paper": lambda: make_encoder(False), "factors": make_factors}


def make_rows(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features [B E], whether each is seen, and whether each column [B D] is."""
    features = rng.normal(size=(B, E)).astype(np.float32)
    row_seen = rng.random((B, D)) < 0.6
    return features, np.concatenate([row_seen, row_seen[:, -1:]], 1), row_seen


@pytest.mark.parametrize("kind", KINDS)
def test_what_lies_under_a_gap_is_not_seen(kind, rng):
    encoder = KINDS[kind]()
    features, seen, row_seen = make_rows(rng)
    other = np.where(seen, features, 1e6).astype(np.float32)
    jax.tree.map(np.testing.assert_array_equal, encoder(features, seen, row_seen), encoder(other, seen, row_seen))


def test_a_gap_is_not_a_zero(rng):
    """The masked encoder tells a gap from a cell at the column's mean; the paper's cannot."""
    features, seen, row_seen = make_rows(rng)
    for sees_gaps in (True, False):
        encoder = make_encoder(sees_gaps)
        at_mean = np.where(seen, features, encoder.shift).astype(np.float32)
        gaps, filled = encoder(at_mean, seen, row_seen), encoder(at_mean, np.ones_like(seen), np.ones_like(row_seen))
        assert np.allclose(gaps.mean, filled.mean, atol=1e-6) == (not sees_gaps)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_alone_is_the_row_in_a_batch(kind, rng):
    encoder = KINDS[kind]()
    rows = make_rows(rng)
    together = encoder(*rows)
    for n in range(B):
        alone = encoder(*(part[n : n + 1] for part in rows))
        np.testing.assert_allclose(alone.mean[0], together.mean[n], rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(alone.sd[0], together.sd[n], rtol=1e-6, atol=1e-7)


def test_sd_lies_between_zero_and_one_and_an_empty_row_is_finite(rng):
    encoder = make_encoder(True)
    features, seen, row_seen = make_rows(rng)
    q = encoder(100 * features, seen, row_seen)
    assert ((np.asarray(q.sd) > 0) & (np.asarray(q.sd) <= 1)).all()
    empty = encoder(features, np.zeros_like(seen), np.zeros_like(row_seen))
    assert np.isfinite(empty.mean).all()
    assert (np.ptp(empty.mean, axis=0) == 0).all()  # nothing seen: every row the same


def test_factors_without_networks_are_the_posterior_of_factor_analysis(rng):
    """By conditioning the joint normal of x and the cells seen."""
    encoder = make_factors(networks=0.0)
    features, seen, row_seen = make_rows(rng)
    q = encoder(features, seen, row_seen)
    known = np.asarray(soft_clip((features - encoder.shift) / encoder.scale), float)
    L, noise = np.asarray(encoder.loadings, float), np.exp(-np.asarray(encoder.log_precision, float))
    for n in range(B):
        at = np.flatnonzero(seen[n])
        gain = L[at].T @ np.linalg.inv(L[at] @ L[at].T + np.diag(noise[at]))
        np.testing.assert_allclose(q.mean[n], gain @ known[n, at], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(roots(q)[n] @ roots(q)[n].T, np.eye(Q) - gain @ L[at], rtol=1e-4, atol=1e-5)


def test_an_empty_row_of_factors_is_the_prior(rng):
    features, seen, row_seen = make_rows(rng)
    q = make_factors(networks=0.0)(features, np.zeros_like(seen), np.zeros_like(row_seen))
    np.testing.assert_array_equal(q.mean, 0)
    np.testing.assert_array_equal(q.sd, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_one_wild_value_does_not_throw_a_row_out(kind, rng):
    encoder = KINDS[kind]()
    features, _, _ = make_rows(rng)
    everything = np.ones((B, E), bool), np.ones((B, D), bool)
    usual = encoder(features, *everything)
    features[0, 0] = 1e6
    wild = encoder(features, *everything)
    assert np.abs(wild.mean - usual.mean).max() < 50


def test_shift_and_scale_are_not_learned(rng):
    rows = make_rows(rng)
    slopes = jax.grad(lambda e: e(*rows).mean.sum() + e(*rows).sd.sum())(make_encoder(True))
    np.testing.assert_array_equal(slopes.shift, 0)
    np.testing.assert_array_equal(slopes.scale, 0)
    assert np.abs(slopes.linear).sum() > 0
    assert np.abs(slopes.net_sd.w1).sum() > 0


def test_one_product_is_the_linear_path_and_both_networks(rng):
    encoder = make_encoder(True)
    features, seen, row_seen = make_rows(rng)
    known = np.where(seen, soft_clip((features - encoder.shift) / encoder.scale), 0)
    inputs = np.concatenate([known, row_seen], 1)
    by_net = [np.tanh(inputs @ net.w1 + net.b1) @ net.w2 + net.b2 for net in (encoder.net_mean, encoder.net_sd)]
    q = encoder(features, seen, row_seen)
    np.testing.assert_allclose(q.mean, known @ encoder.linear + encoder.offset + by_net[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(q.sd, 1 / (1 + np.exp(-by_net[1])), rtol=1e-4, atol=1e-5)


def test_network_is_one_tanh_layer(rng):
    net = Network(*(jnp.asarray(rng.normal(size=s), jnp.float32) for s in ((3, 4), (4,), (4, 2), (2,))))
    x = rng.normal(size=(5, 3)).astype(np.float32)
    expected = np.tanh(x @ net.w1 + net.b1) @ net.w2 + net.b2
    np.testing.assert_allclose(net.after(net.w1.T @ x.T), expected, rtol=1e-5, atol=1e-6)


def test_xavier_and_its_scale():
    net = make_network(np.random.default_rng(0), 30, 40, 3, scale=0.1, shift=-1.0)
    limits = np.sqrt(6 / 70), 0.1 * np.sqrt(6 / 43)
    for weights, limit in zip((net.w1, net.w2), limits, strict=True):
        assert 0.9 * limit < np.abs(weights).max() <= limit
        assert abs(np.mean(weights)) < 0.2 * limit
    np.testing.assert_array_equal(net.b1, 0)
    np.testing.assert_array_equal(net.b2, -1)


def test_free_rows_are_looked_up():
    free = FreeRows(jnp.arange(6.0).reshape(3, 2), jnp.log(jnp.full((3, 2), 0.5)))
    q = free(jnp.array([2, 0, 2]))
    np.testing.assert_array_equal(q.mean, [[4, 5], [0, 1], [4, 5]])
    np.testing.assert_allclose(q.sd, 0.5, rtol=1e-6)


def make_normal(rng: np.random.Generator, n_rows: int) -> LatentNormal:
    """Correlated dimensions, each stretched, in float64 under a test's own switch."""
    base = np.triu(rng.normal(size=(n_rows, Q, Q)), 1) + rng.uniform(0.1, 2, (n_rows, Q, 1)) * np.eye(Q)
    mean, stretch = rng.normal(size=(n_rows, Q)), rng.uniform(0.3, 3, (n_rows, Q))
    return LatentNormal(*(jnp.asarray(part) for part in (mean, stretch, base)))


def test_kl_x_is_zero_at_the_prior_and_positive_elsewhere(rng):
    assert np.abs(kl_x(independent(jnp.zeros((3, Q)), jnp.ones((3, Q))))).max() == 0
    assert (np.asarray(kl_x(make_normal(rng, 9))) > 0).all()


def test_kl_x_is_monte_carlo(rng):
    """E_q[log q(x) − log p(x)] within four standard errors."""
    with jax.enable_x64(True):
        q = make_normal(rng, 1)
        x = q.at(jnp.asarray(rng.normal(size=(200_000, 1, Q))))
        ratio = np.asarray(q.log_density(x) + 0.5 * (x**2).sum(2))
        assert abs(float(kl_x(q)[0]) - ratio.mean()) < 4 * ratio.std() / np.sqrt(len(ratio))


def test_a_latent_normal_is_scipys(rng):
    with jax.enable_x64(True):
        q = make_normal(rng, 4)
        x = rng.normal(size=(3, 4, Q))
        ours = np.asarray(q.log_density(jnp.asarray(x))) - Q / 2 * np.log(2 * np.pi)
        for n in range(4):
            theirs = multivariate_normal(q.mean[n], roots(q)[n] @ roots(q)[n].T)
            np.testing.assert_allclose(ours[:, n], theirs.logpdf(x[:, n]), rtol=1e-9)
            np.testing.assert_allclose(q.sd[n], np.sqrt(np.diag(theirs.cov_object.covariance)), rtol=1e-12)


def test_a_root_is_its_base_with_the_rows_stretched(rng):
    """And all that is asked of the base alone is what the root itself would answer."""
    with jax.enable_x64(True):
        q = make_normal(rng, 4)
        noise = rng.normal(size=(3, 4, Q))
        for n in range(4):
            root = np.diag(q.stretch[n]) @ q.base[n]
            np.testing.assert_allclose(roots(q)[n], root, rtol=1e-12)
            np.testing.assert_allclose(q.log_det[n], np.linalg.slogdet(root)[1], rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(q.at(jnp.asarray(noise))[:, n], q.mean[n] + noise[:, n] @ root.T, rtol=1e-12)
            square = q.mean[n] @ q.mean[n] + np.trace(root @ root.T)
            np.testing.assert_allclose(kl_x(q)[n], 0.5 * (square - Q) - np.linalg.slogdet(root)[1], rtol=1e-12)


def test_spread_is_the_sd_over_real_rows(rng):
    mean = rng.normal(size=(B, Q)).astype(np.float32)
    real = np.arange(B) < 5
    mean[5:] = 1e3
    q = independent(jnp.asarray(mean), jnp.ones((B, Q)))
    np.testing.assert_allclose(position_sums(q, jnp.asarray(real)).spread, mean[:5].std(0), rtol=1e-4)
    assert np.isfinite(position_sums(q, jnp.zeros(B, bool)).spread).all()
