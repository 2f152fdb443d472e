"""Checks the built site: every link and anchor leads somewhere, and no page fetches anything from a network.

python tools/site/check_site.py site
"""

import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src"}
LOADING = {"stylesheet", "icon", "preconnect", "preload", "prefetch", "dns-prefetch", "modulepreload", "manifest"}


class References(HTMLParser):
    """What a page refers to (`links`), what a browser fetches for it by itself (`fetched`), and its anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in FETCHED and FETCHED[tag] in given:
            self.fetched.append(given[FETCHED[tag]])
        if tag == "link" and LOADING & set(given.get("rel", "").split()):
            self.fetched.append(given.get("href", ""))


@cache
def references(page: Path) -> References:
    parser = References()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser


def offenders(site: Path) -> Iterator[str]:
    """Every broken link and every fetch from a network, one line each."""
    for page in sorted(site.rglob("*.html")):
        found = references(page)
        for url in found.fetched:
            if urlsplit(url).netloc:
                yield f"{page.relative_to(site)} fetches {url}"
        for url in found.links + found.fetched:
            if broken := _broken(url, page, site):
                yield f"{page.relative_to(site)}: {url} {broken}"
    for sheet in sorted(site.rglob("*.css")):
        if any(mark in sheet.read_text(encoding="utf-8") for mark in ("url(http", "url('http", 'url("http', "@import")):
            yield f"{sheet.relative_to(site)} fetches from a network"


def _broken(url: str, page: Path, site: Path) -> str | None:
    parts = urlsplit(url)
    if parts.scheme or parts.netloc:
        return None  # elsewhere: not looked at, since the check works without a network
    place = site / unquote(parts.path).lstrip("/") if parts.path.startswith("/") else page.parent / unquote(parts.path)
    target = page if not parts.path else place / "index.html" if place.is_dir() else place
    if not target.exists():
        return "leads nowhere"
    anchor = unquote(parts.fragment)
    missing = anchor and target.suffix == ".html" and anchor not in references(target.resolve()).anchors
    return "has no such anchor" if missing else None


if __name__ == "__main__":
    folder = Path(sys.argv[1]).resolve()
    wrong = sorted(set(offenders(folder)))
    print(*wrong, sep="\n")
    pages = len(list(folder.rglob("*.html")))
    sys.exit(f"{len(wrong)} broken links or fetches" if wrong else None if pages else f"{folder}: no pages")
