"""What calibration costs: its seconds within fits to their plateau, compiled programs in place.

python benchmarks/calibration_cost.py
"""

import argparse
import time

from common import save

from plurigp import PluriGP
from plurigp.answers import calibration
from plurigp.datasets import simulate_cohort
from plurigp_paper.digits import digits

SEEDS = 3


def timed(frame, n_components: int, seed: int) -> dict:
    """Seconds of a default fit, and of the calibration within it."""
    spent = []
    maps = calibration.Calibration.maps

    def watched(self, predictor):
        start = time.perf_counter()
        found = maps(self, predictor)
        spent.append(time.perf_counter() - start)
        return found

    calibration.Calibration.maps = watched
    try:
        start = time.perf_counter()
        model = PluriGP(n_components, random_state=seed).fit(frame)
        whole = time.perf_counter() - start
    finally:
        calibration.Calibration.maps = maps
    return {"fit": whole, "calibration": spent[0], "share": spent[0] / whole, "epochs": model.n_iter_}


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    result = {}
    tables = {
        "600 × 784, Q = 6": (digits(n_per_digit=200).table, 6),
        "1,400 × 46, Q = 10": (simulate_cohort(1400).table, 10),
    }
    for name, (frame, Q) in tables.items():
        PluriGP(Q, max_epochs=2, random_state=0).fit(frame)  # compiles
        result[name] = [timed(frame, Q, seed) for seed in range(SEEDS)]
        print(name, result[name], flush=True)
    save("calibration_cost", result)


if __name__ == "__main__":
    main()
