"""One experiment by name, full or quick, and the page that shows all that are there."""

from importlib import import_module
from pathlib import Path
from typing import Any

from plurigp.experiments.claims import Claim, claims_of
from plurigp.experiments.page import NAMES, read_results, write_page
from plurigp.types import DataError

PAGE = "page"


def reproduce(name: str, out: Path, quick: bool, quiet: bool = False) -> tuple[list[Claim], Path]:
    """Run, or go on with, one experiment; its claims, and the page. "page" writes the page alone."""
    if name not in (*NAMES, PAGE):
        raise DataError(f"there is no experiment {name!r}; there are {', '.join(NAMES)}, and {PAGE}.")
    if name == PAGE:
        return [], write_page(out)
    module: Any = import_module(f"plurigp.experiments.{name}")
    module.run(out, module.QUICK if quick else module.Sizes(), quiet)
    return claims_of({name: read_results(out)[name]}), write_page(out)
