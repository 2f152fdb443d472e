"""Array aliases; apart from `types.py`, since jaxtyping's arrays bring JAX along."""

from jaxtyping import Array, Float

Scalar = Float[Array, ""]
