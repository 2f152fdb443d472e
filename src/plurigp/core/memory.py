"""Memory that this process has used once stays with it, for the next step to use again."""

import ctypes
from contextlib import suppress
from functools import cache

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
KEPT_BYTES = 2**30


@cache
def reuse_memory() -> None:
    """glibc returns blocks above 32 MB to the system when they are freed and gets them anew, page by page, zeroed:
    twice the time of a step whose intermediate results are so large. For a process that does nothing else: memory is
    kept from others. Elsewhere, nothing happens."""
    with suppress(OSError, AttributeError, TypeError):  # another system, or another C library
        library = ctypes.CDLL(None)
        library.mallopt(M_MMAP_THRESHOLD, KEPT_BYTES)
        library.mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
