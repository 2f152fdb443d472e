"""Covariance functions of inner products and squared distances, so that all pairs cost one matrix product."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from plurigp.core.arrays import Array


class Products(NamedTuple):
    """x · z and |x − z|², positions in units of the lengthscales."""

    inner: Array
    squared_distance: Array


def matern52(products: Products) -> Array:
    """(1 + r + r²/3) e^{−r} with r = √5 |x − z|; the floor keeps the slope of √ finite at r = 0."""
    r = jnp.sqrt(5 * products.squared_distance + 1e-12)
    return (1 + r + r**2 / 3) * jnp.exp(-r)


PARTS: dict[str, Callable[[Products], Array]] = {
    "rbf": lambda products: jnp.exp(-0.5 * products.squared_distance),
    "matern52": matern52,
    "linear": lambda products: products.inner,
}


class Kernel(eqx.Module):
    """A weighted sum of parts, each with a lengthscale per latent dimension (ARD)."""

    parts: tuple[str, ...] = eqx.field(static=True)
    log_lengthscales: Float[Array, "parts Q"]
    log_weights: Float[Array, " parts"]

    def weighted(self, products_at: Callable[[Float[Array, " Q"]], Products]) -> Array:
        """The sum of the parts, each at its own lengthscales."""
        weights = jnp.exp(self.log_weights) if len(self.parts) > 1 else jnp.ones_like(self.log_weights)
        scales = jnp.exp(self.log_lengthscales)
        terms = [w * PARTS[p](products_at(s)) for p, s, w in zip(self.parts, scales, weights, strict=True)]
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
    return Kernel(parts, np.tile(np.asarray(start)[:, None], (1, n_components)), np.zeros(len(parts)))


def gram(kernel: Kernel, X: Float[Array, "A Q"], Z: Float[Array, "C Q"]) -> Float[Array, "A C"]:
    """k(x, z) for every pair; distances by one matrix product, which in float64 loses nothing that matters."""

    def products_at(scales: Float[Array, " Q"]) -> Products:
        x, z = X / scales, Z / scales
        inner = x @ z.T
        distance = (x**2).sum(1)[:, None] + (z**2).sum(1) - 2 * inner
        return Products(inner, jnp.maximum(distance, 0))

    return kernel.weighted(products_at)


def diagonal(kernel: Kernel, X: Float[Array, "A Q"]) -> Float[Array, " A"]:
    """k(x, x) for every row."""
    return kernel.weighted(lambda scales: Products(((X / scales) ** 2).sum(1), jnp.zeros_like(X[:, 0])))
