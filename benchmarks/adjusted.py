"""Covariates, row weights and views on tables with known truth, seed by seed.

    python benchmarks/adjusted.py                       # everything, writes results/adjusted.json
    python benchmarks/adjusted.py --only batch --seeds 3

batch:    three planted groups at two sites that shift every lab, mapped without adjustment, with the site as covariate,
          and without a site effect. Whether the map separates the sites is asked of neighbours on it: adjusted Rand
          index of site and the site of a row's 15 nearest neighbours, cross-validated, which is near 0 where they do
          not tell. Two clusters of the map follow the wider gap, which in some tables is one between groups, so their
          agreement with the site is printed beside it and says less. Clusters beside the planted groups; how often the
          95 % interval of a patient's expected lab at the other site holds the true one.
survey:   groups sampled with unequal odds. Coverage of the population's shares by 95 % intervals of weighted shares and
          of unweighted ones; and a fit with whole weights beside one with the rows repeated, both with full batches:
          log density of the repeated rows, in nats per cell, and what another seed changes of it.
views:    ten informative and many noise columns. Clusters beside the groups: the ten alone, all, all in two views.
"""

import argparse

import numpy as np
import pandas as pd
from common import save, saved
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsClassifier

from plurigp import PluriGP
from plurigp.study.findings.shares import population_shares

LABS, MARKS, K = 10, 5, 3
SHIFT = 2.5  # of the labs at the second site, in sd of their noise and groups together about one and a half
SETTINGS = {"calibrate": False, "n_inducing": 30}


def clusters(x: np.ndarray, n_clusters: int) -> np.ndarray:
    """The likeliest of many starts at random rows: k-means starts miss groups that are long and lie side by side."""
    settings = {"n_init": 50, "init_params": "random_from_data", "reg_covar": 1e-3}
    return GaussianMixture(n_clusters, random_state=0, **settings).fit_predict(x)


def separated(site: np.ndarray, x: np.ndarray) -> float:
    """Adjusted Rand index of the site and what the 15 nearest neighbours of other folds say of it."""
    return float(adjusted_rand_score(site, cross_val_predict(KNeighborsClassifier(15), x, site, cv=5)))


