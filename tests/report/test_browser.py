"""The page in a real Chromium: drawn, usable by mouse and keyboard, silent, and deaf to hostile names."""

from html import unescape
from pathlib import Path

import pytest

from plurigp.core.types import DataError
from plurigp.report import find_browser, report_figures, write_report
from plurigp.report.browser import print_pdf, write_pictures

CHROMIUM = find_browser()
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium, Chrome or Edge on this machine")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


class Opened:
    """A page with every figure drawn, and what it said on the console and asked of the network."""

    def __init__(self, browser, path, width):
        self.said, self.asked = [], []
        self.page = browser.new_page(viewport={"width": width, "height": 900})
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready=yes]", timeout=30_000, state="attached")

    def check(self, path):
        """It was silent."""
        assert self.said == []
        assert [url for url in self.asked if not url.startswith(("data:", "blob:"))] == [path.as_uri()]


@pytest.fixture(scope="module")
def report(result, tmp_path_factory):
    return write_report(result, tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="module")
def opened(browser, report):
    """One page for all tests: it takes seconds to draw."""
    return Opened(browser, report, 1100)


@pytest.fixture
def page(opened, report):
    yield opened.page
    opened.check(report)


def cells(page, table, place):
    """The texts of a column of a table, as shown."""
    rows = f"#table-{table} tbody tr:not([hidden]) td:nth-child({place})"
    return page.locator(rows).all_inner_texts()


def test_the_first_tab_skips_to_the_summary(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.url.endswith("#summary")


def test_every_figure_is_drawn(page, result):
    figures = page.locator("figure[data-drawn=yes]")
    assert figures.count() == page.locator("figure").count() == len(report_figures(result))
    for figure in figures.all():
        name = figure.get_attribute("data-figure")
        inked = figure.locator(".points path, .lines path, .bars path, .heatmaplayer image, .errorbars path")
        assert inked.count() > 0, name
        assert figure.locator("svg.main-svg").first.bounding_box()["height"] > 100, name


def test_the_colour_menu_by_keyboard(page):
    colours = "() => document.querySelector('[data-figure=map] .plot').data.map((trace) => trace.marker.color)"
    before = page.evaluate(colours)
    page.focus("#colour-by")
    page.keyboard.press("ArrowDown")
    page.wait_for_selector("figure[data-colour='Certainty of assignment']")
    assert isinstance(page.evaluate(colours)[0], list)
    assert page.locator("[data-figure=map] .colorbar").count() == 1
    page.select_option("#colour-by", label="Subtype")
    page.wait_for_selector("figure[data-colour='Subtype']")
    assert page.evaluate(colours) == before


def test_a_mark_tells_its_certainty(page):
    page.locator("[data-figure=map]").scroll_into_view_if_needed()
    box = page.locator("[data-figure=map] .points path").nth(30).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_selector("[data-figure=map] .hovertext")
    assert "certainty" in page.locator("[data-figure=map] .hovertext").first.text_content()


def test_sorting_by_mouse_and_keyboard(page):
    head = page.locator("#table-characteristics th").nth(5)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    shown = [float(text.replace("−", "-")) for text in cells(page, "characteristics", 6)]
    assert shown == sorted(shown)
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert cells(page, "characteristics", 6)[0].startswith("+")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")
    assert page.locator("#table-characteristics th").nth(4).get_attribute("aria-sort") == "ascending"
    assert head.get_attribute("aria-sort") == "none"


def test_one_subtype_of_the_table(page):
    page.select_option("#which-subtype", "2")
    assert set(cells(page, "characteristics", 1)) == {"2"}
    page.select_option("#which-subtype", "")
    assert set(cells(page, "characteristics", 1)) == {"1", "2", "3"}


def test_a_phone_never_scrolls_sideways(page):
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function("document.querySelector('[data-figure=map] .main-svg').clientWidth < 390")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.set_viewport_size({"width": 1100, "height": 900})


def test_hostile_names_run_nothing(browser, hostile, hostile_result, tmp_path):
    path = write_report(hostile_result, tmp_path / "hostile.html", title=hostile[0])
    hostile_page = Opened(browser, path, 390)
    page = hostile_page.page
    for opener in page.locator("details").all():
        opener.evaluate("element => { element.open = true }")
    page.locator("#which-subtype").select_option("1")
    for place in range(4):
        page.locator("#table-characteristics th button").nth(place).click()
    assert page.evaluate("window.hacked") is None
    assert page.title() == hostile[0]
    literal = page.locator("#table-columns").inner_text()
    for name in hostile:
        if name.isprintable():
            assert name[:100] in literal
    ticks = page.evaluate("[...document.querySelectorAll('.ytick text')].map((text) => text.textContent)")
    assert "<b>bold</b>" in ticks
    assert "a<br>b" in ticks
    assert page.locator("svg a, svg b, svg script, figure img:not([src^='data:'])").count() == 0
    hostile_page.check(path)


def test_names_that_look_like_pictures_write_no_other_file(forged_result, tmp_path):
    """Column names that hold data URLs, the end of the document or a path."""
    made = {figure.name: figure for figure in report_figures(forged_result)}
    figures = [made["gaps"], made["survival"]]
    pictures = write_pictures(CHROMIUM, figures, tmp_path / "figures")
    assert [path.name for path in pictures] == ["gaps.svg", "gaps.png", "survival.svg", "survival.png"]
    assert sorted(tmp_path.rglob("*.*")) == sorted(pictures)
    drawn = pictures[0].read_text(encoding="utf-8")
    assert drawn.startswith("<svg")
    assert "picture:evil:svg:<svg>" in unescape(drawn)
    assert pictures[1].read_bytes().startswith(b"\x89PNG")


def test_a_browser_that_draws_nothing_is_named(result, tmp_path):
    with pytest.raises(DataError, match="did not draw the figures"):
        write_pictures(Path("/bin/echo"), report_figures(result), tmp_path / "figures")
    assert not (tmp_path / "figures").exists()


@pytest.mark.slow
def test_on_paper_and_as_pictures(report, result, tmp_path):
    pdf = print_pdf(CHROMIUM, report, tmp_path / "report.pdf")
    assert pdf.read_bytes().startswith(b"%PDF")
    figures = report_figures(result)
    pictures = write_pictures(CHROMIUM, figures, tmp_path / "figures")
    assert sorted(path.name for path in pictures) == sorted(
        f"{f.name}.{kind}" for f in figures for kind in ("svg", "png")
    )
    start = {".svg": b"<svg", ".png": b"\x89PNG"}
    assert all(path.read_bytes().startswith(start[path.suffix]) for path in pictures)
    again = write_pictures(CHROMIUM, figures, tmp_path / "again")
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in pictures]
