"""Gaps of the asked share, driven by what they should be driven by."""

import numpy as np
import pandas as pd
import pytest

from plurigp.core.types import DataError
from plurigp.datasets.gaps import draw_gaps

N = 8000


@pytest.fixture
def truth():
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "real": rng.standard_normal(N),
            "count": pd.array(rng.poisson(2.0, N), dtype="Int64"),
            "flag": pd.array(rng.random(N) < 0.3, dtype="boolean"),
            "level": pd.Series(rng.choice(["a", "b", "c"], N)).astype("str"),
            "fixed": np.ones(N),
        }
    )


def value_gap(hidden, drive):
    """How much higher the drive is, in sd, where cells are hidden than where they are seen."""
    drive = drive.rank().to_numpy(float)
    return (drive[hidden].mean() - drive[~hidden].mean()) / drive.std()


@pytest.mark.parametrize("mechanism", ["random", "observed", "self"])
@pytest.mark.parametrize("missing", [0.05, 0.4, 0.9])
def test_share(truth, mechanism, missing):
    hidden = draw_gaps(np.random.default_rng(0), truth, missing, mechanism)
    assert hidden.shape == truth.shape
    assert hidden.dtype == bool
    share = hidden.mean(axis=0)
    np.testing.assert_allclose(share[1:], missing, atol=5 * np.sqrt(0.25 / N))
    assert share[0] == 0 if mechanism == "observed" else abs(share[0] - missing) < 0.03


def test_no_gaps(truth):
    for mechanism in ("random", "observed", "self"):
        assert not draw_gaps(np.random.default_rng(0), truth, 0.0, mechanism).any()


def test_random_gaps_depend_on_nothing(truth):
    hidden = draw_gaps(np.random.default_rng(1), truth, 0.3)
    for j, name in enumerate(("real", "count", "flag", "level")):
        assert abs(value_gap(hidden[:, j], truth[name])) < 0.1
    assert np.abs(np.corrcoef(hidden.T) - np.eye(5)).max() < 0.05


def test_observed_gaps_depend_on_the_first_column_alone(truth):
    hidden = draw_gaps(np.random.default_rng(2), truth, 0.3, "observed")
    for j, name in enumerate(("count", "flag", "level"), start=1):
        assert value_gap(hidden[:, j], truth["real"]) > 0.5
        assert abs(value_gap(hidden[:, j], truth[name])) < 0.1


def test_self_gaps_depend_on_the_hidden_value(truth):
    hidden = draw_gaps(np.random.default_rng(3), truth, 0.3, "self")
    for j, name in enumerate(("real", "count", "flag", "level")):
        assert value_gap(hidden[:, j], truth[name]) > 0.5


@pytest.mark.parametrize(("missing", "mechanism"), [(1.0, "random"), (-0.1, "random"), (0.2, "sometimes")])
def test_bad_requests(truth, missing, mechanism):
    with pytest.raises(DataError, match=r"missing is|mechanism 'sometimes' is not known"):
        draw_gaps(np.random.default_rng(0), truth, missing, mechanism)
