"""A thousand kernel matrices at the edge of singular: a finite factor of the matrix plus a jitter that is recorded."""

import jax
import numpy as np
import pytest

from plurigp.inference.gp.kernels import gram, make_kernel
from plurigp.inference.gp.linalg import JITTER, JITTER_LIMIT, whitening

M, Q = 12, 3
KERNELS = ("rbf", "matern52", "linear", "linear+rbf")


def inducing_inputs(rng: np.random.Generator) -> np.ndarray:
    """In units of the lengthscale: equal, almost equal, on a line, far apart, or all in one place."""
    Z = rng.normal(size=(M, Q)) * 10.0 ** rng.uniform(-8, 6)
    shape = rng.integers(4)
    if shape == 0:
        Z = Z[rng.integers(3, size=M)]
    elif shape == 1:
        Z = Z[0] + 10.0 ** rng.uniform(-12, -3) * rng.normal(size=(M, Q))
    elif shape == 2:
        Z = np.outer(rng.normal(size=M), Z[0])
    return Z


@pytest.fixture(scope="module", params=KERNELS)
def factorise(request):
    def factor(Z):
        K = gram(make_kernel(request.param, Q, 1.0), Z, Z)
        return (K, *whitening(K))

    with jax.enable_x64(True):
        yield jax.jit(factor)


def test_every_one_is_factorised(factorise, rng):
    """250 of each kernel. More jitter than the first is taken only where less of it is not enough."""
    for _ in range(1000 // len(KERNELS)):
        K, W, jitter = map(np.asarray, factorise(inducing_inputs(rng)))
        assert np.isfinite(W).all()
        assert JITTER * 0.99 <= jitter <= JITTER_LIMIT * 1.01
        jittered = K + jitter * np.diag(K).mean() * np.eye(M)
        np.testing.assert_allclose(W @ jittered @ W.T, np.eye(M), atol=1e-6)
        if jitter > 1.01 * JITTER:  # far from zero and close together: distances are rounded
            least = np.linalg.eigvalsh(K)[0]
            assert least + jitter / 10 * np.diag(K).mean() < 1e-9


def test_a_matrix_that_is_none_takes_more_jitter_or_says_nan(rng):
    """Negative directions of random size, as rounding would make them, only larger: never a silent wrong answer."""
    with jax.enable_x64(True):
        factor, seen = jax.jit(whitening), set()
        for _ in range(200):
            basis, _ = np.linalg.qr(rng.normal(size=(M, M)))
            values = rng.uniform(0.5, 1.5, M)
            values[0] = -(10.0 ** rng.uniform(-8, 0))
            K = basis * values @ basis.T
            W, jitter = map(np.asarray, factor((K + K.T) / 2))
            needed = -values[0] / np.diag(K).mean()
            seen.add(bool(np.isfinite(W).all()))
            assert np.isfinite(W).all() == (needed < jitter)
            assert jitter <= max(JITTER, 10 * needed) * 1.01
        assert seen == {True, False}
