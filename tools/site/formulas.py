"""```math blocks as MathML, which browsers draw by themselves: no script, no fonts, no network."""

import re

from latex2mathml.converter import convert

BLOCK = re.compile(r"^```math\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def with_formulas(markdown: str) -> str:
    """The page with every ```math block rendered; lines of a block that end in `\\\\` are lines of the formula."""
    return BLOCK.sub(lambda found: _drawn(found[1].strip()), markdown)


def _drawn(latex: str) -> str:
    rendered = convert(latex, display="block").replace("\n", " ")
    return f'<div class="formula">{rendered}</div>'
