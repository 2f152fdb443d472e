"""One home for the facts about kinds: all of them there, inherited from outside, asked for by nobody by name."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import plurigp
from plurigp.data import KINDS, Coder, Column, Schema, to_rows
from plurigp.data.kinds import EffectMeasure
from plurigp.estimator.compare import candidates
from plurigp.likelihoods import registry
from plurigp.report.words import kind_label, trait
from plurigp.study.findings.characterise import CONTRASTS, association_frame, characteristic_frame, read_values

SOURCE = Path(plurigp.__file__).parent
BUILT_IN = tuple(KINDS)


@pytest.fixture(params=[*BUILT_IN, *(f"like {name}" for name in BUILT_IN)])
def every_kind(request):
    """Each kind, and one from outside that reads like it."""
    name = request.param.removeprefix("like ")
    if name == request.param:
        yield name
        return
    registry.register(replace(registry.LIKELIHOODS[name], kind="from_outside"), reads_like=name)
    yield "from_outside"
    for table in (KINDS, registry.LIKELIHOODS, registry.OUTSIDE):
        table.pop("from_outside")


def test_every_fact_is_there(every_kind):
    facts = KINDS[every_kind]
    assert facts.about.strip()
    assert facts.label.strip()
    assert "_" not in facts.label
    assert kind_label(every_kind) == facts.label
    assert facts.effect_measure in CONTRASTS
    assert set(facts.rivals) | set(facts.preferred_on_tie) <= set(BUILT_IN)
    assert not facts.rivals or every_kind == "from_outside" or every_kind in facts.rivals
    assert facts.has_bounds == ({"upper", "event"} & set(facts.settings) != set())
    assert not facts.has_bounds or len(facts.stand_in) == 3
    assert not facts.positive or facts.stand_in[0] > 0
    assert (facts.fallback in BUILT_IN) == (facts.domain is not None)
    assert set(facts.for_extreme_counts) <= set(BUILT_IN)


def test_a_family_stands_behind_it_and_takes_its_stand_in(every_kind):
    """A gap holds the stand-in while the density of every cell is computed, so that must be finite."""
    facts, family = KINDS[every_kind], registry.LIKELIHOODS[every_kind]
    column = Column("a", every_kind, levels=("x", "y", "z")[: 2 if facts.yes_or_no else 3] if facts.has_levels else ())
    cell = np.array(facts.stand_in)
    start = family.start(cell[None, :], column)
    theta = start.theta | ({"n_levels": len(column.levels)} if facts.has_levels else {})
    assert np.isfinite(family.log_prob(jax.tree.map(jnp.asarray, theta), jnp.asarray(cell), jnp.asarray(start.bias)))


def test_every_measure_is_computed():
    assert set(CONTRASTS) == set(EffectMeasure)


def test_a_kind_from_outside_is_described_as_the_one_it_reads_like(every_kind, rng):
    facts = KINDS[every_kind]
    n = 60
    cells = rng.integers(0, 2, n).astype(float) if facts.has_levels else rng.uniform(0.1, 0.9, n)
    if facts.effect_measure is EffectMeasure.RATE or "trials" in facts.settings:
        cells = np.rint(3 * cells)
    if facts.effect_measure is EffectMeasure.MEAN_LEVEL:
        cells = rng.integers(0, 3, n).astype(float)
    frame = pd.DataFrame({"a": cells, "z": rng.normal(size=n)})
    settings = {"trials": 3} if "trials" in facts.settings else {}
    schema = Coder.fit(frame, Schema((Column("a", every_kind, **settings), Column("z", "gaussian")))).schema
    values, group = read_values(frame, schema), 1 + np.arange(n) % 2
    found = characteristic_frame(schema, values, lambda _: group, 2, "all")
    assert np.isfinite(found.loc[found["column"] == "a", "estimate"]).all()
    assert (found["column"] == "a").sum() >= 2
    assert np.isfinite(association_frame(schema, values, lambda _: group, "all")["p"]).all()
    assert trait("a", "yes", every_kind) == ("a" if facts.effect_measure is EffectMeasure.ODDS else "a: yes")
    assert every_kind in candidates(schema["a"], to_rows(frame))


KNOW_KINDS = ("data/kinds.py", "data/infer.py", "likelihoods/families/", "datasets/", "cli/demo.py")
OTHER_MEANINGS = {("answers/gaps.py", "weibull")}  # NumPy's name of a quantile method
NAMED = re.compile("|".join(rf'^{name}$|"{name}"' for name in BUILT_IN))


def test_no_kind_is_asked_for_by_name():
    """A module that names a kind will forget the next one."""
    named = []
    for path in sorted(SOURCE.rglob("*.py")):
        place, tree = path.relative_to(SOURCE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))
        if not place.startswith(KNOW_KINDS):
            prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
            texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in prose]
            named += [(place, text.value) for text in texts if NAMED.search(str(text.value))]
    assert set(named) == OTHER_MEANINGS
