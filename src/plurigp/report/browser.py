"""Figures as files and the page as PDF, by the command line of an installed browser.

Kaleido would do the former, but its SVG differs from run to run, it fetches MathJax from the network, and it always
switches the browser's sandbox off.
"""

import os
import shutil
import subprocess
import tempfile
from base64 import b64decode
from pathlib import Path
from urllib.parse import unquote_to_bytes

from plurigp.core.files import whole_file
from plurigp.core.types import DataError
from plurigp.report.page import html_json, plotly_js
from plurigp.report.theme import Figure

BROWSERS = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge", "msedge"),
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
)
VARIABLE = "PLURIGP_BROWSER"
TIMEOUT = 120  # seconds
FORMATS = ("svg", "png")
REPEATABLE = "let seed = 1; Math.random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;"  # Plotly's ids
DRAW = """
(async () => {
  const ink = {paper_bgcolor: "white", plot_bgcolor: "white", font: {family: "sans-serif", color: "#1c2430"}};
  const urls = [];
  for (const {data, layout, height} of JSON.parse(document.getElementById("figures").textContent)) {
    for (const [format, scale] of [["svg", 1], ["png", 2]]) {
      urls.push(await Plotly.toImage({data, layout: {...ink, ...layout}}, {format, scale, height, width: 900}));
    }
  }
  document.documentElement.textContent = urls.join(" ");  // nothing of the table is left in the document
})();
"""


def find_browser() -> Path | None:
    """An installed browser of the Chromium family, or the one that PLURIGP_BROWSER names; None if there is none."""
    given = os.environ.get(VARIABLE)
    found = [shutil.which(given)] if given else [shutil.which(name) for name in BROWSERS]
    return next((Path(path) for path in found if path), None)


def print_pdf(browser: Path, page: Path, out: Path) -> Path:
    """Print the page to PDF, once every figure is drawn."""
    with whole_file(out) as part:
        _run(browser, "--no-pdf-header-footer", f"--print-to-pdf={part}", page.resolve().as_uri())
        if not part.exists():
            raise DataError(f"{browser} did not print {page}; open it in a browser and print it to PDF.")
    return out


def write_pictures(browser: Path, figures: list[Figure], folder: Path) -> list[Path]:
    """Write every figure as an SVG and a PNG file, dark on white.

    The browser returns data URLs in the order of `figures` and nothing else: file names never come from the page.
    """
    source = (
        '<!doctype html><html><meta charset="utf-8"><body><script type="application/json" id="figures">'
        f"{html_json([figure.plain() for figure in figures])}</script>"
        f"<script>{REPEATABLE}</script><script>{plotly_js()}</script><script>{DRAW}</script>"
    )
    with tempfile.TemporaryDirectory() as room:
        page = Path(room) / "figures.html"
        page.write_text(source, encoding="utf-8")
        dump = _run(browser, "--dump-dom", page.as_uri())
    urls = dump.partition("<html>")[2].partition("</html>")[0].split()
    if len(urls) != len(FORMATS) * len(figures) or not all(url.startswith("data:image/") for url in urls):
        raise DataError(f"{browser} did not draw the figures; update it, or set {VARIABLE} to the path of another.")
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{figure.name}.{suffix}" for figure in figures for suffix in FORMATS]
    for path, url in zip(paths, urls, strict=True):
        head, _, payload = url.partition(",")
        with whole_file(path) as part:
            part.write_bytes(b64decode(payload) if head.endswith(";base64") else unquote_to_bytes(payload))
    return paths


def _run(browser: Path, *options: str) -> str:
    """Headless, without network, with a temporary profile; for root, browsers only start without their sandbox."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [str(browser), "--headless", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
                   "--disable-background-networking", "--disable-component-update", f"--user-data-dir={profile}",
                   "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=30000"]  # fmt: skip
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.append("--no-sandbox")
        try:
            done = subprocess.run([*command, *options], capture_output=True, timeout=TIMEOUT, check=True)
        except subprocess.TimeoutExpired:
            raise DataError(f"{browser} did not finish within {TIMEOUT} s; run the command again.") from None
        except (subprocess.CalledProcessError, OSError) as error:
            raise DataError(f"{browser} failed ({error}); set {VARIABLE} to the path of another browser.") from None
    return done.stdout.decode("utf-8", "replace")
