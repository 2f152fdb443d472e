"""The simulated data: three handwritten digits, half of the pixels yes/no, half real. Figures 4 d–f, 5 and 13."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from plurigp.datasets import digits
from plurigp.datasets.digits import Digits
from plurigp.experiments.charts import bar_chart, image_chart
from plurigp.experiments.families import PIXEL, Noise, as_numbers, declare, with_kinds
from plurigp.experiments.lines import line_chart
from plurigp.experiments.maps import clusters_found, flat_view, map_study, selection, traces
from plurigp.experiments.panel import Data, Fit, approach_table, comparisons, halves, panel_tasks
from plurigp.experiments.panel_figures import draw_panel
from plurigp.experiments.runs import Runs
from plurigp.picture import write_map

NAME = "simulated"
FLOOR, OTHER_FLOOR = 0.05, 0.02  # smallest noise sd of a pixel whose intensity lies between 0 and 1
SHOWN = 9  # digits in the figure of reconstructions


@dataclass(frozen=True)
class Sizes:
    """How large the experiment is; the defaults are the paper's, and ours where it has none."""

    n_per_digit: int = 400
    grid: tuple[int, ...] = (2, 4, 6, 8, 10, 12)
    n_restarts: int = 3
    n_splits: int = 30
    n_floor_splits: int = 10
    max_epochs: int = 200
    n_refits: int = 30
    n_references: int = 19
    study_epochs: int = 100
    harder: tuple[tuple[int, ...], ...] = ((3, 5, 8), (4, 7, 9))
    harder_refits: int = 10


QUICK = Sizes(
    n_per_digit=100, grid=(2, 6), n_restarts=1, n_splits=6, n_floor_splits=3, max_epochs=60, n_refits=6,
    n_references=0, study_epochs=60, harder=(),
)  # fmt: skip


def pixel_noise(floor: float = FLOOR, shared: bool = False) -> Noise:
    """The one noise floor of all compared models, in units of pixel intensity."""
    return Noise(floor / PIXEL, shared, PIXEL)


NOISES = {"shared": pixel_noise(shared=True), "own": pixel_noise()}
OTHER_NOISES = {"floor": pixel_noise(OTHER_FLOOR)}


