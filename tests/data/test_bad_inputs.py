"""Every bad input gets one line that names the place and the remedy."""

import importlib.util
from pathlib import Path

import pytest

from plurigp.core.types import DataError


def _cases():
    spec = importlib.util.spec_from_file_location("bad_inputs", Path(__file__).with_name("bad_inputs.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.CASES


CASES = _cases()


def test_there_are_enough_cases_and_each_has_its_own_name():
    assert len(CASES) >= 40
    assert len({name for name, _, _ in CASES}) == len(CASES)


@pytest.mark.parametrize(("act", "pattern"), [pytest.param(act, pattern, id=name) for name, act, pattern in CASES])
def test_bad_input(act, pattern, tmp_path):
    with pytest.raises(DataError, match=pattern) as caught:
        act(tmp_path)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert message.isprintable()
    assert len(message.replace(str(tmp_path), "")) < 400
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
