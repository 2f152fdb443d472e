"""What every layer shares: the axis letters, the array aliases and the error for bad data.

Axes: N rows, D columns, V value slots, Q latent dimensions, M inducing points, P functions in all,
C columns of one block, H functions per column, W value slots per column, J quadrature points,
B rows of a batch, E encoder features.
"""

from jaxtyping import Array, Bool, Float

Scalar = Float[Array, ""]
Values = Float[Array, "B V"]
Seen = Bool[Array, "B D"]


class DataError(ValueError):
    """Something is wrong with a table, a schema or a saved model; the message names it and the remedy."""
