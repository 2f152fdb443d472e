"""The page in a real Chromium: used by mouse and keyboard, silent, accessible, and deaf to hostile text."""

import json
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from plurigp import PluriGP
from plurigp.explore import write_explorer

STATES = ("empty", "placed", "decoded", "compared", "explained")


@pytest.fixture(scope="module")
def path(study, tmp_path_factory):
    return write_explorer(study, tmp_path_factory.mktemp("explorer") / "explorer.html")


@pytest.fixture
def opened(browser, path, tools):
    made = tools.Opened(browser, path)
    yield made
    made.check()
    made.page.context.close()


@pytest.fixture
def page(opened):
    return opened.page


def settle(page):
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


INKED = """() => {
  const map = document.getElementById("map"), { data } = map.getContext("2d").getImageData(0, 0, map.width, map.height);
  let other = 0;
  for (let i = 0; i < data.length; i += 4) if (data[i] !== data[0] || data[i + 1] !== data[1]) other += 1;
  return other / (data.length / 4);
}"""


def inked(page):
    """How much of the map is not paper."""
    settle(page)
    return page.evaluate(INKED)


def place(page):
    page.fill("#field-0", "0.5")
    page.select_option("#field-3", "1")
    page.wait_for_selector("html[data-placed]", state="attached")


def bring(page, state):
    """The page in one of its states."""
    if state == "placed":
        place(page)
    elif state == "decoded":
        page.click("#map", position={"x": 350, "y": 250})
    elif state == "compared":
        page.click("#tab-compare")
        page.select_option("#set-0", "1")
        page.select_option("#set-1", "2")
    elif state == "explained":
        page.click("#tab-explain")
    settle(page)


# --- place ---


def test_an_answer_moves_the_patient(page):
    assert page.is_visible("#placed-empty")
    place(page)
    first = page.evaluate("[...explorer.panels.place.placed.q.mean]")
    assert page.locator("#placed-groups li").count() == 2
    assert page.locator("#placed-values .value").count() == 4
    assert page.locator("#next button").count() > 0
    page.fill("#field-1", "1.5")
    settle(page)
    assert page.evaluate("[...explorer.panels.place.placed.q.mean]") != first
    page.click("#clear")
    settle(page)
    assert page.is_visible("#placed-empty")


def test_what_cannot_be_read_is_said_beside_its_field(page):
    for text, words in (("-1", "above zero"), ("abc", "number"), ("<2", "no limits")):
        page.fill("#field-2", text)
        settle(page)
        assert words in page.inner_text("#field-2-error")
        assert page.get_attribute("#field-2", "aria-invalid") == "true"
    page.fill("#field-5", "<2")
    settle(page)
    assert page.inner_text("#field-5-error") == ""
    assert page.evaluate("explorer.panels.place.placed.gaps[5]") is None


BRUTE_FORCE = """() => {
  const { model, panels } = explorer, { placed } = panels.place, size = (q) => trained.logDet(q, model.Q);
  const known = (d, value) => ({ values: placed.row.values.with(d, value), seen: placed.row.seen.with(d, true) });
  const slots = (d, raw) => coding.code(model.columns[d], coding.raw(model.columns[d], raw, placed.row.values[d]));
  return placed.gaps.map((gap, d) => {
    if (!gap) return null;
    const tried = gap.probabilities
      ? gap.probabilities.map((p, code) => [[code], p])
      : Array.from(gap.sorted, (raw) => [slots(d, raw), 1 / gap.sorted.length]);
    const after = tried.reduce((sum, [value, p]) => sum + p * size(trained.encode(model, known(d, value))), 0);
    return 1 - Math.exp((after - size(placed.q)) / model.Q);
  });
}"""
INFORMATION = """() => {
  const { placed } = explorer.panels.place, gaps = placed.gaps.flatMap((gap, d) => (gap ? [d] : []));
  return answers.information(explorer.model, placed.row, placed, gaps);
}"""


def test_the_next_measurement_shrinks_the_uncertainty_most(page):
    """Against the plain way: fill the column in with its own draws, place again and average."""
    place(page)
    gains, found = page.evaluate(BRUTE_FORCE), page.evaluate(INFORMATION)
    for entry in found:
        assert entry["gain"] == pytest.approx(gains[entry["d"]], abs=0.02)
    best = max(found, key=lambda entry: entry["gain"])
    name = page.evaluate("(d) => explorer.model.columns[d].name", best["d"])
    assert page.locator("#next li").first.inner_text().startswith(name)


# --- decode ---


def test_a_click_decodes_and_a_drag_changes_the_values(page):
    page.click("#map", position={"x": 300, "y": 300})
    before = page.locator("#point-values").inner_text()
    assert page.get_attribute("#tab-point", "aria-selected") == "true"
    box = page.locator("#map").bounding_box()
    page.mouse.move(box["x"] + 300, box["y"] + 300)
    page.mouse.down()
    page.mouse.move(box["x"] + 420, box["y"] + 380, steps=5)
    page.mouse.up()
    assert page.locator("#point-values").inner_text() != before


