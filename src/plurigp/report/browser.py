"""What needs a browser, by its command line alone: the page as PDF and every figure as a picture."""

import base64
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import unquote

from plurigp.core.files import whole_file
from plurigp.core.types import DataError
from plurigp.report.page import as_json, plotly_js
from plurigp.report.theme import Figure

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge", "msedge")
APPS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
)
VARIABLE = "PLURIGP_BROWSER"
PATIENCE = 120  # seconds
PICTURE = re.compile(r"picture:([a-z]+):(svg|png):(\S+)")
REPEATABLE = "let drawn = 1; Math.random = () => (drawn = (drawn * 16807) % 2147483647) / 2147483647;"  # Plotly's ids
DRAWING = """
const ink = {paper_bgcolor: "white", plot_bgcolor: "white", font: {family: "sans-serif", color: "#1c2430"}};
(async () => {
  for (const [name, figure] of Object.entries(JSON.parse(document.getElementById("figures").textContent))) {
    for (const format of ["svg", "png"]) {
      const size = {format, width: 900, height: figure.height, scale: format === "png" ? 2 : 1};
      const url = await Plotly.toImage({data: figure.data, layout: {...ink, ...figure.layout}}, size);
      document.getElementById("pictures").append(`picture:${name}:${format}:${url.slice(url.indexOf(",") + 1)} `);
    }
  }
})();
"""


def search() -> Path | None:
    """A browser of the Chromium family, if there is one; the variable PLURIGP_BROWSER names another."""
    given = os.environ.get(VARIABLE)
    found = [shutil.which(given)] if given else [shutil.which(name) for name in (*NAMES, *APPS)]
    return next((Path(path) for path in found if path), None)


def find() -> Path:
    """The same, where there must be one."""
    path = search()
    if path is None:
        raise DataError(
            f"no Chromium, Chrome or Edge was found to print with; install one, name it in {VARIABLE}, or open "
            "report.html in any browser and print it to PDF there."
        )
    return path


def print_pdf(browser: Path, page: Path, out: Path) -> Path:
    """The page as the browser prints it, once every figure is drawn."""
    with whole_file(out) as part:
        _run(browser, "--no-pdf-header-footer", f"--print-to-pdf={part}", page.resolve().as_uri())
        if not part.exists():
            raise DataError(f"{browser} did not print {page}; open it and print it to PDF by hand.")
    return out


def write_pictures(browser: Path, figures: list[Figure], folder: Path) -> list[Path]:
    """Every figure as an SVG and a PNG file of its own, black on white."""
    content = as_json({figure.name: figure.plain() for figure in figures})
    page = (
        '<!doctype html><meta charset="utf-8"><pre id="pictures"></pre>'
        f'<script type="application/json" id="figures">{content}</script>'
        f"<script>{REPEATABLE}</script><script>{plotly_js()}</script><script>{DRAWING}</script>"
    )
    with tempfile.TemporaryDirectory() as room:
        source = Path(room) / "figures.html"
        source.write_text(page, encoding="utf-8")
        pictures = PICTURE.findall(_run(browser, "--dump-dom", source.as_uri()))
    folder.mkdir(parents=True, exist_ok=True)
    return [_write(folder / f"{name}.{kind}", kind, content) for name, kind, content in pictures]


def _write(path: Path, kind: str, content: str) -> Path:
    """From the part of a data URL behind its comma."""
    data = unquote(content).encode() if kind == "svg" else base64.b64decode(content)
    with whole_file(path) as part:
        part.write_bytes(data)
    return path


def _run(browser: Path, *options: str) -> str:
    """Headless, with a profile that is thrown away and no network; as root a browser only starts without sandbox."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [str(browser), "--headless", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
                   "--disable-background-networking", "--disable-component-update", f"--user-data-dir={profile}",
                   "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=30000"]  # fmt: skip
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.append("--no-sandbox")
        try:
            done = subprocess.run([*command, *options], capture_output=True, timeout=PATIENCE, check=True)
        except subprocess.TimeoutExpired:
            raise DataError(f"{browser} did not answer within {PATIENCE} s; try again, or print by hand.") from None
        except (subprocess.CalledProcessError, OSError) as error:
            raise DataError(f"{browser} could not be run ({error}); name another in {VARIABLE}.") from None
    return done.stdout.decode("utf-8", "replace")
