"""Counts out of scale with their column: found among ordinary counts, never among honest ones with long tails."""

import re

import numpy as np
import pandas as pd
import pytest

from plurigp.data import Coder, Column, Schema
from plurigp.data.scale import OutOfScaleWarning, largest_in_scale, out_of_scale_row

COUNT = Column("a", "poisson")
LONG_TAILS = {
    "negative binomial": lambda rng, n: rng.poisson(rng.gamma(0.1, 1000, n)),
    "mostly zeros": lambda rng, n: rng.poisson(rng.gamma(0.02, 5e5, n)),
    "zipf 1.5": lambda rng, n: rng.zipf(1.5, n),
    "zipf 2": lambda rng, n: rng.zipf(2.0, n),
    "lognormal, sd 2": lambda rng, n: np.round(np.exp(rng.normal(0, 2, n))),
    "lognormal, sd 3": lambda rng, n: np.round(np.exp(rng.normal(3, 3, n))),
    "sparse lognormal": lambda rng, n: np.round(np.exp(rng.normal(8, 2, n))) * (rng.random(n) < 0.05),
    "large": lambda rng, n: rng.poisson(1e6, n),
}


@pytest.mark.parametrize("law", LONG_TAILS)
@pytest.mark.parametrize(("n", "repeats"), [(8, 300), (50, 300), (1000, 100), (50_000, 4)])
def test_honest_counts_are_in_scale(rng, law, n, repeats):
    fired = sum(out_of_scale_row(COUNT, LONG_TAILS[law](rng, n).astype(float)) is not None for _ in range(repeats))
    assert fired <= (1 if n < 100 else 0)


@pytest.mark.parametrize("n", [8, 20, 100, 10_000])
@pytest.mark.parametrize("wrong", [1e9, 1e12, 1e15])
def test_a_slip_among_small_counts_is_found_by_its_row(rng, n, wrong):
    numbers = rng.poisson(3, n).astype(float)
    numbers[0] = np.nan
    assert out_of_scale_row(COUNT, numbers) is None
    numbers[5] = wrong
    assert out_of_scale_row(COUNT, numbers) == 5
    assert np.nanmax(np.delete(numbers, 5)) < largest_in_scale(numbers) < wrong


def test_a_code_used_several_times_is_found_too(rng):
    numbers = rng.poisson(3, 200).astype(float)
    numbers[[7, 50, 120]] = 99_999_999
    assert out_of_scale_row(COUNT, numbers) == 7


@pytest.mark.parametrize("numbers", [[], [np.nan], [1e9], [0, 0, 0, 1e9], [1, 2, 1e9], [np.nan, 3, 2, np.nan, 1e9]])
def test_too_few_counts_cannot_tell(numbers):
    assert out_of_scale_row(COUNT, np.array(numbers, float)) is None


@pytest.mark.parametrize("kind", ["poisson", "negative_binomial", "zero_inflated_poisson"])
def test_the_coder_says_which_cell_and_what_to_do(rng, kind):
    frame = pd.DataFrame({"visits": rng.poisson(3, 100), "age": rng.normal(size=100)})
    frame.loc[41, "visits"] = 1_234_567_890
    with pytest.warns(OutOfScaleWarning, match=re.escape("column 'visits', row 41: ")) as said:
        Coder.fit(frame, Schema((Column("visits", kind), Column("age", "gaussian"))))
    assert "make it a gap" in str(said[0].message)
    assert "1234567890" not in str(said[0].message)


def test_numbers_that_are_no_counts_may_be_of_any_size(rng):
    """Warnings are errors here."""
    frame = pd.DataFrame({"level": np.append(rng.poisson(3, 99) + 1.0, 1e9)})
    Coder.fit(frame, Schema((Column("level", "lognormal"),)))