def run(out: Path, sizes: Sizes, quiet: bool = False) -> dict[str, Any]:
    """Everything about the digits 0, 1 and 2, then the harder triples."""
    runs = Runs(out, NAME, asdict(sizes), quiet)
    images = digits((0, 1, 2), sizes.n_per_digit, 0)
    found = _study(runs, images, sizes)
    Q = found["clusters"]["n_components"]
    data = Data(images.table, images.schema)
    n_half = len(images.table) // 2
    fit = Fit(Q, sizes.max_epochs, batch_size=-(-n_half // 2))
    splits, few = range(sizes.n_splits), range(sizes.n_floor_splits)
    panel = runs.all(panel_tasks(data, fit, splits, NOISES))
    floor = runs.all(panel_tasks(data, fit, few, OTHER_NOISES))
    results = {
        **found,
        "sizes": asdict(sizes),
        "floors": [FLOOR, OTHER_FLOOR],
        "n_rows": len(images.table),
        "n_constant": int((images.table.iloc[:, data.n_levels :].nunique() == 1).sum()),
        "panel": {noise: comparisons(panel, noise, splits) for noise in NOISES},
        "floor_panel": {
            str(FLOOR): comparisons(panel, "own", few),
            str(OTHER_FLOOR): comparisons(floor, "floor", few),
        },
        "epochs": [fit["epochs"] for fit in panel.values()],
        "harder": {_spelled(which): _harder(runs, which, Q, sizes) for which in sizes.harder},
    }
    images_drawn = runs.one("reconstructions", lambda: _reconstructions(data, fit, images.labels))
    _draw(runs, results, images_drawn)
    runs.finish(results)
    return results


def _spelled(which: tuple[int, ...]) -> str:
    return "/".join(map(str, which))


def _study(runs: Runs, images: Digits, sizes: Sizes) -> dict[str, Any]:
    """The choice of Q, the map in two dimensions, clusters and consensus, at K = 3."""
    folder = runs.folder / "study"
    kind = declare(pixel_noise())
    schema = with_kinds(images.schema, {"gaussian": kind})
    found = map_study(
        folder,
        images.table,
        schema,
        n_components=sizes.grid,
        n_restarts=sizes.n_restarts,
        n_subtypes=3,
        test_share=0.1,
        max_epochs=sizes.study_epochs,
        n_refits=sizes.n_refits,
        n_references=sizes.n_references,
    )
    groups = Data(images.table, images.schema).groups
    table = images.table
    shown = runs.one(
        "clusters",
        lambda: {
            "clusters": clusters_found(found, images.labels),
            "selection": selection(found, folder, table, groups),
            "traces": traces(found),
            "view": np.round(flat_view(found.x), 2),
        },
    )
    names = np.array([f"digit {label}" for label in images.labels])
    write_map(runs.figure("map"), np.array(shown.pop("view")), names, f"{len(table):,} digits, Q = {found.x.shape[1]}")
    return shown


def _harder(runs: Runs, which: tuple[int, ...], Q: int, sizes: Sizes) -> dict[str, Any]:
    """The same clustering for digits that look more alike."""
    images = digits(which, sizes.n_per_digit, 0)
    schema = with_kinds(images.schema, {"gaussian": declare(pixel_noise())})
    name = "".join(map(str, which))

    def work() -> dict[str, Any]:
        found = map_study(
            runs.folder / f"study-{name}",
            images.table,
            schema,
            n_components=(Q,),
            n_restarts=1,
            n_subtypes=3,
            test_share=0.1,
            max_epochs=sizes.study_epochs,
            n_refits=sizes.harder_refits,
            n_references=sizes.n_references,
        )
        return clusters_found(found, images.labels)

    return runs.one(f"harder-{name}", work)


def _reconstructions(data: Data, fit: Fit, labels: np.ndarray) -> dict[str, Any]:
    """A few digits that the map was not learned from, and what the map makes of them."""
    frame, schema = approach_table(data, 2, pixel_noise())
    train, test = halves(len(frame), 0)
    model = fit.estimator(schema, 0).fit(frame.iloc[train].reset_index(drop=True))
    order = test[np.argsort(labels[test], kind="stable")]
    chosen = order[np.linspace(0, len(order) - 1, SHOWN).astype(int)]
    rows = frame.iloc[chosen].reset_index(drop=True)
    again = model.inverse_transform(model.transform(rows))
    pair = (as_numbers(part, data.schema).to_numpy().round(2) for part in (rows, again))
    return dict(zip(("original", "reconstructed"), pair, strict=True))


# --- figures ---


def _draw(runs: Runs, results: dict[str, Any], images: dict[str, Any]) -> None:
    lines = results["selection"]
    qs = [line["Q"] for line in lines]
    for name, label in (("cells", "nats per hidden cell"), ("reconstruction", "reconstruction, nats per row")):
        series = {name: (qs, [line[name] for line in lines])}
        line_chart(runs.figure(f"q-{name}"), "Choice of Q", "Q", label, series, False, False)
    if len(results["traces"]) > 1:
        series = {name: (x[2:], y[2:]) for name, (x, y) in results["traces"].items()}
        line_chart(runs.figure("traces"), "Bound by epoch", "epoch", "nats per row", series, False)
    bars = {
        f"cluster {line['subtype']}": (line["index"], line["permutation_threshold"])
        for line in results["clusters"]["consensus"]
    }
    bar_chart(runs.figure("consensus"), "Consensus indices and thresholds", "consensus index", bars)
    image_chart(runs.figure("digits"), "Held-out digits", {name: np.array(part) for name, part in images.items()})
    draw_panel(runs, results["panel"])
