"""A model, a study and a table with secrets in it, shared by the tests of what docs/trust.md promises."""

import importlib.util
import os
import random
import shutil
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from plurigp import PluriGP, Study

SEED = int(os.environ.get("TRUST_SEED", "0"))
N = 80
STUDY = {
    "n_components": (2,), "n_restarts": 1, "max_epochs": 2, "n_refits": 2, "n_permutations": 20, "max_subtypes": 3,
    "n_subtypes": 2, "mixture_inits": 1, "max_clusters": 4, "time": "days", "event": "died", "horizons": (10.0,),
}  # fmt: skip
MODEL = {"n_components": 2, "n_inducing": 4, "max_epochs": 1, "calibrate": False, "random_state": 0}


def canary(number: int) -> str:
    """Text that is found nowhere by chance."""
    return f"canary{number:05d}zq"


def secret_number(number: int) -> float:
    """A measurement with a tail that no rounding keeps."""
    return 40 + 20 * float(np.random.default_rng([7, number]).random())


@pytest.fixture(scope="session")
def secret_table() -> pd.DataFrame:
    return make_secret_table()


def make_secret_table() -> pd.DataFrame:
    """80 rows in two groups; ids, dates and free text are canaries, and so are two levels that few rows have."""
    rng = np.random.default_rng(11)
    group = np.arange(N) % 2
    labs = {f"lab_{k}": 50 + 6 * group * (k < 3) + rng.normal(0, 2, N) for k in range(4)}
    labs["lab_0"][:60] = [secret_number(k) + 6 * group[k] for k in range(60)]
    ward = np.where(rng.random(N) < 0.3 + 0.4 * group, "north", "south").astype(object)
    ward[[3, 8]] = canary(90001)  # two rows
    ward[5] = canary(90002)  # one row
    table = pd.DataFrame(
        {
            "patient": [canary(k) for k in range(N)],
            "note": [f"seen by dr {canary(1000 + k)} on the ward" for k in range(N)],
            "admitted": pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 9000, N), unit="h"),
            **labs,
            "ward": ward,
            "smoker": np.where(rng.random(N) < 0.4, "yes", "no"),
            "visits": rng.poisson(2 + 3 * group).astype(float),
            "share": rng.beta(2 + group, 2, N),
            "days": np.ceil(rng.exponential(20, N)),
            "died": rng.random(N) < 0.3 + 0.4 * group,
        },
        index=[canary(2000 + k) for k in range(N)],
    )
    table.loc[table.index[::9], ["lab_1", "visits"]] = np.nan
    return table


@pytest.fixture(scope="session")
def settings() -> dict:
    """Of the study."""
    return dict(STUDY)


@pytest.fixture(scope="session")
def used_table(secret_table) -> pd.DataFrame:
    """What a model of it is asked: without outcomes."""
    return secret_table.drop(columns=["days", "died"])


@pytest.fixture(scope="session")
def model_folder(used_table, tmp_path_factory) -> Path:
    return PluriGP(**MODEL).fit(used_table).save(tmp_path_factory.mktemp("trust") / "model")


@pytest.fixture(scope="session")
def study_folder(secret_table, tmp_path_factory) -> Path:
    """Saved beside other folders, so that what is written elsewhere is found."""
    out = tmp_path_factory.mktemp("trust") / "run"
    Study(out=out, n_jobs=0, **STUDY).fit(secret_table)
    return out


@pytest.fixture
def model_copy(model_folder, tmp_path) -> Path:
    return Path(shutil.copytree(model_folder, tmp_path / "model"))


@pytest.fixture
def study_copy(study_folder, tmp_path) -> Path:
    return Path(shutil.copytree(study_folder, tmp_path / "run"))


@pytest.fixture(scope="session")
def damage() -> ModuleType:
    spec = importlib.util.spec_from_file_location("damage", Path(__file__).with_name("damage.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def chance() -> random.Random:
    """TRUST_SEED=7 make trust repeats a run with other choices."""
    return random.Random(SEED)
