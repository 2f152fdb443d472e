"""Patients with several rows, where everything is Gaussian and known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from plurigp.answers.repeated import (
    Evidence,
    Variation,
    fit_variation,
    patient_posterior,
    row_evidence,
    shares_between,
    without_prior,
)
from plurigp.estimator import PluriGP
from plurigp.inference.prior import mixture_of

TRUTH = Variation(np.array([0.3, -0.2]), np.array([[0.6, 0.2], [0.2, 0.4]]), np.array([[0.3, -0.1], [-0.1, 0.2]]))
NOISE = 0.8


def drawn(rng: np.random.Generator, n_patients: int, truth: Variation = TRUTH):
    """Patients of one to five rows; each row has up to three noisy linear readings of x, so some say nothing."""
    patient = np.repeat(np.arange(n_patients), rng.integers(1, 6, n_patients))
    u = rng.multivariate_normal(truth.centre, truth.between, n_patients)
    x = u[patient] + rng.multivariate_normal(np.zeros(2), truth.within, len(patient))
    H = rng.normal(size=(len(patient), 3, 2)) * (rng.random((len(patient), 3, 1)) < 0.6)
    y = np.einsum("nij,nj->ni", H, x) + NOISE * rng.normal(size=(len(patient), 3))
    precision = H.swapaxes(1, 2) @ H / NOISE**2
    return patient, u, H, y, Evidence(precision, np.einsum("nij,ni->nj", H, y) / NOISE**2)


def test_the_prior_is_divided_out():
    rng = np.random.default_rng(0)
    evidence = drawn(rng, 40)[-1]
    mean, covariance = np.array([0.5, -1.0]), np.array([[2.0, 0.6], [0.6, 0.5]])
    posterior = np.linalg.inv(np.linalg.inv(covariance) + evidence.precision)
    middle = np.einsum("nij,nj->ni", posterior, evidence.shift + np.linalg.solve(covariance, mean))
    found = without_prior(middle, posterior, mean, covariance)
    np.testing.assert_allclose(found.precision, evidence.precision, atol=1e-9)
    np.testing.assert_allclose(found.shift, evidence.shift, atol=1e-9)


def test_a_posterior_wider_than_the_prior_says_nothing_of_scale():
    found = without_prior(np.zeros((1, 2)), np.diag([1.3, 0.5])[None], np.zeros(2), np.eye(2))
    np.testing.assert_allclose(found.precision[0], np.diag([0.0, 1.0]), atol=1e-12)


def test_the_posterior_is_that_of_the_joint_gaussian():
    """Against the covariance of all readings of a patient, written out."""
    rng = np.random.default_rng(1)
    patient, _, H, y, evidence = drawn(rng, 12)
    found = patient_posterior(evidence, patient, TRUTH)
    for g in range(12):
        own = np.flatnonzero(patient == g)
        design = H[own].reshape(-1, 2)  # readings by u
        rows = np.kron(np.eye(len(own)), np.ones((3, 3)))
        cov = design @ TRUTH.between @ design.T + rows * (design @ TRUTH.within @ design.T)
        gain = TRUTH.between @ design.T @ np.linalg.inv(cov + NOISE**2 * np.eye(len(design)))
        np.testing.assert_allclose(found.mean[g], TRUTH.centre + gain @ (y[own].ravel() - design @ TRUTH.centre))
        np.testing.assert_allclose(found.covariance[g], TRUTH.between - gain @ design @ TRUTH.between, atol=1e-12)


def test_variation_is_found_and_intervals_cover():
    rng = np.random.default_rng(2)
    inside, found, shares = [], [], []
    for _ in range(10):
        patient, u, _, _, evidence = drawn(rng, 300)
        variation = fit_variation(evidence, patient)
        mean, covariance = patient_posterior(evidence, patient, variation)
        sd = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
        inside.append(np.abs(u - mean) < 1.96 * sd)
        found.append(variation)
        shares.append(shares_between(evidence, variation))
    assert 0.935 < np.mean(inside) < 0.965  # 6,000 intervals: 0.95 within five standard errors
    for name in Variation._fields:
        estimates = np.stack([getattr(one, name) for one in found])
        error = estimates.std(0, ddof=1) / np.sqrt(10)
        assert (np.abs(estimates.mean(0) - getattr(TRUTH, name)) < 4 * error + 0.01).all(), name
    np.testing.assert_allclose(np.mean(shares, 0), [2 / 3, 2 / 3], atol=0.05)


def test_rows_that_do_not_differ_within_patients():
    rng = np.random.default_rng(3)
    patient, *_, evidence = drawn(rng, 200, TRUTH._replace(within=np.zeros((2, 2))))
    assert (shares_between(evidence, fit_variation(evidence, patient)) > 0.9).all()


def test_a_dimension_of_which_no_cell_tells_has_no_share():
    rng = np.random.default_rng(4)
    patient, *_, (precision, shift) = drawn(rng, 400)
    precision[:, 1], precision[:, :, 1], shift[:, 1] = 0.0, 0.0, 0.0
    evidence = Evidence(precision, shift)
    share, none = shares_between(evidence, fit_variation(evidence, patient))
    assert 0.4 < share < 0.9
    assert np.isnan(none)


def test_variances_that_have_not_settled_are_named(monkeypatch):
    monkeypatch.setattr("plurigp.answers.repeated.MAX_STEPS", 2)
    patient, *_, evidence = drawn(np.random.default_rng(5), 50)
    with pytest.warns(RuntimeWarning, match="still move after 2 steps"):
        fit_variation(evidence, patient)


def test_what_a_row_says_does_not_depend_on_the_prior():
    """The same decoder under a shifted and wider prior: what the cells say, seen with one prior, is the same."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 1))
    table = pd.DataFrame(x * [1.0, -1.0, 2.0, 1.5] + 0.4 * rng.normal(size=(60, 4)), columns=list("abcd"))
    model = PluriGP(1, n_inducing=6, max_epochs=100, calibrate=False, random_state=0).fit(table)
    coded, plain = model.coder_.table(table), model.predictor_
    prior = mixture_of(np.ones(1), np.array([[0.5]]), np.array([[[1.5]]]), np.float64)
    other = replace(plain, model=replace(plain.model, prior=prior))
    under = [row_evidence(predictor, coded, 4000) for predictor in (plain, other)]
    variances = [1 / (1 + evidence.precision[:, 0, 0]) for evidence in under]
    means = [own * evidence.shift[:, 0] for own, evidence in zip(variances, under, strict=True)]
    assert np.std(means[0]) > 3 * np.sqrt(variances[0].mean())  # the cells do say something
    np.testing.assert_allclose(means[0], means[1], atol=0.02)
    np.testing.assert_allclose(variances[0], variances[1], rtol=0.2)
