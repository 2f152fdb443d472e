import numpy as np
import pandas as pd

from plurigp.report.figures import pooled_calibration
from plurigp.report.map import map_figure
from plurigp.report.subtype_figures import block_means, characteristics_figure, consensus_figure


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
