"""What the quality benchmarks share: like-with-like scores, a JSON file."""

import json
import platform
from pathlib import Path

import jax
import numpy as np
import pandas as pd
from provenance import current_commit
from scipy.stats import norm

import plurigp
from plurigp import PluriGP
from plurigp.answers.latent import latent
from plurigp.answers.predictor import standard_draws
from plurigp.data import Schema
from plurigp.inference.gp.sparse import moments, project
from plurigp.likelihoods.families.gaussian import noise_var

RESULTS = Path(__file__).parent / "results"
NO_MASS = -690.0  # log of the mass of an interval on which a Gaussian puts none that float64 can tell from zero


def _moments(model: PluriGP, shown: pd.DataFrame, n_draws: int = 32) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of every cell at each draw of x [S N D], raw units, for a model of gaussian columns only."""
    trained, coder = model.predictor_, model.coder_
    q = latent(trained, coder.table(shown))
    means, variances = [], []
    with jax.enable_x64(True):
        noise = np.asarray(noise_var(trained.model.thetas[0]))
        decode = jax.jit(lambda x: moments(trained.model.gp, trained.q, project(trained.model.gp, x)))
        for z in standard_draws(n_draws, q.mean.shape[1]):
            f_mean, f_var = decode(q.at(z[None, None])[0])
            means.append(coder.shift + coder.scale * np.asarray(f_mean).T)
            variances.append(coder.scale**2 * (np.asarray(f_var).T + noise))
    return np.stack(means), np.stack(variances)


def like_with_like(model: PluriGP, shown: pd.DataFrame, truth: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Log scores of hidden cells under a Gaussian-for-all model, comparable with the composite ones [N D].

    A discrete value is scored by the mass on its own interval (half-way to its neighbours, open at both ends of the
    scale); a continuous one by its density.
    """
    mean, var = _moments(model, shown)
    out = {}
    complete = truth.to_numpy(float)
    for d, column in enumerate(c for c in schema.columns if c.kind != "aside"):
        y, m, sd = complete[:, d], mean[:, :, d], np.sqrt(var[:, :, d])
        if column.kind in ("gaussian", "gaussian_hetero", "lognormal", "beta"):
            terms = norm.logpdf(y, m, sd)
        else:
            top = {"binomial": column.trials, "poisson": np.inf}.get(column.kind, len(column.levels) - 1)
            low, high = np.where(y <= 0, -np.inf, y - 0.5), np.where(y >= top, np.inf, y + 0.5)
            with np.errstate(divide="ignore"):
                terms = np.maximum(np.log(norm.cdf(high, m, sd) - norm.cdf(low, m, sd)), NO_MASS)
        with np.errstate(invalid="ignore"):  # gaps
            out[column.name] = np.logaddexp.reduce(terms, axis=0) - np.log(len(terms))
    scores = pd.DataFrame(out, index=shown.index)
    return scores.where(shown.isna() & truth.notna())


def saved(name: str) -> dict:
    """What was saved before, without the versions; nothing if there is nothing."""
    path = RESULTS / f"{name}.json"
    return {k: v for k, v in json.loads(path.read_text()).items() if k != "versions"} if path.exists() else {}


def save(name: str, result: dict) -> None:
    """Results with the versions they came from."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"versions": versions(), **result}, indent=1) + "\n")
    print(f"wrote benchmarks/results/{path.name}")


def versions() -> dict:
    """Of what is measured."""
    told = {"plurigp": plurigp.__version__, "jax": jax.__version__, "python": platform.python_version()}
    return told | {"commit": current_commit()}
