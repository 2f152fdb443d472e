from functools import partial

import pytest

from plurigp.core.types import DataError
from plurigp_paper.runs import Runs


def test_what_is_finished_is_not_done_again(tmp_path):
    calls = []

    def work(name):
        def done():
            calls.append(name)
            return {"name": name}

        return done

    def stopped():
        raise KeyboardInterrupt

    first = Runs(tmp_path, "digits", {"n": 3}, quiet=True)
    with pytest.raises(KeyboardInterrupt):
        first.all({"a": work("a"), "b": stopped})
    found = Runs(tmp_path, "digits", {"n": 3}, quiet=True).all({"a": work("a"), "b": work("b")})
    assert calls == ["a", "b"]
    assert found == {"a": {"name": "a"}, "b": {"name": "b"}}


@pytest.mark.slow
def test_cores_share_groups_of_tasks(tmp_path, monkeypatch):
    monkeypatch.setattr("plurigp_paper.runs.available_cores", lambda: 2)
    names = ["own-1-00", "own-1-01", "own-2-00"]
    tasks = {name: partial(dict, process=name) for name in names}
    found = Runs(tmp_path, "digits", {}, quiet=True).all(tasks, side_by_side=True)
    assert found == {name: {"process": name} for name in names}


def test_another_size_is_refused(tmp_path):
    Runs(tmp_path, "digits", {"n": 3})
    with pytest.raises(DataError, match="another size"):
        Runs(tmp_path, "digits", {"n": 4})


def test_progress_is_said(tmp_path, capsys):
    Runs(tmp_path, "digits", {}).all({"a": dict, "b": dict})
    assert "digits: 1/2  a" in capsys.readouterr().err
