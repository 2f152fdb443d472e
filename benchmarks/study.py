"""What the study finds where the truth is known, and how often it finds what is not there.

    python benchmarks/study.py planted [--subtypes 1 2 3 4 5 6] [--seeds 5] [--rows 1400] [--separation 6]
    python benchmarks/study.py size [--tables 100] [--rows 300]
    python benchmarks/study.py split [--tables 50] [--rows 400]
    python benchmarks/study.py killed [--tables 20] [--rows 300]
    python benchmarks/study.py support --folder DIR

planted: adjusted Rand index of the strata and number of subtypes on the simulated cohort. size: how often subtypes are
called robust in structureless tables, by the structureless reference and by the paper's permutations. split: how often
columns of pure noise are called characteristic, tested on the rows that made the clusters, on the other half of the
rows, and on the other half placed without the tested column. killed: a study killed at so many random moments goes
on and ends with the bytes of one that was left alone. support: the study of all SUPPORT patients as the command line
runs it, with its times and the risk of death by stratum; a finished one in the folder is only read. What was found is
kept after every table; only what is not there yet is run, so that two of these may share the work.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from common import save, saved
from sklearn.metrics import adjusted_rand_score
from study_sections import right

from plurigp import Study, load, load_study
from plurigp.datasets import load_support, simulate_cohort
from plurigp.study.findings.characterise import association_frame, read_values
from plurigp.study.findings.cluster import Starts, fit_mixture
from plurigp.study.findings.mixture import memberships
from plurigp.study.fits.store import read_arrays

STUDY = [sys.executable, "-m", "plurigp.cli", "study"]
SMALL = {"n_binary": 4, "n_real": 5, "n_proportion": 3}


def planted(given, done):
    """One line per cohort."""
    for K in given.subtypes:
        for seed in range(given.first, given.first + given.seeds):
            if any(run["planted"] == K and run["seed"] == seed for run in done):
                continue
            started = time.perf_counter()
            cohort = simulate_cohort(given.rows, K, separation=given.separation, random_state=seed)
            result = Study(schema=cohort.schema, **settings(given, seed)).fit(cohort.table)
            yield {
                "planted": K,
                "seed": seed,
                "n_components": result.facts["n_components"],
                "found": result.facts["n_subtypes"],
                "strata": result.facts["n_strata"],
                "paper": result.facts["n_paper_clusters"],
                "structured": result.facts["structured"],
                "p": result.facts["structure_p"],
                "robust": result.facts["n_robust"],
                "ari": adjusted_rand_score(cohort.subtype, result.clusters.subtype),
                "pac": result.facts["pac"],
                "seconds": time.perf_counter() - started,
            }


def size(given, done):
    """One line per structureless table."""
    for seed in left(given, done):
        cohort = simulate_cohort(given.rows, 1, random_state=seed, **SMALL)
        result = Study(schema=cohort.schema, n_subtypes="paper", **settings(given, seed)).fit(cohort.table)
        beyond = result.subtypes["index"] > result.subtypes["permutation_threshold"]
        several = len(beyond) > 1
        yield {
            "seed": seed,
            "paper": len(beyond),
            "by_reference": bool(result.facts["structured"]),
            "by_permutation": several and bool(beyond.any()),
            "p": result.facts["structure_p"],
        }


def left(given, done):
    """The seeds that have not had their turn."""
    return sorted(set(range(given.first, given.first + given.tables)) - {run["seed"] for run in done})


def split(given, done):
    """One line per table: share of noise columns with p < 0.05, three ways."""
    for seed in left(given, done):
        cohort = simulate_cohort(given.rows, 1, random_state=seed, **SMALL)
        rng = np.random.default_rng(seed)
        noise = {f"noise_{d}": rng.normal(size=given.rows) for d in range(4)}
        noise |= {f"noise_{d}": rng.choice(["no", "yes"], given.rows) for d in range(4, 6)}
        table = pd.concat([cohort.table, pd.DataFrame(noise)], axis=1)
        with tempfile.TemporaryDirectory() as folder:
            options = settings(given, seed) | {"n_references": 0, "n_subtypes": 3, "n_refits": 2, "n_permutations": 0}
            result = Study(out=Path(folder) / "run", **options).fit(table)
            plain = plain_split(Path(folder) / "run", table, seed)
        tests = pd.concat([result.associations, plain])
        p = tests[tests["column"].isin(noise)].groupby("rows")["p"]
        yield {"seed": seed, **{rows: float((values < 0.05).mean()) for rows, values in p}}


def plain_split(folder, table, seed):
    """The other half of the rows, but placed by all their cells, the tested one too."""
    rows = read_arrays(folder / "fits" / "refit-000.safetensors")[0]["rows"]
    model = load(folder / "fits" / "refit-000")
    unseen = table.drop(index=rows).reset_index(drop=True)
    x = model.transform(table.iloc[rows]).astype(float)
    mixture = fit_mixture(x, 3, Starts(x, seed)).mixture
    group = memberships(mixture, model.transform(unseen))[0]
    return association_frame(
        model.schema_, read_values(unseen, model.schema_), lambda name: group, "split, own cell shown"
    )


def killed(given, done):
    """One line per kill: how many fits were finished by then, and whether the bytes are the same in the end."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        simulate_cohort(given.rows, 3, random_state=0, **SMALL).table.to_csv(folder / "table.csv", index=False)
        options = ["--refits", given.refits, "--references", given.references, "--epochs", given.epochs]
        options += ["--components", given.components[0], "--jobs", given.jobs]

        def start(out):
            command = [
                sys.executable,
                "-m",
                "plurigp.cli",
                "study",
                folder / "table.csv",
                "--out",
                folder / out,
                *options,
            ]
            return subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL)

        started = time.perf_counter()
        assert start("whole").wait() == 0
        seconds = time.perf_counter() - started
        whole = contents(folder / "whole")
        for number, share in enumerate(np.random.default_rng(given.first).uniform(0, 1, given.tables)[len(done) :]):
            running = start(f"killed-{number}")
            time.sleep(share * seconds)
            running.kill()
            running.wait()
            fits = len(list((folder / f"killed-{number}").glob("fits/*.safetensors")))
            assert start(f"killed-{number}").wait() == 0
            yield {"after": share * seconds, "fits": fits, "same": contents(folder / f"killed-{number}") == whole}


