"""What the page computes in a real Chromium is what Python computes: positions, groups, expected values, intervals."""

import warnings

import numpy as np
import pytest

from plurigp import PluriGP
from plurigp.answers.fill import fill_values
from plurigp.answers.pit import calibrated_levels
from plurigp.data import KINDS
from plurigp.datasets import load_support, simulate
from plurigp.explore import write_explorer

RELATIVE, ABSOLUTE = 1e-5, 1e-6  # a probability near zero has no digits to compare: the softmax is in float32 in Python
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)

ENTER = """
(given) => {  // as a person would: every field in turn, with its own event
  document.getElementById("clear").click();
  for (const [d, answer] of Object.entries(given)) {
    const field = document.getElementById(`field-${d}`), trials = document.getElementById(`field-${d}-trials`);
    field.value = answer.text ?? String(answer.level);
    if (trials) trials.value = answer.trials;
    field.dispatchEvent(new Event(field.tagName === "SELECT" ? "change" : "input"));
  }
}
"""
SHOWN = """
() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {
  const plain = (gap) => gap && { ...gap, sorted: gap.sorted && [...gap.sorted] };
  const { q, groups, gaps } = explorer.panels.place.placed;
  done({ mean: [...q.mean], sd: [...q.sd], groups, gaps: gaps.map(plain) });
})))
"""
PLACE = """
([given, nDraws]) => {
  const plain = (gap) => gap && { ...gap, sorted: gap.sorted && [...gap.sorted] };
  const { q, groups, gaps } = explorer.place(given, nDraws);
  return { mean: [...q.mean], sd: [...q.sd], groups, gaps: gaps.map(plain) };
}
"""


def close(found, wanted, what):
    found, wanted = np.asarray(found, float), np.asarray(wanted, float)
    off = np.abs(found - wanted) - RELATIVE * np.abs(wanted) - ABSOLUTE
    assert off.max() <= 0, f"{what}: off by {np.abs(found - wanted).max():.2e}"


def by_mouse(page, columns, given):
    """Click into each field and type; levels by the list."""
    page.click("#clear")
    for d, answer in given.items():
        if columns[d].levels:
            page.select_option(f"#field-{d}", index=answer["level"] + 1)  # by value, a label may match first
        else:
            page.click(f"#field-{d}")
            page.keyboard.type(answer["text"])


def by_keyboard(page, columns, given):
    """From field to field with Tab alone; a level is as many arrows down."""
    page.focus("#clear")
    page.keyboard.press("Enter")
    page.focus("#field-0")
    for d, column in enumerate(columns):
        assert page.evaluate("document.activeElement.id") == f"field-{d}"
        if d in given and column.levels:
            for _ in range(given[d]["level"] + 1):
                page.keyboard.press("ArrowDown")
        elif d in given:
            page.keyboard.type(given[d]["text"])
        page.keyboard.press("Tab")


def shown_for(page, model, table, tools, n_driven):
    """Placed by the form: some rows by mouse, some by keyboard, the others by the fields' own events."""
    columns, found = model.schema_.used, []
    for i, given in enumerate(tools.typed_answers(model, table)):
        if i in range(1, n_driven + 1):
            (by_mouse if i % 2 else by_keyboard)(page, columns, given)
        elif given:
            page.evaluate(ENTER, {str(d): answer for d, answer in given.items()})
        found.append(page.evaluate(SHOWN) if given else page.evaluate(PLACE, [{}, 200]))
    return found


def check(found, model, table, study=None):
    """Equal to Python, column by column; and quantiles, which are drawn, by what they cover of many draws in Python."""
    mean, sd = model.transform(table, return_std=True)
    close([row["mean"] for row in found], mean, "mean")
    close([row["sd"] for row in found], sd, "sd")
    groups = [row["groups"] for row in found]
    if study is not None:
        close(np.array(groups)[:, :-1], study.assign(table).filter(regex=r"^p_").to_numpy(), "subtypes")
    elif model.n_groups > 1:
        close(groups, model.group_probabilities(table), "groups")
    coded = model.coder_.table(table)
    filled = fill_values(model.predictor_, coded)
    for d, column in enumerate(model.schema_.used):
        rows = np.flatnonzero(~coded.seen[:, d])
        own = [found[i]["gaps"][d] for i in rows]
        if column.levels:
            shares = model.level_probabilities(table, column.name).to_numpy()[rows]
            close([gap["probabilities"] for gap in own], shares, column.name)
        else:
            points = np.asarray(model.coder_.undo(column.name, filled[rows, d]), float)
            close([gap["point"] for gap in own], points, column.name)
    # the page takes one stream of random numbers per column, so that its errors go together over rows
    beyond_two, beyond_five = check_quantiles(found, model, table, n_draws=800)
    assert beyond_two < 0.15
    assert beyond_five < 0.002


