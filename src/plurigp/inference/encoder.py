"""Encoders: (features, seen) of a row -> q(x), by factor analysis with networks, by networks alone, or free rows."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from plurigp.core.arrays import Array, Scalar
from plurigp.inference.gp.linalg import inverse_factors, solve_upper

ENCODERS = ("factors", "masked", "paper", "free")

Features = Float[Array, "B E"]  # what an encoder reads of a row's cells
FeaturesSeen = Bool[Array, "B E"]
CellsSeen = Bool[Array, "B D"]
CovariateCodes = Float[Array, "B L"] | None


class LatentNormal(NamedTuple):
    """q(x_n) = N(mean, root rootᵀ) for a batch of rows, every root upper triangular: diag(stretch) · base.

    The two are kept apart because draws, densities and KL are cheaper to compute from the base.
    """

    mean: Float[Array, "B Q"]
    stretch: Float[Array, "B Q"]
    base: Float[Array, "B Q Q"]

    @property
    def sd(self) -> Float[Array, "B Q"]:
        """Marginal sd of each dimension."""
        return self.stretch * jnp.sqrt((self.base**2).sum(2))

    def at(self, noise: Float[Array, "S #B Q"]) -> Float[Array, "S B Q"]:
        """x = mean + root · noise; standard normal noise makes them draws."""
        noise = jnp.broadcast_to(noise, (len(noise), *self.mean.shape))
        return self.mean + self.stretch * jnp.einsum("bij,sbj->sbi", self.base, noise)

    def log_density(self, x: Float[Array, "S B Q"]) -> Float[Array, "S B"]:
        """log q(x), without the constant of 2π."""
        whitened = solve_upper(self.base, (x - self.mean) / self.stretch)
        return -0.5 * (whitened**2).sum(2) - self.log_det

    @property
    def log_det(self) -> Float[Array, " B"]:
        """Of the root."""
        return jnp.log(self.stretch * jnp.diagonal(self.base, axis1=1, axis2=2)).sum(1)


def independent(mean: Float[Array, "B Q"], sd: Float[Array, "B Q"]) -> LatentNormal:
    """Diagonal q(x)."""
    Q = sd.shape[1]
    return LatentNormal(mean, sd, jnp.broadcast_to(np.eye(Q, dtype=sd.dtype), (len(sd), Q, Q)))


class Network(eqx.Module):
    """One hidden tanh layer."""

    w1: Float[Array, "I U"]
    b1: Float[Array, " U"]
    w2: Float[Array, "U Q"]
    b2: Float[Array, " Q"]

    def after(self, product: Float[Array, "U B"]) -> Float[Array, "B Q"]:
        """The output, given w1ᵀ inputs."""
        return jnp.tanh(product + self.b1[:, None]).T @ self.w2 + self.b2


def make_network(
    rng: np.random.Generator, n_in: int, n_hidden: int, n_out: int, scale: float = 1.0, shift: float = 0.0
) -> Network:
    """Xavier-uniform weights, the last layer's times `scale`; biases zero, the last one `shift`."""

    def xavier(n: int, m: int) -> np.ndarray:
        limit = float(np.sqrt(6 / (n + m)))
        return rng.uniform(-limit, limit, (n, m))

    return Network(xavier(n_in, n_hidden), np.zeros(n_hidden), scale * xavier(n_hidden, n_out), np.full(n_out, shift))


CLIP_AT = 4.0


def soft_clip(standard: Array) -> Array:
    """Standardised features, smoothly bounded to ±CLIP_AT so that one extreme value does not misplace a row."""
    root = np.sqrt if isinstance(standard, np.ndarray) else jnp.sqrt
    return standard / root(1 + (standard / CLIP_AT) ** 2)


class Encoder(eqx.Module):
    """mean = linear path + network, sd = sigmoid(network), on features standardised over the training rows.

    The networks read concat(features · seen, missingness indicators), so a gap is not a zero. Only columns with gaps in
    training have an indicator (none in the paper's encoder): that of another column would be constant.
    """

    indicator_columns: tuple[int, ...] = eqx.field(static=True)
    shift: Float[Array, " E"]  # not learned
    scale: Float[Array, " E"]  # not learned
    linear: Float[Array, "E Q"]
    offset: Float[Array, " Q"]
    net_mean: Network
    net_sd: Network
    effects: Float[Array, "L E"] | None = None  # of covariates on the features

    def __call__(
        self, features: Features, seen: FeaturesSeen, row_seen: CellsSeen, codes: CovariateCodes = None
    ) -> LatentNormal:
        """Three products in one: the linear path and the first layers of both networks."""
        known, indicators = _read(self, features, seen, row_seen, codes)
        linear = jnp.pad(self.linear, ((0, len(indicators)), (0, 0)))
        parts = (linear, self.net_mean.w1, self.net_sd.w1)
        products = jnp.concatenate(parts, 1).T @ jnp.concatenate([known, indicators])
        straight, for_mean, for_sd = jax.lax.split(products, [part.shape[1] for part in parts])
        mean = straight.T + self.offset + self.net_mean.after(for_mean)
        return independent(mean, jax.nn.sigmoid(self.net_sd.after(for_sd)))


