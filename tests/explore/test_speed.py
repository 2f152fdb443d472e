"""How fast the page is, measured in the browser: pytest tests/explore/test_speed.py -m slow -s, on a quiet machine."""

from dataclasses import replace

import numpy as np
import pytest

from plurigp import PluriGP
from plurigp.datasets import load_support, simulate
from plurigp.explore import write_explorer
from plurigp.study import Clusters, Map
from plurigp.study.findings.view import two_dimensions

FIFTY = {"gaussian": 16, "lognormal": 10, "bernoulli": 10, "categorical": 5, "poisson": 4, "beta": 3, "ordinal": 2}
MOST_MS, FEWEST_FRAMES, MOST_BYTES = 50, 30, 8e6

ANSWER = """async (texts) => {
  const field = document.querySelector("#form-fields input"), times = [];
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  for (const text of texts) {
    field.value = text;
    field.dispatchEvent(new Event("input"));
    await frame();
    await frame();
    times.push(explorer.panels.place.took);
  }
  return times;
}"""
PAN = """(n) => new Promise((done) => {
  let frames = 0, start = 0;
  const step = (now) => {
    if (!start) start = now;
    else if (++frames >= n) return done((1000 * frames) / (now - start));
    explorer.map.pan(frames % 40 < 20 ? 5 : -5, 2);
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""


@pytest.fixture(scope="module")
def crowded(tools):
    """Fifty columns, and a hundred thousand positions around those of the rows."""
    sim = simulate(n_rows=400, n_components=4, columns=FIFTY, missing=0.1, random_state=0)
    model = PluriGP(4, schema=sim.schema, max_epochs=5, random_state=0).fit(sim.table)
    study = tools.study_of(model, sim.table, 4)
    rng, n = np.random.default_rng(0), 100_000
    own = rng.integers(400, size=n)
    mean = study.latent.mean[own] + 0.2 * rng.normal(size=(n, 4))
    view = two_dimensions(mean)
    clusters = Clusters(study.clusters.subtype[own], study.clusters.probability[own], study.clusters.mixture)
    return replace(
        study, latent=Map(mean, study.latent.sd[own], view, study.latent.gaps[own]), clusters=clusters,
        facts=study.facts | {"n_rows": n},
    )  # fmt: skip


@pytest.mark.slow
def test_placing_and_panning(browser, crowded, tools, tmp_path):
    path = write_explorer(crowded, tmp_path / "explorer.html")
    opened = tools.Opened(browser, path)
    for place in range(0, 50, 2):  # half of the columns are known
        field = opened.page.locator("#form-fields input, #form-fields select").nth(place)
        if field.evaluate("field => field.tagName") == "SELECT":
            field.select_option(index=1)
        else:
            field.fill((field.get_attribute("placeholder").split(" to ")[0]).replace("−", "-").replace(",", ""))
    took = opened.page.evaluate(ANSWER, [f"{value:.2f}" for value in np.linspace(-1, 1, 40)])
    frames = opened.page.evaluate(PAN, 90)
    shown = opened.page.evaluate("explorer.points.n")
    print(f"\nplacing: median {np.median(took):.1f} ms, 95 % {np.quantile(took, 0.95):.1f} ms, 50 columns")
    print(f"panning: {frames:.0f} frames a second, {shown:,} points; page {path.stat().st_size / 1e6:.2f} MB")
    opened.check()
    assert np.median(took) < MOST_MS
    assert frames > FEWEST_FRAMES
    assert shown > 90_000


@pytest.mark.slow
def test_the_page_of_support_is_small(tools, tmp_path):
    support = load_support()
    model = PluriGP(6, schema=support.schema, max_epochs=2, calibrate=False, random_state=0).fit(support.table)
    path = write_explorer(tools.study_of(model, support.table, 5), tmp_path / "explorer.html")
    print(f"\nSUPPORT: {path.stat().st_size / 1e6:.2f} MB")
    assert path.stat().st_size < MOST_BYTES
