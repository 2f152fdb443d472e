"""One experiment by name, full or quick, and the page that shows all that are there."""

from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from plurigp.core.types import DataError
from plurigp_paper.claims import Claim, claims_of
from plurigp_paper.page import NAMES, read_results, write_page
from plurigp_paper.runs import PAPER, figure_path

PAGE = "page"


@dataclass(frozen=True)
class Reproduced:
    """The paper's claims that an experiment speaks to, the signs it must show, and the page."""

    claims: list[Claim]
    directions: dict[str, bool]
    page: Path


def reproduce(name: str, out: Path, quick: bool, quiet: bool = False) -> Reproduced:
    """Run or resume one experiment, draw its charts and write the page; "page" does the latter for all that are there.

    "page" needs the experiments' JSON files alone.
    """
    if name not in (*NAMES, PAGE):
        raise DataError(f"there is no experiment {name!r}; there are {', '.join(NAMES)}, and {PAGE}.")
    if name == PAGE:
        for finished, results in read_results(out).items():
            _draw(out, finished, results)
        return Reproduced([], {}, write_page(out))
    module: Any = import_module(f"plurigp_paper.{name}")
    module.run(out, module.QUICK if quick else module.Sizes(), quiet)
    results = read_results(out)[name]
    _draw(out, name, results)
    directions = module.directions(results) if hasattr(module, "directions") else {}
    return Reproduced(claims_of({name: results}), directions, write_page(out))


def _draw(out: Path, name: str, results: dict[str, Any]) -> None:
    module: Any = import_module(f"plurigp_paper.{name}")
    if hasattr(module, "draw"):
        module.draw(partial(figure_path, out / PAPER, name), results)
