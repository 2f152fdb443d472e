"""Which group a row belongs to, against the integral over its position."""

from dataclasses import replace

import equinox as eqx
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from plurigp import PluriGP
from plurigp.answers.groups import group_probabilities, without_groups
from plurigp.answers.predictor import Predictor
from plurigp.data import Table
from plurigp.inference.prior import group_moments, mixture_of
from plurigp.likelihoods.families.gaussian import FLOOR

WEIGHTS, MEANS, VARIANCES = np.array([0.6, 0.3, 0.1]), np.array([-1.0, 0.8, 2.0]), np.array([0.4, 0.3, 0.1])
GRID = np.linspace(-8, 8, 2001)


@pytest.fixture(scope="module")
def fitted() -> tuple[PluriGP, pd.DataFrame]:
    """Real columns of one latent dimension; a row without cells, and one that lacks a cell."""
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=30), 0.5 * rng.normal(size=(30, 3))
    frame = pd.DataFrame({"a": x + noise[:, 0], "b": noise[:, 1] - x, "c": 2 * x + noise[:, 2]})
    frame.iloc[4] = np.nan
    frame.loc[7, "a"] = np.nan
    model = PluriGP(1, n_inducing=6, max_epochs=15, calibrate=False, random_state=0).fit(frame)
    return model, frame


@pytest.fixture(scope="module")
def mixed(fitted) -> Predictor:
    """Under a mixture, with a q(x) so wide that no importance weight is wild."""
    predictor = fitted[0].predictor_
    predictor = eqx.tree_at(lambda p: p.model.encoder.net_sd.b2, predictor, np.full(1, 0.8))
    prior = mixture_of(WEIGHTS, MEANS[:, None], VARIANCES[:, None, None], np.float64)
    return replace(predictor, model=replace(predictor.model, prior=prior))


def by_the_grid(predictor: Predictor, table: Table) -> np.ndarray:
    """p(group | row) ∝ π_k ∫ N_k(x) Π_d p(y_d|x) dx."""
    from plurigp.answers.draws import _moments_at
    from plurigp.inference.compiling import jax_runtime

    with jax_runtime():
        f_mean, f_var = (np.asarray(part) for part in _moments_at(predictor, GRID[:, None]))
    (theta,) = predictor.model.thetas
    scale = np.sqrt(f_var + FLOOR**2 + np.exp(2 * theta["log_sd"])[:, None])
    y, seen = table.values[:, list(predictor.layout.order)], table.seen[:, list(predictor.layout.order)]
    cells = stats.t.logpdf(y[:, :, None], theta["n_cells"][:, None], f_mean, scale)
    rows = np.exp(np.where(seen[:, :, None], cells, 0).sum(1))
    joint = rows @ (WEIGHTS * stats.norm.pdf(GRID[:, None], MEANS, np.sqrt(VARIANCES)))
    return joint / joint.sum(1, keepdims=True)


def test_probabilities_are_those_of_the_integral(fitted, mixed):
    table = fitted[0].coder_.table(fitted[1])
    exact = by_the_grid(mixed, table)
    assert exact.min() < 0.02
    assert exact.max() > 0.9
    few, many = (group_probabilities(mixed, table, n_draws=n) for n in (64, 2000))
    np.testing.assert_allclose(many, exact, atol=0.02)
    np.testing.assert_allclose(few, exact, atol=0.15)
    np.testing.assert_allclose(few.sum(1), 1)


def test_an_empty_row_has_the_weights_of_the_groups(fitted, mixed):
    table = fitted[0].coder_.table(fitted[1].iloc[[4]])
    np.testing.assert_allclose(group_probabilities(mixed, table, n_draws=4000)[0], WEIGHTS, atol=0.02)


def test_without_groups_a_row_belongs_to_the_only_one(fitted, mixed):
    model, frame = fitted
    np.testing.assert_array_equal(model.group_probabilities(frame), np.ones((30, 1)))
    assert without_groups(model.predictor_).model.prior is None
    single = without_groups(mixed)
    weights, means, covariances = group_moments(single.model.prior, 1)
    assert (weights.tolist(), float(means[0, 0])) == ([1.0], pytest.approx(WEIGHTS @ MEANS))
    spread = WEIGHTS @ (VARIANCES + MEANS**2) - (WEIGHTS @ MEANS) ** 2
    assert float(covariances[0, 0, 0]) == pytest.approx(spread)
    np.testing.assert_allclose(group_probabilities(single, model.coder_.table(frame)), 1)
