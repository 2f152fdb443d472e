"""`plurigp reproduce`: one of the paper's experiments, and what it says of the paper's claims."""

from pathlib import Path
from typing import Annotated

import typer

from plurigp.cli.errors import CommandError
from plurigp.cli.text import say


def reproduce(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="simulated, clinical, ablations, runtime, or page for the page alone.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder for the results.")],
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: minutes, not hours.")] = False,
) -> None:
    """Run one of the paper's experiments.

    Writes figures, a JSON file and a page, paper.md: claim by claim what the paper says and what was measured.
    Every finished fit is kept in --out: the same command resumes where it was stopped.

    \b
    Example:
      plurigp reproduce simulated --quick --out run
    """
    if out.exists() and not out.is_dir():
        raise CommandError(f"{out}: is a file; --out must name a folder.")
    from plurigp_paper.run import reproduce as run

    found = run(name, out, quick)
    for claim in found.claims:
        say(f"{'holds' if claim.holds else 'does not hold'}: {claim.name}")
        for finding in claim.findings:
            say(f"  {'yes' if finding.holds else 'no '}  {finding.setting}: {finding.measured}")
    say(f"wrote {found.page}")
    wrong = [words for words, seen in found.directions.items() if not seen]
    if wrong:
        raise CommandError(f"not found in this run: {'; '.join(wrong)}.")
