"""The script that makes the bundled SUPPORT file: numbers restored, nothing filled in, equal bytes each time."""

import gzip
import hashlib
import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "curate_support.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("curate_support", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def published(script):
    """Three made-up patients in the published columns."""
    rows = {field.source: [1.0, np.nan, 2.0] for field in script.FIELDS}
    rows |= {"age": [62.84998, 60.33899, 52.74698], "crea": [1.19995117, np.nan, 0.0], "diabetes": [0, 1, 0]}
    rows |= {"dementia": [1, 0, 0], "dnr": ["no dnr", "dnr before sadm", "dnr after sadm"], "sex": ["male"] * 3}
    rows |= {"sfdm2": ["<2 mo. follow-up", None, "SIP>=30"], "dzgroup": ["Coma"] * 3}
    return pd.DataFrame(rows)


def test_shortest_decimal_restores_what_was_cut(script):
    cut = np.array([10.0996094, 1.19995117, 7.459961, 0.899999619, 231.65625, 388.0, 0.0, 9.999994e-07])
    restored = [10.1, 1.2, 7.46, 0.9, 231.66, 388.0, 0.0, 1e-06]
    assert script.shortest_decimal(cut).tolist() == restored
    assert not np.signbit(script.shortest_decimal(np.array([0.0, 0.0001]))).any()
    assert np.isnan(script.shortest_decimal(np.array([np.nan]))).all()


def test_shortest_decimal_moves_no_value_by_more_than_its_precision(script):
    values = np.random.default_rng(0).lognormal(2, 3, 5000)
    restored = script.shortest_decimal(values)
    assert (np.abs(restored - values) <= values / 4096).all()


def test_shortest_decimal_finds_back_every_short_decimal(script):
    """Tenths below 100 and hundredths below 10, cut as the published values were, come back."""
    for true in (np.arange(1, 1000) / 10, np.arange(1, 1000) / 100):
        step = 2.0 ** (np.floor(np.log2(true)) - 12)
        np.testing.assert_array_equal(script.shortest_decimal(np.floor(true / step) * step), true)


def test_curate_keeps_gaps_and_tells_the_two_orders_apart(script, published):
    frame = script.curate(published)
    assert frame["creatinine"].isna().tolist() == [False, True, False]
    assert frame["creatinine"].dropna().tolist() == [1.2, 0.0]
    assert frame["do_not_resuscitate"].tolist() == ["no", "yes", "no"]
    assert frame["later_do_not_resuscitate"].tolist() == [0, 0, 1]
    assert frame["diabetes"].tolist() == ["no", "yes", "no"]
    assert frame["function_2_months"].isna().tolist() == [False, True, False]


def test_curate_stops_at_a_value_it_does_not_know(script, published):
    with pytest.raises(ValueError, match="column 'dnr': no recoding for"):
        script.curate(published.assign(dnr=["no dnr", "perhaps", "no dnr"]))


def test_main_writes_equal_bytes_each_time(script, published, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(script, "FOLDER", tmp_path)
    (tmp_path / "ATTRIBUTION.md").write_text("# A story\n\n## Data dictionary\nold\n", encoding="utf-8")
    published.to_csv(tmp_path / "raw.csv", index=False)
    made = []
    for _ in range(2):
        script.main(str(tmp_path / "raw.csv"))
        made.append([(tmp_path / name).read_bytes() for name in ("support.csv.gz", "support.sha256", "ATTRIBUTION.md")])
    assert made[0] == made[1]
    raw, checksum, page = made[0]
    assert checksum.decode().split()[0] == hashlib.sha256(raw).hexdigest()
    assert page.decode().startswith("# A story")
    assert "| creatinine | crea | baseline" in page.decode()
    assert "old" not in page.decode().split("dictionary")[1].split("\n")
    assert gzip.decompress(raw).decode().split("\n")[1].startswith("62.85,male,")
