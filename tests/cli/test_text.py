import json

import pytest

from plurigp.cli.text import printable, say, say_json, say_table

HOSTILE = [
    "\x1b[2Jcleared",
    "\x1b]0;title\x07",
    "line\nbreak",
    "carriage\rreturn",
    "\x9b31m",
    "right\u202eto left",
    "zero\u200bwidth",
    "line\u2028separator",
    "tab\there",
    "\x00nul",
    "lone \udc80 surrogate",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_printable_leaves_nothing_that_moves_the_cursor(text):
    shown = printable(text)
    assert shown.isprintable()
    assert "\\" in shown


def test_printable_keeps_ordinary_words():
    assert printable("Lähdesmäki – σ² [red] 中文") == "Lähdesmäki – σ² [red] 中文"


@pytest.mark.parametrize("text", [*HOSTILE, "[bold red]x[/]", "[/]", "[link=file:///etc/passwd]x[/link]", ":skull:"])
def test_table_shows_cells_as_they_are(capsys, text):
    say_table(("column", "gaps"), [(text, 1)], right=("gaps",))
    out = capsys.readouterr().out
    assert printable(text) in out
    assert "\x1b" not in out


def test_say_is_one_line(capsys):
    say("a\nb")
    assert capsys.readouterr().out == "a\\nb\n"


def test_json_is_one_object_without_nan(capsys):
    say_json({"name": "\x1b[2J", "score": float("nan"), "parts": [1.5, float("-inf")], "n": 3})
    out = capsys.readouterr().out
    assert json.loads(out) == {"name": "\x1b[2J", "score": None, "parts": [1.5, None], "n": 3}
    assert "\x1b" not in out
