"""`plurigp reproduce`: one of the paper's experiments, and what it says of the paper's claims."""

from pathlib import Path

from plurigp.cli.errors import CommandError
from plurigp.cli.text import say


def run_reproduce(name: str, out: Path, quick: bool) -> None:
    """Run or go on, write the page, list the claims; a sign that is not as it must be is an error."""
    if out.exists() and not out.is_dir():
        raise CommandError(f"{out}: is a file; --out must name a folder.")
    try:
        from plurigp.experiments.run import reproduce

        found = reproduce(name, out, quick)
    except ImportError as error:
        raise CommandError(str(error)) from error
    for claim in found.claims:
        say(f"{'holds' if claim.holds else 'does not hold'}: {claim.name}")
        for finding in claim.findings:
            say(f"  {'yes' if finding.holds else 'no '}  {finding.setting}: {finding.measured}")
    say(f"wrote {found.page}")
    wrong = [words for words, seen in found.directions.items() if not seen]
    if wrong:
        raise CommandError(f"not as it should be: {'; '.join(wrong)}.")
