"""The marginal baseline is maximum likelihood, column by column: SciPy must say the same."""

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, special, stats

from plurigp.answers.baseline import Marginals
from plurigp.data import KINDS, Coder, infer_schema

N = 200
SCHEMA = {
    "lab": "gaussian",
    "pressure": "gaussian_hetero",
    "cost": "lognormal",
    "diabetes": {"kind": "bernoulli", "levels": ["no", "yes"]},
    "hits": {"kind": "binomial", "trials": "shots"},
    "share": "beta",
    "visits": "poisson",
    "tails": "student_t",
    "dose": "gamma",
    "falls": "negative_binomial",
    "seizures": "zero_inflated_poisson",
    "grade": "ordinal",
    "troponin": "censored_gaussian",
    "crp": "censored_lognormal",
    "virus": "censored_gamma",
    "months": {"kind": "weibull", "event": "died"},
    "slide": "zero_one_beta",
    "alcohol": "zero_lognormal",
    "ward": {"kind": "categorical", "levels": ["a", "b", "c", "d"]},
}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    shots = rng.integers(3, 9, N)
    frame = pd.DataFrame(
        {
            "lab": rng.normal(70, 12, N),
            "pressure": rng.normal(-3, 0.1, N),
            "cost": rng.lognormal(5, 0.7, N),
            "diabetes": rng.choice(["no", "yes"], N, p=[0.8, 0.2]),
            "hits": rng.binomial(shots, 0.3).astype(float),
            "share": rng.beta(2, 5, N),
            "visits": rng.poisson(2.5, N).astype(float),
            "tails": 5 + 2 * rng.standard_t(3, N),
            "dose": rng.gamma(2.0, 3.0, N),
            "falls": rng.poisson(rng.gamma(1.5, 2.0, N)).astype(float),
            "seizures": rng.poisson(3.0, N) * (rng.random(N) > 0.4).astype(float),
            "grade": rng.choice([1.0, 2.0, 3.0], N, p=[0.5, 0.3, 0.2]),
            "ward": rng.choice(list("abcd"), N, p=[0.5, 0.3, 0.15, 0.05]),
        }
    )
    troponin, crp, virus, months = rng.normal(3, 1, N), rng.lognormal(1, 1, N), rng.gamma(2, 2, N), rng.weibull(1.5, N)
    frame["troponin"] = pd.Series(np.where(troponin < 2.5, "<2.5", troponin.round(6).astype(str)), dtype=object)
    frame["crp"] = pd.Series(np.where(crp > 4, ">4", crp.round(6).astype(str)), dtype=object)
    frame["virus"] = pd.Series(np.where(virus < 2, "<2", virus.round(6).astype(str)), dtype=object)
    frame["months"] = np.minimum(months, 1.2)
    frame["slide"] = rng.beta(2, 2, N) * (rng.random(N) > 0.2)
    frame["alcohol"] = rng.lognormal(2, 0.6, N) * (rng.random(N) > 0.3)
    frame = frame.mask(rng.random(frame.shape) < 0.2)
    return frame.assign(shots=shots, died=(months < 1.2).astype(int))


@pytest.fixture(scope="module")
def answer(frame) -> pd.DataFrame:
    """Log densities of all rows in raw units, each column fitted to the first 150."""
    coder = Coder.fit(frame[:150], infer_schema(frame[:150], SCHEMA))
    cells = Marginals.fit(coder.table(frame[:150])).log_density(coder.table(frame))
    return pd.DataFrame(cells - coder.log_units, columns=[c.name for c in coder.schema.used])


def _normal(y, new):
    return stats.norm.logpdf(new, y.mean(), y.std(ddof=0))


def _student(y, new):
    return stats.t.logpdf(new, len(y), y.mean(), y.std(ddof=0))


def _lognormal(y, new):
    return _student(np.log(y), np.log(new)) - np.log(new)


def _zero_lognormal(y, new):
    share = (y > 0).mean()
    return np.where(new > 0, np.log(share) + _lognormal(y[y > 0], new.where(new > 0, 1.0)), np.log(1 - share))


def _bernoulli(y, new):
    return stats.bernoulli.logpmf((new == "yes").astype(int), (y == "yes").mean())


def _beta(y, new):
    a, b, _, _ = stats.beta.fit(y, floc=0, fscale=1)
    return stats.beta.logpdf(new, a, b)


def _categorical(y, new):
    return np.log(new.map(y.value_counts(normalize=True)))


def _gamma(y, new):
    shape, _, scale = stats.gamma.fit(y, floc=0)
    return stats.gamma.logpdf(new, shape, scale=scale)


def _best(log_density, start):
    """Maximum likelihood by SciPy's own optimiser, nothing shared with the source."""

    def fitted(y, new):
        found = optimize.minimize(lambda p: -log_density(y, p).mean(), start, method="Nelder-Mead", tol=1e-8)
        return log_density(new, found.x)

    return fitted


def _zip(y, p):
    zero = special.expit(p[1])
    return np.log(zero * (y == 0) + (1 - zero) * stats.poisson.pmf(y, np.exp(p[0])))


@pytest.mark.parametrize(
    ("name", "by_scipy"),
    [
        ("tails", _best(lambda y, p: stats.t.logpdf(y, 1 + np.exp(p[0]), p[1], np.exp(p[2])), [1.0, 5.0, 0.5])),
        ("dose", _gamma),
        ("falls", _best(lambda y, p: stats.nbinom.logpmf(y, np.exp(p[0]), special.expit(p[1])), [0.5, 0.0])),
        ("seizures", _best(_zip, [1.0, 0.0])),
        ("grade", _categorical),
        ("lab", _student),
        ("pressure", _normal),
        ("cost", _lognormal),
        ("alcohol", _zero_lognormal),
        ("diabetes", _bernoulli),
        ("share", _beta),
        ("visits", lambda y, new: stats.poisson.logpmf(new, y.mean())),
        ("ward", _categorical),
    ],
)
def test_equals_scipy(frame, answer, name, by_scipy):
    seen = frame[name].notna()
    expected = by_scipy(frame[name][:150].dropna(), frame[name][seen])
    np.testing.assert_allclose(answer[name][seen], expected, atol=2e-4)


def test_binomial_equals_scipy(frame, answer):
    seen = frame["hits"].notna()
    fit, rows = frame[:150][seen[:150]], frame[seen]
    share = fit["hits"].sum() / fit["shots"].sum()
    np.testing.assert_allclose(answer["hits"][seen], stats.binom.logpmf(rows["hits"], rows["shots"], share), atol=2e-4)


def test_gaps_have_no_density_and_every_kind_is_here(frame, answer):
    np.testing.assert_array_equal(answer.isna(), frame[answer.columns].isna())
    assert {c if isinstance(c, str) else c["kind"] for c in SCHEMA.values()} == set(KINDS)
