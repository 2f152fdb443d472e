"""`plurigp reproduce`: one of the paper's experiments, and what it says of the paper's claims."""

from pathlib import Path

from plurigp.cli.errors import CommandError
from plurigp.cli.text import say


def run_reproduce(name: str, out: Path, quick: bool) -> None:
    """Run or go on, write the page, and list the claims."""
    if out.exists() and not out.is_dir():
        raise CommandError(f"{out}: is a file; --out must name a folder.")
    try:
        from plurigp.experiments.run import reproduce

        claims, page = reproduce(name, out, quick)
    except ImportError as error:
        raise CommandError(str(error)) from error
    for claim in claims:
        say(f"{'holds' if claim.holds else 'does not hold'}: {claim.name}")
        for finding in claim.findings:
            say(f"  {'yes' if finding.holds else 'no '}  {finding.setting}: {finding.measured}")
    say(f"wrote {page}")