def support(given, done):
    """One line: what the study of SUPPORT found, and how long it took."""
    folder = Path(given.folder)
    whole = not folder.exists()  # one that was stopped, or run before, has no times of its own: those found then stay
    if not (folder / "result.json").exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        patients = load_support()
        table = pd.concat([patients.table, patients.outcomes[["follow_up_days", "died"]]], axis=1)
        table.to_csv(folder.parent / "support.csv", index=False)
        (folder.parent / "support.toml").write_text(patients.schema.to_toml(), encoding="utf-8")
        options = ["--schema", "support.toml", "--time", "follow_up_days", "--event", "died", "--horizon", "180"]
        command = [*STUDY, "support.csv", *options, "--out", folder.name]
        subprocess.run([*command, "--jobs", str(given.jobs)], cwd=folder.parent, check=True)
    result = load_study(folder)

    def last(pattern):
        return max(path.stat().st_mtime for path in folder.glob(pattern)) / 60

    references = last("fits/reference-*.safetensors") - last("fits/refit-*.safetensors")
    rest = last("report.html") - last("study.json") - references
    risks = result.risks[result.risks["subtype"] > 0]
    facts = ("n_rows", "n_components", "n_subtypes", "n_strata", "n_robust", "structured", "structure_p")
    yield {
        **{name: result.facts[name] for name in (*facts, "n_paper_clusters")},
        "minutes": {"references": references, "all else": rest} if whole else (done[-1]["minutes"] if done else None),
        "log_rank_p": None if result.survival_tests["p"].isna().all() else float(result.survival_tests["p"].iloc[0]),
        "risks": risks[["subtype", "time", "risk", "low", "high"]].to_dict("records"),
        "sizes": result.subtypes["size"].tolist(),
        "robust": [bool(r) for r in result.subtypes["robust"]],
    }


def contents(folder):
    """Every file of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def settings(given, seed):
    """What the first three have in common."""
    return {
        "n_components": tuple(given.components),
        "n_restarts": given.restarts,
        "n_refits": given.refits,
        "n_references": given.references,
        "n_permutations": given.permutations,
        "max_epochs": given.epochs,
        "random_state": seed,
        "n_jobs": given.jobs,
    }


def summary(what, runs):
    """Rates with their binomial standard errors."""
    frame = pd.DataFrame(runs)
    if what == "planted":
        frame["right"] = right(frame)
        return frame.groupby("planted")[["right", "structured", "ari"]].mean().reset_index().to_dict("records")
    if what == "support":
        return {}
    rates = frame.drop(columns=["seed", "p", "paper", "after", "fits"], errors="ignore").mean()
    n = len(frame) * (6 if what == "split" else 1)
    return {name: {"rate": float(r), "se": float(np.sqrt(r * (1 - r) / n))} for name, r in rates.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["planted", "size", "split", "killed", "support"])
    parser.add_argument("--subtypes", type=int, nargs="+", default=[1, 2, 3, 4, 5, 6])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--rows", type=int, default=1400)
    parser.add_argument("--separation", type=float, default=6.0)
    parser.add_argument("--components", type=int, nargs="+", default=[5])
    parser.add_argument("--restarts", type=int, default=1)
    parser.add_argument("--refits", type=int, default=30)
    parser.add_argument("--references", type=int, default=19)
    parser.add_argument("--permutations", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", default="support-study/run")
    parser.add_argument("--name", default="", help="what the results file is called")
    given = parser.parse_args()
    name = given.name or f"study_{given.what}"
    parts = {"planted": planted, "size": size, "split": split, "killed": killed, "support": support}
    for line in parts[given.what](given, saved(name).get("runs", [])):
        print({k: round(v, 3) if isinstance(v, float) else v for k, v in line.items()}, flush=True)
        runs = [*saved(name).get("runs", []), line]
        save(name, {"arguments": vars(given), "summary": summary(given.what, runs), "runs": runs})
    print(saved(name)["summary"])
