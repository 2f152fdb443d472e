"""What a folder says of its study: settings that need no fit may change, anything else is refused by name."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from plurigp.core.types import DataError
from plurigp.data import infer_schema
from plurigp.study import StudyConfig
from plurigp.study.fits.store import read_json, write_json
from plurigp.study.run import read_started, start_study

TABLE = pd.DataFrame({"a": np.linspace(0, 1, 60) ** 2, "b": np.arange(60) % 3})
CONFIG = StudyConfig(n_refits=4, horizons=(10.0,))


@pytest.fixture
def started(tmp_path):
    start_study(tmp_path / "run", TABLE, infer_schema(TABLE), CONFIG)
    return tmp_path / "run"


def test_what_is_done_with_finished_fits_may_change(started):
    other = replace(CONFIG, title="t", level=0.1, horizons=(20.0,), n_permutations=5, min_count=10)
    start_study(started, TABLE, infer_schema(TABLE), other)
    assert read_started(started)["settings"]["horizons"] == [20.0]
    assert "min_count = 10" in (started / "study.toml").read_text()


@pytest.mark.parametrize(
    ("table", "config", "message"),
    [
        (TABLE, replace(CONFIG, n_refits=6), r"another setting: n_refits was 4 and is now 6; go on with the same"),
        (TABLE, replace(CONFIG, model={"kernel": "linear"}), r"another setting: model was \{\} and is now"),
        (TABLE.rename(columns={"b": "c"}), CONFIG, r"another schema: column '[bc]' is declared or read otherwise"),
        (TABLE[["b", "a"]], CONFIG, "another schema: the columns are in another order"),
        (TABLE.assign(a=TABLE["a"][::-1].to_numpy()), CONFIG, "another table: some of its cells"),
    ],
)
def test_another_study_is_refused_by_what_differs(started, table, config, message):
    with pytest.raises(DataError, match=message):
        start_study(started, table, infer_schema(table), config)


def test_another_version_is_refused(started):
    write_json(started / "study.json", read_json(started / "study.json", 1) | {"plurigp": "0.0.0"})
    with pytest.raises(DataError, match=r"another plurigp: it was '0\.0\.0'"):
        start_study(started, TABLE, infer_schema(TABLE), CONFIG)


@pytest.mark.parametrize(("field", "value"), [("settings", []), ("schema", {"columns": 3}), ("table", 5)])
def test_a_signed_change_of_the_wrong_type_is_named(started, field, value):
    write_json(started / "study.json", read_json(started / "study.json", 1) | {field: value})
    with pytest.raises(DataError, match=rf"study\.json: field '{field}.*must be"):
        read_started(started)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"horizons": ["a"]}, "horizons: 'a' must be a number above 0"),
        ({"horizons": float("nan")}, "horizons: nan must be a number above 0"),
        ({"horizons": -5}, "horizons: -5 must be a number above 0"),
        ({"model": {"kernel": "x"}}, "model: kernel='x'"),
        ({"model": {"kernal": "rbf"}}, "model: unknown parameter 'kernal'.* Did you mean 'kernel'"),
        ({"min_count": 0}, "min_count = 0 must be a whole number of at least 1"),
        ({"pool_rare_levels": -1}, "pool_rare_levels = -1 must be a whole number"),
    ],
)
def test_settings_are_checked_before_anything_is_read(settings, message):
    with pytest.raises(DataError, match=message):
        StudyConfig.from_dict(settings)
