"""Several rows of one patient: a position of the patient, and what every row deviates from it.

    x_n = u_g(n) + e_n,   u_g ~ N(μ, B),   e_n ~ N(0, W)

in the latent space of a trained model. What a row's cells say of x_n is its posterior divided by the prior it was found
with, so that the prior is not counted once per row.
"""

import warnings
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from plurigp.answers.groups import without_groups
from plurigp.answers.latent import map_rows_weighted, weighted_draws
from plurigp.answers.predictor import Predictor, moments_at, standard_draws
from plurigp.core.arrays import Array
from plurigp.data import Table
from plurigp.inference.compiling import Program, jax_runtime
from plurigp.inference.encoder import LatentNormal
from plurigp.inference.prior import group_moments
from plurigp.likelihoods import evaluate

N_DRAWS = 512  # of x, from which a row's posterior mean and covariance are taken
N_POSITIONS, N_DEVIATIONS = 400, 16  # draws of a patient's position, and of a row's deviation from each
PATIENTS = 32  # decoded at once
MAX_STEPS, TOLERANCE = 1000, 1e-5  # of EM; relative change of the covariances
LEAST_TOLD = 0.05  # precision of a row's cells, in units of a dimension's variance, from which it has a share
LEAST = 1e-6  # of the prior's variance: what a variance component is at least
SEED = 20290118  # of the draws of f: the same for every patient, so answers are repeatable


class Evidence(NamedTuple):
    """What the cells of each row say of x_n: exp(shift · x − ½ xᵀ precision x), flat where they say nothing."""

    precision: Float[np.ndarray, "N Q Q"]
    shift: Float[np.ndarray, "N Q"]


class Variation(NamedTuple):
    """Mean of the patients' positions, covariance between patients, and of rows within a patient."""

    centre: Float[np.ndarray, " Q"]
    between: Float[np.ndarray, "Q Q"]
    within: Float[np.ndarray, "Q Q"]


class PatientPosterior(NamedTuple):
    """Mean and covariance of each patient's position given the cells of all of the patient's rows."""

    mean: Float[np.ndarray, "G Q"]
    covariance: Float[np.ndarray, "G Q Q"]


# --- what a row says ---


def row_evidence(predictor: Predictor, table: Table, n_draws: int = N_DRAWS) -> Evidence:
    """p(x | cells) by importance-weighted draws, as a Gaussian, divided by p(x); groups of the prior are left out."""
    plain = without_groups(predictor)
    mean, covariance = map_rows_weighted(plain, table, _posterior_moments, n_draws)
    _, prior_mean, prior_covariance = group_moments(plain.model.prior, plain.n_components)
    return without_prior(mean, covariance, prior_mean[0], prior_covariance[0])


@Program
def _posterior_moments(
    p: Predictor, values: Array, seen: Array, qx: LatentNormal, noise: Array
) -> tuple[tuple[Float[Array, "B Q"], Float[Array, "B Q Q"]], Float[Array, " B"]]:
    x, weights, size = weighted_draws(p, values, seen, qx, noise)
    mean = jnp.einsum("sb,sbq->bq", weights, x)
    apart = x - mean
    return (mean, jnp.einsum("sb,sbi,sbj->bij", weights, apart, apart)), size


def without_prior(
    mean: Float[np.ndarray, "N Q"],
    covariance: Float[np.ndarray, "N Q Q"],
    prior_mean: Float[np.ndarray, " Q"],
    prior_covariance: Float[np.ndarray, "Q Q"],
) -> Evidence:
    """N(mean, covariance) / N(prior): a direction in which the posterior is no narrower than the prior is flat."""
    root = np.linalg.cholesky(prior_covariance)
    whitener = np.linalg.inv(root)
    variances, axes = np.linalg.eigh(whitener @ covariance @ whitener.T)
    gained = np.maximum(1 / np.maximum(variances, LEAST) - 1, 0.0)
    place = np.einsum("nji,nj->ni", axes, (mean - prior_mean) @ whitener.T)
    back = whitener.T @ axes  # [N Q Q]
    precision = np.einsum("nik,nk,njk->nij", back, gained, back)
    shift = np.einsum("nik,nk->ni", back, (1 + gained) * place)
    return Evidence(precision, shift + precision @ prior_mean)


# --- patients ---


class Moments(NamedTuple):
    """One expectation of EM: the patients' posterior, and Σ E[e eᵀ] over rows."""

    patients: PatientPosterior
    deviations: Float[np.ndarray, "Q Q"]


def fit_variation(evidence: Evidence, patient: Int[np.ndarray, " N"]) -> Variation:
    """μ, B and W of greatest likelihood, by EM; rows count as what their cells say, not as points."""
    Q = evidence.shift.shape[1]
    found = Variation(np.zeros(Q), 0.5 * np.eye(Q), 0.5 * np.eye(Q))
    for _ in range(MAX_STEPS):
        (mean, covariance), deviations = expectation(evidence, patient, found)
        centre = mean.mean(0)
        apart = mean - centre
        between = (apart.T @ apart + covariance.sum(0)) / len(mean)
        new = Variation(centre, _positive(between), _positive(deviations / len(patient)))
        change = max(np.abs(a - b).max() for a, b in zip(new, found, strict=True))
        found = new
        if change < TOLERANCE * np.trace(found.between + found.within) / Q:
            return found
    warnings.warn(
        f"variances between and within patients still move after {MAX_STEPS} steps of EM and are rough; more patients "
        "with several rows, or fewer latent dimensions, settle them.",
        RuntimeWarning,
        stacklevel=2,
    )
    return found


