"""Numbers that stand for gaps: likely ones are named, ordinary ones are not, declared ones become gaps."""

import warnings

import numpy as np
import pandas as pd
import pytest

from plurigp.core.types import DataError
from plurigp.data import Coder, infer_schema, read_table
from plurigp.data.sentinels import SentinelWarning, likely_sentinels, with_gaps_for


def counts(*codes: float, n: int = 100) -> np.ndarray:
    return np.append(np.random.default_rng(0).poisson(3.0, n).astype(float), codes)


@pytest.mark.parametrize("code", [999, 9999, 99, -1, -9, -99, 888])
def test_repeated_codes_outside_the_rest_are_likely_sentinels(code):
    assert likely_sentinels(counts(code, code, np.nan)) == [code]


def test_several_codes_are_named_together():
    assert likely_sentinels(counts(999, 999, -9, -9, 888)) == [-9, 999]


@pytest.mark.parametrize(
    "numbers",
    [
        counts(999),  # once
        counts(998, 998),  # not a code
        np.tile([-1.0, 0.0, 1.0], 40),  # a scale
        np.append(np.random.default_rng(0).normal(0, 3, 100), [-1, -1]),  # negative numbers are usual
        np.append(np.random.default_rng(0).uniform(20, 95, 100), [99, 99]),  # ages
        np.append(np.random.default_rng(0).uniform(50, 900, 100), [999, 999]),
        np.array([1.0, 2.0, 999.0, 999.0]),  # too few
        np.full(5, np.nan),
    ],
)
def test_ordinary_numbers_are_not(numbers):
    assert likely_sentinels(numbers) == []


def test_a_fit_names_column_row_code_and_remedy_and_drops_nothing():
    frame = pd.DataFrame({"visits": counts(999, 999), "age": np.linspace(20, 80, 102)})
    remedies = r"--missing visits=999, missing = \[999\] in the schema file, or read_table"
    with pytest.warns(SentinelWarning, match=rf"column 'visits', row 100: 2 cells hold 999.*{remedies}"):
        coder = Coder.fit(frame, infer_schema(frame))
    assert coder.table(frame).seen.all()
    cured = with_gaps_for(frame, {"visits": [999]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schema = Coder.fit(cured, infer_schema(cured)).schema
    assert schema["visits"].kind == "poisson"
    assert frame["visits"].notna().all()


def test_declared_values_become_gaps_in_any_dtype(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("n,x,word\n1,999,a\n999,2.5,unknown\n3,3.5,999\n")
    everywhere = read_table(path, missing=[999, "unknown"])
    assert everywhere.isna().to_numpy().tolist() == [[False, True, False], [True, False, True], [False, False, True]]
    one = read_table(path, missing={"n": [999]})
    assert one.isna().to_numpy().sum() == 1
    assert one["n"].tolist()[::2] == [1.0, 3.0]
    with pytest.raises(DataError, match="column 'm' is missing"):
        read_table(path, missing={"m": [999]})
    with pytest.raises(DataError, match="missing must be a list"):
        read_table(path, missing="999")
