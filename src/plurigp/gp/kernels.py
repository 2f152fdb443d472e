"""Covariance functions of ONE pair of latent positions; `gram` vmaps them in one place."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from plurigp.arrays import Array, Scalar


def rbf(x: Float[Array, " Q"], z: Float[Array, " Q"]) -> Scalar:
    """exp(−½ |x − z|²), positions in units of the lengthscales."""
    return jnp.exp(-0.5 * jnp.sum((x - z) ** 2))


def matern52(x: Float[Array, " Q"], z: Float[Array, " Q"]) -> Scalar:
    """(1 + r + r²/3) e^{−r} with r = √5 |x − z|; the floor keeps the slope of √ finite at r = 0."""
    r = jnp.sqrt(5 * jnp.sum((x - z) ** 2) + 1e-12)
    return (1 + r + r**2 / 3) * jnp.exp(-r)


def linear(x: Float[Array, " Q"], z: Float[Array, " Q"]) -> Scalar:
    """x · z."""
    return jnp.sum(x * z)


PARTS: dict[str, Callable[[Float[Array, " Q"], Float[Array, " Q"]], Scalar]] = {
    "rbf": rbf,
    "matern52": matern52,
    "linear": linear,
}


class Kernel(eqx.Module):
    """A weighted sum of parts, each with a lengthscale per latent dimension (ARD)."""

    parts: tuple[str, ...] = eqx.field(static=True)
    log_lengthscales: Float[Array, "parts Q"]
    log_weights: Float[Array, " parts"]

    def __call__(self, x: Float[Array, " Q"], z: Float[Array, " Q"]) -> Scalar:
        scales = jnp.exp(self.log_lengthscales)
        weights = jnp.exp(self.log_weights) if len(self.parts) > 1 else jnp.ones_like(self.log_weights)
        terms = [w * PARTS[p](x / s, z / s) for p, s, w in zip(self.parts, scales, weights, strict=True)]
        return sum(terms[1:], terms[0])


def parse_kernel(name: str) -> tuple[str, ...]:
    """ "linear+rbf" -> ("linear", "rbf")."""
    parts = tuple(part.strip() for part in name.split("+"))
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise ValueError(f"kernel={name!r}: {unknown[0]!r} is not one of {', '.join(PARTS)} (or a sum of them with +)")
    return parts


def make_kernel(name: str, n_components: int, lengthscale: float) -> Kernel:
    """A kernel whose smooth parts start at the given lengthscale and whose linear part starts at one."""
    parts = parse_kernel(name)
    start = [0.0 if part == "linear" else np.log(lengthscale) for part in parts]
    return Kernel(
        parts,
        jnp.broadcast_to(jnp.asarray(start)[:, None], (len(parts), n_components)),
        jnp.zeros(len(parts)),
    )


def gram(kernel: Kernel, X: Float[Array, "A Q"], Z: Float[Array, "C Q"]) -> Float[Array, "A C"]:
    """k(x, z) for every pair."""
    return jax.vmap(lambda x: jax.vmap(lambda z: kernel(x, z))(Z))(X)


def diagonal(kernel: Kernel, X: Float[Array, "A Q"]) -> Float[Array, " A"]:
    """k(x, x) for every row."""
    return jax.vmap(lambda x: kernel(x, x))(X)
