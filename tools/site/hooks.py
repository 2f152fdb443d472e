"""MkDocs hooks of the documentation site: pages from elsewhere in the repository, executed tutorials, reference.

A page may link to any file of the repository by its path, as on a code host; here such links lead to the page or file
of the site that holds it.
"""

import os
import re
import sys
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))

from formulas import with_formulas  # beside this file
from reference import command_line_page, reference_pages
from tutorials import executed

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = {  # path in the repository -> path in the site
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks.md",
    "paper/README.md": "paper-program.md",
    "src/plurigp/datasets/ATTRIBUTION.md": "support.md",
    "LICENSE": "LICENSE.txt",
    "CITATION.cff": "CITATION.cff",
    "Dockerfile": "Dockerfile.txt",
    "conda/recipe.yaml": "recipe.yaml",
}
HOMES = {site: path for path, site in ELSEWHERE.items()}
SECTIONS = {"how-to-*.md": "How-to", "trust*.md": "Trust"}  # further pages by name, and the section they belong to
BOOSTS = {  # how far up the search shows a page: answers before measurements and history
    "faq.md": 3.0,
    "start.md": 3.0,
    "tutorials/*": 2.0,
    "how-to-*": 2.0,
    "gaps.md": 2.0,
    "study.md": 2.0,
    "scale.md": 2.0,
    "patient-data.md": 2.0,
    "reference/*": 0.7,
    "results.md": 0.3,
    "benchmarks.md": 0.3,
    "paper*.md": 0.3,
    "changelog.md": 0.3,
    "contributing.md": 0.5,
    "architecture.md": 0.5,
    "mathematics.md": 0.5,
}
THREE = re.compile(r"^ {3}(?=\S)", re.MULTILINE)
NEXT_ITEM = re.compile(r"(^ {4}.*\n)(?=\d+\. )", re.MULTILINE)  # which needs an empty line before it
LINK = re.compile(r"(?<=\]\()(?!\w+:)([^)\s#]+)(?=[)#])")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Appends pages by name to their section, so that a new how-to page needs no line in mkdocs.yml."""
    docs, nav = Path(config.docs_dir), config.nav or []
    listed = {page for section in nav for page in _pages(section)}
    for pattern, title in SECTIONS.items():
        found = [path.name for path in sorted(docs.glob(pattern)) if path.name not in listed]
        if found:
            _section(nav, title).extend(found)
    return config


def _pages(entry: Any) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    inner = entry.values() if isinstance(entry, dict) else entry
    return [page for one in inner for page in _pages(one)]


def _section(nav: list[Any], title: str) -> list[Any]:
    """The pages of a section; a new one comes before the last, the project's own."""
    for entry in nav:
        if title in entry and isinstance(entry[title], list):
            return entry[title]
    made: list[Any] = []
    nav.insert(len(nav) - 1, {title: made})
    return made


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds pages from elsewhere, the reference, and tutorials with what their code printed and drew."""
    for path, site in ELSEWHERE.items():
        files.append(File.generated(config, site, abs_src_path=str(ROOT / path)))
    for name, text in reference_pages().items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    files.append(File.generated(config, "reference/command-line.md", content=command_line_page()))
    for file in [file for file in files if file.src_uri.startswith("tutorials/") and file.is_documentation_page()]:
        result = executed(Path(file.abs_src_path or ""))
        files.remove(file)
        files.append(File.generated(config, file.src_uri, content=result.markdown))
        for figure in result.figures:
            files.append(File.generated(config, f"tutorials/{figure.name}", abs_src_path=str(figure)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leads links between files of the repository to the site's pages, renders formulas as MathML, ranks the page."""
    here = page.file.src_uri
    boost = next((boost for pattern, boost in BOOSTS.items() if fnmatch(here, pattern)), 1.0)
    page.meta.setdefault("search", {"boost": boost})
    home = PurePosixPath(HOMES.get(here, f"docs/{here}"))
    return with_formulas(_indented(LINK.sub(lambda found: _link(found[1], home, here), markdown)))


def _indented(markdown: str) -> str:
    """Continues numbered items by four spaces, as Python-Markdown wants, where a code host is content with three."""
    fences = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    parts = (part if part.startswith("```") else THREE.sub("    ", part) for part in fences)
    return NEXT_ITEM.sub(r"\1\n", "".join(parts))


def _link(target: str, home: PurePosixPath, here: str) -> str:
    path = os.path.normpath(home.parent / target)
    if path in ELSEWHERE:
        site = ELSEWHERE[path]
    elif path.startswith("docs/"):
        site = path.removeprefix("docs/")
    else:
        return target  # MkDocs says what is wrong with it
    return os.path.relpath(site, PurePosixPath(here).parent)