def shares_between(evidence: Evidence, variation: Variation) -> Float[np.ndarray, " Q"]:
    """Share of every dimension's variance that lies between patients (intraclass correlation); NaN for a dimension of
    which cells say nothing, whose variances stay where EM began."""
    between, within = np.diagonal(variation.between), np.diagonal(variation.within)
    told = np.diagonal(evidence.precision, axis1=1, axis2=2).mean(0) * (between + within)
    return np.where(told > LEAST_TOLD, between / (between + within), np.nan)


def patient_posterior(evidence: Evidence, patient: Int[np.ndarray, " N"], variation: Variation) -> PatientPosterior:
    """p(u_g | all cells of patient g)."""
    return expectation(evidence, patient, variation).patients


def expectation(evidence: Evidence, patient: Int[np.ndarray, " N"], variation: Variation) -> Moments:
    """A row says of u what it says of x, widened by W: precision Λ (I + W Λ)⁻¹, shift (I + Λ W)⁻¹ η."""
    (L, eta), (centre, B, W) = evidence, variation
    Q, n_patients = len(centre), int(patient.max()) + 1
    widened = np.linalg.inv(np.eye(Q) + L @ W)  # [N Q Q]
    precision = np.zeros((n_patients, Q, Q)) + np.linalg.inv(B)
    shift = np.zeros((n_patients, Q)) + np.linalg.solve(B, centre)
    np.add.at(precision, patient, widened @ L)
    np.add.at(shift, patient, np.einsum("nij,nj->ni", widened, eta))
    covariance = np.linalg.inv(precision)
    covariance = (covariance + covariance.swapaxes(1, 2)) / 2
    mean = np.einsum("gij,gj->gi", covariance, shift)
    own = W @ widened  # [N Q Q] covariance of e given u: (W⁻¹ + Λ)⁻¹
    follow = own @ L  # e given u moves by −follow · u
    e = np.einsum("nij,nj->ni", own, eta) - np.einsum("nij,nj->ni", follow, mean[patient])
    spread = own + follow @ covariance[patient] @ follow.swapaxes(1, 2)
    return Moments(PatientPosterior(mean, covariance), e.T @ e + spread.sum(0))


def _positive(covariance: Float[np.ndarray, "Q Q"]) -> Float[np.ndarray, "Q Q"]:
    return (covariance + covariance.T) / 2 + LEAST * np.eye(len(covariance))


# --- what is expected of a patient ---


@Program
def _decoded(
    p: Predictor, values: Array, u: Float[Array, "S G Q"], e: Float[Array, "R Q"], keys: Array
) -> tuple[Float[Array, "S G _ _"], ...]:
    """E[y | u_s, f_s] per block, averaged over deviations, for one draw of f at every draw of u."""
    R = len(e)
    rows = jnp.repeat(values, R, axis=0)

    def one_draw(at: tuple[Array, Array]) -> tuple[Array, ...]:
        position, key = at
        x = (position[:, None, :] + e).reshape(-1, position.shape[1])
        mean, var = moments_at(p, x)
        f = mean + jnp.sqrt(var) * jax.random.normal(key, (len(mean), 1), mean.dtype)
        cells = evaluate.predictive_means(p.layout, p.model.thetas, rows, f, jnp.zeros_like(f), p.rules)
        return tuple(block.reshape(-1, R, *block.shape[1:]).mean(1) for block in cells)

    return jax.lax.map(one_draw, (u, keys))


def expected_of_patients(
    predictor: Predictor,
    values: Float[np.ndarray, "G V"],
    patients: PatientPosterior,
    within: Float[np.ndarray, "Q Q"],
    level: float,
) -> tuple[list[Float[np.ndarray, "G _ _"]], ...]:
    """Mean, low and high of E[y | patient] by block: coded numbers, or probabilities of levels.

    The expectation is over rows of the patient; the interval over where the patient may lie and what the functions may
    be. `values` gives companion slots; covariates are at their average.
    """
    Q = predictor.n_components
    noise = standard_draws(N_POSITIONS, Q)
    e = standard_draws(N_DEVIATIONS, Q) @ np.linalg.cholesky(within).T
    roots = np.linalg.cholesky(patients.covariance)
    parts = []
    with jax_runtime():
        keys = jax.random.split(jax.random.key(SEED), N_POSITIONS)
        for start in range(0, len(values), PATIENTS):
            own = np.minimum(np.arange(start, start + PATIENTS), len(values) - 1)
            u = patients.mean[own] + np.einsum("gij,sj->sgi", roots[own], noise)
            drawn = _decoded(predictor, values[own], u, e, keys)
            n = min(PATIENTS, len(values) - start)
            parts.append([_summary(np.asarray(block)[:, :n], level) for block in drawn])
    blocks = [np.concatenate(block, axis=1) for block in zip(*parts, strict=True)]
    return tuple([block[k] for block in blocks] for k in range(3))


def _summary(drawn: Float[np.ndarray, "S G C K"], level: float) -> Float[np.ndarray, "3 G C K"]:
    return np.stack([drawn.mean(0), *np.quantile(drawn, [0.5 - level / 2, 0.5 + level / 2], axis=0)])
