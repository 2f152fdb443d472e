"""What each part of the method does: quadrature, its nodes and its √2, η, the encoder, the optimiser."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from plurigp.datasets import simulate_cohort
from plurigp.likelihoods.registry import LIKELIHOODS
from plurigp_paper.charts import bound_chart, line_chart, violin_chart
from plurigp_paper.digits import digits
from plurigp_paper.families import declare, declare_halved, with_kinds
from plurigp_paper.maps import rand_index
from plurigp_paper.panel import PAPER_NODES, Fit, PanelData, halves, held_out_tables
from plurigp_paper.runs import Figures, Runs, Work
from plurigp_paper.scores import exact_scorer, score
from plurigp_paper.simulated import pixel_noise

NAME = "ablations"
HALVED = ("bernoulli", "beta")  # the families that need quadrature
MAX_TRACE_POINTS = 120  # of a trace
WEIGHT_LABELS = {
    "centre": "distance of the mean from the origin",
    "radius": "root mean square distance of rows",
    "rand": "adjusted Rand index",
}


@dataclass(frozen=True)
class Sizes:
    """How large the experiment is."""

    n_per_digit: int = 400
    n_rows: int = 1400
    n_splits: int = 6
    n_adam_splits: int = 1
    max_epochs: int = 200
    adam_epochs: int = 1000
    weights: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
    nodes: tuple[int, ...] = (3, 10, 20)


QUICK = Sizes(n_per_digit=60, n_rows=300, n_splits=2, n_adam_splits=1, max_epochs=40, adam_epochs=60, weights=(1, 10))


@dataclass(frozen=True, eq=False)
class AblationTable:
    """PanelData with the kinds under which the ablations fit it."""

    data: PanelData
    labels: np.ndarray
    kinds: Mapping[str, str]

    def fit(self, split: int, fit: Fit, halved: bool = False) -> dict[str, Any]:
        """One fit on one half; scores by exact quadrature whatever it was trained with."""
        schema = with_kinds(self.data.schema, dict(self.kinds))
        if halved:
            schema = with_kinds(schema, {kind: declare_halved(kind) for kind in HALVED})
        frame = self.data.table
        train, test = halves(len(frame), split)
        started = perf_counter()
        model = fit.estimator(schema, split).fit(frame.iloc[train].reset_index(drop=True))
        seconds = perf_counter() - started
        truth, shown = held_out_tables(self.data, test, split, frame)
        right = {declare_halved(kind): LIKELIHOODS[kind] for kind in HALVED} if halved else {}
        x = model.transform(frame.iloc[train])
        step = max(1, len(model.history_) // MAX_TRACE_POINTS)
        bound = model.history_["bound"][::step] / len(train)
        return {
            "scores": score(model, truth, shown, self.data.groups, exact_scorer(model, right)),
            "bound": model.elbo_ / len(train),
            "seconds": seconds,
            "epochs": model.n_iter_,
            "trace": [bound.index.to_list(), bound.round(3).to_list()],
            "centre": float(np.linalg.norm(x.mean(0))),
            "radius": float(np.sqrt((x**2).sum(1).mean())),
            "rand": _rand(x, self.labels[train]),
        }


def _rand(x: np.ndarray, labels: np.ndarray) -> float:
    return rand_index(x, labels, len(np.unique(labels)), "tied")


def run(out: Path, sizes: Sizes, quiet: bool = False) -> dict[str, Any]:
    """All of them, on the digits and, where gaps or proportions matter, on the cohort."""
    runs = Runs(out, NAME, asdict(sizes), quiet)
    images, cohort = digits((0, 1, 2), sizes.n_per_digit, 0), simulate_cohort(sizes.n_rows, random_state=0)
    tables = {
        "digits": AblationTable(
            PanelData(images.table, images.schema), images.labels, {"gaussian": declare(pixel_noise())}
        ),
        "cohort": AblationTable(PanelData(cohort.table, cohort.schema), cohort.subtype, {}),
    }
    results = {name: _by_way(runs, name, tables, ways, n_splits) for name, (ways, n_splits) in _plans(sizes).items()}
    results["sizes"] = asdict(sizes)
    runs.keep(results)
    return results


Way = tuple[str, Fit, bool]  # table, how to fit, whether the √2 is missing


def _plans(sizes: Sizes) -> dict[str, tuple[dict[str, Way], int]]:
    """Every ablation: its ways by name, and on how many splits."""

    def fit(table: str, n_components: int | None = None, epochs: int | None = None, **model: Any) -> Fit:
        n_rows = 3 * sizes.n_per_digit if table == "digits" else sizes.n_rows
        Q = n_components or (6 if table == "digits" else 10)
        return Fit(Q, epochs or sizes.max_epochs, -(-(n_rows // 2) // 2), model=model)

    both = ("digits", "cohort")
    n = sizes.n_splits
    few = sizes.n_adam_splits
    return {
        "sampling": (
            {
                "quadrature": ("digits", fit("digits", 2, n_quadrature=PAPER_NODES), False),
                "sampling": ("digits", fit("digits", 2, n_quadrature=PAPER_NODES, expectation="sampling"), False),
            },
            n,
        ),
        "nodes": ({f"{t}, J = {J}": (t, fit(t, n_quadrature=J), False) for t in both for J in sizes.nodes}, n // 2),
        "root": (
            {
                f"{t}, {'√2 missing' if wrong else 'right'}": (t, fit(t, n_quadrature=PAPER_NODES), wrong)
                for t in both
                for wrong in (False, True)
            },
            n // 2,
        ),
        "weight": ({f"η = {w}": ("digits", fit("digits", kl_weight=float(w)), False) for w in sizes.weights}, 1),
        "encoder": (
            {e: ("cohort", fit("cohort", encoder=e), False) for e in ("factors", "masked", "paper", "free")},
            n // 2,
        ),
        "optimizer": (
            {
                "natural, informed start": ("digits", fit("digits"), False),
                "Adam, informed start": ("digits", fit("digits", epochs=sizes.adam_epochs, optimizer="adam"), False),
                "Adam, random start": (
                    "digits",
                    fit("digits", epochs=sizes.adam_epochs, optimizer="adam", start="random"),
                    False,
                ),
            },
            few,
        ),
    }


def _by_way(
    runs: Runs, name: str, tables: Mapping[str, AblationTable], ways: Mapping[str, Way], n_splits: int
) -> dict[str, list[dict[str, Any]]]:
    """What every way found on every split."""
    tasks: dict[str, Work] = {
        f"{name}-{number:02}-{split:02}": partial(tables[table].fit, split, fit, wrong)
        for number, (table, fit, wrong) in enumerate(ways.values())
        for split in range(max(n_splits, 1))
    }
    found = runs.all(tasks)
    return {
        way: [found[task] for task in tasks if task.startswith(f"{name}-{number:02}-")]
        for number, way in enumerate(ways)
    }


def total(fit: Mapping[str, Any], name: str) -> float:
    """A fit's score over all columns: per row for the reconstruction and the density, per hidden cell otherwise."""
    scores = fit["scores"]
    if name == "density":
        return float(scores["density"]["all"])
    if name == "reconstruction":
        return float(sum(scores[name].values()))
    cells = sum(scores["hidden"].values())
    return float(sum(scores["cells"][g] * n for g, n in scores["hidden"].items()) / cells)


# --- figures ---


def draw(figure: Figures, results: Mapping[str, Any]) -> None:
    """Every chart, from the results alone."""
    for name in ("sampling", "optimizer"):
        bound_chart(figure(f"{name}-traces"), {way: tuple(fits[0]["trace"]) for way, fits in results[name].items()})
    pairs: Sequence[tuple[str, str, Callable[[Mapping[str, Any]], float]]] = (
        ("score", "reconstruction, nats per row", lambda fit: total(fit, "reconstruction")),
        ("time", "seconds per 1,000 epochs", lambda fit: 1000 * fit["seconds"] / fit["epochs"]),
    )
    for name, label, read in pairs:
        groups = {way: [read(fit) for fit in fits] for way, fits in results["sampling"].items()}
        violin_chart(figure(f"sampling-{name}"), "Quadrature and sampling, Q = 2", label, groups)
    by_weight = sorted((float(way.removeprefix("η = ")), fits[0]) for way, fits in results["weight"].items())
    for value, label in WEIGHT_LABELS.items():
        series = {value: ([weight for weight, _ in by_weight], [fit[value] for _, fit in by_weight])}
        line_chart(figure(f"weight-{value}"), "Weight of KL_X", "η", label, series, False, False)
