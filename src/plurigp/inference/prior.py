"""The prior of x: N(0, I), which `None` stands for, or a Gaussian mixture that expectation maximisation learns with the
map. Its densities, the KL of q(x) from it, draws, and both steps of the learning."""

import warnings
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from plurigp.core.arrays import Array
from plurigp.core.threads import single_blas_thread
from plurigp.inference.compiling import Program
from plurigp.inference.encoder import LatentNormal, kl_x
from plurigp.inference.gp.linalg import solve_upper

WEIGHT_ROWS = 1.0  # rows that every group has before the first is seen (Dirichlet): no group's weight becomes zero
MEAN_ROWS = 0.01  # rows at zero, as weak as Fraley and Raftery's (2007)
START_INITS = 10  # initialisations of the first mixture, of which the likeliest is taken
START_RIDGE = 1e-3  # added to its variances, where those of N(0, I) are 1: no group starts as a point


class MixturePrior(eqx.Module):
    """p(x) = Σ_k π_k N(μ_k, Σ_k); Σ_k = root rootᵀ with an upper triangular root, as that of q(x)."""

    log_weights: Float[Array, " K"]
    means: Float[Array, "K Q"]
    roots: Float[Array, "K Q Q"]

    @property
    def n_groups(self) -> int:
        return len(self.means)

    @property
    def groups(self) -> LatentNormal:
        """The K Gaussians."""
        return LatentNormal(jnp.asarray(self.means), jnp.ones_like(self.means), jnp.asarray(self.roots))

    def log_densities(self, x: Float[Array, "S B Q"]) -> Float[Array, "S B K"]:
        """log N(x; μ_k, Σ_k) without the constant of 2π, as q's."""
        S, B, Q = x.shape
        each = jnp.broadcast_to(x.reshape(S * B, 1, Q), (S * B, self.n_groups, Q))
        return self.groups.log_density(each).reshape(S, B, self.n_groups)


def standard_mixture(n_groups: int, n_components: int) -> MixturePrior:
    """K groups that are all N(0, I): the same prior, in the form of a mixture."""
    eye = np.broadcast_to(np.eye(n_components), (n_groups, n_components, n_components))
    return MixturePrior(np.full(n_groups, -np.log(n_groups)), np.zeros((n_groups, n_components)), eye)


# --- the KL of q(x) ---


def _kl_by_group(prior: MixturePrior, q: LatentNormal) -> Float[Array, "K B"]:
    """KL(q(x_n) ‖ N(μ_k, Σ_k)) = ½ (|W (m − μ_k)|² + |W R|² − Q) − log det R + log det root, with W = root⁻¹."""
    K, Q = prior.means.shape
    unit = jnp.broadcast_to(jnp.eye(Q, dtype=prior.means.dtype)[:, None, :], (Q, K, Q))
    W = jnp.moveaxis(solve_upper(prior.groups.base, unit), 0, 2)
    distance = jnp.einsum("kij,kbj->kbi", W, q.mean - prior.means[:, None, :])
    spread = jnp.einsum("kij,bjl->kbil", W, q.stretch[:, :, None] * q.base)
    squares = (distance**2).sum(2) + (spread**2).sum((2, 3))
    return 0.5 * (squares - Q) - q.log_det + prior.groups.log_det[:, None]


def kl_to_prior(prior: MixturePrior | None, q: LatentNormal) -> Float[Array, " B"]:
    """KL(q(x_n) ‖ N(0, I)), or its upper bound for a mixture, −log Σ_k π_k exp(−KL(q(x_n) ‖ N(μ_k, Σ_k))).

    Gradients move q and leave the mixture, which `update_prior` moves.
    """
    if prior is None:
        return kl_x(q)
    fixed = jax.lax.stop_gradient(prior)
    return -jax.nn.logsumexp(fixed.log_weights[:, None] - _kl_by_group(fixed, q), axis=0)


# --- learning the mixture ---


class GroupStatistics(NamedTuple):
    """All that rows tell the mixture, with r_nk the share of group k in row n and q(x_n) = N(m_n, S_n)."""

    n_rows: Float[Array, " K"]  # Σ_n r_nk
    sums: Float[Array, "K Q"]  # Σ_n r_nk m_n
    squares: Float[Array, "K Q Q"]  # Σ_n r_nk (m_n m_nᵀ + S_n)


@Program
def _statistics(shares: Float[Array, "K B"], q: LatentNormal) -> GroupStatistics:
    root = q.stretch[:, :, None] * q.base
    within = jnp.einsum("kbij,blj->kil", shares[:, :, None, None] * root, root)
    between = jnp.einsum("kbi,bj->kij", shares[:, :, None] * q.mean, q.mean)
    return GroupStatistics(shares.sum(1), shares @ q.mean, between + within)