def test_the_map_by_keyboard_alone(page):
    page.focus("#map")
    page.keyboard.press("Enter")
    first = page.evaluate("[...explorer.panels.point.point]")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("[...explorer.panels.point.point]") != first
    assert "Point decoded" in page.inner_text("#status")
    scale = page.evaluate("explorer.map.state.scale")
    page.keyboard.press("+")
    assert page.evaluate("explorer.map.state.scale") > scale
    for key in ("0", "-", "-", "-", "-", "s"):
        page.keyboard.press(key)
    assert page.evaluate("explorer.panels.compare.sets[0].members.length") >= 5
    page.focus("#tab-compare")
    page.keyboard.press("ArrowRight")
    assert page.get_attribute("#tab-explain", "aria-selected") == "true"


def test_panning_and_zooming_by_mouse(page):
    box = page.locator("#map").bounding_box()
    before = page.evaluate("[...explorer.map.state.centre, explorer.map.state.scale]")
    page.mouse.move(box["x"] + 200, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 260, box["y"] + 240, steps=4)
    page.mouse.up()
    page.mouse.wheel(0, -300)
    settle(page)
    after = page.evaluate("[...explorer.map.state.centre, explorer.map.state.scale]")
    assert all(a != b for a, b in zip(after, before, strict=True))
    assert page.evaluate("explorer.panels.point.point") is None  # a drag is no click


# --- colours and planes ---


def test_every_colour_and_every_plane_is_drawn(page):
    share = inked(page)
    assert share > 0.005
    for place_ in range(page.locator("#colour option").count()):
        page.select_option("#colour", str(place_))
        assert inked(page) > 0.005
        assert page.inner_text("#legend")
    for place_ in range(page.locator("#plane option").count()):
        page.select_option("#plane", str(place_))
        assert inked(page) > 0.005
    assert page.locator("#plane option").count() == 4  # the view and three pairs


# --- compare ---


def test_two_groups_side_by_side(page):
    bring(page, "compared")
    sizes = [abs(float(text.replace("−", "-"))) for text in page.locator("#compare-list .size").all_inner_texts()]
    assert sizes == sorted(sizes, reverse=True)
    assert page.locator("#compare-outcome .curve").count() == 2


def test_lassoed_sets_and_sets_too_small(page):
    page.click("#mode-lasso")
    box = page.locator("#map").bounding_box()

    def lasso(x, y, side):
        page.mouse.move(box["x"] + x, box["y"] + y)
        page.mouse.down()
        for dx, dy in ((side, 0), (side, side), (0, side), (0, 0)):
            page.mouse.move(box["x"] + x + dx, box["y"] + y + dy, steps=3)
        page.mouse.up()

    lasso(60, 60, 6)
    assert "Fewer than 5 patients" in page.inner_text("#compare-note")
    lasso(60, 60, box["height"] * 0.8)
    page.select_option("#set-1", "rest")
    assert page.is_visible("#compare-list")
    assert "selected on the map" in page.inner_text("#set-0-size")


def test_a_difference_is_that_of_the_predictions(page, study, model):
    """The first group's mean against the second's, as Python predicts them at the rows' positions."""
    bring(page, "compared")
    name = model.schema_.used[0].name
    found = page.evaluate("explorer.panels.compare.sets.map((set) => set.summary[0].mean)")
    predicted = model.inverse_transform(study.latent.mean)[name]
    for k, mean in enumerate(found):
        own = predicted[study.clusters.subtype == k + 1]
        assert mean == pytest.approx(own.mean(), abs=0.25 * predicted.std() + 0.1)


# --- sharing ---


def test_a_view_is_in_the_address_and_answers_are_not(browser, path, page, tools):
    place(page)
    page.click("#map", position={"x": 350, "y": 250})
    page.select_option("#plane", "2")
    page.select_option("#colour", "1")
    page.wait_for_timeout(400)
    address = page.evaluate("location.hash")
    assert "plane=2" in address
    assert "0.5" not in address.split("at=")[0].split("u=")[0]
    again = browser.new_context().new_page()
    again.goto(path.as_uri() + address)
    again.wait_for_selector("html[data-ready=yes]", state="attached")
    assert again.input_value("#plane") == "2"
    assert again.evaluate("explorer.panels.place.placed") is None
    both = [p.evaluate("[...explorer.panels.point.point]") for p in (page, again)]
    assert both[0] == pytest.approx(both[1], rel=1e-5)


@pytest.mark.parametrize("address", ["#plane=99&colour=-1&u=x&zoom=0&tab=%3Cb%3E&at=1,2", "#plane=1e9&at=NaN", "#%%%"])
def test_a_broken_address_is_no_error(browser, path, tools, address):
    page = browser.new_context().new_page()
    said = []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(path.as_uri() + address)
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    assert said == []


