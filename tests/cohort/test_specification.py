"""Specification files: what they mean, and errors that name line and nearest key."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plurigp.cohort import parse_specification, read_specification
from plurigp.cohort.patterns import parse_pattern
from plurigp.cohort.windows import Span, Window, parse_window
from plurigp.core.types import DataError

SMALL = """
[source]
form = "long"
path = "events.csv"

[index]
codes = ["G20*"]

[[feature]]
name = "dx"
codes = ["E11"]
window = ["-6 months", "ever"]
"""


def test_the_paper_in_under_forty_lines(paper):
    assert len(paper.splitlines()) < 40
    spec = parse_specification(paper)
    assert len(spec.features) == 13
    assert spec.windows[0] == Window(Span(-6, "month"), Span(42, "month"))


def test_what_a_small_one_means(tmp_path):
    spec = parse_specification(SMALL, folder=tmp_path)
    assert spec.source.path == tmp_path / "events.csv"
    assert [str(p) for p in spec.index.patterns] == ["G20*"]
    assert spec.features[0].window == Window(Span(-6, "month"), None)
    assert not spec.needs_observation
    dated = parse_specification(
        SMALL.replace('codes = ["G20*"]', 'codes = ["G20*"]\nfrom = 2010-01-31\nuntil = "2011-02-28"')
    )
    assert (dated.index.since, dated.index.until) == (date(2010, 1, 31), date(2011, 2, 28))


ERRORS = [
    ('name = "dx"', 'nmae = "dx"', "line 10: feature 1, nmae: there is no such key", "Did you mean 'name'?"),
    ("[index]", "[indx]", "line 7: indx: there is no such key", "Did you mean 'index'?"),
    ('"-6 months"', '"6 monts"', "line 12: feature 1, window: must be a time such as", ""),
    ('["-6 months", "ever"]', '["6 months", "-6 months"]', "line 12", "exchange the two times"),
    ('["-6 months", "ever"]', '"lab"', "line 12: feature 1, window: there is no window 'lab'", ""),
    ('["E11"]', '["@parkinsn"]', "line 11: feature 1, codes 1: there is no set 'parkinsn'", ""),
    ('["E11"]', '["E11", 7]', "line 11: feature 1, codes 2: must be text", "not 7"),
    ('["E11"]', "[]", "line 11", "names no code"),
    ('["E11"]', '["concept/x1"]', "line 11: feature 1, codes 1: must give a concept id", ""),
    ('["E11"]', '["death"]', "line 11", "death can only be an outcome"),
    (
        'form = "long"',
        'form = "omap"',
        "line 3: source, form: must be one of long, omop, meds; Did you mean 'omop'?",
        "",
    ),
    ('form = "long"', "", "line 4: source: form is missing", ""),
    (
        'path = "events.csv"',
        'path = "http://evil.example/x.csv"',
        "line 4: source, path: must be a path on this machine",
        "",
    ),
    (
        'name = "dx"',
        'name = "dx"\nunit = "g"',
        "line 11: feature 1, unit: does not belong to a feature",
        "its keys: name",
    ),
    ('name = "dx"', 'name = "dx"\nvalue = "medain"', "line 11: feature 1, value", "Did you mean 'median'?"),
    ('name = "dx"', 'name = "dx"\nkind = "bernouli"', "line 11: feature 1, kind", "Did you mean 'bernoulli'?"),
    ('name = "dx"', 'name = "dx"\ntop = 3', "line 11: feature 1, top: belongs to a group of codes", ""),
    ('name = "dx"', 'name = "dx"\ngroup = 0', "line 11: feature 1, group: must be a whole number from 1, not 0", ""),
    (
        'name = "dx"',
        'name = "dx"\nvalue="mean"\nconvert = { "g" = 0 }\nunit="kg"',
        "line 12: feature 1, convert, g",
        "above zero",
    ),
    (
        "[index]",
        "[eligibility]\nrequired = ['hb']\n[index]",
        "line 7: eligibility, required 1: there is no feature",
        "",
    ),
    ("[index]", "[eligibility]\nage = [90, 18]\n[index]", "line 7: eligibility, age", "lower number first"),
    ("[index]", "[output]\nsuppress_below = 1\n[index]", "line 7: output, suppress_below", "from 2"),
    ('path = "events.csv"', 'path = "a"\ntime_zone = "Europe/Helsinky"', "line 5", "Did you mean 'Europe/Helsinki'?"),
    ("[index]", "[index", "not valid TOML", "line 6"),
    ('path = "events.csv"', 'connect_env = "NO_SUCH_VARIABLE_HERE"', "line 4: source, connect_env", "is not set"),
    ('path = "events.csv"', 'path = "a"\nconnect = "x"', "line 5", "path and connect are given"),
]


@pytest.mark.parametrize(("old", "new", "start", "end"), ERRORS)
def test_errors_name_the_line_and_the_nearest_key(old, new, start, end):
    assert old in SMALL
    with pytest.raises(DataError) as caught:
        parse_specification(SMALL.replace(old, new, 1), "cohort.toml")
    message = str(caught.value)
    assert message.startswith("cohort.toml")
    assert start in message
    assert end in message
    assert "\n" not in message


def test_lines_in_inline_tables(paper):
    with pytest.raises(DataError, match=r"line 9: feature 7, rnage: there is no such key.*Did you mean 'range'"):
        parse_specification(paper.replace("range = [0, 100]", "rnage = [0, 100]"))


def test_a_file_that_is_not_there_or_not_text(tmp_path):
    with pytest.raises(DataError, match="cannot be read as a specification"):
        read_specification(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not UTF-8"):
        read_specification(tmp_path / "bad.toml")


@given(st.text())
def test_any_text_is_a_pattern_or_a_clear_refusal(text):
    try:
        pattern = parse_pattern(text)
    except ValueError as error:
        assert "must" in str(error)
    else:
        assert pattern.kind in ("code", "prefix", "concept", "ancestor", "death")


@given(st.text(max_size=200))
def test_any_text_is_a_specification_or_a_data_error(text):
    with pytest.raises(DataError):
        parse_specification(text)


@pytest.mark.parametrize("pair", [["ever", "ever"], ["-1 year", "0 days"], ["2 weeks", "1 month"]])
def test_windows(pair):
    assert str(parse_window(pair))


def test_secrets_do_not_show(monkeypatch):
    secret = "postgresql://bob:hunter2@db/records"
    monkeypatch.setenv("HOSPITAL_DB", secret)
    spec = parse_specification(SMALL.replace('path = "events.csv"', 'connect_env = "HOSPITAL_DB"'))
    assert spec.source.connect == secret
    assert "hunter2" not in repr(spec)
    wrongs = (
        f'path = "{secret}"',
        f'connect = ["{secret}"]',
        f'conect = "{secret}"',
        f'form = "{secret}"',
        f'path = "x"\nschema = ["{secret}"]',
        'path = "x"\ntime_zone = "host=db password=hunter2"',
    )
    for wrong in wrongs:
        with pytest.raises(DataError) as caught:
            parse_specification(
                SMALL.replace('path = "events.csv"', wrong).replace(
                    'form = "long"', "" if "form" in wrong else 'form = "long"'
                )
            )
        assert "hunter2" not in str(caught.value)
