"""Array aliases; apart from `types.py`, since they bring JAX along."""

import jax
import numpy as np
from jaxtyping import Float

Array = jax.Array | np.ndarray  # traced in training, plain at rest: saved, loaded and reported models
Scalar = Float[Array, ""]
