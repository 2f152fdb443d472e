"""The simulated data: three handwritten digits, half of the pixels yes/no, half real. Figures 4 d–f, 5 and 13."""

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from plurigp.data import Schema
from plurigp_paper.charts import bound_chart, image_chart, line_chart, map_chart
from plurigp_paper.digits import N_BINARY, Digits, digits
from plurigp_paper.families import PIXEL, NoiseModel, declare, numeric_frame, with_kinds
from plurigp_paper.maps import COVARIANCES, choose_dimension, clusters_found, flat_view, map_study, rand_index
from plurigp_paper.panel import Fit, PanelData, approach_table, comparisons, halves, panel_tasks
from plurigp_paper.panel_figures import SCORES, draw_consensus, draw_panel
from plurigp_paper.runs import Figures, Runs

NAME = "simulated"
FLOOR, OTHER_FLOOR = 0.1, 0.05  # smallest noise sd of a pixel whose intensity lies between 0 and 1
SHOWN = 9  # digits in the figure of reconstructions


@dataclass(frozen=True)
class Sizes:
    """How large the experiment is; the defaults are the paper's, and ours where it has none."""

    n_per_digit: int = 400
    n_components: int = 6
    n_splits: int = 30
    max_epochs: int = 120
    grid: tuple[int, ...] = (2, 4, 6, 8, 12, 16)
    n_restarts: int = 3
    n_few: int = 10  # splits on which the noise floor and the Q of our own choice are tried
    study_epochs: int = 100
    n_refits: int = 30
    n_references: int = 0
    harder: tuple[tuple[int, ...], ...] = ((3, 5, 8), (4, 7, 9))
    harder_refits: int = 10


QUICK = Sizes(
    n_per_digit=80, n_splits=4, max_epochs=60, grid=(2, 6), n_restarts=1, n_few=0, study_epochs=60, n_refits=4,
    n_references=0, harder=(),
)  # fmt: skip


def pixel_noise(floor: float = FLOOR, shared: bool = False) -> NoiseModel:
    """The one noise floor of all compared models, in units of pixel intensity."""
    return NoiseModel(floor / PIXEL, shared, PIXEL)


NOISES = {"shared": pixel_noise(shared=True), "own": pixel_noise()}
OTHER_FLOORS = {"floor": pixel_noise(OTHER_FLOOR)}


def run(out: Path, sizes: Sizes, quiet: bool = False) -> dict[str, Any]:
    """Stage by stage; what each found is written at once, so that the page can be had before all are through."""
    runs = Runs(out, NAME, asdict(sizes), quiet)
    images = digits((0, 1, 2), sizes.n_per_digit, 0)
    results: dict[str, Any] = {
        "sizes": asdict(sizes),
        "floors": [FLOOR, OTHER_FLOOR],
        "n_rows": len(images.table),
        "n_constant": int((images.table.iloc[:, N_BINARY:].nunique() == 1).sum()),
    }
    for stage in (_panel, _reconstructions, _clusters, _dimension, _floor, _agreement, _chosen, _harder):
        results |= stage(runs, images, sizes, results)
        runs.keep(results)
    runs.say("done")
    return results


def draw(figure: Figures, results: dict[str, Any]) -> None:
    """The charts that need the results alone; the map and the images are drawn by `run`."""
    draw_panel(figure, results["panel"])
    if "clusters" in results:
        draw_consensus(figure("consensus"), results["clusters"]["consensus"])
    lines = results.get("selection", [])
    for name, label in SCORES.items() if lines else ():
        series = {name: ([line["Q"] for line in lines], [line[name] for line in lines])}
        line_chart(figure(f"q-{name}"), "Choice of Q", "Q", label, series, False, False)
    bound_chart(
        figure("traces"),
        {f"Q = {line['Q']}": (range(1, len(line["trace"]) + 1), line["trace"]) for line in lines if "trace" in line},
    )


