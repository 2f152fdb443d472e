"""Records → cohort → study: from the events of a simulated hospital to its planted subtypes.

    python docs/cohort/tutorial.py --out tutorial            # about ten minutes on two cores
    python docs/cohort/tutorial.py --out tutorial --patients 600 --refits 4

Writes the records in OMOP form, makes the paper's table of them by the command line, studies it, and compares the
subtypes found with the planted ones. Read tutorial/patients.quality.html and tutorial/study/report.html afterwards.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import pandas as pd
from sklearn.metrics import adjusted_rand_score

from plurigp.datasets import simulate_records, write_records

PAPER = Path(__file__).with_name("parkinson.toml")
FURTHER = """
[eligibility]
age = [40, 95]
observed_after = "6 months"
min_values = 6

[[outcome]]
name = "death"
codes = ["death"]
"""


def plurigp(*arguments: str | Path | int) -> None:
    print("$ plurigp", *arguments, flush=True)
    subprocess.run([sys.executable, "-m", "plurigp.cli", *map(str, arguments)], check=True)


def main() -> float:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--patients", type=int, default=1500)
    parser.add_argument("--refits", type=int, default=10)
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)

    records = simulate_records(asked.patients, n_subtypes=3, random_state=0)
    write_records(records, asked.out / "cdm", "omop")
    source = PAPER.read_text().replace('form = "long"\npath = "records"', 'form = "omop"\npath = "cdm"')
    (asked.out / "patients.toml").write_text(source + FURTHER)

    table = asked.out / "patients.parquet"
    plurigp("cohort", asked.out / "patients.toml", "--out", table, "--force")
    plurigp("study", table, "--schema", asked.out / "patients.schema.toml", "--out", asked.out / "study",
            "--components", 2, "--components", 4, "--refits", asked.refits,
            "--time", "death_days", "--event", "death_event")  # fmt: skip

    patients = pd.read_parquet(table)["patient"]
    found = pd.read_csv(asked.out / "study" / "assignments.csv")["subtype"]
    agreement = adjusted_rand_score(patients.map(records.subtype), found)
    print(f"adjusted Rand index of found and planted subtypes: {agreement:.3f}")
    return agreement


if __name__ == "__main__":
    sys.exit(0 if main() >= 0.8 else 1)
