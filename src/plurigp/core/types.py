"""What every layer shares and nothing heavy: the axis letters, the error for bad data, an exit code.

Axes: N rows, D columns, V value slots, Q latent dimensions, M inducing points, P functions in all,
C columns of one block, H functions per column, W value slots per column, J quadrature points,
B rows of a batch, S draws times rows, E encoder features, R numbers that a prediction averages,
T entries of a packed symmetric matrix, L features of covariates, G functions of a basis: M and L of them.
"""

INTERRUPTED = 130  # exit code after Ctrl-C, as shells have it


class DataError(ValueError):
    """Something is wrong with a table, a schema or a saved model; the message names it and the remedy."""
