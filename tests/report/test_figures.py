from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from plurigp.report.figures import pooled_calibration
from plurigp.report.map import map_figure
from plurigp.report.subtype_figures import block_means, characteristics_figure, consensus_figure, number_figure
from plurigp.report.theme import colour
from plurigp.report.valley import nearest_pairs, unseen_between, valley_figure
from plurigp.study.findings.valley import HISTOGRAM


def test_block_means_leave_gaps_out(rng):
    matrix = rng.random((7, 7))
    matrix[0, 0] = np.nan
    matrix[5:, 5:] = np.nan
    means, edges = block_means(matrix, 3)
    assert edges.tolist() == [0, 2, 4, 7]
    for i in range(3):
        for j in range(3):
            block = matrix[edges[i] : edges[i + 1], edges[j] : edges[j + 1]]
            np.testing.assert_allclose(means[i, j], np.nanmean(block))
    np.testing.assert_array_equal(block_means(matrix, 100)[0], matrix)
    assert np.isnan(block_means(np.full((4, 4), np.nan), 2)[0]).all()


def test_calibration_is_pooled_by_cells():
    table = pd.DataFrame(
        {
            "column": ["a", "b", "c"],
            "kind": "bernoulli",
            "predicted": [0.12, 0.18, 0.95],
            "observed": [0.0, 0.5, 1.0],
            "cells": [10, 30, 4],
        }
    )
    pooled = pooled_calibration(table)
    assert len(pooled) == 1  # four cells are too few
    np.testing.assert_allclose(pooled["predicted"], [(1.2 + 5.4) / 40])
    np.testing.assert_allclose(pooled["observed"], [15 / 40])


def test_every_patient_is_on_the_map_once(result):
    figure = map_figure(result, None)
    assert sum(len(trace["x"]) for trace in figure.data) == result.facts["n_rows"]
    assert len({trace["marker"]["symbol"] for trace in figure.data}) == len(figure.data)
    for choice in figure.extra["choices"][1:]:
        assert [len(part) for part in choice["values"]] == [len(trace["x"]) for trace in figure.data]


def test_consensus_lines_lie_between_subtypes(result):
    figure = consensus_figure(result)
    sizes = result.subtypes["size"].to_numpy()
    upright = sorted({shape["x0"] for shape in figure.layout["shapes"] if shape["x0"] == shape["x1"]})
    np.testing.assert_allclose(upright, np.cumsum(sizes) / result.facts["n_rows"])


def test_characteristics_are_the_described_ones(result):
    figure = characteristics_figure(result)
    table = result.characteristics
    described = table[(table["rows"] == "all") & table["effect"].notna()]
    strongest = described.loc[described["effect"].abs().idxmax()]
    assert figure.layout["yaxis"]["ticktext"][0].startswith(strongest["column"])
    assert figure.data[0]["z"][0][strongest["subtype"] - 1] == float(f"{strongest['effect']:.3g}")


def test_evidence_by_number_marks_the_chosen(result):
    (line,) = number_figure(result).data
    assert line["x"] == [1, 2, 3, 4]
    assert line["y"] == [0.0, 0.2, 0.41, 0.3]
    assert line["marker"]["symbol"] == ["circle", "circle", "diamond", "circle"]


@pytest.mark.parametrize(
    ("group", "pairs"),
    [
        ([1, 2, 3], [(1, 2), (1, 3)]),
        ([1, 1, 2], [(1, 2), (1, 3)]),
        ([1, 2, 1], [(1, 2), (1, 3)]),
        ([1, 2, 2], [(1, 2), (2, 3)]),
    ],
)
def test_a_panel_for_each_stratum_and_its_nearest(result, regroup, group, pairs):
    """Two that are nearest to each other share one."""
    made = regroup(result, group)
    assert nearest_pairs(made) == pairs
    figure = valley_figure(made)
    assert len(figure.data) == len(figure.layout["annotations"]) == len(pairs)
    for (first, second), title in zip(pairs, figure.layout["annotations"], strict=True):
        apart = group[first - 1] != group[second - 1]
        start = f"<b>Subtypes {first} and {second}: {'a valley' if apart else 'no clear valley'}</b><br>"
        assert title["text"] == start + (
            "9% as dense between, p < 0.001" if apart else "85% as dense between, p = 0.40"
        )
    bottoms = [figure.layout[f"yaxis{tag}"]["domain"] for tag in ("", "2")]
    assert 0 <= bottoms[1][0] < bottoms[1][1] < bottoms[0][0] < bottoms[0][1] <= 1


def test_bars_count_each_unseen_patient_once_and_have_the_colour_of_the_nearer(result):
    counts = np.zeros_like(result.valleys.histogram)
    counts[0, 1, 3] = counts[1, 0, -4] = result.facts["n_refits"] / 2  # one patient, in every pair of half maps
    made = replace(result, valleys=replace(result.valleys, histogram=counts))
    assert unseen_between(made, 1, 2).sum() == unseen_between(made, 2, 1).sum() == 1
    bars = valley_figure(made).data[0]
    assert bars["y"][3] == 1
    places = (HISTOGRAM[:-1] + HISTOGRAM[1:]) / 2
    assert bars["marker"]["color"] == [colour(1 if at < 0.5 else 2) for at in places]
    assert bars["text"][3] == "1 patient, nearer to subtype 1"
