"""Models, a study made by hand around one, their pages, and a browser to open them in."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.mixture import GaussianMixture

from plurigp import PluriGP
from plurigp.data import to_rows
from plurigp.data.limits import text_of_bounds
from plurigp.datasets import simulate
from plurigp.study import Clusters, Consensus, Map, Nulls, StudyResult
from plurigp.study.findings.mixture import Mixture, memberships
from plurigp.study.findings.valley import Valleys
from plurigp.study.findings.view import two_dimensions

COLUMNS = {"gaussian": 2, "lognormal": 1, "bernoulli": 1, "categorical": 1, "censored_lognormal": 1}
FRAMES = ("columns", "selection", "traces", "clusterings", "separations", "characteristics", "associations",
          "missingness", "predictions", "calibration", "risks", "survival_tests")  # fmt: skip


def study_of(model: PluriGP, table: pd.DataFrame, n_strata: int = 2, title: str = "A study") -> StudyResult:
    """A result without refits: the model's map, a mixture of its positions, and made-up outcome curves."""
    mean, sd = model.transform(table, return_std=True)
    found = GaussianMixture(n_strata, random_state=0).fit(mean)
    mixture = Mixture(found.weights_, found.means_, found.covariances_, np.arange(1, n_strata + 1))
    subtype, probability = memberships(mixture, mean, sd)
    n, times = len(mean), np.array([0.0, 50.0, 100.0])
    curves = [pd.DataFrame({"subtype": k, "time": times, "at_risk": 40, "survival": 1 - times / (200 + 99 * k),
                            "low": 0.9 - times / 200, "high": 1.0}) for k in range(n_strata + 1)]  # fmt: skip
    names = [column.name for column in model.schema_.columns]
    empty = {name: pd.DataFrame({"column": names, "used": True}) for name in FRAMES}
    facts = {"title": title, "n_rows": n, "structured": True, "time_column": "days", "n_components": mean.shape[1]}
    facts |= {"choice": "evidence"}
    return StudyResult(
        facts=facts, config={}, seeds={}, versions={},
        latent=Map(mean, sd, two_dimensions(mean), table.isna().to_numpy().mean(1)),
        clusters=Clusters(subtype, probability, mixture),
        consensus=Consensus(*(np.zeros(1) for _ in range(7))),
        nulls=Nulls(np.zeros((1, 1)), np.zeros(1)),
        valleys=Valleys(*np.zeros((3, 2, 2)), np.zeros((2, 2, 3))),
        subtypes=pd.DataFrame({"subtype": range(1, n_strata + 1)}),
        survival=pd.concat(curves), fitted=model, **empty,
    )  # fmt: skip


def typed_answers(model: PluriGP, frame: pd.DataFrame) -> list[dict[int, dict]]:
    """What a person would enter for each row, by column: the place of a level, or a text."""
    rows = to_rows(frame)
    out: list[dict[int, dict]] = [{} for _ in range(len(frame))]
    for d, column in enumerate(model.schema_.used):
        for answers, raw in zip(out, rows.numbers(column), strict=True):
            if np.isnan(raw[0]):
                continue
            if column.levels:
                answers[d] = {"level": int(raw[0])}
            elif column.trials is not None:
                answers[d] = {"text": f"{raw[0]:.0f}", "trials": f"{raw[1]:.0f}"}
            else:
                answers[d] = {"text": text_of_bounds(*raw) if len(raw) == 2 else repr(float(raw[0]))}
    return out


def hollow(table: pd.DataFrame, n_rows: int, share: float = 0.3) -> pd.DataFrame:
    """Random rows of a table with further random gaps; one of them has no cell at all."""
    rng = np.random.default_rng(3)
    rows = table.sample(n_rows, random_state=0, replace=len(table) < n_rows, ignore_index=True)
    hidden = rng.random(rows.shape) < share
    hidden[0] = True
    return rows.mask(hidden)


@pytest.fixture(scope="session")
def simulation():
    return simulate(n_rows=260, n_components=3, columns=COLUMNS, missing=0.15, random_state=2)


@pytest.fixture(scope="session")
def model(simulation) -> PluriGP:
    return PluriGP(3, schema=simulation.schema, max_epochs=4, n_inducing=20, random_state=0).fit(simulation.table)


@pytest.fixture(scope="session")
def study(model, simulation) -> StudyResult:
    return study_of(model, simulation.table)


# --- the browser ---


class Opened:
    """A page of ours, and what it said on the console and asked of the network."""

    def __init__(self, browser, path: Path, **context):
        self.path, self.said, self.asked = path, [], []
        context = {"viewport": {"width": 1300, "height": 900}} | context
        self.page = browser.new_context(**context).new_page()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready=yes]", timeout=30_000, state="attached")

    def check(self):
        """It was silent."""
        assert self.said == []
        assert [url for url in self.asked if not url.startswith(("data:", "blob:"))] == [self.path.as_uri()]


@pytest.fixture(scope="session")
def tools() -> SimpleNamespace:
    """The functions of this file, for tests."""
    return SimpleNamespace(study_of=study_of, typed_answers=typed_answers, hollow=hollow, Opened=Opened)
