"""Operations of the programs behind a fit: counts that no load on the machine changes, unlike seconds.

    python tools/count_operations.py             # now beside what is recorded, in tests/operations.json
    python tools/count_operations.py --record    # renew the record after a change that is meant
    PYTHONPATH=<other checkout>/src python tools/count_operations.py   # another commit against this record

Compilation is most of what a small table waits for, and takes as long as a program has operations. Programs are only
lowered, never compiled or run: StableHLO before any optimisation, by table and program.
"""

import argparse
import json
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jax

from plurigp import PluriGP
from plurigp.datasets import simulate
from plurigp.inference.compiling import jax_runtime

RECORD = Path(__file__).parents[1] / "tests" / "operations.json"
TABLES = {
    "numbers": (300, {"gaussian": 4}, 0.0),
    "mixed": (300, {"gaussian": 3, "bernoulli": 2, "poisson": 1, "beta": 1, "categorical": 1}, 0.1),
}
STARTERS = ("plurigp.inference.steps.compile_in_background", "plurigp.answers.draws.compile_in_background")


class _AllLowered(Exception):
    """Ends a fit before its first step."""


def count_operations(name: str) -> dict[str, int]:
    """Of every program that a fit of this table compiles ahead of time."""
    found: dict[str, int] = {}

    def lower(*programs: tuple[Any, tuple[Any, ...]]) -> "Future[None]":
        for jitted, arguments in programs:
            with jax_runtime():
                text = jitted.lower(*arguments).as_text()
            found[jitted.__name__] = sum(" = " in line for line in text.splitlines())
        done: Future[None] = Future()
        done.set_result(None)
        return done

    n_rows, columns, missing = TABLES[name]
    drawn = simulate(n_rows, 2, columns, missing, random_state=0)
    with ExitStack() as patches:
        for starter in STARTERS:
            patches.enter_context(patch(starter, lower))
        patches.enter_context(patch("plurigp.inference.training.run_epoch", side_effect=_AllLowered))
        with suppress(_AllLowered):
            PluriGP(2, schema=drawn.schema, random_state=0).fit(drawn.table)
    return dict(sorted(found.items()))


def main() -> None:
    """Print, or record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write tests/operations.json")
    counts: dict[str, Any] = {name: count_operations(name) for name in TABLES}
    if parser.parse_args().record:
        RECORD.write_text(json.dumps({"jax": jax.__version__, **counts}, indent=1) + "\n")
        return
    before = json.loads(RECORD.read_text())
    for name, programs in counts.items():
        for program, n in programs.items():
            print(f"{name:8} {program:16} {before[name].get(program, 0):6,} recorded {n:6,} now")


if __name__ == "__main__":
    main()
