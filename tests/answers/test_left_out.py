"""Cells left out of what the map's functions have learned: exact leave-one-out, and no trace of the cell itself."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from plurigp import PluriGP
from plurigp.answers.fill import expected_columns
from plurigp.answers.left_out import expected_left_out, without_cells
from plurigp.inference.compiling import jax_runtime
from plurigp.inference.gp.linalg import pack_doubled
from plurigp.inference.gp.sparse import Posterior, moments
from plurigp.inference.model import project_rows
from plurigp.likelihoods.families.gaussian import noise_sd
from plurigp.likelihoods.layout import arrange

N = 60


@pytest.fixture(scope="module")
def noise():
    """Columns that have nothing to do with each other, and a map that has learned them by heart."""
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(N, 5)), columns=list("abcde"))
    return frame, PluriGP(3, max_epochs=60, n_inducing=20, random_state=0, calibrate=False).fit(frame)


def _exact(A: np.ndarray, scale: float, precision: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of v given these rows of one Gaussian column, y without its bias."""
    S = np.linalg.inv(np.eye(len(A)) + scale**2 * precision * A @ A.T)
    return S @ (scale * precision * A @ y), S


def test_without_a_gaussian_cell_the_functions_are_those_learned_from_all_others(noise):
    frame, model = noise
    p = model.predictor_
    values, seen = arrange(p.layout, model.coder_.table(frame))
    with jax_runtime():
        projection = project_rows(p.model, p.layout, model.transform(frame), None)
        A, bias, scale = np.asarray(projection.A), np.asarray(p.model.gp.bias), np.exp(np.asarray(p.model.gp.log_scale))
        precision = 1 / noise_sd(p.model.thetas[0]) ** 2
        learned = [_exact(A, scale[d], precision[d], values[:, d] - bias[d]) for d in range(5)]
        m, S = (np.stack(part) for part in zip(*learned, strict=True))
        q = Posterior(jnp.asarray(m), pack_doubled(jnp.asarray(S)), p.q.trace, p.q.logdet)
        f = moments(p.model.gp, q, projection)
        learned_var = f[1] - scale[:, None] ** 2 * projection.rest
        mean, var = (np.asarray(part) for part in without_cells(replace(p, q=q), values, seen, f, learned_var))
    for n in (0, 7, 31):
        others = np.arange(N) != n
        for d in range(5):
            m_d, S_d = _exact(A[:, others], scale[d], precision[d], values[others, d] - bias[d])
            assert mean[d, n] == pytest.approx(bias[d] + scale[d] * A[:, n] @ m_d, abs=1e-6)
            own = scale[d] ** 2 * (A[:, n] @ S_d @ A[:, n] + float(projection.rest[n]))
            assert var[d, n] == pytest.approx(own, rel=1e-5)


def test_a_hidden_training_cell_is_foreseen_by_the_map_and_not_by_the_map_without_it(noise):
    frame, model = noise
    table = model.coder_.table(frame)
    rng = np.random.default_rng(1)
    hidden = rng.random(frame.shape) < 0.2
    shown = table.hidden(hidden)
    plain, left_out = (
        np.concatenate(expected(model), 1)
        for expected in (
            lambda model: expected_columns(model.predictor_, shown, warn=False),
            lambda model: expected_left_out(model.predictor_, shown, table),
        )
    )
    np.testing.assert_allclose(left_out[~hidden], plain[~hidden], atol=1e-6)
    optimistic, honest = (np.corrcoef(part[hidden], table.values[hidden])[0, 1] for part in (plain, left_out))
    assert honest < optimistic - 0.05
    assert honest < 0.2
