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
PYTHON_DRAWS = 800
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
  const { q, groups, gaps } = explorer.state.placed;
  done({ mean: [...q.mean], sd: [...q.sd], groups, gaps: gaps.map(plain) });
})))
"""
PLACE = """
(given) => {
  const plain = (gap) => gap && { ...gap, sorted: gap.sorted && [...gap.sorted] };
  const { q, groups, gaps } = explorer.place(given);
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
        found.append(page.evaluate(SHOWN) if given else page.evaluate(PLACE, {}))
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
    filled, covered = fill_values(model.predictor_, coded), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        gaps = model.describe_gaps(table, LEVELS, n_draws=PYTHON_DRAWS)
    for d, column in enumerate(model.schema_.used):
        rows = np.flatnonzero(~coded.seen[:, d])
        own = [found[i]["gaps"][d] for i in rows]
        if column.levels:
            shares = model.level_probabilities(table, column.name).to_numpy()[rows]
            close([gap["probabilities"] for gap in own], shares, column.name)
            continue
        points = np.asarray(model.coder_.undo(column.name, filled[rows, d]), float)
        close([gap["point"] for gap in own], points, column.name)
        wanted = gaps[gaps["column"] == column.name].set_index("row").loc[rows]
        covered.append(check_quantiles(own, wanted, model.pit_maps_[d], column.name))
    assert np.mean(covered) < 0.1  # about one in twenty, if both draw from one distribution


def end_of(draws, levels):
    """Quantiles of draws; infinite beyond the first and the last of them, which say nothing of what lies there."""
    inside = np.quantile(draws, np.clip(levels, 0, 1), method="weibull")
    edge = 1 / (len(draws) + 1)
    return np.where(levels <= edge, -np.inf, np.where(levels >= 1 - edge, np.inf, inside))


def check_quantiles(own, wanted, G, name):
    """Python's quantiles lie among the page's draws where theirs do, within the Monte Carlo error of both."""
    outside = []
    for gap, (_, line) in zip(own, wanted.iterrows(), strict=True):
        draws = np.array(gap["sorted"])
        levels, whole = calibrated_levels(G, LEVELS), (draws == np.rint(draws)).all()  # quantiles lie between counts
        assert gap["quantiles"] == pytest.approx(np.quantile(draws, levels, method="weibull"), rel=1e-9, abs=1e-9)
        error = np.sqrt(np.maximum(levels * (1 - levels), 0.01) * (1 / len(draws) + 1 / PYTHON_DRAWS))
        theirs = line[[f"q{100 * level:g}" for level in LEVELS]].to_numpy(float)
        for z in (2, 5):
            low, high = (end_of(draws, levels + side * z * error) for side in (-1, 1))
            slack = 1.0 if whole else 1e-9 * (1 + np.abs(theirs))
            outside.append((z, (theirs < low - slack) | (theirs > high + slack)))
    far, near = (np.mean([found for z, found in outside if z == most]) for most in (5, 2))
    assert far < 1e-3, f"{name}: {far:.2%} of the quantiles are off by more than five Monte Carlo errors"
    return near


def test_a_row_typed_is_placed_as_python_places_it(browser, model, study, simulation, tools, tmp_path):
    opened = tools.Opened(browser, write_explorer(study, tmp_path / "explorer.html"))
    table = tools.hollow(simulation.table, 24)
    found = shown_for(opened.page, model, table, tools, n_driven=4)
    check(found, model, table, study)
    opened.check()


def test_a_decoded_point_is_the_inverse_transform(browser, model, study, tools, tmp_path):
    opened = tools.Opened(browser, write_explorer(study, tmp_path / "explorer.html"))
    opened.page.click("#map", position={"x": 300, "y": 260})
    x, points = opened.page.evaluate("[[...explorer.state.point], explorer.state.decoded.map((gap) => gap.point)]")
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
    opened.check()
