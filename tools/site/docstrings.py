"""Griffe's extension for the reference: docstrings as `reference.reading` gives them."""

import sys
from pathlib import Path
from typing import Any

from griffe import Extension, Object

sys.path.insert(0, str(Path(__file__).parent))

from reference import reading  # beside this file


class Reading(Extension):
    """Griffe takes what follows `name :` for a type and text below a list for a parameter; here it is what it says."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = reading(obj.docstring.value)
