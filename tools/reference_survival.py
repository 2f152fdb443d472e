"""What lifelines says of three of its own tables, for tests/study/test_survival.py.

    python tools/reference_survival.py > tests/study/lifelines.json

Run it in an environment of its own (`pip install lifelines`): lifelines asks for pandas below 3 and plurigp for 3, so
no environment can hold both.
"""

import json

import lifelines
from lifelines import KaplanMeierFitter, datasets
from lifelines.statistics import multivariate_logrank_test

TABLES = {  # table: time, event, group
    "rossi": ("week", "arrest", "fin"),
    "waltons": ("T", "E", "group"),
    "larynx": ("time", "death", "stage"),
}


def rounded(values):
    return [round(float(value), 10) for value in values]


def curve(time, event):
    """Kaplan–Meier with the exponential Greenwood interval, which is the default."""
    fitted = KaplanMeierFitter().fit(time, event)
    low, high = (fitted.confidence_interval_.iloc[:, side] for side in (0, 1))
    steps = {"time": fitted.survival_function_.index, "survival": fitted.survival_function_.iloc[:, 0]}
    return {name: rounded(values) for name, values in (steps | {"low": low, "high": high}).items()}


def load(name):
    table = getattr(datasets, f"load_{name}")()
    return (
        table.assign(stage=table["Stage_II"] + 2 * table["Stage_III"] + 3 * table["Stage_IV"])
        if "Stage_II" in table
        else table
    )


def reference(name):
    time, event, group = (load(name)[column] for column in TABLES[name])
    test = multivariate_logrank_test(time, group, event)
    return {
        "time": rounded(time),
        "event": rounded(event),
        "group": group.astype(str).tolist(),
        "curves": {str(g): curve(time[group == g], event[group == g]) for g in sorted(set(group))},
        "log_rank": rounded([test.test_statistic, test.p_value]),
    }


if __name__ == "__main__":
    print(json.dumps({"lifelines": lifelines.__version__, "tables": {name: reference(name) for name in TABLES}}))
