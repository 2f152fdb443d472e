"""Extreme scales and outliers: answers are finite, or an error names the column; never a silent NaN."""

import warnings

import numpy as np
import pandas as pd
import pytest

from plurigp import PluriGP
from plurigp.inference import training
from plurigp.inference.divergence import Diverged

N = 60
KINDS = {"a": "gaussian", "b": "gaussian", "c": "lognormal", "d": "bernoulli"}


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    factor = rng.normal(size=N)
    table = pd.DataFrame(
        {
            "a": factor + 0.3 * rng.normal(size=N),
            "b": -factor + 0.3 * rng.normal(size=N),
            "c": np.exp(factor + 0.3 * rng.normal(size=N)),
            "d": np.where(factor > 0, "yes", "no"),
        }
    )
    return table.mask(rng.random(table.shape) < 0.1)


def with_cell(table: pd.DataFrame, name: str, value: float) -> pd.DataFrame:
    return table.assign(**{name: table[name].where(table.index != 7, value)})


EXTREMES = {
    "an outlier at 1e6 sd": lambda t: with_cell(t, "a", 1e6),
    "outliers of both signs": lambda t: with_cell(with_cell(t, "a", 1e6), "b", -1e6),
    "an outlier at 1e12 sd": lambda t: with_cell(t, "b", 1e12),
    "a lognormal one": lambda t: with_cell(t, "c", 1e90),
    "units of 1e-300": lambda t: t.assign(a=t["a"] * 1e-300),
    "units of 1e99": lambda t: t.assign(b=t["b"] * 1e99),
    "far from zero": lambda t: t.assign(a=t["a"] + 1e9),
    "almost constant": lambda t: t.assign(a=1.0 + 1e-13 * t["a"]),
    "the same column twice": lambda t: t.assign(b=t["a"]),
}


@pytest.mark.parametrize("extreme", EXTREMES)
def test_answers_are_finite(extreme):
    table = EXTREMES[extreme](frame())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = PluriGP(schema=KINDS, n_inducing=6, max_epochs=12, random_state=0).fit(table)
    assert np.isfinite(model.elbo_)
    assert np.isfinite(model.history_.to_numpy()).all()
    assert (model.history_["jitter"] < 1.01e-6).all()
    mean, sd = model.transform(table, return_std=True)
    assert np.isfinite(mean).all()
    assert (sd > 0).all()
    filled = model.impute(table)
    assert np.isfinite(filled[["a", "b", "c"]].to_numpy(float)).all()
    assert filled["d"].notna().all()
    assert np.isfinite(model.score_samples(table)).all()


def test_a_run_that_diverges_names_column_and_family(monkeypatch):
    def diverge(spec, state, data, epoch, jitter):
        raise Diverged(epoch, jitter, 1)

    monkeypatch.setattr(training, "MIN_STEP_FACTOR", 2.0)
    monkeypatch.setattr(training, "raise_diverged", diverge)
    monkeypatch.setattr(training, "run_epoch", with_nan(training.run_epoch))
    model = PluriGP(schema=KINDS, n_inducing=6, max_epochs=12, random_state=0)
    pattern = r"column '\w' \(\w+\): training diverged in epoch 1 \(jitter 1\.0e-06\).*or make them gaps"
    with pytest.raises(FloatingPointError, match=pattern) as caught:
        model.fit(frame())
    assert "\n" not in str(caught.value)


def with_nan(run_epoch):
    """Every epoch's bound is lost."""

    def run(*args):
        state, n, steps = run_epoch(*args)
        return state, n, [step._replace(bound=step.bound._replace(kl_x=np.float64("nan"))) for step in steps]

    return run


def test_raised_jitter_is_reported(monkeypatch):
    def jittered(*args):
        state, n, steps = run_epoch(*args)
        return state, n, [step._replace(jitter=np.float64(1e-4)) for step in steps]

    run_epoch = training.run_epoch
    monkeypatch.setattr(training, "run_epoch", jittered)
    with pytest.warns(RuntimeWarning, match=r"jitter was raised to 1\.0e-04 in some epochs \(history_ has all\)"):
        model = PluriGP(schema=KINDS, n_inducing=6, max_epochs=12, random_state=0).fit(frame())
    assert (model.history_["jitter"] == 1e-4).all()
