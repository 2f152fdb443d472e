"""What runs in the background of the fits."""

import threading

import pytest

from plurigp.study.fits.learn import in_background


def test_a_call_in_the_background_hands_over_its_result_and_its_error():
    go = threading.Event()

    def slow():
        assert go.wait(10)
        return "found"

    result = in_background(slow)
    assert not result.done()
    go.set()
    assert result.result(10) == "found"
    with pytest.raises(ZeroDivisionError):
        in_background(lambda: 1 / 0).result(10)


def test_it_does_not_keep_a_stopped_process_alive():
    before = set(threading.enumerate())
    go = threading.Event()
    in_background(lambda: go.wait(10))
    (own,) = set(threading.enumerate()) - before
    assert own.daemon
    go.set()