class FactorEncoder(eqx.Module):
    """The posterior of factor analysis with networks on top: mean = base + sd · network, root = e^network · base root.

    Every observed cell adds its precision along its loading, so q(x) is right for any pattern of gaps where the model
    is linear; the networks, which read what `Encoder`'s do, need only learn the rest.
    """

    indicator_columns: tuple[int, ...] = eqx.field(static=True)
    shift: Float[Array, " E"]  # not learned
    scale: Float[Array, " E"]  # not learned
    loadings: Float[Array, "E Q"]
    log_precision: Float[Array, " E"]
    net_mean: Network
    net_sd: Network
    effects: Float[Array, "L E"] | None = None  # of covariates on the features

    def factors(self, known: Float[Array, "E B"], seen: Bool[Array, "E B"]) -> LatentNormal:
        """Λ = I + Σ_e p_e l_e l_eᵀ over the features seen; mean Λ⁻¹ Σ_e p_e l_e y_e, covariance Λ⁻¹."""
        L, weight = self.loadings, seen * jnp.exp(self.log_precision)[:, None]
        E, Q = L.shape
        outer = (L[:, :, None] * L[:, None, :]).reshape(E, Q * Q)
        precision = (outer.T @ weight).reshape(Q, Q, -1) + jnp.eye(Q, dtype=L.dtype)[:, :, None]
        W = inverse_factors(precision)
        mean = _times(W.swapaxes(1, 2), _times(W, (weight * known).T @ L))
        return LatentNormal(mean, jnp.ones_like(mean), W.swapaxes(1, 2))

    def __call__(
        self, features: Features, seen: FeaturesSeen, row_seen: CellsSeen, codes: CovariateCodes = None
    ) -> LatentNormal:
        known, indicators = _read(self, features, seen, row_seen, codes)
        linear = self.factors(known, seen.T)
        first = jnp.concatenate([self.net_mean.w1, self.net_sd.w1], 1)
        for_mean, for_sd = jnp.split(first.T @ jnp.concatenate([known, indicators]), [self.net_mean.w1.shape[1]])
        mean = linear.mean + linear.sd * self.net_mean.after(for_mean)
        return LatentNormal(mean, jnp.exp(self.net_sd.after(for_sd)), linear.base)


def _read(
    encoder: Encoder | FactorEncoder,
    features: Features,
    seen: FeaturesSeen,
    row_seen: CellsSeen,
    codes: CovariateCodes,
) -> tuple[Float[Array, "E B"], Float[Array, "_ B"]]:
    """Standardised features, zero at gaps; and the missingness indicators (1: observed). Rows last.

    With covariates, features are what these leave of them, and the covariates stand behind the indicators.
    """
    shift, scale = (jax.lax.stop_gradient(part)[:, None] for part in (encoder.shift, encoder.scale))
    standard = (features.T - shift) / scale
    if codes is not None and encoder.effects is not None:
        standard = standard - encoder.effects.T @ codes.T
    known = jnp.where(seen.T, soft_clip(standard), 0)
    indicators = row_seen.T[np.asarray(encoder.indicator_columns, np.int32)].astype(known.dtype)
    return known, indicators if codes is None else jnp.concatenate([indicators, codes.T])


def _times(A: Float[Array, "B Q Q"], b: Float[Array, "B Q"]) -> Float[Array, "B Q"]:
    return (A @ b[:, :, None])[:, :, 0]


class FreeRows(eqx.Module):
    """No encoder: every training row has free parameters of q(x_n)."""

    mean: Float[Array, "N Q"]
    log_sd: Float[Array, "N Q"]

    def __call__(self, rows: Int[Array, " B"]) -> LatentNormal:
        return independent(self.mean[rows], jnp.exp(self.log_sd[rows]))


def kl_x(q: LatentNormal) -> Float[Array, " B"]:
    """KL(q(x_n) ‖ N(0, I)) per row."""
    squares = q.mean**2 + q.stretch**2 * (q.base**2).sum(2)
    return 0.5 * (squares.sum(1) - q.mean.shape[1]) - q.log_det


class PositionSums(NamedTuple):
    """Number, sum and squares of the encoded means of some rows."""

    n: Scalar
    sums: Float[Array, " Q"]
    squares: Float[Array, " Q"]

    @property
    def spread(self) -> Float[Array, " Q"]:
        """The sd of the encoded means: near zero means a dimension has collapsed."""
        n = jnp.maximum(self.n, 1)
        return jnp.sqrt(jnp.maximum(self.squares / n - (self.sums / n) ** 2, 0))


def position_sums(q: LatentNormal, real: Bool[Array, " B"]) -> PositionSums:
    """Over the real rows of a batch."""
    mean = jnp.where(real[:, None], q.mean, 0)
    return PositionSums(real.sum(dtype=mean.dtype), mean.sum(0), (mean**2).sum(0))