def directions(results: dict[str, Any]) -> dict[str, bool]:
    """What the full run shows, in signs that a quick one must show too."""
    shared, own = (results["panel"][noise] for noise in NOISES)
    by_q = sorted(results["selection"], key=lambda line: line["Q"])
    clusters = results["clusters"]
    return {
        "raw sums favour the Gaussian": max(p["all/reconstruction/raw"]["median"] for p in (shared, own)) < 0,
        "by probability, composite likelihoods predict hidden cells better": own["all/cells/mass"]["median"] > 0,
        "by probability, composite likelihoods have the higher density": own["all/density/mass"]["median"] > 0,
        "approach 2 is ahead of 3 on hidden real cells": own["real/cells/3"]["median"] > 0,
        "approach 2 is behind 1 on the real columns": own["real/reconstruction/1"]["median"] < 0,
        "a shared noise widens the distance of 2 to 3": shared["real/density/3"]["median"]
        > own["real/density/3"]["median"],
        "every consensus index is above its null": all(
            line["index"] > line["permutation_threshold"] for line in clusters["consensus"]
        ),
        "three clusters are the three digits, mostly": clusters["rand"]["full"] > 0.6,
        "the paper's rule finds more than three clusters": clusters["n_paper"] > 3,
        "more dimensions than two predict better": by_q[-1]["cells"] > by_q[0]["cells"],
    }


