"""What every layer shares and nothing heavy: the axis letters and the error for bad data.

Axes: N rows, D columns, V value slots, Q latent dimensions, M inducing points, P functions in all,
C columns of one block, H functions per column, W value slots per column, J quadrature points,
B rows of a batch, S draws times rows, E encoder features, R numbers that a prediction averages,
T entries of a packed symmetric matrix.
"""


class DataError(ValueError):
    """Something is wrong with a table, a schema or a saved model; the message names it and the remedy."""
