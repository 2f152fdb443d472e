"""Every family of the page's scripts against the library's own, one cell at a time: density, mean, features, draws."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plurigp.data import KINDS, Coder, Column
from plurigp.datasets import simulate
from plurigp.explore.export import packed
from plurigp.explore.page import SCRIPTS, static
from plurigp.inference.compiling import jax_runtime
from plurigp.likelihoods.base import own_rule, predictive_log_prob, predictive_mean
from plurigp.likelihoods.families.censored import MEAN_POINTS
from plurigp.likelihoods.families.censored_gamma import PANELS
from plurigp.likelihoods.registry import LIKELIHOODS
from plurigp.likelihoods.rules import gauss_hermite
from plurigp.likelihoods.softmax import COARSE, FINE

NUMERIC_SCRIPTS = SCRIPTS[: SCRIPTS.index("answers")]
N_CELLS, N_DRAWS = 12, 4000

EVALUATE = """({ kind, cells, rule, grids, width }) => {
  const family = families[kind], uniform = random.generator(5);
  return cells.map(({ theta, y, gap, mean, variance }) => ({
    log: family.logProb(theta, y, mean, variance, rule, grids),
    mean: Array.from(family.mean(theta, gap, mean, variance, rule, grids)),
    features: family.features(y, width),
    draws: Array.from({ length: N }, () => family.sample(uniform, theta, gap, mean)),
  }));
}""".replace("N }", f"{N_DRAWS} }}")


@pytest.fixture(scope="module")
def scripts(browser):
    """A page with nothing but the scripts that compute."""
    page = browser.new_context().new_page()
    for name in NUMERIC_SCRIPTS:
        page.add_script_tag(content=static(f"{name}.js"))
    return page


def points(rule) -> dict:
    return {"points": list(map(float, rule[0])), "weights": list(map(float, rule[1]))}


GRIDS = {
    "fine": {"rule": points(FINE.rule), "n_points": FINE.n_points},
    "coarse": {"rule": points(COARSE.rule), "n_points": COARSE.n_points},
    "legendre": points(PANELS[8]),
}


def cells_of(kind: str, rng: np.random.Generator) -> tuple[list[dict], Column]:
    """Coded cells of a simulated column of this kind, with its own start as theta, and random moments of f."""
    sim = simulate(n_rows=200, columns={kind: 1}, missing=0.0, random_state=4)
    coder = Coder.fit(sim.table, sim.schema)
    values, column = coder.table(sim.table).values, coder.schema.used[0]
    family = LIKELIHOODS[kind]
    start, H = family.start(values, column), family.n_functions(column)
    theta = {name: np.asarray(value, float) for name, value in start.theta.items()}
    gap = [KINDS[kind].stand_in[0], values[0, 1]] if column.trials is not None else list(KINDS[kind].stand_in)
    chosen = [*values[:4], *values[rng.choice(200, N_CELLS - 4)]]
    cells = [
        {"theta": {n: v.tolist() for n, v in theta.items()}, "y": y.tolist(), "gap": gap,
         "mean": (start.bias + rng.normal(size=H)).tolist(), "variance": (0.02 + 2 * rng.random(H) ** 2).tolist()}
        for y in chosen
    ]  # fmt: skip
    return cells, column


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_page_knows_the_family(scripts, kind):
    rng = np.random.default_rng(1)
    cells, column = cells_of(kind, rng)
    family, rule = LIKELIHOODS[kind], own_rule(LIKELIHOODS[kind])
    width = family.n_functions(column)
    short = gauss_hermite(min(len(rule.points), MEAN_POINTS))
    sent = {"kind": kind, "cells": cells, "grids": GRIDS, "width": width,
            "rule": points(rule) | {"adaptive": rule.adaptive, "short": points(short)}}  # fmt: skip
    found = scripts.evaluate(EVALUATE, json.loads(json.dumps(sent)))

    @jax.jit
    def python(theta, y, gap, mean, variance):
        full = {**theta, "n_levels": jnp.asarray(width)}
        return (
            predictive_log_prob(family, full, y, mean, variance, rule),
            predictive_mean(family, full, gap, mean, variance, rule),
            family.features(y, width),
        )

    with jax_runtime():
        for cell, own in zip(cells, found, strict=True):
            arrays = (jnp.asarray(cell[name], jnp.float64) for name in ("y", "gap", "mean", "variance"))
            theta = {name: jnp.asarray(value, jnp.float64) for name, value in cell["theta"].items()}
            log, mean, features = (np.asarray(part) for part in python(theta, *arrays))
            # one cell has the fine grid of the softmax, a block may take the coarse one
            close = 1e-4 if kind == "categorical" else 1e-7
            np.testing.assert_allclose(own["log"], log, rtol=close, atol=close)
            np.testing.assert_allclose(own["mean"], mean, rtol=close, atol=close)
            np.testing.assert_allclose(own["features"], features, rtol=1e-9, atol=1e-12)
    check_draws(kind, family, cells[0], found[0]["draws"], width)


def check_draws(kind, family, cell, drawn, width):
    """Two samples of one distribution: their empirical CDFs differ by chance alone."""
    rng, shape = np.random.default_rng(2), (N_DRAWS, 1)
    theta = {name: np.asarray(value)[None] for name, value in cell["theta"].items()} | {"n_levels": np.array([width])}
    y, f = (np.broadcast_to(np.asarray(cell[name], float), (*shape, len(cell[name]))) for name in ("gap", "mean"))
    theirs = family.sample(rng, theta, y, f).ravel()
    both = np.unique(np.concatenate([drawn, theirs]))
    cdfs = [np.searchsorted(np.sort(part), both, side="right") / N_DRAWS for part in (drawn, theirs)]
    assert np.abs(cdfs[0] - cdfs[1]).max() < 2.2 * np.sqrt(2 / N_DRAWS), kind


def test_arrays_survive_the_trip(scripts):
    """Base64 and back: single precision where that is exact, double where not."""
    for values in (np.float32([1.5, -0.1]).astype(float), np.array([0.1, np.pi]), np.arange(5, dtype=np.int16)):
        assert scripts.evaluate("(part) => [...trained.unpackAll(part)]", packed(values)) == values.tolist()
    assert packed(np.float32([0.1]).astype(float))["dtype"] == "f4"
    assert packed([0.1])["dtype"] == "f8"
