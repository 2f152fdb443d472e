"""Recognition: (features, seen) of a row -> mean and sd of q(x). Two networks, or free parameters per row."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from plurigp.arrays import Array, Scalar

ENCODERS = ("masked", "paper", "free")


class LatentNormal(NamedTuple):
    """q(x_n) = N(mean, sd²) for a batch of rows, independent over dimensions."""

    mean: Float[Array, "B Q"]
    sd: Float[Array, "B Q"]


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
        standard = (features - jax.lax.stop_gradient(self.shift)) / jax.lax.stop_gradient(self.scale)
        known = jnp.where(seen, tamed(standard), 0)
        told = row_seen[:, np.asarray(self.watched, np.int32)].astype(known.dtype)
        linear = jnp.pad(self.linear, ((0, told.shape[1]), (0, 0)))
        first = jnp.concatenate([linear, self.net_mean.w1, self.net_sd.w1], 1)  # one product instead of three
        straight, for_mean, for_sd = jax.lax.split(
            jnp.concatenate([known, told], 1) @ first,
            [part.shape[1] for part in (linear, self.net_mean.w1, self.net_sd.w1)],
            axis=1,
        )
        mean = straight + self.offset + self.net_mean.after(for_mean)
        return LatentNormal(mean, jax.nn.sigmoid(self.net_sd.after(for_sd)))


class FreeRows(eqx.Module):
    """No encoder: q(x_n) has parameters of its own for every training row."""

    mean: Float[Array, "N Q"]
    log_sd: Float[Array, "N Q"]

    def __call__(self, rows: Int[Array, " B"]) -> LatentNormal:
        return LatentNormal(self.mean[rows], jnp.exp(self.log_sd[rows]))


def kl_x(q: LatentNormal) -> Float[Array, " B"]:
    """KL(q(x_n) ‖ N(0, I)) per row."""
    return 0.5 * (q.mean**2 + q.sd**2 - 1 - 2 * jnp.log(q.sd)).sum(1)


def spread(q: LatentNormal, real: Bool[Array, " B"]) -> Float[Array, " Q"]:
    """The sd of the encoded means over the real rows of a batch: near zero means a dimension has collapsed."""
    n: Scalar = jnp.maximum(real.sum(), 1)
    centre = jnp.where(real[:, None], q.mean, 0).sum(0) / n
    return jnp.sqrt(jnp.where(real[:, None], (q.mean - centre) ** 2, 0).sum(0) / n)
