"""Does an encoder trained on a complete table place rows with gaps? Nats per hidden cell of new rows.

    python benchmarks/hiding.py [--tables file.csv ...] [--seeds 3] [--rate 20]

Tables: scikit-learn's iris, wine, diabetes and breast cancer (without their labels), and any files in the
format of imputers.py. A fifth of the rows is new; a share of --rate percent of their cells is hidden. `hiding` is the
largest share of a row's cells that training hides from the encoder; "auto" is the default.
"""

import argparse
from pathlib import Path

import numpy as np
from common import save
from imputers import read_numbers
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

from plurigp import PluriGP
from plurigp.answers.heldout import hide_cells

SHARES = (0.0, "auto", 0.2, 0.5)
BUNDLED = {"iris": load_iris, "wine": load_wine, "diabetes": load_diabetes, "breast cancer": load_breast_cancer}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="*", default=[])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rate", type=float, default=20)
    given = parser.parse_args()
    tables = {name: load(as_frame=True).data for name, load in BUNDLED.items()}
    tables |= {Path(path).stem: read_numbers(path, distinct=False) for path in given.tables}
    result = {"rate": given.rate, "tables": {}}
    for name, frame in tables.items():
        scores = {str(share): [] for share in SHARES}
        for seed in range(given.seeds):
            order = np.random.default_rng(seed).permutation(len(frame))
            new, train = (frame.iloc[rows].reset_index(drop=True) for rows in np.split(order, [len(frame) // 5]))
            for share in SHARES:
                model = PluriGP(5, hiding=share, random_state=seed).fit(train)
                shown = hide_cells(new, model.schema_, given.rate / 100, seed)
                cells = float(np.nanmean(model.score_cells(shown, new)))
                scores[str(share)].append((cells, float(model.score_samples(new).mean())))
                print(name, seed, share, scores[str(share)][-1], flush=True)
        result["tables"][name] = {"rows": len(frame), "columns": frame.shape[1], "nats": scores}
        save("hiding", result)