def check_many_draws(page, model, table, tools, n_draws=4000):
    """The same for so many draws of a few rows: their distributions are one."""
    few = table.iloc[:8].reset_index(drop=True)
    given = [{str(d): answer for d, answer in row.items()} for row in tools.typed_answers(model, few)]
    found = [page.evaluate(PLACE, [row, n_draws]) for row in given]
    beyond_two, beyond_five = check_quantiles(found, model, few, n_draws)
    assert beyond_two < 0.1
    assert beyond_five == 0


def end_of(draws, levels):
    """Quantiles of draws; infinite beyond the first and the last of them, which say nothing of what lies there."""
    inside = np.quantile(draws, np.clip(levels, 0, 1), method="weibull")
    edge = 1 / (len(draws) + 1)
    return np.where(levels <= edge, -np.inf, np.where(levels >= 1 - edge, np.inf, inside))


def check_quantiles(found, model, table, n_draws):
    """Which shares of Python's quantiles lie more than two and five Monte Carlo errors away from the page's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        gaps = model.describe_gaps(table, LEVELS, n_draws=n_draws)
    places = {column.name: d for d, column in enumerate(model.schema_.used)}
    outside = {2: [], 5: []}
    for line in gaps[gaps["mean"].notna()].to_dict("records"):
        gap, levels = found[line["row"]]["gaps"][places[line["column"]]], model.pit_maps_[places[line["column"]]]
        draws, levels = np.array(gap["sorted"]), calibrated_levels(levels, LEVELS)
        assert gap["quantiles"] == pytest.approx(np.quantile(draws, levels, method="weibull"), rel=1e-9, abs=1e-9)
        error = np.sqrt(np.maximum(levels * (1 - levels), 0.01) * (1 / len(draws) + 1 / n_draws))
        theirs = np.array([line[f"q{100 * level:g}"] for level in LEVELS])
        slack = 1.0 if (draws == np.rint(draws)).all() else 1e-9 * (1 + np.abs(theirs))  # quantiles lie between counts
        for z, list_ in outside.items():
            low, high = (end_of(draws, levels + side * z * error) for side in (-1, 1))
            list_.append((theirs < low - slack) | (theirs > high + slack))
    return [float(np.mean(list_)) for list_ in outside.values()]


def test_a_row_typed_is_placed_as_python_places_it(browser, model, study, simulation, tools, tmp_path):
    opened = tools.Opened(browser, write_explorer(study, tmp_path / "explorer.html"))
    table = tools.hollow(simulation.table, 24)
    found = shown_for(opened.page, model, table, tools, n_driven=4)
    check(found, model, table, study)
    check_many_draws(opened.page, model, table, tools)
    opened.check()


def test_a_decoded_point_is_the_inverse_transform(browser, model, study, tools, tmp_path):
    opened = tools.Opened(browser, write_explorer(study, tmp_path / "explorer.html"))
    opened.page.click("#map", position={"x": 300, "y": 260})
    x, points = opened.page.evaluate(
        "[[...explorer.panels.point.point], explorer.panels.point.decoded.map((gap) => gap.point)]"
    )
    wanted = model.inverse_transform([x])
    for found, column in zip(points, model.schema_.used, strict=True):
        value = wanted[column.name].iloc[0]
        assert (column.levels[found] == value) if column.levels else np.isclose(found, float(value), rtol=RELATIVE)
    opened.check()


@pytest.fixture(scope="module")
def all_kinds():
    return simulate(n_rows=400, n_components=2, columns=dict.fromkeys(KINDS, 1), missing=0.2, random_state=1)


def grouped_model(sim):
    return PluriGP(2, n_groups=2, schema=sim.schema, max_epochs=20, random_state=0).fit(sim.table), sim.table


def network_model(sim):
    """Networks alone, a sum of other kernels, and rules of other lengths."""
    given = {
        "encoder": "masked",
        "kernel": "linear+matern52",
        "n_quadrature": {"categorical": 9, "beta": 7},
    }
    return PluriGP(3, schema=sim.schema, max_epochs=15, random_state=0, **given).fit(sim.table), sim.table


def support_model(sim):
    table = load_support().table.sample(1500, random_state=0, ignore_index=True)
    return PluriGP(6, schema=load_support().schema, max_epochs=15, random_state=0).fit(table), table


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("made", [grouped_model, network_model, support_model])
@pytest.mark.filterwarnings("ignore:.*effective draws:RuntimeWarning")
def test_two_hundred_rows_of_each_table(browser, all_kinds, made, tools, tmp_path):
    model, table = made(all_kinds)
    study = tools.study_of(model, table, 3) if made is support_model else None
    path = write_explorer(study or model, tmp_path / "explorer.html", **({} if study else {"rows": table}))
    opened = tools.Opened(browser, path)
    rows = tools.hollow(table, 200)
    check(shown_for(opened.page, model, rows, tools, n_driven=10), model, rows, study)
    check_many_draws(opened.page, model, rows, tools)
    opened.check()
