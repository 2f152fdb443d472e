"""Drawn functions have the moments of the Gaussian process and can be evaluated anywhere."""

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from plurigp.datasets import simulate
from plurigp.datasets.functions import draw_functions


def ard_rbf(x, ell):
    return np.exp(-0.5 * (((x[:, None] - x[None]) / ell) ** 2).sum(-1))


def test_covariance_is_the_kernels():
    """Over 5,000 functions: the sampling error is 0.02 and that of 1,000 shared frequencies about 0.03."""
    rng = np.random.default_rng(1)
    x, ell = rng.standard_normal((6, 2)) * 2, np.array([1.0, 3.0])
    f = draw_functions(rng, np.full(5000, 5.0), np.full(5000, 2.0), ell)(x)  # [6 P]
    np.testing.assert_allclose(f.mean(axis=1), 5.0, atol=0.15)
    np.testing.assert_allclose(np.cov(f) / 4.0, ard_rbf(x, ell), atol=0.1)
    np.testing.assert_allclose(np.var(f, axis=1) / 4.0, 1.0, atol=0.1)


def test_functions_are_normal_and_independent():
    rng = np.random.default_rng(2)
    f = draw_functions(rng, np.zeros(5000), np.ones(5000), np.ones(3))(rng.standard_normal((1, 3)))[0]
    assert abs((f**4).mean() - 3.0) < 0.4
    assert abs(np.corrcoef(f[:-1], f[1:])[0, 1]) < 0.06


def test_shapes_and_agreement_of_one_row_and_many():
    rng = np.random.default_rng(3)
    functions = draw_functions(rng, np.zeros(4), np.ones(4), np.ones(2))
    x = rng.standard_normal((4200, 2))
    f = functions(x)
    assert f.shape == (4200, 4)
    assert functions(x[:0]).shape == (0, 4)
    assert functions(x[:6].reshape(2, 3, 2)).shape == (2, 3, 4)
    np.testing.assert_allclose(functions(x[17]), f[17], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(functions(x[4190]), f[4190], rtol=1e-10, atol=1e-12)


def test_the_number_of_blas_threads_does_not_matter():
    """Two threads would add up in another order, and a seed would not always give the same table."""
    tables = []
    for n in (1, None):
        with threadpool_limits(n):
            tables.append(simulate(500, 3, {"gaussian": 5}, random_state=0).table)
    pd.testing.assert_frame_equal(*tables, check_exact=True)
