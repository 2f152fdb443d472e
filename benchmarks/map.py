"""The picture at the top of the README: all SUPPORT patients on one map, coloured by diagnosis group.

python benchmarks/map.py
"""

import argparse
from pathlib import Path

from plurigp import PluriGP
from plurigp.datasets import load_support
from plurigp_paper.charts import map_chart

if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    support = load_support()
    settings = {"max_epochs": 60, "batch_size": 1000, "random_state": 0, "calibrate": False, "verbose": True}
    model = PluriGP(10, schema=support.schema, **settings)
    x = model.fit_transform(support.table)
    groups = support.table["diagnosis_group"].astype(str).to_numpy()
    map_chart(
        Path(__file__).parent.parent / "docs" / "map.svg", x, groups, f"SUPPORT: {len(x):,} patients by diagnosis group"
    )