def test_what_is_saved(page, tmp_path):
    place(page)

    def saved(button):
        with page.expect_download() as waiting:
            page.click(button)
        return Path(waiting.value.path()).read_bytes()

    patient = json.loads(saved("#save-json"))
    assert patient["columns"][0]["given"] == "0.5"
    assert len(patient["position"]["mean"]) == 3
    lines = saved("#save-csv").decode().splitlines()
    assert lines[0].startswith("part,name,given,expected,q5")
    assert saved("#save-png").startswith(b"\x89PNG")
    assert saved("#save-svg").startswith(b"<svg")


def test_a_model_alone_shows_simulated_patients(browser, model, tools, tmp_path):
    opened = tools.Opened(browser, write_explorer(model, tmp_path / "explorer.html"))
    assert "simulated patients" in opened.page.inner_text("#map-help")
    assert inked(opened.page) > 0.005
    place(opened.page)
    bring(opened.page, "decoded")
    bring(opened.page, "explained")
    opened.check()


# --- screens, paper, accessibility ---


def test_a_phone_never_scrolls_sideways(browser, path, tools):
    opened = tools.Opened(browser, path, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    for state in STATES:
        bring(opened.page, state)
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390, state
    opened.check()


def test_on_paper_the_map_is_light(browser, path, tools):
    page = tools.Opened(browser, path, color_scheme="dark").page
    corner = "() => document.getElementById('map').getContext('2d').getImageData(0, 0, 1, 1).data[0]"
    settle(page)
    assert page.evaluate(corner) < 60
    page.emulate_media(media="print")
    settle(page)
    assert page.evaluate(corner) == 255
    assert page.is_hidden("#tabs")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser, path, tools, scheme):
    pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    axe = (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
    for width in (1300, 390):
        opened = tools.Opened(browser, path, color_scheme=scheme, viewport={"width": width, "height": 900})
        opened.page.evaluate(axe)
        for state in STATES:
            bring(opened.page, state)
            found = opened.page.evaluate("axe.run()")["violations"]
            listed = [(v["id"], [node["target"] for node in v["nodes"]][:3]) for v in found]
            assert listed == [], (state, width)


# --- hostile text ---

EVAL = """() => new Promise((done) => setTimeout(() => {  // later: the driver's own calls are exempt from the policy
  try { done((0, eval)("1 + 1")); } catch (error) { done(error.name); }
}, 0))"""
INLINE = """() => new Promise((done) => setTimeout(() => {
  const script = document.createElement("script");
  script.textContent = "window.hacked = 1";
  document.body.append(script);
  fetch("https://example.org/").then(() => done("fetched"), () => done(window.hacked ?? "nothing"));
}, 0))"""


def test_the_policy_holds(browser, path, tools):
    """No eval, no further script and no request, even by a script that ran."""
    page = tools.Opened(browser, path).page
    assert page.evaluate(EVAL) == "EvalError"
    assert page.evaluate(INLINE) == "nothing"


@pytest.fixture(scope="module")
def hostile():
    return json.loads((Path(__file__).parents[1] / "report" / "hostile.json").read_text(encoding="utf-8"))


def test_hostile_text_runs_nothing(browser, hostile, tools, tmp_path):
    """Fifty strings as names of columns, as levels, as cells, as the title and as the name of the time column."""
    rng, n = np.random.default_rng(0), len(hostile)
    levels = [[hostile[(i + k) % n] for k in (1, 2, 3)] for i in range(n)]
    table = pd.DataFrame({name: rng.choice(levels[i], 120) for i, name in enumerate(hostile)})
    schema = {name: {"kind": "categorical", "levels": levels[i]} for i, name in enumerate(hostile)}
    model = PluriGP(2, schema=schema, max_epochs=1, n_inducing=10, calibrate=False, random_state=0).fit(table)
    made = tools.study_of(model, table, title=hostile[0])
    made.facts["time_column"] = hostile[2]
    pages = [
        write_explorer(made, tmp_path / "a.html"),
        write_explorer(model, tmp_path / "b.html", include_rows=table, title=hostile[1]),
    ]
    for path in pages:
        opened = tools.Opened(browser, path)
        page = opened.page
        for d in range(n):
            page.select_option(f"#field-{d}", "1")
        settle(page)
        for state in STATES[2:]:
            bring(page, state) if state != "compared" or path == pages[0] else None
        point = page.evaluate(
            "() => { const [x, y] = explorer.map.drawn().toPixel(explorer.map.state.flats[0]); return { x, y }; }"
        )
        page.click("#map", position=point)
        page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
        for place_ in (3, 40, 90):
            page.select_option("#colour", str(place_))
        assert page.evaluate("window.hacked") is None
        assert page.title() == hostile[pages.index(path)]
        assert page.locator("main img, main iframe, main b, main script, main math").count() == 0
        text = page.evaluate("document.querySelector('main').textContent")
        for name in hostile:
            if name.isprintable():
                assert name[:60] in text
        with page.expect_download() as waiting:
            page.click("#save-svg")
        drawn = Path(waiting.value.path()).read_text()
        assert "<script" not in drawn
        opened.check()
