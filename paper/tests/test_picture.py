"""The map as SVG: one dot per row, and group names that cannot break out of it."""

import xml.etree.ElementTree as ET

import numpy as np

from plurigp.study.findings.view import two_dimensions
from plurigp_paper.picture import write_map

SVG = "{http://www.w3.org/2000/svg}"


def test_two_dimensions_are_the_principal_axes(rng):
    x = rng.normal(size=(200, 3)) * [1, 5, 0.1]
    flat = two_dimensions(x)
    assert flat.shape == (200, 2)
    assert abs(np.corrcoef(flat[:, 0], x[:, 1])[0, 1]) > 0.99
    assert abs(np.corrcoef(flat[:, 1], x[:, 0])[0, 1]) > 0.99
    assert two_dimensions(x[:, :1]).shape == (200, 2)


def test_every_row_is_a_dot_and_every_group_a_line_of_the_legend(rng, tmp_path):
    hostile = '<script>alert("x")</script>'
    write_map(tmp_path / "map.svg", rng.normal(size=(30, 4)), np.array(["a", "b", hostile] * 10), f"t {hostile}")
    text = (tmp_path / "map.svg").read_text()
    assert "<script" not in text
    tree = ET.fromstring(text)
    assert len(tree.findall(f".//{SVG}g/{SVG}circle")) == 30
    texts = {t.text for t in tree.findall(f".//{SVG}text")}
    assert texts == {f"t {hostile}", "a (10)", "b (10)", f"{hostile} (10)"}