def planted(rng: np.random.Generator, group: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Expected labs [N LABS] and log odds of marks [N MARKS] of the rows of K groups, which spread along one axis."""
    centres, along = rng.normal(size=(K, LABS + MARKS)) * 1.5, 0.5 * rng.normal(size=LABS + MARKS)
    f = centres[group] + rng.normal(size=(len(group), 1)) * along
    return f[:, :LABS], f[:, LABS:], rng.choice([-1.0, 1.0], LABS)


def as_table(rng: np.random.Generator, labs: np.ndarray, logits: np.ndarray) -> pd.DataFrame:
    noisy = labs + 0.7 * rng.normal(size=labs.shape)
    table = pd.DataFrame(noisy, columns=[f"lab_{d}" for d in range(LABS)])
    marks = rng.random(logits.shape) < 1 / (1 + np.exp(-logits))
    return table.assign(**{f"mark_{d}": np.where(marks[:, d], "yes", "no") for d in range(MARKS)})


def batch(seed: int, n_rows: int) -> dict:
    rng = np.random.default_rng([seed, 1])
    group, site = rng.integers(0, K, n_rows), rng.integers(0, 2, n_rows)
    labs, logits, sign = planted(rng, group)
    plain = as_table(rng, labs, logits)
    names = list(plain.columns[:LABS])
    shifted = plain.assign(**{name: plain[name] + SHIFT * sign[d] * site for d, name in enumerate(names)})
    shifted = shifted.assign(site=np.where(site, "B", "A"))
    free = PluriGP(2, random_state=seed, **SETTINGS).fit(plain)
    unadjusted = PluriGP(2, schema={"site": "aside"}, random_state=seed, **SETTINGS).fit(shifted)
    adjusted = PluriGP(2, covariates=["site"], random_state=seed, **SETTINGS).fit(shifted)
    x = {
        "free": free.transform(plain),
        "unadjusted": unadjusted.transform(shifted),
        "adjusted": adjusted.transform(shifted),
    }
    other = {"site": np.where(site, "A", "B")}
    _, low, high = adjusted.counterfactual(shifted, other, level=0.95)
    truth = labs + SHIFT * sign * (1 - site)[:, None]
    inside = (low[names].to_numpy() <= truth) & (truth <= high[names].to_numpy())
    return {
        "site by neighbours, unadjusted": separated(site, x["unadjusted"]),
        "site by neighbours, adjusted": separated(site, x["adjusted"]),
        "site by two clusters, unadjusted": adjusted_rand_score(site, clusters(x["unadjusted"], 2)),
        "site by two clusters, adjusted": adjusted_rand_score(site, clusters(x["adjusted"], 2)),
        "groups, no site effect": adjusted_rand_score(group, clusters(x["free"], K)),
        "groups, unadjusted": adjusted_rand_score(group, clusters(x["unadjusted"], K)),
        "groups, adjusted": adjusted_rand_score(group, clusters(x["adjusted"], K)),
        "counterfactual coverage": float(inside.mean()),
    }


def survey(seed: int, n_rows: int) -> dict:
    rng = np.random.default_rng([seed, 2])
    truth, odds = np.array([0.6, 0.3, 0.1]), np.array([1.0, 2.0, 6.0])
    group = rng.choice(K, n_rows, p=truth * odds / (truth * odds).sum())
    labs, logits, _ = planted(rng, group)
    table = as_table(rng, labs, logits)
    weights = 1 / odds[group]
    weights = weights / weights.mean()
    found = PluriGP(2, n_groups=K, random_state=seed, **SETTINGS).fit(table, sample_weight=weights)
    label = found.group_probabilities(table).argmax(1)
    match = np.array([np.bincount(group[label == k], minlength=K).argmax() for k in range(K)])[label]
    covers = {}
    for name, own in {"weighted": weights, "unweighted": np.ones(n_rows)}.items():
        shares = population_shares(match, own).set_index("label").reindex(range(K))
        covers[name] = float(((shares["low"] <= truth) & (truth <= shares["high"])).mean())
    return {
        "covers, weighted": covers["weighted"],
        "covers, unweighted": covers["unweighted"],
        "error of the model's own weights": float(np.abs(np.sort(found.group_weights_)[::-1] - truth).max()),
        **optimum(table, rng.integers(1, 4, n_rows), seed),
    }


def optimum(table: pd.DataFrame, weights: np.ndarray, seed: int) -> dict:
    """A fit with weights beside fits with repeated rows, two seeds: full batches, so that both take as many steps."""
    repeated = table.loc[table.index.repeat(weights)].reset_index(drop=True)
    settings = {"dtype": "float64", "max_epochs": 600, "tol": 1e-9, "batch_size": len(repeated), **SETTINGS}
    fits = [
        PluriGP(2, random_state=seed, **settings).fit(table, sample_weight=weights),
        PluriGP(2, random_state=seed, **settings).fit(repeated),
        PluriGP(2, random_state=seed + 1000, **settings).fit(repeated),
    ]
    weighted, same, other = (float(weights @ fit.score_samples(table)) / repeated.size for fit in fits)
    return {"weights less repeated rows": weighted - same, "another seed less repeated rows": other - same}


def views(seed: int, n_rows: int, n_noise: int) -> dict:
    rng = np.random.default_rng([seed, 3])
    group = rng.integers(0, K, n_rows)
    labs, logits, _ = planted(rng, group)
    few = as_table(rng, labs, logits)[[f"lab_{d}" for d in range(LABS)]]
    noise = pd.DataFrame(np.where(rng.random((n_rows, n_noise)) < rng.uniform(0.1, 0.5, n_noise), "yes", "no"))
    table = pd.concat([few, noise.set_axis([f"dx_{d}" for d in range(n_noise)], axis=1)], axis=1)
    names = {"labs": list(few), "dx": [name for name in table if name not in few]}
    maps = {
        "ten alone": PluriGP(2, random_state=seed, **SETTINGS).fit(few).transform(few),
        "all": PluriGP(2, random_state=seed, **SETTINGS).fit(table).transform(table),
        "all, in views": PluriGP(2, views=names, random_state=seed, **SETTINGS).fit(table).transform(table),
    }
    return {name: adjusted_rand_score(group, clusters(x, K)) for name, x in maps.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["batch", "survey", "views"], action="append")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--noise", type=int, default=500, help="noise columns of `views`")
    given = parser.parse_args()
    parts = {
        "batch": lambda seed: batch(seed, given.rows),
        "survey": lambda seed: survey(seed, given.rows),
        "views": lambda seed: views(seed, given.rows, given.noise),
    }
    for part in given.only or parts:
        runs = []
        for seed in range(given.seeds):
            runs.append(parts[part](seed))
            print(part, seed, {name: round(value, 3) for name, value in runs[-1].items()}, flush=True)
        means = pd.DataFrame(runs).mean().to_dict()
        print(part, "mean", {name: round(value, 3) for name, value in means.items()}, flush=True)
        save("adjusted", saved("adjusted") | {part: {"rows": given.rows, "runs": runs, "mean": means}})
