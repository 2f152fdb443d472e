"""Charts hold their data and names, are equal for equal data, and read no name as a formula or as markup."""

import base64
import io
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from plurigp.study.findings.view import two_dimensions
from plurigp_paper.charts import (
    MAX_VECTOR_DOTS,
    bar_chart,
    bound_chart,
    heat_chart,
    image_chart,
    line_chart,
    map_chart,
    violin_chart,
)

HOSTILE = '<script>alert("$x_")</script>'
RNG = np.random.default_rng(0)
DRAWN: dict[str, tuple[Callable[[Path], None], set[str]]] = {
    "violin": (
        lambda path: violin_chart(path, "title", "nats", {HOSTILE: RNG_VALUES[:30], "b": RNG_VALUES[30:]}, True),
        {"title", "nats", "b"},
    ),
    "bar": (
        lambda path: bar_chart(path, "title", "index", {"one": (0.9, 0.4), HOSTILE: (0.3, float("nan"))}),
        {"title", "index", "one", "threshold"},
    ),
    "heat": (
        lambda path: heat_chart(path, "title", [HOSTILE, "age"], ["1", "2"], np.array([[1, -2.04], [np.nan, -0.01]])),
        {"title", "age", "1.0", "-2.0", "0.0"},
    ),
    "line": (
        lambda path: line_chart(path, "title", "Q", HOSTILE, {"a": ([2, 4], [1, 3]), "_b": ([2, 4], [2, 9])}),
        {"title", "Q", "a", "_b", "2", "5"},
    ),
    "map": (
        lambda path: map_chart(path, RNG_VALUES.reshape(15, 4), np.array(["a", "_b", HOSTILE] * 5), "title"),
        {"title", "a (5)", "_b (5)", f"{HOSTILE} (5)"},
    ),
}
RNG_VALUES = RNG.normal(size=60)


def words(path: Path) -> set[str]:
    return {"".join(text.itertext()).strip() for text in ET.parse(path).getroot().iterfind(".//{*}text")}


@pytest.mark.parametrize("name", DRAWN)
def test_a_chart_shows_every_name_and_is_the_same_every_time(name, tmp_path):
    draw, expected = DRAWN[name]
    first, again = tmp_path / "new" / "first.svg", tmp_path / "again.svg"
    draw(first)
    draw(again)
    assert first.read_bytes() == again.read_bytes()
    text = first.read_text(encoding="utf-8")
    assert "<script" not in text
    assert expected <= words(first)
    assert "alert" in "".join(words(first))


def dots(path: Path) -> int:
    return len(ET.parse(path).getroot().findall(".//{*}g[@id='PathCollection_1']//{*}use"))


def test_equal_values_and_single_ones_are_drawn_too(tmp_path):
    violin_chart(tmp_path / "violin.svg", "title", "nats", {"a": [1.0, 1.0, 1.0], "b": [2.0]})
    assert dots(tmp_path / "violin.svg") == 3


def test_short_traces_give_no_chart(tmp_path):
    bound_chart(tmp_path / "none.svg", {"a": ([1, 2], [0.0, 1.0])})
    assert not (tmp_path / "none.svg").exists()


def test_images_are_kept_pixel_by_pixel(tmp_path, rng):
    images = rng.random((3, 16))
    image_chart(tmp_path / "image.svg", "title", {"original": images, "again": images}, side=4)
    assert {"title", "original", "again"} <= words(tmp_path / "image.svg")
    (held,) = ET.parse(tmp_path / "image.svg").getroot().findall(".//{*}image")
    body = next(value for key, value in held.attrib.items() if key.endswith("href")).split(",")[1]
    grey = np.asarray(Image.open(io.BytesIO(base64.b64decode(body))).convert("L"), float)
    assert grey.shape == (14, 21)
    darkness = np.corrcoef(255 - grey[:4, :4].ravel(), images[0])[0, 1]
    assert darkness > 0.98


def test_every_row_of_a_map_is_a_dot_until_there_are_many(tmp_path, rng):
    map_chart(tmp_path / "few.svg", rng.normal(size=(30, 4)), np.array(["a", "b", "c"] * 10), "t")
    assert dots(tmp_path / "few.svg") == 30
    n = MAX_VECTOR_DOTS + 1
    map_chart(tmp_path / "many.svg", rng.normal(size=(n, 2)), np.array(["a"] * n), "t")
    assert dots(tmp_path / "many.svg") == 0
    assert len(ET.parse(tmp_path / "many.svg").getroot().findall(".//{*}image")) == 1


def test_two_dimensions_are_the_principal_axes(rng):
    x = rng.normal(size=(200, 3)) * [1, 5, 0.1]
    flat = two_dimensions(x)
    assert flat.shape == (200, 2)
    assert abs(np.corrcoef(flat[:, 0], x[:, 1])[0, 1]) > 0.99
    assert abs(np.corrcoef(flat[:, 1], x[:, 0])[0, 1]) > 0.99
    assert two_dimensions(x[:, :1]).shape == (200, 2)