def group_statistics(prior: MixturePrior, q: LatentNormal, weights: Float[Array, " B"]) -> GroupStatistics:
    """Sums over weighted rows, with the shares r_nk ∝ π_k exp(−KL(q(x_n) ‖ N(μ_k, Σ_k))) that make the bound tight."""
    shares = jax.nn.softmax(prior.log_weights[:, None] - _kl_by_group(prior, q), axis=0)
    return _statistics(shares * weights, q)


def update_prior(rows: GroupStatistics, dtype: Any) -> MixturePrior:
    """The mixture that maximises the rows' bound plus the log of its own prior, in float64.

    That prior counts as one row in each group's weight, a hundredth of a row at zero in its mean, and Q + 2 rows with
    covariance K^(−2/Q) I in its covariance: K ellipsoids that together have the volume of N(0, I). It is fixed, not
    taken from the data: it also keeps the map's scale, which a mixture alone leaves open, and no group can collapse.
    """
    n, sums, squares = (np.asarray(part, np.float64) for part in rows)
    K, Q = sums.shape
    weights = (n + WEIGHT_ROWS) / (n + WEIGHT_ROWS).sum()
    held = (n + MEAN_ROWS)[:, None]
    means = sums / held
    scatter = squares - held[:, :, None] * means[:, :, None] * means[:, None, :]
    prior_rows = Q + 2
    covariances = (prior_rows * K ** (-2 / Q) * np.eye(Q) + scatter) / (prior_rows + n)[:, None, None]
    return mixture_of(weights, means, covariances, dtype)


def mixture_of(weights: np.ndarray, means: np.ndarray, covariances: np.ndarray, dtype: Any) -> MixturePrior:
    """From weights [K], means [K Q] and covariances [K Q Q]."""
    symmetric = (covariances + covariances.swapaxes(1, 2)) / 2
    roots = np.linalg.cholesky(symmetric[:, ::-1, ::-1])[:, ::-1, ::-1]  # upper, where Cholesky's are lower
    return MixturePrior(*(np.ascontiguousarray(part, dtype) for part in (np.log(weights), means, roots)))


def start_prior(q: LatentNormal, n_groups: int, seed: int, dtype: Any) -> MixturePrior:
    """The first mixture: scikit-learn's of the latent means gives each row's shares, and `update_prior` the rest."""
    from sklearn.exceptions import ConvergenceWarning  # half of scikit-learn, which other fits need not wait for
    from sklearn.mixture import GaussianMixture

    means = np.asarray(q.mean, np.float64)
    mixture = GaussianMixture(n_groups, n_init=START_INITS, reg_covar=START_RIDGE, random_state=seed)
    with single_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # equal rows, or a slow start: good enough
        shares = mixture.fit(means).predict_proba(means).T
    return update_prior(_statistics(shares, q), dtype)


def by_weight(prior: MixturePrior) -> MixturePrior:
    """Groups in the order of their weights, the largest first."""
    order = np.argsort(-np.asarray(prior.log_weights), kind="stable")
    return jax.tree.map(lambda part: np.asarray(part)[order], prior)


# --- moments and draws ---


class GroupMoments(NamedTuple):
    """A prior's groups in the words of people; N(0, I) is one group."""

    weights: Float[np.ndarray, " K"]
    means: Float[np.ndarray, "K Q"]
    covariances: Float[np.ndarray, "K Q Q"]


def group_moments(prior: MixturePrior | None, n_components: int) -> GroupMoments:
    """Weights, means and covariances in float64."""
    prior = standard_mixture(1, n_components) if prior is None else prior
    log_weights, means, roots = (np.asarray(part, np.float64) for part in jax.tree.leaves(prior))
    return GroupMoments(np.exp(log_weights) / np.exp(log_weights).sum(), means, roots @ roots.swapaxes(1, 2))


def one_group(prior: MixturePrior | None) -> MixturePrior | None:
    """The single Gaussian with the mixture's mean and covariance: the same prior without its groups."""
    if prior is None:
        return None
    weights, means, covariances = group_moments(prior, prior.means.shape[1])
    mean = weights @ means
    apart = means - mean
    covariance = np.einsum("k,kij->ij", weights, covariances + apart[:, :, None] * apart[:, None, :])
    return mixture_of(np.ones(1), mean[None], covariance[None], np.asarray(prior.means).dtype)


def draw_positions(
    prior: MixturePrior | None, rng: np.random.Generator, n_rows: int, n_components: int
) -> Float[np.ndarray, "N Q"]:
    """x ~ p(x) for new rows."""
    noise = rng.normal(size=(n_rows, n_components))
    if prior is None:
        return noise
    weights, means, _ = group_moments(prior, n_components)
    group = rng.choice(len(weights), n_rows, p=weights)
    return means[group] + np.einsum("nij,nj->ni", np.asarray(prior.roots, np.float64)[group], noise)
