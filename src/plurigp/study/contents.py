"""What the files of a finished study must hold, declared: facts, frames and arrays, checked before they are used."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from plurigp.core.forms import (
    Form,
    FormError,
    choice_form,
    either_form,
    list_form,
    mapping_form,
    number_form,
    optional_form,
    record_form,
    text_form,
    truth_form,
    whole_form,
)
from plurigp.study.fits.config import LEAST, RULES, SHARES, StudyConfig

MAX_COUNT = 2**53
MAX_SCORE = 1e100  # nats per cell: the ends of an axis are computed from it and must be finite
NAME, COUNT, SHARE = text_form(10_000), whole_form(0, MAX_COUNT), number_form(0.0, 1.0)
PLAIN = optional_form(either_form(truth_form, number_form(), list_form(text_form()), text_form()))

FACTS: dict[str, Form] = {
    "title": text_form(), "level": SHARE, "choice": choice_form(*RULES, "given"), "structured": truth_form,
    "structure_p": optional_form(SHARE), "pac": optional_form(SHARE), "gap_share": SHARE,
    "notes": list_form(text_form()), "unseen_gain": optional_form(number_form()), "bound": optional_form(number_form()),
    "stopped": NAME,
    "view_method": choice_form("umap", "pca"), "time_column": optional_form(NAME), "event_column": optional_form(NAME),
    **dict.fromkeys(
        ("n_permutations", "n_refits", "n_references", "n_rows", "n_columns", "n_components", "n_subtypes", "n_strata",
         "n_groups", "n_robust", "n_paper_clusters", "n_outliers", "sampled_pairs", "split_rows", "test_rows",
         "hidden_cells"), COUNT),
}  # fmt: skip

NUMBERS = either_form(list_form(number_form(), 1000), number_form())
CONFIG: dict[str, Form] = {  # types alone: ranges are the settings' own business
    **dict.fromkeys(LEAST, COUNT), **dict.fromkeys(SHARES, number_form()), "title": text_form(),
    **dict.fromkeys(("time", "event", "groups", "weights"), optional_form(NAME)), "max_epochs": optional_form(COUNT),
    "n_subtypes": either_form(choice_form(*RULES), COUNT), "n_components": NUMBERS, "horizons": NUMBERS,
    "guides": mapping_form(number_form(), 100_000), "model": mapping_form(lambda *_: None, 1000),
}  # fmt: skip

# --- frames ---

NUMBER_CELL = optional_form(either_form(choice_form("inf", "-inf"), number_form()))
CELLS: dict[str, tuple[str, Form]] = {  # the dtype of a column, and what each of its cells must be
    "text": ("str", optional_form(text_form())),
    "number": ("float64", NUMBER_CELL),
    "score": ("float64", optional_form(number_form(-MAX_SCORE, MAX_SCORE))),
    "share": ("float64", optional_form(SHARE)),
    "count": ("int64", COUNT),
    "whole": ("int64", whole_form(-MAX_COUNT, MAX_COUNT)),
    "truth": ("bool", truth_form),
}
ANY_CELL = dict(CELLS[sort] for sort in ("text", "number", "whole", "truth"))


def _columns(**by_sort: str) -> dict[str, str]:
    return {name: sort for sort, names in by_sort.items() for name in names.split()}


FRAMES: dict[str, dict[str, str]] = {  # the columns that a frame must have, and what their cells are
    "columns": _columns(text="column kind detail reason", truth="used", count="n_observed", share="gap_share"),
    "selection": _columns(count="n_components", text="fit", number="bound group_gain score se gap gap_se",
                          truth="best chosen"),
    "traces": _columns(text="fit", count="epoch", number="bound kl_x kl_u spread"),
    "clusterings": _columns(count="n_clusters", number="gain shrinkage", truth="chosen"),
    "subtypes": _columns(count="subtype size group nearest", share="share certainty valley_p permutation_p",
                         number="unseen_gain separation depth agreement index index_se permutation_threshold",
                         text="kind", truth="robust"),
    "separations": _columns(count="subtype other", number="separation depth", share="p", truth="apart"),
    "characteristics": _columns(text="rows column kind level measure", count="subtype n_inside n_outside",
                                number="inside outside estimate low high statistic effect", share="p q"),
    "associations": _columns(text="rows column kind measure", number="effect statistic", share="p q"),
    "missingness": _columns(count="subtype n_inside n_outside", text="column", share="inside outside p q",
                            number="estimate low high statistic"),
    "predictions": _columns(text="column kind", count="cells", score="model marginal gain se"),
    "calibration": _columns(text="column kind", share="predicted observed", count="cells"),
    "survival": _columns(count="subtype at_risk", number="time", share="survival low high"),
    "risks": _columns(count="subtype at_risk", number="time", share="risk low high"),
    "survival_tests": _columns(text="test", number="statistic", count="degrees", share="p"),
}  # fmt: skip


def frame_form(columns: Mapping[str, str]) -> Form:
    """A saved frame that has these columns; further ones may hold anything of their dtype."""

    def check(value: Any, place: str) -> None:
        FRAME(value, place)
        if len(set(value["names"])) != len(value["names"]):
            raise FormError(f"field '{place}.names' must name each column once")
        if not len(value["names"]) == len(value["dtypes"]) == len(value["cells"]):
            raise FormError(f"field '{place}' must have a name, a dtype and cells for each column")
        n = len(value["cells"][0]) if value["cells"] else 0
        missing = [name for name in columns if name not in value["names"]]
        if missing and n:
            raise FormError(f"field '{place}' lacks column {missing[0]!r}")
        for name, dtype, cells in zip(value["names"], value["dtypes"], value["cells"], strict=True):
            due, form = CELLS[columns[name]] if name in columns else (dtype, ANY_CELL[dtype])
            if n and dtype != due:
                raise FormError(f"field '{place}.{name}' must have dtype {due}, not {dtype}")
            list_form(form, length=n)(cells, f"{place}.{name}")

    return check


FRAME = record_form({
    "names": list_form(NAME, 1000),
    "dtypes": list_form(choice_form(*ANY_CELL), 1000),
    "cells": list_form(list_form(lambda *_: None), 1000),
})  # fmt: skip
RESULT_FORM = record_form(
    {
        "format": COUNT,
        "facts": record_form(FACTS, {}, PLAIN),
        "config": record_form({}, CONFIG),  # older results lack the newer ones
        "seeds": mapping_form(COUNT, 1000),
        "versions": mapping_form(text_form(1000), 1000),
        "frames": record_form({name: frame_form(columns) for name, columns in FRAMES.items()}),
        "files": mapping_form(text_form(64), 10),
    }
)


def check_result(content: Mapping[str, Any]) -> None:
    """Every field of result.json by its form, then what fields say of each other."""
    RESULT_FORM(content, "")
    facts = content["facts"]
    try:
        StudyConfig.from_dict(content["config"])
    except (ValueError, TypeError, OverflowError) as error:
        raise FormError(f"field 'config': {error}") from None
    if not 1 <= facts["n_strata"] <= facts["n_rows"]:
        raise FormError("field 'facts.n_strata' must be at least 1 and at most n_rows")
    _check_strata(content["frames"], facts["n_strata"])
    for name in ("characteristics", "missingness", "survival", "risks"):
        saved = content["frames"][name]
        if "subtype" in saved["names"]:
            own = saved["cells"][saved["names"].index("subtype")]
            list_form(whole_form(0, facts["n_strata"]))(own, f"frames.{name}.subtype")


def _check_strata(frames: Mapping[str, Any], K: int) -> None:
    """A line per stratum, and one per two of them, in order: the report looks them up."""
    pairs = [(first, second) for first in range(1, K + 1) for second in range(first + 1, K + 1)]
    for name, due in (("subtypes.subtype", list(range(1, K + 1))), ("separations.subtype", [a for a, _ in pairs]),
                      ("separations.other", [b for _, b in pairs])):  # fmt: skip
        frame, column = name.split(".")
        saved = frames[frame]
        held = saved["cells"][saved["names"].index(column)] if column in saved["names"] else []
        if held != due:
            raise FormError(f"field 'frames.{name}' must number the strata 1 to {K} in order")
    own = frames["subtypes"]
    for column in ("nearest", "group"):
        list_form(whole_form(1, K))(own["cells"][own["names"].index(column)], f"frames.subtypes.{column}")


def checked_frame(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """An empty frame gets the dtypes that it would have with rows."""
    if len(frame):
        return frame
    return frame.astype({column: CELLS[FRAMES[name][column]][0] for column in frame.columns if column in FRAMES[name]})


# --- arrays ---

AXES = {  # by array: its dtype kind and its axes; N rows, K strata, Q dimensions, C components, n shown rows
    "mixture.weights": ("f", "C"), "mixture.means": ("f", "C Q"), "mixture.covariances": ("f", "C Q Q"),
    "mixture.subtype": ("i", "C"), "consensus.rows": ("i", "n"), "consensus.matrix": ("f", "n n"),
    "consensus.between": ("f", "K K"), "consensus.between_se": ("f", "K K"), "consensus.cdf_at": ("f", "G"),
    "consensus.cdf": ("f", "G"), "nulls.permutation": ("f", "R K"), "nulls.reference": ("f", "S"),
    "valleys.p": ("f", "K K"), "valleys.depth": ("f", "K K"), "valleys.separation": ("f", "K K"),
    "valleys.histogram": ("f", "K K H"), "assignments.subtype": ("f", "N"), "assignments.p": ("f", "N K"),
    "latent.x": ("f", "N Q"), "latent.x_sd": ("f", "N Q"), "latent.view": ("f", "N V"), "latent.gap_share": ("f", "N"),
    "latent.item_consensus": ("f", "N"),
}  # fmt: skip
MAY_BE_UNKNOWN = ("consensus.", "nulls.", "valleys.", "latent.item_consensus")  # NaN where nothing is known


def check_result_arrays(arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> None:
    """Names, dtypes, shapes and ranges of the arrays of a result, its two tables of rows included."""
    lengths = {"N": facts["n_rows"], "K": facts["n_strata"], "Q": facts["n_components"], "V": 2}
    for name in arrays.keys() | AXES.keys():
        if name not in AXES or name not in arrays:
            raise FormError(f"array {name!r} is {'missing' if name in AXES else 'not known'}")
    for name, (kind, axes) in AXES.items():
        array, expected = arrays[name], axes.split()
        found = zip(expected, array.shape, strict=False)
        fits = array.dtype.kind == kind and array.ndim == len(expected)
        if not fits or any(lengths.setdefault(axis, n) != n for axis, n in found):
            raise FormError(f"array {name!r} ({'×'.join(map(str, array.shape))}) does not fit the others")
        if kind == "f" and (np.isinf(array).any() or (np.isnan(array).any() and not name.startswith(MAY_BE_UNKNOWN))):
            raise FormError(f"array {name!r} holds numbers that are not finite")
    K, C = lengths["K"], lengths["C"]
    for name, most in (("mixture.subtype", K), ("assignments.subtype", K), ("consensus.rows", lengths["N"] - 1)):
        within = (arrays[name] >= 0) & (arrays[name] <= most) & (arrays[name] == np.floor(arrays[name]))
        if not within.all():
            raise FormError(f"array {name!r} must hold whole numbers from 0 to {most}")
    if C < 1 or not (arrays["mixture.weights"] > 0).all():
        raise FormError("array 'mixture.weights' must hold numbers above 0")
    if np.linalg.eigvalsh(arrays["mixture.covariances"]).min() <= 0:
        raise FormError("array 'mixture.covariances' must hold positive definite matrices")
