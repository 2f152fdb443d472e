import xml.etree.ElementTree as ET
import zlib

import numpy as np

from plurigp_paper.charts import bar_chart, heat_chart, image_chart, png, violin_chart
from plurigp_paper.lines import line_chart


def drawn(path):
    return ET.parse(path).getroot()


def test_every_chart_is_whole_and_names_its_groups(tmp_path, rng):
    values = {"<composite>": rng.normal(size=30).tolist(), "Gaussian": rng.normal(size=30).tolist()}
    violin_chart(tmp_path / "violin.svg", "title", "nats", values, with_zero=True)
    bar_chart(tmp_path / "bar.svg", "title", "index", {"one": (0.9, 0.4), "two": (0.3, float("nan"))})
    heat_chart(tmp_path / "heat.svg", "title", ["lab", "age"], ["1", "2"], np.array([[1.0, -2.0], [np.nan, 0.5]]))
    image_chart(tmp_path / "image.svg", "title", {"original": rng.random((3, 784))})
    line_chart(tmp_path / "line.svg", "title", "Q", "nats", {"a": ([2, 4], [-1.0, 3.0])}, False, False)
    for name in ("violin", "bar", "heat", "image", "line"):
        assert "title" in "".join(drawn(tmp_path / f"{name}.svg").itertext())
    assert "<composite>" in "".join(drawn(tmp_path / "violin.svg").itertext())


def test_equal_values_are_drawn_too(tmp_path):
    violin_chart(tmp_path / "violin.svg", "title", "nats", {"a": [1.0, 1.0, 1.0], "b": [2.0]})
    assert len(drawn(tmp_path / "violin.svg").findall(".//{*}circle")) == 4


def test_png_holds_the_image(rng):
    grey = rng.integers(0, 255, (5, 7)).astype(np.uint8)
    body = png(grey)
    start = body.index(b"IDAT") + 4
    lines = zlib.decompressobj().decompress(body[start:])
    np.testing.assert_array_equal(np.frombuffer(lines, np.uint8).reshape(5, 8)[:, 1:], grey)
