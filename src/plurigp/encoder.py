"""Recognition: (features, seen) of a row -> q(x). Cells as evidence, networks, or free rows."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from plurigp.arrays import Array, Scalar
from plurigp.gp.linalg import inverse_factors

ENCODERS = ("factors", "masked", "paper", "free")


class LatentNormal(NamedTuple):
    """q(x_n) = N(mean, root rootᵀ) for a batch of rows, every root upper triangular."""

    mean: Float[Array, "B Q"]
    root: Float[Array, "B Q Q"]

    @property
    def sd(self) -> Float[Array, "B Q"]:
        """Of each dimension by itself."""
        return jnp.sqrt((self.root**2).sum(2))

    def at(self, noise: Float[Array, "S #B Q"]) -> Float[Array, "S B Q"]:
        """x = mean + root · noise; standard normal noise makes them draws."""
        return self.mean + jnp.einsum(
            "bij,sbj->sbi", self.root, jnp.broadcast_to(noise, (len(noise), *self.mean.shape))
        )

    def log_density(self, x: Float[Array, "S B Q"]) -> Float[Array, "S B"]:
        """log q(x), without the constant of 2π."""
        whitened = jax.scipy.linalg.solve_triangular(self.root, jnp.moveaxis(x - self.mean, 0, 2))
        return -0.5 * (whitened**2).sum(1).T - _log_det(self.root)


def _log_det(root: Float[Array, "B Q Q"]) -> Float[Array, " B"]:
    return jnp.log(jnp.diagonal(root, axis1=1, axis2=2)).sum(1)


def independent(mean: Float[Array, "B Q"], sd: Float[Array, "B Q"]) -> LatentNormal:
    """A q(x) whose dimensions are."""
    return LatentNormal(mean, sd[:, :, None] * np.eye(sd.shape[1], dtype=sd.dtype))


class Network(eqx.Module):
    """One tanh layer, Xavier weights; `scale` shrinks the last layer so that a start elsewhere survives."""

    w1: Float[Array, "I U"]
    b1: Float[Array, " U"]
    w2: Float[Array, "U O"]
    b2: Float[Array, " O"]

    def after(self, product: Float[Array, "B U"]) -> Float[Array, "B O"]:
        """The output, given inputs @ w1."""
        return jnp.tanh(product + self.b1) @ self.w2 + self.b2


def make_network(
    rng: np.random.Generator, n_in: int, n_hidden: int, n_out: int, scale: float = 1.0, shift: float = 0.0
) -> Network:
    """Xavier-uniform weights; biases zero, the last one `shift`."""

    def xavier(n: int, m: int) -> np.ndarray:
        limit = float(np.sqrt(6 / (n + m)))
        return rng.uniform(-limit, limit, (n, m))

    return Network(xavier(n_in, n_hidden), np.zeros(n_hidden), scale * xavier(n_hidden, n_out), np.full(n_out, shift))


REACH = 4.0


def tamed(standard: Array) -> Array:
    """Standardised features bent towards ±REACH, so that one wild lab value does not throw a row out of the map."""
    root = np.sqrt if isinstance(standard, np.ndarray) else jnp.sqrt
    return standard / root(1 + (standard / REACH) ** 2)


class Encoder(eqx.Module):
    """mean = linear path + network, sd = sigmoid(network), on features standardised over the training rows.

    The networks read concat(features · seen, seen of the watched columns), so a gap is not a zero. Watched are the
    columns with gaps in training (none in the paper's): of another one's `seen` there would be nothing to learn.
    """

    watched: tuple[int, ...] = eqx.field(static=True)
    shift: Float[Array, " E"]  # not learned
    scale: Float[Array, " E"]  # not learned
    linear: Float[Array, "E Q"]
    offset: Float[Array, " Q"]
    net_mean: Network
    net_sd: Network

    def __call__(
        self, features: Float[Array, "B E"], seen: Bool[Array, "B E"], row_seen: Bool[Array, "B D"]
    ) -> LatentNormal:
        known, told = _read(self, features, seen, row_seen)
        linear = jnp.pad(self.linear, ((0, told.shape[1]), (0, 0)))
        first = jnp.concatenate([linear, self.net_mean.w1, self.net_sd.w1], 1)  # one product instead of three
        straight, for_mean, for_sd = jax.lax.split(
            jnp.concatenate([known, told], 1) @ first,
            [part.shape[1] for part in (linear, self.net_mean.w1, self.net_sd.w1)],
            axis=1,
        )
        mean = straight + self.offset + self.net_mean.after(for_mean)
        return independent(mean, jax.nn.sigmoid(self.net_sd.after(for_sd)))


class FactorEncoder(eqx.Module):
    """The posterior of factor analysis, bent by networks: mean = base + sd · network, root = e^network · base root.

    Every cell that is seen adds its precision along its loading, so whatever is missing, the rest is weighed as it
    should be, and what it leaves open together stays correlated; the networks, which read what `Encoder`'s do, need
    only learn where the world is not linear.
    """

    watched: tuple[int, ...] = eqx.field(static=True)
    shift: Float[Array, " E"]  # not learned
    scale: Float[Array, " E"]  # not learned
    loadings: Float[Array, "E Q"]
    log_precision: Float[Array, " E"]
    net_mean: Network
    net_sd: Network

    def __call__(
        self, features: Float[Array, "B E"], seen: Bool[Array, "B E"], row_seen: Bool[Array, "B D"]
    ) -> LatentNormal:
        known, told = _read(self, features, seen, row_seen)
        base = self.factors(known, seen)
        first = jnp.concatenate([self.net_mean.w1, self.net_sd.w1], 1)
        for_mean, for_sd = jnp.split(jnp.concatenate([known, told], 1) @ first, [self.net_mean.w1.shape[1]], axis=1)
        mean = base.mean + base.sd * self.net_mean.after(for_mean)
        return LatentNormal(mean, jnp.exp(self.net_sd.after(for_sd))[:, :, None] * base.root)

    def factors(self, known: Float[Array, "B E"], seen: Bool[Array, "B E"]) -> LatentNormal:
        """Λ = I + Σ_e p_e l_e l_eᵀ over the features seen; mean Λ⁻¹ Σ_e p_e l_e y_e, covariance Λ⁻¹."""
        L, weight = self.loadings, seen * jnp.exp(self.log_precision)
        E, Q = L.shape
        outer = (L[:, :, None] * L[:, None, :]).reshape(E, Q * Q)
        precision = (weight @ outer).reshape(-1, Q, Q) + jnp.eye(Q, dtype=L.dtype)
        W = inverse_factors(precision)
        mean = _times(W.swapaxes(1, 2), _times(W, (weight * known) @ L))
        return LatentNormal(mean, W.swapaxes(1, 2))


def _read(
    encoder: Encoder | FactorEncoder,
    features: Float[Array, "B E"],
    seen: Bool[Array, "B E"],
    row_seen: Bool[Array, "B D"],
) -> tuple[Float[Array, "B E"], Float[Array, "B _"]]:
    """Standardised features, zero at gaps; and which of the watched columns are there."""
    standard = (features - jax.lax.stop_gradient(encoder.shift)) / jax.lax.stop_gradient(encoder.scale)
    known = jnp.where(seen, tamed(standard), 0)
    return known, row_seen[:, np.asarray(encoder.watched, np.int32)].astype(known.dtype)


def _times(A: Float[Array, "B Q Q"], b: Float[Array, "B Q"]) -> Float[Array, "B Q"]:
    return (A @ b[:, :, None])[:, :, 0]


class FreeRows(eqx.Module):
    """No encoder: q(x_n) has parameters of its own for every training row."""

    mean: Float[Array, "N Q"]
    log_sd: Float[Array, "N Q"]

    def __call__(self, rows: Int[Array, " B"]) -> LatentNormal:
        return independent(self.mean[rows], jnp.exp(self.log_sd[rows]))


def kl_x(q: LatentNormal) -> Float[Array, " B"]:
    """KL(q(x_n) ‖ N(0, I)) per row."""
    return 0.5 * ((q.mean**2).sum(1) + (q.root**2).sum((1, 2)) - q.mean.shape[1]) - _log_det(q.root)


def spread(q: LatentNormal, real: Bool[Array, " B"]) -> Float[Array, " Q"]:
    """The sd of the encoded means over the real rows of a batch: near zero means a dimension has collapsed."""
    n: Scalar = jnp.maximum(real.sum(), 1)
    centre = jnp.where(real[:, None], q.mean, 0).sum(0) / n
    return jnp.sqrt(jnp.where(real[:, None], (q.mean - centre) ** 2, 0).sum(0) / n)
