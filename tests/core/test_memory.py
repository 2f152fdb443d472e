"""Large blocks come from the process's own memory again."""

import ctypes
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, sys
from plurigp.core.memory import reuse_memory
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
def faults():
    import resource
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def fill():
    block = libc.malloc(100 * 2**20)
    ctypes.memset(block, 1, 100 * 2**20)
    libc.free(block)
if sys.argv[1] == "on":
    reuse_memory()
fill()
before = faults()
fill()
print(faults() - before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="needs glibc")
def test_a_large_block_is_paged_in_once():
    """Blocks of 100 MB: without it, the second one faults on all of its pages again."""
    again = {
        switch: int(subprocess.run([sys.executable, "-c", PROGRAM, switch], capture_output=True, check=True).stdout)
        for switch in ("off", "on")
    }
    assert again["on"] < 100 < again["off"]
