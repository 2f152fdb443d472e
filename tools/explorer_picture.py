"""Makes docs/explorer.png, the README's picture: the page of a study folder with a patient placed.

make demo && .venv/bin/python tools/explorer_picture.py demo-output
"""

import argparse
from pathlib import Path

from playwright.sync_api import sync_playwright

from plurigp.report import find_browser

OUT = Path(__file__).parents[1] / "docs" / "explorer.png"
ANSWERS = {"age": "71", "creatinine": "2.6", "urea_nitrogen": "48", "mean_blood_pressure": "62", "heart_rate": "118"}
DIAGNOSIS = ("diagnosis_group", "ARF/MOSF w/Sepsis")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="written by plurigp demo")
    page_path = parser.parse_args().folder / "explorer.html"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(find_browser()), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        page.goto(page_path.resolve().as_uri())
        page.wait_for_selector("html[data-ready=yes]", state="attached")
        names = page.evaluate("explorer.model.columns.map((column) => column.name)")
        for name, text in ANSWERS.items():
            page.fill(f"#field-{names.index(name)}", text)
        page.select_option(f"#field-{names.index(DIAGNOSIS[0])}", label=DIAGNOSIS[1])
        page.wait_for_selector("html[data-placed]", state="attached")
        page.wait_for_timeout(500)
        page.evaluate("document.activeElement.blur(); document.getElementById('form-fields').style.maxHeight = '13rem'")
        page.evaluate("document.getElementById('form-fields').scrollTop = 0; window.scrollTo(0, 0)")
        page.screenshot(path=OUT)
        browser.close()


if __name__ == "__main__":
    main()
