"""What runs beside the fits."""

import threading

import pytest

from plurigp.study.fits.learn import beside


def test_a_call_beside_hands_over_its_result_and_its_error():
    go = threading.Event()

    def slow():
        assert go.wait(10)
        return "found"

    result = beside(slow)
    assert not result.done()
    go.set()
    assert result.result(10) == "found"
    with pytest.raises(ZeroDivisionError):
        beside(lambda: 1 / 0).result(10)


def test_it_does_not_keep_a_stopped_process_alive():
    before = set(threading.enumerate())
    go = threading.Event()
    beside(lambda: go.wait(10))
    (own,) = set(threading.enumerate()) - before
    assert own.daemon
    go.set()
