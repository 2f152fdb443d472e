"""The rows as points of the map: positions alone, none where fewer than MIN_REGION lie, not in the table's order."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from plurigp.explore.export import packed

MIN_REGION = 5  # rows in a region, below which none of them is drawn
MOST_POINTS = 100_000  # drawn one by one; more are counted in bins
AUTO_BINS = 160  # along each side of the view where there are more
REGION = 0.25  # side of a region, in sds of the rows
STEP = 0.01  # positions are rounded to this, where the prior's sd is 1
LINEAR = 0.9999  # share of a view's variance that a linear map explains, from which it counts as one


@dataclass(frozen=True, eq=False)
class View:
    """A plane through the latent space: view = (x − centre) axes; without axes the view is no linear one (UMAP)."""

    centre: np.ndarray  # [Q]
    axes: np.ndarray | None  # [Q 2]


@dataclass(frozen=True, eq=False)
class RowPoints:
    """What is known of the rows: where they lie, their group, how certain it is, their share of gaps."""

    x: np.ndarray  # [N Q]
    flat: np.ndarray  # [N 2] in the view
    group: np.ndarray  # [N] int, 0 = no group
    certainty: np.ndarray  # [N]
    gaps: np.ndarray  # [N]
    count: np.ndarray  # [N] rows that a point stands for
    number: np.ndarray  # [N] row of the table, from 0

    def take(self, kept: np.ndarray) -> "RowPoints":
        """Some of them."""
        return RowPoints(*(getattr(self, name)[kept] for name in self.__dataclass_fields__))


def principal_view(x: np.ndarray) -> View:
    """The two principal axes of positions [N Q]; with one dimension the second axis is empty."""
    centre = x.mean(0)
    _, _, axes = np.linalg.svd(x - centre, full_matrices=False)
    return View(centre, np.pad(axes[:2].T, ((0, 0), (0, 2 - min(2, len(axes))))))


def view_of_study(x: np.ndarray, flat: np.ndarray) -> View:
    """The linear map behind a study's view where there is one."""
    centre = x.mean(0)
    axes = np.linalg.lstsq(x - centre, flat - flat.mean(0), rcond=None)[0]
    rest = ((x - centre) @ axes - (flat - flat.mean(0))).var(0).sum()
    linear = rest <= (1 - LINEAR) * flat.var(0).sum() and np.abs(flat.mean(0)).max() < STEP
    return View(centre, axes if linear else None)


def in_populated_regions(x: np.ndarray, flat: np.ndarray) -> np.ndarray:
    """Rows [N] around which at least MIN_REGION rows lie on every plane that the page can show: within the square of
    three regions' side whose middle region is theirs."""
    planes = [flat, *(x[:, list(pair)] for pair in combinations(range(x.shape[1]), 2))]
    kept = np.ones(len(x), bool)
    for plane in planes:
        side = REGION * np.maximum(plane.std(0), 1e-9)
        place = np.floor((plane - plane.min(0)) / side).astype(np.int64) + 1
        width = place[:, 1].max() + 2
        region, inverse, counts = np.unique(place[:, 0] * width + place[:, 1], return_inverse=True, return_counts=True)
        around = np.zeros(len(region), np.int64)
        for step in (i * width + j for i in (-1, 0, 1) for j in (-1, 0, 1)):
            at = np.searchsorted(region, region + step)
            found = (at < len(region)) & (region[np.minimum(at, len(region) - 1)] == region + step)
            around += np.where(found, counts[np.minimum(at, len(region) - 1)], 0)
        kept &= around[inverse] >= MIN_REGION
    return kept


def jittered(points: RowPoints, view: View, sd: float, rng: np.random.Generator) -> RowPoints:
    """Positions with noise of so many sds of the rows, in the latent space and in a view that does not follow it."""
    x = points.x + sd * points.x.std(0) * rng.normal(size=points.x.shape)
    flat = points.flat + sd * points.flat.std(0) * rng.normal(size=points.flat.shape)
    flat = flat if view.axes is None else (x - view.centre) @ view.axes
    return RowPoints(x, flat, points.group, points.certainty, points.gaps, points.count, points.number)


def binned(points: RowPoints, n_bins: int) -> RowPoints:
    """One point per bin of the view that holds at least MIN_REGION rows: their mean, and the group that most are in."""
    low, high = points.flat.min(0), points.flat.max(0)
    place = np.clip(((points.flat - low) / np.maximum(high - low, 1e-9) * n_bins).astype(int), 0, n_bins - 1)
    _, inverse, counts = np.unique(place[:, 0] * n_bins + place[:, 1], return_inverse=True, return_counts=True)
    n_groups = int(points.group.max(initial=0)) + 1
    by_group = np.zeros((len(counts), n_groups))
    np.add.at(by_group, (inverse, points.group), 1)

    def mean(values: np.ndarray) -> np.ndarray:
        sums = np.zeros((len(counts), *values.shape[1:]))
        np.add.at(sums, inverse, values)
        return sums / counts.reshape(-1, *(1 for _ in values.shape[1:]))

    parts = (mean(points.x), mean(points.flat), by_group.argmax(1), mean(points.certainty), mean(points.gaps))
    whole = RowPoints(*parts, counts, np.zeros(len(counts), int))
    return whole.take(counts >= MIN_REGION)


def points_content(points: RowPoints, view: View, n_rows: int) -> dict[str, Any]:
    """For the page: positions rounded and sorted, so that nothing of the table's order is left."""
    order = np.lexsort(np.round(points.x, 2).T[::-1])
    shown = points.take(order)
    content = {
        "n_rows": n_rows,
        "n_shown": int(shown.count.sum()),
        "step": STEP,
        "x": packed(np.clip(np.rint(shown.x / STEP), -32767, 32767).astype(np.int16)),
        "group": packed(shown.group.astype(np.uint8)),
        "certainty": packed(np.rint(100 * shown.certainty).astype(np.uint8)),
        "gaps": packed(np.rint(20 * shown.gaps).astype(np.uint8)),  # in twentieths
        "count": packed(shown.count.astype(np.uint32)) if (shown.count > 1).any() else None,
        **view_content(view),
    }
    if view.axes is None:
        unit = float(np.abs(shown.flat).max(initial=1e-9)) / 32000
        content |= {"flat": packed(np.rint(shown.flat / unit).astype(np.int16)), "flat_step": unit}
    return content


def view_content(view: View) -> dict[str, Any]:
    """The plane for the page."""
    return {"centre": packed(view.centre), "axes": None if view.axes is None else packed(view.axes)}


def table_order(points: RowPoints) -> np.ndarray:
    """The rows of the table in the order in which `points_content` writes them."""
    return points.number[np.lexsort(np.round(points.x, 2).T[::-1])]
