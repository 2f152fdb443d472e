"""Patients with several visits on tables with known truth, seed by seed.

    python benchmarks/repeated.py                  # writes results/repeated.json
    python benchmarks/repeated.py --seeds 3

Visits lie around their patient's position; labs are bent functions of the visit's position plus noise, marks yes or no;
cells are hidden at random. How often 95 % intervals of `patient_effects` hold the patient's true expected lab, and the
true probability of a mark; the error of the expected labs beside that of the mean of the patient's own cells; and the
share of variance between patients, whose truth is given beside it.
"""

import argparse

import numpy as np
import pandas as pd
from common import save

from plurigp import PluriGP, patient_effects

LABS, MARKS = 8, 4
BETWEEN, WITHIN, NOISE, HIDDEN = 0.8, 0.5, 0.5, 0.15  # sds of positions, of deviations and of labs; share of cells
N_TRUTH = 2000  # visits by which a patient's expected values are known
SETTINGS = {"schema": {"patient": "aside"}, "calibrate": False, "n_inducing": 30}


class Patients:
    """Positions of patients, and the functions that make cells of positions."""

    def __init__(self, rng: np.random.Generator, n_patients: int) -> None:
        self.u = BETWEEN * rng.normal(size=(n_patients, 2))
        self.slopes, self.odds = rng.normal(size=(2, LABS)), 1.5 * rng.normal(size=(2, MARKS))

    def labs(self, x: np.ndarray) -> np.ndarray:
        return x @ self.slopes + 0.3 * np.sin(1.5 * x @ self.slopes[:, ::-1])

    def shares(self, x: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-x @ self.odds))

    def visits(self, rng: np.random.Generator) -> pd.DataFrame:
        patient = np.repeat(np.arange(len(self.u)), rng.integers(2, 6, len(self.u)))
        x = self.u[patient] + WITHIN * rng.normal(size=(len(patient), 2))
        labs = self.labs(x) + NOISE * rng.normal(size=(len(x), LABS))
        marks = rng.random((len(x), MARKS)) < self.shares(x)
        table = pd.DataFrame(labs, columns=[f"lab_{d}" for d in range(LABS)])
        table = table.assign(**{f"mark_{d}": np.where(marks[:, d], "yes", "no") for d in range(MARKS)})
        return table.mask(rng.random(table.shape) < HIDDEN).assign(patient=patient)

    def expected(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Labs [G LABS] and shares [G MARKS] over many visits of every patient."""
        e = WITHIN * rng.normal(size=(N_TRUTH, 2))
        return tuple(np.stack([cells(u + e).mean(0) for u in self.u]) for cells in (self.labs, self.shares))


def run(seed: int, n_patients: int) -> dict:
    rng = np.random.default_rng([seed, 5])
    patients = Patients(rng, n_patients)
    table = patients.visits(rng)
    labs, shares = patients.expected(rng)
    found = patient_effects(PluriGP(2, random_state=seed, **SETTINGS).fit(table), table, "patient")
    lines = found.effects.pivot(index="patient", columns="column").loc[np.arange(n_patients)]
    names = {"labs": [f"lab_{d}" for d in range(LABS)], "marks": [f"mark_{d}" for d in range(MARKS)]}

    def coverage(part: str, truth: np.ndarray) -> float:
        low, high = (lines[end][names[part]].to_numpy() for end in ("low", "high"))
        return float(((low <= truth) & (truth <= high)).mean())

    own = table.groupby("patient")[names["labs"]].mean().to_numpy()
    return {
        "coverage, labs": coverage("labs", labs),
        "coverage, marks": coverage("marks", shares),
        "error, expected labs": float(np.sqrt(((lines["mean"][names["labs"]].to_numpy() - labs) ** 2).mean())),
        "error, means of own cells": float(np.sqrt(np.nanmean((own - labs) ** 2))),
        "share between patients": float(found.shares["share_between"].mean()),
        "true share": BETWEEN**2 / (BETWEEN**2 + WITHIN**2),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--patients", type=int, default=150)
    given = parser.parse_args()
    runs = []
    for seed in range(given.seeds):
        runs.append(run(seed, given.patients))
        print(seed, {name: round(value, 3) for name, value in runs[-1].items()}, flush=True)
    means = pd.DataFrame(runs).mean().to_dict()
    print("mean", {name: round(value, 3) for name, value in means.items()}, flush=True)
    save("repeated", {"patients": given.patients, "runs": runs, "mean": means})
