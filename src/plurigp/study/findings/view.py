"""A two-dimensional view of the map."""

import warnings
from importlib.util import find_spec

import numpy as np


def two_dimensions(x: np.ndarray) -> np.ndarray:
    """The two principal axes of latent positions [N Q] -> [N 2]."""
    centred = x - x.mean(0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    flat = centred @ axes[:2].T
    return np.pad(flat, ((0, 0), (0, 2 - flat.shape[1])))


def view_of(mean: np.ndarray, seed: int) -> tuple[np.ndarray, str]:
    """A two-dimensional view and its method: UMAP where it is installed and Q > 2, otherwise the principal axes."""
    if mean.shape[1] <= 2 or find_spec("umap") is None:
        return two_dimensions(mean), "pca"
    with warnings.catch_warnings():  # of parts of it that are not installed, and of one thread, which is asked for
        warnings.simplefilter("ignore")
        from umap import UMAP

        return np.asarray(UMAP(random_state=seed, n_jobs=1).fit_transform(mean), float), "umap"