def _fit(sizes: Sizes, Q: int) -> Fit:
    """Two batches of a half."""
    return Fit(Q, sizes.max_epochs, batch_size=-(-(3 * sizes.n_per_digit // 2) // 2))


def _panel(runs: Runs, images: Digits, sizes: Sizes, so_far: dict[str, Any]) -> dict[str, Any]:
    """Figure 4 d–f at the paper's Q."""
    splits = range(sizes.n_splits)
    found = runs.all(panel_tasks(_data(images), _fit(sizes, sizes.n_components), splits, NOISES), side_by_side=True)
    panel = {noise: comparisons(found, noise, splits) for noise in NOISES}
    return {"panel": panel, "epochs": [fit["epochs"] for fit in found.values()]}


def _data(images: Digits) -> PanelData:
    return PanelData(images.table, images.schema)


def _schema(images: Digits) -> Schema:
    """Composite likelihoods, every pixel with a noise of its own."""
    return with_kinds(images.schema, {"gaussian": declare(pixel_noise())})


def _settings(sizes: Sizes) -> dict[str, Any]:
    return {
        "n_components": (sizes.n_components,),
        "n_restarts": sizes.n_restarts,
        "n_subtypes": 3,
        "covariance": "full",
        "test_share": 0.1,
        "max_epochs": sizes.study_epochs,
        "n_refits": sizes.n_refits,
        "n_references": sizes.n_references,
    }


def _clusters(runs: Runs, images: Digits, sizes: Sizes, so_far: dict[str, Any]) -> dict[str, Any]:
    """Figure 5: the map in two dimensions, clusters and consensus at K = 3."""
    folder, schema = runs.folder / "study", _schema(images)

    def work() -> dict[str, Any]:
        found = map_study(folder, images.table, schema, **_settings(sizes))
        return {"clusters": clusters_found(found, images.labels), "view": np.round(flat_view(found.x), 2)}

    found = runs.one("clusters", work)
    names = np.array([f"digit {label}" for label in images.labels])
    title = f"{len(names):,} digits, Q = {sizes.n_components}"
    map_chart(runs.figure("map"), np.array(found["view"]), names, title)
    return {"clusters": found["clusters"]}


def _dimension(runs: Runs, images: Digits, sizes: Sizes, so_far: dict[str, Any]) -> dict[str, Any]:
    """The choice of Q by every score."""
    settings = _settings(sizes) | {"n_components": sizes.grid}
    schema = _schema(images)
    lines = runs.one(
        "grid", lambda: {"lines": choose_dimension(runs.folder / "grid", images.table, schema, **settings)}
    )["lines"]
    return {"selection": lines}


def _floor(runs: Runs, images: Digits, sizes: Sizes, so_far: dict[str, Any]) -> dict[str, Any]:
    """The same splits with another noise floor."""
    few, fit = range(sizes.n_few), _fit(sizes, sizes.n_components)
    if not few:
        return {}
    found = runs.all(panel_tasks(_data(images), fit, few, NOISES | OTHER_FLOORS), side_by_side=True)
    by_floor = {str(FLOOR): comparisons(found, "own", few), str(OTHER_FLOOR): comparisons(found, "floor", few)}
    return {"floor_panel": by_floor}


def _agreement(runs: Runs, images: Digits, sizes: Sizes, so_far: dict[str, Any]) -> dict[str, Any]:
    """Three clusters and three digits: how far their agreement hangs on the floor, the restart and the mixture."""
    if not sizes.n_few:
        return {}
    floors, restarts = (FLOOR, OTHER_FLOOR), range(sizes.n_restarts)
    found = runs.all(
        {f"agreement-{f:g}-{r}": partial(_map_agreement, images, sizes, f, r) for f in floors for r in restarts}, True
    )
    return {"agreement": {str(f): [found[f"agreement-{f:g}-{r}"] for r in restarts] for f in floors}}


def _map_agreement(images: Digits, sizes: Sizes, floor: float, seed: int) -> dict[str, Any]:
    schema = with_kinds(images.schema, {"gaussian": declare(pixel_noise(floor))})
    fit = Fit(sizes.n_components, sizes.study_epochs, batch_size=sizes.n_per_digit)
    model = fit.estimator(schema, seed).fit(images.table)
    x = model.transform(images.table)
    rand = {name: rand_index(x, images.labels, 3, name) for name in COVARIANCES}
    return {"bound": model.elbo_ / len(x), "rand": rand}


def _chosen(runs: Runs, images: Digits, sizes: Sizes, so_far: dict[str, Any]) -> dict[str, Any]:
    """The same splits at the Q of our own choice."""
    few, Q = range(sizes.n_few), next(line["Q"] for line in so_far["selection"] if line["chosen"])
    if not few:
        return {}
    found = runs.all(panel_tasks(_data(images), _fit(sizes, Q), few, {"chosen": NOISES["own"]}), side_by_side=True)
    return {"chosen_panel": {"Q": Q, "pairs": comparisons(found, "chosen", few)}}


def _harder(runs: Runs, images: Digits, sizes: Sizes, so_far: dict[str, Any]) -> dict[str, Any]:
    """The same clustering for digits that look more alike."""

    def work(which: tuple[int, ...], name: str) -> dict[str, Any]:
        others = digits(which, sizes.n_per_digit, 0)
        settings = _settings(sizes) | {"n_restarts": 1, "n_refits": sizes.harder_refits}
        found = map_study(runs.folder / f"study-{name}", others.table, _schema(others), **settings)
        return clusters_found(found, others.labels)

    names = {which: "".join(map(str, which)) for which in sizes.harder}
    found = runs.all({f"harder-{name}": partial(work, which, name) for which, name in names.items()})
    return {"harder": {"/".join(name): found[f"harder-{name}"] for name in names.values()}}


def _reconstructions(runs: Runs, images: Digits, sizes: Sizes, so_far: dict[str, Any]) -> dict[str, Any]:
    """Figure 13: a few digits that the map was not learned from, and what the map makes of them."""
    shown = runs.one("reconstructions", partial(_reconstructed, _data(images), sizes, images.labels))
    image_chart(runs.figure("digits"), "Held-out digits", {name: np.array(part) for name, part in shown.items()})
    return {}


def _reconstructed(data: PanelData, sizes: Sizes, labels: np.ndarray) -> dict[str, Any]:
    fit = _fit(sizes, sizes.n_components)
    frame, schema = approach_table(data, 2, pixel_noise())
    train, test = halves(len(frame), 0)
    model = fit.estimator(schema, 0).fit(frame.iloc[train].reset_index(drop=True))
    order = test[np.argsort(labels[test], kind="stable")]
    chosen = order[np.linspace(0, len(order) - 1, SHOWN).astype(int)]
    rows = frame.iloc[chosen].reset_index(drop=True)
    again = model.inverse_transform(model.transform(rows))
    pair = (numeric_frame(part, data.schema).to_numpy().round(2) for part in (rows, again))
    return dict(zip(("original", "reconstructed"), pair, strict=True))
